/// LaneMM's thread key is one of those that cannot be read directly: all goes the slower way.
program NoFastSlot;

{$mode delphi}
{$unitpath ../../src/core} // behind the door

uses
  TakenKeys, LaneMM, cthreads, Promises, Exchange, LaneMM.Types;

var
  Before: NativeUInt;
begin
  Expect(not Process.HasFastSlot, 'the key cannot be read directly');
  ExchangeInThreads(1);
  Before := LaneMM_HeapStatus.UsedBytes;
  ExchangeInThreads(4);
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  Finish;
end.
