/// Spans of debug blocks: the layout of the blocks, their guards and their bookkeeping records.
//
// Owns:       the layout of spans of kind skDebug. The owner fields of their records are guarded by
//             Debug.Lock: FreeList is the address of a TDebugBlock or 0, Used counts the blocks in
//             use, in quarantine and in TDebugCache, BlockBytes and CarvedBytes count blocks,
//             BlockSize is the distance between two blocks, IsCurrent: the span is in Debug.Spans;
//             of a guarded or single block: its contents are accessible, see LaneMM.GuardPages.
//             Any thread reads Origin, the address of the first block with its guards.
// Layout:     a span begins with a TDebugBlock for each of its blocks; the blocks follow, each with
//             guard bytes before it and right after its requested size. So a small overrun or
//             underrun modifies guard bytes, and no data that the report needs. A block with an
//             alignment begins at its first multiple after the guard; the bytes up to there are
//             unused. A single block has its pages to itself; its guard ends the one before them.
// Callers:    any thread. DebugSpanFormat: the thread that took the span.
unit LaneMM.DebugSpans;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.DebugState, LaneMM.Patterns;

const
  /// Bytes of the guard before a block.
  FrontGuardSize = AroundBefore;
  /// Least number of bytes of the guard after it.
  GuardSize = AroundBehind;
  /// Bytes of a slot besides the contents of a block without an alignment.
  GuardsSize = FrontGuardSize + GuardSize;
  /// The value of guard bytes.
  GuardByte = $E7;
  /// Maximum number of guard bytes after a block with spare capacity.
  MostGuard = 256;

  /// TSpan.SizeClass of a span with a single block.
  SingleClass = SizeClassCount;
  /// TSpan.SizeClass of a block with guard pages: its record lies in the first page, the contents
  /// end right before the last, but for their alignment; BlockSize is the requested size.
  GuardedClass = SingleClass + 1;
  /// A single block counts one part in this many of its bytes in quarantine. The small ones pass
  /// through the caches; of those that do not, more are kept.
  SingleShare = 4;

type
  /// The place of the parts of a block.
  TDebugPlace = record
    Span: PSpan;          //< the span
    Block: PDebugBlock;   //< the bookkeeping record
    Slot: PByte;          //< where its part of the span begins
    Data: PByte;          //< start of the contents and end of the guard before them
    Capacity: NativeUInt; //< maximum size of the contents
    Guarded: NativeUInt;  //< bytes from Data to the last place for the guard after them
    Before: TAtomicWord;  //< the block's State before this thread sets dsChanging, if it does
    HasPages: Boolean;    //< the block has guard pages
    IsClosable: Boolean;  //< its contents may be made inaccessible when it is freed
  end;

/// Returns the bytes of a slot that an alignment of 2 to the power of Shift takes; 0 for Shift 0.
function DebugAlignmentSize(Shift: Byte): NativeUInt;
/// Returns the maximum size of a debug block.
function DebugMostSize: NativeUInt;
/// Returns True if a debug block of Size bytes can have an alignment of 2 to the power of Shift.
function DebugFits(Size: NativeUInt; Shift: Byte): Boolean;
/// Returns the block that contains P, any pointer, its guards included; nil when there is none.
function DebugBlockOf(P: Pointer): PDebugBlock;
/// Finds the block that contains P, any pointer, its guards included: Span, Block and Slot of
/// Place, without a look at the record. Returns False when P lies in no span of debug blocks.
/// Place.Block is nil when P lies in no block; then nothing else is known but Span.
function DebugSlotFind(P: Pointer; out Place: TDebugPlace): Boolean;
/// Computes the rest of a place.
procedure DebugPlaceFinish(var Place: TDebugPlace); inline;
/// DebugPlaceFinish of a block with an alignment, or with a span of its own.
procedure DebugPlaceFinishSlow(var Place: TDebugPlace);
/// Finds the block as DebugSlotFind does, and computes its whole place.
function DebugPlaceFind(P: Pointer; out Place: TDebugPlace): Boolean;
/// Returns the number of blocks ever taken from the span.
function DebugBlockCount(Span: PSpan): Cardinal; inline;
/// Returns the block number Index of the span, from 0.
function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock; inline;
/// Returns the slot of the block number Index of the span.
function DebugSlotAt(Span: PSpan; Index: NativeUInt): PByte; inline;
/// Returns the number of a block of the span, from 0.
function DebugIndexOf(Span: PSpan; Block: PDebugBlock): NativeUInt; inline;
/// Computes the place of a block.
procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
/// Computes the place of the block number Index, 0 of a single block, of a span from these two
/// records alone, which may be copies.
procedure DebugPlaceIn(Span: PSpan; Block: PDebugBlock; Index: NativeUInt; out Place: TDebugPlace);
/// Returns the bytes of the guard after contents of Size bytes.
function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt; inline;
/// Returns the address of the contents of a block.
function DebugBlockData(Block: PDebugBlock): PByte;
/// Returns the pages with the contents of a guarded or single block, and their size in bytes.
function DebugContents(Span: PSpan; out Size: NativeUInt): PByte;
/// Returns the last page of a span.
function DebugLastPage(Span: PSpan): PByte; inline;
/// Returns the bytes that a parcel of freed blocks may count in quarantine.
function DebugMostHeld: NativeUInt; inline;
/// Returns whether the quarantine cannot hold the contents of a single block, but may hold its
/// addresses. With limits of memory it does not: they count both.
function DebugOutgrows(Span: PSpan): Boolean;
/// Returns the bytes that a freed block counts in quarantine: of a single one see SingleShare; a
/// guarded one, whose contents are purged, counts a page; an inaccessible one that would count too
/// many, whose contents are purged as well, as many as it may.
function DebugBytesHeld(const Place: TDebugPlace): NativeUInt; inline;
/// Makes a run of slices a span of BlockCount blocks, BlockSize bytes apart.
procedure DebugSpanFormat(Span: PSpan; SizeClass, BlockCount: Cardinal; BlockSize: NativeUInt);
/// Returns True if no block can be taken from the span.
function DebugSpanIsFull(Span: PSpan): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.RemoteList, LaneMM.Arena, LaneMM.Span;

const
  // TSpan.DivideMagic is 2 to this power, divided by the distance of two blocks.
  MagicShift = 44;
  // OsPageSize is 2 to this power.
  PageShift = 12;

function DebugAlignmentSize(Shift: Byte): NativeUInt;
begin
  Result := 0;
  if Shift <> 0 then
    Result := NativeUInt(1) shl Shift - BlockAlignment;
end;

function DebugMostSize: NativeUInt;
begin
  Result := MaxRunSlices shl SliceShift - OsGranule - GuardSize;
end;

function DebugFits(Size: NativeUInt; Shift: Byte): Boolean;
begin
  Result := (Size <= DebugMostSize)
    and (DebugAlignmentSize(Shift) <= NativeUInt(DebugMostSize - Size));
end;

function DebugBlockCount(Span: PSpan): Cardinal;
begin
  Result := Span^.CarvedBytes;
  // Acquire: the states of the blocks after their number. Pairs with TakeFrom of
  // LaneMM.DebugBlocks.
  AcquireFence;
end;

function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock;
begin
  Result := PDebugBlock(Span^.Start) + Index;
end;

function DebugLastPage(Span: PSpan): PByte; inline;
begin
  Result := Span^.Start + Span^.SliceCount shl SliceShift - OsGranule;
end;

function DebugContents(Span: PSpan; out Size: NativeUInt): PByte;
begin
  Result := Span^.Start + OsGranule;
  Size := NativeUInt(DebugLastPage(Span) - Result);
  if Span^.SizeClass = SingleClass then
    Inc(Size, OsGranule);
end;

// Returns the start of contents with an alignment in a slot. A shift that leads out of the slot is
// corrupt.
function AlignedIn(Slot: PByte; Size: NativeUInt; Shift: Byte): PByte;
var
  Aligned: NativeUInt;
begin
  Result := Slot + FrontGuardSize;
  if DebugAlignmentSize(Shift and 63) > Size then
    Exit;
  Aligned := AlignUp(NativeUInt(Result), NativeUInt(1) shl (Shift and 63));
  if NativeUInt(Aligned - NativeUInt(Slot)) <= NativeUInt(Size - GuardSize) then
    Result := PByte(Aligned);
end;

function DebugSlotAt(Span: PSpan; Index: NativeUInt): PByte;
begin
  Result := Span^.Origin + Index * Span^.BlockSize;
end;

function DebugIndexOf(Span: PSpan; Block: PDebugBlock): NativeUInt;
begin
  Result := NativeUInt(NativeUInt(Block) - NativeUInt(Span^.Start)) div SizeOf(TDebugBlock);
end;

procedure DebugPlaceFinishSlow(var Place: TDebugPlace);
var
  Shift: Byte;
begin
  Shift := Place.Block^.AlignShift;
  Place.IsClosable := Place.Span^.SizeClass >= SingleClass;
  Place.HasPages := Place.Span^.SizeClass = GuardedClass;
  if not Place.HasPages then
  begin
    Place.Data := AlignedIn(Place.Slot, Place.Span^.BlockSize, Shift);
    Place.Guarded := Place.Span^.BlockSize - NativeUInt(Place.Data - Place.Slot);
    Place.Capacity := Place.Guarded - GuardSize;
    Exit;
  end;
  Place.Capacity := Place.Span^.BlockSize;
  if (Shift = 0) or (Shift > PageShift) then
    Place.Guarded := AlignUp(Place.Capacity, BlockAlignment)
  else
    Place.Guarded := AlignUp(Place.Capacity, NativeUInt(1) shl Shift);
  Place.Data := DebugLastPage(Place.Span) - Place.Guarded;
end;

procedure DebugPlaceFinish(var Place: TDebugPlace);
begin
  if (Place.Span^.SizeClass >= SingleClass) or (Place.Block^.AlignShift <> 0) then
  begin
    DebugPlaceFinishSlow(Place);
    Exit;
  end;
  Place.Data := Place.Slot + FrontGuardSize;
  Place.Guarded := Place.Span^.BlockSize - FrontGuardSize;
  Place.Capacity := Place.Guarded - GuardSize;
  Place.HasPages := False;
  Place.IsClosable := False;
end;

procedure DebugPlaceIn(Span: PSpan; Block: PDebugBlock; Index: NativeUInt; out Place: TDebugPlace);
begin
  Place.Span := Span;
  Place.Block := Block;
  Place.Slot := DebugSlotAt(Span, Index);
  DebugPlaceFinish(Place);
end;

procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
var
  Span: PSpan;
begin
  Span := ArenaSpan(Block);
  DebugPlaceIn(Span, Block, DebugIndexOf(Span, Block), Place);
end;

procedure FindIn(Span: PSpan; P: Pointer; out Place: TDebugPlace); inline;
var
  Index: UInt64;
begin
  Place.Span := Span;
  Place.Block := nil;
  // 0 for a single block. Any number while another thread reuses the span.
  Index := NativeUInt(NativeUInt(P) - NativeUInt(Span^.Origin)) * Span^.DivideMagic shr MagicShift;
  if (NativeUInt(P) >= NativeUInt(Span^.Origin)) and (Index < Span^.CarvedBytes) then
  begin
    Place.Block := DebugBlockAt(Span, Index);
    Place.Slot := DebugSlotAt(Span, Index);
  end;
end;

function FindSlow(P: Pointer; out Place: TDebugPlace): Boolean;
var
  Span: PSpan;
begin
  Place.Block := nil;
  Span := ArenaSpan(P);
  if (Span <> nil) and (Span^.Kind <> skDebug) then
    Span := ArenaFirst(Span, [skDebug]);
  Result := Span <> nil;
  if Result then
    FindIn(Span, P, Place);
end;

function DebugSlotFind(P: Pointer; out Place: TDebugPlace): Boolean;
var
  Span: PSpan;
begin
  // The first slice of a span in the first arena, without a call.
  if NativeUInt(NativeUInt(P) - Process.Base) < Process.Limit then
  begin
    Span := PSpan(Process.Spans) + NativeUInt(NativeUInt(P) - Process.Base) shr SliceShift;
    if Span^.Kind = skDebug then
    begin
      FindIn(Span, P, Place);
      Exit(True);
    end;
  end;
  Result := FindSlow(P, Place);
end;

function DebugPlaceFind(P: Pointer; out Place: TDebugPlace): Boolean;
begin
  Result := DebugSlotFind(P, Place);
  if Place.Block <> nil then
    DebugPlaceFinish(Place);
end;

function DebugBlockOf(P: Pointer): PDebugBlock;
var
  Place: TDebugPlace;
begin
  DebugSlotFind(P, Place);
  Result := Place.Block;
end;

function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt;
begin
  Result := Place.Guarded - Size;
  if Result > MostGuard then
    Result := MostGuard;
end;

function DebugMostHeld: NativeUInt;
begin
  Result := Debug.Quarantine.MostBytes div 2;
end;

function DebugOutgrows(Span: PSpan): Boolean;
begin
  Result := (Span^.BlockSize div SingleShare > DebugMostHeld) and (DebugMostHeld > 0)
    and not Process.HasLimits;
end;

function DebugBytesHeld(const Place: TDebugPlace): NativeUInt;
begin
  Result := Place.Span^.BlockSize + SizeOf(TDebugBlock);
  if Place.HasPages then
    Result := OsGranule
  else if Place.IsClosable then
  begin
    Result := Result div SingleShare;
    if not Place.Span^.IsCurrent and DebugOutgrows(Place.Span) then
      Result := DebugMostHeld;
  end;
end;

function DebugBlockData(Block: PDebugBlock): PByte;
var
  Place: TDebugPlace;
begin
  DebugBlockPlace(Block, Place);
  Result := Place.Data;
end;

procedure DebugSpanFormat(Span: PSpan; SizeClass, BlockCount: Cardinal; BlockSize: NativeUInt);
begin
  Span^.FreeList := 0;
  Span^.Used := 0;
  Span^.BlockSize := BlockSize;
  Span^.DivideMagic := 0;
  if SizeClass < SingleClass then
    Span^.DivideMagic := UInt64(1) shl MagicShift div BlockSize + 1;
  Span^.BlockBytes := BlockCount;
  Span^.Origin := Span^.Start + BlockCount * SizeOf(TDebugBlock);
  if SizeClass = SingleClass then
    Span^.Origin := Span^.Start + OsGranule - FrontGuardSize;
  Span^.CarvedBytes := 0;
  Span^.SizeClass := SizeClass;
  Span^.IsCurrent := True;
  RemoteStartLife(Span);
  Span^.Owner := NoOwner;
  SpanFormatInner(Span);
  // Release: the record before its kind. Pairs with VisitArena of LaneMM.Walk.
  ReleaseFence;
  Span^.Kind := skDebug;
end;

function DebugSpanIsFull(Span: PSpan): Boolean;
begin
  Result := (Span^.FreeList = 0) and (Span^.CarvedBytes = Span^.BlockBytes);
end;

end.
