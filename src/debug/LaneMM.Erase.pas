/// Fills blocks with zeros when they are freed, so that nothing secret stays in memory.
//
// Owns:       nothing.
// Invariants: whatever leaves a block behind goes through EraseFree: a block that has to move is
//             copied, and the old one erased.
// Callers:    any thread; the entries of the memory manager while the setting `erase` is on.
// Errors:     as LaneMM.Blocks.
unit LaneMM.Erase;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.Layout;



/// FreeMem that erases.
function EraseFree(P: Pointer): TSize;
/// The same with a size, which does not count.
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
