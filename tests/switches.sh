#!/bin/sh
# Tests that LaneMM compiles and works with the compiler switches of any project.
#
#   sh tests/switches.sh [SWITCHES...]
#
# Compiles src/ and tests/programs/Switches.lpr once for each set of switches, as a project compiles
# both that has src/ on its unit path, and runs the program plainly and with all diagnoses; then a
# library with the units of `make units`. docs/platforms.md lists the switches. Ends with
# `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
out=build/switches
. tests/lib.sh
mkdir -p "$out"

# One set a line: those that change the code alone or in pairs, those that cannot disturb each other
# together; the modes of the language.
all='-O-
-O1 -Ct
-O2 -Cr -Co
-O3 -CO -CR
-O4 -Ci
-Os
-CirotR
-Cg
-fPIC -Xe
-Sa -Sc -Sh -Sy -Sm -Sg -Sx -Sv
-Si
-Si- -St
-Mfpc
-Mobjfpc
-Mdelphi
-Mdelphiunicode
-Mtp
-Miso
-Mextendedpascal
-CPPACKRECORD=1 -CPPACKSET=1
-CPPACKRECORD=2 -CPPACKENUM=4 -CPPACKSET=8
-g -gh
-gl -gt
-ghl -gtttt
-gc
-gw2 -pg
-gw3 -Xg -XX
-gs -Xs
-CX -XX -Rintel
-Ratt -a
-CfSSE3 -OoFASTMATH
-CfSSE42 -OoORDERFIELDS -OoREMOVEEMPTYPROCS -OoDEADVALUES
-OoNOSTACKFRAME -OoLOOPUNROLL
-OoSTACKFRAME -OoNOREGVAR
-OoNOPEEPHOLE -OoNODFA
-OoUSERBP
-O4 -Cg -CirotR -Sa -gl -gt
-O- -CirotR -Sa -ghl -gt -CPPACKRECORD=1 -CPPACKENUM=4'

# run NAME COMMAND: counts it, and shows what it printed when it failed.
run() {
  name=$1
  shift
  if "$@" > "$out/log" 2>&1 && grep -q '^ok$' "$out/log"; then
    pass
  else
    fail "$name" "$out/log"
  fi
}

# compile OPTION...
compile() {
  rm -rf "$out/units"
  mkdir -p "$out/units"
  fpc -l- -v0 -ve "$@" -Fusrc "-FU$out/units" "-o$out/switches" tests/programs/Switches.lpr && echo ok
}

# with_units OPTION...: a library that has LaneMM's compiled units, and a program in another mode.
with_units() {
  mkdir -p "$out/library"
  printf 'library Plain;\nuses SysUtils;\nfunction Get: Pointer;\nbegin\n  Get := GetMem(100);\nend;\nexports Get;\nend.\n' \
    > "$out/library/plain.lpr"
  fpc -l- -v0 -ve "$@" -Cg "-FU$out/library" "-o$out/library/plain.so" "$out/library/plain.lpr" \
    && fpc -l- -v0 -ve -Mmacpas "$2" "-FU$out/library" "-o$out/library/switches" tests/programs/Switches.lpr \
    && "$out/library/switches"
}

# execute SETTINGS: in the folder where -pg leaves its file.
execute() {
  (cd "$out" && LANEMM=$1 ./switches)
}

try() {
  run "$* (compile)" compile "$@"
  run "$*" execute ''
  run "$*, with diagnoses" execute debug,leaks,stacks,profile,contention,leaks:exit=1,log=report
}

if [ $# -gt 0 ]; then
  try "$@"
else
  echo "$all" > "$out/all"
  while read -r switches; do
    # shellcheck disable=SC2086 # a list of switches
    try $switches
  done < "$out/all"
  sh tools/units.sh > "$out/options"
  eval "set -- $(sed 's/^fpc //; s/ PROGRAM$//' "$out/options")" # they are quoted for a shell
  run 'library with compiled units' with_units "$@"
fi

sum
