/// What stands in for the run-time library's record of its memory manager: the routines that malloc
/// and its relatives call when they do not go straight to the fast paths.
//
// Owns:       the record; Process.IsDirect.
// Invariants: IsDirect is set only while the record holds the fast paths and nothing is watched:
//             stacks are taken below an entry with a frame pointer. LaneMM.Watch replaces
//             routines in the record to watch, as it does in a Pascal program.
// Callers:    any thread; the record changes at the start and when watching changes.
unit LaneMM.C.Manager;

{$I LaneMM.inc}

interface

var
  /// The record.
  Installed: TMemoryManager;

/// Puts the routines of LaneMM.Blocks into the record.
procedure ManagerStart;

implementation

uses
  LaneMM.Types, LaneMM.Blocks, LaneMM.C.Foreign;

// Before the start: whoever was the process's malloc.
procedure ManagerRead(out Found: TMemoryManager);
  [public, alias: 'SYSTEM_$$_GETMEMORYMANAGER$TMEMORYMANAGER'];
begin
  if Process.IsStarted and Assigned(Installed.GetMem) then
    Found := Installed
  else
    ForeignManager(Found);
end;

function IsWatched: Boolean;
begin
  Result := (@Process.WatchWait <> nil) or (@Process.WatchRemoteFree <> nil)
    or (@Process.WatchLargeFree <> nil);
end;

procedure ManagerWrite(const Wanted: TMemoryManager);
  [public, alias: 'SYSTEM_$$_SETMEMORYMANAGER$TMEMORYMANAGER'];
begin
  Installed := Wanted;
  Process.IsDirect := Process.HasFastSlot and not IsWatched and (@Installed.GetMem = @FastBlockGet)
    and (@Installed.FreeMem = @FastBlockFree) and (@Installed.AllocMem = @BlockGetZero)
    and (@Installed.ReallocMem = @FastBlockRealloc) and (@Installed.MemSize = @BlockUsableSize);
end;

procedure ManagerStart;
var
  Wanted: TMemoryManager;
begin
  FillChar(Wanted, SizeOf(Wanted), 0);
  BlockEntries(Wanted);
  ManagerWrite(Wanted);
end;

end.
