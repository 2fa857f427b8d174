#!/bin/sh
# Checks each row of docs/seeds.md, and that its state on the page is the state found.
#
#   sh tools/seeds.sh            all rows: prints a table, ends with `N passed, N failed`
#   sh tools/seeds.sh ID...      these rows only
#   sh tools/seeds.sh --renew    writes the states that follow from results files; runs no test
#
# The third column of a row holds its checks, each in backquotes:
#   test CLASS[.NAME]            of the unit tests, in the build that users get
#   program NAME                 of tests/programs
#   demo NAME [OPTION...][: KEY <= BOUND [* KEY]]     of demos; KEY is one of its --csv
#   make TARGET[: KEY <= BOUND]                       KEY begins a line of the output
#   without WORD,WORD: FILE...   no line of the files has one of the words
#   FILE.csv COLUMN: MANAGER ROW <= BOUND [* MANAGER ROW]
#                                of bench/results; in ROW, `*` matches any text: then the geometric
#                                mean of the ratios of all rows that both managers have
# Also >= for <=. Nothing is measured: times come from results files. The state is `held` when all
# checks pass, else `missed`, followed by the values out of results files.
set -euf
. "$(dirname "$0")/../tools/begin.sh"
page=docs/seeds.md
out=build/seeds
mkdir -p "$out"

# Prints a number of a results file, or a ratio of two; nothing when a row is missing.
of_results() { # FILE COLUMN MANAGER ROW [MANAGER ROW]
  awk -F, -v column="$2" -v manager="$3" -v row="$4" -v peer="${5-}" -v peer_row="${6-}" '
    /^#/ { next }
    !(column in place) { for (i = 1; i <= NF; i++) place[$i] = i; next }
    $place[column] !~ /^[0-9]/ { next } # it failed
    { value[$1, $2 "/" $3] = $place[column]; rows[$2 "/" $3] }
    END {
      if (peer == "")
        result = value[manager, row]
      else if (row !~ /[*]/) {
        if (value[peer, peer_row] > 0)
          result = value[manager, row] / value[peer, peer_row]
      } else {
        gsub(/[*]/, ".*", row)
        for (name in rows)
          if (name ~ "^" row "$" && value[manager, name] > 0 && value[peer, name] > 0) {
            sum += log(value[manager, name] / value[peer, name])
            count++
          }
        if (count > 0)
          result = exp(sum / count)
      }
      if (result > 0)
        print result
    }' "bench/results/$1"
}

# Prints the number behind KEY in the output of the last command.
of_output() { # KEY
  sed -n "s/^$1[^:=]*[:=] *\([0-9.][0-9.]*\).*/\1/p" "$out/log" | head -n 1
}

# Compares; a missing value does not pass.
compare() { # VALUE OPERATOR BOUND FACTOR
  [ -n "$1" ] && [ -n "$4" ] \
    && awk -v value="$1" -v bound="$3" -v factor="$4" \
      "BEGIN { exit !(value + 0 $2 bound * factor) }"
}

build_tests() {
  [ -e "$out/tests/built" ] || {
    mkdir -p "$out/tests"
    fpc -l- -v0 -vew -vm4082,6018 -O3 -Fusrc '-Fusrc/*' -Futests '-Futests/*' -FE"$out/tests" \
      -FU"$out/tests" tests/RunTests.lpr && : > "$out/tests/built"
  }
}

check_test() { # SUITE[.NAME]
  build_tests || return 1
  case $1 in
    *.*) "$out/tests/RunTests" --suite="${1%.*}" --test="${1#*.}" ;;
    *) "$out/tests/RunTests" --suite="$1" ;;
  esac
}

check_demo() { # NAME [OPTION...]
  program=$1
  shift
  mkdir -p "$out/demos/units" "$out/demos/$program"
  fpc -O2 -l- -v0 -vew -vm4082,6018 -FaLaneMM -Fusrc '-Fusrc/*' -Fudemos/common \
    -Fudemos/ParallelAllocations -FE"$out/demos/$program" -FU"$out/demos/units" \
    "demos/$program/$program.lpr" && "$out/demos/$program/$program" --csv "$@"
}

check_without() { # WORD,WORD: FILE...
  words=$(echo "${1%:}" | sed 's/,/\\|/g')
  shift
  for file in "$@"; do
    [ -s "$file" ] || { echo "$file is missing"; return 1; }
  done
  ! grep -n -w "$words" "$@"
}

# Runs one check, whose output goes to $out/log. Adds to $values what comes from a results file.
check() { # CHECK
  order=${1%%: *}
  condition=
  case $1 in
    without\ *) order=$1 ;;
    *:\ *) condition=${1#*: } ;;
  esac
  # shellcheck disable=SC2086 # words
  set -- $order
  kind=$1
  shift
  case $kind in
    *.csv)
      file=$kind
      column=$1
      # shellcheck disable=SC2086 # words
      set -- $condition
      value=$(of_results "$file" "$column" "$1" "$2" "${6-}" "${7-}")
      echo "$value $3 $4" > "$out/log"
      values="$values${values:+, }$(awk -v value="${value:--1}" \
        'BEGIN { printf value < 0 ? "no such row" : value < 100 ? "%.2f" : "%.0f", value }')"
      compare "$value" "$3" "$4" 1
      return ;;
    test) check_test "$@" ;;
    program) SHORT=1 OUT=$out sh tests/run-programs.sh "$@" ;;
    demo) check_demo "$@" ;;
    make) make --no-print-directory "$@" ;;
    without) check_without "$@" ;;
    *) echo "seeds.sh: no such check: $kind"; false ;;
  esac > "$out/log" 2>&1 < /dev/null || return 1
  [ -z "$condition" ] || {
    # shellcheck disable=SC2086 # words
    set -- $condition
    compare "$(of_output "$1")" "$2" "$3" "$(if [ -n "${5-}" ]; then of_output "$5"; else echo 1; fi)"
  }
}

# Prints the checks of a cell, one in a line.
checks_in() { # CELL
  printf '%s\n' "$1" | grep -o '`[^`]*`' | tr -d '`'
}

# Sets $state to the state of a row; what the failed checks printed goes to $out/failures.
find_state() { # CHECKS
  state=held
  values=
  : > "$out/failures"
  checks_in "$1" > "$out/checks"
  while read -r line; do
    check "$line" || {
      state=missed
      { echo "$line"; tail -n 5 "$out/log"; } >> "$out/failures"
    }
  done < "$out/checks"
  [ -s "$out/checks" ] || state='no check'
  state=$state${values:+: $values}
}

# The rows of the page: ID, checks, state, separated by tabs.
rows() {
  awk -F ' *[|] *' '/^[|] [A-E][1-9] / { print $2 "\t" $4 "\t" $5 }' "$page"
}

renew() {
  rows > "$out/rows"
  while IFS=$(printf '\t') read -r id checks old; do
    checks=$(printf '%s\n' "$checks" | grep -o '`[a-z-]*\.csv [^`]*`' | tr -d '\n')
    [ -n "$checks" ] || continue
    find_state "$checks"
    [ "$state" = "$old" ] || echo "$id: $state (was: $old)"
    awk -v id="$id" -v state="$state" -F ' *[|] *' '
      $2 == id { sub(/[^|]*[|]$/, " " state " |") }
      { print }' "$page" > "$out/page"
    cat "$out/page" > "$page"
  done < "$out/rows"
}

if [ "${1-}" = --renew ]; then
  renew
  exit
fi

rm -rf "$out/tests" "$out/demos"
rows > "$out/rows"
. tests/lib.sh
while IFS=$(printf '\t') read -r id checks old; do
  case " $* " in
    '  ' | *" $id "*) ;;
    *) continue ;;
  esac
  find_state "$checks"
  printf '%-4s%s\n' "$id" "$state"
  if [ "$state" = "$old" ]; then
    pass
  else
    fail "$id: the page says \"$old\"; if that is out of date: sh tools/seeds.sh --renew" "$out/failures"
  fi
done < "$out/rows"
if [ $((passed + failed)) -eq 0 ]; then
  echo "seeds.sh: no such row: $*" >&2
  failed=1
fi
sum
