/* Half of the threads only allocate, the other half only frees, in batches.
 * What does it cost when no thread ever frees what it allocated?
 * After: Lever and Boreham, "malloc() Performance in a Multithreaded Linux Environment",
 * USENIX 2000, as later changed for blocks that cross threads. */
#include "work.h"

enum { BATCH = 120, BATCHES = 200000, MOST_WAITING = 64, MAX_SIZE = 256 };

struct batch {
  struct batch *next;
  uint8_t *blocks[BATCH];
  uint16_t sizes[BATCH];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct batch *waiting;
static unsigned waiting_count, unmade, untaken;

static int make_one(uint64_t *random) {
  pthread_mutex_lock(&lock);
  int is_wanted = unmade > 0;
  unmade -= is_wanted;
  pthread_mutex_unlock(&lock);
  if (!is_wanted)
    return 0;
  struct batch *batch = malloc(sizeof *batch);
  for (int i = 0; i < BATCH; i++) {
    batch->sizes[i] = 1 + next_random(random) % MAX_SIZE;
    batch->blocks[i] = block_get(batch->sizes[i]);
  }
  pthread_mutex_lock(&lock);
  while (waiting_count == MOST_WAITING)
    pthread_cond_wait(&changed, &lock);
  batch->next = waiting;
  waiting = batch;
  waiting_count++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 1;
}

static int take_one(void) {
  pthread_mutex_lock(&lock);
  if (untaken == 0) {
    pthread_mutex_unlock(&lock);
    return 0;
  }
  untaken--;
  while (waiting == NULL)
    pthread_cond_wait(&changed, &lock);
  struct batch *batch = waiting;
  waiting = batch->next;
  waiting_count--;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < BATCH; i++)
    block_free(batch->blocks[i], batch->sizes[i]);
  free(batch);
  return 1;
}

static void *run(void *number) {
  uint64_t random = (uintptr_t)number + 1;
  if ((uintptr_t)number % 2 == 0)
    while (make_one(&random))
      ;
  else
    while (take_one())
      ;
  return NULL;
}

int main(int count, char **arguments) {
  unsigned threads = thread_count(count, arguments);
  unmade = untaken = scaled(BATCHES, count, arguments);
  run_threads(threads + threads % 2, run);
  return 0;
}
