/* Phases of threads that come and go, blocks of all sizes, some kept, some handed to whoever comes
 * by. How much time and memory does disorder cost?
 * After the idea of Leijen's mstress. */
#include "work.h"

enum { PHASES = 200, STEPS = 60000, KEPT = 2000, SHARED = 1000 };

struct block {
  size_t size;
  uint8_t *start;
};

static uint8_t *_Atomic shared[SHARED];
static unsigned threads, phase;

/* Mostly small, one in 200 up to 32 KB, one in 4000 up to 1 MB; never below a word. */
static size_t size_next(uint64_t *random) {
  uint64_t bits = next_random(random);
  if (bits % 4000 == 0)
    return 8 + (bits >> 20) % (1 << 20);
  if (bits % 200 == 0)
    return 8 + (bits >> 20) % (32 << 10);
  return 8 + (bits >> 20) % 400;
}

/* A shared block begins with its size. */
static void exchange(uint64_t *random) {
  size_t size = size_next(random) + sizeof size;
  uint8_t *block = block_get(size);
  memcpy(block, &size, sizeof size);
  block = __atomic_exchange_n(&shared[next_random(random) % SHARED], block, __ATOMIC_ACQ_REL);
  if (block == NULL)
    return;
  memcpy(&size, block, sizeof size);
  block_free(block, size);
}

static void *run(void *number) {
  uint64_t random = phase * 1000 + (uintptr_t)number + 1;
  struct block *kept = calloc(KEPT, sizeof *kept);
  for (unsigned step = 0; step < STEPS / threads; step++) {
    struct block *place = &kept[next_random(&random) % KEPT];
    if (place->start)
      block_free(place->start, place->size);
    place->size = size_next(&random);
    place->start = block_get(place->size);
    if (step % 4 == 0)
      exchange(&random);
  }
  for (int i = 0; i < KEPT; i++)
    if (kept[i].start)
      block_free(kept[i].start, kept[i].size);
  free(kept);
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  unsigned phases = scaled(PHASES, count, arguments);
  for (phase = 0; phase < phases; phase++)
    run_threads(threads, run);
  return 0;
}
