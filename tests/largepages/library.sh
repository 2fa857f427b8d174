#!/bin/sh
# Tests liblanemm.so with pages that LargePages.inc plays.
#
#   sh tests/largepages/library.sh DIRECTORY PAGE
#
# DIRECTORY is where it is built, PAGE the size of a page in bytes. The last line is the sum of all
# tests, `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tools/preloads.sh
. tests/lib.sh
out=$1
printed=$out/library.printed
export LANEMM_PAGES="$2"
mkdir -p "$out"
sh lib/build.sh --out="$out/lib" -O3 -dLANEMM_PAGES "-Fi$PWD/tests/largepages"
gcc -O1 -Wall -Werror -o "$out/pages" tests/largepages/pages.c

# on SETTINGS ARGUMENT...: the program on the library.
on() {
  settings=$1
  shift
  env LANEMM="$settings" LD_PRELOAD="$out/lib/liblanemm.so" "$out/pages" "$@"
}

promise 'the library serves' on '' "$2"
promise 'guard pages harm nothing' on debug,guard=pages "$2"
on debug,guard=pages "$2" over > "$printed" 2>&1 && code=0 || code=$?
same 'a write to the page after a block faults: its exit code' 139 $code
sum
