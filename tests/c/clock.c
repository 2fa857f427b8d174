/* A library with a clock of its own, as libfaketime: it allocates, and stands still. */
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  free(malloc(100 + clock));
  time->tv_sec = 1000000000;
  time->tv_nsec = 0;
  return 0;
}
