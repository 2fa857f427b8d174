/* What a program must not do: double frees end it with a message, pointers of nobody are ignored. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char *volatile block;

static void free_twice(void) {
  block = malloc(100);
  free(block);
  free(block);
}

static void free_large_twice(void) {
  block = malloc(1000000);
  free(block);
  free(block);
}

static void free_inside(void) {
  block = malloc(100);
  free(block + 16);
}

static void *free_it(void *ignored) {
  free(block);
  return ignored;
}

static void free_twice_in_threads(void) {
  block = malloc(100);
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, free_it, NULL);
    pthread_join(thread, NULL);
  }
}

static void resize_freed(void) {
  block = malloc(100);
  free(block);
  block = realloc(block, 100000);
}

/* Whether a child that does this is aborted and says why. */
static int is_aborted(void (*action)(void)) {
  int ends[2], status = 0;
  char text[200] = "";
  if (pipe(ends) != 0)
    return 0;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 2);
    action();
    _exit(0);
  }
  close(ends[1]);
  ssize_t length = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  waitpid(pid, &status, 0);
  return length > 0 && strstr(text, "LaneMM") && WIFSIGNALED(status)
      && WTERMSIG(status) == SIGABRT;
}

int main(void) {
  check_use_all();
  static char no_block[100];
  promise("a double free ends the program with a message", is_aborted(free_twice));
  promise("so does one of a large block", is_aborted(free_large_twice));
  promise("so does one by other threads", is_aborted(free_twice_in_threads));
  promise("so does a free inside a block", is_aborted(free_inside));
  promise("so does the realloc of a freed block", is_aborted(resize_freed));
  block = no_block;
  free(block + 16);
  errno = 0;
  promise("pointers of nobody are ignored, and not resized",
          realloc(block + 16, 10) == NULL && errno == ENOMEM
              && malloc_usable_size(block + 16) == 0);
  return counts();
}
