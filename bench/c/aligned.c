/* 2,000 blocks of 100 bytes, each aligned to 64 KB, all alive.
 * Does a block cost its alignment in memory, or in addresses only? */
#include "rest.h"

enum { COUNT = 2000, SIZE = 100, ALIGNMENT = 64 << 10 };

static uint8_t *blocks[COUNT];

int main(int count, char **arguments) {
  unsigned made = scaled(COUNT, count, arguments);
  for (unsigned i = 0; i < made; i++) {
    void *block;
    if (posix_memalign(&block, ALIGNMENT, SIZE) != 0 || (uintptr_t)block % ALIGNMENT != 0)
      exit(3);
    blocks[i] = block;
    memset(block, (uint8_t)i, SIZE);
  }
  rest(2500, count, arguments);
  tell_memory("quiet");
  for (unsigned i = 0; i < made; i++) {
    if (blocks[i][0] != (uint8_t)i || blocks[i][SIZE - 1] != (uint8_t)i)
      exit(4);
    free(blocks[i]);
  }
  return 0;
}
