/// The entries of the manager while calls are counted or recorded.
//
// Owns:       Calls, the routines behind them, which LaneMM.Watch sets.
// Callers:    the installed manager while a count or a recording is on, and up to the next change
//             of the entries after that. A count that begins in the middle of a call does not see
//             it.
// Progress:   as LaneMM.Counting and LaneMM.Recording.
unit LaneMM.SeenCalls;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Returns whether calls are counted or recorded.
function CallsAreSeen: Boolean;
/// Counts and records a block of Size requested bytes, or nil, at a multiple of Alignment, that was
/// allocated without an entry.
procedure CallsSee(P: Pointer; Size, Alignment: NativeUInt);
/// Puts the entries in front of those of Manager.
procedure CallsUseEntries(var Manager: TMemoryManager);

implementation

uses
  LaneMM.Atomic, LaneMM.RecordFormat, LaneMM.Counting, LaneMM.Recording;

var
  Calls: TMemoryManager;

function CallsAreSeen: Boolean;
begin
  Result := CountingIsOn or RecordingIsOn;
end;

procedure SeeNew(Kind: TRecordKind; P: Pointer; Size, Alignment: NativeUInt);
begin
  if CountingIsOn and (P <> nil) and (@Calls.MemSize <> nil) then
    CountCall(ceAllocation, P, Size, NativeInt(Calls.MemSize(P)));
  RecordCall(Kind, P, Size, Alignment);
end;

procedure CallsSee(P: Pointer; Size, Alignment: NativeUInt);
begin
  SeeNew(rkAligned, P, Size, Alignment);
end;

function SeenGet(Size: TSize): Pointer;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  Result := Calls.GetMem(Size);
  SeeNew(rkNew, Result, Size, 0);
end;

function SeenGetZero(Size: TSize): Pointer;
begin
  AcquireFence; // likewise
  Result := Calls.AllocMem(Size);
  SeeNew(rkZero, Result, Size, 0);
end;

function SeenFree(P: Pointer): TSize;
begin
  AcquireFence; // likewise
  RecordCall(rkFree, P, 0, 0);
  Result := Calls.FreeMem(P);
  if P <> nil then
    CountCall(ceFree, nil, 0, -NativeInt(Result));
end;

function SeenFreeSize(P: Pointer; Size: TSize): TSize;
var
  Usable: NativeInt;
  IsCounted: Boolean;
begin
  AcquireFence; // likewise
  if P = nil then
    Exit(Calls.FreeMemSize(P, Size));
  Usable := 0;
  IsCounted := CountingIsOn;
  if IsCounted then
    Usable := Calls.MemSize(P);
  RecordCall(rkFree, P, 0, 0);
  Result := Calls.FreeMemSize(P, Size);
  if IsCounted then
    CountCall(ceFree, nil, 0, -Usable);
end;

function SeenRealloc(var P: Pointer; Size: TSize): Pointer;
const
  Begins: array[Boolean] of TRecordKind = (rkMoving, rkFree);
var
  Before: Pointer;
  Usable: NativeInt;
  IsCounted: Boolean;
begin
  AcquireFence; // likewise
  Before := P;
  Usable := 0;
  IsCounted := CountingIsOn and (Before <> nil);
  if IsCounted then
    Usable := Calls.MemSize(Before);
  RecordCall(Begins[Size = 0], Before, 0, 0);
  Result := Calls.ReallocMem(P, Size);
  if Before = nil then
    SeeNew(rkNew, P, Size, 0)
  else if (Size <> 0) and (Result = nil) then
  begin
    RecordCall(rkMoved, Before, 0, 0);
    if P = nil then
      RecordCall(rkFree, Before, 0, 0);
  end
  else if Size <> 0 then
    RecordCall(rkMoved, Result, Size, 0);
  if not IsCounted then
    Exit;
  if P = nil then
    CountCall(ceFree, nil, 0, -Usable)
  else if Result <> nil then
    CountCall(ceResize, nil, Size, NativeInt(Calls.MemSize(P)) - Usable);
  if (Size <> 0) and (Result <> nil) and (P <> Before) then
    CountCall(ceMove, nil, 0, 0);
end;

procedure CallsUseEntries(var Manager: TMemoryManager);
begin
  Calls := Manager;
  Manager.GetMem := SeenGet;
  Manager.AllocMem := SeenGetZero;
  Manager.ReallocMem := SeenRealloc;
  Manager.FreeMem := SeenFree;
  Manager.FreeMemSize := SeenFreeSize;
end;

end.
