/* A library that uses thread keys. For spaces.c. */
#include <pthread.h>
#include <stdint.h>

enum { KEYS = 8 };

static pthread_key_t keys[KEYS];

/* Makes the keys, which have no value in any thread. */
int keyed_start(void) {
  int are_empty = 1;
  for (int i = 0; i < KEYS; i++)
    are_empty &= pthread_key_create(&keys[i], NULL) == 0 && pthread_getspecific(keys[i]) == NULL;
  return are_empty;
}

/* Sets values of the calling thread that are no addresses; returns whether they stay. */
int keyed_use(void) {
  int are_kept = 1;
  for (uintptr_t i = 0; i < KEYS; i++)
    pthread_setspecific(keys[i], (void *)(0x4141414141414141 + i));
  for (uintptr_t i = 0; i < KEYS; i++)
    are_kept &= pthread_getspecific(keys[i]) == (void *)(0x4141414141414141 + i);
  return are_kept;
}
