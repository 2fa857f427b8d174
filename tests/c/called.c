/* A call of lanemm_on_pressure ends the program, while the main thread goes on: libc's caches are left to it.
 *
 *   called FOLDER     where the files of a control group are written; linked with -rdynamic */
#define _GNU_SOURCE
#include <lanemm.h>
#include <unistd.h>

#include "check.h"

/* In place of libc's, which the library calls before a leak report if no other thread runs. */
void __libc_freeres(void);
void __libc_freeres(void) {
  _exit(3);
}

static void end(unsigned long long used, unsigned long long limit, void *context) {
  promise("the program may end in a call", used <= limit && context == NULL);
  exit(counts());
}

static void write_number(const char *folder, const char *name, long value) {
  char path[1000];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  if (file == NULL)
    exit(2);
  fprintf(file, "%ld\n", value);
  fclose(file);
}

int main(int count, char **arguments) {
  char words[1100];
  check_use_all();
  if (count < 2)
    return 2;
  write_number(arguments[1], "memory.max", 100000000);
  write_number(arguments[1], "memory.current", 95000000);
  snprintf(words, sizeof words, "limit=container:%s", arguments[1]);
  if (!lanemm_configure(words) || !lanemm_on_pressure(end, NULL))
    return 2;
  for (;;)
    pause();
}
