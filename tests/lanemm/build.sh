#!/bin/sh
# Builds lanemm, its tests, and the programs that they look at, into build/lanemm-tests.
set -eu

. "$(dirname "$0")/../../tools/begin.sh"
. tools/preloads.sh
out=build/lanemm-tests
mkdir -p "$out/units" "$out/debug"
make --no-print-directory lanemm
sh lib/build.sh
flags='-l- -v0 -vew -vm4082,6018 -vm4046 -Fusrc -Fusrc/*'
# shellcheck disable=SC2086 # words
compile() {
  fpc $flags -FU"$out/units" -FE"$out" "$@"
}
compile -O1 -gl -Xs- tests/lanemm/Planted.lpr
compile -O1 -gl -Xs- tests/lanemm/Profiled.lpr
compile -O1 -gl -Xs- tests/lanemm/Stuck.lpr
compile -O1 -gw2 -Xs- -o"$out/Shown2" tests/lanemm/Shown.lpr
compile -O1 -gw3 -Xs- -o"$out/Shown3" tests/lanemm/Shown.lpr
compile -O1 tests/lanemm/Hostile.lpr
compile -O1 tests/lanemm/Tried.lpr
compile -O1 tests/lanemm/Recorded.lpr
gcc -O1 -fPIC -shared -o "$out/waste.so" tests/lanemm/Waste.c
gcc -O1 -fPIC -shared -DBROKEN -o "$out/broken.so" tests/lanemm/Waste.c
compile -O3 -Xs -o"$out/PlantedStripped" tests/lanemm/Planted.lpr
gcc -O1 -pthread -o "$out/PlantedC" tests/lanemm/Planted.c
gcc -O1 -g -pthread -o "$out/StuckC" tests/lanemm/StuckC.c
g++ -std=c++20 -O1 -g -pthread -o "$out/StuckCpp" tests/lanemm/StuckCpp.cpp
gcc -m32 -O1 -nostdlib -static -ffreestanding -fno-pie -no-pie -fno-stack-protector -o "$out/Small" \
  "-DLAYOUT=$(sed -n 's/^  PageLayout = \([0-9]*\);$/\1/p' src/control/LaneMM.StatusPage.pas)" tests/lanemm/Small.c
compile -O1 -gl -Futools/lanemm -Futests -Futests/lanemm tests/lanemm/LanemmTests.lpr
