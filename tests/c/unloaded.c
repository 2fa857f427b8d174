/* A library with a malloc of its own: liblanemm.a is linked into it. For unloads.c, and, with QUIET, so that it
 * allocates when it is called alone, for firsts.c. */
#include <stdlib.h>
#include <string.h>

#ifndef QUIET
static char *from_constructor, *from_handler;

static void at_end(void) {
  from_handler = malloc(200);
  free(from_handler);
}

__attribute__((constructor)) static void load(void) {
  from_constructor = strdup("loaded");
  atexit(at_end);
}

__attribute__((destructor)) static void unload(void) {
  from_constructor = realloc(from_constructor, 5000);
  free(from_constructor);
}
#endif

/* Allocates, uses and frees blocks of many sizes. */
void library_work(void) {
  for (int size = 1; size < 300000; size += size / 3 + 1) {
    char *block = malloc(size);
    memset(block, 1, size);
    free(block);
  }
}

/* A block for the caller. */
char *library_get(size_t size) {
  return malloc(size);
}

/* Frees it. */
void library_put(char *block) {
  free(block);
}
