/* Programs that a request must not harm, until their standard input ends:
 *   altstack BYTES    has an alternate signal stack of so many bytes; exit code 1 if bytes below it were
 *                     written
 *   altstack BYTES fault    reads a freed block; its handler of faults looks at those bytes, and ends it
 *   altstack BYTES N        sends signal N to a thread whose own stack has so many bytes
 *   altstack BYTES leaves   the first, in a new namespace of shared memory of a new one
 *   altstack BYTES exit     such a thread leaks blocks, and ends the program
 *   altstack BYTES limit    such a thread allocates until that fails
 *   altstack BYTES timed    the process changes its rights; then such a thread allocates for a second
 *   altstack daemon   ends after it has started a child process that closes all files, and says its number
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { BLOCKS = 2000, AREA = 1 << 20, MARK = 0xC3 };

static void *blocks[BLOCKS];

static void renew(int step) {
  for (int i = 0; i < BLOCKS; i += step) {
    free(blocks[i]);
    blocks[i] = malloc(10 + i);
  }
}

/* The first shell reads a line of each process before it goes on: see start. */
static void become_daemon(void) {
  pid_t child = fork();
  if (child == 0) {
    setsid();
    for (int i = 0; i < 1024; i++)
      close(i);
    for (int i = 0; i < 3; i++)
      open("/dev/null", O_RDWR);
    for (int i = 0; i < 600; i++) {
      usleep(100000);
      renew(3);
    }
    exit(0);
  }
  printf("daemon %d\n", child);
}

static unsigned char *take_stack(size_t size) {
  unsigned char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(area, MARK, AREA);
  stack_t stack = {.ss_sp = area + AREA - size, .ss_size = size};
  if (sigaltstack(&stack, NULL) != 0)
    exit(2);
  return area;
}

static unsigned char *marked;
static size_t marked_size;

static void look(int signal) {
  (void) signal;
  for (size_t i = 0; i < marked_size; i++)
    if (marked[i] != MARK)
      _exit(1);
  _exit(0);
}

static int read_freed(size_t size) {
  struct sigaction action = {.sa_handler = look, .sa_flags = SA_ONSTACK};
  marked = take_stack(size);
  marked_size = AREA - size;
  sigaction(SIGSEGV, &action, NULL);
  renew(1);
  volatile char *block = malloc(100);
  free((void *) block);
  return block[0];
}

static volatile int is_sent;

static void *wait_here(void *unused) {
  while (!is_sent)
    usleep(1000);
  return unused;
}

static void *leak(void *unused) {
  for (int i = 0; i < 20; i++)
    if (malloc(100) == unused)
      exit(2);
  exit(0);
}

static void *take_all(void *unused) {
  while (malloc(100000) != NULL)
    ;
  return unused;
}

/* The thread of LaneMM's own that writes timed reports has ended by now. */
static void *sample(void *unused) {
  for (int i = 0; i < 100; i++) {
    renew(7);
    usleep(10000);
  }
  return unused;
}

static int run_thread(size_t size, void *(*routine)(void *), int signal) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size);
  if (pthread_create(&thread, &attributes, routine, NULL) != 0)
    return 2;
  if (signal != 0)
    pthread_kill(thread, signal);
  is_sent = 1;
  pthread_join(thread, NULL);
  return 0;
}

int main(int count, char **arguments) {
  size_t size = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
  unsigned char *area = NULL;
  struct pollfd input = {.fd = 0, .events = POLLIN};
  renew(1);
  if (count > 2 && strcmp(arguments[2], "fault") == 0)
    return read_freed(size);
  if (count > 2 && strcmp(arguments[2], "exit") == 0)
    return run_thread(size, leak, 0);
  if (count > 2 && strcmp(arguments[2], "limit") == 0)
    return run_thread(size, take_all, 0);
  if (count > 2 && strcmp(arguments[2], "timed") == 0) {
    prctl(PR_SET_DUMPABLE, 0);
    usleep(300000);
    return run_thread(size, sample, 0);
  }
  if (count > 2 && strcmp(arguments[2], "leaves") == 0) {
    if (unshare(CLONE_NEWIPC) != 0 || unshare(CLONE_NEWIPC) != 0)
      return 2;
  } else if (count > 2)
    return run_thread(size, wait_here, atoi(arguments[2]));
  if (size > 0)
    area = take_stack(size);
  else
    become_daemon();
  puts("ready");
  fflush(stdout);
  while (poll(&input, 1, 10) == 0)
    renew(3);
  for (size_t i = 0; area != NULL && i < AREA - size; i++)
    if (area[i] != MARK)
      return 1;
  return 0;
}
