#!/bin/sh
# Builds the C library: liblanemm.so and liblanemm.a.
#
#   sh lib/build.sh [--out=DIR] [--with-debug] [FPC-OPTION...]
#
# --out=DIR     where to build; build/lib if not given
# --with-debug  leaves the debug information in the shared library, instead of in a file of its own
#               below DIR/.debug, where debuggers look for it
# FPC-OPTION    for example -dLANEMM_CHECKED; -O3 if none is given
#
# The variable CC names the compiler that links, gcc if it is not set. With musl's (CC=musl-gcc) the
# library is one for musl.
set -eu

out=build/lib
options=
splits=yes
for argument in "$@"; do
  case $argument in
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out=*) out=${argument#*=} ;;
    --with-debug) splits=no ;;
    -*) options="$options $argument" ;;
    *) echo "build.sh: what is $argument? See --help" >&2; exit 1 ;;
  esac
done

unset CDPATH
cd "$(dirname "$0")/.."
# One at a time: targets that run side by side may need the library at the same moment.
mkdir -p build
if command -v flock > /dev/null; then
  exec 9> build/lib.lock
  flock 9
fi
cc=${CC:-gcc}
libc=musl
if echo '#include <features.h>' | $cc -E -dM - | grep -q __GLIBC__; then libc=glibc; fi
file=liblanemm.so.$(sh tools/version.sh --library)
soname=liblanemm.so.1
map=lib/liblanemm.map

# The names that the map exports.
names() {
  sed -n 's/^ *\([A-Za-z_][A-Za-z_0-9]*\);$/\1/p' $map
}

# The compiler writes assembler files (-s), to which unwind.awk adds unwind information; their debug
# information (-gw3) names this directory, in several lines if it is long; the library does not.
# -Cg: code for shared libraries. -vm7119: no warning about assembler that reads Process directly:
# the map hides it, so no other library can have it. The others are those of src/LaneMM.inc, which
# the compiler forgets at times.
compile() {
  rm -rf "$out/units"
  mkdir -p "$out/units"
  # shellcheck disable=SC2086 # a list of options
  fpc -l- -v0 -vew -vm4055,4082,5057,5058,6018,7119 -Cg -CX- -Cn -s -Aas -gw3 ${options:--O3} \
    "-Fusrc/*" -Fulib -FU"$out/units" -FE"$out/units" lib/LaneMM.C.pas
  for unit in "$out"/units/*.s; do
    sed -e ':a; /^\t\.ascii\t"[^"]*"$/{/\\000"$/!{N; s/"\n\t\.ascii\t"//; ba}}' \
      -e "s|\"$PWD/*|\"|" "$unit" | awk -f lib/unwind.awk > "$out/units/unwind"
    as -o "${unit%.s}.o" "$out/units/unwind"
    rm "$unit"
  done
}

# For musl, where the values of keys lie at no fixed place of a thread: a thread-local word for its heap,
# and a routine that returns the word's place.
own_slot() {
  [ $libc = glibc ] || printf '%s\n' '.section .tbss, "awT", @nobits' '.balign 8' 'slot: .quad 0' .text \
    '.hidden lanemm_own_slot' '.globl lanemm_own_slot' \
    'lanemm_own_slot: movq slot@gottpoff(%rip), %rax' ret
}

# glibc 2.34 moved the functions of threads from libpthread to libc and gave them a new version, which
# an older glibc does not have. This library stands in for the old libpthread while the linker runs, so
# that it asks for the old version: every glibc has that.
link_old_threads() {
  nm -u "$out"/units/*.o | sed -n 's/.* \(pthread_[a-z_]*\)$/\1/p' | sort -u \
    | sed 's/.*/.globl &\n.type &, @function\n&:/' | as -o "$out/threads.o"
  echo 'GLIBC_2.2.5 { global: *; };' > "$out/threads.map"
  gcc -shared -nostdlib -Wl,--version-script="$out/threads.map" -Wl,-soname=libpthread.so.0 \
    -o "$out/threads.so" "$out/threads.o"
}

# nodelete: blocks outlive any dlclose. init: for a library that is loaded when threads run.
link_shared() {
  threads=
  if [ $libc = glibc ]; then
    link_old_threads
    threads=$out/threads.so
  fi
  { own_slot; printf '%s\n' '.section .note.GNU-stack' '.section .rodata' '.balign 8' '.globl lanemm_module' \
    'lanemm_module: .quad 0' '.globl lanemm_header' 'lanemm_header: .quad 0'; } | as -o "$out/module.o"
  rm -rf "$out/.debug"
  # shellcheck disable=SC2086 # none, or one
  $cc -shared -nostartfiles -Wl,--version-script=$map -Wl,-soname=$soname -Wl,--build-id=sha1 \
    -Wl,--gc-sections -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,-z,nodelete \
    -Wl,-init=lanemm_initialize -o "$out/$file" "$out"/units/*.o "$out/module.o" $threads
  ln -sf "$file" "$out/$soname"
  ln -sf "$soname" "$out/liblanemm.so"
}

split_debug() {
  mkdir -p "$out/.debug"
  objcopy --only-keep-debug "$out/$file" "$out/.debug/$file.debug"
  strip --strip-unneeded "$out/$file"
  (cd "$out/.debug" && objcopy --add-gnu-debuglink="$file.debug" "../$file")
}

# One object that exports only the names of the map, without the operators of C++, libc's internal
# names, dlopen and pthread_create: in a static program they call this malloc or are never called.
link_static() {
  names | grep -v -e '^_' -e '^dlopen$' -e '^pthread_create$' > "$out/names"
  roots=$(sed 's/^/-u /' "$out/names")
  objects=$(ls "$out"/units/*.o | grep -v -e Operators -e DeepBind -e ThreadStart -e C.Clock)
  # A reference that is not weak has the linker of the program take on_exit out of libc, or what musl has. Then two
  # words, constructors, and a finalizer, see LaneMM.C.Unwind and LaneMM.C.Start. It is the first of a module's, which
  # are called from the last to the first.
  linked=on_exit
  [ $libc = glibc ] || linked='__cxa_atexit, pthread_atfork'
  { own_slot; printf '%s\n' '.section .note.GNU-stack' .data \
    '.globl lanemm_on_exit' "lanemm_on_exit: .quad $linked" \
    '.hidden __dso_handle' '.globl lanemm_module' 'lanemm_module: .quad __dso_handle' \
    '.hidden __ehdr_start' '.globl lanemm_header' 'lanemm_header: .quad __ehdr_start' \
    '.section .fini_array.00000, "aw", @fini_array' '.balign 8' '.globl lanemm_finalizer' \
    'lanemm_finalizer: .quad lanemm_unload' \
    '.section .init_array, "aw", @init_array' '.balign 8' '.globl lanemm_constructor' \
    'lanemm_constructor: .quad lanemm_search_is_ready, lanemm_initialize'; } | as -o "$out/keep.o"
  # shellcheck disable=SC2086 # lists
  ld -r --gc-sections $roots -u lanemm_on_exit -u lanemm_constructor -u lanemm_finalizer \
    -o "$out/lanemm.o" $objects "$out/keep.o"
  objcopy --strip-unneeded --keep-global-symbols="$out/names" \
    --redefine-sym lanemm_dl_find_object=_dl_find_object "$out/lanemm.o"
  rm -f "$out/liblanemm.a"
  ar rcsD "$out/liblanemm.a" "$out/lanemm.o"
}

# Programs that other targets run have the library open: it is built again only when it has changed.
is_built() {
  [ -e "$out/$file" ] && [ "$(cat "$out/built" 2> /dev/null)" = "$libc$splits$options" ] &&
    [ -z "$(find src lib tools/version.sh -type f -newer "$out/built")" ]
}

if is_built; then exit; fi
mkdir -p "$out"
echo "$libc$splits$options" > "$out/begun" # a source that changes meanwhile is newer
compile
link_shared
[ $splits = no ] || split_debug
link_static
mv "$out/begun" "$out/built"
