/// The extended interface of jemalloc: programs that were linked with it find it here, on blocks of
/// LaneMM. What is the same whatever the flags is with malloc's relatives.
//
// Owns:       nothing.
// Flags:      alignment and zeroing are obeyed. Caches and arenas that a call names are not: each
//             thread has its own spans anyway.
// Callers:    any thread.
// Source:     jemalloc 5.3, jemalloc(3).
unit LaneMM.C.Jemalloc;

{$I ../src/LaneMM.inc}
{$stackframes on} // as in LaneMM.C.Malloc

interface

/// Returns the usable size that a block of Size bytes would have; 0 if there is none of this size.
function NallocX(Size: NativeUInt; Flags: LongInt): NativeUInt; cdecl;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Arena,
  LaneMM.Aligned, LaneMM.Large, LaneMM.Purge, LaneMM.Limits, LaneMM.DebugState, LaneMM.Debug,
  LaneMM.Erase, LaneMM.AlignedBlocks, LaneMM.C.Malloc;

const
  AlignMask = 63; // the power of two
  FlagZero = 64;

function AlignmentOf(Flags: LongInt): NativeUInt; inline;
begin
  Result := NativeUInt(1) shl (Flags and AlignMask);
end;

function HasZero(Flags: LongInt): Boolean; inline;
begin
  Result := Flags and FlagZero <> 0;
end;

// Clears a new block for Size bytes; a large one that was never touched has zeros but in its first
// word. Returns it; nil where the system does not commit its pages again.
function Cleared(P: PByte; Size: NativeUInt): Pointer;
var
  Span: PSpan;
begin
  Result := P;
  Span := ArenaSpan(P);
  if not Process.IsDirect or (Span = nil) or (Span^.Kind <> skLarge) then
    EraseRange(P, UsableSize(P))
  else if Span^.IsZero then
  begin
    PBlock(P)^.Link := 0;
    Span^.IsZero := False; // the program may leave the zeros as they are
  end
  else if not PurgeClear(Span) then
    Result := LimitsRefuse(Size);
end;

function MallocX(Size: NativeUInt; Flags: LongInt): Pointer; cdecl; [public, alias: 'mallocx'];
var
  Alignment: NativeUInt;
begin
  Alignment := AlignmentOf(Flags);
  if (Alignment <= BlockAlignment) and HasZero(Flags) then
    Result := Calloc(1, Size)
  else if Alignment <= BlockAlignment then
    Result := Malloc(Size)
  else
  begin
    Result := AlignedAlloc(Alignment, Size);
    if (Result <> nil) and HasZero(Flags) then
      Result := Cleared(Result, Size);
  end;
end;

// Resizes a block that has to keep an alignment.
function ReallocAligned(P: Pointer; Alignment, Usable, Size: NativeUInt): Pointer;
begin
  if (NativeUInt(P) and (Alignment - 1) = 0) and (Size <= Usable) and (Size >= Usable div 2) then
    Exit(P);
  if Process.IsDirect then
    Result := AlignedGetBeside(P, Alignment, Size)
  else
    Result := AlignedGetWatched(P, Alignment, Size);
  if Result = nil then
    Exit;
  if Size < Usable then
    Usable := Size;
  Move(P^, Result^, Usable);
  Free(P);
end;

// All bytes of the old usable size are kept; those that a smaller block has beyond Size are cleared.
function RallocX(P: Pointer; Size: NativeUInt; Flags: LongInt): Pointer; cdecl;
  [public, alias: 'rallocx'];
var
  Usable, Kept: NativeUInt;
begin
  if Size = 0 then
    Size := 1;
  Usable := UsableSize(P);
  if AlignmentOf(Flags) <= BlockAlignment then
    Result := Realloc(P, Size)
  else
    Result := ReallocAligned(P, AlignmentOf(Flags), Usable, Size);
  if (Result = nil) or not HasZero(Flags) then
    Exit;
  Kept := Usable;
  if (Result <> P) and (Size < Kept) then
    Kept := Size;
  Usable := UsableSize(Result);
  if Usable > Kept then
    EraseRange(PByte(Result) + Kept, Usable - Kept);
end;

// Resizes a large block in place, unless a region counts it.
function XallocX(P: Pointer; Size, Extra: NativeUInt; Flags: LongInt): NativeUInt; cdecl;
  [public, alias: 'xallocx'];
var
  Span: PSpan;
  Usable: NativeUInt;
begin
  Usable := UsableSize(P);
  Result := Usable;
  if Extra > High(Size) - Size then
    Extra := High(Size) - Size;
  Span := ArenaSpan(P);
  if not Process.IsDirect or (Span = nil) or (Span^.Kind <> skLarge)
    or (ltRegion in Span^.Traits) or (Size + Extra <= Usable) then
    Exit;
  if not LargeGrow(Span, Size + Extra) and ((Size <= Usable) or not LargeGrow(Span, Size)) then
    Exit;
  Result := UsableSize(P);
  if HasZero(Flags) then
    EraseRange(PByte(P) + Usable, Result - Usable);
end;

function NallocX(Size: NativeUInt; Flags: LongInt): NativeUInt;
  [public, alias: 'nallocx', alias: 'tc_nallocx'];
begin
  if Size = 0 then
    Size := 1;
  Result := 0;
  if (Size > MaxRunSlices shl SliceShift) or (AlignmentOf(Flags) > MaxRunSlices shl SliceShift) then
    Exit;
  if DebugIsOn or (Debug.MarkBytes <> 0) then // such blocks have the size that was requested
    Exit(Size);
  if AlignmentOf(Flags) > SliceSize then
    Exit(AlignUp(Size, OsPageSize));
  Size := AlignedRequest(AlignmentOf(Flags), Size);
  if Size <= MaxClassSize then
    Result := ClassToSize(SizeToClass(Size))
  else
    Result := AlignUp(Size, OsPageSize);
end;

end.
