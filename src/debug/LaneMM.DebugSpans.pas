/// Spans of debug blocks: the layout of the blocks, their guards and their bookkeeping records.
//
// Owns:       the layout of spans of kind skDebug. The owner fields of their records are guarded by
//             Debug.Lock: FreeList is the address of a TDebugBlock or 0, Used counts the blocks in
//             use, in quarantine and in TDebugCache, BlockBytes and CarvedBytes count blocks,
//             BlockSize is the distance between two blocks, IsCurrent: the span is in Debug.Spans.
// Layout:     a span begins with a TDebugBlock for each of its blocks; the blocks follow, each with
//             guard bytes before it and right after its requested size. So a small overrun or
//             underrun modifies guard bytes, and no data that the report needs. A block with an
//             alignment begins at its first multiple after the guard; the bytes up to there are
//             unused.
// Callers:    any thread. DebugSpanFormat: the thread that took the span.
unit LaneMM.DebugSpans;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.DebugState;

const
  /// Bytes of the guard before a block.
  FrontGuardSize = 32;
  /// Least number of bytes of the guard after it.
  GuardSize = 16;
  /// Bytes of a slot besides the contents of a block without an alignment.
  GuardsSize = FrontGuardSize + GuardSize;
  /// The value of guard bytes.
  GuardByte = $E7;
  /// Maximum number of guard bytes after a block with spare capacity.
  MostGuard = 256;

  /// TSpan.SizeClass of a span with a single block.
  SingleClass = SizeClassCount;
  /// The same of a block with guard pages: its record lies in the first page, the contents end
  /// right before the last, but for their alignment; BlockSize is the requested size.
  GuardedClass = SingleClass + 1;

type
  /// The place of the parts of a block.
  TDebugPlace = record
    Data: PByte;          //< start of the contents and end of the guard before them
    Capacity: NativeUInt; //< maximum size of the contents
    Guarded: NativeUInt;  //< bytes from Data to the last place for the guard after them
    HasPages: Boolean;    //< the block has guard pages
  end;

/// Returns the bytes of a slot that an alignment of 2 to the power of Shift takes; 0 for Shift 0.
function DebugAlignmentSize(Shift: Byte): NativeUInt;
/// Returns the maximum size of a debug block.
function DebugMostSize: NativeUInt;
/// Returns the span of debug blocks that contains P, any pointer; nil when there is none.
function DebugSpanOf(P: Pointer): PSpan;
/// Returns the block that contains P, any pointer, its guards included; nil when there is none.
function DebugBlockOf(P: Pointer): PDebugBlock;
/// Returns the number of blocks ever taken from the span.
function DebugBlockCount(Span: PSpan): Cardinal;
/// Returns the block number Index of the span, from 0.
function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock;
/// Computes the place of a block.
procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
/// Returns the bytes of the guard after contents of Size bytes.
function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt; inline;
/// Returns the address of the contents of a block.
function DebugBlockData(Block: PDebugBlock): PByte;
/// Returns True if the block has guard pages: its contents may be inaccessible, see
/// DebugPlaceIsOpen.
function DebugBlockIsGuarded(Block: PDebugBlock): Boolean;
/// Returns the last page of a span.
function DebugLastPage(Span: PSpan): PByte; inline;
/// Makes a run of slices a span of BlockCount blocks, BlockSize bytes apart.
procedure DebugSpanFormat(Span: PSpan; SizeClass, BlockCount: Cardinal; BlockSize: NativeUInt);
/// Returns True if no block can be taken from the span.
function DebugSpanIsFull(Span: PSpan): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.Os, LaneMM.RemoteList, LaneMM.Arena, LaneMM.Span;

const
  // TSpan.DivideMagic is 2 to this power, divided by the distance of two blocks.
  MagicShift = 44;
  // The page size is 2 to this power.
  PageShift = 12;

function DebugAlignmentSize(Shift: Byte): NativeUInt;
begin
  Result := 0;
  if Shift <> 0 then
    Result := NativeUInt(1) shl Shift - BlockAlignment;
end;

function DebugMostSize: NativeUInt;
begin
  Result := MaxRunSlices shl SliceShift - SizeOf(TDebugBlock) - GuardsSize;
end;

function DebugSpanOf(P: Pointer): PSpan;
begin
  Result := ArenaSpan(P);
  if (Result <> nil) and (Result^.Kind <> skDebug) then
    Result := ArenaFirst(Result, [skDebug]);
end;

function DebugBlockCount(Span: PSpan): Cardinal;
begin
  Result := Span^.CarvedBytes;
end;

function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock;
begin
  Result := PDebugBlock(Span^.Start) + Index;
end;

function FirstSlot(Span: PSpan): PByte; inline;
begin
  Result := Span^.Start + Span^.BlockBytes * SizeOf(TDebugBlock);
end;

function DebugBlockOf(P: Pointer): PDebugBlock;
var
  Span: PSpan;
  Index: UInt64;
begin
  Result := nil;
  Span := DebugSpanOf(P);
  if (Span = nil) or (NativeUInt(P) < NativeUInt(FirstSlot(Span))) then
    Exit;
  // 0 for a single block. Any number while another thread reuses the span.
  Index := (NativeUInt(P) - NativeUInt(FirstSlot(Span))) * Span^.DivideMagic shr MagicShift;
  if Index < Span^.CarvedBytes then
    Result := DebugBlockAt(Span, Index);
end;

function DebugLastPage(Span: PSpan): PByte; inline;
begin
  Result := Span^.Start + Span^.SliceCount shl SliceShift - OsPageSize;
end;

// Returns the start of the contents in a slot. A shift that leads out of the slot is corrupt.
function DataIn(Slot: PByte; Size: NativeUInt; Shift: Byte): PByte;
var
  Aligned: NativeUInt;
begin
  Result := Slot + FrontGuardSize;
  if (Shift = 0) or (DebugAlignmentSize(Shift and 63) > Size) then
    Exit;
  Aligned := AlignUp(NativeUInt(Result), NativeUInt(1) shl (Shift and 63));
  if Aligned - NativeUInt(Slot) <= Size - GuardSize then
    Result := PByte(Aligned);
end;

procedure PlaceInPages(Span: PSpan; Shift: Byte; out Place: TDebugPlace);
begin
  Place.HasPages := True;
  Place.Capacity := Span^.BlockSize;
  if (Shift = 0) or (Shift > PageShift) then
    Place.Guarded := AlignUp(Place.Capacity, BlockAlignment)
  else
    Place.Guarded := AlignUp(Place.Capacity, NativeUInt(1) shl Shift);
  Place.Data := DebugLastPage(Span) - Place.Guarded;
end;

procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
var
  Span: PSpan;
  Slot: PByte;
begin
  Span := ArenaSpan(Block);
  if Span^.SizeClass = GuardedClass then
  begin
    PlaceInPages(Span, Block^.AlignShift, Place);
    Exit;
  end;
  Place.HasPages := False;
  // A single block has the number 0.
  Slot := FirstSlot(Span) + (Block - PDebugBlock(Span^.Start)) * Span^.BlockSize;
  Place.Data := DataIn(Slot, Span^.BlockSize, Block^.AlignShift);
  Place.Guarded := Span^.BlockSize - NativeUInt(Place.Data - Slot);
  Place.Capacity := Place.Guarded - GuardSize;
end;

function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt;
begin
  Result := Place.Guarded - Size;
  if Result > MostGuard then
    Result := MostGuard;
end;

function DebugBlockIsGuarded(Block: PDebugBlock): Boolean;
begin
  Result := ArenaSpan(Block)^.SizeClass = GuardedClass;
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
  Span^.CarvedBytes := 0;
  Span^.SizeClass := SizeClass;
  Span^.IsCurrent := False;
  RemoteStartLife(Span);
  Span^.Owner := NoOwner;
  SpanFormatInner(Span);
  Span^.Kind := skDebug;
end;

function DebugSpanIsFull(Span: PSpan): Boolean;
begin
  Result := (Span^.FreeList = 0) and (Span^.CarvedBytes = Span^.BlockBytes);
end;

end.
