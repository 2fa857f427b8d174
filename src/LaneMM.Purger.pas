/// Gives memory back when it was free for a while: by a small thread of its own, or, where there
/// is none, by whoever comes by.
//
// Owns:       Process.Purger.
// Invariants: the thread exists once at most. It runs only while there is enough to give back,
//             and is parked, without a timer, otherwise. It starts when a program first frees
//             more than PurgerStartSlices; small programs never have it, nor have programs
//             without the thread library, nor libraries.
// Callers:    PurgerTick: any thread in a slow path; never waits but for the arena lock.
// Progress:   the thread parks on Process.Purger; PurgerTick wakes it.
unit LaneMM.Purger;

{$I LaneMM.inc}

interface

/// Sees to it that memory which is free now is given back later. Cheap: for every slow path.
procedure PurgerTick;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Arena, LaneMM.Threads;

const
  // Values of Process.Purger.
  NotStarted = 0;
  Running = 1;
  Parked = 2;
  Refused = 3;

  // Warm slices that are worth a thread.
  PurgerStartSlices = 64;
  // The thread looks this often per delay.
  LooksPerDelay = 4;

function HasWork: Boolean;
begin
  Result := (Process.WarmSlices <> 0) or (LoadAcquire(Process.SweepWanted) <> 0);
end;

// Runs until the process ends.
procedure PurgerThread;
begin
  repeat
    OsWaitMs(Process.Purger, Running, Process.PurgeDelayMs div LooksPerDelay);
    ArenaReadClock;
    ProcessPurge;
    if not HasWork then
    begin
      // Swap is a full barrier: either this thread sees the work, or PurgerTick, called after
      // the work was made, sees Parked.
      Swap(Process.Purger, Parked);
      if HasWork and CompareAndSwap(Process.Purger, Parked, Running) then
        Continue;
      OsWait(Process.Purger, Parked);
      CompareAndSwap(Process.Purger, Parked, Running); // woken by chance
    end;
  until False;
end;

procedure StartThread;
begin
  if IsLibrary or not Process.HasThreads then
    StoreRelease(Process.Purger, Refused)
  else if CompareAndSwap(Process.Purger, NotStarted, Running) then
    if not OsThreadStart(PurgerThread) then
      StoreRelease(Process.Purger, Refused);
end;

procedure PurgerTick;
begin
  case LoadAcquire(Process.Purger) of
    Running:
      Exit;
    Parked:
      if HasWork and CompareAndSwap(Process.Purger, Parked, Running) then
        OsWake(Process.Purger);
    NotStarted:
      if Process.WarmSlices >= PurgerStartSlices then
        StartThread;
  end;
  if ArenaPurgeIsDue then
    ProcessPurge;
end;

end.
