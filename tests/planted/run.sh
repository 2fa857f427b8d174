#!/bin/sh
# Makes planted mistakes with the heap, one at a time, and says what finds them.
#
#   sh tests/planted/run.sh --check
#   sh tests/planted/run.sh [--costs=N] TOOL... > FILE.csv
#   sh tests/planted/run.sh --table FILE.csv [COSTS.csv]
#
# --check  LaneMM's debug mode, without guard pages and with them, finds all mistakes but those of
#          missed.txt, names a line of each, and is silent about the same work without mistakes. The
#          last line is `N passed, N failed`.
# TOOL     lanemm, guard (LaneMM with guard pages), heaptrc, fastmm (FastMM4-AVX's FullDebugMode, its
#          sources in FASTMM, in Pascal), asan (with LSan, in C), valgrind. A line of the file says of
#          a mistake whether the tool found it, and named a line of it: the one of the mistake, or the
#          one that allocated the block. The mistake `none` is the same work without any: found is a
#          false alarm.
# LANGUAGES  `pascal c` unless set
# --costs=N  instead: seconds of CPU for N turns of work without mistakes, less those of a run without
#          a turn, medians of five runs, in turn with the same program without a tool
# --table  the table of docs/debugging.md, from the file; with the output of --costs in COSTS.csv,
#          also how many times the CPU time of the same program each tool takes
#
# The programs are planted.cc (116 mistakes) and PlantedPascal.lpr (57). Output below build/planted.
set -eu

cd "$(dirname "$0")/../.."
. tools/preloads.sh
out=$PWD/build/planted
mkdir -p "$out"

# ------------------------------------------------------------------ the programs

flags='-std=c++17 -O1 -g -fno-builtin -fno-omit-frame-pointer -w'

# build_pascal NAME FPC-OPTION...
build_pascal() {
  name=$1
  shift
  mkdir -p "$out/$name.units"
  fpc -l- -v0 -O1 -gl -Xs- "$@" "-FU$out/$name.units" "-o$out/$name" \
    tests/planted/PlantedPascal.lpr > "$out/$name.log" 2>&1 || { cat "$out/$name.log" >&2; exit 1; }
}

# The program of a language for a tool.
build() { # LANGUAGE TOOL
  case $1-$2 in
    c-asan) g++ $flags -fsanitize=address -o "$out/c-asan" tests/planted/planted.cc -lpthread ;;
    c-lanemm | c-guard)
      sh lib/build.sh >&2
      g++ $flags -o "$out/c-$2" tests/planted/planted.cc -lpthread ;;
    c-*) g++ $flags -o "$out/c-$2" tests/planted/planted.cc -lpthread ;;
    pascal-lanemm | pascal-guard) build_pascal "$1-$2" -FaLaneMM -Fusrc '-Fusrc/*' ;;
    pascal-heaptrc) build_pascal "$1-$2" -gh ;;
    pascal-valgrind) build_pascal "$1-$2" -gv ;;
    pascal-fastmm)
      build_pascal "$1-$2" -Mdelphi -Facthreads,FastMM4 -dHAS_THREADS -dFullDebugMode -dDisableAVX512 \
        -dEnableMemoryLeakReporting -dLogErrorsToFile -dLogMemoryLeakDetailToFile \
        "-Fu$FASTMM" "-Fi$FASTMM" ;;
    pascal-*) build_pascal "$1-$2" ;;
  esac
}

# Whether a tool is for a language.
is_for() { # LANGUAGE TOOL
  case $1-$2 in
    c-heaptrc | c-fastmm | pascal-asan) return 1 ;;
  esac
}

source_of() { # LANGUAGE
  case $1 in
    c) echo tests/planted/planted.cc ;;
    pascal) echo tests/planted/PlantedPascal.lpr ;;
  esac
}

# ------------------------------------------------------------------ one run

# Runs a command under a tool: RUN LANGUAGE TOOL ARGUMENT...
run() {
  program=$out/$1-$2
  preload=
  [ "$1" != c ] || preload=$PWD/build/lib/liblanemm.so
  case $2 in
    lanemm) settings=debug,mixes,leaks,log=/dev/null ;;
    guard) settings=debug,mixes,leaks,guard=pages,log=/dev/null ;;
  esac
  tool=$2
  shift 2
  case $tool in
    lanemm | guard) timeout -k 5 200 env "LANEMM=$settings" "LD_PRELOAD=$preload" "$program" "$@" ;;
    fastmm)
      rm -f "$program"_MemoryManager_EventLog.txt
      timeout -k 5 200 "$program" "$@"
      cat "$program"_MemoryManager_EventLog.txt ;;
    heaptrc) timeout -k 5 200 env 'HEAPTRC=nohalt keepreleased' "$program" "$@" ;;
    valgrind) timeout -k 5 120 valgrind -q --leak-check=full --num-callers=30 "$program" "$@" ;;
    *) timeout -k 5 200 "$program" "$@" ;;
  esac
}

# What the first line of a report looks like.
words_of() { # TOOL
  case $1 in
    lanemm | guard) echo '^LaneMM: process' ;;
    asan) echo 'ERROR: [A-Za-z]*Sanitizer' ;;
    fastmm) echo 'FastMM has detected\|has leaked' ;;
    valgrind) echo '^==[0-9]*== [A-Z][a-z]' ;;
    heaptrc) echo '^Marked memory at\|^[1-9][0-9]* unfreed memory blocks\|^Wrong\|^Memory block' ;;
  esac
}

# Prints `yes` or `no`, whether the report names one of the marks, by number.
names_line() { # LANGUAGE REPORT MARK...
  source=$(source_of "$1")
  report=$2
  shift 2
  for mark in "$@"; do
    for line in $(grep -n "\(bad\|got\): $mark\( \*/\)\{0,1\}\$" "$source" | cut -d: -f1); do
      if grep -q "${source##*/}:$line\([^0-9]\|\$\)\|line $line of" "$report"; then
        echo yes
        return
      fi
    done
  done
  echo no
}

# Prints the line of the file for a mistake.
look() { # LANGUAGE TOOL MISTAKE KIND MARK...
  language=$1 tool=$2 mistake=$3 kind=$4
  shift 4
  report=$out/$language-$tool.$mistake.txt
  run "$language" "$tool" "$mistake" > "$report" 2>&1 || true
  if [ "$mistake" != none ] || grep -q '^done' "$report"; then
    found=no line=no
    if grep -q "$(words_of "$tool")" "$report"; then
      found=yes
      line=$(names_line "$language" "$report" "$@")
    fi
    echo "$language,$mistake,$kind,$tool,$found,$line"
  else
    echo "$language,none,$kind,$tool,ended,no"
  fi
}

look_at_all() { # LANGUAGE TOOL
  build "$1" "$2"
  look "$1" "$2" none none
  "$out/$1-$2" list > "$out/$1.list" 2> "$out/$1.noise"
  while read -r mistake kind marks; do
    # shellcheck disable=SC2086 # a list of words
    look "$1" "$2" "$mistake" "$kind" $marks < /dev/null
  done < "$out/$1.list"
}

# ------------------------------------------------------------------ all

check() {
  rows=$out/check.csv
  for language in ${LANGUAGES:-pascal c}; do
    look_at_all $language lanemm
    look_at_all $language guard
  done > "$rows"
  awk -F, -v languages=" ${LANGUAGES:-pascal c} " '
    NR == FNR {
      split($1, words, " ")
      if (index(languages, " " words[1] " ")) missed[$1] = 1
      next
    }
    { key = $1 " " $4 " " $2; expected = ($2 == "none" || key in missed) ? "no" : "yes"
      seen[key] = 1
      if ($5 == expected && ($5 == "no" || $6 == "yes")) passed++
      else { failed++; print "failed: " key ": found " $5 ", line " $6 } }
    $5 == "yes" { found[$1 "," $4]++ }
    END { for (key in missed) if (!(key in seen)) { failed++; print "failed: no mistake " key }
      for (key in found) print key ": " found[key] " found"
      print passed + 0 " passed, " failed + 0 " failed"; exit failed > 0 }' \
    tests/planted/missed.txt "$rows"
}

# The difference of two medians of five runs each, in turn: with all turns, and with none.
costs() { # LANGUAGE TOOL TURNS
  build "$1" "$2"
  build "$1" plain
  : > "$out/times"
  for round in 1 2 3 4 5; do
    for tool in plain "$2"; do
      for turns in 0 "$3"; do
        run=$(bash -c 'TIMEFORMAT="%U %S"; time "$@" > /dev/null 2>&1' x sh tests/planted/run.sh --run "$1" "$tool" \
          work "$turns" 2>&1)
        echo "$tool $turns $run" >> "$out/times"
      done
    done
  done
  awk -v row="$1,$2" -v turns="$3" '{ all[$1, $2, ++n[$1, $2]] = $3 + $4 }
    $1 != "plain" { other = $1 }
    function median(tool, turns,  i, j, swap) {
      for (i = 1; i <= 5; i++)
        for (j = i + 1; j <= 5; j++)
          if (all[tool, turns, j] < all[tool, turns, i]) {
            swap = all[tool, turns, i]; all[tool, turns, i] = all[tool, turns, j]
            all[tool, turns, j] = swap }
      return all[tool, turns, 3]
    }
    function price(tool) { return median(tool, turns) - median(tool, 0) }
    END {
      if (price("plain") <= 0) { print "too few turns to be timed: " turns > "/dev/stderr"; exit 1 }
      printf "%s,%.3f,%.3f\n", row, price("plain"), price(other) }' "$out/times"
}

# Comments in the files begin with #. A row of costs has four fields.
table() { # FILE [COSTS]
  awk -F, -v costs="${2:+yes}" '/^#/ || $1 == "language" { next }
    NF == 4 { cost[$1, $2] = $3 > 0 ? $4 / $3 : 0; next }
    $2 == "none" { alarms[$4] += $5 != "no"; next }
    { seen[$4] = 1; all[$1, $4]++; found[$1, $4] += $5 == "yes"; line[$1, $4] += $6 == "yes" }
    function price(language, tool) {
      if (!costs) return ""
      if (!((language, tool) in cost)) return " - |"
      return sprintf(cost[language, tool] < 9.95 ? " %.1f |" : " %.0f |", cost[language, tool]) }
    function cell(language, tool) {
      if (!((language, tool) in all)) return "- | - |" (costs ? " - |" : "")
      return found[language, tool] " of " all[language, tool] " | " line[language, tool] " |" \
        price(language, tool) }
    END {
      time = costs ? " times |" : ""
      print "| | found in Pascal | line |" time " found in C and C++ | line |" time " false alarms |"
      print "|---|---|---|---|---|---|" (costs ? "---|---|" : "")
      count = split("lanemm guard heaptrc fastmm asan valgrind", tools, " ")
      names["lanemm"] = "LaneMM, `debug,mixes,leaks`"; names["guard"] = "LaneMM, also `guard=pages`"
      names["fastmm"] = "FastMM4-AVX, `FullDebugMode`"
      names["heaptrc"] = "heaptrc"; names["asan"] = "ASan and LSan"; names["valgrind"] = "valgrind"
      for (i = 1; i <= count; i++) if (tools[i] in seen)
        print "| " names[tools[i]] " | " cell("pascal", tools[i]) " " cell("c", tools[i]) " " \
          alarms[tools[i]] + 0 " |" }' "$1" ${2:+"$2"}
}

case ${1-} in
  '' | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --check) check; exit ;;
  --run) shift; run "$@"; exit ;;
  --table) table "$2" "${3-}"; exit ;;
  --costs=*)
    turns=${1#*=}
    shift
    echo "language,tool,plain,seconds"
    for tool in "$@"; do
      for language in ${LANGUAGES:-pascal c}; do
        ! is_for $language "$tool" || costs $language "$tool" "$turns"
      done
    done
    exit ;;
esac

echo "language,mistake,kind,tool,found,line"
for tool in "$@"; do
  for language in ${LANGUAGES:-pascal c}; do
    ! is_for $language "$tool" || look_at_all $language "$tool"
  done
done
