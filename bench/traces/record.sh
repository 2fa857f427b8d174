#!/bin/sh
# Records bench/traces/lint.trace: what the linter of this repository (tools/Lint.lpr) asks of
# the memory manager when it begins to read the tree. TraceRecorder.pas tells the format.
set -eu

case ${1:-} in
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit ;;
esac
cd "$(dirname "$0")/../.."
out=build/bench/trace
mkdir -p "$out"
fpc -B -l- -v0ewn -vm6018 -O3 -FaTraceRecorder -Fubench/traces -Futools/lint -FU"$out" \
  -o"$out/lint" tools/Lint.lpr
# The linter fails when it finds something; its calls are recorded all the same.
TRACE=bench/traces/lint.trace "$out/lint" > /dev/null || true
ls -l bench/traces/lint.trace
