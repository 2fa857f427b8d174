/* Runs a program in a sandbox that ends it at any system call but those of docs/system-calls.md, and those
 * that the C library itself makes.
 *
 *   listed PROGRAM [ARGUMENT...]
 *
 * listed.h, made of the page by run.sh, has a line LISTED(name) for each call.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTED(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),

int main(int count, char **arguments) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#include "listed.h"
      /* The start, the end and the threads of a program, and what the test programs print. */
      LISTED(execve) LISTED(brk) LISTED(access) LISTED(pread64) LISTED(fstat) LISTED(newfstatat)
      LISTED(set_tid_address) LISTED(set_robust_list) LISTED(rseq) LISTED(write) LISTED(exit_group)
      LISTED(clone) LISTED(clone3) LISTED(exit) LISTED(futex) LISTED(rt_sigprocmask) LISTED(rt_sigaction)
      LISTED(gettid) LISTED(getpid) LISTED(clock_nanosleep) LISTED(sched_yield) LISTED(wait4) LISTED(uname)
      LISTED(alarm) LISTED(setitimer) LISTED(rt_sigreturn) LISTED(pipe) LISTED(kill) LISTED(vfork)
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (count < 2)
    return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
      || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("listed: no sandbox can be had here");
    return 77;
  }
  execv(arguments[1], arguments + 1);
  perror(arguments[1]);
  return 2;
}
