#!/bin/sh
# Makes a page of docs and its charts from a results file.
#
# Usage: bench/report.sh [SUITE [RESULT]]
#
# Reads bench/results/RESULT.csv, which bench/run.sh or bench/c/run.sh has written, and writes
# docs/benchmarks.md with docs/benchmarks/*.svg, or, for another SUITE than full,
# docs/benchmarks-SUITE.md with docs/benchmarks-SUITE/*.svg. SUITE is full and RESULT is SUITE unless
# given. Needs fpc and gnuplot. Of docs/benchmarks-server.md it writes the tables and the chart alone.
#
# Where README.md has two lines that name this script and the suite, it also writes the numbers
# between them. It refuses numbers that were not made at SCALE=1, and those of another engine: what gets,
# resizes and frees blocks in the core of their revision has to compile to the same machine code as in the
# work tree. Needs git and objdump then.
set -eu
. "$(dirname "$0")/../tools/begin.sh"

suite=${1:-full}
result=${2:-$suite}
page=benchmarks
[ "$suite" = full ] || page=benchmarks-$suite
out=build/bench
data=$out/charts/$suite
[ -s "bench/results/$result.csv" ] || { echo "report.sh: there is no bench/results/$result.csv" >&2; exit 2; }
mkdir -p "$out/units" "$data" "docs/$page"

# fill FILE WORD: puts $out/WORD.md between the two lines of FILE that name this script, the suite and the word
fill() {
  sed -e "/^<!-- bench\/report.sh $suite writes the $2/r $out/$2.md" \
    -e "/^<!-- bench\/report.sh $suite writes the $2/,/^<!-- end of bench\/report.sh $suite/{//!d}" "$1" \
    > "$out/filled.md"
  cat "$out/filled.md" > "$1"
}

# chart NAME FILE: draws bench/charts/NAME.gp if there are numbers for it
chart() {
  [ -f "$data/$2" ] || return 0
  # Without tabs and blanks at line ends, as all files of this project.
  gnuplot -e "data='$data'; suite='$suite'; base='$(sed -n 's/^base *//p' "bench/suites/$suite.txt")'" \
    "bench/charts/$1.gp" | expand -t 2 | sed 's/ *$//' > "docs/$page/$1.svg"
}

# server_page RESULTS: the tables and the chart of a page that is written by hand
server_page() {
  for word in cpu requests memory; do
    awk -v what=$word -f bench/real/tables.awk "$1" > "$out/$word.md"
    fill "docs/$page.md" $word
  done
  awk -v what=instructions -f bench/real/tables.awk bench/results/server-instructions.csv > "$out/instructions.md"
  fill "docs/$page.md" instructions
  { echo '```'; sed -n 's/^# //p' "$1"; echo '```'; } > "$out/head.md"
  fill "docs/$page.md" head
  awk -v what=chart -f bench/real/tables.awk "$1" > "$data/server.dat"
  chart server server.dat
}

if [ "$suite" = server ]; then
  server_page "bench/results/$result.csv"
  exit
fi
fpc -B -l- -v0ewn -vm6018,6058 -Fibench/core -Fubench/core -Fubench/runner -FU"$out/units" \
  -o"$out/report" bench/Report.lpr >&2
rm -f "$data"/*

refuse() {
  echo "README.md keeps its numbers: $1" >&2
  exit 1
}

# Routines of the engine that no benchmark measures: its start and end, faults, what is said of an
# invalid pointer, blocks of other copies and managers, and counts and walks of the heap.
unmeasured='LANEMM[.](ENGINE|FOREIGN|ERRORS|STATS|WALK)_|OS_[$][$]_(OS)?(FAULT|HANDLE)|BLOCKINVALID'

# engine_code SOURCES FOLDER: prints the machine code of the engine in SOURCES, a line for each
# routine that is measured
engine_code() {
  rm -rf "$2"
  mkdir -p "$2"
  fpc -B -l- -v0ew -O3 -Fu"$1/src" -Fu"$1/src/*" -FU"$2" "$1/src/LaneMM.pas" >&2
  for unit in "$1"/src/core/*.pas; do
    objdump -dr --no-show-raw-insn "$2/$(basename "$unit" .pas).o"
  done | awk -v unmeasured="$unmeasured" '
    function finish() { if (routine != "" && routine !~ unmeasured) print routine code }
    /^[0-9a-f]+ <.*>:$/ { finish(); routine = substr($2, 2, length($2) - 3); code = ""; next }
    /file format|^Disassembly/ { finish(); routine = ""; next }
    routine != "" && NF { gsub(/^ *[0-9a-f]+:|[0-9a-f]+ </, " "); $1 = $1; code = code " | " $0 }
    END { finish() }' | LC_ALL=C sort
}

# check_results FILE: refuses results that README must not state
check_results() {
  head=$(sed -n 's/^# //p' "$1")
  case $(echo "$head" | sed -n '1s/.*SCALE=\([^ ]*\).*/\1/p') in
    '' | 1) ;;
    *) refuse "those of $1 are not of SCALE=1" ;;
  esac
  measured=$(echo "$head" | sed -n 's/^revision: //p')
  case $measured in
    '' | *' '*) refuse "those of $1 are not of a commit" ;;
  esac
  git diff --quiet "$measured" -- src/core src/LaneMM.pas && return
  command -v objdump > /dev/null || refuse 'the engine has changed, and objdump is missing'
  rm -rf "$out/measured"
  mkdir -p "$out/measured"
  git archive "$measured" src | tar -x -C "$out/measured"
  engine_code "$out/measured" "$out/code-measured" > "$out/code-measured.txt"
  engine_code . "$out/code-today" > "$out/code-today.txt"
  changed=$(LC_ALL=C comm -23 "$out/code-measured.txt" "$out/code-today.txt" | cut -d' ' -f1 |
    tr '\n' ' ')
  [ -z "$changed" ] ||
    refuse "those of $1 are of the engine of $measured, which had another ${changed% }"
}

# write_readme WORD: puts what `report --WORD` says between the two lines of README.md that name this script,
# the suite and the word
write_readme() {
  "$out/report" "--$1" "bench/suites/$suite.txt" "bench/results/$result.csv" > "$out/$1.md"
  fill README.md "$1"
}

if grep -q "^<!-- bench/report.sh $suite writes" README.md; then
  check_results "bench/results/$result.csv"
  write_readme headline
  write_readme summary
fi
"$out/report" "bench/suites/$suite.txt" "bench/results/$result.csv" \
  "../bench/results/$result.csv" "$page" "$data" > "docs/$page.md"
if ! command -v gnuplot > /dev/null; then
  echo 'Left out: the charts; for them install gnuplot-nox' >&2
  exit
fi

chart overall overall.dat
chart threads churn-small.dat
[ "$suite" != full ] || chart bars bars.dat
