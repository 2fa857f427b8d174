#!/bin/sh
# Leaks and memory errors per test: suites with planted leaks and clean tests under fpcunit, and
# docs/testing-your-program.md to the letter, with googletest and check where they can be had.
#
#   sh tests/testing/run.sh
#
# Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
fpc=${FPC:-fpc}
out=$(pwd)/${OUT:-build}/testing
. tests/lib.sh
printed=$out/log
rm -rf "$out"
mkdir -p "$out/page" "$out/units"

# What the suite says when it runs with the settings: a line for each failure, without its routine.
failures() { # SETTINGS
  LANEMM=$1 timeout 120 "$out/Planted" --all --format=plain > "$out/found" 2> "$out/reached"
  sed -n '/^List of failures/,/^List of ignored/s/^ *Message: *//p' "$out/found" | sed 's/ in [A-Z.]*$//'
}

# The number of the line with `// MARK`.
line() { # MARK
  grep -n "// $1\$" tests/testing/PlantedSuite.pas | cut -d : -f 1
}

# The first failure of a leak, as it must be.
leaks() { # TEST WHAT
  echo "TLeakTests.$1: leaked $2, allocated at PlantedSuite.pas:$(line "leak $1")"
}

expected() {
  leaks ThreeNodes "3 x TNode, $1 bytes"
  leaks ListAndItems "1 x TList, $2 bytes"
  leaks CycleOfInterfaces "1 x TLinked, $3 bytes"
  leaks InOtherThread "1 x TNode, $4 bytes"
  leaks OfSetUpOrField "1 x TNode, $4 bytes"
  leaks RawMemory '1 x 100-byte block, 100 bytes'
  leaks AfterExpectedException "1 x TNode, $4 bytes"
  leaks InNodeThatWasRemoved "1 x TNode, $4 bytes"
  echo 'TFailingTests.FailsAndLeaks: planted failure'
  echo 'TBudgetTests.Beyond: 4 allocations, 3 at most'
}

"$fpc" -l- -v0 -vew -vm4082,6018 -O3 -gl -Xs- -Fusrc -Fupackages/testing -Futests/testing \
  -FE"$out" -FU"$out/units" tests/testing/Planted.lpr > "$printed" 2>&1 || fail "Planted -O3" "$printed"
same "leaks are named to the line, and no clean test is blamed" \
  "$(expected 72 32 40 24)" "$(failures quiet)"
promise 'all tests ran' grep -q 'Number of run tests: 228' "$out/found"
promise 'the error of a test that leaks, too, stays its own' \
  grep -q 'TFailingTests.RaisesAndLeaks: planted error' "$out/found"
promise 'the line that allocates more than the budget is named' \
  grep -q "^  1 at PlantedSuite.pas:$(line beyond) in" "$out/found"
promise 'what a global holds is listed apart' \
  grep -q "TCleanTests.LazyGlobal: 1 x TNode, 24 bytes, allocated at PlantedSuite.pas:$(line 'reached LazyGlobal')" \
  "$out/reached"

same 'memory errors fail the test that makes them, in debug mode' \
  "$(expected 72 32 40 24; echo 'TErrorTests.Overrun: memory error: Heap block overrun: bytes past the end were modified.')" \
  "$(failures debug,quiet)"
promise 'a double free is added to the exception that it raises' \
  sh -c "sed -n '/List of errors/,/List of failures/p' '$out/found' | grep -q 'memory error: Double free'"
same 'without LaneMM the tests run as they are' 'TFailingTests.FailsAndLeaks: planted failure' "$(failures off)"

# A damaged file of budgets would let each test pass. Each ends the program before the first test.
damaged() { # WHAT BUDGETS
  mkdir -p "$out/budgets"
  printf '%s' "$2" > "$out/budgets/allocations.json"
  (cd "$out/budgets" && timeout 120 "$out/Planted" --suite=TBudgetTests) > "$printed" 2>&1
  [ $? = 1 ] && grep -q "^allocations.json has no budgets: $3" "$printed" && ! grep -q 'run tests' "$printed"
  report "damaged budgets are refused: $1" $?
}
damaged empty '' 'it is no JSON object'
damaged 'a number for a budget' '{"TBudgetTests.Within":5}' 'TBudgetTests.Within is no object'
damaged 'a budget without its number' '{"TBudgetTests.Within":{"routines":{}}}' 'TBudgetTests.Within is no object'
rm "$out/budgets/allocations.json"
mkdir "$out/budgets/allocations.json"
(cd "$out/budgets" && timeout 120 "$out/Planted" --suite=TBudgetTests.Within --format=plain --update) > "$printed" 2>&1
[ $? = 1 ] && grep -q '^allocations.json is not written: ' "$printed" && grep -q 'Number of run tests: 1' "$printed"
report 'budgets that cannot be written are one line, and exit code 1' $?

# The page; its last section needs both frameworks.
sh tools/need.sh gtest check pkg-config > "$printed" 2>&1 && has=yes || has=no
[ $has = yes ] || skip 'googletest and check' 'they cannot be installed here'
[ $has = no ] || sh lib/build.sh > "$printed" 2>&1 || fail 'the library' "$printed"
{
  echo "output=$out/page/output"
  cat tests/packages/follow.sh
  echo "section() { if [ \"\$1\" = 'C and C++' ] && [ $has = no ]; then exit 0; fi; }"
  echo "export CPATH=$(pwd)/lib/include LIBRARY_PATH=$(pwd)/build/lib LD_LIBRARY_PATH=$(pwd)/build/lib"
  awk -f tests/packages/follow.awk docs/testing-your-program.md | sed "s|<repo>|$(pwd)|g"
} > "$out/page/script"
(cd "$out/page" && timeout 300 sh script) > "$printed" 2>&1
report 'docs/testing-your-program.md holds when it is followed' $?
sum
