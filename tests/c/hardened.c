/* The setting `hard`: each mistake ends a child process, and what is right does not. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 200000 };

static void (*free_of_size)(void *block, size_t size);

static const size_t sizes[] = {8, 5000, LARGE}; /* a report takes time */
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Runs the mistake in a child process without output; returns whether it ended by a signal. */
static int is_stopped(void (*mistake)(size_t), size_t size) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == NULL)
      _exit(1);
    mistake(size);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

static int are_all_stopped(void (*mistake)(size_t)) {
  int result = 1;
  for (int i = 0; i < SIZES; i++)
    result &= is_stopped(mistake, sizes[i]);
  return result;
}

static char *volatile block;

static void free_twice(size_t size) {
  block = malloc(size);
  free(block);
  free(block);
}

static void overrun_and_free(size_t size) {
  block = malloc(size);
  block[size] ^= 1;
  free(block);
}

static void overrun_and_resize(size_t size) {
  block = calloc(1, size);
  block[size + 2] ^= 1;
  block = realloc(block, size * 3);
}

static void overrun_resized(size_t size) {
  block = realloc(malloc(size + 9), size);
  block[size] = 0;
  free(block);
}

static void overrun_aligned(size_t size) {
  block = aligned_alloc(256, size);
  block[size] ^= 1;
  free(block);
}

static void free_with_wrong_size(size_t size) {
  block = malloc(size);
  free_of_size(block, size + 1);
}

/* exit, not _exit, checks what was never freed, also in a child that has taken memory of its own. */
static void overrun_and_exit(size_t size) {
  block = malloc(1 << 20);
  block = malloc(size);
  block[size] ^= 1;
  exit(0);
}

static void do_nothing(int number) {
  (void)number;
}

/* A handler that has returned leaves the check at the end as it is. */
static void overrun_after_a_signal(size_t size) {
  signal(SIGUSR1, do_nothing);
  raise(SIGUSR1);
  overrun_and_exit(size);
}

static void *overrun_by_thread(void *size) {
  block[(size_t)size] ^= 1;
  free(block);
  return NULL;
}

static void overrun_and_free_elsewhere(size_t size) {
  pthread_t thread;
  block = malloc(size);
  if (pthread_create(&thread, NULL, overrun_by_thread, (void *)size) == 0)
    pthread_join(thread, NULL);
}

static void *write_freed_and_end(void *size) {
  block = malloc((size_t)size);
  free(block);
  block[0] = 1;
  return NULL;
}

static void write_freed_by_thread(size_t size) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, write_freed_and_end, (void *)size) == 0)
    pthread_join(thread, NULL);
}

/* Until the block was chosen to be used again. */
static void write_freed(size_t size) {
  block = malloc(size);
  memset(block, 1, size);
  free(block);
  block[0] = 1;
  for (int i = 0; i < 10000; i++)
    free(malloc(size));
}

static void write_empty(size_t size) {
  block = malloc(0);
  block[size & 1] ^= 1;
  free(block);
}

static void do_right(size_t size) {
  char *old = NULL;
  for (int i = 0; i < 300; i++) {
    block = i % 3 == 0 ? calloc(1, size + i) : malloc(size + i);
    memset(block, i, size + i);
    block = realloc(block, size * 2 + i);
    memset(block, i, malloc_usable_size(block));
    block = realloc(block, size / 2 + 1);
    if (i % 2)
      free(old);
    else
      free_of_size(old, malloc_usable_size(old));
    old = block;
  }
  free(old);
  free(malloc(0));
  exit(0);
}

static void *take_over(void *old) {
  for (int i = 0; i < 200; i++) {
    free(old);
    old = realloc(aligned_alloc(64, 100 + i), 50 + i);
  }
  return old;
}

/* Blocks pass from thread to thread, and what waits in a thread stays usable when it ends. */
static void do_right_in_threads(size_t size) {
  pthread_t thread;
  void *passed = malloc(size);
  for (int i = 0; i < 20; i++)
    if (pthread_create(&thread, NULL, take_over, passed) == 0)
      pthread_join(thread, &passed);
  free(passed);
  exit(0);
}

static int is_not_used_at_once(size_t size) {
  char *first = malloc(size);
  uintptr_t address = (uintptr_t)first;
  free(first);
  char *second = malloc(size);
  int result = (uintptr_t)second != address;
  free(second);
  return result;
}

static int is_in_another_order(void) {
  char *blocks[64];
  int in_order = 1;
  for (int i = 0; i < 64; i++)
    blocks[i] = malloc(40);
  for (int i = 1; i < 64; i++)
    in_order &= blocks[i] > blocks[i - 1];
  for (int i = 0; i < 64; i++)
    free(blocks[i]);
  return !in_order;
}

int main(void) {
  int is_right = 1, is_late = 1;
  *(void **)&free_of_size = dlsym(RTLD_DEFAULT, "free_sized");
  promise("an overrun of a block that stays is found at the end", are_all_stopped(overrun_and_exit));
  promise("it is found after a handler of a signal, too", are_all_stopped(overrun_after_a_signal));
  for (int i = 0; i < SIZES; i++) {
    is_right &= !is_stopped(do_right, sizes[i]) && !is_stopped(do_right_in_threads, sizes[i]);
    is_late &= is_not_used_at_once(sizes[i]);
  }
  promise("what is right goes on", is_right);
  promise("a double free is found", are_all_stopped(free_twice));
  promise("an overrun by a byte is found at the free", are_all_stopped(overrun_and_free));
  promise("an overrun is found at the resize", are_all_stopped(overrun_and_resize));
  promise("a zero past the end of a resized block is found", are_all_stopped(overrun_resized));
  promise("an overrun of an aligned block is found", are_all_stopped(overrun_aligned));
  promise("a free with a wrong size is found", are_all_stopped(free_with_wrong_size));
  promise("a thread finds it in another one's block", are_all_stopped(overrun_and_free_elsewhere));
  promise("a write after free is found when its thread ends",
          are_all_stopped(write_freed_by_thread));
  promise("a write after free is found when the wait ends", are_all_stopped(write_freed));
  promise("a write to a block of size 0 is found", are_all_stopped(write_empty));
  promise("a freed block is not used at once", is_late);
  promise("new blocks come in no order of address", is_in_another_order());
  promise("the usable size is the requested one", malloc_usable_size(block = malloc(100)) == 100);
  return counts();
}
