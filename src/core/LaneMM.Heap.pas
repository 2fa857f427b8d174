/// The spans of one heap: the current span of each class, the queues of the others.
//
// Owns:       THeap.Current, Taken; TSpan.Bias and IsCurrent.
// Invariants: an owned span is current, or in its class's queue (LaneMM.Queues), or on its way
//             there (Taken, Arriving). Each queued span can serve a block. A span without a free
//             block is given up, so that an idle owner hoards nothing.
// Sharing:    the first thread that frees a block of a given-up span takes it over, and frees the
//             others without an atomic operation. For each span it keeps a Bias below 0, so that
//             its free takes the slow path when the span has become roomy: an eighth of its blocks
//             is free or, if its own heap has filled it, three quarters. From then on the span is
//             among the first of its queue, and Bias is 0. Of these a heap keeps one of each
//             class; it leaves the others to Process.Abandoned, where any thread may take them.
//             So memory is not held by the thread that freed it, even if that sleeps for ever. In
//             a program that never had two threads all spans stay.
// Sweeps:     a queued span becomes empty by a free of another thread, which requests a sweep, or
//             by one of its owner, which does not know how many blocks others have freed. So a
//             sweep that finds such blocks adds AwaitsFree to Owner: the owner's next free takes
//             the slow path and counts them (HeapAwaitedFree). The owner may be in the middle of a
//             free that has read Owner before: two more sweeps are requested, and the later one
//             comes a whole delay of the purge thread after this one.
// Callers:    the heap's thread; HeapSweep: any thread. For Process.Abandoned: any
//             thread.
// Long lists: a call of GetMem or FreeMem looks at about MostAtOnce spans: the rest of Taken
//             waits in Arriving, a sweep goes on where it ended (SweepAt). The purge thread,
//             ProcessTrim and the end of a thread do all at once.
// Progress:   no routine waits. A thread that finds the lock of a heap taken leaves the spans on
//             Taken for the next that has it, and takes a span elsewhere, at last from the arena.
// Source:     giving up full spans: Leijen, mimalloc 3 (abandoned pages); queues per class, and
//             leaving spans with many free blocks to all: Berger et al., "Hoard: A Scalable
//             Memory Allocator", ASPLOS 2000.
unit LaneMM.Heap;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.Span;

/// Returns the class from whose span the next block of a class comes, if the class has no current
/// span with a block: a larger one while the thread has few blocks of the class. The heap's thread.
function HeapServingClass(Heap: PHeap; SizeClass: Cardinal): Cardinal;
/// Makes another span, with a free block, the current span of the class; nil when there is no
/// memory. The current span can serve no block.
function HeapNextSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
/// Makes a new span of the class, owned by Heap and in no queue; nil when there is no memory. Any
/// thread.
function HeapNewSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
/// Allocates a block of the class for a thread without a heap, from the spans of ended threads; nil
/// when there is no memory.
function HeapLateBlock(SizeClass: Cardinal): PBlock;
/// Makes Heap the owner of a given-up span that this thread has just won (see RemotePush), or has
/// claimed. Returns true if it requested a sweep and none was requested yet: the caller then calls
/// PurgeNotify.
function HeapTakeOver(Heap: PHeap; Span: PSpan): Boolean;
/// Takes a span of Process.Abandoned out of its queue for the thread of Heap, if it waits in one,
/// no other thread has that lock, and the heap may keep another roomy one. Returns whether it did:
/// then the caller calls HeapTakeOver.
function HeapClaim(Heap: PHeap; Span: PSpan): Boolean;
/// Prepares a free of the owner into a span with AwaitsFree: takes over the blocks that other
/// threads have freed. Returns as SpanCollect; to be reported after that free, since a report may
/// call the program.
function HeapAwaitedFree(Heap: PHeap; Span: PSpan): PBlock;
/// Looks at a span whose Used the owner's free has just made 0: releases it if no block is in use,
/// else it is roomy now.
procedure HeapEmptied(Heap: PHeap; Span: PSpan);
/// Abandons the spans of an ended thread but its current ones: moves them to Process.Abandoned.
/// Returns false when some are left because another thread has the lock: then to be repeated.
function HeapAbandonQueued(Heap: PHeap): Boolean;
/// Abandons all spans of an ended thread, like HeapAbandonQueued.
function HeapAbandon(Heap: PHeap): Boolean;
/// Retires all current spans: the next block of each class takes the slow path. The heap's thread.
procedure HeapRetireAll(Heap: PHeap);
/// Retires current spans without a block in use, for HeapSweep. The heap's thread.
procedure HeapRetireEmpty(Heap: PHeap);
/// Releases the runs that the heap keeps, and all queued spans without a block in use. Any thread.
/// Requests another sweep (see Process.SweepWanted) when another thread has the lock, or when
/// AwaitsFree was added.
procedure HeapSweep(Heap: PHeap);
/// Sweeps like HeapSweep, but queued spans alone.
procedure HeapSweepQueued(Heap: PHeap);
/// Sweeps Left queued spans at most, from where the last call ended, and subtracts them from Left.
/// Returns whether it reached the last one, or another thread has the lock.
function HeapSweepSome(Heap: PHeap; var Left: Cardinal): Boolean;
/// Ends the life of a span of Heap that is released; false, and nothing changed, while another
/// thread shelves blocks of it.
function EndLife(Heap: PHeap; Span: PSpan): Boolean;
/// Leaves an owned span, not current and in no queue, to the next thread that has the lock. Returns
/// true if it requested a sweep and none was requested yet.
function PushTaken(Heap: PHeap; Span: PSpan): Boolean;
/// Makes a span, in no queue, the current one of its class; Bias of its blocks count as used.
procedure SetCurrent(Heap: PHeap; Span: PSpan; Bias: Cardinal);
/// Makes the class of a current span have none.
procedure EndCurrent(Heap: PHeap; Span: PSpan);
/// Releases a large block of a region, whose life has ended, out of its queue. Under the heap's
/// lock.
procedure ReleaseLarge(Heap: PHeap; Span: PSpan);
/// Returns whether the heap is one of a region whose spans are being released.
function HeapIsDissolving(Heap: PHeap): Boolean;
/// Returns true if no two threads have had heaps at a time.
function HeapIsOnly: Boolean;
/// Empties the queues and frees the lock. For a child process in which a lost thread held the lock;
/// no other thread runs. HeapRequeue puts the spans back.
procedure HeapReset(Heap: PHeap);
/// Leaves a span of Heap that is in no queue and not current to be queued, or gives it up if it is
/// full.
procedure HeapRequeue(Heap: PHeap; Span: PSpan);

implementation

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Errors, LaneMM.Lock, LaneMM.Bits,
  LaneMM.RemoteList, LaneMM.SizeClasses, LaneMM.Queues, LaneMM.Sweep, LaneMM.Shards,
  LaneMM.Backed, LaneMM.KeptRuns, LaneMM.Large, LaneMM.Huge;

{$I ../LaneMM.AfterUses.inc}

// ---------------------------------------------------------------------------- current

// The first record after that of ended threads is the program's first.
function HeapIsOnly: Boolean;
begin
  Result := PHeap(LoadAcquire(Process.Heaps))^.NextHeap = Process.Abandoned;
end;

// Returns whether a block of the class Serving is aligned as one of SizeClass: of 96 bytes none is
// aligned to 64, which LaneMM.Aligned relies on.
function ServesAlignment(Serving, SizeClass: Cardinal): Boolean;
begin
  Result := LowestBit(ClassToSize(Serving)) >= LowestBit(ClassToSize(SizeClass));
end;

// Of two thousand threads each would touch a page for each class. The program's first heap, the
// one after that of ended threads, is no such thread: its classes have their own spans. Nor are
// threads that leave their blocks to others: each would be larger than requested for its life.
function HeapServingClass(Heap: PHeap; SizeClass: Cardinal): Cardinal;
begin
  Result := SizeClass;
  if (SizeClass > LastSharedClass) or not Process.SharesSpans
    or (Process.LeavingThreads >= FewLeaving)
    or (Heap^.NextHeap = Process.Abandoned)
    or (Heap^.Borrowed[SizeClass] >= MostServed(SizeClass)) then
    Exit;
  if Heap^.Region = nil then
    Result := ServingClass(SizeClass)
  else
    Result := RegionServingClass(SizeClass);
  if Process.KeepsAlignment and not ServesAlignment(Result, SizeClass) then
    Exit(SizeClass);
  Inc(Heap^.Borrowed[SizeClass]);
end;

// Makes Heap the owner, without AwaitsFree, but where another thread shelves blocks or has done so:
// either it sees the owner, or this thread sees it. Pairs with RemoteShelve.
procedure SetOwner(Heap: PHeap; Span: PSpan);
begin
  Span^.Owner := Heap;
  if RemoteHasShelf(Span) then
    Span^.Owner := PHeap(NativeUInt(Heap) + AwaitsFree);
end;

procedure SetCurrent(Heap: PHeap; Span: PSpan; Bias: Cardinal);
begin
  Span^.IsCurrent := True;
  SetOwner(Heap, Span);
  YieldPoint;
  SpanRaise(Span, Bias);
  Heap^.Current[Span^.SizeClass] := Span;
end;

function PushTaken(Heap: PHeap; Span: PSpan): Boolean;
var
  Head: TAtomicWord;
begin
  repeat
    Head := LoadAcquire(Heap^.Taken);
    Span^.Next := PSpan(Head);
    // Release: the span's fields before the list. Pairs with QueueTaken. There is no pop of
    // one span, hence no ABA.
  until CompareAndSwap(Heap^.Taken, Head, NativeUInt(Span));
  // Threads that freed a block before requested no sweep, since the span was current, or one that
  // did not see the span yet. The swap is a full barrier: either this thread sees the block, or the
  // sweep that the other one requests sees the span. Pairs with RemoteBlockFree in LaneMM.Free and
  // with ShelveEnd. The span may have been released by now; then this requests a sweep too many.
  Result := not RemoteIsEmpty(Span) and SweepRequest;
end;

// Lets the free with which a span becomes roomy take the slow path, see the head. Owner is Heap, or
// the one before the span changes hands.
procedure ExpectRoom(Heap: PHeap; Span: PSpan);
const
  OwnShare = 4;
  OthersShare = 8;
var
  Count: LongInt;
begin
  if Heap = Process.Abandoned then
    Exit;
  Count := Span^.BlockBytes div Span^.BlockSize;
  if (Span^.Owner = FilledBy(Heap)) or (OwnerOf(Span) = Heap) then
    Count := Count div OwnShare
  else
    Count := Count - Count div OthersShare - 1;
  SpanExpect(Span, Count);
end;

// Gives the span up if it is full, else leaves it to be queued.
procedure Retire(Heap: PHeap; Span: PSpan);
begin
  if SpanIsFull(Span) and (Heap^.Region = nil) then
  begin
    // Before RemoteGiveUp: after it the span may have another owner.
    Span^.Owner := FilledBy(Heap);
    if RemoteGiveUp(Span) then
      Exit;
    SetOwner(Heap, Span); // another thread has freed a block in between
  end;
  ExpectRoom(Heap, Span);
  PushTaken(Heap, Span);
end;

procedure EndCurrent(Heap: PHeap; Span: PSpan);
begin
  Heap^.Current[Span^.SizeClass] := @Process.EmptySpan;
  Span^.IsCurrent := False;
  YieldPoint;
  Dec(Span^.Used, Span^.Bias);
  Span^.Bias := 0;
end;

procedure RetireCurrent(Heap: PHeap; SizeClass: Cardinal);
var
  Span: PSpan;
begin
  Span := Heap^.Current[SizeClass];
  if Span = @Process.EmptySpan then
    Exit;
  EndCurrent(Heap, Span);
  Retire(Heap, Span);
end;

// Reclaims a span of the class that an ended thread abandoned; nil if none.
function Reclaim(Heap: PHeap; SizeClass: Cardinal): PSpan;
var
  Abandoned: PHeap;
begin
  Abandoned := Process.Abandoned;
  // Plain, without the lock: a span that this check misses is reclaimed later.
  if (Abandoned^.Queues[SizeClass] = nil) and (LoadAcquire(Abandoned^.Taken) = 0)
    or not LockTry(Abandoned^.Lock) then
    Exit(nil);
  QueueTaken(Abandoned);
  Result := QueueTake(Abandoned, SizeClass);
  if Result <> nil then
    SetOwner(Heap, Result);
  LockLeave(Abandoned^.Lock);
end;

// Returns whether a new span may come from a huge page: that is then at most one part in eight of
// what the thread has used to the end so far, and of what the process has now.
function WillBeDense(Heap: PHeap; SliceCount: NativeUInt): Boolean;
begin
  Result := (SliceCount <= MostDenseSlices) and (Process.HugeFrom <> 0)
    and (Heap^.CarvedSlices >= Process.HugeFrom) and (BackedSlices >= Process.HugeFrom)
    and DensityIsHigh;
end;

// Counts the run as the region's, or a single slice in its place where the limit refuses that; nil
// if it refuses both.
function AddToRegion(Region: PHeap; Run: PSpan): PSpan;
var
  IsSingle: Boolean;
begin
  Result := Run;
  while (Result <> nil) and not BackedAddTo(Region^.Data, Result^.SliceCount) do
  begin
    IsSingle := Result^.SliceCount = 1;
    ShardsReleaseUnused(Result);
    Result := nil;
    if not IsSingle then
      Result := ShardsTake(1);
  end;
end;

function HeapNewSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
var
  SliceCount: NativeUInt;
begin
  Result := nil;
  SliceCount := Process.ClassSlices[SizeClass];
  if Heap = OsThreadHeap then
    Result := RunTake(Heap, SliceCount);
  if Result = nil then
    Result := ShardsTake(SliceCount, WillBeDense(Heap, SliceCount));
  if (Result = nil) and (SliceCount > 1) then
    Result := ShardsTake(1); // of memory that has nearly run out: it holds a block of each class
  if (Result <> nil) and (Heap^.Region <> nil) then
    Result := AddToRegion(Heap^.Region, Result);
  if Result <> nil then
    SpanFormat(Result, SizeClass, Heap);
end;

// Puts spans back that were on Taken, in front of what was pushed meanwhile.
procedure ReturnTaken(Heap: PHeap; First: PSpan);
var
  Newer: PSpan;
  Link: ^PSpan;
begin
  // Release: the links. Pairs with QueueTaken. Repeats only when another thread has pushed a span.
  while not CompareAndSwap(Heap^.Taken, 0, NativeUInt(First)) do
  begin
    Newer := PSpan(Swap(Heap^.Taken, 0)); // few: there were none a moment ago
    Link := @Newer;
    while Link^ <> nil do
      Link := @Link^^.Next;
    Link^ := First;
    First := Newer;
  end;
  SweepRequest; // one that was looking meanwhile has missed them
end;

// Takes a span of the class from Taken, if it is among the first; nil if not. For a thread that
// finds the lock taken, maybe by one that never goes on: Taken would grow for ever.
function TakeTaken(Heap: PHeap; SizeClass: Cardinal): PSpan;
var
  First: PSpan;
  Link: ^PSpan;
  Left: Cardinal;
begin
  // Acquire: see the links. Pairs with PushTaken. Of several threads each has other spans.
  First := PSpan(Swap(Heap^.Taken, 0));
  Link := @First;
  Left := MostAtOnce;
  while (Link^ <> nil) and (Link^^.SizeClass <> SizeClass) and (Left > 0) do
  begin
    Link := @Link^^.Next;
    Dec(Left);
  end;
  Result := Link^;
  if Left = 0 then
    Result := nil;
  if Result <> nil then
  begin
    Link^ := Result^.Next;
    EndBias(Result);
  end;
  if First <> nil then
    ReturnTaken(Heap, First);
end;

// Takes a queued span of the class, or, while another thread has the lock, one that is not queued
// yet; nil if none.
function TakeQueued(Heap: PHeap; SizeClass: Cardinal): PSpan;
begin
  if not LockTry(Heap^.Lock) then
    Exit(TakeTaken(Heap, SizeClass));
  QueueTaken(Heap);
  Result := QueueTake(Heap, SizeClass);
  LockLeave(Heap^.Lock);
end;

// Returns a span of the class with a free block, in no queue: the caller alone uses it; nil when
// there is no memory.
function ServingSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
begin
  Result := TakeQueued(Heap, SizeClass);
  if (Result = nil) and (Heap^.Region = nil) then
    Result := Reclaim(Heap, SizeClass);
  if (Result <> nil) and (Result^.FreeList = EndOfList) and not SpanRefill(Result) then
  begin
    if Checked then
      Check((Heap^.Region <> nil) or not RemoteIsEmpty(Result), 'a queued span has a free block');
    PushTaken(Heap, Result); // another thread is just shelving its blocks, or a region's is full
    Result := nil;
  end;
  if Result <> nil then
    Exit;
  Result := HeapNewSpan(Heap, SizeClass);
  if Result <> nil then
    SpanRefill(Result);
end;

// The first span of a class stays current when its last block is freed, so that a program which
// allocates and frees few blocks takes no span each time. A span after one that was filled is
// released then: a thread that goes idle keeps nothing of a burst.
function HeapNextSpan(Heap: PHeap; SizeClass: Cardinal): PSpan;
var
  Bias: Cardinal;
begin
  Bias := Ord(Heap^.Current[SizeClass] = @Process.EmptySpan);
  RetireCurrent(Heap, SizeClass);
  Result := ServingSpan(Heap, SizeClass);
  if Result <> nil then
    SetCurrent(Heap, Result, Bias);
end;

function HeapLateBlock(SizeClass: Cardinal): PBlock;
var
  Heap: PHeap;
  Span: PSpan;
  Lost: PBlock;
begin
  Heap := Process.Abandoned;
  repeat
    Result := nil;
    Lost := nil;
    Span := ServingSpan(Heap, SizeClass);
    if Span <> nil then
    begin
      Result := SpanTake(Span);
      if Result = nil then
        Lost := SpanDropList(Span);
      Retire(Heap, Span);
    end;
    if (Span <> nil) and (Result = nil) then
      SpanReport(coLink, Span, Lost);
  until (Result <> nil) or (Span = nil);
end;

// ---------------------------------------------------------------------------- frees

// Makes Heap the owner of a span that is in no queue. Returns as PushTaken.
function HandOver(Heap: PHeap; Span: PSpan): Boolean;
begin
  // Release: it is in no queue before Owner says so. Pairs with HeapClaim.
  ReleaseFence;
  SetOwner(Heap, Span);
  YieldPoint;
  Result := PushTaken(Heap, Span);
end;

function HeapTakeOver(Heap: PHeap; Span: PSpan): Boolean;
begin
  ExpectRoom(Heap, Span);
  Result := HandOver(Heap, Span);
end;

function HeapClaim(Heap: PHeap; Span: PSpan): Boolean;
var
  Abandoned: PHeap;
begin
  Abandoned := Process.Abandoned;
  if (Heap^.Roomy[Span^.SizeClass] > 0) or not LockTry(Abandoned^.Lock) then
    Exit(False);
  QueueTaken(Abandoned);
  Result := OwnerOf(Span) = Abandoned;
  // Prev as it is since then: a span that another thread is just taking or leaving is in no queue.
  // Pairs with HandOver.
  AcquireFence;
  Result := Result and (Span^.Prev <> nil);
  if Result then
    QueueRemove(Abandoned, Span);
  LockLeave(Abandoned^.Lock);
end;

function EndLife(Heap: PHeap; Span: PSpan): Boolean;
begin
  Result := RemoteEndLife(Span);
  if not Result then
    Exit;
  Span^.Owner := NoOwner;
  BackedRemoveOf(Heap, Span^.SliceCount);
end;

// Takes a span that is to be released out of its queue; false: see EndLife. Under the heap's lock.
function Remove(Heap: PHeap; Span: PSpan): Boolean;
begin
  YieldPoint;
  Result := EndLife(Heap, Span);
  if Result then
    QueueRemove(Heap, Span);
end;

// Makes a span roomy whose owner missed the free that did: another thread had the lock, or had
// freed blocks. The owner, which is about to free a block of the span.
procedure RequeueOverdue(Heap: PHeap; Span: PSpan);
begin
  if not LockTry(Heap^.Lock) then
  begin
    SweepRequest;
    Exit;
  end;
  QueueTaken(Heap);
  if Span^.Prev <> nil then
  begin
    QueueRemove(Heap, Span);
    QueueAdd(Heap, Span);
  end;
  LockLeave(Heap^.Lock);
end;

function HeapAwaitedFree(Heap: PHeap; Span: PSpan): PBlock;
begin
  SetOwner(Heap, Span);
  Result := SpanCollect(Span);
  if SpanIsOverdue(Span) then
    RequeueOverdue(Heap, Span);
end;

// Releases a run, now or, if the thread keeps it for another span, later.
procedure GiveBack(Heap: PHeap; Span: PSpan);
begin
  if RunKeep(Heap, Span) then
    SweepRequest
  else
    ShardsRelease(Span);
end;

// Keeps a span without a block in use by its counts, but with a block that does not look free.
procedure KeepUncounted(Span: PSpan; Uncounted: PBlock);
begin
  SpanDropList(Span);
  SpanReport(coCount, Span, Uncounted);
end;

// HeapEmptied for a current span, which is in no queue: no thread sweeps it.
procedure CurrentEmptied(Heap: PHeap; Span: PSpan);
var
  Uncounted: PBlock;
begin
  Uncounted := SpanUncountedBlock(Span);
  if Uncounted <> nil then
  begin
    KeepUncounted(Span, Uncounted);
    Exit;
  end;
  if not EndLife(Heap, Span) then
    Exit;
  EndCurrent(Heap, Span);
  GiveBack(Heap, Span);
end;

// Makes a queued span roomy. Returns the one that Process.Abandoned is to have for it, in no queue,
// or nil: the one that became roomy before. Under the heap's lock.
function MakeRoomy(Heap: PHeap; Span: PSpan): PSpan;
begin
  QueueRemove(Heap, Span);
  QueueAdd(Heap, Span);
  if (Heap^.Roomy[Span^.SizeClass] = 1) or HeapIsOnly or (Heap^.Region <> nil) then
    Exit(nil);
  Result := Span^.Next;
  QueueRemove(Heap, Result);
end;

procedure HeapEmptied(Heap: PHeap; Span: PSpan);
var
  IsOurs: Boolean;
  Uncounted: PBlock;
  Surplus: PSpan;
begin
  // If a sweeping thread has released the span, any class here has another one.
  if Heap^.Current[Span^.SizeClass] = Span then
  begin
    CurrentEmptied(Heap, Span);
    Exit;
  end;
  if not LockTry(Heap^.Lock) then
  begin
    SweepRequest;
    Exit;
  end;
  Uncounted := nil;
  Surplus := nil;
  QueueTaken(Heap);
  // A sweeping thread may have released the span since its last block was freed, or it is to be
  // queued later.
  IsOurs := (OwnerOf(Span) = Heap) and (Span^.Used = 0);
  if IsOurs and (Span^.Prev = nil) then
  begin
    SweepRequest;
    IsOurs := False;
  end;
  if IsOurs and (Span^.Bias < 0) then
  begin
    IsOurs := False;
    Surplus := MakeRoomy(Heap, Span);
  end;
  if IsOurs then
    Uncounted := SpanUncountedBlock(Span);
  if IsOurs and (Uncounted = nil) then
    IsOurs := Remove(Heap, Span);
  LockLeave(Heap^.Lock);
  if Surplus <> nil then
    HandOver(Process.Abandoned, Surplus);
  if not IsOurs then
    Exit;
  if Uncounted = nil then
    GiveBack(Heap, Span)
  else
    KeepUncounted(Span, Uncounted);
end;

procedure HeapRetireAll(Heap: PHeap);
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
    RetireCurrent(Heap, SizeClass);
end;

procedure HeapRetireEmpty(Heap: PHeap);
var
  SizeClass: Cardinal;
  Span: PSpan;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Span := Heap^.Current[SizeClass];
    if (Span <> @Process.EmptySpan) and (SpanUsedCount(Span) = 0) then
      RetireCurrent(Heap, SizeClass);
  end;
end;

// Lets the owner's next free count the blocks that other threads have freed in the span.
// The owner may write Owner at this moment: then its value stays. Pairs with HeapAwaitedFree.
procedure AwaitFree(Heap: PHeap; Span: PSpan);
var
  Owner: NativeUInt;
begin
  Owner := NativeUInt(Span^.Owner);
  if Owner = NativeUInt(Heap) + AwaitsFree * 2 then
    Exit;
  CompareAndSwap(NativeUInt(Span^.Owner), Owner, Owner + AwaitsFree);
  SweepRequest;
end;

procedure ReleaseLarge(Heap: PHeap; Span: PSpan);
begin
  QueueRemove(Heap, Span);
  BackedRemoveOf(Heap, Span^.SliceCount);
  LargeRelease(Span);
end;

procedure SweepSpan(Heap: PHeap; Span: PSpan);
begin
  if Span^.SizeClass = LargeQueue then
  begin
    if Span^.Kind = skReleased then
      ReleaseLarge(Heap, Span);
    Exit;
  end;
  if RemoteIsUsed(Span) or SpanIsOverdue(Span) then
    AwaitFree(Heap, Span);
  // No block is in use, so no thread can free one; no thread allocates from a queued span without
  // the lock. Acquire in SpanIsEmpty: the owner's last free is complete. Pairs with SpanPut.
  // Where another thread shelves blocks just now, a later sweep releases the span.
  if SpanIsEmpty(Span) and (SpanUncountedBlock(Span) = nil) and Remove(Heap, Span) then
    ShardsRelease(Span);
end;

// Sweeps queued spans, Left at most, from where the last call ended; Left becomes less. Returns
// whether it came to the last one.
function SweepSome(Heap: PHeap; var Left: Cardinal): Boolean;
var
  Span: PSpan;
begin
  Result := False;
  while Heap^.SweepClass <= LargeQueue do
  begin
    if Left = 0 then
      Exit;
    Span := NextToSweep(Heap);
    if Span = nil then
      Continue;
    Dec(Left);
    SweepSpan(Heap, Span);
  end;
  Heap^.SweepClass := 0;
  Result := True;
end;

function HeapIsDissolving(Heap: PHeap): Boolean;
begin
  // Acquire: the current spans are in queues, or on Taken. Pairs with RegionHeapDissolve.
  Result := (Heap^.Region <> nil) and (LoadAcquire(Heap^.Dissolves) <> 0);
end;

// Sweeps all queued spans.
procedure SweepQueued(Heap: PHeap);
var
  Left: Cardinal;
begin
  Heap^.SweepLast := nil;
  Heap^.SweepClass := 0;
  Left := High(Left);
  SweepSome(Heap, Left);
end;

procedure HeapSweepQueued(Heap: PHeap);
begin
  if not LockTry(Heap^.Lock) then
  begin
    SweepRequest;
    Exit;
  end;
  QueueAllTaken(Heap);
  if not HeapIsDissolving(Heap) then // else RegionHeapSweep goes on
    SweepQueued(Heap);
  LockLeave(Heap^.Lock);
end;

function HeapSweepSome(Heap: PHeap; var Left: Cardinal): Boolean;
begin
  Result := True;
  if HeapIsDissolving(Heap) or not LockTry(Heap^.Lock) then
  begin
    SweepRequest;
    Exit;
  end;
  QueueTaken(Heap);
  Result := SweepSome(Heap, Left) and not HasArriving(Heap);
  LockLeave(Heap^.Lock);
end;

procedure HeapSweep(Heap: PHeap);
begin
  if not RunsRelease(Heap, 1) then
    SweepRequest;
  HeapSweepQueued(Heap);
end;

// ---------------------------------------------------------------------------- thread end

procedure MoveQueue(Source, Target: PHeap; SizeClass: Cardinal);
var
  Span: PSpan;
begin
  repeat
    Span := QueueTake(Source, SizeClass);
    if Span = nil then
      Exit;
    HandOver(Target, Span);
  until False;
end;

// Adds the counts of an ended thread to those of all.
procedure MoveCounts(Source, Target: PHeap);
begin
  FetchAdd(Target^.Realloc.Calls, Source^.Realloc.Calls);
  FetchAdd(Target^.Realloc.Moves, Source^.Realloc.Moves);
  FetchAdd(Target^.Realloc.CopiedBytes, Source^.Realloc.CopiedBytes);
  FillChar(Source^.Realloc, SizeOf(Source^.Realloc), 0);
end;

function HeapAbandonQueued(Heap: PHeap): Boolean;
var
  SizeClass: Cardinal;
begin
  RunsReleaseOwn(Heap);
  Result := LockTry(Heap^.Lock);
  if not Result then
    Exit;
  QueueAllTaken(Heap);
  SweepQueued(Heap);
  for SizeClass := 0 to SizeClassCount - 1 do
    MoveQueue(Heap, Process.Abandoned, SizeClass);
  MoveCounts(Heap, Process.Abandoned);
  LockLeave(Heap^.Lock);
end;

function HeapAbandon(Heap: PHeap): Boolean;
begin
  HeapRetireAll(Heap);
  Result := HeapAbandonQueued(Heap);
end;

procedure HeapRequeue(Heap: PHeap; Span: PSpan);
begin
  Span^.Prev := nil; // it was in a queue that HeapReset has dropped
  EndBias(Span);
  Retire(Heap, Span);
end;

procedure HeapReset(Heap: PHeap);
begin
  FillChar(Heap^.Queues, SizeOf(Heap^.Queues), 0);
  FillChar(Heap^.Roomy, SizeOf(Heap^.Roomy), 0);
  Heap^.Arriving := nil;
  Heap^.SweepLast := nil;
  Heap^.SweepClass := 0;
  Heap^.Taken := 0;
  LockReset(Heap^.Lock);
end;

end.
