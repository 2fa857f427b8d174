/* A C program with blocks of known sizes, for the tests of lanemm; stops itself. With an argument its
   main thread ends, and another one goes on. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_on(void *unused) {
  (void)unused;
  printf("ready 1\n");
  fflush(stdout);
  for (;;)
    pause();
}

int main(int count, char **arguments) {
  (void)arguments;
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
  if (count > 1) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_on, NULL);
    pthread_exit(NULL);
  }
  printf("ready 1\n");
  fflush(stdout);
  kill(getpid(), SIGSTOP);
  return 0;
}
