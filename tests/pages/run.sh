#!/bin/sh
# Opens the pages of profiles, leaks and black boxes in a browser without a window: headless Chromium.
#
#   sh tests/pages/run.sh
#
# Builds the program Shop, writes its pages, and runs check.cjs on them; fetches puppeteer-core, which
# drives the browser, and axe-core, which checks accessibility, by npm. Pictures of the pages are left in
# build/pages/pictures. The last line is the sum of all checks, `N passed, N failed`; exit code 1 when
# one failed.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
out=$PWD/build/pages
puppeteer=24.43.1
axe=4.14.1
mkdir -p "$out/units" "$out/node"

# The version of a fetched package, or nothing.
version_of() {
  sed -n 's/^ *"version": "\(.*\)",*$/\1/p' "$out/node/node_modules/$1/package.json" 2> /dev/null \
    | head -n 1
}
if [ "$(version_of puppeteer-core)" != "$puppeteer" ] || [ "$(version_of axe-core)" != "$axe" ]; then
  (fetch=$PWD/tools/fetch.sh && cd "$out/node" && sh "$fetch" npm install --no-save --no-audit \
    --no-fund --ignore-scripts --silent "puppeteer-core@$puppeteer" "axe-core@$axe")
fi

# compile PROGRAM FPC-OPTION...: with line numbers
compile() {
  fpc -l- -v0 -vew -vm4082,6018 -O1 -gl -Xs- -Fusrc '-Fusrc/*' "-FU$out/units" "-FE$out" "$@"
}
compile tests/pages/Shop.lpr -Futests/pages
compile tests/programs/WatchEvents.lpr
compile tests/lanemm/Planted.lpr
compile tests/programs/Boxed.lpr -O2

# write PROGRAM FOLDER SETTINGS ARGUMENT...: runs it; what it writes is in the folder
write() {
  program=$out/$1 folder=$out/$2 settings=$3
  shift 3
  rm -rf "$folder"
  mkdir "$folder"
  LANEMM="$settings,log=$folder/" "$program" "$@" > /dev/null 2> "$folder/stderr"
}
write Shop before profile,html,speedscope,rate=16K 10000
write Shop after profile,html,speedscope,growth,rate=16K 40000
write Shop lost profile,html,rate=4K,leaks,stacks,leaks:format=json 20000 leak
write Shop freed profile,html,rate=4K,leaks 1000 clean
write Shop leaks leaks,stacks,leaks:format=html,leaks:format=json 2000 leak
write Shop clean leaks,leaks:format=html 100 clean

# Events alone, without samples.
write WatchEvents contended contention,html sizes 300
write WatchEvents grown growth,html callers 5000

# The programs that are looked at do not end by themselves, nor while they are stopped.
planted= boxed=
# shellcheck disable=SC2086 # none or one
trap 'kill -KILL $planted $boxed 2> /dev/null || true' EXIT

# The leaks of a program that has stopped itself, found from outside, and what holds the memory of another.
make --no-print-directory lanemm
# outside FOLDER PLANTED COMMAND...: a command of lanemm for the process, as page and as JSON
outside() {
  folder=$out/$1
  rm -rf "$folder"
  mkdir "$folder"
  build/pages/Planted "$2" > "$folder/printed" &
  planted=$!
  until grep -q '^ready' "$folder/printed" && grep -q '^State:.*T' "/proc/$planted/status"; do
    kill -0 "$planted"
    sleep 0.1
  done
  command=$3
  shift 3
  build/lanemm "$command" "$planted" "$@" --html > "$folder/page.html"
  build/lanemm "$command" "$planted" "$@" --json > "$folder/page.json"
  kill -KILL "$planted"
  planted=
}
outside outside leak report leaks
outside held held why

# The black box of a program that is killed, with two seconds in it.
rm -rf "$out/box"
mkdir "$out/box"
LANEMM="blackbox=$out/box/,limit:soft=20M,event=limit:stderr" build/pages/Boxed 10000 4 > "$out/box/printed" \
  2> "$out/box/stderr" &
boxed=$!
until build/lanemm blackbox --json "$out/box/Boxed.$boxed.lanebox" 2> /dev/null \
  | grep -q '"threads":6,.*"requests".*"seconds":\[\[[^]]*\],\['; do
  kill -0 "$boxed"
  sleep 0.1
done
kill -KILL "$boxed"
wait "$boxed" || true # until then it may still run
box=$out/box/Boxed.$boxed.lanebox boxed=
build/lanemm blackbox --html "$box" > "$out/box/box.html"
build/lanemm blackbox --json "$box" > "$out/box/box.json"

rm -rf "$out/pictures"
mkdir "$out/pictures"
NODE_PATH=$out/node/node_modules node tests/pages/check.cjs "$out"
