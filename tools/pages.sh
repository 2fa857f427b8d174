#!/bin/sh
# Makes src/observe/LaneMM.PageParts.pas of the files in src/observe/page, as Pascal constants.
#
#   sh tools/pages.sh          writes the unit
#   sh tools/pages.sh --check  compares; exit code 1 when the unit is not what the files say
#
# Leaves out indentation, empty lines, and lines that hold nothing but a comment. The files hold ASCII.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.."
pages=src/observe/page
unit=src/observe/LaneMM.PageParts.pas
new=build/pages/LaneMM.PageParts.pas
mkdir -p build/pages

# The lines of files without what a browser does not need.
lines_of() { # FILE...
  sed -e 's/^ *//' -e '/^$/d' -e '/^\/\/ /d' "$@"
}

# Standard input as an array of strings of one line each.
constant() { # NAME
  LC_ALL=C awk -v name="$1" '
    # Room: what a piece takes in a line of the unit, where a line ends with up to six more.
    function add(piece, room) {
      if (used + room > 88) { count++; used = 0 }
      parts[count] = parts[count] piece
      used += room
    }
    BEGIN { count = 1 }
    /[^ -~]/ { print "pages.sh: not ASCII: " $0 > "/dev/stderr"; exit 1 }
    {
      for (rest = $0; rest != ""; rest = substr(rest, RLENGTH + 1)) {
        if (!match(rest, /^[A-Za-z0-9_]+/)) RLENGTH = 1 # words stay whole
        word = substr(rest, 1, RLENGTH)
        if (word == "\047") add("\047\047", 2); else add(word, RLENGTH)
      }
      add("\n", 5)
    }
    END {
      printf "  %s: array[0..%d] of PAnsiChar = (\n", name, count - 1
      for (i = 1; i <= count; i++) {
        gsub("\n", "\047#10\047", parts[i])
        text = "\047" parts[i] "\047"
        sub(/#10\047\047$/, "#10", text)
        sub(/^\047\047#10/, "#10", text)
        printf "    %s%s\n", text, i < count ? "," : ");"
      }
    }'
}

# The part of page.html between two of its marks.
between() { # FIRST LAST
  sed -n "/$1/,/$2/p" "$pages/page.html" | sed '/^{.*}$/d'
}

{
  cat << 'END'
/// The pages of the reports, as `sh tools/pages.sh` makes them of the files in src/observe/page.
//
// Owns:       nothing.
// Invariants: written by that script alone; `make lint` compares.
// Callers:    LaneMM.Html.
unit LaneMM.PageParts;

{$I ../LaneMM.inc}

interface

const
  /// The page up to its data, with its style.
END
  { between DOCTYPE '^{page.css}'; lines_of "$pages/page.css"; between '^{page.css}' '^{data}'; } \
    | constant PageStart
  echo '  /// What follows the data: the part of the script that all pages share.'
  { between '^{data}' '^{base.js}'; lines_of "$pages/base.js"; } | constant PageScript
  echo '  /// The script of the page of profiles.'
  lines_of "$pages/profile.js" | constant ProfileScript
  echo '  /// The script of the page of leaks.'
  lines_of "$pages/leaks.js" | constant LeaksScript
  echo '  /// The end of the page.'
  between '^{page.js}' '^<.html>' | constant PageEnd
  printf '\nimplementation\n\nend.\n'
} > "$new"

if [ "${1-}" != --check ]; then
  cp "$new" "$unit"
elif ! cmp -s "$new" "$unit"; then
  echo "$unit: not up to date: sh tools/pages.sh" >&2
  exit 1
fi
