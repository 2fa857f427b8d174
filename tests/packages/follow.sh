# The routines that scripts of follow.awk call. Sourced before them, and before the prologue of a page.
set -e
output=${output-/tmp/output}
place="the prologue"

# Where the script is.
at() { # FILE:LINE
  place=$1
}

# The reader comes to a section. Prologues have their own.
section() { # HEADING
  :
}

# A block for Windows.
windows() {
  cat > "$output.windows"
}

# A part of a project file.
project() {
  cat > "$output.project"
}

# COPY of a container: the image is this root, or another folder.
copy() { # FILE PLACE
  cp "$1" "${image-}$2"
}

# What is checked after a page. Prologues have their own.
finish() {
  :
}

# Numbers, addresses and widths of columns are different in each run.
alike() {
  sed 's/[0-9a-f,.]*[0-9][0-9a-f]*/#/g; s/  */ /g; s/^ //'
}

# The output of the last commands has the lines of the standard input, in their order.
shows() {
  alike > "$output.expected"
  alike < "$output" | awk -v place="$place" '
    NR == FNR { expected[++count] = $0; next }
    found < count && index($0, expected[found + 1]) { found++ }
    END {
      if (found < count) {
        print place ": the output has no line: " expected[found + 1]
        exit 1
      }
    }' "$output.expected" -
}

trap 'code=$?; [ $code -eq 0 ] || { echo "$place ended with $code:"; tail -n 20 "$output"; }' EXIT
