#!/bin/sh
# Counts the cache lines that threads take from each other for one operation of a memory manager:
# accesses to memory traced by valgrind's lackey, threads that take turns (bench/Turns.lpr), and a
# simulator of their caches (bench/SharedLines.lpr). No clock, load or number of processors is in it.
#
# Usage: bench/lines.sh [ROW...]         prints a table; without ROW writes bench/results/lines.csv
#        bench/lines.sh --top N ROW      the words of LaneMM that cost most, with the instruction
#
# Per operation, for LaneMM, mimalloc3 and snmalloc, as far as bench/peers.sh can build them:
#   owned    lines taken from other threads to write to them
#   fetched  lines read that another thread has written
#   shared   lines written that other threads touch, too
# Environment: THREADS (4), MANAGERS. Needs fpc and valgrind; about five minutes.
set -eu
. "$(dirname "$0")/../tools/begin.sh"

out=build/lines
lib=$PWD/build/bench/lib
rows='own own-churn own-burst first remote remote-batch remote-burst remote-many large large-churn
large-remote spawn-none spawn spawn-leave'
wanted=${MANAGERS:-LaneMM mimalloc3 snmalloc}
threads=${THREADS:-4}

# program NAME OUTPUT FPC-OPTIONS...
program() {
  source=bench/$1.lpr output=$out/$2
  shift 2
  mkdir -p "$output.units"
  fpc -B -l- -v0ewn -vm4082,6018,6058 -O3 "$@" -Fubench/managers -Fibench/core -Fubench/core \
    -FU"$output.units" -o"$output" "$source" >&2
}

# snmalloc maps a table of all addresses, which valgrind does not have: 38 bits of them are enough.
small_snmalloc() {
  small=$out/snmalloc-sources
  rm -rf "$small"
  mkdir -p "$out/lib"
  cp -R build/bench/peers/crates/snmalloc-sys/upstream/src "$small"
  sed -i 's/? 48 : 32/? 38 : 32/' "$small/snmalloc/aal/aal.h"
  g++ -O3 -DNDEBUG -fPIC -ftls-model=initial-exec -shared -w "$small/snmalloc/override/malloc.cc" \
    -I"$small" -std=c++20 -fno-exceptions -fno-rtti -mcx16 -DSNMALLOC_USE_WAIT_ON_ADDRESS=1 \
    -DSNMALLOC_STATIC_LIBRARY_PREFIX=sn_ -DSNMALLOC_USE_PTHREAD_DESTRUCTORS \
    -o "$out/lib/libsnmalloc.so"
}

build() {
  mkdir -p "$out"
  program SharedLines SharedLines
  for manager in $wanted; do
    case $manager in
      LaneMM)
        program Turns LaneMM -FaLaneMM,LaneMMWords -Fusrc '-Fusrc/*' ;;
      mimalloc3)
        bench/peers.sh
        program Turns mimalloc3 -FaMimalloc3MM -Fl"$lib" -k-rpath -k"$lib" ;;
      snmalloc)
        bench/peers.sh
        [ -e "$out/lib/libsnmalloc.so" ] || small_snmalloc
        program Turns snmalloc -FaSnmallocMM -Fl"$out/lib" -k-rpath -k"$PWD/$out/lib" ;;
      *)
        echo "No manager of this script: $manager" >&2
        exit 2 ;;
    esac
  done
}

# count MANAGER ROW OPTIONS...: what SharedLines prints. No memory is given back meanwhile.
count() {
  manager=$1 row=$2
  shift 2
  MIMALLOC_PURGE_DELAY=-1 timeout 300 valgrind --tool=lackey --trace-mem=yes --basic-counts=no \
    --log-fd=9 "$out/$manager" "$row" "$threads" 9>&1 > "$out/words" |
    "$out/SharedLines" "$out/words" "$@"
}

# header: what was measured, on what
header() {
  echo "# bench/lines.sh"
  echo "# date: $(date -u +%F), revision: $(git rev-parse --short HEAD)"
  echo "# threads: $threads; per operation; $(valgrind --version)"
  sed -n 's/^\(lib\|sn\)malloc-sys\(.*\)/# crate \1malloc-sys\2/p; s/^libmimalloc.*/# crate &/p' \
    build/bench/lib/built 2>/dev/null || true
  echo 'operation,manager,word,writes,owned,fetched'
}

# table CSV: a line for each operation
table() {
  awk -F, '
    /^[#]/ || $3 != "all" { next }
    !($1 in seen) { seen[$1] = 1; order[++n] = $1 }
    !($2 in known) { known[$2] = 1; managers[++m] = $2 }
    { cell[$1, $2] = sprintf("%6.2f%8.2f%8.2f", $5, $6, $4) }
    END {
      printf "%-14s", "operation"
      for (j = 1; j <= m; j++) printf "  %22s", managers[j]
      printf "\n%-14s", ""
      for (j = 1; j <= m; j++) printf "  %s", " owned fetched  shared"
      print ""
      for (i = 1; i <= n; i++) {
        printf "%-14s", order[i]
        for (j = 1; j <= m; j++) printf "  %22s", cell[order[i], managers[j]]
        print ""
      }
    }' "$1"
}

top=
case ${1:-} in
  --top) top=$2; shift 2; rows=${1:-$rows} wanted=LaneMM ;;
esac
sh tools/need.sh fpc valgrind
build
if [ -n "$top" ]; then
  for row in $rows; do count LaneMM "$row" --top "$top"; done
  exit
fi
result=$out/lines.csv
header > "$result"
for row in ${*:-$rows}; do
  for manager in $wanted; do
    count "$manager" "$row" > "$out/counts"
    sed "s/^/$row,$manager,/" "$out/counts" >> "$result"
  done
done
table "$result"
[ $# != 0 ] || [ -n "${MANAGERS:-}" ] || cp "$result" bench/results/lines.csv
