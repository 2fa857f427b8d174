#!/bin/sh
# Measures the C library against other allocators, all by LD_PRELOAD, and prints the tables and the
# bars.
#
# Usage: bench/c/run.sh [RESULT]   run bench/suites/SUITE.txt, write bench/results/RESULT.csv, SUITE if
#                                  not given; bench/report.sh c [RESULT] makes docs/benchmarks-c.md
#
# The workloads are the C programs in bench/c and real programs, each of which must give what it
# gives with glibc. Takes about 20 minutes on two cores, a fifth of that for each round.
#
# Environment:
#   SUITE=c              the suite: c, c-field (the other programs of mimalloc-bench, in meaning, and seven
#                        real ones), memory-c (memory by use, about five minutes), or c-debug (debug
#                        mode, about five minutes)
#   ROUNDS=5             runs of each workload under each allocator
#   MANAGERS='NAME...'   of glibc LaneMM mimalloc mimalloc3 jemalloc tcmalloc tbb snmalloc; those that the
#                        suite names, or all but the last one, if they can be had. mimalloc is
#                        Debian's, version 2; bench/peers.sh builds mimalloc3, jemalloc, snmalloc
#   WORKLOADS='NAME...'  only these, for example 'larson python'
#   SCALE=1              factor of the work; below 1 programs tell their version only
#
# While there is a file build/bench/pause, it waits between two workloads.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tools/preloads.sh
. bench/lib.sh

root=$PWD
name=${1:-${SUITE:-c}}
rounds=${ROUNDS:-5}
scale=${SCALE:-1}
suite=bench/suites/${SUITE:-c}.txt
workloads=${WORKLOADS:-}
out=build/bench-c

# library_of NAME: the file of an allocator's library, if it is there; nothing for glibc.
library_of() {
  case $1 in
    glibc) return ;;
    LaneMM | LaneMM-debug) echo "$root/build/lib/liblanemm.so" ;;
    mimalloc3 | snmalloc)
      ls "$root/build/bench/lib/lib$1-malloc.so" 2> /dev/null || true
      ;;
    jemalloc) ls "$root/build/bench/lib/libjemalloc.so" 2> /dev/null || true ;;
    mimalloc) installed libmimalloc.so.2 ;;
    tcmalloc) installed libtcmalloc_minimal.so.4 ;;
    tbb) installed libtbbmalloc_proxy.so.2 ;;
  esac
}

installed() {
  ldconfig -p | awk -v file="$1" '$1 == file { print $NF; exit }'
}

# What has to be installed for it.
package_of() {
  case $1 in
    glibc) echo libc6 ;;
    mimalloc) echo libmimalloc2.0 ;;
    mimalloc3) echo python3-pip ;;
    jemalloc | snmalloc) echo cargo ;;
    tcmalloc) echo libtcmalloc-minimal4 ;;
    tbb) echo libtbbmalloc2 ;;
  esac
}

describe() {
  case $1 in
    LaneMM) ;;
    LaneMM-debug) add_source "$1 is LaneMM with $(settings_of "$1")" ;;
    mimalloc3 | snmalloc | jemalloc) add_source "$1 is $(cat "build/bench/lib/$1.version")" ;;
    *) add_source "$(dpkg-query -W -f '${Package} ${Version}' "$(package_of "$1")" 2> /dev/null)" ;;
  esac
}

# settings_of NAME: a variable of the environment, if it takes one. Programs run beside the folder of
# the allocator, where logs go.
settings_of() {
  [ "$1" != LaneMM-debug ] || echo "LANEMM=debug,log=../$1"
}

# add NAME: what the runner of bench/ calls for that allocator
add() {
  library=$(library_of "$1")
  if [ -z "$library" ] && [ "$1" != glibc ]; then
    echo "Left out: $1; for it install $(package_of "$1")" >&2
    return
  fi
  mkdir -p "$out/$1"
  printf '#!/bin/sh\n%s exec sh bench/c/once.sh %s "%s" "$@"\n' \
    "$(settings_of "$1")" "$1" "$library" > "$out/$1/bench"
  chmod +x "$out/$1/bench"
  binaries="$binaries $1=$out/$1/bench"
  describe "$1"
}

# has_row WORKLOAD: whether the suite has it
has_row() {
  grep -q "^\(row\|once\) *$1 " "$out/suite.txt"
}

build_programs() {
  for program in measure larson xmalloc cache_scratch sh_bench mstress churn aligned calloc burst \
    cfrac espresso barnes alloc_test cache_thrash malloc_large mleak rptest glibc_simple glibc_thread; do
    gcc -O2 -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-free -Wall -Wextra \
      -o "$out/$program" "bench/c/$program.c" -lpthread
  done
  g++ -x c++ -O2 -fno-builtin -fsized-deallocation -Wall -Wextra -o "$out/larson-sized" \
    bench/c/larson.c -lpthread
  if has_row churn-asan; then
    gcc -O2 -fno-omit-frame-pointer -fsanitize=address -Wall -Wextra \
      -o "$out/churn-asan" bench/c/churn.c
    add_source "churn-asan is built with -fsanitize=address by gcc $(gcc -dumpfullversion)"
  fi
  build_runner
}

# What the programs work on.
build_inputs() {
  awk -v count=400 -f tests/c/work/large.c.awk > "$out/large.c"
  awk -f tests/c/work/large.cc.awk > "$out/large.cc"
  mkdir -p "$out/project"
  cp bench/c/project.cmake "$out/project/CMakeLists.txt"
  awk -v count=70000 -v form=text -f bench/c/items.awk > "$out/items.text"
  awk -v count=60000 -v form=xml -f bench/c/items.awk > "$out/items.xml"
  awk -v count=40000 -v form=json -f bench/c/items.awk > "$out/items.json"
  awk -f bench/c/bits.awk > "$out/bits.smt2"
  if has_row git && [ ! -d "$out/repository" ]; then
    git init -q -b main "$out/making"
    awk -f bench/c/history.awk | git -C "$out/making" fast-import --quiet
    mv "$out/making" "$out/repository"
  fi
}

# The suite, or those of its rows that are wanted.
build_suite() {
  awk -v wanted=" $workloads " '
    ($1 == "row" || $1 == "once") && wanted != "  " && !index(wanted, " " $2 " ") { next }
    { print }' "$suite" > "$out/suite.txt"
}

# What the programs give with glibc, which all others must give too.
expect() {
  rm -rf "$out/expected"
  sed -n 's/^row *\([^ ]*\) *\([^ ]*\).*/\1 \2/p' "$out/suite.txt" \
    | while read -r workload threads; do
      [ ! -x "$out/$workload" ] || continue
      sh bench/c/once.sh glibc '' "$workload" --threads "$threads" --scale "$scale" > /dev/null \
        || echo "run.sh: $workload does not run; is it installed?" >&2
    done
}

mkdir -p "$out" bench/results
sh lib/build.sh
named=${MANAGERS:-$(sed -n 's/^managers  *//p' "$suite")}
case " ${named:-mimalloc3} " in
  *' mimalloc3 '* | *' snmalloc '* | *' jemalloc '*) sh bench/peers.sh mimalloc3 snmalloc jemalloc ;;
esac
for manager in ${named:-glibc LaneMM mimalloc mimalloc3 jemalloc tcmalloc tbb}; do
  add "$manager"
done
build_suite
build_programs
build_inputs
expect
# shellcheck disable=SC2086
"$out/runner" "$out/suite.txt" "bench/results/$name.csv" "$rounds" "$scale" \
  "command: $(ROUNDS=$rounds given SUITE MANAGERS WORKLOADS SCALE ROUNDS)bench/c/run.sh${*:+ $*}$(revision src lib bench)$sources" \
  $binaries
