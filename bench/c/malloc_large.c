/* Blocks of 5 to 25 MB, up to twenty at a time, which are written at each page before they are
 * freed at random. Does a large block cost its pages each time?
 * After the idea of Stolyarov's malloc-large. */
#include "work.h"

enum { PLACES = 20, STEPS = 400, PAGE = 4096 };
static const size_t MIN_SIZE = 5 << 20, MAX_SIZE = 25 << 20;

int main(int count, char **arguments) {
  uint64_t random = 5;
  uint8_t *blocks[PLACES] = {NULL};
  size_t sizes[PLACES];
  unsigned steps = scaled(STEPS, count, arguments);
  for (unsigned step = 0; step < steps; step++) {
    unsigned place = next_random(&random) % PLACES;
    if (blocks[place])
      block_free(blocks[place], sizes[place]);
    sizes[place] = MIN_SIZE + next_random(&random) % (MAX_SIZE - MIN_SIZE);
    blocks[place] = block_get(sizes[place]);
    for (size_t offset = PAGE; offset < sizes[place] - 1; offset += PAGE)
      blocks[place][offset] = (uint8_t)step;
  }
  for (int place = 0; place < PLACES; place++)
    if (blocks[place])
      block_free(blocks[place], sizes[place]);
  return 0;
}
