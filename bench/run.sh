#!/bin/sh
# Builds the benchmark once per memory manager, runs a suite over all of them and prints
# the tables. See bench/README.md.
#
# Usage: bench/run.sh SUITE [RESULT]   run bench/suites/SUITE.txt, write bench/results/RESULT.csv
#        bench/run.sh build            only build; prints NAME=BINARY for each manager
#
# Suites: quick (about five minutes), full (about an hour, on a busy machine more than two), costs
# (what LaneMM's diagnoses cost, about five minutes), live (what it costs that a program can be read,
# a minute), stopped (threads that wait for a stopped one, about 20 minutes with ROUNDS=1), memory
# (memory by use, about 12 minutes for a round), mid (blocks above 32 KB, five minutes), blowup
# (memory after much has passed through a program, about 20 minutes), scale (from one thread to one for
# each processor, about ten minutes; made for machines of 16 to 128).
# RESULT is SUITE unless given.
#
# Environment:
#   MM=UNIT MM_PATH=DIRECTORY   adds the Pascal memory manager UNIT found in DIRECTORY
#   C_PEERS=DIRECTORY           adds rpmalloc 2 and gperftools of clones there: bench/peers.sh --help
#   PASCAL_PEERS=DIRECTORY      adds those of mORMot2 and FastMM4-AVX, whose sources lie in folders
#                               of these names there
#   EARLIER=REVISION            adds LaneMM of that revision, named LaneMM-REVISION
#   OTHER_FPC=COMPILER          adds the heap of another Free Pascal, named FPC-VERSION, and
#                               LaneMM built by it, LaneMM-VERSION
#   MANAGERS='NAME...'          only these managers, instead of those that the suite names
#   ROUNDS=5                    runs of each workload under each manager; 2 in scale
#   SHORT=1                     full in about 45 minutes: runs of more than 2 seconds are not repeated, and
#                               less memory is touched before each run
#   THREADS=N                   only rows with at most N threads; in scale the number of processors
#   BUSY=1                      measures also while other programs keep the machine busy; the results
#                               file says how busy it was in any case
#   SCALE=1                     factor of the operations; 0.01 shows quickly that all works
#
# While there is a file build/bench/pause, it waits between two workloads.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
. bench/lib.sh

out=build/bench
rounds=${ROUNDS:-5}
threads=${THREADS:-}
scale=${SCALE:-1}
wanted=${MANAGERS:-}
compiler=fpc
rebuild=-B

# compile PROGRAM OUTPUT UNITS FPC-OPTIONS...
compile() {
  program=$1 output=$2 units=$3
  shift 3
  mkdir -p "$units"
  "$compiler" $rebuild -l- -v0ewn -vm6018,6058 -O3 "$@" -Fibench/core -Fubench/core -Futests -Futools/replay -Fubench/workloads \
    -Fubench/runner -k"-L$out/lib" -FU"$units" -o"$output" "$program" >&2
}

# add NAME FPC-OPTIONS...: builds Bench with the manager that the options put in
add() {
  name=$1
  shift
  BENCH_MANAGER=$name compile bench/Bench.lpr "$out/$name/bench" "$out/$name/units" "$@"
  binaries="$binaries $name=$out/$name/bench"
}

# check_origin NAME FILES VERSION: the functions of the manager NAME must come from a library that matches
# FILES, and it must state VERSION if it states one: else the results would bear a wrong name
check_origin() {
  origin=$("$out/$1/bench" --origin)
  file=$(realpath "$(echo "$origin" | sed -n 1p)")
  stated=$(echo "$origin" | sed -n '2s/.* //;2s/-.*//p')
  # shellcheck disable=SC2254 # FILES is a pattern
  case $file in
    $2) case $3 in *"$stated"*) return ;; esac ;;
  esac
  say "$1 is not ${3:-$2}: its functions come from $file${stated:+, which states version $stated}"
  exit 1
}

# add_library NAME UNIT LIBRARY PACKAGE: a manager in C, if its library is installed
add_library() {
  is_wanted "$1" || return 0
  if ! ld -shared -o "$out/probe" -l"$3" 2>/dev/null; then
    say "Left out: $1; for it install $4"
    return
  fi
  add "$1" -Fa"$2" -Fubench/managers
  version=$(dpkg-query -W -f '${Package} ${Version}' "$4" 2>/dev/null) || version=
  check_origin "$1" "*/lib$3.so*" "$version"
  [ -z "$version" ] || add_source "$1 is $version"
}

# add_peer NAME UNIT FPC-OPTIONS...: a manager in C whose library bench/peers.sh has built
add_peer() {
  is_wanted "$1" && [ -e "$out/lib/lib$1.so" ] || return 0
  name=$1 unit=$2
  shift 2
  add "$name" -Fa"$unit" -Fubench/managers -k-rpath -k"\$ORIGIN/../lib" "$@"
  version=$(cat "$out/lib/$name.version")
  check_origin "$name" "$(pwd -P)/$out/lib/*" "$version"
  add_source "$name is $version"
}

# add_setting NAME OF VARIABLE=VALUE: the manager OF again, with a variable of the environment
add_setting() {
  is_wanted "$1" && [ -x "$out/$2/bench" ] || return 0
  rm -rf "${out:?}/$1"
  mkdir -p "$out/$1"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\n%s exec "${0%%/*}/../%s/bench" "$@"\n' "$3" "$2" > "$out/$1/bench"
  chmod +x "$out/$1/bench"
  binaries="$binaries $1=$out/$1/bench"
  add_source "$1 is $2 with $3"
}

build_c_managers() {
  # shellcheck disable=SC2086 # a list of names
  bench/peers.sh $wanted
  add_library glibc GlibcMM c libc6-dev
  add_peer jemalloc JemallocMM
  if [ -e "$out/lib/libtcmalloc.so" ]; then
    add_peer tcmalloc TcmallocMM -dOWN_LIBRARY
  else
    add_library tcmalloc TcmallocMM tcmalloc_minimal libgoogle-perftools-dev
  fi
  add_peer tcmalloc-google TcmallocGoogleMM
  add_library tbb TbbMM tbbmalloc libtbb-dev
  add_library mimalloc MimallocMM mimalloc libmimalloc-dev
  add_peer rpmalloc RpmallocMM
  add_peer snmalloc SnmallocMM
  add_peer mimalloc3 Mimalloc3MM
  add_setting mimalloc3-nothp mimalloc3 MIMALLOC_ALLOW_THP=0
}

# add_pascal_peer NAME UNIT FOLDER FPC-OPTIONS...: a manager in Pascal out of PASCAL_PEERS
add_pascal_peer() {
  folder=${PASCAL_PEERS:-}/$3
  is_wanted "$1" && [ -n "${PASCAL_PEERS:-}" ] && [ -d "$folder" ] || return 0
  name=$1 unit=$2
  add_source "$name is $3 of revision $(git -C "$folder" rev-parse --short HEAD 2>/dev/null || echo unknown)"
  shift 3
  add "$name" -Fa"$unit" -Fu"$folder" -Fi"$folder" -Fi"$folder/.." "$@"
}

# FastMM4-AVX is written in Delphi's dialect, so it is compiled on its own before. It makes locks at
# its start, so the thread library has to come before it.
add_fastmm4_avx() {
  folder=${PASCAL_PEERS:-}/FastMM4-AVX
  is_wanted fastmm4-avx && [ -n "${PASCAL_PEERS:-}" ] && [ -d "$folder" ] || return 0
  if [ ! -e "$folder/FastMM4_AVX512_Linux.o" ]; then
    say "Left out: fastmm4-avx; run Compile_FastMM4_AVX512_Linux.sh in its folder, which needs nasm"
    return
  fi
  rm -rf "$out/fastmm4-avx"
  mkdir -p "$out/fastmm4-avx/units"
  "$compiler" -l- -v0e -Mdelphi -O3 -FU"$out/fastmm4-avx/units" "$folder/FastMM4.pas" >&2
  echo 'unit FastMM4AvxMM; interface implementation uses cthreads, FastMM4; end.' \
    > "$out/fastmm4-avx/FastMM4AvxMM.pas"
  rebuild=
  add fastmm4-avx -FaFastMM4AvxMM -Fu"$out/fastmm4-avx" -Fo"$folder"
  rebuild=-B
  add_source "fastmm4-avx is FastMM4-AVX $(sed -n 's/^Version \([0-9.]*\).*/\1/p' "$folder/FastMM4.pas")"
}

# Each in the modes that its documentation names for programs with threads.
build_pascal_peers() {
  add_pascal_peer mormot mormot.core.fpcx64mm mORMot2/src/core
  add_pascal_peer mormot-server mormot.core.fpcx64mm mORMot2/src/core -dFPCMM_SERVER
  add_pascal_peer mormot-boost mormot.core.fpcx64mm mORMot2/src/core -dFPCMM_BOOST
  add_pascal_peer mormot-booster mormot.core.fpcx64mm mORMot2/src/core -dFPCMM_BOOSTER
  if grep -q FPCMM_MOONSHARD "${PASCAL_PEERS:-}/mORMot2/src/core/mormot.core.fpcx64mm.pas" 2>/dev/null; then
    add_pascal_peer mormot-moonshard mormot.core.fpcx64mm mORMot2/src/core -dFPCMM_BOOSTER -dFPCMM_MOONSHARD
  elif [ -n "${PASCAL_PEERS:-}" ] && is_wanted mormot-moonshard; then
    say 'Left out: mormot-moonshard; mORMot2 there has no FPCMM_MOONSHARD'
  fi
  add_fastmm4_avx
}

add_lanemm() { # NAME
  add "$1" -FaLaneMM,LaneMMTrim -Fubench/managers -Fusrc '-Fusrc/*'
}

# add_earlier: LaneMM as it was, under the benchmark as it is
add_earlier() {
  folder=$out/LaneMM-$EARLIER-sources
  rm -rf "$folder"
  mkdir -p "$folder"
  git archive "$EARLIER" src | tar -x -C "$folder"
  add "LaneMM-$EARLIER" -FaLaneMM,LaneMMTrim -Fubench/managers -Fu"$folder/src" -Fu"$folder/src/*"
  add_source "LaneMM-$EARLIER is revision $EARLIER"
}

# build_other: the heap of another compiler, and LaneMM, in the program that it compiles. -Fa needs
# units that are compiled already.
build_other() {
  compiler=$OTHER_FPC
  version=$("$compiler" -iV)
  add "FPC-$version"
  rebuild=
  rm -rf "$out/LaneMM-$version"
  compile bench/managers/LaneMMTrim.pas "$out/LaneMM-$version/LaneMMTrim.o" \
    "$out/LaneMM-$version/units" -Fusrc '-Fusrc/*'
  add_lanemm "LaneMM-$version"
  rebuild=-B
  add_source "Free Pascal $version of $("$compiler" -iD)"
  compiler=fpc
}

build() {
  mkdir -p "$out"
  if is_wanted FPC; then add FPC; fi
  if is_wanted cmem; then add cmem -Facmem; fi
  build_c_managers
  if [ -n "${MM:-}" ]; then
    add "$MM" -Fa"$MM" -Fu"${MM_PATH:-.}" -Fi"${MM_PATH:-.}"
  fi
  build_pascal_peers
  if [ -e src/LaneMM.pas ]; then
    add_lanemm LaneMM
  else
    say 'Left out: LaneMM; there is no src/LaneMM.pas'
  fi
  [ -z "${EARLIER:-}" ] || add_earlier
  [ -z "${OTHER_FPC:-}" ] || build_other
  [ -z "$wanted" ] || build_watched
}

# build_watched: LaneMM again for each of its diagnoses; only for suites that name them. Logs go to
# the folder of the manager.
build_watched() {
  for word in contention growth profile leaks stacks debug; do
    add_setting "LaneMM-$word" LaneMM "LANEMM=$word,log=$out/LaneMM-$word"
  done
  add_setting LaneMM-unseen LaneMM LANEMM=live=0
  add_setting LaneMM-guard LaneMM "LANEMM=guard=sample:16M,log=$out/LaneMM-guard"
}

# command_line ARGUMENTS: what the user typed, without the paths of this machine
command_line() {
  given MM MM_PATH=DIRECTORY C_PEERS=DIRECTORY PASCAL_PEERS=DIRECTORY EARLIER OTHER_FPC=COMPILER MANAGERS ROUNDS \
    SHORT THREADS BUSY SCALE
  printf 'bench/run.sh %s' "$*"
}

# limit_threads SUITE: the suite without rows of more than $threads threads
limit_threads() {
  awk -v most="$threads" '
    $1 == "mean" && $3 ~ /^[*][/][0-9]+$/ && substr($3, 3) + 0 > most { next }
    $1 != "row" && $1 != "once" { print; next }
    { line = ""
      for (i = 3; i <= NF; i++) if ($i + 0 <= most) line = line " " $i
      if (line != "") print $1, $2 line }' "$1"
}

run() {
  suite=bench/suites/$1.txt
  result=bench/results/${2:-$1}.csv
  if [ ! -e "$suite" ]; then
    say "There is no $suite"
    exit 2
  fi
  if [ "$1" = scale ]; then
    threads=${threads:-$(nproc)}
    rounds=${ROUNDS:-2}
  fi
  mkdir -p bench/results "$out"
  if [ -n "$threads" ]; then
    limit_threads "$suite" > "$out/suite.txt"
    suite=$out/suite.txt
  fi
  wanted=${MANAGERS:-$(sed -n 's/^managers  *//p' "$suite")}
  build
  compile bench/Runner.lpr "$out/runner" "$out/units"
  # shellcheck disable=SC2086
  "$out/runner" "$suite" "$result" "$rounds" "$scale" \
    "command: $(command_line "$@")$(revision src bench)$sources" $binaries
}

case ${1:-} in
  '') sh "$0" --help ;;
  build) build; for entry in $binaries; do echo "$entry"; done ;;
  *) run "$@" ;;
esac
