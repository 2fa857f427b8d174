#!/bin/sh
# Tests that tools/sum-tests.sh refuses a second run beside it, that it ends where it cannot write, and that
# the interrupt key ends it with all that it runs.
#
#   sh tests/interrupted.sh
#
# In a copy below build, with a target that takes minutes. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
copy=build/interrupted
rm -rf "$copy"
mkdir -p "$copy/tools" "$copy/tests"
cp tools/sum-tests.sh "$copy/tools"
cp tests/lib.sh tests/times.txt "$copy/tests"
. tests/lib.sh
cd "$copy" || exit 1
printed=log

cat > Makefile << 'END'
slow: ; @echo $$$$ > started && exec sleep 300
lost: ; @rm -rf build/logs && echo 1 passed, 0 failed
END
ends_with() { # CODE TARGET
  code=0
  timeout 60 sh tools/sum-tests.sh "$2" || code=$?
  [ "$code" -eq "$1" ]
}
promise 'a result that cannot be written is reported' ends_with 1 lost
has_started() { [ -s started ]; }
is_over() { ! kill -0 "$(cat started)"; }
if env --default-signal=INT true 2> log; then
  # A group of its own, which gets the signal as all processes of a terminal do: at once.
  env --default-signal=INT setsid sh tools/sum-tests.sh slow > sum.log 2>&1 &
  group=$!
  promise 'a target has started' await has_started
  promise 'a second run is refused' ends_with 2 slow
  kill -INT "-$group"
  promise 'the interrupt key ends it' await is_over
  is_over 2> log || kill "$(cat started)"
else
  skip 'the interrupt key' 'this needs coreutils 8.31'
fi
sum
