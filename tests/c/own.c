/* A program with the four functions of malloc that it needs: the library leaves it alone. */
#define _GNU_SOURCE
#include <pthread.h>

#include "check.h"

enum { POOL = 1 << 24 };

static _Alignas(16) char pool[POOL];
static size_t used;
static unsigned others;
static volatile size_t half = SIZE_MAX / 2 + 1; /* volatile: no warning */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_own(const void *block) {
  return (const char *)block >= pool && (const char *)block < pool + POOL;
}

void *malloc(size_t size) {
  size_t *block = NULL;
  size = (size + 31) / 16 * 16;
  pthread_mutex_lock(&lock);
  if (size < POOL - used) {
    block = (size_t *)(pool + used) + 2;
    block[-2] = size - 16;
    used += size;
  }
  pthread_mutex_unlock(&lock);
  return block;
}

void free(void *block) {
  others += block != NULL && !is_own(block);
}

void *calloc(size_t count, size_t size) {
  return malloc(count * size); /* the pool holds zeros */
}

void *realloc(void *block, size_t size) {
  void *next = malloc(size);
  others += block != NULL && !is_own(block);
  if (next && block && is_own(block)) {
    size_t length = ((size_t *)block)[-2];
    memcpy(next, block, length < size ? length : size);
  }
  return next;
}

static void *use(void *unused) {
  free(strdup("a text"));
  return unused;
}

int main(void) {
  check_use_all();
  char *block = malloc(100), *text = NULL;
  content_write(block, 100, 1);
  block = reallocarray(block, 100, 100);
  promise("reallocarray calls the program's realloc", is_own(block) && content_is(block, 100, 100, 1));
  free(block);
  block = reallocarray(NULL, 10, 10);
  promise("also for a new block", is_own(block));
  free(block);
  promise("and notices a product that wraps", reallocarray(NULL, half, 2) == NULL && errno == ENOMEM);
  promise("libc's blocks are the program's", asprintf(&text, "%d", 12345) == 5 && is_own(text));
  free(text);
  pthread_t thread;
  promise("a thread runs", pthread_create(&thread, NULL, use, NULL) == 0 && pthread_join(thread, NULL) == 0);
  promise("no block of others comes to the program", others == 0);
  return counts();
}
