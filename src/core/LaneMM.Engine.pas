/// The engine as a memory manager: its start, its entries, its end.
//
// Owns:       which routines are the entries of the memory manager while nothing watches.
// Callers:    EngineStart, EngineInstall: once, before any other thread runs. EngineStop: before
//             the code of a library disappears.
unit LaneMM.Engine;

{$I ../LaneMM.inc}

interface

/// Starts the engine; returns whether it runs. Does nothing the second time.
function EngineStart: Boolean;
/// Makes the engine the memory manager of the program. It stays installed for ever: blocks outlive
/// every finalization.
procedure EngineInstall;
/// Lets go of what would call into this code: for a library that is unloaded.
procedure EngineStop;
/// Puts the entries of the engine into Manager, each in the fastest form that can be used here.
procedure EngineEntries(var Manager: TMemoryManager);

implementation

uses
  LaneMM.Types, LaneMM.Foreign, LaneMM.Threads, LaneMM.Fork, LaneMM.Purge, LaneMM.Stats,
  LaneMM.Blocks, LaneMM.Allocate, LaneMM.Free, LaneMM.Resize;

procedure EngineEntries(var Manager: TMemoryManager);
begin
  Manager.GetMem := BlockGet;
  Manager.FreeMem := BlockFree;
  Manager.FreeMemSize := BlockFreeSize;
  Manager.AllocMem := BlockGetZero;
  Manager.ReallocMem := BlockRealloc;
  Manager.MemSize := BlockUsableSize;
  {$ifdef LANEMM_ASM}
  if not Process.HasFastSlot then
    Exit;
  Manager.GetMem := FastBlockGet;
  Manager.FreeMem := FastBlockFree;
  Manager.ReallocMem := FastBlockRealloc;
  {$endif}
end;

// ---------------------------------------------------------------------------- what is in use

function FpcHeapStatus: TFPCHeapStatus;
var
  Status: TStatus;
begin
  StatusRead(Status);
  Result.MaxHeapSize := Status.PeakBytes;
  Result.MaxHeapUsed := Process.PeakUsed;
  Result.CurrHeapSize := Status.CommittedBytes;
  Result.CurrHeapUsed := Status.UsedBytes;
  Result.CurrHeapFree := Status.CommittedBytes - Status.UsedBytes;
end;

function Saturated(Value: NativeUInt): Cardinal;
begin
  if Value > High(Cardinal) then
    Result := High(Cardinal)
  else
    Result := Value;
end;

function DelphiHeapStatus: THeapStatus;
var
  Status: TStatus;
begin
  StatusRead(Status);
  FillChar(Result, SizeOf(Result), 0);
  Result.TotalAddrSpace := Saturated(Status.ReservedBytes);
  Result.TotalUncommitted := Saturated(Status.ReservedBytes - Status.CommittedBytes);
  Result.TotalCommitted := Saturated(Status.CommittedBytes);
  Result.TotalAllocated := Saturated(Status.UsedBytes);
  Result.TotalFree := Saturated(Status.CommittedBytes - Status.UsedBytes);
  Result.FreeSmall := Saturated(Status.Small.SpanBytes - Status.Small.UsedBytes);
  Result.FreeBig := Saturated(Status.CachedBytes);
end;

// ---------------------------------------------------------------------------- start, end

function EngineStart: Boolean;
begin
  if Process.IsStarted then
    Exit(True);
  Result := ProcessStart;
  if not Result then
    Exit;
  ForkStart;
  PurgeStart;
  ForeignStart(BlockIsOurs, BlockFree, BlockUsableSize);
end;

procedure EngineInstall;
var
  Manager: TMemoryManager;
begin
  FillChar(Manager, SizeOf(Manager), 0);
  EngineEntries(Manager);
  Manager.GetHeapStatus := DelphiHeapStatus;
  Manager.GetFPCHeapStatus := FpcHeapStatus;
  SetMemoryManager(Manager);
end;

procedure EngineStop;
begin
  ForeignStop(BlockIsOurs);
  ProcessStop;
end;

end.
