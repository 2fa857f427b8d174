# What the scripts that measure share. Sourced in the root of the repository.
binaries=
sources=

say() { echo "$*" >&2; }

# is_wanted NAME: whether that manager is to take part; all are unless $wanted names some
is_wanted() {
  case " ${wanted:-$1} " in
    *" $1 "*) ;;
    *) return 1 ;;
  esac
}

# add_source LINE: a line for the results file
add_source() {
  sources="$sources
library: $1"
}

# given NAME[=SHOWN]...: those of these variables that are set, as the user typed them; SHOWN stands for a value
given() {
  for word in "$@"; do
    eval "value=\${${word%%=*}:-}"
    [ -n "$value" ] || continue
    case $word in
      *=*) value=${word#*=} ;;
    esac
    case $value in
      *' '*) value="'$value'" ;;
    esac
    printf '%s=%s ' "${word%%=*}" "$value"
  done
}

# revision PATH...: lines with the day, and with the commit that is measured, if this is a git work tree
revision() {
  commit=$(git rev-parse --short HEAD 2> /dev/null) || return 0
  printf '\ndate: %s\nrevision: %s' "$(date -u +%F)" "$commit"
  git --no-optional-locks diff --quiet HEAD -- "$@" ':!bench/results' || printf ' with changes'
}

# build_runner: $out/runner, which runs a suite
build_runner() {
  mkdir -p build/bench/units
  fpc -B -l- -v0ewn -vm6018,6058 -O3 -Fibench/core -Fubench/core -Futests -Fubench/runner \
    -FUbuild/bench/units -o"$out/runner" bench/Runner.lpr >&2
}

# instructions COMMAND...: prints how many it takes, counted by callgrind
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 |
    awk '$2 == "Collected" { print $4; found = 1 } END { exit !found }'
}
