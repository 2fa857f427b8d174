/// ReallocMem without memory while ReturnNilIfGrowHeapFails is set, in any mode: the pointer is nil,
/// and the block is freed, as on Free Pascal's heap. The run-time library and its callers look at
/// the pointer.
program Refused;

{$mode delphi}

uses
  LaneMM, Classes, SysUtils, Promises;

const
  TooMuch = High(NativeInt) div 4;
  Megabyte = 1 shl 20;
  // Blocks of one megabyte that are given up; much more than the program may need at its peak.
  Rounds = 500;
  MostMegabytes = 100;

procedure GiveUp(Size: NativeUInt);
var
  P: Pointer;
begin
  GetMem(P, Size);
  FillChar(P^, Size, 1);
  Expect(ReallocMem(P, TooMuch) = nil, 'the result is nil');
  Expect(P = nil, 'the pointer is nil');
end;

procedure GiveUpBlocksOfOtherCalls;
var
  P: Pointer;
begin
  P := LaneMM_DebugGetMem(100);
  Expect((ReallocMem(P, TooMuch) = nil) and (P = nil), 'a debug block');
  P := LaneMM_DebugGetMem(100);
  Expect((LaneMM_DebugReallocMem(P, TooMuch) = nil) and (P = nil), 'LaneMM_DebugReallocMem');
  P := LaneMM_GetMemAligned(100, 256);
  Expect((LaneMM_ReallocMemAligned(P, TooMuch, 256) = nil) and (P = nil), 'an aligned block');
  P := LaneMM_GetMemAligned(Megabyte, 64);
  Expect((LaneMM_ReallocMemAligned(P, TooMuch, 64) = nil) and (P = nil), 'a large aligned block');
end;

// TBits says that there is no memory when its pointer is nil.
function RefusalOfBits: string;
var
  Bits: TBits;
begin
  Result := '';
  Bits := TBits.Create(100);
  try
    Bits.Grow(MaxBitFlags - 1);
  except
    on E: EBitsError do
      Result := E.Message;
  end;
  Bits.Free;
end;

var
  Round: Integer;

begin
  ReturnNilIfGrowHeapFails := True;
  for Round := 1 to Rounds do
  begin
    GiveUp(Round);
    GiveUp(10000 + Round);
    GiveUp(Megabyte);
  end;
  Expect(LaneMM_HeapStatus.PeakBytes < MostMegabytes * Megabyte, 'no block is left behind');
  GiveUpBlocksOfOtherCalls;
  LaneMM_SetMemoryLimit(LaneMM_HeapStatus.CommittedBytes + Megabyte);
  Expect(RefusalOfBits <> '', 'TBits refuses');
  Finish;
end.
