/// The engine in a child process after fork.
//
// Owns:       Process.ForkMark, Hooks.ForkRecover.
// Invariants: a child process has one thread and a copy of all memory. The system copies page after
//             page while other threads run: two pages show two moments, and a lock that looks free
//             proves nothing. So all that other threads write in several pages is made anew: the
//             queues and kept runs of heaps, the free runs, the lists of unused heaps, the slices
//             that were never used. A span record lies in one page, and is whole. The blocks and
//             spans of the thread that forked did not change meanwhile. The heaps of lost threads
//             stay as those of idle threads, and get no other thread.
// Alone:      where no other thread has had a heap, and no purge thread runs, nothing is made anew.
// Callers:    ForkStart: once, before any other thread runs. The recovery: the first thread of a
//             child that takes a lock, or looks at the lists of other threads.
// Progress:   threads that the child started before that park on the mark until it has recovered.
unit LaneMM.Fork;

{$I ../LaneMM.inc}

interface

/// Makes every child process recover before it takes its first lock.
procedure ForkStart;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock,
  LaneMM.RemoteList, LaneMM.FreeRuns, LaneMM.Arena, LaneMM.Span, LaneMM.Walk, LaneMM.Heap,
  LaneMM.RegionHeaps, LaneMM.Regions, LaneMM.Threads;

const
  // Values of the mark beside 0: recovered; the number of the thread that recovers, plus this.
  Recovered = 1;
  Recovering = 2;
  // Longest wait before the mark is read again.
  PatienceMs = 10;

// ---------------------------------------------------------------------------- arenas

// Returns true if Span is the first record of a span in use that ends before Limit.
function IsInUse(Span, Limit: PSpan): Boolean;
begin
  Result := (Span^.Kind in KindsInUse) and (Span^.SliceCount > 0)
    and (Span + Span^.SliceCount <= Limit);
end;

procedure ForgetRecord(Slice: PSpan);
begin
  if Slice^.Kind <> skNone then // the page stays shared with the parent
    Slice^.Kind := skNone;
end;

// Counts the slices of a span in use as backed. Its last record may show an earlier moment.
procedure KeepSpan(Span: PSpan);
begin
  Inc(Process.Backed, Span^.SliceCount - Span^.SpareCount);
  if Span[Span^.SliceCount - 1].Kind in [skFree, skFreeEnd] then
    Span[Span^.SliceCount - 1].Kind := skNone;
end;

// Makes a run free. What was purged of it allows no access once the system has refused memory:
// then all of it is purged.
procedure AddRun(Run: PSpan; SliceCount: NativeUInt);
begin
  if (LoadAcquire(Process.Refused) <> 0) and OsUncharge(Run^.Start, SliceCount * SliceSize) then
  begin
    FreeRunAdd(Run, SliceCount, False);
    Exit;
  end;
  Inc(Process.Backed, SliceCount);
  FreeRunAdd(Run, SliceCount, True);
end;

// Makes a free run of the slices from First on that no span in use has, and that are of one shard;
// returns their end. A record whose shard is unknown goes with those before it.
function RecoverRun(Arena: PArena; First, Limit: PSpan): PSpan;
begin
  First^.Start := Arena^.Base + (First - Arena^.Spans) * SliceSize;
  if First^.Shard = 0 then
    First^.Shard := 1;
  Result := First;
  repeat
    ForgetRecord(Result);
    Inc(Result);
  until (Result = Limit) or IsInUse(Result, Limit)
    or (Result^.Shard <> 0) and (Result^.Shard <> First^.Shard);
  AddRun(First, Result - First);
end;

// Makes the slices above the frontier what they are for the child: never used. Lost threads may
// have taken and filled some after the page with the frontier was copied.
procedure RecoverUntouched(Arena: PArena; First: PSpan);
var
  Count, Index: NativeUInt;
begin
  Count := LoadAcquire(Arena^.Committed) - LoadAcquire(Arena^.Frontier);
  for Index := 0 to Count do // and the record behind them
    ForgetRecord(First + Index);
  if Count > 0 then
    OsPurge(Arena^.Base + (First - Arena^.Spans) * SliceSize, Count * SliceSize);
end;

// Makes free runs of all slices that no span in use has, also of those that a lost thread was
// taking or releasing.
procedure RecoverArena(Arena: PArena);
var
  Span, Limit: PSpan;
begin
  Span := Arena^.Spans;
  Limit := Span + LoadAcquire(Arena^.Frontier);
  RecoverUntouched(Arena, Limit);
  while Span < Limit do
    if IsInUse(Span, Limit) then
    begin
      KeepSpan(Span);
      Inc(Span, Span^.SliceCount);
    end
    else
      Span := RecoverRun(Arena, Span, Limit);
end;

procedure ResetShard(Shard: PShard);
begin
  FreeRunsForget(Shard);
  Shard^.Released := 0; // its spans become free runs like all others
  Shard^.WarmLow := 0;
  LockReset(Shard^.Lock);
end;

procedure RecoverArenas;
var
  Index: NativeUInt;
begin
  for Index := 1 to Process.ShardCount do
    ResetShard(@Process.Shards[Index]);
  Process.PurgesUnderWay := 0;
  Process.PurgesHeld := 0; // by threads that the child does not have
  Process.CommitsUnderWay := 0;
  Process.Backed := 0;
  Index := 0;
  while FrontierArena(Index) <> nil do
  begin
    RecoverArena(FrontierArena(Index));
    Inc(Index);
  end;
end;

// ---------------------------------------------------------------------------- heaps

procedure EmptyHeap(Heap: PHeap);
begin
  Heap^.KeptCounts.All := 0; // free runs like all others
  Heap^.KeptSlices := 0;
  Heap^.Section := 0;
  Heap^.RunsClaimed := Ord(Heap^.Region <> nil);
  HeapReset(Heap);
end;

// Puts a span of blocks, or a large block of a region, into the queue of its heap. The heap of
// samples is recovered by LaneMM.Sampler.
procedure RequeueSpan(Span: PSpan; Context: Pointer);
var
  Owner: PHeap;
begin
  Owner := OwnerOf(Span);
  if (Span^.Kind in [skBlocks, skLarge]) and (RegionHeapOf(Span) <> nil) then
    Inc(RegionHeapOf(Span)^.Region^.Data.Slices, Span^.SliceCount);
  if Span^.Kind = skLarge then
    RegionHeapRequeue(Span);
  if (Span^.Kind <> skBlocks) or (Owner = NoOwner) or not ThreadsHaveHeap(Owner) then
    Exit;
  RemoteShelveRecover(Span);
  if Span^.IsCurrent and (Owner^.Current[Span^.SizeClass] <> Span) then
  begin
    Span^.IsCurrent := False; // of a lost thread
    Dec(Span^.Used, Span^.Bias);
  end;
  if not Span^.IsCurrent and (Span^.Bias > 0) then
    Span^.Bias := 0; // if a lost thread was just doing so, one block too many counts as used
  if RemoteCount(Span) > 0 then
    SpanCollect(Span); // it drops blocks whose page shows an earlier moment
  if (Owner^.Region <> nil) and (Owner^.Outer = nil) then
    SpanRecover(Span); // the next thread in the region uses its free blocks
  if not Span^.IsCurrent then
    HeapRequeue(Owner, Span);
end;

procedure RecoverHeaps;
var
  Heap: PHeap;
begin
  ThreadsRecover;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    EmptyHeap(Heap);
    Heap := Heap^.NextHeap;
  end;
  RegionsRecover(OsThreadHeap);
  WalkSpans(RequeueSpan, nil);
end;

// ---------------------------------------------------------------------------- all

procedure ForgetThreadNumbers;
var
  Heap: PHeap;
begin
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Heap^.ThreadNumber := 0;
    Heap := Heap^.NextHeap;
  end;
end;

procedure RecoverChild;
var
  IsTorn: Boolean;
begin
  IsTorn := not HeapIsOnly or (LoadAcquire(Process.PurgeState) <> 0);
  Process.PurgeState := 0; // the purge thread is lost, too
  Process.PurgeThread := 0;
  if IsTorn then
  begin
    RecoverArenas;
    RecoverHeaps;
  end;
  ForgetThreadNumbers;
  if @Hooks.ChildStarted <> nil then
    Hooks.ChildStarted(IsTorn);
end;

// What the recovery itself calls may take a lock, and comes here again: it goes on.
procedure ForkRecover;
var
  Own, Mark: NativeUInt;
begin
  Own := Recovering + OsThreadId;
  // Full barrier: one thread recovers, and sees all writes of the parent before the fork.
  if CompareAndSwap(Process.ForkMark^, 0, Own) then
  begin
    RecoverChild;
    // Release: the recovered state before the mark. Pairs with LockRecover and the loop below.
    StoreRelease(Process.ForkMark^, Recovered);
    OsWakeAll(Process.ForkMark^);
    Exit;
  end;
  Mark := LoadAcquire(Process.ForkMark^);
  while (Mark <> Recovered) and (Mark <> Own) do
  begin
    OsWaitMs(Process.ForkMark^, Mark, PatienceMs);
    Mark := LoadAcquire(Process.ForkMark^);
  end;
end;

procedure ForkStart;
begin
  Hooks.ForkRecover := ForkRecover;
  Process.ForkMark := OsForkMark;
end;

end.
