#!/bin/sh
# Tests that one unit path, that of src/, finds the whole product: from anywhere, as a user compiles.
#
#   sh tests/unit-paths.sh
#
# Compiles and runs a program with src/ on a relative and an absolute path, from the folder of the
# program and from another one, by -Fa and by its uses clause, from a copy of src/ elsewhere that
# cannot be written to, with compat/ beside it, and the C library's units. Ends with `N passed, N
# failed`.
set -u

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.." || exit 1
repository=$(pwd)
out=$repository/build/unit-paths
passed=0
failed=0

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

# check NAME FOLDER SOURCE OPTION...: compiles SOURCE in FOLDER with the options and runs it.
check() {
  name=$1
  folder=$2
  source=$3
  shift 3
  rm -rf "$out/units"
  mkdir -p "$out/units"
  if (cd "$folder" && fpc -l- -v0 -vew "$@" -FU"$out/units" -o"$out/units/run" "$source") \
    > "$out/log" 2>&1 && [ ! -s "$out/log" ] && "$out/units/run" >> "$out/log" 2>&1; then
    passed=$((passed + 1))
    echo "passed: $name"
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    sed 's/^/  /' "$out/log"
  fi
}

program=$out/program
check 'absolute path' "$program" used.lpr -Fu"$repository/src"
check 'absolute path, -Fa' "$program" plain.lpr -FaLaneMM -Fu"$repository/src"
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
check 'all build options' "$program" used.lpr -Fu"$repository/src" -dLANEMM_CHECKED \
  -dLANEMM_PUREPASCAL -O4 -gl

# lib/ finds the rooms too, by the same list.
rm -rf "$out/units"
mkdir -p "$out/units"
if (cd lib && fpc -l- -v0 -ve -Cg -CX- -Cn -O3 -Fu../src -Fu"../src/*" -FU"$out/units" \
  LaneMM.C.pas) > "$out/log" 2>&1; then
  passed=$((passed + 1))
  echo 'passed: lib'
else
  failed=$((failed + 1))
  echo 'FAILED: lib'
  sed 's/^/  /' "$out/log"
fi

# Nothing was written beside the sources.
if [ -z "$(find src lib "$out/installed" -name '*.ppu' -o -name '*.o')" ]; then
  passed=$((passed + 1))
  echo 'passed: nothing is written beside the sources'
else
  failed=$((failed + 1))
  echo 'FAILED: nothing is written beside the sources'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
