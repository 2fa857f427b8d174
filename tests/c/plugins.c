/* dlopen and dlclose of a library that allocates; its blocks outlive it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 200, THREADS = 4, BLOCKS = 50 };

static const char *path;
static _Atomic int is_kept = 1;

static void *use(void *seed) {
  for (int round = 0; round < ROUNDS; round++) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    char *(*get)(size_t) = (char *(*)(size_t))dlsym(library, "plugin_get");
    void (*give)(void *) = (void (*)(void *))dlsym(library, "plugin_free");
    if (get == NULL || give == NULL) {
      is_kept = 0;
      return seed;
    }
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
      blocks[i] = get(1 + i * 1000);
    give(malloc(100));
    dlclose(library);
    for (int i = 0; i < BLOCKS; i++) {
      if (blocks[i][0] != 'l' || blocks[i][i * 1000] != 'l')
        is_kept = 0;
      free(blocks[i]);
    }
  }
  return seed;
}

int main(int count, char **arguments) {
  check_use_all();
  if (count < 2)
    return 2;
  path = arguments[1];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, use, NULL);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  promise("a library that comes and goes can allocate, and its blocks outlive it", is_kept);

  void *(*volatile get_own)(size_t) = malloc; /* the address of a stub in some programs, see run.sh */
  free(get_own(100));
  void *bound = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  char *(*get)(size_t) = (char *(*)(size_t))dlsym(bound, "plugin_get");
  void (*give)(void *) = (void (*)(void *))dlsym(bound, "plugin_free");
  char *(*resize)(void *, size_t) = (char *(*)(void *, size_t))dlsym(bound, "plugin_resize");
  char *block = get ? get(100) : NULL;
  promise("so can one that binds to libc first", block != NULL);
  /* Not of the program, which may have a stub for each. */
  promise("it uses the malloc of the process", dlsym(bound, "malloc") == dlsym(RTLD_NEXT, "malloc")
      && dlsym(bound, "free") == dlsym(RTLD_NEXT, "free"));
  free(block);
  give(malloc(100));
  free(resize(malloc(100), 100000));
  promise("it is unloaded", dlclose(bound) == 0);
  return counts();
}
