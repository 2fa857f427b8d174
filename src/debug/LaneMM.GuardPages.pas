/// Inaccessible pages around debug blocks.
//
// Owns:       Debug.GuardReaders, GuardChanges, GuardedBlocks.
// Invariants: while a thread reads all blocks (GuardPagesHold), no more pages become inaccessible:
//             a block that was readable when it was found stays readable. Blocks that are allocated
//             or freed meanwhile have no such pages. TSpan.IsCurrent of a guarded or single block
//             is False while its contents are inaccessible, or are about to be.
// Callers:    any thread. DebugBlockClose: the thread that frees the block; DebugBlockOpen: the one
//             that takes it.
// Progress:   as the routines say; DebugBlockClose and DebugSingleClose take Debug.Lock.
unit LaneMM.GuardPages;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.DebugSpans;

/// Keeps pages from becoming inaccessible, until GuardPagesLetGo; call it before contents of blocks
/// or their records are read that other threads may free. Calls nest. Waits for threads in
/// GuardPagesForbid, about 2 s at most, and as PurgeHold.
procedure GuardPagesHold;
/// Ends one call of GuardPagesHold.
procedure GuardPagesLetGo;
/// Makes pages inaccessible, unless GuardPagesHold is in effect; returns whether it did. Waits for
/// threads that commit slices, about 100 ms at most: one that stands still for longer there may
/// make the pages accessible again.
function GuardPagesForbid(P: Pointer; Size: NativeUInt): Boolean;
/// Returns True if the contents are accessible.
function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean; inline;
/// Counts one more block with inaccessible pages; returns False if there are enough.
function GuardPagesCount: Boolean;
/// Makes the contents of a guarded block inaccessible as GuardPagesForbid does; purges them if they
/// are longer than a page.
procedure DebugBlockClose(const Place: TDebugPlace);
/// Makes the contents of a freed single block inaccessible until it is used again, as
/// GuardPagesForbid does; returns whether it did. Purges them if the quarantine could not hold so
/// many. An object stays as it is: LaneMM.FreedObjects reports more of its use.
function DebugSingleClose(const Place: TDebugPlace): Boolean;
/// Makes the contents of a guarded block accessible that is going to be used again; returns False
/// when the system refuses.
function DebugBlockOpen(Span: PSpan): Boolean;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Purge, LaneMM.DebugState, LaneMM.DebugThreads, LaneMM.Contents;

{$I ../LaneMM.AfterUses.inc}

const
  // Maximum number of blocks with inaccessible pages where each takes two mappings, of which a
  // process may have 65,530: without any left the system refuses memory, too. With 32 bits also
  // where it takes none: the addresses would run out.
  MostGuarded = 16384;
  // How long a reader waits for threads in GuardPagesForbid: on a busy machine they may have been
  // stopped there for some time, by a debugger without end. And how long a thread there waits for
  // those that commit slices.
  PatienceMs = 1;
  MostHoldRounds = 2000;
  MostCommitRounds = 100;

procedure GuardPagesHold;
var
  Round, Changes: NativeUInt;
begin
  PurgeHold;
  // Full barrier: either GuardPagesForbid sees the reader, or this thread sees GuardChanges and
  // waits. Pairs with GuardPagesForbid.
  FetchAdd(Debug.GuardReaders, 1);
  for Round := 1 to MostHoldRounds do
  begin
    Changes := LoadAcquire(Debug.GuardChanges);
    if Changes = 0 then
      Exit;
    OsWaitMs(Debug.GuardChanges, Changes, PatienceMs);
  end;
end;

procedure GuardPagesLetGo;
begin
  // Full barrier: the reads of the blocks come before. Pairs with GuardPagesForbid.
  FetchAdd(Debug.GuardReaders, NativeUInt(-1));
  PurgeLetGo;
end;

// Waits for threads that commit slices, unless pages are held: one that was stopped since before
// the span was taken would make its pages accessible again.
procedure AwaitCommits;
var
  Round, Commits: NativeUInt;
begin
  for Round := 1 to MostCommitRounds do
  begin
    // Full barrier: the span was taken before. Pairs with CommitAhead in LaneMM.Arena.
    Commits := FetchAdd(Process.CommitsUnderWay, 0);
    if (Commits = 0) or (LoadAcquire(Debug.GuardReaders) <> 0) then
      Exit;
    OsWaitMs(Process.CommitsUnderWay, Commits, PatienceMs);
  end;
end;

// Makes pages inaccessible unless threads read memory that others may free, in the engine.
function Forbid(P: Pointer; Size: NativeUInt): Boolean;
begin
  // Full barrier: either this thread sees the reader, or the reader sees the count and does not
  // read. Pairs with ReadBegin in LaneMM.Huge, and with PurgeHold.
  FetchAdd(Process.PurgesUnderWay, 1);
  Result := (LoadAcquire(Process.PurgesHeld) = 0) and OsGuard(P, Size);
  // Full barrier: the pages before the count.
  FetchAdd(Process.PurgesUnderWay, NativeUInt(-1));
end;

function GuardPagesForbid(P: Pointer; Size: NativeUInt): Boolean;
begin
  AwaitCommits;
  // Full barrier: either this thread sees the reader, or the reader sees GuardChanges and waits.
  // Pairs with GuardPagesHold.
  FetchAdd(Debug.GuardChanges, 1);
  Result := (LoadAcquire(Debug.GuardReaders) = 0) and Forbid(P, Size);
  // Full barrier: the pages before the count. Pairs with GuardPagesHold.
  FetchAdd(Debug.GuardChanges, NativeUInt(-1));
end;

function DebugPlaceIsOpen(const Place: TDebugPlace): Boolean;
begin
  Result := not Place.IsClosable or Place.Span^.IsCurrent;
end;

function GuardPagesCount: Boolean;
begin
  // Acquire: with nothing; an old value decides for one block more.
  Result := (FetchAdd(Debug.GuardedBlocks, 1) < MostGuarded)
    or (SizeOf(Pointer) = 8)
    and (LoadAcquire(Process.GuardMarks) > LoadAcquire(Process.GuardMappings));
  if not Result then
    FetchAdd(Debug.GuardedBlocks, NativeUInt(-1));
end;

procedure DebugBlockClose(const Place: TDebugPlace);
var
  Span: PSpan;
  Pages: PByte;
  Size: NativeUInt;
begin
  Span := Place.Span;
  Pages := DebugContents(Span, Size);
  if Place.Guarded > OsGranule then
    OsErase(Pages, Size);
  DebugLockEnter; // a check may be reading the block
  // Before the pages: a thread that holds them sees either this, or is seen by GuardPagesForbid.
  Span^.IsCurrent := False;
  if OsPurgedIsCommitted and (Place.Guarded > OsGranule) then // else a walk could not read them
    OsPurge(Pages, Size);
  if not GuardPagesForbid(Pages, Size) then
    Span^.IsCurrent := True;
  DebugLockLeave;
end;

function DebugSingleClose(const Place: TDebugPlace): Boolean;
var
  Span: PSpan;
  Pages: PByte;
  Size: NativeUInt;
begin
  if (ClassSize(Place.Block^.FirstWord) <> 0) or not GuardPagesCount then
    Exit(False);
  Span := Place.Span;
  Pages := DebugContents(Span, Size);
  if DebugOutgrows(Span) then
    OsErase(Pages, Size);
  DebugLockEnter; // as in DebugBlockClose
  Span^.IsCurrent := False;
  Result := GuardPagesForbid(Pages, Size);
  Span^.IsCurrent := not Result;
  DebugLockLeave;
  if not Result then
    FetchAdd(Debug.GuardedBlocks, NativeUInt(-1))
  else if DebugOutgrows(Span) then
    OsPurge(Pages, Size);
end;

function DebugBlockOpen(Span: PSpan): Boolean;
var
  Pages: PByte;
  Size: NativeUInt;
begin
  Pages := DebugContents(Span, Size);
  Result := Span^.IsCurrent or OsUnguard(Pages, Size);
  if not Result then
    Exit;
  // Release: the pages before the sign that they are accessible. Pairs with DebugPlaceIsOpen.
  ReleaseFence;
  Span^.IsCurrent := True;
end;

end.
