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
unit LaneMM.Purge;

{$I ../LaneMM.inc}

interface

/// Sees to it that memory which is free now is given back later. Cheap: for slow paths that may
/// wait.
procedure PurgerTick;
/// The same for FreeMem: leaves the work to others and never waits. In a program without threads
/// there is nobody to wait for, and the work is done.
procedure PurgerNotify;

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
  // The thread looks only for spans that others have emptied once in so many delays.
  DelaysPerSweep = 10;

function HasWork: Boolean;
begin
  Result := (Process.WarmSlices <> 0) or (LoadAcquire(Process.Released) <> 0)
    or (LoadAcquire(Process.SweepWanted) <> 0);
end;

// Milliseconds until the next look. Without warm memory only a sweep is wanted, maybe for long.
function LookDelayMs: Cardinal;
begin
  if Process.WarmSlices <> 0 then
    Result := Process.PurgeDelayMs
  else
    Result := Process.PurgeDelayMs * DelaysPerSweep;
end;

// Runs until the process ends.
procedure PurgerThread;
begin
  Process.PurgerId := OsThreadId;
  repeat
    OsWaitMs(Process.Purger, Running, LookDelayMs);
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

// Wakes or starts the thread if there is something to do; tells whether it does the work.
function WakeThread: Boolean;
begin
  case LoadAcquire(Process.Purger) of
    Parked:
      if HasWork and CompareAndSwap(Process.Purger, Parked, Running) then
        OsWake(Process.Purger);
    NotStarted:
      if (Process.WarmSlices >= PurgerStartSlices) or (LoadAcquire(Process.SweepWanted) <> 0) then
        StartThread;
  end;
  Result := LoadAcquire(Process.Purger) in [Running, Parked];
end;

procedure PurgerTick;
begin
  if not WakeThread and ArenaLookIsDue then
    ProcessPurge;
end;

procedure PurgerNotify;
begin
  if not WakeThread and not Process.HasThreads and ArenaLookIsDue then
    ProcessPurge;
end;

end.
