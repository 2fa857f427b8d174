#!/bin/sh
# Prints the manual page lanemm(1), out of what the tool's help says.
#
#   sh tools/man.sh LANEMM > lanemm.1
#
# LANEMM is the program. `lanemm help` begins with a line, lists the commands with a line for each, and
# ends with a paragraph; `lanemm help COMMAND` has its usage, a sentence, and details.
set -eu

case ${1-} in
  '' | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

tool=$1
version=$(sh "$(dirname "$0")/version.sh")

# Text as troff takes it: a backslash, a hyphen that is typed, and a dot at the start of a line.
roff() {
  sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'
}

"$tool" help > /dev/null
commands=$("$tool" help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p')

cat <<END_OF_HEAD
.TH LANEMM 1 "" "LaneMM $version" "User Commands"
.SH NAME
lanemm \- look at programs that run on LaneMM
.SH SYNOPSIS
.B lanemm
.I command
.RI [ arguments ]
.br
.B lanemm help
.RI [ command ]
.SH DESCRIPTION
LaneMM is a memory manager for programs in Pascal, and by liblanemm for any program.
.B lanemm
shows what it does in a running program, and reads the files that it has written.
.SH COMMANDS
END_OF_HEAD
for command in $commands; do
  echo '.TP'
  "$tool" help "$command" | roff | sed '1s/.*/.B "&"/; 2d; /^$/c .IP'
done
echo '.SH NOTES'
"$tool" help | sed '1,/^  /d; /^  /d; /^$/d' | roff
cat <<'END_OF_FOOT'
.SH SEE ALSO
.BR liblanemm (3)
END_OF_FOOT
