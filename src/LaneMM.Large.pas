/// Large blocks: one block, one run of slices.
//
// Owns:       TSpan.BlockSize of large blocks: the usable bytes, whole pages.
// Invariants: BlockSize <= SliceCount * SliceSize. Room behind BlockSize is address space that
//             was never touched through this block; growing into it is free.
// Callers:    any thread; the block belongs to the caller.
unit LaneMM.Large;

{$I LaneMM.inc}

interface

uses
  LaneMM.Types;

/// A block of at least Size bytes, rounded to pages; nil when there is no memory.
function LargeGet(Size: NativeUInt): PSpan;
/// Frees the block. Never waits.
procedure LargeFree(Span: PSpan);
/// Makes the usable size at least Size, without moving; tells whether it could.
function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
/// Makes the usable size Size, rounded up, which is smaller than it was.
procedure LargeShrink(Span: PSpan; Size: NativeUInt);
/// Moves the block's pages to a new place of Size usable bytes, no fewer than it has, without
/// copying where the system can. Copied tells the bytes that were copied. Nil, and nothing
/// changed, when there is no memory.
function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Arena;

const
  // A block that had to move gets a run of this many times its size: it grows on in place, and
  // what is copied on the way stays a small part of what it becomes.
  GrowthRoom = 8;
  // Below this size a block that moves goes where pages are backed already, if there are any.
  SmallestRoom = 4 * 1024 * 1024;
  // Below this many bytes copying is cheaper than moving pages, which must be backed anew where
  // they came from.
  SmallestMove = SmallestRoom;
  // Each range that pages were moved to is up to two more mappings for the system, which has
  // 65,530 of them for a process; above this number blocks are copied.
  MostMoved = 8192;

function SlicesFor(Size: NativeUInt): NativeUInt; inline;
begin
  Result := AlignUp(Size, SliceSize) shr SliceShift;
end;

function IsTooLarge(Size: NativeUInt): Boolean; inline;
begin
  Result := Size > MaxRunSlices shl SliceShift;
end;

// Slices behind the usable size.
function RoomSlices(Span: PSpan): NativeUInt; inline;
begin
  Result := Span^.SliceCount - SlicesFor(Span^.BlockSize);
end;

// Sets the usable size of a block whose slices were RoomBefore more than it needed.
procedure SetSize(Span: PSpan; Size, RoomBefore: NativeUInt);
begin
  Span^.BlockSize := AlignUp(Size, OsPageSize);
  if RoomSlices(Span) <> RoomBefore then
    FetchAdd(Process.RoomSlices, RoomSlices(Span) - RoomBefore);
end;

procedure Format(Span: PSpan; Size: NativeUInt);
begin
  SetSize(Span, Size, 0);
  Span^.Remote := 0;
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

// The same with room to grow in place, if there is so much address space.
function LargeGetRoom(Size: NativeUInt): PSpan;
begin
  if (Size < SmallestRoom) or IsTooLarge(Size) then
    Exit(LargeGet(Size));
  Result := ArenaTakeRoom(SlicesFor(Size) * GrowthRoom);
  if Result = nil then
    Exit(LargeGet(Size));
  Format(Result, Size);
end;

// Gives a run back. One that pages were moved to is made whole first, and reads as zeros then.
procedure Release(Span: PSpan);
begin
  if not Span^.IsMoved then
    ArenaRelease(Span)
  else if OsRenew(Span^.Start, Span^.SliceCount * SliceSize) then
    ArenaReleaseZero(Span)
  else
    ArenaRelease(Span);
end;

procedure LargeFree(Span: PSpan);
begin
  Span^.Kind := skReleased;
  SetSize(Span, Span^.SliceCount shl SliceShift, RoomSlices(Span));
  if Span^.IsMoved then
    FetchAdd(Process.MovedSpans, NativeUInt(-1));
  Release(Span);
end;

function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
var
  RoomBefore: NativeUInt;
begin
  if IsTooLarge(Size) then
    Exit(False);
  RoomBefore := RoomSlices(Span);
  Result := (SlicesFor(Size) <= Span^.SliceCount) or ArenaGrow(Span, SlicesFor(Size));
  if Result then
    SetSize(Span, Size, RoomBefore);
end;

procedure LargeShrink(Span: PSpan; Size: NativeUInt);
var
  RoomBefore: NativeUInt;
begin
  RoomBefore := RoomSlices(Span);
  if SlicesFor(Size) < Span^.SliceCount then
    Release(ArenaSplit(Span, SlicesFor(Size)));
  SetSize(Span, Size, RoomBefore);
end;

// Moves the pages of Source, all of them, to the longer run Target. Not twice: what was moved and
// has grown since is two mappings.
function MovePages(Source, Target: PSpan): Boolean;
begin
  Result := (Source^.BlockSize >= SmallestMove) and not Source^.IsMoved
    and (LoadAcquire(Process.MovedSpans) < MostMoved)
    and OsMove(Source^.Start, Target^.Start, Source^.SliceCount * SliceSize);
  if not Result then
    Exit;
  Target^.IsMoved := True;
  FetchAdd(Process.MovedSpans, 1);
  SetSize(Source, Source^.SliceCount shl SliceShift, RoomSlices(Source));
  ArenaReleaseZero(Source);
end;

function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;
begin
  Copied := 0;
  Result := LargeGetRoom(Size);
  if (Result = nil) or MovePages(Span, Result) then
    Exit;
  Copied := Span^.BlockSize;
  Move(Span^.Start^, Result^.Start^, Copied);
  LargeFree(Span);
end;

end.
