/* A handler of a signal that calls lanemm_configure, or forks, wherever it has interrupted the program: in such a
 * call, or in a fork. It may be refused, and never waits for the thread that it has interrupted. */
#define _GNU_SOURCE
#include <lanemm.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 300, FORK_ROUNDS = 100, MOST_REFUSED = 20, CALLS = 500, THREADS = 3, PATIENCE = 120 };

static volatile sig_atomic_t handled, refused;
static _Atomic int are_accepted = 1;

static void configure(int signal) {
  (void)signal;
  refused += !lanemm_configure("top=21");
  handled++;
}

static void fork_inside(int signal) {
  (void)signal;
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, NULL, 0);
  handled++;
}

/* Calls until a signal has come, which comes at any place of the program's own code. */
static void work(void (*call)(unsigned), void (*handler)(int), int rounds) {
  struct itimerval timer = {.it_value.tv_usec = 1000};
  unsigned count = 0;
  signal(SIGVTALRM, handler);
  for (int round = 0; round < rounds && refused < MOST_REFUSED; round++) {
    int before = handled;
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    while (handled == before)
      call(count++);
  }
  refused = 0;
}

static void watch(unsigned count) {
  if (!lanemm_configure(count % 2 ? "contention,growth" : "contention=0,growth=0"))
    are_accepted = 0;
}

static void change_background(unsigned count) {
  if (!lanemm_configure(count % 2 ? "background" : "background=0"))
    are_accepted = 0;
}

static void fork_once(unsigned count) {
  (void)count;
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, NULL, 0);
}

static void *watch_often(void *unused) {
  for (unsigned i = 0; i < CALLS; i++)
    watch(i);
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  check_use_all();
  alarm(PATIENCE); /* where something hangs */
  work(watch, configure, ROUNDS);
  promise("a handler that interrupts lanemm_configure can call it", 1);
  work(change_background, configure, FORK_ROUNDS);
  work(change_background, fork_inside, FORK_ROUNDS);
  promise("and one that interrupts the start of a thread of the library can do so and fork", 1);
  promise("the setting works after that", lanemm_configure("background"));
  work(fork_once, configure, FORK_ROUNDS);
  promise("a handler that interrupts a fork can call it", 1);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, watch_often, NULL);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  promise("no other call is refused, also of several threads at once", are_accepted);
  return counts();
}
