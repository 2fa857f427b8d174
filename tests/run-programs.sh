#!/bin/sh
# Builds and runs the programs of tests/programs, and tests/stress in a checked build.
#
#   sh tests/run-programs.sh [NAME...]
#
# Prints a line per run, and what the program said when it failed. Ends with `N passed, N failed`.
# With names, only the runs of these programs. STRESS="OPTIONS": one run of Stress with these.
# SHORT=1: without the stress, with few forks and stops. LIMIT=N: the seconds after which a run hangs (1800).
# WITHIN=FORMAT: how a shell begins a command that has %s megabytes of addresses, where those of an
# emulator would count.
set -u
. "$(dirname "$0")/../tools/begin.sh"
# FPC, RUN, OUT and WITHOUT are those of the Makefile.
fpc=${FPC:-fpc}
target=$("$fpc" -iTO)-$("$fpc" -iTP)
start=${RUN-}
out=${OUT:-build}/programs
wanted=" $* "
. tests/lib.sh
printed=$out/log

# A run that takes longer hangs. The longest, with many forks, takes 26 s of CPU time; a machine is busy.
seconds=${LIMIT:-1800}

# build PROGRAM OPTIONS...: into $out; units of other options go to other directories.
build() {
  source=$1
  shift
  units=$out/units$(echo "$*" | tr -cd 'A-Za-z0-9')
  mkdir -p "$units"
  case "$("$fpc" -iV) $*" in
    3.3.*-FaLaneMM*) # of a unit that is not compiled: an internal error of that compiler
      "$fpc" -l- -v0 -O3 -FU"$units" "${LANEMM_SRC:-src}/LaneMM.pas" > "$units/build.log" 2>&1 ;;
  esac
  "$fpc" -l- -v0 -vew -vm4082,6018 -g- -CR- -Co- -Fu${LANEMM_SRC:-src} -Futests -Futests/programs \
    -FU"$units" -FE"$out" "$@" "$source" > "$units/build.log" 2>&1 || { cat "$units/build.log"; return 1; }
}

# is_left_out NAME: whether WITHOUT names the program or the run.
is_left_out() {
  [ -n "${WITHOUT-}" ] && grep -q "^$1:" "$WITHOUT"
}

# run EXIT-CODE NAME COMMAND...: passes when the command ends with the exit code.
run() {
  expected=$1
  name=$2
  shift 2
  ! is_left_out "$name" || return 0
  timeout -k 5 "$seconds" "$@" > "$printed" 2>&1
  status=$?
  echo "exit code $status, expected $expected" >> "$printed"
  report "$name" "$([ "$status" -eq "$expected" ]; echo $?)"
}

# Runs a built program with settings, whatever its exit code is.
try() { # SETTINGS PROGRAM ARGUMENT...
  tried=$out/$2 tried_with=LANEMM=$1
  shift 2
  timeout -k 5 "$seconds" env "$tried_with" $start "$tried" "$@" > "$printed" 2>&1
}

# Passes when the pattern is in a line that the last command printed.
prints() { # NAME PATTERN
  tr -d "\r" < "$printed" | grep -q -e "$2"
  report "$1" $?
}

# Programs in the list below, and the number, name and start of the one that runs.
programs=$(grep -E '^ *(program [0-9]|if .*built |built )' tests/run-programs.sh \
  | if [ -n "${SHORT-}" ]; then grep -v -c stress/; else grep -c .; fi)
number=0
running=
began=0
runs=0

# Prints a line for a person who waits, as Test.Runner does, at the end of a program: when the next begins.
progress() { # NAME
  now=$(date +%s)
  ran=$((passed + failed - runs))
  if [ -n "$running" ] && [ $ran -gt 0 ]; then
    echo "$number/$programs $running $ran test$([ $ran -eq 1 ] || echo s) $((now - began)) s"
  fi
  number=$((number + 1))
  [ $number -le $programs ] || programs=$number # a loop has several
  running=$1
  began=$now
  runs=$((passed + failed))
}

# is_wanted NAME: whether the runs of this program were asked for, and WITHOUT does not name it.
is_wanted() {
  ! is_left_out "$1" || return 1
  case $wanted in
    '  ' | *" $1 "*) return 0 ;;
    *) return 1 ;;
  esac
}

# built SOURCE OPTIONS...: builds the program in tests/SOURCE if it is wanted. Whether it is there to be
# run: a program that does not compile is a failed run.
built() {
  source=tests/$1
  name=$(basename "$1" .lpr)
  shift
  progress "$name"
  is_wanted "$name" || return 1
  build "$source" "$@" || { fail "$name (build)"; return 1; }
}

# program EXIT-CODE NAME OPTIONS...: builds tests/programs/NAME and runs it.
program() {
  code=$1
  shift
  program=$1
  shift
  if built "programs/$program.lpr" -O3 "$@"; then
    run "$code" "$program" $start "$out/$program"
  fi
}

# again EXIT-CODE NAME ARGUMENT: runs a program that is already built.
again() {
  if is_wanted "$2"; then
    run "$1" "$2 $3" $start "$out/$2" "$3"
  fi
}

# within MEGABYTES COMMAND: runs it, text for a shell, with so many megabytes of addresses at most.
within() {
  # shellcheck disable=SC2059 # the format is an option
  printf "${WITHIN:-ulimit -v \$((1024 * %s)); exec} %s" "$1" "$2"
}

# No units of an earlier run: the compiler does not see that sources have changed which it finds by
# the unit paths of LaneMM.inc.
rm -rf "$out"/units*
mkdir -p "$out"

program 0 BeforeThreads
program 0 AfterThreads
# The blocks of cmem begin 8 bytes behind a multiple of 16.
if built programs/AfterThreads.lpr -O3 -Facmem; then
  run 0 'AfterThreads (cmem before)' $start "$out/AfterThreads"
fi
program 0 NoThreads
program 0 StaticProgram
if is_wanted StaticProgram; then
  run 0 'StaticProgram is static' sh -c "! readelf -d '$out/StaticProgram' | grep NEEDED"
fi
program 0 AutoInstalled -FaLaneMM
program 0 ForeignThreads
program 0 FreshThread
program 0 NoFastSlot
program 0 AllKeysTaken
program 0 BlowUp
program 0 Checkpoints
blind='mount -t tmpfs none /proc && exec "$0" blind'
if [ -n "$start" ] || ! is_wanted Checkpoints; then
  : # an emulator needs /proc
elif unshare -rm sh -c 'mount -t tmpfs none /proc' 2> "$printed"; then
  run 0 'Checkpoints without /proc' unshare -rm sh -c "$blind" "$out/Checkpoints"
  prints 'Checkpoints without /proc (a line)' '^LaneMM: leaks since a checkpoint are unknown: /proc is not mounted'
  run 0 'settings without /proc' env LANEMM=break=1 unshare -rm sh -c "$blind" "$out/Checkpoints"
  prints 'settings without /proc (a report has the name of the program)' '^LaneMM: .* UTC, .*/Checkpoints:$'
else
  skip 'Checkpoints without /proc' 'this machine lets no folder be mounted over it'
fi
program 0 Counts
program 0 SwitchedOn
program 0 ManyThreads
program 0 LockedMemory
# Exit code CODE: this machine cannot show it.
unless() { # CODE SETTINGS PROGRAM REASON
  try "$2" "$3"
  case $? in
    0) report "$3" 0 ;;
    "$1") skip "$3" "$4" ;;
    *) report "$3" 1 ;;
  esac
}

if built programs/ChargedMemory.lpr -O3; then
  unless 3 '' ChargedMemory 'no huge pages, or the system does not say what is charged'
fi
# By the thread that purges, which Linux has on this processor alone.
if [ "$target" = linux-x86_64 ] && built programs/Contained.lpr -O3; then
  unless 3 '' Contained 'no control group with a limit of memory can be made here'
fi
program 0 FullAddresses
program 0 Fragmented
again 0 Fragmented 10
program 0 HeapTrace -gh
for successor in -dHEAPTRC -dCMEM; do
  if built programs/Successor.lpr $successor; then
    try debug Successor
    prints "Successor ($successor: a manager that took over is named)" \
      '^LaneMM: another memory manager was installed after it'
    try '' Successor && ! grep -q LaneMM "$out/log"
    report "Successor ($successor: not without a setting)" $?
  fi
done
if built programs/Successor.lpr; then
  try debug,quiet Successor && test ! -s "$out/log"
  report 'Successor (nothing took over)' $?
fi
program 204 RunError
program 0 RacingFrees
program 0 LastRound
# How far a thread has started when its process ends differs from run to run.
if built programs/LastFrees.lpr -O3; then
  run 0 'LastFrees, 40 times' sh -c 'for _ in $(seq 40); do "$@"; [ $? -eq 3 ] || exit 1; done' \
    - $start "$out/LastFrees"
fi
if built programs/LastThread.lpr -O3; then
  again 0 LastThread before
  again 0 LastThread after
fi
# With symbols: a failure names the routine in which the stopped thread is.
if built programs/StoppedThreads.lpr -O3 -Xs-; then
  again 0 StoppedThreads "$([ -n "${SHORT-}" ] && echo 30 || echo 100)"
  run 0 'StoppedThreads 10 (hard)' env LANEMM=hard $start "$out/StoppedThreads" 10
fi
# Steps through machine code. The symbols name the routines that take a lock.
if [ "$target" = linux-x86_64 ]; then
  program 0 LockSections -Xs-
fi
# A sandbox has the numbers of the system calls of its processor.
if [ "$target" = linux-x86_64 ] && built programs/Confined.lpr -O3; then
  unless 77 calls=0 Confined 'no sandbox can be had here'
fi

program 0 FromFastMM -Fusrc/compat
if is_wanted FromFastMM; then
  build tests/programs/FromFastMM.lpr -Fusrc/compat -dWITHOUT_COUNTERPART > "$out/log"
  prints 'FromFastMM (what has no counterpart does not compile)' 'expected "LaneMM_needs_no_strategy__remove_this"'
fi

if is_wanted Host || is_wanted LastGuest; then
  build tests/programs/Guest.lpr -O3 -Cg || fail 'Guest (build)'
fi
program 0 Host
if is_wanted Host && [ -x "$out/Host" ]; then
  run 0 'Host (debug)' env LANEMM=debug,event=all:callback $start "$out/Host"
fi

# Where a thread is when its process ends differs from run to run.
if built programs/LastGuest.lpr -O3; then
  for settings in '' debug,guard=pages,quarantine=1M; do
    run 0 "LastGuest ($settings), 10 times" env "LANEMM=$settings" \
      sh -c 'for _ in $(seq 10); do "$@"; [ $? -eq 3 ] || exit 1; done' - $start "$out/LastGuest"
  done
fi

# The same engine behind the lean door; the guest is a library that is unloaded.
for program in NoThreads ForeignThreads ManyThreads RacingFrees; do
  if built "programs/$program.lpr" -O3 -dLEAN; then
    run 0 "$program (LaneMMLean)" $start "$out/$program"
  fi
done
if is_wanted Host; then
  build tests/programs/Guest.lpr -O3 -Cg -dLEAN || fail 'Guest (build, LaneMMLean)'
  built programs/Host.lpr -O3 -dLEAN && run 0 'Host (LaneMMLean)' $start "$out/Host"
fi
if built programs/Lean.lpr -O3; then
  run 0 Lean env LANEMM=limit=64M,limit:soft=32M,reserve=1M $start "$out/Lean"
  for line in 'memory: `limit:soft` is reached' 'memory: `reserve` is reached' 'memory: `limit` is reached' \
    'heap corruption: `debug` of `uses LaneMM` finds where a free block was modified'; do
    [ "$(tr -d "\r" < "$out/log" | grep -c "^LaneMM: $line$")" = 1 ]
    report "Lean ($line)" $?
  done
  printf '\357\273\277# a comment\nleaks, LIMIT=5x limit' > "$out/Lean.lanemm"
  run 0 'Lean (words)' env LANEMM=debug:exit=3,off $start "$out/Lean" off
  for line in 'settings file: `leaks` needs `uses LaneMM`; this program has LaneMMLean, with off, .*, reserve' \
    'settings file: `limit` has an invalid value' 'LANEMM: `debug:exit` needs `uses LaneMM`; .*'; do
    prints "Lean (words: $line)" "^LaneMM: $line$"
  done
  rm "$out/Lean.lanemm"
fi

if built programs/Appending.lpr -O3; then
  for settings in '' debug hard hard,erase=free hard,guard=sample:64M erase=free; do
    run 0 "Appending ($settings)" env "LANEMM=$settings" $start "$out/Appending"
  done
fi
if built programs/Refused.lpr -O3; then
  for settings in '' debug debug,guard=pages hard erase=free hard,erase=free leaks,stacks profile growth; do
    run 0 "Refused ($settings)" env "LANEMM=$settings" $start "$out/Refused"
  done
fi

program 0 LimitedData
if built programs/LimitedMemory.lpr -O3; then
  run 0 'LimitedMemory (300 MB)' env MALLOC_ARENA_MAX=1 \
    sh -c "$(within 300 "$start '$out/LimitedMemory'")"
fi

# Without a console on Windows: settings beside the program, reports in the log with their lines.
lines=-gl
[ "${target#*-}" != i386 ] || lines=-glw2 # -gl alone writes stabs there
if built programs/Windowed.lpr -O1 "$lines" -Xs-; then
  rm -f "$out"/Windowed_MemoryManager_*
  echo debug,leaks > "$out/Windowed.lanemm"
  run 3 Windowed $start "$out/Windowed"
  for what in 'leak' 'first free' 'second free'; do
    line=$(grep -n "// planted: $what" tests/programs/Windowed.lpr | cut -d : -f 1)
    tr -d "\r" < "$out/Windowed_MemoryManager_EventLog.txt" | grep -q "  Windowed.lpr:$line$"
    report "Windowed (the log has the line of the $what)" $?
  done
fi

# heaptrc's own variable, which turns nothing on.
if built programs/Leaking.lpr -O1 -gl -Xs-; then
  run 203 'Leaking (HEAPTRC)' env 'HEAPTRC=keepreleased haltonnotreleased' \
    "LANEMM=leaks,log=$out/" $start "$out/Leaking" objects
  run 9 'Leaking (HEAPTRC, LANEMM wins)' env HEAPTRC=haltonnotreleased \
    "LANEMM=leaks,leaks:exit=9,log=$out/" $start "$out/Leaking" objects
  run 0 'Leaking (HEAPTRC alone)' env HEAPTRC=haltonnotreleased $start "$out/Leaking" objects
fi

# In debug mode with places, whose names and lines are read from the executable file.
if built programs/HeldHeap.lpr -O1 "$lines" -Xs-; then
  for settings in leaks debug,leaks; do
    run 0 "HeldHeap ($settings)" env "LANEMM=$settings,log=$out/" $start "$out/HeldHeap"
  done
fi

# Saves its work when memory has run out: by a limit, and by the system.
if built programs/LastWords.lpr -O3; then
  run 0 'LastWords grow' env "LANEMM=limit=64M,log=$out/" $start "$out/LastWords" grow
  # Every second run failed where spans were taken from huge pages, and left gaps between large blocks.
  run 0 'LastWords (200 MB, reserve) later, 3 times' env "LANEMM=reserve=12M,log=$out/" MALLOC_ARENA_MAX=1 \
    sh -c "for _ in 1 2 3; do ($(within 200 "$start '$out/LastWords' 40 later")) || exit; done"
  run 217 'LastWords grow (50 MB)' env "LANEMM=limit=50M,log=$out/" $start "$out/LastWords" grow
  for size in 40 5000 100000; do
    run 0 "LastWords (limit, reserve) $size" env "LANEMM=limit=64M,reserve=12M,log=$out/" \
      $start "$out/LastWords" $size
    run 217 "LastWords (limit) $size" env "LANEMM=limit=64M,log=$out/" $start "$out/LastWords" $size
    run 0 "LastWords (200 MB, reserve) $size" env "LANEMM=reserve=12M,log=$out/" MALLOC_ARENA_MAX=1 \
      sh -c "$(within 200 "$start '$out/LastWords' $size")"
    # Of 1,500 large blocks the text is short: what LaneMM keeps for an exception is enough for it.
    [ "$size" = 100000 ] && expected=0 || expected=217
    run $expected "LastWords (200 MB) $size" env "LANEMM=log=$out/" MALLOC_ARENA_MAX=1 \
      sh -c "$(within 200 "$start '$out/LastWords' $size")"
  done
fi

if built programs/RegionScopes.lpr -O3 -gl; then
  for settings in '' hard debug; do
    run 0 "RegionScopes ($settings)" env "LANEMM=$settings" $start "$out/RegionScopes"
    run 0 "RegionScopes inside ($settings)" env "LANEMM=$settings" $start "$out/RegionScopes" inside
    for line in 'RegionFree "scopes": not done, a thread is in the region' \
      'RegionReset "scopes": not done, a thread is in the region' 'RegionLeave: the thread is in no region' \
      'RegionFree: no such region; it may have been freed' 'RegionEnter: no such region; it may have been freed' \
      'RegionGetMem: no such region; it may have been freed' 'RegionState: no such region; it may have been freed'; do
      prints "RegionScopes inside ($settings: ${line%%:*} has its line)" "^LaneMM: LaneMM_$line$"
    done
  done
  for settings in '' hard; do
    run 0 "RegionScopes limit ($settings)" env "LANEMM=$settings,event=limit:stderr" $start "$out/RegionScopes" limit
    [ "$(grep -c '^Limit of the region "small" reached: an allocation of ' "$out/log")" = 1 ]
    report "RegionScopes limit ($settings: the event names the region, once)" $?
  done
  for settings in leaks leaks,stacks debug,leaks; do
    try "$settings" RegionScopes leaks
    for line in '40 x RegionScopes.TItem in region "orders"' '30 x RegionScopes.TItem in region "request"' \
      'Region "orders": 40 blocks' 'Region "request": 30 blocks' 'Other groups and regions: 12 blocks'; do
      prints "RegionScopes leaks ($settings: $line)" "^  $line, "
    done
  done
  # Each reference from outside has its line, and a clean program none.
  for use in 'string:the variable REGIONSCOPES.HELDTEXT refers to AnsiString of [0-9]* bytes "item 7"' \
    'object:the variable REGIONSCOPES.HELDITEM refers to RegionScopes.TItem of' \
    'list:data of [0-9]* bytes refers to RegionScopes.TItem of' \
    'array:dynamic array of [0-9]* bytes refers to RegionScopes.TItem of' \
    'thread:a variable of a thread, or other memory, at .* refers to AnsiString of [0-9]* bytes "item 7"' \
    'field:RegionScopes.TItem of [0-9]* bytes refers to AnsiString of [0-9]* bytes "item 7"'; do
    try debug RegionScopes held "${use%%:*}"
    grep -q '^Dangling references: 1 reference from outside into the region "scopes"' "$out/log" \
      && grep -q "^  ${use#*:}" "$out/log"
    report "RegionScopes held ${use%%:*} (the reference is reported)" $?
  done
  is_left_out 'RegionScopes clean' || for settings in debug debug,guard=pages; do
    run 0 "RegionScopes clean ($settings)" env "LANEMM=$settings" $start "$out/RegionScopes" clean
    ! grep -q 'Dangling' "$out/log"
    report "RegionScopes clean ($settings: nothing is reported)" $?
  done
  for use in 'called Use after free: virtual method ' 'freed Double free: ' 'written Write after free: '; do
    try debug,event=all:stderr RegionScopes "${use%% *}"
    grep -q "^${use#* }" "$out/log" && tr -d "\r" < "$out/log" | grep -q '^  Group: [0-9]* (scopes)$'
    report "RegionScopes ${use%% *} (the report names the region)" $?
  done
fi

if built programs/AlignedBlocks.lpr -O3; then
  for settings in '' hard debug debug,guard=pages guard=sample:50 stacks "profile,rate=1K,log=$out/" erase=new; do
    run 0 "AlignedBlocks ($settings)" env "LANEMM=$settings" $start "$out/AlignedBlocks"
  done
  run 0 'AlignedBlocks wrong' $start "$out/AlignedBlocks" wrong
  [ "$(grep -c '^LaneMM: an aligned block: not allocated, the alignment is no power of two up to 1 MB' "$out/log")" = 3 ] &&
    grep -q '^LaneMM: LaneMM_EnterAlignment: not done, the alignment is not 16, 32 or 64' "$out/log"
  report 'AlignedBlocks wrong (a line for each)' $?
  for use in 'overrun Heap block overrun: ' 'freed Double free: ' 'leak Memory leaks: 3 blocks, 999 bytes:'; do
    try debug,leaks,event=all:stderr AlignedBlocks "${use%% *}"
    prints "AlignedBlocks ${use%% *} (reported)" "^${use#* }"
  done
fi

# The demo of regions, in short.
if built ../demos/Regions/Regions.lpr -O2 -FaLaneMM -Fudemos/common; then
  run 0 Regions $start "$out/Regions" --count=1000 --rounds=1
  prints 'Regions (both ways were taken)' '^LaneMM_RegionFree takes '
fi

if built programs/Halting.lpr -O3; then
  again 3 Halting halt
  again 217 Halting exception
  again 0 Halting late
fi

if built programs/Fork.lpr -O3; then
  few=${SHORT:+8} # forks
  again 0 Fork system $few
  again 0 Fork library $few
  # A fork in the middle of what the diagnoses do.
  run 0 'Fork system (watched)' env "LANEMM=contention,growth,profile,rate=1K,log=$out/" \
    $start "$out/Fork" system $few
  for settings in hard debug debug,guard=pages; do
    run 0 "Fork library ($settings)" env "LANEMM=$settings,quarantine=1M,event=all:callback" \
      $start "$out/Fork" library $few
  done
fi

if built programs/OnDemand.lpr -O3; then
  for settings in '' hard debug debug,guard=pages guard=sample:20; do
    run 0 "OnDemand ($settings)" env "LANEMM=$settings" $start "$out/OnDemand"
  done
fi

if [ -z "${SHORT-}" ] && built stress/Stress.lpr -dLANEMM_CHECKED -g -gl -Xs-; then
  if [ -n "${STRESS-}" ]; then
    seconds=86400
    # shellcheck disable=SC2086 # a list of options
    run 0 "Stress $STRESS" $start "$out/Stress" $STRESS
    cat "$out/log"
  else
    run 0 'Stress (8 threads)' $start "$out/Stress" --threads=8
    run 0 'Stress (9 threads on 2 CPUs)' taskset -c 0,1 $start "$out/Stress" --threads=9
    run 0 'Stress (threads that stand still)' $start "$out/Stress" --rounds=20 --stop
  fi
fi

progress ''
case $wanted:$passed:$failed in
  '  ':*) ;;
  *:0:0) fail "there is no program of these names:$wanted" ;;
esac
sum
