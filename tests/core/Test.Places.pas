/// Tests of two threads that meet at every place of an operation, one place after the other. Only in
/// a build with LANEMM_YIELD, which calls Hooks.Yield at these places.
//
// The other thread's call falls into one place as a whole. So it is a call that never waits, and this
// thread makes it: from the hook, with a heap of the other thread. Such a build has no purge thread:
// nothing else sweeps.
unit Test.Places;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  TPlacesTests = class(TLaneTest)
  strict private
    Mine, Others: PHeap;
    KeptAbandoned: PHeap;
    SizeClass: Cardinal;
    Blocks: array of PBlock;
    BlockCount: Integer;
    First, Second: PSpan;
    FreeBefore: NativeUInt;
    IsReused: Boolean;
    ReusedCount: Integer;
    function Take: PBlock;
    function FillSpan: PSpan;
    function BlockOf(Span: PSpan): PBlock;
    procedure FreeBy(Heap: PHeap; Span: PSpan);
    procedure FreeAllOf(Span: PSpan; ButOne: Boolean);
    procedure AtEachPlace(Prepare, Call, Other, Verify: TWork);
    procedure Clean;
    procedure PrepareFullCurrent;
    procedure PrepareTwoGivenUp;
    procedure PrepareLastBlock;
    procedure PrepareTwoRuns;
    procedure PrepareTwoRunsUnderTheLock;
    procedure PrepareWaitingRun;
    procedure NextSpan;
    procedure Sweep;
    procedure FreeLast;
    procedure FreeSecondOfMine;
    procedure FreeSecondOfOthers;
    procedure ReleaseFirst;
    procedure ReleaseSecond;
    procedure ReleaseSecondAndUnlock;
    procedure Unlock;
    procedure Drain;
    procedure VerifyFreedBlock;
    procedure VerifyBothAreMine;
    procedure NextSpanUnderTheLock;
    function IsQueued(Span: PSpan): Boolean;
    procedure VerifyBothStay;
    procedure VerifyReleasedOnce;
    procedure PrepareLastBlockBetween;
    procedure SweepAndReuse;
    procedure VerifyReused;
    procedure VerifyBothAreFree;
    procedure UnlockAndVerify;
  strict private
    procedure PrepareEmptyCurrent;
    procedure Shelve;
    procedure SweepAsRequested;
    procedure EndAndSweep;
    procedure VerifyReleased;
  strict private
    LargeBlock: Pointer;
    Answers: array[0..1] of Integer;
    procedure PrepareLargeBlock;
    procedure FreeLargeBlock;
    procedure VerifyFreedOnce;
  strict private
    Runs: array[0..4] of PSpan;
    procedure KeepRun(Span: PSpan);
    procedure PrepareKeptRuns;
    procedure TakeKeptRuns;
    procedure ReleaseKeptRuns;
    procedure VerifyRunsHaveOneTaker;
    procedure PrepareRunsToKeep;
    procedure KeepFourRuns;
    procedure VerifyNoRunIsLost;
  strict private
    Ends: Integer;
    procedure PrepareKeeper;
    procedure PrepareNoKeeper;
    procedure EndBy(Heap: PHeap);
    procedure KeeperFrees;
    procedure OtherFrees;
    procedure VerifyOneEnd;
    procedure VerifyOneEndOrMark;
  strict private
    procedure PrepareLimit;
    procedure TakeThree;
    procedure TakeThreeMore;
    procedure VerifyLimit;
    procedure PrepareFrontier;
    procedure TakeNew;
    procedure TakeMoreNew;
    procedure VerifyTwoRunsOfTheFrontier;
  strict private
    Heaps: array[0..3] of PHeap;
    function AdoptHeap: PHeap;
    procedure ReturnHeap(Heap: PHeap);
    procedure PrepareUnusedHeaps;
    procedure AdoptFirst;
    procedure AdoptTwoAndReturnOne;
    procedure VerifyHeapsAreDifferent;
  strict private
    Unused: array of PHeap;
    UnusedCount: Integer;
    procedure PrepareNoUnusedHeaps;
    procedure AdoptSecond;
    procedure VerifyFreshHeapsAreDifferent;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlockFreedWhileItsSpanIsLeftIsNotLost;
    procedure SpanTakenOverMeanwhileIsNotLost;
    procedure SpanTakenUnderALockIsTakenOnce;
    procedure SpanSweptMeanwhileIsReleasedOnce;
    procedure SpanReusedMeanwhileIsLeftAlone;
    procedure SpanReleasedWhileTheLockIsLeftIsNotForgotten;
    procedure LockLeftWhileASpanIsReleasedForgetsNothing;
    procedure SpansReleasedTogetherAreBothFree;
    procedure WaitingSpansAreTakenOnce;
    procedure EmptiedSpanUnderATakenLockIsSweptLater;
    procedure SpanLeftWhileItIsShelvedIsReleased;
    procedure LargeBlockIsFreedByOneOfTwoThreads;
    procedure KeptRunIsTakenOrReleased;
    procedure KeptRunIsReleasedOrTaken;
    procedure RunKeptDuringASweepIsNotLost;
    procedure BlockOfAKeeperIsFreedByOneOfTwoThreads;
    procedure BlockWithoutAKeeperIsFreedByOneOfTwoThreads;
    procedure SlicesTakenTogetherStayBelowTheLimit;
    procedure SlicesOfTheFrontierAreTakenOnce;
    procedure UnusedHeapIsTakenByOneThread;
    procedure FreshHeapIsTakenByOneThread;
  end;

implementation

uses
  testregistry, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock,
  LaneMM.RemoteList, LaneMM.FreeRuns, LaneMM.Arena, LaneMM.Shards, LaneMM.Backed, LaneMM.Span,
  LaneMM.KeptRuns, LaneMM.Large, LaneMM.Heap, LaneMM.Threads, LaneMM.Shelf,
  LaneMM.Limits, LaneMM.Free;

const
  // A class that nothing else in this program uses much, with few blocks per span.
  BlockSize = 7168;

var
  // The place to come to, the call there, and its thread.
  PlacesLeft: Integer;
  OtherCall: TWork;
  CallingThread: TThreadID;

procedure CallAtPlace;
begin
  if (PlacesLeft = 0) or (GetCurrentThreadId <> CallingThread) then
    Exit;
  Dec(PlacesLeft);
  if PlacesLeft = 0 then
    OtherCall();
end;

// Spans that other threads left when they ended are set aside: some of their blocks may be in use.
procedure TPlacesTests.SetUp;
begin
  Mine := NewHeaps(3);
  Others := Mine + 1;
  KeptAbandoned := Process.Abandoned;
  Process.Abandoned := Others + 1;
  SizeClass := SizeToClass(BlockSize);
  SetLength(Blocks, 1000);
  BlockCount := 0;
end;

// Nothing may point to the heaps of the test any more.
procedure TPlacesTests.TearDown;
begin
  Clean;
  HeapAbandon(Mine);
  HeapAbandon(Others);
  Process.Abandoned := KeptAbandoned;
  HeapAbandon(Others + 1);
end;

procedure TPlacesTests.Clean;
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
    if Blocks[Index] <> nil then
      FreeBy(Mine, ArenaSpan(Blocks[Index]));
  BlockCount := 0;
  HeapSweep(Mine);
  HeapSweep(Others);
end;

function TPlacesTests.Take: PBlock;
var
  Span: PSpan;
begin
  Span := Mine^.Current[SizeClass];
  if Odd(Span^.FreeList) and not SpanRefill(Span) then
    Span := HeapNextSpan(Mine, SizeClass);
  Result := SpanTake(Span);
  Blocks[BlockCount] := Result;
  Inc(BlockCount);
end;

// Takes blocks until the current span has none left; returns that span.
function TPlacesTests.FillSpan: PSpan;
begin
  Result := ArenaSpan(Take);
  while not SpanIsFull(Result) do
    Take;
end;

function TPlacesTests.BlockOf(Span: PSpan): PBlock;
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
    if (Blocks[Index] <> nil) and (ArenaSpan(Blocks[Index]) = Span) then
    begin
      Result := Blocks[Index];
      Blocks[Index] := nil;
      Exit;
    end;
  Result := nil;
end;

// Frees a block of Span by the thread that has Heap.
procedure TPlacesTests.FreeBy(Heap: PHeap; Span: PSpan);
var
  Block: PBlock;
begin
  Block := BlockOf(Span);
  if OwnerOf(Span) = Heap then
    OwnBlockFree(Heap, Span, Block)
  else
    BlockFreeUnowned(Block, Heap, Span);
end;

procedure TPlacesTests.FreeAllOf(Span: PSpan; ButOne: Boolean);
var
  Index, Count: Integer;
begin
  Count := -Ord(ButOne);
  for Index := 0 to BlockCount - 1 do
    Inc(Count, Ord((Blocks[Index] <> nil) and (ArenaSpan(Blocks[Index]) = Span)));
  for Index := 1 to Count do
    FreeBy(Mine, Span);
end;

// Runs Call once for each place where it yields, with Other there, and once with Other after it.
procedure TPlacesTests.AtEachPlace(Prepare, Call, Other, Verify: TWork);
var
  Kept: TPlainProcedure;
  Place: Integer;
  IsAfter: Boolean;
begin
  Place := 0;
  Kept := Hooks.Yield;
  try
    repeat
      Hooks.Yield := nil;
      Clean;
      Prepare;
      Inc(Place);
      CallingThread := GetCurrentThreadId;
      OtherCall := Other;
      PlacesLeft := Place;
      Hooks.Yield := CallAtPlace;
      Call;
      Hooks.Yield := nil;
      IsAfter := PlacesLeft > 0;
      PlacesLeft := 0;
      if IsAfter then
        Other;
      Verify;
    until IsAfter;
  finally
    Hooks.Yield := Kept;
  end;
  AtLeast(4, Place, 'places');
end;

// ---------------------------------------------------------------------------- frees

// First has a free block and is queued. Second is current, and full.
procedure TPlacesTests.PrepareFullCurrent;
begin
  First := FillSpan;
  Second := FillSpan;
  FreeBy(Mine, First);
  HeapSweep(Mine); // queues First
  StoreRelease(Process.SweepWanted, 0);
end;

procedure TPlacesTests.NextSpan;
begin
  HeapNextSpan(Mine, SizeClass);
end;

procedure TPlacesTests.FreeSecondOfOthers;
begin
  FreeBy(Others, Second);
end;

// The block is on a list that a thread takes it from, and one that does not look is asked to.
procedure TPlacesTests.VerifyFreedBlock;
begin
  AssertTrue('the span has an owner', (OwnerOf(Second) <> NoOwner)
    and (Second^.Remote and GivenUpSpan = 0));
  Same(1, Second^.BlockBytes div Second^.BlockSize
    - (Second^.Used - Second^.Bias - RemoteCount(Second)), 'free blocks');
  if OwnerOf(Second) = Others then
    AssertTrue('others took it over', LoadAcquire(Others^.Taken) = NativeUInt(Second))
  else if not Second^.IsCurrent then
    Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
end;

procedure TPlacesTests.BlockFreedWhileItsSpanIsLeftIsNotLost;
begin
  AtEachPlace(PrepareFullCurrent, NextSpan, FreeSecondOfOthers, VerifyFreedBlock);
end;

// First waits on Taken. Second is given up.
procedure TPlacesTests.PrepareTwoGivenUp;
begin
  First := FillSpan;
  Second := FillSpan;
  Take;
  FreeBy(Mine, First);
end;

procedure TPlacesTests.Sweep;
begin
  HeapSweep(Mine);
end;

procedure TPlacesTests.FreeSecondOfMine;
begin
  FreeBy(Mine, Second);
end;

function TPlacesTests.IsQueued(Span: PSpan): Boolean;
var
  Queued: PSpan;
begin
  Result := False;
  Queued := Mine^.Queues[SizeClass];
  if Queued <> nil then
    repeat
      Result := Result or (Queued = Span);
      Queued := Queued^.Next;
    until Queued = Mine^.Queues[SizeClass];
end;

procedure TPlacesTests.VerifyBothAreMine;
begin
  HeapSweep(Mine); // queues what was taken over
  AssertTrue('first', IsQueued(First));
  AssertTrue('second', IsQueued(Second));
end;

procedure TPlacesTests.SpanTakenOverMeanwhileIsNotLost;
begin
  AtEachPlace(PrepareTwoGivenUp, Sweep, FreeSecondOfMine, VerifyBothAreMine);
end;

procedure TPlacesTests.NextSpanUnderTheLock;
begin
  LockEnter(Mine^.Lock);
  HeapNextSpan(Mine, SizeClass);
  LockLeave(Mine^.Lock);
end;

procedure TPlacesTests.VerifyBothStay;
begin
  HeapSweep(Mine); // queues what waits
  AssertTrue('first', First^.IsCurrent or IsQueued(First));
  AssertTrue('second', Second^.IsCurrent or IsQueued(Second));
end;

procedure TPlacesTests.SpanTakenUnderALockIsTakenOnce;
begin
  AtEachPlace(PrepareTwoGivenUp, NextSpanUnderTheLock, FreeSecondOfMine, VerifyBothStay);
end;

// First has one block in use, and a queue.
procedure TPlacesTests.PrepareLastBlock;
begin
  First := FillSpan;
  Take;
  FreeAllOf(First, True);
  HeapSweep(Mine);
  FreeBefore := FreeSlices;
end;

procedure TPlacesTests.FreeLast;
begin
  FreeBy(Mine, First);
end;

procedure TPlacesTests.VerifyReleasedOnce;
begin
  HeapSweep(Mine);
  Same(FreeBefore + Process.ClassSlices[SizeClass], FreeSlices,
    'free slices');
end;

procedure TPlacesTests.SpanSweptMeanwhileIsReleasedOnce;
begin
  AtEachPlace(PrepareLastBlock, FreeLast, Sweep, VerifyReleasedOnce);
end;

// First also lies between spans in use: its run stays one of its own when it is free.
procedure TPlacesTests.PrepareLastBlockBetween;
begin
  FillSpan;
  First := FillSpan;
  FillSpan;
  Take;
  FreeAllOf(First, True);
  HeapSweep(Mine);
  FreeBefore := FreeSlices;
end;

// Takes the run of First for another thread's span, if a sweep has released it. The last block of
// that span has just been freed, and its thread is about to look at it.
procedure TPlacesTests.SweepAndReuse;
var
  Taken: PSpan;
  Block: PBlock;
  Left: Integer;
begin
  HeapSweep(Mine);
  IsReused := False;
  Left := 100;
  while (First^.Kind <> skBlocks) and (Left > 0) do
  begin
    Taken := HeapNewSpan(Others, SizeClass);
    SpanRefill(Taken);
    Block := SpanTake(Taken);
    PushTaken(Others, Taken);
    HeapSweepQueued(Others);
    SpanPut(Taken, Block);
    IsReused := Taken = First;
    Dec(Left);
  end;
  Inc(ReusedCount, Ord(IsReused));
end;

// More slices may have come from the frontier.
procedure TPlacesTests.VerifyReused;
begin
  if IsReused then
    AssertTrue('the owner', OwnerOf(First) = Others);
  HeapSweep(Others);
  HeapSweep(Mine);
  Same(Process.ClassSlices[SizeClass], (FreeSlices - FreeBefore) mod StepSlices,
    'free slices, but for those that are new');
end;

procedure TPlacesTests.SpanReusedMeanwhileIsLeftAlone;
begin
  ReusedCount := 0;
  AtEachPlace(PrepareLastBlockBetween, FreeLast, SweepAndReuse, VerifyReused);
  AtLeast(1, ReusedCount, 'places where the span was used again');
end;

// First is current. Others have freed its blocks.
procedure TPlacesTests.PrepareEmptyCurrent;
begin
  HeapRetireAll(Mine);
  HeapSweep(Mine);
  First := ArenaSpan(Take);
  Take;
  FreeBefore := FreeSlices;
  FreeBy(Others, First);
  FreeBy(Others, First);
  StoreRelease(Process.SweepWanted, 0);
end;

procedure TPlacesTests.Shelve;
var
  Shelving: TShelving;
begin
  Shelving.Count := 0;
  ShelveHeap(Mine, Shelving);
  ShelveEnd(Shelving);
end;

// As often as the purge thread would.
procedure TPlacesTests.SweepAsRequested;
begin
  while Swap(Process.SweepWanted, 0) <> 0 do
  begin
    HeapSweep(Mine);
    HeapSweep(Process.Abandoned);
  end;
end;

// The end of the thread that has the heap, and a look long after it.
procedure TPlacesTests.EndAndSweep;
begin
  HeapAbandon(Mine);
  SweepAsRequested;
end;

procedure TPlacesTests.VerifyReleased;
begin
  SweepAsRequested;
  Same(FreeBefore + Process.ClassSlices[SizeClass], FreeSlices, 'free slices');
end;

procedure TPlacesTests.SpanLeftWhileItIsShelvedIsReleased;
begin
  AtEachPlace(PrepareEmptyCurrent, Shelve, EndAndSweep, VerifyReleased);
end;

// ---------------------------------------------------------------------------- arena

procedure TPlacesTests.PrepareTwoRuns;
begin
  First := ShardsTake(3);
  Second := ShardsTake(3);
  FreeBefore := FreeSlices;
end;

procedure TPlacesTests.PrepareTwoRunsUnderTheLock;
begin
  PrepareTwoRuns;
  LockEnter(ShardOf(First)^.Lock);
end;

procedure TPlacesTests.PrepareWaitingRun;
begin
  PrepareTwoRunsUnderTheLock;
  ShardsRelease(First);
  LockLeave(ShardOf(First)^.Lock);
end;

procedure TPlacesTests.ReleaseFirst;
begin
  ShardsRelease(First);
end;

procedure TPlacesTests.ReleaseSecond;
begin
  ShardsRelease(Second);
end;

// What a thread does that leaves the lock.
procedure TPlacesTests.Unlock;
begin
  LockLeave(ShardOf(First)^.Lock);
  if LoadAcquire(ShardOf(First)^.Released) <> 0 then
    Drain;
end;

procedure TPlacesTests.ReleaseSecondAndUnlock;
begin
  ShardsRelease(Second);
  Unlock;
end;

// Takes and leaves the lock.
procedure TPlacesTests.Drain;
begin
  ShardsPurgeIdle;
end;

procedure TPlacesTests.VerifyBothAreFree;
begin
  Same(0, LoadAcquire(ShardOf(First)^.Released), 'waiting spans');
  Same(FreeBefore + 6, FreeSlices, 'free slices');
end;

procedure TPlacesTests.UnlockAndVerify;
begin
  Unlock;
  VerifyBothAreFree;
end;

procedure TPlacesTests.SpanReleasedWhileTheLockIsLeftIsNotForgotten;
begin
  AtEachPlace(PrepareTwoRuns, ReleaseFirst, ReleaseSecond, VerifyBothAreFree);
end;

procedure TPlacesTests.LockLeftWhileASpanIsReleasedForgetsNothing;
begin
  AtEachPlace(PrepareTwoRunsUnderTheLock, ReleaseFirst, ReleaseSecondAndUnlock, VerifyBothAreFree);
end;

procedure TPlacesTests.SpansReleasedTogetherAreBothFree;
begin
  AtEachPlace(PrepareTwoRunsUnderTheLock, ReleaseFirst, ReleaseSecond, UnlockAndVerify);
end;

procedure TPlacesTests.WaitingSpansAreTakenOnce;
begin
  AtEachPlace(PrepareWaitingRun, Drain, ReleaseSecond, VerifyBothAreFree);
end;

const
  // Of a block in use.
  FirstWord = 1000;

procedure TPlacesTests.PrepareLargeBlock;
begin
  OsThreadHeap^.Keeper := nil;
  LargeBlock := GetMem(5 * SliceSize);
  PNativeUInt(LargeBlock)^ := FirstWord;
  FillChar(Answers, SizeOf(Answers), 0);
  FreeBefore := FreeSlices + RunsKept(OsThreadHeap);
end;

procedure TPlacesTests.FreeLargeBlock;
var
  Answer: Integer;
begin
  Answer := ErrorOfFree(LargeBlock);
  Inc(Answers[Ord(Answer <> NoError)]);
end;

procedure TPlacesTests.VerifyFreedOnce;
begin
  Same(FirstWord, PNativeUInt(LargeBlock)^, 'first word of the free run');
  Same(1, Answers[0], 'frees');
  Same(1, Answers[1], 'refusals');
  Same(FreeBefore + 5, FreeSlices + RunsKept(OsThreadHeap), 'free and kept slices');
  RunsUseKeeper(OsThreadHeap);
end;

procedure TPlacesTests.EmptiedSpanUnderATakenLockIsSweptLater;
begin
  PrepareLastBlock;
  LockEnter(Mine^.Lock);
  StoreRelease(Process.SweepWanted, 0);
  FreeLast;
  LockLeave(Mine^.Lock);
  Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
  VerifyReleasedOnce;
end;

procedure TPlacesTests.LargeBlockIsFreedByOneOfTwoThreads;
begin
  AtEachPlace(PrepareLargeBlock, FreeLargeBlock, FreeLargeBlock, VerifyFreedOnce);
end;

// ---------------------------------------------------------------------------- kept runs

procedure TPlacesTests.KeepRun(Span: PSpan);
begin
  RemoteEndLife(Span);
  if not LargeKeep(Mine, Span) then
    LargeRelease(Span);
end;

procedure TPlacesTests.PrepareKeptRuns;
var
  Index: Integer;
begin
  for Index := 0 to 1 do
    Runs[Index] := LargeGet(3 * SliceSize);
  FreeBefore := FreeSlices;
  for Index := 0 to 1 do
    KeepRun(Runs[Index]);
  First := nil;
  Second := nil;
end;

procedure TPlacesTests.TakeKeptRuns;
begin
  First := LargeGetKept(Mine, 3 * SliceSize);
  Second := LargeGetKept(Mine, 3 * SliceSize);
end;

procedure TPlacesTests.ReleaseKeptRuns;
begin
  RunsRelease(Mine, 1);
end;

procedure TPlacesTests.VerifyRunsHaveOneTaker;
begin
  Same(0, RunsKept(Mine), 'kept slices');
  Same(FreeBefore + 3 * (Ord(First = nil) + Ord(Second = nil)), FreeSlices, 'free slices');
  if First <> nil then
    LargeFree(First);
  if Second <> nil then
    LargeFree(Second);
  Same(FreeBefore + 6, FreeSlices, 'free slices after');
end;

procedure TPlacesTests.PrepareRunsToKeep;
var
  Index: Integer;
begin
  for Index := 0 to High(Runs) do
    Runs[Index] := LargeGet(2 * SliceSize);
  FreeBefore := FreeSlices;
  KeepRun(LargeGet(2 * SliceSize));
end;

procedure TPlacesTests.KeepFourRuns;
var
  Index: Integer;
begin
  for Index := 0 to 3 do
    KeepRun(Runs[Index]);
end;

procedure TPlacesTests.VerifyNoRunIsLost;
begin
  KeepRun(Runs[4]);
  Same(FreeBefore + 10, FreeSlices + RunsKept(Mine), 'free and kept slices');
end;

procedure TPlacesTests.KeptRunIsTakenOrReleased;
begin
  AtEachPlace(PrepareKeptRuns, TakeKeptRuns, ReleaseKeptRuns, VerifyRunsHaveOneTaker);
end;

procedure TPlacesTests.KeptRunIsReleasedOrTaken;
begin
  AtEachPlace(PrepareKeptRuns, ReleaseKeptRuns, TakeKeptRuns, VerifyRunsHaveOneTaker);
end;

procedure TPlacesTests.RunKeptDuringASweepIsNotLost;
begin
  AtEachPlace(PrepareRunsToKeep, ReleaseKeptRuns, KeepFourRuns, VerifyNoRunIsLost);
end;

// ---------------------------------------------------------------------------- keepers

procedure TPlacesTests.PrepareKeeper;
begin
  Runs[0] := LargeGet(3 * SliceSize);
  KeepRun(Runs[0]);
  RunsUseKeeper(Mine);
  First := LargeGetKept(Mine, 3 * SliceSize);
  Ends := 0;
end;

procedure TPlacesTests.PrepareNoKeeper;
begin
  Runs[0] := LargeGet(3 * SliceSize);
  KeepRun(Runs[0]);
  Mine^.Keeper := nil;
  First := LargeGetKept(Mine, 3 * SliceSize);
  Ends := 0;
end;

procedure TPlacesTests.EndBy(Heap: PHeap);
begin
  Inc(Ends, Ord(LargeEndLife(Heap, First, RemoteWord(First))));
end;

procedure TPlacesTests.KeeperFrees;
begin
  EndBy(Mine);
end;

procedure TPlacesTests.OtherFrees;
begin
  EndBy(Others);
end;

procedure TPlacesTests.VerifyOneEnd;
begin
  AssertTrue('the run that was kept', First = Runs[0]);
  Same(1, Ends, 'ends of life');
  Same(0, LoadAcquire(Mine^.Section), 'section');
  LargeRelease(First);
end;

// The keeper's thread stands in its section: maybe both are refused.
procedure TPlacesTests.VerifyOneEndOrMark;
begin
  if Cardinal(RemoteWord(First)) = FreedSpan then
  begin
    Same(0, Ends, 'ends of a lost block');
    RemoteEndLife(First);
    Inc(Ends);
  end;
  VerifyOneEnd;
end;

procedure TPlacesTests.BlockOfAKeeperIsFreedByOneOfTwoThreads;
begin
  AssertTrue('barrier', Process.HasBarrier);
  AtEachPlace(PrepareKeeper, OtherFrees, KeeperFrees, VerifyOneEnd);
  AtEachPlace(PrepareKeeper, OtherFrees, OtherFrees, VerifyOneEnd);
  AtEachPlace(PrepareKeeper, KeeperFrees, OtherFrees, VerifyOneEndOrMark);
end;

procedure TPlacesTests.BlockWithoutAKeeperIsFreedByOneOfTwoThreads;
begin
  AtEachPlace(PrepareNoKeeper, OtherFrees, KeeperFrees, VerifyOneEnd);
  AtEachPlace(PrepareNoKeeper, KeeperFrees, OtherFrees, VerifyOneEnd);
end;

// ---------------------------------------------------------------------------- new slices

// Memory for one run is left.
procedure TPlacesTests.PrepareLimit;
begin
  ShardsPurge(AllSlices);
  LimitsSet(0, (BackedSlices + 3) * SliceSize, 0);
end;

procedure TPlacesTests.TakeThree;
begin
  First := ShardsTake(3);
end;

procedure TPlacesTests.TakeThreeMore;
begin
  Second := ShardsTake(3);
end;

procedure TPlacesTests.VerifyLimit;
var
  Limit: NativeUInt;
begin
  Limit := Process.Limits[lkHard].Slices;
  LimitsSet(0, 0, 0);
  AtMost(Limit, BackedSlices, 'backed slices');
  AssertTrue('one run', (First = nil) <> (Second = nil));
  if First = nil then
    First := Second;
  ShardsRelease(First);
end;

procedure TPlacesTests.SlicesTakenTogetherStayBelowTheLimit;
begin
  AtEachPlace(PrepareLimit, TakeThree, TakeThreeMore, VerifyLimit);
end;

procedure TPlacesTests.PrepareFrontier;
begin
  FreeBefore := ArenaWithNew(6)^.Frontier;
end;

procedure TPlacesTests.TakeNew;
var
  Tail: PSpan;
  TailCount: NativeUInt;
begin
  First := FrontierTake(3, Tail, TailCount);
end;

procedure TPlacesTests.TakeMoreNew;
var
  Tail: PSpan;
  TailCount: NativeUInt;
begin
  Second := FrontierTake(3, Tail, TailCount);
end;

procedure TPlacesTests.VerifyTwoRunsOfTheFrontier;
begin
  AssertTrue('two runs', (First <> nil) and (Second <> nil) and (Abs(First - Second) = 3));
  Same(FreeBefore + 6, NewestArena^.Frontier, 'frontier');
  if Second < First then
    First := Second;
  GiveBackNew(First, 6);
end;

procedure TPlacesTests.SlicesOfTheFrontierAreTakenOnce;
begin
  AtEachPlace(PrepareFrontier, TakeNew, TakeMoreNew, VerifyTwoRunsOfTheFrontier);
end;

// ---------------------------------------------------------------------------- unused heaps

// What a new thread does. Allocates nothing.
function TPlacesTests.AdoptHeap: PHeap;
var
  Kept: PHeap;
begin
  Kept := OsThreadHeap;
  OsSetThreadHeap(nil);
  Result := ThreadHeap;
  OsSetThreadHeap(Kept);
end;

// What the end of a thread does, and the sweep after it.
procedure TPlacesTests.ReturnHeap(Heap: PHeap);
const
  CountMask = NativeUInt(1) shl HeapWordCountBits - 1;
var
  Word: TAtomicWord;
begin
  Word := Process.VacantHeaps[0];
  Heap^.NextUnused := FirstHeapOf(Word);
  Process.VacantHeaps[0] := NativeUInt(Heap) shl HeapWordShift or (Word + 1) and CountMask;
  ThreadsAbandonVacant(High(Cardinal));
end;

procedure TPlacesTests.PrepareUnusedHeaps;
var
  Index: Integer;
begin
  for Index := 0 to High(Heaps) do
    Heaps[Index] := AdoptHeap;
  for Index := 0 to High(Heaps) do
    ReturnHeap(Heaps[Index]);
end;

procedure TPlacesTests.AdoptFirst;
begin
  Heaps[0] := AdoptHeap;
end;

procedure TPlacesTests.AdoptTwoAndReturnOne;
var
  Returned: PHeap;
begin
  Returned := AdoptHeap;
  Heaps[1] := AdoptHeap;
  ReturnHeap(Returned);
end;

procedure TPlacesTests.VerifyHeapsAreDifferent;
var
  Index: Integer;
begin
  Heaps[2] := AdoptHeap;
  AssertTrue('first', Heaps[0] <> Heaps[1]);
  AssertTrue('third', (Heaps[2] <> Heaps[0]) and (Heaps[2] <> Heaps[1]));
  for Index := 0 to 2 do
    ReturnHeap(Heaps[Index]);
end;

procedure TPlacesTests.UnusedHeapIsTakenByOneThread;
begin
  AtEachPlace(PrepareUnusedHeaps, AdoptFirst, AdoptTwoAndReturnOne, VerifyHeapsAreDifferent);
end;

// Takes all unused heaps, and a new one.
procedure TPlacesTests.PrepareNoUnusedHeaps;
var
  Newest: PHeap;
begin
  Newest := ThreadsFirstHeap;
  repeat
    Unused[UnusedCount] := AdoptHeap;
    Inc(UnusedCount);
  until ThreadsFirstHeap <> Newest;
end;

procedure TPlacesTests.AdoptSecond;
begin
  Heaps[1] := AdoptHeap;
end;

procedure TPlacesTests.VerifyFreshHeapsAreDifferent;
begin
  AssertTrue('two', Heaps[0] <> Heaps[1]);
  AssertTrue('both', (Heaps[0] <> nil) and (Heaps[1] <> nil));
  AssertTrue('apart', Abs(PByte(Heaps[0]) - PByte(Heaps[1])) >= SizeOf(THeap));
  ReturnHeap(Heaps[0]);
  ReturnHeap(Heaps[1]);
end;

procedure TPlacesTests.FreshHeapIsTakenByOneThread;
begin
  SetLength(Unused, 10000);
  UnusedCount := 0;
  AtEachPlace(PrepareNoUnusedHeaps, AdoptFirst, AdoptSecond, VerifyFreshHeapsAreDifferent);
  while UnusedCount > 0 do
  begin
    Dec(UnusedCount);
    ReturnHeap(Unused[UnusedCount]);
  end;
end;

{$ifdef LANEMM_YIELD}
initialization
  RegisterTest(TPlacesTests);
{$endif}
end.
