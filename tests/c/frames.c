/* backtrace() of libc unwinds the library like any code: at the abort after a double free, and in a
 * signal handler at each of its instructions. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

enum { BLOCKS = 20, FRAMES = 64, DEPTH = 8, STEP_FLAG = 0x100, SAMPLES = 300 };

/* The frames that all backtraces below descend must end with. */
static void *outer[FRAMES];
static int outer_count;
static volatile long seen, whole;

static void look(int signal) {
  void *frames[FRAMES];
  int count = backtrace(frames, FRAMES);
  (void)signal;
  seen++;
  whole += count > outer_count
      && memcmp(frames + count - outer_count, outer, outer_count * sizeof *outer) == 0;
}

/* Calls work below DEPTH frames of its own; the frames above this one are kept. */
__attribute__((noinline)) static int descend(int depth, void (*work)(void)) {
  if (depth > 0)
    return descend(depth - 1, work) + 1;
  outer_count = backtrace(outer, FRAMES) - 1;
  memmove(outer, outer + 1, outer_count * sizeof *outer);
  work();
  return 1;
}

static char *volatile block;
static char *volatile blocks[BLOCKS];

__attribute__((noinline)) static void free_twice(void) {
  block = malloc(100);
  free(block);
  free(block);
  block = NULL; /* no tail call: the routine stays on the stack */
}

static void end_child(int signal) {
  look(signal);
  _exit(whole == 1 ? 77 : 78);
}

/* Whether the backtrace of the abort in a child reaches the routine that freed twice and main. */
static int is_whole_at_abort(void) {
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) {
    close(2);
    signal(SIGABRT, end_child);
    descend(DEPTH, free_twice);
    _exit(0);
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 77;
}

/* Blocks of all kinds, by all calls: taken, resized and freed. */
__attribute__((noinline)) static void use_heap(void) {
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = i % 3 ? malloc(16 << i % 6) : calloc(7, i % 9);
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = realloc(blocks[i], i % 2 ? 600 : 24);
  for (int i = 0; i < BLOCKS; i++)
    free(blocks[i]);
  for (int i = 0; i < 4; i++)
    free(memalign(64 << i * 4, 100));
  block = realloc(malloc(50000), 500000);
  malloc_usable_size(block);
  free(block);
  malloc_trim(0);
}

static void *free_block(void *ignored) {
  for (int i = 0; i < BLOCKS; i++)
    free(blocks[i]);
  return ignored;
}

/* Sets and clears the trap flag of the code that raises the signal. */
static void set_step(int signal, siginfo_t *info, void *context) {
  long long *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
  (void)info;
  *flags = signal == SIGUSR1 ? *flags | STEP_FLAG : *flags & ~STEP_FLAG;
}

static void step_on(void) {
  raise(SIGUSR1);
}

static void step_off(void) {
  raise(SIGUSR2);
}

/* A trap after each instruction. */
__attribute__((noinline)) static void step_heap(void) {
  step_on();
  use_heap();
  step_off();
}

static void *step_thread(void *ignored) {
  step_on();
  free_block(NULL); /* of another thread */
  block = malloc(50); /* the first one of this thread */
  step_off();
  return ignored;
}

static void *descend_in_thread(void *ignored) {
  descend(DEPTH, (void (*)(void))(void *)step_thread);
  return ignored;
}

static void sample_heap(void) {
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &often, NULL);
  while (seen < SAMPLES)
    use_heap();
  setitimer(ITIMER_PROF, &never, NULL);
}

static int are_all_whole(const char *name, long least) {
  printf("%s: %ld of %ld backtraces are whole\n", name, whole, seen);
  fflush(stdout);
  int is_kept = seen >= least && whole == seen;
  seen = whole = 0;
  return is_kept;
}

int main(void) {
  pthread_t thread;
  check_use_all();
  backtrace(outer, FRAMES); /* loads the unwinder */
  promise("a double free is traced back to the routine that did it", is_whole_at_abort());

  struct sigaction action = {.sa_sigaction = set_step, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  signal(SIGTRAP, look);
  descend(DEPTH, step_heap);
  promise("every instruction can be unwound", are_all_whole("steps", 10000));
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = malloc(i * 100);
  pthread_create(&thread, NULL, descend_in_thread, NULL);
  pthread_join(thread, NULL);
  promise("also in a new thread that frees blocks of another", are_all_whole("thread", 500));
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = NULL;

  signal(SIGPROF, look);
  descend(DEPTH, sample_heap);
  promise("a profiler's samples are whole", are_all_whole("samples", SAMPLES));
  return counts();
}
