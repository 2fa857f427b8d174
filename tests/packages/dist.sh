#!/bin/sh
# The archives of a release: the same bytes twice, whole, and with a bill of materials of each file.
#
#   sh tests/packages/dist.sh
#
# The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
. tests/packages/promise.sh

source=lanemm-$(sh tools/version.sh)
binary=$source-x86_64-linux
moved=$work/moved/anywhere

makes() {
  sh tools/dist.sh --out="$1"
}

# From another folder, at another time, with another mask and another language.
makes_again() {
  sleep 1
  git clone -q --no-hardlinks . "$work/clone" || return 1
  (cd "$work/clone" && umask 077 && LC_ALL=C.UTF-8 TZ=Asia/Tokyo sh tools/dist.sh --out="$work/second")
}

is_same() {
  (cd "$work/first" && sha256sum -c SHA256SUMS) && diff -r "$work/first" "$work/second"
}

# The source archive has each file of the commit, and no other.
is_whole() {
  tar -tf "$work/first/$source.tar.xz" | sed -n "s|^$source/||p" | grep -v '/$' | grep . | sort \
    > "$work/packed"
  git ls-tree -r --name-only HEAD | sort | diff - "$work/packed"
}

# Nothing in the archives names a folder of this machine.
names_no_folder() {
  mkdir -p "$work/look" && tar -C "$work/look" -xf "$work/first/$binary.tar.xz" \
    && ! grep -rlF -e "$PWD" -e "$work" "$work/look"
}

# The tree of the binary archive works where it is put.
links_where_it_is() {
  mkdir -p "$moved" && tar -C "$moved" -xf "$work/first/$binary.tar.xz" || return 1
  export PKG_CONFIG_PATH="$moved/$binary/lib/pkgconfig"
  # shellcheck disable=SC2046 # lists of flags
  gcc -fno-builtin $(pkg-config --cflags lanemm) -o "$work/status" tests/c/status.c \
    $(pkg-config --libs lanemm) && LD_LIBRARY_PATH="$moved/$binary/lib" "$work/status"
}

compiles_where_it_is() {
  fpc -v0 -FaLaneMM "-Fu$moved/$binary/units/x86_64-linux" -FE"$work" -FU"$work" \
    tests/packages/Installed.lpr && "$work/Installed"
}

# The bill counts the files of the archive.
counts_files() {
  [ "$(tar -tf "$work/first/$1.tar.xz" | grep -c '[^/]$')" \
    -eq "$(grep -c '"SPDXRef-File-[0-9]*", "fileName"' "$work/first/$1.spdx.json")" ]
}

promise 'make dist makes the archives' makes "$work/first"
promise 'it makes them a second time elsewhere' makes_again
promise 'both times they have the same bytes, and the sums are right' is_same
promise 'the source archive has all files of the commit' is_whole
promise 'the binary archive names no folder of this machine' names_no_folder
promise 'a C program links the library of the binary archive' links_where_it_is
promise 'a Pascal program runs on the units of the binary archive' compiles_where_it_is
for archive in "$source" "$binary"; do
  promise "the bill of materials of $archive has each file" counts_files "$archive"
done
sum
