/* A program that does nothing but get signals, which a child process sends it without end. When its standard input ends,
 * so do they; exit code 1 if one is missing. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t received;

static void count(int signal) {
  (void)signal;
  received++;
}

/* The system keeps each signal of this kind until it is taken, and refuses one where it has no space for it. */
static void send_all(pid_t target, int stop, int sum) {
  int sent = 0;
  char sign;
  fcntl(stop, F_SETFL, O_NONBLOCK);
  while (read(stop, &sign, 1) < 0) {
    while (kill(target, SIGRTMIN) != 0)
      sched_yield();
    sent++;
    usleep(20);
  }
  if (write(sum, &sent, sizeof sent) != sizeof sent)
    abort();
}

int main(void) {
  int stop[2], sum[2], sent = -1;
  char sign;
  pid_t own = getpid();
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  sigaction(SIGRTMIN, &action, NULL);
  if (pipe(stop) != 0 || pipe(sum) != 0)
    return 2;
  if (fork() == 0) {
    close(stop[1]);
    send_all(own, stop[0], sum[1]);
    _exit(0);
  }
  puts("ready");
  fflush(stdout);
  while (read(0, &sign, 1) > 0)
    ;
  close(stop[0]);
  close(stop[1]);
  if (read(sum[0], &sent, sizeof sent) != sizeof sent)
    return 2;
  wait(NULL);
  printf("%d signals sent, %d received\n", sent, (int)received);
  return received != sent;
}
