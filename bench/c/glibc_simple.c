/* So many blocks of one size, then all are freed in the order of their making; sizes of 16 to 4096,
 * 25 to 1600 blocks. What does the simplest use cost, in a cache of blocks and beyond it?
 * After the idea of glibc's bench-malloc-simple. */
#include "work.h"

enum { MAX_COUNT = 1600, BLOCKS = 3000000 };

int main(int count, char **arguments) {
  static const unsigned counts[] = {25, 100, 400, MAX_COUNT};
  uint8_t *blocks[MAX_COUNT];
  unsigned total = scaled(BLOCKS, count, arguments);
  for (size_t size = 16; size <= 4096; size *= 4)
    for (unsigned kind = 0; kind < sizeof counts / sizeof *counts; kind++)
      for (unsigned round = 0; round < total / counts[kind]; round++) {
        for (unsigned i = 0; i < counts[kind]; i++)
          blocks[i] = block_get(size);
        for (unsigned i = 0; i < counts[kind]; i++)
          block_free(blocks[i], size);
      }
  return 0;
}
