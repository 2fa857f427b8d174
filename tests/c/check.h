/* What the tests of the C library share: counting, and blocks whose content tells whose they are. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library has them; the headers of an older glibc, or of musl, do not. */
#ifndef __GLIBC__
#define __GLIBC_PREREQ(major, minor) 0
struct mallinfo {
  int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo mallinfo(void);
int mallopt(int parameter, int value);
int malloc_trim(size_t pad);
int malloc_info(int options, FILE *stream);
void malloc_stats(void);
void *pvalloc(size_t size);
enum { M_MMAP_THRESHOLD = -3 };
#endif
#if !__GLIBC_PREREQ(2, 33)
struct mallinfo2 {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 mallinfo2(void);
#endif

static unsigned check_passed, check_failed;

/* One promise, checked once or many times: it counts as one test. */
static void promise(const char *text, int is_kept) {
  if (is_kept) {
    check_passed++;
  } else {
    check_failed++;
    printf("FAILED: %s\n", text);
    fflush(stdout);
  }
}

/* The last call of main: prints the counts, returns the exit code. */
static int counts(void) {
  printf("%u passed, %u failed\n", check_passed, check_failed);
  return check_failed != 0;
}

/* A private generator: xorshift64*. */
static uint64_t next_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1Dull;
}

/* A size up to 2^max_log2, small ones more often. */
static size_t random_size(uint64_t *state, unsigned max_log2) {
  return next_random(state) & ((2ull << next_random(state) % max_log2) - 1);
}

/* Content: each word of a block depends on the owner's mark and the word's place. Long blocks carry
 * it at their ends and once a page, so that a test can have many of them. */
enum { WHOLE = 4096, STEP = 4096 };

static uint8_t content_at(uint64_t mark, size_t offset) {
  return (uint8_t)((mark + offset / 8) * 0x9E3779B97F4A7C15ull >> (56 - offset % 8 * 8));
}

static size_t content_next(size_t offset, size_t size) {
  if (size <= WHOLE || offset < 64 || offset + 64 >= size)
    return offset + 1;
  offset = (offset / STEP + 1) * STEP;
  return offset + 64 < size ? offset : size - 64;
}

static void content_write(void *block, size_t size, uint64_t mark) {
  for (size_t offset = 0; offset < size; offset = content_next(offset, size))
    ((uint8_t *)block)[offset] = content_at(mark, offset);
}

/* Whether the first length bytes of a block of size bytes are as written. */
static int content_is(const void *block, size_t size, size_t length, uint64_t mark) {
  for (size_t offset = 0; offset < length; offset = content_next(offset, size))
    if (((const uint8_t *)block)[offset] != content_at(mark, offset))
      return 0;
  return 1;
}

static int is_zero(const void *block, size_t size) {
  const uint8_t *bytes = (const uint8_t *)block;
  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static int is_aligned(const void *block, size_t alignment) {
  return (uintptr_t)block % alignment == 0;
}

/* Silences warnings about what a test does not use. */
static inline void check_use_all(void) {
  (void)promise, (void)counts, (void)next_random, (void)random_size, (void)content_write;
  (void)content_is, (void)is_zero, (void)is_aligned;
}

#endif
