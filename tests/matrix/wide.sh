#!/bin/sh
# Finds differences that lack their cast to an unsigned word.
#
#   sh tests/matrix/wide.sh
#
# On 32-bit targets Free Pascal evaluates a difference of two words as a number of 64 bits: below zero
# where the code expects it to wrap around, so `NativeUInt(P) - Base < Limit` holds for each P below
# Base. In the machine code for i386 these are subtractions with borrow. This script compiles src/ for
# i386 and lists the lines of src/ that have one, but for those in tests/matrix/wide.txt, which
# are meant to have 64 bits. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
out=build/matrix/wide
. tests/lib.sh
rm -rf "$out"
mkdir -p "$out"

sh tests/matrix/run.sh --prepare i386-linux || exit 1
echo 'program Probe; uses LaneMM, FastMM5; begin end.' > "$out/probe.pas"
build/matrix/i386-linux/fpc -l- -v0 -ve -vm4082,6018 -O1 -gw2 -Fusrc '-Fusrc/*' -FU"$out" -FE"$out" \
  "$out/probe.pas" > "$out/log" 2>&1 || fail 'src/ compiles for i386' "$out/log"

# FILE:LINE of each subtraction with borrow, for inline routines that of the routine itself.
for object in "$out"/LaneMM*.o; do
  objdump -dl "$object"
done | awk '/^[^ ].*\.(pas|inc):[0-9]+/ { place = $1 } /\tsbb[ l]/ { print place }' \
  | sed 's|.*/||' | sort -u > "$out/places"

[ -s "$out/places" ] || fail 'no subtraction of 64 bits was seen, not even those that are meant'
while IFS=: read -r file line; do
  path=$(find src -name "$file")
  text=$(sed -n "${line}p" "$path" | sed 's/^ *//')
  grep -qxF "$file: $text" tests/matrix/wide.txt || fail "$path:$line: a difference without a cast: $text"
done < "$out/places"
echo "$(wc -l < "$out/places") subtractions of 64 bits"
[ "$failed" -ne 0 ] || pass
sum
