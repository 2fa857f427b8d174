/* Every size to 1 MB: alignment, usable size, and content that nobody else writes. */
#include <malloc.h>

#include "check.h"

enum { LAST = 1 << 20, WINDOW = 61 };

static struct {
  void *block;
  size_t size;
} window[WINDOW];

int main(void) {
  check_use_all();
  int is_got = 1, is_large_enough = 1, is_aligned_always = 1, is_kept = 1, is_grown = 1;
  for (size_t size = 0; size <= LAST + WINDOW; size++) {
    size_t place = size % WINDOW;
    void *old = window[place].block;
    size_t old_size = window[place].size;
    if (old != NULL) {
      is_kept &= content_is(old, old_size, old_size, old_size);
      if (size < 65536 ? size % 3 == 0 : size % 1024 == 0) {
        old = realloc(old, old_size + old_size / 2);
        is_grown &= old && content_is(old, old_size, old_size, old_size);
      }
      free(old);
    }
    if (size > LAST)
      continue;
    void *block = malloc(size);
    is_got &= block != NULL;
    is_large_enough &= malloc_usable_size(block) >= size;
    is_aligned_always &= is_aligned(block, 16);
    content_write(block, size, size);
    window[place].block = block;
    window[place].size = size;
  }
  promise("every size to 1 MB is served", is_got);
  promise("the usable size is never below the size", is_large_enough);
  promise("every block is aligned to 16", is_aligned_always);
  promise("no block overlaps another in use", is_kept);
  promise("realloc keeps the content at every size", is_grown);
  return counts();
}
