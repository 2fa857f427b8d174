#!/bin/sh
# Tests the linter: it must find what is wrong in tools/lint-tests, and nothing else.
#
#   sh tools/lint-test.sh
#
# Each directory in tools/lint-tests is a small repository for some of the rules. They are copied
# to build/lint-tests, together with what should not stand in this repository (tabs, trailing
# blanks, machine paths, units that are too long, commits). build/lint/Lint runs on each, and what
# it prints is compared with the file expected.txt in the directory. Each expected line is one test.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
cases=build/lint-tests
. tests/lib.sh
LC_ALL=C
export LC_ALL

rm -rf "$cases"
mkdir -p build
cp -R tools/lint-tests "$cases"

# Compares the lines of two files, in any order, and counts.
compare() { # what expected found
  sort "$2" > build/lint-tests.expected
  sort "$3" > build/lint-tests.found
  comm -23 build/lint-tests.expected build/lint-tests.found | sed "s|^|$1: not found: |"
  comm -13 build/lint-tests.expected build/lint-tests.found | sed "s|^|$1: should not be found: |"
  passed=$((passed + $(comm -12 build/lint-tests.expected build/lint-tests.found | wc -l)))
  failed=$((failed + $(comm -3 build/lint-tests.expected build/lint-tests.found | wc -l)))
}

# Runs the linter on one of the directories, which has findings.
check() { # directory
  mv "$cases/$1/expected.txt" "$cases/$1.expected"
  build/lint/Lint "$cases/$1" > "$cases/$1.out" && status=0 || status=$?
  sed '/^lint: /,$d' "$cases/$1.out" > "$cases/$1.findings"
  compare "$1" "$cases/$1.expected" "$cases/$1.findings"
  [ "$status" -eq 1 ] || fail "$1: exit code $status instead of 1"
}

# A repository without findings: empty lists and the unit that holds GetMem.
make_clean() { # directory
  mkdir -p "$cases/$1/src/core" "$cases/$1/lib" "$cases/$1/tools/lint"
  touch "$cases/$1/tools/lint/names.txt" "$cases/$1/tools/lint/words.txt"
  printf '/// The library.\nunit LaneMM.C;\n\ninterface\n\nimplementation\n\nuses\n  %s;\n\nend.\n' \
    LaneMM.Allocate > "$cases/$1/lib/LaneMM.C.pas"
  make_unit "$1" LaneMM.Allocate
}

# A unit of core that uses another one.
make_unit() { # directory unit [used unit]
  {
    printf '/// A unit.\nunit %s;\n\ninterface\n\n' "$2"
    [ $# -lt 3 ] || printf 'uses\n  %s;\n\n' "$3"
    printf 'implementation\n\nend.\n'
  } > "$cases/$1/src/core/$2.pas"
}

# Text rules: each is broken in its own file, and kept where it does not apply.
text=$cases/house/text
mkdir "$text"
printf 'one\ntwo \n' > "$text/blank.md"
printf 'one\ttwo\n' > "$text/tab.sh"
printf 'one\r\ntwo\r\n' > "$text/crlf.txt"
printf 'cd /%s/main\n' work > "$text/machine.md"
printf '\177ELF\0' > "$text/program"
printf 'PPU\0' > "$text/Unit.ppu"
printf 'all:\n\techo\n' > "$text/Makefile"
mkdir "$text/debian"
printf 'all:\n\techo\n' > "$text/debian/rules"
printf '@echo off\r\n' > "$text/make.bat"
printf 'frame/%s/README.md\n' work > "$text/relative.md"
printf "for Name in ['one', 'three'] do\n" > "$text/list.pas"
printf 'not text\0 \t\r\n' > "$text/image.png"

# An include file with a routine of 61 lines, one of 60 lines, and 601 lines in all.
awk 'BEGIN {
  print "procedure TooLong;"; print "begin"; for (i = 1; i <= 58; i++) print "  Work;"; print "end;"
  print "procedure NotTooLong;"; print "begin"; for (i = 1; i <= 57; i++) print "  Work;"
  print "end;"
  for (i = 1; i <= 480; i++) print ""
}' > "$cases/house/src/core/LaneMM.Long.inc"
# What a script makes may have such a routine.
{ echo '// Made of LaneMM.Long.inc.'; sed '/^end;/q' "$cases/house/src/core/LaneMM.Long.inc"; } \
  > "$cases/house/src/core/LaneMM.Made.inc"

for directory in house rooms unused names words; do
  check "$directory"
done

# The table of units.
build/lint/Lint --units "$cases/rooms" > "$cases/units.out"
compare units "$cases/rooms/units.txt" "$cases/units.out"

# The closure of the entry unit: the most units are allowed, one more is not; it may not be missing.
make_clean closure
most=$(sed -n 's/^  MaxEntryClosure = \([0-9]*\);/\1/p' tools/lint/LintRooms.pas)
i=$((most - 1))
make_unit closure "LaneMM.Unit$i"
while [ $i -gt 1 ]; do
  i=$((i - 1))
  make_unit closure "LaneMM.Unit$i" "LaneMM.Unit$((i + 1))"
done
make_unit closure LaneMM.Allocate LaneMM.Unit1
printed=$cases/closure.out
promise "closure: no findings for $most units" build/lint/Lint "$cases/closure"
make_unit closure "LaneMM.Unit$((most - 1))" "LaneMM.Unit$most"
make_unit closure "LaneMM.Unit$most"
echo "src/core/LaneMM.Allocate.pas:1: LaneMM.Allocate needs $((most + 1)) units, more than $most" \
  > "$cases/closure/expected.txt"
check closure
make_clean entry
rm "$cases/entry/src/core/LaneMM.Allocate.pas" "$cases/entry/lib/LaneMM.C.pas"
echo 'src/core/LaneMM.Allocate.pas:1: missing: it holds GetMem' > "$cases/entry/expected.txt"
check entry

# The constants of the door are whole.
make_clean constants
constants=$cases/constants/src/LaneMM
sed -i 's|^interface$|interface\n\ntype\n  /// A kind.\n  TKind = (kiOne, //< one, or more\n    kiTwo);|' \
  "$cases/constants/src/core/LaneMM.Allocate.pas"
{
  printf '/// The door.\nunit LaneMM;\n\ninterface\n\nuses\n  LaneMM.Allocate;\n\ntype\n  /// A kind.\n'
  printf '  TLaneMM_Kind = TKind;\n\nimplementation\n\nend.\n'
} > "$constants.pas"
sed -i 's/LaneMM.Allocate;/LaneMM;/' "$cases/constants/lib/LaneMM.C.pas"
build/lint/Lint --constants "$cases/constants" > "$constants.Constants.inc"
printed=$cases/constants.out
promise 'constants: no findings' build/lint/Lint "$cases/constants"
sed -i '/kiTwo/d' "$constants.Constants.inc"
echo 'src/LaneMM.Constants.inc:1: not what the enumerations say: `make constants`' \
  > "$cases/constants/expected.txt"
check constants

# Subjects of commits: 72 characters are allowed, though they may be more bytes; 73 are not.
make_clean commits
sixty=$(printf '%060d' 0)
git -C "$cases/commits" init -q
commit() { # subject
  git -C "$cases/commits" -c user.name=Test -c user.email=test@localhost -c commit.gpgsign=false \
    commit -q --allow-empty -m "$1" -m "A line of the body may be longer: $sixty $sixty $sixty"
}
commit "Count ${sixty}é12345"
printed=$cases/commits.out
promise 'commits: no findings for 72 characters' build/lint/Lint "$cases/commits"
commit "Count ${sixty}1234567"
echo "commit $(git -C "$cases/commits" log -1 --format=%h): subject longer than 72 characters" \
  > "$cases/commits/expected.txt"
commit 'Short again'
check commits

# The lists in use: each entry can be read, and they tell wrong words from right ones.
make_clean list
mkdir "$cases/list/docs"
cp tools/lint/words.txt tools/lint/names.txt "$cases/list/tools/lint/"
cat > "$cases/list/docs/right.md" <<'END'
Heap block overrun: bytes past the end were modified. Allocated by thread 1588 at the first frame.
`*` matches any text; matching ignores case. Written before publication, then read by any thread.
A huge page, a cache line, a local variable, the items of a list, a big program, none of them.
END
printed=$cases/list.out
promise 'list: no findings' build/lint/Lint "$cases/list"
echo 'Nobody knows who frees what was got behind the end.' > "$cases/list/docs/wrong.md"
build/lint/Lint "$cases/list" > "$cases/list.out" && fail 'list: no finding' ||
  passed=$((passed + $(grep -c '^docs/wrong.md:1: ' "$cases/list.out")))

sum
