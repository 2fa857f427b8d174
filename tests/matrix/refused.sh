#!/bin/sh
# Tests that LaneMM refuses each target that it is not ported to, by one message that names it, and
# that docs/porting.md names each routine that a port has to write.
#
#   sh tests/matrix/refused.sh
#
# Compilers for such targets come without units; -Us compiles a unit without any, and LaneMM.inc is
# read before anything else is missed. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
repository=$(pwd)
dir=$repository/build/matrix/refused
mkdir -p "$dir"
# shellcheck source=tests/matrix/tools.sh
. tests/matrix/tools.sh
. tests/lib.sh
printed=$dir/log

# refused NAME COMPILER OPTION...: the compiler says so, and nothing else.
refused() {
  name=$1
  shift
  "$@" -n -l- -v0ewn -Us -Cn -FU"$dir" src/core/LaneMM.Layout.pas > "$dir/log" 2>&1
  grep -q "Fatal: User defined: LaneMM: not ported to $name$" "$dir/log" \
    && [ "$(grep -c 'Fatal:' "$dir/log")" -eq 2 ] # the second one: compilation aborted
  report "$* is refused: $name" $?
}

promise 'there is a compiler for 32-bit ARM' cross_compiler ARM ppcrossarm arm armgen
promise 'there is a compiler for AArch64' cross_compiler AARCH64 ppcrossa64 aarch64 armgen
refused 'macOS and iOS' fpc -Tdarwin
refused FreeBSD fpc -Tfreebsd
refused 'this operating system' fpc -Topenbsd
refused 'macOS and iOS' "$dir/ppcrossa64" -Tdarwin
refused Android "$dir/ppcrossa64" -Tandroid
refused '32-bit ARM' "$dir/ppcrossarm" -Tlinux

missing=
for routine in $(sed -n 's/^\(function\|procedure\) \(Os[A-Za-z]*\).*/\2/p' src/core/LaneMM.Os.pas); do
  grep -q "\b$routine\b" docs/porting.md || missing="$missing $routine"
done
[ -z "$missing" ]
report "docs/porting.md names all routines of LaneMM.Os${missing:+, not$missing}" $?
sum
