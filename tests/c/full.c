/* A full process table: no thread and no process can be had, all else works; and when there is room
 * again, threads work as ever. The limit does not bind root, so root becomes somebody else first. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { NOBODY = 54321, MOST = 12, BLOCKS = 2000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int is_kept = 1;

static void use_all_sizes(uint64_t mark) {
  static _Thread_local void *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(i * 50);
    if (blocks[i] == NULL)
      is_kept = 0;
    else
      content_write(blocks[i], i * 50, mark + i);
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    if (blocks[i] && !content_is(blocks[i], i * 50, i * 50, mark + i))
      is_kept = 0;
    free(blocks[i]);
  }
}

/* Lives until the main thread opens the gate. */
static void *live(void *mark) {
  use_all_sizes((uintptr_t)mark);
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return mark;
}

int main(void) {
  check_use_all();
  struct rlimit limit = {MOST, MOST};
  if ((getuid() == 0 && setuid(NOBODY) != 0) || setrlimit(RLIMIT_NPROC, &limit) != 0) {
    puts("the number of processes cannot be limited here");
    return 77;
  }
  pthread_t threads[MOST];
  uintptr_t count = 0;
  pthread_mutex_lock(&gate);
  while (count < MOST && pthread_create(&threads[count], NULL, live, (void *)count) == 0)
    count++;
  promise("the table is full", count < MOST && fork() < 0);
  use_all_sizes(1000);
  void *large = calloc(1, 100000000);
  promise("large blocks can be had and given back", large && is_zero(large, 100000000));
  free(large);
  malloc_trim(0);
  pthread_mutex_unlock(&gate);
  for (uintptr_t i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  promise("the next thread works as ever",
          pthread_create(&threads[0], NULL, live, NULL) == 0 && pthread_join(threads[0], NULL) == 0);
  promise("all blocks keep their content", is_kept);
  return counts();
}
