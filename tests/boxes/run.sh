#!/bin/sh
# Kills programs that have a black box, and reads it.
#
#   sh tests/boxes/run.sh [KILLS]   kills at random moments, 60 unless given
#
# The last line is the sum of all tests, `N passed, N failed`; exit code 1 when one failed.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
. tests/lib.sh
kills=${1:-60}
root=$PWD
out=$root/build/boxes
lanemm=$root/build/lanemm
rm -rf "$out"
mkdir -p "$out/units" "$out/box"
printed=$out/log

fpc -l- -v0 -vew -vm4082,6018 -O2 -gl -Fusrc '-Fusrc/*' -FE"$out" -FU"$out/units" tests/programs/Boxed.lpr \
  || exit 1
sh lib/build.sh > "$out/build.log" 2>&1 || { cat "$out/build.log"; exit 1; }

# Starts the program and waits until it works; $process is its number.
start() { # ARGUMENTS...
  rm -f "$out/ready"
  LANEMM=${settings:-blackbox=$out/box/} "$out/Boxed" "$@" > "$out/ready" 2> "$out/err" &
  process=$!
  until grep -q ready "$out/ready" 2> /dev/null || ! kill -0 $process 2> /dev/null; do sleep 0.01; done
}

# Ends it as the system does when memory is short.
kill_it() {
  kill -9 $process
  wait $process 2> /dev/null
}

box() { ls "$out"/box/*."$process".lanebox; }

is_whole() {
  "$lanemm" blackbox --json "$(box)" > "$out/state" && tail -c 3 "$out/state" | grep -q '}' || return 1
  used=$(sed -n 's/.*"heap":{"used":\([0-9]*\).*/\1/p' "$out/state")
  [ "$used" -lt 1900000 ] || filled=$((filled + 1))
}

killed=0
filled=0
while [ $killed -lt "$kills" ]; do
  killed=$((killed + 1))
  start 500 8
  sleep "0.0$(($(od -An -N2 -tu2 /dev/urandom) % 80 + 10))"
  kill_it
  promise "the box of kill $killed is whole" is_whole
  rm -f "$out"/box/*
done

promise "of $kills boxes $filled have the pages, at least half" [ $filled -ge $((kills / 2)) ]

# A server that holds pages: who holds them, in which line, is the first sentence.
says_who() {
  start 20000 2
  sleep 1
  kill_it
  "$lanemm" blackbox "$(box)" > "$out/report" || return 1
  cat "$out/report"
  line=$(grep -n 'planted: page' tests/programs/Boxed.lpr | cut -d : -f 1)
  sed -n 2p "$out/report" | grep -q "are Boxed.TCachedPage, allocated at Boxed.lpr:$line; .* 4 threads" \
    && "$lanemm" ps --dead "$out/box" | grep -q " $process .* $out/box/Boxed.$process.lanebox"
}
promise 'a box names what most of the memory is, and the line' says_who

# The program is gone with its debug information: frames are module and offset, and named from elsewhere.
names_elsewhere() {
  mkdir -p "$out/moved" "$out/there" && cp "$out/Boxed" "$out/there" && strip "$out/there/Boxed" || return 1
  LANEMM=blackbox=$out/moved/ "$out/there/Boxed" end 3
  rm "$out/there/Boxed"
  "$lanemm" blackbox "$out"/moved/*.lanebox > "$out/report" 2> "$out/err" || return 1
  cat "$out/report" "$out/err"
  grep -q 'Boxed+0x' "$out/report" && grep -q 'there is no file Boxed' "$out/err" || return 1
  "$lanemm" blackbox "$out"/moved/*.lanebox "$out" > "$out/report" && grep -q 'allocated at Boxed.lpr' "$out/report"
}
promise 'lines come from the debug information of another folder' names_elsewhere
rm -f "$out"/box/*

ends_well() { LANEMM=blackbox=$out/box/ "$out/Boxed" end && [ -z "$(ls "$out/box")" ]; }
promise 'a program that ends well leaves no box' ends_well

# Also while the thread that purges writes the box.
ends_well_often() {
  rounds=0
  while [ $rounds -lt 100 ]; do
    LANEMM=blackbox=$out/box "$out/Boxed" end || return 1
    rounds=$((rounds + 1))
  done
  [ -z "$(ls "$out/box")" ]
}
promise 'nor do a hundred, in a folder named without a slash' ends_well_often

ends_badly() {
  LANEMM=blackbox=$out/box/ "$out/Boxed" end 3
  [ $? -eq 3 ] && "$lanemm" blackbox "$out"/box/*.lanebox | grep -q 'Boxed.TCachedPage'
}
promise 'one that ends with an error does' ends_badly
rm -f "$out"/box/*

runs_out() {
  (ulimit -v 400000; LANEMM=blackbox=$out/box/ exec "$out/Boxed" 1000000 1)
  [ $? -ne 0 ] && "$lanemm" blackbox "$out"/box/*.lanebox > "$out/report" && cat "$out/report" \
    && sed -n 2p "$out/report" | grep -q 'are Boxed.TCachedPage, allocated at Boxed.lpr'
}
promise 'one that runs out of memory does, and says with what' runs_out
rm -f "$out"/box/*

goes_on_without() {
  start 500 1
  rm "$out"/box/*
  sleep 1
  kill -0 $process
  status=$?
  kill_it
  return $status
}
promise 'a program whose box is deleted goes on' goes_on_without

refuses() { # FOLDER
  LANEMM=blackbox=$1/ "$out/Boxed" end 2> "$out/err" && cat "$out/err" \
    && grep -q '^LaneMM: no black box: .* cannot be written$' "$out/err"
}
promise 'a folder that is not there is one line, and the program runs' refuses "$out/none"
mkdir -p "$out/full"
if mount -t tmpfs -o size=100k none "$out/full" 2> /dev/null; then
  promise 'so is a full device' refuses "$out/full"
  same 'which keeps nothing' 0 "$(find "$out/full" -name '*.lanebox' | wc -l)"
  umount "$out/full"
else
  echo 'a full device: skipped: this machine lets none be mounted'
fi

# The parent of a child process writes the box alone; a daemon, whose parent has ended, has its own.
forks() {
  LANEMM=blackbox=$out/box/ LD_PRELOAD=$root/build/lib/liblanemm.so sh -c '(sleep 30) & sleep 30' &
  process=$!
  until [ -e "$out/box/sh.$process.lanebox" ] || [ -n "$(ls "$out"/box/*."$process".lanebox 2> /dev/null)" ]; do
    sleep 0.01
  done
  sleep 0.2
  kill_it
  "$lanemm" blackbox "$out"/box/*."$process".lanebox
}
promise 'a program in C has one' forks
pkill -P 1 -f '^sleep 30$' 2> /dev/null
rm -f "$out"/box/*

# A byte that changed in each half, and files of others.
start 500 1
kill_it
damaged=$(box)
for place in 4200 133300; do
  printf '\0' | dd of="$damaged" bs=1 seek=$place conv=notrunc 2> /dev/null
done
answers 'a damaged box is said to be so' 7 'has no whole state' blackbox "$damaged"
: > "$out/empty"
answers 'an empty file is no black box' 7 'is no black box' blackbox "$out/empty"
answers 'another file is none' 7 'is no black box' blackbox "$out/Boxed"
answers 'a missing one is said to be missing' 1 'there is no file' blackbox "$out/missing"
answers 'boxes that cannot be read are listed with the reason' 0 'has no whole state' ps --dead "$out/box"
sum
