#!/bin/sh
# Checks that models and code are in step. The header of each model lists the routines that it
# mirrors, each with its steps: the atomic operations, locks, waits, accesses to shared fields (`:=`
# written, `+` and `-` counted up and down) and calls of other listed routines, in the order of the
# source. This script takes the same list out of src/ and compares. A routine also has to be named in
# the model below the header.
#
#   steps.sh           prints a line for each difference, then `N passed, N failed`
#   steps.sh --quiet   only the differences
#   steps.sh --print   the lists as the source has them, to copy into the header of a model after
#                      the model itself was changed
set -u
. "$(dirname "$0")/../../tools/begin.sh"

awk -v mode="${1-}" '
function fail(text) { failed++; print text }

# ------------------------------------------------------------------ the headers of the models

# Lines ` *   LaneMM.Unit` and ` *     Routine: steps`, below ` * Mirrors`, up to the next empty line.
function read_model(file, line, state, unit, name, i, words, count) {
  state = 0
  name = ""
  while ((getline line < file) > 0) {
    if (state == 2) { body[file] = body[file] " " line; continue }
    if (line ~ /^ \*\/$/) { state = 2; continue }
    if (line ~ /^ \* Mirrors/) { state = 1; continue }
    if (state != 1) continue
    if (line ~ /^ \*$/) { state = 0; continue }
    count = split(line, words, " ")
    if (words[2] ~ /^LaneMM\./ && count == 2) { unit = words[2]; name = ""; continue }
    i = 2
    if (words[2] ~ /^[A-Za-z]+:$/) {
      name = substr(words[2], 1, length(words[2]) - 1)
      entries++
      entry_file[entries] = file
      entry_unit[entries] = unit
      entry_name[entries] = name
      wanted[entries] = ""
      known[name] = 1
      needed[unit] = 1
      i = 3
    }
    if (name != "")
      for (; i <= count; i++) wanted[entries] = wanted[entries] " " words[i]
  }
  close(file)
}

# ------------------------------------------------------------------ the source

# The line without comments and texts; comments of several lines do not occur in bodies.
function code_of(line) {
  gsub(/\047[^\047]*\047/, " ", line)
  gsub(/\{[^}]*\}/, " ", line)
  sub(/\/\/.*/, "", line)
  return line
}

# The steps of a body.
function steps_of(code, result, token, before, rest, sign) {
  gsub(/Check\([^;]*;/, ";", code)
  result = ""
  sign = ""
  before = ""
  while (match(code, /[A-Za-z_][A-Za-z0-9_]*|;/)) {
    token = substr(code, RSTART, RLENGTH)
    before = RSTART > 1 ? substr(code, RSTART - 1, 1) : ""
    code = substr(code, RSTART + RLENGTH)
    rest = code
    sub(/^ */, "", rest)
    if (token == ";") sign = ""
    else if (token == "Inc") sign = "+"
    else if (token == "Dec") sign = "-"
    else if (before == "." && token in fields) {
      result = result " " token sign (rest ~ /^:=/ ? ":=" : "")
      sign = ""
    }
    else if (before != "." && (token in operations || token in known)) result = result " " token
  }
  return result
}

function read_unit(unit, command, file, line, name, code, is_body) {
  command = "ls src/*/" unit ".pas 2> /dev/null"
  command | getline file
  close(command)
  if (file == "") { fail("no unit " unit); return }
  is_body = 0
  name = ""
  while ((getline line < file) > 0) {
    line = code_of(line)
    if (line ~ /^implementation/) is_body = 1
    if (!is_body) continue
    if (line ~ /^(function|procedure) /) {
      name = line
      sub(/^(function|procedure) */, "", name)
      sub(/[^A-Za-z0-9_].*/, "", name)
      code = ""
      continue
    }
    if (name == "") continue
    if (line ~ /^end;/) {
      found[unit, name] = steps_of(code)
      is_found[unit, name] = 1
      name = ""
      continue
    }
    code = code " " line
  }
  close(file)
}

# ------------------------------------------------------------------ all

function compare(i, unit, name, model) {
  unit = entry_unit[i]
  name = entry_name[i]
  model = entry_file[i]
  if (!((unit, name) in is_found))
    fail(model ": " unit " has no routine " name)
  else if (found[unit, name] != wanted[i])
    fail(model ": " unit "." name " has changed: the model has" wanted[i] "; the code has" found[unit, name])
  else if (body[model] !~ ("[^A-Za-z]" name "[^A-Za-z]"))
    fail(model ": no step of " name " below the header")
  else
    passed++
}

BEGIN {
  count = split("LoadAcquire StoreRelease Swap CompareAndSwap FetchAdd ReleaseFence AcquireFence OwnerOf LockEnter LockTry DebugLockEnter" \
    " LockTryAgain LockLeave DebugLockLeave LockPark LockRecover RaiseTo OsWait OsWaitMs OsWake OsWakeAll OsGuard OsRead OsBarrier", words, " ")
  for (i = 1; i <= count; i++) operations[words[i]] = 1
  count = split("Owner Used FreeList Remote IsCurrent Section RunsClaimed Taken Released SweepWanted PurgeState" \
    " WarmSlices State Link GuardReaders GuardChanges PurgesHeld PurgesUnderWay Refused Backed Frontier Committed CommitsUnderWay Reserved Limit Heaps" \
    " UnusedHeaps VacantHeaps FreshHeaps NextUnused ShelvedPages Requested Answered Postponed ReporterState ReporterChanges", words, " ")
  for (i = 1; i <= count; i++) fields[words[i]] = 1
  passed = 0
  failed = 0
  while (("ls tests/model/*.pml" | getline model) > 0) { models++; read_model(model) }
  if (entries == 0) fail("no model lists a routine")
  for (unit in needed) read_unit(unit)
  for (i = 1; i <= entries; i++)
    if (mode == "--print") print entry_file[i] " " entry_unit[i] " " entry_name[i] ":" found[entry_unit[i], entry_name[i]]
    else compare(i)
  if (mode == "" && models > 0) print passed " passed, " failed " failed"
  exit failed > 0
}' < /dev/null
