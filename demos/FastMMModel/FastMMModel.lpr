/// The comparison of the book: ParallelAllocations on a model of FastMM's locks, under each policy
/// for a taken lock, and on the memory manager of this build.
program FastMMModel;

{$mode delphi}{$H+}

uses
  {$ifdef unix} cthreads, {$endif}
  SysUtils, Demo.Options, Demo.Report, Demo.Machine, ListJobs, ModelManager;

const
  Usage =
    'Fills lists in several threads, under four policies; prints time, CPU time and waits.'#10 +
    '  --lists=N       lists, 40,000'#10 +
    '  --objects=N     objects in each list, 120'#10 +
    '  --threads=N     threads, four for each processor'#10;

/// Runs once without measuring, so that all policies find their memory touched.
procedure Prepare(Policy: TPolicy);
begin
  ModelUse(Policy);
  RunParallel;
end;

procedure Measure(Policy: TPolicy);
var
  Start, StartCpu, Ms, UsedMs: Double;
begin
  ModelUse(Policy);
  Start := ClockMs;
  StartCpu := ProcessorMs;
  RunParallel;
  Ms := ClockMs - Start;
  UsedMs := ProcessorMs - StartCpu;
  ReportText('%-32s%10.1f%10.1f%14s%15s%13s', [PolicyNames[Policy], Ms, UsedMs,
    Grouped(GetWaits), Grouped(FreeWaits), Grouped(LeftBlocks)]);
  ReportValue(Format('policy%d.ms', [Ord(Policy)]), Ms);
  ReportValue(Format('policy%d.cpu_ms', [Ord(Policy)]), UsedMs);
  ModelUse(poNone);
end;

var
  Policy: TPolicy;

begin
  OptionsRead(Usage, ['lists=', 'objects=', 'threads=']);
  ListCount := OptionNumber('lists', 40000, 1000000);
  ObjectCount := OptionNumber('objects', 120, 1000000);
  ThreadCount := OptionNumber('threads', ProcessorCount * 4, 1000);
  ReportTitle(Format('%s lists of %s objects, %d threads',
    [Grouped(ListCount), Grouped(ObjectCount), ThreadCount]));
  ReportText('%-32s%10s%10s%14s%15s%13s', ['', 'ms', 'CPU ms', 'waits GetMem', 'waits FreeMem',
    'left blocks']);
  ModelInstall;
  for Policy in [poSleep, poNeverSleep, poReleaseStack, poNone] do
  begin
    Prepare(Policy);
    Measure(Policy);
  end;
  if WrongLists > 0 then
  begin
    WriteLn(StdErr, ProgramName, ': ', WrongLists, ' lists did not hold what was put in');
    ExitCode := 1;
  end;
end.
