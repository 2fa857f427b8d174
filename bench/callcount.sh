#!/bin/sh
# Counts the instructions that one operation takes, under valgrind's callgrind: numbers
# that do not move with the load of the machine. Runs N and 2 N operations and divides the
# difference by N, so the start and the end of the program drop out. The workload's own
# instructions are in the numbers, the same for every manager; the kernel's are not.
#
# Usage: bench/callcount.sh [MANAGER...]
#
# Builds as bench/run.sh does and prints instructions per operation for each MANAGER,
# FPC, glibc, mimalloc, mimalloc3 and LaneMM, as far as they can be built, unless given.
# Takes two minutes. Environment: MM, MM_PATH as in bench/run.sh.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
. bench/lib.sh

# WORKLOAD THREADS N
rows='pairs-64       1  100000
churn-small    1  200000
churn-small    2  200000
cross-free     2  200000
append-string  1  500000
append-array   1  500000
append-list    1  500000
resize-random  1  200000'

# per_operation BINARY WORKLOAD THREADS N
per_operation() {
  once=$(instructions "$1" "$2" --threads "$3" --operations "$4")
  twice=$(instructions "$1" "$2" --threads "$3" --operations $((2 * $4)))
  awk -v once="$once" -v twice="$twice" -v n="$4" 'BEGIN { printf "%.1f", (twice - once) / n }'
}

sh tools/need.sh valgrind
wanted=${*:-FPC glibc mimalloc mimalloc3 LaneMM}
binaries=$(MANAGERS=$wanted bench/run.sh build)
managers=$(echo "$binaries" | sed 's/=.*//')

printf 'Instructions per operation\n%-18s' workload/threads
# shellcheck disable=SC2086
printf '%12s' $managers
echo
echo "$rows" | while read -r workload threads operations; do
  printf '%-18s' "$workload/$threads"
  for manager in $managers; do
    binary=$(echo "$binaries" | sed -n "s/^$manager=//p")
    count=$(per_operation "$binary" "$workload" "$threads" "$operations")
    printf '%12s' "$count"
  done
  echo
done
