/// The engine in a child process after fork.
//
// Owns:       Process.ForkMark, Hooks.ForkRecover.
// Invariants: a child process has one thread and a copy of all memory, with the locks that lost
//             threads held. A structure that a lost thread may have been changing is dropped or
//             rebuilt; the heaps of lost threads stay as those of idle threads.
// Callers:    ForkStart: once, before any other thread runs. The recovery: the first thread of a
//             child that takes a lock.
// Progress:   threads that the child started before that park on the mark until it has recovered.
unit LaneMM.Fork;

{$I ../LaneMM.inc}

interface

/// Makes every child process recover before it takes its first lock.
procedure ForkStart;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Arena, LaneMM.Heap,
  LaneMM.Threads;

const
  Recovered = 1;
  Recovering = 2;
  // Longest wait before the mark is read again.
  PatienceMs = 10;

procedure RecoverChild;
var
  Heap: PHeap;
begin
  Process.PurgeState := 0; // the purge thread is lost, too
  LockReset(Process.RegistryLock); // its lists are consistent after every single write
  if LoadAcquire(Process.ArenaLock.State) <> 0 then
    ArenaRecover;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Heap^.ThreadNumber := 0;
    if LoadAcquire(Heap^.Lock.State) <> 0 then
      HeapRebuild(Heap);
    Heap := Heap^.NextHeap;
  end;
  if @Hooks.ChildStarted <> nil then
    Hooks.ChildStarted;
end;

procedure ForkRecover;
begin
  // Full barrier: one thread recovers, and sees all writes of the parent before the fork.
  if CompareAndSwap(Process.ForkMark^, 0, Recovering) then
  begin
    RecoverChild;
    // Release: the recovered state before the mark. Pairs with LockRecover and the loop below.
    StoreRelease(Process.ForkMark^, Recovered);
    OsWakeAll(Process.ForkMark^);
  end
  else
    while LoadAcquire(Process.ForkMark^) <> Recovered do
      OsWaitMs(Process.ForkMark^, Recovering, PatienceMs);
end;

procedure ForkStart;
begin
  Hooks.ForkRecover := ForkRecover;
  Process.ForkMark := OsForkMark;
end;

end.
