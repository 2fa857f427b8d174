/// Regions for C, declared in include/lanemm.h: blocks that belong together and are freed at once.
//
// Owns:       HasTables.
// Callers:    any thread.
// Errors:     no such region: EINVAL, and a line on stderr; no memory, or the region's limit:
//             ENOMEM; a thread is in the region: EBUSY, and a line.
unit LaneMM.C.Regions;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.Text, LaneMM.Regions, LaneMM.RegionCalls, LaneMM.C.Errno, LaneMM.C.Malloc, LaneMM.C.Start,
  LaneMM.C.Status;

type
  /// struct lanemm_region_status; grows at its end only
  TLibraryRegion = TRegionState;

var
  // shared  libgcc has made its tables; two threads write the same.
  HasTables: Boolean;

function FindFrames(Code, Bases: Pointer): Pointer; cdecl; weakexternal name '_Unwind_Find_FDE';

// In a program that is linked with -static, libgcc allocates a table of frames when the first exception
// is thrown, and keeps it. Makes it before any thread can be in a region, which would be freed with it.
procedure MakeTables;
var
  Bases: array[0..2] of Pointer;
begin
  if HasTables then
    Exit;
  HasTables := True;
  if Pointer(@FindFrames) <> nil then
    FindFrames(@MakeTables, @Bases);
end;

// Sets errno after a call failed whose region was there with Reason.
procedure SetError(Handle: NativeUInt; Reason: LongInt);
begin
  if RegionFind(Handle) = nil then
    Reason := ErrorInvalid;
  ErrnoSet(Reason);
end;

function LibraryRegionCreate(Name: PAnsiChar; Limit: NativeUInt): NativeUInt; cdecl;
  [public, alias: 'lanemm_region_create'];
begin
  LibraryStart;
  MakeTables;
  Result := RegionNew(Name, Limit);
  if Result = 0 then
    ErrnoSet(ErrorNoMemory);
end;

function LibraryRegionEnter(Handle: NativeUInt): LongInt; cdecl;
  [public, alias: 'lanemm_region_enter'];
begin
  Result := Ord(RegionBegin(Handle));
  if Result = 0 then
    SetError(Handle, ErrorNoMemory);
end;

function LibraryRegionLeave: LongInt; cdecl; [public, alias: 'lanemm_region_leave'];
begin
  LibraryStart;
  Result := Ord(RegionEnd);
  if Result = 0 then
    ErrnoSet(ErrorInvalid);
end;

function LibraryRegionMalloc(Handle, Size: NativeUInt): Pointer; cdecl;
  [public, alias: 'lanemm_region_malloc'];
begin
  Result := RegionGet(Handle, Size, False);
  if Result = nil then
    SetError(Handle, ErrorNoMemory);
end;

function LibraryRegionCalloc(Handle, Count, Size: NativeUInt): Pointer; cdecl;
  [public, alias: 'lanemm_region_calloc'];
var
  Bytes: NativeUInt;
begin
  Result := nil;
  if Multiply(Count, Size, Bytes) then
    Result := RegionGet(Handle, Bytes, True);
  if Result = nil then
    SetError(Handle, ErrorNoMemory);
end;

function Empty(Handle: NativeUInt; IsLast: Boolean): LongInt;
begin
  Result := Ord(RegionEmpty(Handle, IsLast));
  if Result = 0 then
    SetError(Handle, ErrorBusy);
end;

function LibraryRegionFree(Handle: NativeUInt): LongInt; cdecl;
  [public, alias: 'lanemm_region_free'];
begin
  Result := Empty(Handle, True);
end;

function LibraryRegionReset(Handle: NativeUInt): LongInt; cdecl;
  [public, alias: 'lanemm_region_reset'];
begin
  Result := Empty(Handle, False);
end;

procedure LibraryRegionTrim(Handle: NativeUInt); cdecl; [public, alias: 'lanemm_region_trim'];
begin
  RegionRelease(Handle);
end;

procedure LibraryRegionState(Handle: NativeUInt; Target: Pointer; Size: NativeUInt); cdecl;
  [public, alias: 'lanemm_region_state'];
var
  State: TLibraryRegion;
begin
  RegionRead(Handle, State);
  RecordCopy(State, SizeOf(State), Target, Size);
end;

function LibraryRegionOf(P: Pointer): NativeUInt; cdecl; [public, alias: 'lanemm_region_of'];
begin
  LibraryStart;
  Result := RegionAt(P);
end;

procedure LibraryRegionWalk(Handle: NativeUInt; Visitor: TVisitor; Context: Pointer); cdecl;
  [public, alias: 'lanemm_region_walk'];
var
  Visit: TVisit;
begin
  if not TextHasCall(@Visitor, 'lanemm_region_walk') then
    Exit;
  Visit.Visitor := Visitor;
  Visit.Context := Context;
  RegionVisitBlocks(Handle, VisitOne, @Visit);
end;

end.
