/// Tests of LaneMM.Shards, on the arenas of this process.
unit Test.Shards;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TShardsTests = class(TQuietTest)
  strict private
    IsAtHugePage: Boolean;
    function Take(SliceCount: NativeUInt): PSpan;
    function TakeNew(SliceCount: NativeUInt): PSpan;
    function WarmAfterOneSpan(HugeFrom, Carved: NativeUInt; SizeClass: Cardinal = 0;
      IsDense: Boolean = True): NativeUInt;
  published
    procedure RunIsAlignedAndUsable;
    procedure RunsDoNotOverlap;
    procedure EverySliceOfARunHasItsRecord;
    procedure EverySliceHandedOutIsFoundByItsNumber;
    procedure OtherAddressesHaveNoRecord;
    procedure ReleasedRunIsTakenAgain;
    procedure ReleaseJoinsNeighbours;
    procedure RunThatClaimsZerosReadsAsZeros;
    procedure MoreThanThereIsGivesNil;
    procedure GrowTakesTheFreeSlicesBehind;
    procedure GrowthIntoWarmSlicesPurgesNone;
    procedure GrowFailsWhereTheNextSliceIsInUse;
    procedure GrowBeyondAllMemoryFails;
    procedure GrowTakesTheFreeSlicesBehindAndTheFrontier;
    procedure GrowOverTheFrontierPurgesNothingThatItTakes;
    procedure SplitGivesTheRest;
    procedure ReleaseUnderATakenLockIsNotForgotten;
    procedure VisitSeesEachSpanInUseOnce;
    procedure PurgeTakesNoMoreThanAsked;
    procedure RunsThatNoWarmOneServesTakeNoMoreMemory;
    procedure MemoryInSteadyUseIsNotIdle;
    procedure PurgeGivesMemoryBack;
    {$ifdef LINUX}
    procedure DenseThreadTakesSlicesOfAHugePage;
    {$endif}
    procedure LongSpanTakesNoHugePage;
    procedure SlicesOfAHugePageAreZeros;
    procedure HugePagesLieSideBySide;
    procedure RunsOfHugePagesFollowEachOther;
    procedure SparseThreadTakesNoHugePage;
    procedure SparseProcessTakesNoHugePage;
    procedure ProcessOfLittleMemoryTakesNoHugePage;
    procedure HugePagesCanBeSwitchedOff;
    procedure FirstRecordReachesItsLastSlice;
    procedure LongRunsLeaveNoShortOnesBetween;
    procedure GrowNeedsEnoughFreeSlices;
    procedure RunThatCouldNotBePurgedClaimsNoZeros;
    procedure ReleasedSpanThatWaitsIsWarm;
    procedure WarmRunOfAnyShardIsTakenFirst;
    procedure ScarceAddressesJoinWarmAndColdRuns;
    procedure ScarceAddressesTakeTheRunThatFits;
    procedure TakeNeverWaits;
    procedure GrowNeverWaits;
    procedure SlicesReadyForUseAreOfTheirShard;
  end;

implementation

uses
  testregistry, Test.System, LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.FreeRuns,
  LaneMM.Arena, LaneMM.Backed, LaneMM.Shards, LaneMM.Heap, LaneMM.Walk;

const
  Megabyte = 1 shl 20;

procedure ReleaseAll(const Spans: array of PSpan);
var
  Span: PSpan;
begin
  for Span in Spans do
    ShardsRelease(Span);
end;

// What is taken here has no blocks: nothing but these tests may use it.
function TShardsTests.Take(SliceCount: NativeUInt): PSpan;
begin
  Result := ShardsTake(SliceCount);
  AssertTrue('taken', Result <> nil);
  Same(SliceCount, Result^.SliceCount, 'slices');
end;

// The same of slices that were never used.
function TShardsTests.TakeNew(SliceCount: NativeUInt): PSpan;
begin
  LockShards;
  Result := Take(SliceCount);
  UnlockShards;
end;

// Returns the warm slices after a thread that has carved Carved slices took a span of the class,
// where no slice was warm, in a process that was measured as dense or sparse.
function TShardsTests.WarmAfterOneSpan(HugeFrom, Carved: NativeUInt; SizeClass: Cardinal;
  IsDense: Boolean): NativeUInt;
var
  Span: PSpan;
  KeptCarved: NativeUInt;
begin
  KeptCarved := OsThreadHeap^.CarvedSlices;
  ShardsPurge(AllSlices);
  Process.HugeFrom := HugeFrom;
  OsThreadHeap^.CarvedSlices := Carved;
  Process.MeasuredAt := BackedSlices;
  Process.IsDense := IsDense;
  Span := HeapNewSpan(OsThreadHeap, SizeClass);
  Result := ShardsWarmSlices;
  IsAtHugePage := NativeUInt(Span^.Start) mod (HugeSlices * SliceSize) = 0;
  Process.MeasuredAt := 0;
  OsThreadHeap^.CarvedSlices := KeptCarved;
  ShardsRelease(Span);
end;

procedure TShardsTests.RunIsAlignedAndUsable;
var
  Span: PSpan;
  Length: NativeUInt;
begin
  for Length := 1 to 20 do
  begin
    Span := Take(Length);
    Same(0, NativeUInt(Span^.Start) mod SliceSize, 'start modulo a slice');
    FillPattern(Span^.Start, Length * SliceSize, Length);
    AssertTrue('usable', HasPattern(Span^.Start, Length * SliceSize, Length));
    ShardsRelease(Span);
  end;
end;

procedure TShardsTests.RunsDoNotOverlap;
var
  Spans: array[1..40] of PSpan;
  Index: Integer;
begin
  for Index := 1 to High(Spans) do
  begin
    Spans[Index] := Take(1 + Index mod 5);
    FillPattern(Spans[Index]^.Start, Spans[Index]^.SliceCount * SliceSize, Index);
  end;
  for Index := 1 to High(Spans) do
    AssertTrue('contents',
      HasPattern(Spans[Index]^.Start, Spans[Index]^.SliceCount * SliceSize, Index));
  ReleaseAll(Spans);
end;

procedure TShardsTests.EverySliceOfARunHasItsRecord;
var
  Span: PSpan;
  Index: Integer;
begin
  Span := Take(7);
  for Index := 0 to 6 do
  begin
    AssertTrue('first byte', ArenaSpan(Span^.Start + Index * SliceSize) = Span + Index);
    AssertTrue('last byte',
      ArenaSpan(Span^.Start + Index * SliceSize + SliceSize - 1) = Span + Index);
  end;
  ShardsRelease(Span);
end;

procedure TShardsTests.EverySliceHandedOutIsFoundByItsNumber;
var
  Arena: PArena;
  Number, Index, First: NativeUInt;
begin
  First := 0;
  Number := 0;
  Arena := FrontierArena(Number);
  while Arena <> nil do
  begin
    for Index := 1 to Arena^.Frontier do
      AssertTrue('record', FrontierSlice(First + Index - 1) = Arena^.Spans + (Index - 1));
    Inc(First, Arena^.Frontier);
    Inc(Number);
    Arena := FrontierArena(Number);
  end;
  Same(First, FrontierSlices, 'slices');
end;

procedure TShardsTests.OtherAddressesHaveNoRecord;
var
  Local: Integer;
begin
  AssertTrue('nil', ArenaSpan(nil) = nil);
  AssertTrue('a small number', ArenaSpan(Pointer(16)) = nil);
  AssertTrue('the stack', ArenaSpan(@Local) = nil);
  AssertTrue('a global', ArenaSpan(@Process) = nil);
  AssertTrue('code', ArenaSpan(@ShardsTake) = nil);
  AssertTrue('before the arena', ArenaSpan(Pointer(Process.Base - 1)) = nil);
  AssertTrue('the span records', ArenaSpan(Pointer(Process.Spans)) = nil);
  AssertTrue('the end', ArenaSpan(Pointer(NativeInt(-1))) = nil);
end;

procedure TShardsTests.ReleasedRunIsTakenAgain;
var
  Before: NativeUInt;
  Round: Integer;
begin
  ShardsRelease(Take(501));
  Before := FrontierSlices;
  for Round := 1 to 100 do
    ShardsRelease(Take(501));
  Same(Before, FrontierSlices, 'slices ever used');
end;

procedure TShardsTests.ReleaseJoinsNeighbours;
var
  Whole, Second, Third: PSpan;
  Before: NativeUInt;
  Round: Integer;
begin
  ShardsRelease(Take(603));
  Before := FrontierSlices;
  for Round := 1 to 100 do
  begin
    Whole := Take(603);
    Third := ShardsSplit(Whole, 402);
    Second := ShardsSplit(Whole, 201);
    ShardsRelease(Whole);
    ShardsRelease(Third);
    ShardsRelease(Second);
  end;
  Same(Before, FrontierSlices, 'slices ever used');
end;

procedure TShardsTests.RunThatClaimsZerosReadsAsZeros;
var
  Span: PSpan;
  Round, Claims: Integer;
begin
  Claims := 0;
  for Round := 1 to 20 do
  begin
    Span := Take(10 * (Round div 2 + 1)); // as long as the one before, or longer
    if Span^.IsZero then
    begin
      Inc(Claims);
      AssertTrue('zero', IsZero(Span^.Start, Span^.SliceCount * SliceSize));
    end;
    FillChar(Span^.Start^, Span^.SliceCount * SliceSize, $A5);
    ShardsRelease(Span);
    if Odd(Round) then
      ShardsPurge(AllSlices);
  end;
  AtLeast(1, Claims, 'runs that claimed zeros');
end;

procedure TShardsTests.MoreThanThereIsGivesNil;
begin
  AssertTrue('all addresses', ShardsTake(High(NativeUInt) shr SliceShift) = nil);
  AssertTrue('any number', ShardsTake(High(NativeUInt)) = nil);
end;

procedure TShardsTests.GrowTakesTheFreeSlicesBehind;
var
  Span, Rest: PSpan;
begin
  Span := Take(700);
  FillPattern(Span^.Start, 300 * SliceSize, 1);
  Rest := ShardsSplit(Span, 300);
  ShardsRelease(Rest);
  AssertTrue('grown', ShardsGrow(Span, 700));
  Same(700, Span^.SliceCount, 'slices');
  AssertTrue('contents', HasPattern(Span^.Start, 300 * SliceSize, 1));
  AssertFalse('claims zeros', Span^.IsZero);
  ShardsRelease(Span);
end;

procedure TShardsTests.GrowthIntoWarmSlicesPurgesNone;
const
  Count = 100;
var
  Span, Rest, Others: PSpan;
  Warm: NativeUInt;
begin
  ShardsPurge(AllSlices);
  Span := Take(2 * Count);
  Rest := ShardsSplit(Span, Count);
  Others := Take(BackedSlices); // more than half of what is in use
  ShardsRelease(Rest);
  ShardsRelease(Others);
  Warm := ShardsWarmSlices;
  AssertTrue('grown', ShardsGrow(Span, 2 * Count));
  Same(Warm - Count, ShardsWarmSlices, 'warm slices');
  ShardsRelease(Span);
end;

procedure TShardsTests.GrowFailsWhereTheNextSliceIsInUse;
var
  Span, Rest: PSpan;
begin
  Span := Take(10);
  Rest := ShardsSplit(Span, 5);
  AssertFalse('grown', ShardsGrow(Span, 6));
  Same(5, Span^.SliceCount, 'slices');
  ShardsRelease(Rest);
  ShardsRelease(Span);
end;

procedure TShardsTests.GrowTakesTheFreeSlicesBehindAndTheFrontier;
const
  Count = 30;
var
  Span: PSpan;
  Arena: PArena;
begin
  Arena := ArenaWithNew(Count + 10);
  Span := TakeNew(Count);
  AssertTrue('ends at the frontier', Span + Count = Arena^.Spans + Arena^.Frontier);
  ShardsRelease(ShardsSplit(Span, Count - 1));
  AssertTrue('grown', ShardsGrow(Span, Count + 9));
  Same(Count + 9, Span^.SliceCount, 'slices');
  AssertTrue('ends at the frontier again',
    Span + Count + 9 = Arena^.Spans + Arena^.Frontier);
  Span^.Start[(Count + 9) * SliceSize - 1] := 1;
  ShardsRelease(Span);
end;

// More is warm than in use, so growth purges as many slices as it takes of the frontier.
procedure TShardsTests.GrowOverTheFrontierPurgesNothingThatItTakes;
const
  Kept = 10;
  More = 9;
var
  Span: PSpan;
  Rest: NativeUInt;
begin
  ShardsPurge(AllSlices);
  Rest := 2 * BackedSlices;
  ArenaWithNew(Kept + Rest + More + 1);
  Span := TakeNew(Kept + Rest);
  ShardsRelease(ShardsSplit(Span, Kept));
  AssertTrue('grown', ShardsGrow(Span, Kept + Rest + More));
  Same(Kept + Rest + More, Span^.SliceCount, 'slices');
  ShardsRelease(Span);
end;

procedure TShardsTests.GrowBeyondAllMemoryFails;
var
  Span: PSpan;
begin
  Span := Take(10);
  AssertFalse('to all addresses', ShardsGrow(Span, High(NativeUInt) shr SliceShift));
  AssertFalse('to any number', ShardsGrow(Span, High(NativeUInt)));
  Same(10, Span^.SliceCount, 'slices');
  ShardsRelease(Span);
end;

procedure TShardsTests.SplitGivesTheRest;
var
  Span, Rest: PSpan;
  Start: PByte;
begin
  Span := Take(10);
  Start := Span^.Start;
  Rest := ShardsSplit(Span, 4);
  Same(4, Span^.SliceCount, 'slices kept');
  Same(6, Rest^.SliceCount, 'slices of the rest');
  AssertTrue('start kept', Span^.Start = Start);
  AssertTrue('start of the rest', Rest^.Start = Start + 4 * SliceSize);
  Same(Span^.Shard, Rest^.Shard, 'shard of the rest');
  ShardsRelease(Span);
  ShardsRelease(Rest);
end;

procedure TShardsTests.ReleaseUnderATakenLockIsNotForgotten;
var
  Span: PSpan;
  Shard: PShard;
  Before: NativeUInt;
  IsWaiting: Boolean;
begin
  Span := Take(9);
  Shard := ShardOf(Span);
  LockEnter(Shard^.Lock);
  Before := FreeSlices;
  ShardsRelease(Span);
  IsWaiting := LoadAcquire(Shard^.Released) <> 0;
  LockLeave(Shard^.Lock);
  AssertTrue('waits for the lock', IsWaiting);
  ShardsPurgeIdle;
  AtLeast(Before + 9, FreeSlices, 'free slices');
  Same(0, LoadAcquire(Shard^.Released), 'waiting spans');
end;

procedure CountVisit(Span: PSpan; Context: Pointer);
begin
  if Span = Context then
    Inc(Span^.Used);
end;

procedure TShardsTests.VisitSeesEachSpanInUseOnce;
var
  Span: PSpan;
begin
  Span := Take(3);
  Span^.Used := 0;
  Span^.BlockSize := SliceSize;
  Span^.Kind := skLarge;
  WalkSpans(CountVisit, Span);
  Same(1, Span^.Used, 'visits while in use');
  Span^.Kind := skReleased;
  WalkSpans(CountVisit, Span);
  Same(1, Span^.Used, 'visits after');
  ShardsRelease(Span);
end;

procedure TShardsTests.PurgeTakesNoMoreThanAsked;
begin
  ShardsPurge(AllSlices);
  ShardsRelease(Take(100));
  ShardsPurge(40);
  AtLeast(60, ShardsWarmSlices, 'warm slices');
end;

procedure TShardsTests.RunsThatNoWarmOneServesTakeNoMoreMemory;
const
  Part = 64;
  Longer = 4 * Part;
var
  Parts, Walls: array of PSpan;
  Index: Integer;
  Before: NativeUInt;
  Used, Span: PSpan;
begin
  ShardsPurge(AllSlices);
  Used := Take(2 * Longer); // a program of little memory has too few parts otherwise
  // As few that all but the walls are a little more than is in use.
  SetLength(Parts, (BackedSlices + Part) div (Part - 2) + 1);
  SetLength(Walls, Length(Parts));
  for Index := 0 to High(Parts) do
  begin
    Parts[Index] := Take(Part);
    Walls[Index] := ShardsSplit(Parts[Index], Part - 1);
  end;
  ReleaseAll(Parts);
  Before := BackedSlices;
  Span := Take(Longer);
  AtMost(Before, BackedSlices, 'backed slices');
  ShardsRelease(Span);
  ShardsRelease(Used);
  ReleaseAll(Walls);
end;

procedure TShardsTests.MemoryInSteadyUseIsNotIdle;
var
  Turn: Integer;
begin
  ShardsPurge(AllSlices);
  ShardsRelease(Take(100));
  ShardsPurgeIdle;
  for Turn := 1 to 3 do
  begin
    ShardsRelease(Take(100));
    ShardsPurgeIdle;
    AtLeast(100, ShardsWarmSlices, 'warm slices that are used all the time');
  end;
  ShardsPurgeIdle;
  Same(0, ShardsWarmSlices, 'warm slices that nobody took');
end;

procedure TShardsTests.PurgeGivesMemoryBack;
var
  Span: PSpan;
  Before: NativeUInt;
begin
  Span := Take(64 * Megabyte div SliceSize);
  FillChar(Span^.Start^, 64 * Megabyte, 1);
  ShardsRelease(Span);
  Before := ResidentBytes;
  ShardsPurge(AllSlices);
  AtLeast(60 * Megabyte, Int64(Before) - Int64(ResidentBytes), 'bytes given back');
  Same(0, ShardsWarmSlices, 'warm slices');
end;

{$ifdef LINUX}
procedure TShardsTests.DenseThreadTakesSlicesOfAHugePage;
var
  Others: NativeUInt;
begin
  Others := FrontierSlices - BackedSlices - ColdSlices;
  Same(HugeSlices - 1, WarmAfterOneSpan(1, 1), 'warm slices');
  AssertTrue('the first of the huge page', IsAtHugePage);
  Same(Others, FrontierSlices - BackedSlices - ColdSlices, 'slices neither backed nor cold');
end;
{$endif}

procedure TShardsTests.LongSpanTakesNoHugePage;
begin
  Same(0, WarmAfterOneSpan(1, 1, SizeClassCount - 1), 'warm slices');
end;

procedure TShardsTests.SlicesOfAHugePageAreZeros;
var
  Spans: array[0..1] of PSpan;
  Index: Integer;
begin
  Process.HugeFrom := 1;
  for Index := 0 to 1 do // one of two runs begins between huge pages
  begin
    ShardsPurge(AllSlices);
    Spans[Index] := ShardsTake(3, True);
  end;
  for Index := 0 to 1 do
  begin
    AssertTrue('claims zeros', Spans[Index]^.IsZero);
    AssertTrue('zeros', IsZero(Spans[Index]^.Start, 3 * SliceSize));
    ShardsRelease(Spans[Index]);
  end;
end;

type
  TSpans = array of PSpan;

// Takes all free runs of SliceCount slices, and the first one of the frontier.
procedure TakeFreeRuns(SliceCount: NativeUInt; out Spans: TSpans);
var
  Before: NativeUInt;
begin
  Spans := nil;
  ShardsPurge(AllSlices);
  Before := FrontierSlices;
  repeat
    Insert(ShardsTake(SliceCount), Spans, Length(Spans));
  until FrontierSlices > Before;
end;

procedure TShardsTests.HugePagesLieSideBySide;
const
  PageCount = 20;
var
  Spans: TSpans;
  Before: NativeUInt;
  Index: Integer;
begin
  Process.HugeFrom := 1;
  TakeFreeRuns(HugeSlices, Spans);
  Before := FrontierSlices;
  for Index := 1 to PageCount do
  begin
    Insert(ShardsTake(3, True), Spans, Length(Spans));
    Insert(ShardsTake(HugeSlices - 3), Spans, Length(Spans)); // no warm memory
  end;
  AtMost(HugeSlices * (PageCount + PageCount div 4), FrontierSlices - Before, 'new slices');
  ReleaseAll(Spans);
end;

// With a cold gap between them, neither would serve a longer block when both are free.
procedure TShardsTests.RunsOfHugePagesFollowEachOther;
const
  RunSlices = 2 * HugeSlices;
  Runs = 6;
var
  Spans: TSpans;
  Index, Neighbours: Integer;
  Arena: PArena;
begin
  Process.HugeFrom := 1;
  TakeFreeRuns(RunSlices, Spans);
  repeat // until the next one would begin in a huge page
    Insert(ShardsTake(RunSlices + 1), Spans, Length(Spans));
  until NativeUInt(Spans[High(Spans)]^.Start + (RunSlices + 1) * SliceSize)
    mod (HugeSlices * SliceSize) <> 0;
  Arena := NewestArena;
  for Index := 1 to Runs do
    Insert(ShardsTake(RunSlices, True), Spans, Length(Spans));
  Neighbours := 0;
  for Index := Length(Spans) - Runs + 1 to High(Spans) do
    Inc(Neighbours, Ord(Spans[Index] = Spans[Index - 1] + RunSlices));
  ReleaseAll(Spans);
  if NewestArena = Arena then // the end of one that cannot grow may have a run beside huge pages
    Same(Runs - 1, Neighbours, 'runs right behind the one before');
end;

procedure TShardsTests.SparseThreadTakesNoHugePage;
begin
  Same(0, WarmAfterOneSpan(1, 0), 'warm slices');
end;

procedure TShardsTests.SparseProcessTakesNoHugePage;
begin
  Same(0, WarmAfterOneSpan(1, 1, 0, False), 'warm slices');
end;

procedure TShardsTests.ProcessOfLittleMemoryTakesNoHugePage;
var
  HugeFrom: NativeUInt;
begin
  HugeFrom := BackedSlices + 1;
  Same(0, WarmAfterOneSpan(HugeFrom, HugeFrom), 'warm slices');
end;

procedure TShardsTests.HugePagesCanBeSwitchedOff;
begin
  Same(0, WarmAfterOneSpan(0, 1), 'warm slices');
end;

procedure TShardsTests.FirstRecordReachesItsLastSlice;
var
  Span: PSpan;
begin
  Span := Take(3);
  Span^.Kind := skLarge;
  PSpan(Span + 2)^.Kind := skInner;
  PSpan(Span + 2)^.Distance := 2;
  AssertTrue('last slice', ArenaFirst(Span + 2, [skLarge]) = Span);
  AssertTrue('another kind', ArenaFirst(Span + 2, [skBlocks]) = nil);
  Span^.SliceCount := 2;
  AssertTrue('a slice after the span', ArenaFirst(Span + 2, [skLarge]) = nil);
  Span^.SliceCount := 3;
  ShardsRelease(Span);
end;

procedure TShardsTests.LongRunsLeaveNoShortOnesBetween;
const
  SliceCount = StepSlices - 20;
var
  Spans: array of PSpan;
  Before: NativeUInt;
begin
  Spans := nil;
  Before := FrontierSlices;
  repeat // until no run is long enough
    Insert(Take(SliceCount), Spans, 0);
  until FrontierSlices > Before;
  Before := FrontierSlices;
  Insert(Take(SliceCount), Spans, 0);
  Same(SliceCount, FrontierSlices - Before, 'new slices');
  ReleaseAll(Spans);
end;

procedure TShardsTests.GrowNeedsEnoughFreeSlices;
var
  Span, Gap, Rest: PSpan;
begin
  Span := Take(10);
  Gap := ShardsSplit(Span, 5);
  Rest := ShardsSplit(Gap, 2);
  ShardsRelease(Gap);
  AssertFalse('one too many', ShardsGrow(Span, 8));
  Same(5, Span^.SliceCount, 'slices');
  AssertTrue('all there are', ShardsGrow(Span, 7));
  ShardsRelease(Rest);
  ShardsRelease(Span);
end;

procedure TShardsTests.RunThatCouldNotBePurgedClaimsNoZeros;
var
  Span, Again: PSpan;
  Start: PByte;
begin
  ShardsPurge(AllSlices);
  Span := Take(1);
  Start := Span^.Start;
  FillChar(Start^, SliceSize, 1);
  AssertTrue('the system locks the pages', LockPages(Start, SliceSize));
  ShardsRelease(Span);
  ShardsPurge(AllSlices);
  Again := Take(1);
  AssertTrue('the same run', Again^.Start = Start);
  AssertTrue('zeros, or no claim', not Again^.IsZero or IsZero(Start, SliceSize));
  UnlockPages(Start, SliceSize);
  ShardsRelease(Again);
end;

procedure TShardsTests.ReleasedSpanThatWaitsIsWarm;
var
  Span: PSpan;
  IsWarm: Boolean;
begin
  ShardsPurge(AllSlices);
  Span := Take(9);
  LockEnter(ShardOf(Span)^.Lock);
  ShardsRelease(Span);
  IsWarm := ShardsHaveWarm;
  LockLeave(ShardOf(Span)^.Lock);
  AssertTrue('warm', IsWarm);
  ShardsPurge(AllSlices);
  AssertFalse('after a purge', ShardsHaveWarm);
end;

procedure TShardsTests.WarmRunOfAnyShardIsTakenFirst;
var
  Span, Again: PSpan;
  Kept: Byte;
  Number: Integer;
begin
  ShardsPurge(AllSlices);
  Span := Take(500);
  Kept := OsThreadHeap^.HomeShard;
  for Number := 1 to Process.ShardCount do
  begin
    ShardsRelease(Span);
    OsThreadHeap^.HomeShard := Number;
    Again := ShardsTake(500);
    OsThreadHeap^.HomeShard := Kept;
    AssertTrue('the warm run', Again = Span);
    AssertFalse('claims zeros', Again^.IsZero);
  end;
  ShardsRelease(Span);
end;

function LongestFreeRun: NativeUInt;
var
  Number, Bin: Integer;

  procedure Visit(Run: PSpan);
  begin
    while Run <> nil do
    begin
      if Run^.SliceCount > Result then
        Result := Run^.SliceCount;
      Run := Run^.Next;
    end;
  end;

begin
  Result := 0;
  for Number := 1 to Process.ShardCount do
    for Bin := 0 to BinCount - 1 do
    begin
      Visit(Process.Shards[Number].Warm.Heads[Bin]);
      Visit(Process.Shards[Number].Cold.Heads[Bin]);
    end;
end;

procedure TShardsTests.ScarceAddressesJoinWarmAndColdRuns;
var
  Run, Joined: PSpan;
  Length, Frontier: NativeUInt;
begin
  Length := LongestFreeRun + 2;
  Run := TakeNew(Length);
  ShardsReleaseZero(ShardsSplit(Run, Length div 2));
  ShardsRelease(Run);
  Frontier := NewestArena^.Frontier;
  Process.SavingFrom := 0;
  Joined := Take(Length);
  Same(Frontier, NewestArena^.Frontier, 'frontier');
  AssertTrue('claims zeros', Joined^.IsZero);
  ShardsReleaseZero(Joined);
end;

procedure TShardsTests.ScarceAddressesTakeTheRunThatFits;
const
  RunSlices = 100;
var
  Spans: TSpans;
  Before, Warm, Between, Cold, Behind: PSpan; // a free run of another test would join them
begin
  TakeFreeRuns(RunSlices, Spans); // one of these might fit as well
  Before := TakeNew(1);
  Warm := TakeNew(RunSlices + 1);
  Between := TakeNew(1);
  Cold := TakeNew(RunSlices);
  Behind := TakeNew(1);
  ShardsRelease(Warm);
  ShardsReleaseZero(Cold);
  Process.SavingFrom := 0;
  AssertTrue('the cold run', Take(RunSlices) = Cold);
  AssertTrue('the warm run', Take(RunSlices) = Warm);
  ShardsReleaseZero(Cold);
  ShardsRelease(Warm);
  ShardsRelease(Before);
  ShardsRelease(Between);
  ShardsRelease(Behind);
  ReleaseAll(Spans);
end;

procedure TShardsTests.TakeNeverWaits;
var
  Warm, Span, Spare: PSpan;
begin
  Warm := Take(20);
  ShardsRelease(Warm);
  LockShards;
  Span := ShardsTake(3);
  Spare := ShardsTakeSpare(3, 20);
  UnlockShards;
  AssertTrue('taken', Span <> nil);
  AssertTrue('taken with spare slices', Spare <> nil);
  ShardsRelease(Span);
  ShardsRelease(Spare);
  ShardsPurge(AllSlices);
  Same(0, ShardsWarmSlices, 'warm slices');
end;

procedure TShardsTests.GrowNeverWaits;
var
  Span: PSpan;
  IsGrown: Boolean;
begin
  Span := Take(700);
  ShardsRelease(ShardsSplit(Span, 300));
  LockShards;
  IsGrown := ShardsGrow(Span, 700);
  UnlockShards;
  AssertFalse('grown', IsGrown);
  Same(300, Span^.SliceCount, 'slices');
  ShardsRelease(Span);
end;

procedure TShardsTests.SlicesReadyForUseAreOfTheirShard;
var
  Spans: array[1..40] of PSpan;
  Index: Integer;
begin
  for Index := 1 to High(Spans) do
  begin
    Spans[Index] := Take(Index);
    AtLeast(1, Spans[Index]^.Shard, 'shard');
    AtMost(Process.ShardCount, Spans[Index]^.Shard, 'shard');
  end;
  ReleaseAll(Spans);
end;

initialization
  RegisterTest(TShardsTests);
end.
