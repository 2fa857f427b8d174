/// Soft and hard limits of the memory that the heap holds.
//
// Owns:       Process.Limits, HasLimits, ReserveSlices. LaneMM.Arena sets TLimit.State, too.
// Invariants: a limit counts the slices that are backed: spans in use, without spare slices, and
//             warm free runs. They are counted and taken under the arena lock, so a hard limit is
//             exact. Free memory is purged before a hard limit refuses and before a soft limit is
//             reported.
// Callers:    any thread that holds no lock.
unit LaneMM.Limits;

{$I ../LaneMM.inc}

interface

/// Sets the limits and the size of the emergency reserve, in bytes; 0: none.
procedure LimitsSet(SoftBytes, HardBytes, ReserveBytes: NativeUInt);
/// Reports a soft limit that was reached and refills the reserve. Called after memory may have
/// grown, if Process.HasLimits.
procedure LimitsTick;
/// Handles the failure to allocate Size bytes, after all free memory was purged: opens the reserve,
/// reports, and fails as ErrorOutOfMemory. Returns nil.
function LimitsRefuse(Size: NativeUInt): Pointer;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Errors, LaneMM.Arena,
  LaneMM.Reserve, LaneMM.Purge;

procedure Report(Event: TLimitEvent; Size: NativeUInt);
begin
  if @Hooks.LimitReached <> nil then
    Hooks.LimitReached(Event, Size);
end;

// Returns true if the limit was reached and this thread is the one that reports it.
function TakesReport(Kind: TLimitKind): Boolean;
begin
  Result := CompareAndSwap(Process.Limits[Kind].State, Ord(lsReached), Ord(lsReported));
end;

// ---------------------------------------------------------------------------- soft

// Purges free memory; returns true if the soft limit is still exceeded.
function IsAboveSoft: Boolean;
begin
  ArenaPurge(ArenaBackedSlices - Process.Limits[lkSoft].Slices);
  if ArenaExceeds(lkSoft, 0) then
    ProcessTrim;
  Result := ArenaExceeds(lkSoft, 0);
end;

procedure LimitsTick;
begin
  ReserveFill;
  if (LoadAcquire(Process.Limits[lkSoft].State) <> Ord(lsReached)) or not TakesReport(lkSoft) then
    Exit;
  if ArenaExceeds(lkSoft, 0) and IsAboveSoft then
    Report(leSoft, 0)
  else
    StoreRelease(Process.Limits[lkSoft].State, Ord(lsBelow));
end;

// ---------------------------------------------------------------------------- hard

function LimitsRefuse(Size: NativeUInt): Pointer;
var
  IsLimit, IsOpened: Boolean;
begin
  if Process.HasLimits then
  begin
    IsLimit := TakesReport(lkHard);
    IsOpened := ReserveOpen; // first: a callback of the report may need it
    if IsLimit then
      Report(leHard, Size);
    if IsOpened then
      Report(leReserve, Size);
  end;
  Result := ErrorOutOfMemory;
end;

// ---------------------------------------------------------------------------- all

procedure SetLimit(Kind: TLimitKind; Bytes: NativeUInt);
var
  Slices: NativeUInt;
begin
  Slices := Bytes shr SliceShift;
  if (Slices = 0) and (Bytes <> 0) then
    Slices := 1;
  if Slices = Process.Limits[Kind].Slices then
    Exit;
  Process.Limits[Kind].Slices := Slices;
  StoreRelease(Process.Limits[Kind].State, Ord(lsBelow));
end;

procedure SetReserve(Bytes: NativeUInt);
var
  Slices: NativeUInt;
begin
  Slices := (Bytes + SliceSize - 1) shr SliceShift;
  if Slices = Process.ReserveSlices then
    Exit;
  Process.ReserveSlices := 0; // no thread fills the reserve meanwhile
  ReserveDrop;
  Process.ReserveSlices := Slices;
end;

procedure LimitsSet(SoftBytes, HardBytes, ReserveBytes: NativeUInt);
begin
  SetLimit(lkSoft, SoftBytes);
  SetLimit(lkHard, HardBytes);
  SetReserve(ReserveBytes);
  Process.HasLimits := (Process.Limits[lkSoft].Slices or Process.Limits[lkHard].Slices
    or Process.ReserveSlices) <> 0;
  if Process.HasLimits then
    ReserveTake;
end;

end.
