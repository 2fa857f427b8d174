#!/bin/sh
# Runs real programs on the library; each must give what it gives without it.
#
#   sh tests/c/programs.sh LIBRARY [PROGRAM...]
#
# PROGRAM is one of python, gcc, sqlite, redis, git, perl, cmake, coreutils; all if none is given. A
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
work=$root/build/test-c/programs
rm -rf "$work"
mkdir -p "$work"
cd "$work"
passed=0
failed=0
# Seconds after which a program hangs.
patience=150

# Whether the commands are there, or a Debian package of the name $1 brings them.
need() {
  package=$1
  shift
  for tool in "$@"; do
    command -v "$tool" > /dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y \
      --no-install-recommends "$package" > install.log 2>&1 < /dev/null || true
    if ! command -v "$tool" > /dev/null; then
      echo "$package: skipped: $tool is not there and cannot be installed"
      return 1
    fi
  done
}

# Runs a command on the library.
on_library() {
  timeout -k 5 $patience env "LD_PRELOAD=$library" "$@"
}

# Counts one test: its promise and the exit code of its check.
tell() {
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok: $1"
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
  fi
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
  tell "$promise" $code
  [ $code -eq 0 ] || tail -n 5 library.err
}

# A command ends well on the library: promise, command.
ends_well() {
  promise=$1
  shift
  code=0
  on_library "$@" > library.out 2>&1 || code=$?
  tell "$promise" $code
  [ $code -eq 0 ] || tail -n 5 library.out
}

test_python() {
  need python3 /usr/bin/python3 || return 0
  python=/usr/bin/python3
  ends_well 'python3 runs on the library' $python -c \
    'import sys; sys.exit("liblanemm" not in open("/proc/self/maps").read())'
  same_output 'python3 works with sqlite3, json, threads and processes' $python "$root/tests/c/work.py"
  version=$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if $python -c 'import test.test_json' 2> /dev/null || need "libpython$version-testsuite" true; then
    for module in test_json test_threading test_gc test_pickle; do
      if $python -c "import test.$module" 2> /dev/null; then
        ends_well "python3 passes its $module" $python -m test $module
      else
        echo "python3: skipped: its $module is not there"
      fi
    done
    if $python -c "import test.test_multiprocessing_fork" 2> /dev/null; then
      ends_well 'python3 passes the pools of its test_multiprocessing_fork' \
        $python -m test test_multiprocessing_fork -m '*Pool*' -m '*Queue*'
    fi
  fi
}

# A C file with many functions, and a C++ file with many templates.
generate_sources() {
  awk 'BEGIN {
    print "#include <stdio.h>"
    print "struct s { int a[8]; double b; struct s *next; };"
    for (i = 0; i < 3000; i++) {
      printf "static int f%d(struct s *p, int n) {\n  int sum = %d;\n", i, i
      print "  for (int k = 0; k < n; k++)\n    switch (p->a[k % 8] % 5) {"
      printf "      case 0: sum += k * %d; break;\n", i % 17
      print "      case 1: sum ^= p->a[0]; break;\n      case 2: sum -= (int)p->b; break;"
      print "      default: p = p->next ? p->next : p;\n    }\n  return sum;\n}"
    }
    print "int main(void) {\n  struct s s = {{1, 2, 3}, 4.5, 0};\n  long sum = 0;"
    for (i = 0; i < 3000; i++) printf "  sum += f%d(&s, %d);\n", i, i % 50
    print "  printf(\"%ld\\n\", sum);\n  return 0;\n}"
  }' > large.c
  awk 'BEGIN {
    print "#include <algorithm>\n#include <functional>\n#include <iostream>\n#include <map>"
    print "#include <regex>\n#include <string>\n#include <unordered_map>\n#include <vector>"
    print "template <int N> struct t { std::map<int, std::vector<std::string>> m; int get(int k) {"
    print "  m[k].push_back(std::to_string(N)); return (int)m[k].size() + t<N - 1>().get(k); } };"
    print "template <> struct t<0> { int get(int k) { return k; } };"
    for (i = 0; i < 120; i++)
      printf "int g%d(int k) { std::unordered_map<std::string, int> u; u[\"%d\"] = k; " \
        "return t<%d>().get(k) + u[\"%d\"]; }\n", i, i, i % 40 + 1, i
    print "int main() { long sum = 0;"
    for (i = 0; i < 120; i++) printf "  sum += g%d(%d);\n", i, i
    print "  std::cout << sum << \"\\n\"; }"
  }' > large.cc
}

test_gcc() {
  need g++ gcc g++ || return 0
  generate_sources
  # shellcheck disable=SC2016 # the inner shell expands
  same_output 'gcc makes the same program of a large file' \
    sh -c 'gcc -O1 -c -o l.o ../large.c && sha256sum l.o && gcc -o l l.o && ./l'
  # shellcheck disable=SC2016
  same_output 'g++ makes the same program of a large file' \
    sh -c 'g++ -O1 -c -o l.o ../large.cc && sha256sum l.o && g++ -o l l.o && ./l'
}

test_sqlite() {
  need sqlite3 sqlite3 || return 0
  cat > script.sql << 'END'
create table t (id integer primary key, name text, value real, data blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
  insert into t select i, 'name ' || (i * 7919 % 10007), i * 0.37, zeroblob(i % 100) from n;
create index byname on t (name, value);
select count(*), sum(length(data)), round(sum(value), 2) from t;
select name, count(*), round(avg(value), 3) from t group by name order by name limit 500;
select a.name, count(*) from t a join t b on a.name = b.name and a.id < b.id
  group by a.name order by 2 desc, 1 limit 20;
update t set name = upper(name) || replace(name, 'a', 'bb') where id % 3 = 0;
delete from t where id % 5 = 0;
select group_concat(name, ',') from (select distinct name from t order by name);
select json_group_array(json_object('n', name, 'v', value)) from (select * from t limit 20000);
vacuum;
pragma integrity_check;
select count(*), round(total(value), 2) from t where name like '%99%';
END
  same_output 'sqlite3 answers a big script the same' \
    sh -c 'sqlite3 data.db < ../script.sql'
}

# The reply of the server on $port.
redis() {
  redis-cli -h 127.0.0.1 -p "$port" "$@"
}

redis_start() {
  on_library redis-server --port "$port" --bind 127.0.0.1 --dir "$work" --save '' \
    --dbfilename dump.rdb --enable-debug-command yes "$@" > redis.log 2>&1 &
  server=$!
  tries=0
  until redis ping > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || return 1
    sleep 0.1
  done
}

redis_stop() {
  redis shutdown nosave > /dev/null 2>&1 || true
  wait "$server" || true
}

# Waits until the background save that was asked for is over, and says whether it went well.
redis_saved() {
  tries=0
  while redis info persistence | grep -q 'rdb_bgsave_in_progress:1'; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || return 1
    sleep 0.1
  done
  redis info persistence | grep -q 'rdb_last_bgsave_status:ok'
}

test_redis() {
  need redis-server redis-server || return 0
  need redis-tools redis-benchmark redis-cli || return 0
  port=$((20000 + $$ % 10000))
  rm -f dump.rdb
  if ! redis_start --io-threads 2; then
    tell 'redis-server starts on the library' 1
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
  tell 'redis-server serves redis-benchmark during a background save' $code
  code=0
  redis bgsave > /dev/null && redis_saved || code=1
  before=$(redis debug digest)
  redis_stop
  redis_start || code=1
  [ -n "$before" ] && [ "$before" = "$(redis debug digest)" ] || code=1
  tell 'redis-server loads what it saved in the background' $code
  redis_stop
}

test_git() {
  need git git || return 0
  cat > history.sh << 'END'
set -e
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git init -q -b main one
cd one
for commit in 1 2 3 4 5 6 7 8 9 10; do
  awk -v c=$commit 'BEGIN {
    for (f = 0; f < 300; f++) {
      name = "file" f % 300 ".txt"
      for (l = 0; l < 60; l++) print l * f % (c + 2), "line", l, "of", f > name
      close(name)
    }
  }'
  git add -A
  git commit -q -m "commit $commit"
done
git checkout -q -b side HEAD~3
echo side > side.txt
git add -A
git commit -q -m side
git checkout -q main
git merge -q -m merge side
git gc -q --aggressive --prune=now
git fsck --full --strict 2>&1
git log --stat --format='%H %T %s'
git blame file7.txt | tail -n 3
git grep -c 'line 9 of' | sort | tail -n 3
cd ..
git clone -q one two
git -C two rev-parse HEAD
git -C two diff HEAD~9 --stat | tail -n 1
END
  same_output 'git makes, packs, checks and clones the same repository' sh ../history.sh
}

test_perl() {
  need perl perl || return 0
  cat > words.pl << 'END'
use strict; use warnings;
my (%count, @all); my $seed = 42;
for my $i (1 .. 300000) {
  $seed = ($seed * 1103515245 + 12345) % 2147483648;
  my $word = join '', map { chr(97 + ($seed >> $_) % 26) } 3, 7, 11, 15;
  $count{$word}{length}++; $count{$word}{list} .= "$i,";
  push @all, $word if $i % 10 == 0;
}
my $text = join ' ', @all; my $hits = () = $text =~ /\b([aeiou])\w*?\1\b/g;
(my $other = $text) =~ s/(\w)(\w)/$2$1/g;
print "$hits ", length $other, "\n";
print "$_ $count{$_}{length} ", length $count{$_}{list}, "\n"
  for (sort { $count{$b}{length} <=> $count{$a}{length} || $a cmp $b } keys %count)[0 .. 99];
my @sorted = sort map { scalar reverse } @all; print "@sorted[0 .. 20]\n";
my $pid = fork // die; if (!$pid) { my @child = map { $_ x 3 } @all; exit(@child == @all ? 0 : 1) }
waitpid $pid, 0; print "child $?\n";
END
  same_output 'perl counts, matches, sorts and forks the same' perl ../words.pl
}

test_cmake() {
  need cmake cmake || return 0
  need make make || return 0
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

for program in ${*:-python gcc sqlite redis git perl cmake coreutils}; do
  "test_$program"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
