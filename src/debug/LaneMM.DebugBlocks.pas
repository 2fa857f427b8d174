/// Takes debug blocks from their spans, and releases empty spans.
//
// Owns:       Debug.Spans, KeptSpans, KeptCount, Ready; TSpan.FreeList, Used, Next and Prev
//             of debug spans; the free blocks of each TDebugCache, which count as Used.
// Callers:    any thread that does not hold Debug.Lock, but for the routines of parcels.
//             DebugBlocksRecover: a child process with one thread.
// Progress:   lists change under Debug.Lock, taken once for a batch of blocks and held for a few
//             instructions each, or for a call of ShardsTake.
unit LaneMM.DebugBlocks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.DebugState, LaneMM.DebugSpans;

/// Takes a block for Size bytes, those of an alignment included; Place is its place as it was used
/// last. The caller checks it, calls DebugBlockBegin and fills it. Cache is that of the calling
/// thread, or nil. Returns False without memory.
function DebugBlockTake(Cache: PDebugCache; Size: NativeUInt; out Place: TDebugPlace): Boolean;
/// DebugBlockTake of a block followed by an inaccessible page. False also when the system refuses
/// that, or there are as many such blocks as it may have mappings for, 16,384.
function DebugBlockTakeGuarded(Size: NativeUInt; out Place: TDebugPlace): Boolean;
/// Puts a freed block on the free list of its span. Adds the span to Empty, a chain linked through
/// Next for DebugSpanRelease, when Used becomes 0; one span of each size class stays. Under
/// Debug.Lock.
procedure DebugBlockRecycle(Span: PSpan; Block: PDebugBlock; var Empty: PSpan);
/// Recycles all blocks of a parcel, which it drops; does nothing for nil.
procedure DebugParcelRecycle(Parcel: PParcel; var Empty: PSpan);
/// Keeps freed blocks for any thread that needs some; they count as Used on. Recycles them instead
/// when there are enough of their class, or they have spans of their own. Under Debug.Lock.
procedure DebugParcelKeep(Parcel: PParcel; var Empty: PSpan);
/// Recycles all blocks that DebugParcelKeep has kept. Under Debug.Lock.
procedure DebugParcelsEmpty(var Empty: PSpan);
/// Releases a span without a block in use, or keeps it for the next guarded block.
procedure DebugSpanRelease(Span: PSpan);
/// Makes the lists anew in a child process whose copy of them may be torn: free blocks of before
/// are lost until their span is empty.
procedure DebugBlocksRecover;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Arena,
  LaneMM.Shards, LaneMM.Walk, LaneMM.DebugRecords, LaneMM.DebugThreads, LaneMM.GuardPages,
  LaneMM.Parcels;

const
  // Maximum number of spans of freed guarded blocks that are kept for the next ones.
  MostKept = 256;
  // Most blocks of a class that a thread takes at once, and most bytes.
  BatchLimit = 16;
  BatchBytes = 8192;
  // Most bytes of the free blocks of a class that are kept for any thread, but for one parcel.
  ReadyBytes = 8 * BatchBytes;
  // The share of Process.HugeFrom, in spans of debug blocks, from which on more of them may come
  // from huge pages: quarantine spreads the blocks of a program over many pages.
  HugeShare = 16;

procedure ListAdd(Span: PSpan);
begin
  Span^.IsCurrent := True;
  Span^.Prev := nil;
  Span^.Next := Debug.Spans[Span^.SizeClass];
  if Span^.Next <> nil then
    Span^.Next^.Prev := Span;
  Debug.Spans[Span^.SizeClass] := Span;
end;

procedure ListRemove(Span: PSpan);
begin
  Span^.IsCurrent := False;
  if Span^.Prev <> nil then
    Span^.Prev^.Next := Span^.Next
  else
    Debug.Spans[Span^.SizeClass] := Span^.Next;
  if Span^.Next <> nil then
    Span^.Next^.Prev := Span^.Prev;
end;

function NewSpan(SizeClass: Cardinal): PSpan;
var
  Size: NativeUInt;
begin
  Result := ShardsTake(Process.ClassSlices[SizeClass],
    {IsDense} Debug.SpanSlices >= Process.HugeFrom div HugeShare);
  if Result = nil then
    Exit;
  Inc(Debug.SpanSlices, Result^.SliceCount);
  Size := ClassToSize(SizeClass);
  DebugSpanFormat(Result, SizeClass,
    Result^.SliceCount * SliceSize div (Size + SizeOf(TDebugBlock)), Size);
  ListAdd(Result);
end;

// Returns the block after Block on FreeList; 0 if there is none, or the link is corrupt.
function NextFree(Span: PSpan; Block: PDebugBlock): NativeUInt;
var
  Offset: NativeUInt;
begin
  Result := NativeUInt(Block^.Next);
  Offset := Result - NativeUInt(Span^.Start);
  if (Offset >= NativeUInt(Span^.CarvedBytes * SizeOf(TDebugBlock)))
    or (Offset mod SizeOf(TDebugBlock) <> 0) then
    Result := 0;
end;

// Takes a block of a span that is not full. Under the lock.
function TakeFrom(Span: PSpan): PDebugBlock; inline;
begin
  // Used first: in a child process that interrupted this, Used is too high by one, never too low.
  Inc(Span^.Used);
  Result := PDebugBlock(Span^.FreeList);
  if Result <> nil then
  begin
    Span^.FreeList := NextFree(Span, Result);
    Exit;
  end;
  Result := DebugBlockAt(Span, Span^.CarvedBytes);
  Result^.State := Ord(dsNever);
  // Release: the state before the block counts. Pairs with DebugBlockCount.
  ReleaseFence;
  Inc(Span^.CarvedBytes);
end;

// Under the lock.
function TakeLocked(SizeClass: Cardinal): PDebugBlock;
var
  Span: PSpan;
begin
  Span := Debug.Spans[SizeClass];
  if Span = nil then
    Span := NewSpan(SizeClass);
  if Span = nil then
    Exit(nil);
  Result := TakeFrom(Span);
  if DebugSpanIsFull(Span) then
    ListRemove(Span);
end;

// Computes the slot of a block; False for nil.
function SlotOf(Block: PDebugBlock; out Place: TDebugPlace): Boolean;
begin
  Result := Block <> nil;
  if not Result then
    Exit;
  Place.Block := Block;
  Place.Span := ArenaSpan(Block);
  Place.Slot := DebugSlotAt(Place.Span, DebugIndexOf(Place.Span, Block));
end;

// Takes the oldest parcel of the class that is kept; nil if there is none. Under the lock.
function TakeKeptParcel(SizeClass: Cardinal): PParcel;
begin
  Result := ParcelsTake(Debug.Ready[SizeClass].Parcels);
  if Result <> nil then
    Dec(Debug.Ready[SizeClass].Bytes, ParcelBytes(Result));
end;

// Takes blocks of the class out of their spans, in the order of the lists.
procedure Fill(Parcel: PParcel; SizeClass: Cardinal);
var
  Wanted: NativeUInt;
  Place: TDebugPlace;
begin
  Wanted := BatchBytes div ClassToSize(SizeClass) + 1;
  if Wanted > BatchLimit then
    Wanted := BatchLimit;
  while (Wanted > 0) and SlotOf(TakeLocked(SizeClass), Place) do
  begin
    ParcelPut(Parcel, Place);
    Dec(Wanted);
  end;
end;

// Gives the cache the next blocks of the class, if there are any.
procedure Refill(var Cache: TDebugCache; SizeClass: Cardinal);
var
  Parcel: PParcel;
begin
  DebugLockEnter;
  ParcelDrop(Cache.Ready[SizeClass]);
  Parcel := TakeKeptParcel(SizeClass);
  if Parcel = nil then
  begin
    Parcel := ParcelNew(BatchLimit, ClassToSize(SizeClass) + SizeOf(TDebugBlock));
    if Parcel <> nil then
      Fill(Parcel, SizeClass);
  end;
  Cache.Ready[SizeClass] := Parcel;
  DebugLockLeave;
end;

// Takes slices for Size bytes; nil also for a size that the system cannot back: see LargeIsPossible
// in LaneMM.Large.
function TakeSlices(Size: NativeUInt): PSpan;
begin
  Result := nil;
  if FrontierCanBack(Size) then
    Result := ShardsTake(AlignUp(Size, SliceSize) shr SliceShift);
end;

// Takes a block with a span of its own.
function TakeSingle(Size: NativeUInt): PDebugBlock;
var
  Span: PSpan;
begin
  Span := TakeSlices(Size + OsGranule + GuardSize);
  if Span = nil then
    Exit(nil);
  DebugLockEnter;
  DebugSpanFormat(Span, SingleClass, 1,
    Span^.SliceCount shl SliceShift - OsGranule + FrontGuardSize);
  Result := TakeFrom(Span);
  DebugLockLeave;
end;

// Takes a block without a cache, or where it has none of its class.
function TakeSlow(Cache: PDebugCache; Size: NativeUInt; out Place: TDebugPlace): Boolean;
var
  SizeClass: Cardinal;
begin
  if Size > DebugMostSize then
    Exit(False);
  if Size + GuardsSize > MaxClassSize then
    Exit(SlotOf(TakeSingle(Size), Place));
  SizeClass := ClassOf(Size + GuardsSize);
  if Cache <> nil then
  begin
    Refill(Cache^, SizeClass);
    if ParcelGet(Cache^.Ready[SizeClass], Place) then
      Exit(True);
  end;
  DebugLockEnter;
  Result := SlotOf(TakeLocked(SizeClass), Place);
  DebugLockLeave;
end;

function DebugBlockTake(Cache: PDebugCache; Size: NativeUInt; out Place: TDebugPlace): Boolean;
begin
  if (Cache = nil) or (Size > MaxClassSize - GuardsSize)
    or not ParcelGet(Cache^.Ready[ClassOf(Size + GuardsSize)], Place) then
    if not TakeSlow(Cache, Size, Place) then
      Exit(False);
  Result := True;
  Place.Before := LoadAcquire(Place.Block^.State);
  DebugPlaceFinish(Place);
end;

// Returns the slices of a span for a guarded block: its bookkeeping record, the block, the page
// after it.
function GuardedSlices(Size: NativeUInt): NativeUInt; inline;
begin
  Result := AlignUp(Size + 3 * OsGranule, SliceSize) shr SliceShift;
end;

// Gives a span back.
procedure Release(Span: PSpan);
begin
  // Under the lock: a check that holds it finds the blocks of the span, or another kind of span.
  DebugLockEnter;
  Span^.Kind := skReleased;
  DebugLockLeave;
  ShardsRelease(Span);
end;

procedure ReleaseGuarded(Span: PSpan);
begin
  // Pages that stay inaccessible cannot be used again.
  if not OsUnguard(Span^.Start, Span^.SliceCount shl SliceShift) then
    Exit;
  FetchAdd(Debug.GuardedBlocks, NativeUInt(-1));
  Release(Span);
end;

// Takes the span of a guarded block that was freed, if Size bytes fit into it; nil for none.
function TakeKeptSpan(Size: NativeUInt): PSpan;
begin
  Result := nil;
  if GuardedSlices(Size) > GuardedSlices(1) then
    Exit;
  DebugLockEnter;
  Result := Debug.KeptSpans;
  if Result <> nil then
  begin
    Debug.KeptSpans := Result^.Next;
    Dec(Debug.KeptCount);
  end;
  DebugLockLeave;
end;

// Keeps the span of a guarded block, its contents and the page behind them inaccessible, for the
// next one; returns False if it is too long, or there are enough.
function KeepSpan(Span: PSpan): Boolean;
begin
  DebugLockEnter;
  Result := (Span^.SliceCount = GuardedSlices(1)) and (Debug.KeptCount < MostKept);
  if Result then
  begin
    Span^.Next := Debug.KeptSpans;
    Debug.KeptSpans := Span;
    Inc(Debug.KeptCount);
  end;
  DebugLockLeave;
end;

// Takes the block of such a span. It was checked when its span was kept.
function TakeKept(Span: PSpan; Size: NativeUInt): PDebugBlock;
begin
  if not DebugBlockOpen(Span) then
    Exit(nil); // pages that stay inaccessible cannot be used again
  Span^.IsZero := False;
  DebugLockEnter;
  Result := TakeFrom(Span);
  DebugLockLeave;
  DebugBlockBegin(Result);
  // Only now: in the state dsFreed the block's old size would seem too large to a check.
  Span^.BlockSize := Size;
end;

// Takes such a block; nil as DebugBlockTakeGuarded.
function TakeGuarded(Size: NativeUInt): PDebugBlock;
var
  Span: PSpan;
begin
  Result := nil;
  if Size > DebugMostSize - 2 * OsGranule then
    Exit;
  Span := TakeKeptSpan(Size);
  if Span <> nil then
    Exit(TakeKept(Span, Size));
  if not GuardPagesCount then
    Exit;
  Span := TakeSlices(GuardedSlices(Size) shl SliceShift);
  if Span = nil then
  begin
    FetchAdd(Debug.GuardedBlocks, NativeUInt(-1));
    Exit;
  end;
  DebugLockEnter;
  DebugSpanFormat(Span, GuardedClass, 1, Size);
  Result := TakeFrom(Span);
  DebugLockLeave;
  if GuardPagesForbid(DebugLastPage(Span), OsGranule) then
    Exit;
  ReleaseGuarded(Span);
  Result := nil;
end;

function DebugBlockTakeGuarded(Size: NativeUInt; out Place: TDebugPlace): Boolean;
begin
  Result := SlotOf(TakeGuarded(Size), Place);
  if not Result then
    Exit;
  Place.Before := Ord(dsNever);
  DebugPlaceFinish(Place);
end;

procedure DebugBlockRecycle(Span: PSpan; Block: PDebugBlock; var Empty: PSpan);
var
  IsUnused: Boolean;
begin
  Block^.Next := PDebugBlock(Span^.FreeList);
  Span^.FreeList := NativeUInt(Block);
  Dec(Span^.Used);
  IsUnused := Span^.Used = 0;
  if Span^.SizeClass < SingleClass then
  begin
    if not Span^.IsCurrent then
      ListAdd(Span);
    // One span of each class stays.
    IsUnused := IsUnused and ((Span^.Prev <> nil) or (Span^.Next <> nil));
    if IsUnused then
      ListRemove(Span);
  end;
  if not IsUnused then
    Exit;
  Span^.Next := Empty;
  Empty := Span;
end;

procedure DebugParcelRecycle(Parcel: PParcel; var Empty: PSpan);
var
  Item: PParcelItem;
begin
  if Parcel = nil then
    Exit;
  Item := Parcel^.First;
  while Item <> Parcel^.Limit do
  begin
    DebugBlockRecycle(Item^.Span, Item^.Block, Empty);
    Inc(Item);
  end;
  ParcelDrop(Parcel);
end;

procedure DebugParcelKeep(Parcel: PParcel; var Empty: PSpan);
var
  SizeClass: Cardinal;
begin
  SizeClass := Parcel^.First^.Span^.SizeClass;
  if (SizeClass >= SingleClass) or (Debug.Ready[SizeClass].Bytes >= ReadyBytes) then
  begin
    DebugParcelRecycle(Parcel, Empty);
    Exit;
  end;
  Inc(Debug.Ready[SizeClass].Bytes, ParcelBytes(Parcel));
  ParcelsAdd(Debug.Ready[SizeClass].Parcels, Parcel);
end;

procedure DebugParcelsEmpty(var Empty: PSpan);
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
    while Debug.Ready[SizeClass].Parcels.First <> nil do
      DebugParcelRecycle(TakeKeptParcel(SizeClass), Empty);
end;

procedure DebugSpanRelease(Span: PSpan);
begin
  if (Span^.SizeClass < SingleClass) or (Span^.SizeClass = SingleClass) and Span^.IsCurrent then
    Release(Span)
  else if (Span^.SizeClass = SingleClass) or not KeepSpan(Span) then
    ReleaseGuarded(Span);
end;

procedure RecoverSpan(Span: PSpan; Context: Pointer);
begin
  if (Span^.Kind <> skDebug) or (Span^.SizeClass >= SingleClass) then
    Exit;
  Span^.IsCurrent := False;
  Span^.FreeList := 0;
  if not DebugSpanIsFull(Span) then
    ListAdd(Span);
end;

procedure DebugBlocksRecover;
begin
  FillChar(Debug.Spans, SizeOf(Debug.Spans), 0);
  FillChar(Debug.Ready, SizeOf(Debug.Ready), 0);
  Debug.SpareParcels := nil;
  Debug.KeptSpans := nil; // they are lost
  Debug.KeptCount := 0;
  WalkSpans(RecoverSpan, nil);
end;

end.
