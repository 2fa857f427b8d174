# win32: the compiler of i386-linux writes programs for 32-bit Windows; units built from Debian's source
# package, wine.
without='windows win32'
reports_without=windows-reports
how='wine'
options='--alone' # each suite with all addresses
parts='suites checked engine engine-checked reports programs demos'
quick='suites'
reports=DebugMatrix,Debug,Settings,Leaks,EventLog,Profile,ReportHead,DeepStacks
reports="$reports,Reports,LogFiles,HeapProfile,FaultOrigin,Leaves,CodeRanges,BlackBox"
programs='BeforeThreads AfterThreads AutoInstalled ManyThreads RunError RacingFrees FromFastMM'
programs="$programs Host LastGuest Halting LastFrees OnDemand Windowed NoFastSlot FreshThread"
programs="$programs ForeignThreads LastRound LastThread HeldHeap Checkpoints Counts HeapTrace Successor Leaking LastWords"

prepare() {
  # shellcheck source=/dev/null
  . tests/matrix/windows.sh
  sh tools/need.sh patchelf && wine32 || return 1
  compiler=$dir/sysroot/usr/lib/i386-linux-gnu/fpc/3.2.2/ppc386
  windows_units i386 win32 || return 1
  windows_run "$root/usr/lib/wine" 32 WINEARCH=win32 "LD_LIBRARY_PATH=$libraries" || return 1
  write_command fpc "$compiler -n -Twin32 -Sgic '-Fu$dir/units' '-Fu$repository/tests/matrix/windows'"
}
