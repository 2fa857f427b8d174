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
  // Below this many bytes copying is cheaper than moving pages.
  SmallestMove = 256 * 1024;
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

function LargeGet(Size: NativeUInt): PSpan;
begin
  if IsTooLarge(Size) then
    Exit(nil);
  Result := ArenaTake(SlicesFor(Size));
  if Result = nil then
    Exit;
  Result^.BlockSize := AlignUp(Size, OsPageSize);
  Result^.Remote := 0;
  Result^.Used := 1;
  Result^.Kind := skLarge;
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
  if Span^.IsMoved then
    FetchAdd(Process.MovedSpans, NativeUInt(-1));
  Release(Span);
end;

function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
begin
  if IsTooLarge(Size) then
    Exit(False);
  Result := (SlicesFor(Size) <= Span^.SliceCount) or ArenaGrow(Span, SlicesFor(Size));
  if Result then
    Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

procedure LargeShrink(Span: PSpan; Size: NativeUInt);
begin
  Span^.BlockSize := AlignUp(Size, OsPageSize);
  if SlicesFor(Size) < Span^.SliceCount then
    Release(ArenaSplit(Span, SlicesFor(Size)));
end;

// Moves the pages of Source, all of them, to the longer run Target.
function MovePages(Source, Target: PSpan): Boolean;
begin
  Result := (Source^.BlockSize >= SmallestMove) and (LoadAcquire(Process.MovedSpans) < MostMoved)
    and OsMove(Source^.Start, Target^.Start, Source^.SliceCount * SliceSize);
  if not Result then
    Exit;
  Target^.IsMoved := True;
  FetchAdd(Process.MovedSpans, 1);
  if Source^.IsMoved then
    LargeFree(Source)
  else
    ArenaReleaseZero(Source);
end;

function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;
begin
  Copied := 0;
  Result := LargeGet(Size);
  if (Result = nil) or MovePages(Span, Result) then
    Exit;
  Copied := Span^.BlockSize;
  Move(Span^.Start^, Result^.Start^, Copied);
  LargeFree(Span);
end;

end.
