/* Runs a command and prints what it took, with commas between: wall time and CPU time in ns, peak
 * memory in KB, and 0 for the memory at the end, as the runner of bench/ wants it.
 *
 *   measure COMMAND [ARGUMENT...]
 *
 * The memory is that of the largest process. The output of the command goes to the file `out`. Exit
 * code 1 when the command fails. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static long long ns_of(struct timeval time) {
  return time.tv_sec * 1000000000ll + time.tv_usec * 1000ll;
}

int main(int count, char **arguments) {
  if (count < 2)
    return 2;
  long long start = now_ns();
  pid_t pid = fork();
  if (pid == 0) {
    int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(out, 1);
    execvp(arguments[1], arguments + 1);
    perror(arguments[1]);
    _exit(127);
  }
  int status;
  struct rusage usage;
  waitpid(pid, &status, 0);
  long long end = now_ns();
  getrusage(RUSAGE_CHILDREN, &usage);
  printf("%lld,%lld,%ld,0\n", end - start, ns_of(usage.ru_utime) + ns_of(usage.ru_stime),
         usage.ru_maxrss);
  return status != 0;
}
