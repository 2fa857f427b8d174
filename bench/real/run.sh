#!/bin/sh
# Measures whole server programs in Pascal under several memory managers, as bench/run.sh does it
# with its workloads.
set -eu

usage() {
  cat <<'END'
Usage: PASCAL_PEERS=DIRECTORY bench/real/run.sh [real|horse]

Builds a server once per memory manager, runs it in turn under all of them, and writes
bench/results/SUITE.csv: a row's time is that of a whole run, its peak memory that of the largest
process. The suites:
  real    mORMot 2's tests of its services (bench/real/Soa.lpr); needs libsqlite3
  horse   a web server on Horse (bench/real/Shop.lpr) with sixteen clients; needs curl and ab
DIRECTORY has the sources in mORMot2 and horse, as bench/README.md tells. Needs fpc and gcc, too.

Environment:
  ROUNDS=5          runs of each program under each manager
  MANAGERS='NAME...' only these managers
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
  '' | real | horse) suite=${1:-real} ;;
  *) usage >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
root=$PWD
peers=$root/build/bench/lib
out=$root/build/bench-real
binaries=
mormot=$out/mORMot2
horse=${PASCAL_PEERS:-}/horse/src
if [ ! -d "${PASCAL_PEERS:-}/mORMot2/src" ] || [ ! -d "$horse" ]; then
  usage >&2
  exit 2
fi

# A copy that links none of the static libraries, which are not in mORMot's repository.
copy_sources() {
  mkdir -p "$mormot"
  cp -r "$PASCAL_PEERS/mORMot2/src" "$PASCAL_PEERS/mORMot2/test" "$mormot"
  sed -i \
    -e 's/{$undef LIZARD_EXTERNALONLY}//' \
    -e 's/{$define \(LIB[A-Z]*STATIC\|SHA512_X64\|CRC32C_X64\)}//' \
    "$mormot/src/mormot.defines.inc" "$mormot/src/crypt/mormot.crypt.core.pas"
}

# compile_horse NAME FPC-OPTIONS...
compile_horse() {
  name=$1
  shift
  mkdir -p "$out/$name/units-shop"
  fpc -B -l- -v0e -O3 "-Fu$horse" "-Fi$horse" "$@" -FU"$out/$name/units-shop" \
    -o"$out/$name/shop" bench/real/Shop.lpr >&2
}

# compile_real NAME FPC-OPTIONS...
compile_real() {
  name=$1
  shift
  mkdir -p "$out/$name/units"
  # The options are those of mORMot's own build.
  for folder in app core crypt db lib net orm rest soa script misc; do
    set -- "$@" "-Fu$mormot/src/$folder"
  done
  fpc -B -l- -v0e -MDelphi -Sci -Ci -O3 -CX -XX -dNOSTATIC -dNOSQLITE3STATIC \
    -Fi"$mormot/src" -Fi"$mormot/src/core" -Fi"$mormot/src/net" "$@" -Fu"$mormot/test" \
    -FU"$out/$name/units" -o"$out/$name/soa" bench/real/Soa.lpr >&2
}

# add NAME SETTING FPC-OPTIONS...: the programs with that manager; SETTING is VARIABLE=VALUE
add() {
  case " ${MANAGERS:-$1} " in
    *" $1 "*) ;;
    *) return 0 ;;
  esac
  name=$1 setting=$2
  shift 2
  "compile_$suite" "$name" "$@"
  cat > "$out/$name/bench" <<END
#!/bin/sh
set -eu
rm -rf "$out/here"
mkdir -p "$out/here"
cd "$out/here"
case \$1 in
  soa) set -- "\$1" "$out/$name/soa" ;;
  horse-*) set -- "\$1" sh "$root/bench/real/horse.sh" "$out/$name/shop" "\${1#horse-}" ;;
esac
row=\$1
shift
numbers=\$(env $setting "$out/measure" "\$@")
echo "$name,\$row,1,\$numbers"
END
  chmod +x "$out/$name/bench"
  binaries="$binaries $name=$out/$name/bench"
}

# add_library NAME UNIT LIBRARY: a manager in C, of bench/peers.sh or the system, if it is there
add_library() {
  if ld -shared -o "$out/probe" "-L$peers" "-l$3" 2> /dev/null; then
    add "$1" LANEMM= "-Fa$2" -Fubench/managers -Fubench/core -Fibench/core "-Fl$peers" -k-rpath "-k$peers"
  else
    echo "Left out: $1" >&2
  fi
}

mkdir -p "$out" bench/results build/bench/units
copy_sources
bench/peers.sh jemalloc
gcc -O2 -o "$out/measure" bench/c/measure.c
fpc -B -l- -v0ewn -vm6018,6058 -O3 -Fibench/core -Fubench/core -Fubench/runner \
  -FUbuild/bench/units -o"$out/runner" bench/Runner.lpr >&2
add FPC LANEMM=
add_library glibc GlibcMM c
add_library jemalloc JemallocMM jemalloc
add_library tcmalloc TcmallocMM tcmalloc_minimal
add_library mimalloc MimallocMM mimalloc
add mormot LANEMM= -Famormot.core.fpcx64mm "-Fu$mormot/src/core" "-Fi$mormot/src"
add mormot-server LANEMM= -Famormot.core.fpcx64mm -dFPCMM_SERVER "-Fu$mormot/src/core" "-Fi$mormot/src"
add LaneMM LANEMM= -FaLaneMM -Fusrc '-Fusrc/*'
add LaneMM-nothp LANEMM=huge=0 -FaLaneMM -Fusrc '-Fusrc/*'
revision=$(git rev-parse --short HEAD)
git --no-optional-locks diff --quiet HEAD -- src bench ':!bench/results' ||
  revision="$revision with changes"
command="PASCAL_PEERS=DIRECTORY ${MANAGERS:+MANAGERS='$MANAGERS' }ROUNDS=${ROUNDS:-5} bench/real/run.sh $suite"
# shellcheck disable=SC2086
"$out/runner" "bench/suites/$suite.txt" "bench/results/$suite.csv" "${ROUNDS:-5}" 1 \
  "command: $command
date: $(date -u +%F)
revision: $revision
library: mORMot $(tr -cd '0-9.' < "$mormot/src/mormot.commit.inc")
library: Horse $(sed -n "s/.*HORSE_VERSION = '\(.*\)'.*/\1/p" "$horse/Horse.Constants.pas")" $binaries
