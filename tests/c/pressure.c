/* Memory pressure in the container: a cache shrinks in the thread of the library's.
 *
 *   pressure FOLDER
 *
 * The files of a control group are written in FOLDER. */
#define _GNU_SOURCE
#include <lanemm.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { PAGES = 2000, PAGE_SIZE = 16384, PATIENCE = 20000 };

struct cache {
  void *pages[PAGES];
  pthread_mutex_t lock;
  unsigned long long used, limit;
  long thread;
  _Atomic int calls;
};

static struct cache cache = {.lock = PTHREAD_MUTEX_INITIALIZER};
static const char *folder;

static void write_number(const char *name, long value) {
  char path[1000], new_path[1000];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(new_path, sizeof new_path, "%s/new", folder);
  FILE *file = fopen(new_path, "w");
  if (file == NULL)
    return;
  fprintf(file, "%ld\n", value);
  fclose(file);
  rename(new_path, path);
}

static void fill(void) {
  pthread_mutex_lock(&cache.lock);
  for (int i = 0; i < PAGES; i++)
    if ((cache.pages[i] = malloc(PAGE_SIZE)) != NULL)
      memset(cache.pages[i], 1, PAGE_SIZE);
  pthread_mutex_unlock(&cache.lock);
}

static void shrink(unsigned long long used, unsigned long long limit, void *context) {
  struct cache *owner = context;
  pthread_mutex_lock(&owner->lock);
  for (int i = 0; i < PAGES; i++) {
    free(owner->pages[i]);
    owner->pages[i] = NULL;
  }
  pthread_mutex_unlock(&owner->lock);
  owner->used = used;
  owner->limit = limit;
  owner->thread = syscall(SYS_gettid);
  owner->calls++;
}

static size_t committed(void) {
  struct lanemm_status status;
  lanemm_status_read(&status, sizeof status);
  return status.committed_bytes;
}

static int is_called(void) {
  return cache.calls > 0;
}

static int has_gone(void) {
  return committed() < 4 << 20;
}

/* Whether that comes to be. */
static int comes(int (*seen)(void)) {
  struct timespec time = {0, 20000000};
  for (int waited = 0; waited < PATIENCE && !seen(); waited += 20)
    nanosleep(&time, NULL);
  return seen();
}

int main(int count, char **arguments) {
  char words[1100];
  check_use_all();
  if (count < 2)
    return 2;
  folder = arguments[1];
  write_number("memory.max", 100000000);
  write_number("memory.current", 95000000);
  snprintf(words, sizeof words, "limit=container:%s", folder);
  fill();
  struct timespec time = {getenv("LANEMM") ? 2 : 0, 0};
  nanosleep(&time, NULL); /* a thread of the setting `background` rests then */
  lanemm_set_purge_delay_ms(3600000); /* the container is looked at all the same */
  promise("the folder is taken", lanemm_configure(words));
  promise("a call is registered", lanemm_on_pressure(shrink, &cache));
  promise("the cache is asked to shrink", comes(is_called));
  promise("by a thread of the library's", cache.thread != 0 && cache.thread != getpid());
  promise("which says how much is used", cache.used == 95000000 && cache.limit == 100000000);
  promise("its memory is returned", comes(has_gone));
  promise("a call is taken back", lanemm_off_pressure(shrink, &cache));
  promise("once", !lanemm_off_pressure(shrink, &cache));
  int calls = 0;
  while (calls < 16 && lanemm_on_pressure(shrink, &cache))
    calls++;
  promise("there are 16 calls at most", calls == 16 && !lanemm_on_pressure(shrink, &cache));
  lanemm_set_purge_delay_ms(0);
  clock_t used = clock();
  time.tv_sec = 1;
  nanosleep(&time, NULL);
  promise("a purge delay of 0 takes no processor time", clock() - used < CLOCKS_PER_SEC / 20);
  return counts();
}
