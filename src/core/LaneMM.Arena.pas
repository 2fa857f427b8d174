/// Address ranges from the system, cut into spans, and the way back to the system.
//
// Owns:       Process.Arenas, ArenaCount, Base, Limit, Spans, Released, WarmLow, LookedMs,
//             ClockDue.
// Invariants: each arena is one reserved range, backed from its start to Committed; slices
//             below Frontier belong to spans and free runs, those above were never touched.
//             A released span waits on Process.Released while another thread has the lock;
//             whoever leaves the lock looks there once more, so none is forgotten.
// Callers:    ArenaTake, ArenaGrow, ArenaPurge: any thread, may wait for the lock.
//             ArenaRelease: any thread, never waits.
// Progress:   ArenaRelease is lock-free; it takes the lock only if it is free.
unit LaneMM.Arena;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// For ArenaPurge: everything that is free.
  AllSlices = High(NativeUInt) shr 1;

type
  /// Looks at one span. Context is the caller's.
  TSpanVisitor = procedure(Span: PSpan; Context: Pointer);

/// A run of slices for the caller to format: Start, SliceCount and IsZero are set. Nil when the
/// system has no more memory. The caller owns it until ArenaRelease.
function ArenaTake(SliceCount: NativeUInt): PSpan;
/// The same without pages that are backed already, and SpareCount slices more that may stay unused:
/// they are counted in Process.SpareSlices.
function ArenaTakeSpare(SliceCount, SpareCount: NativeUInt): PSpan;
/// Takes slices off Process.SpareSlices that are going to be used; tells whether they may be.
function ArenaUseSpare(SliceCount: NativeUInt): Boolean;
/// Takes a span back. Nobody may use its blocks any more.
procedure ArenaRelease(Span: PSpan);
/// The same for a span whose pages were moved away, so that it reads as zeros.
procedure ArenaReleaseZero(Span: PSpan);
/// Takes back a run that was not touched since ArenaTake.
procedure ArenaReleaseUnused(Span: PSpan);
/// Lengthens a span without room in place to SliceCount slices; tells whether the slices behind it
/// were free.
function ArenaGrow(Span: PSpan; SliceCount: NativeUInt): Boolean;
/// Shortens a span in place to SliceCount slices and returns the rest, all room included, a span
/// of its own that the caller releases.
function ArenaSplit(Span: PSpan; SliceCount: NativeUInt): PSpan;
/// The span record of the slice that holds P, or nil when P lies in no arena. Any pointer.
function ArenaSpan(P: Pointer): PSpan; inline;
/// The same for an address that is not in the first arena.
function ArenaSpanSlow(P: Pointer): PSpan;
/// The first record of the span of one of these kinds whose later slice has the record Slice; nil
/// when there is none. A record of an earlier life may say skInner, too.
function ArenaFirst(Slice: PSpan; Kinds: TSpanKinds): PSpan; inline;

/// Calls Visitor for each span in use, of whatever kind, by address. Any thread; while other
/// threads run, what it sees of their spans may be out of date.
procedure ArenaVisit(Visitor: TSpanVisitor; Context: Pointer);

/// Tells whether it is time to look for what can be given back: Process.PurgeDelayMs since the
/// last look. Reads the clock at one call of many.
function ArenaLookIsDue: Boolean;
/// Warm slices that nobody needed since the last call of this function. Memory that is taken and
/// given back all the time does not count: it stays warm.
function ArenaIdleSlices: NativeUInt;
/// Slices with memory behind them; may be out of date while other threads run.
function ArenaBackedSlices: NativeUInt;
/// Whether there is a limit that SliceCount more of them would exceed.
function ArenaExceeds(Kind: TLimitKind; SliceCount: NativeUInt): Boolean;
/// Gives the memory of at most SliceCount free slices back to the system, those unused for longest.
procedure ArenaPurge(SliceCount: NativeUInt);

/// Makes Process.DirectLimit what Process.IsDirect asks for.
procedure ArenaApplyDirect;
/// Makes the arenas usable in a child process in which a lost thread held the lock.
procedure ArenaRecover;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.FreeRuns;

const
  SmallestArenaSize = NativeUInt(1) shl 22;
  // An arena that was refused at the wanted size takes this share of what is granted, so that
  // others, thread stacks for example, still get theirs.
  LimitedShare = 4;
  // Slices that are committed at once; their records then fill whole pages.
  CommitStep = 512;
  // Runs looked at in the bin whose runs may be too short, before a longer one is cut; and when
  // there is no longer one.
  FewTries = 8;
  AllTries = High(NativeUInt);
  // Calls between two looks at the clock.
  ClockInterval = 16;
  // Kinds of the first records of spans in use.
  KindsInUse = [skBlocks, skLarge, skDebug, skReserve];
  // Memory has clearly fallen below a limit when it is this share of the limit less.
  FallenShare = 8;

// ---------------------------------------------------------------------------- arenas

// Reserves the records of SliceCount slices, and one more at either end whose Kind stays skNone.
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

// Asks for huge pages, where a program is large enough that their rounding does not count.
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

// An old value of Process.Limit is good, too: what lies beyond takes the slow path.
procedure SetDirectLimit;
begin
  if Process.IsDirect then
    StoreRelease(Process.DirectLimit, Process.Limit)
  else
    StoreRelease(Process.DirectLimit, 0);
end;

// Backs the arena and its records up to SliceCount slices.
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
  Arena^.Committed := SliceCount;
  if Arena <> @Process.Arenas[0] then
    Exit;
  // Release: the records exist before a pointer is looked up there. Pairs with nothing here:
  // a block reaches another thread only through that program's own synchronization.
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
  // Release: the arena's fields before its number. Pairs with ArenaSpan.
  StoreRelease(Process.ArenaCount, Process.ArenaCount + 1);
end;

// A new arena with room for SliceCount slices, or nil.
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
  Inc(Arena^.Frontier, SliceCount);
end;

// Slices that were never used: from the newest arena, or from a new one.
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
  // What is left of the arena before becomes a free run.
  Arena := @Process.Arenas[Process.ArenaCount - 2];
  Rest := Arena^.SliceCount - Arena^.Frontier;
  if Rest = 0 then
    Exit;
  Tail := TakeFrontier(Arena, Rest);
  if Tail <> nil then
    FreeRunAdd(Tail, Rest, False);
end;

// ---------------------------------------------------------------------------- the lock

// Takes a released span back, under the lock. The room at its end was never touched.
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
  // Acquire: see the links. Pairs with the push in ArenaRelease.
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
    // LockLeave is a full barrier: either this load sees a push, or the pusher's
    // LockTryAgain, which follows its push, finds the lock free. Pairs with ArenaRelease.
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

// The same before slices are backed: notes that the limit is reached, or no longer, so that it is
// told of once until memory has clearly fallen.
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

// Whether SliceCount more slices may be backed. Under the lock, which counts and takes in one: the
// limit is exact however many threads there are.
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
  if SliceCount = 1 then
    Exit;
  Last := Span + SliceCount - 1;
  Last^.Kind := skInner;
  Last^.Distance := SliceCount - 1;
  Last^.Owner := NoOwner;
end;

// After warm slices were taken.
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

// Completes a run that was taken, which may be nil, and leaves the lock.
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

// Gives warm slices back for SliceCount others that the limit has refused; tells whether it did.
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
  Span^.Remote := 0;
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
    // Release: the span's fields before the list. Pairs with FreeReleased. There is no pop
    // of one span, hence no ABA.
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

// Takes the slices behind Span that were never used.
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

procedure VisitArena(Arena: PArena; Visitor: TSpanVisitor; Context: Pointer);
var
  Span, Last: PSpan;
begin
  Span := Arena^.Spans;
  Last := Span + Arena^.Frontier;
  while Span < Last do
  begin
    if Span^.Kind in [skBlocks, skLarge, skDebug] then
      Visitor(Span, Context);
    if (Span^.Kind in KindsInUse + [skFree]) and (Span^.SliceCount > 0) then
      Inc(Span, Span^.SliceCount)
    else
      Inc(Span);
  end;
end;

// The arena with the lowest address behind Last, which may be nil; nil when there is none.
function NextArena(Last: PArena): PArena;
var
  Index: NativeInt;
  Arena: PArena;
begin
  Result := nil;
  for Index := 0 to NativeInt(LoadAcquire(Process.ArenaCount)) - 1 do
  begin
    Arena := @Process.Arenas[Index];
    if ((Last = nil) or (Arena^.Base > Last^.Base))
      and ((Result = nil) or (Arena^.Base < Result^.Base)) then
      Result := Arena;
  end;
end;

procedure ArenaVisit(Visitor: TSpanVisitor; Context: Pointer);
var
  Arena: PArena;
begin
  Arena := NextArena(nil);
  while Arena <> nil do
  begin
    VisitArena(Arena, Visitor, Context);
    Arena := NextArena(Arena);
  end;
end;

// ---------------------------------------------------------------------------- purge

function ArenaLookIsDue: Boolean;
var
  CallsLeft, Now: Cardinal;
begin
  // Plain, without the lock: a count that two threads take at once moves the next look a little.
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

// Takes out the warm run unused for longest, at most SliceCount slices of it; nil without one.
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
  // What is warm now and no more: other threads may free faster than this loop purges.
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

// Whether Span is the first record of a span that is in use, with the last one at Last.
function IsInUse(Span, Last: PSpan): Boolean;
begin
  Result := (Span^.Kind in KindsInUse) and (Span^.SliceCount > 0)
    and (Span + Span^.SliceCount <= Last);
end;

// Adds what no span in use has as free runs: what a lost thread was taking or giving back is free.
procedure RecoverArena(Arena: PArena);
var
  Span, First, Last: PSpan;
begin
  Span := Arena^.Spans;
  Last := Span + Arena^.Frontier;
  while Span < Last do
    if IsInUse(Span, Last) then
    begin
      FetchAdd(Process.SpareSlices, Span^.SpareCount);
      Inc(Span, Span^.SliceCount);
    end
    else
    begin
      First := Span;
      repeat
        Span^.Kind := skNone;
        Inc(Span);
      until (Span = Last) or IsInUse(Span, Last);
      First^.Start := Arena^.Base + (First - Arena^.Spans) * SliceSize;
      FreeRunAdd(First, Span - First, True);
    end;
end;

procedure ArenaRecover;
var
  Index: NativeInt;
begin
  FreeRunsForget;
  Process.Released := 0; // its spans are free runs like all others
  Process.SpareSlices := 0;
  for Index := 0 to NativeInt(Process.ArenaCount) - 1 do
    RecoverArena(@Process.Arenas[Index]);
  Process.WarmLow := 0;
  LockReset(Process.ArenaLock);
end;

end.
