#!/bin/sh
# Builds the Lazarus IDE from Debian's sources, on Free Pascal's heap and on LaneMM, and uses both under Xvfb: what
# docs/stories/lazarus.md tells.
#
#   sh tests/stories/lazarus.sh [build] [measure] [look] [pictures]
#
# build     a copy of Lazarus below build/story, without what was compiled; its IDE, linked twice
# measure   ROUNDS (5) runs of each, in turn, into docs/stories/lazarus.csv; medians into build/story/table
# look      leaks, debug, profile, contention at the end of a run, and the reports of lanemm on a running IDE:
#           build/story/found
# pictures  docs/pictures/story-*.png
#
# All four without an argument: half an hour of processor time. No other test runs this. LazarusStory.pas, which is
# linked into both IDEs, presses the keys.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/lazarus/settings.sh
sh tools/need.sh fpc lazarus-sources xvfb-run time tmux chromium import
out=$PWD/build/story
tree=$out/lazarus
found=$out/found
lazarus=$(dirname "$(readlink -f "$(command -v lazbuild)")")
lanemm=$PWD/build/lanemm
# What a user does: opens the IDE's own project and 60 of its units, completes code in each, types, closes.
work="open=$tree/ide/lazarus.lpi,units,forms,code,type,close,rest"
mkdir -p "$out" docs/stories

# ---------------------------------------------------------------------------- build

# Calls make in the copy, with options for the compiler.
compile() { # TARGETS OPTIONS
  # shellcheck disable=SC2086 # several targets
  nice -n 5 make -C "$tree" $1 LCL_PLATFORM=gtk2 USESVN2REVISIONINC=0 OPT="-gl -Xs- -vew- $2" >> "$out/make.log" 2>&1 \
    || { tail -n 20 "$out/make.log"; exit 1; }
}

build() {
  make --no-print-directory units lanemm > "$out/make.log"
  rm -rf "$tree"
  mkdir -p "$tree" "$out/include"
  (cd "$lazarus" && tar -c --exclude='*.ppu' --exclude='*.o' --exclude='*.a' --exclude='*.rst' --exclude='*.rsj' \
    --exclude=./examples --exclude=./units --exclude=./lazbuild .) | tar -x -C "$tree"
  compile 'registration lazutils codetools lcl basecomponents bigidecomponents' ''
  # The place where Lazarus takes further units into the IDE.
  echo 'LazarusStory,' > "$out/include/staticpackages.inc"
  options="-dAddStaticPkgs -Fi$out/include -Fu$PWD/tests/stories -Fu$PWD/tests -Fu$PWD/packages/lazarus/ide"
  compile idebig "$options"
  mv "$tree/lazarus" "$out/lazarus-fpc"
  compile idebig "$options -FaLaneMM -Fu$PWD/build/units/$(fpc -iTP)-$(fpc -iTO)"
  mv "$tree/lazarus" "$out/lazarus-lanemm"
  rm -rf "$out/template" "${out:?}/home"
  mkdir -p "$out/template" "$out/home"
  lazbuild --lazarusdir="$tree" --primary-config-path="$out/template" \
    --add-package-link packages/lazarus/lanemm_units.lpk > "$out/make.log"
  ide_settings "$out/template" "$out/home" "$tree"
}

# ---------------------------------------------------------------------------- runs

server=
group=
finish() {
  [ -z "$server" ] || kill "$server"
  [ -z "$group" ] || rmdir "$group"
}

# Starts the X server; DISPLAY is its.
show() {
  rm -f "$out/display"
  Xvfb -displayfd 3 -screen 0 1280x860x24 -nolisten tcp 3> "$out/display" 2> "$out/xvfb.log" &
  server=$!
  trap finish EXIT
  until [ -s "$out/display" ]; do sleep 0.2; done
  DISPLAY=:$(cat "$out/display")
  export DISPLAY
}

# Runs an IDE to its end: its lines in build/story/steps.
ide() { # fpc|lanemm STEPS [SETTINGS]
  rm -rf "$out/config" "$out/steps" "$out/steps.pause"
  cp -R "$out/template" "$out/config"
  HOME=$out/home LANEMM=${3-} LANEMM_STORY=$out/steps LANEMM_STORY_STEPS=$2 PATH=$PWD/build:$PATH \
    timeout -k 5 900 "$out/lazarus-$1" --lazarusdir="$tree" --primary-config-path="$out/config" \
    --skip-last-project > "$out/ide.log" 2>&1 || echo "lazarus-$1 ends with $?: $out/ide.log"
}

# A memory group of its own for the next run, where that is possible.
enter() {
  for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    if [ -z "$group" ] && mkdir "$root/lanemm-story" 2> "$out/group.log"; then
      group=$root/lanemm-story
    fi
  done
}

measured() { # fpc|lanemm ROUND
  enter
  (
    [ -z "$group" ] || sh -c 'echo $PPID' > "$group/cgroup.procs"
    ide "$1" "$work"
  )
  [ -z "$group" ] || rmdir "$group"
  group=
  [ "$2" -eq 0 ] || awk -v "start=$1,$2" '{ print start "," NR "," $0 }' "$out/steps" >> "$out/lazarus.csv"
}

measure() {
  {
    echo "# sh tests/stories/lazarus.sh measure; $(date -u +%F), $(nproc) processors, other work on the machine"
    echo manager,round,number,step,cpu_ms,anonymous_kb,resident_kb,peak_kb,charged_kb,peak_charged_kb
  } > "$out/lazarus.csv"
  round=0 # the first one is not counted
  while [ $round -le "${ROUNDS-5}" ]; do
    order='fpc lanemm'
    [ $((round % 2)) -eq 0 ] || order='lanemm fpc'
    for manager in $order; do
      measured "$manager" $round
    done
    round=$((round + 1))
  done
  cp "$out/lazarus.csv" docs/stories/lazarus.csv
  table | tee "$out/table"
}

# Medians of each step, CPU time of the step alone.
table() {
  awk -F, '/^#/ || /^manager/ { next }
    {
      run = $1 "," $2; key = $1 "," $3
      names[$3] = $4
      cpu[key] = cpu[key] " " $5 - (run in last ? last[run] : 0)
      last[run] = $5
      for (column = 6; column <= 10; column++)
        memory[key "," column] = memory[key "," column] " " $column
      if ($3 > most) most = $3
    }
    function median(list,  values, count, i, j, swap) {
      count = split(list, values, " ")
      for (i = 2; i <= count; i++)
        for (j = i; j > 1 && values[j - 1] + 0 > values[j] + 0; j--) {
          swap = values[j]; values[j] = values[j - 1]; values[j - 1] = swap
        }
      return (values[int((count + 1) / 2)] + values[int((count + 2) / 2)]) / 2
    }
    END {
      printf "%-8s %23s %23s %23s %23s %23s\n", "", "CPU ms", "anonymous MB", "peak MB", "charged MB", "peak charged MB"
      for (number = 1; number <= most; number++) {
        printf "%-8s", names[number]
        fpc = median(cpu["fpc," number]); lanemm = median(cpu["lanemm," number])
        printf "  %7d %7d %6.2f", fpc, lanemm, fpc ? lanemm / fpc : 0
        split("6 8 9 10", columns, " ")
        for (i = 1; i <= 4; i++) {
          fpc = median(memory["fpc," number "," columns[i]]) / 1024
          lanemm = median(memory["lanemm," number "," columns[i]]) / 1024
          printf "  %7.1f %7.1f %6.2f", fpc, lanemm, fpc ? lanemm / fpc : 0
        }
        print ""
      }
    }' "$out/lazarus.csv"
}

# ---------------------------------------------------------------------------- what is found

# Runs a command, with what it took behind its output.
timed() { # FILE COMMAND...
  file=$1
  shift
  /usr/bin/time -f 'took %U s user, %S s system, %M KB' "$@" > "$found/$file" 2> "$found/$file.err" || true
}

# Runs a command while an IDE is at its last step, `pause`.
during() { # STEPS SETTINGS COMMAND...
  steps=$1 settings=$2
  shift 2
  rm -f "$out/steps.pause"
  ide lanemm "$steps,pause" "$settings" &
  waiting=$!
  until [ -s "$out/steps.pause" ]; do
    kill -0 $waiting || exit 1
    sleep 0.5
  done
  process=$(cat "$out/steps.pause")
  "$@"
  rm "$out/steps.pause"
  wait $waiting
}

reports() {
  timed state "$lanemm" state "$process" --contents
  timed inuse "$lanemm" report "$process" inuse
  timed why "$lanemm" why "$process"
  timed leaks "$lanemm" report "$process" leaks
  timed threads "$lanemm" report "$process" threads
  timed map "$lanemm" map "$process" --svg="$found/map.svg"
}

page() {
  timed inuse.html "$lanemm" report "$process" inuse --html
}

open_units() {
  timed leaks-open "$lanemm" report "$process" leaks
}

look() {
  rm -rf "$found"
  mkdir -p "$found"
  during "$work" '' reports
  during "$work" "stacks,log=$found/" page
  during "${work%,type*}" '' open_units
  for settings in leaks,stacks,leaks:format=html,leaks:format=json debug,mixes guard=sample:64K profile,html contention,growth; do
    folder=$found/end-${settings%%,*}
    mkdir -p "$folder"
    ide lanemm "$work" "$settings,log=$folder/"
    cp "$out/ide.log" "$folder/output"
    cp "$out/steps" "$folder/steps"
  done
}

# ---------------------------------------------------------------------------- pictures

# A picture of a page, or of the screen, with few colours.
picture() { # NAME FILE|screen WIDTH HEIGHT
  shot=$out/$1.png
  if [ "$2" = screen ]; then
    import -window root "$shot"
  else
    sed "s|$out/|/srv/|g" "$2" > "$out/page.html"
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "--user-data-dir=$out/browser" --virtual-time-budget=9000 \
      "--window-size=$3,$4" "--screenshot=$shot" "file://$out/page.html" 2> "$out/chromium.log"
  fi
  convert "$shot" +dither -colors 96 "png8:docs/pictures/story-$1.png"
}

live() {
  sleep 3
  picture live screen
  tmux -L lanemm-story new-session -d -s top -x 100 -y 26 "$lanemm top $process"
  sleep 4
  {
    echo '<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0;background:#10141a}'
    echo 'pre{margin:14px;color:#dde3ea;font:15px/19px "DejaVu Sans Mono",monospace}</style><pre>'
    tmux -L lanemm-story capture-pane -p -t top | sed "s|$out/||; s/&/\\&amp;/g; s/</\\&lt;/g"
    echo '</pre>'
  } > "$out/top.html"
  tmux -L lanemm-story kill-server
  picture top "$out/top.html" 950 520
}

pictures() {
  during "open=$tree/ide/lazarus.lpi,units,code,window" '' live
  picture inuse "$found/inuse.html" 1240 770
  picture profile "$(echo "$found"/end-profile/*Profile*.html)" 1240 880
}

parts=${*:-build measure look pictures}
case " $parts " in
  *' build '*) build ;;
esac
show
for part in $parts; do
  [ "$part" = build ] || "$part"
done
