/// The engine as a memory manager: its start, its entries, its end.
//
// Owns:       the choice of the memory manager's entries while nothing watches.
// Callers:    EngineStart, EngineInstall: once, before any other thread runs. EngineStop: before
//             a library is unloaded. EngineEntries: any thread.
unit LaneMM.Engine;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Starts the engine; returns whether it runs. Does nothing the second time.
function EngineStart: Boolean;
/// Makes the engine the memory manager of the program. It is never uninstalled: blocks outlive
/// every finalization.
procedure EngineInstall;
/// Unregisters this copy, and cancels the calls at thread end and the handlers of signals, before a
/// library is unloaded.
procedure EngineStop;
/// Stores the engine's entries in Manager, each in the fastest form available here.
procedure EngineEntries(var Manager: TMemoryManager);

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.Rtl, LaneMM.Foreign, LaneMM.Threads, LaneMM.Fork,
  LaneMM.Purge, LaneMM.Stats, LaneMM.Blocks, LaneMM.Allocate, LaneMM.Free, LaneMM.Resize;

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
  {$ifndef LANEMM_ASM_WINDOWS}
  if not Process.HasFirstKeys then
    Exit;
  Manager.GetMem := FirstKeyBlockGet;
  Manager.FreeMem := FirstKeyBlockFree;
  {$endif}
  {$endif}
end;

// ---------------------------------------------------------------------------- heap status

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
  if UInt64(Value) > High(Cardinal) then
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
var
  Calls: TCopyCalls;
begin
  if Process.IsStarted then
    Exit(True);
  Result := ProcessStart;
  if not Result then
    Exit;
  ForkStart;
  PurgeStart;
  Calls.Owns := BlockIsOurs;
  Calls.FreeBlock := BlockFree;
  Calls.SizeOfBlock := BlockUsableSize;
  Calls.Holds := BlockIsInArena;
  Calls.ReportInvalid := BlockReportInvalid;
  ForeignStart(Calls);
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
  OsSignalsLeave;
  ProcessStop;
end;

end.
