#!/bin/sh
# Kills programs that have a black box, and reads it.
#
#   sh tests/boxes/run.sh [KILLS]   kills at random moments, 60 unless given
#
# The last line is the sum of all tests, `N passed, N failed`; exit code 1 when one failed.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
. tools/preloads.sh
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

# Starts the program by a command with these settings, and waits until it works; $process is its number.
start_by() { # SETTINGS COMMAND...
  words=$1
  shift
  rm -f "$out/ready"
  env "LANEMM=$words" "$@" > "$out/ready" 2> "$out/err" &
  process=$!
  until grep -q ready "$out/ready" 2> /dev/null || ! kill -0 $process 2> /dev/null; do sleep 0.01; done
}

start() { # ARGUMENTS...
  start_by "${settings:-blackbox=$out/box/}" "$out/Boxed" "$@"
}

# Ends it as the system does when memory is short.
kill_it() {
  kill -9 $process
  wait $process 2> /dev/null
}

box() { ls "$out"/box/*."$process".lanebox; }

# A promise whose boxes are gone after it.
boxed() { # NAME COMMAND...
  promise "$@"
  rm -f "$out"/box/*
}

# What a box says begins with a line in which the pattern is.
says() { # BOX PATTERN
  "$lanemm" blackbox "$1" > "$out/report" || return 1
  cat "$out/report"
  sed -n 1p "$out/report" | grep -q "$2"
}

# Reads the box of a process that was killed at the time $at.
is_whole() {
  "$lanemm" blackbox --json "$(box)" > "$out/state" && tail -c 3 "$out/state" | grep -q '}' || return 1
  used=$(sed -n 's/.*"heap":{"used":\([0-9]*\).*/\1/p' "$out/state")
  [ "$used" -lt 1900000 ] || filled=$((filled + 1))
  time=$(sed -n 's/.*"time":\([0-9]*\)}$/\1/p' "$out/state")
  [ "$time" ] && [ $((at - time)) -le 1 ] || old=$((old + 1))
}

killed=0
filled=0
old=0
while [ $killed -lt "$kills" ]; do
  killed=$((killed + 1))
  start 500 8
  sleep "0.0$(($(od -An -N2 -tu2 /dev/urandom) % 80 + 10))"
  at=$(date +%s)
  kill_it
  boxed "the box of kill $killed is whole" is_whole
done

promise "of $kills boxes $filled have the pages, at least half" [ $filled -ge $((kills / 2)) ]
echo "of $kills states $old were more than a second old"

# A server that has given up root cannot delete its box.
says_how_it_ended_as_another_user() {
  LD_PRELOAD="$root/build/lib/liblanemm.so" LANEMM="blackbox=$out/box/" perl -e '$< = $> = 65534; exit 0' &&
    says "$(ls "$out"/box/*.lanebox)" '^Ended with exit code 0'
}
if [ "$(id -u)" -eq 0 ] && perl -e 0; then
  boxed 'a program that has given up root says that it ended' says_how_it_ended_as_another_user
else
  skip 'the box of a program that gives up root' 'needs root and perl'
fi

# The line with most bytes, not the call site.
says_which_line() {
  start lines 0
  sleep 1
  kill_it
  line=$(grep -n 'planted: two' tests/programs/Boxed.lpr | cut -d : -f 1)
  says "$(box)" " are blocks of several classes, allocated at Boxed.lpr:$line[;.]" \
    && ! grep -q 'SYSTEM.GETMEM' "$out/report"
}
boxed 'call sites of one line are summed up in the first sentence' says_which_line

# A place in each half of a box.
places='8300 135300'
has_halves() {
  for place in $places; do
    [ "$(tail -c "+$place" "$(box)" | head -c 8 | tr -d '\0' | wc -c)" -gt 0 ] || return 1
  done
}

# A server that holds pages: who holds them, in which line, since when, is the first sentence.
says_who() {
  start 20000 2
  sleep 1
  await has_halves || return 1
  kill_it
  line=$(grep -n 'planted: page' tests/programs/Boxed.lpr | cut -d : -f 1)
  says "$(box)" "^Killed at [0-9.]* MB\( in a container.*\)*; [0-9.]* % are Boxed.TCachedPage, allocated at \
Boxed.lpr:$line; [0-9.]* MB of them in the last [0-9]* s; 4 threads\.$" \
    && grep -q " $process  Boxed$" "$out/report" && grep -q '  churn$' "$out/report" \
    && "$lanemm" ps --dead "$out/box" | grep -q " $process .* $out/box/Boxed.$process.lanebox"
}
promise 'a box names what most of the memory is, the line, and the threads' says_who

# Each half alone says what it has.
says_by_half() {
  for place in $places; do
    cp "$(box)" "$out/half.lanebox"
    printf '\0' | dd of="$out/half.lanebox" bs=1 seek=$place conv=notrunc 2> /dev/null
    "$lanemm" blackbox "$out/half.lanebox" > "$out/report" && grep -q '^Killed at ' "$out/report" || return 1
  done
}
promise 'a box with one damaged half says what the other one has' says_by_half

# An event is in the file from the moment of its report on.
says_events() {
  settings=blackbox=$out/box/,limit:soft=20M,event=limit:stderr
  start 10000 1
  settings=
  kill_it
  says "$(box)" '^Killed at [0-9.]* MB \(of a soft limit of 20.0 MB\|in a container\)' \
    && grep -A3 '^Last events:' "$out/report" | grep -q '^Soft memory limit exceeded'
}
boxed 'a box has the last events' says_events

# The system kills a program in a group of processes with a limit.
group=/sys/fs/cgroup/memory/lanemm-boxes.$$
limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || { group=/sys/fs/cgroup/lanemm-boxes.$$ limit=memory.max; }
if mkdir "$group" 2> /dev/null && echo 64M 2> /dev/null > "$group/$limit"; then
  is_ended_by_system() {
    LANEMM=blackbox=$out/box/ sh -c 'echo $$ > "$1/cgroup.procs"; exec "$2" 1000000 1' _ "$group" "$out/Boxed"
    [ $? -eq 137 ] && says "$(ls "$out"/box/*.lanebox)" '^Killed at [56][0-9.]* MB in a container with [0-9.]* [KM]B of 64.0 MB; .* are Boxed.TCachedPage, allocated at Boxed.lpr'
  }
  boxed 'a program that the system ends for its memory says with what' is_ended_by_system
else
  skip 'a group with a limit of memory' 'this machine lets none be made'
fi
rmdir "$group" 2> /dev/null

# Processes of one program have a box each.
are_apart() {
  start 500 1
  first=$process
  start 500 1
  kill -9 $first
  wait $first 2> /dev/null
  kill_it
  [ "$(ls "$out/box" | wc -l)" -eq 2 ] && "$lanemm" blackbox "$out/box/Boxed.$first.lanebox" | grep "process $first," \
    && "$lanemm" blackbox "$out/box/Boxed.$process.lanebox" | grep "process $process,"
}
boxed 'two processes of one program have a box each' are_apart

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
boxed 'lines come from the debug information of another folder' names_elsewhere

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
  [ $? -eq 3 ] && says "$(ls "$out"/box/*.lanebox)" '^Ended with exit code 3 at .* Boxed.TCachedPage'
}
boxed 'one that ends with an error does' ends_badly

runs_out() {
  (ulimit -v 400000; LANEMM=blackbox=$out/box/ exec "$out/Boxed" 1000000 1)
  [ $? -ne 0 ] && says "$(ls "$out"/box/*.lanebox)" '^Ended with exit code 217 at .* are Boxed.TCachedPage, allocated at Boxed.lpr'
}
boxed 'one that runs out of memory does, and says with what' runs_out

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
if mount -t tmpfs -o ro none "$out/full" 2> /dev/null; then
  promise 'so is a folder that cannot be written to' refuses "$out/full"
  umount "$out/full"
else
  skip 'a folder that cannot be written to' 'this machine lets none be mounted'
fi
if mount -t tmpfs -o size=100k none "$out/full" 2> /dev/null; then
  promise 'so is a full device' refuses "$out/full"
  same 'which keeps nothing' 0 "$(find "$out/full" -name '*.lanebox' | wc -l)"
  umount "$out/full"
else
  skip 'a full device' 'this machine lets none be mounted'
fi

# The parent of a child process writes the box alone; a daemon, whose parent has ended, has its own.
forks() {
  # In a session of its own, so that all of it can be ended.
  setsid env LANEMM="blackbox=$out/box/" LD_PRELOAD="$root/build/lib/liblanemm.so" \
    sh -c '(sleep 30; :) & sleep 30; :' &
  process=$!
  until [ -e "$out/box/sh.$process.lanebox" ] || [ -n "$(ls "$out"/box/*."$process".lanebox 2> /dev/null)" ]; do
    sleep 0.01
  done
  sleep 0.5
  kill_it
  ls "$out/box"
  [ "$(ls "$out/box" | grep -vc '^sleep')" -eq 1 ] && "$lanemm" blackbox "$out"/box/*."$process".lanebox
}
promise 'a program in C has one, its child none while it runs' forks
kill -KILL "-$process" 2> /dev/null
rm -f "$out"/box/*

# The daemon's number is in the name of its box alone.
daemon_has_one() {
  LANEMM=blackbox=$out/box/ "$out/Boxed" daemon
  looks=0
  until ls "$out"/box/Boxed.*.lanebox > "$out/daemon" 2>&1; do
    looks=$((looks + 1))
    [ $looks -lt 1000 ] || return 1
    sleep 0.01
  done
  process=$(sed 's/.*Boxed\.\([0-9]*\)\.lanebox/\1/' "$out/daemon")
  sleep 1
  kill -9 "$process" || return 1
  while grep -q . "/proc/$process/maps" 2> /dev/null; do sleep 0.01; done
  says "$(box)" '^Killed at .* are Boxed.TCachedPage, allocated at Boxed.lpr'
}
boxed 'a daemon has a box of its own' daemon_has_one

# A shell that becomes another program was not killed, though its box stays.
becomes_another() {
  mkdir -p "$out/exec"
  LANEMM=blackbox=$out/exec/ LD_PRELOAD=$root/build/lib/liblanemm.so sh -c 'exec sleep 60' &
  process=$!
  until [ -e "$out/exec/sleep.$process.lanebox" ] || ! kill -0 $process 2> /dev/null; do sleep 0.01; done
  shell=$(find "$out/exec" -name "*sh.$process.lanebox")
  "$lanemm" blackbox "$shell" 2> /dev/null | head -n 1 \
    | grep "^Became another program, whose box is .*/sleep.$process.lanebox, or was killed, at " || return 1
  kill_it
  "$lanemm" ps --dead "$out/exec" | grep -q ", then sleep.$process.lanebox"
}
promise 'the box of a shell that became another program says so' becomes_another

# The first state comes a moment after the program works.
has_state() { # BOX
  "$lanemm" blackbox "$1" | grep -q '^In use [1-9]'
}

# In a container a process has another number than outside.
if unshare -p -f true 2> /dev/null; then
  runs_in_container() {
    mkdir -p "$out/inside"
    start_by "blackbox=$out/inside/" unshare -p -f --kill-child "$out/Boxed" 500 1
    await has_state "$out/inside/Boxed.1.lanebox"
    "$lanemm" blackbox "$out/inside/Boxed.1.lanebox" > "$out/report"
    kill_it
    while pgrep -f "^$out/Boxed 500 1" > /dev/null; do sleep 0.01; done
    "$lanemm" blackbox "$out/inside/Boxed.1.lanebox" > "$out/after"
    cat "$out/report" "$out/after"
    sed -n 1p "$out/report" | grep -q '^Runs at ' && sed -n 1p "$out/after" | grep -q '^Killed at '
  }
  promise 'a program in a container is said to run, and then to have been killed' runs_in_container
else
  skip 'a program in a container' 'this machine lets none be made'
fi

# No module of it is known there.
if unshare -m umount -l /proc 2> /dev/null; then
  runs_without_proc() {
    # shellcheck disable=SC2016 # the inner shell expands
    start_by "blackbox=$out/box/" unshare -m sh -c 'umount -l /proc && exec "$0" 500 1' "$out/Boxed"
    await has_state "$(box)"
    kill_it
    cat "$out/err"
    says "$(box)" '^Killed at .*, allocated by '
  }
  boxed 'so has a program without /proc' runs_without_proc
else
  skip 'a program without /proc' 'this machine lets none be made'
fi

# A byte that changed in each half, and files of others.
start 500 1
kill_it
damaged=$(box)
for place in 8300 135300; do
  printf '\0' | dd of="$damaged" bs=1 seek=$place conv=notrunc 2> /dev/null
done
answers 'a damaged box is said to be so' 7 'has no whole state' blackbox "$damaged"
: > "$out/empty"
answers 'an empty file is no black box' 7 'is no black box' blackbox "$out/empty"
answers 'another file is none' 7 'is no black box' blackbox "$out/Boxed"
answers 'a missing one is said to be missing' 1 'there is no file' blackbox "$out/missing"
answers 'boxes that cannot be read are listed with the reason' 0 'has no whole state' ps --dead "$out/box"
sum
