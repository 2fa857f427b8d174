/// ReallocMem.
//
// Owns:       THeap.Realloc.
// Invariants: keeps the contents up to the smaller of the old usable and the requested size; a
//             block that has to move to grow gets spare bytes to grow into.
// Callers:    any thread, also before its first allocation and after its thread-end hooks.
// Errors:     no memory: run-time error 203 (EOutOfMemory), the block is unchanged; or, with
//             ReturnNilIfGrowHeapFails, nil, and the block is freed. Not a block, or a free one:
//             run-time error 204 (EInvalidPointer), nothing changed.
// Progress:   waits only in slow paths, for a lock.
// Source:     semantics: FPC rtl/inc/heap.inc; growth: le Riche, FastMM4.pas, ReallocMem.
unit LaneMM.Resize;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

type
  /// FreeMem, or a routine of the same form.
  TFreeBlock = function(P: Pointer): TSize;

/// Resizes P, which may move; keeps the contents up to the smaller of the usable size and Size.
/// P nil allocates, Size 0 frees. Returns P; nil without memory, see BlockResizeDone.
function BlockRealloc(var P: Pointer; Size: TSize): Pointer;
/// Ends a resize of P: sets it to Target, and returns that. Without memory Target is nil, and P is
/// freed by FreeBlock, as by Free Pascal's heap with ReturnNilIfGrowHeapFails: callers look at P,
/// not at the result. The C library keeps it.
function BlockResizeDone(var P: Pointer; Target: Pointer; FreeBlock: TFreeBlock): Pointer;
/// Resizes a large block, in place where it can. Returns its address; nil, and nothing changed,
/// without memory.
function ResizeLarge(Span: PSpan; Size: NativeUInt): Pointer;
/// Returns the bytes to request when a block of UsableSize bytes has to move to hold Size: Size,
/// and spare bytes to grow into.
function BlockGrownSize(UsableSize, Size: NativeUInt): NativeUInt;
/// Counts a block that ReallocMem has moved. Heap is the calling thread's, or nil.
procedure BlockCountMove(Heap: PHeap; CopiedBytes: NativeUInt);

{$ifdef LANEMM_ASM}
/// BlockRealloc in assembler, where the heap can be read with one instruction.
function FastBlockRealloc(var P: Pointer; Size: TSize): Pointer;
{$endif}

implementation

uses
  LaneMM.Hooks, LaneMM.Bits, LaneMM.Errors, LaneMM.Os, LaneMM.Backed, LaneMM.Arena, LaneMM.Span,
  LaneMM.Large, LaneMM.Heap, LaneMM.Regions, LaneMM.Threads, LaneMM.Purge, LaneMM.Limits,
  LaneMM.Foreign, LaneMM.Blocks, LaneMM.Allocate, LaneMM.Aligned, LaneMM.Free;

{$ifdef LANEMM_ASM_LINUX}
procedure CopyBlock(Source, Target: Pointer; Size: NativeUInt); forward;
{$else}
procedure CopyBlock(Source, Target: Pointer; Size: NativeUInt); inline;
begin
  Move(Source^, Target^, Size);
end;
{$endif}

const
  // A block that grew once is expected to grow again: to at least twice its size and 32 bytes while
  // it is small, to at least one and a half times its size above.
  DoubledLimit = 2048;
  DoubledExtra = 32;

function BlockGrownSize(UsableSize, Size: NativeUInt): NativeUInt;
begin
  if Process.IsMalloc and (Size <= MaxClassSize) then
    Exit(Size);
  if UsableSize <= DoubledLimit then
    Result := UsableSize * 2 + DoubledExtra
  else
    Result := UsableSize + UsableSize shr 1;
  if Result < Size then
    Result := Size;
end;

// Returns the bytes to request when a block of UsableSize bytes has to move to hold Size, which may
// be fewer.
function MovedSize(UsableSize, Size: NativeUInt): NativeUInt;
begin
  Result := Size;
  if Size > UsableSize then
    Result := BlockGrownSize(UsableSize, Size);
end;

procedure BlockCountMove(Heap: PHeap; CopiedBytes: NativeUInt);
begin
  if Heap = nil then
    Exit;
  Inc(Heap^.Realloc.Moves);
  Inc(Heap^.Realloc.CopiedBytes, CopiedBytes);
end;

// Allocates a block with the contents of P, a block of a size class or a large block, and keeps P.
// Without memory P itself, if it has room for Size bytes; else nil.
function TryCopy(Heap: PHeap; P: Pointer; UsableSize, Size, WantedSize: NativeUInt): Pointer;
begin
  Result := BlockTryGet(Heap, WantedSize);
  if Result = nil then
    Result := BlockTryGet(Heap, Size);
  if (Result = nil) and (Size <= UsableSize) then
    Exit(P);
  if Result = nil then
    Exit;
  if Size < UsableSize then
    UsableSize := Size;
  CopyBlock(P, Result, AlignUp(UsableSize, BlockAlignment));
  BlockCountMove(Heap, UsableSize);
end;

// TryCopy; without memory it fails like GetMem.
function CopyOf(Heap: PHeap; P: Pointer; UsableSize, Size, WantedSize: NativeUInt): Pointer;
begin
  Result := TryCopy(Heap, P, UsableSize, Size, WantedSize);
  if Result = nil then
    Result := LimitsRefuse(Size);
end;

// Moves P to a block of Size bytes; nil, and P unchanged, without memory.
function MoveBlock(P: Pointer; UsableSize, Size: NativeUInt): Pointer;
begin
  Result := CopyOf(OsThreadHeap, P, UsableSize, Size, Size);
  if (Result <> nil) and (Result <> P) then
    BlockFree(P);
end;

// Grows a large block in place to WantedSize, or as far as it can, but to Size. Returns whether it
// did.
function GrowInPlace(Span: PSpan; Size, WantedSize: NativeUInt): Boolean;
var
  Room: NativeUInt;
begin
  if LargeGrow(Span, WantedSize) then
    Exit(True);
  Room := LargeRoom(Span);
  if Room > WantedSize then
    Room := WantedSize;
  Result := (Room > Size) and LargeGrow(Span, Room) or LargeGrow(Span, Size);
end;

// Grows a large block to WantedSize, or to Size, in place or by a move; nil without memory.
function TryGrowLarge(Span: PSpan; Size, WantedSize: NativeUInt): PSpan;
var
  CopiedBytes: NativeUInt;
begin
  if GrowInPlace(Span, Size, WantedSize) then
    Exit(Span);
  Result := LargeMove(Span, WantedSize, CopiedBytes);
  if Result = nil then
    Result := LargeMove(Span, Size, CopiedBytes);
  if Result = nil then
    Exit;
  BlockCountMove(OsThreadHeap, CopiedBytes);
  PurgeTick;
end;

function GrowLarge(Span: PSpan; Size: NativeUInt): Pointer;
var
  Target: PSpan;
begin
  Target := TryGrowLarge(Span, Size, BlockGrownSize(Span^.BlockSize, Size));
  if (Target = nil) and LargeIsPossible(Size) then
  begin
    ProcessTrim;
    Target := TryGrowLarge(Span, Size, Size);
  end;
  if Process.HasLimits then
    LimitsTick;
  if Target = nil then
    Exit(LimitsRefuse(Size));
  Result := Target^.Start;
end;

// Moves P, which may grow, to a block of the region that it belongs to, or of none, where the
// calling thread is not; like MoveBlock.
function MoveInRegion(P: Pointer; UsableSize, Size: NativeUInt; Region: PHeap): Pointer;
var
  Before: PHeap;
  WantedSize: NativeUInt;
begin
  Before := ThreadHeap;
  Result := nil;
  if (Before = nil) or not RegionVisit(Region, Before) then
  begin
    if Size <= UsableSize then
      Exit(P);
    Exit(LimitsRefuse(Size));
  end;
  WantedSize := MovedSize(UsableSize, Size);
  if (Region <> nil)
    and BackedExceedsOf(Region^.Data, AlignUp(WantedSize, SliceSize) shr SliceShift) then
    WantedSize := Size;
  Result := TryCopy(OsThreadHeap, P, UsableSize, Size, WantedSize);
  if Result = nil then
    LimitsReport(Size); // inside, where a region's limit is found; an exception begins outside
  RegionReturn(Before);
  if Result = nil then
    Result := ErrorOutOfMemory
  else if Result <> P then
    BlockFree(P);
end;

// Grows or shortens a large block of a region in place; false if its limit or place does not allow
// that.
function TryInRegion(Span: PSpan; Region: PHeap; Size: NativeUInt): Boolean;
var
  Before, Added: NativeInt;
begin
  if not LargeIsPossible(Size) then
    Exit(False);
  Before := Span^.SliceCount;
  Added := NativeInt(AlignUp(Size, SliceSize) shr SliceShift) - Before;
  if Added <= 0 then
  begin
    LargeShrink(Span, Size);
    BackedRemoveFrom(Region^.Data, Before - NativeInt(Span^.SliceCount));
    PurgeNotifyOfLarge(Before - NativeInt(Span^.SliceCount));
    Exit(True);
  end;
  if not BackedAddTo(Region^.Data, Added) then
    Exit(False);
  Result := LargeGrow(Span, Size);
  if not Result then
    BackedRemoveFrom(Region^.Data, Added);
end;

// TryInRegion, and again after empty spans are released if the limit was the reason: a move needs
// the block twice.
function ResizeInRegion(Span: PSpan; Region: PHeap; Size: NativeUInt): Boolean;
begin
  Result := TryInRegion(Span, Region, Size);
  if Result or not Region^.Data.IsRefused then
    Exit;
  BlockTrimRegion(OsThreadHeap, Region);
  Result := TryInRegion(Span, Region, Size);
end;

function ResizeLargeOf(Region: PHeap; Span: PSpan; Size: NativeUInt): Pointer;
begin
  if (Size > MaxClassSize) and ResizeInRegion(Span, Region, Size) then
    Exit(Span^.Start);
  Result := MoveInRegion(Span^.Start, Span^.BlockSize, Size, Region);
end;

// Resizes a valid block of a size class by a move; nil without memory.
function ResizeBlock(Heap: PHeap; Span: PSpan; P: Pointer; Size: NativeUInt): Pointer;
begin
  if RegionOfHeap(RegionHeapOf(Span)) <> RegionOfHeap(Heap) then
    Exit(MoveInRegion(P, Span^.BlockSize, Size, RegionOfHeap(RegionHeapOf(Span))));
  Result := CopyOf(Heap, P, Span^.BlockSize, Size, MovedSize(Span^.BlockSize, Size));
  if (Result = nil) or (Result = P) then
    Exit;
  if Span^.Owner = Heap then
    OwnBlockFree(Heap, Span, P)
  else
    BlockFreeUnowned(P, Heap, Span);
end;

function ResizeLarge(Span: PSpan; Size: NativeUInt): Pointer;
var
  Before: NativeUInt;
begin
  Result := Span^.Start;
  Before := Span^.SliceCount;
  if ltRegion in Span^.Traits then
    Result := ResizeLargeOf(RegionHeapOf(Span)^.Region, Span, Size)
  else if Size > Span^.BlockSize then
    Result := GrowLarge(Span, Size)
  else if (Size <= MaxClassSize) and (RegionOfHeap(OsThreadHeap) <> nil) then
    Result := MoveInRegion(Result, Span^.BlockSize, Size, nil)
  else if Size <= MaxClassSize then
    Result := MoveBlock(Result, Span^.BlockSize, Size)
  else
  begin
    LargeShrink(Span, Size);
    PurgeNotifyOfLarge(Before - Span^.SliceCount);
  end;
end;

// Resizes a pointer that is no block of a size class and no large block: a debug block, a block of
// another manager, which moves here, or an invalid one.
function ResizeUnknown(var P: Pointer; Size: NativeUInt): Pointer;
var
  UsableSize: NativeUInt;
begin
  if BlockMayBeDebug(P) then
    Exit(Hooks.DebugResize(P, Size));
  if (ArenaSpan(P) <> nil) or not ForeignSize(P, UsableSize) then
    Exit(Pointer(BlockInvalid(P, icResize)));
  Result := AlignedGetBeside(P, BlockAlignment, Size);
  if Result = nil then
    Exit;
  if Size < UsableSize then
    UsableSize := Size;
  Move(P^, Result^, UsableSize); // CopyBlock needs the alignment of this manager's blocks
  BlockFree(P);
  BlockCountMove(OsThreadHeap, UsableSize);
end;

// Returns true if a block keeps its place and usable size when resized to Size.
function KeepsPlace(Span: PSpan; Size: NativeUInt): Boolean; inline;
begin
  Result := (Size <= Span^.BlockSize)
    and ((Size >= Span^.BlockSize shr KeptShift) or (Span^.BlockSize <= MostTiny));
end;

function Resize(Heap: PHeap; Span: PSpan; P: Pointer; Size: NativeUInt): Pointer;
begin
  if KeepsPlace(Span, Size) then
    Result := P
  else if Span^.Kind = skLarge then
    Result := ResizeLarge(Span, Size)
  else
    Result := ResizeBlock(Heap, Span, P, Size);
end;

// Resizes a pointer that is no block of this manager, or whose first word looks free.
function ResizeUnclear(Heap: PHeap; P: Pointer; Size: NativeUInt): Pointer;
var
  Span: PSpan;
begin
  Span := BlockSpanExact(P);
  if Span = nil then
    Result := ResizeUnknown(P, Size)
  else if (Span^.Kind = skBlocks) and BlockIsFree(Span, P) then
    Result := Pointer(BlockInvalid(P, icResize))
  else
    Result := Resize(Heap, Span, P, Size);
end;

function GetOrFree(var P: Pointer; Size: NativeUInt): Pointer;
begin
  if Size = 0 then
  begin
    BlockFree(P);
    P := nil;
  end
  else
    P := BlockGet(Size);
  Result := P;
end;

function BlockResizeDone(var P: Pointer; Target: Pointer; FreeBlock: TFreeBlock): Pointer;
begin
  Result := Target;
  if (Target = nil) and ((P = nil) or Process.IsMalloc) then
    Exit;
  if Target = nil then
    FreeBlock(P);
  P := Target;
end;

function BlockRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Span: PSpan;
  Heap: PHeap;
begin
  if (P = nil) or (Size = 0) then
    Exit(GetOrFree(P, Size));
  Heap := OsThreadHeap;
  if Heap <> nil then
    Inc(Heap^.Realloc.Calls);
  Span := BlockSpan(P);
  if (Span = nil) or not SpanBlockIsValid(Span, P) or BlockMayBeFree(Span, P) then
    Result := ResizeUnclear(Heap, P, Size)
  else
    Result := Resize(Heap, Span, P, Size);
  if Result <> nil then
    P := Result
  else
    BlockResizeDone(P, nil, BlockFree);
end;

{$ifdef LANEMM_ASM}
  {$ifdef LANEMM_ASM_LINUX}
    {$I LaneMM.Resize.x64.inc}
  {$else}
    {$I LaneMM.Resize.Windows.x64.inc}
  {$endif}
{$endif}

end.
