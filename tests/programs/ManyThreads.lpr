/// More than a thousand threads at a time, three times over.
program ManyThreads;

{$mode delphi}

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} cthreads, SysUtils, Promises, UsedBytes;

const
  ThreadCount = 1200;
  RoundCount = 3;
  BlockCount = 100;
  StackSize = 128 * 1024;

var
  Blocks: array[0..ThreadCount - 1, 0..BlockCount - 1] of PByte;
  Waiting: LongInt;

// Each thread leaves blocks, waits for all the others, and frees those of its neighbour.
function Work(Argument: Pointer): PtrInt;
var
  Index, Own, Neighbour: PtrUInt;
begin
  Own := PtrUInt(Argument);
  for Index := 0 to BlockCount - 1 do
    Blocks[Own, Index] := FilledBlock(Index * 3, Own);
  InterlockedDecrement(Waiting);
  while InterlockedCompareExchange(Waiting, 0, 0) > 0 do
    ThreadSwitch;
  Neighbour := (Own + 1) mod ThreadCount;
  for Index := 0 to BlockCount - 1 do
  begin
    Expect(IsFilled(Blocks[Neighbour, Index], Index * 3, Neighbour), 'a block is what it was');
    FreeMem(Blocks[Neighbour, Index]);
  end;
  Result := 0;
end;

/// The committed bytes when all threads have their blocks, whatever is given back before or after that.
function RunRound: NativeUInt;
var
  Threads: array[0..ThreadCount - 1] of TThreadID; // to wait for, on Windows not the numbers
  Number: TThreadID;
  Index: PtrUInt;
begin
  Waiting := ThreadCount + 1;
  for Index := 0 to ThreadCount - 1 do
  begin
    Threads[Index] := BeginThread(Work, Pointer(Index), Number, StackSize);
    Expect(Threads[Index] <> TThreadID(0), 'a thread starts');
    if BrokenCount > 0 then
      Finish;
  end;
  while InterlockedCompareExchange(Waiting, 0, 0) > 1 do
    Sleep(1);
  Result := LaneMM_HeapStatus.CommittedBytes;
  InterlockedDecrement(Waiting);
  for Index := 0 to ThreadCount - 1 do
    WaitForThreadTerminate(Threads[Index], 0);
end;

var
  Index: Integer;
  Used, First, Later: NativeUInt;
begin
  First := RunRound;
  Used := LaneMM_HeapStatus.UsedBytes;
  for Index := 2 to RoundCount do
  begin
    Later := RunRound;
    Expect(Later <= First + First div 4, 'new threads use the memory of those that ended');
  end;
  ExpectUsed(Used);
  Finish;
end.
