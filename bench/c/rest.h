/* Rests, and the memory after them, resident and charged, as facts for the runner of bench/. */
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

/* What is charged to the memory group that the runner made, in KB, likewise; -1 if it made none. */
static inline long charged_kb(void) {
  static const char *const names[2][2] = {{"/sys/fs/cgroup/memory", "memory.usage_in_bytes"},
                                          {"/sys/fs/cgroup", "memory.current"}};
  char groups[4096] = {0}, path[4200], number[32] = {0};
  int file = open("/proc/self/cgroup", O_RDONLY);
  char *place = read(file, groups, sizeof groups - 1) > 0 ? strstr(groups, ":/lanemm-") : NULL;
  close(file);
  for (int version = 0; place != NULL && version < 2; version++) {
    snprintf(path, sizeof path, "%s%.*s/%s", names[version][0], (int)strcspn(place + 1, "\n"),
             place + 1, names[version][1]);
    file = open(path, O_RDONLY);
    if (file < 0)
      continue;
    ssize_t length = read(file, number, sizeof number - 1);
    close(file);
    if (length > 0)
      return atol(number) / 1024;
  }
  return -1;
}

/* Prints both under a name: quiet gives quiet_kb and, where it is known, quiet_charged_kb. */
static inline void tell_memory(const char *title) {
  char text[128];
  long resident = resident_kb(), charged = charged_kb();
  int length = snprintf(text, sizeof text, ",%s_kb=%ld", title, resident);
  if (charged >= 0)
    length += snprintf(text + length, sizeof text - length, ",%s_charged_kb=%ld", title, charged);
  if (write(1, text, length) != length)
    exit(6);
}

#endif
