/// The data of a thread in debug mode.
//
// Owns:       THeap.DebugThread and the TDebugThread at it, which stays with the THeap: the next
//             thread that uses this THeap continues with it, also if the THeap served a region in
//             between. Debug.Threads, LastNumber.
// Invariants: a thread whose Inside is not 0 takes Debug.Lock no second time, and leaves its Blocks
//             and Stacks as they are: a handler of a signal has interrupted a call.
// Callers:    the thread itself. Thread may be nil: the thread has no such record.
unit LaneMM.DebugThreads;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Threads, LaneMM.StacksState,
  LaneMM.UnwindCache, LaneMM.DebugState;

const
  /// Maximum number of open scopes of allocation groups.
  MostGroupScopes = 1024;
  /// Blocks that wait in a thread after their free, with the setting `hard`: small ones, a power of
  /// two, and all.
  SmallPlacesLog2 = 6;
  WaitingPlaces = 1 shl SmallPlacesLog2 + 8 + 1;

type
  PDebugThread = ^TDebugThread;
  /// The record of a thread; all zero at first.
  TDebugThread = record
    Blocks: TDebugCache;      //< owner   free and freed blocks
    Inside: NativeUInt;       //< owner   open calls that change Blocks or Stacks, or have
                              //  Debug.Lock
    Heap: PHeap;              //< const   the heap of its threads outside of regions
    NextThread: PDebugThread; //< const   next in Debug.Threads
    Stacks: TUnwindCache;     //< owner   frames of earlier unwinds
    NextNumber: NativeUInt;   //< owner   number of its next allocation
    NumberLimit: NativeUInt;  //< owner   end of its reserved numbers
    Emptied: TAtomicWord;     //< shared  the group whose blocks it frees, with their region, or 0
    WaitingSeed: UInt64;      //< owner   state of the random numbers of LaneMM.Hard
    Waiting: array[0..WaitingPlaces - 1] of Pointer; //< owner   its freed blocks that wait with
                              //  the setting `hard`; that of NoWaiting: none
    WaitingSpans: array[0..WaitingPlaces - 1] of PSpan; //< owner   the records of the slices that
                              //  they begin in
    Groups: array[0..MostGroupScopes - 1] of Cardinal; //< owner   the group before each
                              //  open scope, outermost first
  end;

var
  /// The block that waits in an empty place, and its record: zeros, of no heap.
  NoWaiting: TSpan;

/// Returns the record of the calling thread, a new one the first time; nil without memory.
function DebugThread: PDebugThread; inline;
/// DebugThread where OsThreadHeap has no such record.
function DebugThreadSlow: PDebugThread;
/// Begins a call that changes Blocks or Stacks, or takes Debug.Lock.
procedure DebugThreadEnter(Thread: PDebugThread); inline;
/// Ends it.
procedure DebugThreadLeave(Thread: PDebugThread); inline;
/// Returns whether the thread is in such a call: then it is one of a signal's handler that asks.
function DebugThreadIsInside(Thread: PDebugThread): Boolean; inline;
/// Takes Debug.Lock, which is not DebugLockMayBeOwn.
procedure DebugLockEnter;
/// Releases it.
procedure DebugLockLeave;
/// Returns whether the calling thread may have Debug.Lock: the handler of a signal asks.
function DebugLockMayBeOwn: Boolean;
/// Returns the number of a backtrace that begins at the caller of the routine with the frame
/// pointer Frame; 0 when it cannot be kept in the table. Heap is OsThreadHeap after DebugThread.
function DebugStack(Heap: PHeap; Thread: PDebugThread; Frame: NativeUInt): Cardinal; inline;
/// DebugStack where no path of Thread leads to the backtrace, the notes of the thread do not have
/// the bounds of the stack, the table was swept, or the program takes backtraces itself. Inside of
/// a call it leaves Thread's cache of unwinds alone.
function DebugStackSlow(Thread: PDebugThread; Frame: NativeUInt): Cardinal;
/// Returns the system's number of the thread. Heap as for DebugStack.
function DebugThreadId(Heap: PHeap; Thread: PDebugThread): Cardinal; inline;
/// Returns the number of the next allocation, from 1. Numbers rise within a thread; with a single
/// thread they are the order of all allocations.
function DebugNumber(Thread: PDebugThread): NativeUInt; inline;
/// DebugNumber where the thread has no number left, or none of this process: reserves some.
function DebugNumberSlow(Thread: PDebugThread): NativeUInt;
/// Marks the blocks of a group as those that the calling thread frees with their region; 0: none.
procedure DebugSetEmptied(Group: Cardinal);
/// Returns whether a thread is freeing the blocks of the group, 0 is none, with their region.
function DebugIsEmptied(Group: Cardinal): Boolean;
/// Returns the number of the last allocation of the calling thread, or of the last thread that used
/// its record; 0 if there is none.
function DebugLastNumber: NativeUInt;

/// Returns a number that blocks allocated from now on exceed, and earlier ones do not. Blocks that
/// other threads allocate meanwhile may be on either side.
function DebugNumbersMark: NativeUInt;
/// Returns how many allocations were numbered; exact while no other thread allocates.
function DebugNumberCount: NativeUInt;

/// Makes child processes after fork know the numbers of their own blocks. Before the first number;
/// repeated calls do nothing.
procedure DebugNumbersStart;
/// Returns True in a child process after fork that knows which blocks are its own.
function DebugIsChild: Boolean;
/// Returns True in a child process after fork that has allocated nothing; where blocks have no
/// numbers, nothing that took a lock.
function DebugIsUnusedChild: Boolean;
/// Returns True if the block with this number, or without one, was allocated before the fork that
/// made this process.
function DebugIsInherited(Number: NativeUInt): Boolean;
/// DebugIsInherited for the number of a debug block: each of these has one in any mode.
function DebugBlockIsInherited(Number: NativeUInt): Boolean;

/// Empties the caches of all threads but the calling one, in a child process that has no other: the
/// copies may be torn. Their blocks stay freed.
procedure DebugThreadsForget;

implementation

uses
  LaneMM.Lock, LaneMM.Heap, LaneMM.RegionHeaps, LaneMM.SettingsState, LaneMM.BacktraceTable,
  LaneMM.Unwind;

const
  // Numbers that a thread reserves at once.
  NumberBatch = 64;
  // Numbers that a child leaves out if other threads may have run at its fork: these may have
  // numbered blocks after the page with LastNumber was copied. With 32 bits the numbers last for
  // some 4,000 such forks, one inside of the other.
  LostNumbers = 1 shl 20;

procedure EmptyPlaces(Thread: PDebugThread);
var
  Index: Cardinal;
begin
  for Index := 0 to WaitingPlaces - 1 do
  begin
    Thread^.Waiting[Index] := @NoWaiting;
    Thread^.WaitingSpans[Index] := @NoWaiting;
  end;
end;

// Returns the first of all records.
function FirstThread: PDebugThread;
begin
  // Acquire: the fields of the records. Pairs with NewThread.
  Result := PDebugThread(LoadAcquire(Debug.Threads));
end;

// Makes the record of a heap; nil without memory.
function NewThread(Heap: PHeap): PDebugThread;
var
  First: NativeUInt;
begin
  Result := OsTakePages(SizeOf(TDebugThread));
  if Result = nil then
    Exit;
  EmptyPlaces(Result);
  Result^.Heap := Heap;
  // Lock-free: another thread has added a record meanwhile. No ABA: none is removed.
  repeat
    First := LoadAcquire(Debug.Threads);
    Result^.NextThread := PDebugThread(First);
    // Release: the fields before the record can be found. Pairs with FirstThread.
  until CompareAndSwap(Debug.Threads, First, NativeUInt(Result));
end;

// Returns the record that a heap had before it served a region; nil if it had none.
function FormerThread(Heap: PHeap): PDebugThread;
begin
  Result := nil;
  if LoadAcquire(Process.RegionsMade) <> 0 then
    Result := FirstThread;
  while (Result <> nil) and (Result^.Heap <> Heap) do
    Result := Result^.NextThread;
end;

function DebugThreadSlow: PDebugThread;
var
  Heap, Ordinary: PHeap;
begin
  Heap := ThreadHeap;
  if Heap = nil then
    Exit(nil);
  if Heap^.DebugThread = nil then
  begin
    Ordinary := HeapOrdinary(Heap);
    Heap^.DebugThread := FormerThread(Ordinary);
    if Heap^.DebugThread = nil then
      Heap^.DebugThread := NewThread(Ordinary);
  end;
  Result := Heap^.DebugThread;
end;

function DebugThread: PDebugThread;
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if (Heap = nil) or (Heap^.DebugThread = nil) then
    Result := DebugThreadSlow
  else
    Result := Heap^.DebugThread;
end;

procedure DebugThreadEnter(Thread: PDebugThread);
begin
  if Thread <> nil then
    Inc(Thread^.Inside);
end;

procedure DebugThreadLeave(Thread: PDebugThread);
begin
  if Thread <> nil then
    Dec(Thread^.Inside);
end;

function DebugThreadIsInside(Thread: PDebugThread): Boolean;
begin
  Result := (Thread <> nil) and (Thread^.Inside <> 0);
end;

// Returns the record of the calling thread if it has one. A thread of LaneMM's own has none: where
// there is no thread library it would find that of the main thread.
function KnownThread: PDebugThread;
var
  Heap: PHeap;
begin
  Result := nil;
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Process.HasThreads or OsThreadIsMain) then
    Result := Heap^.DebugThread;
end;

procedure DebugLockEnter;
var
  Thread: PDebugThread;
begin
  Thread := KnownThread;
  DebugThreadEnter(Thread); // before the lock: a handler that interrupts this sees either
  LockEnter(Debug.Lock);
  Debug.Holder := Thread;
end;

procedure DebugLockLeave;
var
  Thread: PDebugThread;
begin
  Thread := Debug.Holder;
  LockLeave(Debug.Lock);
  DebugThreadLeave(Thread);
end;

function DebugLockMayBeOwn: Boolean;
begin
  Result := DebugThreadIsInside(KnownThread) and (LoadAcquire(Debug.Lock.State) <> 0);
end;

function DebugStackSlow(Thread: PDebugThread; Frame: NativeUInt): Cardinal;
var
  Stack: TBacktrace;
begin
  if (Thread <> nil) and (@Stacks.TakeFrames = nil) and not DebugThreadIsInside(Thread) then
  begin
    DebugThreadEnter(Thread);
    Result := UnwindCacheTake(Thread^.Stacks, Frame, StackEnd(Frame));
    DebugThreadLeave(Thread);
    if Result <> LostBacktrace then
      Exit;
  end;
  BacktraceTake(Stack); // BacktraceKeep may have space for its innermost frames
  Result := 0; // of a backtrace without a frame
  if Stack.Frames[0] <> CutFrame then
    Result := BacktraceKeep(Stack);
end;

function DebugStack(Heap: PHeap; Thread: PDebugThread; Frame: NativeUInt): Cardinal;
var
  Limit: NativeUInt;
begin
  Result := 0;
  if (Thread <> nil) and (@Stacks.TakeFrames = nil) then
  begin
    Limit := Heap^.Notes.StackLimit;
    if (Frame < Limit) and (Frame >= Heap^.Notes.StackFirst)
      and (Thread^.Stacks.Sweeps = Stacks.Sweeps) then
      Result := UnwindCacheFind(Thread^.Stacks, Frame, Limit);
  end;
  if Result = 0 then
    Result := DebugStackSlow(Thread, Frame);
end;

function DebugThreadId(Heap: PHeap; Thread: PDebugThread): Cardinal;
begin
  if Thread = nil then
    Exit(ThreadNumber);
  Result := Heap^.ThreadNumber;
  if Result = 0 then
    Result := ThreadNumber;
end;

// Sets the first number of a child process.
procedure SetFirstNumber(Thread: PDebugThread);
begin
  if not HeapIsOnly then
  begin
    FetchAdd(Debug.LastNumber, LostNumbers);
    FetchAdd(Debug.UnusedNumbers, LostNumbers);
  end;
  // Full barrier: of the threads of a child one sets it, before any of them reserves numbers.
  if CompareAndSwap(Debug.FirstNumber^, 0, LoadAcquire(Debug.LastNumber) + 1)
    and (Thread <> nil) then
    OsThreadHeap^.ThreadNumber := 0; // it is that of the parent
end;

function DebugNumberSlow(Thread: PDebugThread): NativeUInt;
begin
  if LoadAcquire(Debug.FirstNumber^) = 0 then
    SetFirstNumber(Thread);
  CompareAndSwap(Debug.FirstNumber[1], 0, LoadAcquire(Debug.FirstNumber^));
  if Thread = nil then
    Exit(FetchAdd(Debug.LastNumber, 1) + 1);
  FetchAdd(Debug.UnusedNumbers, Thread^.NumberLimit - Thread^.NextNumber);
  Result := FetchAdd(Debug.LastNumber, NumberBatch) + 1;
  Thread^.NextNumber := Result + 1;
  Thread^.NumberLimit := Result + NumberBatch;
end;

function DebugNumber(Thread: PDebugThread): NativeUInt;
begin
  if (Thread = nil) or (Thread^.NextNumber = Thread^.NumberLimit)
    or (Thread^.NextNumber <= NativeUInt(LoadAcquire(Debug.FirstNumber[1]) - 1)) then
    Exit(DebugNumberSlow(Thread));
  Result := Thread^.NextNumber;
  Thread^.NextNumber := Result + 1;
end;

function DebugLastNumber: NativeUInt;
var
  Heap: PHeap;
begin
  Result := 0;
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Heap^.DebugThread <> nil) then
    Result := PDebugThread(Heap^.DebugThread)^.NextNumber;
  if Result <> 0 then
    Dec(Result);
end;

function DebugNumbersMark: NativeUInt;
var
  Least: NativeUInt;
begin
  Result := LoadAcquire(Debug.LastNumber);
  // Lock-free: another mark, or the first number of a child, has raised it meanwhile. Full barrier:
  // pairs with the acquire in DebugNumber.
  repeat
    Least := LoadAcquire(Debug.FirstNumber[1]);
  until (Least > Result) or CompareAndSwap(Debug.FirstNumber[1], Least, Result + 1);
end;

function DebugNumberCount: NativeUInt;
var
  Thread: PDebugThread;
begin
  Result := LoadAcquire(Debug.LastNumber) - LoadAcquire(Debug.UnusedNumbers);
  Thread := FirstThread;
  while Thread <> nil do
  begin
    Dec(Result, Thread^.NumberLimit - Thread^.NextNumber);
    Thread := Thread^.NextThread;
  end;
end;

procedure DebugSetEmptied(Group: Cardinal);
var
  Thread: PDebugThread;
begin
  Thread := DebugThread;
  // Release: the blocks are freed before it ends. Pairs with DebugIsEmptied.
  if Thread <> nil then
    StoreRelease(Thread^.Emptied, Group);
end;

function DebugIsEmptied(Group: Cardinal): Boolean;
var
  Thread: PDebugThread;
begin
  Thread := FirstThread;
  // Acquire: a thread that has ended it has freed the blocks. Pairs with DebugSetEmptied.
  while (Thread <> nil) and (LoadAcquire(Thread^.Emptied) <> Group) do
    Thread := Thread^.NextThread;
  Result := (Group <> 0) and (Thread <> nil);
end;

const
  OnlyNumbers: array[0..1] of NativeUInt = (1, 1);

procedure DebugNumbersStart;
begin
  if Debug.FirstNumber <> nil then
    Exit;
  Debug.FirstNumber := @OnlyNumbers;
  if Process.ForkMark = nil then
    Exit;
  Process.ForkMark[1] := 1;
  Process.ForkMark[2] := 1;
  Debug.FirstNumber := @Process.ForkMark[1];
end;

// Returns whether all blocks have numbers, but for those from before the setting.
function HasNumbers: Boolean;
begin
  Result := (Debug.FirstNumber <> nil) and (IsSet(opStacks) or IsSet(opDebug));
end;

function DebugIsChild: Boolean;
begin
  Result := HasNumbers and (LoadAcquire(Debug.FirstNumber^) <> 1);
end;

function DebugIsUnusedChild: Boolean;
begin
  if HasNumbers then
    Result := LoadAcquire(Debug.FirstNumber^) = 0
  else
    Result := not LockHasRecovered;
end;

function DebugBlockIsInherited(Number: NativeUInt): Boolean;
begin
  Result := Number <= NativeUInt(LoadAcquire(Debug.FirstNumber^) - 1);
end;

function DebugIsInherited(Number: NativeUInt): Boolean;
begin
  Result := DebugIsChild and DebugBlockIsInherited(Number);
end;

procedure DebugThreadsForget;
var
  Heap: PHeap;
  Own, Thread: PDebugThread;
begin
  Own := nil;
  if OsThreadHeap <> nil then
    Own := OsThreadHeap^.DebugThread;
  // Of the list only the own record is certain; the others are found from their heaps, or no more.
  Debug.Threads := NativeUInt(Own);
  if Own <> nil then
    Own^.NextThread := nil;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Thread := Heap^.DebugThread;
    if (Thread <> nil) and (Thread <> Own) then
    begin
      FillChar(Thread^.Blocks, SizeOf(TDebugCache), 0);
      Thread^.Inside := 0;
      EmptyPlaces(Thread);
    end;
    Heap := Heap^.NextHeap;
  end;
end;

end.
