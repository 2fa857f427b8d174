#!/bin/sh
# Builds the Debian packages from the source archive, installs them in a clean root, uses and removes
# them there.
#
#   sh tests/packages/debian.sh
#
# Needs the rights of root. The last line is `N passed, N failed`.
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/../.."
work=$PWD/build/packages/debian
rm -rf "$work"
. tests/packages/promise.sh

upstream=$(sh tools/version.sh)
version=$(sh tools/version.sh --debian)
clean=$work/root
library=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/liblanemm.so.1

builds() {
  DEBFULLNAME='The Builder' DEBEMAIL=builder@example.net sh tools/deb.sh --out="$work/packages"
}

has_maintainer() {
  for package in "$work"/packages/*.deb; do
    [ "$(dpkg-deb --field "$package" Maintainer)" = 'The Builder <builder@example.net>' ] || return 1
  done
}

# Neither errors nor warnings. The first package of Debian's archive closes a bug there; these packages
# are of this repository.
is_lintian_clean() {
  lintian --allow-root --suppress-tags initial-upload-closes-no-bugs --display-level '>=warning' \
    --fail-on error,warning "$work/packages/lanemm_$version-1_amd64.changes"
}

# All files of the root but those in which apt and dpkg keep their books.
files_of() {
  (cd "$clean" && find . -xdev ! -path './var/lib/*' ! -path './var/cache/*' ! -path './var/log/*' \
    ! -path './tmp/*' ! -path './proc/*' ! -path './etc/ld.so.cache' | LC_ALL=C sort)
}

has_root() {
  unpack_root "$clean" || return 1
  files_of > "$work/before"
}

installs() {
  cp "$work"/packages/*.deb "$clean/tmp/"
  in_root "$clean" sh -c 'apt-get install -y --no-install-recommends /tmp/*.deb'
}

# A program whose uses clause names files is compiled with the installed units.
compiles() {
  cp tests/packages/Installed.lpr tests/packages/Second.pas "$clean/tmp/"
  in_root "$clean" sh -c 'cd /tmp && fpc -v0 -FaLaneMM Installed.lpr && ./Installed' > "$work/out"
  [ "$(tail -n 1 "$work/out")" = "$upstream xx" ]
}

links() {
  cp tests/c/status.c tests/c/check.h "$clean/tmp/"
  in_root "$clean" sh -c 'cd /tmp && gcc -fno-builtin $(pkg-config --cflags lanemm) -o status status.c \
    $(pkg-config --libs lanemm) && ./status && ldd ./status | grep -q liblanemm.so.1'
}

links_static() {
  in_root "$clean" sh -c 'cd /tmp && gcc -fno-builtin -static -o static status.c \
    $(pkg-config --static --libs lanemm) && ./static'
}

links_by_cmake() {
  mkdir "$clean/tmp/project" && cat > "$clean/tmp/project/CMakeLists.txt" <<'END' || return 1
cmake_minimum_required(VERSION 3.13)
project(status C)
find_package(lanemm 1.0 REQUIRED)
add_executable(status ../status.c)
target_compile_options(status PRIVATE -fno-builtin)
target_link_libraries(status lanemm::lanemm)
END
  in_root "$clean" sh -c 'cd /tmp/project && cmake -B build . && cmake --build build && build/status'
}

preloads() {
  in_root "$clean" env LD_PRELOAD="$library" perl -e \
    'open(M, "/proc/$$/maps") or die; exit(!grep(/liblanemm/, <M>));' || return 1
  in_root "$clean" env LD_PRELOAD="$library" LANEMM=help true 2>&1 | grep -q contention
}

# The tool that looks at running programs.
has_tool() {
  in_root "$clean" lanemm help | grep -q '^lanemm COMMAND'
}

has_documents() {
  (cd "$clean/usr/share" && [ -s man/man3/liblanemm.3.gz ] && [ -s man/man1/lanemm.1.gz ] \
    && [ -s doc/liblanemm1/copyright ] \
    && [ -s doc/liblanemm1/changelog.gz ])
}

is_gone() {
  in_root "$clean" apt-get purge -y liblanemm1 fp-units-lanemm lanemm-tools || return 1
  rm -rf "$clean"/tmp/*
  files_of | diff "$work/before" -
}

promise 'the packages build from the source archive' builds
promise 'they name who builds them as their maintainer' has_maintainer
promise 'lintian has no errors and no warnings' is_lintian_clean
promise 'there is a clean root' has_root
promise 'apt installs all packages with what is in the root' installs
promise 'a Pascal program runs on the installed units' compiles
promise 'a C program links the installed library' links
promise 'a C program links the installed static library' links_static
promise 'a CMake project links the installed library' links_by_cmake
promise 'the installed library is preloaded' preloads
promise 'the installed tool runs' has_tool
promise 'the packages have manual pages, licence and changes' has_documents
promise 'apt removes everything' is_gone
sum
