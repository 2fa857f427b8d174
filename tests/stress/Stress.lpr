/// Threads that get, resize and free blocks of all tiers, pass them on to other threads, end and
/// are born, while every byte is checked; at the end the heap must be empty.
program Stress;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, BaseUnix, Test.Tools, StressWork, Yielding, Stopping;

const
  Usage = 'Stress [--threads=N] [--rounds=N] [--minutes=N] [--seed=N] [--stop]'#10
    + '       [--narrow]'#10
    + '  --threads=N  threads at a time (8)'#10
    + '  --rounds=N   how often each of them ends and another is born (40)'#10
    + '  --minutes=N  minutes of CPU time instead of rounds'#10
    + '  --stop       a thread stops the others all the time, by a signal whose handler waits'#10
    + '  --narrow     few blocks and size classes: spans change hands all the time'#10
    + '  --seed=N     seed of all random numbers; printed, so that a run can be repeated'#10
    + 'Exit code 1 when a block was damaged or lost.';

type
  TIds = array of TThreadID;

var
  PassedCount, FailedCount: Integer;

procedure Report(const Promise: string; Expected, Found: Int64);
begin
  if Expected = Found then
  begin
    Inc(PassedCount);
    Exit;
  end;
  Inc(FailedCount);
  WriteLn(Promise, ': expected ', Expected, ', found ', Found);
end;

// The CPU time of this process in seconds.
function CpuSeconds: Int64;
const
  TicksPerSecond = 100;
var
  Times: Tms;
begin
  FpTimes(Times);
  Result := (Times.tms_utime + Times.tms_stime) div TicksPerSecond;
end;

// Each thread ends after a round; the next one takes its place, with another seed. After RoundCount
// rounds the next one begins only while the process has used less than Seconds of CPU time.
procedure RunThreads(ThreadCount, RoundCount: Integer; Seconds: Int64; Seed: NativeUInt);
var
  Ids: TIds;
  Index, Round: Integer;
begin
  Ids := nil;
  SetLength(Ids, ThreadCount);
  Round := 0;
  while (Round < RoundCount) or (CpuSeconds < Seconds) do
  begin
    for Index := 0 to ThreadCount - 1 do
    begin
      if Round > 0 then
        WaitForThreadTerminate(Ids[Index], 0);
      Inc(Seed);
      Ids[Index] := BeginThread(WorkOneRound, Pointer(Seed));
    end;
    Inc(Round);
  end;
  for Index := 0 to ThreadCount - 1 do
    WaitForThreadTerminate(Ids[Index], 0);
end;

procedure ReportStops;
var
  Sampled, Inside: Integer;
begin
  Inside := StopsInside(Sampled);
  WriteLn(StopCount, ' stops; of the first ', Sampled, ' ', Inside, ' inside LaneMM; ', CpuSeconds,
    ' s of CPU');
  Report('stops inside LaneMM', 1, Ord(Inside > 0));
end;

procedure Run(IsStopping: Boolean);
var
  ThreadCount, RoundCount: Integer;
  Seconds: Int64;
  Seed, Before: NativeUInt;
  Status: TLaneMM_HeapStatus;
begin
  ThreadCount := StrToInt(Option('threads', '8'));
  Seconds := 60 * StrToInt64(Option('minutes', '0'));
  RoundCount := StrToInt(Option('rounds', IntToStr(40 * Ord(Seconds = 0))));
  Seed := StrToInt64(Option('seed', IntToStr(Int64(GetTickCount64))));
  WriteLn('threads ', ThreadCount, ', rounds ', RoundCount, ', seed ', Seed);
  Flush(Output);
  YieldingStart(Seed);
  if FindCmdLineSwitch('-narrow') then
    WorkNarrowly;
  if IsStopping then
    StoppingStart(Seed);
  // The first threads make things that stay: their memory is not counted.
  RunThreads(ThreadCount, 1, 0, Seed);
  EmptySlots;
  Before := LaneMM_HeapStatus.UsedBytes;
  RunThreads(ThreadCount, RoundCount, Seconds, Seed + ThreadCount);
  if IsStopping then
    StoppingEnd;
  EmptySlots;
  LaneMM_Trim;
  Status := LaneMM_HeapStatus;
  WriteLn(TurnCount, ' turns, ', PassedOn, ' blocks passed on, peak ',
    Status.PeakBytes shr 20, ' MB, ', YieldingCount, ' places to yield');
  Report('damaged blocks', 0, DamagedCount);
  Report('refused calls', 0, RefusedCount);
  Report('bytes in use', Before, Status.UsedBytes);
  Report('large blocks in use', 0, Status.Large.BlockCount);
  if IsStopping then
    ReportStops;
end;

begin
  if ParamStr(1) = '--help' then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  Run(FindCmdLineSwitch('-stop'));
  WriteLn(PassedCount, ' passed, ', FailedCount, ' failed');
  Halt(Ord(FailedCount > 0));
end.
