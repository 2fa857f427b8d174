/// Fills blocks with zeros when they are freed, so that no secret stays in memory, and new blocks
/// with the byte of the setting `fill`, so that a program cannot rely on their contents.
//
// Owns:       Observe.FillBehind.
// Invariants: every block is freed by EraseFree: a resize that moves a block copies it, then erases
//             the old one.
// Callers:    any thread; the entries of the memory manager while the setting `erase` is on.
// Errors:     as LaneMM.Free and LaneMM.Resize.
unit LaneMM.Erase;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Fills a range with Value. Of one of more than 1 MB, pages of zeros are only read: those that the
/// program never touched get no memory.
procedure EraseRange(P: PByte; Size: NativeUInt; Value: Byte = 0);
/// Allocates a block of Size bytes for the contents of P, of OldSize bytes, which a resize moves,
/// in the region of P, or in none if P is in none. Without memory it fails as GetMem, but returns
/// nil alone where these shrink in the region that the thread is in.
function EraseGetBeside(P: Pointer; OldSize, Size: NativeUInt): Pointer;
/// Copies the contents of a block that is moved by a resize, and counts that. Pages as EraseRange.
procedure EraseCopy(Source, Target: PByte; Size: NativeUInt);
/// FreeMem that erases, if the setting `erase` has `free`.
function EraseFree(P: Pointer): TSize;
/// ReallocMem that likewise erases a block which moves.
function EraseRealloc(var P: Pointer; Size: TSize): Pointer;
/// Puts the entries that erase in the place of those of release mode, if `erase` has `free` and
/// ErasesFreed, and those that fill in front of the ones that allocate and resize, if it has `new`.
procedure EraseUseEntries(var Manager: TMemoryManager; ErasesFreed: Boolean);
/// Fills a block that another entry has just allocated, if `erase` has `new`; nil is allowed.
procedure EraseFillNew(P: Pointer);

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Walk, LaneMM.Blocks, LaneMM.Aligned,
  LaneMM.Allocate, LaneMM.Free, LaneMM.Resize, LaneMM.SettingsState, LaneMM.ObserveState;

const
  // The largest range that is filled or copied as a whole.
  MostWhole = 1 shl 20;

// Returns how many bytes of a range lie before its first page; all where it is no longer one.
function BytesBeforePages(P: PByte; Size: NativeUInt): NativeUInt;
begin
  Result := Size;
  if Size > MostWhole then
    Result := NativeUInt(AlignUp(NativeUInt(P), OsPageSize) - NativeUInt(P));
end;

procedure ErasePage(P: PByte; Value: Byte);
begin
  if not OsPageIsZero(PNativeUInt(P)) then
    FillChar(P^, OsPageSize, Value);
end;

procedure EraseRange(P: PByte; Size: NativeUInt; Value: Byte);
var
  Part: NativeUInt;
begin
  Part := BytesBeforePages(P, Size);
  FillChar(P^, Part, Value);
  while NativeUInt(Size - Part) >= OsPageSize do
  begin
    ErasePage(P + Part, Value);
    Inc(Part, OsPageSize);
  end;
  FillChar(P[Part], Size - Part, Value);
end;

function EraseGetBeside(P: Pointer; OldSize, Size: NativeUInt): Pointer;
begin
  if (Size < OldSize) and not BlockIsElsewhere(P, OsThreadHeap) then
    Result := BlockTryGet(OsThreadHeap, Size)
  else
    Result := AlignedGetBeside(P, BlockAlignment, Size);
end;

procedure EraseCopy(Source, Target: PByte; Size: NativeUInt);
var
  Part: NativeUInt;
begin
  BlockCountMove(OsThreadHeap, Size);
  Part := BytesBeforePages(Source, Size);
  Move(Source^, Target^, Part);
  while NativeUInt(Size - Part) >= OsPageSize do
  begin
    if OsPageIsZero(PNativeUInt(Source + Part)) then
      ErasePage(Target + Part, 0)
    else
      Move(Source[Part], Target[Part], OsPageSize);
    Inc(Part, OsPageSize);
  end;
  Move(Source[Part], Target[Part], Size - Part);
end;

function EraseFree(P: Pointer): TSize;
begin
  // A debug block gets a pattern; its first word says then of which class it was.
  if IsErasingFreed and (BlockSpanExact(P) <> nil) and BlockIsOurs(P) then
    EraseRange(P, BlockUsableSize(P));
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
  if Size = 0 then
  begin
    EraseFree(P);
    P := nil;
    Exit(nil);
  end;
  OldSize := 0;
  if IsErasingFreed and BlockIsOurs(P) then
    OldSize := BlockUsableSize(P);
  if (OldSize = 0) or (Size <= OldSize) and (Size >= OldSize shr KeptShift) then
    Exit(BlockRealloc(P, Size));
  WantedSize := Size;
  if Size > OldSize then
    WantedSize := BlockGrownSize(OldSize, Size);
  Result := EraseGetBeside(P, OldSize, WantedSize);
  if (Result = nil) and (Size < OldSize) then
    Result := P;
  if (Result = nil) or (Result = P) then
    Exit(BlockResizeDone(P, Result, EraseFree));
  if OldSize > Size then
    OldSize := Size;
  EraseCopy(P, Result, OldSize);
  EraseFree(P);
  P := Result;
end;

// Fills the usable bytes of a block from the offset First on; none of nil.
procedure FillNew(P: PByte; First: NativeUInt);
var
  Size: NativeUInt;
begin
  Size := BlockUsableSize(P);
  if Size > First then
    FillChar(P[First], Size - First, Byte(Settings.Values[opFill]));
end;

function EraseGet(Size: TSize): Pointer;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Result := Observe.FillBehind.GetMem(Size);
  FillNew(Result, 0);
end;

procedure EraseFillNew(P: Pointer);
begin
  if IsErasingNew then
    FillNew(P, 0);
end;

function EraseNewRealloc(var P: Pointer; Size: TSize): Pointer;
var
  OldSize: NativeUInt;
  IsKnown: Boolean;
begin
  IsKnown := (P = nil) or BlockIsOurs(P);
  OldSize := 0;
  if IsKnown then
    OldSize := BlockUsableSize(P);
  AcquireFence; // likewise
  Result := Observe.FillBehind.ReallocMem(P, Size);
  if IsKnown then
    FillNew(Result, OldSize);
end;

procedure EraseUseEntries(var Manager: TMemoryManager; ErasesFreed: Boolean);
begin
  if IsErasingFreed and ErasesFreed then
  begin
    Manager.FreeMem := EraseFree;
    Manager.FreeMemSize := EraseFreeSize;
    if Observe.Samples = nil then // else the entry calls it
      Manager.ReallocMem := EraseRealloc;
  end;
  if not IsErasingNew then
    Exit;
  Observe.FillBehind := Manager;
  Manager.GetMem := EraseGet;
  Manager.ReallocMem := EraseNewRealloc;
end;

end.
