/* Out of memory: ENOMEM, nothing lost, and all can be had again.
 *
 *   limits [data|charge]
 *
 * The address space is limited before the program starts: it starts itself once more. With `data`,
 * the memory for data is limited while the program runs; with `charge` it was limited before, to
 * 200 MB, and mappings of others find room in what is free. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { MB = 1 << 20, LIMIT_MB = 256, MOST = 4 * MB, THREADS = 4, KEPT_ERRNO = 4711 };

static void **blocks;
static int is_said = 1, is_shrunk = 1;
static _Atomic int is_kept = 1;

/* Takes blocks until there are no more. Returns how many. */
static int take_all(size_t size) {
  int count = 0;
  while (count < MOST) {
    errno = 0;
    void *block = malloc(size);
    if (block == NULL) {
      is_said &= errno == ENOMEM;
      break;
    }
    content_write(block, size, (uint64_t)count);
    blocks[count++] = block;
  }
  return count;
}

static void give_all(int count, size_t size) {
  for (int i = 0; i < count; i++) {
    is_kept &= content_is(blocks[i], size, size, (uint64_t)i);
    free(blocks[i]);
  }
}

/* Shrinks a block where no other can be had, which never fails, and frees it. */
static void shrink(void *block, size_t size, uint64_t mark) {
  size_t shrunk = size < 48 ? size : 48;
  errno = KEPT_ERRNO;
  void *moved = realloc(block, shrunk);
  is_shrunk &= moved != NULL && errno == KEPT_ERRNO && content_is(moved, size, shrunk, mark);
  free(moved ? moved : block);
}

/* Some threads at a time find no memory, and each keeps what it has. */
static void *try_all(void *mark) {
  for (size_t size = 1; size < 64 * MB; size *= 2) {
    void *block = malloc(size), *moved;
    if (block == NULL)
      continue;
    content_write(block, size, (uintptr_t)mark);
    moved = realloc(block, size * 3);
    if (!content_is(moved ? moved : block, size, size, (uintptr_t)mark))
      is_kept = 0;
    free(moved ? moved : block);
  }
  return NULL;
}

/* Limits the program; returns when it is limited. 77: it cannot be. */
static int limit_me(int count, char **arguments) {
  struct rlimit limit = {(size_t)LIMIT_MB * MB, (size_t)LIMIT_MB * MB}, now;
  if (count > 1 && strcmp(arguments[1], "data") == 0)
    return setrlimit(RLIMIT_DATA, &limit) == 0 ? 0 : 77;
  getrlimit(RLIMIT_AS, &now);
  if (now.rlim_cur == limit.rlim_cur)
    return 0;
  if (count > 1 || setrlimit(RLIMIT_AS, &limit) != 0)
    return 77;
  execl("/proc/self/exe", arguments[0], "limited", NULL);
  return 1;
}

/* Frees 120 MB of blocks; returns whether others can then map 90 MB of the 200. */
static int is_room_for_others(size_t size) {
  int count = 120 * MB / (int)size;
  for (int i = 0; i < count; i++) {
    blocks[i] = malloc(size);
    if (blocks[i] == NULL)
      return 0;
    content_write(blocks[i], size, (uint64_t)i);
  }
  give_all(count, size);
  malloc_trim(0);
  void *mapping = mmap(NULL, 90 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping != MAP_FAILED && munmap(mapping, 90 * MB) == 0;
}

static int leave_room(void) {
  static const size_t sizes[] = {MB, 100, 5000, MB};
  struct rlimit limit;
  getrlimit(RLIMIT_DATA, &limit);
  promise("memory for data is limited", limit.rlim_cur < 210ull * MB);
  blocks = calloc(120 * MB / 100, sizeof *blocks);
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char text[80];
    snprintf(text, sizeof text, "free blocks of %zu bytes leave room for others", sizes[i]);
    promise(text, is_room_for_others(sizes[i]));
  }
  promise("blocks keep their content", is_kept);
  return counts();
}

int main(int count, char **arguments) {
  check_use_all();
  if (count > 1 && strcmp(arguments[1], "charge") == 0)
    return leave_room();
  int code = limit_me(count, arguments);
  if (code != 0)
    return code;
  blocks = calloc(MOST, sizeof *blocks);
  static const size_t sizes[] = {MB, 100, 5000, 40000, 300000, 20 * MB, MB};
  int first_count = 0;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int taken = take_all(sizes[i]);
    if (sizes[i] <= MB) {
      char text[80];
      snprintf(text, sizeof text, "blocks of %zu bytes fill half of the limit", sizes[i]);
      promise(text, taken * sizes[i] >= LIMIT_MB / 2ull * MB);
    }
    void *block = blocks[0];
    is_said &= realloc(block, (size_t)LIMIT_MB * MB) == NULL && errno == ENOMEM;
    is_said &= calloc(LIMIT_MB, MB) == NULL && errno == ENOMEM;
    is_said &= memalign(4 * MB, (size_t)LIMIT_MB * MB) == NULL && errno == ENOMEM;
    taken--;
    shrink(blocks[taken], sizes[i], (uint64_t)taken);
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS
           && pthread_create(&threads[started], NULL, try_all, (void *)(uintptr_t)started) == 0)
      started++;
    for (int t = 0; t < started; t++)
      pthread_join(threads[t], NULL);
    give_all(taken, sizes[i]);
    if (i == 0)
      first_count = taken;
    else if (i == sizeof sizes / sizeof *sizes - 1)
      promise("what was freed can be had again, whatever was there between",
              taken >= first_count - first_count / 8);
  }
  promise("what cannot be had is ENOMEM", is_said);
  promise("a block can be made smaller where no other can be had", is_shrunk);
  promise("blocks keep their content when others cannot be had", is_kept);
  return counts();
}
