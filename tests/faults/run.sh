#!/bin/sh
# Lets system calls fail: in a program that works with all of LaneMM, in the stress test, and in real
# programs on the C library.
#
#   sh tests/faults/run.sh [--short]
#
# --short  fewer calls, and no real programs
#
# The last line is the sum of all runs, `N passed, N failed`; exit code 1 when one failed.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
out=build/faults
log=$out/log
rm -rf $out
mkdir -p $out/driver $out/checked
. tests/lib.sh

# compile UNITS OPTIONS...: with system calls that can fail.
compile() {
  units=$1
  shift
  fpc -l- -v0 -vew -vm4082,6018 -Fusrc '-Fusrc/*' -Futests -Futests/programs -Futests/stress -Futests/faults \
    -Fitests/faults -dLANEMM_FAULTS -g -gl -Xs- "-FE$units" "-FU$units" "$@"
}

# run COMMAND...: adds up the counts in its last line.
run() {
  code=0
  "$@" > $log 2>&1 || code=$?
  sed '$d' $log
  add $log $code || true
}

compile $out -O3 tests/faults/Failing.lpr
compile $out/checked -dLANEMM_CHECKED tests/faults/FailingStress.lpr
fpc -l- -v0 -vew -vm4082,6018 -O2 -FE$out -FU$out/driver tests/faults/RunFaults.lpr
if [ "${1-}" = --short ]; then
  run $out/RunFaults --short $out/Failing
  run $out/RunFaults --short --plain $out/checked/FailingStress
else
  run $out/RunFaults $out/Failing
  run $out/RunFaults --plain $out/checked/FailingStress
  sh lib/build.sh
  run sh tests/c/failing.sh build/lib/liblanemm.so
fi
sum
