/* Threads fill and empty slots in passes; now and then a thread hands a list of blocks to the next
 * one, which frees it. Sizes of 16 to 8000, small ones far more often. What do blocks cost that wander?
 * After the idea of Jansson's rpmalloc-benchmark. */
#include "work.h"

enum { SLOTS = 6000, PASSES = 5000, CHANGES = 3000, HANDED = 200, MIN_SIZE = 16, MAX_SIZE = 8000 };

/* A block that is handed over: its size, and the next one of the list. */
struct link {
  struct link *next;
  size_t size;
};

static struct link *_Atomic handed[MAX_THREADS];
static unsigned threads, passes;

static size_t size_next(uint64_t *random) {
  double part = (double)(next_random(random) >> 40) / (1 << 24);
  return MIN_SIZE + (size_t)((MAX_SIZE - MIN_SIZE) * part * part * part);
}

static void free_list(struct link *list) {
  while (list) {
    struct link *next = list->next;
    free(list);
    list = next;
  }
}

static void hand_over(unsigned to, uint64_t *random) {
  struct link *list = NULL;
  for (int i = 0; i < HANDED; i++) {
    size_t size = size_next(random);
    struct link *block = malloc(size);
    if (block == NULL)
      exit(3);
    block->next = list;
    block->size = size;
    list = block;
  }
  free_list(__atomic_exchange_n(&handed[to], list, __ATOMIC_ACQ_REL));
}

static void *run(void *number) {
  unsigned own = (uintptr_t)number;
  uint64_t random = own + 1;
  uint8_t **blocks = calloc(SLOTS, sizeof *blocks);
  uint16_t *sizes = calloc(SLOTS, sizeof *sizes);
  for (unsigned pass = 0; pass < passes / threads; pass++) {
    for (int change = 0; change < CHANGES; change++) {
      unsigned slot = next_random(&random) % SLOTS;
      if (blocks[slot])
        block_free(blocks[slot], sizes[slot]);
      sizes[slot] = (uint16_t)size_next(&random);
      blocks[slot] = block_get(sizes[slot]);
    }
    hand_over((own + 1) % threads, &random);
    free_list(__atomic_exchange_n(&handed[own], NULL, __ATOMIC_ACQ_REL));
  }
  for (int slot = 0; slot < SLOTS; slot++)
    if (blocks[slot])
      block_free(blocks[slot], sizes[slot]);
  free(blocks);
  free(sizes);
  return NULL;
}

int main(int count, char **arguments) {
  threads = thread_count(count, arguments);
  passes = scaled(PASSES, count, arguments);
  run_threads(threads, run);
  for (unsigned i = 0; i < threads; i++)
    free_list(handed[i]);
  return 0;
}
