#!/bin/sh
# Makes a page of docs and its charts from a results file.
set -eu

usage() {
  cat <<'END'
Usage: bench/report.sh [SUITE [RESULT]]

Reads bench/results/RESULT.csv, which bench/run.sh or bench/c/run.sh has written, and writes
docs/benchmarks.md with docs/benchmarks/*.svg, or, for the suite c, docs/benchmarks-c.md with
docs/benchmarks-c/*.svg. SUITE is full and RESULT is SUITE unless given. Needs fpc and gnuplot.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
esac
cd "$(dirname "$0")/.."
suite=${1:-full}
result=${2:-$suite}
page=benchmarks
[ "$suite" != c ] || page=benchmarks-c
out=build/bench
data=$out/charts/$suite
mkdir -p "$out/units" "$data" "docs/$page"
fpc -B -l- -v0ewn -vm6018,6058 -Fibench/core -Fubench/core -Fubench/runner -FU"$out/units" \
  -o"$out/report" bench/Report.lpr >&2
rm -f "$data"/*
"$out/report" "bench/suites/$suite.txt" "bench/results/$result.csv" \
  "../bench/results/$result.csv" "$page" "$data" > "docs/$page.md"
if ! command -v gnuplot > /dev/null; then
  echo 'Left out: the charts; for them install gnuplot-nox' >&2
  exit
fi

# chart NAME FILE: draws bench/charts/NAME.gp if there are numbers for it
chart() {
  [ -f "$data/$2" ] || return 0
  # Without tabs and blanks at line ends, as all files of this project.
  gnuplot -e "data='$data'; base='$(sed -n 's/^base *//p' "bench/suites/$suite.txt")'" \
    "bench/charts/$1.gp" | expand -t 2 | sed 's/ *$//' > "docs/$page/$1.svg"
}

chart overall overall.dat
chart threads churn-small.dat
