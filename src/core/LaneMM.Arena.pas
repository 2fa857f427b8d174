/// Reserves arenas, cuts spans from them, and purges free memory.
//
// Owns:       Process.Arenas, ArenaCount, Base, Limit, Spans, DirectLimit, Released, PeakSlices,
//             SpareSlices, WarmLow, LookedMs, ClockDue.
// Invariants: each arena is one reserved range, committed from its start to Committed; slices
//             below Frontier belong to spans and free runs, those above were never touched.
//             A released span waits on Process.Released while another thread has the lock; that
//             thread checks the list again after it leaves the lock, so no span is lost.
// Callers:    ArenaRelease, ArenaReleaseZero: any thread, never wait. The others that take the
//             lock: any thread, may wait for it.
// Progress:   ArenaRelease is lock-free; it takes the lock only if it is free.
unit LaneMM.Arena;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// Kinds of the first records of spans in use.
  KindsInUse = [skBlocks, skLarge, skDebug, skReserve];
  /// For ArenaPurge: all free slices.
  AllSlices = High(NativeUInt) shr 1;

/// Takes a run of slices for the caller to format: Start, SliceCount and IsZero are set. Nil when
/// the system or a hard limit refuses memory. The caller owns the run until ArenaRelease.
function ArenaTake(SliceCount: NativeUInt): PSpan;
/// The same from slices that are not backed yet, with SpareCount more slices at the end that may
/// stay unused: they are counted in Process.SpareSlices.
function ArenaTakeSpare(SliceCount, SpareCount: NativeUInt): PSpan;
/// Takes slices off Process.SpareSlices that the caller is about to use. Returns false, and changes
/// nothing, when the hard limit refuses them.
function ArenaUseSpare(SliceCount: NativeUInt): Boolean;
/// Makes a span a free run. No thread may use its blocks any more.
procedure ArenaRelease(Span: PSpan);
/// The same for a span that reads as zeros: its pages were never touched, or moved away.
procedure ArenaReleaseZero(Span: PSpan);
/// Makes a run that was not touched since ArenaTake free again.
procedure ArenaReleaseUnused(Span: PSpan);
/// Lengthens a span without spare slices in place to SliceCount slices. Returns false, and changes
/// nothing, when the slices after it are not free or a hard limit refuses them.
function ArenaGrow(Span: PSpan; SliceCount: NativeUInt): Boolean;
/// Shortens a span in place to SliceCount slices. Returns the rest, spare slices included, a span
/// of its own that the caller releases.
function ArenaSplit(Span: PSpan; SliceCount: NativeUInt): PSpan;
/// Returns the span record of the slice that holds P; nil when P lies in no arena. Any pointer.
function ArenaSpan(P: Pointer): PSpan; inline;
/// The same for an address that is not in the first arena.
function ArenaSpanSlow(P: Pointer): PSpan;
/// Returns the first record of the span, of one of these kinds, that has Slice as a later record;
/// nil if none. A record left over from an earlier span may be skInner, too.
function ArenaFirst(Slice: PSpan; Kinds: TSpanKinds): PSpan; inline;

/// Returns true once per Process.PurgeDelayMs: it is time to purge. Reads the clock at one call of
/// many.
function ArenaLookIsDue: Boolean;
/// Returns the warm slices that stayed free since the last call of this function. Memory that is
/// taken and released all the time does not count: it stays warm.
function ArenaIdleSlices: NativeUInt;
/// Returns the slices that count as backed; may be out of date while other threads run.
function ArenaBackedSlices: NativeUInt;
/// Returns true if a limit of this kind is set that SliceCount more backed slices would exceed.
function ArenaExceeds(Kind: TLimitKind; SliceCount: NativeUInt): Boolean;
/// Purges at most SliceCount warm slices, those unused for longest.
procedure ArenaPurge(SliceCount: NativeUInt);

/// Sets Process.DirectLimit as Process.IsDirect requires.
procedure ArenaApplyDirect;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.FreeRuns;

const
  SmallestArenaSize = NativeUInt(1) shl 22;
  // An arena that was refused at the wanted size keeps one part in this many of the granted range:
  // thread stacks, for example, need addresses too.
  LimitedShare = 4;
  // Slices that are committed at once; their records then fill whole pages.
  CommitStep = 512;
  // Runs checked in the bin whose runs may be too short, before a longer run is cut; and when there
  // is no longer run.
  FewTries = 8;
  AllTries = High(NativeUInt);
  // Calls between two reads of the clock.
  ClockInterval = 16;
  // Memory has clearly fallen when it is one part in this many of the limit below the limit.
  FallenShare = 8;

// ---------------------------------------------------------------------------- arenas

// Reserves the records of SliceCount slices, and one more at each end whose Kind stays skNone.
function ReserveSpans(SliceCount: NativeUInt): PSpan;
begin
  Result := OsReserve(AlignUp((SliceCount + 2) * SizeOf(TSpan), SliceSize));
  if Result <> nil then
    Inc(Result);
end;

function ReserveRange(out Size: NativeUInt): PByte;
begin
  Size := WantedArenaSize;
  Result := OsReserve(Size);
  if Result <> nil then
    Exit;
  repeat
    Size := Size shr 1;
    if Size < SmallestArenaSize then
      Exit(nil);
    Result := OsReserve(Size);
  until Result <> nil;
  OsRelease(Result + Size div LimitedShare, Size - Size div LimitedShare);
  Size := Size div LimitedShare;
end;

// Requests huge pages above Process.HugeFrom: in a large heap the memory that they round up to is a
// small part.
procedure UseHugePages(Arena: PArena; First, Limit: NativeUInt);
var
  HugeFrom: NativeUInt;
begin
  HugeFrom := Process.HugeFrom;
  if HugeFrom = 0 then
    Exit;
  if First < HugeFrom then
    First := HugeFrom;
  if First < Limit then
    OsUseHugePages(Arena^.Base + First * SliceSize, (Limit - First) * SliceSize);
end;

// Sets Process.DirectLimit. Under the lock. An old value does no harm: a block above it takes the
// slow path.
procedure SetDirectLimit;
begin
  if Process.IsDirect then
    StoreRelease(Process.DirectLimit, Process.Limit)
  else
    StoreRelease(Process.DirectLimit, 0);
end;

// Commits the arena and its records up to SliceCount slices.
function Commit(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Records, RecordsEnd: PByte;
begin
  Records := PByte(AlignUp(NativeUInt(Arena^.Spans + Arena^.Committed + 1), OsPageSize));
  if Arena^.Committed = 0 then
    Records := PByte(Arena^.Spans - 1);
  RecordsEnd := PByte(AlignUp(NativeUInt(Arena^.Spans + SliceCount + 1), OsPageSize));
  Result := ((RecordsEnd <= Records) or OsCommit(Records, RecordsEnd - Records))
    and OsCommit(Arena^.Base + Arena^.Committed * SliceSize,
      (SliceCount - Arena^.Committed) * SliceSize);
  if not Result then
    Exit;
  UseHugePages(Arena, Arena^.Committed, SliceCount);
  YieldPoint;
  Arena^.Committed := SliceCount;
  if Arena <> @Process.Arenas[0] then
    Exit;
  // Release: the records are committed before a lookup reads them. Pairs with nothing here: a block
  // reaches another thread only through the program's own synchronization.
  StoreRelease(Process.Limit, SliceCount * SliceSize);
  SetDirectLimit;
end;

function CommitAhead(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Ahead: NativeUInt;
begin
  if SliceCount <= Arena^.Committed then
    Exit(True);
  Ahead := AlignUp(SliceCount, CommitStep);
  if Ahead > Arena^.SliceCount then
    Ahead := Arena^.SliceCount;
  Result := Commit(Arena, Ahead) or Commit(Arena, SliceCount);
end;

function AddArena(Size: NativeUInt; Base: PByte): PArena;
begin
  Result := @Process.Arenas[Process.ArenaCount];
  Result^.Spans := ReserveSpans(Size shr SliceShift);
  if Result^.Spans = nil then
  begin
    OsRelease(Base, Size);
    Exit(nil);
  end;
  Result^.Base := Base;
  Result^.SliceCount := Size shr SliceShift;
  Result^.Frontier := 0;
  Result^.Committed := 0;
  if Process.ArenaCount = 0 then
  begin
    Process.Base := NativeUInt(Base);
    Process.Spans := NativeUInt(Result^.Spans);
  end;
  // Release: the arena's fields before the count. Pairs with ArenaSpanSlow.
  StoreRelease(Process.ArenaCount, Process.ArenaCount + 1);
end;

// Returns a new arena of at least SliceCount slices, or nil.
function NewArena(SliceCount: NativeUInt): PArena;
var
  Size: NativeUInt;
  Base: PByte;
begin
  if Process.ArenaCount = ArenaLimit then
    Exit(nil);
  Base := ReserveRange(Size);
  if (Base <> nil) and (Size shr SliceShift < SliceCount) then
  begin
    OsRelease(Base, Size);
    Size := SliceCount shl SliceShift;
    Base := OsReserve(Size);
  end;
  if Base = nil then
    Exit(nil);
  Result := AddArena(Size, Base);
end;

function TakeFrontier(Arena: PArena; SliceCount: NativeUInt): PSpan;
begin
  if (SliceCount > Arena^.SliceCount - Arena^.Frontier)
    or not CommitAhead(Arena, Arena^.Frontier + SliceCount) then
    Exit(nil);
  Result := Arena^.Spans + Arena^.Frontier;
  Result^.Start := Arena^.Base + Arena^.Frontier * SliceSize;
  YieldPoint;
  Inc(Arena^.Frontier, SliceCount);
end;

// Takes slices that were never used: from the newest arena, or from a new one.
function TakeFrontierOrNewArena(SliceCount: NativeUInt): PSpan;
var
  Arena: PArena;
  Rest: NativeUInt;
  Tail: PSpan;
begin
  if Process.ArenaCount <> 0 then
  begin
    Arena := @Process.Arenas[Process.ArenaCount - 1];
    Result := TakeFrontier(Arena, SliceCount);
    Rest := Arena^.SliceCount - Arena^.Frontier;
    if (Result <> nil) or (SliceCount <= Rest) then
      Exit;
  end;
  Arena := NewArena(SliceCount);
  if Arena = nil then
    Exit(nil);
  Result := TakeFrontier(Arena, SliceCount);
  if (Result = nil) or (Process.ArenaCount < 2) then
    Exit;
  // The rest of the previous arena becomes a free run.
  Arena := @Process.Arenas[Process.ArenaCount - 2];
  Rest := Arena^.SliceCount - Arena^.Frontier;
  if Rest = 0 then
    Exit;
  Tail := TakeFrontier(Arena, Rest);
  if Tail <> nil then
    FreeRunAdd(Tail, Rest, False);
end;

// ---------------------------------------------------------------------------- the lock

// Makes a released span a free run, under the lock. Its spare slices, never touched, become a cold
// run of their own.
procedure AddFree(Span: PSpan);
var
  Spare: PSpan;
begin
  if Span^.SpareCount <> 0 then
  begin
    FetchAdd(Process.SpareSlices, 0 - NativeUInt(Span^.SpareCount));
    if Span^.IsWarm then
    begin
      Dec(Span^.SliceCount, Span^.SpareCount);
      Spare := Span + Span^.SliceCount;
      Spare^.Start := Span^.Start + Span^.SliceCount * SliceSize;
      FreeRunAdd(Spare, Span^.SpareCount, False);
    end;
  end;
  FreeRunAdd(Span, Span^.SliceCount, Span^.IsWarm);
end;

procedure FreeReleased;
var
  Span, Next: PSpan;
begin
  if LoadAcquire(Process.Released) = 0 then
    Exit;
  // Acquire: see the links. Pairs with the push in Release.
  Span := PSpan(Swap(Process.Released, 0));
  while Span <> nil do
  begin
    Next := Span^.Next;
    AddFree(Span);
    Span := Next;
  end;
end;

procedure ArenaLeave;
begin
  repeat
    FreeReleased;
    LockLeave(Process.ArenaLock);
    // LockLeave is a full barrier: either this load sees a push, or the LockTryAgain that follows
    // the push finds the lock free. Pairs with Release.
  until (LoadAcquire(Process.Released) = 0) or not LockTryAgain(Process.ArenaLock);
end;

function ArenaBackedSlices: NativeUInt;
var
  Index: NativeInt;
begin
  Result := 0;
  for Index := 0 to NativeInt(LoadAcquire(Process.ArenaCount)) - 1 do
    Inc(Result, Process.Arenas[Index].Frontier);
  Dec(Result, Process.ColdSlices + LoadAcquire(Process.SpareSlices));
end;

function ArenaExceeds(Kind: TLimitKind; SliceCount: NativeUInt): Boolean;
var
  Limit: NativeUInt;
begin
  Limit := Process.Limits[Kind].Slices;
  Result := (Limit <> 0) and (ArenaBackedSlices + SliceCount > Limit);
end;

// ArenaExceeds before slices are backed: records that the limit is reached, or no longer, so that
// it is reported once until memory has clearly fallen.
function Reaches(Kind: TLimitKind; SliceCount: NativeUInt): Boolean;
var
  Limit: ^TLimit;
begin
  Limit := @Process.Limits[Kind];
  if (Limit^.State = Ord(lsReported))
    and (ArenaBackedSlices < Limit^.Slices - Limit^.Slices div FallenShare) then
    StoreRelease(Limit^.State, Ord(lsBelow));
  Result := ArenaExceeds(Kind, SliceCount);
  if Result and (Limit^.State = Ord(lsBelow)) then
    StoreRelease(Limit^.State, Ord(lsReached));
end;

// Returns true if SliceCount more slices may be backed. Under the lock, so that no other thread
// takes slices between this check and the taking: the limit is exact with any number of threads.
function MayBack(SliceCount: NativeUInt): Boolean; inline;
begin
  Result := True;
  if not Process.HasLimits then
    Exit;
  Result := not Reaches(lkHard, SliceCount);
  if Result then
    Reaches(lkSoft, SliceCount);
end;

procedure CountBacked; inline;
var
  Backed: NativeUInt;
begin
  Backed := ArenaBackedSlices;
  if NativeInt(Backed - Process.PeakSlices) > 0 then
    Process.PeakSlices := Backed;
end;

procedure SetEnd(Span: PSpan; SliceCount: NativeUInt);
var
  Last: PSpan;
begin
  Span^.SliceCount := SliceCount;
  YieldPoint;
  if SliceCount = 1 then
    Exit;
  Last := Span + SliceCount - 1;
  Last^.Kind := skInner;
  Last^.Distance := SliceCount - 1;
  Last^.Owner := NoOwner;
end;

// Updates Process.WarmLow after warm slices were taken.
procedure NoteWarm; inline;
begin
  if Process.WarmSlices < Process.WarmLow then
    Process.WarmLow := Process.WarmSlices;
end;

function TakeWarm(SliceCount, Tries: NativeUInt): PSpan;
begin
  Result := FreeRunTake(Process.Warm, SliceCount, Tries);
  if Result = nil then
    Exit;
  Result^.IsZero := False;
  NoteWarm;
end;

function TakeCold(SliceCount, Tries: NativeUInt): PSpan;
begin
  Result := FreeRunTake(Process.Cold, SliceCount, Tries);
  if Result <> nil then
    Result^.IsZero := True;
end;

function TakeUnused(SliceCount: NativeUInt): PSpan;
begin
  Result := TakeFrontierOrNewArena(SliceCount);
  if Result <> nil then
    Result^.IsZero := True;
end;

// Completes a run just taken, which may be nil, and leaves the lock.
procedure Finish(Span: PSpan; SliceCount: NativeUInt);
begin
  if Span <> nil then
  begin
    SetEnd(Span, SliceCount);
    Span^.IsMoved := False;
    Span^.SpareCount := 0;
    Span^.Owner := NoOwner;
    CountBacked;
  end;
  ArenaLeave;
end;

function Take(SliceCount: NativeUInt): PSpan;
var
  IsGrowing: Boolean;
begin
  LockEnter(Process.ArenaLock);
  FreeReleased;
  Result := TakeWarm(SliceCount, FewTries);
  IsGrowing := (Result = nil) and MayBack(SliceCount);
  if IsGrowing then
    Result := TakeCold(SliceCount, FewTries);
  if IsGrowing and (Result = nil) then
    Result := TakeUnused(SliceCount);
  if Result = nil then
    Result := TakeWarm(SliceCount, AllTries);
  if IsGrowing and (Result = nil) then
    Result := TakeCold(SliceCount, AllTries);
  Finish(Result, SliceCount);
end;

// Purges warm slices so that SliceCount others fit below the hard limit, which refused them.
// Returns false if there is no warm slice, or the limit was not the reason.
function MakeWay(SliceCount: NativeUInt): Boolean;
begin
  Result := ArenaExceeds(lkHard, SliceCount) and (Process.WarmSlices <> 0);
  if Result then
    ArenaPurge(ArenaBackedSlices + SliceCount - Process.Limits[lkHard].Slices);
end;

function ArenaTake(SliceCount: NativeUInt): PSpan;
begin
  if SliceCount > MaxRunSlices then
    Exit(nil);
  Result := Take(SliceCount);
  if (Result = nil) and MakeWay(SliceCount) then
    Result := Take(SliceCount);
end;

function TakeSpare(SliceCount, SpareCount: NativeUInt): PSpan;
begin
  LockEnter(Process.ArenaLock);
  FreeReleased;
  Result := nil;
  if MayBack(SliceCount) then
  begin
    Inc(SliceCount, SpareCount);
    Result := TakeCold(SliceCount, FewTries);
    if Result = nil then
      Result := TakeUnused(SliceCount);
  end;
  if Result <> nil then
    FetchAdd(Process.SpareSlices, SpareCount);
  Finish(Result, SliceCount);
  if Result <> nil then
    Result^.SpareCount := SpareCount;
end;

function ArenaTakeSpare(SliceCount, SpareCount: NativeUInt): PSpan;
begin
  if SliceCount + SpareCount > MaxRunSlices then
    Exit(nil);
  Result := TakeSpare(SliceCount, SpareCount);
  if (Result = nil) and MakeWay(SliceCount) then
    Result := TakeSpare(SliceCount, SpareCount);
end;

function ArenaUseSpare(SliceCount: NativeUInt): Boolean;
begin
  Result := True;
  if SliceCount = 0 then
    Exit;
  if not Process.HasLimits then
  begin
    FetchAdd(Process.SpareSlices, 0 - SliceCount);
    Exit;
  end;
  LockEnter(Process.ArenaLock);
  FreeReleased;
  Result := MayBack(SliceCount);
  if Result then
    FetchAdd(Process.SpareSlices, 0 - SliceCount);
  ArenaLeave;
end;

procedure Release(Span: PSpan);
var
  Head: TAtomicWord;
begin
  Span^.Owner := NoOwner;
  YieldPoint;
  Span^.Kind := skReleased;
  if LockTry(Process.ArenaLock) then
  begin
    AddFree(Span);
    ArenaLeave;
    Exit;
  end;
  repeat
    Head := LoadAcquire(Process.Released);
    Span^.Next := PSpan(Head);
    // Release: the span's fields before the list. Pairs with FreeReleased. No operation pops one
    // span, hence no ABA.
  until CompareAndSwap(Process.Released, Head, NativeUInt(Span));
  if LockTryAgain(Process.ArenaLock) then
    ArenaLeave;
end;

procedure ArenaRelease(Span: PSpan);
begin
  Span^.IsWarm := True;
  Release(Span);
end;

procedure ArenaReleaseZero(Span: PSpan);
begin
  Span^.IsWarm := False;
  Release(Span);
end;

procedure ArenaReleaseUnused(Span: PSpan);
begin
  Span^.IsWarm := not Span^.IsZero;
  Release(Span);
end;

// ---------------------------------------------------------------------------- in place

// Takes the slices after Span if they were never used. Returns whether it did.
function GrowIntoFrontier(Span: PSpan; SliceCount: NativeUInt): Boolean;
var
  Arena: PArena;
begin
  Arena := @Process.Arenas[Process.ArenaCount - 1];
  Result := (Span + Span^.SliceCount = Arena^.Spans + Arena^.Frontier)
    and (TakeFrontier(Arena, SliceCount - Span^.SliceCount) <> nil);
end;

function ArenaGrow(Span: PSpan; SliceCount: NativeUInt): Boolean;
var
  Neighbour: PSpan;
  Missing: NativeUInt;
begin
  if SliceCount > MaxRunSlices then
    Exit(False);
  LockEnter(Process.ArenaLock);
  FreeReleased;
  Missing := SliceCount - Span^.SliceCount;
  Neighbour := Span + Span^.SliceCount;
  Result := IsFreeRun(Neighbour) and (Neighbour^.SliceCount >= Missing)
    and (Neighbour^.IsWarm or MayBack(Missing));
  if Result then
    FreeRunCut(Neighbour, Missing)
  else
    Result := MayBack(Missing) and GrowIntoFrontier(Span, SliceCount);
  if Result then
  begin
    SetEnd(Span, SliceCount);
    Span^.IsZero := False;
    NoteWarm;
    CountBacked;
  end;
  ArenaLeave;
end;

function ArenaSplit(Span: PSpan; SliceCount: NativeUInt): PSpan;
var
  RestCount: NativeUInt;
begin
  Result := Span + SliceCount;
  RestCount := Span^.SliceCount - SliceCount;
  LockEnter(Process.ArenaLock);
  SetEnd(Span, SliceCount);
  SetEnd(Result, RestCount);
  ArenaLeave;
  Result^.Start := Span^.Start + SliceCount * SliceSize;
  Result^.IsMoved := Span^.IsMoved;
  Result^.SpareCount := Span^.SpareCount;
  Span^.SpareCount := 0;
end;

function ArenaSpan(P: Pointer): PSpan;
begin
  if NativeUInt(P) - Process.Base < Process.Limit then
    Result := PSpan(Process.Spans) + (NativeUInt(P) - Process.Base) shr SliceShift
  else
    Result := ArenaSpanSlow(P);
end;

function ArenaSpanSlow(P: Pointer): PSpan;
var
  Offset: NativeUInt;
  Index: NativeInt;
begin
  for Index := 1 to NativeInt(LoadAcquire(Process.ArenaCount)) - 1 do
  begin
    Offset := NativeUInt(P) - NativeUInt(Process.Arenas[Index].Base);
    if Offset < LoadAcquire(Process.Arenas[Index].Committed) * SliceSize then
      Exit(Process.Arenas[Index].Spans + Offset shr SliceShift);
  end;
  Result := nil;
end;

function ArenaFirst(Slice: PSpan; Kinds: TSpanKinds): PSpan;
begin
  if Slice^.Kind <> skInner then
    Exit(nil);
  Result := Slice - Slice^.Distance;
  // The span that the record leads to must reach this far.
  if not (Result^.Kind in Kinds) or (Slice^.Distance >= Result^.SliceCount) then
    Result := nil;
end;

// ---------------------------------------------------------------------------- purge

function ArenaLookIsDue: Boolean;
var
  CallsLeft, Now: Cardinal;
begin
  // Plain, without the lock: a countdown by two threads at once moves the next look a little.
  CallsLeft := Process.ClockDue;
  if CallsLeft > 0 then
  begin
    Process.ClockDue := CallsLeft - 1;
    Exit(False);
  end;
  Process.ClockDue := ClockInterval;
  Now := OsNowMs;
  Result := Integer(Now - Process.LookedMs) >= Integer(Process.PurgeDelayMs);
  if Result then
    Process.LookedMs := Now;
end;

function ArenaIdleSlices: NativeUInt;
begin
  LockEnter(Process.ArenaLock);
  FreeReleased;
  Result := Process.WarmLow;
  Process.WarmLow := Process.WarmSlices;
  ArenaLeave;
end;

// Takes at most SliceCount slices of the warm run unused for longest; nil if none.
function TakeOldest(SliceCount: NativeUInt): PSpan;
begin
  LockEnter(Process.ArenaLock);
  FreeReleased;
  Result := Process.Oldest;
  if Result <> nil then
  begin
    if SliceCount > Result^.SliceCount then
      SliceCount := Result^.SliceCount;
    FreeRunCut(Result, SliceCount);
    Result^.SliceCount := SliceCount;
    NoteWarm;
  end;
  ArenaLeave;
end;

procedure ArenaPurge(SliceCount: NativeUInt);
var
  Span: PSpan;
  SlicesLeft: NativeInt;
  IsPurged: Boolean;
begin
  // The slices warm now and no more: other threads may free faster than this loop purges.
  SlicesLeft := Process.WarmSlices;
  if NativeInt(SliceCount) < SlicesLeft then
    SlicesLeft := SliceCount;
  while SlicesLeft > 0 do
  begin
    Span := TakeOldest(SlicesLeft);
    if Span = nil then
      Exit;
    Dec(SlicesLeft, Span^.SliceCount);
    OsErase(Span^.Start, Span^.SliceCount * SliceSize);
    IsPurged := OsPurge(Span^.Start, Span^.SliceCount * SliceSize); // without the lock
    LockEnter(Process.ArenaLock);
    FreeRunAdd(Span, Span^.SliceCount, not IsPurged);
    ArenaLeave;
  end;
end;

procedure ArenaApplyDirect;
begin
  LockEnter(Process.ArenaLock);
  SetDirectLimit;
  ArenaLeave;
end;

end.
