/* Each thread gets a small block from the main thread, frees it, and works on blocks of its own.
 * Do two threads ever get parts of one cache line?
 * After: Berger et al., "Hoard: A Scalable Memory Allocator", ASPLOS 2000 (passive false sharing). */
#include "work.h"

enum { SIZE = 8, ROUNDS = 150000, WRITES = 1500 };

static uint8_t *given[MAX_THREADS];
static unsigned threads, rounds;

static void *run(void *number) {
  block_free(given[(uintptr_t)number], SIZE);
  for (unsigned round = 0; round < rounds / threads; round++) {
    volatile uint8_t *block = block_get(SIZE);
    for (int i = 0; i < WRITES; i++)
      for (int byte = 1; byte < SIZE - 1; byte++)
        block[byte]++;
    block_free((uint8_t *)block, SIZE);
  }
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  rounds = scaled(ROUNDS, count, arguments);
  for (unsigned i = 0; i < threads; i++)
    given[i] = block_get(SIZE);
  run_threads(threads, run);
  return 0;
}
