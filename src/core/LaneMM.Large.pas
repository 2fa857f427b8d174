/// Large blocks: one block, one run of slices.
//
// Owns:       TSpan.BlockSize of large blocks: the usable bytes, whole pages; TSpan.SpareCount and
//             IsMoved; Process.MovedSpans.
// Invariants: BlockSize ends in the last slice before the SpareCount spare ones. Spare slices were
//             never touched through this block; the block grows into them without a move.
// Callers:    any thread; the block belongs to the caller.
unit LaneMM.Large;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Allocates a block of at least Size bytes, rounded to pages; nil when there is no memory.
function LargeGet(Size: NativeUInt): PSpan;
/// Overwrites the link that a block of a former span may have left where Span begins: ReallocMem
/// would copy it into a block, which would then look free.
procedure LargeForget(Span: PSpan);
/// Frees the block. Never waits.
procedure LargeFree(Span: PSpan);
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
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.RemoteList, LaneMM.Arena;

const
  // A block that had to move takes a run of this many times its size: it then grows in place, and
  // the bytes copied on the way stay a small part of its final size.
  GrowthFactor = 8;
  // Below this size a block moves to pages that are backed already, if there are any.
  SmallestSpare = 4 * 1024 * 1024;
  // Below this many bytes copying is cheaper than moving pages, whose old place must then be backed
  // anew.
  SmallestMove = SmallestSpare;
  // Each range that pages were moved to costs up to two mappings, of which a process may have
  // 65,530; above this number blocks are copied.
  MostMoved = 8192;

function SlicesFor(Size: NativeUInt): NativeUInt; inline;
begin
  Result := AlignUp(Size, SliceSize) shr SliceShift;
end;

function IsTooLarge(Size: NativeUInt): Boolean; inline;
begin
  Result := Size > MaxRunSlices shl SliceShift;
end;

procedure LargeForget(Span: PSpan);
begin
  if not Span^.IsZero then
    PBlock(Span^.Start)^.Link := HandedOut;
end;

procedure Format(Span: PSpan; Size: NativeUInt);
begin
  Span^.BlockSize := AlignUp(Size, OsPageSize);
  RemoteStartLife(Span);
  RemoteGiveUp(Span);
  LargeForget(Span);
  Span^.Used := 1;
  Span^.DivideMagic := 1;
  Span^.CarvedBytes := 1;
  Span^.Kind := skLarge;
end;

function LargeGet(Size: NativeUInt): PSpan;
begin
  if IsTooLarge(Size) then
    Exit(nil);
  Result := ArenaTake(SlicesFor(Size));
  if Result <> nil then
    Format(Result, Size);
end;

// The same with spare slices to grow into, if there is so much address space.
function LargeGetSpare(Size: NativeUInt): PSpan;
begin
  if (Size < SmallestSpare) or IsTooLarge(Size) then
    Exit(LargeGet(Size));
  Result := ArenaTakeSpare(SlicesFor(Size), SlicesFor(Size) * (GrowthFactor - 1));
  if Result = nil then
    Exit(LargeGet(Size));
  Format(Result, Size);
end;

// Releases a run to the arena. A run that pages were moved to is first made one mapping with its
// surroundings again, and then reads as zeros.
procedure Release(Span: PSpan);
begin
  if not Span^.IsMoved then
  begin
    ArenaRelease(Span);
    Exit;
  end;
  OsErase(Span^.Start, (Span^.SliceCount - Span^.SpareCount) * SliceSize);
  if OsRenew(Span^.Start, Span^.SliceCount * SliceSize) then
    ArenaReleaseZero(Span)
  else
    ArenaRelease(Span);
end;

procedure LargeFree(Span: PSpan);
begin
  Span^.Kind := skReleased;
  RemoteEndLife(Span);
  if Span^.IsMoved then
    FetchAdd(Process.MovedSpans, NativeUInt(-1));
  Release(Span);
end;

function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
var
  Needed, Spare: NativeUInt;
begin
  if IsTooLarge(Size) then
    Exit(False);
  Needed := SlicesFor(Size);
  Spare := Span^.SpareCount;
  if Needed < Span^.SliceCount then
    Dec(Spare, Span^.SliceCount - Needed);
  if not ArenaUseSpare(Spare) then
    Exit(False);
  Result := (Needed <= Span^.SliceCount) or ArenaGrow(Span, Needed);
  if not Result then
  begin
    FetchAdd(Process.SpareSlices, Spare);
    Exit;
  end;
  Dec(Span^.SpareCount, Spare);
  Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

procedure LargeShrink(Span: PSpan; Size: NativeUInt);
begin
  if SlicesFor(Size) < Span^.SliceCount then
    Release(ArenaSplit(Span, SlicesFor(Size)));
  Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

// Returns true if the pages of Source may be moved. Not a second time: a block that was moved and
// has grown since is two mappings.
function CanMove(Source: PSpan): Boolean;
begin
  Result := (Source^.BlockSize >= SmallestMove) and not Source^.IsMoved
    and (LoadAcquire(Process.MovedSpans) < MostMoved);
end;

// Moves all pages of Source to the longer run Target. Returns whether it did.
function MovePages(Source, Target: PSpan): Boolean;
begin
  Result := OsMove(Source^.Start, Target^.Start, Source^.SliceCount * SliceSize);
  if not Result then
    Exit;
  Target^.IsMoved := True;
  FetchAdd(Process.MovedSpans, 1);
end;

// Returns a new place for the block. Moving is the number of slices whose pages are to be moved
// there: until then they count as spare, since memory is not needed twice. It becomes 0 when there
// is no such place, and the contents are to be copied.
function NewPlace(Span: PSpan; Size: NativeUInt; var Moving: NativeUInt): PSpan;
var
  Needed: NativeUInt;
begin
  Result := nil;
  Needed := SlicesFor(Size);
  if Moving <> 0 then
    Result := ArenaTakeSpare(Needed - Moving, Needed * (GrowthFactor - 1) + Moving);
  if (Result = nil) and (Moving <> 0) and (Needed >= Span^.SliceCount) then
    Result := ArenaTakeSpare(Needed - Moving, Moving);
  if Result <> nil then
    Format(Result, Size)
  else
  begin
    Moving := 0;
    Result := LargeGetSpare(Size);
  end;
end;

function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;
var
  Moving: NativeUInt;
begin
  Copied := 0;
  if IsTooLarge(Size) then
    Exit(nil);
  Moving := 0;
  if CanMove(Span) then
    Moving := SlicesFor(Span^.BlockSize);
  Result := NewPlace(Span, Size, Moving);
  if Result = nil then
    Exit;
  if (Moving <> 0) and MovePages(Span, Result) then
  begin
    // The pages are at the new place; the whole run that they left is spare.
    Dec(Result^.SpareCount, Moving);
    Span^.SpareCount := Span^.SliceCount;
    RemoteEndLife(Span);
    ArenaReleaseZero(Span);
    Exit;
  end;
  if not ArenaUseSpare(Moving) then
  begin
    ArenaReleaseUnused(Result); // there is no memory for a copy
    Exit(nil);
  end;
  Dec(Result^.SpareCount, Moving);
  Copied := Span^.BlockSize;
  Move(Span^.Start^, Result^.Start^, Copied);
  LargeFree(Span);
end;

end.
