/// LaneMM comes first, the thread unit after it: the usual way.
program BeforeThreads;

{$mode delphi}

uses
  LaneMM, cthreads, Promises, Exchange;

var
  Before: NativeUInt;
begin
  Expect(IsMemoryManagerSet, 'LaneMM is installed');
  // The first thread makes things that stay.
  ExchangeInThreads(1);
  Before := LaneMM_HeapStatus.UsedBytes;
  ExchangeInThreads(MostThreads);
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  Finish;
end.
