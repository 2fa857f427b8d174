#!/bin/sh
# Writes the tables of docs/platforms.md from the results of tests/matrix/run.sh: for each target the
# tests that passed, in parts, and the tests that are left out there.
#
#   sh tests/matrix/table.sh
#
# A target or a part without results keeps what the page says of it.
set -u
. "$(dirname "$0")/../../tools/begin.sh"
page=docs/platforms.md
parts='suites checked pure engine engine-checked reports programs demos'

# row TARGET: its row of the table; what was not run here keeps what the page says.
row() {
  results=build/matrix/results-full/$1
  before=$(grep "^| $1 |" "$page")
  if [ ! -s "$results" ]; then
    echo "$before"
    return
  fi
  how=$(sed -n "s/^how='\(.*\)'$/\1/p" "tests/matrix/targets/$1.sh")
  printf '| %s | %s |' "$1" "$how"
  column=3
  for part in $parts; do
    column=$((column + 1))
    awk -v part="$part" -v text="$(echo "$before" | cut -d '|' -f "$column" | sed 's|^ *||; s| *$||')" '
      $1 == part { text = $3 ? $2 ", " $3 " failed" : $2 }
      END { printf " %s |", text == "" ? "-" : text }' "$results"
  done
  left=0
  for list in $(sed -n "s/^\(reports_\)\{0,1\}without=//p" "tests/matrix/targets/$1.sh" | tr -d "'"); do
    left=$((left + $(grep '^[A-Z].*:' "tests/matrix/targets/$list.without" | grep -vc 'part `reports`$')))
  done
  printf ' %s | %s |\n' "$left" "$(date -u +%Y-%m-%d)"
}

# left_out FILE: its list of what is left out, under its name; a row for each reason.
left_out() {
  printf '\n**%s**\n\n| left out | why |\n|---|---|\n' "$(basename "$1" .without)"
  awk '/^[A-Z][^:]*: / {
      name = "`" $0 "`"
      sub(/: .*/, "`", name)
      reason = $0
      sub(/^[^:]*: /, "", reason)
      if (reason == "the same" || reason == "likewise")
        reason = last
      last = reason
      if (reason in names)
        name = names[reason] ", " name
      else
        reasons[++count] = reason
      names[reason] = name
    }
    END {
      for (i = 1; i <= count; i++)
        print "| " names[reasons[i]] " | " reasons[i] " |"
    }' "$1"
}

new=build/matrix/platforms.md
{
  sed '/<!-- table -->/q' "$page"
  echo '| target | how it runs | unit tests | checked build | without assembler | engine alone | engine alone, checked | reports | programs | demos | left out | run on |'
  echo '|---|---|---|---|---|---|---|---|---|---|---|---|'
  for file in tests/matrix/targets/*.sh; do
    row "$(basename "$file" .sh)"
  done
  sed -n '/<!-- end of table -->/,/<!-- left out -->/p' "$page"
  for file in tests/matrix/targets/*.without; do
    left_out "$file"
  done
  sed -n '/<!-- end of left out -->/,$p' "$page"
} > "$new"
mv "$new" "$page"
