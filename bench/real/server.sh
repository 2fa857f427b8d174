#!/bin/sh
# mORMot 2's TechEmpower sample, its database, and two seconds of requests; in the current directory.
#
#   sh server.sh SERVER plaintext|json|db|queries|fortunes SCALE DATABASE
#
# DATABASE is a folder of database.sh; with a SCALE below 1 one second. 64 connections by one thread of
# wrk; /plaintext sixteen requests at a time, as TechEmpower has it. Prints what the runner of bench/
# wants, of the server alone: ns and CPU ns per request, peak and final resident memory, and, where the
# runner has made a memory group, what is charged at the end. Exit code 1 when an answer is wrong.
set -eu
if [ $# != 4 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
server=$1 page=$2 database=$4
here=$(dirname "$0")
address=127.0.0.1:$((20000 + $$ % 10000))
seconds=2
case $3 in 0*) seconds=1 ;; esac
path=$page count=1 pipelined=
case $page in
  plaintext) text='Hello, World!' pipelined=16 ;;
  json) text='{"message":"Hello, World!"}' ;;
  db) text='"randomNumber":' ;;
  queries) path='queries?queries=20' text='"randomNumber":' count=20 ;;
  fortunes) text='<tr><td>' count=13 ;;
esac

fail() {
  echo "server.sh: $1" >&2
  tail -n 5 server.log >&2 || true
  exit 1
}

process=
stop() {
  [ -z "$process" ] || kill -KILL "$process" || true
  kill -INT "$postgres" || true
  wait || true
}

# The memory group of this process, if the runner has made one; all but the server leave it.
group=
name=$(sed -n 's/.*:\(\/lanemm-.*\)/\1/p' /proc/self/cgroup)
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  if [ -n "$name" ] && [ -e "$root$name/cgroup.procs" ]; then
    group=$root$name
    echo 0 > "$root/cgroup.procs"
  fi
done

sh "$here/database.sh" run "$database" >> "$database/log" 2>&1 < /dev/null &
postgres=$!
trap stop EXIT
sh "$here/database.sh" await "$database"

# The server ends at a line of input.
mkfifo input
exec 3<> input
(
  [ -z "$group" ] || echo 0 > "$group/cgroup.procs"
  PGHOST=$database SERVER_ADDRESS=$address exec "$server"
) > server.log 2>&1 < input 3>&- &
process=$!
tries=0
until curl -s -f -o answer "http://$address/$path"; do
  tries=$((tries + 1))
  [ "$tries" != 250 ] || fail "$server does not answer"
  sleep 0.02
done
[ "$(grep -o "$text" answer | wc -l)" = "$count" ] || fail "/$path does not answer as TechEmpower wants it"

# cpu_ns: the CPU time of the server so far
cpu_ns() {
  awk '{ sum += $1 } END { printf "%.0f", sum }' "/proc/$process"/task/*/schedstat
}

# field FILE NAME: a number in KB of a file of /proc
field() {
  awk -v name="$2:" '$1 == name { print $2 }' "/proc/$process/$1"
}

set --
if [ -n "$pipelined" ]; then
  echo "init = function() all = string.rep(wrk.format(), $pipelined) end" > pipelined.lua
  echo 'request = function() return all end' >> pipelined.lua
  set -- -s pipelined.lua
fi
before=$(cpu_ns)
wrk -t 1 -c 64 -d "${seconds}s" "$@" "http://$address/$path" > wrk.log
after=$(cpu_ns)
charged=
for file in memory.usage_in_bytes memory.current; do
  [ ! -e "$group/$file" ] || charged=,idle0_charged_kb=$(($(cat "$group/$file") / 1024))
done
! grep -E 'Socket errors|Non-2xx' wrk.log >&2 || fail "requests to /$path failed"
memory=$(field status VmHWM),$(field status VmRSS)$charged,huge_kb=$(field smaps_rollup AnonHugePages)
awk -v cpu=$((after - before)) -v memory="$memory" '
  $2 == "requests" { requests = $1 }
  $1 == "Requests/sec:" { printf "%.0f,%.0f,%s\n", 1e9 / $2, cpu / requests, memory }' wrk.log

echo >&3
ending=$process process=
wait "$ending" || fail "the server ended with code $?"
