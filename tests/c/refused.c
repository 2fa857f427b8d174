/* Runs with LANEMM=profile. A sandbox refuses the calls by which a process sends itself a signal: SIGTERM, which
 * the library handles to write its files, ends the process all the same.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define REFUSE(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static int enter(void) {
  struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    REFUSE(kill), REFUSE(tgkill),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(void) {
  int ready[2], status = 0;
  char entered = 0;
  free(malloc(100000));
  if (pipe(ready) != 0)
    return 1;
  pid_t child = fork();
  if (child == 0) {
    entered = (char)enter();
    alarm(60); /* a child that stays ends by another signal */
    if (write(ready[1], &entered, 1) == 1)
      for (;;)
        pause();
    _exit(1);
  }
  promise("a child enters a sandbox", read(ready[0], &entered, 1) == 1 && entered);
  promise("SIGTERM is sent", kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child);
  promise("it ends the child", WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
  return counts();
}
