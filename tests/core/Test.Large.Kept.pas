/// Tests of LaneMM.Large: the runs that a thread keeps for its next blocks, on a heap of their own.
unit Test.Large.Kept;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TLargeKeptTests = class(TQuietTest)
  strict private
    Memory: PByte;
    Mine: PHeap;
    function Get(SliceCount: NativeUInt): PSpan;
    function KeepSpan(Span: PSpan): Boolean;
    function Keep(SliceCount: NativeUInt): Boolean;
    procedure KeepEach(SliceCount: NativeUInt; Count: Integer);
    function Take(SliceCount: NativeUInt): PSpan;
    function Place(SliceCount: NativeUInt; Index: Integer): PSpan;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure RunThatWasKeptIsTakenOnce;
    procedure KeptRunIsNoBlock;
    procedure RunKeptLastIsTakenFirst;
    procedure RunOfOneSliceMoreServesALongBlock;
    procedure ShortAndLongRunsAreNotKept;
    procedure BlockWithSpareSlicesIsNotKept;
    procedure HeapKeepsFewRunsOfALength;
    procedure HeapKeepsFewSlices;
    procedure HeapThatASweepEmptiedKeepsAsMuchAgain;
    procedure TakeAfterASweepLeavesTheLimitAsItIs;
    procedure RunThatASweepMissedIsNotLost;
    procedure RunThatWasKeptClaimsNoZeros;
    procedure SweepReleasesKeptRuns;
    procedure KeptRunsAreReleasedWhileTheQueuesAreLocked;
    procedure ThreadThatEndsReleasesKeptRuns;
    procedure BlockFreedLastIsAllocatedAgain;
    procedure KeptRunsCountAsCached;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.RemoteList,
  LaneMM.Arena, LaneMM.Large, LaneMM.Heap, LaneMM.Stats;

const
  RecordSize = (SizeOf(THeap) + OsPageSize - 1) div OsPageSize * OsPageSize;
  // Slices that a heap keeps at most, see LaneMM.Large.
  MostKept = 64;

procedure TLargeKeptTests.SetUp;
begin
  inherited SetUp;
  Memory := OsReserve(RecordSize);
  OsCommit(Memory, RecordSize);
  Mine := PHeap(Memory);
  HeapFormat(Mine);
end;

procedure TLargeKeptTests.TearDown;
begin
  HeapAbandon(Mine);
  OsRelease(Memory, RecordSize);
  inherited TearDown;
end;

function TLargeKeptTests.Get(SliceCount: NativeUInt): PSpan;
begin
  Result := LargeGet(SliceCount * SliceSize);
  AssertTrue('got', Result <> nil);
end;

// What FreeMem does. Returns whether the run is kept.
function TLargeKeptTests.KeepSpan(Span: PSpan): Boolean;
begin
  RemoteEndLife(Span);
  Result := LargeKeep(Mine, Span);
  if not Result then
    LargeRelease(Span);
end;

function TLargeKeptTests.Keep(SliceCount: NativeUInt): Boolean;
begin
  Result := KeepSpan(Get(SliceCount));
end;

procedure TLargeKeptTests.KeepEach(SliceCount: NativeUInt; Count: Integer);
var
  Index: Integer;
begin
  for Index := 1 to Count do
    AssertTrue('kept', Keep(SliceCount));
end;

// What GetMem does first.
function TLargeKeptTests.Take(SliceCount: NativeUInt): PSpan;
begin
  Result := LargeGetKept(Mine, SliceCount * SliceSize);
end;

function TLargeKeptTests.Place(SliceCount: NativeUInt; Index: Integer): PSpan;
begin
  Result := PSpan(LoadAcquire(Mine^.Runs[SliceCount, Index]));
end;

procedure TLargeKeptTests.RunThatWasKeptIsTakenOnce;
var
  Span: PSpan;
begin
  Span := Get(5);
  AssertTrue('kept', KeepSpan(Span));
  Same(5, LargeKeptSlices(Mine), 'kept slices');
  AssertTrue('taken', Take(5) = Span);
  AssertTrue('a block', Span^.Kind = skLarge);
  Same(5 * SliceSize, Span^.BlockSize, 'usable');
  AssertTrue('not taken again', Take(5) = nil);
  Same(0, LargeKeptSlices(Mine), 'kept slices after');
  LargeFree(Span);
end;

procedure TLargeKeptTests.KeptRunIsNoBlock;
var
  Span: PSpan;
begin
  Span := Get(5);
  AssertTrue('kept', KeepSpan(Span));
  AssertTrue('kind', Span^.Kind = skReleased);
  Same(InvalidPointer, ErrorOfFree(Span^.Start), 'freed again');
end;

procedure TLargeKeptTests.RunKeptLastIsTakenFirst;
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

procedure TLargeKeptTests.RunOfOneSliceMoreServesALongBlock;
var
  Long, Longer: PSpan;
begin
  KeepEach(3, 1);
  AssertTrue('two slices of three', Take(2) = nil);
  Long := Get(5);
  Longer := Get(6);
  AssertTrue('kept', KeepSpan(Long) and KeepSpan(Longer));
  AssertTrue('four slices of five', Take(4) = Long);
  AssertTrue('not of six', Take(4) = nil);
  LargeFree(Long);
end;

procedure TLargeKeptTests.ShortAndLongRunsAreNotKept;
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

procedure TLargeKeptTests.BlockWithSpareSlicesIsNotKept;
var
  Span: PSpan;
begin
  Span := Get(6);
  Dec(Span^.BlockSize, 2 * SliceSize);
  ArenaUnuseSpare(2);
  Span^.SpareCount := 2;
  AssertFalse('kept', KeepSpan(Span));
end;

procedure TLargeKeptTests.HeapKeepsFewRunsOfALength;
begin
  KeepEach(2, RunPlaces);
  AssertFalse('one more', Keep(2));
  Same(2 * RunPlaces, LargeKeptSlices(Mine), 'kept slices');
end;

procedure TLargeKeptTests.HeapKeepsFewSlices;
begin
  KeepEach(8, RunPlaces);
  KeepEach(7, RunPlaces);
  KeepEach(4, 1);
  Same(MostKept, LargeKeptSlices(Mine), 'kept slices');
  AssertFalse('one more', Keep(2));
end;

procedure TLargeKeptTests.HeapThatASweepEmptiedKeepsAsMuchAgain;
var
  Turn: Integer;
begin
  for Turn := 1 to 3 do
  begin
    KeepEach(8, RunPlaces);
    LargeReleaseKept(Mine);
    Same(0, LargeKeptSlices(Mine), 'kept slices');
  end;
end;

procedure TLargeKeptTests.TakeAfterASweepLeavesTheLimitAsItIs;
var
  Length, Index: Integer;
begin
  KeepEach(8, RunPlaces);
  KeepEach(7, 3);
  KeepEach(6, 1);
  KeepEach(5, 1);
  Same(MostKept, LargeKeptSlices(Mine), 'kept slices at first');
  LargeReleaseKept(Mine);
  KeepEach(4, 1);
  AssertTrue('none', Take(5) = nil);
  for Length := 8 downto 2 do
    for Index := 1 to RunPlaces do
      Keep(Length);
  AtMost(MostKept, LargeKeptSlices(Mine), 'kept slices');
end;

// A sweep that began before the first run was kept takes those after it.
procedure TLargeKeptTests.RunThatASweepMissedIsNotLost;
var
  First: PSpan;
  Index: Integer;
  IsKept: Boolean;
begin
  KeepEach(2, RunPlaces);
  First := Place(2, 0);
  for Index := 1 to RunPlaces - 1 do
    ArenaRelease(PSpan(Swap(Mine^.Runs[2, Index], 0)));
  IsKept := Keep(2);
  Same(2 + 2 * Ord(IsKept), LargeKeptSlices(Mine), 'kept slices');
  AssertTrue('the first', Place(2, 0) = First);
end;

procedure TLargeKeptTests.RunThatWasKeptClaimsNoZeros;
var
  Span: PSpan;
begin
  ArenaPurge(AllSlices);
  Span := Get(4);
  AssertTrue('zero', Span^.IsZero);
  FillChar(Span^.Start^, Span^.BlockSize, 1);
  AssertTrue('kept', KeepSpan(Span));
  AssertTrue('taken', Take(4) = Span);
  AssertFalse('claims zeros', Span^.IsZero);
  LargeFree(Span);
end;

procedure TLargeKeptTests.SweepReleasesKeptRuns;
var
  Before: NativeUInt;
begin
  KeepEach(7, 2);
  Before := ArenaWarmSlices;
  HeapSweep(Mine);
  Same(0, LargeKeptSlices(Mine), 'kept slices');
  Same(Before + 14, ArenaWarmSlices, 'warm slices');
  AssertTrue('none is taken', Take(7) = nil);
end;

procedure TLargeKeptTests.KeptRunsAreReleasedWhileTheQueuesAreLocked;
begin
  KeepEach(7, 2);
  LockEnter(Mine^.Lock);
  HeapSweep(Mine);
  LockLeave(Mine^.Lock);
  Same(0, LargeKeptSlices(Mine), 'kept slices');
end;

procedure TLargeKeptTests.ThreadThatEndsReleasesKeptRuns;
var
  Before: NativeUInt;
begin
  KeepEach(7, 2);
  Before := ArenaWarmSlices;
  HeapAbandon(Mine);
  Same(0, LargeKeptSlices(Mine), 'kept slices');
  Same(Before + 14, ArenaWarmSlices, 'warm slices');
end;

procedure TLargeKeptTests.BlockFreedLastIsAllocatedAgain;
var
  P, Again: Pointer;
  Backed, Kept: NativeUInt;
begin
  P := GetMem(5 * SliceSize);
  Backed := ArenaBackedSlices;
  Kept := LargeKeptSlices(OsThreadHeap);
  FreeMem(P);
  Same(Backed, ArenaBackedSlices, 'backed slices');
  Same(Kept + 5, LargeKeptSlices(OsThreadHeap), 'kept slices');
  Again := GetMem(5 * SliceSize);
  AssertTrue('the same', Again = P);
  Same(Backed, ArenaBackedSlices, 'backed slices after');
  FreeMem(Again);
end;

procedure TLargeKeptTests.KeptRunsCountAsCached;
var
  Before, After: TStatus;
  P: Pointer;
begin
  P := GetMem(5 * SliceSize);
  StatusRead(Before);
  FreeMem(P);
  StatusRead(After);
  Same(Before.CachedBytes + 5 * SliceSize, After.CachedBytes, 'cached');
  Same(Before.UsedBytes - 5 * SliceSize, After.UsedBytes, 'used');
  Same(Before.CommittedBytes, After.CommittedBytes, 'committed');
end;

initialization
  RegisterTest(TLargeKeptTests);
end.
