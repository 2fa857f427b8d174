#!/bin/sh
# Makes the site of the documentation in build/docs/site: the pages of this repository with MkDocs,
# the documentation of every unit in src/ with PasDoc; then checks all links with LinkChecker.
#
#   sh tools/docs.sh
#
# Each of the three is a test, which fails on any warning; ends with `N passed, N failed`.
set -u
. "$(dirname "$0")/../tools/begin.sh"
out=build/docs
pages=$out/pages
log=build/logs/docs.log
rm -rf "$out"
mkdir -p "$pages/api" build/logs

# Copies the sources as PasDoc reads them. It takes a comment below a declaration as one of the next: a comment
# that begins with two blanks goes on with the one above it, and becomes one line with it, unless it is a row of
# a list, a word with two blanks behind it. That and a line that begins with a label is a paragraph. Text
# between ` is code. Headings of fields inside of a record would be taken for descriptions.
sources() {
  find src -name '*.pas' ! -path 'src/door/*' -o -name '*.inc' | while read -r file; do
    mkdir -p "$out/$(dirname "$file")"
    sed -E -e '/^        \/\/ /d' -e '/\/\//s/`([^`()@{}]*)`/@code(\1)/g' "$file" | awk '
      /^ *\/\/  +[^ ]/ && !/^\/\/  +[a-zX ]+[^ ]  +[^ ]/ { sub(/^ *\/\/ +/, ""); line = line " " $0; next }
      NR > 1 { print line }
      /^\/\/  / { print "//"; sub(/^\/\/  +/, "// "); sub(/  +/, ": ") }
      /^\/\/ [A-Z][^.]*:/ || /^\/\/ [A-Z].*:$/ { print "//" }
      { line = $0 }
      END { print line }' > "$out/$file"
  done
}

units() {
  sources
  pasdoc --format html --output "$pages/api" --title LaneMM --name LaneMM --css tools/units.css \
    --include "$out/src" --include "$out/src/core" \
    --define FPC --define LINUX --define CPU64 --define CPUX86_64 --define CPUX64 \
    --write-uses-list --auto-abstract --auto-link \
    $(find "$out/src" -name '*.pas') > "$log" 2>&1 || { cat "$log"; return 1; }
  # PasDoc cannot evaluate the conditions of LaneMM.inc that stop old compilers and other targets, and
  # says so for every unit; no harm.
  ! grep '^\(Warning\|Error\)' "$log" | grep -v ': Cannot evaluate this $if '
}

# The files and folders of this repository that a page links to.
links_of() { # PAGE
  grep -o ']([^)]*)' "$1" | sed 's/^](//; s/[)#].*//; /^$/d; /:/d' | sort -u | while read -r link; do
    realpath -m --relative-to=. "$(dirname "$1")/$link"
  done
}

# A page that lists a folder, for links to it.
listing() { # FOLDER
  echo "# $1"
  echo
  find "$1" -maxdepth 1 -type f | LC_ALL=C sort | sed 's/.*/- `&`/'
}

# Copies the pages, with the files that they link to, to the same places below $pages.
collect() {
  find . -name '*.md' ! -path './build/*' ! -path './.*' ! -path './tools/lint-tests/*' | sed 's/^..//' > "$out/list"
  while read -r page; do
    mkdir -p "$pages/$(dirname "$page")"
    cp "$page" "$pages/$page"
    links_of "$page"
  done < "$out/list" | sort -u > "$out/links"
  while read -r target; do
    if [ -d "$target" ]; then
      [ -e "$target/README.md" ] || {
        mkdir -p "$pages/$target"
        listing "$target" > "$pages/$target/README.md"
      }
    elif [ -f "$target" ]; then
      mkdir -p "$pages/$(dirname "$target")"
      cp "$target" "$pages/$target"
    fi
  done < "$out/links"
}

. tests/lib.sh
printed=$log

units > "$out/warnings"
status=$?
cp "$out/warnings" "$log"
report 'the units are documented' $status

collect
cp tools/site.css "$pages"
mkdocs build --strict --config-file tools/mkdocs.yml > "$log" 2>&1
report 'the pages are a site' $?

linkchecker --config tools/linkchecker.ini --no-status "$out/site/index.html" > "$log" 2>&1
report 'all links lead somewhere' $?

echo "$out/site/index.html"
sum
