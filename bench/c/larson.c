/* A server: each thread replaces blocks at random places, then a new thread takes its blocks over.
 * Do blocks that outlive their threads cost anything?
 * After: Larson and Krishnan, "Memory Allocation for Long-Running Server Applications", ISMM 1998. */
#include "work.h"

enum { PLACES = 5000, MIN_SIZE = 8, MAX_SIZE = 1000, STEPS = 100000, GENERATIONS = 300 };

struct place {
  uint8_t *block;
  size_t size;
};

static struct place places[MAX_THREADS][PLACES];
static unsigned threads, generations;

static void replace(struct place *place, uint64_t *random) {
  if (place->block)
    block_free(place->block, place->size);
  place->size = MIN_SIZE + next_random(random) % (MAX_SIZE - MIN_SIZE);
  place->block = block_get(place->size);
}

/* One thread's life; it works on the places of Number. */
static void *live(void *number) {
  uint64_t random = (uintptr_t)number * 977 + 1;
  for (int step = 0; step < STEPS; step++)
    replace(&places[(uintptr_t)number][next_random(&random) % PLACES], &random);
  return NULL;
}

static void *run(void *number) {
  uint64_t random = (uintptr_t)number + 1;
  for (int i = 0; i < PLACES; i++)
    replace(&places[(uintptr_t)number][i], &random);
  for (int generation = 0; generation < (int)(generations / threads); generation++) {
    pthread_t heir;
    if (pthread_create(&heir, NULL, live, number) != 0)
      exit(5);
    pthread_join(heir, NULL);
  }
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  generations = scaled(GENERATIONS, count, arguments);
  run_threads(threads, run);
  return 0;
}
