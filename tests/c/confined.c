/* Runs in a sandbox that ends the process at any system call but those that glibc's malloc makes, from a
 * moment on when all threads exist: what the allocator needs else it has asked for at its start.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define THREADS 3
#define PLACES 256
#define MEGABYTE ((size_t)1 << 20)

#define ALLOW(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static pthread_barrier_t begin, end;
/* Blocks that one thread leaves to the others. */
static void *_Atomic shared[PLACES];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time); /* without a system call */
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void touch(char *block, size_t size) {
  for (size_t at = 0; at < size; at += 4096)
    block[at] = 1;
}

/* Blocks of all sizes, of which the thread frees some, and the others free others, until the time comes at
 * which memory goes back, several times. */
static void exchange(unsigned seed) {
  void *own[PLACES] = {0};
  double last = now() + 2.5;
  do {
    for (int round = 0; round < 1000; round++) {
      seed = seed * 1103515245 + 12345;
      size_t place = seed >> 8 & (PLACES - 1);
      size_t size = (seed >> 16) % (round % 20 == 0 ? 500000 : 5000) + 1;
      char *block = round % 3 == 0 ? realloc(own[place], size) : round % 3 == 1 ? calloc(1, size) : malloc(size);
      if (round % 3 != 0)
        free(atomic_exchange(&shared[place], own[place]));
      own[place] = block;
      touch(block, size);
    }
  } while (now() < last);
  for (int place = 0; place < PLACES; place++)
    free(own[place]);
}

/* Large blocks: used again, zeroed, grown in place and moved, denser and sparser, more than there is. */
static void use_large_blocks(void) {
  for (int round = 0; round < 20; round++) {
    char *block = malloc(5 * MEGABYTE), *next = malloc(MEGABYTE);
    touch(block, 5 * MEGABYTE);
    block = realloc(block, 60 * MEGABYTE);
    touch(block, 60 * MEGABYTE);
    free(next);
    free(realloc(block, 2 * MEGABYTE));
    block = calloc(1, 40 * MEGABYTE);
    touch(block, round % 2 == 0 ? 40 * MEGABYTE : 4096);
    free(block);
  }
  for (int round = 0; round < 4000; round++) {
    void *blocks[50];
    for (int i = 0; i < 50; i++)
      touch(blocks[i] = malloc(8000), 8000);
    for (int i = 0; i < 50; i++)
      free(blocks[i]);
  }
  promise("a block larger than memory is refused", malloc((size_t)1 << 46) == NULL);
  free(malloc((size_t)2 << 30));
}

static void *work(void *argument) {
  pthread_barrier_wait(&begin); /* a thread that begins makes other calls, too */
  pthread_barrier_wait(&begin);
  exchange((unsigned)(size_t)argument);
  pthread_barrier_wait(&end);
  pause(); /* the end of a thread makes other calls; the process ends first */
  return NULL;
}

int main(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise),
      ALLOW(futex), ALLOW(write), ALLOW(pause), ALLOW(exit_group),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  puts("in a sandbox"); /* stdio asks for the kind of the file once */
  fflush(stdout);
  pthread_barrier_init(&begin, NULL, THREADS + 1);
  pthread_barrier_init(&end, NULL, THREADS + 1);
  for (size_t i = 0; i < THREADS; i++) {
    pthread_t thread;
    promise("a thread starts", pthread_create(&thread, NULL, work, (void *)(i + 1)) == 0);
  }
  pthread_barrier_wait(&begin);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
      || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    puts("no sandbox can be had here");
    return 77;
  }
  use_large_blocks();
  pthread_barrier_wait(&begin);
  exchange(0);
  pthread_barrier_wait(&end);
  promise("the process lives", 1);
  return counts();
}
