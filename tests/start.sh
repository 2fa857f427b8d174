#!/bin/sh
# What LaneMM adds to hello world: bytes of its file, resident memory, system calls at its start.
#
#   sh tests/start.sh [--sizes]
#
# --sizes  of files alone, without a test, also by another compiler, FPC=...
#
# Prints the table of docs/which-manager.md, then whether the promises of that page are kept. The file is
# stripped and without unused code (-Xs -XX -CX); memory is that of the program while it waits for input, with
# the pages of its file. Ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
out=$PWD/build/start
. tests/lib.sh
printed=$out/log
rm -rf "$out"
mkdir -p "$out/units"
mkfifo "$out/in"

# Builds hello world with the options; prints its file's name.
hello() { # NAME OPTION...
  file=$out/$1
  shift
  "${FPC:-fpc}" -l- -v0 -vew -vm4082,6018 -O3 -Xs -XX -CX -Fusrc "$@" "-FU$out/units" "-o$file.built" tests/programs/Hello.lpr >&2 &&
    cp "$file.built" "$file" && echo "$file" # as an installed file, of which the system maps larger parts
}
bytes() { wc -c < "$1" | tr -d ' '; }
# The system calls up to the end of the program.
calls() {
  env -i strace -qq -o "$out/calls" "$1" > "$out/said"
  wc -l < "$out/calls"
}
# The KB in memory of the program while it waits, and which of them are no pages of a file.
resident() {
  "$1" < "$out/in" > "$out/said" &
  pid=$!
  exec 9> "$out/in"
  until grep -q ready "$out/said"; do sleep 0.05; done
  awk '$1 == "Rss:" { all = $2 } $1 == "Anonymous:" { own = $2 } END { print all, own }' /proc/$pid/smaps_rollup
  exec 9>&-
  wait $pid
}

if [ "${1-}" = --sizes ]; then
  base=0
  for door in WITHOUT LEAN FULL; do
    size=$(bytes "$(hello $door -d$door)") || exit 2
    [ $door != WITHOUT ] || base=$size
    printf '%s %s %s\n' $door "$size" $((size - base))
  done
  exit
fi

echo '| hello world | file, bytes | more | resident, KB | more | its own | system calls | more | with threads |'
echo '|---|---|---|---|---|---|---|---|---|'
row() { # NAME TITLE OPTION...
  name=$1 title=$2
  shift 2
  file=$(hello "$name" "$@") && waiting=$(hello "$name-waits" -dWAITS "$@") && threads=$(hello "$name-threads" -dTHREADS "$@") ||
    exit 2
  memory=$(resident "$waiting")
  own=${memory#* } memory=${memory% *} size=$(bytes "$file") made=$(calls "$file") of_threads=$(calls "$threads")
  [ "$name" != without ] || first_size=$size first_memory=$memory first_own=$own first_made=$made first_of_threads=$of_threads
  more_size=$((size - first_size)) more_memory=$((memory - first_memory)) more_made=$((made - first_made))
  more_own=$((own - first_own))
  more_of_threads=$((of_threads - first_of_threads))
  echo "| $title | $size | $more_size | $memory | $more_memory | $more_own | $made | $more_made | $more_of_threads |"
}
row without 'without LaneMM'
row lean 'LaneMMLean' -dLEAN
promise 'LaneMMLean adds at most 70 KB to the file' test $more_size -le $((70 * 1024))
# With the pages of the file it varies, by what the system maps of it at once.
promise 'LaneMMLean adds at most 32 KB of memory that is no file' test $more_own -le 32
promise 'LaneMMLean makes at most 25 system calls at the start' test $more_made -le 25
promise 'LaneMMLean makes at most 43 in a program with threads' test $more_of_threads -le 43
row full 'LaneMM' -dFULL
promise 'LaneMM makes at most 25 system calls at the start' test $more_made -le 25
promise 'LaneMM makes at most 43 in a program with threads' test $more_of_threads -le 43
sum
