#!/bin/sh
# Builds the C managers that Debian does not package, or not in their newest version.
set -eu

usage() {
  cat <<'END'
Usage: bench/peers.sh

Fetches the sources of mimalloc 3, snmalloc and rpmalloc, which lie inside crates, and
builds libraries: build/bench/lib/lib*.so. What is there is not built again. Prints
a line for each one that cannot be built. Needs cargo, gcc and g++.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
esac
cd "$(dirname "$0")/.."
out=build/bench/lib
sources=build/bench/peers
mkdir -p "$out" "$sources/src"

# The crates, each in the version that was measured.
crates='libmimalloc-sys = "=0.1.49"
snmalloc-sys = "=0.7.6"
rpmalloc-sys = "=0.2.3"'

fetch() {
  printf '[package]\nname = "peers"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s\n' \
    "$crates" > "$sources/Cargo.toml"
  : > "$sources/src/lib.rs"
  (cd "$sources" && cargo vendor --quiet crates > /dev/null)
}

# library NAME COMPILER SOURCE FLAGS...: SOURCE, seen from the crates, becomes lib NAME,
# with the flags of each project's own release build.
library() {
  name=$1 compiler=$2 source=$sources/crates/$3
  shift 3
  if ! "$compiler" -O3 -DNDEBUG -fPIC -ftls-model=initial-exec -shared -w "$@" "$source" \
    -o "$out/lib$name.so" 2> "$out/$name.log"; then
    echo "Left out: $name; it does not compile, see $out/$name.log" >&2
  fi
}

build() {
  mimalloc=libmimalloc-sys/c_src/mimalloc/v3
  library mimalloc3 gcc "$mimalloc/src/static.c" -I"$sources/crates/$mimalloc/include" \
    -DMI_DEBUG=0 -DMI_BUILD_RELEASE -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT \
    -fvisibility=hidden -mpopcnt
  # For LD_PRELOAD: the same as malloc.
  library mimalloc3-malloc gcc "$mimalloc/src/static.c" -I"$sources/crates/$mimalloc/include" \
    -DMI_DEBUG=0 -DMI_BUILD_RELEASE -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -DMI_MALLOC_OVERRIDE \
    -fvisibility=hidden -mpopcnt
  snmalloc="snmalloc-sys/upstream/src"
  library snmalloc gcc "$snmalloc/snmalloc/override/malloc.cc" -I"$sources/crates/$snmalloc" \
    -std=c++20 -fno-exceptions -fno-rtti -mcx16 -DSNMALLOC_USE_WAIT_ON_ADDRESS=1 \
    -DSNMALLOC_STATIC_LIBRARY_PREFIX=sn_ -DSNMALLOC_USE_PTHREAD_DESTRUCTORS
  library snmalloc-malloc g++ "$snmalloc/snmalloc/override/malloc.cc" \
    -I"$sources/crates/$snmalloc" -std=c++20 -fno-exceptions -fno-rtti -mcx16 \
    -DSNMALLOC_USE_WAIT_ON_ADDRESS=1 -DSNMALLOC_USE_PTHREAD_DESTRUCTORS
  # PRELOAD: a thread that rpmalloc was not told of starts at its first call.
  library rpmalloc gcc rpmalloc-sys/rpmalloc/rpmalloc/rpmalloc.c -D_GNU_SOURCE -DENABLE_PRELOAD=1
}

if [ -f "$out/libsnmalloc-malloc.so" ] && [ "$(cat "$out/built" 2>/dev/null)" = "$crates" ]; then
  exit
fi
for tool in cargo gcc g++; do
  if ! command -v "$tool" > /dev/null; then
    echo "Left out: mimalloc3, snmalloc, rpmalloc; for them install cargo, gcc and g++" >&2
    exit
  fi
done
if ! fetch; then
  echo "Left out: mimalloc3, snmalloc, rpmalloc; cargo cannot fetch their sources" >&2
  exit
fi
build
echo "$crates" > "$out/built"
