/// Threads that get, resize and free blocks of all tiers, pass them on to other threads, end and
/// are born, while every byte is checked; at the end the heap must be empty.
program Stress;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, StrUtils, StressWork;

const
  Usage = 'Stress [--threads=N] [--rounds=N] [--seed=N]'#10
    + '  --threads=N  threads at a time (8)'#10
    + '  --rounds=N   how often each of them ends and another is born (40)'#10
    + '  --seed=N     seed of all random numbers; printed, so that a run can be repeated'#10
    + 'Exit code 1 when a block was damaged or lost.';

type
  TIds = array of TThreadID;

var
  PassedCount, FailedCount: Integer;

// The value of --Name=Value, or Default when it is not given.
function Option(const Name: string; Default: Int64): Int64;
var
  Index: Integer;
begin
  Result := Default;
  for Index := 1 to ParamCount do
    if StartsStr('--' + Name + '=', ParamStr(Index)) then
      Result := StrToInt64(Copy(ParamStr(Index), Length(Name) + 4, MaxInt));
end;

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

// Each thread ends after a round; the next one takes its place, with another seed.
procedure RunThreads(ThreadCount, RoundCount: Integer; Seed: NativeUInt);
var
  Ids: TIds;
  Index, Round: Integer;
begin
  Ids := nil;
  SetLength(Ids, ThreadCount);
  for Round := 1 to RoundCount do
    for Index := 0 to ThreadCount - 1 do
    begin
      if Round > 1 then
        WaitForThreadTerminate(Ids[Index], 0);
      Inc(Seed);
      Ids[Index] := BeginThread(WorkOneRound, Pointer(Seed));
    end;
  for Index := 0 to ThreadCount - 1 do
    WaitForThreadTerminate(Ids[Index], 0);
end;

procedure Run;
var
  ThreadCount, RoundCount: Integer;
  Seed, Before: NativeUInt;
  Status: TLaneMM_HeapStatus;
begin
  ThreadCount := Option('threads', 8);
  RoundCount := Option('rounds', 40);
  Seed := Option('seed', Int64(GetTickCount64));
  WriteLn('threads ', ThreadCount, ', rounds ', RoundCount, ', seed ', Seed);
  Flush(Output);
  // The first threads make things that stay: their memory is not counted.
  RunThreads(ThreadCount, 1, Seed);
  EmptySlots;
  Before := LaneMM_HeapStatus.UsedBytes;
  RunThreads(ThreadCount, RoundCount, Seed + ThreadCount);
  EmptySlots;
  LaneMM_Trim;
  Status := LaneMM_HeapStatus;
  WriteLn(TurnCount, ' turns, ', PassedOn, ' blocks passed on, peak ',
    Status.PeakBytes shr 20, ' MB');
  Report('damaged blocks', 0, DamagedCount);
  Report('refused calls', 0, RefusedCount);
  Report('bytes in use', Before, Status.UsedBytes);
  Report('large blocks in use', 0, Status.Large.BlockCount);
end;

begin
  if ParamStr(1) = '--help' then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  Run;
  WriteLn(PassedCount, ' passed, ', FailedCount, ' failed');
  Halt(Ord(FailedCount > 0));
end.
