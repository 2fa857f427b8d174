#!/bin/sh
# Builds the Debian packages, as a builder of packages does: the source archive, with packages/debian as
# debian/ in it.
#
#   sh tools/deb.sh [--out=DIR] [--tree]
#
# --out=DIR  where the packages go; build/deb if not given
# --tree     only the tree that they are built from, DIR/lanemm-VERSION
#
# DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's own tools. Without them the packages name
# an address that does not exist: they are for this machine alone.
set -eu

out=build/deb
only_tree=no
for argument in "$@"; do
  case $argument in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out=*) out=${argument#*=} ;;
    --tree) only_tree=yes ;;
    *) echo "deb.sh: what is $argument? See --help" >&2; exit 1 ;;
  esac
done

cd "$(dirname "$0")/.."
upstream=$(sh tools/version.sh)
version=$(sh tools/version.sh --debian)
tree=$out/lanemm-$version
# What an earlier run has left there, and nothing else: DIR may have files of others.
rm -rf "$tree"
rm -f "$out"/lanemm_* "$out"/*lanemm*deb
sh tools/dist.sh --out="$out" --source
mv "$out/lanemm-$upstream.tar.xz" "$out/lanemm_$version.orig.tar.xz"
mkdir "$tree"
tar -C "$tree" --strip-components=1 -xf "$out/lanemm_$version.orig.tar.xz"
cp -R packages/debian "$tree/debian"
if [ -n "${DEBEMAIL-}" ]; then
  sed -i "s|LaneMM maintainers <maintainers@example.org>|${DEBFULLNAME:-LaneMM maintainers} <$DEBEMAIL>|" \
    "$tree/debian/control" "$tree/debian/changelog"
fi
[ $only_tree = no ] || exit 0
cd "$tree"
dpkg-buildpackage --no-sign
