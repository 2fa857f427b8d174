/// Runs one workload once and prints what it took as one line of CSV.
//
// The memory manager is chosen when this program is built: `fpc -Fa<unit>` puts a unit
// before all others, and no unit at all leaves Free Pascal's own heap. BENCH_MANAGER in
// the environment of the compiler names the result. bench/run.sh does both.
program Bench;

{$I Bench.inc}

uses
  cthreads,
  SysUtils, BaseUnix, Math,
  Bench.Blocks, Bench.Measure, Bench.Origin, Bench.Rest, Bench.Workloads,
  Workload.Append, Workload.Batch, Workload.Blowup, Workload.Burst, Workload.Churn,
  Workload.CrossFree, Workload.Exchange, Workload.Grow, Workload.Handover, Workload.Hoard,
  Workload.Lifo, Workload.Live, Workload.Nexus, Workload.Pairs, Workload.Parallel,
  Workload.Pipeline, Workload.Producers, Workload.Raw, Workload.Replay, Workload.Resize,
  Workload.Sleepers, Workload.Space, Workload.Sparse, Workload.Spawn, Workload.Starved,
  Workload.Stopped, Workload.Strings, Workload.Together, Workload.Traversal, Workload.Wild;

const
  ManagerName = {$I %BENCH_MANAGER%};
  LongestRunSeconds = 120;

  Usage =
    'Bench WORKLOAD [--threads N] [--scale X] [--operations N]' + LineEnding +
    '  Prints: manager,workload,threads,ns per operation,CPU ns per operation,' + LineEnding +
    '  peak resident kB,final resident kB, and what only this workload knows.' + LineEnding +
    '  One operation: see the workload''s unit.' + LineEnding +
    '  --scale X       X times the usual operations, and rests if X is below 1' + LineEnding +
    '  --operations N  exactly N operations, over all threads' + LineEnding +
    'Bench --origin' + LineEnding +
    '  Prints the file that the memory manager lies in, and the version that it states.' + LineEnding +
    'Workloads:' + LineEnding;

/// Returns the argument that follows Option, or Default if Option was not given.
function OptionValue(const Option, Default: string): string;
var
  I: Integer;
begin
  for I := 2 to ParamCount - 1 do
    if ParamStr(I) = Option then
      Exit(ParamStr(I + 1));
  Result := Default;
end;

procedure PrintRun(Workload: TWorkload; ThreadCount: Integer; Operations: Int64);
var
  Taken: TMeasurement;
begin
  if Operations < ThreadCount then
    Operations := ThreadCount;
  Taken := Measure(Workload, ThreadCount, Operations);
  WriteLn(ManagerName, ',', Workload.Name, ',', ThreadCount, ',',
    Taken.WallNs / Operations:0:3, ',', Taken.CpuNs / Operations:0:3, ',',
    Taken.PeakKb, ',', Taken.FinalKb, FactsTold);
end;

procedure Main;
var
  Workload: TWorkload;
  Operations: string;
  Scale: Double;
begin
  if ParamStr(1) = '--origin' then
  begin
    WriteLn(ManagerOrigin);
    Exit;
  end;
  Workload := WorkloadByName(ParamStr(1));
  if Workload = nil then
  begin
    Write(StdErr, Usage, WorkloadNames);
    Halt(2);
  end;
  Scale := StrToFloat(OptionValue('--scale', '1'));
  RestScale := Min(1, Scale);
  Operations := OptionValue('--operations', IntToStr(Round(Workload.Operations * Scale)));
  FpAlarm(LongestRunSeconds); // a run that hangs is a run that fails
  PrintRun(Workload, StrToInt(OptionValue('--threads', '1')), StrToInt64(Operations));
end;

begin
  Main;
end.
