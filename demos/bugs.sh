#!/bin/sh
# Runs ten planted memory errors, each under heaptrc and under LaneMM, and prints which of the two
# reports each one; see --help.
set -eu

unset CDPATH
demos=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$(dirname "$demos")/build}/bugs
source=${LANEMM_SRC:-$(dirname "$demos")/src}
fpc=${FPC:-fpc}
lines=-gl
[ "$("$fpc" -iTP)" != i386 ] || lines=-glw2 # -gl alone writes another format there
program=PlantedBugs
text=$demos/$program/$program.lpr
count=${COUNT:-1000000}

usage() {
  cat <<'END'
bugs.sh        builds PlantedBugs plain, with heaptrc (fpc -gh) and with LaneMM, runs each
               error under both and prints a table in Markdown: found, and whether the
               report names the marked line; then the cost of both
bugs.sh --help prints this text

Environment:
  COUNT       blocks of the run that measures the cost, 1,000,000
  LANEMM_SRC  folder of the unit LaneMM, the src beside demos
  FPC, RUN    another compiler, and the command that runs its programs
  OUT         folder for what is built, build
All output is below build/bugs, including the reports: build/bugs/KIND/BUG.txt.
END
}

# build KIND FPC-OPTIONS...
build() {
  dir=$out/$1
  shift
  rm -rf "$dir"
  mkdir -p "$dir/units"
  "$fpc" -O2 "$lines" -Xs- -v0 "$@" "-Fu$source" "-Fu$source/*" "-Fu$demos/common" "-FE$dir" "-FU$dir/units" "$text" \
    >"$dir/build.log" 2>&1 || { cat "$dir/build.log" >&2; exit 1; }
}

# run KIND BUG: writes the report of that error
run() {
  report=$out/$1/$2.txt
  rm -f "$report"
  case $1 in
    heaptrc) setting="HEAPTRC=nohalt keepreleased log=$report" ;;
    lanemm) setting="LANEMM=debug,leaks,log=$report" ;;
  esac
  env "$setting" ${RUN-} "$out/$1/$program" --bug="$2" >"$out/$1/$2.output" 2>&1 || true
  touch "$report"
}

# verdict KIND BUG: `-`, `found`, or `found, line` when the report names the marked line.
# The run-time library's message about an exception is not a report.
verdict() {
  report=$out/$1/$2.txt
  line=$(grep -n "planted: $2\$" "$text" | cut -d: -f1)
  case $1-$2 in
    heaptrc-leaked*) words='^[1-9][0-9]* unfreed memory blocks' ;;
    heaptrc-*) words='^Marked memory at' ;;
    lanemm-*) words='^LaneMM' ;;
  esac
  if ! grep -q "$words" "$report"; then
    echo -
  elif grep -q "line $line of\|$program.lpr:$line\$" "$report"; then
    echo 'found, line'
  else
    echo found
  fi
}

# cost KIND [VARIABLE=VALUE]: user and system seconds, and MB, of a run without an error
cost() {
  kind=$1
  shift
  env "$@" /usr/bin/time -f '%U %S %M' -o "$out/time" ${RUN-} "$out/$kind/$program" --work="$count" \
    >/dev/null 2>&1
  awk '{ printf "%.2f s, %.0f MB\n", $1 + $2, $3 / 1024 }' "$out/time"
}

case ${1:-} in
  '') ;;
  *) usage; exit ;;
esac

build plain
build heaptrc -gh
build lanemm -FaLaneMM
echo '| bug | heaptrc | LaneMM |'
echo '|---|---|---|'
for bug in $(${RUN-} "$out/plain/$program"); do
  run heaptrc "$bug"
  run lanemm "$bug"
  echo "| $bug | $(verdict heaptrc "$bug") | $(verdict lanemm "$bug") |"
done
echo
echo "| $count blocks allocated and freed | CPU time, peak memory |"
echo '|---|---|'
echo "| Free Pascal's heap | $(cost plain) |"
echo "| heaptrc | $(cost heaptrc) |"
echo "| heaptrc, keepreleased | $(cost heaptrc HEAPTRC=keepreleased) |"
echo "| LaneMM | $(cost lanemm) |"
echo "| LaneMM, leaks | $(cost lanemm LANEMM=leaks) |"
echo "| LaneMM, debug | $(cost lanemm LANEMM=debug) |"
