/* Alignments to 64 MB with all kinds of sizes: aligned, disjoint, and blocks as all others. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>

#include "check.h"

enum { MAX_LOG2 = 26, SIZES = 40, ROUNDS = 3 };

static struct {
  void *block;
  size_t size;
} blocks[SIZES];

static void *get(size_t alignment, size_t size, unsigned how) {
  void *block = NULL;
  if (how % 3 == 0)
    return memalign(alignment, size);
  if (how % 3 == 1)
    return aligned_alloc(alignment, size);
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

/* A thread's first blocks of a size come from other spans than those after them. */
static void *get_first(void *is_right) {
  for (size_t alignment = 16; alignment <= 4096; alignment *= 2)
    for (size_t size = 1; size <= 70000; size += size / 4 + 1)
      *(int *)is_right &= is_aligned(get(alignment, size, size), alignment);
  return NULL;
}

int main(void) {
  check_use_all();
  pthread_t thread;
  int are_right = 1;
  pthread_create(&thread, NULL, get_first, &are_right);
  pthread_join(thread, NULL);
  promise("a thread's first blocks are aligned", are_right);
  uint64_t random = 6;
  for (unsigned log2 = 4; log2 <= MAX_LOG2; log2++) {
    size_t alignment = (size_t)1 << log2;
    int is_right = 1, is_kept = 1, is_usable = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
      for (unsigned i = 0; i < SIZES; i++) {
        size_t size = i < 3 ? alignment + i - 1 : random_size(&random, 21);
        void *block = get(alignment, size, i);
        is_right &= block != NULL && is_aligned(block, alignment);
        is_usable &= malloc_usable_size(block) >= size;
        content_write(block, size, i);
        blocks[i].block = block;
        blocks[i].size = size;
      }
      for (unsigned i = 0; i < SIZES; i++) {
        size_t size = blocks[i].size;
        is_kept &= content_is(blocks[i].block, size, size, i);
        if (i % 4 == 0) {
          size_t other = random_size(&random, 21);
          blocks[i].block = realloc(blocks[i].block, other + 1);
          is_kept &= content_is(blocks[i].block, size, size < other ? size : other, i);
        }
        free(blocks[i].block);
      }
    }
    char text[80];
    snprintf(text, sizeof text, "blocks are aligned to %zu", alignment);
    promise(text, is_right);
    snprintf(text, sizeof text, "blocks aligned to %zu are disjoint and can be resized", alignment);
    promise(text, is_kept && is_usable);
  }
  return counts();
}
