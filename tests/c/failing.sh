#!/bin/sh
# Lets system calls of the C library fail in real programs.
#
#   sh tests/c/failing.sh LIBRARY [--short] [PROGRAM...]
#
# Each kind of call fails once, the first time, the second time and so on up to the 200th; then from
# each of these on 50 times, and for ever. PROGRAM is one of starved, python, sqlite, perl, gcc, git;
# all if none is given. --short: not every N, but 1, 3, 7, 15 and so on.
#
# After one failure a program gives what it gives without. After more, it may say that memory has run
# out, and end with an error of its own; it never ends by a fault. The last line is `N passed, N
# failed`; exit code 1 when one failed.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

library=$(realpath "$1")
shift
is_short=no
if [ "${1-}" = --short ]; then
  is_short=yes
  shift
fi
cd "$(dirname "$0")/../.."
root=$PWD
out=$root/build/test-c
work=$out/failing-work
mkdir -p "$work"
for program in failing starved; do
  gcc -O1 -g -fno-builtin -Wall -Wextra -Ilib/include -o "$out/$program" "tests/c/$program.c" -lpthread
done
. tests/lib.sh
# Seconds after which a program hangs, and the highest number of a call that fails.
patience=200
most=200
forever=1000000000
no_memory=12
interrupted=4

# fault CALL FIRST NUMBER COMMAND...: runs a command, in a folder of its own, whose calls fail.
fault() {
  call=$1 first=$2 number=$3
  shift 3
  error=$no_memory
  [ "$call" != futex ] || error=$interrupted
  rm -rf "$work/here"
  mkdir "$work/here"
  (cd "$work/here" && timeout -k 5 $patience "$out/failing" "$work/count" "$call" "$first" "$number" \
    $error "$library" env "LD_PRELOAD=$library" "$@") > "$work/out" 2> "$work/err"
}

# Whether the last run ended by a fault, of itself or of a program that it started: by signal 4, 7, 8
# or 11, by 6 with a word of LaneMM, or because it hung.
has_crashed() {
  case $1 in
    124 | 132 | 135 | 136 | 137 | 139) return 0 ;;
    134) ! grep -q LaneMM "$work/err" || return 0 ;;
  esac
  grep -q 'Segmentation fault\|Bus error\|Illegal instruction' "$work/err" "$work/out"
}

# try NAME STRICT CALL FIRST NUMBER COMMAND...: counts one run. STRICT: same, the output is as ever;
# good, the exit code is 0; safe, no fault.
try() {
  name=$1 strict=$2
  shift 2
  code=0
  fault "$@" || code=$?
  if has_crashed $code || { [ "$strict" != safe ] && [ $code -ne 0 ]; } \
    || { [ "$strict" = same ] && ! cmp -s "$work/expected" "$work/out"; }; then
    fail "$name: $1 fails from $2 on, $3 times: exit code $code" "$work/err"
  else
    pass
  fi
}

# starved is told when the failures do not end.
arguments() {
  [ "$1" != starved ] || [ "$2" -ne $forever ] || echo for-ever
}

# test_program NAME COMMAND...: all kinds of calls.
test_program() {
  name=$1
  shift
  counts=
  for call in mmap munmap mprotect mremap madvise futex; do
    if ! fault $call 0 0 "$@"; then
      fail "$name: it does not even work when no call fails" "$work/err"
      return
    fi
    cp "$work/out" "$work/expected"
    count=$(cat "$work/count")
    counts="$counts $call $count"
    [ "$count" -le $most ] || count=$most
    n=1
    while [ "$n" -le "$count" ]; do
      try "$name" same $call $n 1 "$@"
      strict=safe
      [ "$name" != starved ] || strict=good
      try "$name" $strict $call $n 50 "$@"
      # shellcheck disable=SC2046 # none or one
      try "$name" $strict $call $n $forever "$@" $(arguments "$name" $forever)
      [ $is_short = no ] && n=$((n + 1)) || n=$((n * 2 + 1))
    done
  done
  echo "$name: calls:$counts"
}

awk 'BEGIN { for (i = 0; i < 300; i++) print "int f" i "(int a) { return a * " i " + " i % 7 "; }" }' \
  > "$work/many.c"
rm -rf "$work/repository"
mkdir "$work/repository"
(
  cd "$work/repository"
  git init -q .
  for n in 1 2 3 4 5; do
    seq $n $n 9000 > numbers
    git add numbers
    git -c user.name=n -c user.email=n -c commit.gpgsign=false commit -q -m "$n"
  done
)
for program in ${*:-starved python sqlite perl gcc git}; do
  case $program in
    starved) test_program starved "$out/starved" ;;
    python)
      test_program python /usr/bin/python3 -S -c '
a = {i: str(i) * (i % 50) for i in range(60000)}
b = bytes(1)
while len(b) < 9000000: b = b + b
del a
c = [bytes(70000) for i in range(100)]
print(len(b), len(c), sum(map(len, c)))' ;;
    sqlite)
      test_program sqlite sqlite3 :memory: 'create table t(a integer primary key, b text);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
        insert into t select i, hex(i * i) || zeroblob(20) from n;
        create index u on t(b); select count(*), sum(length(b)) from t where b > "3";
        select a from t order by b limit 3;' ;;
    perl)
      # shellcheck disable=SC2016 # perl expands
      test_program perl perl -e 'my %h; $h{$_ % 999} .= $_ for 1 .. 90000; my $s = "";
        $s .= $_ for sort values %h; undef %h; print length $s, "\n";' ;;
    gcc) test_program gcc gcc -O1 -S -o - "$work/many.c" ;;
    git) test_program git git -C "$work/repository" --no-pager log -p --stat ;;
    *) echo "failing.sh: what is $program? See --help" >&2; exit 1 ;;
  esac
done
sum
