/// LaneMM comes first, the thread unit after it: the usual way.
program BeforeThreads;

{$mode delphi}

uses
  LaneMM, cthreads, Promises, Exchange;

const
  ThreadCount = 8;

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
  Expect(IsMemoryManagerSet, 'LaneMM is installed');
  // The first thread makes things that stay.
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
