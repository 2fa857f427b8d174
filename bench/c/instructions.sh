#!/bin/sh
# Counts what does not move with the load of the machine: instructions of workloads of bench/c in the
# program itself, under callgrind, and page faults and system calls.
#
#   sh bench/c/instructions.sh WORKLOAD...
#
# Each with one thread under glibc, LaneMM and mimalloc3; SCALE is that of once.sh (1; a program runs
# whole). A program takes 50 times as long. Run bench/c/run.sh once before: it builds the programs and
# inputs. The kernel's instructions are not counted, child processes are. Needs valgrind and strace.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

root=$(realpath "$(dirname "$0")/../..")
out=$root/build/bench-c
here=$out/here

# library_of MANAGER
library_of() {
  case $1 in
    LaneMM) echo "$root/build/lib/liblanemm.so" ;;
    mimalloc3) echo "$root/build/bench/lib/libmimalloc3-malloc.so" ;;
  esac
}

# make_measure FILE: a command for MEASURE of once.sh, whose second part comes from the input.
make_measure() {
  { printf '#!/bin/sh\n'; cat; } > "$1"
  chmod +x "$1"
}

make_measure "$out/instructions" <<'END'
rm -f callgrind.log.*
valgrind --tool=callgrind --trace-children=yes --callgrind-out-file=/dev/null \
  --log-file=callgrind.log.%p "$@" > out || exit 1
awk '$2 == "Collected" { sum += $4 } END { printf "%d\n", sum }' callgrind.log.*
END
make_measure "$out/calls" <<'END'
strace -f -c -o calls.log "$@" > out || exit 1
awk '$NF == "total" { print $4 }' calls.log
END
make_measure "$out/faults" <<'END'
# LD_PRELOAD reaches time, too; its own faults are few, and the same each time.
/usr/bin/time -o faults.log -f %R "$@" > out || exit 1
tail -n 1 faults.log
END

# number MEASURE MANAGER WORKLOAD
number() {
  MEASURE=$out/$1 sh "$root/bench/c/once.sh" "$2" "$(library_of "$2")" "$3" --threads 1 \
    --scale "${SCALE:-1}" > /dev/null
  cat "$here/numbers"
}

printf '%-14s %-10s %16s %12s %12s\n' workload manager instructions 'page faults' 'system calls'
for workload in "$@"; do
  for manager in glibc LaneMM mimalloc3; do
    printf '%-14s %-10s %16s %12s %12s\n' "$workload" "$manager" \
      "$(number instructions "$manager" "$workload")" "$(number faults "$manager" "$workload")" \
      "$(number calls "$manager" "$workload")"
  done
done
