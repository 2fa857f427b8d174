#!/bin/sh
# Makes the archives of a release: the sources, and the C library with compiled units, each with its
# bill of materials (SPDX 2.3), and the SHA-256 of all.
#
#   sh tools/dist.sh [--out=DIR] [--source] [--commit=NAME]
#
# --out=DIR      where they go; build/dist if not given
# --source       the source archive alone
# --commit=NAME  what is archived; HEAD if not given
#
# The same commit gives the same bytes, anywhere: every time is that of the commit, files are sorted and
# belong to root, and the library and the units are built out of the source archive. docs/releasing.md
# says what a release needs besides.
set -eu

out=build/dist
parts=all
commit=HEAD
for argument in "$@"; do
  case $argument in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out=*) out=${argument#*=} ;;
    --source) parts=source ;;
    --commit=*) commit=${argument#*=} ;;
    *) echo "dist.sh: what is $argument? See --help" >&2; exit 1 ;;
  esac
done

cd "$(dirname "$0")/.."
mkdir -p "$out"
out=$(cd "$out" && pwd)
version=$(sh tools/version.sh)
seconds=$(git log -1 --format=%ct "$commit")
source=lanemm-$version
binary=$source-x86_64-linux
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH="$seconds"
umask 022

# Archives a folder below DIR, without anything of this machine.
pack() { # DIR NAME
  tar -C "$1" --sort=name --mtime="@$seconds" --owner=0 --group=0 --numeric-owner --format=gnu \
    -cf - "$2" | xz -9 --threads=1 > "$out/$2.tar.xz"
}

make_source() {
  rm -rf "$out/tree"
  mkdir -p "$out/tree"
  git archive --prefix="$source/" "$commit" | tar -C "$out/tree" -xf -
  sh tools/sbom.sh "$out/tree/$source" "$source" "$seconds" > "$out/$source.spdx.json"
  pack "$out/tree" "$source"
}

# What an installation has, in a folder that works wherever it is put.
make_binary() {
  stage=$out/tree/$binary
  rm -rf "$out/tree/build"
  (
    cd "$out/tree/$source"
    make --no-print-directory install PREFIX=/lanemm DESTDIR="$out/tree/build"
    sh tools/units.sh > /dev/null
  )
  mv "$out/tree/build/lanemm" "$stage"
  # shellcheck disable=SC2016 # pkg-config expands it
  sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|; s|^libdir=.*|libdir=${prefix}/lib|' \
    "$stage/lib/pkgconfig/lanemm.pc"
  mkdir "$stage/units"
  cp -R "$out/tree/$source"/build/units/* "$stage/units/"
  cp README.md "$stage/share/doc/lanemm/"
  sh tools/sbom.sh "$stage" "$binary" "$seconds" "$source" "$out/$source.tar.xz" \
    > "$out/$binary.spdx.json"
  pack "$out/tree" "$binary"
}

rm -f "$out"/lanemm-* "$out/SHA256SUMS"
make_source
[ $parts = source ] || make_binary
rm -rf "$out/tree"
(cd "$out" && sha256sum lanemm-* > SHA256SUMS && cat SHA256SUMS)
