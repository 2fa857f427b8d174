#!/bin/sh
# Prints the package for Delphi, which has all units of src/.
#
#   sh tools/delphi-syntax/package.sh > packages/delphi/LaneMM.dpk
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/../.."
cat <<'END'
// All units of LaneMM, for Delphi's IDE and for compiled units (.dcu); see docs/delphi.md. A program links
// the units: a memory manager in a package would be loaded after the first blocks were allocated.
package LaneMM;

{$implicitbuild off}

requires
  rtl;

contains
END
# The folder door/ holds the door for Free Pascal's unit paths alone.
find src -name '*.pas' ! -path 'src/door/*' | LC_ALL=C sort | tr / '\\' \
  | sed -n 's/^\(.*\\\)\([^\\]*\)\.pas$/  \2 in '"'..\\\\..\\\\"'&'"'"'/p' | sed '$!s/$/,/; $s/$/;/'
printf '\nend.\n'
