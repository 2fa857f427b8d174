#!/bin/sh
# Builds the C library: liblanemm.so and liblanemm.a.
#
#   sh lib/build.sh [--out=DIR] [FPC-OPTION...]
#   sh lib/build.sh --prefix=DIR install | uninstall
#
# --out=DIR     where to build; build/lib if not given
# --prefix=DIR  below which `install` puts the library, its header and its pkg-config file, and
#               `uninstall` removes them; /usr/local if not given. DESTDIR, if set, goes before it.
# FPC-OPTION    for example -dLANEMM_CHECKED; -O3 if none is given
set -eu

out=build/lib
prefix=/usr/local
command=build
options=
for argument in "$@"; do
  case $argument in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out=*) out=${argument#*=} ;;
    --prefix=*) prefix=${argument#*=} ;;
    install | uninstall) command=$argument ;;
    -*) options="$options $argument" ;;
    *) echo "build.sh: what is $argument? See --help" >&2; exit 1 ;;
  esac
done

cd "$(dirname "$0")/.."
version=0
map=lib/liblanemm.map

# The names that the map exports.
names() {
  sed -n 's/^ *\([A-Za-z_][A-Za-z_0-9]*\);$/\1/p' $map
}

# The compiler writes assembler files (-s), to which unwind.awk adds unwind information.
# -Cg: code for shared libraries. -vm7119: no warning about assembler that reads Process directly:
# the map hides it, so no other library can have it. The others are those of src/LaneMM.inc, which
# the compiler forgets at times.
compile() {
  rm -rf "$out/units"
  mkdir -p "$out/units"
  # shellcheck disable=SC2086 # a list of options
  fpc -l- -v0 -vew -vm4055,4082,5057,5058,6018,7119 -Cg -CX- -Cn -s -Aas ${options:--O3} \
    "-Fusrc/*" -Fulib -FU"$out/units" -FE"$out/units" lib/LaneMM.C.pas
  for unit in "$out"/units/*.s; do
    awk -f lib/unwind.awk "$unit" > "$out/units/unwind"
    as -o "${unit%.s}.o" "$out/units/unwind"
    rm "$unit"
  done
}

# nodelete: blocks outlive any dlclose. init: for a library that is loaded when threads run.
link_shared() {
  gcc -shared -nostartfiles -Wl,--version-script=$map -Wl,-soname=liblanemm.so \
    -Wl,--gc-sections -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,-z,nodelete \
    -Wl,-init=lanemm_start -o "$out/liblanemm.so" "$out"/units/*.o
}

# One object that exports only the names of the map, without the operators of C++, libc's internal
# names and dlopen: in a static program they call this malloc or are never called.
link_static() {
  names | grep -v -e '^_' -e '^dlopen$' > "$out/names"
  roots=$(sed 's/^/-u /' "$out/names")
  objects=$(ls "$out"/units/*.o | grep -v -e Operators -e DeepBind)
  # shellcheck disable=SC2086 # lists
  ld -r --gc-sections $roots -o "$out/lanemm.o" $objects
  objcopy --strip-unneeded --keep-global-symbols="$out/names" "$out/lanemm.o"
  rm -f "$out/liblanemm.a"
  ar rcs "$out/liblanemm.a" "$out/lanemm.o"
}

install_all() {
  root=${DESTDIR-}$prefix
  mkdir -p "$root/lib/pkgconfig" "$root/include"
  cp "$out/liblanemm.so" "$out/liblanemm.a" "$root/lib/"
  cp lib/include/lanemm.h "$root/include/"
  sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" lib/lanemm.pc.in \
    > "$root/lib/pkgconfig/lanemm.pc"
}

uninstall_all() {
  root=${DESTDIR-}$prefix
  rm -f "$root/lib/liblanemm.so" "$root/lib/liblanemm.a" "$root/include/lanemm.h" \
    "$root/lib/pkgconfig/lanemm.pc"
}

if [ $command = uninstall ]; then
  uninstall_all
  exit
fi
compile
link_shared
link_static
if [ $command = install ]; then
  install_all
fi
