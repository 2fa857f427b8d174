#!/bin/sh
# Installs the C library in a folder and builds programs against what is there.
#
#   sh tests/c/install.sh
#
# The last line is `N passed, N failed`.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/../.."
root=$PWD/build/test-c/install
rm -rf "$root"
mkdir -p "$root"
passed=0
failed=0

promise() {
  text=$1
  shift
  if "$@" > "$root/check.out" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $text"
    tail -n 5 "$root/check.out"
  fi
}

# Below DESTDIR there is what the pkg-config file says of the prefix.
installs() {
  make --no-print-directory install PREFIX=/opt/lanemm DESTDIR="$root/dest"
  (cd "$root/dest/opt/lanemm" && [ -s lib/liblanemm.so ] && [ -s lib/liblanemm.a ] \
    && [ -s include/lanemm.h ] && grep -q '^prefix=/opt/lanemm$' lib/pkgconfig/lanemm.pc)
}

# What pkg-config says of the installed library, seen from outside of DESTDIR.
config() {
  PKG_CONFIG_PATH="$root/dest/opt/lanemm/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root/dest" \
    pkg-config "$@" lanemm
}

links_shared() {
  # shellcheck disable=SC2046 # lists of flags
  gcc -O1 -fno-builtin $(config --cflags) -o "$root/shared" tests/c/status.c $(config --libs) \
    && LD_LIBRARY_PATH="$root/dest/opt/lanemm/lib" "$root/shared"
}

links_static() {
  # shellcheck disable=SC2046
  gcc -O1 -fno-builtin -static $(config --cflags) -o "$root/static" tests/c/status.c \
    $(config --static --libs) && "$root/static"
}

is_gone() {
  make --no-print-directory uninstall PREFIX=/opt/lanemm DESTDIR="$root/dest" \
    && [ -z "$(find "$root/dest" -type f)" ]
}

promise 'make install puts all files below PREFIX' installs
promise 'pkg-config knows the version' config --modversion
promise 'a program links the shared library by pkg-config' links_shared
promise 'a program links the static library by pkg-config' links_static
promise 'make uninstall takes all files away' is_gone
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
