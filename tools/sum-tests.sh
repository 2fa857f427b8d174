#!/bin/sh
# Makes targets and adds up their tests.
#
#   sh tools/sum-tests.sh TARGET... [-- TARGET...]
#
# JOBS targets run at a time, 2 unless the environment says otherwise; those behind -- after all others,
# each alone. A line of a suite that ends,
# `12/58 Heap 34 tests 3 s`, is shown at once, with the time that is probably left; so are what is
# installed and the end of a target. A target that failed shows what it printed; the rest is in
# build/logs. Each target ends with a line `N passed, N failed`; the sum is the last line here. Before
# it come a table of the targets, with the seconds that each took, by the clock and of the processors, and,
# for each that failed, the lines `failed: NAME` of its output or, without any, its last lines. A target
# that prints no counts or fails although its line says 0 failed counts as one failed test. The targets
# after it still run. With AGAIN=1 a target that failed is made once more when all others have ended,
# alone, with the next SEED: that result counts, and the table names what failed at first, as unsteady.
# Exit code 1 when a test failed.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --target)
    # Makes one target: its output into a log, what a person waits for to stdout.
    logs=$2
    target=$3
    start=$(date +%s)
    # shellcheck disable=SC2030 # the files have the result
    {
      code=0
      make --no-print-directory "$target" 2>&1 || code=$?
      echo "$code" > "$logs/$target.code"
      # Of the second line, user and system time of what it has run: 1m2.34s 0m5.60s
      times > "$logs/$target.times"
    } | tee "$logs/$target.log" | while IFS= read -r line; do
      case $line in
        [0-9]*/[0-9]*' test'*' s'*)
          echo "${line%% *}" > "$logs/$target.done"
          echo "$target $line, $(sh tools/sum-tests.sh --left "$logs")" ;;
        'need.sh: installing'* | 'skipped: '*) echo "$target $line" ;;
      esac
    done
    sed -n '2s/[ms]/ /gp' "$logs/$target.times" | awk '{ printf "%d\n", $1 * 60 + $2 + $3 * 60 + $4 }' \
      > "$logs/$target.cpu"
    echo $(($(date +%s) - start)) > "$logs/$target.seconds"
    mv "$logs/$target.code" "$logs/$target.exit"
    exit ;;
  --left)
    # What is done of each target, by the seconds that tests/times.txt has for it.
    awk -v "now=$(date +%s)" -v "logs=$2" '
      FILENAME ~ /times.txt$/ { seconds[$1] = $2; next }
      FILENAME ~ /targets$/ { start = $1; for (i = 2; i <= NF; i++) total += weight($i); next }
      FILENAME ~ /done$/ {
        target = FILENAME; sub(/.*\//, "", target); sub(/\.done$/, "", target)
        split($1, part, "/")
        if (part[2] > 0) made += weight(target) * part[1] / part[2]
      }
      function weight(target) { return target in seconds ? seconds[target] : 60 }
      END {
        left = made > 0 ? (now - start) * (total - made) / made : 0
        if (left < 60) print "less than 1 min left"; else printf "about %d min left\n", left / 60 + 0.5
      }' tests/times.txt "$2/targets" "$2"/*.done
    exit ;;
esac

cd "$(dirname "$0")/.."
logs=build/logs
mkdir -p "$logs"
# One run at a time: another would take away the files by which the first one sees what has ended.
exec 9> "$logs/lock"
if command -v flock > /dev/null; then
  flock -n 9 || { echo "sum-tests.sh: another one runs in this folder ($PWD)" >&2; exit 2; }
fi
rm -f "$logs"/*.exit "$logs"/*.done "$logs"/*.seconds
# Free Pascal does not build a unit anew for a change of a routine of another unit that it inlines, if only
# its implementation uses that unit: after a change of the sources, units of former runs go.
sources=$(cat src/*.* src/*/*.* lib/*.pas | cksum)
if [ "$sources" != "$(cat "$logs/sources" 2> /dev/null)" ]; then
  find build \( -name 'LaneMM*.ppu' -o -name '*Test*.ppu' \) -exec rm -f {} +
  echo "$sources" > "$logs/sources"
fi
. tests/lib.sh
summary=
failures=
may_repeat=${AGAIN:-}
again= # targets that failed, to be made once more
unsteady= # what failed in them
start=$(date +%s)
# What a shell runs beside it ignores the interrupt key; its targets must not.
heed='env --default-signal=INT,QUIT'
$heed true 2> /dev/null || heed= # before coreutils 8.31

# What failed in a log, also in targets that a target has made, which are indented and told twice; its
# last lines where no line says it.
failures_in() { # LOG
  grep -a -i '^ *failed: ' "$1" | sed 's/^ *//' | awk '!told[$0]++ { print } END { exit NR == 0 }' \
    || tail -n 5 "$1"
}

# Counts a target that has ended, and shows what it printed if it failed.
count() { # TARGET
  log=$logs/$1.log
  counted=$(counts "$log" "$(cat "$logs/$1.exit")")
  target_passed=${counted% *}
  target_failed=${counted#* }
  if [ "$target_failed" -ne 0 ]; then
    grep -a -v -e '^passed: ' -e '^[0-9]*/[0-9]* .* test' "$log" | sed 's/^/  /'
    found="
$1
$(failures_in "$log" | sed 's/^/  /')"
    if [ -n "$may_repeat" ]; then
      echo "== $1: $target_passed passed, $target_failed failed; it is made once more at the end"
      again="$again $1"
      unsteady="$unsteady$found"
      return
    fi
    failures="$failures$found"
  fi
  passed=$((passed + target_passed))
  failed=$((failed + target_failed))
  summary="$summary$(printf '%-17s %5d passed %5d failed %5d s %5d s of CPU' "$1" "$target_passed" \
    "$target_failed" "$(cat "$logs/$1.seconds")" "$(cat "$logs/$1.cpu")")
"
  echo 1/1 > "$logs/$1.done"
  echo "== $1: $target_passed passed, $target_failed failed; $(sh tools/sum-tests.sh --left "$logs")"
}

# Makes these targets, some at a time.
make_each() { # JOBS TARGET...
  jobs=$1
  shift
  # shellcheck disable=SC2086 # a command and its argument, or nothing
  [ $# -eq 0 ] || printf '%s\n' "$@" | xargs -n 1 -P "$jobs" $heed sh tools/sum-tests.sh --target "$logs"
}

together=
alone=
for target in "$@"; do
  case $target in
    --) alone=' ' ;;
    *) if [ -z "$alone" ]; then together="$together $target"; else alone="$alone $target"; fi ;;
  esac
done
left="$together$alone"
# shellcheck disable=SC2086 # lists of targets
set -- $left
echo "$start $*" > "$logs/targets"
echo "$# targets, ${JOBS:-2} at a time; their output is in $logs"
all_made=
trap all_made=1 USR1
# shellcheck disable=SC2086
{ trap 'kill -USR1 "$$" 2> /dev/null' EXIT; make_each "${JOBS:-2}" $together; make_each 1 $alone; } 9>&- &
trap 'kill "$!" 2> /dev/null || true' EXIT
trap 'exit 1' HUP INT TERM

while [ -n "$left" ]; do
  last_look=$all_made
  waiting=
  for target in $left; do
    if [ -e "$logs/$target.exit" ]; then
      count "$target"
    else
      waiting="$waiting $target"
    fi
  done
  left=${waiting# }
  [ -n "$left" ] || break
  [ -z "$last_look" ] || { echo "sum-tests.sh: $logs has no result of $left: is the disk full?" >&2; exit 1; }
  sleep 0.5
done
wait || true # USR1 ends it

# In another order of the tests: one that fails in both is not a matter of the order.
may_repeat=
[ -z "${SEED:-}" ] || export SEED=$((SEED + 1))
for target in $again; do
  rm -f "$logs/$target.exit"
  make_each 1 "$target" 9>&-
  count "$target"
done

printf '\n%s%s\n' "$summary" "$failures"
[ -z "$unsteady" ] || printf 'Failed at first, beside others:%s\n\n' "$unsteady"
sum
