#!/bin/sh
# Opens the profiles that LaneMM writes with the real pprof and compares what it finds with what the
# test programs are known to do.
#
#   sh tests/pprof.sh
#
# Builds pprof, a Go module, into build/pprof unless it is there; where there is no Go, says so and
# checks nothing. The last line is the sum of all
# checks, `N passed, N failed`; exit code 1 when one failed.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
out=build/pprof
module=github.com/google/pprof@v0.0.0-20230602150820-91b7bce49751
. tests/lib.sh
mkdir -p "$out/units"

if [ ! -x "$out/pprof" ]; then
  if ! sh tools/need.sh go; then
    skip 'the real pprof' 'it needs Go'
    echo '0 passed, 0 failed'
    exit
  fi
  GOBIN=$PWD/$out sh tools/fetch.sh go install "$module"
fi

# build PROGRAM: a program of tests/programs, with line numbers
build() {
  fpc -l- -v0 -vew -vm4082,6018 -O1 -gl -Xs- -Fusrc '-Fusrc/*' -FU"$out/units" -FE"$out" \
    "tests/programs/$1.lpr"
}

# profile WORDS PROGRAM ARGUMENTS...: runs it; its files go to a folder that is empty before
profile() {
  words=$1 program=$2
  shift 2
  rm -rf "$out/logs"
  mkdir "$out/logs"
  LANEMM="$words,pprof,folded,log=$out/logs/" "$out/$program" "$@" 2> "$out/$program.log"
}

# read_file KIND OPTIONS...: what pprof makes of the one file of that kind
read_file() {
  kind=$1
  shift
  PPROF_TMPDIR=$out "$out/pprof" "$@" "$out"/logs/*_MemoryManager_"$kind".*.pb.gz 2> "$out/pprof.log" \
    || cat "$out/pprof.log"
}

# total KIND VALUE: the sum over all samples
total() {
  read_file "$1" -top -unit=B -sample_index="$2" | sed -n 's/.* of \([0-9]*\)B* total$/\1/p'
}

# with_calls KIND VALUE ROUTINE: what the routine and those that it calls have of the value
with_calls() {
  read_file "$1" -top -unit=B -sample_index="$2" |
    awk -v name="$3" '$6 == name { sum = $4 + 0 } END { printf "%d\n", sum }'
}

# first KIND VALUE: the routine of the program that has most of the value
first() {
  read_file "$1" -top -cum -sample_index="$2" | sed -n 's/.* \(WATCHSAMPLES[^ ]*\)$/\1/p' | head -n 1
}

# first_itself KIND VALUE: the routine that has most of the value itself, without its calls
first_itself() {
  read_file "$1" -top -sample_index="$2" | awk '$1 == "flat" { getline; print $6 }'
}

# folded KIND PATTERN: the same of the profile's main value, out of the folded stacks
folded() {
  awk -v pattern="$2" '$0 ~ pattern { sum += $NF } END { printf "%d\n", sum }' \
    "$out"/logs/*_MemoryManager_"$1".*.folded
}

# of_class KIND VALUE CLASS: what samples with this class have of the value
of_class() {
  read_file "$1" -top -unit=B -sample_index="$2" -tagfocus="class=$3" |
    sed -n 's/^Showing nodes accounting for .*, \([0-9]*\)B* total$/\1/p; s/.*accounting for \([0-9]*\)B*,.*/\1/p' | head -n 1
}

# line_of PROGRAM MARK: the number of the line that is marked in the source
line_of() {
  grep -n "// planted: $2\$" "tests/programs/$1.lpr" | sed 's/:.*//'
}

build WatchSamples
build WatchEvents
build PlantedHeap

profile profile,rate=4K WatchSamples 1
same 'the values of the heap profile' \
  'alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt] peak_objects/count'\
' peak_space/bytes temporary_objects/count temporary_space/bytes slack_space/bytes fragment_space/bytes' \
  "$(read_file heap -raw | sed -n '/^alloc_objects/p')"
same 'the distance between samples' 'space bytes 4096' \
  "$(read_file heap -raw | sed -n 's/^PeriodType: //p; s/^Period: //p' | paste -s -d ' ')"
same 'all that was allocated' "$(folded heap ' ')" "$(total heap alloc_space)"
for routine in KEEP TURN CROSS LARGE TEXT; do
  same "allocated by $routine" "$(folded heap "WATCHSAMPLES[.]$routine[; ]")" \
    "$(with_calls heap alloc_space "WATCHSAMPLES.$routine")"
done
same 'who allocated most' WATCHSAMPLES.TURN "$(first heap alloc_space)"
same 'who allocated most itself' WATCHSAMPLES.TURN "$(first_itself heap alloc_space)"
same 'who holds most' WATCHSAMPLES.KEEP "$(first heap inuse_space)"
same 'nothing is held of what was freed at once' 0 "$(with_calls heap inuse_space WATCHSAMPLES.TURN)"
same 'the line' "WatchSamples.lpr:$(line_of WatchSamples keep)" \
  "$(read_file heap -top -lines -sample_index=inuse_space | sed -n 's/.* WATCHSAMPLES.KEEP //p')"

same 'in use at the peak' "$(folded heap-peak ' ')" "$(total heap peak_space)"
same 'temporary' "$(folded heap-temporary 'WATCHSAMPLES[.]TURN[; ]')" \
  "$(with_calls heap temporary_space WATCHSAMPLES.TURN)"

profile profile,rate=1 PlantedHeap classes
same 'objects of a class' 100 "$(of_class heap inuse_objects PlantedHeap.TThing)"
same 'all objects of a class' 50 "$(of_class heap alloc_objects PlantedHeap.TOther)"
profile profile,rate=1 PlantedHeap peak
same 'the peak of a routine' 1000000 "$(with_calls heap peak_space PLANTEDHEAP.BURST)"
same 'its temporary blocks' 100000 \
  "$(profile profile,rate=1 PlantedHeap temporary; with_calls heap temporary_space PLANTEDHEAP.TURN)"

profile contention WatchEvents frees 300
same 'blocks of another thread freed' 300 "$(with_calls contention contentions WATCHEVENTS.FREEBLOCK)"
profile growth WatchEvents growth 100000
same 'an array that grows' 99999 "$(with_calls growth reallocs WATCHEVENTS.PLANTGROWTH)"

sum
