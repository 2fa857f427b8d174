#!/bin/sh
# Programs that people use, on the library for musl: busybox and Lua.
#
#   sh tests/packages/musl.sh
#
# Builds both from Debian's sources with musl's compiler, puts them in a root with nothing else but musl, and
# runs busybox's own tests and a script in Lua there, without the library and with it preloaded: the results
# are the same. Needs the rights of root. The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh
. tools/package-sources.sh

root=$work/root
# Those that allocate most; others test the machine.
applets='awk cpio cut diff dc find grep gunzip bunzip2 od patch printf sed sort tar tr unlzma unzip uniq xargs'

fetches() (
  write_package_sources
  private_apt update || true # other package sources may fail
  mkdir -p "$work/source" && cd "$work/source" || exit 1
  private_apt source --download-only busybox lua5.4 || exit 1
  for archive in *.orig.tar.*; do tar -xf "$archive" || exit 1; done
)

# musl's compiler finds no headers of the kernel.
builds_busybox() (
  mkdir -p "$work/kernel"
  for headers in /usr/include/linux /usr/include/asm-generic /usr/include/mtd "/usr/include/$(gcc -print-multiarch)/asm"; do
    ln -s "$headers" "$work/kernel/"
  done
  cd "$work"/source/busybox-*/ && make -s defconfig \
    && make -s CC="musl-gcc -idirafter $work/kernel" busybox_unstripped
)

builds_lua() {
  make -s -C "$work"/source/lua-*/src linux CC='musl-gcc -std=gnu99' \
    SYSCFLAGS='-DLUA_USE_POSIX -DLUA_USE_DLOPEN' SYSLIBS='-Wl,-E'
}

has_root() {
  CC=musl-gcc sh lib/build.sh --out="$work/lib" || return 1
  for folder in bin lib tmp proc dev etc busybox; do install -d "$root/$folder"; done
  cp "$(readlink -f /lib/ld-musl-x86_64.so.1)" "$root/lib/ld-musl-x86_64.so.1"
  cp "$work/lib/liblanemm.so.1" "$root/lib/"
  cp "$work"/source/lua-*/src/lua "$root/bin/"
  cp tests/packages/musl.lua "$root/tmp/"
  cp "$work"/source/busybox-*/busybox_unstripped "$root/busybox/busybox"
  cp -R "$work"/source/busybox-*/testsuite "$work"/source/busybox-*/.config "$root/busybox/"
  for applet in $("$root/busybox/busybox" --list); do ln -s /busybox/busybox "$root/bin/$applet"; done
  for device in null:3 zero:5 full:7 urandom:9; do
    mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
  done
  echo 'root:x:0:0:root:/:/bin/sh' > "$root/etc/passwd"
}

in_musl() { # VARIABLE... COMMAND...
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare --mount --pid --fork --net sh -c 'there=$1; shift; mount -t proc proc "$there/proc" \
    && exec chroot "$there" /bin/env -i PATH=/bin HOME=/ "$@"' sh "$root" "$@"
}

# Some tests fail without the library, too: they expect more of a machine than this root has.
busybox_results() { # FILE VARIABLE...
  results=$1
  shift
  in_musl "$@" sh -c "cd /busybox/testsuite && ./runtest $applets" > "$results.all" 2>&1 || true
  grep -aE '^(PASS|FAIL): ' "$results.all" | sort > "$results"
}

passes_the_same_tests() {
  busybox_results "$work/without" NONE=1
  busybox_results "$work/with" LD_PRELOAD=/lib/liblanemm.so.1
  [ "$(grep -c ^PASS "$work/without")" -ge 400 ] && diff "$work/without" "$work/with"
}

is_on_the_library() {
  in_musl LD_PRELOAD=/lib/liblanemm.so.1 sh -c 'grep -q liblanemm /proc/self/maps' \
    && ! in_musl sh -c 'grep -q liblanemm /proc/self/maps'
}

has_no_memory_error() { # COMMAND...
  in_musl LD_PRELOAD=/lib/liblanemm.so.1 LANEMM=debug "$@" 2>&1 | tee "$work/debug"
  grep -q '^LaneMM: no memory errors in [0-9,]* blocks' "$work/debug"
}

runs_lua() {
  in_musl lua /tmp/musl.lua > "$work/lua" && [ -s "$work/lua" ] \
    && in_musl LD_PRELOAD=/lib/liblanemm.so.1 lua /tmp/musl.lua | diff "$work/lua" -
}

promise "Debian's sources of busybox and Lua are fetched" fetches
promise 'busybox is built for musl' builds_busybox
promise 'Lua is built for musl' builds_lua
promise 'there is a root with musl and these alone' has_root
promise 'busybox and its children run on the library' is_on_the_library
promise "busybox passes the same of its own tests with the library as without" passes_the_same_tests
promise 'busybox has no memory error' has_no_memory_error sh -c 'ls -R / | sort | tail -n 3'
promise 'Lua prints the same with the library as without' runs_lua
promise 'Lua has no memory error' has_no_memory_error lua /tmp/musl.lua
[ ! -s "$work/with" ] || echo "of busybox's own tests $(grep -c ^PASS "$work/with") passed with the library"
sum
