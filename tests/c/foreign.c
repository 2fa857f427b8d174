/* The library is loaded late, by a program that runs on libc's allocator: for one plugin, whose
 * malloc it becomes, and by name. Blocks of libc come to its free and realloc.
 *   foreign LIBRARY PLUGIN KEYS   after the program has taken so many thread keys, or all */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

enum { BLOCKS = 300 };

static void *(*late_malloc)(size_t);
static void *(*late_realloc)(void *, size_t);
static void (*late_free)(void *);
static size_t (*late_usable_size)(void *);

static void *use(void *result) {
  int *is_kept = result;
  void *blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    content_write(blocks[i] = late_malloc(i * 300), i * 300, i);
    free(malloc(100));
  }
  for (int i = 0; i < BLOCKS; i++) {
    *is_kept &= content_is(blocks[i], i * 300, i * 300, i);
    late_free(blocks[i]);
  }
  return NULL;
}

int main(int count, char **arguments) {
  check_use_all();
  if (count < 4)
    return 2;
  pthread_key_t key; /* the library's own key comes late, too */
  for (int i = atoi(arguments[3]); i > 0 && pthread_key_create(&key, NULL) == 0; i--)
    ;
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  promise("the library can be loaded late", library != NULL);
  if (library == NULL)
    return counts();
  late_malloc = (void *(*)(size_t))dlsym(library, "malloc");
  late_realloc = (void *(*)(void *, size_t))dlsym(library, "realloc");
  late_free = (void (*)(void *))dlsym(library, "free");
  late_usable_size = (size_t(*)(void *))dlsym(library, "malloc_usable_size");
  promise("libc's allocator stays the program's", late_malloc != malloc && late_free != free);

  int is_kept = 1, others_keep = 1;
  use(&is_kept);
  pthread_t thread;
  pthread_create(&thread, NULL, use, &others_keep);
  pthread_join(thread, NULL);
  promise("both allocators work side by side, in all threads", is_kept && others_keep);

  char *block = malloc(1000);
  content_write(block, 1000, 1);
  promise("malloc_usable_size knows libc's blocks", late_usable_size(block) >= 1000);
  block = late_realloc(block, 5000);
  promise("realloc takes libc's blocks over", block && content_is(block, 1000, 1000, 1));
  late_free(block);
  late_free(malloc(100));
  promise("free hands libc's blocks back", 1);

  void *plugin = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  char *(*get)(size_t) = (char *(*)(size_t))dlsym(plugin, "plugin_get");
  void (*give)(void *) = (void (*)(void *))dlsym(plugin, "plugin_free");
  late_free(get(100));
  give(strdup("a block of libc"));
  promise("a plugin bound to the library frees what libc gave it", 1);
  dlclose(plugin);
  dlclose(library);
  return counts();
}
