# Counts tests. Sourced by scripts in the root of the repository, whose last command is `sum`. The file
# $printed has what the command of the last test printed.
passed=0
failed=0
printed=

# Counts a test that passed, with a line if it has a name.
pass() { # [NAME]
  passed=$((passed + 1))
  [ $# -eq 0 ] || echo "passed: $1"
}

# Counts a test that failed, and shows the end of FILE.
fail() { # NAME [FILE]
  failed=$((failed + 1))
  echo "failed: $1"
  [ ! -s "${2-}" ] || tail -n 30 "$2" | sed 's/^/  /'
}

# Says of a test that it was not made: it counts neither as passed nor as failed.
skip() { # NAME REASON
  echo "skipped: $1: $2"
}

# Counts a test by its exit code.
report() { # NAME STATUS
  if [ "$2" -eq 0 ]; then pass "$1"; else fail "$1" "$printed"; fi
}

# Counts a test that passes if the command ends with success.
promise() { # NAME COMMAND...
  promised=$1
  shift
  if "$@" > "$printed" 2>&1; then pass; else fail "$promised" "$printed"; fi
}

# Counts a test that passes if both are the same, and not empty.
same() { # NAME EXPECTED FOUND
  if [ -n "$2" ] && [ "$2" = "$3" ]; then pass "$1"; else fail "$1: expected '$2', found '$3'"; fi
}

# Counts a test of lanemm: its exit code, and a part of what it prints.
answers() { # NAME CODE PART ARGUMENTS...
  promised=$1 code=$2 part=$3
  shift 3
  got=0
  timeout 120 "$lanemm" "$@" > "$printed" 2>&1 || got=$?
  if [ $got -eq "$code" ] && { [ -z "$part" ] || grep -q -e "$part" "$printed"; }; then
    pass
  else
    fail "$promised: exit code $got" "$printed"
  fi
}

# Repeats a command until it ends with success, for a minute; returns whether it did. If not, it prints
# what the command printed last.
await() { # COMMAND...
  looks=0
  until "$@" > "$printed.await" 2>&1; do
    looks=$((looks + 1))
    [ $looks -lt 600 ] || { cat "$printed.await"; return 1; }
    sleep 0.1
  done
}

# Prints the numbers of the last line `N passed, N failed` of a log, whose command ended with STATUS. A log
# without that line, or a status that it does not explain, is a failed test.
counts() { # FILE STATUS
  sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p' "$1" | tail -n 1 | {
    read -r good bad || good=0 bad=1
    [ "$2" -eq 0 ] || [ "$bad" -ne 0 ] || bad=1
    echo "$good $bad"
  }
}

# Adds them; $added has both. Returns whether none failed.
add() { # FILE STATUS
  added=$(counts "$1" "$2")
  passed=$((passed + ${added% *}))
  failed=$((failed + ${added#* }))
  [ "${added#* }" -eq 0 ]
}

# Prints the sum of all tests; returns whether none failed.
sum() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
