/// Returns memory to the system: sweeps all heaps, trims, and purges when it is time.
//
// Owns:       Process.PurgeState, PurgeThread, PurgesHeld, SweepFrom, SweepNext, LookedMs;
//             THeap.ClockDue, FreesDue.
// Invariants: there is at most one purge thread. It runs only while there is memory to purge, and
//             is parked, without a timer, otherwise. It starts when a program first has
//             PurgeStartSlices of warm memory or a sweep is wanted. Libraries and programs without
//             the thread library have no purge thread: slow paths of any thread do the work. There
//             each free that empties a span counts, too. After some, without a slow path of GetMem
//             between them, the thread retires its current spans: its next GetMem reads the clock.
//             A program whose main thread has ended while others go on has none, either: a process
//             ends with its last thread, and this one would never end.
// Callers:    PurgeTick: any thread in a slow path of GetMem. PurgeNotify, PurgeRequest: FreeMem.
//             The others: any thread under no lock.
// Progress:   the thread parks on Process.PurgeState; PurgeTick and PurgeNotify wake it.
unit LaneMM.Purge;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Sets the first time of a look.
procedure PurgeStart;
/// Ensures that memory which is free now is purged later. Cheap: for slow paths that may wait.
procedure PurgeTick;
/// PurgeTick for FreeMem: leaves the work to other threads. In a program without the thread library
/// the caller does the work.
procedure PurgeNotify;
/// PurgeNotify after a large block has left this many slices.
procedure PurgeNotifyOfLarge(SliceCount: NativeUInt);
/// Requests a sweep; PurgeNotify if none was requested yet.
procedure PurgeRequest;
/// PurgeRequest in a process that is large enough for a thread that purges.
procedure PurgeRequestOfLarge;
/// Wakes the thread that purges, or starts it, if there is work; returns whether there is one.
function PurgeWake: Boolean;
/// Takes the place of the purge thread for a thread that the caller starts and that calls
/// PurgeRun: in the C library, which starts none by itself. False when there is one, or when the
/// main thread has ended.
function PurgeClaim: Boolean;
/// Gives the place up: the thread could not be started.
procedure PurgeGiveUp;
/// Purges until PurgeDismiss is called, or the main thread ends.
procedure PurgeRun;
/// Tells the thread that purges to end. False when there is none.
function PurgeDismiss: Boolean;
/// Takes that back. False if the thread has ended, or is about to.
function PurgeRecall: Boolean;
/// PurgeNotify after a thread has ended, which may have left spans behind.
procedure PurgeNotifyOfEnd;

/// Purges all free memory: releases the empty spans of every heap, then purges all free runs. Other
/// threads keep running.
procedure ProcessTrim;
/// For a thread that needs a span: sweeps all heaps before cold memory is taken, if idle owners may
/// have spans that other threads emptied and no memory is warm; shelves blocks of the current spans
/// of other threads, some at a time, if memory has grown since.
procedure ProcessSweep;
/// Keeps memory readable that other threads free, until PurgeLetGo: where purged memory cannot be
/// read, nothing is purged meanwhile. Calls nest. Waits for purges under way, about 100 ms at most.
procedure PurgeHold;
/// Ends one call of PurgeHold.
procedure PurgeLetGo;
/// Makes a large block, whose run was in use before, read as zeros. Backs nothing that is not
/// backed. Returns false, and frees the block, when the system does not commit it again.
function PurgeClear(Span: PSpan): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.RemoteList,
  LaneMM.Sweep, LaneMM.Backed, LaneMM.Shards, LaneMM.Huge, LaneMM.KeptRuns, LaneMM.Heap,
  LaneMM.RegionHeaps, LaneMM.Threads, LaneMM.Shelf;

// ---------------------------------------------------------------------------- all heaps

// Calls a hook, if it is set. Another thread may just clear it.
procedure CallHook(Call: TPlainProcedure);
begin
  if @Call <> nil then
    Call;
end;

procedure SweepAll;
var
  Heap: PHeap;
  Left: Cardinal;
begin
  Heap := ThreadsFirstHeap;
  Left := 0;
  while Heap <> nil do
  begin
    if Left = 0 then
    begin
      Left := MostAtOnce;
      if not RunsRelease(Heap, Left) then
        SweepRequest;
    end;
    if HeapIsDissolving(Heap) then
      RegionHeapSweep(Heap)
    else
      HeapSweepQueued(Heap);
    Heap := Heap^.NextHeap;
    Dec(Left);
  end;
  CallHook(Hooks.Sweep);
end;

// Sweeps Left queued spans of a heap at most, like HeapSweepSome. One that dissolves is left to the
// thread that purges, if there is one: it releases all spans at once.
function SweepPart(Heap: PHeap; var Left: Cardinal): Boolean;
begin
  if (Process.PurgeThread <> 0) or not HeapIsDissolving(Heap) then
    Exit(HeapSweepSome(Heap, Left));
  RegionHeapSweep(Heap);
  Result := True;
end;

// Goes on with a sweep of all heaps by parts, or begins one: some heaps, and MostAtOnce spans.
procedure SweepSome;
const
  HeapsAtOnce = 16;
  VacantAtOnce = 4; // each takes as long as the end of a thread
var
  First, Heap: PHeap;
  Left, Index: Cardinal;
begin
  First := Process.SweepNext;
  Heap := First;
  if Heap = nil then
  begin
    ThreadsAbandonVacant(VacantAtOnce);
    Heap := ThreadsFirstHeap;
  end;
  if not RunsRelease(Heap, HeapsAtOnce) then
    SweepRequest;
  Left := MostAtOnce;
  for Index := 1 to HeapsAtOnce do
    if (Heap <> nil) and SweepPart(Heap, Left) then
      Heap := Heap^.NextHeap;
  // Another thread may have gone on with the sweep, or have ended it and begun the next one. Full
  // barrier, with nothing: the heaps' locks order what is swept.
  CompareAndSwap(NativeUInt(Process.SweepNext), NativeUInt(First), NativeUInt(Heap));
  if Heap = nil then
    CallHook(Hooks.Sweep);
end;

procedure ProcessTrim;
begin
  LockRecover; // a child, before a look at other threads' lists, which may show two moments
  if OsThreadHeap <> nil then
    HeapRetireEmpty(OsThreadHeap);
  ThreadsAbandonVacant(High(Cardinal));
  SweepAll;
  ShelveAll;
  ShardsPurge(AllSlices);
  ShardsUncharge;
  PurgeNotify;
end;

// Purges the memory that stayed free since the last call, empty spans of idle owners included. The
// purge thread, which leaves the heaps' locks after each.
procedure ProcessPurge;
begin
  if SweepTake then
  begin
    ThreadsAbandonVacant(High(Cardinal));
    SweepAll;
  end;
  ShelveAll;
  ShardsPurgeIdle;
end;

// Releases empty spans of idle owners, some at a time, as often as that finds enough. The request
// stays: the purge thread obeys it.
procedure SweepForMore;
const
  // A sweep that finds less than one part in this many of all memory is not repeated before memory
  // has grown by as much: the time of sweeps stays in proportion to the memory used or found.
  SweepShare = 8;
var
  Backed: NativeUInt;
begin
  Backed := BackedSlices;
  if Backed < Process.SweepFrom then
    Exit;
  SweepSome;
  if Process.SweepNext <> nil then
    Exit;
  Process.SweepFrom := 0;
  if ShardsWarmSlices < Backed div SweepShare then
    Process.SweepFrom := Backed + Backed div SweepShare;
end;

procedure ProcessSweep;
begin
  LockRecover;
  if (SweepIsRequested or (Process.SweepNext <> nil))
    and not ShardsHaveWarm then
    SweepForMore;
  if ShelveIsDue then
    ShelveSome;
end;

// ---------------------------------------------------------------------------- readers

// Waits for purges under way, a bounded time: a thread may have been stopped in one.
procedure AwaitPurges;
const
  MostRounds = 100;
  RoundMs = 1;
var
  Round, Purges: NativeUInt;
begin
  for Round := 1 to MostRounds do
  begin
    Purges := LoadAcquire(Process.PurgesUnderWay);
    if Purges = 0 then
      Exit;
    OsWaitMs(Process.PurgesUnderWay, Purges, RoundMs);
  end;
end;

procedure PurgeHold;
begin
  LockRecover; // it sets PurgesHeld anew
  // Full barrier: the purge sees the reader, or the reader the purge. Pairs with PurgeShard.
  FetchAdd(Process.PurgesHeld, 1);
  AwaitPurges;
end;

procedure PurgeLetGo;
begin
  // Full barrier: the reads come before. Pairs with Purge in LaneMM.Shards.
  FetchAdd(Process.PurgesHeld, NativeUInt(-1));
end;

// ---------------------------------------------------------------------------- clear

// Purges a range of a block in use, unless readers hold it or the system refuses. Counted in
// Process.PurgesUnderWay: pairs with PurgeHold.
function Discard(P: PByte; Size: NativeUInt): Boolean;
begin
  FetchAdd(Process.PurgesUnderWay, 1);
  Result := (OsPurgedIsCommitted or (LoadAcquire(Process.PurgesHeld) = 0)) and OsPurge(P, Size);
  // Committed before a reader goes on. A refusal shows at the end of PurgeClear.
  if Result then
    OsUse(P, Size);
  FetchAdd(Process.PurgesUnderWay, NativeUInt(-1));
end;

// Clears a range, and backs none of its pages. The next use is taken to write as much as the last
// one left written: to back a page again costs as much as to clear a dozen.
procedure ClearPart(P: PByte; Size: NativeUInt);
const
  FewPages = 4; // a look at an untouched page is a page fault
  ManyPages = 16;
var
  PageCount: NativeUInt;
begin
  PageCount := Size div OsPageSize;
  if (WrittenPages(P, PageCount, FewPages) > 0) and (WrittenPages(P, PageCount, ManyPages) > 1)
    or not Discard(P, Size) then
    OsZeroPages(P, Size);
end;

function PurgeClear(Span: PSpan): Boolean;
const
  LeastLookedAt = 4 * SliceSize; // fewer bytes are filled before the pages have been read
  LeastDiscarded = 256 * SliceSize; // shorter blocks are often read whole: a page fault each page
  PartSize = HugeSlices * SliceSize;
var
  P: PByte;
  Left, Part: NativeUInt;
begin
  Result := True;
  P := Span^.Start;
  Left := Span^.BlockSize;
  if Left < LeastLookedAt then
    FillChar(P^, Left, 0)
  else if (Left < LeastDiscarded) or Process.ErasesPages then
    OsZeroPages(P, Left);
  if (Left < LeastDiscarded) or Process.ErasesPages then
    Exit;
  while Left > 0 do
  begin
    Part := PartSize;
    if Part > Left then
      Part := Left;
    ClearPart(P, Part);
    Inc(P, Part);
    Dec(Left, Part);
  end;
  Result := OsUse(Span^.Start, Span^.BlockSize);
  if Result then
    Exit;
  OsPurge(Span^.Start, Span^.BlockSize);
  ShardsUnuseSpare(Span^.SliceCount - Span^.SpareCount);
  Span^.SpareCount := Span^.SliceCount;
  RemoteEndLife(Span);
  RegionHeapFreed(Span);
end;

// ---------------------------------------------------------------------------- bell

// Calls Hooks.Ring if another process has rung.
procedure SeeBell; inline;
begin
  // Acquire: the request comes before. Pairs with the tool's write.
  if LoadAcquire(Process.Bell^) <> Process.BellSeen then
    Hooks.Ring;
end;

// ---------------------------------------------------------------------------- purge thread

const
  // Values of Process.PurgeState. Refused: there is no thread. Dismissed: it ends at its next look,
  // as if it had never been started, unless it is recalled before. Over: the main thread has ended,
  // and no thread of LaneMM may keep the process; stays.
  NotStarted = 0;
  Running = 1;
  Parked = 2;
  Refused = 3;
  Dismissed = 4;
  Over = 5;

  // Calls between two reads of a clock that costs a system call; frees before current spans are
  // retired. The free of a large block of PurgeStartSlices counts as many.
  ClockInterval = 16;
  ClockSlack = 1000; // ms; another thread may have read the clock later and written LookedMs before
  // Warm slices that are worth a thread, or, without one, that a thread leaves its current spans.
  PurgeStartSlices = 64;
  RestMs = 400; // between two looks at the container, whatever the purge delay is

// Returns true if a heap keeps runs. A thread that keeps one requests a sweep, but may read an old
// request that is being obeyed.
function RunsAreKept: Boolean;
var
  Heap: PHeap;
begin
  Result := False;
  Heap := ThreadsFirstHeap;
  while (Heap <> nil) and not Result do
  begin
    Result := RunsKept(Heap) <> 0;
    Heap := Heap^.NextHeap;
  end;
end;

// Returns whether the thread that purges has work also while the heap rests: it writes the black
// box, and looks at the container.
function NeverRests: Boolean; inline;
begin
  Result := (@Hooks.Box <> nil) or (@Hooks.Pressure <> nil);
end;

function HasWork: Boolean;
begin
  Result := SweepIsRequested or ShardsHaveWarm;
  if NeverRests then
    Result := True;
end;

// Returns how long the thread waits for its next look. Without a delay it does not spin.
function WaitMs: Cardinal;
begin
  Result := Process.PurgeDelayMs + Ord(Process.PurgeDelayMs = 0);
  if NeverRests and ((Result > RestMs) or not SweepIsRequested and not ShardsHaveWarm) then
    Result := RestMs;
end;

procedure PurgeRun;
var
  Ms, Waited: Cardinal;
begin
  Process.PurgeThread := OsThreadId;
  Waited := 0;
  repeat
    Ms := WaitMs;
    OsWaitMs(Process.PurgeState, Running, Ms);
    SeeBell;
    Inc(Waited, Ms);
    if Waited >= Process.PurgeDelayMs then
    begin
      Waited := 0;
      ProcessPurge;
    end;
    if RunsAreKept then
      SweepRequest;
    CallHook(Hooks.Box);
    CallHook(Hooks.Pressure);
    if HasWork then
      Continue;
    // Full barrier: either this thread sees the work, or PurgeWake, called after memory became
    // free, sees Parked. Pairs with the swap in SweepRequest and the locks of LaneMM.Shards.
    if not CompareAndSwap(Process.PurgeState, Running, Parked) then
      Continue;
    if HasWork and CompareAndSwap(Process.PurgeState, Parked, Running) then
      Continue;
    OsWait(Process.PurgeState, Parked);
    CompareAndSwap(Process.PurgeState, Parked, Running); // after a spurious wakeup
    // Full barrier: what this thread has done before another one is started. Pairs with PurgeClaim.
  until (LoadAcquire(Process.PurgeState) = Over)
    or CompareAndSwap(Process.PurgeState, Dismissed, NotStarted);
  Process.PurgeThread := 0;
end;

function PurgeClaim: Boolean;
begin
  // Full barrier: one thread at a time has the place, and sees what the one before did. Pairs with
  // the end of PurgeRun.
  Result := CompareAndSwap(Process.PurgeState, NotStarted, Running)
    or CompareAndSwap(Process.PurgeState, Refused, Running);
end;

function PurgeDismiss: Boolean;
begin
  // Full barrier, with nothing: the state alone counts. A thread that parks or wakes at this moment
  // changes it once more.
  repeat
    Result := CompareAndSwap(Process.PurgeState, Running, Dismissed)
      or CompareAndSwap(Process.PurgeState, Parked, Dismissed);
  until Result or not (LoadAcquire(Process.PurgeState) in [Running, Parked]);
  OsWake(Process.PurgeState);
end;

function PurgeRecall: Boolean;
begin
  // Full barrier, with nothing: either this succeeds, or the swap of PurgeRun that ends the thread.
  Result := CompareAndSwap(Process.PurgeState, Dismissed, Running);
end;

procedure PurgeGiveUp;
begin
  CompareAndSwap(Process.PurgeState, Running, Refused); // not where the main thread has ended
end;

procedure StartThread;
begin
  if IsLibrary or Process.IsConfined or not Process.HasThreads then
    CompareAndSwap(Process.PurgeState, NotStarted, Refused) // not after PurgeClaim
  else if CompareAndSwap(Process.PurgeState, NotStarted, Running) then
    if not OsThreadStart(PurgeRun) then
      PurgeGiveUp;
end;

// Writes the black box at a new peak.
procedure SeePeak; inline;
begin
  if not Process.BoxIsDue then
    Exit;
  Process.BoxIsDue := False;
  CallHook(Hooks.Box);
end;

function PurgeWake: Boolean;
begin
  case LoadAcquire(Process.PurgeState) of
    Parked:
      if HasWork and CompareAndSwap(Process.PurgeState, Parked, Running) then
        OsWake(Process.PurgeState);
    NotStarted:
      if (ShardsWarmSlices >= PurgeStartSlices) or SweepIsRequested or NeverRests then
        StartThread;
  end;
  Result := LoadAcquire(Process.PurgeState) in [Running, Parked];
end;

// Returns the heap that counts the calling thread's calls; nil in a process without memory for one.
function CountingHeap: PHeap;
begin
  Result := OsThreadHeap;
  if Result = nil then
    Result := Process.Abandoned;
end;

// Counts one call down; returns true, and begins again, where none was left.
function IsOver(var Due: Word): Boolean;
var
  Left: Word; // of threads without a heap several count here
begin
  Left := Due;
  Result := Left = 0;
  if Result then
    Left := ClockInterval + 1;
  Due := Left - 1;
end;

// Once per Process.PurgeDelayMs, purges the memory that stayed free since the last look. One that
// comes twice as late purges all: no more than ClockInterval calls have needed memory meanwhile.
procedure Look;
var
  Now: Cardinal;
  UnseenMs: Int64;
  IsDue: Boolean;
begin
  LockRecover;
  Now := OsNowMs;
  UnseenMs := Int64(Cardinal(Now - Process.LookedMs + ClockSlack)) - ClockSlack;
  IsDue := UnseenMs >= Process.PurgeDelayMs;
  if IsDue then
    Process.LookedMs := Now; // first: other threads that come meanwhile are early
  // A request during a sweep is for the next one.
  if (Process.SweepNext <> nil) or IsDue and SweepTake then
    SweepSome;
  if IsDue or (UnseenMs >= RestMs) then
  begin
    CallHook(Hooks.Box);
    CallHook(Hooks.Pressure);
  end;
  if not IsDue then
    Exit;
  ShelveSome;
  ShardsPurgeIdle;
  if UnseenMs div 2 >= Process.PurgeDelayMs then
    ShardsPurge(AllSlices);
end;

procedure PurgeTick;
var
  Heap: PHeap;
begin
  SeeBell;
  SeePeak;
  if PurgeWake then
    Exit;
  Heap := CountingHeap;
  if Heap <> nil then
    Heap^.FreesDue := ClockInterval;
  if (Heap = nil) or OsClockIsCheap or IsOver(Heap^.ClockDue) then
    Look;
end;

// Lets the thread's next call of GetMem read the clock, whatever class it is of.
procedure LookAtNextCall(Heap: PHeap);
begin
  HeapRetireAll(Heap);
  Heap^.ClockDue := 0;
end;

procedure PurgeNotify;
var
  Heap: PHeap;
begin
  SeeBell;
  if PurgeWake then
    Exit;
  Heap := CountingHeap;
  if (Heap = nil) or not IsOver(Heap^.FreesDue) then
    Exit;
  if not Process.HasThreads then
    Look
  else if (Heap = OsThreadHeap) and (ShardsWarmSlices >= PurgeStartSlices) then
    LookAtNextCall(Heap);
end;

procedure PurgeNotifyOfLarge(SliceCount: NativeUInt);
var
  Heap: PHeap;
begin
  Heap := CountingHeap;
  if (Heap <> nil) and (SliceCount >= PurgeStartSlices) then
    Heap^.FreesDue := 0;
  PurgeNotify;
end;

procedure PurgeRequest;
begin
  if SweepRequest then
    PurgeNotify;
end;

procedure PurgeRequestOfLarge;
begin
  if BackedSlices >= PurgeStartSlices then
    PurgeRequest;
end;

procedure PurgeNotifyOfEnd;
begin
  if OsThreadIsMain then
  begin
    Swap(Process.PurgeState, Over);
    OsWake(Process.PurgeState);
  end;
  if BackedSlices >= PurgeStartSlices then
    SweepRequest; // it abandons the thread's heap, unless another thread takes it before
  PurgeNotify;
end;

procedure PurgeStart;
begin
  Process.LookedMs := OsNowMs;
  Process.BoxSlices := High(NativeUInt);
end;

end.
