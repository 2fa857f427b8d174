/// The lock profile: call sites that find a lock taken, and those that free remote blocks.
//
// Owns:       Hooks.LockMiss; Observe.LockMisses, RemoteFrees.
// Invariants: nothing is counted while Hooks.LockMiss and RemoteFree are nil.
// Callers:    LockProfileApply: any thread. LockProfileForget: the one thread of a child process.
//             The rest: slow paths of the manager.
// Progress:   lock-free, as LaneMM.CallSites.
unit LaneMM.LockProfile;

{$I ../LaneMM.inc}

interface

/// Counts the locks that threads find taken while the setting `contention` is on; the counts stay.
procedure LockProfileApply;
/// Restarts the sampling of events, in a child process.
procedure LockProfileForget;
/// Counts the free of a remote block, by its size class and the number of the backtrace of its
/// allocation; 0: unknown.
procedure RemoteFreeCount(SizeClass, AllocStack: Cardinal);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.SettingsState, LaneMM.Unwind,
  LaneMM.BacktraceTable, LaneMM.ObserveState, LaneMM.CallSites;

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

procedure CountMiss(var Lock: TLock);
var
  Stack: TBacktrace;
  Weight: NativeUInt;
begin
  Weight := SampleWeight(Observe.LockMisses);
  if Weight = 0 then
    Exit;
  BacktraceTake(Stack);
  SiteAddEvents(SiteFind(KindOf(Lock), NoSizeClass, Stack), Weight);
end;

procedure RemoteFreeCount(SizeClass, AllocStack: Cardinal);
var
  Stack: TBacktrace;
  Weight: NativeUInt;
begin
  Weight := SampleWeight(Observe.RemoteFrees);
  if Weight = 0 then
    Exit;
  BacktraceTake(Stack);
  SiteAddEvents(SiteFindFreed(SizeClass, BacktraceTrim(AllocStack), Stack), Weight);
end;

procedure LockProfileForget;
begin
  Observe.RemoteFrees := 0;
  Observe.LockMisses := 0;
end;

procedure LockProfileApply;
begin
  if IsSet(opContention) then
    Hooks.LockMiss := CountMiss
  else
    Hooks.LockMiss := nil;
end;

end.
