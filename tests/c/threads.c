/* Blocks cross threads: each thread frees what others got, while a timer signal interrupts all. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"

enum { THREADS = 12, PLACES = 4096, STEPS = 150000, GENERATIONS = 3 };

struct block {
  size_t size;
  uint64_t mark;
  uint8_t content[];
};

static struct block *_Atomic places[PLACES];
static _Atomic int is_kept = 1, is_served = 1;
static volatile sig_atomic_t ticks;

static void on_tick(int number) {
  (void)number;
  ticks++;
}

static struct block *block_new(uint64_t *random) {
  size_t size = random_size(random, next_random(random) % 256 ? 11 : 18);
  struct block *block = malloc(sizeof *block + size);
  if (block == NULL) {
    is_served = 0;
    return NULL;
  }
  block->size = size;
  block->mark = next_random(random);
  content_write(block->content, size, block->mark);
  return block;
}

static void block_end(struct block *block) {
  if (block != NULL && !content_is(block->content, block->size, block->size, block->mark))
    is_kept = 0;
  free(block);
}

/* Puts new blocks where others look and frees what it finds there. */
static void *run(void *seed) {
  uint64_t random = (uintptr_t)seed * 7919 + 1;
  for (unsigned step = 0; step < STEPS / THREADS; step++) {
    unsigned place = next_random(&random) % PLACES;
    block_end(__atomic_exchange_n(&places[place], block_new(&random), __ATOMIC_ACQ_REL));
    if (next_random(&random) % 4 == 0) {
      place = next_random(&random) % PLACES;
      block_end(__atomic_exchange_n(&places[place], NULL, __ATOMIC_ACQ_REL));
    }
  }
  return NULL;
}

int main(void) {
  check_use_all();
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
  for (uintptr_t generation = 0; generation < GENERATIONS; generation++) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
      pthread_create(&threads[i], NULL, run, (void *)(generation * THREADS + i + 1));
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  for (int place = 0; place < PLACES; place++)
    block_end(places[place]);
  promise("blocks that cross threads keep their content", is_kept);
  promise("threads that come and go are served, also under signals", is_served && ticks > 0);
  malloc_trim(0);
  struct mallinfo2 info = mallinfo2();
  promise("nothing is left when all is freed", info.uordblks + info.hblkhd < 1 << 20);
  return counts();
}
