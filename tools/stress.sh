#!/bin/sh
# Builds every program of tests/stress in a checked build and runs it.
#
#   sh tools/stress.sh [ARGUMENT...]
#
# The arguments go to each program. A program that ends with exit code 0 is a passed test.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.."
out=build/stress
mkdir -p "$out"
passed=0
failed=0

for program in tests/stress/*.lpr; do
  name=$(basename "$program" .lpr)
  echo "stress: $name $*"
  if fpc -l- -v0 -vew -vm6018 -dLANEMM_CHECKED -g -gl -Xs- -Fusrc -Futests -Futests/stress \
    -FE"$out" -FU"$out" "$program" && "$out/$name" "$@"; then
    passed=$((passed + 1))
  else
    echo "stress: $name failed"
    failed=$((failed + 1))
  fi
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
