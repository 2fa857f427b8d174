/// Tests of LaneMM.Limits and LaneMM.Reserve.
unit Test.Limits;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Classes, Test.Tools, LaneMM.Types;

type
  TLimitsTests = class(TLaneTest)
  strict private
    KeptEvents: TEventRules;
    KeptPeak: NativeUInt;
    Limit: NativeUInt;
    Line: TStartLine;
    procedure LimitTo(Bytes: NativeUInt);
    procedure GetAll(List: TList; Size: NativeUInt);
    procedure FreeAll(List: TList);
    procedure FillHeap;
    procedure Churn;
    function Told: NativeUInt;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure HeapStaysBelowTheLimit;
    procedure HeapStaysBelowTheLimitWhileThreadsAllocate;
    procedure BlockThatGrowsStaysBelowTheLimit;
    procedure FreeMemoryIsGivenBackBeforeARefusal;
    procedure RefusalIsOutOfMemory;
    procedure RefusalIsToldOnceUntilMemoryHasFallen;
    procedure WithoutALimitNothingIsTold;
    procedure SoftLimitIsToldOnceUntilMemoryHasFallen;
    procedure SoftLimitIsNotToldOfFreeMemory;
    procedure ReserveIsThereWhenMemoryHasRunOut;
    procedure WithoutAReserveNothingIsThere;
    procedure ReserveIsFilledWhenMemoryIsFree;
    procedure ReserveStaysClosedWhileThereIsMemory;
    procedure ReserveIsNoBlock;
    procedure LimitCountsInDebugMode;
    procedure QuarantineIsGivenBackBeforeARefusal;
  end;

implementation

uses
  testregistry, LaneMM, LaneMM.Atomic, LaneMM.Arena, LaneMM.Blocks;

const
  Megabyte = NativeUInt(1) shl 20;
  Sizes: array[0..4] of NativeUInt = (48, 1000, 20000, 100000, 3000000);

procedure TLimitsTests.SetUp;
begin
  LaneMM_Trim;
  KeptEvents := Process.Events;
  KeptPeak := Process.PeakSlices;
  LaneMM_Configure('event=limit:callback,event=invalid-free:callback');
  Process.PeakSlices := ArenaBackedSlices;
  ReturnNilIfGrowHeapFails := True;
end;

procedure TLimitsTests.TearDown;
begin
  ReturnNilIfGrowHeapFails := False;
  LaneMM_Configure('limit=0,limit:soft=0,reserve=0,debug=0');
  if KeptPeak > Process.PeakSlices then
    Process.PeakSlices := KeptPeak;
  Process.Events := KeptEvents;
end;

// Reports so far.
function TLimitsTests.Told: NativeUInt;
begin
  Result := LoadAcquire(Process.Events[evLimit].Told);
end;

// Lets the heap grow by so many bytes.
procedure TLimitsTests.LimitTo(Bytes: NativeUInt);
begin
  Limit := ArenaBackedSlices * SliceSize + Bytes;
  LaneMM_SetMemoryLimit(Limit);
end;

procedure TLimitsTests.GetAll(List: TList; Size: NativeUInt);
var
  P: PPointer;
begin
  P := nil;
  repeat
    if P <> nil then
      P^ := nil;
    P := GetMem(Size);
    if P <> nil then
      List.Add(P);
  until P = nil;
end;

procedure TLimitsTests.FreeAll(List: TList);
var
  Index: Integer;
begin
  for Index := 0 to List.Count - 1 do
    FreeMem(List[Index]);
  List.Clear;
end;

// Takes all there is and gives it back.
procedure TLimitsTests.FillHeap;
var
  List: TList;
  Size: NativeUInt;
begin
  List := TList.Create;
  List.Capacity := 1 shl 21;
  for Size in Sizes do
  begin
    GetAll(List, Size);
    AtMost(Limit, ArenaBackedSlices * SliceSize, 'backed');
    AtLeast(Limit - 4 * Megabyte, ArenaBackedSlices * SliceSize, 'backed');
    FreeAll(List);
  end;
  List.Free;
end;

procedure TLimitsTests.HeapStaysBelowTheLimit;
begin
  LimitTo(64 * Megabyte);
  FillHeap;
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
  ReturnNilIfGrowHeapFails := False;
  AssertTrue('the heap works', HeapWorks);
end;

// Gets and frees blocks of all tiers; what is refused is refused.
procedure TLimitsTests.Churn;
var
  Blocks: array[0..199] of Pointer;
  Generator: TGenerator;
  Turn, Index: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  Generator.Start(TestSeed + NativeUInt(GetCurrentThreadId));
  Line.Await; // what a thread needs for itself it has by now
  for Turn := 1 to 3000 do
  begin
    Index := Generator.Below(Length(Blocks));
    if Blocks[Index] = nil then
      Blocks[Index] := GetMem(Generator.Below(300000))
    else if Odd(Turn) then
      ReallocMem(Blocks[Index], Generator.Below(8 * Megabyte) + 1)
    else
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := nil;
    end;
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TLimitsTests.HeapStaysBelowTheLimitWhileThreadsAllocate;
begin
  LimitTo(16 * Megabyte);
  Line.Start(8);
  InThreads(8, Churn);
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
  AtLeast(1, Told, 'refusals');
end;

procedure TLimitsTests.BlockThatGrowsStaysBelowTheLimit;
var
  P, Before: PByte;
  Size: NativeUInt;
begin
  LimitTo(64 * Megabyte);
  Size := 100000;
  P := GetMem(Size);
  FillPattern(P, 100000, 1);
  repeat
    Before := P;
    Inc(Size, Size div 3);
  until ReallocMem(P, Size) = nil;
  AssertTrue('the block stays', P = Before);
  AssertTrue('with its contents', HasPattern(P, 100000, 1));
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
  FreeMem(P);
end;

procedure TLimitsTests.FreeMemoryIsGivenBackBeforeARefusal;
var
  List: TList;
  P: Pointer;
  Size: NativeUInt;
begin
  LimitTo(32 * Megabyte);
  List := TList.Create;
  List.Capacity := 1 shl 21;
  for Size in Sizes do
  begin
    GetAll(List, Size);
    FreeAll(List);
    P := GetMem(24 * Megabyte);
    AssertTrue('got', P <> nil);
    FreeMem(P);
  end;
  List.Free;
end;

procedure TLimitsTests.RefusalIsOutOfMemory;
var
  P, Kept: Pointer;
begin
  ReturnNilIfGrowHeapFails := False;
  LimitTo(16 * Megabyte);
  Same(OutOfMemory, ErrorOfGet(P, 20 * Megabyte), 'get');
  Same(OutOfMemory, ErrorOfAlloc(P, 20 * Megabyte), 'alloc');
  GetMem(P, 10);
  Kept := P;
  Same(OutOfMemory, ErrorOfRealloc(P, 20 * Megabyte), 'realloc');
  AssertTrue('the block stays', P = Kept);
  FreeMem(P);
  Same(NoError, ErrorOfGet(P, 10 * Megabyte), 'what fits');
  FreeMem(P);
  LaneMM_SetMemoryLimit(0);
  Same(NoError, ErrorOfGet(P, 20 * Megabyte), 'without a limit');
  FreeMem(P);
end;

procedure TLimitsTests.RefusalIsToldOnceUntilMemoryHasFallen;
var
  Turn: Integer;
  Kept: Pointer;
begin
  LimitTo(16 * Megabyte);
  Kept := GetMem(15 * Megabyte);
  for Turn := 1 to 3 do
    GetMem(4 * Megabyte);
  Same(1, Told, 'reports');
  FreeMem(Kept);
  LaneMM_Trim;
  Process.Limits[lkHard].Slices := ArenaBackedSlices * 2 + 16 * Megabyte div SliceSize;
  Kept := GetMem(Process.Limits[lkHard].Slices * SliceSize - (ArenaBackedSlices + 1) * SliceSize);
  for Turn := 1 to 3 do
    GetMem(4 * Megabyte);
  Same(2, Told, 'reports after it has fallen');
  FreeMem(Kept);
end;

procedure TLimitsTests.WithoutALimitNothingIsTold;
begin
  AssertTrue('refused', GetMem(NativeUInt(1) shl 50) = nil);
  Same(0, Told, 'reports');
  AssertFalse('nothing is counted', Process.HasLimits);
end;

procedure TLimitsTests.SoftLimitIsToldOnceUntilMemoryHasFallen;
var
  P: array[1..4] of Pointer;
  Index, Turn: Integer;
begin
  LaneMM_SetSoftMemoryLimit(ArenaBackedSlices * SliceSize + 64 * Megabyte);
  for Turn := 1 to 3 do
  begin
    for Index := 1 to 3 do
      P[Index] := GetMem(20 * Megabyte);
    Same(Turn - 1, Told, 'reports below');
    P[4] := GetMem(20 * Megabyte);
    Same(Turn, Told, 'reports above');
    FreeMem(P[4]);
    P[4] := GetMem(21 * Megabyte);
    Same(Turn, Told, 'reports after a little less');
    for Index := 1 to 4 do
      FreeMem(P[Index]);
    LaneMM_Trim;
    Process.Limits[lkSoft].Slices := ArenaBackedSlices + 64 * Megabyte div SliceSize;
    AtMost(Process.Limits[lkSoft].Slices div 8 * 7, ArenaBackedSlices, 'backed');
  end;
end;

procedure TLimitsTests.SoftLimitIsNotToldOfFreeMemory;
var
  List: TList;
  Size: NativeUInt;
begin
  LimitTo(30 * Megabyte);
  LaneMM_SetMemoryLimit(Limit);
  List := TList.Create;
  List.Capacity := 1 shl 21;
  for Size in Sizes do
  begin
    LaneMM_SetSoftMemoryLimit(0);
    GetAll(List, Size);
    FreeAll(List);
    LaneMM_SetMemoryLimit(0);
    LaneMM_SetSoftMemoryLimit(Limit);
    Process.Events[evLimit].Told := 0;
    FreeMem(GetMem(20 * Megabyte));
    Same(0, Told, 'reports');
    LaneMM_SetMemoryLimit(Limit);
  end;
  List.Free;
end;

procedure TLimitsTests.ReserveIsThereWhenMemoryHasRunOut;
var
  List: TList;
  P: Pointer;
begin
  List := TList.Create;
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  LaneMM_SetReserve(4 * Megabyte);
  AssertTrue('kept', LaneMM_HasReserve);
  GetAll(List, 100000);
  AssertFalse('opened', LaneMM_HasReserve);
  Same(2, Told, 'reports: the limit, the reserve');
  P := GetMem(3 * Megabyte);
  AssertTrue('got', P <> nil);
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
  FreeMem(P);
  FreeAll(List);
  List.Free;
end;

procedure TLimitsTests.WithoutAReserveNothingIsThere;
var
  List: TList;
begin
  List := TList.Create;
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  GetAll(List, 100000);
  AssertTrue('refused', GetMem(3 * Megabyte) = nil);
  Same(1, Told, 'reports: the limit');
  FreeAll(List);
  List.Free;
end;

procedure TLimitsTests.ReserveIsFilledWhenMemoryIsFree;
var
  List: TList;
  Turn: Integer;
begin
  List := TList.Create;
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  LaneMM_SetReserve(4 * Megabyte);
  for Turn := 1 to 3 do
  begin
    GetAll(List, 100000);
    AssertFalse('opened', LaneMM_HasReserve);
    FreeAll(List);
    LaneMM_Trim;
    FreeMem(GetMem(2 * Megabyte));
    AssertTrue('kept again', LaneMM_HasReserve);
  end;
  List.Free;
end;

procedure TLimitsTests.ReserveStaysClosedWhileThereIsMemory;
begin
  LimitTo(32 * Megabyte);
  LaneMM_SetReserve(4 * Megabyte);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  AssertTrue('refused', GetMem(NativeUInt(1) shl 50) = nil);
  AssertTrue('closed', LaneMM_HasReserve);
end;

procedure TLimitsTests.ReserveIsNoBlock;
var
  Span: PSpan;
  Used: NativeUInt;
begin
  ReturnNilIfGrowHeapFails := False;
  Used := UsedBytes;
  LaneMM_SetReserve(4 * Megabyte);
  Same(Used, UsedBytes, 'used');
  Span := PSpan(Process.Reserve);
  AssertFalse('first', BlockIsOurs(Span^.Start));
  Same(InvalidPointer, ErrorOfFree(Span^.Start), 'freed');
  LaneMM_SetReserve(0);
  AssertFalse('given back', LaneMM_HasReserve);
end;

procedure TLimitsTests.LimitCountsInDebugMode;
var
  List: TList;
begin
  List := TList.Create;
  List.Capacity := 1 shl 21;
  LaneMM_EnterDebugMode;
  try
    LimitTo(32 * Megabyte);
    GetAll(List, 5000);
    AtMost(Limit, ArenaBackedSlices * SliceSize, 'backed');
    AtLeast(1, Told, 'refusals');
    FreeAll(List);
  finally
    LaneMM_SetMemoryLimit(0);
    LaneMM_ExitDebugMode;
  end;
  List.Free;
end;

procedure TLimitsTests.QuarantineIsGivenBackBeforeARefusal;
var
  List: TList;
  Index: Integer;
  P: Pointer;
begin
  List := TList.Create;
  LaneMM_EnterDebugMode;
  try
    for Index := 1 to 20 do
      List.Add(GetMem(Megabyte));
    FreeAll(List);
    AtLeast(12 * Megabyte, Process.Quarantine.Bytes, 'bytes in quarantine');
    LaneMM_Trim;
    LimitTo(16 * Megabyte);
    P := GetMem(24 * Megabyte);
    AssertTrue('got', P <> nil);
    Same(0, Told, 'refusals');
    FreeMem(P);
  finally
    LaneMM_SetMemoryLimit(0);
    LaneMM_ExitDebugMode;
  end;
  List.Free;
end;

initialization
  RegisterTest(TLimitsTests);
end.
