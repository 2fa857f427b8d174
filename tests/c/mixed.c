/* The C half of Mixed.lpr: gets, resizes and frees blocks, its own and those of the Pascal half. */
#include <malloc.h>

#include "check.h"

void *c_get(size_t size, uint64_t mark) {
  void *block = malloc(size);
  content_write(block, size, mark);
  return block;
}

int c_check(const void *block, size_t size, uint64_t mark) {
  check_use_all();
  return content_is(block, size, size, mark);
}

void *c_resize(void *block, size_t size) {
  return realloc(block, size);
}

size_t c_usable_size(void *block) {
  return malloc_usable_size(block);
}

void c_free(void *block) {
  free(block);
}
