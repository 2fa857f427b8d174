/* fork, vfork and posix_spawn while other threads allocate: the child can do everything. FORKS in the
 * environment: how often each of two threads forks, 100 times if it is not there. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 6, SPAWNS = 30, KEPT = 200, SECONDS_PER_CHILD = 100 };

static _Atomic int is_over, is_kept = 1;
static int forks = 100;
static void *_Atomic crossing[64];
extern char **environ;

/* Allocates and frees, small and large, own blocks and those of others, until told to stop. */
static void *work(void *seed) {
  uint64_t random = (uintptr_t)seed;
  void *blocks[100] = {0};
  while (!is_over) {
    unsigned place = next_random(&random) % 100;
    free(blocks[place]);
    blocks[place] = malloc(random_size(&random, 19));
    void *old = __atomic_exchange_n(&crossing[place % 64], malloc(random_size(&random, 12)),
                                    __ATOMIC_ACQ_REL);
    free(old);
    if (next_random(&random) % 4096 == 0)
      malloc_trim(0);
  }
  for (int i = 0; i < 100; i++)
    free(blocks[i]);
  return NULL;
}

static void *work_a_little(void *seed) {
  uint64_t random = (uintptr_t)seed;
  for (int i = 0; i < 2000; i++) {
    size_t size = random_size(&random, 17);
    uint8_t *block = malloc(size);
    if (block == NULL)
      is_kept = 0;
    content_write(block, size, size);
    if (!content_is(block, size, size, size))
      is_kept = 0;
    free(block);
  }
  return NULL;
}

/* In a child: all sizes, the parent's blocks, threads, and now and then a child of its own. */
static int child(void *kept[], int generation) {
  alarm(SECONDS_PER_CHILD);
  for (int i = 0; i < KEPT; i++) {
    if (!content_is(kept[i], 100 + i * 50, 100 + i * 50, i))
      is_kept = 0;
    if (i % 2)
      kept[i] = realloc(kept[i], 20000);
    free(kept[i]);
  }
  work_a_little((void *)(uintptr_t)(generation + 1));
  pthread_t threads[2];
  for (uintptr_t i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, work_a_little, (void *)(i + 7));
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  malloc_trim(0);
  if (generation % 10 == 0) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      work_a_little((void *)11);
      _exit(!is_kept);
    }
    int status = 1;
    waitpid(grandchild, &status, 0);
    if (status != 0)
      is_kept = 0;
  }
  return !is_kept;
}

/* Forks again and again; counts the children that did not do well. */
static void *fork_often(void *failures) {
  void *kept[KEPT];
  for (int i = 0; i < KEPT; i++)
    content_write(kept[i] = malloc(100 + i * 50), 100 + i * 50, i);
  for (int i = 0; i < forks; i++) {
    pid_t pid = fork();
    if (pid == 0)
      _exit(child(kept, i));
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
      ++*(int *)failures;
  }
  for (int i = 0; i < KEPT; i++) {
    if (!content_is(kept[i], 100 + i * 50, 100 + i * 50, i))
      is_kept = 0;
    free(kept[i]);
  }
  return NULL;
}

/* Whether a program that was started ends well. */
static int ends_well(pid_t pid) {
  int status = 1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static char *program[] = {"true", NULL};

static int vfork_works(void) {
  pid_t pid = vfork();
  if (pid == 0) {
    execvp(*program, program);
    _exit(1);
  }
  return ends_well(pid);
}

static int spawn_works(void) {
  pid_t pid;
  return posix_spawnp(&pid, *program, NULL, NULL, program, environ) == 0 && ends_well(pid);
}

int main(void) {
  check_use_all();
  if (getenv("FORKS") != NULL)
    forks = atoi(getenv("FORKS"));
  pthread_t threads[THREADS], forker;
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  int main_failures = 0, thread_failures = 0;
  pthread_create(&forker, NULL, fork_often, &thread_failures);
  fork_often(&main_failures);
  pthread_join(forker, NULL);
  promise("children of a busy program's main thread can do everything", main_failures == 0);
  promise("children of another thread can do everything", thread_failures == 0);
  int is_started = 1;
  for (int i = 0; i < SPAWNS; i++)
    is_started &= vfork_works() & spawn_works();
  promise("vfork and posix_spawn work in a busy program", is_started);
  is_over = 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  promise("the parent keeps its blocks", is_kept);
  return counts();
}
