/* Blocks of 5 to 25 MB, up to twenty at a time, which are filled with zeros, as a vector of C++ is,
 * and freed at random. Does a large block cost its pages each time?
 * After the idea of Stolyarov's malloc-large. */
#include "work.h"

enum { PLACES = 20, STEPS = 400 };
static const size_t MIN_SIZE = 5 << 20, MAX_SIZE = 25 << 20;

int main(int count, char **arguments) {
  uint64_t random = 5;
  uint8_t *blocks[PLACES] = {NULL};
  unsigned steps = scaled(STEPS, count, arguments);
  for (unsigned step = 0; step < steps; step++) {
    unsigned place = next_random(&random) % PLACES;
    size_t size = MIN_SIZE + next_random(&random) % (MAX_SIZE - MIN_SIZE);
    BYTES_FREE(blocks[place], 0);
    blocks[place] = (uint8_t *)BYTES_GET(size);
    if (blocks[place] == NULL)
      exit(3);
    memset(blocks[place], 0, size);
  }
  for (int place = 0; place < PLACES; place++)
    BYTES_FREE(blocks[place], 0);
  return 0;
}
