/// Counts where threads wait for a lock, and where they free blocks of other threads.
//
// Owns:       Process.WatchWait, RemoteFrees.
// Invariants: nothing is counted, and no clock is read, while WatchWait and WatchRemoteFree are
//             nil.
// Callers:    WaitsWatch, WaitsUnwatch: any thread. The rest: slow paths of the manager.
// Progress:   as without: the waiting thread spins and parks in LaneMM.Contention.
unit LaneMM.Waits;

{$I LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Counts waits from now on.
procedure WaitsWatch;
/// No longer; what was counted stays.
procedure WaitsUnwatch;
/// Counts a block of another thread that is freed: what Process.WatchRemoteFree calls.
procedure WaitsCountRemoteFree(Span: PSpan; P: Pointer);

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Contention, LaneMM.Stack, LaneMM.Sites;

function KindOfLock(var Lock: TLock): TSiteKind;
begin
  if @Lock = @Process.ArenaLock then
    Result := siArenaWait
  else if @Lock = @Process.RegistryLock then
    Result := siRegistryWait
  else if @Lock = @Process.Orphans^.Lock then
    Result := siOrphansWait
  else
    Result := siHeapWait;
end;

procedure CountWait(var Lock: TLock);
var
  Stack: TStack;
  Site: PSite;
  Ns: UInt64;
begin
  // The stack is taken before the lock, so that nobody waits for it.
  StackTake(Stack);
  Site := SiteFind(KindOfLock(Lock), NoSizeClass, Stack);
  Ns := OsNowNs;
  LockPark(Lock);
  if Site = nil then
    Exit;
  Ns := OsNowNs - Ns;
  SiteAddEvents(Site, 1);
  FetchAdd(Site^.TotalNs, Ns);
  RaiseTo(Site^.LongestNs, Ns);
end;

procedure WaitsCountRemoteFree(Span: PSpan; P: Pointer);
var
  Stack: TStack;
  Site: PSite;
  Weight: NativeUInt;
begin
  Weight := SampleWeight(Process.RemoteFrees);
  if Weight = 0 then
    Exit;
  StackTake(Stack);
  Site := SiteFind(siRemoteFree, Span^.SizeClass, Stack);
  if Site <> nil then
    SiteAddEvents(Site, Weight);
end;

procedure WaitsWatch;
begin
  Process.WatchWait := CountWait;
end;

procedure WaitsUnwatch;
begin
  Process.WatchWait := nil;
end;

end.
