#!/bin/sh
# Makes src/formats/LaneMM.PageParts.pas of the files in src/formats/page, compressed, by tools/PackPages.lpr,
# and tools/lanemm/BoxScript.pas of box.js.
#
#   sh tools/pages.sh          writes the units
#   sh tools/pages.sh --check  compares; exit code 1 when a unit is not what the files say
#
# Leaves out indentation, empty lines, and lines that hold nothing but a comment. The files hold ASCII.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
pages=src/formats/page
unit=src/formats/LaneMM.PageParts.pas
new=build/page-parts/LaneMM.PageParts.pas
mkdir -p build/page-parts

# The lines of files without what a browser does not need.
lines_of() { # FILE...
  sed -e 's/^ *//' -e '/^$/d' -e '/^\/\/ /d' "$@"
}

# The part of page.html between two of its marks.
between() { # FIRST LAST
  sed -n "/$1/,/$2/p" "$pages/page.html" | sed '/^{.*}$/d'
}

between DOCTYPE '^{page.css}' > build/page-parts/start
{ lines_of "$pages/page.css"; between '^{page.css}' '^{data}'; } >> build/page-parts/start
{ between '^{data}' '^{base.js}'; lines_of "$pages/base.js"; } > build/page-parts/script
lines_of "$pages/profile.js" > build/page-parts/profiles
lines_of "$pages/leaks.js" > build/page-parts/leaks
between '^{page.js}' '^<.html>' > build/page-parts/end

fpc -l- -v0 -vew -FUbuild/page-parts -FEbuild/page-parts tools/PackPages.lpr
{
  cat << 'END'
/// The pages of the reports, as `sh tools/pages.sh` makes them of the files in src/formats/page.
//
// Owns:       nothing.
// Invariants: written by that script alone; `make lint` compares.
// Callers:    LaneMM.Html.
unit LaneMM.PageParts;

{$I ../LaneMM.inc}

interface

type
  /// What pages are made of: all up to the data; behind it the script that all pages have, that of
  /// each page, and the end.
  TPagePart = (ppStart, ppScript, ppProfiles, ppLeaks, ppEnd);
  /// Parts of a page.
  TPageParts = set of TPagePart;

const
END
  (cd build/page-parts && ./PackPages start script profiles leaks end)
  printf '\nimplementation\n\nend.\n'
} > "$new"

# The script of `lanemm blackbox --html`.
lines_of tools/lanemm/box.js > build/page-parts/box
{
  cat << 'END'
/// The script of the page of a black box, as `sh tools/pages.sh` makes it of tools/lanemm/box.js.
unit BoxScript;

{$mode delphi}{$H+}

interface

const
  /// Its lines.
END
  echo "  BoxScriptLines: array[0..$(($(wc -l < build/page-parts/box) - 1))] of PAnsiChar = ("
  sed -e "s/'/''/g" -e "s/.*/    '&',/" -e '$s/,$/);/' build/page-parts/box
  printf '\nimplementation\n\nend.\n'
} > build/page-parts/BoxScript.pas

stale=0
settle() { # NEW UNIT: writes a unit, or compares it
  cmp -s "$1" "$2" && return
  if [ "$check" ]; then
    echo "$2: not up to date: sh tools/pages.sh" >&2
    stale=1
  else
    cp "$1" "$2"
  fi
}
check=${1-}
settle "$new" "$unit"
settle build/page-parts/BoxScript.pas tools/lanemm/BoxScript.pas
exit $stale
