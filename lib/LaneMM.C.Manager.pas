/// The memory manager record of the C library, in place of the run-time library's: the routines
/// that malloc and its relatives call when they do not go straight to the fast paths.
//
// Owns:       Installed; Process.IsDirect, DirectSize.
// Invariants: IsDirect is set only while the record holds the fast paths and no profile or debug
//             mode is on: backtraces are taken below an entry with a frame pointer. LaneMM.Watch
//             replaces routines of the record, as it does in a Pascal program.
// Callers:    any thread; the record changes at the start and when the settings change.
unit LaneMM.C.Manager;

{$I ../src/LaneMM.inc}

interface

var
  /// The memory manager record.
  Installed: TMemoryManager;

/// Puts the routines of LaneMM.Blocks into the record.
procedure ManagerStart;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Arena, LaneMM.Engine, LaneMM.C.Foreign;

// Before the start it returns the malloc of the process.
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
  Result := (@Hooks.RemoteFree <> nil) or (@Hooks.LargeFree <> nil);
end;

// Returns whether the record holds the routines of EngineEntries and these are the fast paths.
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
    Process.DirectSize := ClassSizes;
  FrontierApplyDirect;
end;

// ---------------------------------------------------------------------------- calls of src/

procedure GetInstalled(out P: Pointer; Size: NativeUInt);
  [public, alias: 'SYSTEM_$$_GETMEM$POINTER$QWORD'];
begin
  P := Installed.GetMem(Size);
end;

function AllocInstalled(Size: NativeUInt): Pointer;
  [public, alias: 'SYSTEM_$$_ALLOCMEM$QWORD$$POINTER'];
begin
  Result := Installed.AllocMem(Size);
end;

function FreeInstalled(P: Pointer): NativeUInt; [public, alias: 'SYSTEM_$$_FREEMEM$POINTER$$QWORD'];
begin
  Result := Installed.FreeMem(P);
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
