#!/bin/sh
# Free Pascal's own test suite with LaneMM: each program that can run is compiled plainly and with LaneMM, runs
# both ways, and its exit code and output are compared.
#
#   sh tests/suite/run.sh [--modes "MODE..."] [--options "OPTION..."] [--sample | FILE...]
#
# MODE is `-` for no settings (the default), settings of LANEMM, or `lean` for LaneMMLean. OPTIONs are options
# of the compiler for all programs. FILEs are programs or folders of the suite; without any: tbs, test and
# webtbs. --sample takes the programs of sample.txt. JOBS=N runs N at a time. SOURCE is a source package of
# Free Pascal, instead of the one that tools/compiler-source.sh fetches.
#
# differs.txt has the programs that cannot be the same, with the cause of each. build/suite/results has a line
# for each program and mode, build/suite/differ both outputs where they differ, build/suite/logs what LaneMM
# reported. Ends with `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
here=$(pwd)/tests/suite
work=$(pwd)/build/suite
modes=- options= sample=
while :; do
  case ${1-} in
    --modes) modes=$2; shift 2 ;;
    --options) options=$2; shift 2 ;;
    --sample) sample=1; shift ;;
    *) break ;;
  esac
done
source=$(sh tools/compiler-source.sh ${SOURCE+"$SOURCE"})/../tests
installed=$(sh tools/compiler-source.sh --units)
gcc=$(dirname "$(gcc -print-libgcc-file-name)")
units="-Fu$installed/rtl -Fu$installed/* -Fl$gcc -Fl$gcc/../../../x86_64-linux-gnu"
lanemm=$work/units
objects=$work/objects
rm -rf "$work"
mkdir -p "$objects" "$lanemm"
: > "$work/results"
for unit in LaneMM LaneMMLean; do
  fpc -l- -v0 -vew -vm4082,6018 -O3 -Cg -Fusrc '-Fusrc/*' "-FU$lanemm" "src/$unit.pas"
done
cd "$source"
# What several programs use.
set -f
for unit in erroru popuperr; do
  # shellcheck disable=SC2086 # a list of options
  fpc -n -l- -v0 $units "-FE$objects" "tstunits/$unit.pp" > "$work/messages"
done
set +f
for code in test/cg/obj/*.c test/cg/obj/*.cpp; do
  name=${code##*/}
  gcc -c -w -o "$objects/${name%.*}.o" "$code"
done

if [ -n "$sample" ]; then
  # shellcheck disable=SC2046 # a list of files
  set -- $(cat "$here/sample.txt")
elif [ $# -eq 0 ]; then
  set -- tbs test webtbs
fi
find "$@" -name 't*.pp' | sort | xargs awk -v "version=$(fpc -iV)" -f "$here/plan.awk" > "$work/plan"
echo "$(wc -l < "$work/plan") programs, of which are left out:"
grep -v '^run|\|^library|' "$work/plan" | cut -d '|' -f 1 | sort | uniq -c || true

# Libraries that programs of the same folder load, each with LaneMM of its own where the program has it.
grep '^library|' "$work/plan" | cut -d '|' -f 2 | sed 's|/[^/]*$||' | sort -u | while read -r folder; do
  for library in $(grep -lisE '^ *library ' "$folder"/t*.pp); do
    for kind in plain lanemm; do
      into=$work/libraries/$folder/$kind
      own=
      [ $kind = plain ] || own="-FaLaneMM -Fu$lanemm"
      mkdir -p "$into"
      set -f
      # shellcheck disable=SC2086 # lists of options
      fpc -n -l- -v0 $units $own "-Fu$objects" "-Fl$into" "-FE$into" "$library" >> "$into.messages" 2>&1 \
        || true
      set +f
    done
  done
done

export source work objects units lanemm options modes
grep '^run|\|^library|' "$work/plan" | tr '\n' '\0' \
  | xargs -0 -n 8 -P "${JOBS-2}" nice -n 5 sh "$here/program.sh"
sort "$work/results" | cut -d '|' -f 1,2 | uniq -c | sed 's/|/: /'
awk -F '|' '
  FNR == NR { cause[$1 "|" $2 "|" $3] = $4; next }
  $1 == "plain" { next }
  $2 ~ /^equal/ { passed++; next }
  { known = cause[$1 "|" $2 "|" $3]; if (known == "") known = cause["*|" $2 "|" $3] }
  known != "" { listed[known]++; next }
  { failed++; print "failed: " $0 }
  END {
    for (known in listed) print listed[known] " as listed: " known
    if (passed + failed == 0)
      failed = 1
    print passed + 0 " passed, " failed + 0 " failed"
    exit failed > 0
  }' "$here/differs.txt" "$work/results"
