/* One thread only allocates, two others only free, turn by turn: the second of them frees the last
 * blocks of memory that belongs to the first, who never allocates. Does it come back at once? */
#include "check.h"

#include <pthread.h>

enum { BLOCKS = 20000, SIZE = 64, ROUNDS = 400, SHARE = 10, MOST_KB = 32 * 1024 };

static uint8_t *blocks[BLOCKS];
static pthread_barrier_t turn;
static unsigned damaged;

static void free_block(int index, int round) {
  uint8_t *block = blocks[index];
  if (!content_is(block, SIZE, SIZE, (uint64_t)round << 32 | index))
    damaged++;
  free(block);
}

static void *free_some(void *unused) {
  (void)unused;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&turn); /* made */
    for (int index = 0; index < BLOCKS; index += SHARE)
      free_block(index, round);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
  }
  return NULL;
}

static void *free_rest(void *unused) {
  (void)unused;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn); /* some freed */
    for (int index = 0; index < BLOCKS; index++)
      if (index % SHARE != 0)
        free_block(index, round);
    pthread_barrier_wait(&turn);
  }
  return NULL;
}

static void make_all(int round) {
  for (int index = 0; index < BLOCKS; index++) {
    blocks[index] = malloc(SIZE);
    content_write(blocks[index], SIZE, (uint64_t)round << 32 | index);
  }
}

static long peak_kb(void) {
  char line[256];
  long kb = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "VmHWM: %ld", &kb) == 1)
      break;
  fclose(status);
  return kb;
}

int main(void) {
  pthread_t some, rest;
  pthread_barrier_init(&turn, NULL, 3);
  pthread_create(&some, NULL, free_some, NULL);
  pthread_create(&rest, NULL, free_rest, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    make_all(round);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
  }
  pthread_join(some, NULL);
  pthread_join(rest, NULL);
  promise("blocks that change hands keep their contents", damaged == 0);
  printf("peak: %ld kB\n", peak_kb());
  promise("memory that others emptied is used again before more is taken", peak_kb() < MOST_KB);
  return counts();
}
