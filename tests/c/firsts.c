/* Threads are the first to allocate in a library with a malloc of its own, all at once.
 *
 *   firsts LIBRARY     built from unloaded.c with QUIET */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 100, THREADS = 4, SIZE = 1000 };

static char *(*get)(size_t);
static void (*put)(char *);
static pthread_barrier_t begin;
static _Atomic int is_kept = 1;

static void *use(void *mark) {
  pthread_barrier_wait(&begin);
  char *block = get(SIZE);
  content_write(block, SIZE, (uintptr_t)mark);
  if (!content_is(block, SIZE, SIZE, (uintptr_t)mark))
    is_kept = 0;
  put(block);
  return NULL;
}

int main(int count, char **arguments) {
  check_use_all();
  pthread_barrier_init(&begin, NULL, THREADS);
  for (int round = 0; count > 1 && round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      puts(dlerror());
      return 2;
    }
    get = (char *(*)(size_t))dlsym(library, "library_get");
    put = (void (*)(char *))dlsym(library, "library_put");
    for (size_t i = 0; i < THREADS; i++)
      pthread_create(&threads[i], NULL, use, (void *)i);
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
    dlclose(library);
  }
  promise("several threads may be the first to allocate in a library", count > 1 && is_kept);
  return counts();
}
