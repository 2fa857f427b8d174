#!/bin/sh
# Compiles LaneMM once for the compiler in FPC (fpc), and prints the options that put it first in any
# program.
#
#   sh tools/units.sh [OPTION...]
#
# The units go to build/units/CPU-OS; programs and libraries can have them (-Cg). OPTIONs are options of the compiler. Free Pascal 3.2.2 ends with
# an internal error when -Fa names a unit that is not compiled yet and the program has `X in 'file'` in
# its uses clause.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
fpc=${FPC-fpc}
units=build/units/$("$fpc" -iTP)-$("$fpc" -iTO)
rm -rf "$units"
mkdir -p "$units"
for unit in src/LaneMM.pas src/LaneMMLean.pas lib/LaneMM.Demangle.pas; do
  "$fpc" -l- -v0 -vew -vm4082,6018 -O3 -Cg -Fusrc '-Fusrc/*' -Fulib "$@" -FU"$units" "$unit"
done
path=-Fu$(pwd)/$units
case $path in
  *' '*) path="'$path'" ;;
esac
echo "fpc -FaLaneMM $path PROGRAM"
