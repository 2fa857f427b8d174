/// Tests of LaneMM.Regions: heaps whose blocks are freed at once.
unit Test.Regions;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types, LaneMM.Regions;

type
  TRegionsTests = class(TQuietTest)
  strict private
    Shared: array[0..3] of PHeap;
    UserCount, Errors: LongInt;
    Many: array[0..4999] of Pointer;
    UsedHeap: PHeap;
    Line: TStartLine;
    Handle: NativeUInt;
    Region: PHeap;
    Shelved: Pointer;
    ShelvedSpan: PSpan;
    ShelvedFirst: NativeUInt;
    ShelvedCount: Cardinal;
    {$ifdef LINUX} Watched: Pointer; {$endif}
    procedure Enter;
    procedure Leave;
    function Get(Size: NativeUInt): Pointer;
    procedure GetMany(Count, Size: NativeUInt);
    procedure LimitTo(SliceCount: NativeUInt);
    procedure GetInside;
    procedure UseAHeap;
    procedure UseShared;
    procedure FreeMany;
    function Blocks: NativeUInt;
    function Slices: NativeUInt;
    procedure FreeInChild;
    {$ifdef LINUX}
    procedure FreeLargeInChild;
    procedure EnterAllInChild;
    procedure SweepInChild;
    procedure GetInChild;
    {$endif}
    function EnterTwice: PHeap;
    procedure ShelveBegin;
    procedure ShelveEnd;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlocksOfAScopeBelongToTheRegion;
    procedure BlocksOutsideBelongToNone;
    procedure ScopesNest;
    procedure LeaveWithoutAScopeIsRefused;
    procedure FreeReleasesAllSpans;
    procedure FreeReleasesLargeBlocks;
    procedure FreeIsRefusedWhileAThreadIsInside;
    procedure FreeIsRefusedWhileAnotherThreadIsInside;
    procedure HandleOfAFreedRegionIsKnownAsSuch;
    procedure HandleOfAFreedRegionIsThatOfNoneOfTheNext2047;
    procedure NumbersThatAreNoHandlesAreFollowedNowhere;
    procedure BlockIsFreedOutsideOfTheScope;
    procedure LargeBlockIsFreedOutsideOfTheScope;
    procedure BlockOfOthersIsFreedInTheScope;
    procedure SpanThatOthersFilledIsTakenOverByNoRegion;
    procedure LargeBlockFreedInTheScopeIsKeptByNoRegion;
    procedure ResizedBlockStaysInItsRegion;
    procedure ResizedBlockOfNoRegionStaysOutside;
    procedure LargeBlockGrowsInItsRegion;
    {$ifdef UNIX}
    procedure LargeBlockThatIsFreedOrShortenedWakesThePurge;
    {$endif}
    procedure FullSpansServeAgainAfterFrees;
    procedure ResetKeepsTheRegionAndItsWarmSpans;
    procedure ResetGivesBackWhatWasMore;
    procedure FreeAfterTheFreeOfTheRegionIsRefused;
    procedure NameHasNoControlCharacters;
    procedure LimitRefusesMore;
    procedure LimitThatRefusesALongSpanIsReported;
    procedure ResizeThatTheLimitRefusesLeavesTheThreadOutside;
    procedure LargeBlockResizedBeyondAllAddressesStaysAsItIs;
    procedure ResizeOutsideFitsWhereABlockOfItsSizeDoes;
    procedure LimitCountsLargeBlocks;
    procedure FreedMemoryIsUsedAgainBelowTheLimit;
    procedure LargeBlockGrowsInPlaceOfFreedMemory;
    procedure WhatOthersKeepOfAThreadOutlastsItsScope;
    procedure ThreadThatEndsLeavesItsScope;
    procedure ThreadsUseOneRegion;
    procedure BlocksThatOthersFreeWhileItIsResetAreFreedOnce;
    procedure ManyRegionsLeaveNoMemory;
    procedure FewSmallBlocksOfARegionTakeFewPages;
    procedure SweepReleasesEmptySpansOfARegion;
    procedure SpanThatIsShelvedMeanwhileIsReleasedLater;
    procedure RegionIsFreedAlthoughItsHeapWasSweptWhenItWasReset;
    procedure RegionIsFreedAlthoughASpanWasShelvedWhenItWasReset;
    procedure RecordOfARegionIsUsedAgainAfterItsHeaps;
    procedure RecordOfARegionIsUsedAgainForRegionsAlone;
    procedure WithoutAThreadThatPurgesAFreedRegionDissolves;
    procedure HeapOfAFreedRegionCountsToTheNextSampleAnew;
    procedure HeapWhoseRunsAreBeingReleasedServesNoRegion;
    procedure ChildProcessFreesARegion;
    {$ifdef LINUX}
    procedure ChildProcessFreesLargeBlocksOfARegion;
    procedure ChildProcessEntersHeapsThatWereCopiedAtTwoMoments;
    procedure ChildProcessFreesARegionThatALostThreadWasFreeing;
    procedure ChildProcessUsesNoFreeBlockOfALostThread;
    {$endif}
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Layout, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Lock, LaneMM.Os, LaneMM.SizeClasses, LaneMM.RemoteList,
  LaneMM.Backed, LaneMM.Arena, LaneMM.Shards, LaneMM.Walk, LaneMM.HeapRecords, LaneMM.Heap, LaneMM.RegionHeaps, LaneMM.Threads,
  LaneMM.Purge;

procedure TRegionsTests.SetUp;
begin
  inherited;
  Handle := RegionMake('test', 0);
  Region := RegionFind(Handle);
end;

procedure TRegionsTests.TearDown;
begin
  while OsThreadHeap^.Region <> nil do
    RegionLeave(OsThreadHeap);
  if RegionFind(Handle) <> nil then
    AssertTrue('freed at the end', RegionFree(Region) = raDone);
  inherited;
end;

procedure TRegionsTests.Enter;
begin
  if RegionEnter(Region, ThreadHeap) <> raDone then
    Fail('not entered');
end;

procedure TRegionsTests.Leave;
begin
  RegionLeave(OsThreadHeap);
end;

// Allocates one block in the region.
function TRegionsTests.Get(Size: NativeUInt): Pointer;
begin
  Enter;
  GetMem(Result, Size);
  Leave;
end;

procedure TRegionsTests.GetMany(Count, Size: NativeUInt);
var
  P: Pointer;
  Index: NativeUInt;
begin
  Enter;
  for Index := 1 to Count do
    GetMem(P, Size);
  Leave;
end;

// Replaces the region by one with a limit.
procedure TRegionsTests.LimitTo(SliceCount: NativeUInt);
begin
  AssertTrue('freed', RegionFree(Region) = raDone);
  Handle := RegionMake('limited', SliceCount);
  Region := RegionFind(Handle);
end;

function TRegionsTests.Blocks: NativeUInt;
var
  Bytes: NativeUInt;
begin
  RegionSum(Region, Result, Bytes);
end;

function TRegionsTests.Slices: NativeUInt;
begin
  Result := Region^.Data.Slices;
end;

procedure TRegionsTests.BlocksOfAScopeBelongToTheRegion;
var
  Small, Middle, Large: Pointer;
begin
  Small := Get(100);
  Middle := Get(20000);
  Large := Get(1000000);
  AssertTrue('small', RegionOfBlock(Small) = Region);
  AssertTrue('middle', RegionOfBlock(Middle) = Region);
  AssertTrue('large', RegionOfBlock(Large) = Region);
  Same(3, Blocks, 'blocks');
end;

procedure TRegionsTests.BlocksOutsideBelongToNone;
var
  P: Pointer;
begin
  Get(100);
  GetMem(P, 100);
  AssertTrue('none', RegionOfBlock(P) = nil);
  FreeMem(P);
  Same(1, Blocks, 'blocks');
end;

procedure TRegionsTests.ScopesNest;
var
  Inner: PHeap;
  P, Q: Pointer;
begin
  Inner := RegionFind(RegionMake('inner', 0));
  Enter;
  RegionEnter(Inner, OsThreadHeap);
  GetMem(P, 50);
  Leave;
  GetMem(Q, 50);
  Leave;
  AssertTrue('inner', RegionOfBlock(P) = Inner);
  AssertTrue('outer', RegionOfBlock(Q) = Region);
  AssertTrue('outside', OsThreadHeap^.Region = nil);
  AssertTrue('freed', RegionFree(Inner) = raDone);
end;

procedure TRegionsTests.LeaveWithoutAScopeIsRefused;
begin
  AssertTrue('refused', RegionLeave(OsThreadHeap) = raInside);
end;

procedure TRegionsTests.FreeReleasesAllSpans;
var
  Before: NativeUInt;
begin
  GetMem(Pointer(Before), 100); // warms the thread's heap
  FreeMem(Pointer(Before));
  Before := BackedSlices;
  GetMany(10000, 100);
  AtLeast(Before + 15, BackedSlices, 'slices');
  AssertTrue('freed', RegionFree(Region) = raDone);
  ProcessTrim;
  AtMost(Before + 1, BackedSlices, 'slices after');
end;

procedure TRegionsTests.FreeReleasesLargeBlocks;
var
  Before: NativeUInt;
begin
  ProcessTrim;
  Before := BackedSlices;
  GetMany(4, 10 * SliceSize);
  AtLeast(Before + 40, BackedSlices, 'slices');
  AssertTrue('freed', RegionFree(Region) = raDone);
  ProcessTrim;
  AtMost(Before + 1, BackedSlices, 'slices after');
end;

procedure TRegionsTests.FreeIsRefusedWhileAThreadIsInside;
var
  P: PByte;
begin
  Enter;
  GetMem(P, 100);
  P[0] := 7;
  AssertTrue('refused', RegionFree(Region) = raInside);
  AssertTrue('no reset either', RegionReset(Region) = raInside);
  Same(7, P[0], 'contents');
  Leave;
  Same(1, Blocks, 'blocks');
end;

procedure TRegionsTests.FreeIsRefusedWhileAnotherThreadIsInside;
var
  Other: TServant;
begin
  Other := TServant.Create;
  Other.Call(Enter);
  AssertTrue('refused', RegionFree(Region) = raInside);
  Get(100); // another heap of the region
  Other.Call(Leave);
  Other.Free;
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

procedure TRegionsTests.HandleOfAFreedRegionIsKnownAsSuch;
var
  Next: NativeUInt;
begin
  RegionFree(Region);
  AssertTrue('gone', RegionFind(Handle) = nil);
  Next := RegionMake('next', 0);
  AssertTrue('gone, although the record is used again', RegionFind(Handle) = nil);
  AssertTrue('the next', RegionFind(Next) <> nil);
  RegionFree(RegionFind(Next));
end;

// The first two lead to no memory of any process, the others to none of this one.
procedure TRegionsTests.NumbersThatAreNoHandlesAreFollowedNowhere;
const
  Numbers: array[0..4] of NativeUInt = (12345, High(NativeUInt), High(NativeUInt) shr 1,
    High(NativeUInt) shr 18, $DEADBEEF);
var
  Index: Integer;
begin
  for Index := 0 to High(Numbers) do
    AssertTrue('number ' + IntToStr(Index), RegionFind(Numbers[Index]) = nil);
  AssertTrue('far from a region',
    RegionFind(Handle xor NativeUInt(1) shl (5 * SizeOf(Pointer))) = nil);
  AssertTrue('a block', RegionFind(NativeUInt(Get(100))) = nil);
  AssertTrue('the record of a thread', RegionFind(NativeUInt(OsThreadHeap)) = nil);
  AssertTrue('the region', RegionFind(Handle) = Region);
end;

procedure TRegionsTests.HandleOfAFreedRegionIsThatOfNoneOfTheNext2047;
var
  Index: Integer;
begin
  RegionFree(Region);
  for Index := 1 to 2047 do
  begin
    AssertTrue('another record, or another handle', RegionMake('next', 0) <> Handle);
    AssertTrue('the record serves again', Region^.Data.Made <> RegionEnded);
    RegionFree(Region);
  end;
end;

procedure TRegionsTests.BlockIsFreedOutsideOfTheScope;
var
  P: Pointer;
begin
  P := Get(100);
  FreeMem(P);
  Same(0, Blocks, 'blocks');
  P := Get(100);
  Same(1, Blocks, 'blocks after another');
end;

procedure TRegionsTests.LargeBlockIsFreedOutsideOfTheScope;
var
  P: Pointer;
begin
  P := Get(5 * SliceSize);
  Same(5, Slices, 'slices');
  FreeMem(P);
  Same(0, Blocks, 'blocks');
  HeapSweepQueued(Region);
  Same(0, Slices, 'slices after');
end;

procedure TRegionsTests.BlockOfOthersIsFreedInTheScope;
var
  P, Q: Pointer;
  Before: NativeUInt;
begin
  GetMem(P, 100);
  GetMem(Q, 5 * SliceSize);
  Before := Blocks;
  Enter;
  FreeMem(P);
  FreeMem(Q);
  Leave;
  Same(Before, Blocks, 'blocks of the region');
end;

procedure TRegionsTests.SpanThatOthersFilledIsTakenOverByNoRegion;
var
  Filled: array[0..999] of Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Filled) do
    GetMem(Filled[Index], 512); // spans that were filled are given up
  Enter;
  for Index := 0 to High(Filled) do
    FreeMem(Filled[Index]);
  Leave;
  Same(0, Slices, 'slices of the region');
  Same(0, Blocks, 'blocks of the region');
end;

procedure TRegionsTests.LargeBlockFreedInTheScopeIsKeptByNoRegion;
var
  P: Pointer;
begin
  GetMem(P, 3 * SliceSize);
  Enter;
  FreeMem(P);
  Same(0, OsThreadHeap^.KeptSlices, 'kept slices');
  Leave;
end;

procedure TRegionsTests.ResizedBlockStaysInItsRegion;
var
  P: PByte;
begin
  P := Get(100);
  P[99] := 5;
  ReallocMem(P, 5000);
  AssertTrue('grown outside', RegionOfBlock(P) = Region);
  ReallocMem(P, 500000);
  AssertTrue('large', RegionOfBlock(P) = Region);
  Same(5, P[99], 'contents');
  ReallocMem(P, 200);
  AssertTrue('small again', RegionOfBlock(P) = Region);
  Same(5, P[99], 'contents');
  Same(1, Blocks, 'blocks');
end;

procedure TRegionsTests.ResizedBlockOfNoRegionStaysOutside;
var
  P: PByte;
begin
  GetMem(P, 100);
  P[99] := 5;
  Enter;
  ReallocMem(P, 5000);
  AssertTrue('grown inside', RegionOfBlock(P) = nil);
  ReallocMem(P, 500000);
  AssertTrue('large', RegionOfBlock(P) = nil);
  ReallocMem(P, 200);
  AssertTrue('small again', RegionOfBlock(P) = nil);
  Leave;
  Same(5, P[99], 'contents');
  FreeMem(P);
end;

procedure TRegionsTests.LargeBlockGrowsInItsRegion;
var
  P: PByte;
begin
  P := Get(3 * SliceSize);
  P[0] := 9;
  ReallocMem(P, 40 * SliceSize);
  Same(9, P[0], 'contents');
  AssertTrue('in the region', RegionOfBlock(P) = Region);
  ReallocMem(P, 5 * SliceSize);
  HeapSweepQueued(Region);
  Same(5, Slices, 'slices after it was shortened');
  FreeMem(P);
  HeapSweepQueued(Region);
  Same(0, Slices, 'slices after');
end;

{$ifdef UNIX}
// In a child process the state of the purge thread is this test's.
procedure TRegionsTests.LargeBlockThatIsFreedOrShortenedWakesThePurge;
const
  Running = 1;
  Parked = 2; // of Process.PurgeState
var
  P: Pointer;
begin
  if not InChild then
    Exit;
  P := Get(40 * SliceSize);
  StoreRelease(Process.PurgeState, Parked);
  ReallocMem(P, 5 * SliceSize);
  Same(Running, LoadAcquire(Process.PurgeState), 'after it was shortened');
  StoreRelease(Process.PurgeState, Parked);
  FreeMem(P);
  Same(Running, LoadAcquire(Process.PurgeState), 'after it was freed');
end;
{$endif}

procedure TRegionsTests.FullSpansServeAgainAfterFrees;
var
  All: array[0..3999] of Pointer;
  Index: Integer;
  Most: NativeUInt;
begin
  Enter;
  for Index := 0 to High(All) do
    GetMem(All[Index], 256);
  Most := Slices;
  for Index := 0 to High(All) do
    FreeMem(All[Index]);
  for Index := 0 to High(All) do
    GetMem(All[Index], 256);
  Leave;
  AtMost(Most + 1, Slices, 'slices');
end;

procedure TRegionsTests.ResetKeepsTheRegionAndItsWarmSpans;
var
  Before: NativeUInt;
begin
  GetMany(100, 100);
  AssertTrue('reset', RegionReset(Region) = raDone);
  Same(0, Blocks, 'blocks');
  Before := Slices;
  AtLeast(1, Before, 'slices that it keeps');
  GetMany(100, 100);
  Same(Before, Slices, 'slices: none was taken');
  Same(100, Blocks, 'blocks again');
end;

procedure TRegionsTests.ResetGivesBackWhatWasMore;
begin
  GetMany(20000, 100);
  GetMany(2, 20 * SliceSize);
  AtLeast(60, Slices, 'slices');
  AssertTrue('reset', RegionReset(Region) = raDone);
  AtMost(2, Slices, 'slices after');
end;

procedure TRegionsTests.FreeAfterTheFreeOfTheRegionIsRefused;
var
  P: Pointer;
begin
  P := Get(100);
  RegionFree(Region);
  Same(InvalidPointer, ErrorOfFree(P), 'error');
end;

procedure TRegionsTests.NameHasNoControlCharacters;
var
  Other: PHeap;
begin
  Other := RegionFind(RegionMake('a'#10'line and '#27'[31m'#127'ü', 0));
  AssertEquals('a?line and ?[31m?ü', string(PAnsiChar(@Other^.Data.Name[0])));
  RegionFree(Other);
end;

procedure TRegionsTests.LimitRefusesMore;
var
  P: Pointer;
  Count: Integer;
begin
  LimitTo(8);
  Count := 0;
  Enter;
  while (Count < 100000) and (ErrorOfGet(P, 1000) = NoError) do
    Inc(Count);
  Leave;
  AtLeast(300, Count, 'blocks');
  AtMost(8 * SliceSize div 1000, Count, 'blocks');
  AtMost(8, Region^.Data.Peak, 'slices at most');
  GetMem(P, 1000000); // of others
  FreeMem(P);
end;

procedure TRegionsTests.LimitThatRefusesALongSpanIsReported;
var
  P: Pointer;
  Count: Integer;
begin
  LimitTo(17);
  Count := 0;
  Enter;
  while (Count < 1000) and (ErrorOfGet(P, 15000) = NoError) do
    Inc(Count);
  Leave;
  AtLeast(15 * (SliceSize div 16384), Count, 'blocks');
  AssertTrue('reported', Region^.Data.IsReported);
end;

procedure TRegionsTests.ResizeThatTheLimitRefusesLeavesTheThreadOutside;
var
  P: Pointer;
begin
  LimitTo(8);
  P := Get(100);
  Same(OutOfMemory, ErrorOfRealloc(P, 9 * SliceSize), 'error');
  AssertTrue('outside', OsThreadHeap^.Region = nil);
  LimitTo(0);
  Enter;
  GetMem(P, 100);
  AssertTrue('in the scope', RegionOfBlock(P) = Region);
  Leave;
end;

procedure TRegionsTests.LargeBlockResizedBeyondAllAddressesStaysAsItIs;
const
  TooMuch: array[0..2] of NativeUInt = (Impossible, High(NativeUInt) - SliceSize div 2, High(NativeUInt));
var
  P, Q: PByte;
  Size: NativeUInt;
begin
  P := Get(3 * SliceSize);
  FillPattern(P, 3 * SliceSize, 1);
  for Size in TooMuch do
  begin
    Q := P;
    Same(OutOfMemory, ErrorOfRealloc(Pointer(Q), Size), 'error');
    AssertTrue('place', Q = P);
    Same(3 * SliceSize, MemSize(P), 'size');
    Same(3, Slices, 'slices');
    AssertTrue('contents', HasPattern(P, 3 * SliceSize, 1));
  end;
end;

// The limit leaves no slice for the longer block that a block which grows gets elsewhere.
procedure TRegionsTests.ResizeOutsideFitsWhereABlockOfItsSizeDoes;
const
  SizeClass = 40;
var
  P: Pointer;
  Size: NativeUInt;
begin
  LimitTo(30);
  Size := ClassToSize(SizeClass);
  P := Get(Size div 2);
  GetMany(20, Size); // in a span of their class
  ReturnNilIfGrowHeapFails := True;
  Enter;
  while GetMem(60000) <> nil do;
  while GetMem(8192) <> nil do;
  while GetMem(2 * MemSize(P) + 32) <> nil do;
  FreeMem(GetMem(Size));
  Leave;
  P := ReallocMem(P, Size);
  ReturnNilIfGrowHeapFails := False;
  AssertTrue('grown', P <> nil);
end;

procedure TRegionsTests.LimitCountsLargeBlocks;
var
  P: Pointer;
  Error: Integer;
begin
  LimitTo(20);
  Enter;
  GetMem(P, 10 * SliceSize);
  Error := ErrorOfGet(P, 15 * SliceSize);
  Leave;
  Same(OutOfMemory, Error, 'error');
end;

procedure TRegionsTests.FreedMemoryIsUsedAgainBelowTheLimit;
var
  Turn: Integer;
begin
  LimitTo(20);
  Enter;
  for Turn := 1 to 100 do
    FreeMem(GetMem(10 * SliceSize));
  Leave;
  AtMost(20, Region^.Data.Peak, 'slices at most');
end;

// In use are 88 slices of 100; a move would need 106.
procedure TRegionsTests.LargeBlockGrowsInPlaceOfFreedMemory;
const
  Size = 88 * SliceSize;
var
  P, Other: Pointer;
begin
  Other := Get(MaxClassSize);
  P := Get(Size);
  ReallocMem(P, Size div 5);
  FreeMem(Other);
  Same(18 + 16, Slices, 'slices that count');
  Region^.Data.Limit := 100;
  ReturnNilIfGrowHeapFails := True;
  AssertTrue('grown', ReallocMem(P, Size) <> nil);
  ReturnNilIfGrowHeapFails := False;
end;

procedure TRegionsTests.GetInside;
begin
  Enter;
  GetMem(100);
end;

procedure TRegionsTests.WhatOthersKeepOfAThreadOutlastsItsScope;
var
  Own, Inner: PHeap;
  Kept, Known: Pointer;
begin
  Own := ThreadHeap;
  Kept := Own^.DebugThread;
  Own^.DebugThread := nil;
  Enter;
  Inner := OsThreadHeap;
  AssertTrue('outside for a moment', RegionVisit(nil, Inner));
  Own^.DebugThread := @Own;
  RegionReturn(Inner);
  Leave;
  Known := Own^.DebugThread;
  Own^.DebugThread := Kept;
  AssertTrue('that of the visit', Known = @Own);
  AssertTrue('none of the region', Inner^.DebugThread = nil);
end;

procedure TRegionsTests.ThreadThatEndsLeavesItsScope;
begin
  InThread(GetInside);
  Same(1, Blocks, 'blocks stay');
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

// Allocates in four regions and outside, frees in and out of scopes, checks what the blocks hold.
procedure TRegionsTests.UseShared;
const
  Rounds = 300;
var
  Blocks: array[0..63] of PCardinal;
  Generator: TGenerator;
  Round, Index: Integer;
  Seed: Cardinal;
begin
  Seed := 1000 * InterlockedIncrement(UserCount);
  Generator.Start(TestSeed + Seed);
  FillChar(Blocks, SizeOf(Blocks), 0);
  for Round := 1 to Rounds do
  begin
    RegionEnter(Shared[Generator.Below(4)], ThreadHeap);
    for Index := 0 to High(Blocks) do
    begin
      if (Blocks[Index] <> nil) and (Blocks[Index]^ <> Seed + Cardinal(Index)) then
        InterlockedIncrement(Errors);
      case Generator.Below(3) of
        0:
          begin
            FreeMem(Blocks[Index]);
            Blocks[Index] := nil;
          end;
        1:
          if Blocks[Index] = nil then
          begin
            GetMem(Blocks[Index], 16 + Generator.Below(3000));
            Blocks[Index]^ := Seed + Cardinal(Index);
          end
          else
            ReallocMem(Blocks[Index], 16 + Generator.Below(200000));
      end;
      if Generator.Below(8) = 0 then
      begin
        RegionLeave(OsThreadHeap);
        RegionEnter(Shared[Generator.Below(4)], ThreadHeap);
      end;
    end;
    RegionLeave(OsThreadHeap);
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TRegionsTests.ThreadsUseOneRegion;
var
  Index: Integer;
  Count, Bytes: NativeUInt;
begin
  for Index := 0 to High(Shared) do
    Shared[Index] := RegionFind(RegionMake('shared', 0));
  InThreads(8, UseShared);
  Same(0, Errors, 'blocks with other contents');
  for Index := 0 to High(Shared) do
  begin
    RegionSum(Shared[Index], Count, Bytes);
    Same(0, Count, 'blocks left');
    AssertTrue('freed', RegionFree(Shared[Index]) = raDone);
  end;
end;

// A block may be refused: the reset was first.
procedure TRegionsTests.FreeMany;
var
  Index: Integer;
begin
  Line.Await;
  for Index := 0 to High(Many) do
    ErrorOfFree(Many[Index]);
end;

procedure TRegionsTests.BlocksThatOthersFreeWhileItIsResetAreFreedOnce;
var
  Freer: TWorker;
  Index: Integer;
begin
  Enter;
  for Index := 0 to High(Many) do
    GetMem(Many[Index], 200);
  Leave;
  Line.Start(2);
  Freer := TWorker.Create(FreeMany, False);
  Line.Await;
  AssertTrue('reset', RegionReset(Region) = raDone);
  EndThread(Freer);
  HeapSweepQueued(Region);
  Same(0, Blocks, 'blocks');
  GetMany(1000, 200);
  if LifeStep <> 0 then
    Same(1000, Blocks, 'blocks afterwards')
  else // a free that began before the reset may count as one after it
    AtMost(1000, Blocks, 'blocks afterwards');
end;

procedure TRegionsTests.UseAHeap;
begin
  FreeMem(GetMem(100));
  UsedHeap := OsThreadHeap;
end;

// A thread that has found the region, and enters it after another one has freed it, finds its end.
procedure TRegionsTests.RecordOfARegionIsUsedAgainForRegionsAlone;
var
  Index: Integer;
begin
  AssertTrue('freed', RegionFree(Region) = raDone);
  ThreadsAbandonVacant(High(Cardinal));
  for Index := 1 to 20 do
  begin
    InThread(UseAHeap);
    AssertTrue('heap of a thread in another record', UsedHeap <> Region);
  end;
  AssertTrue('no region', RegionEnter(Region, ThreadHeap) = raNone);
end;

// The blocks of bench/c/regions.cc: a heap for them alone has 6.6 KB of blocks.
procedure TRegionsTests.FewSmallBlocksOfARegionTakeFewPages;
var
  Pages: array[0..49] of NativeUInt;
  Count, Index, Known: Integer;
  P: PByte;
begin
  Count := 0;
  Enter;
  for Index := 0 to High(Pages) do
  begin
    GetMem(P, 16 + Index * 37 mod 240);
    Known := 0;
    while (Known < Count) and (Pages[Known] <> NativeUInt(P) div OsPageSize) do
      Inc(Known);
    Pages[Known] := NativeUInt(P) div OsPageSize;
    if Known = Count then
      Inc(Count);
  end;
  Leave;
  AtMost(3, Count, 'pages');
end;

procedure TRegionsTests.ManyRegionsLeaveNoMemory;
var
  Turn: Integer;
  Before: NativeUInt;
  P: Pointer;
  Many: PHeap;

  procedure UseOne;
  begin
    Many := RegionFind(RegionMake('many', 0));
    RegionEnter(Many, ThreadHeap);
    GetMem(P, 100);
    GetMem(P, 3000);
    RegionLeave(OsThreadHeap);
    AssertTrue('freed', RegionFree(Many) = raDone);
  end;

begin
  UseOne;
  Before := BackedSlices;
  for Turn := 1 to 100000 do
    UseOne;
  AtMost(Before, BackedSlices, 'slices');
end;

procedure TRegionsTests.SweepReleasesEmptySpansOfARegion;
var
  All: array[0..3999] of Pointer;
  Index: Integer;
begin
  Enter;
  for Index := 0 to High(All) do
    GetMem(All[Index], 256);
  Leave;
  AtLeast(15, Slices, 'slices');
  for Index := 0 to High(All) do
    FreeMem(All[Index]);
  ProcessTrim;
  ProcessTrim;
  AtMost(2, Slices, 'slices after');
end;

// Frees one of two blocks, and shelves it, until ShelveEnd, as another thread does.
procedure TRegionsTests.ShelveBegin;
begin
  Shelved := Get(100);
  Get(100);
  ShelvedSpan := ArenaSpan(Shelved);
  FreeMem(Shelved);
  ShelvedFirst := RemoteShelve(ShelvedSpan, ShelvedCount);
  Same(1, ShelvedCount, 'taken to shelve');
end;

procedure TRegionsTests.ShelveEnd;
begin
  RemoteShelveEnd(ShelvedSpan, ShelvedFirst, PBlock(Shelved), ShelvedCount);
  RegionHeapSweep(Region);
end;

procedure TRegionsTests.SpanThatIsShelvedMeanwhileIsReleasedLater;
begin
  ShelveBegin;
  AssertTrue('freed', RegionFree(Region) = raDone);
  AssertTrue('the span is left', ShelvedSpan^.Kind = skBlocks);
  ShelveEnd;
  AssertFalse('it is released now', ShelvedSpan^.Kind = skBlocks);
  AssertTrue('and the heap unused', Region^.Region = nil);
end;

// As if another thread were sweeping the heap.
procedure TRegionsTests.RegionIsFreedAlthoughItsHeapWasSweptWhenItWasReset;
begin
  Get(100);
  LockEnter(Region^.Lock);
  AssertTrue('reset', RegionReset(Region) = raDone);
  LockLeave(Region^.Lock);
  Get(100);
  AssertTrue('freed: no thread is in it', RegionFree(Region) = raDone);
  RegionHeapSweep(Region);
  Same(0, Region^.Data.Left, 'heaps left');
end;

procedure TRegionsTests.RegionIsFreedAlthoughASpanWasShelvedWhenItWasReset;
begin
  ShelveBegin;
  AssertTrue('reset', RegionReset(Region) = raDone);
  Get(100);
  AssertTrue('freed: no thread is in it', RegionFree(Region) = raDone);
  AtLeast(1, Region^.Data.Left, 'heaps left');
  ShelveEnd;
  Same(0, Region^.Data.Left, 'heaps left');
end;

procedure TRegionsTests.RecordOfARegionIsUsedAgainAfterItsHeaps;
var
  P: Pointer;
  Span: PSpan;
  First, Next: NativeUInt;
  Count: Cardinal;
  Inner: PHeap;
begin
  Enter;
  Enter; // another heap of the same region
  Inner := OsThreadHeap;
  GetMem(P, 100);
  Leave;
  Leave;
  AssertTrue('another heap', Inner <> Region);
  Span := ArenaSpan(P);
  FreeMem(P);
  First := RemoteShelve(Span, Count);
  Same(1, Count, 'taken to shelve');
  AssertTrue('freed', RegionFree(Region) = raDone);
  Next := RegionMake('next', 0);
  AssertTrue('of another record', RegionFind(Next) <> Region);
  RegionFree(RegionFind(Next));
  RemoteShelveEnd(Span, First, PBlock(P), Count);
  RegionHeapSweep(Inner);
  AssertTrue('the heap is unused', Inner^.Region = nil);
  Same(0, Region^.Data.Left, 'heaps left');
end;

// Enters and leaves two heaps of the region, and returns the inner one.
function TRegionsTests.EnterTwice: PHeap;
begin
  Enter;
  Enter;
  Result := OsThreadHeap;
  Leave;
  Leave;
end;

// As in the C library: threads that need a span sweep.
procedure TRegionsTests.WithoutAThreadThatPurgesAFreedRegionDissolves;
const
  MostTurns = 1000;
var
  Thread: Cardinal;
  Turn: Integer;
begin
  Get(100);
  Thread := Process.PurgeThread;
  Process.PurgeThread := 0;
  LockEnter(Region^.Lock);
  AssertTrue('freed', RegionFree(Region) = raDone);
  AssertTrue('spans are left', Region^.Region <> nil);
  LockLeave(Region^.Lock);
  Turn := 0;
  while (Region^.Region <> nil) and (Turn < MostTurns) do
  begin
    ShardsPurge(AllSlices);
    Process.SweepFrom := 0;
    ProcessSweep;
    Inc(Turn);
  end;
  Process.PurgeThread := Thread;
  AssertTrue('released', Region^.Region = nil);
end;

procedure TRegionsTests.HeapOfAFreedRegionCountsToTheNextSampleAnew;
var
  Inner: PHeap;
begin
  Inner := EnterTwice;
  AssertTrue('freed', RegionFree(Region) = raDone);
  AssertTrue('the heap is unused', Inner^.Region = nil);
  Same(0, Inner^.SampleIn, 'bytes to the next sample');
  Same(0, Inner^.SampleSeed, 'seed');
end;

// As if another thread had claimed the runs that the last thread of the heap kept.
procedure TRegionsTests.HeapWhoseRunsAreBeingReleasedServesNoRegion;
var
  Last, Inner: PHeap;
begin
  Last := HeapPop(Process.UnusedHeaps);
  if Last = nil then
    Last := HeapRecordNew;
  Last^.RunsClaimed := 1;
  HeapPush(Process.UnusedHeaps, Last);
  Inner := EnterTwice;
  Last^.RunsClaimed := 0; // as at the end of the sweep
  AssertTrue('another heap', (Inner <> Last) and (Inner <> Region));
  Same(1, Inner^.RunsClaimed, 'it keeps no runs');
end;

procedure TRegionsTests.FreeInChild;
begin
  GetMany(10, 100);
  Same(1013, Blocks, 'blocks in the child');
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

procedure TRegionsTests.ChildProcessFreesARegion;
begin
  GetMany(1000, 100);
  GetMany(3, 5 * SliceSize);
  {$ifdef LINUX}
  Same(0, RunInChild(FreeInChild), 'exit code of the child');
  {$endif}
  Same(1003, Blocks, 'blocks here');
end;

{$ifdef LINUX}
procedure TRegionsTests.FreeLargeInChild;
begin
  AtLeast(10, Slices, 'slices in the child');
  FreeMem(Watched);
  AssertTrue('freed', RegionFree(Region) = raDone);
  AssertFalse('the other block', ArenaSpan(Shelved)^.Kind = skLarge);
  Same(0, Region^.Data.Left, 'heaps left');
end;

procedure TRegionsTests.ChildProcessFreesLargeBlocksOfARegion;
begin
  Watched := Get(5 * SliceSize);
  Shelved := Get(5 * SliceSize);
  Same(0, RunInChild(FreeLargeInChild), 'exit code of the child');
end;

procedure TRegionsTests.EnterAllInChild;
var
  Heaps: array[0..3] of PHeap;
  Index, Other: Integer;
begin
  for Index := 0 to High(Heaps) do
  begin
    Enter;
    Heaps[Index] := OsThreadHeap;
    for Other := 0 to Index - 1 do
      AssertTrue('each heap once', Heaps[Other] <> Heaps[Index]);
  end;
  for Index := 0 to High(Heaps) do
    Leave;
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

// The pages of the heaps show that they were pushed in this order, and in another one: a ring.
procedure TRegionsTests.ChildProcessEntersHeapsThatWereCopiedAtTwoMoments;
var
  First, Second, Third: PHeap;
begin
  Enter;
  EnterTwice;
  Leave;
  First := FirstHeapOf(Region^.Data.Idle);
  Second := First^.NextUnused;
  Third := Second^.NextUnused;
  AssertTrue('three heaps', Third <> nil);
  Second^.NextUnused := First;
  Same(0, RunInChild(EnterAllInChild), 'exit code of the child');
  Second^.NextUnused := Third;
end;

procedure TRegionsTests.SweepInChild;
begin
  ProcessTrim;
  AssertFalse('the large block', ArenaSpan(Watched)^.Kind = skLarge);
  AssertFalse('the span', ArenaSpan(Shelved)^.Kind = skBlocks);
  AssertTrue('the record', Region^.Region = nil);
end;

procedure TRegionsTests.ChildProcessFreesARegionThatALostThreadWasFreeing;
var
  Idle: TAtomicWord;
begin
  Watched := Get(5 * SliceSize);
  Shelved := Get(100);
  Idle := Region^.Data.Idle;
  HeapPop(Region^.Data.Idle);
  Region^.Data.Made := RegionEnded;
  Same(0, RunInChild(SweepInChild), 'exit code of the child');
  Region^.Data.Made := 1;
  Region^.Data.Idle := Idle;
end;

procedure TRegionsTests.GetInChild;
var
  P: Pointer;
  Index: Integer;
begin
  Hooks.Corruption := CountCorruption;
  Corruptions := 0;
  Enter;
  for Index := 1 to 2000 do
  begin
    GetMem(P, 100);
    AssertTrue('another block', P <> Watched);
  end;
  Leave;
  Same(0, Corruptions, 'reports');
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

// As if another thread, which is in the region, had just allocated and filled the next block when
// its page was copied, but not yet when the record of its span was.
procedure TRegionsTests.ChildProcessUsesNoFreeBlockOfALostThread;
var
  Span: PSpan;
  Link: NativeUInt;
begin
  Watched := Get(100);
  Span := ArenaSpan(Watched);
  Watched := Span^.Start + Span^.FreeList;
  Link := PBlock(Watched)^.Link;
  PBlock(Watched)^.Link := 0;
  Same(0, RunInChild(GetInChild), 'exit code of the child');
  PBlock(Watched)^.Link := Link;
end;
{$endif}

initialization
  RegisterTest(TRegionsTests);
end.
