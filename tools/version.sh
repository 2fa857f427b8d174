#!/bin/sh
# Prints the version of LaneMM, which src/words/LaneMM.Version.pas states.
#
#   sh tools/version.sh             as it stands there, for example 1.0.0-rc1
#   sh tools/version.sh --library   the numbers alone, of the shared library's file: 1.0.0
#   sh tools/version.sh --debian    as Debian sorts it, a candidate before its release: 1.0.0~rc1
#   sh tools/version.sh --check     one line for each file that states another version; exit code 1
set -eu

cd "$(dirname "$0")/.."
version=$(sed -n "s/^  ThisVersion = '\(.*\)';\$/\1/p" src/words/LaneMM.Version.pas)
debian=$(echo "$version" | sed 's/-/~/')
wrong=0

# The file has the line.
states() { # FILE LINE
  grep -qxF -e "$2" "$1" && return
  echo "$1:1: no line \`$2\`: the version is $version"
  wrong=1
}

case ${1-} in
  '') echo "$version" ;;
  --library) echo "${version%%-*}" ;;
  --debian) echo "$debian" ;;
  --check)
    states lib/include/lanemm.h "#define LANEMM_VERSION \"$version\""
    states fpmake.pp "  P.Version := '$version';"
    states boss.json "  \"version\": \"$version\","
    states packages/debian/changelog "lanemm ($debian-0lanemm1) unstable; urgency=medium"
    states packages/lazarus/lanemm_units.lpk "    <Version $(echo "${version%%-*}" \
      | sed 's/\(.*\)[.]\(.*\)[.]\(.*\)/Major="\1" Minor="\2" Release="\3"/; s/ [A-Z][a-z]*="0"//g')/>"
    grep -q -e "^- \*\*Maturity:\*\* $version, " README.md || {
      echo "README.md:1: the maturity is not that of $version"
      wrong=1
    }
    grep -q -e "^## \[$version\] - 20[0-9-]*\$" CHANGELOG.md || {
      echo "CHANGELOG.md:1: no section [$version] with its date"
      wrong=1
    }
    exit $wrong
    ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" ;;
esac
