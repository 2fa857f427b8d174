#!/bin/sh
# Follows the pages of a new user to the letter, in a clean root with compilers and a copy of this
# repository: every command of a page, in its order, and what it says that they show.
#
#   sh tests/packages/pages.sh [PAGE...]
#
# PAGE is a file of the list below. follow.awk says what is followed. A file of tests/packages/pages makes what
# the reader of a page has: programs. Needs the rights of root. The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh

clean=$work/root

# Where its commands stand in the text: beside the copy, or in it.
folder_of() { # PAGE
  case $1 in
    docs/start-any-program.md | docs/contention.md | docs/faq.md | lib/README.md) echo /home/reader/lanemm ;;
    *) echo /home/reader/work ;;
  esac
}

prologue_of() { # PAGE
  case $1 in
    lib/README.md) echo lib ;;
    *) basename "$1" .md ;;
  esac
}

# The script of a page; the places of the copy that pages name are that of the root.
script_of() { # PAGE
  prologue=$(prologue_of "$1")
  echo "pages=/home/reader/lanemm/tests/packages/pages; export HOME=/home/reader; cd $(folder_of "$1")"
  cat tests/packages/follow.sh
  [ ! -e "tests/packages/pages/$prologue.sh" ] || echo ". \"\$pages/$prologue.sh\""
  awk -f tests/packages/follow.awk "$1"
  echo finish
}

# Each page finds the root without what another one has made.
follow() { # PAGE
  rm -rf "$clean/home" "$clean/image" "$clean/usr/local" "$clean"/tmp/*
  mkdir -p "$clean/home/reader/work" "$clean/home/reader/lanemm" "$clean/usr/local/lib"
  git ls-files -z --cached --others --exclude-standard | tar -cf - --null -T - \
    | tar -C "$clean/home/reader/lanemm" -xf - || return 1
  script_of "$1" | sed 's|<repo>|/home/reader/lanemm|g' > "$clean/follow" || return 1
  in_root "$clean" sh /follow
}

# Settings with their variable, as pages name them; N is a number, FILE a file.
knows_settings() {
  echo 'uses LaneMM; begin end.' > "$work/named.lpr"
  fpc -v0 '-Fusrc/*' -FE"$work" -FU"$work" "$work/named.lpr" || return 1
  grep -oh 'LANEMM=[^ `]*' README.md docs/*.md lib/README.md | sed 's/LANEMM=//; s/[.:]*$//; s/=N$/=1/; s/=FILE$/=x/' \
    | grep . | sort -u > "$work/settings"
  [ "$(wc -l < "$work/settings")" -gt 20 ] || return 1
  while read -r setting; do
    (cd "$work" && LANEMM=$setting ./named) > "$work/said" 2>&1 || return 1
    if grep 'unknown\|allowed' "$work/said"; then
      echo "$setting"
      return 1
    fi
  done < "$work/settings"
}

[ $# -gt 0 ] || set -- README.md docs/start-pascal.md docs/start-any-program.md docs/migrating.md docs/faq.md \
  docs/leaks.md docs/contention.md docs/debugging.md docs/profile.md docs/tuning.md docs/regions.md lib/README.md
has_root() {
  unpack_root "$clean" && mkdir -p "$clean/path/to" && ln -s /home/reader/lanemm "$clean/path/to/lanemm"
}

promise 'there is a clean root' has_root
for page in "$@"; do
  promise "$page holds when it is followed" follow "$page"
done
promise 'each setting that the pages name is known' knows_settings
sum
