/* A program in C that is asked while it is busy: threads come and go, blocks cross threads, the C
 * library's own locks are in use (stdio, dlopen, localtime). Runs until its standard input ends;
 * exit code 1 if a block lost its contents, or one of calloc was not zero. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PLACES = 256, LIFE = 20000 };

static _Atomic(size_t *) places[PLACES];
static atomic_int is_over, faults;

static unsigned below(uint64_t *state, unsigned limit) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (unsigned)(*state >> 20) % limit;
}

static size_t *zeros(size_t words) {
  size_t *block = calloc(words, sizeof *block);
  for (size_t i = 0; i < words; i++)
    if (block[i] != 0) {
      atomic_fetch_add(&faults, 1);
      break;
    }
  return block;
}

/* Each word is written, so that what is freed is never zero. */
static void turn(uint64_t *state) {
  size_t words = 2 + below(state, 1u << (1 + below(state, 15)));
  size_t *block = below(state, 2) == 0 ? malloc(words * sizeof *block) : zeros(words);
  if (below(state, 4) == 0)
    block = realloc(block, (words *= 2) * sizeof *block);
  for (size_t i = 0; i < words; i++)
    block[i] = words;
  block[words - 1] = ~words;
  size_t *old = atomic_exchange(&places[below(state, PLACES)], block);
  if (old == NULL)
    return;
  if (old[old[0] - 1] != ~old[0])
    atomic_fetch_add(&faults, 1);
  free(old);
}

static void *work(void *argument) {
  uint64_t state = (uintptr_t)argument * 2654435761u + 1;
  for (int i = 0; i < LIFE && !is_over; i++)
    turn(&state);
  return NULL;
}

/* Uses what the C library guards with locks. */
static void use_library(void) {
  time_t now = time(NULL);
  struct tm parts;
  localtime_r(&now, &parts);
  FILE *file = fopen("/dev/null", "w");
  fprintf(file, "%d", parts.tm_sec);
  fclose(file);
  dlclose(dlopen("libm.so.6", RTLD_NOW));
}

static void *await_end(void *argument) {
  char byte;
  ssize_t got;
  while ((got = read(0, &byte, 1)) > 0)
    ;
  if (got < 0)
    perror("asked: read");
  is_over = 1;
  return argument;
}

int main(void) {
  pthread_t threads[THREADS], watcher;
  pthread_create(&watcher, NULL, await_end, NULL);
  puts("ready");
  fflush(stdout);
  uint64_t state = 1;
  while (!is_over) {
    for (long i = 0; i < THREADS; i++)
      pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < LIFE / 4; i++) {
      turn(&state);
      if (i % 64 == 0)
        use_library();
    }
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  if (faults > 0)
    fprintf(stderr, "asked: %d blocks lost their contents, or were not zero\n", faults);
  return faults > 0;
}
