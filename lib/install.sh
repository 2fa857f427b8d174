#!/bin/sh
# Installs the C library that lib/build.sh has built, with what belongs to it, and the tool lanemm, or
# removes them.
#
#   sh lib/install.sh [--out=DIR] [--prefix=DIR] [--libdir=DIR] install | uninstall
#
# --out=DIR     where the library was built; build/lib if not given
# --prefix=DIR  below which everything goes; /usr/local if not given
# --libdir=DIR  where libraries go; PREFIX/lib if not given
#
# DESTDIR, if set, goes before both.
set -eu

out=build/lib
prefix=/usr/local
libdir=
command=
for argument in "$@"; do
  case $argument in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out=*) out=${argument#*=} ;;
    --prefix=*) prefix=${argument#*=} ;;
    --libdir=*) libdir=${argument#*=} ;;
    install | uninstall) command=$argument ;;
    *) echo "install.sh: what is $argument? See --help" >&2; exit 1 ;;
  esac
done
[ -n "$command" ] || { echo 'install.sh: install or uninstall? See --help' >&2; exit 1; }
libdir=${libdir:-$prefix/lib}
case $prefix:$libdir in
  /*:/*) ;;
  *)
    echo "install.sh: $prefix and $libdir: PREFIX and LIBDIR need full paths, such as PREFIX=\$HOME/.local" >&2
    exit 1
    ;;
esac

unset CDPATH
cd "$(dirname "$0")/.."
version=$(sh tools/version.sh)
file=liblanemm.so.$(sh tools/version.sh --library)
soname=liblanemm.so.1
share=$prefix/share
cmake=$libdir/cmake/lanemm

# What is installed: mode, source, target.
files() {
  cat <<EOF
755 $out/$file $libdir/$file
644 $out/liblanemm.a $libdir/liblanemm.a
644 lib/include/lanemm.h $prefix/include/lanemm.h
644 lib/include/lanemm_pmr.h $prefix/include/lanemm_pmr.h
644 $out/lanemm.pc $libdir/pkgconfig/lanemm.pc
644 $out/lanemm-config.cmake $cmake/lanemm-config.cmake
644 $out/lanemm-config-version.cmake $cmake/lanemm-config-version.cmake
644 $out/liblanemm.3 $share/man/man3/liblanemm.3
755 build/lanemm $prefix/bin/lanemm
755 build/lanemm-replay $prefix/libexec/lanemm-replay
644 tools/lanemm-gdb.py $share/lanemm/lanemm-gdb.py
644 tools/lanemm-gdb.py $share/gdb/auto-load$libdir/$file-gdb.py
644 $out/lanemm.1 $share/man/man1/lanemm.1
644 LICENSE $share/doc/lanemm/LICENSE
EOF
  if [ -e "$out/.debug/$file.debug" ]; then
    printf '%s\n' "644 $out/.debug/$file.debug $libdir/.debug/$file.debug"
  fi
}

# The path from the files for CMake up to the prefix, where both are in one tree that may move.
way_up() {
  case $cmake in
    "$prefix"/*) echo "${cmake#"$prefix"/}" | sed 's|[^/][^/]*|..|g; s|^|${CMAKE_CURRENT_LIST_DIR}/|' ;;
    *) printf '%s\n' "$prefix" ;;
  esac
}

# A path as what sed puts in place of a name.
plain() { # PATH
  printf '%s\n' "$1" | sed 's/[\\|&]/\\&/g'
}

# A template with this installation's places and version.
fill() { # TEMPLATE
  sed "s|@PREFIX@|$(plain "$prefix")|; s|@LIBDIR@|$(plain "$libdir")|; s|@VERSION@|$version|; s|@FILE@|$file|
    s|@SONAME@|$soname|; s|@NUMBERS@|$(sh tools/version.sh --library)|; s|@UP@|$(plain "$(way_up)")|" "$1"
}

install_all() {
  fill lib/lanemm.pc.in > "$out/lanemm.pc"
  fill lib/lanemm-config.cmake.in > "$out/lanemm-config.cmake"
  fill lib/lanemm-config-version.cmake.in > "$out/lanemm-config-version.cmake"
  fill lib/liblanemm.3.in > "$out/liblanemm.3"
  sh tools/man.sh build/lanemm > "$out/lanemm.1"
  files | while read -r mode source target; do
    install -D -m "$mode" "$source" "${DESTDIR-}$target"
  done
  ln -sf "$file" "${DESTDIR-}$libdir/$soname"
  ln -sf "$soname" "${DESTDIR-}$libdir/liblanemm.so"
  echo "installed below ${DESTDIR-}$prefix: lib $libdir, the headers, the tool $prefix/bin/lanemm, manual pages"
  [ -z "${DESTDIR-}" ] || return 0
  case $libdir in
    *' '*) echo "run a program on it: LD_LIBRARY_PATH='$libdir' LD_PRELOAD=$soname PROGRAM" ;;
    *) echo "run a program on it: LD_PRELOAD=$libdir/$soname PROGRAM" ;;
  esac
  case $prefix in
    /usr | /usr/local) echo 'link one with it, after ldconfig as root: cc PROGRAM.c -llanemm' ;;
    *' '*) echo "link one with it: cc PROGRAM.c '-L$libdir' '-Wl,-rpath,$libdir' -llanemm" ;;
    *) echo "link one with it: cc PROGRAM.c -L$libdir -Wl,-rpath,$libdir -llanemm" ;;
  esac
}

uninstall_all() {
  files | while read -r _ _ target; do
    rm -f "${DESTDIR-}$target"
  done
  rm -f "${DESTDIR-}$libdir/$soname" "${DESTDIR-}$libdir/liblanemm.so" \
    "${DESTDIR-}$libdir/.debug/$file.debug"
  rmdir "${DESTDIR-}$cmake" "${DESTDIR-}$share/doc/lanemm" "${DESTDIR-}$share/lanemm" \
    "${DESTDIR-}$libdir/.debug" 2> /dev/null || true
}

"${command}_all"
