/// The spans of one heap: the current span of each class, the queues of the others.
//
// Owns:       THeap; TSpan.Next and Prev of spans in a queue; TSpan.IsCurrent.
// Invariants: an owned span is current, or in its class's queue, or on Taken. Queues are rings:
//             the first span's Prev is the last. Each queued span has a block to give.
//             A span without a free block is given up, so that an idle owner hoards nothing.
// Callers:    the heap's thread; HeapSweep: any thread. For the orphan heap: any thread.
// Progress:   HeapTakeOver and HeapEmptied, which FreeMem calls, never wait: what they cannot
//             do without the lock, the next HeapNextSpan or HeapSweep does.
// Source:     giving up full spans: Leijen, mimalloc 3 (abandoned pages); queues per class:
//             Berger et al., "Hoard: A Scalable Memory Allocator", ASPLOS 2000.
unit LaneMM.Heap;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Makes an all-zero record an empty heap.
procedure HeapFormat(Heap: PHeap);
/// Makes another span, with a free block, the current one of the class; nil when there is no
/// memory. The one before cannot be refilled.
function HeapNextSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
/// Makes Heap the owner of a given-up span that this thread has just won (see RemotePush).
procedure HeapTakeOver(Heap: PHeap; Span: PSpan);
/// Gives a span back of whose blocks the owner has just freed the last one.
procedure HeapEmptied(Heap: PHeap; Span: PSpan);
/// Hands all spans of an ended thread's heap to the orphan heap.
procedure HeapAbandon(Heap: PHeap);
/// Queues the current spans without a block in use, for HeapSweep. The heap's thread.
procedure HeapRetireEmpty(Heap: PHeap);
/// Gives back all queued spans without a block in use. Any thread. Asks for another sweep (see
/// Process.SweepWanted) when another thread is at the queues, or when spans stay in which
/// others have freed blocks: the owner's next free may be the last one.
procedure HeapSweep(Heap: PHeap);
/// Asks for a sweep; tells whether nobody had. Whoever was the first calls PurgeNotify or
/// PurgeTick afterwards.
function WantSweep: Boolean;
/// Makes the queues anew from the span records. For a child process in which a lost thread
/// held the lock; no other thread runs.
procedure HeapRebuild(Heap: PHeap);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Errors, LaneMM.Lock, LaneMM.RemoteList, LaneMM.Arena, LaneMM.Span;

function WantSweep: Boolean;
begin
  // Full barrier: the purge thread sees it, or is seen parked. Pairs with PurgerThread.
  Result := (LoadAcquire(Process.SweepWanted) = 0) and (Swap(Process.SweepWanted, 1) = 0);
end;

// ---------------------------------------------------------------------------- queues

procedure QueueAdd(Heap: PHeap; Span: PSpan);
var
  First: PSpan;
begin
  First := Heap^.Queues[Span^.SizeClass];
  if First = nil then
  begin
    Span^.Next := Span;
    Span^.Prev := Span;
    Heap^.Queues[Span^.SizeClass] := Span;
    Exit;
  end;
  Span^.Next := First;
  Span^.Prev := First^.Prev;
  First^.Prev^.Next := Span;
  First^.Prev := Span;
end;

procedure QueueRemove(Heap: PHeap; Span: PSpan);
begin
  if Span^.Next = Span then
    Heap^.Queues[Span^.SizeClass] := nil
  else if Heap^.Queues[Span^.SizeClass] = Span then
    Heap^.Queues[Span^.SizeClass] := Span^.Next;
  Span^.Prev^.Next := Span^.Next;
  Span^.Next^.Prev := Span^.Prev;
end;

function QueueTake(Heap: PHeap; SizeClass: Cardinal): PSpan;
begin
  Result := Heap^.Queues[SizeClass];
  if Result <> nil then
    QueueRemove(Heap, Result);
end;

// Moves the spans on Taken to their queues.
procedure QueueTaken(Heap: PHeap);
var
  Span, Next: PSpan;
begin
  if LoadAcquire(Heap^.Taken) = 0 then
    Exit;
  // Acquire: see the links. Pairs with HeapTakeOver.
  Span := PSpan(Swap(Heap^.Taken, 0));
  while Span <> nil do
  begin
    Next := Span^.Next;
    QueueAdd(Heap, Span);
    Span := Next;
  end;
end;

// ---------------------------------------------------------------------------- current

procedure HeapFormat(Heap: PHeap);
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
    Heap^.Current[SizeClass] := @Process.EmptySpan;
end;

procedure SetCurrent(Heap: PHeap; Span: PSpan);
begin
  Span^.IsCurrent := True;
  Inc(Span^.Used);
  Heap^.Current[Span^.SizeClass] := Span;
end;

// Gives the span up if it is full, else queues it.
procedure Retire(Heap: PHeap; Span: PSpan);
begin
  if SpanIsFull(Span) then
  begin
    // Before the word: from then on the span may have another owner.
    Span^.Owner := NoOwner;
    if RemoteGiveUp(Span) then
      Exit;
    Span^.Owner := Heap; // a block was freed in between
  end;
  // Who freed a block while the span was current asked for no sweep. Full barrier: either the
  // block is seen here, or IsCurrent is seen there. Pairs with RemoteFree in LaneMM.Blocks.
  if FetchAdd(Span^.Remote, 0) <> 0 then
    WantSweep;
  QueueAdd(Heap, Span);
end;

procedure RetireCurrent(Heap: PHeap; SizeClass: Cardinal);
var
  Span: PSpan;
begin
  Span := Heap^.Current[SizeClass];
  if Span = @Process.EmptySpan then
    Exit;
  Heap^.Current[SizeClass] := @Process.EmptySpan;
  Span^.IsCurrent := False;
  Dec(Span^.Used);
  Retire(Heap, Span);
end;

// A span of the class that an ended thread left, or nil.
function Reclaim(Heap: PHeap; SizeClass: Cardinal): PSpan;
var
  Orphans: PHeap;
begin
  Orphans := Process.Abandoned;
  // A look without the lock: what is missed now is found next time.
  if (Orphans^.Queues[SizeClass] = nil) and (LoadAcquire(Orphans^.Taken) = 0) then
    Exit(nil);
  LockEnter(Orphans^.Lock);
  QueueTaken(Orphans);
  Result := QueueTake(Orphans, SizeClass);
  if Result <> nil then
    Result^.Owner := Heap;
  LockLeave(Orphans^.Lock);
end;

function NewSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
begin
  Result := ArenaTake(Process.ClassSlices[SizeClass]);
  if Result <> nil then
    SpanFormat(Result, SizeClass, Heap);
end;

function HeapNextSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
begin
  LockEnter(Heap^.Lock);
  QueueTaken(Heap);
  RetireCurrent(Heap, SizeClass);
  Result := QueueTake(Heap, SizeClass);
  LockLeave(Heap^.Lock);
  if Result = nil then
    Result := Reclaim(Heap, SizeClass);
  if Result = nil then
    Result := NewSpan(Heap, SizeClass);
  if Result = nil then
    Exit;
  SetCurrent(Heap, Result);
  if Odd(Result^.FreeList) and not SpanRefill(Result) then
    Fatal('a queued span has no free block');
end;

// ---------------------------------------------------------------------------- frees

procedure HeapTakeOver(Heap: PHeap; Span: PSpan);
var
  Head: TAtomicWord;
begin
  Span^.Owner := Heap;
  repeat
    Head := LoadAcquire(Heap^.Taken);
    Span^.Next := PSpan(Head);
    // Release: the span's fields before the list. Pairs with QueueTaken. There is no pop of
    // one span, hence no ABA.
  until CompareAndSwap(Heap^.Taken, Head, NativeUInt(Span));
end;

procedure HeapEmptied(Heap: PHeap; Span: PSpan);
var
  IsOurs: Boolean;
begin
  if not LockTry(Heap^.Lock) then
  begin
    WantSweep;
    Exit;
  end;
  QueueTaken(Heap);
  // A sweeping thread may have given the span back since its last block was freed.
  IsOurs := (Span^.Owner = Heap) and (Span^.Used = 0);
  if IsOurs then
  begin
    QueueRemove(Heap, Span);
    Span^.Owner := NoOwner;
  end;
  LockLeave(Heap^.Lock);
  if IsOurs then
    ArenaRelease(Span);
end;

procedure HeapRetireEmpty(Heap: PHeap);
var
  SizeClass: Cardinal;
  Span: PSpan;
begin
  LockEnter(Heap^.Lock);
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Span := Heap^.Current[SizeClass];
    if (Span <> @Process.EmptySpan) and (Span^.Used - 1 = RemoteCount(Span)) then
      RetireCurrent(Heap, SizeClass);
  end;
  LockLeave(Heap^.Lock);
end;

procedure SweepQueue(Heap: PHeap; SizeClass: Cardinal);
var
  Span, Next, Last: PSpan;
begin
  Next := Heap^.Queues[SizeClass];
  if Next = nil then
    Exit;
  Last := Next^.Prev;
  repeat
    Span := Next;
    Next := Span^.Next;
    // No block is in use, so nobody can free one; nobody allocates from a queued span without
    // the lock. Acquire in SpanIsEmpty: the owner's last free is complete. Pairs with SpanPut.
    if SpanIsEmpty(Span) then
    begin
      QueueRemove(Heap, Span);
      Span^.Owner := NoOwner;
      ArenaRelease(Span);
    end
    else if RemoteCount(Span) <> 0 then
      WantSweep;
  until Span = Last;
end;

procedure HeapSweep(Heap: PHeap);
var
  SizeClass: Cardinal;
begin
  if not LockTry(Heap^.Lock) then
  begin
    WantSweep;
    Exit;
  end;
  QueueTaken(Heap);
  for SizeClass := 0 to SizeClassCount - 1 do
    SweepQueue(Heap, SizeClass);
  LockLeave(Heap^.Lock);
end;

// ---------------------------------------------------------------------------- the end

procedure MoveQueue(Source, Target: PHeap; SizeClass: Cardinal);
var
  Span: PSpan;
begin
  repeat
    Span := QueueTake(Source, SizeClass);
    if Span = nil then
      Exit;
    Span^.Owner := Target;
    QueueAdd(Target, Span);
  until False;
end;

procedure HeapAbandon(Heap: PHeap);
var
  SizeClass: Cardinal;
  Orphans: PHeap;
begin
  Orphans := Process.Abandoned;
  LockEnter(Heap^.Lock);
  QueueTaken(Heap);
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    RetireCurrent(Heap, SizeClass);
    SweepQueue(Heap, SizeClass);
  end;
  LockEnter(Orphans^.Lock);
  for SizeClass := 0 to SizeClassCount - 1 do
    MoveQueue(Heap, Orphans, SizeClass);
  Inc(Orphans^.Realloc.Calls, Heap^.Realloc.Calls);
  Inc(Orphans^.Realloc.Moves, Heap^.Realloc.Moves);
  Inc(Orphans^.Realloc.CopiedBytes, Heap^.Realloc.CopiedBytes);
  FillChar(Heap^.Realloc, SizeOf(Heap^.Realloc), 0);
  LockLeave(Orphans^.Lock);
  LockLeave(Heap^.Lock);
end;

procedure RebuildVisit(Span: PSpan; Context: Pointer);
begin
  if (Span^.Kind = skBlocks) and (Span^.Owner = Context) and not Span^.IsCurrent then
    Retire(Context, Span);
end;

procedure HeapRebuild(Heap: PHeap);
begin
  FillChar(Heap^.Queues, SizeOf(Heap^.Queues), 0);
  Heap^.Taken := 0;
  ArenaVisit(RebuildVisit, Heap);
  LockReset(Heap^.Lock);
end;

end.
