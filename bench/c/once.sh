#!/bin/sh
# Runs one workload once under one allocator and prints its line for the runner of bench/.
#
#   sh bench/c/once.sh MANAGER LIBRARY WORKLOAD --threads N --scale S
#
# LIBRARY is preloaded; empty for glibc, which needs none. A program must give what it gave the
# first time, which is glibc's turn (build/bench-c/expected), else the exit code is 1. A scale below 1
# makes a C workload shorter and a program tell its version only. MEASURE is what runs the command
# instead of measure.c.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

manager=$1 library=$2 workload=$3 threads=$5 scale=$7
# The same order of keys, and so the same work, in each run.
export PERL_HASH_SEED=0 PYTHONHASHSEED=0
cd "$(dirname "$0")/../.."
root=$PWD
out=$root/build/bench-c
inputs=$root/tests/c/work

# set_program NAME RESULT COMMAND...: a program; RESULT is the file that shows whether it did its
# work.
set_program() {
  name=$1 result=$2
  shift 2
  if [ "$scale" != 1 ]; then
    result=
    set -- "$name" "$version"
  fi
  printf '%s\n' "$@" > command
}

set_command() {
  result= version=--version
  case $workload in
    python) set_program /usr/bin/python3 out /usr/bin/python3 "$inputs/work.py" ;;
    gcc) set_program gcc l.o gcc -O1 -c -o l.o "$out/large.c" ;;
    g++) set_program g++ l.o g++ -O1 -c -o l.o "$out/large.cc" ;;
    sqlite) set_program sqlite3 out sqlite3 -init "$inputs/tables.sql" :memory: .quit ;;
    perl) set_program perl out perl "$inputs/words.pl" ;;
    perl-half) set_program perl out perl "$inputs/words.pl" 150000 ;;
    gawk) set_program gawk out gawk -f "$root/bench/c/fields.awk" "$out/items.text" ;;
    xmllint)
      set_program xmllint out xmllint --xpath 'count(//item[tags/tag[@n=3]][price > 100])' \
        "$out/items.xml" ;;
    jq) set_program jq out jq -f "$root/bench/c/items.jq" "$out/items.json" ;;
    git) set_program git out sh "$root/bench/c/git.sh" "$out/repository" ;;
    cmake) set_program cmake result.txt cmake -S "$out/project" -B . ;;
    ruby) set_program ruby out ruby "$root/bench/c/objects.rb" ;;
    lua) version=-v; set_program lua5.4 out lua5.4 "$root/bench/c/tables.lua" ;;
    gs)
      set_program gs out gs -q -dBATCH -dNOPAUSE -dSAFER -sDEVICE=ppmraw -r72 -sOutputFile=- \
        "$root/bench/c/pages.ps"
      ;;
    z3) set_program z3 out z3 -smt2 "$out/bits.smt2" ;;
    rocksdb) set_program db_bench out sh "$root/bench/c/database.sh" ;;
    zstd) set_program zstd out zstd -q -9 -T1 -c "$out/items.text" ;;
    python-json) set_program /usr/bin/python3 out /usr/bin/python3 "$root/bench/c/document.py" ;;
    redis) set_program redis-server result.txt sh "$root/bench/c/redis.sh" ;;
    *) printf '%s\n' "$out/$workload" "$threads" "$scale" > command ;;
  esac
  # It brings its own malloc.
  [ "$workload" != churn-asan ] || library=
}

# Whether the result is that of the first time.
is_right() {
  [ -n "$result" ] || return 0
  expected=$out/expected/$workload
  [ -f "$expected" ] || cksum < "$result" > "$expected"
  cksum < "$result" | cmp -s "$expected" -
}

# What only this workload knows; programs write something else.
facts() {
  [ ! -x "$out/$workload" ] || cat out
}

rm -rf "$out/here"
mkdir -p "$out/here" "$out/expected"
cd "$out/here"
set_command
xargs -d '\n' env "LD_PRELOAD=$library" "${MEASURE:-$out/measure}" < command > numbers
if ! is_right; then
  echo "once.sh: $workload gives another result with $manager" >&2
  exit 1
fi
echo "$manager,$workload,$threads,$(cat numbers)$(facts)"
