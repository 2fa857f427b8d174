/// The queues of a heap: its spans with free blocks that are not current, a ring for each class.
//
// Owns:       THeap.Queues, Roomy, Arriving, SweepAt, SweepLast, SweepClass; TSpan.Next and Prev of
//             queued spans.
// Invariants: queues are rings: the first span's Prev is the last; a span in no queue has no Prev.
//             The first spans of a queue are the roomy ones (Bias is 0), the one that became so
//             last is the first. See LaneMM.Heap.
// Callers:    the thread that has the heap's lock; EndBias: the owner of a span in no queue.
// Progress:   no routine waits.
unit LaneMM.Queues;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Adds a span with a free block: a roomy one as the first, any other one as the last.
procedure QueueAdd(Heap: PHeap; Span: PSpan);
/// Takes a span out of its queue, and makes its Bias 0.
procedure QueueRemove(Heap: PHeap; Span: PSpan);
/// Takes the first span of the class; nil if there is none.
function QueueTake(Heap: PHeap; SizeClass: Cardinal): PSpan;
/// Moves spans on Taken to their queues, MostAtOnce at most.
procedure QueueTaken(Heap: PHeap);
/// Returns whether spans are not queued yet.
function HasArriving(Heap: PHeap): Boolean;
/// Moves all spans on Taken to their queues.
procedure QueueAllTaken(Heap: PHeap);
/// Returns the next span of the sweep under way, or nil and goes on to the next class.
function NextToSweep(Heap: PHeap): PSpan;
/// Makes Bias 0, of a span that is in no queue. The owner.
procedure EndBias(Span: PSpan);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Span;

procedure QueueAdd(Heap: PHeap; Span: PSpan);
var
  First: PSpan;
begin
  First := Heap^.Queues[Span^.SizeClass];
  if First = nil then
    First := Span
  else
    Span^.Prev := First^.Prev;
  if First = Span then
    Span^.Prev := Span;
  Span^.Next := First;
  Span^.Prev^.Next := Span;
  First^.Prev := Span;
  if Span^.Bias = 0 then
  begin
    First := Span;
    Inc(Heap^.Roomy[Span^.SizeClass]);
  end;
  Heap^.Queues[Span^.SizeClass] := First;
end;

procedure EndBias(Span: PSpan);
begin
  if Span^.Bias < 0 then
    SpanRaise(Span, -Span^.Bias);
end;

// Leaves Span, which leaves its queue, out of the sweep under way.
procedure SweepWithout(Heap: PHeap; Span: PSpan);
begin
  if (Span = Heap^.SweepAt) and (Span = Heap^.SweepLast) then
  begin
    Heap^.SweepLast := nil;
    Inc(Heap^.SweepClass);
  end
  else if Span = Heap^.SweepAt then
    Heap^.SweepAt := Span^.Next
  else if Span = Heap^.SweepLast then
    Heap^.SweepLast := Span^.Prev;
end;

procedure QueueRemove(Heap: PHeap; Span: PSpan);
begin
  if Heap^.SweepLast <> nil then
    SweepWithout(Heap, Span);
  if Span^.Bias = 0 then
    Dec(Heap^.Roomy[Span^.SizeClass]);
  if Span^.Next = Span then
    Heap^.Queues[Span^.SizeClass] := nil
  else if Heap^.Queues[Span^.SizeClass] = Span then
    Heap^.Queues[Span^.SizeClass] := Span^.Next;
  Span^.Prev^.Next := Span^.Next;
  Span^.Next^.Prev := Span^.Prev;
  Span^.Prev := nil;
  EndBias(Span);
end;

function QueueTake(Heap: PHeap; SizeClass: Cardinal): PSpan;
begin
  Result := Heap^.Queues[SizeClass];
  if Result <> nil then
    QueueRemove(Heap, Result);
end;

procedure QueueTaken(Heap: PHeap);
var
  Span: PSpan;
  Left: Cardinal;
begin
  for Left := MostAtOnce downto 1 do
  begin
    // Acquire: see the links. Pairs with PushTaken.
    if (Heap^.Arriving = nil) and (LoadAcquire(Heap^.Taken) <> 0) then
      Heap^.Arriving := PSpan(Swap(Heap^.Taken, 0));
    Span := Heap^.Arriving;
    if Span = nil then
      Exit; // or a thread without the lock has taken them (TakeTaken)
    Heap^.Arriving := Span^.Next;
    QueueAdd(Heap, Span);
  end;
end;

function HasArriving(Heap: PHeap): Boolean;
begin
  Result := (Heap^.Arriving <> nil) or (LoadAcquire(Heap^.Taken) <> 0);
end;

procedure QueueAllTaken(Heap: PHeap);
begin
  while HasArriving(Heap) do
    QueueTaken(Heap);
end;

function NextToSweep(Heap: PHeap): PSpan;
begin
  Result := Heap^.SweepAt;
  if Heap^.SweepLast = nil then
  begin
    Result := Heap^.Queues[Heap^.SweepClass];
    if Result <> nil then
      Heap^.SweepLast := Result^.Prev;
  end;
  if Result <> nil then
    Heap^.SweepAt := Result^.Next;
  if Result <> Heap^.SweepLast then
    Exit;
  Heap^.SweepLast := nil;
  Inc(Heap^.SweepClass);
end;

end.
