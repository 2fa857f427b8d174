/* Each function, at each corner: results, errno, alignment errors, overflow. */
#define _GNU_SOURCE
#include <malloc.h>
#include <unistd.h>

#include "check.h"

/* volatile: the compiler would warn about such sizes. */
static const volatile size_t too_big[] = {
    PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX};
static const volatile size_t half = SIZE_MAX / 2 + 1, word = 1ull << 32;
enum { TOO_BIG = sizeof too_big / sizeof *too_big, KEPT_ERRNO = 4711 };

/* Whether the last call said that there is no memory. */
static int says_no_memory(const void *result) {
  int is_said = result == NULL && errno == ENOMEM;
  errno = KEPT_ERRNO;
  return is_said;
}

static void test_malloc(void) {
  void *first = malloc(0), *second = malloc(0);
  promise("malloc(0) gives a block, another one each time", first && second && first != second);
  free(first);
  free(second);
  int is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= says_no_memory(malloc(too_big[i]));
  promise("malloc of what no address space holds says ENOMEM", is_kept);
  errno = KEPT_ERRNO;
  void *block = malloc(100), *large = malloc(10000000);
  promise("malloc leaves errno alone", errno == KEPT_ERRNO);
  promise("blocks are aligned to 16", is_aligned(block, 16) && is_aligned(large, 16));
  free(block);
  free(large);
  free(NULL);
  promise("free leaves errno alone", errno == KEPT_ERRNO);
}

static void test_calloc(void) {
  void *block = calloc(0, 0), *other = calloc(0, 8), *third = calloc(8, 0);
  promise("calloc of nothing gives a block", block && other && third);
  free(block), free(other), free(third);
  int is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= says_no_memory(calloc(1, too_big[i])) & says_no_memory(calloc(too_big[i], 1));
  promise("calloc of what no address space holds says ENOMEM", is_kept);
  promise("calloc notices a product that wraps",
          says_no_memory(calloc(half, 2)) & says_no_memory(calloc(2, half))
              & says_no_memory(calloc(word, word)) & says_no_memory(calloc(word + 1, word)));
  is_kept = 1;
  for (size_t size = 1; size < 3000000; size += size / 3 + 1) {
    for (int round = 0; round < 3; round++) {
      errno = KEPT_ERRNO;
      block = calloc(1, size);
      is_kept &= block != NULL && errno == KEPT_ERRNO && is_zero(block, malloc_usable_size(block));
      if (block)
        memset(block, 0xA5, malloc_usable_size(block));
      free(block);
    }
  }
  promise("calloc gives zeros where others wrote, and leaves errno alone", is_kept);
}

static void test_realloc(void) {
  void *block = realloc(NULL, 0);
  promise("realloc(NULL, 0) gives a block", block != NULL);
  errno = KEPT_ERRNO;
  promise("realloc(block, 0) frees and returns NULL, errno untouched",
          realloc(block, 0) == NULL && errno == KEPT_ERRNO);
  block = realloc(NULL, 100);
  content_write(block, 100, 1);
  int is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= says_no_memory(realloc(block, too_big[i]));
  promise("realloc that fails says ENOMEM and keeps the block",
          is_kept && content_is(block, 100, 100, 1));
  char *large = malloc(3 << 20);
  is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= says_no_memory(realloc(large, too_big[i]));
  promise("a large one, too", is_kept && malloc_usable_size(large) >= 3 << 20);
  free(large);
  is_kept = 1;
  for (size_t size = 100; size < 5000000; size += size / 5) {
    size_t grown = size + size / 5;
    content_write(block, size, size);
    errno = KEPT_ERRNO;
    block = realloc(block, grown);
    is_kept &= block && errno == KEPT_ERRNO && content_is(block, size, size, size);
  }
  promise("realloc keeps the content of a block that grows", is_kept);
  is_kept = 1;
  for (size_t size = 5000000; size > 10; size -= size / 5) {
    size_t shrunk = size - size / 5;
    block = realloc(block, size);
    for (size_t offset = 0; offset < shrunk; offset++)
      ((uint8_t *)block)[offset] = content_at(size, offset);
    block = realloc(block, shrunk);
    for (size_t offset = 0; offset < shrunk; offset++)
      is_kept &= ((uint8_t *)block)[offset] == content_at(size, offset);
  }
  promise("realloc keeps the content of a block that shrinks", is_kept);
  free(block);
  block = malloc(1);
  void *whole = realloc(block, malloc_usable_size(block)), *least = realloc(whole, 1);
  promise("realloc leaves the smallest block where it is", whole == block && least == block);
  free(least);
}

/* Debug blocks and those of `hard` have the requested size for their usable size, and wait when they are freed. */
static int is_exact(void) {
  const char *settings = getenv("LANEMM");
  return settings && (strstr(settings, "debug") || strstr(settings, "hard"));
}

static int has_size(void *block, size_t least, size_t requested) {
  size_t usable = malloc_usable_size(block);
  return is_exact() ? usable == requested : usable >= least;
}

/* A large block that shrinks below half gives back what it does not need, and stays where it is. */
static void test_shorter(void) {
  enum { LONG = 8 << 20, SHORT = LONG / 10 * 3, MOST = LONG / 2, STEP = 64 << 10 };
  char *block = malloc(LONG);
  memset(block, 5, LONG);
  char *same = realloc(block, MOST);
  promise("realloc leaves a large block that shrinks to half as it is",
          same == block && has_size(same, LONG, MOST));
  int is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= says_no_memory(realloc(same, too_big[i]));
  promise("realloc of a large block to a size beyond all memory says ENOMEM and keeps it",
          is_kept && same[0] == 5 && has_size(same, LONG, MOST));
  char *shorter = realloc(same, SHORT);
  promise("realloc shortens a large block in place",
          shorter == block && malloc_usable_size(shorter) < SHORT + STEP && shorter[0] == 5
              && shorter[SHORT - 1] == 5);
  free(shorter);
  char *growing = malloc(1 << 20);
  growing = realloc(growing, (1 << 20) + STEP);
  size_t usable = malloc_usable_size(growing);
  growing = realloc(growing, (1 << 20) + 2 * STEP);
  promise("realloc leaves a block that grows the room it has", malloc_usable_size(growing) >= usable);
  free(growing);
  void *none = malloc(0);
  promise("malloc of nothing is a block", none && has_size(none, 1, 0));
  free(none);
}

static void test_reallocarray(void) {
  void *block = reallocarray(NULL, 10, 10);
  content_write(block, 100, 2);
  promise("reallocarray notices a product that wraps and keeps the block",
          says_no_memory(reallocarray(block, half, 2))
              & says_no_memory(reallocarray(block, word, word))
              && content_is(block, 100, 100, 2));
  block = reallocarray(block, 1000, 10);
  promise("reallocarray keeps the content", content_is(block, 100, 100, 2));
  promise("reallocarray of nothing frees", reallocarray(block, 0, 10) == NULL);
}

static void test_posix_memalign(void) {
  void *block = (void *)42;
  errno = KEPT_ERRNO;
  int is_kept = 1;
  size_t wrong[] = {0, 1, 2, 4, 7, 12, 24, 48, 4097, SIZE_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    is_kept &= posix_memalign(&block, wrong[i], 10) == EINVAL;
  promise("posix_memalign refuses alignments that are none",
          is_kept && block == (void *)42 && errno == KEPT_ERRNO);
  is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= posix_memalign(&block, 64, too_big[i]) == ENOMEM;
  promise("posix_memalign that finds no memory sets errno, as glibc's does", errno == ENOMEM);
  is_kept &= posix_memalign(&block, 1ull << 62, 1) == ENOMEM;
  is_kept &= posix_memalign(&block, 1ull << 63, 1) == ENOMEM;
  promise("posix_memalign returns ENOMEM and leaves the pointer alone",
          is_kept && block == (void *)42);
  promise("posix_memalign(0) gives a block",
          posix_memalign(&block, 8, 0) == 0 && block && is_aligned(block, 8));
  free(block);
}

/* weak: the C library may not have them. */
__attribute__((weak)) void free_sized(void *block, size_t size);
__attribute__((weak)) void free_aligned_sized(void *block, size_t alignment, size_t size);

static void test_free_sized(void) {
  promise("C23's free_sized and free_aligned_sized are there", free_sized && free_aligned_sized);
  if (!free_sized || !free_aligned_sized)
    return;
  size_t count = 0;
  errno = KEPT_ERRNO;
  for (size_t size = 0; size < 3000000; size += size / 3 + 1) {
    free_sized(malloc(size), size);
    free_sized(calloc(1, size), size);
    free_sized(realloc(malloc(1), size + 1), size + 1);
    free_aligned_sized(aligned_alloc(256, size), 256, size);
    void *block = malloc(size);
    count += block != NULL;
    free_sized(block, size);
  }
  free_sized(NULL, 0);
  free_aligned_sized(NULL, 64, 10);
  promise("they free, of every size and NULL, and leave errno alone", count && errno == KEPT_ERRNO);
  void *first = malloc(100);
  free_sized(first, 100);
  void *second = malloc(100);
  promise("what free_sized frees is used again, or waits", is_exact() ? first != second : first == second);
  free(second);
}

static void test_aligned(void) {
  errno = 0;
  void *block = memalign(1, 100);
  promise("memalign takes any small alignment", block && is_aligned(block, 16));
  free(block);
  block = memalign(100, 100);
  promise("memalign rounds the alignment up to a power of two", block && is_aligned(block, 128));
  free(block);
  promise("memalign of half the address space fails",
          memalign(SIZE_MAX / 2 + 2, 1) == NULL && (errno == EINVAL || errno == ENOMEM));
  int is_kept = 1;
  for (int i = 0; i < TOO_BIG; i++)
    is_kept &= says_no_memory(memalign(4096, too_big[i]))
        & says_no_memory(aligned_alloc(1 << 20, too_big[i]));
  promise("memalign and aligned_alloc say ENOMEM", is_kept);
  block = aligned_alloc(256, 1000);
  promise("aligned_alloc aligns", block && is_aligned(block, 256));
  free(block);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *pages = pvalloc(page + 1), *one = valloc(100), *least = pvalloc(1);
  promise("valloc and pvalloc begin a page",
          is_aligned(one, page) && is_aligned(pages, page) && is_aligned(least, page));
  promise("pvalloc gives whole pages",
          malloc_usable_size(pages) >= 2 * page && malloc_usable_size(least) >= page);
  free(pages), free(one), free(least);
  promise("pvalloc notices a size that wraps",
          says_no_memory(pvalloc(SIZE_MAX)) & says_no_memory(pvalloc(SIZE_MAX - page + 1)));
}

static void test_rest(void) {
  promise("malloc_usable_size(NULL) is 0", malloc_usable_size(NULL) == 0);
  int is_kept = 1;
  for (size_t size = 0; size < 300000; size += size / 7 + 1) {
    void *block = malloc(size);
    size_t usable = malloc_usable_size(block);
    is_kept &= usable >= size;
    memset(block, 1, usable);
    free(block);
  }
  promise("all usable bytes of a block can be used", is_kept);
  void *blocks[100];
  for (int i = 0; i < 100; i++)
    memset(blocks[i] = malloc(1000000), 1, 1000000);
  struct mallinfo2 full = mallinfo2();
  promise("mallinfo2 counts what is in use", full.uordblks + full.hblkhd >= 100 * 1000000ul);
  char *text = NULL;
  size_t length = 0;
  FILE *stream = open_memstream(&text, &length);
  int is_written = malloc_info(0, stream) == 0 && malloc_info(1, stream) == EINVAL;
  fclose(stream);
  promise("malloc_info writes what is in use",
          is_written && strncmp(text, "<malloc ", 8) == 0
              && strstr(text, "<total type=\"large\" count=\"1"));
  free(text);
  for (int i = 0; i < 100; i++)
    free(blocks[i]);
  promise("malloc_trim gives memory back", malloc_trim(0) == 1);
  struct mallinfo2 empty = mallinfo2();
  promise("mallinfo2 counts down", empty.uordblks + empty.hblkhd < 50 * 1000000ul);
}

int main(void) {
  check_use_all();
  test_malloc();
  test_calloc();
  test_realloc();
  test_shorter();
  test_reallocarray();
  test_posix_memalign();
  test_free_sized();
  test_aligned();
  test_rest();
  return counts();
}
