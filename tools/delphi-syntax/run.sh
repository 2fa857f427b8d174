#!/bin/sh
# Parses all of src/ as Delphi would, with the Delphi parser of the SonarDelphi project: for Windows, 32
# and 64 bits, and Linux, each with Delphi 10.4 and 12. Nothing is compiled: that needs Delphi.
#
#   sh tools/delphi-syntax/run.sh
#
# LONG_ONCE=1: each system with one of the two.
# One line for each finding, see DelphiSyntax.java, and the sums of each target. A target without
# findings is a test that passed; so is each mistake of planted/ that is found. Needs Java and Maven, and
# at the first run Maven's central repository.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
tool=tools/delphi-syntax
targets='DCC32:34.0 DCC64:36.0 DCCLINUX64:34.0'
[ -n "${LONG_ONCE-}" ] || targets="$targets DCC64:34.0 DCC32:36.0 DCCLINUX64:36.0"
out=build/delphi-syntax
mkdir -p "$out"
if [ ! -e "$out/jars/done" ] || [ $tool/pom.xml -nt "$out/jars/done" ]; then
  rm -rf "$out/jars"
  sh tools/fetch.sh mvn -q -B -f $tool/pom.xml dependency:copy-dependencies -DoutputDirectory="$PWD/$out/jars" \
    > "$out/maven.log" 2>&1 || { cat "$out/maven.log"; exit 1; }
  touch "$out/jars/done"
fi

# Prints the findings in a folder of units, and the sums.
findings() { # SOURCES TARGET...
  java -cp "$out/jars/*" $tool/DelphiSyntax.java $tool/rtl "$@" || true
}

# The check itself: what is planted is found, and nothing else.
findings $tool/planted DCC64:36.0 | grep -v ' findings$' | sort > "$out/found.txt"
sort $tool/planted/expected.txt > "$out/expected.txt"
comm -23 "$out/expected.txt" "$out/found.txt" | sed 's/^/failed: planted, not found: /'
comm -13 "$out/expected.txt" "$out/found.txt" | sed 's/^/failed: found, not planted: /'
. tests/lib.sh
passed=$(comm -12 "$out/expected.txt" "$out/found.txt" | wc -l)
failed=$(comm -3 "$out/expected.txt" "$out/found.txt" | wc -l)

if sh $tool/package.sh | cmp - packages/delphi/LaneMM.dpk; then
  pass
else
  fail "packages/delphi/LaneMM.dpk is old, see $tool/package.sh"
fi

findings src $targets > "$out/src.txt"
cat "$out/src.txt"
for target in $targets; do
  if grep -q "^${target%:*} ${target#*:}: [0-9]* units, [1-9][0-9]* names, 0 findings$" \
    "$out/src.txt"; then
    pass
  else
    fail "$target"
  fi
done
sum
