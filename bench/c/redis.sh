# A redis server, its benchmark, and a save in the background; in the current directory. Leaves what
# must always be the same in result.txt.
port=$((20000 + $$ % 10000))
redis-server --port $port --bind 127.0.0.1 --save '' > redis.log 2>&1 &
server=$!
until redis-cli -p $port ping > /dev/null 2>&1; do
  kill -0 $server 2> /dev/null || exit 1 # it has not started
  sleep 0.02
done
redis-benchmark -p $port -q -n 40000 -r 40000 -d 300 -c 20 -P 8 \
  -t set,get,lpush,rpop,sadd,hset,zadd,mset
redis-cli -p $port bgsave
redis-cli -p $port flushall
redis-cli -p $port eval '
  local sum = ""
  for i = 1, 20000 do
    redis.call("set", "key" .. i, string.rep(i, i % 60))
    redis.call("hset", "hash" .. i % 500, i, "value" .. i)
  end
  for i = 1, 20000 do
    sum = redis.sha1hex(sum .. redis.call("get", "key" .. i) .. redis.call("hget", "hash" .. i % 500, i))
  end
  return sum' 0 > result.txt
redis-cli -p $port shutdown nosave
wait
