#!/bin/sh
# Tests that runs of tests/matrix/run.sh at the same time do not disturb each other.
#
#   sh tests/matrix/together.sh
#
# Two targets that need no compiler, in a copy of the scripts below build; two runs of each. A
# preparation or a part that meets another one fails. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
copy=build/matrix-together
rm -rf "$copy"
mkdir -p "$copy/docs" "$copy/tools" "$copy/tests/matrix/targets"
cp tools/begin.sh "$copy/tools"
: > "$copy/fpmake.pp" # begin.sh goes to the folder that has it
cp tests/lib.sh "$copy/tests"
cp tests/matrix/run.sh tests/matrix/table.sh tests/matrix/tools.sh "$copy/tests/matrix"
. tests/lib.sh
cd "$copy" || exit 1
printed=log

# page PASSED DATE: docs/platforms.md with the result of one part of the targets.
page() {
  printf '# Platforms\n\n<!-- table -->\n'
  sed -n "s/^  echo '\(|.*\)'$/\1/p" tests/matrix/table.sh
  for target in one two; do
    echo "| $target | nowhere | - | - | - | $1 | - | - | - | - | 0 | $2 |"
  done
  printf '<!-- end of table -->\n\nText.\n\n<!-- left out -->\n'
  printf '\n**one**\n\n| left out | why |\n|---|---|\n'
  printf '<!-- end of left out -->\n\nThe end.\n'
}

for target in one two; do
  cat > "tests/matrix/targets/$target.sh" << 'END'
how='nowhere'
parts='engine'

prepare() {
  mkdir build/matrix/preparing && sleep 0.1 && rmdir build/matrix/preparing
}
END
done
: > tests/matrix/targets/one.without
cat > Makefile << 'END'
core: ; @mkdir $(OUT)/testing && sleep 0.3 && rmdir $(OUT)/testing && echo '3 passed, 0 failed'
END
page - - > docs/platforms.md
for run in one.1 two.1 one.2 two.2; do
  sh tests/matrix/run.sh "${run%.*}" > "$run.log" 2>&1 &
done
wait
for run in one.1 two.1 one.2 two.2; do
  promise "run $run of four has its own tests alone" [ "$(tail -n 1 "$run.log")" = '3 passed, 0 failed' ]
done
page 3 "$(date -u +%Y-%m-%d)" > expected.md
promise 'the page has the results of all runs' diff expected.md docs/platforms.md
sum
