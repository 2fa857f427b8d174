/* Runs a program whose system calls fail, as far as the library makes them.
 *
 *   failing COUNTS CALL FIRST NUMBER ERROR LIBRARY PROGRAM [ARGUMENT...]
 *
 * Of the calls CALL (mmap, munmap, mprotect, mremap, madvise, futex) that code of LIBRARY makes in the
 * program and in its child processes, those from the FIRST on fail, NUMBER of them, with ERROR, a
 * number. How many there were is written to the file COUNTS. A futex that wakes cannot fail and does
 * not. The kernel asks this program about each such call (seccomp, user notification; Linux 5.5). Exit
 * code: that of the program; 128 and the signal that ended it; 77 where the kernel does not ask. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFUSED = 77, SIGNALED = 128, RANGES = 16 };

static const struct {
  const char *name;
  unsigned number;
} calls[] = {{"mmap", SYS_mmap},       {"munmap", SYS_munmap},   {"mprotect", SYS_mprotect},
             {"mremap", SYS_mremap},   {"madvise", SYS_madvise}, {"futex", SYS_futex}};

/* The code of the library in the process that asked last. */
static struct {
  uint64_t first, limit;
} ranges[RANGES];
static unsigned range_count;

static void read_ranges(unsigned process, const char *library) {
  char path[64], line[4096], rights[8];
  snprintf(path, sizeof path, "/proc/%u/maps", process);
  FILE *maps = fopen(path, "r");
  range_count = 0;
  while (maps && fgets(line, sizeof line, maps) && range_count < RANGES) {
    unsigned long first, limit;
    if (strstr(line, library) && sscanf(line, "%lx-%lx %7s", &first, &limit, rights) == 3
        && rights[2] == 'x') {
      ranges[range_count].first = first;
      ranges[range_count++].limit = limit;
    }
  }
  if (maps)
    fclose(maps);
}

static int is_in_library(uint64_t address) {
  for (unsigned i = 0; i < range_count; i++)
    if (address >= ranges[i].first && address <= ranges[i].limit)
      return 1;
  return 0;
}

/* Asks the supervisor about calls with a number; returns where it listens. */
static int listen_to(unsigned number) {
  const unsigned command = offsetof(struct seccomp_data, args[1]);
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, command),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                      &program);
}

/* The child: says where it listens, waits until the supervisor listens there, too, and starts the
 * program. */
static void start(unsigned number, int say, int await, char **arguments) {
  char go;
  int listener = listen_to(number);
  if (write(say, &listener, sizeof listener) < 0 || read(await, &go, 1) != 1)
    _exit(REFUSED);
  close(say);
  close(await);
  execvp(arguments[0], arguments);
  perror(arguments[0]);
  _exit(127);
}

struct plan {
  unsigned long first, number, made;
  int error;
  const char *library;
};

static void answer(int listener, struct plan *plan) {
  struct seccomp_notif question;
  struct seccomp_notif_resp reply;
  memset(&question, 0, sizeof question);
  memset(&reply, 0, sizeof reply);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0)
    return;
  if (!is_in_library(question.data.instruction_pointer))
    read_ranges(question.pid, plan->library);
  reply.id = question.id;
  reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (is_in_library(question.data.instruction_pointer)) {
    plan->made++;
    if (plan->made >= plan->first && plan->made - plan->first < plan->number) {
      reply.flags = 0;
      reply.error = -plan->error;
    }
  }
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Answers until all processes have ended. */
static void supervise(int listener, struct plan *plan) {
  struct pollfd event = {listener, POLLIN, 0};
  while (poll(&event, 1, -1) >= 0 || errno == EINTR) {
    if (event.revents & POLLIN)
      answer(listener, plan);
    else if (event.revents & (POLLHUP | POLLERR))
      return;
  }
}

int main(int count, char **arguments) {
  if (count < 8)
    return 2;
  unsigned call = 0;
  while (call < sizeof calls / sizeof *calls && strcmp(calls[call].name, arguments[2]) != 0)
    call++;
  if (call == sizeof calls / sizeof *calls)
    return 2;
  struct plan plan = {strtoul(arguments[3], NULL, 10), strtoul(arguments[4], NULL, 10), 0,
                      atoi(arguments[5]), arguments[6]};
  int said[2], go[2], remote;
  if (pipe(said) != 0 || pipe(go) != 0)
    return 2;
  pid_t child = fork();
  if (child == 0)
    start(calls[call].number, said[1], go[0], arguments + 7);
  close(said[1]);
  close(go[0]);
  int listener = -1;
  if (read(said[0], &remote, sizeof remote) == sizeof remote && remote >= 0)
    listener = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), remote, 0);
  if (listener < 0) {
    fprintf(stderr, "failing: the kernel does not ask about system calls here (seccomp)\n");
    close(go[1]);
    waitpid(child, NULL, 0);
    return REFUSED;
  }
  if (write(go[1], "!", 1) != 1)
    return 2;
  close(go[1]);
  supervise(listener, &plan);
  int status = 0;
  waitpid(child, &status, 0);
  FILE *counts = fopen(arguments[1], "w");
  if (counts == NULL || fprintf(counts, "%lu\n", plan.made) < 0 || fclose(counts) != 0)
    return 2;
  return WIFSIGNALED(status) ? SIGNALED + WTERMSIG(status) : WEXITSTATUS(status);
}
