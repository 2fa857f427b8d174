/// Locks for slow paths: bounded spin, then park; and the two ways to stop for good.
//
// Owns:       TLock.
// Invariants: State 0 is free, 1 taken, 2 taken with threads that may be parked.
// Callers:    any thread. LockTry never waits. A thread takes locks in ascending rank.
// Progress:   LockEnter spins Process.SpinLimit turns, none on one CPU, and parks; it never
//             sleeps in a loop. LockLeave wakes one thread. A child process after fork first
//             lets Process.ForkRecover free what threads held that it does not have.
// Source:     Drepper, "Futexes Are Tricky" (2011), mutex 2.
unit LaneMM.Lock;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Takes the lock; waits while another thread has it.
procedure LockEnter(var Lock: TLock);
/// Takes the lock if it is free; tells whether it did.
function LockTry(var Lock: TLock): Boolean;
/// The same where the thread has tried or held the lock just now: a failure is not counted.
function LockTryAgain(var Lock: TLock): Boolean;
/// Gives the lock back. A full barrier: a later read of this thread sees what others wrote
/// before they failed to take the lock.
procedure LockLeave(var Lock: TLock);
/// Takes a lock that was seen taken: spins a little, then parks.
procedure LockPark(var Lock: TLock);
/// Frees a lock whose holder does not exist in this process.
procedure LockReset(var Lock: TLock);
/// Lets a child process recover that has not taken a lock since its fork: for what counts or
/// reports without one.
procedure ForkNotice;

/// Corrupt memory: writes Text to the standard error output and ends the program, code 204.
procedure Fatal(const Text: ShortString);
/// States a law of LaneMM.Types; call it behind `if Checked then`.
procedure Check(Law: Boolean; const Text: ShortString);

implementation

uses
  LaneMM.Atomic, LaneMM.Os;

const
  Free = 0;
  Taken = 1;
  TakenWithWaiters = 2;

procedure RecoverAfterFork; inline;
begin
  if (Process.ForkMark <> nil) and (LoadAcquire(Process.ForkMark^) <> 1) then
    Process.ForkRecover;
end;

procedure ForkNotice;
begin
  RecoverAfterFork;
end;

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
var
  Watch: TLockCall;
begin
  FetchAdd(Lock.Contended, 1);
  Watch := Process.WatchWait;
  if @Watch <> nil then
    Watch(Lock)
  else
    LockPark(Lock);
end;

procedure LockEnter(var Lock: TLock);
begin
  RecoverAfterFork;
  // Acquire: see what the last holder wrote. Pairs with the swap in LockLeave.
  if not CompareAndSwap(Lock.State, Free, Taken) then
    LockWait(Lock);
end;

procedure LockMissed(var Lock: TLock);
var
  Watch: TLockCall;
begin
  FetchAdd(Lock.Contended, 1);
  Watch := Process.WatchMiss;
  if @Watch <> nil then
    Watch(Lock);
end;

function LockTryAgain(var Lock: TLock): Boolean;
begin
  RecoverAfterFork;
  Result := CompareAndSwap(Lock.State, Free, Taken);
end;

function LockTry(var Lock: TLock): Boolean;
begin
  Result := LockTryAgain(Lock);
  if not Result then
    LockMissed(Lock);
end;

procedure LockLeave(var Lock: TLock);
begin
  // Release: the next holder sees what this one wrote. Pairs with LockEnter and LockTry.
  if Swap(Lock.State, Free) = TakenWithWaiters then
    OsWake(Lock.State);
end;

procedure LockReset(var Lock: TLock);
begin
  StoreRelease(Lock.State, Free);
end;

procedure Fatal(const Text: ShortString);
const
  Prefix: ShortString = 'LaneMM: ';
  LineEnd: ShortString = #10;
begin
  OsWriteError(@Prefix[1], Length(Prefix));
  OsWriteError(@Text[1], Length(Text));
  OsWriteError(@LineEnd[1], Length(LineEnd));
  RunError(204);
end;

procedure Check(Law: Boolean; const Text: ShortString);
begin
  if not Law then
    Fatal(Text);
end;

end.
