/* Wanders through routines of many kinds, which take and free blocks, in two threads. For each
 * block of a size of its own it prints the size and the routines on the stack when the block was
 * allocated and when it was freed, the innermost first: what the log says of it. For watched.sh.
 *
 *   wander [SEED] */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>

#include "check.h"

enum { DEPTH = 14, KEPT = 40, THREADS = 2, SMALL = 400 };
/* Blocks of a size of their own: for each thread, one in so many. */
enum { MARKED = 60, FIRST_SIZE = 20000, RARE = 10 };

struct kept {
  char *block;
  unsigned size;
  char path[DEPTH + 1];
};

struct walk {
  uint64_t random;
  unsigned depth, marked, size;
  volatile unsigned sum;
  char path[DEPTH + 1]; /* a letter for each routine, the outermost first */
  struct kept kept[KEPT];
};

static __thread struct walk *current;

static unsigned below(struct walk *walk, unsigned limit) {
  return next_random(&walk->random) % limit;
}

/* Writes the path, the innermost first; `-` for none. */
static void read_path(const struct walk *walk, char *path) {
  for (unsigned i = 0; i < walk->depth; i++)
    *path++ = walk->path[walk->depth - 1 - i];
  if (walk->depth == 0)
    *path++ = '-';
  *path = 0;
}

/* The only routines that allocate and free, as in many programs. */
__attribute__((noinline)) static char *take(size_t size) {
  char *block = malloc(size);
  if (block == NULL)
    exit(3);
  return block;
}

__attribute__((noinline)) static void put(struct walk *walk, char *block) {
  free(block);
  walk->sum++; /* no tail call: the routine stays on the stack */
}

__attribute__((noinline)) static void put_kept(struct walk *walk, struct kept *kept) {
  char path[DEPTH + 1];
  read_path(walk, path);
  if (kept->size >= FIRST_SIZE)
    printf("%u %s %s\n", kept->size, kept->path, path);
  put(walk, kept->block);
  kept->block = NULL;
}

__attribute__((noinline)) static void use(struct walk *walk) {
  struct kept *kept = &walk->kept[below(walk, KEPT)];
  if (kept->block != NULL)
    put_kept(walk, kept);
  kept->size = 1 + below(walk, SMALL);
  if (below(walk, RARE) == 0 && walk->marked > 0) {
    walk->marked--;
    kept->size = walk->size++;
  }
  read_path(walk, kept->path);
  kept->block = take(kept->size);
}

static void go_on(struct walk *walk);

__attribute__((noinline)) static void go_a(struct walk *walk) {
  go_on(walk);
  walk->sum++;
}

__attribute__((noinline)) static void go_b(struct walk *walk) {
  volatile char bytes[300];
  bytes[below(walk, sizeof bytes)] = 1;
  go_on(walk);
  walk->sum += bytes[0];
}

/* It has a frame pointer. */
__attribute__((noinline)) static void go_c(struct walk *walk) {
  unsigned size = 1 + below(walk, 200);
  volatile char *bytes = alloca(size);
  bytes[0] = 1;
  go_on(walk);
  walk->sum += bytes[0];
}

/* It aligns its stack: a word there leads to the caller. */
__attribute__((noinline)) static void go_d(struct walk *walk) {
  _Alignas(64) volatile char bytes[64];
  volatile char *more = alloca(1 + below(walk, 100));
  more[0] = bytes[0] = 1;
  go_on(walk);
  walk->sum += more[0] + bytes[0];
}

/* It keeps values in all registers that its callees save, that of frame pointers among them. */
__attribute__((noinline)) static void go_e(struct walk *walk) {
  unsigned a = below(walk, 9), b = below(walk, 9), c = below(walk, 9), d = below(walk, 9);
  unsigned e = below(walk, 9), f = below(walk, 9), g = below(walk, 9);
  go_on(walk);
  walk->sum += a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + g * 13;
}

static int compare(const void *first, const void *second) {
  go_on(current);
  return *(const int *)first - *(const int *)second;
}

/* By way of libc. */
__attribute__((noinline)) static void go_f(struct walk *walk) {
  int numbers[2] = {2, 1};
  qsort(numbers, 2, sizeof numbers[0], compare);
  walk->sum += numbers[0];
}

/* Rarely one that aligns its stack: within it, all frames are walked each time. */
static void go_deeper(struct walk *walk) {
  static void (*const routines[])(struct walk *) = {go_a, go_b, go_c, go_e, go_f, go_a, go_e, go_d};
  unsigned i = below(walk, 8);
  if (i == 7)
    i = below(walk, 8);
  walk->path[walk->depth++] = "abcefaed"[i];
  routines[i](walk);
  walk->depth--;
}

__attribute__((noinline)) static void go_on(struct walk *walk) {
  for (unsigned turns = 1 + below(walk, 3); turns > 0; turns--) {
    if (below(walk, 3) == 0)
      use(walk);
    if (walk->depth < DEPTH && below(walk, 3) > 0)
      go_deeper(walk);
  }
}

static void *wander(void *argument) {
  struct walk *walk = current = argument;
  while (walk->marked > 0)
    go_on(walk);
  for (unsigned i = 0; i < KEPT; i++)
    if (walk->kept[i].block != NULL)
      put_kept(walk, &walk->kept[i]);
  return NULL;
}

int main(int count, char **arguments) {
  static struct walk walks[THREADS];
  pthread_t threads[THREADS];
  unsigned seed = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
  check_use_all();
  for (unsigned i = 0; i < THREADS; i++) {
    walks[i].random = seed * 1000003ull + i + 1;
    walks[i].marked = MARKED;
    walks[i].size = FIRST_SIZE + i * MARKED;
    pthread_create(&threads[i], NULL, wander, &walks[i]);
  }
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  return 0;
}
