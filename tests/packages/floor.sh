#!/bin/sh
# The oldest C library that liblanemm runs on, and another one.
#
#   sh tests/packages/floor.sh
#
# Checks the versions of symbols, then runs test programs, which are compiled there, in a root of Debian
# 11 with glibc 2.31, where the library is put by a copy and a variable alone, as in a container; last,
# a program that is linked with musl. Needs the rights of root. The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
work=$PWD/build/packages/floor
rm -rf "$work"
. tests/packages/promise.sh

floor=2.31
old=$work/root
library=$work/lib/liblanemm.so.1
copied=/usr/local/lib/liblanemm.so.1

asks_for_no_later_symbol() { # FILE
  objdump -T "$1" | grep -o 'GLIBC_[0-9][0-9.]*' > "$work/symbols" || true
  [ "$({ cat "$work/symbols"; echo "GLIBC_$floor"; } | sort -uV | tail -n 1)" = "GLIBC_$floor" ]
}

# As a container: COPY liblanemm.so.1 /usr/local/lib/ and ENV LD_PRELOAD=/usr/local/lib/liblanemm.so.1
has_old_root() {
  make_root "$old" bullseye gcc,g++,libc6-dev,perl-base || return 1
  install -m 755 "$library" "$old$copied"
  install -d "$old/tests"
  cp -R tests/c "$old/tests/c"
  in_root "$old" ldd --version | grep -q "GLIBC $floor"
}

runs_by_copy_and_variable() {
  in_root "$old" env LD_PRELOAD="$copied" perl -e \
    'open(M, "/proc/self/maps") or die; exit(!grep(/liblanemm/, <M>));'
}

runs_there() { # PROGRAM
  in_root "$old" sh -c "cd /tests/c && gcc -O1 -g -fno-builtin -o $1 $1.c $copied \
    -Wl,-rpath,${copied%/*} -lpthread -ldl && ./$1"
}

runs_in_cpp_there() {
  in_root "$old" sh -c "cd /tests/c && g++ -O1 -std=c++17 -fno-builtin -o operators operators.cc \
    -lpthread && LD_PRELOAD=$copied ./operators"
}

opens_plugins_there() {
  in_root "$old" sh -c "cd /tests/c && gcc -fPIC -shared -fno-builtin -o plugin.so plugin.c \
    && gcc -O1 -g -fno-builtin -o plugins plugins.c -lpthread -ldl \
    && LD_PRELOAD=$copied ./plugins ./plugin.so"
}

reports_leaks_there() {
  printf '%s\n' '#include <stdlib.h>' 'int main(void) { malloc(123); return 0; }' \
    > "$old/tests/c/leak.c"
  in_root "$old" sh -c "cd /tests/c && gcc -fno-builtin -o leak leak.c \
    && LANEMM=leaks LD_PRELOAD=$copied ./leak" 2>&1 | tee "$work/leaks"
  grep -q '1 block' "$work/leaks"
}

# With musl the program ends before it begins.
says_so_with_musl() {
  printf '%s\n' '#include <stdio.h>' 'int main(void) { puts("runs"); return 0; }' > "$work/plain.c"
  musl-gcc -o "$work/plain" "$work/plain.c" && "$work/plain" | grep -qx runs || return 1
  code=0
  LD_PRELOAD="$library" "$work/plain" > "$work/plain.out" 2>&1 || code=$?
  [ $code -eq 127 ] && [ "$(cat "$work/plain.out")" \
    = 'LaneMM: liblanemm needs glibc 2.31 or later, and this program has another C library' ]
}

# Its own: other tests build theirs at the same time.
builds() {
  sh lib/build.sh --out="$work/lib"
}

promise 'the library builds' builds
promise "liblanemm.so asks for no symbol above glibc $floor" asks_for_no_later_symbol "$library"
promise "there is a root with glibc $floor" has_old_root
promise 'a copied file and a variable put a program on LaneMM' runs_by_copy_and_variable
for program in mix threads forks sizes alignments handoff; do
  promise "$program runs on glibc $floor" runs_there $program
done
promise "C++ runs on glibc $floor" runs_in_cpp_there
promise "plugins run on glibc $floor" opens_plugins_there
promise "leaks are reported on glibc $floor" reports_leaks_there
promise 'a program that is linked with musl ends with one line' says_so_with_musl
sum
