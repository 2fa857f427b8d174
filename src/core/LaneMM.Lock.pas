/// Locks for slow paths: bounded spin, then park.
//
// Owns:       TLock.
// Invariants: State 0 is free, 1 taken, 2 taken with threads that may be parked.
// Callers:    any thread. LockTry never waits. A thread takes locks in ascending rank, see
//             LaneMM.Types.
// Progress:   LockEnter spins Process.SpinLimit turns, none on one CPU, and parks; it never
//             sleeps in a loop. LockLeave wakes one thread. A child process first calls
//             Hooks.ForkRecover, which resets the locks of threads that it does not have.
// Source:     Drepper, "Futexes Are Tricky" (2011), mutex 2.
unit LaneMM.Lock;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic;

/// Takes the lock; waits while another thread has it. For the rooms above: the engine only tries.
procedure LockEnter(var Lock: TLock);
/// Takes the lock if it is free; returns whether it did.
function LockTry(var Lock: TLock): Boolean;
/// LockTry for a thread that has just tried or held the lock: a failure is not counted.
function LockTryAgain(var Lock: TLock): Boolean;
/// Releases the lock. A full barrier: a later read of this thread sees what other threads wrote
/// before they failed to take the lock.
procedure LockLeave(var Lock: TLock);
/// Makes a lock free: the thread that took it does not exist in this process.
procedure LockReset(var Lock: TLock);
/// Returns False in a child process that has not taken a lock since its fork, or recovers.
function LockHasRecovered: Boolean; inline;
/// Recovers a child process that has not taken a lock since its fork. LockEnter and LockTry call
/// it; the other callers count, report, or look at other threads' lists without a lock.
procedure LockRecover; inline;

implementation

uses
  LaneMM.Os;

const
  Free = 0;
  Taken = 1;
  TakenWithWaiters = 2;

function LockHasRecovered: Boolean;
begin
  Result := (Process.ForkMark = nil) or (LoadAcquire(Process.ForkMark^) = 1);
end;

procedure LockRecover;
begin
  if not LockHasRecovered then
    Hooks.ForkRecover;
end;

// Takes a lock that was taken a moment ago: spins a little, then parks.
procedure LockPark(var Lock: TLock);
var
  Turn: Cardinal;
begin
  for Turn := 1 to Process.SpinLimit do
  begin
    if (LoadAcquire(Lock.State) = Free) and CompareAndSwap(Lock.State, Free, Taken) then
      Exit;
    SpinHint;
  end;
  while Swap(Lock.State, TakenWithWaiters) <> Free do
    OsWait(Lock.State, TakenWithWaiters);
end;

procedure LockWait(var Lock: TLock);
begin
  FetchAdd(Lock.Contended, 1);
  LockPark(Lock);
end;

procedure LockEnter(var Lock: TLock);
begin
  LockRecover;
  // Acquire: see the writes of the last thread that had the lock. Pairs with the swap in LockLeave.
  if not CompareAndSwap(Lock.State, Free, Taken) then
    LockWait(Lock);
end;

function LockTryAgain(var Lock: TLock): Boolean;
begin
  LockRecover;
  // A look first: a miss costs no locked operation but the count in LockTry. Other callers have
  // made a full barrier just before (Release and ShardLeave in LaneMM.Shards), or read nothing
  // after a miss that another thread promises. Acquire: as in LockEnter.
  Result := (LoadAcquire(Lock.State) = Free) and CompareAndSwap(Lock.State, Free, Taken);
end;

function LockTry(var Lock: TLock): Boolean;
var
  Watch: TLockCall;
begin
  Result := LockTryAgain(Lock);
  if Result then
    Exit;
  // Full barrier, which the look before it is not: what the caller wrote comes before what it reads
  // after a miss. Pairs with the swap of SweepWanted in SweepTake, after which a sweep reads.
  FetchAdd(Lock.Contended, 1);
  Watch := Hooks.LockMiss;
  if @Watch <> nil then
    Watch(Lock);
end;

procedure LockLeave(var Lock: TLock);
begin
  // Release: the next thread that takes the lock sees the writes of this one. Pairs with LockEnter,
  // LockTryAgain and LockPark.
  if Swap(Lock.State, Free) = TakenWithWaiters then
    OsWake(Lock.State);
end;

procedure LockReset(var Lock: TLock);
begin
  StoreRelease(Lock.State, Free);
end;

end.
