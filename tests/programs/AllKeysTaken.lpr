/// No key of the thread library is left where threads could keep their heaps: the previous memory
/// manager stays, and threads work as without LaneMM.
program AllKeysTaken;

{$mode delphi}

uses
  AllKeys, LaneMM, cthreads, Promises, Exchange;

const
  ThreadCount = 4;

function Work(Seed: Pointer): PtrInt;
begin
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 20000);
  Result := 0;
end;

var
  Threads: array[1..ThreadCount] of TThreadID;
  Index: PtrUInt;
  Block: PByte;
begin
  for Index := 1 to ThreadCount do
    Threads[Index] := BeginThread(Work, Pointer(Index));
  for Index := 1 to ThreadCount do
    WaitForThreadTerminate(Threads[Index], 0);
  ExchangeEmpty;
  Block := FilledBlock(1000, 1);
  Expect(IsFilled(Block, 1000, 1), 'blocks keep their contents');
  Expect(LaneMM_HeapStatus.UsedBytes = 0, 'no block is of LaneMM');
  FreeMem(Block);
  LaneMM_Trim;
  Finish;
end.
