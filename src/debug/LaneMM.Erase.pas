/// Fills blocks with zeros when they are freed, so that no secret stays in memory.
//
// Owns:       nothing.
// Invariants: every block is freed by EraseFree: a resize that moves a block copies it, then erases
//             the old one.
// Callers:    any thread; the entries of the memory manager while the setting `erase` is on.
// Errors:     as LaneMM.Free and LaneMM.Resize.
unit LaneMM.Erase;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// FreeMem that erases.
function EraseFree(P: Pointer): TSize;
/// FreeMemSize that erases; Size is ignored.
function EraseFreeSize(P: Pointer; Size: TSize): TSize;
/// ReallocMem that erases.
function EraseRealloc(var P: Pointer; Size: TSize): Pointer;

implementation

uses
  LaneMM.Os, LaneMM.Blocks, LaneMM.Allocate, LaneMM.Free, LaneMM.Resize;

function EraseFree(P: Pointer): TSize;
begin
  if BlockIsOurs(P) then
    FillChar(P^, BlockUsableSize(P), 0);
  Result := BlockFree(P);
end;

function EraseFreeSize(P: Pointer; Size: TSize): TSize;
begin
  Result := EraseFree(P);
end;

function EraseRealloc(var P: Pointer; Size: TSize): Pointer;
var
  OldSize, WantedSize: NativeUInt;
begin
  OldSize := 0;
  if BlockIsOurs(P) then
    OldSize := BlockUsableSize(P);
  if (OldSize = 0) or (Size = 0) or (Size <= OldSize) and (Size >= OldSize shr KeptShift) then
  begin
    if Size <> 0 then
      Exit(BlockRealloc(P, Size));
    EraseFree(P);
    P := nil;
    Exit(nil);
  end;
  WantedSize := Size;
  if Size > OldSize then
    WantedSize := BlockGrownSize(OldSize, Size);
  Result := BlockGet(WantedSize);
  if Result = nil then
    Exit;
  if OldSize > Size then
    OldSize := Size;
  Move(P^, Result^, OldSize);
  BlockCountMove(OsThreadHeap, OldSize);
  EraseFree(P);
  P := Result;
end;

end.
