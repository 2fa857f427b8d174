/// The heaps of regions: their large blocks, and how all their spans are released at once.
//
// Owns:       THeap.Dissolves; TSpan.Owner and Prev of large blocks that have ltRegion.
// Invariants: a heap that dissolves is used by no thread and on no stack. The thread that has its
//             lock releases its spans. A span whose blocks are just being shelved, or a large block
//             that is just being freed, is left to a later sweep (RegionHeapSweep); with the last
//             one the heap is unused.
// Callers:    see each routine.
// Progress:   no routine waits.
unit LaneMM.RegionHeaps;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Returns the heap of the thread outside of all scopes of regions; Heap is the calling thread's.
function HeapOrdinary(Heap: PHeap): PHeap;
/// Makes a large block one of a region, in a queue of Heap, one of its heaps. False, and nothing
/// changed, if the region's limit refuses it. Any thread.
function RegionHeapAdd(Heap: PHeap; Span: PSpan): Boolean;
/// Leaves a large block to be queued, if it is one of a region; it is in no queue. Any thread.
procedure RegionHeapRequeue(Span: PSpan);
/// Releases a large block whose life has ended: one of a region now or with a later sweep, which it
/// requests, any other one now. Any thread.
procedure RegionHeapFreed(Span: PSpan);
/// Releases all spans of a region's heap that no thread is in and that is on no stack, but for
/// those current spans that it can carve anew. False: other threads have its lock, or some of its
/// blocks in their hands, so spans are left.
function RegionHeapReset(Heap: PHeap): Boolean;
/// Releases all spans of a region's heap that no thread is in, that is on no stack, and that Made
/// does not count any more, now or with a later sweep. The heap is unused then.
procedure RegionHeapDissolve(Heap: PHeap);
/// Ends one of the shares in a region that TRegion.Left counts. With the last one the record that
/// describes it is for the next region.
procedure RegionShareEnd(Region: PHeap);
/// Goes on to release the spans of a heap that dissolves. Any thread.
procedure RegionHeapSweep(Heap: PHeap);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Lock, LaneMM.RemoteList, LaneMM.Span, LaneMM.Queues,
  LaneMM.Sweep, LaneMM.Backed, LaneMM.Shards, LaneMM.Large, LaneMM.HeapRecords, LaneMM.Heap;

// Ends the life of a span that was in a queue, and releases it. Returns false, and does nothing,
// while another thread shelves its blocks, or frees the large block.
function DissolveSpan(Heap: PHeap; Span: PSpan): Boolean;
begin
  if Span^.SizeClass <> LargeQueue then
    Result := EndLife(Heap, Span)
  else
  begin
    Result := (Span^.Kind = skReleased) or RemoteTryEndLife(Span, RemoteWord(Span));
    if Result then
      BackedRemoveOf(Heap, Span^.SliceCount);
  end;
  if not Result then
    Exit;
  if Span^.SizeClass = LargeQueue then
    LargeRelease(Span)
  else
    ShardsRelease(Span);
end;

// Releases the spans in one queue of a heap that dissolves; returns whether none is left.
function DissolveQueue(Heap: PHeap; SizeClass: Cardinal): Boolean;
var
  Span, Left: PSpan;
begin
  Left := nil;
  repeat
    Span := QueueTake(Heap, SizeClass);
    if (Span <> nil) and not DissolveSpan(Heap, Span) then
    begin
      Span^.Next := Left;
      Left := Span;
    end;
  until Span = nil;
  Result := Left = nil;
  while Left <> nil do
  begin
    Span := Left;
    Left := Span^.Next;
    QueueAdd(Heap, Span);
  end;
end;

// Releases the queued spans of a heap; returns whether none is left. Under the heap's lock.
function DissolveQueues(Heap: PHeap): Boolean;
var
  SizeClass: Cardinal;
begin
  QueueAllTaken(Heap);
  Result := True;
  for SizeClass := 0 to LargeQueue do
    Result := DissolveQueue(Heap, SizeClass) and Result;
end;

// Releases the queued spans of a heap that dissolves; returns whether it has dissolved. Under the
// heap's lock: the next thread that has it finds an ordinary heap.
function DissolveQueued(Heap, Region: PHeap): Boolean;
begin
  Result := HeapIsDissolving(Heap) and DissolveQueues(Heap);
  if not Result then
    Exit;
  StoreRelease(Heap^.Dissolves, 0); // release: with nothing; the lock orders it
  if Heap <> Region then
    Heap^.Region := nil;
end;

procedure RegionShareEnd(Region: PHeap);
begin
  // Full barrier: no other thread counts in the region any more. Pairs with the other shares' ends.
  if FetchAdd(Region^.Data.Left, NativeUInt(-1)) <> 1 then
    Exit;
  Region^.Region := nil;
  HeapPush(Process.UnusedRegions, Region);
end;

procedure RegionHeapSweep(Heap: PHeap);
var
  Region: PHeap;
  HasDissolved: Boolean;
begin
  if not LockTry(Heap^.Lock) then
  begin
    SweepRequest;
    Exit;
  end;
  Region := Heap^.Region;
  HasDissolved := DissolveQueued(Heap, Region);
  LockLeave(Heap^.Lock);
  if not HasDissolved then
    Exit;
  // The record that describes the region comes last: a sweep of another heap may be counting there.
  if Heap <> Region then
  begin
    Heap^.SampleIn := 0;
    Heap^.SampleSeed := 0; // the next thread begins to count
    Heap^.RunsClaimed := 0;
    HeapPush(Process.UnusedHeaps, Heap);
  end;
  RegionShareEnd(Region);
end;

function HeapOrdinary(Heap: PHeap): PHeap;
begin
  Result := Heap;
  while (Result <> nil) and (Result^.Region <> nil) do
    Result := Result^.Outer;
end;

procedure RegionHeapRequeue(Span: PSpan);
var
  Heap: PHeap;
begin
  Heap := RegionHeapOf(Span);
  if Heap = nil then
    Exit;
  Span^.SizeClass := LargeQueue;
  Span^.Bias := 0;
  Span^.Prev := nil;
  PushTaken(Heap, Span);
end;

function RegionHeapAdd(Heap: PHeap; Span: PSpan): Boolean;
begin
  Result := BackedAddTo(Heap^.Region^.Data, Span^.SliceCount);
  if not Result then
    Exit;
  Span^.Owner := FilledBy(Heap);
  Include(Span^.Traits, ltRegion);
  RegionHeapRequeue(Span);
end;

procedure RegionHeapFreed(Span: PSpan);
var
  Heap: PHeap;
begin
  if not (ltRegion in Span^.Traits) then
  begin
    LargeRelease(Span);
    Exit;
  end;
  Heap := RegionHeapOf(Span);
  if LockTry(Heap^.Lock) then
  begin
    QueueTaken(Heap);
    if Span^.Prev <> nil then
      ReleaseLarge(Heap, Span)
    else
      Span^.Kind := skReleased;
    LockLeave(Heap^.Lock);
  end
  else
    Span^.Kind := skReleased; // the sweep releases it
  SweepRequest;
end;

// Begins to carve a current span anew, if it is short. False, too, while another thread shelves its
// blocks.
function RestartCurrent(Heap: PHeap; Span: PSpan): Boolean;
begin
  Result := (Span^.SliceCount = 1) and RemoteEndLife(Span);
  if not Result then
    Exit;
  SpanFormat(Span, Span^.SizeClass, Heap);
  Span^.IsZero := False;
  SetCurrent(Heap, Span, 1);
end;

// Ends the current spans of a heap, but for those that it can carve anew, if it is reset.
procedure EndCurrents(Heap: PHeap; IsReset: Boolean);
var
  SizeClass: Cardinal;
  Span: PSpan;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Span := Heap^.Current[SizeClass];
    if (Span = @Process.EmptySpan) or IsReset and RestartCurrent(Heap, Span) then
      Continue;
    EndCurrent(Heap, Span);
    PushTaken(Heap, Span);
  end;
  FillChar(Heap^.Borrowed, SizeOf(Heap^.Borrowed), 0);
end;

function RegionHeapReset(Heap: PHeap): Boolean;
begin
  EndCurrents(Heap, True);
  Result := LockTry(Heap^.Lock);
  if not Result then
    Exit;
  Result := DissolveQueues(Heap);
  LockLeave(Heap^.Lock);
end;

procedure RegionHeapDissolve(Heap: PHeap);
begin
  EndCurrents(Heap, False);
  // Release: the spans are in queues, or on Taken. Pairs with HeapIsDissolving.
  StoreRelease(Heap^.Dissolves, 1);
  RegionHeapSweep(Heap);
end;

end.
