/* How a program ends that has the library in it, not in liblanemm.so: as any other one.
 *
 *   ends MODE     late: libc empties the buffer of a stream last, while a timer goes on
 *                 hold: a block that another thread holds, which sleeps
 *                 lose: a lost block; with leaks:exit=N the exit code is N */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t alarms;
static void *volatile block;
static atomic_int is_held;

static void count_alarm(int signal) {
  alarms += signal == SIGALRM;
}

/* The timer ends the process here if nothing handles its signal any more. */
static ssize_t write_late(void *unused, const char *text, size_t size) {
  int before = alarms;
  while (alarms < before + 3)
    usleep(100);
  return unused == NULL ? write(STDOUT_FILENO, text, size) : 0;
}

static void print_late(void) {
  struct itimerval often = {{0, 1000}, {0, 1000}};
  cookie_io_functions_t calls = {NULL, write_late, NULL, NULL};
  FILE *late = fopencookie(NULL, "w", calls);
  signal(SIGALRM, count_alarm);
  setitimer(ITIMER_REAL, &often, NULL);
  fputs("1 passed, 0 failed\n", late);
}

static void *hold(void *unused) {
  void *volatile held = malloc(1000);
  is_held = 1;
  pause();
  free(held);
  return unused;
}

int main(int count, char **arguments) {
  const char *mode = count < 2 ? "late" : arguments[1];
  pthread_t thread;
  check_use_all();
  free(malloc(100));
  if (strcmp(mode, "late") == 0) {
    print_late();
    return 0;
  }
  if (strcmp(mode, "lose") == 0)
    block = malloc(100);
  block = NULL;
  if (strcmp(mode, "hold") == 0 && pthread_create(&thread, NULL, hold, NULL) == 0)
    while (!is_held)
      usleep(100);
  puts("1 passed, 0 failed");
  return 0;
}
