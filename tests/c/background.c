/* The setting `background`: memory goes back while the program rests, by a thread that the program does
 * not notice otherwise.
 *
 *   background [PLUGIN]
 *
 * Without the setting the first promise is broken. PLUGIN: a library that is loaded and unloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { MB = 1 << 20, BLOCKS = 60000, SIZES = 3000, PATIENCE = 20000, CHILD_PATIENCE = 60000, LITTLE = 16, NOBODY = 54321 };

static void *blocks[BLOCKS];

/* The number behind a word of a file, read without malloc; -1 without one. */
static long number_in(const char *path, const char *word) {
  static char text[8192];
  int file = open(path, O_RDONLY);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = 0;
  char *found = strstr(text, word);
  return found ? strtol(found + strlen(word), NULL, 10) : -1;
}

static long threads_now(void) {
  return number_in("/proc/self/status", "\nThreads:");
}

static long resident_mb(void) {
  return number_in("/proc/self/status", "\nVmRSS:") / 1024;
}

static void rest(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

/* Allocates some 90 MB, writes and frees all; returns what was resident. */
static long burst(void) {
  uint64_t random = 7;
  for (int i = 0; i < BLOCKS; i++) {
    size_t size = next_random(&random) % SIZES + 1;
    blocks[i] = malloc(size);
    if (blocks[i])
      memset(blocks[i], 1, size);
  }
  long most = resident_mb();
  for (int i = 0; i < BLOCKS; i++)
    free(blocks[i]);
  return most;
}

/* Whether the memory of a burst goes back without a further call. */
static int goes_back(long before) {
  long most = burst();
  for (long waited = 0; waited < PATIENCE && resident_mb() > before + LITTLE; waited += 20)
    rest(20);
  return most > before + 60 && resident_mb() <= before + LITTLE;
}

/* Whether the thread that waits for the end of a long purge delay sees a shorter one. */
static int sees_delay(void (*set_delay)(unsigned), long before) {
  set_delay(3600000);
  long most = burst();
  rest(1000);
  int is_kept = most > before + 60 && resident_mb() > before + 60;
  set_delay(400);
  for (long waited = 0; waited < PATIENCE && resident_mb() > before + LITTLE; waited += 20)
    rest(20);
  return is_kept && resident_mb() <= before + LITTLE;
}

static volatile long handled_by;

static void note_thread(int signal) {
  (void)signal;
  handled_by = syscall(SYS_gettid);
}

/* A signal to the process waits for the thread that blocks it, as no other thread takes it. */
static int takes_no_signal(void) {
  sigset_t set;
  int is_kept = 1;
  signal(SIGUSR1, note_thread);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  for (int i = 0; i < 50; i++) {
    handled_by = 0;
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    sched_yield();
    is_kept &= handled_by == 0;
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    is_kept &= handled_by == getpid();
  }
  return is_kept;
}

/* After the main thread: the setting starts none that would keep the process. */
static void *end_later(void *unused) {
  int (*configure)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "lanemm_configure");
  rest(50);
  if (configure) {
    configure("background=0");
    configure("background");
  }
  return unused;
}

/* In a child process: the exit code says whether the work kept its promise. Where it hangs, the child is
 * killed: its last thread may have all other signals blocked. */
static int in_child(int (*work)(void)) {
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    _exit(work() ? 0 : 1);
  for (int waited = 0; waited < CHILD_PATIENCE; waited += 10) {
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    rest(10);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return 0;
}

static int child_is_alike(void) {
  return threads_now() == 2 && goes_back(resident_mb()) && in_child(takes_no_signal);
}

static int changes_user(void) {
  return setuid(NOBODY) == 0 || errno == EPERM;
}

static int ends_with_its_threads(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, end_later, NULL) == 0)
    pthread_exit(NULL); /* the process ends with exit code 0 after its last thread */
  return 0;
}

static _Atomic int is_going_on = 1;

static void *churn(void *unused) {
  uint64_t random = 11;
  while (is_going_on) {
    void *block = malloc(random_size(&random, 20));
    if (block)
      *(char *)block = 1;
    free(block);
  }
  return unused;
}

static int forks_often(void) {
  int is_kept = 1;
  for (int i = 0; i < 40; i++) {
    int status;
    pid_t child = fork();
    if (child == 0)
      _exit(malloc(100) == NULL);
    is_kept &= waitpid(child, &status, 0) == child && status == 0;
  }
  return is_kept;
}

static int forks_while_threads_allocate(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, churn, NULL) != 0)
    return 0;
  int is_kept = forks_often() && threads_now() == 3;
  is_going_on = 0;
  pthread_join(other, NULL);
  return is_kept;
}

static void *fork_often(void *unused) {
  return forks_often() ? (void *)&is_going_on : unused;
}

/* The handlers of fork run in several threads at once. */
static int forks_in_threads(void) {
  enum { COUNT = 3 };
  pthread_t others[COUNT];
  void *answer;
  int kept = 0;
  alarm(60); /* where a fork hangs */
  for (int i = 0; i < COUNT; i++)
    if (pthread_create(&others[i], NULL, fork_often, NULL) != 0)
      return 0;
  for (int i = 0; i < COUNT; i++)
    kept += pthread_join(others[i], &answer) == 0 && answer != NULL;
  alarm(0);
  return kept == COUNT;
}

static int loads(const char *plugin) {
  int is_kept = 1;
  for (int i = 0; i < 10; i++) {
    void *library = dlopen(plugin, RTLD_NOW);
    is_kept &= library != NULL && dlclose(library) == 0;
  }
  return is_kept;
}

int main(int count, char **arguments) {
  check_use_all();
  long before = resident_mb();
  promise("the library has started one thread", threads_now() == 2);
  promise("memory goes back while the program rests", goes_back(before));
  promise("and once more", goes_back(before));
  promise("the thread takes no signal", takes_no_signal());
  promise("it is there in a child process, too", in_child(child_is_alike));
  promise("and in the parent after that", threads_now() == 2 && goes_back(before));
  promise("fork finds memory as it should be", forks_often());
  promise("also while a thread allocates", forks_while_threads_allocate());
  promise("threads fork at once", forks_in_threads());
  promise("and the thread is there after that", threads_now() == 2 && goes_back(before));
  promise("setuid waits for no thread", in_child(changes_user));
  promise("a process ends with its last thread", in_child(ends_with_its_threads));
  if (count > 1)
    promise("libraries come and go", loads(arguments[1]));
  int (*configure)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "lanemm_configure");
  void (*set_delay)(unsigned) = (void (*)(unsigned))dlsym(RTLD_DEFAULT, "lanemm_set_purge_delay_ms");
  if (configure && set_delay) {
    promise("it sees a shorter purge delay at once", sees_delay(set_delay, before));
    promise("the setting ends the thread", configure("background=0") && threads_now() == 1);
    promise("and starts it", configure("background") && threads_now() == 2);
  }
  return counts();
}
