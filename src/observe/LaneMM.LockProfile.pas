/// Counts where threads find a lock taken, and where they free blocks of other threads.
//
// Owns:       Hooks.LockWait, WatchMiss, LockMisses, RemoteFrees.
// Invariants: nothing is counted, and no clock is read, while WatchWait, WatchMiss and
//             WatchRemoteFree are nil.
// Callers:    LockProfileStart, LockProfileStop: any thread. The rest: slow paths of the manager.
// Progress:   as without: the waiting thread spins and parks in LaneMM.Lock.
unit LaneMM.LockProfile;

{$I ../LaneMM.inc}

interface



/// Counts waits from now on.
procedure LockProfileStart;
/// No longer; what was counted stays.
procedure LockProfileStop;
/// Forgets what was counted, in a child process.
procedure LockProfileForget;
/// Counts a block of another thread that is freed, by size class.
procedure RemoteFreeCount(SizeClass: Cardinal);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Unwind,
  LaneMM.ObserveState, LaneMM.CallSites;

// Where the lock's kind stands in siArenaWait..siSamplesWait and in siArenaMiss..siSamplesMiss.
function NumberOf(var Lock: TLock): Cardinal;
var
  Kind: TSiteKind;
begin
  if @Lock = @Process.ArenaLock then
    Kind := siArenaWait
  else if @Lock = @Process.RegistryLock then
    Kind := siRegistryWait
  else if @Lock = @Process.Abandoned^.Lock then
    Kind := siOrphansWait
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
  // The stack is taken before the lock, so that nobody waits for it.
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

// Counts an event that costs no time worth a clock; Events numbers its kind.
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
