#!/bin/sh
# A real program on real input: the Free Pascal compiler on LaneMM compiles itself.
#
#   sh tools/selfcompile.sh [SOURCE]
#
# Builds the compiler twice, with its own memory manager and with LaneMM, lets both compile the
# compiler's own source with the same options, and compares every file that they write, byte by
# byte. An identical file is a passed test. Prints time and peak memory of both, of one run each:
# an impression, not a benchmark.
#
# Then the compiler on LaneMM, which has symbols and no line numbers, compiles LaneMM and a program with
# a profile of its heap, with 256 frames. At least 95 % of the bytes have a backtrace that begins in
# `main`, and the rest one that is cut: one more test.
#
# The source is that of tools/compiler-source.sh. SOURCE is an unpacked source package to use
# instead; a few generated files are written into it.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
repository=$(pwd)
work=$repository/build/selfcompile
mkdir -p "$work/logs"

# The compiler writes today's date into one unit: let it be the same for both.
SOURCE_DATE_EPOCH=0
export SOURCE_DATE_EPOCH

. tests/lib.sh

say() {
  echo "selfcompile: $*"
}

end() { # REASON [LOG]
  [ -z "${2-}" ] || tail -n 5 "$2"
  say "$1"
  echo '0 passed, 1 failed'
  exit 1
}

# How to compile the compiler, all but the output directory: sets $options.
compiler_options() {
  options="-n -v0 -ve -Fu$units/* -dx86_64 -dGDB -dBROWSERLOG
    -Fux86_64 -Fux86 -Fusystems -Fix86_64 -Fix86 -O2"
}

# build_compiler NAME OPTION...: builds $work/NAME/ppc.
build_compiler() {
  name=$1
  shift
  say "building the compiler on $name"
  mkdir -p "$work/$name"
  set -f # the compiler expands the asterisk
  # shellcheck disable=SC2086 # a list of options
  fpc $options "$@" -FU"$work/$name" -o"$work/$name/ppc" pp.pas > "$work/logs/build-$name" 2>&1 \
    || end 'it does not compile' "$work/logs/build-$name"
  set +f
}

# run_compiler NAME: lets $work/NAME/ppc compile the compiler into $work/NAME.out.
run_compiler() {
  rm -rf "$work/out" "$work/$1.out"
  mkdir "$work/out"
  timer=
  if [ -x /usr/bin/time ]; then
    timer="/usr/bin/time -o $work/logs/time-$1 -f %e,s,%M,KB"
  fi
  set -f
  # shellcheck disable=SC2086
  $timer "$work/$1/ppc" $options -B -Cn -FU"$work/out" -o"$work/out/ppc" pp.pas \
    > "$work/logs/run-$1" 2>&1 || end "the compiler on $1 failed" "$work/logs/run-$1"
  set +f
  mv "$work/out" "$work/$1.out"
  if [ -n "$timer" ]; then
    say "$(tr , ' ' < "$work/logs/time-$1") peak: the compiler on $1"
  fi
}

written_files() {
  find "$work/default.out" "$work/lanemm.out" -name '*.ppu' -o -name '*.o' | sed 's|.*/||' | sort -u
}

# Counts the units and object files that both wrote alike, and those that differ or that only one
# wrote. The scripts for the linker are left out: the process id is part of them.
compare() {
  for file in $(written_files); do
    if cmp -s "$work/default.out/$file" "$work/lanemm.out/$file"; then pass; else fail "$file differs"; fi
  done
  say "$passed of $((passed + failed)) files are the same"
  [ "$passed" -gt 0 ] || fail 'no file is the same'
}

# Compiles a program with a profile, and prints how many percent of its bytes have a backtrace that
# begins in `main`, and how many one that is cut.
profile() {
  rm -rf "$work/profile"
  mkdir "$work/profile"
  set -f
  LANEMM="profile,folded,depth=256,log=$work/profile/" "$work/lanemm/ppc" -n -v0 -B -Cn -Fu"$units/*" \
    -Fu"$repository/src" -FU"$work/profile" "$repository/tests/programs/Leaking.lpr" \
    > "$work/logs/profile" 2>&1 || end 'the compiler with a profile failed' "$work/logs/profile"
  set +f
  awk '{ all += $NF } /^main[; ]/ { main += $NF } /^\(cut\)/ { cut += $NF }
    END { if (all) print 100 * main / all, 100 * cut / all; else print 0, 0 }' \
    "$work"/profile/*_heap.[0-9]*.folded
}

judge() { # MAIN CUT
  say "$1 % of the bytes of a profile lie below main, $2 % have a backtrace that is cut"
  if awk -v main="$1" -v cut="$2" 'BEGIN { exit main < 95 || main + cut < 99.9 }'; then
    pass
  else
    fail 'too many bytes have no whole backtrace'
  fi
}

[ "$(fpc -iTP)-$(fpc -iTO)" = x86_64-linux ] || end 'this script knows x86_64 Linux only'
source=$(sh tools/compiler-source.sh ${1+"$1"}) || end 'no source of the compiler'
units=$(sh tools/compiler-source.sh --units) || end 'no units of the compiler'
cd "$source"
compiler_options
build_compiler default
build_compiler lanemm -FaLaneMM -Fu"$repository/src" -vm6018
grep -q 'INIT._.LANEMM' "$work/lanemm/ppc" || end 'LaneMM is not in the compiler'
run_compiler default
run_compiler lanemm
compare
shares=$(profile) || { echo "$shares"; exit 1; }
# shellcheck disable=SC2086 # two numbers
judge $shares
sum
