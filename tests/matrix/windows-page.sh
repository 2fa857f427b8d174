#!/bin/sh
# Follows docs/start-windows.md to the letter under wine: its files, its commands in cmd, and what it says that they
# show. The compiler is Free Pascal for 64-bit Windows, made of Debian's source package.
#
#   sh tests/matrix/windows-page.sh
#
# Blocks for PowerShell, which wine does not have, are not run. Ends with `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
page=docs/start-windows.md
repository=$PWD
dir=$repository/build/matrix/win64
drive=$dir/wine/drive_c

sh tests/matrix/run.sh --prepare win64

# The compiler itself as a program for Windows, with the units of the matrix as its own.
make_compiler() {
  [ ! -e "$drive/fpc/fpc.exe" ] || return 0
  source=$(sh tools/compiler-source.sh)
  top=$(dirname "$source")
  mkdir -p "$drive/fpc" "$dir/compiler"
  (cd "$source" && "$dir/fpc" -v0 -ve -dx86_64 -dGDB -dBROWSERLOG -Fux86_64 -Fux86 -Fusystems -Fix86_64 -Fix86 \
    "-Fu$top/rtl/inc" "-Fu$top/rtl/objpas" "-Fu$top/rtl/charmaps" "-Fi$top/rtl/charmaps" \
    "-Fu$top/packages/winunits-base/src" -O2 "-FU$dir/compiler" "-o$drive/fpc/fpc.new.exe" pp.pas)
  cp -R "$dir/units" "$drive/fpc/"
  printf -- '-Sgic\n-viwn\n-l\n-FuC:\\fpc\\units\n' > "$drive/fpc/fpc.cfg"
  mv "$drive/fpc/fpc.new.exe" "$drive/fpc/fpc.exe"
}
make_compiler

rm -rf "$drive/reader"
mkdir -p "$drive/reader/lanemm"
git ls-files -z --cached --others --exclude-standard src packages | tar -cf - --null -T - \
  | tar -C "$drive/reader/lanemm" -xf -

{
  echo "output=$dir/page.output"
  cat tests/packages/follow.sh
  cat <<END
# One block of commands as a batch file; a compilation that fails ends it.
windows() {
  { printf '@echo off\npath C:\\\\fpc;%%PATH%%\n'; sed 's/^fpc .*/&\nif errorlevel 1 exit 1/'; } \\
    | sed 's/\$/\r/' > page.bat
  code=0
  "$dir/run" cmd /c page.bat > "\$output" 2>&1 < /dev/null || code=\$?
  [ \$code -ne 1 ] || { echo "\$place: a command failed"; exit 1; }
}
cd "$drive/reader"
END
  awk -f tests/packages/follow.awk "$page"
} > "$dir/page.script"

. tests/lib.sh
printed=$dir/page.log
promise "$page holds when it is followed" sh "$dir/page.script"
sum
