/* A C program with blocks of known sizes, for the tests of lanemm; stops itself. With `ended` its main
   thread ends, and another one goes on. With `stacks` it has only two blocks of 9 MB, each held by a
   thread alone; the stacks of both lie in one mapping. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_barrier_t holding;

static void *wait_on(void *unused) {
  (void)unused;
  printf("ready 1\n");
  fflush(stdout);
  for (;;)
    pause();
}

static void *hold(void *unused) {
  (void)unused;
  char *volatile held = malloc(9000000);
  held[0] = 1;
  pthread_barrier_wait(&holding);
  for (;;)
    pause();
}

static void hold_by_threads(void) {
  const size_t guard = 1 << 16, bytes = 1 << 20;
  pthread_attr_t attributes;
  pthread_t thread;
  char *stacks = mmap(NULL, guard + 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(stacks, guard, PROT_NONE);
  pthread_barrier_init(&holding, NULL, 3);
  for (int i = 0; i < 2; i++) {
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks + guard + i * bytes, bytes);
    pthread_create(&thread, &attributes, hold, NULL);
  }
  pthread_barrier_wait(&holding);
}

__attribute__((noinline)) static void plant(void) {
  for (int i = 0; i < 1200; i++) {
    char *volatile block = malloc(7000); /* of the class of 7,168 bytes */
    block[0] = 1;
    if (i % 3 == 0)
      free(block);
  }
  for (int i = 0; i < 5; i++) {
    char *volatile large = malloc(3000000);
    large[0] = 1;
  }
}

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "stacks") == 0)
    hold_by_threads();
  else
    plant();
  if (count > 1 && strcmp(arguments[1], "ended") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_on, NULL);
    pthread_exit(NULL);
  }
  printf("ready 1\n");
  fflush(stdout);
  kill(getpid(), SIGSTOP);
  return 0;
}
