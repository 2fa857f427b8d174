#!/bin/sh
# Runs a command that downloads: up to four times, until it succeeds.
#
#   sh tools/fetch.sh COMMAND...
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

for pause in 5 20 60; do
  if "$@"; then
    exit 0
  fi
  echo "fetch.sh: $1 failed; again in $pause s" >&2
  sleep $pause
done
exec "$@"
