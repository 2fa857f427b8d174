/// Soft and hard limits of the memory that the heap holds, and the emergency reserve.
//
// Owns:       Process.Limits, HasLimits, ReserveSlices, Reserve, LastRun and their spans.
//             LaneMM.Shards sets TLimit.State, too.
// Invariants: a limit counts the slices that are backed: spans in use, without spare slices, and
//             warm free runs. They are counted before they are taken, so a hard limit is exact.
//             Free memory is purged before a hard limit refuses and before a soft limit is
//             reported.
//             The reserve is one span, never touched, which counts as backed: it is part of the
//             memory that a limit allows; without a limit it is committed. It is opened when no
//             second span of its size is available, and filled again when two are: in between the
//             program must have freed as much.
//             The last run is a few slices of addresses that only small blocks get, once all other
//             memory is refused.
// Callers:    any thread that holds no lock.
unit LaneMM.Limits;

{$I ../LaneMM.inc}

interface

const
  /// Value of Process.LastRun after it was given. A lower one: it was not taken yet.
  LastRunGiven = 1;

/// Sets the limits and the size of the emergency reserve, in bytes; 0: none.
procedure LimitsSet(SoftBytes, HardBytes, ReserveBytes: NativeUInt);
/// Reports a soft limit that was reached and refills the reserve. Called after memory may have
/// grown, if Process.HasLimits.
procedure LimitsTick;
/// Takes the last run if there is none, after Size bytes were allocated: after it was given, only
/// if that was more than a small block.
procedure LastRunTick(Size: NativeUInt);
/// Gives the last run to the program, which has no memory left for a small block: an exception
/// needs some. Returns whether there was one.
function LastRunGive: Boolean;
/// Handles the failure to allocate Size bytes, after all free memory was purged: opens the reserve,
/// reports, and fails as ErrorOutOfMemory. Returns nil.
function LimitsRefuse(Size: NativeUInt): Pointer;
/// The same without the error.
procedure LimitsReport(Size: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Errors,
  LaneMM.Backed, LaneMM.Shards, LaneMM.Regions, LaneMM.Purge;

// ---------------------------------------------------------------------------- reserve

// Takes a span of the reserve's size; nil if there is none, or another thread has just set that
// there is no reserve.
function TakePiece: PSpan;
var
  Slices: NativeUInt;
begin
  Slices := Process.ReserveSlices;
  if Slices = 0 then
    Exit(nil);
  Result := ShardsTakeSpare(Slices, 0);
end;

procedure ReleasePiece(Span: PSpan);
begin
  if Span <> nil then
    ShardsReleaseZero(Span);
end;

procedure ReserveTake;
var
  Span: PSpan;
begin
  if LoadAcquire(Process.Reserve) <> 0 then
    Exit;
  Span := TakePiece;
  if Span = nil then
    Exit;
  Span^.Kind := skReserve;
  // Release: the span before its address. Pairs with TakeOut.
  if not CompareAndSwap(Process.Reserve, 0, NativeUInt(Span)) then
    ReleasePiece(Span);
end;

procedure ReserveFill;
var
  Other: PSpan;
begin
  if LoadAcquire(Process.Reserve) <> 0 then
    Exit;
  Other := TakePiece;
  if Other = nil then
    Exit;
  ReserveTake;
  ReleasePiece(Other);
end;

// Takes the reserve's span out; of several threads, one takes it and the others nil.
function TakeOut: PSpan;
begin
  Result := PSpan(Swap(Process.Reserve, 0));
end;

function ReserveOpen: Boolean;
var
  Kept, Other: PSpan;
begin
  if LoadAcquire(Process.Reserve) = 0 then
    Exit(False);
  Other := TakePiece;
  ReleasePiece(Other);
  if Other <> nil then
    Exit(False);
  Kept := TakeOut;
  ReleasePiece(Kept);
  Result := Kept <> nil;
end;

procedure ReserveDrop;
begin
  ReleasePiece(TakeOut);
end;

// ---------------------------------------------------------------------------- last run

const
  // Enough for a span of each of the classes that an exception needs.
  LastRunSlices = 8;

// Takes a last run in place of Value, if it can one that is not backed.
procedure TakeLastRun(Value: TAtomicWord);
var
  Span: PSpan;
begin
  Span := ShardsTakeSpare(0, LastRunSlices);
  if Span = nil then
    Span := ShardsTake(LastRunSlices);
  if Span = nil then
    Exit;
  Span^.Kind := skReserve;
  // Release: the span before its address. Pairs with LastRunGive.
  if not CompareAndSwap(Process.LastRun, Value, NativeUInt(Span)) then
    ShardsReleaseUnused(Span);
end;

procedure LastRunTick(Size: NativeUInt);
var
  Last: TAtomicWord;
begin
  Last := LoadAcquire(Process.LastRun);
  if (Last = 0) or (Last = LastRunGiven) and (Size > MaxSmallSize) then
    TakeLastRun(Last);
end;

function LastRunGive: Boolean;
var
  Last: TAtomicWord;
begin
  Last := Swap(Process.LastRun, LastRunGiven);
  Result := Last > LastRunGiven;
  if Result then
    ShardsReleaseUnused(PSpan(Last));
end;

// ---------------------------------------------------------------------------- reports

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
var
  Above: NativeInt; // other threads may have freed as much
begin
  Above := BackedSlices - Process.Limits[lkSoft].Slices;
  if Above > 0 then
    ShardsPurge(Above);
  if BackedExceeds(lkSoft, 0) then
    ProcessTrim;
  Result := BackedExceeds(lkSoft, 0);
end;

procedure LimitsTick;
begin
  ReserveFill;
  if (LoadAcquire(Process.Limits[lkSoft].State) <> Ord(lsReached)) or not TakesReport(lkSoft) then
    Exit;
  if BackedExceeds(lkSoft, 0) and IsAboveSoft then
    Report(leSoft, 0)
  else
    StoreRelease(Process.Limits[lkSoft].State, Ord(lsBelow));
end;

// ---------------------------------------------------------------------------- hard

// Reports, once, that the limit of the region that the thread is in has refused Size bytes. Returns
// whether it has.
function ReportRegion(Heap: PHeap; Size: NativeUInt): Boolean;
var
  Region: PHeap;
begin
  if (Heap = nil) or (Heap^.Region = nil) then
    Exit(False);
  Region := Heap^.Region;
  Result := Region^.Data.IsRefused;
  if Region^.Data.IsReported or not Result then
    Exit;
  Region^.Data.IsReported := True;
  Report(leRegion, Size);
end;

// Begins to count to the thread's next sample anew, which CountedBlockGet would never reach again
// after a size of more than half of all addresses.
procedure CountAnew(Heap: PHeap; Size: NativeUInt);
begin
  if (Heap = nil) or (Size <= High(NativeUInt) div 2) then
    Exit;
  Heap^.SampleIn := 0;
  Heap^.SampleSeed := 0;
end;

// Returns whether the hard limit may be why Size bytes were refused: its state may be that of a
// request that found other memory.
function IsOfLimit(Size: NativeUInt): Boolean;
const
  Slack = HugeSlices; // a small block may need as much for its span
begin
  Result := BackedExceeds(lkHard, Size shr SliceShift + Slack);
end;

procedure LimitsReport(Size: NativeUInt);
var
  IsLimit, IsOpened: Boolean;
begin
  CountAnew(OsThreadHeap, Size);
  IsOpened := False;
  if Process.HasLimits then
  begin
    IsLimit := IsOfLimit(Size) and TakesReport(lkHard);
    IsOpened := ReserveOpen; // first: a callback of the report may need it
    if IsLimit then
      Report(leHard, Size);
    if IsOpened then
      Report(leReserve, Size);
  end;
  if not ReportRegion(OsThreadHeap, Size) and Process.HasLimits and not IsOpened
    and (not IsOfLimit(Size) or (LoadAcquire(Process.Limits[lkHard].State) = Ord(lsBelow))) then
    Report(leRefused, Size);
end;

function LimitsRefuse(Size: NativeUInt): Pointer;
var
  Heap: PHeap;
begin
  LimitsReport(Size);
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Heap^.Region <> nil) and Heap^.IsForOne then
    RegionLeave(Heap);
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
  Slices := NativeUInt(Bytes + SliceSize - 1) shr SliceShift;
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
