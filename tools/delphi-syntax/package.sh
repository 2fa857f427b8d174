#!/bin/sh
# Prints the package for Delphi, which has all units of src/.
#
#   sh tools/delphi-syntax/package.sh > packages/delphi/LaneMM.dpk
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
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
