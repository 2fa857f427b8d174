#!/bin/sh
# Checks the names that the C library shows against those of glibc, the C++ library and the header.
#
#   sh tests/c/symbols.sh DIRECTORY     where liblanemm.so and liblanemm.a are
#
# The last line is `N passed, N failed`.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

library=$1
export LC_ALL=C
cd "$(dirname "$0")/../.."
work=build/test-c/symbols
mkdir -p "$work"
. tests/lib.sh

# Each line of the first list is a line of the second one: promise, lists.
are_in() {
  sort -u "$3" > "$work/second"
  missing=$(sort -u "$2" | comm -23 - "$work/second")
  if [ -s "$2" ] && [ -z "$missing" ]; then
    pass
  else
    fail "$1: $(echo "$missing" | tr '\n' ' ')"
  fi
}

# What malloc.h and stdlib.h declare for blocks; cfree, which only old programs ask for; and what C23 adds.
declared() {
  printf '#define _GNU_SOURCE\n#include <malloc.h>\n#include <stdlib.h>\n' | gcc -E -P -x c - \
    | tr '\n' ' ' | grep -oE '\b(malloc[a-z_]*|[a-z]*alloc|reallocarray|free|[a-z_]*memalign|aligned_alloc|mallinfo2?|mallopt) \(' \
    | sed 's/ .*//'
  printf '%s\n' cfree free_sized free_aligned_sized
}

# The extended interfaces of jemalloc and tcmalloc; the static library has no operators.
extended() {
  printf '%s\n' mallocx rallocx xallocx sallocx dallocx sdallocx nallocx mallctl mallctlnametomib mallctlbymib \
    malloc_stats_print
  printf 'tc_%s\n' version malloc malloc_skip_new_handler free free_sized free_aligned_sized realloc calloc cfree memalign \
    posix_memalign valloc pvalloc malloc_stats mallopt mallinfo malloc_size nallocx set_new_mode
  printf 'MallocExtension_%s\n' VerifyAllMemory VerifyNewMemory VerifyArrayNewMemory VerifyMallocMemory \
    MallocMemoryStats GetStats GetNumericProperty SetNumericProperty MarkThreadIdle MarkThreadBusy \
    MarkThreadTemporarilyIdle ReleaseToSystem ReleaseFreeMemory GetEstimatedAllocatedSize GetAllocatedSize \
    GetThreadCacheSize GetOwnership SetMemoryReleaseRate GetMemoryReleaseRate
}
extended > "$work/extended"
for operator in new newarray delete deletearray; do
  for form in '' _nothrow _aligned _aligned_nothrow; do
    echo "tc_$operator$form"
  done
done > "$work/extended-operators"
printf 'tc_delete%s\n' _sized array_sized _sized_aligned array_sized_aligned >> "$work/extended-operators"

# What else the shared library replaces: see LaneMM.C.DeepBind and LaneMM.C.ThreadStart.
printf '%s\n' dlopen pthread_create > "$work/replaced"

# The file of a library that gcc links.
file_of() {
  gcc -print-file-name="$1"
}

nm -D --defined-only "$library/liblanemm.so" | sed 's/.* //; s/@.*//' | sort -u \
  > "$work/shared"
nm --defined-only "$library/liblanemm.a" | sed -n 's/.* [TW] //p' | sort -u > "$work/static"
declared | grep -vxE 'alloca' > "$work/declared"
nm -D --defined-only "$(file_of libc.so.6)" | sed 's/.* //; s/@.*//' \
  | grep -xE '__libc_(malloc|calloc|realloc|free|memalign|valloc|pvalloc|mallinfo|mallopt)' \
  > "$work/inner" || true
nm -D --defined-only "$(file_of libstdc++.so.6)" | sed 's/.* //; s/@.*//' \
  | grep -E '^_Z(n[wa]|d[la])' > "$work/operators"
grep -o 'lanemm_[a-z_]*(' lib/include/lanemm.h | tr -d '(' > "$work/header"
grep '^lanemm_' "$work/shared" > "$work/own"
sort -u "$work/declared" "$work/inner" "$work/operators" "$work/header" \
  "$work/extended" "$work/extended-operators" "$work/replaced" > "$work/known"
sort -u "$work/declared" "$work/header" "$work/extended" > "$work/c"
cat "$work/extended-operators" >> "$work/extended"

are_in 'all functions of malloc.h and stdlib.h are there' "$work/declared" "$work/shared"
are_in "all of glibc's inner names are there" "$work/inner" "$work/shared"
are_in 'all operators of the C++ library are there' "$work/operators" "$work/shared"
are_in "all of jemalloc's and tcmalloc's names are there" "$work/extended" "$work/shared"
are_in 'all functions of lanemm.h are there' "$work/header" "$work/shared"
are_in 'nothing else is shown' "$work/shared" "$work/known"
are_in 'the static library has all functions for C' "$work/c" "$work/static"
are_in 'the static library shows nothing else' "$work/static" "$work/c"
are_in 'lanemm.h declares all own names' "$work/own" "$work/header"
sum
