/// The heaps of regions: their large blocks, and how all their spans are released at once.
//
// Owns:       THeap.Dissolves; TSpan.Owner and Prev of large blocks that have ltRegion.
// Invariants: a heap that dissolves is used by no thread and on no stack. The thread that has its
//             lock releases its spans. A span whose blocks are just being shelved, or a large block
//             that is just being freed, is left to a later sweep (RegionHeapSweep); with the last
//             one the heap is idle or unused.
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
/// Releases a large block of a region, whose life has ended, now or with a later sweep, which it
/// requests. Any thread.
procedure RegionHeapFreed(Span: PSpan);
/// Releases all spans of a region's heap that no thread is in and that is on no stack, now or with
/// a later sweep; but for those current spans that it can carve anew, if it is reset. It is on a
/// stack then, see TDissolving.
procedure RegionHeapDissolve(Heap: PHeap; Dissolving: TDissolving);
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

// Releases the queued spans of a heap that dissolves. Returns what becomes of it then; diNone: some
// are left. Under the heap's lock.
function DissolveQueued(Heap: PHeap): TDissolving;
var
  SizeClass: Cardinal;
  IsEmpty: Boolean;
begin
  IsEmpty := True;
  for SizeClass := 0 to LargeQueue do
    IsEmpty := DissolveQueue(Heap, SizeClass) and IsEmpty;
  Result := diNone;
  if not IsEmpty then
    Exit;
  Result := TDissolving(Swap(Heap^.Dissolves, Ord(diNone)));
  if Result = diFree then
    Heap^.Region := nil; // under the lock: the next thread that has it finds an ordinary heap
end;

// Puts an empty heap of the region that has dissolved where others find it. The record that
// describes the region comes last: a sweep of another heap may be counting a span there.
procedure Dissolved(Region, Heap: PHeap; Dissolving: TDissolving);
begin
  if Dissolving = diReset then
  begin
    HeapPush(Region^.Data.Idle, Heap);
    Exit;
  end;
  if Heap <> Region then
  begin
    Heap^.RunsClaimed := 0;
    HeapPush(Process.UnusedHeaps, Heap);
  end;
  // Full barrier: no other thread counts in the region any more. Pairs with the other heaps' last.
  if FetchAdd(Region^.Data.Left, NativeUInt(-1)) = 1 then
    HeapPush(Process.UnusedRegions, Region);
end;

procedure RegionHeapSweep(Heap: PHeap);
var
  Region: PHeap;
  Dissolving: TDissolving;
begin
  if not LockTry(Heap^.Lock) then
  begin
    SweepRequest;
    Exit;
  end;
  QueueAllTaken(Heap);
  Region := Heap^.Region;
  Dissolving := diNone;
  if HeapIsDissolving(Heap) then
    Dissolving := DissolveQueued(Heap);
  LockLeave(Heap^.Lock);
  if Dissolving <> diNone then
    Dissolved(Region, Heap, Dissolving);
end;

function HeapOrdinary(Heap: PHeap): PHeap;
begin
  Result := Heap;
  while (Result <> nil) and (Result^.Region <> nil) do
    Result := Result^.Outer;
end;

function RegionHeapAdd(Heap: PHeap; Span: PSpan): Boolean;
begin
  Result := BackedAddTo(Heap^.Region^.Data, Span^.SliceCount);
  if not Result then
    Exit;
  Span^.Owner := FilledBy(Heap);
  Include(Span^.Traits, ltRegion);
  Span^.SizeClass := LargeQueue;
  Span^.Bias := 0;
  Span^.Prev := nil;
  PushTaken(Heap, Span);
end;

procedure RegionHeapFreed(Span: PSpan);
var
  Heap: PHeap;
begin
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

procedure RegionHeapDissolve(Heap: PHeap; Dissolving: TDissolving);
var
  SizeClass: Cardinal;
  Span: PSpan;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Span := Heap^.Current[SizeClass];
    if (Span = @Process.EmptySpan) or (Dissolving = diReset) and RestartCurrent(Heap, Span) then
      Continue;
    EndCurrent(Heap, Span);
    PushTaken(Heap, Span);
  end;
  FillChar(Heap^.Borrowed, SizeOf(Heap^.Borrowed), 0);
  // Release: the spans are in queues, or on Taken. Pairs with HeapIsDissolving.
  StoreRelease(Heap^.Dissolves, Ord(Dissolving));
  RegionHeapSweep(Heap);
end;

end.
