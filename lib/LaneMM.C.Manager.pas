/// What stands in for the run-time library's record of its memory manager: the routines that malloc
/// and its relatives call when they do not go straight to the fast paths.
//
// Owns:       the record; Process.IsDirect, DirectSize.
// Invariants: IsDirect is set only while the record holds the fast paths and nothing is watched:
//             stacks are taken below an entry with a frame pointer. LaneMM.Watch replaces
//             routines in the record to watch, as it does in a Pascal program.
// Callers:    any thread; the record changes at the start and when watching changes.
unit LaneMM.C.Manager;

{$I ../src/LaneMM.inc}

interface

var
  /// The record.
  Installed: TMemoryManager;

/// Puts the routines of LaneMM.Blocks into the record.
procedure ManagerStart;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Arena, LaneMM.Engine, LaneMM.C.Foreign;

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
  Result := (@Hooks.LockWait <> nil) or (@Hooks.RemoteFree <> nil)
    or (@Hooks.LargeFree <> nil);
end;

// Whether the record holds what EngineEntries puts there, and the fast paths are among it.
function IsPlain: Boolean;
var
  Plain: TMemoryManager;
begin
  Plain := Installed;
  EngineEntries(Plain);
  Result := Process.HasFastSlot and (@Installed.GetMem = @Plain.GetMem)
    and (@Installed.FreeMem = @Plain.FreeMem) and (@Installed.AllocMem = @Plain.AllocMem)
    and (@Installed.ReallocMem = @Plain.ReallocMem) and (@Installed.MemSize = @Plain.MemSize);
end;

procedure ManagerWrite(const Manager: TMemoryManager);
  [public, alias: 'SYSTEM_$$_SETMEMORYMANAGER$TMEMORYMANAGER'];
begin
  Installed := Manager;
  Process.IsDirect := IsPlain and not IsWatched;
  Process.DirectSize := 0;
  if Process.IsDirect then
    Process.DirectSize := MaxClassSize + 1;
  ArenaApplyDirect;
end;

procedure ManagerStart;
var
  Manager: TMemoryManager;
begin
  FillChar(Manager, SizeOf(Manager), 0);
  EngineEntries(Manager);
  ManagerWrite(Manager);
end;

end.
