#!/bin/sh
# Makes the assembler of x86_64 for Windows, of GetMem, FreeMem and ReallocMem in place, out of that for
# System V: the same instructions on the registers of the other calling convention.
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
# The thread's slots are at gs instead of fs. Windows has no scratch registers for r10 and r11: they
# become rsi and rdi, which are the caller's. A routine that has them pushes both, says so in unwind
# data, and pops them before each exit. Routines for the slots of glibc are left out. Refuses any other
# register that Windows keeps for the caller, and all that moves the stack pointer: the other routines
# stay leaves, which need no unwind data.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
sources='core/LaneMM.Allocate.x64.inc core/LaneMM.Allocate.x64.Take.inc core/LaneMM.Free.x64.inc
  core/LaneMM.Free.x64.Put.inc core/LaneMM.Resize.x64.inc'
left_out='FirstKeyBlockGet|FirstKeyBlockFree' # for slots of glibc
left_out="$left_out|FastBlockMove|OwnBlockMove|LastBlockMoved|CopyBlock" # their Pascal twins serve
refused='r1[2-5][dwb]?|[re]?b[xp]|b[lh]|[re]?sp|xmm([6-9]|1[0-5])|push|pop|call'
folder=build/windows-assembler
mkdir -p "$folder"

# Standard input without the routines to leave out. A routine and its comment are a paragraph.
without_left_out() {
  awk -v RS= -v left_out="(^|\n)(function|procedure) ($left_out)[(:;]" \
    '$0 !~ left_out { if (count++) print ""; print }'
}

# A register that was replaced is in capital letters, until all are.
renamed() {
  sed -E -e 's/\bFastBlockMove\b/BlockResized/g' \
    -e 's/(\{\$I LaneMM\.[A-Za-z]+)\.x64\./\1.Windows.x64./' \
    -e 's/^(\/\/ x86_64), System V:/\1, Windows:/; /^ *\/\/ Shared by /d; s/\bfs:/gs:/g' \
    -e 's/\br10\b/RSI/g; s/\br10d\b/ESI/g; s/\br11\b/RDI/g; s/\br11d\b/EDI/g' \
    -e 's/\br9([dwb]?)\b/R11\1/g; s/\br8([dwb]?)\b/R10\1/g' \
    -e 's/\brcx\b/R9/g; s/\becx\b/R9d/g; s/\bcx\b/R9w/g; s/\bcl\b/R9b/g' \
    -e 's/\brdx\b/R8/g; s/\bedx\b/R8d/g; s/\bdx\b/R8w/g; s/\bdl\b/R8b/g' \
    -e 's/\brsi\b/RDX/g; s/\besi\b/EDX/g; s/\bsi\b/DX/g; s/\bsil\b/DL/g' \
    -e 's/\brdi\b/RCX/g; s/\bedi\b/ECX/g; s/\bdi\b/CX/g; s/\bdil\b/CL/g' \
    -e 's/\b(R[0-9]+[dwb]?|[RE]?[CD]X|[RE][SD]I|[CD]L)\b/\L\1/g'
}

# Standard input, with rsi and rdi saved in the routines that have them: each jump out of one goes to
# lines at its end that pop them and go on. A routine is a paragraph.
with_saved_registers() {
  awk -v RS= -F '\n' '
    function pop_and(leave) {
      return "  pop rdi\n  pop rsi\n  " leave "\n"
    }
    NR > 1 { print "" }
    !/[ [(][re][sd]i[^a-z]/ { print; next }
    {
      exits = ""
      split("", has)
      for (i = 1; i <= NF; i++) {
        words = split($i, word, " ")
        if ($i == "asm")
          print "asm\n  push rsi\n.seh_pushreg rsi\n  push rdi\n.seh_pushreg rdi\n.seh_endprologue"
        else if ($i == "end;")
          printf "%s%send;\n", $(i - 1) ~ /^  jmp / ? "" : pop_and("ret"), exits
        else if (word[1] == "ret" || word[1] == "jmp")
          printf "%s", pop_and(word[1] (words > 1 ? " " word[2] : ""))
        else if (word[1] ~ /^j/ && word[2] !~ /^@/) {
          if (!(word[2] in has))
            exits = exits "@" word[2] ":\n" pop_and("jmp " word[2])
          has[word[2]]
          sub(word[2], "@&", $i)
          print $i
        } else
          print $i
      }
    }'
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
  if ! grep -q '^end;' "$new.source" && sed 's/\/\/.*//' "$new.source" | grep -nEw 'r1[01]d?' >&2; then
    echo "src/$source: a part of routines has these registers, which only whole routines save" >&2
    exit 1
  fi
  { echo "// Made of ${source#*/} by \`sh tools/windows-assembler.sh\`."
    renamed < "$new.source" | with_saved_registers; } > "$new"
  if [ "${1-}" != --check ]; then
    cp "$new" "$file"
  elif ! cmp -s "$new" "$file"; then
    echo "$file: not up to date: sh tools/windows-assembler.sh" >&2
    state=1
  fi
done
exit $state
