#!/bin/sh
# Which of mimalloc-bench's security programs does a memory manager stop?
#
#   sh bench/security.sh DIRECTORY [RESULT]
#
# DIRECTORY is a checkout of mimalloc-bench; the programs of bench/security are compiled as its
# CMakeLists.txt does, below build/security. Each makes one mistake, and prints NOT_CAUGHT where it
# came through. It counts as caught when it does not, or when LaneMM reports the mistake, also at the
# end. Prints a line for each manager and setting; RESULT, bench/results/security.csv unless given,
# gets the same with the programs that came through. Other managers take part if they are installed.
set -eu

case ${1-} in
  --help | '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
suite=$(realpath "$1")/bench/security
cd "$(dirname "$0")/.."
. tools/preloads.sh
result=${2:-bench/results/security.csv}
out=build/security
patience=20
rm -rf "$out"
mkdir -p "$out/logs"

# As the suite's CMakeLists.txt: three sizes of each program in C.
flags="-w -Wno-free-nonheap-object -fno-inline -fno-builtin-inline -fno-inline-small-functions
  -fno-ipa-pure-const"
for source in "$suite"/*.c; do
  name=$(basename "$source" .c)
  for size in small=8 medium=4096 'large=256*1024'; do
    # shellcheck disable=SC2086 # a list of flags
    gcc $flags "-DALLOCATION_SIZE=${size#*=}" -include string.h -o "$out/${name}_${size%%=*}" "$source"
  done
done
for source in "$suite"/*.cc; do
  g++ -w -std=c++17 -fsized-deallocation -DALLOCATION_SIZE=4096 -o "$out/$(basename "$source" .cc)" \
    "$source"
done
sh lib/build.sh

{
  echo "# command: bench/security.sh DIRECTORY"
  echo "# revision: $(git rev-parse --short HEAD)"
  echo "# suite: mimalloc-bench $(git -C "$suite" rev-parse --short HEAD), $(gcc --version | head -n 1)"
  echo "manager,settings,caught,programs,missed"
} > "$result"

# Runs all programs on a library with settings.
try() {
  manager=$1 library=$2 settings=$3
  caught=0 count=0 missed=
  for program in "$out"/*; do
    [ -f "$program" ] || continue
    count=$((count + 1))
    said=$(LD_PRELOAD=$library LANEMM=$settings,log=$out/logs timeout -k 5 $patience "$program" 2>&1 \
      < /dev/null | tr -d '\0') || true
    case $said in
      *'LaneMM: process'*) caught=$((caught + 1)) ;;
      *NOT_CAUGHT*) missed="$missed ${program##*/}" ;;
      *) caught=$((caught + 1)) ;;
    esac
  done
  rm -rf "$out/logs"
  mkdir -p "$out/logs"
  printf '%-10s %-36s %3d of %d\n' "$manager" "$settings" "$caught" "$count"
  echo "$manager,\"$settings\",$caught,$count,${missed# }" >> "$result"
}

for settings in quiet abort hard hard,erase=free hard,erase=free,mixes debug debug,mixes,guard=pages \
  debug,mixes,guard=pages,fill=00; do
  try LaneMM "$PWD/build/lib/liblanemm.so" $settings
done
try glibc '' quiet
for peer in jemalloc=libjemalloc.so.2 mimalloc2=libmimalloc.so.2 tcmalloc=libtcmalloc.so.4; do
  path=$(find /usr/lib -name "${peer#*=}" | head -n 1)
  [ -z "$path" ] || try "${peer%%=*}" "$path" quiet
done
