# Reads the heads of programs of Free Pascal's test suite, as its own driver does (tests/utils/testu.pp): lines
# that begin with { or are empty, up to the first that is neither. Prints a line for each program, separated
# by |: what to do with it, file, exit code, options of the compiler, files to copy.

function within(list) {
  return ("," tolower(list) ",") ~ (",(" us "),")
}

function plan() {
  if (file == "")
    return
  if ("FAIL" in entry)
    what = "fails to compile"
  else if (("TARGET" in entry && !(within(entry["TARGET"]))) || within(entry["SKIPTARGET"]) \
      || ("CPU" in entry && !within(entry["CPU"])) || within(entry["SKIPCPU"]))
    what = "another target"
  else if (entry["VERSION"] > version || ("MAXVERSION" in entry && entry["MAXVERSION"] < version))
    what = "another version"
  else if ("INTERACTIVE" in entry || "GRAPH" in entry)
    what = "interactive"
  else if ("NORUN" in entry)
    what = "norun"
  else if ("NEEDLIBRARY" in entry)
    what = "library"
  else
    what = "run"
  print what "|" file "|" entry["RESULT"] + 0 "|" options(entry["OPT"]) "|" entry["FILES"] "|" entry["CONFIGFILE"]
}

# Options may have a target before them: linux%-dONE.
function options(list,    parts, i, result) {
  gsub(/"/, "", list)
  split(list, parts, " ")
  for (i = 1; i in parts; i++) {
    if (index(parts[i], "%")) {
      if (!within(substr(parts[i], 1, index(parts[i], "%") - 1)))
        continue
      parts[i] = substr(parts[i], index(parts[i], "%") + 1)
    }
    result = result parts[i] " "
  }
  return result
}

BEGIN {
  us = "linux|x86_64"
}

FNR == 1 {
  plan()
  file = FILENAME
  split("", entry)
  over = 0
  sub(/^\357\273\277/, "")
}

over {
  next
}

{
  sub(/\r$/, "")
  sub(/^[ \t]+/, "")
}

/^[^{]/ {
  over = 1
}

/^\{[ \t]*%/ {
  sub(/^\{[ \t]*%/, "")
  name = toupper($0)
  sub(/[^A-Z].*/, "", name)
  value = ""
  if (match($0, /^[A-Za-z]+[ \t]*=/)) {
    value = substr($0, RLENGTH + 1)
    sub(/\}.*/, "", value)
    gsub(/^[ \t]+|[ \t]+$/, "", value)
  }
  entry[name] = value
}

END {
  plan()
}
