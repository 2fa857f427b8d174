/// Tests of LaneMM.Limits.
unit Test.Limits;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Classes, Test.Tools, LaneMM.Hooks;

type
  TLimitsTests = class(TQuietTest)
  strict private
    KeptHook: TLimitCall;
    KeptInvalid: TInvalidPointerCall;
    KeptPeak: NativeUInt;
    Soft, Hard, Reserve: NativeUInt;
    Limit: NativeUInt;
    Line: TStartLine;
    List: TList; // of blocks
    procedure SetLimits(SoftBytes, HardBytes, ReserveBytes: NativeUInt);
    function HasReserve: Boolean;
    procedure LimitTo(Bytes: NativeUInt);
    procedure Churn;
    function ReportsSoFar: NativeUInt;
    procedure FillAndFreeATenth;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure HeapStaysBelowTheLimit;
    procedure HeapStaysBelowTheLimitWhileThreadsAllocate;
    procedure BlockThatGrowsStaysBelowTheLimit;
    procedure FreeMemoryIsGivenBackBeforeARefusal;
    procedure RefusalIsOutOfMemory;
    procedure BlockShrinksWithoutAnyMemory;
    procedure RefusalIsReportedOnceUntilMemoryHasFallen;
    procedure WithoutALimitNothingIsReported;
    procedure SoftLimitIsReportedOnceUntilMemoryHasFallen;
    procedure SoftLimitIsNotReportedForFreeMemory;
    procedure ReserveIsThereWhenMemoryHasRunOut;
    procedure WithoutAReserveNothingIsThere;
    procedure ReserveIsFilledWhenMemoryIsFree;
    procedure ReserveStaysClosedWhileThereIsMemory;
    procedure ReserveIsNoBlock;
    procedure BlockThatGrowsAtTheFrontierStaysBelowTheLimit;
    procedure BlockThatGrowsIntoAColdRunStaysBelowTheLimit;
    procedure BlockThatGrowsIntoSpareSlicesStaysBelowTheLimit;
    procedure WarmMemoryMakesWayForGrowthInPlace;
    procedure WarmMemoryMakesWayForALongerRun;
    procedure RefusalThatLeavesTheReserveClosedTakesNothing;
    procedure ReserveStaysOpenUntilThereIsTwiceItsSize;
    procedure LastSlicesServeBlocksWhoseSpansAreLonger;
    procedure SpanOfOneBlockIsReleasedWithIt;
    procedure RefusalOfMoreThanHalfOfAllAddressesLetsSamplesGoOn;
    procedure LimitBelowASliceIsALimit;
    procedure MemoryThatOthersFreedIsGivenBackBeforeARefusal;
    procedure ReserveThatIsTakenBackIsNotMeasuredByARunOfNoSlices;
    procedure RefusalBelowTheLimitIsNotTheLimits;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Shards, LaneMM.Backed,
  LaneMM.Large, LaneMM.Purge,
  LaneMM.Limits, LaneMM.Blocks, LaneMM.Threads, LaneMM.Allocate;

const
  Megabyte = NativeUInt(1) shl 20;
  Sizes: array[0..4] of NativeUInt = (48, 1000, 20000, 100000, 3000000);

var
  ReportCount: NativeUInt;
  LastReport: TLimitEvent;

procedure CountReport(Event: TLimitEvent; Size: NativeUInt);
begin
  LastReport := Event;
  FetchAdd(ReportCount, 1);
end;

procedure TLimitsTests.SetLimits(SoftBytes, HardBytes, ReserveBytes: NativeUInt);
begin
  Soft := SoftBytes;
  Hard := HardBytes;
  Reserve := ReserveBytes;
  LimitsSet(Soft, Hard, Reserve);
end;

procedure TLimitsTests.SetUp;
begin
  inherited SetUp;
  List := TList.Create;
  ReportCount := 0;
  KeptHook := Hooks.LimitReached;
  Hooks.LimitReached := CountReport;
  KeptInvalid := Hooks.InvalidPointer;
  Hooks.InvalidPointer := nil;
  KeptPeak := Process.PeakSlices;
  Process.PeakSlices := BackedSlices;
  ReturnNilIfGrowHeapFails := True;
end;

procedure TLimitsTests.TearDown;
begin
  ReturnNilIfGrowHeapFails := False;
  SetLimits(0, 0, 0);
  FreeListed(List);
  List.Free;
  if KeptPeak > Process.PeakSlices then
    Process.PeakSlices := KeptPeak;
  Hooks.LimitReached := KeptHook;
  Hooks.InvalidPointer := KeptInvalid;
  inherited TearDown;
end;

function TLimitsTests.ReportsSoFar: NativeUInt;
begin
  Result := LoadAcquire(ReportCount);
end;

function TLimitsTests.HasReserve: Boolean;
begin
  Result := LoadAcquire(Process.Reserve) <> 0;
end;

// Sets a limit of Bytes more than the heap holds now.
procedure TLimitsTests.LimitTo(Bytes: NativeUInt);
begin
  Limit := BackedSlices * SliceSize + Bytes;
  SetLimits(Soft, Limit, Reserve);
end;

procedure TLimitsTests.HeapStaysBelowTheLimit;
var
  Size: NativeUInt;
begin
  LimitTo(64 * Megabyte);
  List.Capacity := 1 shl 21;
  for Size in Sizes do
  begin
    GetUntilRefused(List, Size);
    AtMost(Limit, BackedSlices * SliceSize, 'backed');
    AtLeast(Limit - 4 * Megabyte, BackedSlices * SliceSize, 'backed');
    FreeListed(List);
  end;
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
  ReturnNilIfGrowHeapFails := False;
  AssertTrue('the heap works', HeapWorks);
end;

// Allocates and frees blocks of all tiers; refused requests are ignored.
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
  AtLeast(1, ReportsSoFar, 'refusals');
end;

procedure TLimitsTests.BlockThatGrowsStaysBelowTheLimit;
var
  P: PByte;
  Used, Size: NativeUInt;
begin
  LimitTo(64 * Megabyte);
  Used := UsedBytes;
  Size := 100000;
  P := GetMem(Size);
  FillPattern(P, 100000, 1);
  repeat
    AssertTrue('the contents stay', HasPattern(P, 100000, 1));
    Inc(Size, Size div 3);
  until ReallocMem(P, Size) = nil;
  AssertTrue('the pointer is nil', P = nil);
  Same(Used, UsedBytes, 'the block is freed');
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
end;

procedure TLimitsTests.FreeMemoryIsGivenBackBeforeARefusal;
var
  P: Pointer;
  Size: NativeUInt;
begin
  LimitTo(32 * Megabyte);
  List.Capacity := 1 shl 21;
  for Size in Sizes do
  begin
    GetUntilRefused(List, Size);
    FreeListed(List);
    P := GetMem(24 * Megabyte);
    AssertTrue('got', P <> nil);
    FreeMem(P);
  end;
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
  SetLimits(Soft, 0, Reserve);
  Same(NoError, ErrorOfGet(P, 20 * Megabyte), 'without a limit');
  FreeMem(P);
end;

procedure TLimitsTests.BlockShrinksWithoutAnyMemory;
var
  Large, Small: PByte;
begin
  List.Capacity := 1 shl 20;
  LimitTo(16 * Megabyte);
  Large := GetMem(Megabyte);
  Small := GetMem(6000);
  FillPattern(Large, 200, 1);
  FillPattern(Small, 200, 2);
  GetUntilRefused(List, 100000);
  GetUntilRefused(List, 200);
  AssertTrue('large', ReallocMem(Large, 200) <> nil);
  AssertTrue('small', ReallocMem(Small, 200) <> nil);
  AssertTrue('contents', HasPattern(Large, 200, 1) and HasPattern(Small, 200, 2));
  FreeMem(Large);
  FreeMem(Small);
end;

procedure TLimitsTests.RefusalIsReportedOnceUntilMemoryHasFallen;
var
  Turn: Integer;
  Kept: Pointer;
begin
  LimitTo(16 * Megabyte);
  Kept := GetMem(15 * Megabyte);
  for Turn := 1 to 3 do
    GetMem(4 * Megabyte);
  Same(1, ReportsSoFar, 'reports');
  FreeMem(Kept);
  ProcessTrim;
  Process.Limits[lkHard].Slices := BackedSlices * 2 + 16 * Megabyte div SliceSize;
  Kept := GetMem(Process.Limits[lkHard].Slices * SliceSize - (BackedSlices + 1) * SliceSize);
  for Turn := 1 to 3 do
    GetMem(4 * Megabyte);
  Same(2, ReportsSoFar, 'reports after it has fallen');
  FreeMem(Kept);
end;

procedure TLimitsTests.WithoutALimitNothingIsReported;
begin
  AssertTrue('refused', GetMem(Impossible) = nil);
  Same(0, ReportsSoFar, 'reports');
  AssertFalse('nothing is counted', Process.HasLimits);
end;

// Memory has fallen when an eighth of the limit is free; the tests before may have left much in use.
procedure TLimitsTests.SoftLimitIsReportedOnceUntilMemoryHasFallen;
var
  P: array[1..4] of Pointer;
  Part: NativeUInt;
  Index, Turn: Integer;
begin
  Part := BackedSlices * SliceSize div 15 + 20 * Megabyte;
  SetLimits(BackedSlices * SliceSize + 3 * Part + 4 * Megabyte, Hard, Reserve);
  for Turn := 1 to 3 do
  begin
    for Index := 1 to 3 do
      P[Index] := GetMem(Part);
    Same(Turn - 1, ReportsSoFar, 'reports below');
    P[4] := GetMem(Part);
    Same(Turn, ReportsSoFar, 'reports above');
    FreeMem(P[4]);
    P[4] := GetMem(Part + Megabyte);
    Same(Turn, ReportsSoFar, 'reports after a little less');
    for Index := 1 to 4 do
      FreeMem(P[Index]);
    ProcessTrim;
    Process.Limits[lkSoft].Slices := BackedSlices + (3 * Part + 4 * Megabyte) div SliceSize;
    AtMost(Process.Limits[lkSoft].Slices div 8 * 7, BackedSlices, 'backed');
  end;
end;

procedure TLimitsTests.SoftLimitIsNotReportedForFreeMemory;
var
  Size: NativeUInt;
begin
  LimitTo(30 * Megabyte);
  List.Capacity := 1 shl 21;
  for Size in Sizes do
  begin
    SetLimits(0, Hard, Reserve);
    GetUntilRefused(List, Size);
    FreeListed(List);
    SetLimits(Soft, 0, Reserve);
    SetLimits(Limit, Hard, Reserve);
    ReportCount := 0;
    FreeMem(GetMem(20 * Megabyte));
    Same(0, ReportsSoFar, 'reports');
    SetLimits(Soft, Limit, Reserve);
  end;
end;

procedure TLimitsTests.ReserveIsThereWhenMemoryHasRunOut;
var
  P: Pointer;
begin
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  SetLimits(Soft, Hard, 4 * Megabyte);
  AssertTrue('kept', HasReserve);
  GetUntilRefused(List, 100000);
  AssertFalse('opened', HasReserve);
  Same(2, ReportsSoFar, 'reports: the limit, the reserve');
  P := GetMem(3 * Megabyte);
  AssertTrue('got', P <> nil);
  AtMost(Limit, Process.PeakSlices * SliceSize, 'highest');
  FreeMem(P);
end;

procedure TLimitsTests.WithoutAReserveNothingIsThere;
begin
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  GetUntilRefused(List, 100000);
  AssertTrue('refused', GetMem(3 * Megabyte) = nil);
  Same(1, ReportsSoFar, 'reports: the limit');
end;

procedure TLimitsTests.ReserveIsFilledWhenMemoryIsFree;
var
  Turn: Integer;
begin
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  SetLimits(Soft, Hard, 4 * Megabyte);
  for Turn := 1 to 3 do
  begin
    GetUntilRefused(List, 100000);
    AssertFalse('opened', HasReserve);
    FreeListed(List);
    ProcessTrim;
    FreeMem(GetMem(2 * Megabyte));
    AssertTrue('kept again', HasReserve);
  end;
end;

procedure TLimitsTests.ReserveStaysClosedWhileThereIsMemory;
begin
  LimitTo(32 * Megabyte);
  SetLimits(Soft, Hard, 4 * Megabyte);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  AssertTrue('refused', GetMem(Impossible) = nil);
  AssertTrue('closed', HasReserve);
end;

procedure TLimitsTests.ReserveIsNoBlock;
var
  Span: PSpan;
  Used: NativeUInt;
begin
  ReturnNilIfGrowHeapFails := False;
  Used := UsedBytes;
  SetLimits(Soft, Hard, 4 * Megabyte);
  Same(Used, UsedBytes, 'used');
  Span := PSpan(Process.Reserve);
  AssertFalse('first', BlockIsOurs(Span^.Start));
  Same(InvalidPointer, ErrorOfFree(Span^.Start), 'freed');
  SetLimits(Soft, Hard, 0);
  AssertFalse('given back', HasReserve);
end;

// Takes 16 MB, frees a tenth, so that the spans stay in this thread's queues.
procedure TLimitsTests.FillAndFreeATenth;
var
  Index: Integer;
begin
  for Index := 0 to 16 * Megabyte div 1000 - 1 do
    List.Add(GetMem(1000));
  for Index := 0 to List.Count - 1 do
    if Index mod 10 = 0 then
    begin
      FreeMem(List[Index]);
      List[Index] := nil;
    end;
end;

procedure TLimitsTests.BlockThatGrowsAtTheFrontierStaysBelowTheLimit;
var
  Span: PSpan;
  Arena: PArena;
  Backed: NativeUInt;
begin
  Process.HugeFrom := 0; // no slices left in front of a huge page
  Arena := ArenaWithNew(4 * Megabyte div SliceSize);
  LockShards;
  Span := LargeGet(Megabyte);
  UnlockShards;
  AssertTrue('got', Span <> nil);
  AssertTrue('at the frontier', Span + Span^.SliceCount = Arena^.Spans + Arena^.Frontier);
  ShardsPurge(AllSlices);
  LimitTo(Megabyte);
  Backed := BackedSlices;
  AssertFalse('grown', LargeGrow(Span, Span^.BlockSize + 2 * Megabyte));
  Same(Backed, BackedSlices, 'backed slices');
  AssertTrue('grown below the limit', LargeGrow(Span, Span^.BlockSize + SliceSize));
  SetLimits(0, 0, 0);
  LargeFree(Span);
end;

procedure TLimitsTests.BlockThatGrowsIntoAColdRunStaysBelowTheLimit;
var
  Span, Rest: PSpan;
begin
  Span := LargeGet(8 * Megabyte);
  AssertTrue('got', Span <> nil);
  Rest := ShardsSplit(Span, Megabyte div SliceSize);
  LargeShrink(Span, Megabyte);
  ShardsReleaseZero(Rest);
  ShardsPurge(AllSlices);
  LimitTo(Megabyte);
  AssertFalse('grown', LargeGrow(Span, 4 * Megabyte));
  Same(Megabyte div SliceSize, Span^.SliceCount, 'slices');
  SetLimits(0, 0, 0);
  LargeFree(Span);
end;

procedure TLimitsTests.BlockThatGrowsIntoSpareSlicesStaysBelowTheLimit;
var
  Span: PSpan;
  Copied, Spare: NativeUInt;
begin
  ShardsPurge(AllSlices); // a block moves to warm memory without spare slices
  Span := LargeMove(LargeGet(5 * Megabyte), 6 * Megabyte, Copied);
  AssertTrue('got', Span <> nil);
  Spare := Span^.SpareCount;
  AtLeast(4 * Megabyte div SliceSize, Spare, 'spare slices');
  ShardsPurge(AllSlices);
  LimitTo(Megabyte);
  AssertFalse('grown', LargeGrow(Span, 10 * Megabyte));
  Same(Spare, Span^.SpareCount, 'spare slices after');
  SetLimits(0, 0, 0);
  LargeFree(Span);
end;

// Of a block with spare slices, and of one at the frontier.
procedure TLimitsTests.WarmMemoryMakesWayForGrowthInPlace;
var
  Warm, Span: PSpan;
  Copied: NativeUInt;
  IsSpare: Boolean;
begin
  for IsSpare := False to True do
  begin
    ShardsPurge(AllSlices);
    Warm := ShardsTake(8 * Megabyte div SliceSize);
    ArenaWithNew(16 * Megabyte div SliceSize);
    Span := LargeGet(5 * Megabyte);
    AssertTrue('got', Span <> nil);
    if IsSpare then
      Span := LargeMove(Span, 6 * Megabyte, Copied)
    else
      LargeShrink(Span, 4 * Megabyte);
    ShardsPurge(AllSlices);
    ShardsRelease(Warm);
    LimitTo(0);
    AssertTrue('grown', LargeGrow(Span, Span^.BlockSize + Megabyte));
    AtMost(Limit, BackedSlices * SliceSize, 'backed');
    SetLimits(0, 0, 0);
    LargeFree(Span);
  end;
end;

procedure TLimitsTests.WarmMemoryMakesWayForALongerRun;
var
  Spans: array[0..31] of PSpan;
  Index: Integer;
  Span: PSpan;
begin
  for Index := 0 to High(Spans) do
    Spans[Index] := ShardsTake(Megabyte div SliceSize);
  for Index := 0 to High(Spans) do
    if Odd(Index) then
      ShardsRelease(Spans[Index]);
  LimitTo(0);
  Span := ShardsTake(3 * Megabyte div SliceSize);
  AssertTrue('taken', Span <> nil);
  AtMost(Limit, BackedSlices * SliceSize, 'backed');
  ShardsRelease(Span);
  for Index := 0 to High(Spans) do
    if not Odd(Index) then
      ShardsRelease(Spans[Index]);
end;

procedure TLimitsTests.RefusalThatLeavesTheReserveClosedTakesNothing;
var
  Backed: NativeUInt;
begin
  LimitTo(32 * Megabyte);
  SetLimits(Soft, Hard, 4 * Megabyte);
  Backed := BackedSlices - ShardsWarmSlices;
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  AssertTrue('refused', GetMem(40 * Megabyte) = nil);
  AtMost(Backed, BackedSlices - ShardsWarmSlices, 'slices in use');
end;

procedure TLimitsTests.ReserveStaysOpenUntilThereIsTwiceItsSize;
var
  Turn: Integer;
begin
  List.Capacity := 1 shl 21;
  LimitTo(32 * Megabyte);
  SetLimits(Soft, Hard, 8 * Megabyte);
  GetUntilRefused(List, 100000);
  AssertFalse('opened', HasReserve);
  Turn := 0;
  while BackedSlices - ShardsWarmSlices > (Limit - 12 * Megabyte) div SliceSize do
  begin
    FreeMem(List[Turn]);
    List[Turn] := nil;
    Inc(Turn);
  end;
  ProcessTrim;
  FreeMem(GetMem(100000));
  AssertFalse('closed with less', HasReserve);
  FreeListed(List);
  ProcessTrim;
  FreeMem(GetMem(100000));
  AssertTrue('closed with enough', HasReserve);
end;

procedure TLimitsTests.LastSlicesServeBlocksWhoseSpansAreLonger;
begin
  List.Capacity := 1 shl 16;
  LimitTo(4 * SliceSize);
  GetUntilRefused(List, 32768);
  AtLeast(8, List.Count, 'blocks');
  AtMost(Limit, BackedSlices * SliceSize, 'backed');
end;

// At a limit spans of one slice hold one block of this size each.
procedure TLimitsTests.SpanOfOneBlockIsReleasedWithIt;
var
  Before, Index: NativeUInt;
begin
  List.Capacity := 1 shl 16;
  Before := 0;
  for Index := 1 to 2 do // the first refusal releases what other tests have left
  begin
    ProcessTrim;
    Before := BackedSlices;
    LimitTo(8 * SliceSize);
    GetUntilRefused(List, MaxClassSize);
    AtLeast(6, List.Count, 'blocks');
    FreeListed(List);
  end;
  AtMost(Before + 1, BackedSlices - ShardsWarmSlices, 'slices of spans');
end;

procedure TLimitsTests.RefusalOfMoreThanHalfOfAllAddressesLetsSamplesGoOn;
const
  TooMuch = High(NativeUInt) div 4 * 3;
var
  Get: TSizeCall;
  Heap: PHeap;
  Kept, KeptSeed: NativeInt;
  Turn: Integer;
begin
  ReturnNilIfGrowHeapFails := True;
  Heap := ThreadHeap;
  Kept := Heap^.SampleIn;
  KeptSeed := Heap^.SampleSeed;
  Get := CountedBlockGet;
  for Turn := 1 to 2 do
  begin
    Heap^.SampleIn := 1000;
    AssertTrue('refused', Get(TooMuch) = nil);
    Same(0, Heap^.SampleIn, 'bytes to the next sample');
    Same(0, Heap^.SampleSeed, 'the thread begins anew');
    Get := QuickCountedBlockGet;
  end;
  Heap^.SampleIn := Kept;
  Heap^.SampleSeed := KeptSeed;
end;

procedure TLimitsTests.LimitBelowASliceIsALimit;
begin
  SetLimits(0, 1, 0);
  AssertTrue('a limit', Process.HasLimits);
  AssertTrue('refused', GetMem(Megabyte) = nil);
end;

procedure TLimitsTests.MemoryThatOthersFreedIsGivenBackBeforeARefusal;
var
  Owner: TWorker;
  P: Pointer;
begin
  List.Capacity := 1 shl 16;
  Owner := StartIdleThread(FillAndFreeATenth);
  FreeListed(List);
  LimitTo(4 * Megabyte);
  P := GetMem(14 * Megabyte);
  AssertTrue('got', P <> nil);
  FreeMem(P);
  SetLimits(0, 0, 0);
  EndThread(Owner);
end;

procedure TLimitsTests.ReserveThatIsTakenBackIsNotMeasuredByARunOfNoSlices;
begin
  SetLimits(Soft, Hard, 4 * Megabyte);
  Process.ReserveSlices := 0; // as LimitsSet does first in another thread
  LimitsReport(Megabyte);
  AssertFalse('given back', HasReserve);
end;

procedure TLimitsTests.RefusalBelowTheLimitIsNotTheLimits;
begin
  LimitTo(64 * Megabyte);
  StoreRelease(Process.Limits[lkHard].State, Ord(lsReached)); // a request found warm memory instead
  LimitsReport(Megabyte);
  Same(Ord(leRefused), Ord(LastReport), 'report');
end;

initialization
  RegisterTest(TLimitsTests);
end.
