#!/bin/sh
# Runs the chapter "VS Code" of docs/debugger.md in VS Code, and makes its pictures docs/pictures/vscode-*.png anew.
#
#   sh tests/stories/vscode.sh
#
# code-server, which is VS Code in a browser, and a debug adapter for gdb come from npm; their modules in C and C++ are
# compiled: 360 MB below build/vscode, a minute of processor time the first time. The program runs with the tasks.json
# and the launch.json of the page. Without Node.js 20 and its headers a line says that it is skipped. No other test runs this.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
code=4.100.3
out=$PWD/build/vscode
node=$out/node
work=$out/orders
port=18474
headers=$(dirname "$(dirname "$(readlink -f "$(command -v node || echo /usr/bin/node)")")")
case $(node --version 2> /dev/null) in
  v20.*) [ -f "$headers/include/node/node_api.h" ] || headers= ;;
  *) headers= ;;
esac
if [ -z "$headers" ]; then
  echo "vscode.sh: skipped: code-server $code needs Node.js 20 and its headers"
  exit 0
fi
sh tools/need.sh fpc gdb npm g++ make python3 chromium import
mkdir -p "$out"

# npm in a folder.
npm_in() { # FOLDER ARGUMENT...
  (fetch=$PWD/tools/fetch.sh && cd "$1" && shift && npm_config_yes=true nice -n 5 sh "$fetch" npm "$@" > "$out/npm.log" 2>&1) \
    || { tail -n 20 "$out/npm.log"; exit 1; }
}

# Packages come without their scripts, some of which fetch from elsewhere.
install() {
  vscode=$node/node_modules/code-server/lib/vscode
  rm -rf "$node"
  mkdir -p "$node"
  npm_in "$node" install --ignore-scripts --no-audit --no-fund "code-server@$code" cdt-gdb-adapter@1.7.0 puppeteer-core@24.43.1
  npm_in "$vscode" install --ignore-scripts --omit=dev --no-audit --no-fund
  ln -sfn node_modules "$vscode/node_modules.asar"
  npm_in "$node" rebuild "--nodedir=$headers" --build-from-source argon2 cdt-gdb-adapter
  npm_in "$vscode" rebuild "--nodedir=$headers" node-pty @vscode/spdlog native-watchdog
  touch "$node/installed"
}

[ -e "$node/installed" ] || install
make --no-print-directory lanemm units > "$out/make.log"
rm -rf "$work" "$out/data" "$out/extensions" "$out/home"
mkdir -p "$work/.vscode" "$out/bin" "$out/share/lanemm" "$out/data/User" "$out/extensions/lanemm.gdb" "$out/home" "$out/units"
cp build/lanemm "$out/bin"
cp tools/lanemm-gdb.py "$out/share/lanemm"
cp tests/stories/vscode/orders.pas tests/stories/vscode/server.lpr "$work"
python3 tests/stories/vscode/settings.py docs/debugger.md "$out"
(units=$PWD/build/units/$(fpc -iTP)-$(fpc -iTO) && cd "$work" \
  && fpc -l- -v0 -vew -g -gl -FaLaneMM "-Fu$units" "-FU$out/units" -oserver server.lpr)

HOME=$out/home node "$node/node_modules/code-server/out/node/entry.js" --auth none --bind-addr "127.0.0.1:$port" \
  --user-data-dir "$out/data" --extensions-dir "$out/extensions" --disable-telemetry --disable-update-check \
  --disable-workspace-trust > "$out/server.log" 2>&1 &
server=$!
trap 'kill $server' EXIT
until grep -q 'server listening' "$out/server.log"; do
  kill -0 $server
  sleep 1
done
(cd "$node" && node ../../../tests/stories/vscode/drive.cjs "http://127.0.0.1:$port/?folder=$work" "$out")
for name in problems console; do
  convert "$out/vscode-$name.png" +dither -colors 256 "png8:docs/pictures/vscode-$name.png"
done
