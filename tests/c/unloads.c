/* Loads and unloads libraries with a malloc of their own many times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

enum { FEW = 30, MANY = 200, LEAKED = 100, SIZE = 20000 };

struct library {
  void *handle;
  void (*work)(void);
  char *(*get)(size_t);
  void (*put)(char *);
};

struct memory {
  long mappings, addresses, resident; /* the last two in KB */
};

static const char *paths[2];

static struct library load(int copy) {
  struct library library = {dlopen(paths[copy], RTLD_NOW | RTLD_LOCAL), NULL, NULL, NULL};
  if (library.handle == NULL) {
    puts(dlerror());
    exit(2);
  }
  library.work = (void (*)(void))dlsym(library.handle, "library_work");
  library.get = (char *(*)(size_t))dlsym(library.handle, "library_get");
  library.put = (void (*)(char *))dlsym(library.handle, "library_put");
  return library;
}

static struct memory memory_now(void) {
  struct memory memory = {0, 0, 0};
  char line[1000];
  FILE *file = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, file))
    memory.mappings++;
  fclose(file);
  file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file))
    sscanf(line, "VmSize: %ld", &memory.addresses);
  fclose(file);
  file = fopen("/proc/self/smaps_rollup", "r"); /* exact, VmRSS is not */
  while (fgets(line, sizeof line, file))
    sscanf(line, "Rss: %ld", &memory.resident);
  fclose(file);
  return memory;
}

/* Whether MANY times of work leave no more than libc's own memory varies by. */
static int leaves_nothing(void (*work)(void)) {
  for (int i = 0; i < FEW; i++)
    work();
  struct memory before = memory_now();
  for (int i = 0; i < MANY; i++)
    work();
  struct memory after = memory_now();
  printf("mappings %ld %ld, addresses %ld %ld KB, resident %ld %ld KB\n", before.mappings,
         after.mappings, before.addresses, after.addresses, before.resident, after.resident);
  return after.mappings <= before.mappings + 5 && after.addresses <= before.addresses + 100
      && after.resident <= before.resident + 100;
}

static void use_one(void) {
  struct library library = load(0);
  library.work();
  dlclose(library.handle);
}

static void use_two(void) {
  struct library first = load(0), second = load(1);
  first.work();
  second.work();
  char *block = second.get(100);
  dlclose(first.handle);
  second.put(block);
  second.work();
  dlclose(second.handle);
}

static void *work_once(void *library) {
  ((struct library *)library)->work();
  return NULL;
}

static void use_in_ended_thread(void) {
  struct library library = load(0);
  pthread_t thread;
  pthread_create(&thread, NULL, work_once, &library);
  pthread_join(thread, NULL);
  dlclose(library.handle);
}

/* A thread that stays. */
static struct library shared;
static pthread_barrier_t begins, ends;

static void *work_for_ever(void *unused) {
  for (;;) {
    pthread_barrier_wait(&begins);
    shared.work();
    pthread_barrier_wait(&ends);
  }
  return unused;
}

static void use_in_living_thread(void) {
  shared = load(0);
  pthread_barrier_wait(&begins);
  pthread_barrier_wait(&ends);
  shared.work();
  dlclose(shared.handle);
}

int main(int count, char **arguments) {
  if (count < 3)
    return 2;
  paths[0] = arguments[1];
  paths[1] = arguments[2];
  promise("a library that is unloaded leaves nothing", leaves_nothing(use_one));
  promise("nor do two at once", leaves_nothing(use_two));
  promise("nor does one that a thread used which has ended", leaves_nothing(use_in_ended_thread));

  pthread_t thread;
  pthread_barrier_init(&begins, NULL, 2);
  pthread_barrier_init(&ends, NULL, 2);
  pthread_create(&thread, NULL, work_for_ever, NULL);
  promise("nor does one that a thread used which goes on, and uses the next one",
          leaves_nothing(use_in_living_thread));

  char *leaked[LEAKED];
  struct memory before = memory_now();
  for (int i = 0; i < LEAKED; i++) {
    struct library library = load(0);
    library.work();
    memset(leaked[i] = library.get(SIZE), i, SIZE);
    dlclose(library.handle);
  }
  struct memory after = memory_now();
  int is_kept = 1;
  for (int i = 0; i < LEAKED; i++)
    for (int place = 0; place < SIZE; place++)
      is_kept &= leaked[i][place] == (char)i;
  promise("a block in use outlives its library", is_kept);
  const char *settings = getenv("LANEMM");
  int has_debug_blocks = settings != NULL && strstr(settings, "debug") != NULL;
  promise("and needs two mappings, its pages, and four more at most, if it is no debug block",
          has_debug_blocks
              || (after.mappings <= before.mappings + 2 * LEAKED + 5
                  && after.resident <= before.resident + LEAKED * (SIZE / 1024 + 4 * 4) + 100));

  /* It frees a block of libc's: an invalid free would end the program. */
  void *elsewhere = dlmopen(LM_ID_NEWLM, paths[0], RTLD_NOW);
  promise("a library in a name space of its own frees blocks of the libc there",
          elsewhere != NULL && dlclose(elsewhere) == 0);

  struct library last = load(0); /* still loaded at the exit, with a thread that has a heap of it */
  last.work();
  shared = last;
  pthread_barrier_wait(&begins);
  pthread_barrier_wait(&ends);
  return counts();
}
