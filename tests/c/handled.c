/* A handler of a signal that calls exit, wherever it has interrupted the program. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 100, BLOCKS = 300, LEFT = 40, CODE = 3, PATIENCE_MS = 60000 };

static void use_memory(void) {
  void *blocks[LEFT];
  for (int i = 0; i < LEFT; i++)
    blocks[i] = calloc(1, (size_t)1 << i % 18);
  for (int i = 0; i < LEFT; i++)
    free(blocks[i]);
}

static void end(int signal) {
  exit(signal == SIGALRM ? CODE : 1);
}

/* Allocates and frees until the signal comes, the sooner the smaller the round. */
static void work(unsigned round) {
  static void *blocks[BLOCKS];
  uint64_t state = round + 1;
  struct itimerval timer = {.it_value.tv_usec = 500 + 37 * (long)round};
  atexit(use_memory);
  signal(SIGALRM, end);
  setitimer(ITIMER_REAL, &timer, NULL);
  for (;;) {
    void **block = blocks + next_random(&state) % BLOCKS;
    free(*block);
    *block = malloc(random_size(&state, 17));
  }
}

/* Returns how the child has ended; 0 if it hangs, and is killed. */
static int wait_for(pid_t child) {
  int status = 0;
  for (int ms = 0; ms < PATIENCE_MS; ms++) {
    if (waitpid(child, &status, WNOHANG) == child)
      return status;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return 0;
}

int main(void) {
  int hung = 0, died = 0;
  for (unsigned round = 0; round < ROUNDS && hung == 0; round++) {
    pid_t child = fork();
    if (child == 0)
      work(round);
    int status = wait_for(child);
    hung += status == 0;
    died += status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == CODE);
  }
  promise("a handler that interrupts a call of the library can call exit", hung == 0);
  /* Nothing more is promised of calls of malloc in a handler. */
  promise("and nearly all such programs end with its code", died * 4 < ROUNDS);
  return counts();
}
