# What the targets for Windows share. Read by their files in tests/matrix/targets.
# shellcheck shell=sh disable=SC2154 # dir and repository are set in tests/matrix/run.sh

# windows_units CPU OS: compiles the units of the run-time library and of Free Pascal's packages that
# the tests use, for a processor and a system, into $dir/units. $compiler does it.
windows_units() {
  [ ! -e "$dir/units.done" ] || return 0
  source=$(dirname "$(sh tools/compiler-source.sh)") || return 1
  rtl=$source/rtl
  packages=$source/packages
  rm -rf "$dir/units"
  mkdir -p "$dir/units"
  options="-n -T$2 -O2 -v0 -ve -FU$dir/units -FE$dir/units -Fi$rtl/inc -Fi$rtl/$1 -Fi$rtl/win -Fi$rtl/$2
    -Fi$rtl/win/wininc -Fi$rtl/objpas -Fi$rtl/objpas/sysutils -Fi$rtl/objpas/classes -Fu$rtl/inc -Fu$rtl/win
    -Fu$rtl/$2 -Fu$rtl/$1 -Fu$rtl/objpas -Fu$rtl/objpas/sysutils"
  for package in rtl-objpas/src/inc "rtl-objpas/src/$1" rtl-objpas/src/win rtl-objpas/src/common \
    fcl-base/src fcl-base/src/win fcl-process/src fcl-process/src/win fcl-fpcunit/src regexpr/src \
    fcl-json/src hash/src paszlib/src rtl-generics/src rtl-generics/src/inc fcl-xml/src; do
    options="$options -Fu$packages/$package -Fi$packages/$package"
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
  $compiler $options -Us -Sg "$rtl/$2/system.pp" && $compiler $options "$dir/units/probe.pas" \
    && $compiler $options "$rtl/inc/lnfodwrf.pp" && touch "$dir/units.done"
}

# windows_run: makes $dir/run, with a Windows of its own in $dir/wine. A program needs no `.exe`.
windows_run() {
  sh tools/need.sh wine || return 1
  windows="env WINEPREFIX=$dir/wine WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=d"
  if [ ! -e "$dir/wine.done" ]; then
    # shellcheck disable=SC2086 # a command and its arguments
    timeout 300 $windows wineboot -i && touch "$dir/wine.done" || return 1
  fi
  cat > "$dir/run" << END
#!/bin/sh
program=\$1
shift
[ ! -e "\$program.exe" ] || program=\$program.exe
exec $windows wine "\$program" "\$@"
END
  chmod +x "$dir/run"
}
