/// LaneMM comes late: blocks of the manager before it are measured, resized and freed through
/// LaneMM, by any thread.
program AfterThreads;

{$mode delphi}

uses
  cthreads, EarlyBlocks, LaneMM, Promises, Exchange;

procedure MeasureEarlyBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(SampleSizes) do
  begin
    Expect(MemSize(Early[Index]) >= SampleSizes[Index], 'an early block knows its size');
    Expect(IsFilled(Early[Index], SampleSizes[Index], Index), 'an early block keeps its contents');
  end;
end;

procedure ResizeEarlyBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(SampleSizes) do
  begin
    ReallocMem(Resized[Index], SampleSizes[Index] * 2 + 1);
    Expect(IsFilled(Resized[Index], SampleSizes[Index], Index), 'resizing keeps the contents');
    ReallocMem(Resized[Index], SampleSizes[Index] div 8 + 1);
    Expect(IsFilled(Resized[Index], SampleSizes[Index] div 8 and not 7, Index), 'shrinking, too');
    FreeMem(Resized[Index]);
  end;
end;

procedure ChangeEarlyThings;
var
  Index: Integer;
begin
  for Index := 1 to 10000 do
    EarlyText := EarlyText + 'x';
  Expect(Copy(EarlyText, 1, 6) = 'earlyx', 'an early string grows');
  SetLength(EarlyNumbers, 100000);
  EarlyNumbers := nil;
  Expect(EarlyObject.Name = 'early object', 'an early object keeps its contents');
  EarlyObject.Free;
end;

function FreeHalf(First: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to High(Early) do
    if Odd(Index) = (First <> nil) then
      FreeMem(Early[Index]);
  ExchangeParcels(1, 20000);
  Result := 0;
end;

var
  Before: NativeUInt;
begin
  Expect(IsMemoryManagerSet, 'LaneMM is installed');
  MeasureEarlyBlocks;
  ResizeEarlyBlocks;
  ChangeEarlyThings;
  FreeHalf(nil);
  WaitForThreadTerminate(BeginThread(FreeHalf, @Before), 0);
  ExchangeEmpty;
  Before := LaneMM_HeapStatus.UsedBytes;
  FreeMem(FilledBlock(1000000, 1));
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'new blocks are LaneMM''s');
  Finish;
end.
