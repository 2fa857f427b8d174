#!/bin/sh
# Counts what it costs that a process can be looked at: instructions of a FreeMem and a GetMem, by
# callgrind, with the status page and without it, while nobody asks; with a profile that the
# environment or a request switched on; and after it was switched off again. A profile draws its
# samples at random, so those rows are the means of several runs, with the lowest and the highest.
#
#   sh tests/live/cost.sh [RUNS]    5
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
runs=${1:-5}
out=$PWD/build/live-cost
sh tools/need.sh fpc valgrind
make --no-print-directory lanemm
rm -rf "$out"
mkdir -p "$out"
fpc -l- -v0 -vew -vm4082,6018 -O3 -Fusrc "-Fusrc/*" "-FE$out" "-FU$out" tests/live/Switched.lpr
profile=profile,rate=64K

# Instructions of the program with these settings, pairs, and requests, which are sent before them.
instructions() { # SETTINGS COUNT REQUESTS
  rm -f "$out/in"
  mkfifo "$out/in"
  LANEMM=log=/dev/null,$1 timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$out/Switched" "$2" < "$out/in" > "$out/printed" 2> "$out/counted" &
  exec 9> "$out/in"
  until grep -q ready "$out/printed"; do sleep 0.1; done
  for words in $3; do
    build/lanemm do "$(sed -n 's/^==\([0-9]*\)== Callgrind.*/\1/p' "$out/counted")" "$words" > "$out/answer"
  done
  echo >&9
  exec 9>&-
  wait $!
  awk '$2 == "Collected" { print $4; found = 1 } END { exit !found }' "$out/counted"
}

# One pair more, in instructions: the start and the requests drop out.
row() { # RUNS NAME SETTINGS REQUESTS
  for run in $(seq "$1"); do
    few=$(instructions "$3" 500000 "$4")
    many=$(instructions "$3" 2000000 "$4")
    echo "$few $many"
  done | awk -v name="$2" '
    { each = ($2 - $1) / 1500000; sum += each
      if (NR == 1 || each < low) low = each
      if (NR == 1 || each > high) high = each }
    END { printf "%-40s %7.2f  (%.2f to %.2f, %d runs)\n", name, sum / NR, low, high, NR }'
}

row 1 'with the page, nobody asks' least=1 ''
row 1 'without it, live=0' live=0 ''
row 1 'after three requests' least=1 'status status status'
row "$runs" 'a profile by the environment' $profile ''
row "$runs" 'a profile by a request' least=1 $profile
row 1 'after it was switched off' least=1 "$profile profile=0"
