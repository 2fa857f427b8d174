/* Each thread gets small blocks by itself and writes to them over and over. Do the blocks of two
 * threads lie in one cache line?
 * After: Berger et al., "Hoard: A Scalable Memory Allocator", ASPLOS 2000 (active false sharing). */
#include "work.h"

enum { SIZE = 8, ROUNDS = 150000, WRITES = 1500 };

static unsigned threads, rounds;

static void *run(void *number) {
  (void)number;
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
  run_threads(threads, run);
  return 0;
}
