/// The lock profile: call sites that find a lock taken, and those that free remote blocks.
//
// Owns:       Hooks.LockMiss; Observe.LockMisses, RemoteFrees.
// Invariants: nothing is counted while Hooks.LockMiss and RemoteFree are nil.
// Callers:    LockProfileStart, LockProfileStop: any thread. LockProfileForget: the one thread of
//             a child process. The rest: slow paths of the manager.
// Progress:   lock-free, as LaneMM.CallSites.
unit LaneMM.LockProfile;

{$I ../LaneMM.inc}

interface

/// Starts counting the locks that threads find taken.
procedure LockProfileStart;
/// Stops counting; the counts stay.
procedure LockProfileStop;
/// Restarts the sampling of events, in a child process.
procedure LockProfileForget;
/// Counts the free of a remote block, by its size class.
procedure RemoteFreeCount(SizeClass: Cardinal);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Unwind, LaneMM.ObserveState,
  LaneMM.CallSites;

// Returns the kind of the events of this lock.
function KindOf(var Lock: TLock): TSiteKind;
begin
  if NativeUInt(NativeUInt(@Lock) - NativeUInt(@Process.Shards)) < SizeOf(Process.Shards) then
    Result := siShardMiss
  else if @Lock = @Process.Abandoned^.Lock then
    Result := siAbandonedMiss
  else if @Lock = @Observe.SampleLock then
    Result := siSamplesMiss
  else
    Result := siHeapMiss;
end;

// Counts an event; Events numbers the events of its kind.
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
  CountEvent(KindOf(Lock), NoSizeClass, Observe.LockMisses);
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
  Hooks.LockMiss := CountMiss;
end;

procedure LockProfileStop;
begin
  Hooks.LockMiss := nil;
end;

end.
