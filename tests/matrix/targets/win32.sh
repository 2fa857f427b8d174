# win32: the compiler of i386-linux writes programs for 32-bit Windows; units built from Debian's source
# package, wine.
# shellcheck source=/dev/null
. tests/matrix/windows.sh
without='windows win32'
reports_without=windows-reports
options='--alone' # each suite with all addresses
quick='suites'

prepare() {
  sh tools/need.sh patchelf && wine32 || return 1
  compiler=$dir/sysroot/usr/lib/i386-linux-gnu/fpc/3.2.2/ppc386
  windows_units i386 win32 || return 1
  windows_run "$root/usr/lib/wine" 32 WINEARCH=win32 "LD_LIBRARY_PATH=$libraries" || return 1
  write_command fpc "$compiler -n -Twin32 -Sgic '-Fu$dir/units' '-Fu$repository/tests/matrix/windows'"
}
