#!/bin/sh
# What a release hands out: Free Pascal's own tools, archives, Debian packages, the pages of a new user.
#
#   sh tests/packages/run.sh [PART...]
#
# PART is fpmake, dist, debian, redis or pages, which need no network but the packages of Debian; all of them
# without any. Two more need more: floor (Debian 11), formats (PyPI and Go's proxy). The last line is the sum
# of all tests, `N passed, N failed`.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/../.."
mkdir -p build/packages
rm -f build/packages/root.tar # today's packages
passed=0
failed=0
[ $# -gt 0 ] || set -- fpmake dist debian redis pages
for part in "$@"; do
  log=build/packages/$part.log
  start=$(date +%s)
  sh "tests/packages/$part.sh" > "$log" 2>&1 || true
  counts=$(sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
  counts=${counts:-0 1}
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
  printf '%-8s %3d passed %3d failed, %d s\n' "$part" "${counts% *}" "${counts#* }" \
    $(($(date +%s) - start))
  [ "${counts#* }" -eq 0 ] || cat "$log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
