#!/bin/sh
# Writes the documentation of every unit in src/ to build/docs, with PasDoc.
#
#   sh tools/docs.sh
#
# Exit code 1 when PasDoc warns of anything. A comment that begins with two blanks goes on with the one
# above it: PasDoc leaves it out.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.."
rm -rf build/docs
mkdir -p build/docs build/logs
pasdoc --format html --output build/docs --title LaneMM --name LaneMM \
  --include src --include src/core \
  --define FPC --define LINUX --define CPU64 --define CPUX86_64 --define CPUX64 \
  --ignore-marker='  ' --write-uses-list --auto-abstract --auto-link \
  $(find src -name '*.pas' ! -path 'src/door/*') > build/logs/docs.log 2>&1

# PasDoc does not know the version of the compiler and says so for every unit; no harm.
if grep '^\(Warning\|Error\)' build/logs/docs.log | grep -v '"FPC_FULLVERSION < '; then
  exit 1
fi
echo "build/docs/index.html"
