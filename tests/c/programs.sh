#!/bin/sh
# Runs real programs on the library; each must give what it gives without it.
#
#   sh tests/c/programs.sh LIBRARY [PROGRAM...]
#
# PROGRAM is one of python, gcc, sqlite, redis, git, perl, php, cmake, coreutils; all if none is given. A
# program that is missing and cannot be installed is skipped with a line that says so. The last line
# is `N passed, N failed`.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

library=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
root=$PWD
inputs=$root/tests/c/work
work=$root/build/test-c/programs
rm -rf "$work"
mkdir -p "$work"
. tests/lib.sh
printed=$work/log
cd "$work"
# Seconds after which a program hangs.
patience=400

# Whether the tools are there, maybe after they were installed.
need() {
  sh "$root/tools/need.sh" "$@" > need.log 2>&1 && return 0
  skip "$1" 'it is not there and cannot be installed'
  return 1
}

# Runs a command on the library.
on_library() {
  timeout -k 5 $patience env "LD_PRELOAD=$library" "$@"
}

# A command prints the same with the library and without it: promise, command. In a directory of
# its own each time.
same_output() {
  promise=$1
  shift
  code=0
  rm -rf here && mkdir here
  (cd here && timeout -k 5 $patience "$@") > expected.out 2> expected.err || code=$?
  rm -rf here && mkdir here
  library_code=0
  (cd here && on_library "$@") > library.out 2> library.err || library_code=$?
  [ $code -eq 0 ] && [ $library_code -eq 0 ] && [ -s expected.out ] \
    && cmp expected.out library.out && cmp expected.err library.err && code=0 || code=1
  report "$promise" $code
  [ $code -eq 0 ] || tail -n 5 library.err
}

# A command ends well on the library: promise, command.
ends_well() {
  promise=$1
  shift
  code=0
  on_library "$@" > library.out 2>&1 || code=$?
  report "$promise" $code
  [ $code -eq 0 ] || tail -n 5 library.out
}

test_python() {
  need python-tests || return 0
  python=/usr/bin/python3
  ends_well 'python3 runs on the library' $python -c \
    'import sys; sys.exit("liblanemm" not in open("/proc/self/maps").read())'
  same_output 'python3 works with sqlite3, json, threads and processes' $python "$inputs/work.py"
  for module in test_json test_thread test_threading test_gc test_pickle test_dict test_list \
    test_bytes test_fork1 test_ctypes; do
    ends_well "python3 passes its $module" $python -m test -q $module
  done
  ends_well 'python3 passes the pools and queues of its test_multiprocessing_fork' \
    $python -m test -q test_multiprocessing_fork -m '*Pool*' -m '*Queue*'
}

test_gcc() {
  need gcc g++ || return 0
  awk -f "$inputs/large.c.awk" > large.c
  awk -f "$inputs/large.cc.awk" > large.cc
  # shellcheck disable=SC2016 # the inner shell expands
  same_output 'gcc makes the same program of a large file' \
    sh -c 'gcc -O1 -c -o l.o ../large.c && sha256sum l.o && gcc -o l l.o && ./l'
  # shellcheck disable=SC2016
  same_output 'g++ makes the same program of a large file' \
    sh -c 'g++ -O1 -c -o l.o ../large.cc && sha256sum l.o && g++ -o l l.o && ./l'
}

test_sqlite() {
  need sqlite3 || return 0
  same_output 'sqlite3 answers a big script the same' \
    sh -c 'sqlite3 data.db < "$1"' sh "$inputs/tables.sql"
}

# The reply of the server on $port.
redis() {
  redis-cli -h 127.0.0.1 -p "$port" "$@"
}

redis_answers() { # not while it loads
  [ "$(redis ping 2> /dev/null)" = PONG ]
}

redis_start() {
  on_library redis-server --port "$port" --bind 127.0.0.1 --dir "$work" --save '' \
    --dbfilename dump.rdb --enable-debug-command yes "$@" > redis.log 2>&1 &
  server=$!
  await redis_answers
}

redis_stop() {
  redis shutdown nosave > /dev/null 2>&1 || true
  wait "$server" || true
}

# Waits until the background save that was asked for is over, and went well.
redis_has_saved() {
  redis info persistence > saved && grep -q 'rdb_bgsave_in_progress:0' saved \
    && grep -q 'rdb_last_bgsave_status:ok' saved
}
redis_saved() {
  await redis_has_saved
}

test_redis() {
  need redis || return 0
  port=$((20000 + $$ % 10000))
  rm -f dump.rdb
  if ! redis_start --io-threads 2; then
    report 'redis-server starts on the library' 1
    return 0
  fi
  code=0
  redis-benchmark -h 127.0.0.1 -p "$port" -q -n 30000 -r 20000 -d 200 -c 30 \
    -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset > benchmark.out 2>&1 &
  benchmark=$!
  sleep 1
  redis bgsave > /dev/null # while it is under load
  redis_saved || code=1
  wait $benchmark || code=1
  [ "$(tr '\r' '\n' < benchmark.out | grep -c 'requests per second')" -ge 10 ] || code=1
  report 'redis-server serves redis-benchmark during a background save' $code
  code=0
  redis bgsave > /dev/null && redis_saved || code=1
  before=$(redis debug digest)
  redis_stop
  redis_start || code=1
  [ -n "$before" ] && [ "$before" = "$(redis debug digest)" ] || code=1
  report 'redis-server loads what it saved in the background' $code
  redis_stop
}

test_git() {
  need git || return 0
  same_output 'git makes, packs, checks and clones the same repository' sh "$inputs/history.sh"
}

test_perl() {
  need perl || return 0
  same_output 'perl counts, matches, sorts and forks the same' perl "$inputs/words.pl"
}

# PHP opens its modules with RTLD_DEEPBIND, so they would look malloc up in libc first. By default it
# takes large pieces from malloc; USE_ZEND_ALLOC=0 makes each of its blocks one of malloc's.
test_php() {
  need php || return 0
  same_output 'php lists its modules' php -m
  same_output 'php works with arrays, objects, texts and files' php "$inputs/work.php"
  same_output 'php does so with a block of malloc for each of its own' \
    env USE_ZEND_ALLOC=0 php "$inputs/work.php"
}

test_cmake() {
  need cmake make || return 0
  mkdir -p project
  {
    echo 'cmake_minimum_required(VERSION 3.10)'
    echo 'project(p C)'
    for i in 1 2 3 4 5 6 7 8; do
      echo "int f$i(void) { return $i; }" > project/f$i.c
      echo "add_library(l$i STATIC f$i.c)"
    done
    echo 'add_executable(p main.c)'
    echo 'target_link_libraries(p l1 l2 l3 l4 l5 l6 l7 l8)'
    echo 'foreach(i RANGE 20000)'
    # shellcheck disable=SC2016 # cmake expands
    echo '  list(APPEND numbers "n${i}")'
    echo 'endforeach()'
    echo 'list(LENGTH numbers length)'
    # shellcheck disable=SC2016
    echo 'message(STATUS "${length} numbers")'
  } > project/CMakeLists.txt
  echo 'int f1(void), f8(void); int main(void) { return f1() + f8() - 9; }' > project/main.c
  # shellcheck disable=SC2016
  same_output 'cmake configures and builds a project' sh -c \
    'cmake -S ../project -B . > log && grep numbers log && make -j2 > make.log 2>&1 && ./p && echo ok'
}

test_coreutils() {
  # shellcheck disable=SC2016
  same_output 'sort, awk, sed, xz and tar give the same' sh -c '
    seq 1 200000 | awk "{ print \$1 * 7919 % 100003, \"x\" \$1 }" > lines
    sort --parallel=2 -k1n lines | sed -n "s/x\(.*\)7/\1/p" | cksum
    tar -cf lines.tar --sort=name --mtime=@0 --owner=0 --group=0 lines
    gzip -9 -n -c lines.tar | cksum
    bash -c "declare -A a; for i in {1..20000}; do a[\$((i % 999))]+=\$i; done; echo \${#a[*]} \${a[7]}" | cksum'
}

for program in ${*:-python gcc sqlite redis git perl php cmake coreutils}; do
  "test_$program"
done
sum
