# redis-server on liblanemm.so with a black box, killed under load: its box is read. Sourced by run.sh.

mkdir -p "$out/boxes"
LD_PRELOAD=$PWD/build/lib/liblanemm.so LANEMM="blackbox=$out/boxes/,log=$out/logs/" redis-server --port 0 \
  --unixsocket "$out/redis.sock" --save '' --appendonly no --dir "$out" > "$out/redis.log" 2>&1 &
server=$!
promise 'a boxed redis-server runs' await answers_ping
promise 'boxed redis: load' load set,lpush
bytes=$(used_memory)
redis-benchmark -s "$out/redis.sock" -t lpush -n 1000000 -d 300 -c 8 -q > "$out/load" 2>&1 &
load=$!
sleep 0.5
kill -KILL "$server"
wait "$server" 2> "$out/killed"
wait "$load" 2> "$out/killed"
box=$(echo "$out"/boxes/*."$server".lanebox)
server=
# What it holds is at least what Redis counted before the last load.
holds_load() {
  "$lanemm" blackbox --json "$box" > "$out/box.json" || return 1
  used=$(sed -n 's/.*"heap":{"used":\([0-9]*\).*/\1/p' "$out/box.json")
  echo "box $used, redis $bytes"
  [ "$used" -ge $((bytes - bytes / 10)) ]
}
promise 'boxed redis: the box has what it held' holds_load
answers 'boxed redis: the sentence' 0 '^Killed at .*, allocated by z.* in the last .* threads\.$' blackbox "$box"
cp "$out/log" "$out/box.txt"
promise 'boxed redis: its routines' grep -q '^ *aeMain$' "$out/box.txt"
answers 'boxed redis: it is listed' 0 '/redis-.*lanebox' ps --dead "$out/boxes"
