#!/bin/sh
# Makes one mistake after the other in a copy of src and runs the test that has to notice it.
#
#   sh tests/mutants/run.sh                all mutants
#   sh tests/mutants/run.sh NAME...        some of them
#   sh tests/mutants/run.sh --suite=A,B    all tests of these suites on the mutants, not only theirs
#   sh tests/mutants/run.sh --check        only whether each mutant fits the source
#   sh tests/mutants/run.sh --list         name, unit, build, suite and test of each
#
# The mutants are in tests/mutants/*.txt. A paragraph is one mutant:
#
#   @ NAME FILE BUILD SUITE TEST
#   -old line
#   +new line
#    line that stays
#
# FILE lies in src/core, or in the folder of src that it names. The old lines have to occur in it
# once, so that mutants and code stay in step. BUILD is core (the tests of the engine), rooms (those of
# all rooms; their programs are built from the source as it is), programs (the same, and their programs
# have the mistake, too), pure (without assembler), yield (with LANEMM_YIELD, checked), or model
# (tests/model/steps.sh compares with the model; SUITE is `-`, TEST the routine). All builds pass
# without a mutant first. TEST may be several names with commas, where chance decides which of them
# comes first to hang. A mutant is noticed when TEST fails or takes more than LIMIT seconds (30), or
# when the program ends by itself. Ends with `N passed, N failed`; passed are the noticed ones.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
out=build/mutants
limit=${LIMIT:-30}
suites=
. tests/lib.sh
table=$(awk '$1 == "@" { print $2, $3, $4, $5, $6 }' tests/mutants/*.txt)

# source_of FILE: its path in src
source_of() {
  case $1 in
    */*) echo "$1" ;;
    *) echo "core/$1" ;;
  esac
}

# mutate NAME: prints the file with the mistake, or fails with a line to stderr.
mutate() {
  file=$(echo "$table" | awk -v name="$1" '$1 == name { print $2 }')
  awk -v wanted="$1" -v source="src/$(source_of "$file")" -f tests/mutants/mutate.awk tests/mutants/*.txt
}

check() {
  echo "$table" | awk '{ print $1 }' | sort | uniq -d | sed 's/$/: name of two mutants/' | grep . && failed=1
  for name in $(echo "$table" | awk '{ print $1 }'); do
    if mutate "$name" > "$out/mutated"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done
}

# The options of a build.
flags() {
  case $1 in
    core | rooms | programs) echo '-O3' ;;
    pure) echo '-O3 -dLANEMM_PUREPASCAL' ;;
    yield) echo '-O3 -dLANEMM_YIELD -dLANEMM_PUREPASCAL -dLANEMM_CHECKED -g -gl -Xs-' ;;
  esac
}

# The folder of the runner of all rooms.
runner() { # BUILD
  case $1 in
    rooms) echo "$out/units" ;;
    programs) echo "$out/tree/runner" ;;
  esac
}

# Fresh copies of all sources in build/mutants/tree.
copy() {
  rm -rf "$out/tree" "$out/units"
  mkdir -p "$out/tree/tests" "$out/tree/runner" "$out/units"
  cp -R src "$out/tree"
}

# The runner builds its programs from the sources of the nearest folder around it that has some.
build() { # BUILD
  if [ "$1" = rooms ] || [ "$1" = programs ]; then
    [ "$1" = rooms ] || cp -R tests "$out/tree"
    fpc -l- -v0 -vew -vm4082,6018 -O3 "-Fu$out/tree/src" "-Fu$out/tree/src/*" -Futests '-Futests/*' \
      "-FE$(runner "$1")" "-FU$out/units" tests/RunTests.lpr > "$out/log" 2>&1
    return
  fi
  # shellcheck disable=SC2046 # a list of options
  fpc -l- -v0 -vew -vm4082,6018 $(flags "$1") "-Fu$out/tree/src/core" -Futests -Futests/core \
    "-FE$out/units" "-FU$out/units" tests/core/CoreTests.lpr > "$out/log" 2>&1
}

# run BUILD SUITES: 0 when all tests pass.
run() {
  if [ "$1" = model ]; then
    cp -R tests/model "$out/tree/tests"
    sh "$out/tree/tests/model/steps.sh" > "$out/log" 2>&1
  elif [ "$1" = rooms ]; then
    timeout -k 2 300 "$(runner "$1")/RunTests" ${2:+"--suite=$2"} "--limit=$limit" > "$out/log" 2>&1
  elif [ "$1" = programs ]; then
    # They wait up to a minute for what a program has to do, and then end it.
    timeout -k 2 300 "$(runner "$1")/RunTests" ${2:+"--suite=$2"} "--limit=$((3 * limit))" \
      > "$out/log" 2>&1
  else
    timeout -k 2 300 "$out/units/CoreTests" ${2:+"--suite=$2"} "--limit=$limit" > "$out/log" 2>&1
  fi
}

# Runs the tests that mutants need on the source as it is.
baseline() { # BUILD
  list=$(echo "$table" | awk -v build="$1" -v names=" $names " \
    '$3 == build && index(names, " " $1 " ") && $4 != "-" { print $4 }' | sort -u | paste -sd ,)
  copy
  if [ "$1" != model ] && ! build "$1" || ! run "$1" "${suites:-$list}"; then
    echo "$1: fails without a mutant"
    sed 's/^/  /' "$out/log"
    echo '0 passed, 1 failed'
    exit 1
  fi
}

# What noticed the mutant, or nothing.
noticed() { # STATUS TEST
  [ "$1" -ne 0 ] || return
  [ "$1" -ne 124 ] || { echo 'takes too long'; return; }
  test=$(echo "$2" | tr , '\n' | while read -r name; do
    sed -n "s/^\(T[A-Za-z]*Tests\.$name\): .*/\1/p" "$out/log" | head -n 1
  done)
  if [ -n "$test" ]; then
    echo "$test"
  elif grep -q "[ .]$2 " "$out/log"; then
    echo "the model of $2"
  elif ! grep -q ' passed, ' "$out/log"; then
    echo "ends with exit code $1"
  fi
}

# Others that failed, for a mutant that its own test did not notice.
others() {
  sed -n 's/^\(T[A-Za-z]*Tests\.[A-Za-z0-9]*\): .*/\1/p' "$out/log" | sort -u | head -n 5 | paste -sd ' '
}

mutant() { # NAME FILE BUILD SUITE TEST
  copy
  if ! mutate "$1" > "$out/tree/src/$(source_of "$2")"; then
    failed=$((failed + 1))
    return
  fi
  if [ "$3" != model ] && ! build "$3"; then
    failed=$((failed + 1))
    echo "$1: does not compile"
    sed 's/^/  /' "$out/log"
    return
  fi
  run "$3" "${suites:-$4}"
  by=$(noticed $? "$5")
  if [ -n "$by" ]; then
    passed=$((passed + 1))
    echo "$1: $by"
  else
    failed=$((failed + 1))
    echo "$1: NOT NOTICED by $5; by others: $(others)"
  fi
}

mkdir -p "$out"
names=
for argument in "$@"; do
  case $argument in
    --list) echo "$table"; exit 0 ;;
    --check) check; sum; exit ;;
    --suite=*) suites=${argument#--suite=} ;;
    -*) echo "unknown option $argument, see --help" >&2; exit 2 ;;
    *) echo "$table" | grep -q "^$argument " || { echo "no mutant $argument" >&2; exit 2; }
      names="$names $argument" ;;
  esac
done
names=${names:-$(echo "$table" | awk '{ print $1 }' | paste -sd ' ')}

for kind in $(for name in $names; do echo "$table" | grep "^$name "; done | awk '{ print $3 }' | sort -u); do
  baseline "$kind"
done
for name in $names; do
  # shellcheck disable=SC2046 # the fields
  mutant $(echo "$table" | grep "^$name ")
done
sum
