#!/bin/sh
# Asks running programs, as a tool outside of them does: thousands of requests into busy threads, and
# every way in which a request can fail.
#
#   sh tests/live/run.sh [COUNT]    COUNT requests for each program; 10000
set -u
. "$(dirname "$0")/../../tools/begin.sh"
. tools/preloads.sh
count=${1:-10000}
out=$PWD/build/live
lanemm=$PWD/build/lanemm
flags='-l- -v0 -vew -vm4082,6018'
. tests/lib.sh
printed=$out/log

rm -rf "$out"
mkdir -p "$out/pascal" "$out/client"
# shellcheck disable=SC2086 # a list of options
{
  fpc $flags -O3 -g -gl -Xs- -Fusrc "-Fusrc/*" "-FE$out" "-FU$out/pascal" tests/live/Asked.lpr &&
    fpc $flags -O3 -Fusrc "-Fusrc/*" "-FE$out" "-FU$out/pascal" tests/live/Quiet.lpr &&
    fpc $flags -O3 -Fusrc "-Fusrc/*" "-FE$out" "-FU$out/pascal" tests/programs/Sleeping.lpr &&
    fpc $flags -O3 -dLEAN -dWAITS -Fusrc "-o$out/Lean" "-FU$out/pascal" tests/programs/Hello.lpr &&
    fpc $flags -O2 -Fusrc "-Fusrc/*" -Futools/lanemm "-FE$out" "-FU$out/client" tests/live/Asking.lpr &&
    gcc -O2 -Wall -pthread -o "$out/asked" tests/live/asked.c -ldl &&
    gcc -O2 -Wall -Wno-use-after-free -pthread -o "$out/altstack" tests/live/altstack.c &&
    gcc -O2 -Wall -o "$out/signalled" tests/live/signalled.c &&
    sh lib/build.sh && make --no-print-directory lanemm &&
    gcc -O2 -fno-builtin -Wall -fPIC -shared -o "$out/unloaded.so" tests/c/unloaded.c build/lib/liblanemm.a \
      -Wl,--exclude-libs,ALL -Wl,-Bsymbolic &&
    gcc -O2 -Wall -o "$out/reloads" tests/live/reloads.c -ldl
} || exit 2
preload=$PWD/build/lib/liblanemm.so
mkfifo "$out/in"

# Starts a program whose input ends when `stop` is called; its number is in $pid.
start() { # COMMAND...
  : > "$out/printed" # what the last one said
  "$@" < "$out/in" > "$out/printed" 2> "$out/errors" &
  pid=$!
  exec 9> "$out/in"
  await grep -q ready "$out/printed" || :
}
# Ends it; its exit code is in $code.
stop() {
  exec 9>&-
  ( sleep 120; kill -KILL $pid ) 2> "$out/killed" &
  watch=$!
  wait $pid
  code=$?
  kill $watch
}

# ---------------------------------------------------------------- many requests

# A code above 128 is the signal that ended it.
ends_well() {
  echo "its exit code is $code; it wrote:"
  cat "$out/errors"
  [ $code -eq 0 ]
}

storm() { # NAME COMMAND...
  name=$1
  shift
  start env "LANEMM=log=$out/" "$@"
  promise "$name: $count requests are answered" timeout 600 "$out/Asking" $pid "$count"
  cat "$out/log"
  stop
  promise "$name: it goes on and ends, no block has lost its contents" ends_well
}

storm 'Pascal' "$out/Asked"
storm 'C' env "LD_PRELOAD=$preload" "$out/asked"

# ---------------------------------------------------------------- one request

start env "LANEMM=log=$out/" "$out/Asked"
answers 'status' 0 'used .* committed' do $pid status
answers 'settings and verbs' 0 'used ' do $pid profile,rate=64K status
answers 'wrong words are named' 2 'unknown setting `profiel`; did you mean `profile`' do $pid profiel
answers 'words are missing' 2 'WORDS is missing' do $pid
answers 'the blocks in use' 0 'Memory in use' report $pid inuse
answers 'a profile as files' 0 'pb.gz$' report $pid profile --pprof
answers 'an unknown report' 2 'there is no report' report $pid memory
kill -STOP $pid
answers 'a stopped process' 1 'it is stopped; `lanemm state` and `map` read it' do $pid status --timeout=1s
kill -CONT $pid
answers 'the same when it goes on' 0 'used ' do $pid status
answers 'attach=0 at run time' 0 'used ' do $pid attach=0,status
answers 'then it refuses' 5 'attach=0' do $pid status
stop
answers 'an ended process' 3 'no process' do $pid status

start env LANEMM=attach=0 "$out/Asked"
answers 'attach=0' 5 'attach=0' do $pid status
stop
start env LANEMM=live=0 "$out/Asked"
answers 'live=0' 4 'live=0' do $pid status
promise 'live=0: no page' sh -c "! grep -q SYSV /proc/$pid/maps"
stop
start strace -D -qq -o /dev/null -E "LD_PRELOAD=$preload" -e inject=shmget:error=EPERM \
  bash -c 'echo ready; read line; exit 0'
answers 'a sandbox that refuses segments of shared memory' 4 'gave it no segment' do $pid status
answers 'it is read as before' 0 'in use' state $pid
stop
promise 'and goes on' test $code -eq 0
start "$out/Lean"
answers 'LaneMMLean takes no requests' 5 'has LaneMMLean, which answers no requests' do $pid status
answers 'nor writes reports' 5 'has LaneMMLean, which answers no requests' report $pid inuse
answers 'LaneMMLean: state' 0 'committed' state $pid
answers 'LaneMMLean: map' 0 'A character is' map $pid
answers 'LaneMMLean: top' 0 'committed' top $pid --once
answers 'LaneMMLean: ps' 0 "^ *$pid .* Lean *$" ps
stop
start sh -c 'echo ready; read line'
answers 'another memory manager' 4 'does not run on LaneMM' do $pid status
stop

# ---------------------------------------------------------------- timed reports

has_reports() { # NAME COUNT
  [ "$(ls "$out" | grep -c "^$1_MemoryManager_Profile[.]$pid[.].*json$")" -ge "$2" ]
}
# Soon: the thread that has answered may be about to end.
has_threads() { # COUNT
  ls "/proc/$pid/task"
  [ "$(ls "/proc/$pid/task" | wc -l)" -eq "$1" ]
}
# A request starts their thread.
timed() { # NAME PROGRAM THREADS
  promise "$1: no thread for them" await has_threads "$3"
  answers "$1: timed reports are switched on" 0 'used ' do $pid profile,json,every=100ms status
  promise "$1: it sleeps, and they come" await has_reports "$2" 3
  promise "$1: their thread" await has_threads $(($3 + 1))
  answers "$1: they are switched off, and others on" 0 'used ' do $pid every=0,status,every=50ms,status
  promise "$1: those come" await has_reports "$2" 6
  stop
  promise "$1: it ends well" test $code -eq 0
}

start env "LANEMM=log=$out/" "$out/Sleeping"
timed 'Pascal' Sleeping 2
start env "LD_PRELOAD=$preload" "LANEMM=log=$out/" bash -c 'echo ready; read line; exit 0'
timed 'C' bash 1

# ---------------------------------------------------------------- nothing that a program can observe

# Its descriptors, and the signals that it handles.
traces() { ls -l "/proc/$pid/fd" | sed 's/.* \([0-9]* -> \)/\1/' | tail -n +2; grep SigCgt "/proc/$pid/status"; }
# It waits for input: what it runs last has begun.
waits() { grep -q '^State:.S' "/proc/$pid/status"; }
leaves_no_trace() { # NAME COMMAND...
  name=$1
  shift
  start "$@"
  await waits
  traces > "$out/plain"
  stop
  start env "LD_PRELOAD=$preload" "LANEMM=log=$out/" "$@"
  await waits
  traces > "$out/watched"
  promise "$name: the same descriptors and signals as without LaneMM" \
    sh -c "sed 's/pipe:.*//' '$out/plain' > '$out/a'; sed 's/pipe:.*//' '$out/watched' | diff '$out/a' -"
  answers "$name: it is asked" 0 'used ' do $pid status
  answers "$name: for a report" 0 'Memory in use' report $pid inuse
  traces > "$out/after"
  promise "$name: the same after a request" diff "$out/watched" "$out/after"
  promise "$name: and one thread" await has_threads 1
  stop
  promise "$name: it ends well" test $code -eq 0
}
leaves_no_trace 'a shell' bash -c 'echo ready; read line; exit 0'
leaves_no_trace 'a program that sleeps' sh -c 'echo ready; exec cat'

lock=$out/lock
: > "$lock"
LD_PRELOAD=$preload bash -c 'exec 200> "$1"; flock -n 200 && ! flock -n "$1" true && echo text >&200' lock "$lock" \
  > "$out/printed" 2>&1
promise "a shell's lock on descriptor 200 is one of its file" sh -c "test $? -eq 0 && grep -q text '$lock'"

# The least stack of a handler, with known bytes below it.
for bytes in 2048 8192; do
  start env "LD_PRELOAD=$preload" "LANEMM=log=$out/" "$out/altstack" $bytes
  answers "a small alternate signal stack: a request" 0 'used ' do $pid profile,rate=4K,growth,status
  answers "a small alternate signal stack: all logs" 0 'file ' do $pid write
  answers "a small alternate signal stack: a report" 0 'In use' report $pid inuse
  stop
  promise "an alternate signal stack of $bytes bytes is left alone" test $code -eq 0
done

# What LaneMM does in signal handlers of the program's threads has a stack of its own, too.
reports_fault() { # BYTES
  LD_PRELOAD=$preload LANEMM=debug,guard=pages,log=$out/ "$out/altstack" "$1" fault 2> "$out/errors"
  code=$?
  cat "$out/errors"
  [ $code -eq 0 ] && grep -q 'Use after free' "$out/errors"
}
promise 'a fault is reported where its handler has a small stack' reports_fault 8192
writes_on_signal() { # SETTINGS SIGNAL CODE
  rm -f "$out"/altstack_Memory*
  LD_PRELOAD=$preload LANEMM=$1,log=$out/ "$out/altstack" 16384 "$2"
  [ $? -eq "$3" ] && ls "$out"/altstack_MemoryManager_heap*
}
promise 'a thread with a small stack takes the signal that writes profiles' writes_on_signal profile,rate=1,signal=12 12 0
promise 'and one that ends the program' writes_on_signal profile,rate=1 15 143
reports_in_thread() { # SETTINGS MODE TEXT
  rm -f "$out"/altstack_Memory*
  LD_PRELOAD=$preload LANEMM=$1,log=$out/ "$out/altstack" 16384 "$2" > "$out/printed" 2>&1
  code=$?
  cat "$out/printed"
  [ $code -eq 0 ] && grep -q "$3" "$out"/printed "$out"/altstack_Memory*Log.txt
}
# Of the 20 lost blocks a word that a routine left on the stack may still hold one.
promise 'a thread with a small stack ends the program: leaks are reported' reports_in_thread leaks,stacks exit '\(19\|20\) x 100-byte block'
promise 'and profiles and growth are written' reports_in_thread profile,rate=1,growth,contention exit heap.*pb.gz
promise 'and a limit that it meets is reported' reports_in_thread limit=20M,limit:report limit take_all
writes_in_time() {
  rm -f "$out"/altstack_Memory*
  LD_PRELOAD=$preload LANEMM=profile,rate=1,every=100ms,log=$out/ "$out/altstack" 16384 timed
  code=$?
  ls "$out"/altstack_MemoryManager_heap*.pb.gz
  [ $code -eq 0 ] && [ "$(ls "$out"/altstack_MemoryManager_heap*.pb.gz | wc -l)" -ge 5 ]
}
promise 'and timed reports are written in it where no thread of LaneMM does' writes_in_time

# ---------------------------------------------------------------- programs with ways of their own

start env "LD_PRELOAD=$preload" bash -c 'eval exec {3..210}"<&-"; echo ready; read line'
answers 'a program that closes all files' 0 'used ' do $pid status
stop
start env "LD_PRELOAD=$preload" "$out/altstack" daemon
daemon=$(sed -n 's/^daemon //p' "$out/printed")
answers 'a daemon that closes all files' 0 'used ' do "$daemon" status
answers 'a daemon that closes all files: a report' 0 '' report "$daemon" inuse
kill "$daemon"
stop
if unshare --ipc true 2> "$out/errors"; then
  start env "LD_PRELOAD=$preload" "$out/altstack" 8192 leaves
  answers 'a program that has left its namespace of shared memory' 0 'used ' do $pid status
  answers 'it is seen from outside' 0 "^ *$pid " ps
  stop
  # From a third namespace: the page is opened as the file of its mapping.
  start env "LD_PRELOAD=$preload" unshare --ipc "$out/altstack" 8192 leaves
  answers 'one that had left for another before' 0 'used ' do $pid status
  stop
else
  skip 'namespaces of shared memory' 'this machine lets none be made'
fi
start env "LD_PRELOAD=$preload" bash -c '( echo ready; read line; exit 0 ); exit $?'
child=$(cat /proc/$pid/task/$pid/children)
answers 'a child process' 0 'used ' do "${child% }" status
answers 'its parent' 0 'used ' do $pid status
stop

# Ended at moments around that at which it starts a thread in the program, by registers that are not
# its own.
terminated() {
  moment=540
  while [ $moment -lt 780 ]; do
    "$lanemm" do $pid status &
    asker=$!
    sleep "0.0$moment"
    kill -TERM $asker
    wait $asker
    moment=$((moment + 4))
  done
  "$lanemm" do $pid status
}
start env "LD_PRELOAD=$preload" bash -c 'echo ready; read line; exit 0'
promise 'a program whose lanemm is terminated answers the next one' terminated
stop
promise 'and ends well' ends_well

# Some of its signals come when lanemm is about to stop its thread, which starts one that answers.
start env "LD_PRELOAD=$preload" "$out/signalled"
promise 'a program that gets signals is asked' timeout 600 "$out/Asking" $pid 100 status
stop
promise 'and has got all of them' ends_well

# ---------------------------------------------------------------- a library that is unloaded

# Of a request that meets the end of its page no answer comes.
asked_while_unloading() {
  answered=0
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    "$lanemm" do $pid attach=2,status --timeout=200ms && answered=$((answered + 1))
  done
  [ $answered -gt 0 ]
}
start env "LANEMM=log=$out/" "$out/reloads" "$out/unloaded.so"
promise 'a library answers that is unloaded again and again' asked_while_unloading
promise 'without a thread in its code' await has_threads 1
stop
promise 'the program goes on' test $code -eq 0

# ---------------------------------------------------------------- where the system lets nobody attach

# As with Yama: a tool of the same user may neither read memory nor stop threads.
answers_unattached() { # NAME CODE PART ARGUMENTS...
  tool=$lanemm
  lanemm=$out/unattached
  answers "$@"
  lanemm=$tool
}
printf '#!/bin/sh\nexec strace -qq -o /dev/null -e inject=ptrace,process_vm_readv,process_vm_writev:error=EPERM "%s" "$@"\n' \
  "$lanemm" > "$out/unattached"
chmod 755 "$out/unattached"
start env "LANEMM=log=$out/" "$out/Asked"
answers_unattached 'not attached: a busy program in Pascal' 0 'used ' do $pid status
answers_unattached 'not attached: a report of it' 0 'Memory in use' report $pid inuse
stop
start env "LD_PRELOAD=$preload" "LANEMM=log=$out/" "$out/asked"
answers_unattached 'not attached: a busy program in C' 0 'used ' do $pid status
answers_unattached 'not attached: a report of it' 0 'Memory in use' report $pid inuse
answers_unattached 'not attached: a thread waits from now on' 0 'used ' do $pid attach=2,status
promise 'its thread, and no other' await has_threads 7
answers_unattached 'not attached: that thread answers' 0 'used ' do $pid status
stop
start env "LD_PRELOAD=$preload" bash -c 'echo ready; read line'
answers_unattached 'not attached: a program that does nothing' 1 'none of its threads has looked' do $pid status --timeout=1s
stop
start env "LD_PRELOAD=$preload" bash -c '( echo ready; read line; exit 0 ); exit $?'
child=$(cat /proc/$pid/task/$pid/children)
answers_unattached 'not attached: a child process that does nothing' 1 \
  'has the page of its parent process so far: none of its threads has looked' do "${child% }" status
stop
for attach in '' LANEMM=attach=2; do
  start env "LD_PRELOAD=$preload" $attach bash -c 'echo ready; read line; exit 0'
  [ -z "$attach" ] || answers_unattached 'not attached: attach=2' 0 'used ' do $pid status
  answers 'a program that does nothing' 0 'used ' do $pid status
  promise "as many threads as it has" await has_threads $((1 + ${#attach} / 15))
  stop
  promise 'it ends well' test $code -eq 0
done

# ---------------------------------------------------------------- other users

if [ "$(id -u)" -eq 0 ]; then
  start "$out/Asked"
  # That user may have no way to this folder, as to one below /root.
  public=$(mktemp -d) && chmod 755 "$public" && cp "$lanemm" "$public"
  setpriv --reuid=65534 --clear-groups "$public/lanemm" do $pid status > "$out/log" 2>&1
  promise 'another user is refused' test $? -eq 5
  rm -rf "$public"
  stop
  cp "$out/Asked" "$out/SetUser"
  chown 65534 "$out/SetUser"
  chmod 4755 "$out/SetUser"
  start "$out/SetUser"
  promise 'a set-user-ID program runs' grep -q ready "$out/printed"
  promise 'it has no page' sh -c "grep -q SetUser /proc/$pid/maps && ! grep -q SYSV /proc/$pid/maps"
  stop
else
  skip 'other users' 'only root can start a program as one'
fi

# ---------------------------------------------------------------- system calls at the start

# Whether the page costs so many of them: all from the first to the last one, one after the other.
# prctl, shmctl, shmget, shmat, shmctl, getpid. The prctl before asks whether the settings are to be read.
page_costs() { # COUNT COMMAND...
  count=$1
  shift
  strace -f -qq -o "$out/calls" env -i "$@" > "$out/printed" < /dev/null
  awk '/PR_GET_DUMPABLE/ { calls = ""; asked++ } { calls = calls $0 "\n" }
    asked == 2 && /getpid/ { printf "%s", calls; exit }' "$out/calls" > "$out/of-page"
  cat "$out/of-page"
  [ "$(wc -l < "$out/of-page")" -eq "$count" ]
}
without_page() { # COMMAND...
  strace -f -qq -o "$out/calls" env -i LANEMM=live=0 "$@" > "$out/printed" < /dev/null
  ! grep -e shm -e SIGURG "$out/calls" && [ "$(grep -c PR_GET_DUMPABLE "$out/calls")" -eq 1 ]
}
promise 'the page costs 6 system calls in Pascal' page_costs 6 "$out/Quiet"
promise 'the page costs 6 system calls in C' page_costs 6 "LD_PRELOAD=$preload" /bin/true
promise 'without the page there are none of them in Pascal' without_page "$out/Quiet"
promise 'without the page there are none of them in C' without_page "LD_PRELOAD=$preload" /bin/true

# ---------------------------------------------------------------- lanemm run

answers 'run of a program in C' 0 'liblanemm.so' run grep liblanemm.so /proc/self/maps
answers 'run with words' 0 'LANEMM=least=7' run least=7 env
answers 'run of no program' 1 'there is no program' run /nowhere/program
LANEMM=top=5 "$lanemm" run least=7 "$out/Asked" < /dev/null > "$out/printed" 2> "$out/errors"
promise 'run of a program with LaneMM inside' grep -q ready "$out/printed"

# ---------------------------------------------------------------- lanemm top

# tmux is the terminal. It must not keep the pipe to which this script prints.
terminal() { tmux -L "lanemm-$$" "$@" < /dev/null > "$out/screen" 2>&1; }
screen_shows() { # PART
  terminal capture-pane -p -t top && cat "$out/screen" && grep -q -e "$1" "$out/screen"
}
screen_lacks() { # PART
  terminal capture-pane -p -t top && cat "$out/screen" && ! grep -q -e "$1" "$out/screen"
}
# A key, and what the screen shows then.
key() { # NAME KEY PART
  terminal send-keys -t top "$2"
  promise "top: $1" await screen_shows "$3"
}

start env "LANEMM=log=$out/" "$out/Asked"
terminal new-session -d -s top -x 100 -y 30 "$lanemm top $pid; echo ended; sleep 600"
promise 'top: totals' await screen_shows '^# used '
promise 'top: its keys' await screen_shows '^keys: c t e shown'
key 'sorts by growth' g 'by growth'
key 'sorts by blocks' b 'by blocks'
key 'threads' t '^thread '
key 'size classes' c '^size '
key 'starts a profile' p 'a profile runs'
key 'writes its page and ends it' p '^file .*html'
key 'ends' q '^ended'
terminal kill-server
promise 'top: the page is there' sh -c "ls '$out'/*.html"

# In a shell with jobs: however top ends or stops, the terminal is as it was before.
type_line() { terminal send-keys -t top "$1" Enter; }
screen_is() { # EXPECTED FORMAT
  terminal display-message -p -t top "$2" && cat "$out/screen" && grep -qx "$1" "$out/screen"
}
terminal_is_as_before() { # NAME
  promise "top: $1: the screen is as before" await screen_is '0 1' '#{alternate_on} #{cursor_flag}'
  type_line 'clear; stty -a | grep -c -e " icanon .* echo "; echo looked'
  promise "top: $1: the terminal is as before" await screen_shows '^looked'
  promise "top: $1: lines and echo" await screen_shows '^1$'
}
top_number() {
  terminal display-message -p -t top '#{pane_pid}'
  pgrep -P "$(cat "$out/screen")"
}
terminal new-session -d -s top -x 100 -y 30 'exec env -i TERM=screen PS1=: sh -i'
type_line "$lanemm top $pid"
promise 'top: in a shell' await screen_shows '^# used '
terminal resize-window -t top -x 60 -y 20
promise 'top: another size of the terminal' await screen_shows '^\[[^]]\{58\}]$'
key 'stops' C-z 'Stopped'
terminal_is_as_before 'stopped'
type_line fg
promise 'top: it is shown again' await screen_lacks 'Stopped'
key 'goes on' t '^thread '
promise 'top: it is stopped without notice' kill -STOP "$(top_number)"
promise 'top: the shell is there' await screen_shows 'Stopped'
type_line fg
promise 'top: it is shown once more' await screen_lacks 'Stopped'
key 'goes on again' c '^size '
key 'an arrow does nothing' Up '^size '
key 'the interrupt key ends it' C-c '^:'
terminal_is_as_before 'interrupted'
for signal in TERM HUP QUIT; do
  type_line "$lanemm top $pid"
  promise "top: before SIG$signal" await screen_shows '^# used '
  promise "top: SIG$signal is sent" kill -$signal "$(top_number)"
  promise "top: SIG$signal ends it" await screen_shows '^:'
  terminal_is_as_before "SIG$signal"
done
type_line "$lanemm top $pid"
promise 'top: before the terminal closes' await screen_shows '^# used '
watcher=$(top_number)
terminal kill-server
is_gone() { ! kill -0 "$1"; }
promise 'top: it ends with its terminal' await is_gone "$watcher"
stop

sum
