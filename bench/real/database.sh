#!/bin/sh
# A PostgreSQL of its own in a folder: no network port, no service, no wait for the disk.
#
#   sh database.sh make FOLDER < SQL   makes it; the database hello_world has what SQL says
#   sh database.sh run FOLDER          runs it until SIGINT
#   sh database.sh await FOLDER        waits until it accepts clients, whose PGHOST is FOLDER
#
# PostgreSQL refuses root: started by root it runs as the user postgres of Debian's package.
set -eu

case $# in
  2) action=$1 folder=$2 ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2> /dev/null | sort -V | tail -n 1)
if [ ! -x "$programs/postgres" ]; then
  echo 'database.sh: PostgreSQL is missing; install postgresql' >&2
  exit 1
fi
PATH=$programs:$PATH
owner=benchmarkdbuser # whose name the sample states

# Becomes a program that root must not be.
become() { # PROGRAM ARGUMENT...
  cd "$folder"
  [ "$(id -u)" != 0 ] || set -- setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
  exec "$@"
}

run() {
  become postgres -D data -k "$folder" -h '' -F -c full_page_writes=off -c autovacuum=off
}

await() {
  tries=0
  until pg_isready -q -h "$folder"; do
    tries=$((tries + 1))
    if [ "$tries" = 500 ]; then
      echo "database.sh: PostgreSQL does not start; see $folder/log" >&2
      exit 1
    fi
    sleep 0.02
  done
}

make() {
  [ "$(id -u)" != 0 ] || chown postgres: "$folder"
  (become initdb -D data -N -A trust -U "$owner" -E UTF8 --no-locale) > "$folder/log"
  run >> "$folder/log" 2>&1 < /dev/null &
  trap 'kill -INT $!' EXIT
  await
  psql -q -X -h "$folder" -U "$owner" -v ON_ERROR_STOP=1 -c 'create database hello_world' postgres
  psql -q -X -h "$folder" -U "$owner" -v ON_ERROR_STOP=1 hello_world
  trap - EXIT
  kill -INT $!
  wait $!
}

case $action in
  make | run | await) "$action" ;;
  *) echo "database.sh: $action is none of make, run, await" >&2; exit 2 ;;
esac
