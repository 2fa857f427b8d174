/// Spans of debug blocks: where the blocks, their guards and their bookkeeping records lie.
//
// Owns:       the layout of spans of kind skDebug. The owner fields of their records belong to
//             Debug.Lock: FreeList is the address of a TDebugBlock or 0, Used counts the blocks in
//             use and in quarantine, BlockBytes and CarvedBytes count blocks, BlockSize is the
//             distance from one to the next, IsCurrent: the span is in Debug.Spans.
// Layout:     a span begins with a TDebugBlock for each of its blocks; the blocks follow, with
//             guard bytes before each and behind each, up to the byte. So a write that misses a
//             block by a little destroys guard bytes and nothing that the report needs.
// Callers:    any thread; any pointer may be looked up.
unit LaneMM.DebugSpans;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.Layout, LaneMM.Types, LaneMM.DebugState;


const
  /// Bytes of the guard before a block, and least bytes behind it.
  GuardSize = 16;
  /// What guards hold.
  GuardByte = $E7;
  /// Behind blocks with more capacity than this only so many bytes are guarded.
  MostGuard = 256;

  /// Size class of a block alone in its span.
  SingleClass = SizeClassCount;
  /// ... and of one with guard pages: its record lies in the first page, the contents end, but for
  /// their alignment, before the last; BlockSize is the requested size.
  GuardedClass = SingleClass + 1;

type
  /// Where the parts of a block lie.
  TDebugPlace = record
    Data: PByte;          //< the contents; the first guard ends there
    Capacity: NativeUInt; //< most bytes of the contents
    Guarded: NativeUInt;  //< bytes from Data up to the end of what the other guard can cover
    HasPages: Boolean;    //< the block has guard pages
  end;

/// Largest size of a debug block.
function DebugMostSize: NativeUInt;
/// The span of debug blocks that holds P; nil when there is none. Any pointer.
function DebugSpanOf(P: Pointer): PSpan;
/// The block at P, or around it with its guards; nil when there is none. Any pointer.
function DebugBlockOf(P: Pointer): PDebugBlock;
/// How many blocks of the span were ever handed out.
function DebugBlockCount(Span: PSpan): Cardinal;
/// Block Index of the span.
function DebugBlockAt(Span: PSpan; Index: Cardinal): PDebugBlock;
/// Where its parts lie.
procedure DebugBlockPlace(Block: PDebugBlock; out Place: TDebugPlace);
/// Bytes of the guard behind Size bytes.
function DebugGuardLength(const Place: TDebugPlace; Size: NativeUInt): NativeUInt; inline;
/// Where its contents begin.
function DebugBlockData(Block: PDebugBlock): PByte;
/// Whether the block has such pages. Only the thread that changes it may touch its contents.
function DebugBlockIsGuarded(Block: PDebugBlock): Boolean;
/// The last page of a span.
function DebugLastPage(Span: PSpan): PByte; inline;
/// Makes a run of slices a span of BlockCount blocks at a distance of BlockSize bytes.
procedure DebugSpanFormat(Span: PSpan; SizeClass, BlockCount: Cardinal; BlockSize: NativeUInt);
/// Whether every block of the span is handed out or was freed into quarantine.
function DebugSpanIsFull(Span: PSpan): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.Os, LaneMM.Arena, LaneMM.Span;

const
  // TSpan.DivideMagic is so much divided by the size of a block.
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
  // 0 when the block is alone. Any number when the span is becoming another one.
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
  // A block alone in its span is the first one.
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
