/* Calls before main and after it: before the constructors of all libraries, constructors, exit
 * handlers, key destructors. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void *from_before, *from_constructor, *from_exit_handler;
static pthread_key_t key;
static _Atomic int rounds, is_kept = 1;

/* Runs before any library has been initialized, libc and the allocator included. */
static void before_all(void) {
  from_before = calloc(10, 100);
  free(malloc(200000));
  from_before = realloc(from_before, 30000);
  if (from_before && is_zero(from_before, 1000))
    content_write(from_before, 30000, 9);
}

__attribute__((section(".preinit_array"), used)) static void (*before)(void) = before_all;

__attribute__((constructor(101))) static void construct(void) {
  from_constructor = malloc(1000);
  content_write(from_constructor, 1000, 1);
  free(malloc(100000));
}

static void on_exit_handler(void) {
  from_exit_handler = malloc(3000);
  content_write(from_exit_handler, 3000, 3);
  free(from_constructor);
}

/* Runs after all exit handlers; says with the exit code whether all was well. */
__attribute__((destructor(101))) static void destruct(void) {
  int is_right = content_is(from_exit_handler, 3000, 3000, 3);
  free(from_exit_handler);
  void *block = calloc(10, 10000);
  is_right &= block && is_zero(block, 100000);
  free(block);
  if (!is_right)
    _exit(3);
}

/* A key's destructor that frees, allocates, and sets the key once more, up to the last round. */
static void on_thread_end(void *value) {
  if (!content_is(value, 500, 500, 5))
    is_kept = 0;
  free(value);
  void *again = malloc(500), *temporary = malloc(70000);
  if (again == NULL || temporary == NULL)
    is_kept = 0;
  content_write(again, 500, 5);
  free(temporary);
  if (++rounds % 4 == 0)
    free(again);
  else
    pthread_setspecific(key, again);
}

static void *run(void *ignored) {
  void *value = malloc(500);
  content_write(value, 500, 5);
  pthread_setspecific(key, value);
  for (int i = 0; i < 100; i++)
    free(malloc(i * 100));
  return ignored;
}

int main(void) {
  check_use_all();
#ifdef __GLIBC__ /* musl calls nothing of .preinit_array */
  promise("malloc works before libraries are initialized",
          from_before && content_is(from_before, 30000, 30000, 9));
#endif
  free(from_before);
  promise("malloc works in constructors", content_is(from_constructor, 1000, 1000, 1));
  atexit(on_exit_handler);
  pthread_key_create(&key, on_thread_end);
  for (int i = 0; i < 200; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
  }
  promise("malloc and free work in destructors of thread keys", is_kept && rounds == 800);
  promise("exit handlers and destructors come after this; the exit code tells of them", 1);
  return counts();
}
