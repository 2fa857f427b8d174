/// The lock profile: call sites that find a lock taken, and those that free remote blocks.
//
// Owns:       Hooks.LockWait, LockMiss; Observe.LockMisses, RemoteFrees.
// Invariants: nothing is counted, and no clock is read, while Hooks.LockWait, LockMiss and
//             RemoteFree are nil.
// Callers:    LockProfileStart, LockProfileStop: any thread. LockProfileForget: the one thread of
//             a child process. The rest: slow paths of the manager.
// Progress:   as without a profile: the waiting thread spins and parks in LaneMM.Lock.
unit LaneMM.LockProfile;

{$I ../LaneMM.inc}

interface

/// Starts counting waits and failed tries of locks.
procedure LockProfileStart;
/// Stops counting; the counts stay.
procedure LockProfileStop;
/// Restarts the sampling of events, in a child process.
procedure LockProfileForget;
/// Counts the free of a remote block, by its size class.
procedure RemoteFreeCount(SizeClass: Cardinal);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Unwind,
  LaneMM.ObserveState, LaneMM.CallSites;

// Returns the position of the lock in siArenaWait..siSamplesWait and siArenaMiss..siSamplesMiss.
function NumberOf(var Lock: TLock): Cardinal;
var
  Kind: TSiteKind;
begin
  if @Lock = @Process.ArenaLock then
    Kind := siArenaWait
  else if @Lock = @Process.RegistryLock then
    Kind := siRegistryWait
  else if @Lock = @Process.Abandoned^.Lock then
    Kind := siAbandonedWait
  else if @Lock = @Observe.SampleLock then
    Kind := siSamplesWait
  else
    Kind := siHeapWait;
  Result := Ord(Kind) - Ord(siArenaWait);
end;

procedure CountWait(var Lock: TLock);
var
  Stack: TBacktrace;
  Site: PSite;
  Ns: UInt64;
begin
  // The backtrace is taken before the lock, so that no thread waits for it.
  BacktraceTake(Stack);
  Site := SiteFind(TSiteKind(Ord(siArenaWait) + NumberOf(Lock)), NoSizeClass, Stack);
  Ns := OsNowNs;
  LockPark(Lock);
  if Site = nil then
    Exit;
  Ns := OsNowNs - Ns;
  SiteAddEvents(Site, 1);
  FetchAdd(Site^.TotalNs, Ns);
  RaiseTo(Site^.LongestNs, Ns);
end;

// Counts an event too short for a clock; Events numbers the events of its kind.
procedure CountEvent(Kind: TSiteKind; SizeClass: Cardinal; var Events: TAtomicWord);
var
  Stack: TBacktrace;
  Site: PSite;
  Weight: NativeUInt;
begin
  Weight := SampleWeight(Events);
  if Weight = 0 then
    Exit;
  BacktraceTake(Stack);
  Site := SiteFind(Kind, SizeClass, Stack);
  if Site <> nil then
    SiteAddEvents(Site, Weight);
end;

procedure CountMiss(var Lock: TLock);
begin
  CountEvent(TSiteKind(Ord(siArenaMiss) + NumberOf(Lock)), NoSizeClass, Observe.LockMisses);
end;

procedure RemoteFreeCount(SizeClass: Cardinal);
begin
  CountEvent(siRemoteFree, SizeClass, Observe.RemoteFrees);
end;

procedure LockProfileForget;
begin
  Observe.RemoteFrees := 0;
  Observe.LockMisses := 0;
end;

procedure LockProfileStart;
begin
  Hooks.LockWait := CountWait;
  Hooks.LockMiss := CountMiss;
end;

procedure LockProfileStop;
begin
  Hooks.LockWait := nil;
  Hooks.LockMiss := nil;
end;

end.
