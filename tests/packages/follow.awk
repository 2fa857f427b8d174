# Makes a script of the shell out of a page: it does what the page has its reader do, in this order, and ends
# with an error at the first command that fails.
#
#   awk -f follow.awk PAGE
#
# Blocks between ``` are followed; those that are indented are examples. By the word after ```:
#   sh          commands
#   pascal, c   a file; the paragraph before names it: Save this as `NAME`
#   dockerfile  COPY and ENV
#   bat         commands of cmd, for `windows`, which a page of Windows has; elsewhere not run
#   powershell  not run
#   xml         a part of a project file of Lazarus, for `project`
#   text        what the commands before have shown, among other lines; its numbers may be others
# Headings become calls of `section`, so that a prologue can make what the reader has there. tests/packages/follow.sh
# has the routines that the script calls.

/^```/ && kind == "" {
  kind = substr($0, 4)
  if (kind == "sh")
    print "at '" FILENAME ":" FNR "'\n{"
  else if (kind == "pascal" || kind == "c")
    print "cat > '" name "' <<'END_OF_BLOCK'"
  else if (kind == "text")
    print "shows <<'END_OF_BLOCK'"
  else if (kind == "xml")
    print "project <<'END_OF_BLOCK'"
  else if (kind == "bat")
    print "at '" FILENAME ":" FNR "'\nwindows <<'END_OF_BLOCK'"
  else if (kind != "dockerfile" && kind != "powershell") {
    print "page has a block of an unknown kind: " $0 > "/dev/stderr"
    exit 1
  }
  next
}

/^```/ {
  if (kind == "sh")
    print "} > \"$output\" 2>&1"
  else if (kind != "dockerfile" && kind != "powershell")
    print "END_OF_BLOCK"
  kind = ""
  next
}

kind == "dockerfile" && $1 == "COPY" { print "copy " $(NF - 1) " " $NF; next }
kind == "dockerfile" && $1 == "ENV" { print "export " $2; next }
kind == "powershell" { next }
kind != "" { print; next }

/^#+ / { sub(/^#+ /, ""); gsub(/'/, "'\\''"); print "section '" $0 "'" }
match($0, /[Ss]ave this as `[^`]*`/) { name = substr($0, RSTART + 14, RLENGTH - 15) }
