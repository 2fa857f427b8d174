/// Reserves arenas, commits them ahead of use, and hands out slices that were never used.
//
// Owns:       Process.Arenas, Base, Limit, Spans, DirectLimit; TArena.
// Invariants: each arena is one reserved range, committed from its start to Committed; slices
//             below Frontier belong to spans and free runs, those above were never touched. An
//             arena in Process.Arenas stays, so a thread may use it at any time.
// Commit:     without a lock: two threads may commit the same slices, which changes nothing, and
//             then one of them takes them. A thread that was stopped before its call can so
//             lift a guard page of debug mode in those slices: once in CommitStep slices.
// Callers:    any thread.
// Progress:   lock-free but for the system calls.
unit LaneMM.Frontier;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Takes slices that were never used: Start is set. Nil when the system refuses memory. Tail is
/// nil, or what was left of the last arena before a new one: a run of TailCount slices, Start is
/// set, that the caller makes free.
function FrontierTake(SliceCount: NativeUInt; out Tail: PSpan; out TailCount: NativeUInt): PSpan;
/// Takes the SliceCount slices from End on, if they are the next of the newest arena. Returns
/// whether it did.
function FrontierGrow(SpanEnd: PSpan; SliceCount: NativeUInt): Boolean;
/// Returns arena number Index, or nil: there are no more.
function FrontierArena(Index: NativeUInt): PArena; inline;
/// Sets Process.DirectLimit as Process.IsDirect requires.
procedure FrontierApplyDirect;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os;

const
  SmallestArenaSize = NativeUInt(1) shl 22;
  // An arena that was refused at the wanted size keeps one part in this many of the granted range:
  // thread stacks, for example, need addresses too.
  LimitedShare = 4;
  // Slices that are committed at once; their records then fill whole pages.
  CommitStep = 512;
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

// ---------------------------------------------------------------------------- new arenas

function RecordBytes(SliceCount: NativeUInt): NativeUInt;
begin
  Result := AlignUp((SliceCount + RecordsBefore + 1) * SizeOf(TSpan), SliceSize);
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

// Reserves a range of at least SliceCount slices, or returns nil.
function ReserveAtLeast(SliceCount: NativeUInt; out Size: NativeUInt): PByte;
begin
  Result := ReserveRange(Size);
  if (Result = nil) or (Size shr SliceShift >= SliceCount) then
    Exit;
  OsRelease(Result, Size);
  Size := SliceCount shl SliceShift;
  Result := OsReserve(Size);
end;

procedure ReleaseArena(Arena: PArena);
begin
  OsRelease(Arena^.Base, Arena^.SliceCount * SliceSize);
  OsRelease(Arena, RecordBytes(Arena^.SliceCount));
end;

// Makes a record of the range at Base, or returns nil and releases it.
function NewRecord(Base: PByte; Size: NativeUInt): PArena;
var
  Bytes: NativeUInt;
begin
  Bytes := RecordBytes(Size shr SliceShift);
  Result := OsReserve(Bytes);
  if (Result <> nil) and not OsCommit(Result, OsPageSize) then
  begin
    OsRelease(Result, Bytes);
    Result := nil;
  end;
  if Result = nil then
  begin
    OsRelease(Base, Size);
    Exit;
  end;
  Result^.Base := Base;
  Result^.Spans := PSpan(Result) + RecordsBefore;
  Result^.SliceCount := Size shr SliceShift;
end;

// Adds arena number Index with room for SliceCount slices. Returns true when it is there now, also
// if another thread has added it.
function AddArena(Index, SliceCount: NativeUInt): Boolean;
var
  Base: PByte;
  Size: NativeUInt;
  Arena: PArena;
begin
  if Index = ArenaLimit then
    Exit(False);
  Base := ReserveAtLeast(SliceCount, Size);
  if Base = nil then
    Exit(False);
  Arena := NewRecord(Base, Size);
  Result := Arena <> nil;
  // Release: the arena's fields. Pairs with FrontierArena.
  if Result and not CompareAndSwap(Process.Arenas[Index], 0, NativeUInt(Arena)) then
    ReleaseArena(Arena);
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

// Publishes the slices that are committed now: lookups read their records.
procedure Publish(Arena: PArena; SliceCount: NativeUInt);
begin
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

// Commits the arena and its records up to SliceCount slices.
function Commit(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Committed: NativeUInt;
  Records, RecordsEnd: PByte;
begin
  Committed := LoadAcquire(Arena^.Committed);
  if Committed >= SliceCount then
    Exit(True);
  Records := PByte(AlignUp(NativeUInt(Arena^.Spans + Committed + 1), OsPageSize));
  RecordsEnd := PByte(AlignUp(NativeUInt(Arena^.Spans + SliceCount + 1), OsPageSize));
  Result := ((RecordsEnd <= Records) or OsCommit(Records, RecordsEnd - Records))
    and OsCommit(Arena^.Base + Committed * SliceSize, (SliceCount - Committed) * SliceSize);
  if not Result then
    Exit;
  // Otherwise a system that uses huge pages everywhere backs 2 MB where a page is touched.
  OsUseSmallPages(Arena^.Base + Committed * SliceSize, (SliceCount - Committed) * SliceSize);
  Publish(Arena, SliceCount);
end;

function CommitAhead(Arena: PArena; SliceCount: NativeUInt): Boolean;
var
  Ahead: NativeUInt;
begin
  Ahead := AlignUp(SliceCount, CommitStep);
  if Ahead > Arena^.SliceCount then
    Ahead := Arena^.SliceCount;
  Result := (SliceCount <= LoadAcquire(Arena^.Committed)) or Commit(Arena, Ahead)
    or Commit(Arena, SliceCount);
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
    HasRoom := SliceCount <= Arena^.SliceCount - First;
    if not HasRoom or not CommitAhead(Arena, First + SliceCount) then
      Exit(nil);
  until TakeAt(Arena, First, SliceCount);
  Result := Arena^.Spans + First;
  Result^.Start := Arena^.Base + First * SliceSize;
end;

// Takes all that is left of the arena; nil if nothing is.
function TakeTail(Arena: PArena; out SliceCount: NativeUInt): PSpan;
var
  HasRoom: Boolean;
begin
  repeat
    SliceCount := Arena^.SliceCount - LoadAcquire(Arena^.Frontier);
    if SliceCount = 0 then
      Exit(nil);
    Result := TakeOf(Arena, SliceCount, HasRoom);
  until (Result <> nil) or HasRoom; // without room another thread has taken a part
end;

function FrontierTake(SliceCount: NativeUInt; out Tail: PSpan; out TailCount: NativeUInt): PSpan;
var
  Count: NativeUInt;
  HasRoom: Boolean;
begin
  Tail := nil;
  repeat
    Result := nil;
    HasRoom := False;
    Count := ArenaCount;
    if Count <> 0 then
      Result := TakeOf(FrontierArena(Count - 1), SliceCount, HasRoom);
    if HasRoom then
      Exit;
    if not AddArena(Count, SliceCount) then
      Exit;
    if (Count <> 0) and (Tail = nil) then
      Tail := TakeTail(FrontierArena(Count - 1), TailCount);
  until False;
end;

function FrontierGrow(SpanEnd: PSpan; SliceCount: NativeUInt): Boolean;
var
  Arena: PArena;
  First: NativeUInt;
begin
  Arena := FrontierArena(ArenaCount - 1);
  First := LoadAcquire(Arena^.Frontier);
  Result := (SpanEnd = Arena^.Spans + First) and (SliceCount <= Arena^.SliceCount - First)
    and CommitAhead(Arena, First + SliceCount) and TakeAt(Arena, First, SliceCount);
end;

end.
