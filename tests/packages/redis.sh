#!/bin/sh
# Runs the redis-server of Debian 12 and 13 on the C library, in roots of their own: both are linked with
# jemalloc and call its extended interface, that of 13 for all blocks.
#
#   sh tests/packages/redis.sh
#
# Needs the rights of root. The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh
clean=$work/root

# Starts, serves, answers from its statistics, saves in a child, and ends by itself.
serves() {
  cat > "$clean/lanemm/serve" <<'END'
set -e
ask() { redis-cli -p 7399 "$@"; }
LD_PRELOAD=/lanemm/liblanemm.so redis-server --port 7399 --bind 127.0.0.1 --save '' --dir /lanemm > /lanemm/log 2>&1 &
server=$!
tries=0
until [ "$(ask ping 2> /dev/null)" = PONG ]; do
  tries=$((tries + 1))
  [ $tries -lt 100 ]
  sleep 0.1
done
grep -q liblanemm "/proc/$server/maps"
[ "$(ask eval 'for i = 1, 1000 do redis.call("set", i, string.rep("x", i)) end return redis.call("dbsize")' 0)" = 1000 ]
redis-benchmark -p 7399 -q -n 20000 -r 5000 -d 300 -t set,lpush,hset > /dev/null
ask memory malloc-stats | grep -q LaneMM
[ "$(ask memory purge)" = OK ]
[ "$(ask info memory | sed -n 's/^allocator_allocated:\([0-9]*\).*/\1/p')" -gt 1000000 ]
[ "$(ask strlen 777)" = 777 ]
ask flushall
ask save
ask shutdown nosave || true
wait $server
END
  in_root "$clean" sh -x /lanemm/serve
}

sh lib/build.sh
for suite in bookworm trixie; do
  promise "there is a root of $suite" make_root "$clean" $suite redis-server
  mkdir -p "$clean/lanemm"
  cp build/lib/liblanemm.so.1 "$clean/lanemm/liblanemm.so"
  promise "redis-server of $suite serves on the library" serves
  rm -rf "$clean"
done
sum
