#!/bin/sh
# Installs the C library in a folder and builds programs against what is there.
#
#   sh tests/c/install.sh
#
# The last line is `N passed, N failed`.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
root=$PWD/build/test-c/install
rm -rf "$root"
mkdir -p "$root"
. tests/lib.sh
printed=$root/check.out

version=$(sh tools/version.sh)
numbers=$(sh tools/version.sh --library)
there=$root/dest/opt/lanemm
libraries=$there/lib/here

# Installs or uninstalls, with libraries in a folder of their own.
make_at_dest() {
  make --no-print-directory "$1" PREFIX=/opt/lanemm LIBDIR=/opt/lanemm/lib/here DESTDIR="$root/dest"
}

# Below DESTDIR there is what the pkg-config file says of the prefix.
installs() {
  make_at_dest install && cmp LICENSE "$there/share/doc/lanemm/LICENSE" || return 1
  (cd "$there" && [ -s lib/here/liblanemm.so ] && [ -s lib/here/liblanemm.a ] \
    && [ -s include/lanemm.h ] && [ -s include/lanemm_pmr.h ] && [ -s share/man/man3/liblanemm.3 ] \
    && grep -q '^prefix=/opt/lanemm$' lib/here/pkgconfig/lanemm.pc)
}

# The name that programs ask for leads to the file with the version.
has_soname() {
  [ "$(readlink "$libraries/liblanemm.so")" = liblanemm.so.1 ] \
    && [ "$(readlink "$libraries/liblanemm.so.1")" = "liblanemm.so.$numbers" ] \
    && readelf -d "$libraries/liblanemm.so" | grep -q 'SONAME.*\[liblanemm.so.1\]'
}

# The library has no symbols but its exported ones; gdb finds the others in the file beside it.
is_stripped() {
  ! readelf -S "$libraries/liblanemm.so" | grep -qE '\.symtab|\.debug_info' || return 1
  gdb -batch -ex 'info line LibraryStart' "$libraries/liblanemm.so.1" \
    | grep -q 'of "lib/LaneMM.C.Start.pas"'
}

# gdb loads the commands with the library, from the folder where it looks for such files of it.
loads_commands() {
  loaded=$root/auto-load$libraries
  mkdir -p "$loaded" && cp "$there/share/gdb/auto-load/opt/lanemm/lib/here/"* "$loaded" || return 1
  gdb -batch -nx -iex 'set auto-load safe-path /' -iex "set auto-load scripts-directory $root/auto-load" \
    -ex 'help lanemm' "$libraries/liblanemm.so.1" | grep -q '^lanemm who'
}

# What pkg-config says of the installed library, seen from outside of DESTDIR.
config() {
  PKG_CONFIG_PATH="$libraries/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root/dest" \
    pkg-config "$@" lanemm
}

# pkg-config, the header and the library agree on the version.
has_version() {
  [ "$(config --modversion)" = "$version" ] || return 1
  printf '%s\n' '#include <stdio.h>' '#include <lanemm.h>' \
    'int main(void) { puts(LANEMM_VERSION); puts(lanemm_version()); return 0; }' > "$root/version.c"
  # shellcheck disable=SC2046 # lists of flags
  gcc $(config --cflags) -o "$root/version" "$root/version.c" $(config --libs) \
    && [ "$(LD_LIBRARY_PATH="$libraries" "$root/version" | sort -u)" = "$version" ]
}

# A project that links both libraries and asks for this version.
builds_by_cmake() {
  mkdir -p "$root/cmake"
  cp tests/c/status.c tests/c/check.h "$root/cmake"
  cat > "$root/cmake/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.13)
project(status C CXX)
find_package(lanemm $1 REQUIRED)
foreach(kind lanemm static)
  add_executable(\${kind} status.c)
  target_compile_options(\${kind} PRIVATE -fno-builtin)
  target_link_libraries(\${kind} lanemm::\${kind})
  add_executable(text-\${kind} text.cc)
  target_link_libraries(text-\${kind} lanemm::\${kind})
endforeach()
EOF
  printf '%s\n' '#include <string>' 'int main(int count, char **) { return std::string(count * 100, 0).empty(); }' \
    > "$root/cmake/text.cc"
  rm -rf "$root/cmake/build"
  cmake -S "$root/cmake" -B "$root/cmake/build" -Dlanemm_DIR="$libraries/cmake/lanemm" \
    && cmake --build "$root/cmake/build" && "$root/cmake/build/lanemm" && "$root/cmake/build/static" \
    && [ -n "$(LANEMM=help "$root/cmake/build/text-lanemm" 2>&1)" ] \
    && [ -n "$(LANEMM=help "$root/cmake/build/text-static" 2>&1)" ]
}

refuses_by_cmake() {
  ! builds_by_cmake "$1"
}

links_shared() {
  # shellcheck disable=SC2046 # lists of flags
  gcc -O1 -fno-builtin $(config --cflags) -o "$root/shared" tests/c/status.c $(config --libs) \
    && LD_LIBRARY_PATH="$libraries" "$root/shared"
}

finds_resource() {
  # shellcheck disable=SC2046
  g++ -O1 -fno-builtin -std=c++17 $(config --cflags) -o "$root/pmr" tests/c/pmr.cc $(config --libs) \
    && LD_LIBRARY_PATH="$libraries" "$root/pmr"
}

links_static() {
  # shellcheck disable=SC2046
  gcc -O1 -fno-builtin -static $(config --cflags) -o "$root/static" tests/c/status.c \
    $(config --static --libs) && "$root/static"
}

# A program that leaves malloc to libc has the library, too.
links_without_a_call() {
  printf '%s\n' '#include <string.h>' 'int main(void) { return strdup("text") == NULL; }' > "$root/text.c"
  # shellcheck disable=SC2046
  gcc -static $(config --cflags) -o "$root/text-static" "$root/text.c" $(config --static --libs) \
    && [ -n "$(LANEMM=help "$root/text-static" 2>&1)" ] \
    && gcc -Wl,--as-needed $(config --cflags) -o "$root/text" "$root/text.c" $(config --libs) \
    && [ -n "$(LD_LIBRARY_PATH="$libraries" LANEMM=help "$root/text" 2>&1)" ]
}

# Each function of the header, and each command of the tool, has its place in the manual pages, which
# are set without a warning.
has_manual() {
  for name in $(grep -o 'lanemm_[a-z_]*(' lib/include/lanemm.h | tr -d '('); do
    grep -q "$name" "$there/share/man/man3/liblanemm.3" || return 1
  done
  for name in $("$there/bin/lanemm" help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p'); do
    grep -q "^.B \"lanemm $name" "$there/share/man/man1/lanemm.1" || return 1
  done
  for page in "$there"/share/man/man*/*; do
    [ -z "$(groff -man -Tutf8 -ww -z "$page" 2>&1)" ] || return 1
  done
}

# The shell dash leaves the ~ of an argument as it is.
refuses_prefix() { # PREFIX
  ! DESTDIR="$root/refused/" sh lib/install.sh "--prefix=$1" install && [ ! -e "$root/refused" ]
}

names_folder() { # PREFIX
  DESTDIR="$root/named" sh lib/install.sh "--prefix=$1" install \
    && grep -Fqx "prefix=$1" "$root/named$1/lib/pkgconfig/lanemm.pc"
}

is_gone() {
  make_at_dest uninstall && [ -z "$(find "$root/dest" ! -type d)" ]
}

promise 'make install puts all files below PREFIX' installs
promise 'the name of the shared library has a number' has_soname
promise 'the shared library is stripped, its debug information beside it' is_stripped
promise 'gdb loads the commands with the library' loads_commands
promise 'pkg-config, header and library agree on the version' has_version
promise 'a program links the shared library by pkg-config' links_shared
promise 'a program in C++ finds the memory resource by pkg-config' finds_resource
promise 'a program links the static library by pkg-config' links_static
promise 'so does one whose own code calls no malloc' links_without_a_call
promise 'the manual pages have all functions and commands' has_manual
promise 'a CMake project links both libraries' builds_by_cmake 1.0
promise 'CMake refuses another major version' refuses_by_cmake 2.0
promise 'a prefix that is no full path is refused' refuses_prefix '~/.local'
promise 'the folder may have any name' names_folder '/opt/R&D | tests'
promise 'make uninstall takes all files away' is_gone
sum
