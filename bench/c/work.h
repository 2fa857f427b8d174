/* What the workloads share: a private generator, threads, and the command line
 * `WORKLOAD THREADS [SCALE]`; SCALE times the usual work is done, once if it is not given. */
#ifndef WORK_H
#define WORK_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64 };

/* xorshift64*, fixed seeds. */
static inline uint64_t next_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1Dull;
}

#ifdef __cplusplus
#include <new>
#define BYTES_GET(size) ::operator new(size)
#define BYTES_FREE(bytes, size) ::operator delete(bytes, size)
#else
#define BYTES_GET(size) malloc(size)
#define BYTES_FREE(bytes, size) free(bytes)
#endif

/* A block that carries its size at its first and its last byte, or ends the program. Compiled as
 * C++ it comes from operator new, and operator delete gets its size. */
static inline uint8_t *block_get(size_t size) {
  uint8_t *block = (uint8_t *)BYTES_GET(size);
  if (block == NULL)
    exit(3);
  block[0] = (uint8_t)size;
  block[size - 1] = (uint8_t)size;
  return block;
}

/* Ends the program if another block was written over this one. */
static inline void block_free(uint8_t *block, size_t size) {
  if (block[0] != (uint8_t)size || block[size - 1] != (uint8_t)size)
    exit(4);
  BYTES_FREE(block, size);
}

/* A part of the work, according to the command line. */
static inline unsigned scaled(unsigned work, int count, char **arguments) {
  return count > 2 ? (unsigned)(work * atof(arguments[2])) : work;
}

static inline unsigned thread_count(int count, char **arguments) {
  unsigned threads = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
  if (threads < 1 || threads > MAX_THREADS)
    exit(2);
  return threads;
}

/* Runs the routine in so many threads, each with its number, and waits for all. */
static inline void run_threads(unsigned threads, void *(*routine)(void *)) {
  pthread_t handles[MAX_THREADS];
  for (uintptr_t i = 0; i < threads; i++)
    if (pthread_create(&handles[i], NULL, routine, (void *)i) != 0)
      exit(5);
  for (unsigned i = 0; i < threads; i++)
    pthread_join(handles[i], NULL);
}

#endif
