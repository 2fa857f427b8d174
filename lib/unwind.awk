# Adds unwind information to an assembler file that Free Pascal wrote (x86_64, AT&T syntax):
#
#   awk -f lib/unwind.awk UNIT.s | as -o UNIT.o
#
# Free Pascal 3.2.2 writes no .eh_frame, and its .debug_frame leaves out epilogues and saved
# registers. This program follows the stack pointer through each routine, along all jumps, and adds
# the .cfi directives that hold at each instruction. An instruction that changes the stack pointer in
# an unknown way, or two paths with different stacks to one label, end the build.
#
# The state at an instruction is a text: the bytes from the stack pointer to the end of the frame
# (CFA), the same from rbp if that is the frame pointer, else 0, and for each saved register its
# offset from the end of the frame, or 0.
#
# A jump through a table (`case`) leads to the labels of its routine that no other way leads to.

function fail(text) {
  print FILENAME ": " routine ": " text > "/dev/stderr"
  failed = 1
  exit 1
}

function get(state, field,  fields) {
  split(state, fields, " ")
  return fields[field]
}

function set(state, field, value,  fields, i, result) {
  split(state, fields, " ")
  fields[field] = value
  result = fields[1]
  for (i = 2; i <= FIELDS; i++)
    result = result " " fields[i]
  return result
}

# The number in front of a parenthesis, as in -16(%rsp).
function displacement(operand) {
  sub(/\(.*/, "", operand)
  return operand + 0
}

function grow(state, bytes) {
  return set(state, SP, get(state, SP) + bytes)
}

function push(state, register) {
  state = grow(state, 8)
  if (register in saved && get(state, saved[register]) == 0)
    state = set(state, saved[register], -get(state, SP))
  return state
}

function pop(state, register) {
  if (register in saved && get(state, saved[register]) == -get(state, SP))
    state = set(state, saved[register], 0)
  if (register == "%rbp")
    state = set(state, BP, 0)
  return grow(state, -8)
}

# A saved register is stored below the frame pointer, or loaded from there.
function store(state, register, place) {
  if (get(state, saved[register]) == 0)
    state = set(state, saved[register], displacement(place) - get(state, BP))
  return state
}

function load(state, register, place) {
  if (get(state, saved[register]) == displacement(place) - get(state, BP))
    state = set(state, saved[register], 0)
  return state
}

# The state after an instruction.
function after(state, name, from, to) {
  if (name == "pushq")
    return push(state, from)
  if (name == "popq")
    return pop(state, from)
  if (name == "leaq" && to == "%rsp" && from ~ /^-?[0-9]+\(%rsp\)$/)
    return grow(state, -displacement(from))
  if (name == "movq" && from == "%rsp" && to == "%rbp")
    return set(state, BP, get(state, SP))
  if (name == "movq" && from == "%rbp" && to == "%rsp" && get(state, BP) > 0)
    return set(state, SP, get(state, BP))
  # With a frame pointer a routine may go on with another stack, until it leaves.
  if (name ~ /^(mov|and)q$/ && to == "%rsp" && get(state, BP) > 0)
    return state
  if (name == "leave")
    return pop(set(state, SP, get(state, BP)), "%rbp")
  if (name == "movq" && get(state, BP) > 0 && from in saved && to ~ /^-[0-9]+\(%rbp\)$/)
    return store(state, from, to)
  if (name == "movq" && get(state, BP) > 0 && to in saved && from ~ /^-[0-9]+\(%rbp\)$/)
    return load(state, to, from)
  if (name !~ /^(test|cmp)/ && (to == "%rsp" || name ~ /^(enter|pushf|popf)/ \
    || (to == "%rbp" && get(state, BP) > 0)))
    fail("cannot follow the stack pointer after " name " " from "," to)
  return state
}

function meet(label, state) {
  if (label in at && at[label] != state)
    fail("two stacks at " label ": " at[label] "; " state)
  if (!(label in at))
    isChanged = 1
  at[label] = state
}

# The directives that lead from one state to another.
function directives(old, new,  i) {
  if (get(new, BP) > 0 && get(old, BP) != get(new, BP))
    print "\t.cfi_def_cfa %rbp, " get(new, BP)
  else if (get(new, BP) == 0 && (get(old, BP) > 0 || get(old, SP) != get(new, SP)))
    print "\t.cfi_def_cfa %rsp, " get(new, SP)
  for (i = BP + 1; i <= FIELDS; i++)
    if (get(old, i) != get(new, i))
      print "\t." (get(new, i) == 0 ? "cfi_restore " names[i] \
        : "cfi_offset " names[i] ", " get(new, i))
}

# Follows the lines of a routine from its entry; prints them if it is asked to.
function follow(isPrinting,  i, line, name, from, to, state, printed) {
  state = printed = ENTRY
  table = 0
  cases = ""
  for (i = 1; i <= count; i++) {
    line = lines[i]
    if (line ~ /^[^ \t#]+:/) {
      name = line
      sub(/:.*/, "", name)
      if (state != "")
        meet(name, state)
      else if (name in at)
        state = at[name]
      else if (cases != "" && name ~ /^\.Lj/)
        meet(name, state = cases)
    }
    if (isPrinting && state != "" && state != printed) {
      directives(printed, state)
      printed = state
    }
    if (isPrinting)
      print line
    if (line !~ /^\t[a-z]/ || state == "")
      continue
    split(line, words, "\t")
    name = words[2]
    from = to = words[3]
    # Commas inside parentheses are no separators.
    if (match(from, /,[^,()]*(\([^()]*\))?$/)) {
      to = substr(from, RSTART + 1)
      from = substr(from, 1, RSTART - 1)
    }
    if (name == "leaq" && from ~ /^\.Ld[0-9]+\(%rip\)$/)
      table = 1
    if (name ~ /^j/ && to ~ /^\.L/)
      meet(to, state)
    else if (name == "jmp" && to ~ /^\*%r/ && table)
      cases = state
    else if (name ~ /^j/ && (get(state, SP) != 8))
      fail("leaves by " name " " to " with a frame")
    if (name == "ret" && get(state, SP) != 8)
      fail("returns with a frame")
    state = name ~ /^(jmp|ret)$/ ? "" : after(state, name, from, to)
  }
}

# Signal handlers return to a routine that unwinders recognise by its instructions if it has no
# unwind information.
function finish(  label) {
  if (routine ~ /SIGNALRETURN/) {
    for (i = 1; i <= count; i++)
      print lines[i]
    return
  }
  for (label in at)
    delete at[label]
  do {
    isChanged = 0
    follow(0)
  } while (isChanged)
  print "\t.cfi_startproc"
  follow(1)
  print "\t.cfi_endproc"
}

BEGIN {
  SP = 1
  BP = 2
  count = split("%rbp %rbx %r12 %r13 %r14 %r15", list, " ")
  for (i = 1; i <= count; i++) {
    names[BP + i] = list[i]
    saved[list[i]] = BP + i
  }
  FIELDS = BP + count
  ENTRY = "8 0 0 0 0 0 0 0"
  routine = ""
}

routine == "" && /^\t\.type\t.*,@function/ {
  routine = $2
  sub(/,.*/, "", routine)
  isWaiting = 1
}

isWaiting && /^[^ \t#]+:/ {
  print
  isWaiting = 0
  count = 0
  next
}

/^\t\.size\t/ && routine != "" && !isWaiting {
  finish()
  routine = ""
}

routine != "" && !isWaiting {
  lines[++count] = $0
  next
}

{ print }

END {
  if (!failed && routine != "")
    fail("has no end")
}
