#!/bin/sh
# Measures whole server programs in Pascal under several memory managers, as bench/run.sh does it
# with its workloads.
#
# Usage: PASCAL_PEERS=DIRECTORY bench/real/run.sh [real|horse|server]
#
# Builds a server once per memory manager, runs it in turn under all of them, and writes
# bench/results/SUITE.csv: a row's time is that of a whole run, its peak memory that of the largest
# process. The suites:
#   real    mORMot 2's tests of its services (bench/real/Soa.lpr); needs libsqlite3
#   horse   a web server on Horse (bench/real/Shop.lpr) with sixteen clients; needs curl and ab
#   server  mORMot 2's TechEmpower sample (bench/real/server.sh) with PostgreSQL: requests per second,
#           CPU time per request and memory of the server; needs curl, wrk, libpq5 and libsqlite3
# DIRECTORY has the sources in mORMot2 and horse, as bench/README.md tells. Needs fpc and gcc, too.
#
# Environment:
#   ROUNDS=5          runs of each program under each manager
#   MANAGERS='NAME...' only these managers, instead of those that the suite names
#   BUSY=1            measures also while other programs keep the machine busy; the results say so
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. bench/lib.sh

suite=${1:-real}
case $suite in
  real | horse | server) ;;
  *) sh "$0" --help >&2; exit 2 ;;
esac
root=$PWD
peers=$root/build/bench/lib
out=$root/build/bench-real
mormot=$out/mORMot2
horse=${PASCAL_PEERS:-}/horse/src
database=
result=bench/results/$suite.csv
wanted=${MANAGERS:-$(sed -n 's/^managers  *//p' "bench/suites/$suite.txt")}

# need FOLDER: ends when PASCAL_PEERS does not have it
need() {
  [ -d "${PASCAL_PEERS:-}/$1" ] && return
  echo "run.sh: PASCAL_PEERS=${PASCAL_PEERS:-} has no $1; bench/README.md says what belongs there" >&2
  exit 2
}

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

# compile_mormot PROGRAM OUTPUT UNITS FPC-OPTIONS...
compile_mormot() {
  program=$1 output=$2 units=$3
  shift 3
  mkdir -p "$units"
  # The options are those of mORMot's own build.
  for folder in app core crypt db lib net orm rest soa script misc; do
    set -- "$@" "-Fu$mormot/src/$folder"
  done
  fpc -l- -v0e -MDelphi -Sci -Ci -O3 -CX -XX -dNOSTATIC -dNOSQLITE3STATIC \
    -Fi"$mormot/src" -Fi"$mormot/src/core" -Fi"$mormot/src/net" "$@" -FU"$units" -o"$output" "$program" >&2
}

# compile_real NAME FPC-OPTIONS...
compile_real() {
  name=$1
  shift
  compile_mormot bench/real/Soa.lpr "$out/$name/soa" "$out/$name/units" -B "$@" -Fu"$mormot/test"
}

# compile_server NAME FPC-OPTIONS...: all share their units but for the manager and its mode; with symbols, for count.sh
compile_server() {
  name=$1
  shift
  rm -f "$out/units-server/mormot.core.fpcx64mm."* "$out/units-server/raw."*
  mkdir -p "$out/$name"
  compile_mormot "$mormot/raw.pas" "$out/$name/server" "$out/units-server" -Xs- "$@"
}

# The sample, with the address and the database that the environment names.
prepare_server() {
  sh tools/need.sh curl wrk
  sed -e "s/'8080', nil/RawUtf8(GetEnvironmentVariable('SERVER_ADDRESS')), nil/" \
    -e "s/'tfb-database:5432'/''/" "$PASCAL_PEERS/mORMot2/ex/techempower-bench/raw.pas" > "$mormot/raw.pas"
  cp "$PASCAL_PEERS/mORMot2/ex/techempower-bench/create-postgres.sql" "$mormot"
  rm -rf "$out/units-server"
  database=$(mktemp -d "${TMPDIR:-/tmp}/lanemm-server.XXXXXX")
  trap 'rm -rf "$database"' EXIT
  sh bench/real/database.sh make "$database" < "$mormot/create-postgres.sql"
}

# add NAME SETTING FPC-OPTIONS...: the programs with that manager; SETTING is VARIABLE=VALUE
add() {
  is_wanted "$1" || return 0
  name=$1 setting=$2
  shift 2
  "compile_$suite" "$name" "$@"
  cat > "$out/$name/bench" <<END
#!/bin/sh
set -eu
rm -rf "$out/here"
mkdir -p "$out/here"
cd "$out/here"
row=\$1 scale=\$5
case \$row in
  soa) set -- "$out/measure" "$out/$name/soa" ;;
  horse-*) set -- "$out/measure" sh "$root/bench/real/horse.sh" "$out/$name/shop" "\${row#horse-}" ;;
  server-*) set -- sh "$root/bench/real/server.sh" "$out/$name/server" "\${row#server-}" "\$scale" "$database" ;;
esac
numbers=\$(env $setting "\$@")
echo "$name,\$row,1,\$numbers"
END
  chmod +x "$out/$name/bench"
  binaries="$binaries $name=$out/$name/bench"
}

# add_library NAME UNIT LIBRARY: a manager in C, of bench/peers.sh or the system, if it is there
add_library() {
  is_wanted "$1" || return 0
  if ld -shared -o "$out/probe" "-L$peers" "-l$3" 2> /dev/null; then
    add "$1" LANEMM= "-Fa$2" -Fubench/managers -Fubench/core -Fibench/core "-Fl$peers" -k-rpath "-k$peers"
  else
    echo "Left out: $1" >&2
  fi
}

# add_mormot NAME FPC-OPTIONS...: mORMot's own manager in a mode
add_mormot() {
  name=$1
  shift
  add "$name" LANEMM= -Famormot.core.fpcx64mm "-Fu$mormot/src/core" "-Fi$mormot/src" "$@"
}

need mORMot2/src
[ "$suite" != horse ] || need horse/src
[ "$suite" != server ] || need mORMot2/ex/techempower-bench
mkdir -p "$out" bench/results
copy_sources
case $suite in
  horse) sh tools/need.sh curl ab ;;
  server) prepare_server ;;
esac
! is_wanted jemalloc || bench/peers.sh jemalloc
gcc -O2 -o "$out/measure" bench/c/measure.c
build_runner
add FPC LANEMM=
add cmem LANEMM= -Facmem
add_library glibc GlibcMM c
add_library jemalloc JemallocMM jemalloc
add_library tcmalloc TcmallocMM tcmalloc_minimal
add_library mimalloc MimallocMM mimalloc
add_mormot mormot
add_mormot mormot-server -dFPCMM_SERVER
add_mormot mormot-boost -dFPCMM_BOOST
add_mormot mormot-booster -dFPCMM_BOOSTER
if grep -q FPCMM_MOONSHARD "$mormot/src/core/mormot.core.fpcx64mm.pas"; then
  add_mormot mormot-moonshard -dFPCMM_BOOSTER -dFPCMM_MOONSHARD
elif is_wanted mormot-moonshard; then
  echo 'Left out: mormot-moonshard; mORMot2 there has no FPCMM_MOONSHARD' >&2
fi
add LaneMM LANEMM= -FaLaneMM -Fusrc '-Fusrc/*'
add LaneMM-nothp LANEMM=huge=0 -FaLaneMM -Fusrc '-Fusrc/*'
mormot_revision=$(git -C "$PASCAL_PEERS/mORMot2" rev-parse --short HEAD 2> /dev/null || echo unknown)
library=
case $suite in
  horse) library="Horse $(sed -n "s/.*HORSE_VERSION = '\(.*\)'.*/\1/p" "$horse/Horse.Constants.pas")" ;;
  server) library="PostgreSQL $(psql --version | sed 's/.* (Debian \(.*\))/\1/'), $(wrk -v | sed -n '1s/ \[.*//p')"
    result=$out/server-runs.csv ;;
esac
# shellcheck disable=SC2086
"$out/runner" "bench/suites/$suite.txt" "$result" "${ROUNDS:-5}" 1 \
  "command: PASCAL_PEERS=DIRECTORY $(ROUNDS=${ROUNDS:-5} given MANAGERS ROUNDS BUSY)bench/real/run.sh $suite$(revision src bench)
library: mORMot $(tr -cd '0-9.' < "$mormot/src/mormot.commit.inc"), revision $mormot_revision${library:+
library: $library}" $binaries
[ "$suite" != server ] || awk -f bench/real/requests.awk "$result" > bench/results/server.csv
