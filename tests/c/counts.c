/* lanemm_start_count and lanemm_stop_count: exact, of a thread or of all, nested, by line. */
#include "check.h"
#include <lanemm.h>
#include <pthread.h>

static void *kept(void *block) {
  __asm__ volatile("" : "+r"(block) : : "memory");
  return block;
}

/* 4 allocations, 4 frees, 2 resizes that move one block, 100 + 200 + 300 + 1000 + 50000 + 40000 bytes. */
static void *work(void *nothing) {
  void *first = kept(malloc(100)), *second = kept(calloc(2, 100)), *third = NULL;
  void *fourth = kept(realloc(NULL, 300));
  promise("an aligned block", posix_memalign(&third, 256, 1000) == 0);
  first = kept(realloc(first, 50000));
  first = kept(realloc(first, 40000));
  free(first);
  free(second);
  free(third);
  promise("a resize to 0 frees", realloc(fourth, 0) == NULL);
  return nothing;
}

static void run_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
}

static int is_work(const struct lanemm_counts *found, size_t times) {
  return found->allocations == 4 * times && found->frees == 4 * times && found->resizes == 2 * times
    && found->moves == times && found->bytes == 91600 * times;
}

static void note(const struct lanemm_counted_place *place, void *context) {
  *(size_t *)context += place->count;
}

int main(void) {
  struct lanemm_counts found, inner, again;
  size_t with_places = 0;

  run_thread(); /* what the first thread of libc allocates is there */
  memset(&found, 1, sizeof found);
  promise("there is no count at first", !lanemm_stop_count(&found, sizeof found, NULL, NULL));
  promise("and its numbers are zeros", is_zero(&found, sizeof found));

  promise("a count begins", lanemm_start_count(0, 0));
  work(NULL);
  promise("another one in it", lanemm_start_count(0, 0));
  work(NULL);
  promise("the inner one ends", lanemm_stop_count(&inner, sizeof inner, NULL, NULL));
  promise("the outer one ends", lanemm_stop_count(&found, sizeof found, NULL, NULL));
  promise("the inner one has its own calls", is_work(&inner, 1) && inner.peak >= 50000);
  promise("the outer one has all", is_work(&found, 2) && found.peak == inner.peak);

  work(NULL);
  lanemm_start_count(0, 0);
  run_thread();
  lanemm_stop_count(&again, sizeof again, NULL, NULL);
  promise("calls of other threads do not count", again.bytes < 91600);
  lanemm_start_count(1, 0);
  promise("one count is of all threads", !lanemm_start_count(1, 0));
  run_thread();
  lanemm_stop_count(&found, sizeof found, NULL, NULL);
  promise("unless all do", found.allocations == again.allocations + 4 && found.resizes == 2);

  memset(&found, 1, sizeof found);
  lanemm_start_count(0, 1);
  work(NULL);
  lanemm_stop_count(&found, sizeof(size_t), note, &with_places);
  promise("a program with an older header gets its fields", found.allocations == 4 && found.frees != 4);
  promise("the lines have all allocations", with_places == 4);
  return counts();
}
