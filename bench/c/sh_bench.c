/* Bursts of blocks, small ones far more often, freed in three orders: as they came, backwards, and
 * every other one first. How well do free lists keep up with changing sizes and orders?
 * After the idea of MicroQuill's SmartHeap benchmark. */
#include "work.h"

enum { BURST = 2000, ROUNDS = 40000, MAX_LOG2 = 10 };

static unsigned threads, rounds;

static void free_one(uint8_t **blocks, uint16_t *sizes, int i) {
  block_free(blocks[i], sizes[i]);
}

static void *run(void *number) {
  uint64_t random = (uintptr_t)number + 1;
  uint8_t *blocks[BURST];
  uint16_t sizes[BURST];
  for (unsigned round = 0; round < rounds / threads; round++) {
    for (int i = 0; i < BURST; i++) {
      uint64_t bits = next_random(&random);
      sizes[i] = 1 + (bits >> 8) % (2u << bits % MAX_LOG2);
      blocks[i] = block_get(sizes[i]);
    }
    switch (round % 3) {
      case 0:
        for (int i = 0; i < BURST; i++)
          free_one(blocks, sizes, i);
        break;
      case 1:
        for (int i = BURST - 1; i >= 0; i--)
          free_one(blocks, sizes, i);
        break;
      default:
        for (int i = 0; i < BURST; i += 2)
          free_one(blocks, sizes, i);
        for (int i = 1; i < BURST; i += 2)
          free_one(blocks, sizes, i);
    }
  }
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  rounds = scaled(ROUNDS, count, arguments);
  run_threads(threads, run);
  return 0;
}
