#!/bin/sh
# Makes targets and adds up their tests.
#
#   sh tools/sum-tests.sh TARGET...
#
# JOBS targets run at a time, 2 unless the environment says otherwise; what they print comes in the
# order of the arguments. Each target ends with a line `N passed, N failed`; the sum is the last line
# here. Before it come a table of the targets and, for each that failed, the lines `failed: NAME` of
# its output or, without any, its last lines. A target that prints no counts, fails although its line
# says 0 failed, or takes longer than forty minutes counts as one failed test. The targets after it
# still run. Exit code 1 when a test failed.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.."
logs=build/logs
mkdir -p "$logs"
passed=0
failed=0
summary=
failures=

# What failed in a log; its last lines where no line says it.
failures_in() { # LOG
  grep -a -i '^failed: ' "$1" || tail -n 5 "$1"
}

for target in "$@"; do
  rm -f "$logs/$target.exit"
done
# A target is done when its file with the exit code is there.
# shellcheck disable=SC2016 # the inner shell expands them
printf '%s\n' "$@" | xargs -n 1 -P "${JOBS:-2}" sh -c '
  log=$0/$1.log
  code=0
  timeout -k 10 2400 make --no-print-directory "$1" > "$log" 2>&1 || code=$?
  echo "$code" > "$log.new"
  mv "$log.new" "$0/$1.exit"' "$logs" &
trap 'kill "$!" 2> /dev/null || true' EXIT

echo "$# targets, ${JOBS:-2} at a time: their output is in $logs while they run, and here in this order"
for target in "$@"; do
  echo "== $target"
  log=$logs/$target.log
  until [ -e "$logs/$target.exit" ]; do
    sleep 0.2
  done
  cat "$log"
  counts=$(sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
  target_passed=${counts% *}
  target_failed=${counts#* }
  if [ -z "$counts" ]; then
    target_passed=0
    target_failed=1
  elif [ "$(cat "$logs/$target.exit")" -ne 0 ] && [ "$target_failed" -eq 0 ]; then
    target_failed=1
  fi
  passed=$((passed + target_passed))
  failed=$((failed + target_failed))
  if [ "$target_failed" -ne 0 ]; then
    failures="$failures
$target
$(failures_in "$log" | sed 's/^/  /')"
  fi
  summary="$summary$(printf '%-14s %5d passed %5d failed' "$target" "$target_passed" \
    "$target_failed")
"
done
wait

printf '\n%s%s\n' "$summary" "$failures"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
