/* Ends in a coroutine, whose stack is a block: what the stack that the thread began on leads to is no leak.
 *
 *   coroutine MODE     main: of the main thread; thread: of another one; lose: loses a block there */
#include <pthread.h>
#include <ucontext.h>

#include "check.h"

enum { BLOCKS = 50, STACK = 1 << 17 };

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

int main(int count, char **arguments) {
  pthread_t thread;
  check_use_all();
  loses = count > 1 && strcmp(arguments[1], "lose") == 0;
  if (count < 2 || strcmp(arguments[1], "thread") != 0)
    hold_and_end(NULL);
  else if (pthread_create(&thread, NULL, hold_and_end, NULL) == 0)
    pthread_join(thread, NULL);
  return 2;
}
