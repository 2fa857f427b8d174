# i386-linux: the kernel of x86_64 runs its programs. Compiler, units and C library are Debian's; the
# programs name the loader and the library where they were unpacked.
how='native, on a kernel of x86_64'
options='--alone' # each suite with all addresses
# In short without those that build most programs: other targets' tests do.
[ "$kind" = full ] || options="$options --skip=Reports,Profile,DebugMatrix,CompatNames"
parts='suites checked engine engine-checked programs demos'
quick='suites'

prepare() {
  # shellcheck disable=SC2086 # a list of packages
  unpack i386 fp-compiler-3.2.2 $linux_packages || return 1
  root=$dir/sysroot
  units=$root/usr/lib/i386-linux-gnu/fpc/3.2.2
  write_command fpc "$units/ppc386 -n -Tlinux -Sgic -Xd '-Fu$units/units/i386-linux/*' \\
    -Fl$root/usr/lib/i386-linux-gnu -Fl$root/lib/i386-linux-gnu -Fl$root/usr/lib/gcc/i686-linux-gnu/12 \\
    -FL$root/lib/ld-linux.so.2 -k-rpath=$root/lib/i386-linux-gnu -k--disable-new-dtags"
  write_command run ''
}
