#!/bin/sh
# Records bench/traces/lint.trace: what the linter of this repository (tools/Lint.lpr) asks of
# the memory manager when it begins to read the tree. tools/lanemm/Recordings.pas tells the format.
set -eu

case ${1:-} in
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
esac
cd "$(dirname "$0")/../.."
out=build/bench/trace
mkdir -p "$out"
make --no-print-directory build/lanemm
fpc -B -l- -v0ewn -vm6018 -O3 -FaLaneMM -Fusrc '-Fusrc/*' -Futools/lint -FU"$out" -o"$out/lint" tools/Lint.lpr
rm -f "$out/lint.lanerec"
# The linter fails when it finds something; its calls are recorded all the same.
LANEMM=record="$out/lint.lanerec",record:most=400K "$out/lint" > /dev/null || true
build/lanemm replay "$out/lint.lanerec" --plan=bench/traces/lint.trace
ls -l bench/traces/lint.trace
