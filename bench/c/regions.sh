#!/bin/sh
# What regions cost, beside heaps of mimalloc 3, std::pmr and blocks freed one by one: bench/c/regions.cc.
#
#   sh bench/c/regions.sh [RESULTS]
#
# Builds the C library and mimalloc 3, runs every row with every manager ROUNDS times (5) in turn, and
# writes medians to RESULTS (bench/results/regions.csv). Takes a minute.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
results=${1-bench/results/regions.csv} rounds=${ROUNDS:-5}
out=build/bench-regions
mkdir -p "$out"
make -s lib > "$out/lib.log"
sh bench/peers.sh mimalloc3
g++ -O2 -std=c++17 -Wall -Ilib/include -o "$out/regions" bench/c/regions.cc -Lbuild/lib -llanemm \
  -Wl,-rpath,"$PWD/build/lib" -ldl
export MIMALLOC="$PWD/build/bench/lib/libmimalloc3.so"

# The rows that a manager has: with one heap for all, or memory that is not given back, some say nothing.
rows='request lanemm lanemm-reset mimalloc3 pmr malloc
tree lanemm mimalloc3 pmr malloc
made lanemm mimalloc3
alive lanemm mimalloc3 malloc'

: > "$out/log"
for round in $(seq "$rounds"); do
  echo "round $round of $rounds" >&2
  echo "$rows" | while read -r row managers; do
    for manager in $managers; do
      value=$("$out/regions" "$manager" "$row")
      echo "$manager,$row,$value" >> "$out/log"
    done
  done
done
{
  echo "# command: ROUNDS=$rounds sh bench/c/regions.sh"
  echo "# date: $(date +%Y-%m-%d)"
  echo "# revision: $(git rev-parse --short HEAD)"
  echo "# library: mimalloc3 is $(cat build/bench/lib/mimalloc3.version)"
  echo "# CPU: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed 1q)"
  echo "# kernel: $(uname -sr)"
  echo "# request, tree: ns; made, alive: KB of resident memory"
  echo 'manager,row,rounds,median,min,max'
  sort -t, -k1,2 -k3,3n "$out/log" | awk -F, '
    function flush() { if (n) printf "%s,%d,%d,%d,%d\n", key, n, values[int((n + 1) / 2)], values[1], values[n] }
    { now = $1 "," $2; if (now != key) { flush(); key = now; n = 0 } values[++n] = $3 }
    END { flush() }'
} > "$results"
cat "$results"
