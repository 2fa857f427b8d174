/// Heaps and threads: birth, death, fork, and what is done for all heaps at once.
//
// Owns:       Process.Heaps, UnusedHeaps, HeapRoom, Orphans, ForkMark; the start of Process.
// Invariants: a heap record is never freed, so whoever finds one in Process.Heaps may look at
//             it at any time. A record on UnusedHeaps has no span.
// Callers:    any thread; ProcessStart once, before any other thread runs.
unit LaneMM.Threads;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Sets Process up; tells whether it could. Does nothing the second time.
function ProcessStart: Boolean;
/// Before the code of this unit disappears: a library that is unloaded.
procedure ProcessStop;
/// The calling thread's heap, made now if it has none; nil when there is no memory.
function ThreadHeap: PHeap;
/// The same for FreeMem: never waits. The orphan heap when none can be had now.
function ThreadHeapOrOrphans: PHeap;
/// Gives the memory of free blocks back to the system: empty spans of every heap, and all free
/// runs. Other threads keep running.
procedure ProcessTrim;
/// Gives back the memory that nobody needed since the last call; of empty spans that others
/// emptied, too.
procedure ProcessPurge;
/// Before memory is taken that was not in use: finds the spans that others have emptied, if there
/// may be some.
procedure ProcessSweep;
/// The system's number of the calling thread.
function ThreadNumber: Cardinal;
/// Sums the counts of ReallocMem over all threads, ended ones included.
procedure ProcessReallocCounts(out Counts: TReallocCounts);

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Modules, LaneMM.Arena,
  LaneMM.Heap, LaneMM.Reserve, LaneMM.DebugBlocks;

const
  HeapRoomSize = SliceSize;
  SpinTurns = 200;
  DefaultPurgeDelayMs = 400;

// ---------------------------------------------------------------------------- heaps

// A record that was never used, or nil. Under the registry lock.
function NewHeapRecord: PHeap;
begin
  if (Process.HeapRoom = nil) or (Process.HeapRoomEnd - Process.HeapRoom < SizeOf(THeap)) then
  begin
    Process.HeapRoom := OsReserve(HeapRoomSize);
    if (Process.HeapRoom <> nil) and not OsCommit(Process.HeapRoom, HeapRoomSize) then
    begin
      OsRelease(Process.HeapRoom, HeapRoomSize);
      Process.HeapRoom := nil;
    end;
    if Process.HeapRoom = nil then
      Exit(nil);
    Process.HeapRoomEnd := Process.HeapRoom + HeapRoomSize;
  end;
  Result := PHeap(Process.HeapRoom);
  Inc(Process.HeapRoom, SizeOf(THeap));
  HeapFormat(Result);
  Result^.NextHeap := Process.Heaps;
  // Release: the record before the list. Pairs with FirstHeap.
  StoreRelease(NativeUInt(Process.Heaps), NativeUInt(Result));
end;

// Under the registry lock, which it leaves.
function HeapTakeLocked: PHeap;
begin
  Result := Process.UnusedHeaps;
  if Result <> nil then
    Process.UnusedHeaps := Result^.NextUnused
  else
    Result := NewHeapRecord;
  LockLeave(Process.RegistryLock);
end;

function HeapTake: PHeap;
begin
  LockEnter(Process.RegistryLock);
  Result := HeapTakeLocked;
end;

procedure HeapReturn(Heap: PHeap);
begin
  LockEnter(Process.RegistryLock);
  Heap^.NextUnused := Process.UnusedHeaps;
  Process.UnusedHeaps := Heap;
  LockLeave(Process.RegistryLock);
end;

// Makes Heap the calling thread's; nil when the system refuses.
function Adopt(Heap: PHeap): PHeap;
begin
  Result := Heap;
  if Heap <> nil then
  begin
    Heap^.ThreadNumber := 0;
    Heap^.Group := 0;
    Heap^.GroupDepth := 0;
    Heap^.StackFirst := 0;
    Heap^.StackLimit := 0;
  end;
  if (Heap = nil) or OsSetThreadHeap(Heap) then
    Exit;
  HeapReturn(Heap);
  Result := nil;
end;

function ThreadHeap: PHeap;
begin
  Result := OsThreadHeap;
  if Result = nil then
    Result := Adopt(HeapTake);
end;

function ThreadHeapOrOrphans: PHeap;
begin
  Result := OsThreadHeap;
  if (Result = nil) and LockTry(Process.RegistryLock) then
    Result := Adopt(HeapTakeLocked);
  if Result = nil then
    Result := Process.Orphans;
end;

// After spans were released or a sweep was asked for.
procedure NotifyPurger;
begin
  if @Process.PurgerNotify <> nil then
    Process.PurgerNotify;
end;

// The system calls it at the end of a thread that has a heap. A thread that allocates even
// later gets a new heap and comes here again.
procedure ThreadEnded(Heap: Pointer); cdecl;
begin
  HeapAbandon(Heap);
  HeapReturn(Heap);
  NotifyPurger;
end;

function FirstHeap: PHeap;
begin
  Result := PHeap(LoadAcquire(NativeUInt(Process.Heaps)));
end;

procedure SweepAll;
var
  Heap: PHeap;
begin
  Heap := FirstHeap;
  while Heap <> nil do
  begin
    HeapSweep(Heap);
    Heap := Heap^.NextHeap;
  end;
end;

procedure SweepIfWanted;
begin
  if (LoadAcquire(Process.SweepWanted) <> 0) and (Swap(Process.SweepWanted, 0) <> 0) then
    SweepAll;
end;

procedure ProcessTrim;
var
  Own: PHeap;
begin
  Own := OsThreadHeap;
  if Own <> nil then
    HeapRetireEmpty(Own);
  SweepAll;
  ArenaPurge(AllSlices);
  NotifyPurger;
end;

const
  // A sweep that finds less than this share of all memory is not repeated before memory has grown
  // by as much: so the time that sweeps take stays in proportion to what is used or found.
  SweepShare = 8;

procedure ProcessSweep;
var
  Backed: NativeUInt;
begin
  if (LoadAcquire(Process.SweepWanted) = 0) or (Process.WarmSlices <> 0) then
    Exit;
  Backed := ArenaBackedSlices;
  // Plain, like the counts: two threads at once sweep once too often or too rarely.
  if Backed < Process.SweepFrom then
    Exit;
  SweepIfWanted;
  Process.SweepFrom := 0;
  if Process.WarmSlices < Backed div SweepShare then
    Process.SweepFrom := Backed + Backed div SweepShare;
end;

procedure ProcessPurge;
begin
  SweepIfWanted;
  ArenaPurge(ArenaIdleSlices);
  if Process.HasLimits then
    ReserveFill;
end;

function ThreadNumber: Cardinal;
var
  Heap: PHeap;
begin
  Heap := ThreadHeap;
  if Heap = nil then
    Exit(OsThreadId);
  if Heap^.ThreadNumber = 0 then
    Heap^.ThreadNumber := OsThreadId;
  Result := Heap^.ThreadNumber;
end;

procedure ProcessReallocCounts(out Counts: TReallocCounts);
var
  Heap: PHeap;
begin
  FillChar(Counts, SizeOf(Counts), 0);
  Heap := FirstHeap;
  while Heap <> nil do
  begin
    Inc(Counts.Calls, Heap^.Realloc.Calls);
    Inc(Counts.Moves, Heap^.Realloc.Moves);
    Inc(Counts.CopiedBytes, Heap^.Realloc.CopiedBytes);
    Heap := Heap^.NextHeap;
  end;
end;

// ---------------------------------------------------------------------------- fork

const
  Recovered = 1;
  Recovering = 2;

// The spans for samples stay as they are; new ones serve from now on.
procedure RecoverSamples;
begin
  FillChar(Process.Samples^.Queues, SizeOf(Process.Samples^.Queues), 0);
  HeapFormat(Process.Samples);
  LockReset(Process.SampleLock);
end;

// A child process has one thread and a copy of everything, locks that lost threads held included.
// What they were changing is left behind or made anew; their heaps are those of idle threads.
procedure RecoverChild;
var
  Heap: PHeap;
begin
  Process.Purger := 0; // that thread is lost, too
  LockReset(Process.RegistryLock); // its lists are whole after every single write
  LockReset(Process.ExpectedLock); // its entries, too
  ModulesRecover;
  if @Process.ForkForget <> nil then
    Process.ForkForget;
  if LoadAcquire(Process.SampleLock.State) <> 0 then
    RecoverSamples;
  if LoadAcquire(Process.ArenaLock.State) <> 0 then
    ArenaRecover;
  Process.GuardReaders := 0;
  Process.GuardChanges := 0;
  if LoadAcquire(Process.DebugLock.State) <> 0 then
    DebugBlocksRecover;
  Heap := FirstHeap;
  while Heap <> nil do
  begin
    Heap^.ThreadNumber := 0;
    if LoadAcquire(Heap^.Lock.State) <> 0 then
      HeapRebuild(Heap);
    Heap := Heap^.NextHeap;
  end;
end;

// Before the first lock that a child process takes. Threads that it has started by then wait for
// the one that recovers; there is no lock yet on which they could park.
procedure ForkRecover;
begin
  if CompareAndSwap(Process.ForkMark^, 0, Recovering) then
  begin
    RecoverChild;
    StoreRelease(Process.ForkMark^, Recovered);
  end
  else
    while LoadAcquire(Process.ForkMark^) <> Recovered do
      SpinHint;
end;

// ---------------------------------------------------------------------------- start

// A key that turns neither nil nor HandedOut into an address, nor any address into one that a
// program could use: the last four bits are 0110, the first bytes are not zero.
function LinkKeyOf(Random: NativeUInt): NativeUInt;
const
  TopBit = SizeOf(NativeUInt) * 8 - 1;
begin
  Result := Random and not NativeUInt(15) or 6;
  Result := Result or NativeUInt(1) shl TopBit or NativeUInt(1) shl (TopBit - 8);
end;

function ProcessStart: Boolean;
begin
  if Process.IsStarted then
    Exit(True);
  SizeClassesStart;
  Process.EmptySpan.FreeList := EndOfList(@Process.EmptySpan);
  Process.LinkKey := LinkKeyOf(OsRandom);
  Process.PurgeDelayMs := DefaultPurgeDelayMs;
  if (OsCpuCount > 1) and (OsCpuQuota > 1) then
    Process.SpinLimit := SpinTurns;
  Process.ForkRecover := ForkRecover;
  Process.ForkMark := OsForkMark;
  Process.Orphans := HeapTake;
  Result := Process.Orphans <> nil;
  if Result then
    OsThreadSlotCreate(@ThreadEnded);
  Process.IsStarted := Result;
end;

procedure ProcessStop;
begin
  OsThreadSlotDestroy;
end;

end.
