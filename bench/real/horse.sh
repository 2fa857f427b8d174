#!/bin/sh
# A web server and the requests of sixteen clients at a time; in the current directory.
#
#   sh horse.sh SERVER ping|products|order
#
# Each request has a connection, and so a thread, of its own. Exit code 1 when the server does not
# start, or a request fails.
set -eu
server=$1 page=$2
port=$((20000 + $$ % 10000))
printf '{"lines":[{"count":2,"cents":50},{"count":3,"cents":1250},{"count":1,"cents":7}]}' > order
case $page in
  ping) requests=8000 ;;
  products) requests=3000 ;;
  order) requests=8000 ;;
esac

"$server" "$port" > server.log 2>&1 &
trap 'kill $!; wait $! 2> /dev/null || true' EXIT
tries=0
until curl -s -o answer "http://127.0.0.1:$port/ping"; do
  tries=$((tries + 1))
  if [ "$tries" = 250 ]; then exit 1; fi
  sleep 0.02
done
set --
[ "$page" != order ] || set -- -p order -T application/json
ab -q -l -r -c 16 -n "$requests" "$@" "http://127.0.0.1:$port/$page" > ab.log
grep -q "^Complete requests: *$requests\$" ab.log
grep -q '^Failed requests: *0$' ab.log
if grep -q '^Non-2xx' ab.log; then exit 1; fi
