/* Each thread replaces blocks at random in a set of its own; the share of a size falls with its
 * square, from 4 bytes to 32 KB. What does a thread pay that shares nothing?
 * After the idea of glibc's bench-malloc-thread. */
#include "work.h"

enum { PLACES = 1024, STEPS = 30000000, MIN_SIZE = 4, MAX_SIZE = 32768 };

static unsigned threads, steps;

static size_t size_next(uint64_t *random) {
  uint64_t part = (next_random(random) >> 40) + 1;
  size_t size = MIN_SIZE * (1ull << 24) / part;
  return size < MAX_SIZE ? size : MAX_SIZE;
}

static void *run(void *number) {
  uint64_t random = (uintptr_t)number + 1;
  uint8_t *blocks[PLACES] = {NULL};
  uint16_t sizes[PLACES];
  for (unsigned step = 0; step < steps / threads; step++) {
    unsigned place = next_random(&random) % PLACES;
    if (blocks[place])
      block_free(blocks[place], sizes[place]);
    sizes[place] = (uint16_t)size_next(&random);
    blocks[place] = block_get(sizes[place]);
  }
  for (int place = 0; place < PLACES; place++)
    if (blocks[place])
      block_free(blocks[place], sizes[place]);
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  steps = scaled(STEPS, count, arguments);
  run_threads(threads, run);
  return 0;
}
