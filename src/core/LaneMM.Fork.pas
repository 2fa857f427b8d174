/// The engine in a child process after fork.
//
// Owns:       Process.ForkMark, Hooks.ForkRecover.
// Invariants: a child process has one thread and a copy of all memory, with the locks that lost
//             threads held. A structure that a lost thread may have been changing is dropped or
//             rebuilt; the heaps of lost threads stay as those of idle threads.
// Callers:    ForkStart: once, before any other thread runs. The recovery: the first thread of a
//             child that takes a lock.
// Progress:   threads that the child started before that park on the mark until it has recovered.
unit LaneMM.Fork;

{$I ../LaneMM.inc}

interface

/// Makes every child process recover before it takes its first lock.
procedure ForkStart;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock,
  LaneMM.FreeRuns, LaneMM.Frontier, LaneMM.Walk, LaneMM.Heap, LaneMM.Threads;

const
  // Values of the mark beside 0: recovered; the number of the thread that recovers, plus this.
  Recovered = 1;
  Recovering = 2;
  // Longest wait before the mark is read again.
  PatienceMs = 10;

// ---------------------------------------------------------------------------- arenas

// Returns True when Span is the first record of a span in use that ends before Limit.
function IsInUse(Span, Limit: PSpan): Boolean;
begin
  Result := (Span^.Kind in KindsInUse) and (Span^.SliceCount > 0)
    and (Span + Span^.SliceCount <= Limit);
end;

// Counts the slices of a span in use as backed.
procedure CountSpan(Span: PSpan);
begin
  Inc(Process.Backed, Span^.SliceCount - Span^.SpareCount);
end;

// Makes free runs of all slices that no span in use has, also of those that a lost thread was
// taking or releasing. All slices become those of the first shard.
procedure RecoverArena(Arena: PArena);
var
  Span, First, Limit: PSpan;
begin
  Span := Arena^.Spans;
  Limit := Span + LoadAcquire(Arena^.Frontier);
  while Span < Limit do
    if IsInUse(Span, Limit) then
    begin
      Span^.Shard := 1;
      CountSpan(Span);
      Inc(Span, Span^.SliceCount);
    end
    else
    begin
      First := Span;
      repeat
        Span^.Kind := skNone;
        Inc(Span);
      until (Span = Limit) or IsInUse(Span, Limit);
      First^.Start := Arena^.Base + (First - Arena^.Spans) * SliceSize;
      First^.Shard := 1;
      Inc(Process.Backed, Span - First);
      FreeRunAdd(First, Span - First, True);
    end;
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
  Process.Backed := 0;
  Index := 0;
  while FrontierArena(Index) <> nil do
  begin
    RecoverArena(FrontierArena(Index));
    Inc(Index);
  end;
end;

// Returns true if a lost thread had the lock of a shard, or slices to purge.
function SlicesAreLost: Boolean;
var
  Number: NativeUInt;
begin
  Result := LoadAcquire(Process.PurgesUnderWay) <> 0;
  for Number := 1 to Process.ShardCount do
    Result := Result or (LoadAcquire(Process.Shards[Number].Lock.State) <> 0);
end;

// ---------------------------------------------------------------------------- heaps

procedure VisitSpan(Span: PSpan; Context: Pointer);
begin
  if (Span^.Kind = skBlocks) and (OwnerOf(Span) = Context) and not Span^.IsCurrent then
    HeapRequeue(Context, Span);
end;

procedure RecoverHeap(Heap: PHeap);
begin
  Heap^.ThreadNumber := 0;
  if LoadAcquire(Heap^.Lock.State) = 0 then
    Exit;
  HeapReset(Heap);
  WalkSpans(VisitSpan, Heap);
end;

// ---------------------------------------------------------------------------- all

procedure RecoverChild;
var
  Heap: PHeap;
  IsRebuilt: Boolean;
begin
  Process.PurgeState := 0; // the purge thread is lost, too
  Process.PurgeThread := 0;
  IsRebuilt := SlicesAreLost;
  if IsRebuilt then
    RecoverArenas;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    if IsRebuilt then
    begin
      FillChar(Heap^.Runs, SizeOf(Heap^.Runs), 0); // free runs like all others
      Heap^.KeptSlices := 0;
    end;
    RecoverHeap(Heap);
    Heap := Heap^.NextHeap;
  end;
  if @Hooks.ChildStarted <> nil then
    Hooks.ChildStarted;
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
