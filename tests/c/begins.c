/* A library that begins in its own tc_malloc, as that of gperftools 2.16. For begun.c. */
#include <stdlib.h>

static int calls;

void *tc_malloc(size_t size) {
  calls++;
  return malloc(size);
}

void tc_free(void *block) {
  free(block);
}

__attribute__((constructor)) static void begin(void) {
  for (int i = 0; i < 1000 && calls == 0; i++)
    tc_free(tc_malloc(32));
}

/* How often its own tc_malloc was called. */
int begins_calls(void) {
  return calls;
}
