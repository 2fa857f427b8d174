/* A library that allocates when it is loaded, used and unloaded. For plugins.c and foreign.c. */
#include <stdlib.h>
#include <string.h>

static char *from_constructor;
static __thread char *of_thread;

__attribute__((constructor)) static void load(void) {
  from_constructor = strdup("loaded");
}

__attribute__((destructor)) static void unload(void) {
  free(from_constructor);
}

/* A block for the caller to free. */
char *plugin_get(size_t size) {
  if (of_thread == NULL)
    of_thread = malloc(100);
  char *block = malloc(size);
  memset(block, from_constructor[0], size);
  return block;
}

/* Frees a block of the caller's. */
void plugin_free(void *block) {
  free(of_thread);
  of_thread = NULL;
  free(block);
}

/* Resizes a block of the caller's. */
char *plugin_resize(void *block, size_t size) {
  return realloc(block, size);
}
