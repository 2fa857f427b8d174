/* 1 GB of blocks, made and freed: half of the bytes in blocks of 16 to 256 bytes, half in blocks of
 * 1 KB to 64 KB. After 2 and after 10 seconds one more block is made and freed.
 * How much memory is resident after these calls? A library without a thread of its own can return
 * memory in calls only. */
#include "rest.h"

enum { SMALL_COUNT = 3900000, MID_COUNT = 16000 };

struct block {
  uint8_t *start;
  uint32_t size;
};

/* Makes blocks of a size from smallest up to largest; the caller frees the table. */
static struct block *fill(unsigned made, unsigned smallest, unsigned largest) {
  struct block *blocks = malloc(made * sizeof *blocks);
  uint64_t random = smallest;
  for (unsigned i = 0; i < made; i++) {
    blocks[i].size = smallest + next_random(&random) % (largest - smallest + 1);
    blocks[i].start = block_get(blocks[i].size);
    for (unsigned page = 4096; page < blocks[i].size; page += 4096)
      blocks[i].start[page - 1] = 1;
  }
  return blocks;
}

static void empty(struct block *blocks, unsigned made) {
  while (made-- > 0)
    block_free(blocks[made].start, blocks[made].size);
  free(blocks);
}

static void rest_and_call(unsigned duration_ms, int count, char **arguments) {
  rest(duration_ms, count, arguments);
  block_free(block_get(100), 100);
}

int main(int count, char **arguments) {
  unsigned small_made = scaled(SMALL_COUNT, count, arguments);
  unsigned mid_made = scaled(MID_COUNT, count, arguments);
  struct block *small = fill(small_made, 16, 256);
  struct block *mid = fill(mid_made, 1 << 10, 64 << 10);
  empty(small, small_made);
  empty(mid, mid_made);
  tell_memory("idle0");
  rest_and_call(2000, count, arguments);
  tell_memory("idle2");
  rest_and_call(8000, count, arguments);
  tell_memory("idle10");
  return 0;
}
