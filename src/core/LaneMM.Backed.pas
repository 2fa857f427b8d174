/// Counts the slices that are backed, and refuses those that a hard limit does not allow.
//
// Owns:       Process.Backed, PeakSlices.
// Invariants: Backed is raised before slices are taken and lowered after they are given back: a
//             hard limit is exact with any number of threads.
// Callers:    any thread.
// Progress:   lock-free.
unit LaneMM.Backed;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Returns the slices that count as backed; may be out of date while other threads run.
function BackedSlices: NativeUInt;
/// Returns true if a limit of this kind is set that SliceCount more backed slices would exceed.
function BackedExceeds(Kind: TLimitKind; SliceCount: NativeUInt): Boolean;
/// Counts SliceCount slices as backed unless the hard limit refuses them.
function BackedAdd(SliceCount: NativeUInt): Boolean;
/// Counts slices as backed no more.
procedure BackedRemove(SliceCount: NativeUInt);
/// Counts SliceCount slices, which BackedAdd has counted, as those of a region, unless its limit
/// refuses them.
function BackedAddTo(var Region: TRegion; SliceCount: NativeUInt): Boolean;
/// Returns whether the limit of a region refuses SliceCount slices more.
function BackedExceedsOf(const Region: TRegion; SliceCount: NativeUInt): Boolean;
/// Counts slices of a heap that are released; does nothing for a heap of no region, or of one that
/// was freed.
procedure BackedRemoveOf(Heap: PHeap; SliceCount: NativeUInt);
/// Counts slices as those of a region no more.
procedure BackedRemoveFrom(var Region: TRegion; SliceCount: NativeUInt);

implementation

uses
  LaneMM.Atomic;

const
  // Memory has clearly fallen when it is one part in this many of the limit below the limit.
  FallenShare = 8;

function BackedSlices: NativeUInt;
begin
  Result := LoadAcquire(Process.Backed);
end;

// Returns true if Backed slices exceed a limit of this kind.
function Exceed(Kind: TLimitKind; Backed: NativeUInt): Boolean;
var
  Limit: NativeUInt;
begin
  Limit := Process.Limits[Kind].Slices;
  Result := (Limit <> 0) and (Backed > Limit);
end;

function BackedExceeds(Kind: TLimitKind; SliceCount: NativeUInt): Boolean;
begin
  Result := Exceed(Kind, BackedSlices + SliceCount);
end;

// Exceed for Backed slices that rise by SliceCount: records that the limit is reached, or no
// longer, so that it is reported once until memory has clearly fallen.
function Reach(Kind: TLimitKind; Backed, SliceCount: NativeUInt): Boolean;
var
  Limit: ^TLimit;
begin
  Limit := @Process.Limits[Kind];
  if (LoadAcquire(Limit^.State) = Ord(lsReported))
    and (Backed < NativeUInt(Limit^.Slices - Limit^.Slices div FallenShare)) then
    CompareAndSwap(Limit^.State, Ord(lsReported), Ord(lsBelow));
  Result := Exceed(Kind, Backed + SliceCount);
  if Result then
    CompareAndSwap(Limit^.State, Ord(lsBelow), Ord(lsReached));
end;

function BackedAdd(SliceCount: NativeUInt): Boolean;
var
  Backed: NativeUInt;
begin
  repeat
    Backed := LoadAcquire(Process.Backed);
    if Process.HasLimits and Reach(lkHard, Backed, SliceCount) then
      Exit(False);
  until CompareAndSwap(Process.Backed, Backed, Backed + SliceCount);
  if Process.HasLimits then
    Reach(lkSoft, Backed, SliceCount);
  if Backed + SliceCount > Process.PeakSlices then
  begin
    Process.PeakSlices := Backed + SliceCount;
    if Process.PeakSlices >= Process.BoxSlices then
      Process.BoxIsDue := True;
  end;
  Result := True;
end;

procedure BackedRemove(SliceCount: NativeUInt);
begin
  FetchAdd(Process.Backed, 0 - SliceCount);
end;

// Returns whether Slices of a region are more than it may have, SliceCount of them new ones.
function ExceedIn(const Region: TRegion; Slices, SliceCount: NativeUInt): Boolean;
begin
  if not Region.IsReported or (SliceCount > 1) then
    Inc(Slices, RegionReserve);
  Result := (Region.Limit <> 0) and (Slices > Region.Limit);
end;

function BackedExceedsOf(const Region: TRegion; SliceCount: NativeUInt): Boolean;
begin
  Result := ExceedIn(Region, Region.Slices + SliceCount, SliceCount);
end;

function BackedAddTo(var Region: TRegion; SliceCount: NativeUInt): Boolean;
var
  Slices: NativeUInt;
begin
  repeat
    Slices := LoadAcquire(Region.Slices);
    Result := not ExceedIn(Region, Slices + SliceCount, SliceCount);
    Region.IsRefused := not Result;
    if not Result then
      Exit;
    // Full barrier: with nothing; the count alone is shared.
  until CompareAndSwap(Region.Slices, Slices, Slices + SliceCount);
  if Slices + SliceCount > Region.Peak then
    Region.Peak := Slices + SliceCount;
end;

procedure BackedRemoveFrom(var Region: TRegion; SliceCount: NativeUInt);
begin
  FetchAdd(Region.Slices, NativeUInt(-NativeInt(SliceCount)));
  if Region.IsReported
    and (Region.Slices < NativeUInt(Region.Limit - Region.Limit div FallenShare)) then
    Region.IsReported := False;
end;

procedure BackedRemoveOf(Heap: PHeap; SliceCount: NativeUInt);
begin
  if Heap^.Region <> nil then
    BackedRemoveFrom(Heap^.Region^.Data, SliceCount);
end;

end.
