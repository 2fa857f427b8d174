#!/bin/sh
# What a release hands out: Free Pascal's own tools, archives, Debian packages, the pages of a new user.
#
#   sh tests/packages/run.sh [PART...]
#
# PART is fpmake, dist, debian, redis or pages, which need no network but the packages of Debian; all of them
# without any. Three more need more: floor (Debian 11), musl (sources of Debian, two minutes), formats (PyPI and
# Go's proxy). The last line is the sum of all tests, `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
mkdir -p build/packages
rm -f build/packages/root.tar # today's packages
. tests/lib.sh
[ $# -gt 0 ] || set -- fpmake dist debian redis pages
for part in "$@"; do
  log=build/packages/$part.log
  start=$(date +%s)
  code=0
  sh "tests/packages/$part.sh" > "$log" 2>&1 || code=$?
  add "$log" $code || cat "$log"
  printf '%-8s %3d passed %3d failed, %d s\n' "$part" "${added% *}" "${added#* }" $(($(date +%s) - start))
done
sum
