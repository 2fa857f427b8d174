#!/bin/sh
# Builds the C managers that Debian does not package, or not in their newest version.
#
# Usage: [C_PEERS=DIRECTORY] bench/peers.sh [NAME...]
#
# Builds build/bench/lib/lib*.so from sources that lie inside registry packages:
#   mimalloc 3.4.3    PyPI's cmeel-mimalloc      needs python3-pip, gcc
#   jemalloc 5.3.1    crate tikv-jemalloc-sys    needs cargo, gcc, make
#   snmalloc          crate snmalloc-sys         needs cargo, g++
#   Google's tcmalloc crate libtcmalloc-sys      needs cargo, g++
# and from clones that you made in DIRECTORY, since no registry has them:
#   rpmalloc          git clone -b 2.0.1 https://github.com/mjansson/rpmalloc
#   gperftools        git clone -b gperftools-2.18.1 https://github.com/gperftools/gperftools
#                     (needs cmake and g++; without it bench/run.sh takes Debian's)
# What was built of the same version is not built again; lib/NAME.version states it. Prints a line for
# each library that cannot be built. NAME is mimalloc3, jemalloc, snmalloc, tcmalloc-google, rpmalloc or
# tcmalloc; all unless given. Takes about four minutes on two cores, most of it for tcmalloc-google.
set -eu
. "$(dirname "$0")/../tools/begin.sh"
. bench/lib.sh

wanted=${*:-mimalloc3 jemalloc snmalloc tcmalloc-google rpmalloc tcmalloc}
out=build/bench/lib
sources=build/bench/peers
mkdir -p "$out" "$sources/src"

# The packages, each in the newest version.
mimalloc='cmeel-mimalloc==3.4.3'
crates='snmalloc-sys = "=0.7.6"
tikv-jemalloc-sys = "=0.7.1"
libtcmalloc-sys = "=0.1.14"'

# crate NAME: the version of that crate
crate() { echo "$crates" | sed -n "s/^$1 = \"=\(.*\)\"/\1/p"; }

# begin NAME VERSION TOOL...: whether lib NAME of VERSION is still to be built, and the tools are here
begin() {
  is_wanted "$1" || return
  name=$1 version=$2 log=$out/$1.log
  shift 2
  [ "$(cat "$out/$name.version" 2> /dev/null)" != "$version" ] || return 1
  rm -f "$out/lib$name.so" "$out/lib$name-malloc.so" "$out/$name.version"
  for tool; do
    command -v "$tool" > /dev/null && continue
    echo "Left out: $name; for it install $*" >&2
    return 1
  done
  : > "$log"
}

# finish COMMAND...: builds lib $name by COMMAND and notes its version
finish() {
  if "$@" > "$log" 2>&1; then
    echo "$version" > "$out/$name.version"
  else
    rm -f "$out/lib$name.so"
    echo "Left out: $name; it cannot be built, see $log" >&2
  fi
}

fetch_crates() {
  [ "$(cat "$sources/fetched" 2> /dev/null)" != "$crates" ] || return 0
  printf '[package]\nname = "peers"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s\n' \
    "$crates" > "$sources/Cargo.toml"
  : > "$sources/src/lib.rs"
  (cd "$sources" && cargo vendor --quiet crates > /dev/null) && echo "$crates" > "$sources/fetched"
}

# library LIBRARY COMPILER FLAGS...: a shared library, with the flags of each project's own release
library() {
  library=$1
  shift
  "$@" -O3 -DNDEBUG -fPIC -ftls-model=initial-exec -shared -w -o "$out/lib$library.so"
}

build_mimalloc() {
  rm -rf "$sources/pip"
  python3 -m pip download --quiet --no-deps --no-binary cmeel-mimalloc -d "$sources/pip" "$mimalloc" &&
    tar -xzf "$sources"/pip/*.tar.gz -C "$sources/pip" || return
  folder=$(echo "$sources"/pip/*/mimalloc)
  set -- gcc "$folder/src/static.c" "-I$folder/include" -DMI_DEBUG=0 -DMI_BUILD_RELEASE \
    -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -fvisibility=hidden -mpopcnt
  # The second one for LD_PRELOAD: the same as malloc.
  library mimalloc3 "$@" && library mimalloc3-malloc "$@" -DMI_MALLOC_OVERRIDE
}

build_jemalloc() {
  fetch_crates || return
  rm -rf "$sources/jemalloc"
  cp -r "$sources/crates/tikv-jemalloc-sys/jemalloc" "$sources/jemalloc"
  cp "$sources/crates/tikv-jemalloc-sys/configure/configure" "$sources/jemalloc/"
  # The crate's version states jemalloc's after a plus sign.
  (cd "$sources/jemalloc" && sh ./configure --disable-cxx --disable-doc --disable-static \
    --with-version="$(sed -n 's/^version = ".*+\(.*\)"/\1/p' ../crates/tikv-jemalloc-sys/Cargo.toml)" &&
    make -j "$(nproc)" build_lib_shared) || return
  cp "$sources/jemalloc/lib/libjemalloc.so.2" "$out/"
  ln -sf libjemalloc.so.2 "$out/libjemalloc.so"
}

build_snmalloc() {
  fetch_crates || return
  folder=$sources/crates/snmalloc-sys/upstream/src
  set -- g++ "$folder/snmalloc/override/malloc.cc" "-I$folder" -std=c++20 -fno-exceptions -fno-rtti \
    -mcx16 -DSNMALLOC_USE_WAIT_ON_ADDRESS=1 -DSNMALLOC_USE_PTHREAD_DESTRUCTORS
  library snmalloc "$@" -DSNMALLOC_STATIC_LIBRARY_PREFIX=sn_ && library snmalloc-malloc "$@"
}

# The crate's build script names the files; its patches, which only add options, are left out.
build_tcmalloc_google() {
  fetch_crates || return
  folder=$sources/tcmalloc
  rm -rf "$folder"
  cp -r "$sources/crates/libtcmalloc-sys" "$folder"
  sed -n 's/^ *"\(c_src.*\.\(cc\|S\)\)",$/\1/p' "$folder/build.rs" > "$folder/files"
  (cd "$folder" && xargs -P "$(nproc)" -I FILE sh -c 'g++ -c -O3 -DNDEBUG -fPIC -w -std=c++17 \
    -Ic_src/abseil-cpp -Ic_src/tcmalloc -DNOMINMAX -DTCMALLOC_INTERNAL_METHODS_ONLY \
    -DTCMALLOC_INTERNAL_8K_PAGES -o "$(echo FILE | tr / _).o" FILE' < files) || return
  g++ -shared -o "$out/libtcmalloc-google.so" "$folder"/*.o -lpthread
}

build_rpmalloc() {
  # A thread that rpmalloc was not told of starts at its first call.
  library rpmalloc gcc -std=c11 -D_GNU_SOURCE -DENABLE_OVERRIDE=0 "$C_PEERS/rpmalloc/rpmalloc/rpmalloc.c"
}

build_gperftools() {
  rm -rf "$sources/gperftools"
  cmake -S "$C_PEERS/gperftools" -B "$sources/gperftools" -DCMAKE_BUILD_TYPE=Release \
    -DGPERFTOOLS_BUILD_CPU_PROFILER=OFF -DGPERFTOOLS_BUILD_HEAP_PROFILER=OFF \
    -DGPERFTOOLS_BUILD_DEBUGALLOC=OFF -DBUILD_TESTING=OFF -Dgperftools_build_benchmark=OFF &&
    cmake --build "$sources/gperftools" -j "$(nproc)" --target tcmalloc_minimal || return
  cp -L "$sources/gperftools/libtcmalloc_minimal.so" "$out/libtcmalloc.so"
  ln -sf libtcmalloc.so "$out/$(objdump -p "$out/libtcmalloc.so" | awk '$1 == "SONAME" { print $2 }')"
}

# clone NAME: whether there is a clone of that name, of which $revision is then the version
clone() {
  [ -d "${C_PEERS:-}/$1/.git" ] || return 1
  revision=$(git -C "$C_PEERS/$1" describe --tags --always)
}

if begin mimalloc3 "mimalloc 3.4.3 (PyPI $mimalloc)" python3 gcc; then finish build_mimalloc; fi
if begin jemalloc "jemalloc 5.3.1 (crate tikv-jemalloc-sys $(crate tikv-jemalloc-sys))" \
  cargo gcc make; then finish build_jemalloc; fi
if begin snmalloc "snmalloc (crate snmalloc-sys $(crate snmalloc-sys))" cargo g++; then
  finish build_snmalloc
fi
if begin tcmalloc-google "Google's tcmalloc (crate libtcmalloc-sys $(crate libtcmalloc-sys))" \
  cargo g++; then finish build_tcmalloc_google; fi
if clone rpmalloc; then
  if begin rpmalloc "rpmalloc $revision (github mjansson/rpmalloc)" gcc; then finish build_rpmalloc; fi
elif is_wanted rpmalloc && [ ! -e "$out/librpmalloc.so" ]; then
  echo 'Left out: rpmalloc; for it see bench/peers.sh --help' >&2
fi
if clone gperftools; then
  if begin tcmalloc "$revision (github gperftools/gperftools)" cmake g++ objdump; then
    finish build_gperftools
  fi
fi
