/* Runs a program in a sandbox that refuses the system calls that an allocator can do without.
 *
 *   without ENOSYS|EPERM PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSE(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)

int main(int count, char **arguments) {
  if (count < 3)
    return 2;
  unsigned error = strcmp(arguments[1], "EPERM") == 0 ? EPERM : ENOSYS;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      REFUSE(madvise),
      REFUSE(mremap),
      REFUSE(getrandom),
      REFUSE(process_vm_readv),
      REFUSE(sched_getaffinity),
      REFUSE(membarrier),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
      || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("without: no sandbox can be had here");
    return 77;
  }
  execv(arguments[2], arguments + 2);
  perror(arguments[2]);
  return 2;
}
