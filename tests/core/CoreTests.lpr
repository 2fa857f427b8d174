/// The tests of core/ alone, on the minimal door. See Test.Runner for the command line.
program CoreTests;

{$mode delphi}{$H+}

uses
  {$ifdef LEAN} LaneMMLean, {$else} CoreDoor, {$endif} cthreads, Test.Runner, Test.Types, Test.SharedLines, Test.Atomic, Test.Bits, Test.Os, {$ifdef LINUX} Test.Os.Linux, Test.Fork, Test.Large.Moves, Test.Shelf, {$endif}
  {$ifdef MSWINDOWS} Test.Os.Windows, {$endif}
  Test.SizeClasses, Test.Errors, Test.Lock, Test.RemoteList, Test.FreeRuns, Test.Arena, Test.Shards,
  Test.Span, Test.Large, Test.KeptRuns, Test.Heap, Test.Threads, Test.Regions, Test.Aligned, Test.Foreign, Test.Huge, Test.Purge, Test.Limits, Test.Blocks,
  Test.Blocks.Pointers, Test.Corruption, Test.Blocks.Twins, Test.Walk, Test.Stats, Test.Places;

begin
  ExitCode := Test.Runner.RunTests;
end.
