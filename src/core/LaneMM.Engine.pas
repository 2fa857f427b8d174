/// The engine as a memory manager: its start, its entries, its end.
//
// Owns:       the choice of the memory manager's entries while nothing watches, and after the end.
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
/// library is unloaded; releases all memory but that of blocks in use. Later calls leave these
/// blocks alone and allocate from the previous manager. Returns False, and releases nothing, at the
/// end of the process, while other threads have heaps.
function EngineStop: Boolean;
/// Stores the engine's entries in Manager, each in the fastest form available here.
procedure EngineEntries(var Manager: TMemoryManager);

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Os, LaneMM.Rtl, LaneMM.Foreign, LaneMM.Arena, LaneMM.Span,
  LaneMM.Threads, LaneMM.Fork, LaneMM.Shelf, LaneMM.Purge, LaneMM.Stats, LaneMM.Blocks,
  LaneMM.Allocate, LaneMM.Free, LaneMM.Resize;

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
  {$ifdef LANEMM_ASM_LINUX}
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

// The size of a block that another copy may use.
function SizeForCopies(P: Pointer): TSize;
var
  Requested: NativeInt;
begin
  Result := BlockUsableSize(P);
  if (@Hooks.MarkedSize = nil) or (BlockSpanExact(P) = nil) then
    Exit;
  Requested := Hooks.MarkedSize(P, Result);
  if Requested < 0 then
    Result := BlockInvalid(P, icSize)
  else
    Result := Requested;
end;

// The thread library calls it, see ProcessStart.
procedure ThreadEnded(Heap: Pointer); cdecl;
begin
  ThreadEnd(Heap);
  PurgeNotifyOfEnd;
end;

function EngineStart: Boolean;
var
  Calls: TCopyCalls;
begin
  if Process.IsStarted then
    Exit(True);
  Result := ProcessStart(@ThreadEnded);
  if not Result then
    Exit;
  ForkStart;
  PurgeStart;
  Calls.Owns := BlockIsOurs;
  Calls.FreeBlock := BlockFree;
  Calls.SizeOfBlock := SizeForCopies;
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

// ---------------------------------------------------------------------------- after the end

// The run-time library of a library frees some blocks after all units. Those of LaneMM stay: their
// code is about to go.

function LateFree(P: Pointer): TSize;
begin
  Result := 0;
  if (P <> nil) and (ArenaSpan(P) = nil) then
    Result := Process.Previous.FreeMem(P);
end;

function LateFreeSize(P: Pointer; Size: TSize): TSize;
begin
  Result := LateFree(P);
end;

function LateSize(P: Pointer): TSize;
begin
  if ArenaSpan(P) <> nil then
    Result := AnyUsableSize(P)
  else
    Result := Process.Previous.MemSize(P);
end;

function LateGet(Size: TSize): Pointer;
begin
  Result := Process.Previous.GetMem(Size);
end;

function LateGetZero(Size: TSize): Pointer;
begin
  Result := LateGet(Size);
  if Result <> nil then
    FillChar(Result^, Size, 0);
end;

function LateRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Kept: NativeUInt;
begin
  Result := nil;
  if Size <> 0 then
    Result := LateGet(Size);
  if (P <> nil) and (Result <> nil) then
  begin
    Kept := LateSize(P);
    if Kept > Size then
      Kept := Size;
    Move(P^, Result^, Kept);
  end;
  LateFree(P); // without memory, too: P is nil then
  P := Result;
end;

procedure UseLateEntries;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Manager);
  Manager.GetMem := LateGet;
  Manager.FreeMem := LateFree;
  Manager.FreeMemSize := LateFreeSize;
  Manager.AllocMem := LateGetZero;
  Manager.ReallocMem := LateRealloc;
  Manager.MemSize := LateSize;
  SetMemoryManager(Manager);
end;

procedure CountDebugBlock(const Block: TBlockInfo; Context: Pointer);
begin
  Inc(PNativeUInt(Context)^);
end;

// Returns whether the span has a block in use; purges the pages of the others.
function HasBlockInUse(Span: PSpan): Boolean;
var
  Count: NativeUInt;
begin
  Count := 0;
  case Span^.Kind of
    skBlocks: Count := SpanUsedCount(Span);
    skLarge: Count := 1;
    skDebug: Hooks.DebugVisit(Span, CountDebugBlock, @Count);
  end;
  Result := Count <> 0;
  if Result and (Span^.Kind = skBlocks) then
    ShelfPurgeFree(Span);
end;

function EngineStop: Boolean;
begin
  ForeignStop(BlockIsOurs);
  Result := ProcessStop;
  if not Result then
    Exit;
  UseLateEntries;
  FrontierEnd(HasBlockInUse);
  ThreadsForget;
  OsReleaseAllPages;
end;

end.
