/* Slots hold blocks of random small sizes; each step frees the block of a random slot and puts a
 * new one there. What does a memory manager, or a tool that checks its use, cost a step?
 * The sizes and slots of churn-small in bench/workloads. */
#include "work.h"

enum { SLOTS = 20000, STEPS = 3000000 };

/* First and last size of a range, and how many of 100 blocks have one of it. */
static const struct range {
  unsigned first, last, share;
} ranges[] = {{16, 48, 40}, {40, 104, 30}, {25, 120, 20}, {112, 512, 8}, {512, 4096, 2}};

static struct {
  uint8_t *block;
  size_t size;
} slots[SLOTS];

static size_t size_next(uint64_t *random) {
  uint64_t bits = next_random(random);
  unsigned share = bits % 100;
  const struct range *range = ranges;
  while (share >= range->share)
    share -= range++->share;
  return range->first + (bits >> 20) % (range->last - range->first + 1);
}

__attribute__((noinline)) static void slot_fill(unsigned i, uint64_t *random) {
  slots[i].size = size_next(random);
  slots[i].block = block_get(slots[i].size);
}

__attribute__((noinline)) static void slot_empty(unsigned i) {
  block_free(slots[i].block, slots[i].size);
  slots[i].block = NULL;
}

int main(int count, char **arguments) {
  uint64_t random = 1;
  unsigned steps = scaled(STEPS, count, arguments);
  for (unsigned i = 0; i < SLOTS; i++)
    slot_fill(i, &random);
  for (unsigned step = 0; step < steps; step++) {
    unsigned i = next_random(&random) % SLOTS;
    slot_empty(i);
    slot_fill(i, &random);
  }
  for (unsigned i = 0; i < SLOTS; i++)
    slot_empty(i);
  return 0;
}
