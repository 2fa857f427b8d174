#!/bin/sh
# Makes the source of the Free Pascal compiler ready to be compiled.
#
#   sh tools/compiler-source.sh [SOURCE]   prints the folder of the compiler's source
#   sh tools/compiler-source.sh --units    prints the folder of the installed compiler's units
#
# The source is Debian's source package, fetched with apt-get into build/compiler and kept there, with
# the sources of units and packages beside the compiler's; the package sources of the machine are read
# but not changed. SOURCE is an unpacked source package to use instead. Writes the files into it that
# the compiler's makefiles would generate.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
work=$(pwd)/build/compiler
mkdir -p "$work/logs"
. tools/package-sources.sh

say() {
  echo "compiler-source: $*" >&2
}

fail() {
  [ -z "${2-}" ] || tail -n 5 "$2" >&2
  say "$1"
  exit 1
}

# Fetches the source package of the compiler that is installed here, or else the newest one.
fetch_source() {
  say 'fetching the source package of the compiler (33 MB)'
  write_package_sources
  private_apt update > "$work/logs/update" 2>&1 || true # sources of other packages may fail
  version=$(dpkg-query -W -f '${source:Version}' "fp-compiler-$(fpc -iV)" 2> /dev/null || true)
  rm -rf "$work/unpack" "$work/source"
  mkdir "$work/unpack"
  cd "$work/unpack"
  private_apt source "fpc=$version" > "$work/logs/fetch" 2>&1 \
    || private_apt source fpc > "$work/logs/fetch" 2>&1 \
    || fail 'apt-get source fpc failed' "$work/logs/fetch"
  mv fpc-*/ "$work/source"
  rm -rf "$work/unpack" "$work/apt"
}

# The directory that holds the units of the installed compiler. -Cn leaves a script for the linker in
# the current folder.
find_units() {
  echo 'begin end.' > "$work/probe.pas"
  (cd "$work" && fpc -v0u -Cn -FU. probe.pas) \
    | sed -n 's|.*PPU Name: \(.*\)/rtl/system.ppu|\1|p' | sed 1q
}

# Writes the files that the compiler's makefiles would generate.
generate() {
  fpc -v0 -FE"$work" utils/msg2inc.pp > "$work/logs/msg2inc" 2>&1 \
    || fail 'msg2inc does not compile' "$work/logs/msg2inc"
  "$work/msg2inc" msg/errore.msg msg msg > "$work/logs/msg2inc"
  echo "'LaneMM'" > version.inc
}


if [ "${1-}" = --units ]; then
  units=$(find_units)
  [ -n "$units" ] || fail 'the units of the installed compiler were not found'
  echo "$units"
  exit
fi

# One at a time: two runs at once may need it.
exec 9> "$work/lock"
flock 9
source=${1:-$work/source}
[ -d "$source" ] || fetch_source
cd "$source/fpcsrc/compiler"
[ -e msg/errore.msg ] || fail 'no compiler in this source'
[ -e version.inc ] || generate
pwd
