/* Two threads that wait for each other's mutexes, ordinary ones without an argument; others that wait for a lock for
 * writing and for the end of a thread; its owner waits for a semaphore. With `timed` one thread waits for the end of
 * another one, for an hour at most. For the tests of lanemm. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t locked;
static sem_t never;

static void *take_both(void *argument) {
  pthread_mutex_lock(argument ? &first : &second);
  pthread_barrier_wait(&locked);
  pthread_mutex_lock(argument ? &second : &first);
  return NULL;
}

static void *write_table(void *argument) {
  (void) argument;
  pthread_rwlock_wrlock(&table);
  pthread_barrier_wait(&locked);
  sem_wait(&never);
  return NULL;
}

static void *read_table(void *argument) {
  (void) argument;
  pthread_barrier_wait(&locked);
  pthread_rwlock_rdlock(&table);
  return NULL;
}

static void *wait_for_never(void *argument) {
  (void) argument;
  sem_wait(&never);
  return NULL;
}

static int join_in_time(void) {
  pthread_t thread;
  struct timespec limit;
  sem_init(&never, 0, 0);
  pthread_create(&thread, NULL, wait_for_never, NULL);
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 3600;
  puts("ready 1");
  fflush(stdout);
  return pthread_timedjoin_np(thread, NULL, &limit);
}

int main(int count, char **arguments) {
  pthread_t threads[4];
  pthread_mutexattr_t kind;
  if (count > 1 && strcmp(arguments[1], "timed") == 0) return join_in_time();
  pthread_mutexattr_init(&kind);
  if (count > 1 && strcmp(arguments[1], "robust") == 0) pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  if (count > 1 && strcmp(arguments[1], "inheriting") == 0) pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&first, &kind);
  pthread_mutex_init(&second, &kind);
  pthread_barrier_init(&locked, NULL, 5);
  sem_init(&never, 0, 0);
  pthread_create(&threads[0], NULL, take_both, NULL);
  pthread_create(&threads[1], NULL, take_both, &first);
  pthread_create(&threads[2], NULL, write_table, NULL);
  pthread_create(&threads[3], NULL, read_table, NULL);
  pthread_barrier_wait(&locked);
  puts("ready 1");
  fflush(stdout);
  pthread_join(threads[0], NULL);
  return 0;
}
