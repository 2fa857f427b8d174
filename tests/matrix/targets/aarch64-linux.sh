# aarch64-linux: a cross compiler that is built here, units and C library of Debian's, qemu-user.
without=aarch64-linux
how='qemu-user'
options='--alone --limit=900 --times' # an emulator is slow, several times more on a busy machine
OBJCOPY=aarch64-linux-gnu-objcopy
LIMIT=1200 # of a whole program
WITHIN='exec env QEMU_RESERVED_VA=%sM' # the emulator's own addresses do not count
export OBJCOPY LIMIT WITHIN
parts='suites checked engine engine-checked programs demos'
quick='engine'

prepare() {
  sh tools/need.sh qemu-aarch64 aarch64-linux-gnu-ld || return 1
  # shellcheck disable=SC2086 # a list of packages
  unpack arm64 $linux_packages || return 1
  cross_compiler AARCH64 ppcrossa64 aarch64 armgen || return 1
  root=$dir/sysroot
  units=$root/usr/lib/aarch64-linux-gnu/fpc/3.2.2
  write_command fpc "$dir/ppcrossa64 -n -Tlinux -Sgic -XPaarch64-linux-gnu- -Xd \\
    '-Fu$units/units/aarch64-linux/*' -Fl$root/usr/lib/aarch64-linux-gnu \\
    -Fl$root/lib/aarch64-linux-gnu -Fl$root/usr/lib/gcc/aarch64-linux-gnu/12 \\
    -FL$root/lib/ld-linux-aarch64.so.1 -k-rpath=$root/lib/aarch64-linux-gnu -k--disable-new-dtags"
  write_command run qemu-aarch64
}
