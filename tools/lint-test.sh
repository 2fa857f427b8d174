#!/bin/sh
# Tests the linter: it must find what is wrong in tools/lint-tests, and nothing else.
#
#   sh tools/lint-test.sh
#
# Copies tools/lint-tests to build/lint-tests, adds what should not stand in the repository
# (tabs, trailing blanks, machine paths, units that are too long), runs build/lint/Lint on it and
# compares with tools/lint-tests/expected.txt. Each expected finding is one test.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.."
cases=build/lint-tests
LC_ALL=C
export LC_ALL

rm -rf "$cases"
mkdir -p build
cp -R tools/lint-tests "$cases"
mkdir "$cases/text"

# Text rules: each is broken in its own file, and kept where it does not apply.
printf 'one\ntwo \n' > "$cases/text/blank.md"
printf 'one\ttwo\n' > "$cases/text/tab.sh"
printf 'one\r\ntwo\r\n' > "$cases/text/crlf.txt"
printf 'cd /%s/main\n' work > "$cases/text/machine.md"
printf '\177ELF\0' > "$cases/text/program"
printf 'PPU\0' > "$cases/text/Unit.ppu"
printf 'all:\n\techo\n' > "$cases/text/Makefile"
printf '@echo off\r\n' > "$cases/text/make.bat"
printf 'frame/%s/README.md\n' work > "$cases/text/relative.md"
printf 'not text\0 \t\r\n' > "$cases/text/image.png"

# An include file with a routine of 61 lines, one of 60 lines, and 801 lines in all.
awk 'BEGIN {
  print "procedure TooLong;"; print "begin"; for (i = 1; i <= 58; i++) print "  Work;"; print "end;"
  print "procedure NotTooLong;"; print "begin"; for (i = 1; i <= 57; i++) print "  Work;"
  print "end;"
  for (i = 1; i <= 680; i++) print ""
}' > "$cases/src/LaneMM.Long.inc"

build/lint/Lint "$cases" > build/lint-tests.out && status=0 || status=$?
sed '/^lint: /,$d' build/lint-tests.out | sort > "$cases/found"
sort tools/lint-tests/expected.txt > "$cases/expected"

comm -23 "$cases/expected" "$cases/found" | sed 's/^/not found: /'
comm -13 "$cases/expected" "$cases/found" | sed 's/^/should not be found: /'
passed=$(comm -12 "$cases/expected" "$cases/found" | wc -l)
failed=$(comm -3 "$cases/expected" "$cases/found" | wc -l)
if [ "$status" -ne 1 ]; then
  echo "exit code $status instead of 1"
  failed=$((failed + 1))
fi
echo "$((passed)) passed, $((failed)) failed"
[ "$failed" -eq 0 ]
