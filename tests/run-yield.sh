#!/bin/sh
# Runs the unit tests of the engine and the stress in a build that yields at every atomic operation
# (-dLANEMM_YIELD), checked, with one seed after the other.
#
#   sh tests/run-yield.sh
#   SEEDS=N    number of seeds (1)
#   SEED=N     the first one (by the clock); printed
#   FLAGS=...  more options for the compiler
#
# Each program gets the seed on its command line, so that a failed one can be run again alone; the
# schedule of the system still differs. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
out=build/test-yield
seeds=${SEEDS:-1}
first=${SEED:-$(date +%s)}
suites='Places Atomic Lock RemoteList FreeRuns Shards Span Large Heap Shelf Threads Fork Purge PurgeCalls Limits Walk'
. tests/lib.sh

build() {
  # shellcheck disable=SC2086 # a list of options
  fpc -l- -v0 -vew -vm4082,6018 -dLANEMM_YIELD -dLANEMM_PUREPASCAL -dLANEMM_CHECKED -g -gl -Xs- -O3 \
    ${FLAGS-} -Fusrc '-Fusrc/*' -Futests '-Futests/*' -FE"$out" -FU"$out" "$1" > "$out/build.log" 2>&1 \
    || { cat "$out/build.log"; echo '0 passed, 1 failed'; exit 1; }
}

# run COMMAND...: adds its last line, `N passed, N failed`, to the sum.
run() {
  timeout -k 5 400 "$@" > "$out/log" 2>&1
  status=$?
  add "$out/log" $status && return
  echo "failed: $* (exit code $status)"
  sed 's/^/  /' "$out/log"
}

mkdir -p "$out"
build tests/RunTests.lpr
build tests/stress/Stress.lpr
echo "seeds $first to $((first + seeds - 1))"
seed=$first
while [ "$seed" -lt $((first + seeds)) ]; do
  for suite in $suites; do
    run "$out/RunTests" --suite="$suite" --seed="$seed"
  done
  run "$out/Stress" --threads=8 --rounds=1 --seed="$seed"
  run env LANEMM=huge=64K "$out/Stress" --threads=8 --rounds=1 --seed="$seed" # huge pages from the start
  run "$out/Stress" --threads=8 --rounds=40 --narrow --seed="$seed"
  seed=$((seed + 1))
done
sum
