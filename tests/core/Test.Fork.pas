/// Tests of LaneMM.Fork: what a child process has of the memory of its parent.
unit Test.Fork;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TForkTests = class(TQuietTest)
  strict private
    Waiting: Pointer;
    Expected: NativeUInt;
    IsWaiting: Boolean;
    procedure CheckRecovery;
    function RunInChildUnderTheLock(Work: TWork): Integer;
    procedure CheckFreeMemory;
    procedure CheckSpareSlices;
    procedure CheckReleasedSpans;
    procedure CheckPurgeState;
    procedure CheckRegistryLock;
    procedure CheckQueue;
  published
    procedure ChildKeepsFreeMemoryWhenAThreadHeldTheArenaLock;
    procedure ChildCountsSpareSlicesWhenAThreadHeldTheArenaLock;
    procedure ChildKeepsSpansThatWaitedForTheArenaLock;
    procedure ChildWithoutHeldLocksKeepsFreeMemory;
    procedure ChildStartsItsOwnPurgeThread;
    procedure ChildFreesTheRegistryLock;
    procedure ChildKeepsTheQueuesOfAHeapThatWasLocked;
    procedure LockInsideOfTheRecoveryDoesNotWaitForIt;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock,
  LaneMM.Arena, LaneMM.Large, LaneMM.Purge;

const
  Megabyte = NativeUInt(1) shl 20;
  FreeBytes = 200 * Megabyte;

var
  RecoveryLock: TLock;

// RunInChild while this thread holds the arena lock, as a thread that the child does not have might.
// Nothing may be allocated meanwhile. Waiting is freed then: its span waits for the lock.
function TForkTests.RunInChildUnderTheLock(Work: TWork): Integer;
begin
  LockEnter(Process.ArenaLock);
  if Waiting <> nil then
    FreeMem(Waiting);
  IsWaiting := LoadAcquire(Process.Released) <> 0;
  Result := RunInChild(Work);
  LockLeave(Process.ArenaLock);
  AssertTrue('the span waits', IsWaiting or (Waiting = nil));
  Waiting := nil;
end;

// All slices below the frontiers are in use or free, and a trim leaves nothing warm.
procedure TForkTests.CheckFreeMemory;
var
  P: Pointer;
  Index: Integer;
  Frontier, Used: NativeUInt;
begin
  LockRecover;
  Frontier := 0;
  for Index := 0 to Process.ArenaCount - 1 do
    Inc(Frontier, Process.Arenas[Index].Frontier);
  AtLeast(FreeBytes div SliceSize, Process.WarmSlices + Process.ColdSlices, 'free slices');
  Used := Frontier - Process.WarmSlices - Process.ColdSlices;
  P := GetMem(FreeBytes);
  AssertTrue('a free run serves a large block', P <> nil);
  FreeMem(P);
  ProcessTrim;
  Same(0, Process.WarmSlices, 'warm slices after a trim');
  AtMost(Used + 64, ArenaBackedSlices, 'backed slices after a trim');
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildKeepsFreeMemoryWhenAThreadHeldTheArenaLock;
var
  P: Pointer;
begin
  P := GetMem(FreeBytes);
  FillChar(P^, FreeBytes, 1);
  FreeMem(P);
  Same(0, RunInChildUnderTheLock(CheckFreeMemory), 'exit code of the child');
end;

procedure TForkTests.ChildWithoutHeldLocksKeepsFreeMemory;
var
  P: Pointer;
begin
  P := GetMem(FreeBytes);
  FillChar(P^, FreeBytes, 1);
  FreeMem(P);
  Same(0, RunInChild(CheckFreeMemory), 'exit code of the child');
end;

procedure TakeLock;
begin
  LockEnter(RecoveryLock);
  LockLeave(RecoveryLock);
end;

procedure TForkTests.CheckRecovery;
begin
  Hooks.ChildStarted := TakeLock;
  LockRecover;
  Same(1, Process.ForkMark^, 'mark');
end;

procedure TForkTests.LockInsideOfTheRecoveryDoesNotWaitForIt;
begin
  Same(0, RunInChild(CheckRecovery), 'exit code of the child');
end;

procedure TForkTests.CheckSpareSlices;
begin
  LockRecover;
  Same(Expected, Process.SpareSlices, 'spare slices');
end;

procedure TForkTests.ChildCountsSpareSlicesWhenAThreadHeldTheArenaLock;
var
  Span: PSpan;
  Copied: NativeUInt;
begin
  Span := LargeMove(LargeGet(5 * Megabyte), 6 * Megabyte, Copied);
  AssertTrue('moved', Span <> nil);
  AtLeast(1, Span^.SpareCount, 'spare slices of the moved block');
  Expected := LoadAcquire(Process.SpareSlices);
  AtLeast(Span^.SpareCount, Expected, 'spare slices');
  Same(0, RunInChildUnderTheLock(CheckSpareSlices), 'exit code of the child');
  LargeFree(Span);
end;

procedure TForkTests.CheckReleasedSpans;
begin
  LockRecover;
  Same(0, LoadAcquire(Process.Released), 'spans that wait');
  AtLeast(FreeBytes div SliceSize, Process.WarmSlices + Process.ColdSlices, 'free slices');
  AssertTrue('the heap works', HeapWorks);
end;

procedure TForkTests.ChildKeepsSpansThatWaitedForTheArenaLock;
var
  P: Pointer;
begin
  P := GetMem(FreeBytes);
  ProcessTrim;
  Waiting := P;
  Same(0, RunInChildUnderTheLock(CheckReleasedSpans), 'exit code of the child');
end;

procedure TForkTests.CheckPurgeState;
begin
  Process.PurgeState := 1; // as if a thread of the parent were running
  LockRecover;
  Same(0, LoadAcquire(Process.PurgeState), 'state of the purge thread');
end;

procedure TForkTests.CheckRegistryLock;
begin
  LockRecover;
  Same(0, LoadAcquire(Process.RegistryLock.State), 'state of the lock');
end;

const
  QueuedSize = 7168;

procedure TForkTests.CheckQueue;
begin
  LockRecover;
  Same(0, LoadAcquire(OsThreadHeap^.Lock.State), 'state of the lock');
  AssertTrue('a queued span', OsThreadHeap^.Queues[SizeToClass(QueuedSize)] <> nil);
end;

procedure TForkTests.ChildStartsItsOwnPurgeThread;
begin
  Same(0, RunInChild(CheckPurgeState), 'exit code of the child');
end;

procedure TForkTests.ChildFreesTheRegistryLock;
var
  Answer: Integer;
begin
  LockEnter(Process.RegistryLock);
  Answer := RunInChild(CheckRegistryLock);
  LockLeave(Process.RegistryLock);
  Same(0, Answer, 'exit code of the child');
end;

procedure TForkTests.ChildKeepsTheQueuesOfAHeapThatWasLocked;
var
  Queued: array[0..59] of Pointer;
  Index, Answer: Integer;
begin
  for Index := 0 to High(Queued) do
    Queued[Index] := GetMem(QueuedSize);
  FreeMem(Queued[0]);
  LockEnter(OsThreadHeap^.Lock);
  Answer := RunInChild(CheckQueue);
  LockLeave(OsThreadHeap^.Lock);
  for Index := 1 to High(Queued) do
    FreeMem(Queued[Index]);
  Same(0, Answer, 'exit code of the child');
end;

initialization
  RegisterTest(TForkTests);
end.
