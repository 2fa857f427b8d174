/// Spans of debug blocks: the layout of the blocks, their guards and their bookkeeping records.
//
// Owns:       the layout of spans of kind skDebug. The owner fields of their records are guarded by
//             Debug.Lock: FreeList is the address of a TDebugBlock or 0, Used counts the blocks in
//             use, in quarantine and in TDebugCache, BlockBytes and CarvedBytes count blocks,
//             BlockSize is the distance between two blocks, IsCurrent: the span is in Debug.Spans.
// Layout:     a span begins with a TDebugBlock for each of its blocks; the blocks follow, each with
//             guard bytes before it and right after its requested size. So a small overrun or
//             underrun modifies guard bytes, and no data that the report needs.
// Callers:    any thread. DebugSpanFormat: the thread that took the span.
unit LaneMM.DebugSpans;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.DebugState;

const
  /// Bytes of the guard before a block, and least number of bytes after it.
  GuardSize = 16;
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
  LaneMM.Bits, LaneMM.Os, LaneMM.Arena, LaneMM.Span;

const
  // TSpan.DivideMagic is 2 to this power, divided by the distance of two blocks.
  MagicShift = 44;

function DebugMostSize: NativeUInt;
begin
  Result := MaxRunSlices shl SliceShift - SizeOf(TDebugBlock) - 2 * GuardSize;
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

procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
var
  Span: PSpan;
begin
  Span := ArenaSpan(Block);
  Place.HasPages := Span^.SizeClass = GuardedClass;
  if Place.HasPages then
  begin
    Place.Capacity := Span^.BlockSize;
    Place.Guarded := AlignUp(Place.Capacity, BlockAlignment);
    Place.Data := DebugLastPage(Span) - Place.Guarded;
    Exit;
  end;
  Place.Capacity := Span^.BlockSize - 2 * GuardSize;
  Place.Guarded := Place.Capacity + GuardSize;
  // A single block has the number 0.
  Place.Data := FirstSlot(Span) + GuardSize
    + (Block - PDebugBlock(Span^.Start)) * Span^.BlockSize;
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
  Span^.Remote := 0;
  Span^.Owner := NoOwner;
  SpanFormatInner(Span);
  Span^.Kind := skDebug;
end;

function DebugSpanIsFull(Span: PSpan): Boolean;
begin
  Result := (Span^.FreeList = 0) and (Span^.CarvedBytes = Span^.BlockBytes);
end;

end.
