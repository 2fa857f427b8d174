# win64: this machine's compiler writes programs for 64-bit Windows; units built from Debian's source
# package, wine.
# shellcheck source=/dev/null
. tests/matrix/windows.sh
without=windows
reports_without=windows-reports
quick='suites engine-checked'

prepare() {
  compiler=ppcx64
  windows_units x86_64 win64 || return 1
  sh tools/need.sh wine && windows_run /usr/lib/wine 64 || return 1
  write_command fpc "ppcx64 -n -Twin64 -Sgic '-Fu$dir/units' '-Fu$repository/tests/matrix/windows'"
}
