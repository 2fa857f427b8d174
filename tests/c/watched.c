/* What watching must find: blocks that grow, blocks of another thread that are freed, blocks that
 * are kept, each in a routine of its own. For watched.sh.
 *
 *   watched [configure | signal N | wait | damage | before | aligned | below | beyond | stale | zeroed |
 *           filled | twice | lose | counted | realigned | handler | bare FOLDER |
 *           protected | threads | outlived | marked | alternate | fork | child HOW]
 *
 * configure: watches from inside, by lanemm_configure. signal: sends itself signal N in the middle.
 * wait: waits to be ended. damage: writes behind a block. before: writes 32 bytes before one.
 * aligned: writes behind blocks with alignments, and keeps such blocks. below: with alignments up to 16,
 * which all blocks have. beyond: writes farther behind
 * one, on the next page if it ends there. stale: writes to a freed one. zeroed: writes behind a
 * block of calloc, after it has used and reserved such memory. filled: new blocks with alignments have
 * the byte 5A everywhere, also where the memory was used before. twice: frees a block twice.
 * lose: loses a list, and keeps blocks in all other ways. counted: loses a block that looks as a dynamic
 * array of Pascal does. realigned: loses blocks below a routine that
 * aligns its stack, called by two others in turn. handler: loses a block in the handler of a signal that
 * the first instruction of a routine raises. bare: loses a list in a root without /proc. protected: keeps
 * two blocks with a page that it has protected, and those that the page behind leads to. threads: ends while threads run that no
 * signal reaches, and others have ended. outlived: a thread loses a list and ends the program after the
 * main thread has ended. marked: ends while threads run whose stacks are one mapping, with a
 * page between that cannot be read, as those of glibc 2.42 are. alternate: the system alone has the address of
 * the stack for signals. fork: a child lets blocks grow in a routine
 * of its own. child: loses a list, starts a child, by `fork` one that ends at once, by `free` one that
 * frees blocks of its own, by `lose` one that loses some, by `_exit`, `exec`, `vfork`, `spawn` and
 * `system` one that does not end as programs do, and ends without a report. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { GROWTHS = 2000, OTHERS = 20000, KEPT = 4000, KEPT_SIZE = 20000 };

static void *others[OTHERS], *kept[KEPT], *volatile in_child;

__attribute__((noinline)) void *grow_it(void *block, size_t size) {
  block = realloc(block, size); /* marked: grow it */
  memset(block, 1, size);
  return block;
}

__attribute__((noinline)) void *free_others(void *ignored) {
  for (int i = 0; i < OTHERS; i++)
    free(others[i]);
  return ignored;
}

__attribute__((noinline)) void keep_blocks(void) {
  for (int i = 0; i < KEPT; i++)
    memset(kept[i] = malloc(KEPT_SIZE), 1, KEPT_SIZE);
}

__attribute__((noinline)) char *keep_one(void) {
  char *block = malloc(24);
  memset(block, 1, 24);
  return block;
}

__attribute__((noinline)) void free_one(char *block) {
  free(block);
  check_passed++; /* no tail call: the routine stays on the stack */
}

__attribute__((noinline)) char *keep_aligned(size_t alignment) {
  char *block = aligned_alloc(alignment, 48);
  memset(block, 1, 48);
  return block;
}

__attribute__((noinline)) char *keep_zeroed(void) {
  char *block = calloc(6, 8);
  for (int i = 0; i < 48; i++)
    if (block[i] != 0)
      exit(6);
  memset(block, 1, 48);
  return block;
}

/* 256 MB of zeros, of which no page is used, take no memory. */
static int reserves_zeros(void) {
  struct rusage usage;
  char *volatile block = calloc(1 << 18, 1 << 10);
  return block != NULL && getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss < 1 << 17;
}

/* As many bytes as keep_blocks, half of them with an alignment for which blocks are cut to size. */
__attribute__((noinline)) void keep_aligned_blocks(void) {
  for (int i = 0; i < KEPT; i++)
    kept[i] = aligned_alloc(64, KEPT_SIZE / 2);
  for (int i = 0; i < KEPT / 20; i++)
    check_passed += aligned_alloc(1 << 17, KEPT_SIZE * 10) != NULL;
}

/* Whether all bytes of a new block are 5A; uses and frees it. */
static int is_filled(unsigned char *block) {
  size_t size = malloc_usable_size(block), count = 0;
  for (size_t i = 0; i < size; i++)
    count += block[i] == 0x5A;
  memset(block, 1, size);
  free(block);
  return size >= 1000 && count == size;
}

static int fills_aligned(void) {
  int is_right = 1;
  for (int log2 = 3; log2 < 21; log2++)
    for (size_t size = 1000; size < 10000000; size *= 20)
      for (int i = 0; i < 2; i++)
        is_right &= is_filled(aligned_alloc(1 << log2, size));
  return is_right;
}

/* Bugs on purpose. */
__attribute__((noinline)) static void spoil(const char *mode) {
  char *volatile block = keep_one();
  if (strcmp(mode, "damage") == 0)
    block[24] = 1;
  if (strcmp(mode, "before") == 0)
    block[-32] = 1;
  free_one(block);
  for (int log2 = 0; strcmp(mode, "below") == 0 && log2 < 5; log2++) {
    block = keep_aligned(1 << log2);
    block[48] = 1; /* marked: below */
    free_one(block);
  }
  for (int log2 = 5; strcmp(mode, "aligned") == 0 && log2 < 20; log2++) {
    block = keep_aligned(1 << log2);
    block[48] = 1;
    free_one(block);
  }
  if (strcmp(mode, "beyond") == 0)
    keep_aligned(32)[65] = 1; /* marked: beyond */
  if (strcmp(mode, "stale") == 0) {
    free_one(block = keep_aligned(64));
    block[5] = 1; /* marked: stale */
  }
  for (int i = 0; strcmp(mode, "zeroed") == 0 && i < 100; i++) {
    free_one(block = keep_zeroed());
    if (i == 99 && reserves_zeros())
      keep_zeroed()[48] = 1; /* marked: zeroed */
  }
  if (strcmp(mode, "twice") == 0)
    free_one(block);
  if (strcmp(mode, "late") == 0)
    keep_one()[24] = 1;
  if (strcmp(mode, "local") == 0)
    free_one((char *)&block);
}

struct node {
  struct node *next;
  char text[40];
};

char *in_data;
__thread char *in_thread;
static pthread_key_t key;

__attribute__((noinline)) void lose_list(void) {
  struct node *volatile head = NULL;
  for (int i = 0; i < 100; i++) {
    struct node *node = malloc(sizeof *node);
    node->next = head;
    head = node;
  }
  in_data = malloc(500);
  *(char **)in_data = malloc(600);
  in_thread = malloc(700);
  pthread_key_create(&key, NULL);
  pthread_setspecific(key, malloc(800));
}

static void lose_counted(void) {
  volatile long *volatile block = malloc(800);
  block[0] = 1;   /* references */
  block[1] = 97;  /* the last index */
  block = NULL;
}

/* The compiler finds the caller of such a routine by a word on its stack. */
__attribute__((noinline)) char *lose_realigned(int size) {
  _Alignas(64) volatile char bytes[64];
  volatile char *more = __builtin_alloca(size);
  more[0] = bytes[0] = 1;
  char *block = malloc(40);
  block[0] = more[0] + bytes[0];
  return block;
}

__attribute__((noinline)) char lose_first(int size) {
  return lose_realigned(size)[0] + 1; /* marked: lose first */
}

__attribute__((noinline)) char lose_second(int size) {
  volatile char padding[24];
  padding[0] = 1;
  return lose_realigned(size)[0] + padding[0]; /* marked: lose second */
}

static char *guarded[2];

/* As stacks of coroutines: a small and a large block. Before Linux 5.14 nothing says what can be read. */
static void keep_protected(void) {
  enum { PAGE = 4096, POPULATE_READ = 22 };
  static const size_t sizes[] = {1 << 14, 1 << 18};
  for (int i = 0; i < 2; i++) {
    guarded[i] = aligned_alloc(PAGE, sizes[i]);
    if (madvise(guarded[i], PAGE, POPULATE_READ) != 0)
      exit(77);
    *(void **)(guarded[i] + PAGE) = malloc(700);
    if (mprotect(guarded[i], PAGE, PROT_NONE) != 0)
      exit(10);
  }
}

/* Its only address in the program is overwritten. */
__attribute__((noinline)) static void set_signal_stack(void) {
  stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  if (sigaltstack(&stack, NULL) != 0)
    exit(11);
  memset(&stack, 0, sizeof stack);
  __asm__ volatile("" : : "r"(&stack) : "memory");
}

static int is_ready[2];

static void *hold(void *is_ending) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  if (is_ending == NULL)
    in_thread = malloc(900);
  if (write(is_ready[1], "", 1) == 1 && is_ending == NULL)
    pause();
  return NULL;
}

/* Threads on stacks of libc and of the program, and ended ones whose stacks libc keeps. */
static void leave_threads(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  char end;
  if (pipe(is_ready) != 0)
    return;
  for (int i = 0; i < 12; i++) {
    pthread_attr_init(&attributes);
    if (i % 3 == 0)
      pthread_attr_setstack(&attributes, mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
    pthread_create(&thread, &attributes, hold, i % 3 == 1 ? is_ready : NULL);
    check_failed += read(is_ready[0], &end, 1) != 1;
    if (i % 3 == 1)
      pthread_join(thread, NULL);
  }
}

/* The kernel shows the program by its main thread, until that has ended. */
static void *outlive(void *ignored) {
  void *volatile block = malloc(900);
  char path[8];
  while (readlink("/proc/self/exe", path, sizeof path) > 0)
    sched_yield();
  lose_list();
  exit(block == ignored);
}

static void *rest(void *ignored) {
  void *volatile block = malloc(900);
  if (write(is_ready[1], "", 1) == 1)
    pause();
  free(block);
  return ignored;
}

/* The kernel has such marks from Linux 6.13 on. */
static void leave_threads_between_marks(void) {
  enum { THREADS = 4, STACK = 1 << 18, PAGE = 4096, INSTALL_GUARD = 102 };
  char *stacks = mmap(NULL, THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_t thread;
  char ready;
  if (stacks == MAP_FAILED || pipe(is_ready) != 0)
    exit(9);
  for (int i = 0; i < THREADS; i++) {
    if (madvise(stacks + i * STACK, PAGE, INSTALL_GUARD) != 0)
      exit(77);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks + i * STACK + PAGE, STACK - PAGE);
    pthread_create(&thread, &attributes, rest, NULL);
    check_failed += read(is_ready[0], &ready, 1) != 1;
  }
}

static void work(int is_aligned) {
  void *block = NULL;
  pthread_t thread;
  for (size_t i = 1; i <= GROWTHS; i++)
    block = grow_it(block, i * 10);
  free(block);
  for (int i = 0; i < OTHERS; i++)
    others[i] = malloc(200);
  pthread_create(&thread, NULL, free_others, NULL);
  pthread_join(thread, NULL);
  keep_blocks();
  if (is_aligned)
    keep_aligned_blocks();
  for (int i = 0; i < KEPT / 2; i++)
    free(kept[i]);
}

__attribute__((noinline)) void *grow_in_child(void *block, size_t size) {
  block = realloc(block, size); /* marked: grow in child */
  memset(block, 1, size);
  return block;
}

/* A child that ends as programs do. */
static int forks(void) {
  int status = 1;
  pid_t child = fork();
  if (child == 0) {
    void *block = NULL;
    for (size_t i = 1; i <= GROWTHS; i++)
      block = grow_in_child(block, i * 10);
    free(block);
    exit(0);
  }
  return waitpid(child, &status, 0) == child && status == 0;
}

__attribute__((noinline)) void lose_in_child(void) {
  for (int i = 0; i < GROWTHS; i++)
    in_child = malloc(900); /* marked: lose in child */
  in_child = NULL;
}

static void free_in_child(void) {
  void *blocks[GROWTHS];
  for (int i = 0; i < GROWTHS; i++)
    blocks[i] = malloc(900);
  for (int i = 0; i < GROWTHS; i++)
    free(blocks[i]);
}

static void be_child(const char *how, char **program) {
  if (strcmp(how, "free") == 0)
    free_in_child();
  if (strcmp(how, "lose") == 0)
    lose_in_child();
  if (strcmp(how, "_exit") == 0)
    _exit(0);
  if (strcmp(how, "exec") == 0)
    execvp(*program, program);
  exit(0);
}

/* Ends without a report of this process. */
static void start_child(const char *how) {
  char *program[] = {"true", NULL};
  int status = 1;
  pid_t child = -1;
  lose_list();
  if (strcmp(how, "system") == 0)
    _exit(system(*program));
  if (strcmp(how, "spawn") == 0)
    posix_spawnp(&child, *program, NULL, NULL, program, environ);
  else if (strcmp(how, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execvp(*program, program);
      _exit(1);
    }
  } else {
    child = fork();
    if (child == 0)
      be_child(how, program);
  }
  _exit(waitpid(child, &status, 0) != child || status != 0);
}

/* Holds blocks until malloc fails, then frees them. */
__attribute__((noinline)) static void fill_memory(void) {
  struct node *head = NULL, *node;
  while ((node = malloc(sizeof *node)) != NULL) { /* marked: fill it */
    node->next = head;
    head = node;
  }
  while ((node = head) != NULL) {
    head = node->next;
    free(node);
  }
  malloc_trim(0);
}

/* The routine before it ends with a call, in a frame of another size. */
void fault_at_once(void *address);
__asm__(".text\n"
        ".type call_last, @function\n"
        "call_last: .cfi_startproc\n"
        "sub $40, %rsp\n"
        ".cfi_def_cfa_offset 48\n"
        "call abort@plt\n"
        ".cfi_endproc\n"
        ".size call_last, . - call_last\n"
        ".globl fault_at_once\n"
        ".type fault_at_once, @function\n"
        "fault_at_once: .cfi_startproc\n"
        "mov (%rdi), %rax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size fault_at_once, . - fault_at_once\n");

static sigjmp_buf after_fault;

static void lose_one(int signal) {
  *(char *volatile *)&in_child = malloc(4000 + signal); /* marked: handler */
  in_child = NULL;
  siglongjmp(after_fault, 1);
}

__attribute__((noinline)) static void lose_in_handler(void) {
  signal(SIGSEGV, lose_one);
  if (sigsetjmp(after_fault, 1) == 0)
    fault_at_once(NULL); /* marked: interrupted */
  signal(SIGSEGV, SIG_DFL);
}

int main(int count, char **arguments) {
  check_use_all();
  const char *mode = count > 1 ? arguments[1] : "";
  pthread_t thread;
  int (*configure)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "lanemm_configure");
  int (*write_logs)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "lanemm_write_logs");
  if (strcmp(mode, "configure") == 0 && !(configure && configure("growth,contention")))
    return 2;
  if (strcmp(mode, "child") == 0)
    start_child(arguments[2]);
  if (strcmp(mode, "lose") == 0)
    lose_list();
  if (strcmp(mode, "counted") == 0)
    lose_counted();
  for (int i = 0; strcmp(mode, "realigned") == 0 && i < 100; i++)
    check_passed += i % 2 ? lose_first(16) == 9 : lose_second(16) == 9;
  if (strcmp(mode, "bare") == 0) {
    lose_list();
    if (chroot(arguments[2]) != 0)
      return 8;
  }
  if (strcmp(mode, "handler") == 0)
    lose_in_handler();
  if (strcmp(mode, "protected") == 0)
    keep_protected();
  if (strcmp(mode, "threads") == 0)
    leave_threads();
  if (strcmp(mode, "outlived") == 0 && pthread_create(&thread, NULL, outlive, NULL) == 0)
    pthread_exit(NULL);
  if (strcmp(mode, "alternate") == 0)
    set_signal_stack();
  if (strcmp(mode, "marked") == 0)
    leave_threads_between_marks();
  for (int i = 0; strcmp(mode, "fill") == 0 && i < 2; i++)
    fill_memory();
  spoil(mode);
  if (strcmp(mode, "fill") != 0)
    work(strcmp(mode, "aligned") == 0);
  if (strcmp(mode, "configure") == 0 && !(write_logs && write_logs() && configure("growth=0")))
    return 3;
  struct sigaction action;
  if (sigaction(SIGINT, NULL, &action) != 0
      || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN))
    return 4;
  if (strcmp(mode, "signal") == 0)
    raise(atoi(arguments[2]));
  if (strcmp(mode, "fork") == 0 && !forks())
    return 5;
  if (strcmp(mode, "filled") == 0 && !fills_aligned())
    return 7;
  puts("done");
  fflush(stdout);
  if (strcmp(mode, "wait") == 0)
    pause();
  return 0;
}
