#!/bin/sh
# Builds the fuzzer and what it needs below build/fuzz.
set -eu

cd "$(dirname "$0")/../.."
out=build/fuzz
rm -rf $out
mkdir -p $out/pic
flags='-l- -v0 -vew -vm4082,6018 -O2'
# shellcheck disable=SC2086 # a list of flags
{
  fpc $flags -Fusrc '-Fusrc/*' -gw2 -Xs- -FE$out -FU$out tests/fuzz/Target.lpr
  fpc $flags -Cg -gw4 -Xs- -FE$out -FU$out/pic tests/fuzz/Mapped.lpr
  gcc -gdwarf-5 -O3 -fPIC -shared -o $out/libMappedC.so tests/fuzz/mapped.c
  gcc -gdwarf-5 -gz=zlib -O3 -fPIC -shared -o $out/libMappedZ.so tests/fuzz/mapped.c
  fpc $flags -Fusrc '-Fusrc/*' -Futests -Futests/fuzz -FE$out -FU$out tests/fuzz/Fuzz.lpr
}
