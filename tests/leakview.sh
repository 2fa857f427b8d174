#!/bin/sh
# Reads the leaks that LaneMM writes as heaptrc does with the parser of Lazarus' leak view, and
# compares what it finds with what a test program is known to leak.
#
#   sh tests/leakview.sh
#
# Fetches the sources of Lazarus, a Debian package, into build/leakview unless they are there; where
# they cannot be had, says so and checks nothing. The last line is the sum of all checks,
# `N passed, N failed`; exit code 1 when one failed.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
out=build/leakview
. tests/lib.sh
mkdir -p "$out/units" "$out/package"

# fetch: the package that `lazarus-src` stands for, unpacked
fetch() {
  command -v apt-get > /dev/null && command -v dpkg-deb > /dev/null || return 1
  package=$(apt-cache depends lazarus-src | sed -n 's/.*Depends: \(lazarus-src-[0-9.]*\)$/\1/p')
  [ -n "$package" ] || return 1
  (cd "$out/package" && apt-get -o Acquire::Retries=5 download "$package" > fetch.log 2>&1) || return 1
  dpkg-deb -x "$out"/package/lazarus-src-*.deb "$out/package"
}

parts=$(echo "$out"/package/usr/lib/lazarus/*/components)
if [ ! -d "$parts/leakview" ]; then
  if ! fetch; then
    skip "Lazarus' leak view" 'the sources of Lazarus cannot be had'
    echo '0 passed, 0 failed'
    exit
  fi
  parts=$(echo "$out"/package/usr/lib/lazarus/*/components)
fi

if [ ! -x "$out/ReadLeaks" ]; then
  fpc -l- -v0 -ve -Futests/leakview "-Fu$parts/leakview" "-Fu$parts/lazutils" "-Fi$parts/lazutils" \
    "-Fu$parts/codetools" "-Fi$parts/codetools" "-Fu$parts/ideintf" "-Fu$parts/debuggerintf" \
    "-Fu$parts/lazdebuggers/lazdebuggerlldb" "-FE$out" "-FU$out/units" tests/leakview/ReadLeaks.lpr
fi
fpc -l- -v0 -vew -vm4082,6018 -O1 -gl -Xs- -Fusrc '-Fusrc/*' -FU"$out/units" -FE"$out" tests/programs/Leaking.lpr

# leak WHAT: a file of heaptrc's form, read by the leak view, in $out/read
leak() {
  rm -rf "$out/logs"
  mkdir "$out/logs"
  LANEMM="debug,leaks,leaks:format=heaptrc,log=$out/logs/" "$out/Leaking" "$1" 2> "$out/Leaking.log"
  "$out/ReadLeaks" "$out"/logs/*.trc > "$out/read"
}

# value NAME: what stands behind it
value() {
  sed -n "s/^$1 //p" "$out/read"
}

# lines: how many stacks go through the marked line
lines() {
  number=$(grep -n "// planted: $1\$" tests/programs/Leaking.lpr | sed 's/:.*//')
  grep -c "^frame Leaking.lpr $number\$" "$out/read" || true
}

leak objects
same 'blocks' 14 "$(value blocks)"
same 'bytes' 304 "$(value bytes)"
same 'a stack for each block' 14 "$(value traces)"
same 'sizes of the blocks' 12 "$(grep -c '^block 24 ' "$out/read")"
same 'stacks that go through the line' 12 "$(lines leak)"
same 'blocks without a line' 0 \
  "$(awk '/^block/ { if (NR > 4 && !found) none++; found = 0 } /^frame Leaking.lpr/ { found = 1 }
    END { if (!found) none++; print none + 0 }' "$out/read")"

leak nothing
same 'blocks of a program without leaks' 0 "$(value blocks)"
same 'stacks of a program without leaks' 0 "$(value traces)"

sum
