/// The stress test in short, while system calls fail: calls may be refused, but no block is lost or
/// damaged. Then the calls succeed again, and none is refused.
program FailingStress;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, StressWork, CallPlans, Promises, UsedBytes;

const
  ThreadCount = 4;
  RoundCount = 2;
  ShortRound = 2500;

function TryStart(Seed: NativeUInt): TThreadID;
begin
  Result := TThreadID(0);
  try
    Result := BeginThread(WorkOneRound, Pointer(Seed));
  except
    on EOutOfMemory do; // of the run-time library, for the thread's record
  end;
end;

procedure RunThreads;
var
  Ids: array[1..ThreadCount] of TThreadID;
  Index, Round: Integer;
begin
  for Round := 1 to RoundCount do
  begin
    for Index := 1 to ThreadCount do
      Ids[Index] := TryStart(Round * ThreadCount + Index);
    for Index := 1 to ThreadCount do
      if Ids[Index] <> TThreadID(0) then
        WaitForThreadTerminate(Ids[Index], 0);
    LaneMM_Trim;
  end;
end;

var
  Before: NativeUInt;
  Refused: Integer;
begin
  TurnsPerRound := ShortRound;
  RunThreads;
  if ParamStr(1) = 'list' then
  begin
    CallsPrint;
    Halt(0);
  end;
  CallsSucceed;
  RunThreads; // makes what stays
  EmptySlots;
  Before := LaneMM_HeapStatus.UsedBytes;
  Refused := RefusedCount;
  RunThreads;
  EmptySlots;
  Expect(DamagedCount = 0, 'blocks keep their contents');
  Expect(RefusedCount = Refused, 'no call is refused when the system calls succeed again');
  ExpectUsed(Before);
  Finish;
end.
