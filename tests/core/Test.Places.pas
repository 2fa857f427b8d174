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
    Memory: PByte;
    Mine, Others: PHeap;
    KeptAbandoned: PHeap;
    SizeClass: Cardinal;
    Blocks: array of PBlock;
    BlockCount: Integer;
    First, Second, Free: PSpan;
    FreeBefore: NativeUInt;
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
    procedure VerifyReleasedOnce;
    procedure VerifyBothAreFree;
    procedure UnlockAndVerify;
  strict private
    LargeBlock: Pointer;
    Answers: array[0..1] of Integer;
    procedure PrepareLargeBlock;
    procedure FreeLargeBlock;
    procedure VerifyFreedOnce;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlockFreedWhileItsSpanIsLeftIsNotLost;
    procedure SpanTakenOverMeanwhileIsNotLost;
    procedure SpanSweptMeanwhileIsReleasedOnce;
    procedure SpanReleasedWhileTheLockIsLeftIsNotForgotten;
    procedure LockLeftWhileASpanIsReleasedForgetsNothing;
    procedure SpansReleasedTogetherAreBothFree;
    procedure WaitingSpansAreTakenOnce;
    procedure EmptiedSpanUnderATakenLockIsSweptLater;
    procedure LargeBlockIsFreedByOneOfTwoThreads;
  end;

implementation

uses
  testregistry, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses,
  LaneMM.Lock, LaneMM.RemoteList, LaneMM.Arena, LaneMM.Span, LaneMM.Heap, LaneMM.Free;

const
  // A class that nothing else in this program uses much, with few blocks per span.
  BlockSize = 7168;
  RecordSize = (SizeOf(THeap) * 3 + OsPageSize - 1) div OsPageSize * OsPageSize;

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
  Memory := OsReserve(RecordSize);
  OsCommit(Memory, RecordSize);
  Mine := PHeap(Memory);
  Others := Mine + 1;
  HeapFormat(Mine);
  HeapFormat(Others);
  KeptAbandoned := Process.Abandoned;
  Process.Abandoned := Others + 1;
  HeapFormat(Process.Abandoned);
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
  OsRelease(Memory, RecordSize);
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
  Result := SpanTake(Span, SizeClass);
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

// First has a free block and waits on Taken. Second is current, and full.
procedure TPlacesTests.PrepareFullCurrent;
begin
  First := FillSpan;
  Second := FillSpan;
  FreeBy(Mine, First);
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
  AssertTrue('the span has an owner', (Second^.Owner <> NoOwner) and not Odd(Second^.Remote));
  Same(1, Second^.BlockBytes div Second^.BlockSize
    - (Second^.Used - Ord(Second^.IsCurrent) - RemoteCount(Second)), 'free blocks');
  if Second^.Owner = Others then
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

procedure TPlacesTests.VerifyBothAreMine;
var
  Count: Integer;
  Span: PSpan;
begin
  HeapSweep(Mine); // queues what was taken over
  Count := 0;
  Span := Mine^.Queues[SizeClass];
  if Span <> nil then
    repeat
      Inc(Count, Ord((Span = First) or (Span = Second)));
      Span := Span^.Next;
    until Span = Mine^.Queues[SizeClass];
  Same(2, Count, 'queued spans');
end;

procedure TPlacesTests.SpanTakenOverMeanwhileIsNotLost;
begin
  AtEachPlace(PrepareTwoGivenUp, Sweep, FreeSecondOfMine, VerifyBothAreMine);
end;

// First has one block in use, and a queue.
procedure TPlacesTests.PrepareLastBlock;
begin
  First := FillSpan;
  Take;
  FreeAllOf(First, True);
  HeapSweep(Mine);
  FreeBefore := Process.WarmSlices + Process.ColdSlices;
end;

procedure TPlacesTests.FreeLast;
begin
  FreeBy(Mine, First);
end;

procedure TPlacesTests.VerifyReleasedOnce;
begin
  HeapSweep(Mine);
  Same(FreeBefore + Process.ClassSlices[SizeClass], Process.WarmSlices + Process.ColdSlices,
    'free slices');
end;

procedure TPlacesTests.SpanSweptMeanwhileIsReleasedOnce;
begin
  AtEachPlace(PrepareLastBlock, FreeLast, Sweep, VerifyReleasedOnce);
end;

// ---------------------------------------------------------------------------- arena

procedure TPlacesTests.PrepareTwoRuns;
begin
  First := ArenaTake(3);
  Second := ArenaTake(3);
  FreeBefore := Process.WarmSlices + Process.ColdSlices;
end;

procedure TPlacesTests.PrepareTwoRunsUnderTheLock;
begin
  PrepareTwoRuns;
  LockEnter(Process.ArenaLock);
end;

procedure TPlacesTests.PrepareWaitingRun;
begin
  PrepareTwoRunsUnderTheLock;
  ArenaRelease(First);
  LockLeave(Process.ArenaLock);
end;

procedure TPlacesTests.ReleaseFirst;
begin
  ArenaRelease(First);
end;

procedure TPlacesTests.ReleaseSecond;
begin
  ArenaRelease(Second);
end;

// What a thread does that leaves the lock.
procedure TPlacesTests.Unlock;
begin
  LockLeave(Process.ArenaLock);
  if LoadAcquire(Process.Released) <> 0 then
    Drain;
end;

procedure TPlacesTests.ReleaseSecondAndUnlock;
begin
  ArenaRelease(Second);
  Unlock;
end;

// Takes and leaves the lock.
procedure TPlacesTests.Drain;
begin
  ArenaIdleSlices;
end;

procedure TPlacesTests.VerifyBothAreFree;
begin
  Same(0, LoadAcquire(Process.Released), 'waiting spans');
  Same(FreeBefore + 6, Process.WarmSlices + Process.ColdSlices, 'free slices');
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

procedure TPlacesTests.PrepareLargeBlock;
begin
  LargeBlock := GetMem(5 * SliceSize);
  FillChar(Answers, SizeOf(Answers), 0);
  FreeBefore := Process.WarmSlices + Process.ColdSlices;
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
  Same(1, Answers[0], 'frees');
  Same(1, Answers[1], 'refusals');
  Same(FreeBefore + 5, Process.WarmSlices + Process.ColdSlices, 'free slices');
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

{$ifdef LANEMM_YIELD}
initialization
  RegisterTest(TPlacesTests);
{$endif}
end.
