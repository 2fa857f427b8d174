/* 4,000 threads at the same time, and 20,000 one after the other. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4000, SHORT_THREADS = 20000, BLOCKS = 40 };

static pthread_barrier_t all_have, all_freed;
static void *blocks[THREADS][BLOCKS];
static _Atomic int is_kept = 1;

static size_t size_of(uintptr_t thread, unsigned i) {
  return (thread * 31 + i * 97) % 2000;
}

/* Waits until all threads have their blocks; then frees those of the next thread. */
static void *live(void *argument) {
  uintptr_t thread = (uintptr_t)argument, next = (thread + 1) % THREADS;
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[thread][i] = malloc(size_of(thread, i));
    if (blocks[thread][i] == NULL)
      is_kept = 0;
    else
      content_write(blocks[thread][i], size_of(thread, i), thread + i);
  }
  pthread_barrier_wait(&all_have);
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (!content_is(blocks[next][i], size_of(next, i), size_of(next, i), next + i))
      is_kept = 0;
    free(blocks[next][i]);
  }
  pthread_barrier_wait(&all_freed);
  return NULL;
}

static void *live_shortly(void *argument) {
  void *mine = malloc(100);
  free(argument);
  return mine;
}

static size_t resident_bytes(void) {
  long pages = 0, ignored = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &ignored, &pages) != 2)
    pages = 0;
  if (file)
    fclose(file);
  return (size_t)pages * 4096;
}

int main(void) {
  check_use_all();
  static pthread_t threads[THREADS];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  pthread_barrier_init(&all_have, NULL, THREADS);
  pthread_barrier_init(&all_freed, NULL, THREADS);
  for (uintptr_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], &small, live, (void *)i) != 0) {
      printf("no thread %zu can be had here\n", (size_t)i);
      return 1;
    }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  promise("4,000 threads at a time have their own blocks and free those of others", is_kept);

  void *block = NULL;
  size_t before = 0;
  for (int i = 0; i < SHORT_THREADS; i++) {
    pthread_t thread;
    if (i == SHORT_THREADS / 10)
      before = resident_bytes();
    pthread_create(&thread, &small, live_shortly, block);
    pthread_join(thread, &block);
  }
  free(block);
  promise("20,000 threads one after the other leave nothing",
          resident_bytes() < before + (1 << 20));
  return counts();
}
