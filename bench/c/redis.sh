# A redis server, its benchmark, and a save in the background; in the current directory.
port=$((20000 + $$ % 10000))
redis-server --port $port --bind 127.0.0.1 --save '' > redis.log 2>&1 &
until redis-cli -p $port ping > /dev/null 2>&1; do sleep 0.02; done
redis-benchmark -p $port -q -n 40000 -r 40000 -d 300 -c 20 -P 8 \
  -t set,get,lpush,rpop,sadd,hset,zadd,mset
redis-cli -p $port bgsave
redis-cli -p $port shutdown nosave
wait
