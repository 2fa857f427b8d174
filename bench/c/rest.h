/* Rests, and the resident memory after them, as facts for the runner of bench/. */
#ifndef REST_H
#define REST_H

#include "work.h"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* Sleeps for so many milliseconds; for fewer at a scale below 1. */
static inline void rest(unsigned duration_ms, int count, char **arguments) {
  double scale = count > 2 ? atof(arguments[2]) : 1;
  double seconds = duration_ms / 1000.0 * (scale < 1 ? scale : 1);
  struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

/* Resident memory in KB, read without a call of malloc. */
static inline long resident_kb(void) {
  char text[4096] = {0};
  int status = open("/proc/self/status", O_RDONLY);
  char *place = read(status, text, sizeof text - 1) > 0 ? strstr(text, "VmRSS:") : NULL;
  close(status);
  if (place == NULL)
    exit(6);
  return atol(place + strlen("VmRSS:"));
}

/* Prints the resident memory under the name of its measure. */
static inline void tell_resident(const char *measure) {
  char text[64];
  int length = snprintf(text, sizeof text, ",%s=%ld", measure, resident_kb());
  if (write(1, text, length) != length)
    exit(6);
}

#endif
