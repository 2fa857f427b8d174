#!/bin/sh
# Builds the demos, runs them under two memory managers and compares them; see --help.
set -eu

unset CDPATH
demos=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$(dirname "$demos")/build}/demos
source=${LANEMM_SRC:-$(dirname "$demos")/src}
managers=${MANAGERS:-default LaneMM}
rounds=${ROUNDS:-3}

usage() {
  cat <<'END'
compare.sh        builds ParallelAllocations and Reallocation under every memory manager, runs
                  them in turn, several rounds, and prints one table: medians of the rounds
compare.sh all    builds all six demos under LaneMM and shows their output
compare.sh --help prints this text

Environment:
  ROUNDS      rounds, 3
  MANAGERS    managers to compare, "default LaneMM"; a name other than default is a unit
              that `fpc -Fa` puts first, such as cmem
  LANEMM_SRC  folder of the unit LaneMM, the src beside demos
  FPC, RUN    another compiler, and the command that runs its programs
  OUT         folder for what is built, build
Everything built is below build/demos/MANAGER. Exit code 1 when a build or a run fails.
END
}

fail() {
  echo "compare.sh: $*" >&2
  exit 1
}

# build MANAGER PROGRAM
build() {
  dir=$out/$1
  log=$dir/$2.log
  echo "building $2 with $1" >&2
  rm -rf "$dir/units" # a unit without a source would be used as it is
  mkdir -p "$dir/units"
  select=
  [ "$1" = default ] || select=-Fa$1
  # -gh-: not the heap tracer that an fpc.cfg may switch on, which would be timed in place of the default.
  "${FPC:-fpc}" -O2 -gh- -v0 $select "-Fu$source" "-Fu$source/*" "-Fu$demos/common" "-Fu$demos/ParallelAllocations" \
    "-FE$dir" "-FU$dir/units" "$demos/$2/$2.lpr" >"$log" 2>&1 || { cat "$log" >&2; fail "cannot build $2 with $1"; }
}

# run MANAGER JOB PROGRAM [ARGUMENT...]: adds lines `JOB MANAGER KEY VALUE` to the results
run() {
  manager=$1
  job=$2
  program=$3
  shift 3
  ${RUN-} "$out/$manager/$program" --csv --manager="$manager" "$@" >"$out/run.csv" ||
    fail "$program failed with $manager"
  tr -d "\r" <"$out/run.csv" | sed "s/^/$job $manager /; s/=/ /" >>"$out/results.txt"
}

# Prints the tables from the results.
tables() {
  awk -v managers="$managers" -v rounds="$rounds" '
    function median(job, key, manager,   n, i, j, t, list) {
      n = split(values[job, key, manager], list, " ")
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) {
          t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
      return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    function grouped(number,   text) {
      text = sprintf("%.0f", number)
      while (match(text, /^[0-9]+[0-9][0-9][0-9]/))
        text = substr(text, 1, RLENGTH - 3) "," substr(text, RLENGTH - 2)
      return text
    }
    function parallel(job, title,   i, m) {
      for (i = 1; i <= manager_count; i++) {
        m = manager[i]
        printf "%-32s%-10s%10.1f%12.1f%11.2f%12.1f\n", title, m, median(job, "serial_ms", m),
          median(job, "parallel_ms", m), median(job, "speed_up", m),
          median(job, "peak_bytes", m) / 1048576
      }
    }
    function realloc(key, title,   i, m) {
      for (i = 1; i <= manager_count; i++) {
        m = manager[i]
        printf "%-32s%-10s%10.1f%12s%11s%12.1f\n", title, m, median("realloc", key ".ms", m),
          grouped(median("realloc", key ".calls", m)), grouped(median("realloc", key ".moves", m)),
          median("realloc", key ".bytes_copied", m) / 1048576
      }
    }
    function explain(   one, other) {
      one = manager[1]
      other = manager[manager_count]
      print "\ndefault: Free Pascal\047s heap. serial, parallel: the same lists one after the other, and in threads."
      print "speed-up: serial / parallel; at most the number of processors that are free, so compare the times first."
      print "Short lists are mostly work of the memory manager. A long list spends most of its time on deleting"
      print "from its front, which moves the rest of it: no manager makes that faster."
      if (manager_count > 1)
        printf "\n%s takes %.1f ms for the short lists in threads, %s %.1f ms: %s is %.1f times as fast.\n", other,
          median("short", "parallel_ms", other), one, median("short", "parallel_ms", one), other,
          median("short", "parallel_ms", one) / median("short", "parallel_ms", other)
      if (other == "LaneMM")
        print "Your own program: docs/start-pascal.md. A report of its leaks, without a rebuild: LANEMM=leaks ./program"
    }
    { values[$1, $3, $2] = values[$1, $3, $2] " " $4 }
    END {
      manager_count = split(managers, manager, " ")
      printf "Medians of %d rounds; MB = 1,048,576 bytes\n\n", rounds
      printf "%-32s%-10s%10s%12s%11s%12s\n", "ParallelAllocations, " \
        median("book", "threads", manager[1]) " threads", "manager", "serial ms", "parallel ms",
        "speed-up", "peak MB"
      parallel("short", "10,000 lists of 120 objects")
      parallel("book", "100 lists of 12,000 objects")
      printf "\n%-32s%-10s%10s%12s%11s%12s\n", "Reallocation, 10,000,000", "manager", "ms",
        "ReallocMem", "moves", "MB copied"
      realloc("string_append", "AnsiString, append")
      realloc("string_first", "AnsiString, SetLength first")
      realloc("array_append", "array of Char, append")
      realloc("array_first", "array of Char, SetLength first")
      realloc("list_append", "TList<Char>, Add")
      realloc("list_first", "TList<Char>, Capacity first")
      explain()
    }' "$out/results.txt"
}

compare() {
  case $rounds in
    *[!0-9]* | 0) fail "ROUNDS=$rounds is not a number of rounds" ;;
  esac
  for manager in $managers; do
    build "$manager" ParallelAllocations
    build "$manager" Reallocation
  done
  : >"$out/results.txt"
  round=1
  while [ "$round" -le "$rounds" ]; do
    for manager in $managers; do
      echo "round $round of $rounds: $manager" >&2
      run "$manager" short ParallelAllocations --lists=10000 --objects=120
      run "$manager" book ParallelAllocations
      run "$manager" realloc Reallocation
    done
    round=$((round + 1))
  done
  tables
}

# show PROGRAM [ARGUMENT...]
show() {
  program=$1
  shift
  echo
  ${RUN-} "$out/LaneMM/$program" --manager=LaneMM "$@" || fail "$program failed"
}

show_all() {
  for program in Reallocation InitializeFinalize Allocate ParallelAllocations FastMMModel \
    Regions; do
    build LaneMM "$program"
  done
  show Reallocation
  show Reallocation --no-growth
  show InitializeFinalize
  show Allocate
  show ParallelAllocations
  show FastMMModel
  show Regions
}

case $#-${1:-} in
  0-) compare ;;
  1-all) show_all ;;
  1---help) usage ;;
  *) usage >&2; exit 2 ;;
esac
