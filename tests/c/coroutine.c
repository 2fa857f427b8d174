/* Ends in a coroutine, whose stack is a block: what the stack that the thread began on leads to is no leak.
 *
 *   coroutine MODE     main: of the main thread; thread: of another one; lose: loses a block there */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"

enum { BLOCKS = 50, STACK = 1 << 17, PAGE = 4096, GUARD = 102 };

static ucontext_t outer, inner;
static int loses;

__attribute__((noinline)) static void lose(void) {
  void *volatile block;
  for (int i = 0; i < BLOCKS; i++)
    block = malloc(700);
  block = NULL;
  (void)block;
}

static void end(void) {
  if (loses)
    lose();
  promise("the program ends in a coroutine", 1);
  exit(counts());
}

static void *hold_and_end(void *unused) {
  void *volatile kept[BLOCKS];
  for (int i = 0; i < BLOCKS; i++)
    kept[i] = malloc(1000 + i);
  getcontext(&inner);
  inner.uc_stack.ss_sp = malloc(STACK);
  inner.uc_stack.ss_size = STACK;
  inner.uc_link = &outer;
  makecontext(&inner, end, 0);
  swapcontext(&outer, &inner);
  for (int i = 0; i < BLOCKS; i++)
    free(kept[i]);
  return unused;
}

/* A page at the end of the stack that cannot be read, in the same mapping, as from glibc 2.42 on; before Linux
 * 6.13 there is none. */
static void *hold_behind_guard(void *unused) {
  pthread_attr_t attributes;
  void *stack;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0
      && pthread_attr_getstack(&attributes, &stack, &size) == 0 && madvise(stack, PAGE, GUARD) == 0)
    puts("the stack ends in a guard page");
  pthread_attr_destroy(&attributes);
  return hold_and_end(unused);
}

int main(int count, char **arguments) {
  pthread_t thread;
  check_use_all();
  loses = count > 1 && strcmp(arguments[1], "lose") == 0;
  if (count < 2 || strcmp(arguments[1], "thread") != 0)
    hold_and_end(NULL);
  else if (pthread_create(&thread, NULL, hold_behind_guard, NULL) == 0)
    pthread_join(thread, NULL);
  return 2;
}
