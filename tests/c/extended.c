/* The extended interfaces of jemalloc and tcmalloc, declared as their headers do. */
#include <malloc.h>
#include <stdbool.h>
#include <sys/types.h>

#include "check.h"

void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t xallocx(void *block, size_t size, size_t extra, int flags);
size_t sallocx(const void *block, int flags);
void dallocx(void *block, int flags);
void sdallocx(void *block, size_t size, int flags);
size_t nallocx(size_t size, int flags);
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
int mallctlnametomib(const char *name, size_t *mib, size_t *count);
int mallctlbymib(const size_t *mib, size_t count, void *old, size_t *old_size, void *new, size_t new_size);
void malloc_stats_print(void (*write)(void *, const char *), void *context, const char *options);

const char *tc_version(int *major, int *minor, const char **patch);
void *tc_malloc(size_t size);
void *tc_new(size_t size);
void *tc_realloc(void *block, size_t size);
void *tc_memalign(size_t alignment, size_t size);
void tc_free(void *block);
void tc_delete(void *block);
size_t tc_malloc_size(void *block);
int MallocExtension_GetNumericProperty(const char *property, size_t *value);
void MallocExtension_ReleaseFreeMemory(void);
int MallocExtension_GetOwnership(const void *block);
size_t MallocExtension_GetEstimatedAllocatedSize(size_t size);
void MallocExtension_GetStats(char *buffer, int size);

#define ZERO 0x40
#define LG_ALIGN(power) (power)
#define TCACHE_NONE (1 << 8)
#define ARENA(number) (((number) + 1) << 20)

static void dirty(size_t size) {
  char *block = malloc(size);
  memset(block, 0xA5, malloc_usable_size(block));
  free(block);
}

static void test_blocks(void) {
  int is_aligned_ = 1, is_zero_ = 1, is_size = 1;
  for (size_t size = 1; size < 3000000; size += size / 2 + 1)
    for (int power = 0; power <= 21; power++) {
      dirty(size);
      char *block = mallocx(size, LG_ALIGN(power) | ZERO | TCACHE_NONE | ARENA(3));
      is_aligned_ &= block != NULL && is_aligned(block, (size_t)1 << power);
      is_zero_ &= is_zero(block, size);
      is_size &= sallocx(block, 0) >= size && nallocx(size, LG_ALIGN(power)) == sallocx(block, 0);
      memset(block, 1, sallocx(block, 0));
      sdallocx(block, size, LG_ALIGN(power));
    }
  promise("mallocx aligns", is_aligned_);
  promise("mallocx clears where it is asked to", is_zero_);
  promise("sallocx is no less than the request, and nallocx is the same", is_size);
  char *block = mallocx(SIZE_MAX / 2, 0);
  promise("mallocx of what no address space holds gives NULL", block == NULL);
  promise("nallocx of that gives 0", nallocx(SIZE_MAX, 0) == 0 && nallocx(1, LG_ALIGN(62)) == 0);
}

static long resident(void) { /* MB */
  long all, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld %ld", &all, &pages) != 2)
    pages = -1;
  fclose(file);
  return pages * 4096 >> 20;
}

static void test_sparse(void) {
  enum { SMALL = 5 << 20, LARGE = 200 << 20 };
  long before = resident();
  char *block = rallocx(mallocx(SMALL, 0), LARGE, ZERO), *aligned = rallocx(mallocx(SMALL, 0), LARGE, LG_ALIGN(12) | ZERO);
  char *grown = mallocx(SMALL, 0);
  xallocx(grown, LARGE, 0, ZERO);
  block[LARGE / 2] = aligned[LARGE / 2] = 1;
  promise("pages of zeros that are not touched take no memory", resident() < before + 60);
  dallocx(block, 0);
  dallocx(aligned, 0);
  dallocx(grown, 0);
}

static void test_resize(void) {
  int is_kept = 1, is_zero_ = 1, is_aligned_ = 1;
  for (int power = 0; power <= 17; power++) {
    uint64_t state = 7 + power;
    char *block = mallocx(100, LG_ALIGN(power) | ZERO), *ones = malloc(2 << 20);
    size_t size = sallocx(block, 0);
    memset(ones, 1, 2 << 20);
    memset(block, 1, size);
    for (int round = 0; round < 300; round++) {
      size_t next = random_size(&state, 19) + 1;
      dirty(next);
      char *before = block;
      block = rallocx(block, next, LG_ALIGN(power) | ZERO);
      size_t real = sallocx(block, 0);
      size_t known = block != before && next < size ? next : real < size ? real : size;
      is_aligned_ &= is_aligned(block, (size_t)1 << power);
      is_kept &= memcmp(block, ones, known) == 0;
      is_zero_ &= is_zero(block + known, real - known);
      memset(block, 1, real);
      size = real;
    }
    free(ones);
    dallocx(block, 0);
  }
  promise("rallocx keeps the contents, up to the real size where it grows", is_kept);
  promise("rallocx clears what a block grows by, and what a smaller one has beyond its size", is_zero_);
  promise("rallocx keeps the alignment", is_aligned_);

  char *block = mallocx(1000000, 0);
  size_t before = sallocx(block, 0), after = xallocx(block, 1000001, 3000000, ZERO);
  promise("xallocx returns the size of the block", after == sallocx(block, 0) && after >= before);
  promise("xallocx clears what a block grows by", is_zero(block + before, after - before));
  promise("xallocx moves and shrinks nothing", xallocx(block, 10, 0, 0) >= 10);
  dallocx(block, 0);
}

static void test_mallctl(void) {
  uint64_t epoch = 1;
  size_t allocated = 0, active = 0, size = sizeof epoch, count = 4, mib[4];
  promise("epoch is accepted", mallctl("epoch", &epoch, &size, &epoch, size) == 0);
  void *block = malloc(10000000);
  size = sizeof allocated;
  promise("stats.allocated counts blocks",
          mallctl("stats.allocated", &allocated, &size, NULL, 0) == 0 && allocated >= 10000000);
  promise("stats.active is no less",
          mallctl("stats.active", &active, &size, NULL, 0) == 0 && active >= allocated);
  unsigned arena = 0, cache = 0, other = 0;
  size = sizeof arena;
  promise("an arena can be created", mallctl("arenas.create", &arena, &size, NULL, 0) == 0 && arena > 0);
  char name[50];
  ssize_t never = -1, delay = 0, delay_before = 0;
  size = sizeof delay;
  snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", arena);
  promise("its delay is not that of all blocks",
          mallctl("arenas.dirty_decay_ms", &delay_before, &size, NULL, 0) == 0
          && mallctl(name, NULL, NULL, &never, sizeof never) == 0
          && mallctl("arenas.dirty_decay_ms", &delay, &size, NULL, 0) == 0 && delay == delay_before);
  size = sizeof arena;
  promise("a cache can be created", mallctl("tcache.create", &cache, &size, NULL, 0) == 0
          && mallctl("tcache.create", &other, &size, NULL, 0) == 0 && cache != other);
  promise("a cache can be destroyed", mallctl("tcache.destroy", NULL, NULL, &cache, sizeof cache) == 0);
  promise("an arena can be purged", mallctl("arena.0.purge", NULL, NULL, NULL, 0) == 0);
  promise("a name without a counterpart does not exist",
          mallctl("prof.dump", NULL, NULL, NULL, 0) == ENOENT && mallctl("", NULL, NULL, NULL, 0) == ENOENT
          && mallctl("stats.allocated.x", NULL, NULL, NULL, 0) == ENOENT);
  promise("what is read only is not written", mallctl("stats.active", NULL, NULL, &active, sizeof active) == EPERM);
  size = 2;
  promise("a wrong size is refused", mallctl("stats.active", &active, &size, NULL, 0) == EINVAL);
  promise("a name has numbers", mallctlnametomib("stats.arenas.7.pactive", mib, &count) == 0 && count == 4 && mib[2] == 7);
  mib[2] = 0;
  size = sizeof active;
  active = 0;
  promise("they are its value", mallctlbymib(mib, count, &active, &size, NULL, 0) == 0 && active > 0);
  free(block);
  promise("part of a name has none", mallctlbymib(mib, 2, &active, &size, NULL, 0) == ENOENT);
}

static void add(void *context, const char *text) {
  strncat(context, text, 4000);
}

static void test_statistics(void) {
  static char text[10000];
  malloc_stats_print(add, text, NULL);
  promise("malloc_stats_print has the bytes", strstr(text, "allocated: ") != NULL);
  text[0] = 0;
  malloc_stats_print(add, text, "J");
  promise("also as JSON", strncmp(text, "{\"jemalloc\":{", 13) == 0 && strstr(text, "\"allocated\":") != NULL);
}

static void test_tcmalloc(void) {
  int major, minor;
  const char *patch;
  promise("tc_version names a version", tc_version(&major, &minor, &patch) != NULL && *patch == 0);
  char *block = tc_malloc(100), *object = tc_new(100);
  block = tc_realloc(block, 200000);
  promise("tc_malloc_size", tc_malloc_size(block) >= 200000);
  promise("GetOwnership", MallocExtension_GetOwnership(block) == 1 && MallocExtension_GetOwnership(&major) == 2);
  tc_free(block);
  tc_delete(object);
  block = tc_memalign(4096, 10);
  promise("tc_memalign", is_aligned(block, 4096));
  free(block);
  size_t bytes = 0;
  promise("a property", MallocExtension_GetNumericProperty("generic.heap_size", &bytes) && bytes > 0);
  promise("no property", !MallocExtension_GetNumericProperty("tcmalloc.none", &bytes));
  promise("GetEstimatedAllocatedSize", MallocExtension_GetEstimatedAllocatedSize(100) >= 100);
  char text[64];
  MallocExtension_GetStats(text, sizeof text);
  promise("GetStats ends its text", memchr(text, 0, sizeof text) != NULL && strncmp(text, "MALLOC: ", 8) == 0);
  MallocExtension_ReleaseFreeMemory();
}

int main(void) {
  test_blocks();
  test_resize();
  test_sparse();
  test_mallctl();
  test_statistics();
  test_tcmalloc();
  check_use_all();
  return counts();
}
