/* A block of 512 MB from calloc, of which a page in 64 is touched, as in a hash table.
 * Does it take more memory than the touched 8 MB? */
#include "rest.h"

enum { COUNT = 2048, PAGE = 4096, STEP = 64 * PAGE };

int main(int count, char **arguments) {
  unsigned touched = scaled(COUNT, count, arguments);
  uint8_t *block = calloc(touched, STEP);
  if (block == NULL)
    exit(3);
  for (unsigned i = 0; i < touched; i++) {
    uint8_t *page = block + (size_t)i * STEP;
    if (*page != 0)
      exit(4);
    *page = (uint8_t)(i | 1);
  }
  rest(2500, count, arguments);
  tell_memory("quiet");
  for (unsigned i = 0; i < touched; i++)
    if (block[(size_t)i * STEP] != (uint8_t)(i | 1))
      exit(4);
  free(block);
  return 0;
}
