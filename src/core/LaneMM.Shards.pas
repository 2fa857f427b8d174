/// Takes spans from free runs and from the frontier, and purges free memory.
//
// Owns:       TShard.Released, WarmLow.
// Invariants: a released span waits on its shard's Released list while another thread has the lock;
//             that thread checks the list again after it leaves the lock, so no span is lost.
// Shards:     a thread looks in its home shard first. Warm runs of all shards go before cold ones,
//             unless addresses are scarce; a shard whose lock is taken is passed over.
// Callers:    any thread.
// Progress:   no thread waits for another: a lock is taken only if it is free, but ShardsPurge
//             tries a while. All else is lock-free, but for the system calls.
unit LaneMM.Shards;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// For ShardsPurge: all free slices.
  AllSlices = High(NativeUInt) shr 1;
  /// Slices that a shard gets from the frontier at once.
  StepSlices = 64;

/// Takes a run of slices for the caller to format: Start, SliceCount and IsZero are set. Nil when
/// the system or a hard limit refuses memory. The caller owns the run until ShardsRelease. IsDense:
/// the caller expects to touch all of it, and as much again soon: it may come from a huge page.
function ShardsTake(SliceCount: NativeUInt; IsDense: Boolean = False): PSpan;
/// Takes a run like ShardsTake, from slices that are not backed yet, with SpareCount more slices at
/// the end that may stay unused: they are not counted in Process.Backed.
function ShardsTakeSpare(SliceCount, SpareCount: NativeUInt): PSpan;
/// Counts the first spare slices of a span as backed, which the caller is about to use. Returns
/// false, and changes nothing, when the system or the hard limit refuses them.
function ShardsUseSpare(Span: PSpan; SliceCount: NativeUInt): Boolean;
/// Undoes ShardsUseSpare: the slices were not used.
procedure ShardsUnuseSpare(SliceCount: NativeUInt);
/// Makes a span a free run. No thread may use its blocks any more.
procedure ShardsRelease(Span: PSpan);
/// Makes a span that reads as zeros a free run: its pages were never touched, or moved away.
procedure ShardsReleaseZero(Span: PSpan);
/// Makes a run that was not touched since ShardsTake free again.
procedure ShardsReleaseUnused(Span: PSpan);
/// Lengthens a span without spare slices in place to SliceCount slices. Returns false, and changes
/// nothing, when the slices after it are not free, or another thread has their shard, or a hard
/// limit refuses them.
function ShardsGrow(Span: PSpan; SliceCount: NativeUInt): Boolean;
/// Returns the free slices right behind a span that ShardsGrow could take now; others may take them
/// first.
function ShardsRoom(Span: PSpan): NativeUInt;
/// Shortens a span in place to SliceCount slices. Returns the rest, spare slices included, a span
/// of its own that the caller releases.
function ShardsSplit(Span: PSpan; SliceCount: NativeUInt): PSpan;

/// Returns the slices of warm runs; may be out of date while other threads run.
function ShardsWarmSlices: NativeUInt;
/// Returns true if a free run or a released span is warm, of any shard.
function ShardsHaveWarm: Boolean;
/// Purges at most SliceCount warm slices, of each shard those unused for longest. A shard that
/// another thread keeps is left out.
procedure ShardsPurge(SliceCount: NativeUInt);
/// Ends the system's charge for free slices that are not backed, once it has refused memory. A
/// shard that another thread keeps is left out.
procedure ShardsUncharge;
/// Purges the warm slices that stayed free since the last call of this routine. Memory that is
/// taken and released all the time stays warm.
procedure ShardsPurgeIdle;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.Backed, LaneMM.FreeRuns, LaneMM.Arena;

const
  // Runs checked in the bin whose runs may be too short: before a longer run is cut, without one.
  FewTries = 8;
  AllTries = High(NativeUInt);

// ---------------------------------------------------------------------------- shards

// Returns the number of the shard at this place, from 1 on; behind ShardCount they begin again.
function ShardNumber(Place: NativeUInt): NativeUInt; inline;
begin
  Result := (Place - 1) and (Process.ShardCount - 1) + 1;
end;

function ShardAt(Place: NativeUInt): PShard;
begin
  Result := @Process.Shards[ShardNumber(Place)];
end;

// Returns the number of the calling thread's home shard.
function Home: NativeUInt;
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if Heap = nil then
    Exit(1);
  Result := Heap^.HomeShard;
end;

function ShardsWarmSlices: NativeUInt;
var
  Number: NativeUInt;
begin
  Result := 0;
  for Number := 1 to Process.ShardCount do
    Inc(Result, Process.Shards[Number].WarmSlices);
end;

function ShardsHaveWarm: Boolean;
var
  Number: NativeUInt;
begin
  Result := True;
  for Number := 1 to Process.ShardCount do
    if (Process.Shards[Number].WarmSlices <> 0)
      or (LoadAcquire(Process.Shards[Number].Released) <> 0) then
      Exit;
  Result := False;
end;

// Returns the record of the slices of a run from number Skipped on.
function PartOf(Run: PSpan; Skipped: NativeUInt): PSpan;
begin
  Result := Run + Skipped;
  Result^.Start := Run^.Start + Skipped * SliceSize;
  Result^.Shard := Run^.Shard;
end;

// Makes a released span a free run, under the lock. Its spare slices, never touched, become a cold
// run of their own.
procedure AddFree(Span: PSpan);
var
  Spare: PSpan;
begin
  if Span^.IsWarm and (Span^.SpareCount <> 0) then
  begin
    Dec(Span^.SliceCount, Span^.SpareCount);
    Spare := PartOf(Span, Span^.SliceCount);
    FreeRunAdd(Spare, Span^.SpareCount, False);
  end;
  FreeRunAdd(Span, Span^.SliceCount, Span^.IsWarm);
end;

procedure FreeReleased(Shard: PShard);
var
  Span, Next: PSpan;
begin
  if LoadAcquire(Shard^.Released) = 0 then
    Exit;
  // Acquire: see the links. Pairs with the push in Release.
  Span := PSpan(Swap(Shard^.Released, 0));
  while Span <> nil do
  begin
    Next := Span^.Next;
    AddFree(Span);
    Span := Next;
  end;
end;

procedure ShardLeave(Shard: PShard);
begin
  repeat
    FreeReleased(Shard);
    LockLeave(Shard^.Lock);
    // LockLeave is a full barrier: either this load sees a push, or the LockTryAgain that follows
    // the push finds the lock free. Pairs with Release.
  until (LoadAcquire(Shard^.Released) = 0) or not LockTryAgain(Shard^.Lock);
end;

// Updates WarmLow after warm slices were taken. Under the lock.
procedure NoteWarm(Shard: PShard); inline;
begin
  if Shard^.WarmSlices < Shard^.WarmLow then
    Shard^.WarmLow := Shard^.WarmSlices;
end;

// ---------------------------------------------------------------------------- release

procedure Release(Span: PSpan);
var
  Shard: PShard;
  Head: TAtomicWord;
begin
  Shard := ShardOf(Span);
  Span^.Owner := NoOwner;
  YieldPoint;
  Span^.Kind := skReleased;
  if LockTry(Shard^.Lock) then
  begin
    AddFree(Span);
    ShardLeave(Shard);
    Exit;
  end;
  repeat
    Head := LoadAcquire(Shard^.Released);
    Span^.Next := PSpan(Head);
    // Release: the span's fields before the list. Pairs with FreeReleased. No operation pops one
    // span, hence no ABA.
  until CompareAndSwap(Shard^.Released, Head, NativeUInt(Span));
  if LockTryAgain(Shard^.Lock) then
    ShardLeave(Shard);
end;

procedure ShardsRelease(Span: PSpan);
begin
  LockRecover; // before the span is none of those in use
  Span^.IsWarm := True;
  Release(Span);
end;

procedure ShardsReleaseZero(Span: PSpan);
begin
  LockRecover; // as above
  BackedRemove(Span^.SliceCount - Span^.SpareCount);
  Span^.IsWarm := False;
  Release(Span);
end;

procedure ShardsReleaseUnused(Span: PSpan);
begin
  if Span^.IsZero then
    ShardsReleaseZero(Span)
  else
    ShardsRelease(Span);
end;

// ---------------------------------------------------------------------------- take

// Takes a warm or a cold run of the shard if its lock is free; nil if none.
function TakeOf(Shard: PShard; IsWarm: Boolean; SliceCount, Tries: NativeUInt): PSpan;
begin
  if not LockTry(Shard^.Lock) then
    Exit(nil);
  if not IsWarm then
    Result := FreeRunTake(Shard^.Cold, SliceCount, Tries)
  else if (Tries <> AllTries) and FrontierIsScarce then
    Result := FreeRunTakeFitting(Shard, SliceCount, Tries)
  else
    Result := FreeRunTake(Shard^.Warm, SliceCount, Tries);
  NoteWarm(Shard);
  ShardLeave(Shard);
  if Result <> nil then
    Result^.IsZero := not IsWarm;
end;

// TakeOf any shard, the first of them first, that seems to have so many slices.
function TakeFree(First: NativeUInt; IsWarm: Boolean; SliceCount, Tries: NativeUInt): PSpan;
var
  Number, Available: NativeUInt;
  Shard: PShard;
begin
  Result := nil;
  for Number := First to First + Process.ShardCount - 1 do
  begin
    Shard := ShardAt(Number);
    Available := Shard^.ColdSlices;
    if IsWarm then
      Available := Shard^.WarmSlices;
    if Available >= SliceCount then
      Result := TakeOf(Shard, IsWarm, SliceCount, Tries);
    if Result <> nil then
      Exit;
  end;
end;

// Makes slices that were never used a cold run of this shard; they are not counted as backed.
procedure ReleaseNew(Span: PSpan; SliceCount, Number: NativeUInt);
begin
  Span^.SliceCount := SliceCount;
  Span^.SpareCount := 0;
  Span^.IsWarm := False;
  Span^.Shard := Number;
  Release(Span);
end;

// Returns the number of the first shard from Number on whose lock is free; 0 if there is none.
function FreeShard(First: NativeUInt): NativeUInt;
var
  Number: NativeUInt;
begin
  for Number := First to First + Process.ShardCount - 1 do
    if LoadAcquire(ShardAt(Number)^.Lock.State) = 0 then
      Exit(ShardNumber(Number));
  Result := 0;
end;

// Takes slices that were never used: StepSlices if a shard is free to keep the rest, and the rest
// holds as many again. A shorter one would serve no run of the next block of this size.
function TakeNew(First, SliceCount: NativeUInt): PSpan;
var
  Number, Count, TailCount: NativeUInt;
  Tail: PSpan;
begin
  Count := SliceCount;
  Number := FreeShard(First);
  if Number = 0 then
    Number := First
  else if Count * 2 <= StepSlices then
    Count := StepSlices;
  if Process.IsNarrow then
    Count := SliceCount;
  Result := FrontierTake(Count, Tail, TailCount);
  if Tail <> nil then
    ReleaseNew(Tail, TailCount, Number);
  if (Result = nil) and (Count > SliceCount) then
  begin
    Count := SliceCount;
    Result := FrontierTake(Count, Tail, TailCount);
    if Tail <> nil then
      ReleaseNew(Tail, TailCount, Number);
  end;
  if Result = nil then
    Exit;
  Result^.Shard := Number;
  Result^.IsZero := True;
  if Count = SliceCount then
    Exit;
  ReleaseNew(PartOf(Result, SliceCount), Count - SliceCount, Number);
end;

// Takes a run made of warm and cold ones if need be: then all warm ones are purged.
function TakeJoined(First, SliceCount: NativeUInt): PSpan;
begin
  Result := TakeFree(First, False, SliceCount, AllTries);
  if (Result <> nil) or (SliceCount = 1) or not ShardsHaveWarm then
    Exit;
  ShardsPurge(AllSlices);
  Result := TakeFree(First, False, SliceCount, AllTries);
end;

// Takes slices that were counted as backed, but not warm ones.
function TakeUnbacked(First, SliceCount: NativeUInt): PSpan;
begin
  Result := TakeFree(First, False, SliceCount, FewTries);
  if (Result = nil) and FrontierIsScarce then
    Result := TakeJoined(First, SliceCount);
  if Result = nil then
    Result := TakeNew(First, SliceCount);
  if Result = nil then
    Result := TakeFree(First, False, SliceCount, AllTries);
end;

// Backs a range of HugeSlices, all zero, by one huge page, if the system has one; False when it
// refuses the memory. Small pages stay the rule there: what is purged and touched again is backed
// page by page.
function BackByHugePage(P: PByte): Boolean;
begin
  Result := OsUse(P, HugeSlices * SliceSize);
  if not Result then
    Exit;
  OsUseHugePages(P, HugeSlices * SliceSize);
  P^ := 0;
  OsUseSmallPages(P, HugeSlices * SliceSize);
end;

// Returns the slices of a run in front of its first huge page.
function SlicesBefore(Run: PSpan): NativeUInt;
begin
  Result := (0 - NativeUInt(Run^.Start) shr SliceShift) and (HugeSlices - 1);
end;

// Takes the slices of whole huge pages, SliceCount of them, not backed; nil without memory. At the
// frontier they follow each other: a cold gap would keep them apart when they are free.
function TakeHugeSlices(First, SliceCount: NativeUInt): PSpan;
var
  Run: PSpan;
  Skipped: NativeUInt;
begin
  Run := TakeUnbacked(First, SliceCount);
  if (Run = nil) or (SlicesBefore(Run) = 0) then
    Exit(Run);
  Skipped := SlicesBefore(Run);
  if not FrontierGrow(Run + SliceCount, Skipped) then
  begin
    ReleaseNew(Run, SliceCount, Run^.Shard);
    Run := TakeUnbacked(First, SliceCount + HugeSlices - 1); // has them
    if Run = nil then
      Exit(nil);
    Skipped := SlicesBefore(Run);
    if Skipped < HugeSlices - 1 then
      ReleaseNew(PartOf(Run, Skipped + SliceCount), HugeSlices - 1 - Skipped, Run^.Shard);
  end;
  Result := Run;
  if Skipped = 0 then
    Exit;
  Result := PartOf(Run, Skipped);
  ReleaseNew(Run, Skipped, Run^.Shard);
end;

// Takes slices from the start of a huge page on. The rest of the last huge page becomes warm; that
// one is backed now, those before it are the caller's. Nil without memory.
function TakeOfHugePages(First, SliceCount: NativeUInt): PSpan;
var
  Rest: PSpan;
  Whole: NativeUInt;
begin
  Whole := AlignUp(SliceCount, HugeSlices);
  if not BackedAdd(Whole) then
    Exit(nil);
  Result := TakeHugeSlices(First, Whole);
  if Result = nil then
  begin
    BackedRemove(Whole);
    Exit;
  end;
  Result^.IsZero := True;
  if Whole = SliceCount then
    Exit;
  Rest := PartOf(Result, SliceCount);
  Rest^.SliceCount := Whole - SliceCount;
  Rest^.SpareCount := 0;
  if BackByHugePage(Result^.Start + (Whole - HugeSlices) * SliceSize) then
    ShardsRelease(Rest)
  else
    ShardsReleaseZero(Rest);
end;

// Takes a run without spare slices; nil if there is none.
function Take(First, SliceCount: NativeUInt; IsDense: Boolean): PSpan;
begin
  Result := TakeFree(First, True, SliceCount, FewTries);
  if (Result = nil) and IsDense then
    Result := TakeOfHugePages(First, SliceCount);
  if Result <> nil then
    Exit;
  if BackedAdd(SliceCount) then
  begin
    Result := TakeUnbacked(First, SliceCount);
    if Result <> nil then
      Exit;
    BackedRemove(SliceCount);
  end;
  Result := TakeFree(First, True, SliceCount, AllTries);
end;

// Takes a run with spare slices, none of them warm; nil if there is none.
function TakeSpare(First, SliceCount, SpareCount: NativeUInt): PSpan;
begin
  if not BackedAdd(SliceCount) then
    Exit(nil);
  Result := TakeUnbacked(First, SliceCount + SpareCount);
  if Result = nil then
    BackedRemove(SliceCount);
end;

// Completes a run just taken, which may be nil. Returns nil if the system refuses its memory.
function Finish(Span: PSpan; SliceCount, SpareCount: NativeUInt): PSpan;
begin
  Result := Span;
  if Span = nil then
    Exit;
  Span^.SliceCount := SliceCount + SpareCount;
  Span^.Traits := [];
  Span^.IsHuge := False;
  Span^.SpareCount := SpareCount;
  Span^.Owner := NoOwner;
  if not Span^.IsZero or OsUse(Span^.Start, SliceCount * SliceSize) then
    Exit;
  ShardsReleaseZero(Span);
  Result := nil;
end;

// Purges warm slices so that SliceCount others fit below the hard limit, which refused them.
// Returns false if there is no warm slice, or the limit was not the reason.
function MakeWay(SliceCount: NativeUInt): Boolean;
var
  Missing: NativeInt;
begin
  Missing := BackedSlices + SliceCount - Process.Limits[lkHard].Slices;
  Result := BackedExceeds(lkHard, SliceCount) and ShardsHaveWarm;
  if Result and (Missing > 0) then
    ShardsPurge(Missing);
end;

// Purges as many warm slices as were taken of others, where more are warm than in use beside these:
// freed memory is warm, too, and would add up while blocks grow and shrink.
procedure Exchange(SliceCount: NativeUInt);
begin
  if ShardsWarmSlices > NativeUInt(BackedSlices - SliceCount) div 2 then
    ShardsPurge(SliceCount);
end;

function ShardsTake(SliceCount: NativeUInt; IsDense: Boolean): PSpan;
begin
  if SliceCount > MaxRunSlices then
    Exit(nil);
  LockRecover; // before slices are taken that a recovery would take for lost ones
  IsDense := OsHasHugePages and IsDense and (Process.HugeFrom <> 0) and not FrontierIsScarce;
  Result := Take(Home, SliceCount, IsDense);
  if (Result = nil) and MakeWay(SliceCount) then
    Result := Take(Home, SliceCount, False);
  Result := Finish(Result, SliceCount, 0);
  if (Result <> nil) and Result^.IsZero then
    Exchange(SliceCount);
end;

function ShardsTakeSpare(SliceCount, SpareCount: NativeUInt): PSpan;
begin
  if SliceCount + SpareCount > MaxRunSlices then
    Exit(nil);
  LockRecover; // as above
  Result := TakeSpare(Home, SliceCount, SpareCount);
  if (Result = nil) and MakeWay(SliceCount) then
    Result := TakeSpare(Home, SliceCount, SpareCount);
  Result := Finish(Result, SliceCount, SpareCount);
  if Result <> nil then
    Exchange(SliceCount);
end;

// ---------------------------------------------------------------------------- in place

function ShardsUseSpare(Span: PSpan; SliceCount: NativeUInt): Boolean;
begin
  if SliceCount = 0 then
    Exit(True);
  Result := BackedAdd(SliceCount) or MakeWay(SliceCount) and BackedAdd(SliceCount);
  if not Result then
    Exit;
  Result := OsUse(Span^.Start + (Span^.SliceCount - Span^.SpareCount) * SliceSize,
    SliceCount * SliceSize);
  if Result then
    Exchange(SliceCount)
  else
    BackedRemove(SliceCount);
end;

procedure ShardsUnuseSpare(SliceCount: NativeUInt);
begin
  BackedRemove(SliceCount);
end;

// Takes Count slices from the front of Run, if it is a free run that has them, of Span's shard.
function TakeNeighbour(Span, Run: PSpan; Count: NativeUInt): Boolean;
var
  Shard: PShard;
  IsWarm: Boolean;
begin
  Shard := ShardOf(Span);
  if (Run^.Shard <> Span^.Shard) or not IsFreeRun(Run) or not LockTry(Shard^.Lock) then
    Exit(False);
  IsWarm := Run^.IsWarm;
  Result := IsFreeRun(Run) and (Run^.SliceCount >= Count) and (IsWarm or BackedAdd(Count));
  if Result then
  begin
    FreeRunCut(Run, Count);
    NoteWarm(Shard);
  end;
  ShardLeave(Shard);
  if Result and not IsWarm then
    Exchange(Count);
end;

// Takes the slices after Span if they were never used. Returns whether it did, before Exchange.
function GrowIntoFrontier(SpanEnd: PSpan; Count: NativeUInt): Boolean;
begin
  if not BackedAdd(Count) then
    Exit(False);
  Result := FrontierGrow(SpanEnd, Count);
  if not Result then
    BackedRemove(Count);
end;

// Releases Count slices from number First of Span on, past its end, that were counted and not used.
procedure ReturnSlices(Span: PSpan; First, Count: NativeUInt);
begin
  BackedRemove(Count);
  ReleaseNew(PartOf(Span, First), Count, Span^.Shard);
end;

// Takes Missing slices from Run on, a shorter free run that ends at the frontier, if it can.
function TakeOverFrontier(Span, Run: PSpan; Missing: NativeUInt): Boolean;
var
  Count: NativeUInt;
begin
  Count := Run^.SliceCount;
  if (Run^.Shard <> Span^.Shard) or not IsFreeRun(Run) or (Count >= Missing)
    or not GrowIntoFrontier(Run + Count, Missing - Count) then
    Exit(False);
  Result := TakeNeighbour(Span, Run, Count);
  if Result then
    Exchange(Missing - Count) // not before: it may purge a part of the run
  else
    ReturnSlices(Span, Span^.SliceCount + Count, Missing - Count);
end;

// Takes Missing slices right behind Span. Returns whether it did.
function TakeBehind(Span: PSpan; Missing: NativeUInt): Boolean;
var
  SpanEnd: PSpan;
begin
  SpanEnd := Span + Span^.SliceCount;
  if TakeNeighbour(Span, SpanEnd, Missing) or TakeOverFrontier(Span, SpanEnd, Missing) then
    Exit(True);
  Result := GrowIntoFrontier(SpanEnd, Missing);
  if Result then
    Exchange(Missing);
end;

function ShardsGrow(Span: PSpan; SliceCount: NativeUInt): Boolean;
var
  Missing: NativeUInt;
begin
  if SliceCount > MaxRunSlices then
    Exit(False);
  Missing := SliceCount - Span^.SliceCount;
  Result := TakeBehind(Span, Missing) or MakeWay(Missing) and TakeBehind(Span, Missing);
  if not Result then
    Exit;
  Result := OsUse(Span^.Start + Span^.SliceCount * SliceSize, Missing * SliceSize);
  if not Result then
  begin
    OsPurge(Span^.Start + Span^.SliceCount * SliceSize, Missing * SliceSize);
    ReturnSlices(Span, Span^.SliceCount, Missing);
    Exit;
  end;
  Span^.SliceCount := SliceCount;
  Span^.IsZero := False;
end;

function ShardsRoom(Span: PSpan): NativeUInt;
var
  Run: PSpan;
begin
  Result := 0;
  Run := Span + Span^.SliceCount;
  if (Run^.Shard = Span^.Shard) and IsFreeRun(Run) then
    Result := Run^.SliceCount;
end;

function ShardsSplit(Span: PSpan; SliceCount: NativeUInt): PSpan;
begin
  Result := PartOf(Span, SliceCount);
  Result^.IsHuge := Span^.IsHuge;
  Result^.Traits := Span^.Traits;
  Result^.SpareCount := Span^.SpareCount;
  Span^.SpareCount := 0;
  Result^.SliceCount := Span^.SliceCount - SliceCount;
  Span^.SliceCount := SliceCount;
end;

// ---------------------------------------------------------------------------- purge

// Takes the lock of a shard; returns false if another thread keeps it.
function Enter(Shard: PShard): Boolean;
var
  Turn: Cardinal;
begin
  for Turn := 0 to Process.SpinLimit do
  begin
    if LockTryAgain(Shard^.Lock) then
      Exit(True);
    SpinHint;
  end;
  Result := False;
end;

// Takes at most SliceCount slices of the warm run unused for longest; nil if none.
function TakeOldest(Shard: PShard; SliceCount: NativeUInt): PSpan;
begin
  if not Enter(Shard) then
    Exit(nil);
  FreeReleased(Shard);
  Result := Shard^.Oldest;
  if Result <> nil then
  begin
    if SliceCount > Result^.SliceCount then
      SliceCount := Result^.SliceCount;
    FreeRunCut(Result, SliceCount);
    Result^.SliceCount := SliceCount;
    NoteWarm(Shard);
  end;
  ShardLeave(Shard);
end;

// Returns whether threads read memory that others may free.
function IsHeld: Boolean;
begin
  Result := LoadAcquire(Process.PurgesHeld) <> 0;
end;

// Purges a range, and ends its charge where the system charges for it or has refused memory. While
// a thread may read it, the next trim does so.
function Purge(P: PByte; Size: NativeUInt): Boolean;
begin
  if LoadAcquire(Process.Refused) = 0 then
    Exit(OsPurge(P, Size));
  if not IsHeld then
    Exit(OsUncharge(P, Size));
  OsUnchargeLater;
  Result := OsPurge(P, Size);
end;

// Purges at most SliceCount slices of the warm run unused for longest; returns how many. While its
// caller is counted in Process.PurgesUnderWay: pairs with PurgeHold.
function PurgeOldest(Shard: PShard; SliceCount: NativeUInt): NativeUInt;
var
  Span: PSpan;
begin
  Result := 0;
  if not OsPurgedIsCommitted and IsHeld then
    Exit;
  Span := TakeOldest(Shard, SliceCount);
  if Span = nil then
    Exit;
  Result := Span^.SliceCount;
  Span^.SpareCount := 0;
  OsErase(Span^.Start, Result * SliceSize);
  if Purge(Span^.Start, Result * SliceSize) then
    ShardsReleaseZero(Span)
  else
    ShardsRelease(Span);
end;

// Purges at most SliceCount warm slices of the shard; returns how many.
function PurgeShard(Shard: PShard; SliceCount: NativeUInt): NativeUInt;
var
  Limit, Purged: NativeUInt;
begin
  Result := 0;
  if not Enter(Shard) then
    Exit;
  ShardLeave(Shard); // its released spans are warm now
  // The slices warm now and no more: other threads may free faster than this loop purges.
  Limit := Shard^.WarmSlices;
  if SliceCount < Limit then
    Limit := SliceCount;
  while Result < Limit do
  begin
    // A child process that was forked meanwhile finds the slices in no list.
    FetchAdd(Process.PurgesUnderWay, 1);
    Purged := PurgeOldest(Shard, Limit - Result);
    FetchAdd(Process.PurgesUnderWay, NativeUInt(-1));
    if Purged = 0 then
      Exit;
    Inc(Result, Purged);
  end;
end;

procedure ShardsPurge(SliceCount: NativeUInt);
var
  Number: NativeUInt;
begin
  for Number := 1 to Process.ShardCount do
    Dec(SliceCount, PurgeShard(@Process.Shards[Number], SliceCount));
end;

procedure UnchargeCold(Shard: PShard);
var
  Run: PSpan;
begin
  if not Enter(Shard) then
  begin
    OsUnchargeLater;
    Exit;
  end;
  Run := FreeRunNext(Shard^.Cold, nil);
  while Run <> nil do
  begin
    Purge(Run^.Start, Run^.SliceCount * SliceSize);
    Run := FreeRunNext(Shard^.Cold, Run);
  end;
  ShardLeave(Shard);
end;

procedure ShardsUncharge;
var
  Number: NativeUInt;
begin
  if OsPurgedIsCommitted and CompareAndSwap(Process.Refused, RefusedOnce, RefusedAndUncharged) then
    for Number := 1 to Process.ShardCount do
    begin
      FetchAdd(Process.PurgesUnderWay, 1);
      UnchargeCold(@Process.Shards[Number]);
      FetchAdd(Process.PurgesUnderWay, NativeUInt(-1));
    end;
end;

procedure ShardsPurgeIdle;
var
  Number, Idle: NativeUInt;
  Shard: PShard;
begin
  for Number := 1 to Process.ShardCount do
  begin
    Shard := @Process.Shards[Number];
    if not Enter(Shard) then
      Continue;
    Idle := Shard^.WarmLow;
    Shard^.WarmLow := Shard^.WarmSlices;
    ShardLeave(Shard);
    PurgeShard(Shard, Idle);
  end;
end;

end.
