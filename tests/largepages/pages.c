/* The C library where pages have the size of the argument: what follows the page, and blocks that come
 * and go. With a second argument it writes to the page after a block. */
#include "../c/check.h"
#include <malloc.h>

enum { COUNT = 400, ROUNDS = 20000, LARGEST = 300000 };

static unsigned char *blocks[COUNT];
static size_t sizes[COUNT];

static int is_whole(int index) {
  size_t size = sizes[index];
  return size == 0 || (blocks[index][0] == (unsigned char)index && blocks[index][size - 1] == (unsigned char)index);
}

static int churn(void) {
  uint64_t state = 40;
  int kept = 1;
  for (int round = 0; round < ROUNDS; round++) {
    int index = next_random(&state) % COUNT;
    kept &= is_whole(index);
    sizes[index] = 1 + next_random(&state) % (round % 10 ? 3000 : LARGEST);
    if (round % 3) {
      blocks[index] = realloc(blocks[index], sizes[index]);
    } else {
      free(blocks[index]);
      blocks[index] = malloc(sizes[index]);
    }
    memset(blocks[index], index, sizes[index]);
  }
  for (int index = 0; index < COUNT; index++) {
    kept &= is_whole(index);
    free(blocks[index]);
  }
  return kept;
}

int main(int count, char **arguments) {
  size_t page = strtoul(arguments[1], NULL, 10);
  if (count > 2) {
    volatile char *block = malloc(16);
    block[16] = 1;
    return 0;
  }
  size_t rest = 0, size_rest = 0;
  for (size_t size = 1; size < 300000; size = size * 2 + 1) {
    char *aligned = valloc(size), *whole = pvalloc(size);
    rest |= ((uintptr_t)aligned | (uintptr_t)whole) % page;
    size_rest |= malloc_usable_size(whole) < (size + page - 1) / page * page;
    memset(aligned, 1, size);
    memset(whole, 1, malloc_usable_size(whole));
    free(aligned);
    free(whole);
  }
  promise("valloc and pvalloc begin at a page", rest == 0);
  promise("pvalloc has whole pages", size_rest == 0);
  promise("contents stay", churn());
  return counts();
}
