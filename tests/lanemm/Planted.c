/* A C program with blocks of known sizes, for the tests of lanemm; stops itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  for (int i = 0; i < 1200; i++) {
    char *block = malloc(7000); /* of the class of 7,168 bytes */
    block[0] = 1;
    if (i % 3 == 0)
      free(block);
  }
  for (int i = 0; i < 5; i++) {
    char *large = malloc(3000000);
    large[0] = 1;
  }
  printf("ready 1\n");
  fflush(stdout);
  kill(getpid(), SIGSTOP);
  return 0;
}
