#!/bin/sh
# The oldest C library that liblanemm runs on, and another one.
#
#   sh tests/packages/floor.sh
#
# Checks the versions of symbols, then runs test programs, which are compiled there, in a root of Debian
# 11 with glibc 2.31, where the library is put by a copy and a variable alone, as in a container; last,
# the library for musl, in a root with musl alone. Needs the rights of root. The last line is `N passed,
# N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
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

# A root with musl's library and loader, the one for it, and nothing else.
has_musl_root() {
  CC=musl-gcc sh lib/build.sh --out="$work/musl" || return 1
  install -d "$work/alpine/lib" "$work/alpine/tests" "$work/alpine/tmp" "$work/alpine/proc"
  cp "$(readlink -f /lib/ld-musl-x86_64.so.1)" "$work/alpine/lib/ld-musl-x86_64.so.1"
  cp "$work/musl/liblanemm.so.1" "$work/alpine/lib/"
  install -d "$work/alpine/bin"
  echo 'int main(void) { return 0; }' > "$work/true.c"
  musl-gcc -o "$work/alpine/bin/true" "$work/true.c" # tests/c/forks.c starts it
}

in_musl() { # SETTINGS COMMAND...
  # shellcheck disable=SC2016,SC2086 # the inner shell expands them; a list
  unshare --mount sh -c 'there=$1 settings=$2; mount -t proc proc "$there/proc" && shift 2 && exec env FORKS=20 $settings \
    chroot "$there" "$@"' sh "$work/alpine" "$@"
}

# Linked and static; preloaded where it links without the library, too: six of them do.
runs_with_musl() { # PROGRAM
  there=$work/alpine/tests/$1
  flags="-O1 -g -fno-builtin -w -Ilib/include"
  # shellcheck disable=SC2086 # a list of flags
  musl-gcc $flags -o "$there" "tests/c/$1.c" -L"$work/musl" -llanemm \
    && musl-gcc $flags -static -o "$there-static" "tests/c/$1.c" "$work/musl/liblanemm.a" \
    && in_musl "" "/tests/$1" && in_musl "" "/tests/$1-static" || return 1
  case $1 in
    regions | counts) return 0 ;; # they call functions of lanemm.h
  esac
  # shellcheck disable=SC2086
  musl-gcc $flags -o "$there-plain" "tests/c/$1.c" 2> /dev/null || return 0
  in_musl LD_PRELOAD=/lib/liblanemm.so.1 "/tests/$1-plain"
}

# Blocks that the keys of a thread and thread-local variables lead to are none.
reports_leaks_with_musl() {
  printf '%s\n' '#include <pthread.h>' '#include <stdlib.h>' 'static __thread void *kept;' \
    'static pthread_key_t key; static pthread_barrier_t barrier;' \
    'static void *run(void *p) { kept = malloc(1000); pthread_setspecific(key, malloc(2000));' \
    '  pthread_barrier_wait(&barrier); pthread_barrier_wait(&barrier); return p; }' \
    'int main(void) { pthread_t t; pthread_key_create(&key, NULL); pthread_barrier_init(&barrier, NULL, 2);' \
    '  pthread_create(&t, NULL, run, NULL); pthread_barrier_wait(&barrier); kept = malloc(3000);' \
    '  for (int i = 0; i < 100; i++) *(char *volatile)malloc(123) = 1; return 0; }' > "$work/leak.c"
  musl-gcc -fno-builtin -o "$work/alpine/tests/leak" "$work/leak.c" || return 1
  in_musl 'LANEMM=leaks LD_PRELOAD=/lib/liblanemm.so.1' /tests/leak 2>&1 | tee "$work/leaks"
  grep -Eq 'Memory leaks: (99|100) blocks, ' "$work/leaks"
}

# With musl the program ends before it begins.
says_so_with_musl() {
  printf '%s\n' '#include <stdio.h>' 'int main(void) { puts("runs"); return 0; }' > "$work/plain.c"
  musl-gcc -o "$work/plain" "$work/plain.c" && "$work/plain" | grep -qx runs || return 1
  code=0
  LD_PRELOAD="$library" "$work/plain" > "$work/plain.out" 2>&1 || code=$?
  [ $code -eq 127 ] && [ "$(cat "$work/plain.out")" \
    = 'LaneMM: this liblanemm is built for glibc 2.31 or later, and this program has another C library' ]
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
promise 'with musl, the library for glibc ends a program with one line' says_so_with_musl
promise 'the library is built for musl, and there is a root with musl alone' has_musl_root
for program in functions sizes alignments mix threads forks limits full early bad handoff regions counts; do
  promise "$program runs with musl, linked and static, and preloaded if musl declares what it calls" runs_with_musl $program
done
promise 'leaks are reported with musl' reports_leaks_with_musl
sum
