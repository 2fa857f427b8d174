/* Slots are emptied and filled at random; sizes have a long tail, and a few slots change far more
 * often than others. How does a manager do at a load without any pattern?
 * After the idea of OLogN's alloc-test. */
#include "work.h"

enum { SLOTS_LOG2 = 17, STEPS = 15000000, MAX_LOG2 = 12 };

struct slot {
  uint8_t *block;
  size_t size;
};

static unsigned threads, steps;

/* 8 to 32 KB; each power of two half as often as the one before. */
static size_t size_next(uint64_t *random) {
  uint64_t bits = next_random(random);
  int log2 = __builtin_ctzll(bits >> 32 | 1ull << MAX_LOG2);
  return (8ull << log2) + (uint32_t)bits % (8u << log2);
}

/* Half of the changes are at an eighth of the slots. */
static unsigned slot_next(uint64_t *random) {
  uint64_t bits = next_random(random);
  return (bits >> 20) % (1u << (bits & 1 ? SLOTS_LOG2 : SLOTS_LOG2 - 3));
}

static void *run(void *number) {
  uint64_t random = (uintptr_t)number + 1;
  struct slot *slots = (struct slot *)calloc(1u << SLOTS_LOG2, sizeof *slots);
  for (unsigned step = 0; step < steps / threads; step++) {
    struct slot *slot = &slots[slot_next(&random)];
    if (slot->block)
      block_free(slot->block, slot->size);
    slot->block = NULL;
    if (next_random(&random) % 4 == 0)
      continue;
    slot->size = size_next(&random);
    slot->block = block_get(slot->size);
  }
  for (unsigned i = 0; i < 1u << SLOTS_LOG2; i++)
    if (slots[i].block)
      block_free(slots[i].block, slots[i].size);
  free(slots);
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  steps = scaled(STEPS, count, arguments);
  run_threads(threads, run);
  return 0;
}
