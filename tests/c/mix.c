/* All functions at random on a set of live blocks; each block's content is checked before it goes. */
#define _GNU_SOURCE
#include <malloc.h>

#include "check.h"

enum { BLOCKS = 3000, STEPS = 1500000, MAX_LOG2 = 20 };

static struct {
  uint8_t *block;
  size_t size;
  uint64_t mark;
} live[BLOCKS];

static int is_kept = 1, is_right = 1;

static void *get(uint64_t *random, size_t size) {
  void *block = NULL;
  switch (next_random(random) % 8) {
    case 0:
      block = calloc(1, size);
      is_right &= block && is_zero(block, size);
      return block;
    case 1: {
      size_t alignment = (size_t)16 << next_random(random) % 10;
      is_right &= posix_memalign(&block, alignment, size) == 0 && is_aligned(block, alignment);
      return block;
    }
    default:
      return malloc(size);
  }
}

int main(void) {
  check_use_all();
  uint64_t random = 20260101;
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned place = next_random(&random) % BLOCKS;
    size_t size = random_size(&random, next_random(&random) % 64 ? 12 : MAX_LOG2);
    if (live[place].block != NULL) {
      size_t old = live[place].size;
      is_kept &= content_is(live[place].block, old, old, live[place].mark);
      if (next_random(&random) % 4 == 0 && size > 0) {
        uint8_t *block = realloc(live[place].block, size);
        is_right &= block != NULL;
        /* what a shorter block keeps of the content is where a block of its size has it */
        is_kept &= old > WHOLE || content_is(block, old, old < size ? old : size, live[place].mark);
        live[place].block = block;
      } else {
        free(live[place].block);
        live[place].block = NULL;
        if (next_random(&random) % 2)
          continue;
      }
    }
    if (live[place].block == NULL)
      live[place].block = get(&random, size);
    is_right &= live[place].block != NULL;
    live[place].size = size;
    live[place].mark = step;
    content_write(live[place].block, size, step);
  }
  for (unsigned place = 0; place < BLOCKS; place++) {
    if (live[place].block)
      is_kept &= content_is(live[place].block, live[place].size, live[place].size,
                            live[place].mark);
    free(live[place].block);
  }
  promise("no block overlaps another in a random mix", is_kept);
  promise("every call of a random mix is served, zeroed and aligned", is_right);
  malloc_trim(0);
  struct mallinfo2 info = mallinfo2();
  promise("nothing is left of a random mix", info.uordblks + info.hblkhd < 1 << 20);
  return counts();
}
