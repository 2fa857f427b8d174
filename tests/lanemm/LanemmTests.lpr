/// The tests of lanemm. See Test.Runner for the command line.
program LanemmTests;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, Test.Runner, Test.Lanemm.Reading, Test.Lanemm.Leaks,
  Test.Lanemm.Whys, Test.Lanemm.Gdb, Test.Lanemm.Regions, Test.Lanemm.Words, Test.Lanemm.Odd,
  Test.Lanemm.Diffs, TryStatistics in 'tools/lanemm/TryStatistics.pas', Test.Lanemm.Trials,
  Test.Lanemm.Replays, Test.Lanemm.SelfTests,
  ToolCommands in 'tools/lanemm/ToolCommands.pas', Targets in 'tools/lanemm/Targets.pas',
  TargetPages in 'tools/lanemm/TargetPages.pas', Test.Lanemm.Pages, Test.Lanemm.Boxes,
  ProcessPauses in 'tools/lanemm/ProcessPauses.pas', Test.Lanemm.Pauses;

begin
  ExitCode := Test.Runner.RunTests;
end.
