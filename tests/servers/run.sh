#!/bin/sh
# Looks at real servers under load, as docs/live.md does: redis-server of Debian on liblanemm.so, whose
# metrics go to Prometheus through a file that node_exporter reads, and demos/Server, whose planted
# growth three commands find; redis-server is killed, too, and its black box read. All loads have a fixed number of requests.
#
#   sh tests/servers/run.sh
set -u
. "$(dirname "$0")/../../tools/begin.sh"
. tools/preloads.sh
out=$PWD/build/servers
lanemm=$PWD/build/lanemm
. tests/lib.sh
printed=$out/log
server=
exporter=
prometheus=

# Ends the servers that did not end by themselves.
end_server() {
  [ -z "$server" ] || kill -KILL "$server" 2> "$out/killed"
}
end_scrapers() {
  for scraper in $exporter $prometheus; do
    kill -KILL "$scraper" 2> "$out/killed"
    wait "$scraper" 2> "$out/killed"
  done
  exporter=
  prometheus=
}
trap 'end_server; end_scrapers' EXIT

rm -rf "$out"
mkdir -p "$out/logs"
{
  sh lib/build.sh && make --no-print-directory lanemm units &&
    fpc -l- -v0 -ve -gl -FaLaneMM "-Fubuild/units/$(fpc -iTP)-$(fpc -iTO)" "-FE$out" \
      demos/Server/Server.lpr
} > "$out/build.log" 2>&1 || { cat "$out/build.log"; exit 2; }

# ---------------------------------------------------------------- redis-server

redis() { timeout 60 redis-cli -s "$out/redis.sock" "$@"; }
answers_ping() { [ "$(redis ping)" = PONG ]; }
load() { # TESTS
  timeout 120 redis-benchmark -s "$out/redis.sock" -t "$1" -n 20000 -r 10000 -d 300 -c 8 -q
}
# Returns the bytes that Redis counts by malloc_usable_size.
used_memory() { redis info memory | tr -d '\r' | sed -n 's/^used_memory://p'; }
# Whether the bytes in use of a state are about those that Redis counts: it does not count all, and
# counts the buffers of the client that asks.
holds_redis() { # STATE BYTES
  used=$(sed -n 's/.*"usedBytes" : \([0-9]*\).*/\1/p' "$1" | head -n 1)
  echo "lanemm $used, redis $2"
  [ "$used" -ge $(($2 - $2 / 10)) ] && [ "$used" -le $(($2 + $2 / 4)) ]
}
# Stops the server; each of its threads stops when it gets to it.
is_stopped() { ! cat /proc/$server/task/*/stat | sed 's/.*) //' | grep -qv '^T'; }
stop_server() {
  kill -STOP "$server"
  await is_stopped
}
grows() { # FILE
  grep -q '^ *+.*  all$' "$1"
}

. tests/servers/redis.sh
. tests/servers/killed.sh

# ---------------------------------------------------------------- demos/Server

# A free port: one of those that are tried.
start_server() {
  for try in 1 2 3 4 5; do
    port=$((20000 + ($$ * 7 + try * 1009) % 10000))
    LANEMM="log=$out/logs/" "$out/Server" --port=$port > "$out/server.log" 2>&1 &
    server=$!
    if await "$out/Server" --load --port=$port --requests=1 && kill -0 $server; then
      return 0
    fi
    end_server
  done
  cat "$out/server.log"
  return 1
}
# Asks the demo so many times. Its keys have the time in steps of two seconds.
ask_demo() { # COUNT OPTIONS...
  count=$1
  shift
  sleep 3
  timeout 120 "$out/Server" --load --port=$port --requests="$count" "$@"
}
has_line() { # FILE PART
  grep -e "$2" "$1" || { cat "$1"; return 1; }
}

if start_server; then pass; else fail 'the demo serves'; fi
promise 'demo: load' ask_demo 200
"$lanemm" state $server --contents --json > "$out/before.json"
promise 'demo: more load' ask_demo 300
"$lanemm" state $server --contents --json > "$out/after.json"
answers 'demo: top' 0 '1,408' top $server --once --sort=used
answers 'demo: diff' 0 '  all$' diff "$out/before.json" "$out/after.json"
cp "$out/log" "$out/diff.txt"
promise 'demo: one page more for each request' has_line "$out/diff.txt" '  +300 .*Server.TCachedPage$'
answers 'demo: a profile is switched on' 0 '' do $server profile,rate=4K
promise 'demo: load while it is profiled' ask_demo 300
answers 'demo: the line that makes them' 0 'SERVER.TSERVER.PAGE  *Server.lpr' report $server inuse
answers 'demo: nothing of it is a leak' 0 'eak' report $server leaks --pause
cp "$out/log" "$out/leaks.txt"
promise 'demo: the cache holds its pages' sh -c "! grep TCachedPage '$out/leaks.txt'"
answers 'demo: metrics' 0 '' prom $server --output "$out/server.prom"
promise 'demo: promtool' sh -c "promtool check metrics < '$out/server.prom'"
promise 'demo: a rush' ask_demo 3 --rush
promise 'it stops' stop_server
answers 'demo: partly used spans of the log' 0 '^ *96 ' state $server
answers 'demo: their map' 0 '' map $server --svg="$out/map.svg"
kill -CONT $server
promise 'demo: it still serves' ask_demo 1
end_server
wait $server 2> "$out/killed"
server=

sum
