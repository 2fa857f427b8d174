/// The unit tests, one unit per unit in src/. See Test.Runner for the command line.
program RunTests;

{$mode delphi}{$H+}

uses
  LaneMM, LaneMM.DemangleText in 'lib/LaneMM.DemangleText.pas', LaneMM.Demangle in 'lib/LaneMM.Demangle.pas',
  cthreads, Test.Runner, Test.Types, Test.SharedLines, Test.Atomic, Test.Bits, Test.Os,
  {$ifdef LINUX} Test.Os.Linux, Test.Fork, Test.Large.Moves, Test.Shelf, {$else} Test.Os.Windows, {$endif}
  Test.OsFiles, Test.SizeClasses, Test.Errors, Test.Lock, Test.RemoteList, Test.FreeRuns,
  Test.Arena, Test.Shards, Test.Span, Test.Large, Test.KeptRuns, Test.Heap, Test.Threads, Test.Regions, Test.Aligned, Test.Foreign,
  Test.Huge, Test.Purge, Test.Blocks, Test.Blocks.Pointers, Test.Corruption, Test.Blocks.Twins, Test.Walk, Test.Contents,
  Test.Stats, Test.LaneMM, Test.Settings, Test.Messages, Test.Debug,
  Test.Erase, Test.BlockNotes, Test.LockProfile, Test.Growth, Test.Recording, Test.Samples, Test.Unwind, Test.UnwindCache,
  Test.Demangle, Test.Inflate, Test.Inlined,
  {$ifdef LINUX} // of other systems the programs are built and run from here, see tests/matrix
  Test.DebugMatrix, Test.FaultOrigin, Test.CaseSuites, Test.LogFiles, Test.Elf, Test.EventLog, Test.Profile,
  Test.HeapProfile, {$if defined(CPUX86_64) and not defined(LANEMM_PUREPASCAL)} Test.TimedReports, {$ifend}
  Test.Leaks, Test.StarvedLeaks, Test.BlackBox, Test.BoxState,
  Test.DeepStacks, Test.Leaves, Test.CodeRanges, Test.ReportHead, Test.CompatNames, Test.Mailbox, Test.Pressure,
  Test.KeptSymbols, Test.NodeStacks, Test.PathTables, Test.CallTree, Test.OsSignals, Test.Pause, Test.Modules,
  {$endif}
  Test.Limits, Test.EngineReports, Test.ClassStates, Test.RegionCalls, Test.DebugLimits, Test.Patterns,
  Test.DebugRecords, Test.Quarantine, Test.Places, Test.FastMM5, Test.FastMM4;

begin
  SetMultiByteConversionCodePage(CP_UTF8); // of a path in JSON, whatever the language of the environment
  ExitCode := Test.Runner.RunTests;
end.
