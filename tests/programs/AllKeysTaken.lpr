/// No key of the thread library is left where threads could keep their heaps: the previous memory
/// manager stays, and threads work as without LaneMM.
program AllKeysTaken;

{$mode delphi}

uses
  AllKeys, LaneMM, cthreads, Promises, Exchange;

var
  Block: PByte;
begin
  ExchangeInThreads(4);
  Block := FilledBlock(1000, 1);
  Expect(IsFilled(Block, 1000, 1), 'blocks keep their contents');
  Expect(LaneMM_HeapStatus.UsedBytes = 0, 'no block is of LaneMM');
  FreeMem(Block);
  LaneMM_Trim;
  Finish;
end.
