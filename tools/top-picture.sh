#!/bin/sh
# Makes docs/pictures/top.png anew: lanemm top on demos/Server under load, sorted by growth, as a terminal shows it; or
# docs/pictures/top-regions.png, of demos/RegionServer.
#
#   sh tools/top-picture.sh [regions]
#
# Needs tmux and Chromium. The folder of the program is shown as /srv.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
sh tools/need.sh fpc tmux chromium
out=$PWD/build/pictures
port=18473
program=Server
picture=top
rows=18
if [ "${1-}" = regions ]; then
  program=RegionServer
  picture=top-regions
  rows=22
fi
mkdir -p "$out"
make --no-print-directory lanemm units > "$out/log"
fpc -l- -v0 -ve -gl -FaLaneMM "-Fubuild/units/$(fpc -iTP)-$(fpc -iTO)" "-FE$out" "demos/$program/$program.lpr"

"$out/$program" "--port=$port" > "$out/log" 2>&1 &
server=$!
load=
terminal() { tmux -L "lanemm-picture-$$" "$@"; }
finish() {
  terminal kill-server || true
  # shellcheck disable=SC2086 # none or one
  kill $server $load || true
}
trap finish EXIT
sleep 1
"$out/$program" --load "--port=$port" --requests=100000 > "$out/load" 2>&1 &
load=$!
terminal new-session -d -s top -x 100 -y $rows "$PWD/build/lanemm top $server --sort=growth"
sleep 8 # some pictures, so that rates are those of one of them
terminal capture-pane -p -t top | sed "s|$out/|/srv/|" > "$out/$picture.txt"

{
  echo '<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0;background:#10141a}'
  echo 'pre{margin:14px;color:#dde3ea;font:15px/19px "DejaVu Sans Mono",monospace}</style><pre>'
  sed 's/&/\&amp;/g; s/</\&lt;/g' "$out/$picture.txt"
  echo '</pre>'
} > "$out/$picture.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "--user-data-dir=$out/browser" \
  --window-size=950,$((rows * 19 + 8)) "--screenshot=$PWD/docs/pictures/$picture.png" "file://$out/$picture.html" 2> "$out/log"
