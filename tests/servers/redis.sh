# redis-server on liblanemm.so under load, its metrics in Prometheus, and stopped. Sourced by run.sh.

LD_PRELOAD=$PWD/build/lib/liblanemm.so LANEMM="log=$out/logs/" redis-server --port 0 \
  --unixsocket "$out/redis.sock" --save '' --appendonly no --dir "$out" > "$out/redis.log" 2>&1 &
server=$!
if await answers_ping; then pass; else fail 'redis-server runs'; cat "$out/redis.log"; fi

promise 'redis: load' load set
answers 'redis: ps' 0 "^ *$server .*redis-server" ps
answers 'redis: state' 0 '^used ' state $server
answers 'redis: map' 0 'map\|arena\|#' map $server
answers 'redis: top' 0 'used ' top $server --once
answers 'redis: metrics' 0 '' prom $server --output "$out/redis.prom"
promise 'redis: promtool' sh -c "promtool check metrics < '$out/redis.prom'"
"$lanemm" state $server --contents --json > "$out/before.json"
answers 'redis: a profile is switched on' 0 '' do $server profile,rate=16K
promise 'redis: load while it is profiled' load lpush
"$lanemm" state $server --contents --json > "$out/after.json"
answers 'redis: call sites' 0 'In use: .* samples' report $server inuse
answers 'redis: the profile for pprof' 0 'pb.gz$' report $server profile --pprof
answers 'redis: difference' 0 '  all$' diff "$out/before.json" "$out/after.json"
cp "$out/log" "$out/diff.txt"
promise 'redis: it has grown' grows "$out/diff.txt"

# ---------------------------------------------------------------- Prometheus

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
read_url() { # URL
  python3 -c 'import sys, urllib.request
sys.stdout.write(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=20).read().decode())' "$1"
}
# Starts a server on a port of this machine alone that is free; another one when it was taken meanwhile.
serves() { # PID URL
  kill -0 "$1" && read_url "$2"
}
start_exporter() {
  for try in 1 2 3; do
    exporter_port=$(free_port)
    prometheus-node-exporter "--web.listen-address=127.0.0.1:$exporter_port" \
      --collector.disable-defaults --collector.textfile "--collector.textfile.directory=$out/textfile" \
      > "$out/exporter.log" 2>&1 &
    exporter=$!
    await serves $exporter "http://127.0.0.1:$exporter_port/metrics" && return 0
    end_scrapers
  done
  cat "$out/exporter.log"
  return 1
}
start_prometheus() {
  printf '%s\n' 'global: { scrape_interval: 1s }' 'scrape_configs:' '  - job_name: heaps' \
    "    static_configs: [ { targets: [ '127.0.0.1:$exporter_port' ] } ]" > "$out/prometheus.yml"
  for try in 1 2 3; do
    prometheus_port=$(free_port)
    prometheus "--config.file=$out/prometheus.yml" "--storage.tsdb.path=$out/prometheus" \
      "--web.listen-address=127.0.0.1:$prometheus_port" > "$out/prometheus.log" 2>&1 &
    prometheus=$!
    await serves $prometheus "http://127.0.0.1:$prometheus_port/-/ready" && return 0
    kill -KILL $prometheus
    wait $prometheus
    prometheus=
  done
  cat "$out/prometheus.log"
  return 1
}
# The bytes in use of the server: in the file of its metrics, at node_exporter, and at Prometheus.
metric=lanemm_used_bytes
written() { sed -n "s/^$metric{.*} //p" "$out/textfile/lanemm.prom"; }
exported() { read_url "http://127.0.0.1:$exporter_port/metrics" | sed -n "s/^$metric{.*} //p"; }
stored() {
  promtool query instant "http://127.0.0.1:$prometheus_port" "$metric{program=\"redis-server\"}" \
    | sed -n 's/^.* => \(.*\) @.*$/\1/p'
}
# Whether the command prints the number of the file; node_exporter writes large ones as 1.5e+06.
agrees() { # COMMAND
  echo "$1 $($1), written $(written)"
  [ -n "$($1)" ] && [ "$(printf '%.0f' "$($1)")" = "$(written)" ]
}
write_metrics() { "$lanemm" prom $server --output "$out/textfile/lanemm.prom"; }
has_no_error() {
  read_url "http://127.0.0.1:$exporter_port/metrics" | grep '^node_textfile_scrape_error 0$'
}

mkdir -p "$out/textfile"
promise 'metrics: written for the collector' write_metrics
promise 'metrics: node_exporter runs' start_exporter
promise 'metrics: node_exporter reads the file' agrees exported
promise 'metrics: it finds no error in it' has_no_error
promise 'metrics: prometheus runs' start_prometheus
promise 'metrics: prometheus has scraped them' await agrees stored
before=$(written)
promise 'redis: load between two scrapes' load set,lpush
promise 'metrics: written again' write_metrics
promise 'metrics: they have grown' test "$(written)" -gt "$before"
promise 'metrics: prometheus has scraped those' await agrees stored
end_scrapers

# ---------------------------------------------------------------- redis-server, stopped

bytes=$(used_memory)
promise 'it stops' stop_server
"$lanemm" state $server --json > "$out/stopped.json" 2> "$out/changes"
promise 'redis: a stopped one is read, and is what it counts' holds_redis "$out/stopped.json" "$bytes"
promise 'redis: no record changes in a stopped one' test ! -s "$out/changes"
answers 'redis: leaks of a stopped one' 0 'eak' report $server leaks
answers 'redis: a stopped one gives no answer' 1 'it is stopped' do $server status --timeout=1s
kill -CONT $server
answers 'redis: then it does' 0 'used ' do $server status
promise 'redis: it still works' answers_ping
promise 'redis: load after all' load get
redis shutdown nosave > "$out/log" 2>&1
wait $server
promise 'redis: it ends well' test $? -eq 0
server=
