#!/bin/sh
# What a release hands out: archives, Debian packages, the oldest C library, Free Pascal's own tools.
#
#   sh tests/packages/run.sh [PART...]
#
# PART is dist, debian, floor or fpmake; all without any. The last line is the sum of all tests,
# `N passed, N failed`.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/../.."
mkdir -p build/packages
passed=0
failed=0
[ $# -gt 0 ] || set -- fpmake floor dist debian
for part in "$@"; do
  log=build/packages/$part.log
  sh "tests/packages/$part.sh" > "$log" 2>&1 || true
  counts=$(sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
  counts=${counts:-0 1}
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
  printf '%-8s %3d passed %3d failed\n' "$part" "${counts% *}" "${counts#* }"
  [ "${counts#* }" -eq 0 ] || cat "$log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
