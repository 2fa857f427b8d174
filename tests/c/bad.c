/* What a program must not do: double frees and pointers that are no heap blocks end it with a message;
 * blocks of libc's own malloc go back there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#ifdef __GLIBC__
#define LIBC "libc"
#else
#define LIBC "is in the data of " /* of libc, or of a static program */
#endif

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

static void free_block(void) {
  free(block);
}

static void resize_block(void) {
  block = realloc(block, 1000);
}

static void measure_block(void) {
  *block = (char)malloc_usable_size(block);
}

/* Whether a child that does this is aborted with one line that has both texts. */
static int is_aborted_with(void (*action)(void), const char *first, const char *second) {
  int ends[2], status = 0;
  char text[1000] = "";
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
  return length > 0 && strstr(text, "LaneMM: ") == text && strstr(text, first)
      && strstr(text, second) && strchr(text, '\n') == text + length - 1 && WIFSIGNALED(status)
      && WTERMSIG(status) == SIGABRT;
}

static char in_data[100] = "x", in_bss[100];
static __thread char in_thread[100];
static int ends_of_threads[2];

static void *have_stack(void *place) {
  char in_stack[100] = "", end;
  *(char *volatile *)place = in_stack + 50;
  return read(ends_of_threads[0], &end, 1) == 1 ? place : NULL;
}

/* free, realloc and malloc_usable_size of an address say what it is in. */
static void refuse(const char *kind, void *address, const char *text) {
  char line[100];
  block = address;
  snprintf(line, sizeof line, "no call takes %s", kind);
  promise(line, is_aborted_with(free_block, "invalid free: ", text)
      && is_aborted_with(resize_block, "invalid realloc: ", text)
      && is_aborted_with(measure_block, "invalid malloc_usable_size: ", text));
}

static void refuse_all(void) {
  char local[100] = "";
  pthread_t thread;
  char *volatile in_other_stack = NULL;
  char *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pipe(ends_of_threads) != 0)
    return;
  pthread_create(&thread, NULL, have_stack, (void *)&in_other_stack);
  while (in_other_stack == NULL)
    usleep(1000);
  refuse("a local variable", local, "is in the stack of this thread");
  refuse("a word inside one", local + 16, "is in the stack of this thread");
  refuse("a global variable", in_data, "is in the data of the program");
  refuse("a zeroed global variable", in_bss + 16, "is in the data of the program");
  refuse("a thread-local variable", in_thread, "is in the thread-local variables of the program");
  refuse("a constant", (void *)"constant", "is in the constants of the program");
  refuse("a routine", (void *)refuse_all, "is in the code of the program");
  refuse("a variable of libc", stdout, LIBC);
  refuse("the environment", *environ, "is in the stack of this thread");
  refuse("the stack of another thread", in_other_stack, "is in memory that is no heap of LaneMM");
  refuse("a page of the program's", pages, "is in memory that is no heap of LaneMM");
  refuse("an address inside of it", pages + 4096 + 16, "is in memory that is no heap of LaneMM");
  refuse("an unmapped address", (void *)4096, "is not mapped");
  refuse("an address that no program can have", (void *)0xdeadbeefdeadbee0, "is not mapped");
  pthread_join((write(ends_of_threads[1], "", 1), thread), NULL);
}

static void *(*libc_malloc)(size_t), *(*libc_memalign)(size_t, size_t);
static struct mallinfo2 (*libc_info)(void);

/* Blocks of the calling thread's arena of libc, and with mappings of their own. */
static int use_libc(void) {
  int is_kept = 1;
  for (int i = 0; i < 200; i++) {
    size_t size = i < 100 ? 2000 + i * 100 : 200000 + i * 1000;
    char *block = i % 2 ? libc_malloc(size) : libc_memalign(64 << i % 8, size);
    content_write(block, size, i);
    is_kept &= malloc_usable_size(block) >= size;
    if (i % 3 == 0) {
      block = realloc(block, size + 5000);
      is_kept &= content_is(block, size, size, i);
    }
    free(block);
  }
  return is_kept;
}

/* libc keeps some parts of blocks at first, but no more later. */
static void *return_to_libc(void *result) {
  int *is_kept = result;
  size_t kept = 0;
  for (int round = 0; round < 20; round++) {
    *is_kept &= use_libc();
    if (round == 9)
      kept = libc_info().uordblks + libc_info().hblkhd;
  }
  *is_kept &= libc_info().uordblks + libc_info().hblkhd == kept;
  return result;
}

static int takes_libc_blocks(void) {
  int is_kept = 1;
  pthread_t thread;
  void *libc = dlopen("libc.so.6", RTLD_NOW);
  libc_malloc = (void *(*)(size_t))dlsym(libc, "malloc");
  libc_memalign = (void *(*)(size_t, size_t))dlsym(libc, "memalign");
  libc_info = (struct mallinfo2(*)(void))dlsym(libc, "mallinfo2");
  if (libc_malloc == malloc || libc_info == NULL)
    return 0;
  return_to_libc(&is_kept);
  pthread_create(&thread, NULL, return_to_libc, &is_kept);
  pthread_join(thread, NULL);
  return is_kept;
}

int main(void) {
  check_use_all();
  promise("a double free ends the program with a message",
          is_aborted_with(free_twice, "double free: 0x", "was freed already, a block of 112 bytes;"));
  promise("so does one of a large block",
          is_aborted_with(free_large_twice, "invalid free: 0x", "is in free memory of the heap"));
  promise("so does one by other threads",
          is_aborted_with(free_twice_in_threads, "double free: 0x", "was freed already, a block of "));
  promise("so does a free inside a block",
          is_aborted_with(free_inside, "invalid free: 0x", "is in the block of 112 bytes at 0x"));
  promise("so does the realloc of a freed block",
          is_aborted_with(resize_freed, "invalid realloc or ", "was freed already, a block of "));
  refuse_all();
#ifdef __GLIBC__ /* musl's blocks are refused, as those of any other malloc */
  promise("blocks of libc's own malloc go back there", takes_libc_blocks());
#endif
  return counts();
}
