#!/bin/sh
# Tests that one unit path, that of src/, finds the whole product: from anywhere, as a user compiles.
#
#   sh tests/unit-paths.sh
#
# Compiles a program twice and runs it, with src/* and with src on a relative and an absolute path, from
# the folder of the program and another one, by -Fa and by its uses clause, with units compiled before, from a copy of src/ that
# cannot be written to, with compat/ beside it, and the C library's units; and that a changed source
# is compiled again. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
repository=$(pwd)
out=$repository/build/unit-paths
. tests/lib.sh
printed=$out/log

rm -rf "$out"
mkdir -p "$out/program" "$out/elsewhere" "$out/installed/share/lanemm"
cp -R src "$out/installed/share/lanemm/src"
find "$out/installed" -type f -exec chmod a-w {} +

# Ends with exit code 0 on LaneMM, whose heap grows in slices of 64 KB, Free Pascal's in 32 KB.
cat > "$out/program/plain.lpr" <<'END'
program plain;
var
  P: Pointer;
begin
  GetMem(P, 100);
  if GetFPCHeapStatus.CurrHeapSize mod 65536 <> 0 then
    Halt(1);
  FreeMem(P);
end.
END
sed 's/^program plain;/program used;\nuses LaneMM;/; s/^  FreeMem/  if LaneMM_HeapStatus.UsedBytes < 100 then\n    Halt(2);\n  FreeMem/' \
  "$out/program/plain.lpr" > "$out/program/used.lpr"
sed 's/^program plain;/program compat;\nuses FastMM5;/' "$out/program/plain.lpr" \
  > "$out/program/compat.lpr"

# check NAME FOLDER SOURCE OPTION...: compiles SOURCE in FOLDER with the options, twice, and runs it.
check() {
  name=$1
  folder=$2
  source=$3
  shift 3
  rm -rf "$out/units"
  mkdir -p "$out/units"
  (cd "$folder" && fpc -l- -v0 -vewn "$@" -FU"$out/units" -o"$out/units/run" "$source" \
    && fpc -l- -v0 -vewn "$@" -FU"$out/units" -o"$out/units/run" "$source") \
    > "$out/log" 2>&1 && [ ! -s "$out/log" ] && "$out/units/run" >> "$out/log" 2>&1
  report "$name" $?
}

program=$out/program
for star in "$repository/src/*" '../../../src/*'; do
  check "$(echo "$star" | grep -q '^/' && echo absolute || echo relative) path with a star" "$program" \
    used.lpr -Fu"$star"
  check "$(echo "$star" | grep -q '^/' && echo absolute || echo relative) path with a star, -Fa" "$program" \
    plain.lpr -FaLaneMM -Fu"$star"
done
check 'path with a star, source elsewhere' "$repository" build/unit-paths/program/used.lpr '-Fusrc/*'
check 'path with a star, compat' "$program" compat.lpr -Fu"$repository/src/*"
check 'installed copy, path with a star' "$program" used.lpr -Fu"$out/installed/share/lanemm/src/*"
check 'absolute path' "$program" used.lpr -Fu"$repository/src"
check 'absolute path, -Fa' "$program" plain.lpr -FaLaneMM -Fu"$repository/src"
check 'lean, -Fa' "$program" plain.lpr -FaLaneMMLean -Fu"$repository/src"
check 'lean, path with a star, -Fa' "$program" plain.lpr -FaLaneMMLean -Fu"$repository/src/*"
check 'relative path' "$program" used.lpr -Fu../../../src
check 'relative path, -Fa' "$program" plain.lpr -FaLaneMM -Fu../../../src
check 'relative path, source elsewhere' "$out/elsewhere" ../program/used.lpr -Fu../../../src
check 'absolute path, source elsewhere' / "$program/used.lpr" -Fu"$repository/src"
check 'path with a dot' "$repository" build/unit-paths/program/used.lpr -Fu./src
check 'path with a slash at its end' "$repository" build/unit-paths/program/used.lpr -Fusrc/
check 'inside of src' "$repository/src" "$program/used.lpr" -Fu.
check 'installed copy' "$program" used.lpr -Fu"$out/installed/share/lanemm/src"
check 'installed copy, relative, -Fa' "$out/elsewhere" ../program/plain.lpr -FaLaneMM \
  -Fu../installed/share/lanemm/src
check 'compat' "$program" compat.lpr -Fu"$repository/src" -Fu"$repository/src/compat"
check 'compat by src/*' "$program" compat.lpr -Fu"$repository/src/*"
# A unit of the program that its uses clause names with its file: -Fa needs units compiled before.
mkdir -p "$program/parts"
echo 'unit Part; interface implementation end.' > "$program/parts/Part.pas"
sed "s/^program plain;/program parted;\nuses Part in 'parts\/Part.pas';/" "$program/plain.lpr" \
  > "$program/parted.lpr"
sed "s/^uses LaneMM;/uses LaneMM, Part in 'parts\/Part.pas';/" "$program/used.lpr" > "$program/both.lpr"
units=$(sh tools/units.sh | sed "s/.*-Fu\(.*\) PROGRAM/\1/; s/'\$//") # a folder with a space is in quotes
check 'units compiled before, -Fa' "$program" plain.lpr -FaLaneMM -Fu"$units"
check 'units compiled before, -Fa, a unit named with its file' "$program" parted.lpr -FaLaneMM \
  -Fu"$units"
check 'units compiled before, first in uses' "$program" both.lpr -Fu"$units"
check 'sources, first in uses, a unit named with its file' "$program" both.lpr -Fu"$repository/src/*"
check 'all build options' "$program" used.lpr -Fu"$repository/src" -dLANEMM_CHECKED \
  -dLANEMM_PUREPASCAL -O4 -gl

# quiet NAME SOURCE OPTION...: the units compile without a message about LaneMM, with all kinds of them on.
quiet() {
  name=$1
  source=$2
  shift 2
  rm -rf "$out/units"
  mkdir -p "$out/units"
  fpc -l- -v0 -vewnhi "$@" "-Fu$repository/src/*" -FU"$out/units" -o"$out/units/run" "$source" > "$out/messages" 2>&1
  [ "$(grep -c '^Compiling' "$out/messages")" -gt 100 ] \
    && ! grep -E '^(LaneMM|FastMM)[^ ]*\([0-9,]+\) (Hint|Note|Warning)' "$out/messages" > "$out/log"
  report "$name" $?
}
quiet 'no hint, note or warning' "$program/used.lpr"
quiet 'no hint, note or warning, position-independent' "$program/used.lpr" -Cg
quiet 'no hint, note or warning, compat' "$program/compat.lpr"
sed 's/FastMM5/FastMM4/' "$program/compat.lpr" > "$program/older.lpr"
quiet 'no hint, note or warning, FastMM4' "$program/older.lpr"

# recompiled NAME OPTION...: a change of one unit of core is seen by the next compilation.
recompiled() {
  name=$1
  shift
  rm -rf "$out/changed"
  mkdir -p "$out/changed/units"
  cp -R src "$out/changed/src"
  fpc -l- -v0 "$@" -o"$out/changed/run" "$program/used.lpr" > "$out/log" 2>&1
  sleep 1 # the compiler sees times in seconds
  echo '// changed' >> "$out/changed/src/core/LaneMM.Span.pas"
  fpc -l- -v0i "$@" -o"$out/changed/run" "$program/used.lpr" >> "$out/log" 2>&1
  grep -q '^Compiling.*LaneMM.Span' "$out/log"
  report "$name" $?
}

changed=$out/changed
recompiled 'change seen where units lie beside their sources' -Fu"$changed/src/*"
recompiled 'change seen with a folder for units' -Fu"$changed/src/*" -FU"$changed/units"

# lib/ finds the rooms too, by the same list.
rm -rf "$out/units"
mkdir -p "$out/units"
(cd lib && fpc -l- -v0 -ve -Cg -CX- -Cn -O3 -Fu../src -Fu"../src/*" -FU"$out/units" LaneMM.C.pas) > "$out/log" 2>&1
report 'lib' $?

# Where compiled units lie beside their sources, in a copy: compiled twice.
rm -rf "$out/beside"
mkdir -p "$out/beside"
cp -R src "$out/beside/src"
(cd "$program" && fpc -l- -v0 -vew -Fu"$out/beside/src/*" -o"$out/beside/run" used.lpr \
  && fpc -l- -v0 -vew -Fu"$out/beside/src/*" -o"$out/beside/run" used.lpr) > "$out/log" 2>&1 \
  && [ ! -s "$out/log" ] && "$out/beside/run"
report 'compiled twice beside the sources' $?

# Nothing was written beside the sources of the repository and the installed copy.
find src lib "$out/installed" -name '*.ppu' -o -name '*.o' > "$out/log"
[ ! -s "$out/log" ]
report 'nothing is written beside the sources' $?

sum
