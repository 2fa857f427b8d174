/* A library in a name space of its own (dlmopen) counts its thread keys anew; their values lie where those
 * of this name space do.
 *
 *   spaces LIBRARY     built from keyed.c */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

enum { BLOCKS = 500 };

static int (*keyed_use)(void);
static int is_kept = 1, are_kept = 1;

static void *use_both(void *unused) {
  void *blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    content_write(blocks[i] = malloc(i * 50), i * 50, i);
    are_kept &= keyed_use();
  }
  for (int i = 0; i < BLOCKS; i++) {
    is_kept &= content_is(blocks[i], i * 50, i * 50, i);
    free(blocks[i]);
  }
  return unused;
}

int main(int count, char **arguments) {
  check_use_all();
  void *library = count < 2 ? NULL : dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW);
  if (library == NULL) {
    puts("there is no other name space");
    return 77;
  }
  int (*keyed_start)(void) = (int (*)(void))dlsym(library, "keyed_start");
  keyed_use = (int (*)(void))dlsym(library, "keyed_use");
  free(malloc(100));
  promise("the keys of another name space have no values of the library", keyed_start());
  use_both(NULL);
  pthread_t thread;
  promise("a thread runs", pthread_create(&thread, NULL, use_both, NULL) == 0
          && pthread_join(thread, NULL) == 0);
  promise("blocks keep their contents while it uses them", is_kept);
  promise("its keys keep their values", are_kept);
  return counts();
}
