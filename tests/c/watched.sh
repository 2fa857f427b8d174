#!/bin/sh
# Watches programs in C and checks what the logs say.
#
#   sh tests/c/watched.sh LIBRARY WATCHED MISMATCHED WANDER
#
# The programs are built from watched.c, mismatched.cc and wander.c, with debug information; beside
# WATCHED lie those of inlined.cc, and without, of without.c. The last line is `N passed, N failed`.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

library=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
program=$(realpath "$2")
mismatched=$(realpath "$3")
without=$(dirname "$program")/without
wander=$(realpath "$4")
work=$(dirname "$program")/watched.work
rm -rf "$work"
mkdir -p "$work/logs"
cd "$work"
cp "$program" watched
cp "$mismatched" mismatched
cp "$wander" wander
cp "$(dirname "$program")"/inlined-* .
. "$here/../lib.sh"
printed=check.out

# Deletes all logs.
forget() {
  rm -rf logs
  mkdir logs
}

# Runs a command with settings on the library; its logs are the only ones.
watch_command() { # SETTINGS COMMAND...
  settings=$1
  shift
  forget
  timeout -k 5 200 env "LANEMM=$settings" "LD_PRELOAD=$library" "$@" > out 2> err
}

# Runs the program with settings and arguments.
watch() {
  settings=$1
  shift
  watch_command "$settings" ./watched "$@"
}

# The files of the last run; the whole event log.
log=logs/watched_MemoryManager_EventLog.txt
has() {
  grep -q "$1" "$log"
}

# The first frame below a headline of the log, which a pattern finds.
frame_below() {
  grep -A 1 "$1" "$log" | sed -n 2p
}

is_quiet() {
  watch '' && [ ! -s err ] && [ -z "$(ls logs)" ] && [ "$(cat out)" = done ]
}

helps() {
  watch help && grep -q '^  contention ' err && grep -q '^  huge=N .* (16777216)$' err \
    && [ "$(cat out)" = done ]
}

finds_growth() {
  watch growth,log=logs && frame_below 'grew a block' | grep -q ' grow_it  watched.c:[0-9]' \
    && has 'watched.c:[0-9]* grew a block 1,9[0-9][0-9] times' \
    && grep -q 'watched.c:[0-9]* grew a block' err
}

# Once for two refusals; for the system's, too.
says_what_holds_memory() {
  watch limit=16M,limit:report,log=logs fill && [ "$(grep -c '^Memory limit reached: ' $log)" = 2 ] \
    && names_filled && (ulimit -d 150000; watch limit:report,log=logs fill) \
    && has '^Out of memory: an allocation of 48 bytes failed' && names_filled
}

names_filled() {
  [ "$(cat out)" = done ] && [ "$(grep -c '^In use: .* by line' $log)" = 1 ] \
    && has "% of it was allocated at watched.c:$(marked 'fill it')" && has "^\(Memory in\|  In\) use: "
}

# The line of the mark in the source.
marked() {
  grep -n "/\* marked: $1 \*/" "$here/watched.c" | sed 's/:.*//'
}

names_lines() {
  frame_below 'grew a block' | grep -q " grow_it  watched.c:$(marked 'grow it')\$"
}

finds_remote_frees() {
  watch contention,log=logs && frame_below 'remote free of a block of 208 bytes' \
    | grep -q ' free_others  watched.c:[0-9]' && ! has 'Growth:'
}

# Within a quarter: of 80 MB some 1,200 samples, whose sum has a standard deviation of 3 %.
counts_bytes() {
  watch profile,folded,rate=64K,log=logs && awk '/keep_blocks/ { sum += $NF }
    END { exit !(sum > 60000000 && sum < 100000000) }' logs/watched_MemoryManager_heap.*.folded
}

writes_formats() {
  watch profile,log=logs && [ "$(find logs -name '*.pb.gz' -size +0 | wc -l)" -eq 1 ] \
    && [ "$(find logs -name '*.speedscope.json' -size +0 | wc -l)" -eq 1 ]
}

writes_beside() {
  rm -f watched_Memory*
  watch growth && [ -s watched_MemoryManager_EventLog.txt ] && rm watched_Memory*
}

# As after an upgrade of the program.
keeps_its_name() {
  forget
  cp watched upgraded
  (exec 9< upgraded && rm upgraded && LANEMM=growth,log=logs LD_PRELOAD=$library /proc/self/fd/9) > out 2> err
  frame=$(grep -A 1 'grew a block' logs/upgraded_MemoryManager_EventLog.txt | sed -n 2p)
  echo "$frame" | grep -q ' grow_it  watched.c:[0-9]'
}

# Root could write there.
spares_folders_of_system() {
  forget
  name=$(basename "$(realpath /usr/bin/python3)")
  (cd logs && LANEMM=profile,folded,rate=1 LD_PRELOAD=$library /usr/bin/python3 -c 1) > out 2> err
  stray=$(find /usr/bin/ /bin/ -name "${name}_MemoryManager_*")
  rm -f $stray
  [ -z "$stray" ] && [ -n "$(ls logs)" ] && grep -q "profile written to $work/logs/${name}_" err \
    && grep -q "bin/${name}_.* is in a folder of the system; written to " err
}

# A box of exit code 3 stays.
boxes_spare_folders_of_system() {
  forget
  code=0
  (cd logs && LANEMM=blackbox LD_PRELOAD=$library "$(realpath /usr/bin/python3)" -c 'raise SystemExit(3)') \
    > out 2> err || code=$?
  stray=$(find /usr/bin/ /bin/ -name '*.lanebox')
  rm -f $stray
  [ $code -eq 3 ] && [ -z "$stray" ] && [ -n "$(ls logs/*.lanebox)" ]
}

# The program is a file of memfd_create, which the kernel shows in the root folder.
spares_the_root_folder() {
  forget
  (cd logs && /usr/bin/python3 -c '
import os, sys
program = os.memfd_create("in memory")
os.write(program, open("../watched", "rb").read())
os.execve(program, ["watched"], {"LANEMM": "growth", "LD_PRELOAD": sys.argv[1]})' "$library") > out 2> err
  stray=$(find / -maxdepth 1 -name 'memfd:*')
  rm -f /memfd:*
  [ -z "$stray" ] && [ -s "logs/memfd:in memory_MemoryManager_EventLog.txt" ]
}

says_off() {
  watch off && [ "$(cat out)" = done ] && [ "$(cat err)" = \
    'LaneMM: `off` has no effect in the C library; run the program without the library' ]
}

reads_file() {
  echo 'growth log=logs # a comment' > watched.lanemm
  watch '' && has 'watched.c:[0-9]* grew'
  code=$?
  rm -f watched.lanemm
  return $code
}

is_configured() {
  watch log=logs configure && has 'watched.c:[0-9]* grew' && has 'remote free of a block'
}

says_unknown() {
  watch 'grwth,log=logs' && grep -q 'unknown setting `grwth`; did you mean `growth`?' err \
    && [ "$(cat out)" = done ]
}

answers_signal() {
  watch growth,signal=12,log=logs signal 12 && [ "$(grep -c '^LaneMM event log' "$log")" -eq 2 ]
}

# Ended from outside, after it has said that it is done.
is_ended() {
  forget
  : > out
  env LANEMM=growth,log=logs "LD_PRELOAD=$library" ./watched wait > out 2> err &
  pid=$!
  tries=0
  until grep -q done out || [ $tries -gt 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  kill -TERM $pid
  code=0
  wait $pid 2> wait.err || code=$?
  [ $code -eq 143 ] && has 'watched.c:[0-9]* grew'
}

# Python, which has threads, many modules and no frame pointers.
profiles_python() {
  watch_command profile,growth,folded,rate=32K,log=logs /usr/bin/python3 -c '
import json, threading
def work():
    json.dumps([str(i) * 3 for i in range(50000)])
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")'
  [ "$(cat out)" = done ] && grep -q '_PyEval_EvalFrameDefault;.*Py' logs/*_heap.*.folded \
    && grep -q 'grew a block' logs/*_EventLog.txt && grep -q '_json.*so+0x' logs/*
}

# Debug mode tells who got the block, who freed it, who wrote behind it.
finds_damage() {
  watch debug,log=logs damage && grep -A 1 'Allocated by' "$log" | grep -q ' keep_one  watched.c:[0-9]' \
    && has 'Heap block overrun' && [ "$(cat out)" = done ]
}

finds_double_free() {
  watch debug,log=logs twice
  [ $? -ne 0 ] && has 'Double free: the block was already freed' \
    && grep -A 1 'Freed by' "$log" | grep -q ' free_one  watched.c:[0-9]'
}

# The block is in use at the end: no frame of the program is left.
finds_damage_at_the_end() {
  watch debug,log=logs late && has 'Heap block overrun' \
    && grep -A 1 'Detected at' "$log" | grep -q '^      (the end of the program)$'
}

finds_free_of_local() {
  watch debug,log=logs local
  [ $? -ne 0 ] && has 'The address is on the stack of this thread.'
}

# As without a handler of faults.
ends_by_sent_signal() {
  code=0
  watch_command debug,log=logs sh -c 'kill -SEGV $$; echo alive' || code=$?
  [ $code -eq 139 ] && [ ! -s out ] && [ -z "$(ls logs)" ]
}

finds_underrun() {
  watch debug,log=logs before && has 'Heap block underrun' && has 'Modified: 1 byte at offset -32' \
    && grep -A 1 'Allocated by' "$log" | grep -q ' keep_one  watched.c:[0-9]'
}

finds_damage_of_aligned() {
  watch "$1,log=logs" aligned && [ "$(grep -c 'Heap block overrun' "$log")" -eq 15 ] \
    && [ "$(grep -A 1 'Allocated by' "$log" | grep -c ' keep_aligned  watched.c:[0-9]')" -eq 15 ]
}

# With alignments that all blocks have.
finds_damage_below() {
  watch debug,log=logs below && [ "$(grep -c 'Heap block overrun' "$log")" -eq 5 ] \
    && [ "$(grep -A 1 'Allocated by' "$log" | grep -c ' keep_aligned  watched.c:[0-9]')" -eq 5 ]
}
finds_write_below() {
  watch "$1,log=logs" below
  [ $? -ne 0 ] && has 'overrun: write of 1 byte at offset 48 of a block of 48 bytes' \
    && frame_below 'Occurred at' | grep -q " spoil  watched.c:$(marked below)\$"
}

# As counts_bytes: 40 MB each of both kinds of alignment.
counts_bytes_of_aligned() {
  watch "profile,folded,rate=64K,log=logs$1" aligned && awk '/keep_aligned_blocks/ { sum += $NF }
    END { exit !(sum > 60000000 && sum < 100000000) }' logs/watched_MemoryManager_heap.*.folded
}

# At this alignment 16 bytes lie between the end of the block and the page behind it.
finds_write_beyond_aligned() {
  watch "$1,log=logs" beyond
  [ $? -ne 0 ] && has 'overrun: write of 1 byte at offset 65 of a block of 48 bytes' \
    && frame_below 'Occurred at' | grep -q " spoil  watched.c:$(marked beyond)\$" \
    && frame_below 'Allocated by' | grep -q ' keep_aligned  watched.c:[0-9]'
}

finds_write_to_freed_aligned() {
  watch "$1,log=logs" stale
  [ $? -ne 0 ] && has 'Use after free: write of 1 byte at offset 5 of a freed block' \
    && frame_below 'Occurred at' | grep -q " spoil  watched.c:$(marked stale)\$" \
    && frame_below 'Freed by' | grep -q ' free_one  watched.c:[0-9]'
}

finds_write_behind_zeroed() {
  watch guard=sample:2,quarantine=0,log=logs zeroed
  [ $? -ne 0 ] && has 'overrun: write of 1 byte at offset 48 of a block of 48 bytes' \
    && frame_below 'Occurred at' | grep -q " spoil  watched.c:$(marked zeroed)\$" \
    && frame_below 'Allocated by' | grep -q ' keep_zeroed  watched.c:[0-9]'
}

fills_aligned() {
  watch "erase=new,fill=5A,log=logs$1" filled && [ "$(cat out)" = done ]
}

# Messages do not end a program whose pipe for them has no reader any more.
ends_without_reader() {
  forget
  rm -f pipe
  mkfifo pipe
  exec 4<> pipe 5> pipe 4>&-
  code=0
  timeout -k 5 200 env "LANEMM=$1,log=logs" "LD_PRELOAD=$library" ./watched > out 2>&5 || code=$?
  exec 5>&-
  [ $code -eq 0 ] && [ "$(cat out)" = done ]
}

# A pair of mismatched.cc: its name, what the one report says of it, and the routine that freed.
finds_mismatch() {
  watch_command debug,mixes,log=logs ./mismatched "$1"
  events=logs/mismatched_MemoryManager_EventLog.txt
  [ "$(cat out)" = done ] && [ "$(grep -c '^LaneMM: process' $events)" -eq 1 ] \
    && grep -qF "$2" $events && grep -A 1 'Allocated by' $events | grep -q ' get_.*  mismatched.cc:[0-9]' \
    && grep -A 1 'Occurred at' $events | grep -q " $3  mismatched.cc:[0-9]"
}

# With `hard` the report ends the program, so it is the first one of its block. Without `stacks` no number
# and no thread of the allocation is known.
finds_mismatch_of_hard() {
  watch_command "hard,mixes,log=logs$1" ./mismatched new-free
  events=logs/mismatched_MemoryManager_EventLog.txt
  [ ! -s out ] && [ "$(grep -c '^LaneMM: process' $events)" -eq 1 ] \
    && grep -qF 'allocated by operator new, freed by free or realloc.' $events \
    && grep -q '^  Block .*: 24 bytes' $events && grep -A 1 'Occurred at' $events | grep -q ' put_plain ' \
    && ! grep -q 'May follow\|allocation number 0\|thread 0[ .]' $events
}

finds_no_mismatch() {
  watch_command debug,mixes,log=logs ./mismatched all && [ "$(cat out)" = done ] && [ -z "$(ls logs)" ]
}

# The blocks of wander.c in a log: size, and the letters of the routines that allocated and freed it.
blocks_of() {
  awk 'function tell() { if (size) print size, path[1] ? path[1] : "-", path[2] ? path[2] : "-" }
    /^LaneMM: process/ { tell(); size = 0; path[1] = path[2] = "" }
    $1 == "Block" { gsub(/,/, "", $3); size = $3 }
    $1 == "Allocated" { part = 1 }
    $1 == "Freed" { part = 2 }
    $2 ~ /^go_[a-f]$/ { path[part] = path[part] substr($2, 4) }
    $2 == "wander" { path[part] = path[part] "." }
    END { tell() }' "$1"
}

# The same of what the program says. Reports leave out the frames between two calls at the same place: of
# a path the innermost routine stays, and the outermost one, which a wrong step on the way would miss.
folded() {
  awk '{ sub(/^-$/, "", $2); sub(/^-$/, "", $3); print $1, substr($2, 1, 1) ".", substr($3, 1, 1) "." }'
}

# Each of 500 blocks has the stacks that the program had.
follows_wandering() {
  watch_command debug,depth=256,trace:size=20000-30000,trace:most=1000,event=allocation:off,log=logs ./wander "$1"
  folded < out | sort -n > expected
  blocks_of logs/wander_MemoryManager_EventLog.txt | sort -n > found
  [ "$(wc -l < expected)" -eq 120 ] && diff expected found
}

says_that_stacks_are_unread() {
  watch leaks,log=logs bare "$PWD/logs" \
    && grep -q '^LaneMM: /proc cannot be read here, and so no stack: ' err \
    && watch leaks,log=logs lose && ! grep -q '/proc' err
}

# The routine that a signal interrupted at its first instruction, and its caller.
unwinds_handlers() {
  watch leaks,stacks,log=logs handler && has ' lose_one  watched.c:' && has ' fault_at_once  ' \
    && ! has ' call_last  ' \
    && has " lose_in_handler  watched.c:$(grep -n 'marked: interrupted' "$here/watched.c" | cut -d : -f 1)"
}

# Runs a program of inlined.cc.
watch_inlined() {
  watch_command leaks,stacks,log=logs "./inlined-$1"
  inlined=logs/inlined-$1_MemoryManager_EventLog.txt
  [ "$(cat out)" = done ]
}

# The frames of inlined.cc in the report: routine, mark in the source, and i where it is inlined.
own_frames() {
  sed -n 's/^ *[0-9a-f]*  \([a-z_]*\)[^ ]*  inlined\.cc:\([0-9]*\)\(  (\(i\)nlined)\)\{0,1\}$/\1 \2 \4/p' \
    "$inlined" | while read -r routine line is_inlined; do
      mark=$(sed -n "$line"'s,.*/\* marked: \(.*\) \*/.*,\1,p' "$here/inlined.cc")
      echo "$routine@${mark:-none}$is_inlined"
    done | tr '\n' ' '
}

# The own routines and those of the standard library around the program's line.
shows_inlined() {
  watch_inlined "$1"
  own_frames | grep -q 'innermost@innermosti middle@middlei outermost@outermost main@' \
    && own_frames | grep -q 'add_number@push main@' && own_frames | grep -q 'add_pair@map main@' \
    && own_frames | grep -q 'add_hidden@hidden main@' \
    && ! grep -q '  new_allocator.h:' "$inlined" \
    && grep -B 1 ' add_number()' "$inlined" | grep -q 'push_back.*  stl_vector.h:[0-9]*'
}

# Their debug information lies in another file.
goes_without_inlined() {
  watch_inlined split && ! grep -q '(inlined)' "$inlined" && own_frames | grep -q ' main@' \
    && grep -q ' outermost(int)  ' "$inlined"
}

is_clean() {
  watch debug,log=logs && [ -z "$(ls logs)" ] && [ "$(cat out)" = done ]
}

sets_exit_code_of_errors() {
  watch debug,debug:exit=9,log=logs damage
  [ $? -eq 9 ] && [ "$(cat out)" = done ] && watch debug,debug:exit=9,log=logs \
    && watch debug,log=logs damage
}

# What the program has lost is a leak; what its data, thread-local variables and keys lead to is not.
finds_leaks() {
  watch leaks,log=logs lose && has '^Memory leaks: 100 blocks, 4,800 bytes:' \
    && has '100 x 48-byte block' && [ "$(cat out)" = done ]
}

# Contents of C are not taken for those of Pascal.
finds_leaks_of_c() {
  watch leaks,log=logs counted && has '1 x 832-byte block' && ! has 'dynamic array'
}

# Of all that is in use, only what was lost: 100 times 48 bytes, of which most are samples.
finds_leaks_in_the_profile() {
  watch leaks,profile,json,folded,rate=1,log=logs lose \
    && grep -q '"leaks":{"objects":100,"space":4800}' logs/*.json \
    && awk '/keep_blocks/ { kept = 1 } END { exit !kept }' logs/*heap-inuse*.folded \
    && awk '!/lose_list/ { other = 1 } { sum += $NF } END { exit other || sum < 4500 || sum > 4800 }' \
      logs/*heap-leaks*.folded
}

# finds_leaks_with_stacks WORD
finds_leaks_with_stacks() {
  watch "leaks,$1,log=logs" lose && has ' lose_list  watched.c:[0-9]'
}

# Half of the blocks by each caller: follows_realigned_stacks WORD BLOCK BYTES
follows_realigned_stacks() {
  watch "leaks,$1,log=logs" realigned && has "100 x $2-byte block" \
    && [ "$(grep -c "^        50, $3 bytes by\$" "$log")" -eq 2 ] \
    && has " lose_first  watched.c:$(marked 'lose first')\$" \
    && has " lose_second  watched.c:$(marked 'lose second')\$"
}

finds_no_leaks() {
  watch leaks,log=logs && [ -z "$(ls logs)" ] && [ "$(cat out)" = done ] \
    && grep -q '^LaneMM: no leaks; at most ' err && [ "$(wc -l < err)" -eq 1 ] \
    && watch leaks,quiet,log=logs && [ ! -s err ]
}

# Returns whether the kernel can do what the mode is about; says so if not.
kernel_can() { # MODE
  code=0
  watch '' "$1" || code=$?
  [ $code -ne 77 ] || skip "leaks, $1" 'the kernel is too old'
  [ $code -ne 77 ]
}

names_what_outlived_the_main_thread() {
  watch leaks,stacks,log=logs outlived && has ' \./watched outlived:$' \
    && has '^Memory leaks: 100 blocks, 4,800 bytes:$' && has ' lose_list  watched.c:[0-9]'
}

reads_no_protected_page() {
  watch leaks,log=logs protected && [ -z "$(ls logs)" ] && [ "$(cat out)" = done ]
}

# The reports are written, and no log of leaks.
finds_no_leaks_beside_reports() {
  watch leaks,profile,json,every=1h,log=logs threads && [ -n "$(ls logs/*.json)" ] \
    && ! grep -i leak "$log" && [ "$(cat out)" = done ]
}

# finds_no_leaks_of_threads SETTINGS [MODE]
finds_no_leaks_of_threads() {
  watch "leaks,log=logs$1" "${2:-threads}" && [ -z "$(ls logs)" ] && [ "$(cat out)" = done ]
}

# /proc has other numbers for the threads than the program.
finds_no_leaks_of_threads_elsewhere() {
  forget
  timeout -k 5 200 unshare --user --pid --kill-child env LANEMM=leaks,log=logs "LD_PRELOAD=$library" \
    ./watched marked > out 2> err && [ -z "$(ls logs)" ] && [ "$(cat out)" = done ]
}

# The system ignores SIGHUP and SIGINT for it, if it has no handler, and the program goes on.
first_process_takes_no_hangup() {
  forget
  timeout -k 5 200 unshare --user --map-root-user --pid --fork --mount-proc env LANEMM=debug,log=logs \
    "LD_PRELOAD=$library" grep SigCgt /proc/self/status > out 2> err && grep -q '[048c]$' out \
    && watch_command debug,log=logs grep SigCgt /proc/self/status && ! grep -q '[048c]$' out
}

# After a chroot, another file has the path of the program: the same code, other tables.
names_nothing_of_another_file() {
  mkdir -p "root$work" root/proc
  objcopy -R .comment watched "root$work/watched" || return 1
  forget
  # shellcheck disable=SC2016 # the inner shell expands
  timeout -k 5 200 unshare --user --map-root-user --mount sh -c 'mount --rbind /proc root/proc || exit 9
    LANEMM=leaks,stacks,log=logs LD_PRELOAD=$0 exec ./watched bare "$PWD/root"' "$library" > out 2> err
  grep -q ' watched+0x' err && ! grep -q 'lose_list' err && watch leaks,stacks,log=logs lose && has ' lose_list  watched.c'
}

sets_exit_code() {
  watch leaks,leaks:exit=9,log=logs lose
  [ $? -eq 9 ] && [ "$(cat out)" = done ] && watch leaks,leaks:exit=9,log=logs
}

# The child of a fork counts from its start: the log has the growth of each once.
counts_in_child() {
  watch growth,log=logs fork && [ "$(grep -c '^LaneMM event log' "$log")" -eq 2 ] \
    && [ "$(grep -c " watched.c:$(marked 'grow it') grew a block" "$log")" -eq 1 ] \
    && [ "$(grep -c " watched.c:$(marked 'grow in child') grew a block" "$log")" -eq 1 ]
}

# Runs a child of a program that has lost blocks; nothing is written.
child_is_silent() {
  watch "$1,quiet,log=logs" child "$2" && [ ! -s err ] && [ -z "$(ls logs)" ]
}

children_are_silent() {
  for how in fork free _exit exec vfork spawn system; do
    child_is_silent "$1" "$how" || return 1
  done
}

# The same where the system marks no child processes.
reports_leaks_of_unmarked_child() {
  watch_command "$1,log=logs" "$without" ENOSYS ./watched child lose \
    && has '^Memory leaks: 2,000 blocks, 1,800,000 bytes:$'
}

reports_leaks_of_child() {
  watch "$1,log=logs" child lose && has '^Memory leaks: 2,000 blocks, 1,800,000 bytes:$' \
    && has " lose_in_child  watched.c:$(marked 'lose in child')\$"
}

promise 'a program that is not watched runs as ever and writes nothing' is_quiet
promise 'help prints the list, and the program goes on' helps
promise 'growth names the routine and its place in the module' finds_growth
promise 'such a place has its line, by DWARF 5' names_lines
promise 'contention names who frees blocks of another thread' finds_remote_frees
promise 'profile counts the bytes of a routine' counts_bytes
promise 'profile writes all formats' writes_formats
promise 'logs go beside the program' writes_beside
promise 'a program whose file was deleted keeps its name and its lines' keeps_its_name
promise 'off is a line that says so, and the program runs' says_off
promise 'the settings file beside the program counts' reads_file
promise 'lanemm_configure watches, lanemm_write_logs writes' is_configured
promise 'an unknown setting is one line, and the program runs' says_unknown
promise 'the signal of the settings writes the logs' answers_signal
promise 'SIGTERM writes the logs and ends the program' is_ended
promise 'the child of a fork logs its own events alone' counts_in_child
sandbox=0
"$without" ENOSYS /bin/true > $printed 2>&1 || sandbox=$?
[ $sandbox -ne 77 ] || skip 'children that the system does not mark' 'no sandbox can be had here'
for words in leaks leaks,stacks leaks,debug leaks,stacks,debug; do
  promise "a child without leaks reports none of its parent ($words)" children_are_silent $words
  [ $words = leaks ] || promise "a child reports the blocks that it lost ($words)" \
    reports_leaks_of_child $words
  [ $words = leaks ] || [ $sandbox -eq 77 ] || promise "also where the system marks no child processes ($words)" \
    reports_leaks_of_unmarked_child $words
done
promise 'debug finds a write behind a block' finds_damage
promise 'debug finds a write behind one that is in use at the end, and says so' finds_damage_at_the_end
promise 'debug says that a freed variable lies on the stack' finds_free_of_local
promise 'debug finds a write 32 bytes before a block' finds_underrun
promise 'a signal of faults that is sent ends a program in debug mode' ends_by_sent_signal
promise 'debug finds damage of blocks with an alignment' finds_damage_of_aligned debug
promise 'also of those whose alignment is that of all blocks, or less' finds_damage_below
promise 'guard pages stop a write behind such a block' finds_write_below debug,guard=pages
promise 'so do those of guard=sample' finds_write_below guard=sample:2
promise 'debug finds it in front of guard pages, too' finds_damage_of_aligned debug,guard=pages
promise 'guard=sample finds it, too' finds_damage_of_aligned guard=sample:2
promise 'guard pages stop a write behind a block with an alignment' finds_write_beyond_aligned \
  debug,guard=pages
promise 'so do those of guard=sample' finds_write_beyond_aligned guard=sample:2
promise 'and guard pages stop a write to a freed one' finds_write_to_freed_aligned debug,guard=pages
promise 'so do those of guard=sample' finds_write_to_freed_aligned guard=sample:2
promise 'guard=sample stops a write behind a block of calloc, of zeros' finds_write_behind_zeroed
promise 'erase=new fills blocks with an alignment' fills_aligned ''
promise 'it does so beside a profile' fills_aligned ,profile
promise 'and beside guard=sample and stacks' fills_aligned ,guard=sample:2,stacks
promise 'profile counts the bytes of blocks with an alignment' counts_bytes_of_aligned ''
promise 'it does so in debug mode' counts_bytes_of_aligned ,debug
promise 'debug finds a double free, and the program ends' finds_double_free
while IFS='|' read -r pair said routine; do
  promise "mixes reports: $pair" finds_mismatch "$pair" "$said" "$routine"
done <<'END'
malloc-delete|allocated by malloc, freed by operator delete.|put_delete
malloc-array|allocated by malloc, freed by operator delete[].|put_array
new-free|allocated by operator new, freed by free or realloc.|put_plain
new-realloc|allocated by operator new, freed by free or realloc.|resize
new-array|allocated by operator new, freed by operator delete[].|put_array_sized
array-delete|allocated by operator new[], freed by operator delete.|put_delete
array-free|allocated by operator new[], freed by free or realloc.|put_plain
array-delete-sized|allocated by operator new[], freed by operator delete.|put_sized
array-delete-object|allocated by operator new[], freed by operator delete.|put_wrong_size
aligned-delete|allocated by aligned operator new, freed by operator delete.|put_delete
new-aligned|allocated by operator new, freed by aligned operator delete.|put_aligned
aligned-array|allocated by aligned operator new, freed by aligned operator delete[].|put_array_aligned
wrong-size|allocated with 24 bytes, freed with 32 bytes.|put_wrong_size
array-wrong-size|allocated with 24 bytes, freed with 16 bytes.|put_array_wrong_size
plain-wrong-size|allocated with 24 bytes, freed with 25 bytes.|put_plain_wrong_size
aligned-plain-wrong-size|allocated with 24 bytes, freed with 32 bytes.|put_aligned_plain_wrong_size
END
promise 'with hard, too, in a report that claims nothing unknown' finds_mismatch_of_hard ''
promise 'and with the backtraces of stacks' finds_mismatch_of_hard ,stacks
promise 'mixes is silent about pairs that belong together' finds_no_mismatch
for variant in O1 O2 dwarf4 packed lto; do
  promise "each routine that C++ inlines has its frame, its callers their lines: $variant" \
    shows_inlined $variant
done
promise 'split debug information has none, and nothing fails' goes_without_inlined
promise 'debug finds nothing where nothing is' is_clean
promise 'debug:exit sets the exit code of a program with memory errors' sets_exit_code_of_errors
promise 'leaks tells what is lost, not what can be reached' finds_leaks
promise 'and takes no block of C for a dynamic array of Pascal' finds_leaks_of_c
promise 'the profile has what is lost, by call stack' finds_leaks_in_the_profile
promise 'leaks with debug reports the allocating routine' finds_leaks_with_stacks debug
promise 'leaks with stacks alone does so too' finds_leaks_with_stacks stacks
promise 'each backtrace of a program that wanders is the one that it had' follows_wandering 1
promise 'also on another way' follows_wandering 2
promise 'backtraces pass through routines that align their stacks' follows_realigned_stacks debug \
  40 2,000
promise 'also those of stacks alone' follows_realigned_stacks stacks 40 2,000
promise 'and through handlers to the routine that a signal interrupted' unwinds_handlers
promise 'limit:report says once at a limit, and without memory, what holds it' says_what_holds_memory
if [ "$(id -u)" -eq 0 ]; then
  promise 'without /proc leaks says that no stack was read' says_that_stacks_are_unread
else
  skip 'leaks without /proc' 'only root may change the root'
fi
promise 'leaks says in one line that nothing is lost, with quiet nothing' finds_no_leaks
! kernel_can protected \
  || promise 'leaks reads no page of a block that the program has protected' reads_no_protected_page
promise 'leaks is as ever in a program whose main thread has ended' names_what_outlived_the_main_thread
promise 'leaks leaves out what running threads hold' finds_no_leaks_of_threads ''
promise 'and a stack for signals, which the system holds' finds_no_leaks_of_threads '' alternate
promise 'also with the stacks of debug mode' finds_no_leaks_of_threads ,debug
! kernel_can marked \
  || promise 'also where marked pages lie between the stacks of threads' finds_no_leaks_of_threads '' marked
if ! unshare --user --pid --fork true 2> /dev/null; then
  skip 'leaks, /proc of another name space of processes' 'the system makes none'
elif kernel_can marked; then
  promise 'also where /proc is that of another name space of processes' finds_no_leaks_of_threads_elsewhere
fi
if unshare --user --map-root-user --pid --fork --mount-proc true 2> /dev/null; then
  promise 'the first process of a container goes on at SIGHUP' first_process_takes_no_hangup
else
  skip 'SIGHUP in the first process of a container' 'the system makes no name space'
fi
if unshare --user --map-root-user --mount mount --rbind /proc "$work" 2> /dev/null; then
  promise 'frames have no names of another file that has the path now' names_nothing_of_another_file
else
  skip 'frames after chroot' 'the system makes no name space'
fi
promise 'also beside the thread of timed reports' finds_no_leaks_beside_reports
promise 'leaks:exit sets the exit code of a program with leaks' sets_exit_code
for words in unknown help off profile; do
  promise "a message that nothing reads does not end the program ($words)" ends_without_reader $words
done
if [ -x /usr/bin/python3 ]; then
  promise 'a program of the system is logged in the current folder' spares_folders_of_system
  promise 'and so is its black box' boxes_spare_folders_of_system
  promise 'and a program that lies in no folder' spares_the_root_folder
  promise 'python3 is profiled through all its modules' profiles_python
else
  skip python3 'it is not installed'
fi
sum
