/* Two threads whose stacks lie behind each other in one mapping, each with a page before it that cannot be read, as
 * glibc makes them from 2.42 on, where the kernel has such pages (6.13).
 *
 *   guarded MODE     sleep: both hold a block and sleep at the end; coroutine: the upper one ends the program, in a
 *                    coroutine whose stack is a block, and has lost a list behind that one: LIST blocks */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, STACK = 1 << 18, GUARD = 102, LIST = 10 };

static atomic_int held;
static ucontext_t outer, inner;

static void *hold(void *guard) {
  void *volatile page = guard; /* glibc keeps its address beside the stack */
  void *volatile block = malloc(1000);
  held++;
  pause();
  free(block);
  return page;
}

__attribute__((noinline)) static void lose_list(void) {
  void **volatile list = NULL;
  for (int i = 0; i < LIST; i++) {
    void **next = malloc(5000);
    next[0] = list;
    list = next;
  }
  list = NULL;
  (void)list;
}

/* What calls have left there. */
__attribute__((noinline)) static void clear_stack(void) {
  char bytes[16384];
  memset(bytes, 0, sizeof bytes);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

static void end(void) {
  lose_list();
  clear_stack();
  promise("the program ends in a coroutine", 1);
  exit(counts());
}

static void *end_in_coroutine(void *unused) {
  void *volatile block = malloc(1000);
  getcontext(&inner);
  inner.uc_stack.ss_sp = malloc(STACK);
  inner.uc_stack.ss_size = STACK;
  inner.uc_link = &outer;
  makecontext(&inner, end, 0);
  swapcontext(&outer, &inner);
  free(block);
  return unused;
}

static void start(char *guard, void *(*routine)(void *)) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (madvise(guard, PAGE, GUARD) != 0) {
    puts("the kernel has no such pages");
    exit(77);
  }
  if (pthread_attr_setstack(&attributes, guard + PAGE, STACK) != 0
      || pthread_create(&thread, &attributes, routine, guard) != 0)
    exit(2);
}

int main(int count, char **arguments) {
  int ends = count > 1 && strcmp(arguments[1], "coroutine") == 0;
  char *memory = mmap(NULL, 2 * (PAGE + STACK), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check_use_all();
  if (memory == MAP_FAILED)
    return 2;
  start(memory, hold);
  while (held < 1)
    usleep(1000);
  start(memory + PAGE + STACK, ends ? end_in_coroutine : hold);
  while (held < 2)
    usleep(1000);
  promise("the program ends while the threads sleep", 1);
  return counts();
}
