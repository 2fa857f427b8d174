/// LaneMM's thread key is one of those that cannot be read directly: all goes the slower way.
program NoFastSlot;

{$mode delphi}
{$unitpath ../../src/core} // behind the door

uses
  TakenKeys, LaneMM, cthreads, Promises, Exchange, LaneMM.Types;

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
  Before: NativeUInt;
begin
  Expect(not Process.HasFastSlot, 'the key cannot be read directly');
  WaitForThreadTerminate(BeginThread(Work, nil), 0);
  ExchangeEmpty;
  Before := LaneMM_HeapStatus.UsedBytes;
  for Index := 1 to ThreadCount do
    Threads[Index] := BeginThread(Work, Pointer(Index));
  for Index := 1 to ThreadCount do
    WaitForThreadTerminate(Threads[Index], 0);
  ExchangeEmpty;
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  Finish;
end.
