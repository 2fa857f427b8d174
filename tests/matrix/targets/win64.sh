# win64: this machine's compiler writes programs for 64-bit Windows; units built from Debian's source
# package, wine.
without=windows
reports_without=windows-reports
how='wine'
parts='suites checked engine engine-checked reports programs demos'
quick='suites engine-checked'
reports=DebugMatrix,Debug,Settings,Leaks,EventLog,Profile,ReportHead,DeepStacks
reports="$reports,Reports,LogFiles,HeapProfile,FaultOrigin,Leaves,CodeRanges,BlackBox"
programs='BeforeThreads AfterThreads AutoInstalled ManyThreads RunError RacingFrees FromFastMM'
programs="$programs Host LastGuest Halting LastFrees OnDemand Windowed NoFastSlot FreshThread"
programs="$programs ForeignThreads LastRound LastThread HeldHeap Checkpoints Counts HeapTrace Successor Leaking LastWords"

prepare() {
  # shellcheck source=/dev/null
  . tests/matrix/windows.sh
  compiler=ppcx64
  windows_units x86_64 win64 || return 1
  sh tools/need.sh wine && windows_run /usr/lib/wine 64 || return 1
  write_command fpc "ppcx64 -n -Twin64 -Sgic '-Fu$dir/units' '-Fu$repository/tests/matrix/windows'"
}
