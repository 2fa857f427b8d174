/* Works while calls for memory are refused now and then: no block is lost or damaged; and when the
 * refusals end, all works as ever.
 *
 *   starved [for-ever]
 *
 * With an argument the refusals do not end: then that part is left out. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { BLOCKS = 400, TURNS = 4000, THREADS = 3, TRIES = 1000 };

struct owned {
  void *start;
  size_t size;
  uint64_t mark;
};

static _Atomic int is_kept = 1;

static void take(struct owned *owned, uint64_t *random) {
  owned->size = random_size(random, 17) + 1;
  owned->mark = *random;
  switch (*random % 4) {
  case 0:
    owned->start = calloc(1, owned->size);
    if (owned->start && !is_zero(owned->start, owned->size))
      is_kept = 0;
    break;
  case 1:
    owned->start = aligned_alloc(64, owned->size);
    break;
  default:
    owned->start = malloc(owned->size);
  }
  if (owned->start)
    content_write(owned->start, owned->size, owned->mark);
}

static void give(struct owned *owned) {
  if (owned->start && !content_is(owned->start, owned->size, owned->size, owned->mark))
    is_kept = 0;
  free(owned->start);
  owned->start = NULL;
}

static void resize(struct owned *owned, size_t size) {
  if (owned->start == NULL)
    return;
  size_t least = size < owned->size ? size : owned->size;
  void *moved = realloc(owned->start, size);
  if (moved == NULL)
    return; /* the block is as it was */
  /* Of long blocks not every byte is written, and which ones depends on the size. */
  if (least > 64 && !content_is(moved, owned->size, 64, owned->mark))
    is_kept = 0;
  owned->start = moved;
  owned->size = size;
  content_write(moved, size, owned->mark);
}

static void *work(void *seed) {
  struct owned *blocks = calloc(BLOCKS, sizeof *blocks);
  uint64_t random = (uintptr_t)seed * 7919 + 1;
  if (blocks == NULL)
    return NULL;
  for (unsigned turn = 0; turn < TURNS; turn++) {
    struct owned *owned = &blocks[next_random(&random) % BLOCKS];
    if (next_random(&random) % 3 == 0) {
      resize(owned, random_size(&random, 17) + 1);
    } else {
      give(owned);
      take(owned, &random);
    }
  }
  for (unsigned i = 0; i < BLOCKS; i++)
    give(&blocks[i]);
  free(blocks);
  return NULL;
}

static void grow(void) {
  struct owned owned = {malloc(60000), 60000, 5};
  if (owned.start)
    content_write(owned.start, owned.size, owned.mark);
  for (size_t size = 100000; size < 40000000; size += size / 2)
    resize(&owned, size);
  malloc_trim(0);
  resize(&owned, 90000);
  give(&owned);
}

static void work_all(void) {
  pthread_t threads[THREADS];
  unsigned started = 0;
  work((void *)1);
  grow();
  while (started < THREADS
         && pthread_create(&threads[started], NULL, work, (void *)(started + 2ul)) == 0)
    started++;
  for (unsigned i = 0; i < started; i++)
    pthread_join(threads[i], NULL);
  malloc_trim(0);
  pid_t child = fork();
  if (child == 0) {
    work((void *)9);
    malloc_trim(0);
    _exit(!is_kept);
  }
  int status = 0;
  if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
    is_kept = 0;
}

/* Memory of a size can be had at last, and is zero. */
static int can_have(size_t size) {
  for (unsigned i = 0; i < TRIES; i++) {
    void *block = calloc(1, size);
    if (block) {
      int is_good = is_zero(block, size);
      free(block);
      return is_good;
    }
  }
  return 0;
}

int main(int count, char **arguments) {
  (void)arguments;
  check_use_all();
  work_all();
  if (count == 1) {
    promise("small blocks can be had when the refusals end", can_have(100));
    promise("large blocks can be had when the refusals end", can_have(30000000));
    work_all();
  }
  promise("all blocks keep their contents", is_kept);
  return counts();
}
