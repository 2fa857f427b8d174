#!/bin/sh
# Compiles one program of Free Pascal's test suite plainly and with LaneMM, runs both, and compares. Called by
# run.sh, which sets $source, $work, $objects, $units, $lanemm, $options and $modes, with lines of plan.awk.
# Adds a line to $work/results for each mode: mode|verdict|file|exit codes plainly and with LaneMM.
set -u

result() { # MODE VERDICT [CODES]
  echo "$1|$2|$file|${3-}" >> "$work/results"
}

# Prints the folder of the libraries for a build.
libraries_of() { # NAME
  if [ "$1" = lean ]; then echo "$libraries/plain"; else echo "$libraries/$1"; fi
}

# compile NAME OPTION...: into $place/NAME.
compile() {
  name=$1
  linked=$(libraries_of "$1")
  shift
  mkdir -p "$place/$name"
  set -f
  # shellcheck disable=SC2086 # lists of options
  timeout -k 1 120 fpc -n -l- -v0 -ve -gw3 $units "-Fu$objects" "-Fo$objects" "-Fu$linked" \
    "-Fl$linked" $options $own "$@" "-FE$place/$name" "$source/$file" \
    < /dev/null > "$place/$name.messages" 2>&1
  status=$?
  set +f
  return $status
}

# Addresses, and numbers of the default memory manager.
numbers='s/\$0*[0-9A-Fa-f]\{8,16\}/ADDRESS/g
  s/\[HEAP\] Size.*/[HEAP]/
  /^Heap dump by heaptrc\|^[0-9]* memory blocks\|^[0-9]* unfreed memory\|^True .* heap\|^True heap\|^Should be :/d'

# execute NAME SETTINGS OUTPUT: runs $place/NAME in a folder of its own that has the same name each time; prints
# the exit code.
execute() {
  rm -rf "$place/run"
  mkdir "$place/run"
  cp -p "$place/$1/$base" "$place/run"
  for extra in $files; do
    cp "$source/${file%/*}/$extra" "$place/run" 2> /dev/null
  done
  [ -z "$configuration" ] || cp "$source/config/${configuration%% *}" "$place/run/${configuration##* }"
  loaded=$(libraries_of "$1")
  [ ! -d "$loaded" ] || cp "$loaded"/*.so "$place/run"
  (
    cd "$place/run" || exit
    LANEMM=$2
    [ -n "$2" ] && export LANEMM || unset LANEMM
    export LD_LIBRARY_PATH=.
    ulimit -c 0
    ulimit -t 20
    # Text alone, without addresses.
    code=$({ { timeout -k 2 90 "./$base" 3>&- 4>&- < /dev/null; echo $? >&3; } 2>&1 | head -c 4000000 \
      | LC_ALL=C sed "$numbers" >&4; } 3>&1 4> "$3")
    echo "$code"
  )
}

# Returns whether the output varies of itself: with one more run of three, it is another one plainly, or with
# LaneMM the one that was expected.
varies() {
  for try in 1 2 3; do
    execute plain '' "$place/again" > /dev/null
    cmp -s "$place/plain.output" "$place/again" || return 0
    execute "$build" "$settings" "$place/again" > /dev/null
    cmp -s "$place/plain.output" "$place/again" && return 0
  done
  return 1
}

# Compares a run with LaneMM with the plain one.
judge() { # MODE OUTPUT CODE
  if [ "$3" != "$code" ]; then
    verdict='another exit code'
  elif cmp -s "$place/plain.output" "$2"; then
    verdict=equal
  elif varies; then
    verdict='equal but for what varies'
  else
    verdict='another output'
  fi
  case $verdict in
    another*)
      mkdir -p "$work/differ/$1"
      cp "$place/plain.output" "$work/differ/$1/$flat.plain"
      cp "$2" "$work/differ/$1/$flat.lanemm"
      ;;
  esac
  result "$1" "$verdict" "$code, $3"
}

mode() { # MODE
  settings=$1 build=lanemm unit=LaneMM log=$work/logs/$(echo "$1" | tr , +)/$flat
  case $1 in
    -) settings= ;;
    lean) settings= build=lean unit=LaneMMLean ;;
    *) settings=$1,quiet,event=all:file,log=$log/; mkdir -p "$log"; chmod 700 "$log" ;;
  esac
  [ -d "$place/$build" ] || compile "$build" "-Fa$unit$first" "-Fu$lanemm" || rm -f "$place/$build/$base"
  if [ ! -x "$place/$build/$base" ]; then
    result "$1" 'does not compile with LaneMM'
    cp "$place/$build.messages" "$work/$flat.messages"
    return
  fi
  found=$(execute "$build" "$settings" "$place/$build.output")
  judge "$1" "$place/$build.output" "$found"
  rmdir "$log" 2> /dev/null
}

program() {
  base=${file##*/}
  base=${base%.*}
  flat=$(echo "${file%.*}" | tr / -)
  place=$work/programs/$flat
  libraries=$work/libraries/${file%/*}
  [ "$what" = library ] || libraries=$work/none
  rm -rf "$place"
  if ! compile plain; then
    result plain 'does not compile plainly'
    mkdir -p "$work/plain"
    cp "$place/plain.messages" "$work/plain/$flat"
  elif [ ! -x "$place/plain/$base" ]; then
    result plain 'is no program'
  else
    code=$(execute plain '' "$place/plain.output")
    case $code in
      124 | 137 | 152 | 158) result plain 'takes too long plainly' ;;
      *)
        [ "$code" = "$expected" ] && result plain 'as expected' "$code" || result plain 'fails plainly' "$code"
        # Of two options -Fa the compiler obeys the last alone; it takes a list.
        first=$(echo "$own" | sed -n 's/.*-Fa\([^ ]*\).*/,\1/p')
        for mode in $modes; do
          mode "$mode"
        done
        ;;
    esac
  fi
  rm -rf "$place"
}

for line; do
  IFS='|' read -r what file expected own files configuration <<END
$line
END
  program
done
