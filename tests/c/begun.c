/* A program that was linked with tcmalloc. */
#include "check.h"

void *tc_malloc(size_t size);
void tc_free(void *block);
int begins_calls(void);

int main(void) {
  int calls = begins_calls();
  promise("a library that begins in its own tc_malloc begins", calls > 0);
  tc_free(tc_malloc(100));
  promise("its tc_malloc is that of LaneMM", begins_calls() == calls);
  return counts();
}
