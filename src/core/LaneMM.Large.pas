/// Large blocks: one block, one run of slices.
//
// Owns:       TSpan.BlockSize of large blocks: the usable bytes, whole pages; TSpan.SpareCount,
//             Traits and Keeper; Process.MovedSpans.
// Invariants: BlockSize ends in the last slice before the SpareCount spare ones. Where there are
//             none, it may end in an earlier slice: that of a kept run. Spare slices were never
//             touched through this block; the block grows into them without a move.
// Frees:      a block that a thread takes from its kept runs has its heap as keeper, whose thread
//             ends its life by a plain store, in its section (LaneMM.KeptRuns). Another thread
//             marks the block by a compare-and-swap and passes OsBarrier. If the keeper's section
//             is not about this block then, no later one frees it: it sees the mark. Of two that
//             free a block at the same moment one goes on, even if neither waits for the other.
//             Both are refused, and the block is lost, when the keeper's thread is stopped in that
//             section meanwhile. Where OsBarrier begins to fail (a sandbox), such a free at that
//             moment is not detected.
// No barrier: without Process.HasBarrier no block has a keeper; every free is a compare-and-swap.
// Callers:    any thread; the block belongs to the caller. LargeKeep, LargeGetKept: the heap's
//             thread.
unit LaneMM.Large;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Returns whether the system could ever back a block of Size bytes.
function LargeIsPossible(Size: NativeUInt): Boolean;
/// Allocates a block of at least Size bytes, rounded to pages; nil when there is no memory.
/// MayBeHuge: the block, not a part of it, is used.
function LargeGet(Size: NativeUInt; MayBeHuge: Boolean = True): PSpan;
/// Allocates such a block from the runs that the heap keeps; nil if it has none.
function LargeGetKept(Heap: PHeap; Size: NativeUInt): PSpan;
/// Makes the run Span, taken and with its Owner and IsZero, a block of at least Size bytes.
procedure LargeFormat(Span: PSpan; Size: NativeUInt; Keeper: PHeap = nil);
/// Frees the block.
procedure LargeFree(Span: PSpan);
/// Ends the life of a block that is freed; Word was its RemoteWord, Heap is the calling thread's or
/// nil. Returns false if another thread frees it or has freed it. Never waits.
function LargeEndLife(Heap: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
/// Keeps the run of a block whose life has ended for the next large block of the heap's thread;
/// false if it has no room: then to be released.
function LargeKeep(Heap: PHeap; Span: PSpan): Boolean;
/// Releases the run of a block whose life has ended.
procedure LargeRelease(Span: PSpan);
/// Returns the most usable bytes that the block could have in place now.
function LargeRoom(Span: PSpan): NativeUInt;
/// Makes the usable size at least Size in place. Returns false, and changes nothing, if it cannot.
function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
/// Reduces the usable size to Size, rounded up to pages.
procedure LargeShrink(Span: PSpan; Size: NativeUInt);
/// Moves the block to a new place of Size usable bytes, no fewer than it has; moves its pages where
/// the system can, else copies. Copied is the number of bytes copied. Nil, and nothing changed,
/// when there is no memory.
function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;


implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.RemoteList,
  LaneMM.Arena, LaneMM.Shards, LaneMM.Huge, LaneMM.KeptRuns;

const
  // Below this size a block moves to pages that are backed already, if there are any.
  SmallestSpare = 4 * 1024 * 1024;
  // Below this many bytes copying is cheaper than moving pages, whose old place must then be backed
  // anew.
  SmallestMove = SmallestSpare;
  // Each range that pages were moved to costs some mappings, of which a process may have 65,530;
  // above this number blocks are copied.
  MostMoved = 4096;

function SlicesFor(Size: NativeUInt): NativeUInt; inline;
begin
  Result := AlignUp(Size, SliceSize) shr SliceShift;
end;

function LargeIsPossible(Size: NativeUInt): Boolean;
begin
  Result := (Size <= MaxRunSlices shl SliceShift) and FrontierCanBack(Size);
end;

// Overwrites the link that a block of a former span may have left where Span begins: ReallocMem
// would copy it into a block, which would then look free.
procedure Forget(Span: PSpan);
begin
  if not Span^.IsZero then
    PBlock(Span^.Start)^.Link := HandedOut;
end;

// ---------------------------------------------------------------------------- end of life

// LargeEndLife for the keeper's thread.
function EndByKeeper(Heap: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
begin
  RunsEnter(Heap, Span);
  Result := RemoteEndOwnLife(Span, Word);
  RunsLeave(Heap);
end;

// LargeEndLife for another thread than that of Keeper, whose next blocks have no keeper then: a
// barrier for each free would cost more than the atomic operations.
function EndByOther(Keeper: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
begin
  Result := RemoteMark(Span, Word);
  if not Result then
    Exit;
  Keeper^.Keeper := nil;
  OsBarrier;
  Result := RunsSectionEnds(Keeper, Span) and RemoteEndMarked(Span, Word);
end;

function LargeEndLife(Heap: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
var
  Keeper: PHeap;
begin
  Keeper := Span^.Keeper;
  if Keeper = nil then
    Result := RemoteTryEndLife(Span, Word)
  else if Keeper = Heap then
    Result := EndByKeeper(Heap, Span, Word)
  else
    Result := EndByOther(Keeper, Span, Word);
end;

// ---------------------------------------------------------------------------- get and free

procedure LargeFormat(Span: PSpan; Size: NativeUInt; Keeper: PHeap);
begin
  Span^.BlockSize := AlignUp(Size, OsPageSize);
  RemoteStartGivenUp(Span);
  Span^.Keeper := Keeper;
  Forget(Span);
  Span^.Used := 1;
  Span^.DivideMagic := 1;
  Span^.CarvedBytes := 1;
  // Release: the record before its kind. Pairs with VisitArena.
  ReleaseFence;
  Span^.Kind := skLarge;
end;

function LargeGetKept(Heap: PHeap; Size: NativeUInt): PSpan;
var
  SliceCount: NativeUInt;
begin
  Result := nil;
  SliceCount := NativeUInt(Size - 1) shr SliceShift + 1;
  if SliceCount <= LongestKept then
    Result := RunTakeServing(Heap, SliceCount);
  if Result <> nil then
    LargeFormat(Result, Size, Heap^.Keeper);
end;

// Returns the slices that a block which had to move takes to grow into.
function SpareFor(Size: NativeUInt): NativeUInt;
begin
  if not Process.HasSpare then
    Result := 0
  else if FrontierIsScarce then
    Result := SlicesFor(Size) * (SavingGrowthFactor - 1)
  else
    Result := SlicesFor(Size) * (GrowthFactor - 1);
end;

function LargeGet(Size: NativeUInt; MayBeHuge: Boolean): PSpan;
var
  IsHuge: Boolean;
begin
  if not LargeIsPossible(Size) then
    Exit(nil);
  IsHuge := MayBeHuge and HugeIsWanted(SlicesFor(Size));
  Result := ShardsTake(SlicesFor(Size), IsHuge);
  if Result = nil then
    Exit;
  LargeFormat(Result, Size);
  HugePrepare(Result, IsHuge);
end;

// LargeGet with spare slices to grow into, if there is so much address space.
function LargeGetSpare(Size: NativeUInt): PSpan;
begin
  if (Size < SmallestSpare) or not LargeIsPossible(Size) then
    Exit(LargeGet(Size));
  Result := ShardsTakeSpare(SlicesFor(Size), SpareFor(Size));
  if Result = nil then
    Exit(LargeGet(Size));
  LargeFormat(Result, Size);
  HugePrepare(Result, HugeIsWanted(SlicesFor(Size)));
end;

// Keeps a run from use for ever that the system has unmapped: others may have mapped memory there.
// No pages are moved any more, which may lose the next run.
procedure Lose(Span: PSpan);
begin
  ShardsUnuseSpare(Span^.SliceCount - Span^.SpareCount);
  Span^.SpareCount := Span^.SliceCount;
  Span^.Kind := skReserve;
  FetchAdd(Process.MovedSpans, MostMoved);
end;

// Releases a run to the arena. A run that pages were moved to is first made one mapping with its
// surroundings again, and then reads as zeros.
procedure Release(Span: PSpan);
var
  IsZero: Boolean;
begin
  if Span^.IsHuge then
    HugeAdvise(Span, 0, False);
  IsZero := Span^.SpareCount = Span^.SliceCount;
  if ltMoved in Span^.Traits then
  begin
    OsErase(Span^.Start, (Span^.SliceCount - Span^.SpareCount) * SliceSize);
    if OsRenew(Span^.Start, Span^.SliceCount * SliceSize) then
    begin
      IsZero := True;
      OsUnchargeLater; // the system may charge for all of it
    end
    else if not OsIsMapped(Span^.Start) then
    begin
      Lose(Span);
      Exit;
    end;
  end;
  if IsZero then
    ShardsReleaseZero(Span)
  else
    ShardsRelease(Span);
end;

// Releases the run of a block that has ended, or that its pages have left.
procedure ReleaseWhole(Span: PSpan);
begin
  Span^.Kind := skReleased;
  if ltMoved in Span^.Traits then
    FetchAdd(Process.MovedSpans, NativeUInt(-1));
  Release(Span);
end;

procedure LargeRelease(Span: PSpan);
begin
  LockRecover; // before the span is none of those in use
  HugeEnd(Span);
  ReleaseWhole(Span);
end;

procedure LargeFree(Span: PSpan);
begin
  RemoteEndLife(Span);
  LargeRelease(Span);
end;

function LargeKeep(Heap: PHeap; Span: PSpan): Boolean;
begin
  if (Span^.Traits <> []) or (Span^.SpareCount <> 0) then
    Exit(False);
  LockRecover; // as in LargeRelease
  Result := RunKeep(Heap, Span);
end;

function LargeRoom(Span: PSpan): NativeUInt;
begin
  Result := (Span^.SliceCount + ShardsRoom(Span)) * SliceSize;
end;

function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
var
  Needed, Spare: NativeUInt;
begin
  if not LargeIsPossible(Size) then
    Exit(False);
  LockRecover; // before slices are counted that the record does not have yet
  Needed := SlicesFor(Size);
  Spare := Span^.SpareCount;
  if (Spare <> 0) and (Needed < Span^.SliceCount) then
    Dec(Spare, Span^.SliceCount - Needed);
  if not ShardsUseSpare(Span, Spare) then
    Exit(False);
  Result := (Needed <= Span^.SliceCount) or ShardsGrow(Span, Needed);
  if not Result then
  begin
    ShardsUnuseSpare(Spare);
    Exit;
  end;
  Dec(Span^.SpareCount, Spare);
  Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

// Splits a block behind SliceCount slices. The rest has small pages from now on, and so has a huge
// page that lies in both: the kernel's thread would back the rest again after a purge.
function SplitBlock(Span: PSpan; SliceCount: NativeUInt): PSpan;
var
  Skipped: NativeUInt;
begin
  Skipped := SliceCount;
  if SliceCount < HugeSlices then
    Skipped := 0
  else
    Dec(Skipped, HugeSlices - 1);
  if Span^.IsHuge then
  begin
    HugeAdvise(Span, Skipped, False);
    Span^.IsHuge := Skipped > 0;
  end;
  Result := ShardsSplit(Span, SliceCount);
  Result^.IsHuge := False;
end;

procedure LargeShrink(Span: PSpan; Size: NativeUInt);
begin
  LockRecover; // before the rest is none of the spans in use
  if SlicesFor(Size) < Span^.SliceCount then
    Release(SplitBlock(Span, SlicesFor(Size)));
  Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

// Returns true if the pages of Source may be moved.
function CanMove(Source: PSpan): Boolean;
begin
  Result := OsMovesPages and (Source^.BlockSize >= SmallestMove)
    and (LoadAcquire(Process.MovedSpans) < MostMoved);
end;

procedure CountMoved(Span: PSpan);
begin
  if not (ltMoved in Span^.Traits) then
    FetchAdd(Process.MovedSpans, 1);
  Include(Span^.Traits, ltMoved);
end;

// Copies what was moved back to Source, which is several mappings then, too.
procedure TakeBack(Source, Target: PSpan; Moved: NativeUInt);
begin
  CountMoved(Source);
  Move(Target^.Start^, Source^.Start^, Moved);
  if OsRenew(Target^.Start, Moved) then
    Exit;
  if not OsIsMapped(Target^.Start) then
    Lose(Target)
  else
    OsClear(Target^.Start, Moved);
end;

// Moves the pages of Source to the run Target, as many as it has room for: all but spare ones.
// Returns whether it did; else the contents are in Source, and Target reads as zeros or is lost.
function MovePages(Source, Target: PSpan): Boolean;
var
  Size, Moved: NativeUInt;
begin
  if Source^.IsHuge then
    HugeAdvise(Source, 0, False); // the fewer mappings, the fewer calls
  Size := Source^.SliceCount;
  if Size > Target^.SliceCount then
    Size := Target^.SliceCount;
  Size := Size * SliceSize;
  Moved := OsMove(Source^.Start, Target^.Start, Size);
  Result := Moved = Size;
  if Result then
    CountMoved(Target)
  else if not OsIsMapped(Target^.Start + Moved) then
    Lose(Target);
  if not Result and (Moved <> 0) then
    TakeBack(Source, Target, Moved);
end;

// Moves the block by its pages; nil, and nothing changed, where that cannot be done.
function MoveByPages(Span: PSpan; Size: NativeUInt): PSpan;
var
  Moving, Added: NativeUInt;
begin
  // The slices that move count as spare until then: memory is not needed twice.
  Moving := SlicesFor(Span^.BlockSize);
  Added := SlicesFor(Size) - Moving;
  Result := ShardsTakeSpare(Added, SpareFor(Size) + Moving);
  if Result = nil then
    Result := ShardsTakeSpare(Added, Moving);
  if Result = nil then
    Exit;
  LargeFormat(Result, Size);
  if OsUse(Result^.Start + Moving * SliceSize, Added * SliceSize) and MovePages(Span, Result) then
  begin
    Dec(Result^.SpareCount, Moving);
    Span^.SpareCount := Span^.SliceCount;
    RemoteEndLife(Span);
    ReleaseWhole(Span);
    OsUnchargeLater; // the old place
    Exit;
  end;
  if Result^.Kind = skLarge then
    ShardsReleaseZero(Result);
  Result := nil;
end;

function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;
begin
  Copied := 0;
  if not LargeIsPossible(Size) then
    Exit(nil);
  Result := nil;
  if CanMove(Span) then
    Result := MoveByPages(Span, Size);
  if Result <> nil then
    Exit;
  Result := LargeGetSpare(Size);
  if Result = nil then
    Exit;
  Copied := Span^.BlockSize;
  Move(Span^.Start^, Result^.Start^, Copied);
  LargeFree(Span);
end;

end.
