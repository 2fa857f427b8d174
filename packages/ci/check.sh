#!/bin/sh
# Fails a pipeline when a program allocates more than before.
#
#   sh check.sh BASELINE LIMIT PROGRAM [ARGUMENTS...]
#
# Runs PROGRAM, which has LaneMM inside, with a profile of each block, and compares that with BASELINE, the profile of
# an earlier run: a growth of more than LIMIT (5%, or bytes as 64K) fails. Without BASELINE nothing is
# compared. The folder lanemm-report has the new profile, new.json, the next BASELINE; the comparison as
# text, diff.md for people, and diff.xml for the server (JUnit). Where GITHUB_STEP_SUMMARY names a file, it
# gets the table, too. The tool lanemm is that of the variable LANEMM_TOOL, else one beside this script
# after `make lanemm`, else that of PATH.
#
# LANEMM_VALUE names what is compared: alloc_space, all that is allocated, by default; peak_space;
# inuse_space, what is there at the end. LANEMM_EACH=1: each call stack keeps the limit, too.
#
# Exit code: that of the program if it fails; 8 for too much growth; 1 or 2 for other errors.
set -eu

case ${3-} in
  '') sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 1 ;;
esac

baseline=$1 limit=$2
shift 2
report=$PWD/lanemm-report
lanemm=${LANEMM_TOOL:-$(dirname "$0")/../../build/lanemm}
[ -x "$lanemm" ] || lanemm=lanemm
each=${LANEMM_EACH:+--each}
rm -rf "$report"
mkdir -p "$report/profiles"

echo "check.sh: runs $*"
LANEMM=${LANEMM:+$LANEMM,}profile,json,rate=1,log=\"$report/profiles/\" "$@"
set -- "$report"/profiles/*_Profile.*.json
if [ $# -ne 1 ] || [ ! -f "$1" ]; then
  echo 'check.sh: one process with LaneMM inside is to write a profile; these were written:' >&2
  ls "$report/profiles" >&2
  exit 1
fi
mv "$1" "$report/new.json"
if [ ! -f "$baseline" ]; then
  echo "check.sh: there is no $baseline, so nothing is compared: cp lanemm-report/new.json $baseline"
  exit
fi

# diff FORMAT FILE: exit code 8 for too much growth, which each format has
diff() {
  "$lanemm" diff "$baseline" "$report/new.json" "--value=${LANEMM_VALUE:-alloc_space}" \
    "--fail-over=$limit" $each "--format=$1" > "$2"
}

status=0
diff text "$report/diff.txt" || status=$?
cat "$report/diff.txt"
diff markdown "$report/diff.md" 2> /dev/null || true
diff junit "$report/diff.xml" 2> /dev/null || true
[ -z "${GITHUB_STEP_SUMMARY-}" ] || cat "$report/diff.md" >> "$GITHUB_STEP_SUMMARY"
exit $status
