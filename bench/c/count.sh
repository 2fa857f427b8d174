#!/bin/sh
# Counts the instructions of a command on the C library, without debug mode and with it.
#
#   sh bench/c/count.sh COMMAND [ARGUMENT...]
#
# Prints both counts and their ratio; what the command prints is dropped. Instructions of the kernel
# and of child processes are not counted. A program takes 50 times as long: give it a small input, for
# example `perl tests/c/work/words.pl 3000`. Needs valgrind.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

root=$(realpath "$(dirname "$0")/../..")
out=$root/build/bench-c
mkdir -p "$out"

# count SETTINGS COMMAND...
count() {
  settings=$1
  shift
  LANEMM=$settings LD_PRELOAD=$root/build/lib/liblanemm.so valgrind --tool=callgrind \
    --callgrind-out-file="$out/callgrind.${settings%%,*}" --log-file="$out/valgrind.log" "$@" > /dev/null
  awk '$2 == "Collected" { print $4; found = 1 }
    END { exit !found }' "$out/valgrind.log"
}

(cd "$root" && . tools/preloads.sh && sh lib/build.sh)
plain=$(count '' "$@")
debug=$(count "debug,log=$out" "$@")
awk -v plain="$plain" -v debug="$debug" \
  'BEGIN { printf "%d without debug mode, %d with it: %.2f\n", plain, debug, debug / plain }'
