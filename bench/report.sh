#!/bin/sh
# Makes docs/benchmarks.md and its charts from a results file.
set -eu

usage() {
  cat <<'END'
Usage: bench/report.sh [SUITE [RESULT]]

Reads bench/results/RESULT.csv, which bench/run.sh has written, and writes
docs/benchmarks.md and docs/benchmarks/*.svg. SUITE is full and RESULT is SUITE unless
given. Needs fpc and gnuplot.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
esac
cd "$(dirname "$0")/.."
suite=${1:-full}
result=${2:-$suite}
out=build/bench
mkdir -p "$out/units" docs/benchmarks
fpc -B -l- -v0ewn -vm6018,6058 -Fibench/core -Fubench/core -Fubench/runner -FU"$out/units" \
  -o"$out/report" bench/Report.lpr >&2
"$out/report" "bench/suites/$suite.txt" "bench/results/$result.csv" \
  "../bench/results/$result.csv" benchmarks "$out/charts" > docs/benchmarks.md
if ! command -v gnuplot > /dev/null; then
  echo 'Left out: the charts; for them install gnuplot-nox' >&2
  exit
fi
for chart in bench/charts/*.gp; do
  name=$(basename "$chart" .gp)
  # Without tabs and blanks at line ends, as all files of this project.
  gnuplot -e "data='$out/charts'" "$chart" | expand -t 2 | sed 's/ *$//' > "docs/benchmarks/$name.svg"
done
