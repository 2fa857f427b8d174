/* Regions: lanemm_region_create and what follows it in include/lanemm.h.
 *
 *   regions [debug]     debug: what holds in debug mode, too */
#define _GNU_SOURCE
#include <lanemm.h>

#include <malloc.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* jemalloc's, which the library has. */
enum { ALIGN_4096 = 12 };
size_t xallocx(void *block, size_t size, size_t extra, int flags);
void *rallocx(void *block, size_t size, int flags);

static lanemm_region region;

static struct lanemm_region_status state_of(lanemm_region which) {
  struct lanemm_region_status result;
  lanemm_region_state(which, &result, sizeof result);
  return result;
}

static size_t blocks_of(lanemm_region which) {
  return state_of(which).block_count;
}

/* Returns what the calls write to stderr, in a buffer of its own. */
static int saved_stderr, reading_end;

static void hear(void) {
  int ends[2];
  fflush(stderr);
  saved_stderr = dup(STDERR_FILENO);
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
    abort();
  close(ends[1]);
  reading_end = ends[0];
}

static const char *heard(void) {
  static char text[1000];
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);
  ssize_t length = read(reading_end, text, sizeof text - 1);
  close(reading_end);
  text[length < 0 ? 0 : length] = 0;
  return text;
}

/* ---------------------------------------------------------------------------- scopes */

static void *aligned(size_t alignment, size_t size) {
  void *block = NULL;
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void test_scopes(void) {
  static const size_t alignments[] = {32, 64, 256, 4096, 65536, 1 << 17, 1 << 20};
  static const size_t sizes[] = {1, 100, 5000, 100000, 3000000};
  int are_in = 1, are_aligned = 1, are_zero = 1;
  void *outside = malloc(100);
  lanemm_region inner = lanemm_region_create("inner", 0);
  int is_entered = lanemm_region_enter(region);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char *plain = malloc(sizes[i]), *zeros = calloc(1, sizes[i]);
    are_in &= lanemm_region_of(plain) == region && lanemm_region_of(zeros) == region;
    are_zero &= is_zero(zeros, sizes[i]);
    memset(plain, 1, sizes[i]);
    for (size_t j = 0; j < sizeof alignments / sizeof *alignments; j++) {
      void *block = aligned(alignments[j], sizes[i]);
      are_in &= lanemm_region_of(block) == region;
      are_aligned &= is_aligned(block, alignments[j]) && malloc_usable_size(block) >= sizes[i];
      memset(block, 2, sizes[i]);
      if (j % 2 == 0)
        free(block);
    }
  }
  lanemm_region_enter(inner);
  void *of_inner = malloc(100);
  lanemm_region_leave();
  void *of_region = malloc(100);
  int is_left = lanemm_region_leave();
  void *outside_again = malloc(100);
  promise("a scope is entered and left", is_entered && is_left);
  promise("blocks of a scope are those of its region, at each size and alignment", are_in);
  promise("an aligned block of a region has its alignment and size", are_aligned);
  promise("calloc gives zeros in a region", are_zero);
  promise("scopes nest", lanemm_region_of(of_inner) == inner && lanemm_region_of(of_region) == region);
  promise("blocks outside of scopes belong to no region",
          lanemm_region_of(outside) == 0 && lanemm_region_of(outside_again) == 0);
  free(outside);
  free(outside_again);
  promise("regions are freed one by one", lanemm_region_free(inner) && lanemm_region_reset(region));
  struct lanemm_region_status empty = state_of(region);
  promise("a region that was reset has no block", empty.block_count == 0 && empty.used_bytes == 0);
  promise("the state has name, peak and limit", strcmp(empty.name, "tests") == 0 && empty.limit == 0
          && empty.peak_bytes >= 3000000 && empty.committed_bytes < empty.peak_bytes);
}

static void test_without_scope(void) {
  char *block = lanemm_region_malloc(region, 1000);
  char *zeros = lanemm_region_calloc(region, 1000, 100);
  promise("blocks are allocated without a scope",
          lanemm_region_of(block) == region && lanemm_region_of(zeros) == region
              && blocks_of(region) == 2 && is_zero(zeros, 100000));
  errno = 0;
  promise("a product that is too large is refused with ENOMEM",
          lanemm_region_calloc(region, SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
  errno = 0;
  free(block);
  free(zeros);
  promise("free of a region's blocks leaves errno", errno == 0);
  promise("they are freed one by one, out of the scope", blocks_of(region) == 0);
}

/* ---------------------------------------------------------------------------- resizes */

static void test_resizes(void) {
  static const size_t sizes[] = {5000, 500000, 5000000, 60000, 200, 20, 3000};
  int stays = 1, stays_outside = 1, is_same = 1;
  char *block = lanemm_region_malloc(region, 100), *outside = malloc(100);
  content_write(block, 16, 1);
  content_write(outside, 16, 2);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    block = realloc(block, sizes[i]);
    stays &= lanemm_region_of(block) == region;
    lanemm_region_enter(region);
    outside = realloc(outside, sizes[i]);
    lanemm_region_leave();
    stays_outside &= lanemm_region_of(outside) == 0;
    is_same &= content_is(block, 16, 16, 1) && content_is(outside, 16, 16, 2);
  }
  promise("a block that realloc moves stays in its region", stays);
  promise("a block of none stays outside when it is resized in a scope", stays_outside);
  promise("resized blocks keep their contents", is_same);
  promise("each is one block", blocks_of(region) == 1);
  block = rallocx(block, 30000, ALIGN_4096);
  promise("rallocx keeps the region and the alignment",
          lanemm_region_of(block) == region && is_aligned(block, 4096));
  block = realloc(block, 300000);
  size_t got = xallocx(block, 3000000, 0, 0);
  promise("xallocx takes no memory that the region does not count",
          got == malloc_usable_size(block) && state_of(region).committed_bytes >= got);
  free(block);
  free(outside);
  lanemm_region_trim(region);
  promise("a freed large block is no memory of the region any more",
          blocks_of(region) == 0 && state_of(region).committed_bytes < 300000);
}

/* ---------------------------------------------------------------------------- refusals */

static void test_refusals(void) {
  hear();
  lanemm_region_enter(region);
  char *block = malloc(100);
  content_write(block, 100, 7);
  errno = 0;
  int is_freed = lanemm_region_free(region), error = errno;
  int is_reset = lanemm_region_reset(region);
  lanemm_region_leave();
  const char *text = heard();
  promise("free and reset are refused while the thread is inside, with EBUSY",
          !is_freed && !is_reset && error == EBUSY && content_is(block, 100, 100, 7));
  promise("a line names the call and the region",
          strstr(text, "LaneMM: lanemm_region_free \"tests\": not done, a thread is in the region\n")
              && strstr(text, "lanemm_region_reset \"tests\": not done"));
  hear();
  errno = 0;
  promise("leave without a scope is refused", !lanemm_region_leave() && errno == EINVAL);
  promise("leave without a scope is a line", strstr(heard(), "lanemm_region_leave: the thread is in") != NULL);
  lanemm_region gone = lanemm_region_create(NULL, 0);
  lanemm_region_free(gone);
  hear();
  int is_einval = 1;
  errno = 0;
  is_einval &= lanemm_region_malloc(gone, 10) == NULL && errno == EINVAL;
  errno = 0;
  is_einval &= lanemm_region_calloc(gone, 10, 10) == NULL && errno == EINVAL;
  errno = 0;
  is_einval &= !lanemm_region_enter(gone) && errno == EINVAL;
  errno = 0;
  is_einval &= !lanemm_region_free(gone) && errno == EINVAL;
  is_einval &= !lanemm_region_enter(0) && !lanemm_region_reset(0);
  errno = 0;
  is_einval &= !lanemm_region_free((lanemm_region)-4096) && errno == EINVAL;
  is_einval &= lanemm_region_malloc(12345, 10) == NULL && state_of(12345).limit == 0;
  struct lanemm_region_status none = state_of(gone);
  text = heard();
  promise("a region that was freed, or a number that is none, is EINVAL for each call", is_einval);
  promise("its state is zeros", is_zero(&none, sizeof none));
  promise("it is a line", strstr(text, "LaneMM: lanemm_region_malloc: no such region")
                          && strstr(text, "LaneMM: lanemm_region_enter: no such region"));
  hear();
  lanemm_region_walk(region, NULL, NULL);
  lanemm_visit_blocks(NULL, NULL);
  int is_on = lanemm_on_pressure(NULL, NULL);
  text = heard();
  promise("without a routine to call a walk is a line",
          strstr(text, "LaneMM: lanemm_region_walk: no routine to call\n")
              && strstr(text, "LaneMM: lanemm_visit_blocks: no routine to call\n"));
  promise("so is a call under pressure, which is not registered",
          !is_on && strstr(text, "LaneMM: lanemm_on_pressure: no routine to call\n"));
  promise("no region has the null pointer, a variable, or a freed block's place",
          lanemm_region_of(NULL) == 0 && lanemm_region_of(&none) == 0);
  lanemm_region_reset(region);
}

static void test_limit(void) {
  enum { LIMIT = 1 << 20 };
  lanemm_region limited = lanemm_region_create("limited", LIMIT);
  size_t count = 0;
  void *block, *last = NULL, *other = NULL;
  errno = 0;
  while (count < LIMIT && (block = lanemm_region_malloc(limited, 1000)) != NULL) {
    last = block;
    count++;
  }
  promise("a region at its limit refuses a block, with ENOMEM", count < LIMIT / 1000 && errno == ENOMEM);
  promise("it has had nearly all of it", count > LIMIT / 2 / 1000);
  lanemm_region_enter(limited);
  errno = 0;
  int is_refused = malloc(LIMIT) == NULL && errno == ENOMEM;
  errno = 0;
  is_refused &= calloc(LIMIT, 2) == NULL && errno == ENOMEM;
  errno = 0;
  is_refused &= realloc(last, LIMIT) == NULL && errno == ENOMEM;
  is_refused &= posix_memalign(&other, 64, LIMIT) == ENOMEM;
  is_refused &= posix_memalign(&other, 1 << 17, LIMIT) == ENOMEM;
  lanemm_region_leave();
  errno = 0;
  is_refused &= realloc(last, LIMIT) == NULL && errno == ENOMEM;
  promise("so do malloc, calloc, realloc and posix_memalign in its scope", is_refused);
  char *outside = malloc(2 * LIMIT);
  promise("others get memory", outside != NULL && lanemm_region_of(outside) == 0);
  free(outside);
  promise("a block is made smaller at the limit", realloc(last, 10) != NULL);
  struct lanemm_region_status full = state_of(limited);
  promise("the limit is exact", full.peak_bytes <= LIMIT && full.limit == LIMIT);
  lanemm_region_reset(limited);
  promise("after a reset it has memory again", lanemm_region_malloc(limited, LIMIT / 2) != NULL);
  promise("and can be freed", lanemm_region_free(limited));
}

/* ---------------------------------------------------------------------------- walks */

struct visit {
  void *wanted;
  int seen, count;
};

static void see(void *block, size_t usable_size, void *context) {
  struct visit *visit = context;
  visit->count++;
  visit->seen += block == visit->wanted && usable_size >= 777;
}

static void test_walk(void) {
  void *outside = malloc(777);
  struct visit visit = {lanemm_region_malloc(region, 777), 0, 0};
  lanemm_region_malloc(region, 100000);
  lanemm_region_walk(region, see, &visit);
  promise("a walk sees the blocks of the region alone, each once", visit.seen == 1 && visit.count == 2);
  struct lanemm_region_status part;
  memset(&part, 0xA5, sizeof part);
  lanemm_region_state(region, &part, sizeof part.block_count);
  promise("an older header gets the part that it knows",
          part.block_count == 2 && part.used_bytes == (size_t)0xA5A5A5A5A5A5A5A5ull);
  free(outside);
  lanemm_region_reset(region);
}

/* ---------------------------------------------------------------------------- threads */

enum { THREADS = 4, REGIONS = 3, SLOTS = 64, ROUNDS = 200 };

static lanemm_region shared[REGIONS];
static pthread_barrier_t meeting;

struct worker {
  uint64_t seed;
  unsigned errors;
  void *handed[SLOTS]; /* blocks that the next thread frees */
  struct worker *before;
};

/* Changes blocks of all regions and of none, in and out of scopes; hands some to another thread. */
static void *work(void *argument) {
  struct worker *worker = argument;
  uint64_t random = worker->seed;
  char *blocks[SLOTS] = {0};
  size_t sizes[SLOTS] = {0};
  for (int round = 0; round < ROUNDS; round++) {
    lanemm_region_enter(shared[next_random(&random) % REGIONS]);
    for (int i = 0; i < SLOTS; i++) {
      worker->errors += !content_is(blocks[i], sizes[i], sizes[i], worker->seed + i);
      if (next_random(&random) % 3 == 0) {
        free(blocks[i]);
        blocks[i] = NULL;
        sizes[i] = 0;
        continue;
      }
      sizes[i] = 1 + random_size(&random, 12);
      if (next_random(&random) % 64 == 0)
        sizes[i] += 100000;
      if (next_random(&random) % 4 == 0) {
        free(blocks[i]);
        if (posix_memalign((void **)&blocks[i], 128, sizes[i]) != 0)
          blocks[i] = NULL;
      } else {
        blocks[i] = realloc(blocks[i], sizes[i]);
      }
      content_write(blocks[i], sizes[i], worker->seed + i);
      if (next_random(&random) % 16 == 0) {
        lanemm_region_leave();
        lanemm_region_enter(shared[next_random(&random) % REGIONS]);
      }
    }
    lanemm_region_leave();
  }
  memcpy(worker->handed, blocks, sizeof blocks);
  pthread_barrier_wait(&meeting);
  for (int i = 0; i < SLOTS; i++)
    free(worker->before->handed[i]);
  lanemm_region_enter(shared[0]); /* the end of the thread leaves it */
  return NULL;
}

static void test_threads(void) {
  static struct worker workers[THREADS];
  pthread_t threads[THREADS];
  unsigned errors = 0;
  size_t left = 0;
  int are_freed = 1;
  pthread_barrier_init(&meeting, NULL, THREADS);
  for (int i = 0; i < REGIONS; i++)
    shared[i] = lanemm_region_create("shared", 0);
  for (int i = 0; i < THREADS; i++) {
    workers[i].seed = 1000 * (i + 1);
    workers[i].before = &workers[(i + THREADS - 1) % THREADS];
  }
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, &workers[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    errors += workers[i].errors;
  }
  for (int i = 0; i < REGIONS; i++) {
    left += blocks_of(shared[i]);
    are_freed &= lanemm_region_free(shared[i]);
  }
  promise("blocks of threads in the same regions keep their contents", errors == 0);
  promise("blocks that other threads freed are counted so", left == 0);
  promise("threads that end leave their scopes", are_freed);
}

static void *have_variable(void *argument) {
  static __thread char variable[100];
  memset(variable, 1, sizeof variable);
  return argument;
}

/* libc keeps stacks of ended threads for others: these are larger than those that it has. */
static int run_threads(void) {
  pthread_t threads[THREADS];
  pthread_attr_t attributes;
  int are_run = pthread_attr_init(&attributes) == 0
      && pthread_attr_setstacksize(&attributes, 32 << 20) == 0;
  for (int i = 0; i < THREADS; i++)
    are_run &= pthread_create(&threads[i], &attributes, have_variable, NULL) == 0;
  for (int i = 0; i < THREADS; i++)
    are_run &= pthread_join(threads[i], NULL) == 0;
  pthread_attr_destroy(&attributes);
  return are_run;
}

/* A static program has libc's pthread_create. */
static void test_started_inside(void) {
  if (getauxval(AT_BASE) == 0)
    return;
  size_t before = blocks_of(region);
  lanemm_region_enter(region);
  int are_run = run_threads();
  int is_inside = lanemm_region_of(malloc(10)) == region || blocks_of(region) == before + 1;
  lanemm_region_leave();
  promise("libc keeps nothing of threads that are started in a scope in the region",
          are_run && is_inside && blocks_of(region) == before + 1);
  lanemm_region_reset(region);
  void *blocks[SLOTS];
  for (int i = 0; i < SLOTS; i++)
    memset(blocks[i] = malloc(300), 0xEE, 300);
  promise("so it can use their stacks when the region is empty", run_threads());
  for (int i = 0; i < SLOTS; i++)
    free(blocks[i]);
}

static pthread_barrier_t inside;

static void *stay(void *argument) {
  (void)argument;
  lanemm_region_enter(region);
  pthread_barrier_wait(&inside);
  pthread_barrier_wait(&inside);
  lanemm_region_leave();
  return NULL;
}

static void test_other_inside(void) {
  pthread_t thread;
  pthread_barrier_init(&inside, NULL, 2);
  pthread_create(&thread, NULL, stay, NULL);
  pthread_barrier_wait(&inside);
  hear();
  int is_freed = lanemm_region_free(region);
  heard();
  char *block = lanemm_region_malloc(region, 100);
  pthread_barrier_wait(&inside);
  pthread_join(thread, NULL);
  promise("free is refused while another thread is inside", !is_freed);
  promise("blocks are allocated meanwhile", lanemm_region_of(block) == region);
  promise("and freed after it has left", lanemm_region_reset(region) && blocks_of(region) == 0);
}

static void test_fork(void) {
  lanemm_region_malloc(region, 100);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0)
    _exit(lanemm_region_malloc(region, 100) == NULL || blocks_of(region) < 2
          || !lanemm_region_free(region));
  int status = -1;
  waitpid(child, &status, 0);
  promise("a child process allocates in a region and frees it", status == 0);
  promise("which stays as it was here", blocks_of(region) == 1);
}

/* Debug blocks lie in no region's spans, but they are freed with it. */
static void test_debug(void) {
  char *kept = malloc(100);
  strcpy(kept, "kept");
  lanemm_region_enter(region);
  char *block = malloc(100);
  void *wide = aligned(4096, 100000);
  lanemm_region_leave();
  promise("debug blocks are counted with the region", blocks_of(region) == 2 && wide != NULL);
  block = realloc(block, 1000);
  memset(block, 0, 1000);
  promise("one that is resized outside stays in the region", blocks_of(region) == 2);
  lanemm_region_enter(region);
  kept = realloc(kept, 10000);
  lanemm_region_leave();
  promise("one of none that is resized in a scope stays outside", blocks_of(region) == 2);
  promise("the region is reset", lanemm_region_reset(region));
  promise("which leaves it whole", strcmp(kept, "kept") == 0);
  free(kept);
  promise("debug blocks are freed with it", blocks_of(region) == 0);
  free(lanemm_region_malloc(region, 10));
  free(lanemm_region_calloc(region, 10, 10));
}

int main(int count, char **arguments) {
  (void)arguments;
  check_use_all();
  setvbuf(stdout, NULL, _IONBF, 0); /* no scope allocates its buffer */
  region = lanemm_region_create("tests", 0);
  promise("a region is made", region != 0);
  if (count > 1) {
    test_debug();
    test_started_inside();
  } else {
    test_scopes();
    test_without_scope();
    test_resizes();
    test_refusals();
    test_limit();
    test_walk();
    test_started_inside();
    test_threads();
    test_other_inside();
    test_fork();
  }
  promise("at last the region is freed", lanemm_region_free(region));
  return counts();
}
