/// Reserves arenas, commits them ahead of use, hands out slices that were never used, and finds the
/// record of an address.
//
// Owns:       Process.Arenas, Base, Limit, Spans, DirectLimit; TArena.
// Invariants: an arena is one range of addresses, reserved from its start to Reserved, committed to
//             Committed; slices below Frontier belong to spans and free runs, those above were
//             never touched. An arena in Process.Arenas stays: a thread may use it at any time.
//             Only FrontierEnd, before the code is unloaded, releases what no block in use lies in.
// Commit:     without a lock: two threads may commit the same slices, which changes nothing, and
//             then one of them takes them. A thread that was stopped before its call would so
//             lift a guard page of debug mode in those slices: Process.CommitsUnderWay counts it,
//             and LaneMM.GuardPages waits for it.
// Callers:    any thread.
// Progress:   lock-free but for the system calls.
unit LaneMM.Arena;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic;

type
  /// Returns whether a span has a block in use.
  TSpanTest = function(Span: PSpan): Boolean;

/// Takes slices that were never used: Start is set. Nil when the system refuses memory. Tail is
/// nil, or what was left of the last arena before a new one: a run of TailCount slices, Start is
/// set, that the caller makes free.
function FrontierTake(SliceCount: NativeUInt; out Tail: PSpan; out TailCount: NativeUInt): PSpan;
/// Takes the SliceCount slices from End on, if they are the next of an arena. Returns whether it
/// did.
function FrontierGrow(SpanEnd: PSpan; SliceCount: NativeUInt): Boolean;
/// Returns arena number Index, or nil: there are no more.
function FrontierArena(Index: NativeUInt): PArena; inline;
/// Returns whether slices that were never used are to be taken last: because a program that lacks
/// addresses before it lacks memory has used many, or was refused some. An old value decides for
/// one request more.
function FrontierIsScarce: Boolean;
/// Returns whether the system could back a block of Size bytes when the process began. If not, it
/// would find out only when the block is touched, and end some program.
function FrontierCanBack(Size: NativeUInt): Boolean;
/// Returns the number of slices that all arenas have handed out.
function FrontierSlices: NativeUInt;
/// Returns the record of one of them, from 0; Index is below an earlier result of FrontierSlices.
function FrontierSlice(Index: NativeUInt): PSpan;
/// Releases all slices but those of spans for which IsUsed returns true, whose records stay. No
/// block is allocated or freed any more.
procedure FrontierEnd(IsUsed: TSpanTest);
/// Sets Process.DirectLimit as Process.IsDirect requires.
procedure FrontierApplyDirect;

/// Returns the span record of the slice that holds P; nil when P lies in no arena. Any pointer.
function ArenaSpan(P: Pointer): PSpan; inline;
/// Returns that record for an address that is not in the first arena.
function ArenaSpanSlow(P: Pointer): PSpan;
/// Returns the first record of the span, of one of these kinds, that has Slice as a later record;
/// nil if none. A record left over from an earlier span may be skInner, too.
function ArenaFirst(Slice: PSpan; Kinds: TSpanKinds): PSpan; inline;

implementation

uses
  LaneMM.Bits, LaneMM.Os;

const
  ShortestArena = 64;
  // An arena that was refused FirstStep slices keeps one part in this many of those that are
  // granted: thread stacks, for example, need addresses too.
  LimitedShare = 4;
  // Slices that are committed at once; their records then fill whole pages.
  CommitStep = 512;
  NarrowStep = 16; // while Process.IsNarrow is set
  // Records before that of slice 0: of the arena itself, and one whose Kind stays skNone.
  RecordsBefore = 2;

function FrontierArena(Index: NativeUInt): PArena;
begin
  Result := nil;
  if Index < ArenaLimit then
    // Acquire: the arena's fields. Pairs with AddArena.
    Result := PArena(LoadAcquire(Process.Arenas[Index]));
end;

// Returns the number of arenas.
function ArenaCount: NativeUInt;
begin
  Result := 0;
  while FrontierArena(Result) <> nil do
    Inc(Result);
end;

function FrontierSlices: NativeUInt;
var
  Index: NativeUInt;
begin
  Result := 0;
  Index := ArenaCount;
  while Index <> 0 do
  begin
    Dec(Index);
    // Acquire: with nothing; see the field.
    Inc(Result, LoadAcquire(FrontierArena(Index)^.Frontier));
  end;
end;

function FrontierSlice(Index: NativeUInt): PSpan;
var
  Number, HandedOut: NativeUInt;
begin
  Number := 0;
  // Acquire: with nothing; see the field. Read once: it may grow.
  HandedOut := LoadAcquire(FrontierArena(Number)^.Frontier);
  while Index >= HandedOut do
  begin
    Dec(Index, HandedOut);
    Inc(Number);
    HandedOut := LoadAcquire(FrontierArena(Number)^.Frontier);
  end;
  Result := FrontierArena(Number)^.Spans + Index;
end;

function FrontierIsScarce: Boolean;
begin
  Result := FrontierSlices >= Process.SavingFrom;
end;

function FrontierCanBack(Size: NativeUInt): Boolean;
begin
  Result := Size <= Process.MostBytes;
end;

// ---------------------------------------------------------------------------- lookup

function ArenaSpan(P: Pointer): PSpan;
begin
  if NativeUInt(NativeUInt(P) - Process.Base) < Process.Limit then
    Result := PSpan(Process.Spans) + NativeUInt(NativeUInt(P) - Process.Base) shr SliceShift
  else
    Result := ArenaSpanSlow(P);
end;

function ArenaSpanSlow(P: Pointer): PSpan;
var
  Offset, Index: NativeUInt;
  Arena: PArena;
begin
  Index := 1;
  Arena := FrontierArena(Index);
  while Arena <> nil do
  begin
    Offset := NativeUInt(P) - NativeUInt(Arena^.Base);
    if Offset < LoadAcquire(Arena^.Committed) * SliceSize then
      Exit(Arena^.Spans + Offset shr SliceShift);
    Inc(Index);
    Arena := FrontierArena(Index);
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

// ---------------------------------------------------------------------------- new arenas

function RecordBytes(SliceCount: NativeUInt): NativeUInt;
begin
  Result := AlignUp((SliceCount + RecordsBefore + 1) * SizeOf(TSpan), SliceSize);
end;

procedure ReleaseArena(Arena: PArena);
begin
  OsRelease(Arena^.Base, Arena^.Reserved * SliceSize);
  OsRelease(Arena, RecordBytes(Arena^.Reserved));
end;

// Makes an arena of reserved addresses, or returns nil and releases them: records of SliceCount
// slices at P, their slices at Base. It may grow to MostSlices.
function NewArena(P, Base: PByte; SliceCount, MostSlices: NativeUInt): PArena;
begin
  if not OsCommit(P, OsGranule) then
  begin
    OsRelease(Base, SliceCount * SliceSize);
    OsRelease(P, RecordBytes(SliceCount));
    Exit(nil);
  end;
  OsLeaveOutOfCores(Base, SliceCount * SliceSize);
  Result := PArena(P);
  Result^.Base := Base;
  Result^.Spans := PSpan(P) + RecordsBefore;
  Result^.MostSlices := MostSlices;
  Result^.Reserved := SliceCount;
end;

// Reserves an arena that does not grow, or returns nil.
function ReserveFixed(SliceCount: NativeUInt): PArena;
var
  P, Base: PByte;
begin
  Base := OsReserve(SliceCount * SliceSize);
  if Base = nil then
    Exit(nil);
  P := OsReserve(RecordBytes(SliceCount));
  if P <> nil then
    Exit(NewArena(P, Base, SliceCount, SliceCount));
  OsRelease(Base, SliceCount * SliceSize);
  Result := nil;
end;

// Reserves the first SliceCount slices of an arena that ends at the address Top when it has grown
// to MostSlices; nil if their place is not free.
function ReserveBelow(Top, SliceCount, MostSlices: NativeUInt): PArena;
var
  P, Base: NativeUInt;
begin
  Base := Top - MostSlices * SliceSize;
  P := Base - RecordBytes(MostSlices);
  if (P >= Top) or not OsReserveAt(Pointer(P), RecordBytes(SliceCount)) then
    Exit(nil);
  if OsReserveAt(Pointer(Base), SliceCount * SliceSize) then
    Exit(NewArena(PByte(P), PByte(Base), SliceCount, MostSlices));
  OsRelease(Pointer(P), RecordBytes(SliceCount));
  Result := nil;
end;

// Returns an arena like Fixed with addresses to grow into, and releases Fixed; or Fixed. Systems
// hand out addresses from the top down: those below are free, and what is handed out later lies
// far above the arena's first slices.
function ReserveGrowing(Fixed: PArena): PArena;
var
  MostSlices: NativeUInt;
begin
  Result := nil;
  MostSlices := LongestArena;
  while (Result = nil) and (MostSlices > Fixed^.MostSlices) do
  begin
    Result := ReserveBelow(NativeUInt(Fixed^.Base), Fixed^.MostSlices, MostSlices);
    MostSlices := MostSlices shr 1;
  end;
  if Result = nil then
    Exit(Fixed);
  ReleaseArena(Fixed);
end;

// Reserves part of what the system grants where it has refused FirstStep slices.
function ReserveLimited: PArena;
var
  SliceCount: NativeUInt;
begin
  SliceCount := FirstStep;
  repeat
    SliceCount := SliceCount shr 1;
    if SliceCount < ShortestArena then
      Exit(nil);
    Result := ReserveFixed(SliceCount);
  until Result <> nil;
  ReleaseArena(Result);
  Result := ReserveFixed(SliceCount div LimitedShare);
end;

procedure NoteRefusal;
begin
  Process.SavingFrom := 0;
  // Full barrier: a run is cold before the value, or its taker sees the value. Pairs with
  // ShardsUncharge.
  CompareAndSwap(Process.Refused, 0, RefusedOnce);
  OsUnchargeLater;
end;

// Reserves an arena with room for SliceCount slices, or returns nil.
function ReserveArena(SliceCount: NativeUInt): PArena;
var
  Wanted: NativeUInt;
begin
  Wanted := FirstStep;
  if Wanted < SliceCount then
    Wanted := SliceCount;
  Result := ReserveFixed(Wanted);
  if Result <> nil then
    Exit(ReserveGrowing(Result));
  if Wanted = FirstStep then
    NoteRefusal;
  Result := ReserveLimited;
  if (Result = nil) or (Result^.MostSlices >= SliceCount) then
    Exit;
  ReleaseArena(Result);
  Result := ReserveFixed(SliceCount);
end;

// Returns the number of slices whose addresses all arenas have.
function ReservedSlices: NativeUInt;
var
  Index: NativeUInt;
begin
  Result := 0;
  for Index := ArenaCount downto 1 do
    // Acquire: with nothing; see the field.
    Inc(Result, LoadAcquire(FrontierArena(Index - 1)^.Reserved));
end;

// Adds arena number Index with room for SliceCount slices, where the addresses of the others had no
// room when they were Reserved slices. Returns true when there may be room now. The system may
// have refused addresses only because another thread had just reserved them: it has published them
// by now, unless it was stopped, and no arena is added.
function AddArena(Index, Reserved, SliceCount: NativeUInt): Boolean;
var
  Arena: PArena;
  IsLate: Boolean;
begin
  if Index = ArenaLimit then
    Exit(False);
  Arena := ReserveArena(SliceCount);
  IsLate := ReservedSlices <> Reserved;
  Result := IsLate or (Arena <> nil);
  // Release: the arena's fields. Pairs with FrontierArena.
  if (Arena <> nil)
    and (IsLate or not CompareAndSwap(Process.Arenas[Index], 0, NativeUInt(Arena))) then
    ReleaseArena(Arena);
end;

// ---------------------------------------------------------------------------- more addresses

// Reserves the slices from Reserved to SliceCount, and their records. False when the addresses
// belong to others or the system refuses. Of several threads one succeeds: an address is reserved
// once.
function ReserveNext(Arena: PArena; Reserved, SliceCount: NativeUInt): Boolean;
var
  First: PByte;
  Records: NativeUInt;
begin
  if SliceCount > Arena^.MostSlices then
    Exit(False);
  First := Arena^.Base + Reserved * SliceSize;
  if not OsReserveAt(First, (SliceCount - Reserved) * SliceSize) then
    Exit(False);
  OsLeaveOutOfCores(First, (SliceCount - Reserved) * SliceSize);
  Records := RecordBytes(Reserved);
  Result := (RecordBytes(SliceCount) = Records)
    or OsReserveAt(PByte(Arena) + Records, RecordBytes(SliceCount) - Records);
  if Result then
    // Release: with nothing; a thread that sees the value may commit these addresses.
    RaiseTo(Arena^.Reserved, SliceCount)
  else
    OsRelease(First, (SliceCount - Reserved) * SliceSize);
end;

// Returns whether the arena has SliceCount reserved slices at least. Lengthens it: to twice its
// length, or else so far. While a thread is stopped before it could publish its addresses, the
// others take another arena. Lock-free: one more turn follows another thread's success.
function Extend(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Reserved, Wanted: NativeUInt;
begin
  repeat
    Reserved := LoadAcquire(Arena^.Reserved);
    if SliceCount <= Reserved then
      Exit(True);
    Wanted := Reserved * 2;
    if Wanted > Arena^.MostSlices then
      Wanted := Arena^.MostSlices;
    if Wanted < SliceCount then
      Wanted := SliceCount;
    if not ReserveNext(Arena, Reserved, Wanted) and not ReserveNext(Arena, Reserved, SliceCount)
      and (LoadAcquire(Arena^.Reserved) = Reserved) then
      Exit(False);
  until False;
end;

// ---------------------------------------------------------------------------- commit

function WantedDirectLimit: NativeUInt;
begin
  Result := 0;
  if Process.IsDirect then
    Result := LoadAcquire(Process.Limit);
end;

procedure FrontierApplyDirect;
var
  Wanted: NativeUInt;
begin
  repeat
    Wanted := WantedDirectLimit;
    // Full barrier: of two threads, one that changes IsDirect and one that raises Limit, the later
    // one sees both.
    Swap(Process.DirectLimit, Wanted);
  until Wanted = WantedDirectLimit;
end;

// Shows other copies of LaneMM where the arena lies. Two threads may show different lengths.
procedure ShowRange(Arena: PArena; SliceCount: NativeUInt);
var
  Index: NativeUInt;
begin
  if Process.Ranges = nil then
    Exit;
  Index := 0;
  while FrontierArena(Index) <> Arena do
    Inc(Index);
  StoreRelease(Process.Ranges^[Index].First, NativeUInt(Arena^.Base));
  // Release: First. Pairs with Holds in LaneMM.Foreign.
  RaiseTo(Process.Ranges^[Index].Limit, NativeUInt(Arena^.Base) + SliceCount * SliceSize);
end;

// Publishes the slices that are committed now: lookups read their records.
procedure Publish(Arena: PArena; SliceCount: NativeUInt);
begin
  ShowRange(Arena, SliceCount);
  if Arena = FrontierArena(0) then
  begin
    Process.Base := NativeUInt(Arena^.Base);
    Process.Spans := NativeUInt(Arena^.Spans);
    // Release: the fields above, and the records that are committed. Pairs with nothing here: a
    // block reaches another thread only through the program's own synchronization.
    RaiseTo(Process.Limit, SliceCount * SliceSize);
    FrontierApplyDirect;
  end;
  // After Limit: a thread that sees this value takes slices, which lookups must find. Pairs with
  // CommitAhead.
  RaiseTo(Arena^.Committed, SliceCount);
end;

// Commits slices of a process that has as many mappings as it may: the system refuses what would
// begin another one. Where all behind has the attributes of what is committed, it adds to that.
function CommitAlike(Arena: PArena; First, SliceCount: NativeUInt): Boolean;
var
  Start: PByte;
  Rest: NativeUInt;
begin
  Start := Arena^.Base + First * SliceSize;
  Rest := (LoadAcquire(Arena^.Reserved) - First) * SliceSize;
  OsUseSmallPages(Start, Rest);
  OsPutIntoCores(Start, Rest);
  Result := OsPrepare(Start, (SliceCount - First) * SliceSize);
end;

// Commits the arena and its records up to SliceCount slices.
function Commit(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Committed: NativeUInt;
  Records, RecordsEnd: PByte;
begin
  Committed := LoadAcquire(Arena^.Committed);
  if Committed >= SliceCount then
    Exit(True);
  Records := PByte(AlignUp(NativeUInt(Arena^.Spans + Committed + 1), OsGranule));
  RecordsEnd := PByte(AlignUp(NativeUInt(Arena^.Spans + SliceCount + 1), OsGranule));
  Result := ((RecordsEnd <= Records) or OsCommit(Records, RecordsEnd - Records))
    and (OsPrepare(Arena^.Base + Committed * SliceSize, (SliceCount - Committed) * SliceSize)
    or CommitAlike(Arena, Committed, SliceCount));
  if not Result then
  begin
    NoteRefusal;
    Exit;
  end;
  // Otherwise a system that uses huge pages everywhere backs 2 MB where a page is touched.
  OsUseSmallPages(Arena^.Base + Committed * SliceSize, (SliceCount - Committed) * SliceSize);
  OsPutIntoCores(Arena^.Base + Committed * SliceSize, (SliceCount - Committed) * SliceSize);
  Publish(Arena, SliceCount);
end;

function CommitAhead(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Ahead, Reserved: NativeUInt;
begin
  if SliceCount <= LoadAcquire(Arena^.Committed) then
    Exit(True);
  Ahead := AlignUp(SliceCount, CommitStep);
  if Process.IsNarrow then
    Ahead := AlignUp(SliceCount, NarrowStep);
  Reserved := LoadAcquire(Arena^.Reserved);
  if Ahead > Reserved then
    Ahead := Reserved;
  // Full barrier: either a thread that has taken slices sees the count, or Commit sees that they
  // are committed. Pairs with AwaitCommits in LaneMM.GuardPages.
  FetchAdd(Process.CommitsUnderWay, 1);
  Result := Commit(Arena, Ahead) or Commit(Arena, SliceCount);
  // Full barrier: the pages before the count. Pairs with AwaitCommits.
  FetchAdd(Process.CommitsUnderWay, NativeUInt(-1));
end;

// ---------------------------------------------------------------------------- take

// Takes the SliceCount slices from First on, which are committed. Returns false if the frontier is
// not there any more.
function TakeAt(Arena: PArena; First, SliceCount: NativeUInt): Boolean;
begin
  Result := CompareAndSwap(Arena^.Frontier, First, First + SliceCount);
end;

// Takes slices of the arena; nil without room, or when the system refuses.
function TakeOf(Arena: PArena; SliceCount: NativeUInt; out HasRoom: Boolean): PSpan;
var
  First: NativeUInt;
begin
  repeat
    First := LoadAcquire(Arena^.Frontier);
    HasRoom := Extend(Arena, First + SliceCount);
    if not HasRoom or not CommitAhead(Arena, First + SliceCount) then
      Exit(nil);
  until TakeAt(Arena, First, SliceCount);
  Result := Arena^.Spans + First;
  Result^.Start := Arena^.Base + First * SliceSize;
end;

// Takes all that is left of the arena; nil if nothing is.
function TakeTail(Arena: PArena; out SliceCount: NativeUInt): PSpan;
var
  First: NativeUInt;
  HasRoom: Boolean;
begin
  repeat
    First := LoadAcquire(Arena^.Frontier);
    SliceCount := LoadAcquire(Arena^.Reserved) - First; // read after it, so not below it
    if SliceCount = 0 then
      Exit(nil);
    Result := TakeOf(Arena, SliceCount, HasRoom);
  until (Result <> nil) or HasRoom; // without room another thread has taken a part
end;

// Returns the first arena with room for SliceCount slices, or that could be lengthened for them;
// nil if none.
function ArenaFor(SliceCount: NativeUInt): PArena;
var
  Index: NativeUInt;
begin
  for Index := 1 to ArenaCount do
  begin
    Result := FrontierArena(Index - 1);
    if LoadAcquire(Result^.Frontier) + SliceCount <= LoadAcquire(Result^.Reserved) then
      Exit;
  end;
  for Index := 1 to ArenaCount do
  begin
    Result := FrontierArena(Index - 1);
    if Extend(Result, LoadAcquire(Result^.Frontier) + SliceCount) then
      Exit;
  end;
  Result := nil;
end;

function FrontierTake(SliceCount: NativeUInt; out Tail: PSpan; out TailCount: NativeUInt): PSpan;
var
  Count, Reserved: NativeUInt;
  Arena: PArena;
  HasRoom: Boolean;
begin
  Tail := nil;
  repeat
    Result := nil;
    HasRoom := False;
    Count := ArenaCount;
    Reserved := ReservedSlices;
    Arena := ArenaFor(SliceCount);
    if Arena <> nil then
      Result := TakeOf(Arena, SliceCount, HasRoom)
    else if not AddArena(Count, Reserved, SliceCount) then
      Exit
    else if (Count <> 0) and (Tail = nil) and (FrontierArena(Count) <> nil) then
      Tail := TakeTail(FrontierArena(Count - 1), TailCount);
  until HasRoom;
end;

function FrontierGrow(SpanEnd: PSpan; SliceCount: NativeUInt): Boolean;
var
  Index, First: NativeUInt;
  Arena: PArena;
begin
  Index := ArenaCount;
  repeat
    Dec(Index);
    Arena := FrontierArena(Index);
    First := LoadAcquire(Arena^.Frontier);
  until (SpanEnd = Arena^.Spans + First) or (Index = 0);
  Result := (SpanEnd = Arena^.Spans + First) and Extend(Arena, First + SliceCount)
    and CommitAhead(Arena, First + SliceCount) and TakeAt(Arena, First, SliceCount);
end;

// ---------------------------------------------------------------------------- end

const
  // In the place of an arena that was released.
  NoArena: TArena = (Base: nil; Spans: nil; MostSlices: 0; Reserved: 0; Frontier: 0; Committed: 0);

// Releases the slices from First to Limit, and purges the pages that hold their records alone.
procedure ReleaseSlices(Arena: PArena; First, Limit: PSpan);
var
  Records, RecordsEnd: NativeUInt;
begin
  OsReleasePart(Arena^.Base + (First - Arena^.Spans) * SliceSize, (Limit - First) * SliceSize);
  Records := AlignUp(NativeUInt(First), OsGranule);
  RecordsEnd := NativeUInt(Limit) and not NativeUInt(OsGranule - 1);
  if Records < RecordsEnd then
    OsPurge(Pointer(Records), RecordsEnd - Records);
end;

// Releases the slices in front of spans in use and between them; returns the end of the last one.
function ReleaseUnused(Arena: PArena; IsUsed: TSpanTest): PSpan;
var
  Span, Limit: PSpan;
begin
  Result := Arena^.Spans;
  Span := Result;
  Limit := Span + Arena^.Frontier;
  while Span < Limit do
    if not (Span^.Kind in KindsInUse + [skFree]) or (Span^.SliceCount = 0) then
      Inc(Span)
    else if (Span^.Kind = skFree) or not IsUsed(Span) then
      Inc(Span, Span^.SliceCount)
    else
    begin
      ReleaseSlices(Arena, Result, Span);
      Inc(Span, Span^.SliceCount);
      Result := Span;
    end;
end;

// Shortens an arena to the slices before Limit.
procedure Shorten(Arena: PArena; Limit: PSpan);
var
  RecordsEnd: PByte;
  SliceCount: NativeUInt;
begin
  SliceCount := Limit - Arena^.Spans;
  RecordsEnd := PByte(AlignUp(NativeUInt(Limit + 1), OsGranule));
  OsReleasePart(Arena^.Base + SliceCount * SliceSize, (Arena^.Reserved - SliceCount) * SliceSize);
  OsReleasePart(RecordsEnd, PByte(Arena) + RecordBytes(Arena^.Reserved) - RecordsEnd);
  Arena^.Reserved := SliceCount;
  Arena^.Frontier := SliceCount;
  Arena^.Committed := SliceCount;
end;

procedure FrontierEnd(IsUsed: TSpanTest);
var
  Index: NativeUInt;
  Arena: PArena;
  Limit: PSpan;
begin
  Index := 0;
  Arena := FrontierArena(Index);
  while Arena <> nil do
  begin
    Limit := ReleaseUnused(Arena, IsUsed);
    if Index = 0 then
      Process.Limit := (Limit - Arena^.Spans) * SliceSize;
    if Limit <> Arena^.Spans then
      Shorten(Arena, Limit)
    else
    begin
      Process.Arenas[Index] := NativeUInt(@NoArena);
      ReleaseArena(Arena);
    end;
    Inc(Index);
    Arena := FrontierArena(Index);
  end;
end;

end.
