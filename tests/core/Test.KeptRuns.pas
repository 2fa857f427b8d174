/// Tests of LaneMM.KeptRuns, on a heap of their own, and of the large blocks from such runs.
unit Test.KeptRuns;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TKeptRunsTests = class(TQuietTest)
  strict private
    Mine: PHeap;
    Block: Pointer;
    function Get(SliceCount: NativeUInt): PSpan;
    function KeepSpan(Span: PSpan): Boolean;
    function Keep(SliceCount: NativeUInt): Boolean;
    procedure KeepEach(SliceCount: NativeUInt; Count: Integer);
    function Take(SliceCount: NativeUInt): PSpan;
    procedure MissMany;
    procedure FreeTen(const Spans: array of PSpan);
    function OwnBlock: PSpan;
    procedure FreeBlock;
    procedure SweepKept;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure RunThatWasKeptIsTakenOnce;
    procedure KeptRunIsNoBlock;
    procedure RunKeptLastIsTakenFirst;
    procedure RunTwiceAsLongServesABlock;
    procedure BlockGrowsIntoTheRestOfItsKeptRun;
    procedure ShortAndLongRunsAreNotKept;
    procedure BlockWithSpareSlicesIsNotKept;
    procedure HeapKeepsFewRunsOfALength;
    procedure HeapThatMissedNoRunKeepsFew;
    procedure HeapKeepsAsManyMoreAsItMissed;
    procedure HeapKeepsFewSlices;
    procedure HeapThatMissedRunsBeforeASweepKeepsFew;
    procedure HeapThatASweepEmptiedKeepsAsMuchAgain;
    procedure TakeAfterASweepLeavesTheLimitAsItIs;
    procedure RunsThatAnotherThreadClaimsAreLeftAlone;
    procedure SweepLeavesAThreadInItsSectionAlone;
    procedure BlockFromAKeptRunHasItsThreadAsKeeper;
    procedure BlockWithoutAKeeperIsNoneAfterItsFree;
    procedure BlockFreedByAnotherThreadEndsTheKeeper;
    procedure BlockThatAnotherThreadMarkedIsNotFreedAgain;
    procedure ClaimedRunsServeNoCall;
    procedure RunThatWasKeptClaimsNoZeros;
    procedure SweepReleasesKeptRuns;
    procedure KeptRunsAreReleasedWhileTheQueuesAreLocked;
    procedure ThreadThatEndsReleasesKeptRuns;
    procedure BlockFreedLastIsAllocatedAgain;
    procedure KeptRunsCountAsCached;
    procedure BlocksAreServedFromKeptRuns;
    procedure GetMemTakesTheShortestRunThatServes;
    procedure ZeroedBlockFromAKeptRunIsZero;
    procedure FreeMemKeepsNoSpareAndNoMovedRun;
    procedure ThreadThatOnlyFreesKeepsFew;
    procedure ThreadThatOnlyFreesItsOwnBlocksKeepsFew;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.RemoteList,
  LaneMM.Blocks, LaneMM.Shards, LaneMM.Sweep, LaneMM.Backed, LaneMM.KeptRuns, LaneMM.Large,
  LaneMM.Heap, LaneMM.Stats;

procedure TKeptRunsTests.SetUp;
begin
  inherited SetUp;
  Mine := NewHeaps(1);
end;

procedure TKeptRunsTests.TearDown;
begin
  HeapAbandon(Mine);
  inherited TearDown;
end;

function TKeptRunsTests.Get(SliceCount: NativeUInt): PSpan;
begin
  Result := LargeGet(SliceCount * SliceSize);
  AssertTrue('got', Result <> nil);
end;

// What FreeMem does. Returns whether the run is kept.
function TKeptRunsTests.KeepSpan(Span: PSpan): Boolean;
begin
  RemoteEndLife(Span);
  Result := LargeKeep(Mine, Span);
  if not Result then
    LargeRelease(Span);
end;

function TKeptRunsTests.Keep(SliceCount: NativeUInt): Boolean;
begin
  Result := KeepSpan(Get(SliceCount));
end;

procedure TKeptRunsTests.KeepEach(SliceCount: NativeUInt; Count: Integer);
var
  Index: Integer;
begin
  for Index := 1 to Count do
    AssertTrue('kept', Keep(SliceCount));
end;

// What GetMem does first.
function TKeptRunsTests.Take(SliceCount: NativeUInt): PSpan;
begin
  Result := LargeGetKept(Mine, SliceCount * SliceSize);
end;

procedure TKeptRunsTests.RunThatWasKeptIsTakenOnce;
var
  Span: PSpan;
begin
  Span := Get(5);
  AssertTrue('kept', KeepSpan(Span));
  Same(5, RunsKept(Mine), 'kept slices');
  AssertTrue('taken', Take(5) = Span);
  AssertTrue('a block', Span^.Kind = skLarge);
  Same(5 * SliceSize, Span^.BlockSize, 'usable');
  AssertTrue('not taken again', Take(5) = nil);
  Same(0, RunsKept(Mine), 'kept slices after');
  LargeFree(Span);
end;

procedure TKeptRunsTests.KeptRunIsNoBlock;
var
  Span: PSpan;
begin
  Span := Get(5);
  AssertTrue('kept', KeepSpan(Span));
  AssertTrue('kind', Span^.Kind = skReleased);
  Same(InvalidPointer, ErrorOfFree(Span^.Start), 'freed again');
end;

procedure TKeptRunsTests.RunKeptLastIsTakenFirst;
var
  First, Second: PSpan;
begin
  First := Get(3);
  Second := Get(3);
  AssertTrue('kept', KeepSpan(First) and KeepSpan(Second));
  AssertTrue('second', Take(3) = Second);
  AssertTrue('first', Take(3) = First);
  LargeFree(First);
  LargeFree(Second);
end;

procedure TKeptRunsTests.RunTwiceAsLongServesABlock;
var
  Long, Longer: PSpan;
begin
  Long := Get(6);
  Longer := Get(7);
  AssertTrue('kept', KeepSpan(Long) and KeepSpan(Longer));
  AssertTrue('three slices of six', Take(3) = Long);
  AssertTrue('not of seven', Take(3) = nil);
  LargeFree(Long);
end;

procedure TKeptRunsTests.BlockGrowsIntoTheRestOfItsKeptRun;
var
  Span: PSpan;
  Backed: NativeUInt;
begin
  Span := Get(4);
  AssertTrue('kept', KeepSpan(Span) and (Take(2) = Span));
  Backed := BackedSlices;
  AssertTrue('grown', LargeGrow(Span, 3 * SliceSize));
  Same(0, Span^.SpareCount, 'spare slices');
  Same(Backed, BackedSlices, 'backed slices');
  LargeFree(Span);
end;

procedure TKeptRunsTests.ShortAndLongRunsAreNotKept;
var
  SizeClass: Integer;
begin
  AssertFalse('a slice', Keep(ShortestKept - 1));
  for SizeClass := 0 to SizeClassCount - 1 do
    AssertTrue('no queue', Mine^.Queues[SizeClass] = nil);
  AssertFalse('a long run', Keep(LongestKept + 1));
  AssertTrue('long block', Take(LongestKept + 1) = nil);
  KeepEach(ShortestKept, 1);
  KeepEach(LongestKept, 1);
end;

procedure TKeptRunsTests.BlockWithSpareSlicesIsNotKept;
var
  Span: PSpan;
begin
  Span := Get(6);
  Dec(Span^.BlockSize, 2 * SliceSize);
  ShardsUnuseSpare(2);
  Span^.SpareCount := 2;
  AssertFalse('kept', KeepSpan(Span));
end;

procedure TKeptRunsTests.HeapKeepsFewRunsOfALength;
begin
  KeepEach(2, RunPlaces);
  AssertFalse('one more', Keep(2));
  Same(2 * RunPlaces, RunsKept(Mine), 'kept slices');
end;

procedure TKeptRunsTests.HeapThatMissedNoRunKeepsFew;
begin
  KeepEach(8, 3);
  KeepEach(6, 1);
  KeepEach(2, 1);
  Same(LeastKept, RunsKept(Mine), 'kept slices');
  AssertFalse('one more', Keep(2));
end;

procedure TKeptRunsTests.HeapKeepsAsManyMoreAsItMissed;
begin
  AssertTrue('none', Take(5) = nil);
  AssertTrue('none', Take(3) = nil);
  KeepEach(8, 5);
  Same(LeastKept + 8, RunsKept(Mine), 'kept slices');
  AssertFalse('one more', Keep(2));
end;

// Looks for more runs than the heap may keep.
procedure TKeptRunsTests.MissMany;
var
  Turn: Integer;
begin
  for Turn := 1 to MostKept do
    AssertTrue('none', Take(2) = nil);
end;

procedure TKeptRunsTests.HeapKeepsFewSlices;
var
  Length: Integer;
begin
  MissMany;
  KeepEach(8, RunPlaces);
  KeepEach(7, RunPlaces);
  for Length := 6 downto 2 do
    while Keep(Length) do;
  Same(MostKept, RunsKept(Mine), 'kept slices');
end;

procedure TKeptRunsTests.HeapThatASweepEmptiedKeepsAsMuchAgain;
var
  Turn: Integer;
begin
  for Turn := 1 to 3 do
  begin
    KeepEach(8, LeastKept div 8);
    RunsRelease(Mine, 1);
    Same(0, RunsKept(Mine), 'kept slices');
  end;
end;

procedure TKeptRunsTests.HeapThatMissedRunsBeforeASweepKeepsFew;
begin
  MissMany;
  KeepEach(8, RunPlaces);
  RunsRelease(Mine, 1);
  while Keep(7) do;
  while Keep(6) do;
  AtMost(MostKept, RunsKept(Mine), 'kept slices');
  RunsRelease(Mine, 1);
  while Keep(5) do;
  AtMost(LeastKept, RunsKept(Mine), 'kept slices after another sweep');
end;

procedure TKeptRunsTests.TakeAfterASweepLeavesTheLimitAsItIs;
var
  Length, Index: Integer;
begin
  KeepEach(8, 3);
  KeepEach(6, 1);
  KeepEach(2, 1);
  Same(LeastKept, RunsKept(Mine), 'kept slices at first');
  RunsRelease(Mine, 1);
  KeepEach(4, 1);
  AssertTrue('none', RunTake(Mine, 5) = nil);
  for Length := 8 downto 2 do
    for Index := 1 to RunPlaces do
      Keep(Length);
  AtMost(LeastKept, RunsKept(Mine), 'kept slices');
end;

procedure TKeptRunsTests.RunsThatAnotherThreadClaimsAreLeftAlone;
var
  Span: PSpan;
begin
  KeepEach(3, 2);
  StoreRelease(Mine^.RunsClaimed, 1);
  AssertTrue('none is taken', Take(3) = nil);
  AssertFalse('none is kept', Keep(3));
  AssertFalse('not released by a third', RunsRelease(Mine, 1));
  RunsReleaseOwn(Mine);
  Same(6, RunsKept(Mine), 'kept slices');
  Same(0, LoadAcquire(Mine^.Section), 'section');
  StoreRelease(Mine^.RunsClaimed, 0);
  Span := Take(3);
  AssertTrue('taken', Span <> nil);
  LargeFree(Span);
end;

procedure TKeptRunsTests.SweepLeavesAThreadInItsSectionAlone;
begin
  KeepEach(7, 2);
  StoreRelease(Process.SweepWanted, 0);
  StoreRelease(Mine^.Section, NativeUInt(Mine));
  HeapSweep(Mine);
  StoreRelease(Mine^.Section, 0);
  Same(14, RunsKept(Mine), 'kept slices');
  Same(0, LoadAcquire(Mine^.RunsClaimed), 'claimed');
  Same(1, LoadAcquire(Process.SweepWanted), 'another sweep');
  HeapSweep(Mine);
  Same(0, RunsKept(Mine), 'kept slices after');
end;

// A block that this thread got from a kept run.
function TKeptRunsTests.OwnBlock: PSpan;
begin
  FreeMem(GetMem(5 * SliceSize));
  RunsUseKeeper(OsThreadHeap);
  Result := BlockSpan(GetMem(5 * SliceSize));
end;

procedure TKeptRunsTests.BlockFromAKeptRunHasItsThreadAsKeeper;
var
  Span: PSpan;
begin
  AssertEquals('barrier', {$ifdef LINUX} IsX64 {$else} False {$endif}, Process.HasBarrier);
  Span := OwnBlock;
  AssertTrue('keeper', (Span^.Keeper = OsThreadHeap) = Process.HasBarrier);
  FreeMem(Span^.Start);
  AssertFalse('a block', Span^.Kind = skLarge);
  Same(0, LoadAcquire(OsThreadHeap^.Section), 'section');
end;

procedure TKeptRunsTests.BlockWithoutAKeeperIsNoneAfterItsFree;
var
  Span: PSpan;
begin
  Span := Get(5);
  AssertTrue('no keeper of a new run', Span^.Keeper = nil);
  OsThreadHeap^.MissedSlices := MostKept;
  SweepRequest;
  FreeMem(Span^.Start);
  AssertFalse('a block', Span^.Kind = skLarge);
  AtLeast(5, RunsKept(OsThreadHeap), 'kept slices');
  Same(0, LoadAcquire(OsThreadHeap^.Section), 'section');
end;

procedure TKeptRunsTests.FreeBlock;
begin
  FreeMem(Block);
end;

procedure TKeptRunsTests.SweepKept;
begin
  HeapSweep(Mine);
end;

procedure TKeptRunsTests.BlockFreedByAnotherThreadEndsTheKeeper;
var
  Span: PSpan;
begin
  Span := OwnBlock;
  Block := Span^.Start;
  InThread(FreeBlock);
  AssertFalse('a block', Span^.Kind = skLarge);
  AssertTrue('no keeper', OsThreadHeap^.Keeper = nil);
  FreeMem(GetMem(5 * SliceSize));
  Span := BlockSpan(GetMem(5 * SliceSize));
  AssertTrue('block without keeper', Span^.Keeper = nil);
  FreeMem(Span^.Start);
  Mine := OsThreadHeap;
  InThread(SweepKept);
  AssertTrue('keeper again', (OsThreadHeap^.Keeper = OsThreadHeap) = Process.HasBarrier);
end;

procedure TKeptRunsTests.BlockThatAnotherThreadMarkedIsNotFreedAgain;
var
  Span: PSpan;
begin
  Span := OwnBlock;
  AssertTrue('marked', RemoteMark(Span, RemoteWord(Span)));
  Same(204, ErrorOfFree(Span^.Start), 'error');
  AssertTrue('a block still', Span^.Kind = skLarge);
  Same(0, LoadAcquire(OsThreadHeap^.Section), 'section');
  AssertTrue('ended', RemoteEndMarked(Span, RemoteWord(Span) - 1));
  LargeRelease(Span);
end;

procedure TKeptRunsTests.ClaimedRunsServeNoCall;
var
  Span: PSpan;
  P: Pointer;
  Kept: NativeUInt;
begin
  Span := OwnBlock;
  FreeMem(GetMem(4 * SliceSize));
  AtLeast(4, RunsKept(OsThreadHeap), 'kept slices');
  Kept := RunsKept(OsThreadHeap);
  StoreRelease(OsThreadHeap^.RunsClaimed, 1);
  try
    P := GetMem(4 * SliceSize);
    Same(0, LoadAcquire(OsThreadHeap^.Section), 'section after GetMem');
    FreeMem(Span^.Start);
    Same(0, LoadAcquire(OsThreadHeap^.Section), 'section after FreeMem');
    OsThreadHeap^.Keeper := nil;
    FreeMem(P);
    Same(0, LoadAcquire(OsThreadHeap^.Section), 'section after another FreeMem');
    Same(Kept, RunsKept(OsThreadHeap), 'kept slices as before');
  finally
    StoreRelease(OsThreadHeap^.RunsClaimed, 0);
    RunsUseKeeper(OsThreadHeap);
  end;
end;

procedure TKeptRunsTests.RunThatWasKeptClaimsNoZeros;
var
  Span: PSpan;
begin
  ShardsPurge(AllSlices);
  Span := Get(4);
  AssertTrue('zero', Span^.IsZero);
  FillChar(Span^.Start^, Span^.BlockSize, 1);
  AssertTrue('kept', KeepSpan(Span));
  AssertTrue('taken', Take(4) = Span);
  AssertFalse('claims zeros', Span^.IsZero);
  LargeFree(Span);
end;

procedure TKeptRunsTests.SweepReleasesKeptRuns;
var
  Before: NativeUInt;
begin
  KeepEach(7, 2);
  Before := ShardsWarmSlices;
  HeapSweep(Mine);
  Same(0, RunsKept(Mine), 'kept slices');
  Same(Before + 14, ShardsWarmSlices, 'warm slices');
  AssertTrue('none is taken', Take(7) = nil);
end;

procedure TKeptRunsTests.KeptRunsAreReleasedWhileTheQueuesAreLocked;
begin
  KeepEach(7, 2);
  LockEnter(Mine^.Lock);
  HeapSweep(Mine);
  LockLeave(Mine^.Lock);
  Same(0, RunsKept(Mine), 'kept slices');
end;

procedure TKeptRunsTests.ThreadThatEndsReleasesKeptRuns;
var
  Before: NativeUInt;
begin
  KeepEach(7, 2);
  Before := ShardsWarmSlices;
  HeapAbandon(Mine);
  Same(0, RunsKept(Mine), 'kept slices');
  Same(Before + 14, ShardsWarmSlices, 'warm slices');
end;

procedure TKeptRunsTests.BlockFreedLastIsAllocatedAgain;
var
  P, Again: Pointer;
  Backed, Kept: NativeUInt;
begin
  P := GetMem(5 * SliceSize);
  Backed := BackedSlices;
  Kept := RunsKept(OsThreadHeap);
  FreeMem(P);
  Same(Backed, BackedSlices, 'backed slices');
  Same(Kept + 5, RunsKept(OsThreadHeap), 'kept slices');
  Again := GetMem(5 * SliceSize);
  AssertTrue('the same', Again = P);
  Same(Backed, BackedSlices, 'backed slices after');
  FreeMem(Again);
end;

procedure TKeptRunsTests.KeptRunsCountAsCached;
var
  Before, After: TStatus;
  P: Pointer;
begin
  P := GetMem(5 * SliceSize);
  SweepRequest;
  StatusRead(Before);
  FreeMem(P);
  StatusRead(After);
  Same(Before.CachedBytes + 5 * SliceSize, After.CachedBytes, 'cached');
  Same(Before.UsedBytes - 5 * SliceSize, After.UsedBytes, 'used');
  Same(Before.CommittedBytes, After.CommittedBytes, 'committed');
end;

// While a sweep is wanted, and while none is, FreeMem takes different ways.
procedure TKeptRunsTests.BlocksAreServedFromKeptRuns;
var
  Turn: Integer;
  P: Pointer;
  Kept: NativeUInt;
begin
  Kept := RunsKept(OsThreadHeap);
  for Turn := 1 to 4 * MostKept do
  begin
    P := GetMem(5 * SliceSize);
    SweepRequest;
    FreeMem(P);
    if Turn = 1 then
      Kept := RunsKept(OsThreadHeap);
    Same(Kept, RunsKept(OsThreadHeap), 'kept slices');
  end;
end;

// Frees two blocks, whose runs the calling thread's heap then keeps.
procedure KeepBoth(First, Second: Pointer);
begin
  SweepRequest;
  FreeMem(First);
  FreeMem(Second);
end;

// Those from the length of the block to twice as long, of two that are kept.
procedure TKeptRunsTests.GetMemTakesTheShortestRunThatServes;
var
  Wanted, First, Second, Best: NativeUInt;
  P: PByte;
begin
  for Wanted := ShortestKept to LongestKept do
    for First := ShortestKept to LongestKept do
      for Second := First to LongestKept do
      begin
        RunsRelease(OsThreadHeap, 1);
        KeepBoth(Get(First)^.Start, Get(Second)^.Start);
        Best := First;
        if First < Wanted then
          Best := Second;
        if (Best < Wanted) or (Best > 2 * Wanted) then
          Best := 0;
        P := GetMem(Wanted * SliceSize);
        Same(First + Second - Best, RunsKept(OsThreadHeap), 'slices that stay');
        FreeMem(P);
      end;
end;

procedure TKeptRunsTests.ZeroedBlockFromAKeptRunIsZero;
var
  P: PByte;
begin
  ShardsPurge(AllSlices);
  P := Get(5)^.Start;
  FillChar(P^, 5 * SliceSize, 1);
  FreeMem(P);
  AssertTrue('the same', AllocMem(5 * SliceSize) = P);
  AssertTrue('zeros', IsZero(P, 5 * SliceSize));
  FreeMem(P);
end;

procedure TKeptRunsTests.FreeMemKeepsNoSpareAndNoMovedRun;
var
  Span: PSpan;
  Kept: NativeUInt;
begin
  Kept := RunsKept(OsThreadHeap);
  Span := Get(6);
  Dec(Span^.BlockSize, 2 * SliceSize);
  ShardsUnuseSpare(2);
  Span^.SpareCount := 2;
  SweepRequest;
  FreeMem(Span^.Start);
  Same(Kept, RunsKept(OsThreadHeap), 'kept slices after spare ones');
  Span := Get(6);
  Span^.Traits := [ltMoved];
  FetchAdd(Process.MovedSpans, 1);
  SweepRequest;
  FreeMem(Span^.Start);
  Same(Kept, RunsKept(OsThreadHeap), 'kept slices after moved ones');
end;

procedure TKeptRunsTests.FreeTen(const Spans: array of PSpan);
var
  Span: PSpan;
begin
  OsThreadHeap^.MissedSlices := 0;
  for Span in Spans do
  begin
    SweepRequest;
    FreeMem(Span^.Start);
  end;
  AtMost(LeastKept, RunsKept(OsThreadHeap), 'kept slices');
  AtLeast(LeastKept - 2, RunsKept(OsThreadHeap), 'kept slices');
end;

procedure TKeptRunsTests.ThreadThatOnlyFreesKeepsFew;
var
  Spans: array[0..9] of PSpan;
  Index: Integer;
begin
  RunsRelease(OsThreadHeap, 1);
  for Index := 0 to High(Spans) do
    Spans[Index] := Get(3 + Index mod 6);
  FreeTen(Spans);
end;

// Blocks with this thread as keeper.
procedure TKeptRunsTests.ThreadThatOnlyFreesItsOwnBlocksKeepsFew;
var
  Spans: array[0..9] of PSpan;
  Index: Integer;
begin
  OsThreadHeap^.MissedSlices := MostKept;
  for Index := 0 to High(Spans) do
    Spans[Index] := Get(3 + Index mod 6);
  for Index := 0 to High(Spans) do
    FreeMem(Spans[Index]^.Start);
  RunsUseKeeper(OsThreadHeap);
  for Index := 0 to High(Spans) do
    Spans[Index] := BlockSpan(GetMem((3 + Index mod 6) * SliceSize));
  AssertTrue('keeper', (Spans[9]^.Keeper = OsThreadHeap) = Process.HasBarrier);
  FreeTen(Spans);
end;

initialization
  RegisterTest(TKeptRunsTests);
end.
