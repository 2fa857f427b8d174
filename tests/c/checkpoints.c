/* lanemm_leaks_since and lanemm_reachable_since: what is lost since a checkpoint, and nothing else. */
#include "check.h"
#include <lanemm.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct node {
  struct node *next;
  char text[100];
};

struct found {
  size_t nodes, others;
};

static struct node *of_program;
static __thread struct node *of_thread;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void note(const struct lanemm_leak *leak, void *context) {
  struct found *found = context;
  if (leak->count * sizeof(struct node) == leak->bytes)
    found->nodes += leak->count;
  else
    found->others += leak->count;
}

__attribute__((noinline)) static struct node *make(struct node *next) {
  struct node *made = malloc(sizeof *made);
  made->next = next;
  __asm__ volatile("" : "+r"(made));
  return made;
}

__attribute__((noinline)) static void lose(int count) {
  while (count-- > 0)
    make(NULL);
}

/* Overwrites what ended functions have left on the stack. */
__attribute__((noinline)) static void clear_stack(void) {
  volatile char words[16384];
  for (size_t i = 0; i < sizeof words; i++)
    words[i] = 0;
}

static void *hold_and_lose(void *nothing) {
  (void)nothing;
  of_thread = make(NULL);
  lose(1);
  pthread_mutex_lock(&turn); /* until the program has looked */
  pthread_mutex_unlock(&turn);
  free(of_thread);
  return NULL;
}

int main(void) {
  struct found lost = {0, 0}, reached = {0, 0};
  struct node *local;
  pthread_t thread;
  size_t start;

  lose(2);
  start = lanemm_checkpoint();
  promise("nothing is new right after a checkpoint", lanemm_leaks_since(start, NULL, NULL) == 0);
  local = make(make(NULL));
  of_program = make(NULL);
  of_thread = make(NULL);
  lose(3);
  clear_stack();
  promise("all that is lost is counted", lanemm_leaks_since(start, note, &lost) == 3);
  promise("and visited", lost.nodes == 3 && lost.others == 0);
  lanemm_reachable_since(start, note, &reached);
  promise("variables, and what they lead to, are reached", reached.nodes == 4);

  start = lanemm_checkpoint();
  pthread_mutex_lock(&turn);
  promise("a thread starts", pthread_create(&thread, NULL, hold_and_lose, NULL) == 0);
  pthread_mutex_unlock(&turn);
  pthread_join(thread, NULL);
  clear_stack();
  lost.nodes = 0;
  lanemm_leaks_since(start, note, &lost);
  promise("what an ended thread has lost is counted", lost.nodes == 1 && lost.others == 0);

  free(local->next);
  free(local);
  free(of_program);
  free(of_thread);
  return counts();
}
