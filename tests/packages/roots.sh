#!/bin/sh
# What someone does first, in a clean root of Debian with make and git and nothing else: make demo, then
# make test, each with its time, in a folder whose name has a space and a letter that is not ASCII.
#
#   sh tests/packages/roots.sh 12|13
#
# Needs the rights of root. The last line is the sum of the tests, `N passed, N failed`.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  12) suite=bookworm ;;
  13) suite=trixie ;;
  *) echo "roots.sh: there is no root of '${1-}'" >&2; exit 2 ;;
esac

cd "$(dirname "$0")/../.."
work=roots-$1
. tests/packages/promise.sh

clean=$work/root
folder='/Große Projekte/lanemm'

has_root() {
  make_root "$clean" $suite make,git && mkdir -p "$clean$folder" || return 1
  git ls-files -z --cached --others --exclude-standard | tar -cf - --null -T - | tar -C "$clean$folder" -xf - \
    && cp /etc/resolv.conf "$clean/etc"
}

# Shows what it says, and how long it took: wall and CPU time.
does() { # TARGET [VARIABLE=VALUE]
  in_root "$clean" bash -c "cd '$folder' && time make $* ${SEED:+SEED=$SEED}" 2>&1 | tee "$work/$1.log"
  ! grep -q '^make: \*\*\*' "$work/$1.log"
}

promise 'there is a clean root' has_root
# One round shows that it works; three make better numbers.
does demo ROUNDS=1 && grep -q 'LaneMM' "$work/demo.log" && status=0 || status=1
printed=$work/demo.log
report "make demo in a clean root of Debian $1" $status
does test || true
add "$work/test.log" 0 || true
rm -rf "$clean"
sum
