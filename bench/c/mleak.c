/* Threads come one group after the other; each leaves a small block that lives on, and ends. Does
 * the memory of a thread stay for one block?
 * After the idea of Leijen's mleak. */
#include "work.h"

enum { GROUPS = 1500, SIZE = 100, SHORT_LIVED = 200 };

static uint8_t *left[GROUPS * MAX_THREADS];
static unsigned threads, group;

static void *run(void *number) {
  uint8_t *blocks[SHORT_LIVED];
  for (int i = 0; i < SHORT_LIVED; i++)
    blocks[i] = block_get(SIZE + i);
  for (int i = 0; i < SHORT_LIVED; i++)
    block_free(blocks[i], SIZE + i);
  left[group * threads + (uintptr_t)number] = block_get(SIZE);
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  unsigned groups = scaled(GROUPS, count, arguments);
  if (groups > GROUPS)
    groups = GROUPS;
  for (group = 0; group < groups; group++)
    run_threads(threads, run);
  for (unsigned i = 0; i < groups * threads; i++)
    block_free(left[i], SIZE);
  return 0;
}
