/// The heaps of threads, from a thread's first block to its end; the start of Process.
//
// Owns:       Process.VacantHeaps, UnusedHeaps, Abandoned, and the fields that ProcessStart sets.
// Invariants: a heap record is never freed, so a thread that finds one in Process.Heaps may read
//             it at any time. It is the heap of one thread, or on one of VacantHeaps with those
//             current spans of an ended thread that have a block in use, or on UnusedHeaps without
//             a span, or on its way from one to the next in the hands of one thread. To all others
//             a vacant heap is one whose thread sleeps.
// Callers:    any thread; ProcessStart once, before any other thread runs.
// Progress:   lock-free. A thread that stands still with records in its hands keeps these alone.
unit LaneMM.Threads;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Sets Process up. Returns false without memory or a thread key. Does nothing the second time. The
/// thread library calls ThreadEnded with the heap of each thread that ends.
function ProcessStart(ThreadEnded: Pointer): Boolean;
/// Leaves the heap of the calling thread, which ends, to others.
procedure ThreadEnd(Heap: PHeap);
/// From now on the engine makes only the system calls that glibc's malloc makes, too, and starts no
/// thread. Before the first block is allocated.
procedure ProcessConfine;
/// Cancels the calls at thread end, before a library with this code is unloaded. Returns whether no
/// thread uses a heap any more: no other has one, or the process goes on without the library.
function ProcessStop: Boolean;
/// Forgets the heaps, whose records are released.
procedure ThreadsForget;
/// Returns the calling thread's heap, a new one if it has none; nil when there is no memory, or
/// when the thread ends.
function ThreadHeap: PHeap;
/// Returns the heap for FreeMem: like ThreadHeap, but Process.Abandoned instead of nil.
function ThreadHeapOrAbandoned: PHeap;
/// Abandons the vacant heaps, Most of them at most; requests a sweep if some are left, because
/// there were more or another thread has their locks.
procedure ThreadsAbandonVacant(Most: Cardinal);
/// Returns true if Heap is the heap of a thread, or Process.Abandoned: a record of Process.Heaps.
function ThreadsHaveHeap(Heap: PHeap): Boolean; inline;
/// Rebuilds the lists of heaps in a child process, see LaneMM.Fork: a record that was, or may have
/// been, that of a lost thread is not used again.
procedure ThreadsRecover;
/// Returns the first of all heap records, linked through NextHeap; they are never freed.
function ThreadsFirstHeap: PHeap;
/// Returns the system's number of the calling thread.
function ThreadNumber: Cardinal;
/// Sums the counts of ReallocMem over all threads, ended ones included.
procedure ProcessReallocCounts(out Counts: TReallocCounts);

implementation

uses
  LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Span,
  LaneMM.Sweep, LaneMM.KeptRuns, LaneMM.Huge, LaneMM.Heap,
  LaneMM.HeapRecords,
  LaneMM.Regions;

const
  SpinTurns = 200;
  DefaultPurgeDelayMs = 400;
  FewestShards = 4;

// ---------------------------------------------------------------------------- heaps

// Returns which of VacantHeaps the calling thread leaves its heap on, and looks at first. It
// follows from the address of the thread's stack, of which the system gives each to one thread
// after the other: so of two chains of threads each keeps to its own blocks.
function HomeStack: NativeUInt;
const
  // Stacks lie 1 to 8 MB apart.
  NearShift = 20;
  FarShift = 23;
var
  OnStack: Byte;
begin
  Result := NativeUInt(@OnStack);
  Result := (Result shr NearShift xor Result shr FarShift) and (VacantStacks - 1);
end;

procedure Vacate(Heap: PHeap);
begin
  HeapPush(Process.VacantHeaps[HomeStack], Heap);
end;

// Takes a vacant heap; nil if there is none.
function TakeVacant: PHeap;
var
  Home, Index: NativeUInt;
begin
  Result := nil;
  Home := HomeStack;
  Index := 0;
  while (Result = nil) and (Index < VacantStacks) do
  begin
    Result := HeapPop(Process.VacantHeaps[Home xor Index]);
    Inc(Index);
  end;
end;

function HeapTake: PHeap;
begin
  Result := TakeVacant;
  if Result = nil then
    Result := HeapPop(Process.UnusedHeaps);
  if Result = nil then
    Result := HeapRecordNew;
end;

// Returns the blocks in use in the current spans.
function UsedInCurrent(Heap: PHeap): Cardinal;
var
  SizeClass: Cardinal;
begin
  Result := 0;
  for SizeClass := 0 to SizeClassCount - 1 do
    if Heap^.Current[SizeClass] <> @Process.EmptySpan then
      Inc(Result, SpanUsedCount(Heap^.Current[SizeClass]));
end;

// Counts whether a thread that ends leaves more blocks than it has found.
procedure NoteEnd(Heap: PHeap);
begin
  if UsedInCurrent(Heap) <= Heap^.UsedBefore then
  begin
    if Process.LeavingThreads > 0 then
      Dec(Process.LeavingThreads);
  end
  else if Process.LeavingThreads < 2 * FewLeaving then
    Inc(Process.LeavingThreads);
end;

// Makes Heap the calling thread's heap; nil when the system refuses.
function Adopt(Heap: PHeap): PHeap;
begin
  Result := Heap;
  if Heap <> nil then
  begin
    Heap^.ThreadNumber := 0;
    Heap^.Notes := Default(TThreadNotes);
    FillChar(Heap^.Borrowed, SizeOf(Heap^.Borrowed), 0);
    Heap^.UsedBefore := UsedInCurrent(Heap);
    RunsUseKeeper(Heap);
  end;
  if (Heap = nil) or OsSetThreadHeap(Heap) then
    Exit;
  Vacate(Heap);
  // After Vacate, as in ThreadsAbandonVacant: a sweep may have missed it meanwhile.
  SweepRequest;
  Result := nil;
end;

function ThreadHeap: PHeap;
begin
  Result := OsThreadHeap;
  if (Result = nil) and not OsThreadIsEnding then
    Result := Adopt(HeapTake);
end;

function ThreadHeapOrAbandoned: PHeap;
begin
  Result := ThreadHeap;
  if Result = nil then
    Result := Process.Abandoned;
end;

// Abandons vacant heaps, Most of them at most. Those that stay vacant, because another thread has
// their locks, become a chain from Kept on; returns whether no other is left.
function AbandonMost(Most: Cardinal; out Kept: PHeap): Boolean;
var
  Heap: PHeap;
begin
  Kept := nil;
  repeat
    Heap := TakeVacant;
    if Heap = nil then
      Exit(True);
    if HeapAbandon(Heap) then
      HeapPush(Process.UnusedHeaps, Heap)
    else
    begin
      Heap^.NextUnused := Kept;
      Kept := Heap;
    end;
    Dec(Most);
  until Most = 0;
  Result := False;
end;

procedure ThreadsAbandonVacant(Most: Cardinal);
var
  Kept, Next: PHeap;
  IsLast: Boolean;
begin
  IsLast := AbandonMost(Most, Kept) and (Kept = nil);
  while Kept <> nil do
  begin
    Next := Kept^.NextUnused;
    Vacate(Kept);
    Kept := Next;
  end;
  // After Vacate: a sweep that was faster would not find them.
  if not IsLast then
    SweepRequest;
end;

// The thread library has called at the end of a thread that has a heap. It calls all such routines
// again, up to four times, while they set their values: others may allocate after this call. They
// get no heap, which nothing would abandon, but blocks of Process.Abandoned. The mark may be
// allocated: the heap is still there.
procedure ThreadEnd(Heap: PHeap);
begin
  OsSetThreadHeap(Heap);
  Heap := RegionLeaveAll(Heap);
  if @Hooks.ThreadEnds <> nil then
    Hooks.ThreadEnds;
  OsSetThreadEnding;
  OsSetThreadHeap(nil);
  HeapRetireEmpty(Heap);
  NoteEnd(Heap);
  HeapAbandonQueued(Heap);
  Vacate(Heap);
end;

function ThreadsFirstHeap: PHeap;
begin
  Result := PHeap(LoadAcquire(Process.Heaps));
end;

function ThreadsHaveHeap(Heap: PHeap): Boolean;
begin
  Result := Heap^.HomeShard <> 0;
end;

// Returns true if all records lead to the last one.
function HeapsAreLinked: Boolean;
var
  Heap: PHeap;
begin
  Heap := ThreadsFirstHeap;
  while Heap^.NextHeap <> nil do
    Heap := Heap^.NextHeap;
  Result := Heap = Process.Abandoned;
end;

procedure ThreadsRecover;
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if Heap = nil then
    Heap := Process.Abandoned;
  // The first record may be in a page that was copied before it was written.
  if not HeapsAreLinked then
    Process.Heaps := NativeUInt(Heap);
  Process.UnusedHeaps := 0;
  Process.UnusedRegions := 0;
  FillChar(Process.VacantHeaps, SizeOf(Process.VacantHeaps), 0);
  Process.FreshHeaps := 0;
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
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Inc(Counts.Calls, Heap^.Realloc.Calls);
    Inc(Counts.Moves, Heap^.Realloc.Moves);
    Inc(Counts.CopiedBytes, Heap^.Realloc.CopiedBytes);
    Heap := Heap^.NextHeap;
  end;
end;

// ---------------------------------------------------------------------------- start

// Returns a power of two of at least two shards for each CPU: a thread that was stopped with a lock
// leaves enough for the others.
function ShardCountFor(CpuCount: Cardinal): Cardinal;
begin
  Result := FewestShards;
  while (Result < CpuCount * 2) and (Result < ShardLimit) do
    Result := Result * 2;
end;

function ProcessStart(ThreadEnded: Pointer): Boolean;
var
  ChargesUntouched: Boolean;
  CpuCount: Cardinal;
begin
  if Process.IsStarted then
    Exit(True);
  SizeClassesStart;
  Process.EmptySpan.FreeList := EndOfList;
  Process.KeySeed[0] := OsRandom;
  Process.KeySeed[1] := OsRandom;
  Process.Bell := @Process.BellSeen;
  Process.PurgeDelayMs := DefaultPurgeDelayMs;
  Process.SharesSpans := True;
  Process.HasBarrier := OsBarrierStart;
  HugeFromSet(HugeFromDefault);
  Process.SavingFrom := SavingFromDefault;
  OsMemory(Process.MostBytes, ChargesUntouched);
  Process.HasSpare := not ChargesUntouched;
  if ChargesUntouched then
    Process.Refused := RefusedAndUncharged; // no run is cold yet
  CpuCount := OsCpuCount;
  Process.ShardCount := ShardCountFor(CpuCount);
  if Process.Abandoned = nil then
    Process.Abandoned := HeapTake;
  Result := (Process.Abandoned <> nil) and OsThreadSlotCreate(ThreadEnded);
  // The quota is in files; a program with one thread waits for no lock.
  if Process.HasThreads and (CpuCount > 1) and (OsCpuQuota > 1) then
    Process.SpinLimit := SpinTurns;
  Process.IsStarted := Result;
end;

procedure ProcessConfine;
begin
  Process.IsConfined := True;
  Process.HasBarrier := False;
end;

// Returns the number of heaps on a stack.
function StackLength(Stack: TAtomicWord): NativeInt;
var
  Heap: PHeap;
begin
  Result := 0;
  Heap := FirstHeapOf(Stack);
  while Heap <> nil do
  begin
    Inc(Result);
    Heap := Heap^.NextUnused;
  end;
end;

// Returns whether a thread beside this one has a heap. A thread that ends meanwhile may count.
function OthersHaveHeaps: Boolean;
var
  Heap: PHeap;
  Count: NativeInt;
  Index: Cardinal;
begin
  Count := -1; // Process.Abandoned
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Inc(Count);
    Heap := Heap^.NextHeap;
  end;
  Dec(Count, Ord(OsThreadHeap <> nil) + StackLength(Process.UnusedHeaps)
    + StackLength(Process.UnusedRegions));
  for Index := 0 to VacantStacks - 1 do
    Dec(Count, StackLength(Process.VacantHeaps[Index]));
  Result := Count > 0;
end;

function ProcessStop: Boolean;
var
  IsAlone: Boolean;
begin
  IsAlone := not OthersHaveHeaps;
  Result := IsAlone or not OsExitHasBegun;
  OsThreadSlotDestroy(IsAlone);
end;

procedure ThreadsForget;
begin
  Process.Heaps := 0;
  Process.Abandoned := nil;
  Process.MainHeap := nil;
  Process.ForkMark := nil;
end;

end.
