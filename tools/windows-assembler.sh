#!/bin/sh
# Makes the assembler of x86_64 for Windows out of that for System V: the same instructions on the
# registers of the other calling convention.
#
#   sh tools/windows-assembler.sh          writes src/*/LaneMM.*.Windows.x64*.inc
#   sh tools/windows-assembler.sh --check  compares; exit code 1 when one is not up to date
#
# A register becomes the one that has its place in the other convention, so that arguments stay
# arguments in each jump to a routine; the places after the fourth are scratch registers of Windows:
#
#   System V   rdi  rsi  rdx  rcx  r8   r9   rax
#   Windows    rcx  rdx  r8   r9   r10  r11  rax
#
# The thread's slots are at gs instead of fs. Windows has no scratch registers for r10 and r11, since
# rdi and rsi are the caller's: routines that need them are left out, and jumps to them go to their
# Pascal twins. So are the routines for the slots of glibc. Refuses any other register that Windows
# keeps for the caller, and all that moves the stack pointer: the routines stay leaves, which need no
# unwind data.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/.."
sources='core/LaneMM.Allocate.x64.inc core/LaneMM.Allocate.x64.Take.inc core/LaneMM.Blocks.x64.inc
  core/LaneMM.Free.x64.inc core/LaneMM.Free.x64.Put.inc core/LaneMM.Resize.x64.inc
  core/LaneMM.Resize.x64.Copy.inc
  debug/LaneMM.Patterns.x64.inc'
# Left out: for slots of glibc; with r10 or r11, and what only they jump to.
left_out='FirstKeyBlockGet|FirstKeyBlockFree'
left_out="$left_out|FastBlockFreeUnowned|ClaimedBlockPush|PushedToQueued|LargeBlockFree"
left_out="$left_out|FastBlockMove|OwnBlockMove|LastBlockMoved"
refused='r1[0-5][dwb]?|[re]?b[xp]|b[lh]|[re]?sp|xmm([6-9]|1[0-5])|push|pop|call'
folder=build/windows-assembler
mkdir -p "$folder"

# Standard input without the routines to leave out. A routine and its comment are a paragraph.
without_left_out() {
  awk -v RS= -v left_out="(^|\n)(function|procedure) ($left_out)[(:;]" \
    '$0 !~ left_out { if (count++) print ""; print }'
}

# A register that was replaced is in capital letters, until all are.
renamed() {
  sed -E -e 's/\bFastBlockFreeUnowned\b/BlockFreeUnowned/g; s/\bLargeBlockFree\b/FreeLargeBlock/g' \
    -e 's/\bFastBlockMove\b/BlockResized/g' \
    -e 's/(\{\$I LaneMM\.[A-Za-z]+)\.x64\./\1.Windows.x64./' \
    -e 's/^(\/\/ x86_64), System V:/\1, Windows:/; /^ *\/\/ Shared by /d; s/\bfs:/gs:/g' \
    -e 's/\br9([dwb]?)\b/R11\1/g; s/\br8([dwb]?)\b/R10\1/g' \
    -e 's/\brcx\b/R9/g; s/\becx\b/R9d/g; s/\bcx\b/R9w/g; s/\bcl\b/R9b/g' \
    -e 's/\brdx\b/R8/g; s/\bedx\b/R8d/g; s/\bdx\b/R8w/g; s/\bdl\b/R8b/g' \
    -e 's/\brsi\b/RDX/g; s/\besi\b/EDX/g; s/\bsi\b/DX/g; s/\bsil\b/DL/g' \
    -e 's/\brdi\b/RCX/g; s/\bedi\b/ECX/g; s/\bdi\b/CX/g; s/\bdil\b/CL/g' \
    -e 's/\b(R[0-9]+[dwb]?|[RE]?[CD]X|[CD]L)\b/\L\1/g'
}

state=0
for source in $sources; do
  file=src/$(echo "$source" | sed 's/\.x64\./.Windows&/')
  new=$folder/$(basename "$file")
  without_left_out < "src/$source" > "$new.source"
  if sed 's/\/\/.*//' "$new.source" | grep -nEw "$refused" >&2; then
    echo "src/$source: no counterpart on Windows" >&2
    exit 1
  fi
  { echo "// Made of ${source#*/} by \`sh tools/windows-assembler.sh\`."
    renamed < "$new.source"; } > "$new"
  if [ "${1-}" != --check ]; then
    cp "$new" "$file"
  elif ! cmp -s "$new" "$file"; then
    echo "$file: not up to date: sh tools/windows-assembler.sh" >&2
    state=1
  fi
done
exit $state
