/// Tests of LaneMM.Fork: what a child process has of the memory of its parent.
unit Test.Fork;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  LaneMM.Types, Test.Tools;

type
  TForkTests = class(TQuietTest)
  strict private
    Waiting, Kept: Pointer;
    Expected: NativeUInt;
    FirstHeap, Keeping: PHeap;
    Untouched: PByte;
    IsWaiting: Boolean;
    function RunInChildUnderTheLock(Work: TWork): Integer;
    function RunInChildWithAQueue(Work: TWork; IsLocked: Boolean): Integer;
    procedure CheckFreeMemory;
    procedure CheckSpareSlices;
    procedure CheckReleasedSpans;
    procedure CheckFirstFree;
    procedure CheckKeptRuns;
    procedure KeepARun;
    procedure CheckSweptRuns;
    procedure CheckQueue;
    procedure CheckTornQueue;
    procedure CheckTornRuns;
    procedure CheckHeaps;
    procedure CheckUntouched;
    procedure TouchHeap;
  strict protected
    procedure SetUp; override;
    procedure ChildStarts; override;
  published
    procedure ChildKeepsFreeMemoryWhenAThreadHeldAShardLock;
    procedure ChildCountsSpareSlicesWhenAThreadHeldAShardLock;
    procedure ChildKeepsSpansThatWaitedForTheShardLock;
    procedure ChildReleasesItsFirstLargeBlockOnce;
    procedure ChildKeepsNoRunThatIsFree;
    procedure ChildWithoutHeldLocksKeepsFreeMemory;
    procedure ChildStartsItsOwnPurgeThread;
    procedure ChildKeepsTheQueuesOfAHeapThatWasLocked;
    procedure ChildThatSweepsFirstReleasesKeptRunsOnce;
    procedure ChildRecoversBeforeItLooksAtOtherThreads;
    procedure ChildMakesQueuesAnewThatWereCopiedAtTwoMoments;
    procedure ChildMakesFreeRunsAnewThatWereCopiedAtTwoMoments;
    procedure ChildReusesNoHeapOfALostThread;
    procedure ChildFindsMemoryThatWasNeverUsedZero;
    procedure LockInsideOfTheRecoveryDoesNotWaitForIt;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Layout, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os,
  LaneMM.SizeClasses, LaneMM.Lock, LaneMM.FreeRuns, LaneMM.Arena, LaneMM.Shards, LaneMM.Backed,
  LaneMM.KeptRuns, LaneMM.Large, LaneMM.Heap, LaneMM.Threads, LaneMM.Purge;

const
  Megabyte = NativeUInt(1) shl 20;
  FreeBytes = 200 * Megabyte;
  KeptSize = 5 * SliceSize;

var
  RecoveryLock: TLock;

procedure TForkTests.TouchHeap;
begin
  FreeMem(GetMem(1));
end;

// Each work recovers the child itself.
procedure TForkTests.ChildStarts;
begin
end;

// A child recovers where the parent has had a second thread.
procedure TForkTests.SetUp;
begin
  inherited SetUp;
  InThread(TouchHeap);
end;

// RunInChild while this thread holds the lock of a shard, as a thread that the child does not have
// might. Waiting is freed then: its span waits for the lock.
function TForkTests.RunInChildUnderTheLock(Work: TWork): Integer;
var
  Shard: PShard;
begin
  Shard := @Process.Shards[1];
  if Waiting <> nil then
    Shard := ShardOf(ArenaSpan(Waiting));
  LockEnter(Shard^.Lock);
  if Waiting <> nil then
    FreeMem(Waiting);
  IsWaiting := LoadAcquire(Shard^.Released) <> 0;
  Result := RunInChild(Work);
  LockLeave(Shard^.Lock);
  AssertTrue('the span waits', IsWaiting or (Waiting = nil));
  Waiting := nil;
end;

// All slices below the frontiers are in use or free, and a trim leaves nothing warm.
procedure TForkTests.CheckFreeMemory;
var
  P: Pointer;
  Used: NativeUInt;
  Number: Integer;
begin
  LockRecover;
  for Number := 1 to Process.ShardCount do
    Same(0, LoadAcquire(Process.Shards[Number].Lock.State), 'state of the lock');
  AtLeast(FreeBytes div SliceSize, FreeSlices, 'free slices');
  Used := BackedSlices - ShardsWarmSlices;
  P := GetMem(FreeBytes);
  AssertTrue('a free run serves a large block', P <> nil);
  FreeMem(P);
  ProcessTrim;
  Same(0, ShardsWarmSlices, 'warm slices after a trim');
  AtMost(Used + 64, BackedSlices, 'backed slices after a trim');
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildKeepsFreeMemoryWhenAThreadHeldAShardLock;
var
  P: Pointer;
begin
  P := GetMem(FreeBytes);
  FillChar(P^, FreeBytes, 1);
  FreeMem(P);
  Same(0, RunInChildUnderTheLock(CheckFreeMemory), 'exit code of the child');
end;

procedure TForkTests.ChildWithoutHeldLocksKeepsFreeMemory;
var
  P: Pointer;
begin
  P := GetMem(FreeBytes);
  FillChar(P^, FreeBytes, 1);
  FreeMem(P);
  Same(0, RunInChild(CheckFreeMemory), 'exit code of the child');
end;

procedure TakeLock(IsTorn: Boolean);
begin
  LockEnter(RecoveryLock);
  LockLeave(RecoveryLock);
end;

procedure TForkTests.LockInsideOfTheRecoveryDoesNotWaitForIt;
begin
  if not InChild then
    Exit;
  Hooks.ChildStarted := TakeLock;
  LockRecover;
  Same(1, Process.ForkMark^, 'mark');
end;

procedure TForkTests.CheckSpareSlices;
begin
  LockRecover;
  Same(Expected, BackedSlices + ColdSlices, 'slices without the spare ones');
end;

procedure TForkTests.ChildCountsSpareSlicesWhenAThreadHeldAShardLock;
var
  Span: PSpan;
  Copied: NativeUInt;
begin
  Span := LargeMove(LargeGet(5 * Megabyte), 6 * Megabyte, Copied);
  AssertTrue('moved', Span <> nil);
  AtLeast(1, Span^.SpareCount, 'spare slices of the moved block');
  Expected := BackedSlices + ColdSlices;
  Same(0, RunInChildUnderTheLock(CheckSpareSlices), 'exit code of the child');
  LargeFree(Span);
end;

procedure TForkTests.CheckReleasedSpans;
var
  Number: Integer;
begin
  LockRecover;
  for Number := 1 to ShardLimit do
    Same(0, LoadAcquire(Process.Shards[Number].Released), 'spans that wait');
  AtLeast(FreeBytes div SliceSize, FreeSlices, 'free slices');
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildKeepsSpansThatWaitedForTheShardLock;
begin
  Waiting := GetMem(FreeBytes);
  ProcessTrim;
  Same(0, RunInChildUnderTheLock(CheckReleasedSpans), 'exit code of the child');
end;

// The first call that reaches the arena is a free: no slice is in two free runs after it.
procedure TForkTests.CheckFirstFree;
var
  P, Other: PByte;
begin
  FreeMem(Kept);
  P := GetMem(FreeBytes);
  Other := GetMem(FreeBytes);
  AssertTrue('two blocks', (P + FreeBytes <= Other) or (Other + FreeBytes <= P));
  FreeMem(P);
  FreeMem(Other);
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildReleasesItsFirstLargeBlockOnce;
begin
  Kept := GetMem(FreeBytes);
  Same(0, RunInChildUnderTheLock(CheckFirstFree), 'exit code of the child');
  FreeMem(Kept);
end;

procedure TForkTests.CheckKeptRuns;
begin
  LockRecover;
  Same(0, RunsKept(OsThreadHeap), 'kept slices');
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildKeepsNoRunThatIsFree;
begin
  FreeMem(GetMem(KeptSize));
  AtLeast(5, RunsKept(OsThreadHeap), 'kept slices');
  Same(0, RunInChildUnderTheLock(CheckKeptRuns), 'exit code of the child');
end;

// The first call that reaches the arena releases a run that the recovery takes for a lost one.
procedure TForkTests.KeepARun;
begin
  FreeMem(GetMem(KeptSize));
  Keeping := OsThreadHeap;
end;

procedure TForkTests.CheckSweptRuns;
var
  P, Other: PByte;
begin
  HeapSweep(Keeping);
  Same(0, RunsKept(Keeping), 'kept slices');
  P := GetMem(KeptSize);
  Other := GetMem(KeptSize);
  AssertTrue('two blocks', (P + KeptSize <= Other) or (Other + KeptSize <= P));
  FreeMem(P);
  FreeMem(Other);
  ProcessTrim;
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildThatSweepsFirstReleasesKeptRunsOnce;
var
  Owner: TWorker;
begin
  KeepARun;
  AtLeast(5, RunsKept(Keeping), 'kept slices');
  Same(0, RunInChild(CheckSweptRuns), 'exit code of the child');
  Owner := StartIdleThread(KeepARun);
  AtLeast(5, RunsKept(Keeping), 'slices that another thread keeps');
  Same(0, RunInChild(CheckSweptRuns), 'exit code of a child without that thread');
  EndThread(Owner);
end;

procedure TForkTests.ChildRecoversBeforeItLooksAtOtherThreads;
begin
  if not InChild then
    Exit;
  AssertFalse('before', LockHasRecovered);
  ProcessSweep;
  AssertTrue('afterwards', LockHasRecovered);
end;

procedure TForkTests.ChildStartsItsOwnPurgeThread;
begin
  if not InChild then
    Exit;
  Process.PurgeState := 1; // as if a thread of the parent were running
  LockRecover;
  Same(0, LoadAcquire(Process.PurgeState), 'state of the purge thread');
end;

const
  QueuedSize = 7168;

procedure TForkTests.CheckQueue;
begin
  LockRecover;
  Same(0, LoadAcquire(OsThreadHeap^.Lock.State), 'state of the lock');
  HeapSweep(OsThreadHeap); // queues the spans
  AssertTrue('a queued span', OsThreadHeap^.Queues[SizeToClass(QueuedSize)] <> nil);
end;

// RunInChild where this thread has a queued span, or one that it will queue.
function TForkTests.RunInChildWithAQueue(Work: TWork; IsLocked: Boolean): Integer;
var
  Queued: array[0..59] of Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Queued) do
    Queued[Index] := GetMem(QueuedSize);
  FreeMem(Queued[0]);
  if IsLocked then
    LockEnter(OsThreadHeap^.Lock)
  else
    HeapSweep(OsThreadHeap); // queues the spans
  Result := RunInChild(Work);
  if IsLocked then
    LockLeave(OsThreadHeap^.Lock);
  for Index := 1 to High(Queued) do
    FreeMem(Queued[Index]);
end;

procedure TForkTests.ChildKeepsTheQueuesOfAHeapThatWasLocked;
begin
  Same(0, RunInChildWithAQueue(CheckQueue, True), 'exit code of the child');
end;

// The kernel copies page after page while other threads run: a lock that is free in one page proves
// nothing about the spans in another.
procedure TForkTests.CheckTornQueue;
var
  Span: PSpan;
begin
  Span := OsThreadHeap^.Queues[SizeToClass(QueuedSize)];
  Same(0, LoadAcquire(OsThreadHeap^.Lock.State), 'state of the lock');
  AssertTrue('a queued span', Span <> nil);
  Span^.Prev := PSpan(SizeOf(TSpan));
  Span^.Next := PSpan(2 * SizeOf(TSpan));
  CheckQueue;
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildMakesQueuesAnewThatWereCopiedAtTwoMoments;
begin
  Same(0, RunInChildWithAQueue(CheckTornQueue, False), 'exit code of the child');
end;

procedure TForkTests.CheckTornRuns;
var
  Number: Integer;
begin
  for Number := 1 to Process.ShardCount do
  begin
    Same(0, LoadAcquire(Process.Shards[Number].Lock.State), 'state of the lock');
    FillChar(Process.Shards[Number].Warm, SizeOf(TBins), 1);
    FillChar(Process.Shards[Number].Cold, SizeOf(TBins), 1);
  end;
  CheckFreeMemory;
end;

procedure TForkTests.ChildMakesFreeRunsAnewThatWereCopiedAtTwoMoments;
begin
  FreeMem(GetMem(FreeBytes));
  Same(0, RunInChild(CheckTornRuns), 'exit code of the child');
end;

procedure TForkTests.CheckHeaps;
var
  Index: Integer;
begin
  LockRecover;
  Same(0, LoadAcquire(Process.UnusedHeaps), 'heaps to reuse');
  for Index := 0 to High(Process.VacantHeaps) do
    Same(0, LoadAcquire(Process.VacantHeaps[Index]), 'vacant heaps');
  AssertTrue('a record after those of the parent', ThreadsFirstHeap = FirstHeap);
  InThread(TouchHeap);
  AssertTrue('a thread of the child has a new record', ThreadsFirstHeap <> FirstHeap);
end;

// What the thread of SetUp left is vacant if it took a vacant heap, with blocks of other tests.
procedure TForkTests.ChildReusesNoHeapOfALostThread;
var
  Word, Words: TAtomicWord;
begin
  FirstHeap := ThreadsFirstHeap;
  Words := LoadAcquire(Process.UnusedHeaps);
  for Word in Process.VacantHeaps do
    Words := Words or Word;
  AssertTrue('a heap to reuse', Words <> 0);
  Same(0, RunInChild(CheckHeaps), 'exit code of the child');
end;

// A lost thread took slices after the page with the frontier was copied, and filled them.
procedure TForkTests.CheckUntouched;
var
  Place: PByte;
begin
  Place := Untouched - SliceSize;
  Place^ := 1;
  ArenaSpan(Place)^.Kind := skFree;
  LockRecover;
  Same(0, Place^, 'a byte of a slice that was never used');
  AssertTrue('its record', ArenaSpan(Place)^.Kind = skNone);
end;

procedure TForkTests.ChildFindsMemoryThatWasNeverUsedZero;
begin
  Untouched := UntouchedLimit;
  Same(0, RunInChild(CheckUntouched), 'exit code of the child');
end;

initialization
  RegisterTest(TForkTests);
end.
