/// The heaps of threads, from a thread's first block to its end; the start of Process.
//
// Owns:       Process.Heaps, UnusedHeaps, FreshHeaps, FreshHeapsEnd, Abandoned, and the fields that
//             ProcessStart sets.
// Invariants: a heap record is never freed, so a thread that finds one in Process.Heaps may read
//             it at any time. A record on UnusedHeaps has no span.
// Callers:    any thread; ProcessStart once, before any other thread runs.
unit LaneMM.Threads;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Sets Process up. Returns false without memory or a thread key. Does nothing the second time.
function ProcessStart: Boolean;
/// Cancels the calls at thread end, before a library with this code is unloaded.
procedure ProcessStop;
/// Returns the calling thread's heap, a new one if it has none; nil when there is no memory, or
/// when the thread ends.
function ThreadHeap: PHeap;
/// The same for FreeMem: never waits. Returns Process.Abandoned when no heap is available now.
function ThreadHeapOrAbandoned: PHeap;
/// Returns the first of all heap records, linked through NextHeap; they are never freed.
function ThreadsFirstHeap: PHeap;
/// Returns the system's number of the calling thread.
function ThreadNumber: Cardinal;
/// Sums the counts of ReallocMem over all threads, ended ones included.
procedure ProcessReallocCounts(out Counts: TReallocCounts);

implementation

uses
  LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Heap;

const
  FreshHeapsSize = SliceSize;
  SpinTurns = 200;
  DefaultPurgeDelayMs = 400;

// ---------------------------------------------------------------------------- heaps

// Returns memory for one more record, or nil. Under the registry lock.
function TakeFresh: PHeap;
begin
  if (Process.FreshHeaps = nil) or (Process.FreshHeapsEnd - Process.FreshHeaps < SizeOf(THeap)) then
  begin
    Process.FreshHeaps := OsTakePages(FreshHeapsSize);
    Process.FreshHeapsEnd := Process.FreshHeaps + FreshHeapsSize;
  end;
  Result := PHeap(Process.FreshHeaps);
  if Result <> nil then
    Inc(Process.FreshHeaps, SizeOf(THeap));
end;

procedure Publish(Heap: PHeap);
begin
  HeapFormat(Heap);
  Heap^.NextHeap := Process.Heaps;
  // Release: the record before the list. Pairs with ThreadsFirstHeap.
  StoreRelease(NativeUInt(Process.Heaps), NativeUInt(Heap));
end;

// Returns a record that was never used, or nil. Under the registry lock. Publish is apart: Free
// Pascal 3.2.2 loses the nil of an Exit where the last statement stores Result.
function NewHeapRecord: PHeap;
begin
  Result := TakeFresh;
  if Result <> nil then
    Publish(Result);
end;

// Takes a heap record, or nil, under the registry lock, which it leaves.
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

// Makes Heap the calling thread's heap; nil when the system refuses.
function Adopt(Heap: PHeap): PHeap;
begin
  Result := Heap;
  if Heap <> nil then
  begin
    Heap^.ThreadNumber := 0;
    Heap^.Notes := Default(TThreadNotes);
  end;
  if (Heap = nil) or OsSetThreadHeap(Heap) then
    Exit;
  HeapReturn(Heap);
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
  Result := OsThreadHeap;
  if (Result = nil) and not OsThreadIsEnding and LockTry(Process.RegistryLock) then
    Result := Adopt(HeapTakeLocked);
  if Result = nil then
    Result := Process.Abandoned;
end;

// The thread library calls it at the end of a thread that has a heap. It calls all such routines
// again, up to four times, while they set their values: others may allocate after this call. They
// get no heap, which nothing would abandon, but blocks of Process.Abandoned. The mark may be
// allocated: the heap is still there.
procedure ThreadEnded(Heap: Pointer); cdecl;
begin
  OsSetThreadHeap(Heap);
  OsSetThreadEnding;
  OsSetThreadHeap(nil);
  HeapAbandon(Heap);
  HeapReturn(Heap);
  if @Hooks.PurgeNotify <> nil then
    Hooks.PurgeNotify;
end;

function ThreadsFirstHeap: PHeap;
begin
  Result := PHeap(LoadAcquire(NativeUInt(Process.Heaps)));
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

// Returns a key with which neither nil nor HandedOut nor an address that a program could use is a
// link: of its top bits some are 1, one is 0. The last four bits are 0110, so that a link whose
// lowest byte was overwritten with zero leads to no block.
function LinkKeyOf(Random: NativeUInt): NativeUInt;
const
  TopBit = SizeOf(NativeUInt) * 8 - 1;
begin
  Result := Random and not NativeUInt(15) or 6;
  Result := Result or NativeUInt(1) shl TopBit or NativeUInt(1) shl (TopBit - 8);
  Result := Result and not (NativeUInt(1) shl (TopBit - 1));
end;

function ProcessStart: Boolean;
begin
  if Process.IsStarted then
    Exit(True);
  SizeClassesStart;
  Process.EmptySpan.FreeList := EndOfList;
  Process.LinkKey := LinkKeyOf(OsRandom);
  Process.PurgeDelayMs := DefaultPurgeDelayMs;
  Process.HugeFrom := HugeFromDefault shr SliceShift;
  if (OsCpuCount > 1) and (OsCpuQuota > 1) then
    Process.SpinLimit := SpinTurns;
  if Process.Abandoned = nil then
    Process.Abandoned := HeapTake;
  Result := (Process.Abandoned <> nil) and OsThreadSlotCreate(@ThreadEnded);
  Process.IsStarted := Result;
end;

procedure ProcessStop;
begin
  OsThreadSlotDestroy;
end;

end.
