#!/bin/sh
# Runs the tests on other targets, and writes the table of docs/platforms.md.
#
#   sh tests/matrix/run.sh [--quick] [TARGET...]
#   sh tests/matrix/run.sh --prepare TARGET
#
# Without targets all of them; --quick: the parts that a target names as quick, and no table. Prints
# a line for each target and part. Ends with `N passed, N failed`. --prepare: only makes its compiler.
# PARTS='NAME...' in the environment: only these parts; the results of the others stay.
# Several of these may run at a time: a target, a compiler and the table are each made by one of them.
#
# A target is a file tests/matrix/targets/TARGET.sh. It is read by this script after tests/matrix/tools.sh,
# in a process of its own whose current directory is the repository, and sets or defines
#   how         how its programs run, for the table
#   parts       what of the list below it runs
#   quick       the same for --quick
#   options     more options for the unit tests, optional; --times shows each suite when it ends
#   prepare     a function that makes $dir/fpc, a compiler for the target that takes the options of
#               fpc, and $dir/run, a command that runs a program of the target with its arguments.
#               $dir, an absolute path, is kept: what is there already is not made again. It prints
#               why it failed.
#   without     files NAME.without beside it that name what cannot work there: lines `TSuite.Test: reason`
#               for unit tests, `Program: reason` or `Run of it: reason` for whole programs; optional
#   reports_without  the same for the part reports
# Parts:
#   suites      unit tests of the build that users get
#   checked     unit tests of the build that verifies its own laws
#   pure        unit tests of the build without assembler
#   engine      the engine alone
#   engine-checked  the same, verifying its own laws
#   programs    whole programs; those that the target's variable $programs names, if it does
#   reports     the unit tests that $reports names, run here: they build and run programs of the target
#   demos       all demos
#   library     the C library, with pages of the size $page
#   NAME=SUITES one column NAME for these suites of the checked build
set -u
. "$(dirname "$0")/../../tools/begin.sh"
repository=$(pwd)
kind=full
case ${1-} in
  --quick) kind=quick; shift ;;
  --prepare) kind=prepare; shift ;;
esac
if [ $# -eq 0 ]; then
  for file in tests/matrix/targets/*.sh; do
    set -- "$@" "$(basename "$file" .sh)"
  done
fi
for target in "$@"; do
  [ -e "tests/matrix/targets/$target.sh" ] || { echo "run.sh: there is no target '$target'" >&2; exit 2; }
done
. tests/lib.sh
results=build/matrix/results-$kind
mkdir -p "$results"

# alone FILE COMMAND...: runs the command while no other run has the lock FILE. What the command
# leaves running, such as a server of wine, does not hold it.
alone() {
  lock=$1
  shift
  { flock 9 && "$@" 9>&-; } 9> "$lock"
}

# make_part PART: the tests of one part, with counts in the last line.
make_part() {
  case $1 in
    suites) make_for test-release ORDER="${options-}" ;;
    checked) make_for test-checked ORDER="--alone ${options-}" ;;
    pure) make_for test-pure ORDER="${options-}" ;;
    engine) make_for core ORDER="${options---shuffle ${SEED:+--seed=$SEED}}" ;;
    engine-checked) make_for core FLAGS='-O3 -dLANEMM_CHECKED' ORDER="${options---shuffle ${SEED:+--seed=$SEED}}" ;;
    programs) make_for test-programs PROGRAMS="${programs-}" ;;
    reports) run_reports ;;
    demos) run_demos ;;
    library) sh tests/largepages/library.sh "$dir/library" "$page" ;;
    *=*) make_for test-checked ORDER="--suite=${1#*=} ${options-}" ;;
  esac
}

# lists NAME...: their files as one, $dir/without; prints its path.
lists() {
  for name in "$@"; do
    cat "tests/matrix/targets/$name.without"
  done > "$dir/without"
  echo "$dir/without"
}

make_for() {
  # shellcheck disable=SC2086 # a list of names
  make --no-print-directory "$@" FPC="$dir/fpc" RUN="$dir/run" OUT="$dir" WITHOUT="$(lists ${without-})"
}

# The tests run on this machine: what they start is of the target.
run_reports() {
  mkdir -p "$dir/reports"
  fpc -l- -v0 -vew -vm4082,6018 -O3 -Fusrc '-Fusrc/*' -Futests '-Futests/*' -FE"$dir/reports" -FU"$dir/reports" \
    tests/RunTests.lpr || return 1
  # shellcheck disable=SC2086 # a list of names
  FPC=$dir/fpc RUN=$dir/run "$dir/reports/RunTests" --suite="$reports" --limit=600 \
    --without="$(lists ${reports_without-})"
}

# A demo that ends with another exit code than 0 ends the script.
run_demos() {
  if FPC=$dir/fpc RUN=$dir/run OUT=$dir sh demos/compare.sh all; then
    echo '1 passed, 0 failed'
  else
    echo '0 passed, 1 failed'
  fi
}

# Reads the target and makes its compiler. Targets share sources and package lists.
prepare_target() { # TARGET
  target=$1
  dir=$repository/build/matrix/$target
  mkdir -p "$dir"
  # shellcheck source=/dev/null
  . tests/matrix/tools.sh
  # shellcheck source=/dev/null
  . "tests/matrix/targets/$target.sh"
  if ! alone build/matrix/prepare.lock prepare > "$dir/prepare.log" 2>&1; then
    tail -n 5 "$dir/prepare.log" | sed "s/^/$target: /"
    return 1
  fi
}

# record PART SUM: in the results of the target, in the place of what stands there for the part, and
# in those of this run.
record() {
  echo "$2" >> "$run"
  grep -v "^$1 " "$results/$target" > "$results/$target.new"
  echo "$1 $2" >> "$results/$target.new"
  mv "$results/$target.new" "$results/$target"
}

# show_part PART LOG: runs the part into LOG, and prints the suites and whole programs as they end.
# Returns the status of the part.
show_part() {
  { make_part "$1" 2>&1; echo $? > "$2.status"; } | tee "$2" \
    | sed -n -u "s/^\(T[A-Za-z0-9]*: [0-9.]* s\|passed: .*\|failed: .*\)$/  $target: \1/p"
  return "$(cat "$2.status")"
}

# run_target TARGET: writes lines `PART PASSED FAILED` to $results/TARGET.
run_target() (
  [ -n "${PARTS-}" ] || : > "$results/$1"
  touch "$results/$1"
  if ! prepare_target "$1"; then
    record prepare '0 1'
    return
  fi
  if [ "$kind" = quick ]; then
    parts=$quick
  fi
  for part in ${PARTS:-$parts}; do
    log=$dir/${part%%=*}.log
    status=0
    show_part "$part" "$log" || status=$?
    sum=$(counts "$log" "$status")
    record "${part%%=*}" "$sum"
    printf '%-14s %-9s %5d passed %5d failed\n' "$target" "${part%%=*}" "${sum% *}" "${sum#* }"
    case $sum in
      *' 0') ;;
      *) grep -a -i '^failed: ' "$log" || tail -n 5 "$log" ;;
    esac
  done
)

if [ "$kind" = prepare ]; then
  prepare_target "$1"
  exit
fi
run=$results/run.$$
trap 'rm -f "$run"' EXIT
: > "$run"
for target in "$@"; do
  alone "build/matrix/$target.lock" run_target "$target"
done
if [ "$kind" = full ]; then
  alone build/matrix/table.lock sh tests/matrix/table.sh
fi
awk '{ passed += $1; failed += $2 }
  END { print passed + 0 " passed, " failed + 0 " failed"; exit failed > 0 || NR == 0 }' "$run"
