#!/bin/sh
# Instructions of the server of bench/real/server.sh per request, counted by callgrind: without those of
# the kernel, and whatever else the machine does.
#
#   sh bench/real/count.sh MANAGER...
#
# for managers that `bench/real/run.sh server` has compiled before. Writes
# bench/results/server-instructions.csv: for each path those of the memory manager, and of libpq's malloc,
# and all, of which polling by idle threads is a few hundred and differs from run to run. 300 requests one
# after the other by one client. Needs valgrind, curl and PostgreSQL.
set -eu
case ${1-} in
  '' | -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
sh tools/need.sh valgrind curl
out=$PWD/build/bench-real
result=bench/results/server-instructions.csv
requests=300
# Routines of LaneMM, mORMot's manager, Free Pascal's heap (rtl/inc/heap.inc) and glibc's malloc.
heap=':LANEMM[.]|FPCX64MM_|malloc[.]c:|arena[.]c:|'
heap="$heap"'SYSTEM_[$][$]_(SYS(GETMEM|FREEMEM|REALLOCMEM|ALLOCMEM|MEMSIZE|TRYRESIZEMEM)|WAITFREE_|ALLOC_OSCHUNK)'
address=127.0.0.1:$((20000 + $$ % 10000))
database=$(mktemp -d "${TMPDIR:-/tmp}/lanemm-server.XXXXXX")
process=
stop() {
  [ -z "$process" ] || kill -KILL "$process" || true
  [ -z "${postgres:-}" ] || kill -INT "$postgres" || true
  wait || true
  rm -rf "$database"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM
sh bench/real/database.sh make "$database" < "$out/mORMot2/create-postgres.sql"
sh bench/real/database.sh run "$database" >> "$database/log" 2>&1 < /dev/null &
postgres=$!
sh bench/real/database.sh await "$database"
rm -rf "$out/count"
mkdir -p "$out/count"

# load PATH COUNT: so many requests over one connection; `n` is no parameter of the sample
load() {
  case $1 in
    *'?'*) url="http://$address/$1&n=[1-$2]" ;;
    *) url="http://$address/$1?n=[1-$2]" ;;
  esac
  curl -s -f -o "$out/count/answer" "$url"
}

# count MANAGER
count() {
  mkfifo "$out/count/input"
  exec 3<> "$out/count/input"
  PGHOST=$database SERVER_ADDRESS=$address valgrind --tool=callgrind --smc-check=all \
    --callgrind-out-file="$out/count/$1.%p" "$out/$1/server" \
    < "$out/count/input" > "$out/count/$1.log" 2>&1 3>&- &
  process=$!
  until load plaintext 1; do
    kill -0 "$process"
    sleep 0.5
  done
  for path in plaintext json db 'queries?queries=20' fortunes; do
    load "$path" 50
    callgrind_control -z "$process" > "$out/count/control.log" 2>&1
    load "$path" "$requests"
    callgrind_control -d "$process" > "$out/count/control.log" 2>&1
    sleep 0.5
    dump=$(find "$out/count" -name "$1.$process.*" | sort -V | tail -n 1)
    callgrind_annotate --threshold=100 "$dump" | awk -v heap="$heap" -v manager="$1" -v path="/$path" -v count=$requests '
      { gsub(/,/, "", $1) }
      /PROGRAM TOTALS/ { all = $1 }
      $1 ~ /^[0-9]+$/ && $0 ~ heap { sum += $1 }
      END { printf "%s,%s,%.0f,%.0f\n", manager, path, sum / count, all / count }' >> "$result"
  done
  kill -KILL "$process"
  wait "$process" 2> /dev/null || true
  process=
  rm "$out/count/input"
}

{
  echo "# command: bench/real/count.sh $*"
  echo "# date: $(date -u +%F)"
  echo "# revision: $(git rev-parse --short HEAD)"
  sed -n '/^# library/p' bench/results/server.csv
  echo 'manager,path,manager_instructions,all_instructions'
} > "$result"
for manager in "$@"; do
  [ -x "$out/$manager/server" ] || { echo "count.sh: bench/real/run.sh server has not compiled $manager" >&2; exit 1; }
  count "$manager"
done
cat "$result"
