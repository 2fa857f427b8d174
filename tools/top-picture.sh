#!/bin/sh
# Makes docs/pictures/top.png anew: lanemm top on demos/Server under load, sorted by growth, as a terminal shows it.
#
#   sh tools/top-picture.sh
#
# Needs tmux and Chromium. The folder of the program is shown as /srv.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
sh tools/need.sh fpc tmux chromium
out=$PWD/build/pictures
port=18473
mkdir -p "$out"
make --no-print-directory lanemm units > "$out/log"
fpc -l- -v0 -ve -gl -FaLaneMM "-Fubuild/units/$(fpc -iTP)-$(fpc -iTO)" "-FE$out" demos/Server/Server.lpr

"$out/Server" "--port=$port" > "$out/log" 2>&1 &
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
"$out/Server" --load "--port=$port" --requests=100000 > "$out/load" 2>&1 &
load=$!
terminal new-session -d -s top -x 100 -y 18 "$PWD/build/lanemm top $server --sort=growth"
sleep 8 # some pictures, so that rates are those of one of them
terminal capture-pane -p -t top | sed "s|$out/|/srv/|" > "$out/top.txt"

{
  echo '<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0;background:#10141a}'
  echo 'pre{margin:14px;color:#dde3ea;font:15px/19px "DejaVu Sans Mono",monospace}</style><pre>'
  sed 's/&/\&amp;/g; s/</\&lt;/g' "$out/top.txt"
  echo '</pre>'
} > "$out/top.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "--user-data-dir=$out/browser" \
  --window-size=950,350 "--screenshot=$PWD/docs/pictures/top.png" "file://$out/top.html" 2> "$out/log"
