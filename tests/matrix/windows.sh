# What the targets for Windows share. Read by their files in tests/matrix/targets.
# shellcheck shell=sh disable=SC2154 # dir and repository are set in tests/matrix/run.sh

# shellcheck disable=SC2034 # variables of a target, see tests/matrix/run.sh
how='wine'
parts='suites checked engine engine-checked reports programs demos'
reports=DebugMatrix,Debug,Settings,Leaks,EventLog,Profile,ReportHead,DeepStacks
reports="$reports,Reports,LogFiles,HeapProfile,FaultOrigin,Leaves,CodeRanges,BlackBox"
programs='BeforeThreads AfterThreads AutoInstalled ManyThreads RunError RacingFrees FromFastMM'
programs="$programs Host LastGuest Halting LastFrees OnDemand Windowed NoFastSlot FreshThread"
programs="$programs ForeignThreads LastRound LastThread HeldHeap Checkpoints Counts HeapTrace Successor Leaking LastWords"

# windows_units CPU OS: compiles the units of the run-time library and of Free Pascal's packages that
# the tests use, for a processor and a system, into $dir/units. $compiler does it.
windows_units() {
  [ ! -e "$dir/units.done" ] || return 0
  source=$(dirname "$(sh tools/compiler-source.sh)") || return 1
  rtl=$source/rtl
  packages=$source/packages
  rm -rf "$dir/units"
  mkdir -p "$dir/units"
  flags="-n -T$2 -O2 -v0 -ve -FU$dir/units -FE$dir/units -Fi$rtl/inc -Fi$rtl/$1 -Fi$rtl/win -Fi$rtl/$2
    -Fi$rtl/win/wininc -Fi$rtl/objpas -Fi$rtl/objpas/sysutils -Fi$rtl/objpas/classes -Fu$rtl/inc -Fu$rtl/win
    -Fu$rtl/$2 -Fu$rtl/$1 -Fu$rtl/objpas -Fu$rtl/objpas/sysutils"
  for package in rtl-objpas/src/inc "rtl-objpas/src/$1" rtl-objpas/src/win rtl-objpas/src/common \
    fcl-base/src fcl-base/src/win fcl-process/src fcl-process/src/win fcl-fpcunit/src regexpr/src \
    fcl-json/src hash/src paszlib/src rtl-generics/src rtl-generics/src/inc fcl-xml/src; do
    flags="$flags -Fu$packages/$package -Fi$packages/$package"
  done
  cat > "$dir/units/probe.pas" << 'END'
program probe;
uses heaptrc, cmem, windows, dynlibs, sysutils, math, types, typinfo, fgl, classes, lineinfo,
  contnrs, syncobjs, process, pipes, strutils, dateutils, variants, fpcunit, testregistry, testutils,
  regexpr, fpjson, jsonparser, md5, zstream, generics.collections, generics.defaults, inifiles;
begin
end.
END
  # shellcheck disable=SC2086 # a list of options
  $compiler $flags -Us -Sg "$rtl/$2/system.pp" && $compiler $flags "$dir/units/probe.pas" \
    && $compiler $flags "$rtl/inc/lnfodwrf.pp" && touch "$dir/units.done"
}

# wine32: wine for 32-bit programs, Debian's package in $dir/sysroot, which names its loader and
# libraries by where they were unpacked.
wine32() {
  unpack i386 fp-compiler-3.2.2 wine32 libwine libz-mingw-w64 libc6 libgcc-s1 libunwind8 liblzma5 \
    || return 1
  root=$dir/sysroot
  libraries=$root/lib/i386-linux-gnu:$root/usr/lib/i386-linux-gnu
  [ ! -e "$dir/wine32.done" ] || return 0
  for program in wine wineserver32; do
    patchelf --set-interpreter "$root/lib/ld-linux.so.2" --set-rpath "$libraries" \
      "$root/usr/lib/wine/$program" || return 1
  done
  ln -sf wineserver32 "$root/usr/lib/wine/wineserver"
  # Each program would say on stderr that there are no fonts.
  LC_ALL=C sed -i 's/Wine cannot find the FreeType/\x00ine cannot find the FreeType/' \
    "$root/usr/lib/i386-linux-gnu/wine/i386-unix/win32u.so"
  # What the package does when it is installed: wine takes the library only with this mark.
  zlib=$root/usr/i686-w64-mingw32/lib/zlib1.dll
  { head -c 64 "$zlib"; printf 'Wine builtin DLL'; head -c 16 /dev/zero; tail -c +97 "$zlib"; } \
    > "$root/usr/lib/i386-linux-gnu/wine/i386-windows/zlib1.dll" && touch "$dir/wine32.done"
}

# make_windows: makes the Windows in $dir/wine, if it is not there. Wine was seen to end with success and
# to leave an empty system.
make_windows() {
  [ ! -e "$dir/wine.done" ] || return 0
  rm -rf "$dir/wine"
  # shellcheck disable=SC2086 # a command and its arguments
  timeout 300 $windows "$wine" wineboot -i && [ -e "$dir/wine/drive_c/windows/system32/kernel32.dll" ] \
    && touch "$dir/wine.done"
}

# windows_run FOLDER BITS [VARIABLE...]: makes $dir/run, with a Windows of its own in $dir/wine, from the
# folder of wine's programs and what its environment needs. A program needs no `.exe`. Wine's server stays
# for ten seconds after a program: else each one would start a Windows anew. A command of no effect starts
# the services first, without what the caller has open: they would keep the program's stderr, and the pipes
# by which a test reads it.
windows_run() {
  server=$1/wineserver$2
  wine=$1/wine
  [ "$2" = 32 ] || wine=${wine}64
  shift 2
  windows="env WINEPREFIX=$dir/wine WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=d $*"
  make_windows || make_windows || return 1
  cat > "$dir/run" << END
#!/bin/sh
program=\$1
shift
[ ! -e "\$program.exe" ] || program=\$program.exe
if ! $windows "$server" -k0 2> /dev/null; then
  { $windows "$server" -p10; $windows "$wine" cmd /c exit; } < /dev/null > /dev/null 2>&1 \
    3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
fi
exec $windows "$wine" "\$program" "\$@"
END
  chmod +x "$dir/run"
}
