# Prints the file `source` with the mistake of the mutant `wanted`; see run.sh for the paragraphs that
# this reads. Exit code 1, and a line to stderr, when its old lines do not occur there once.

$1 == "@" { is_wanted = $2 == wanted; next }
!is_wanted { next }
/^-/ { old = old substr($0, 2) "\n"; next }
/^\+/ { new = new substr($0, 2) "\n"; next }
/^ / { old = old substr($0, 2) "\n"; new = new substr($0, 2) "\n" }

function fail(text) {
  print wanted ": " text > "/dev/stderr"
  exit 1
}

END {
  text = "\n"
  while ((status = (getline line < source)) > 0) text = text line "\n"
  if (status < 0) fail("no file " source)
  if (old == "") fail("no old lines")
  at = index(text, "\n" old)
  if (at == 0) fail("its old lines are not in " source)
  rest = substr(text, at + length(old))
  if (index(rest, "\n" old) != 0) fail("its old lines occur more than once in " source)
  printf "%s%s%s", substr(text, 2, at - 1), new, substr(rest, 2)
}
