/// The public routines of FastMM5 and FastMM4 that programs use most, on top of LaneMM.
//
// A program that uses FastMM5 gets LaneMM when the compiler finds this unit first: put src/* on the
// unit path. It stays the first unit of the program.
// A name without a counterpart is a number here with a hint, so that its use does not compile.
unit FastMM5;

{$ifdef FPC} {$mode objfpc}{$H+} {$endif}

interface

uses
  LaneMM;

type
  /// A summary of the heap, as FastMM5 gives it.
  TFastMM_UsageSummary = record
    AllocatedBytes: NativeUInt;    //< usable bytes of all blocks in use
    OverheadBytes: NativeUInt;     //< bytes that the heap holds beyond them
    EfficiencyPercentage: Double;  //< AllocatedBytes as a percentage of both together
  end;

/// Allocates a block of Size bytes, as GetMem.
function FastMM_GetMem(Size: NativeInt): Pointer;
/// Frees a block, as FreeMem. Returns 0; an invalid pointer is a run-time error.
function FastMM_FreeMem(P: Pointer): Integer;
/// Resizes a block, as ReallocMem; returns its new address.
function FastMM_ReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
/// Allocates a block of Size zero bytes, as AllocMem.
function FastMM_AllocMem(Size: NativeInt): Pointer;

/// Enters debug mode, see LaneMM_EnterDebugMode; calls nest. Returns True.
function FastMM_EnterDebugMode: Boolean;
/// Takes back one call of FastMM_EnterDebugMode. Returns False when there is none.
function FastMM_ExitDebugMode: Boolean;
/// Checks all debug blocks and reports damage.
procedure FastMM_ScanDebugBlocksForCorruption;

/// Fills freed blocks with zeros from now on; calls nest. Returns True.
function FastMM_BeginEraseFreedBlockContent: Boolean;
/// Takes back one such call; the last one clears `erase=free`. Returns True.
function FastMM_EndEraseFreedBlockContent: Boolean;
/// Returns whether `erase=free` is set.
function FastMM_EraseFreedBlockContentActive: Boolean;

/// Puts the next debug blocks of this thread into a group, until PopAllocationGroup.
procedure PushAllocationGroup(NewCurrentAllocationGroup: Cardinal);
/// Restores the group before.
procedure PopAllocationGroup;
/// Sets the group of the next debug blocks of this thread.
procedure SetCurrentAllocationGroup(Group: Cardinal);
/// Returns the group of the next debug blocks of this thread.
function GetCurrentAllocationGroup: Cardinal;
/// Reports the blocks in use of these groups.
procedure LogAllocatedBlocksToFile(FirstAllocationGroupToLog, LastAllocationGroupToLog: Cardinal);

{$ifdef FPC}
/// Stands for the variable of FastMM5, but each thread has its own.
property FastMM_CurrentAllocationGroup: Cardinal read GetCurrentAllocationGroup
  write SetCurrentAllocationGroup;
{$endif}

/// Suppresses the leak of the block at P. Returns False when there is no space to register it.
function FastMM_RegisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
/// Suppresses the leaks of Count objects of this class.
function FastMM_RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean;
  overload;
/// Suppresses the leaks of Count blocks of this size.
function FastMM_RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer = 1): Boolean;
  overload;
/// Removes such a suppression. Returns False when it is not registered.
function FastMM_UnregisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
function FastMM_UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean;
  overload;
function FastMM_UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer = 1): Boolean;
  overload;

/// Returns a summary of the heap.
function FastMM_GetUsageSummary: TFastMM_UsageSummary;
/// Returns the status of the heap as GetHeapStatus does.
function FastMM_GetHeapStatus: THeapStatus;
/// Limits the bytes that the heap may hold; 0 for no limit. A sixteenth of them becomes the
/// emergency reserve, so that a program can still allocate a little after the first refusal.
procedure FastMM_SetMemoryUsageLimit(MaximumAllowedMemoryUsage: NativeUInt);
/// Returns the limit in bytes.
function FastMM_GetMemoryUsageLimit: NativeUInt;
/// Returns the bytes that the limit counts.
function FastMM_GetCurrentMemoryUsage: NativeUInt;
/// Sets the file of the event log. Returns whether LaneMM took the name.
function FastMM_SetEventLogFilename(FileName: PWideChar): Boolean;

// The names of FastMM4 for the same routines.

/// Suppresses the leak of the block at P. Returns False when there is no space to register it.
function RegisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
/// Suppresses the leaks of Count objects of this class.
function RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean; overload;
/// Suppresses the leaks of Count blocks of this size.
function RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean; overload;
/// Removes such a suppression. Returns False when it is not registered.
function UnregisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
function UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean; overload;
function UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean; overload;
/// Checks all debug blocks and reports damage.
procedure ScanMemoryPoolForCorruptions;
/// Sets the file of the event log; nil for the default.
procedure SetMMLogFileName(FileName: PAnsiChar = nil);

/// Returns whether leaks are reported at the end of the program.
function GetReportMemoryLeaksOnShutdown: Boolean;
/// Sets whether leaks are reported at the end of the program.
procedure SetReportMemoryLeaksOnShutdown(Value: Boolean);

{$ifdef FPC}
/// Stands for the variable of Delphi's System unit.
property ReportMemoryLeaksOnShutdown: Boolean read GetReportMemoryLeaksOnShutdown
  write SetReportMemoryLeaksOnShutdown;
{$endif}

const
  FastMM_SetOptimizationStrategy = 0 deprecated 'LaneMM needs no strategy: remove the call';
  FastMM_EnterMinimumAddressAlignment = 0 deprecated 'blocks are always aligned to 16: remove it';
  FastMM_ExitMinimumAddressAlignment = 0 deprecated 'blocks are always aligned to 16: remove it';
  FastMM_ShareMemoryManager = 0 deprecated 'copies of LaneMM share blocks: remove the call';
  FastMM_AttemptToUseSharedMemoryManager = 0
    deprecated 'copies of LaneMM share blocks: remove the call';
  FastMM_Initialize = 0 deprecated 'LaneMM installs itself: remove the call';
  FastMM_Finalize = 0 deprecated 'LaneMM stays installed: remove the call';
  FastMM_LoadDebugSupportLibrary = 0 deprecated 'LaneMM needs no library: remove the call';
  FastMM_LogStateToFile = 0 deprecated 'use LaneMM_ReportMemoryInUse';
  FastMM_WalkBlocks = 0 deprecated 'use LaneMM_TakeSnapshot and LaneMM_CompareSnapshots';
  FastMM_MessageBoxEvents = 0
    deprecated 'LaneMM shows no message boxes: see event=... in docs/options.md';
  FastMM_LogToFileEvents = 0 deprecated 'use LaneMM_Configure, see event=... in docs/options.md';
  FastMM_OutputDebugStringEvents = 0
    deprecated 'use LaneMM_Configure, see event=... in docs/options.md';
  LogMemoryManagerStateToFile = 0 deprecated 'use LaneMM_ReportMemoryInUse';

implementation

uses
  LaneMM.Atomic;

function FastMM_GetMem(Size: NativeInt): Pointer;
begin
  GetMem(Result, Size);
end;

function FastMM_FreeMem(P: Pointer): Integer;
begin
  FreeMem(P);
  Result := 0;
end;

function FastMM_ReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
begin
  ReallocMem(P, NewSize);
  Result := P;
end;

function FastMM_AllocMem(Size: NativeInt): Pointer;
begin
  Result := AllocMem(Size);
end;

function FastMM_EnterDebugMode: Boolean;
begin
  LaneMM_EnterDebugMode;
  Result := True;
end;

function FastMM_ExitDebugMode: Boolean;
begin
  Result := LaneMM_ExitDebugMode;
end;

procedure FastMM_ScanDebugBlocksForCorruption;
begin
  LaneMM_CheckHeap;
end;

var
  EraseDepth: NativeUInt;

function FastMM_BeginEraseFreedBlockContent: Boolean;
begin
  if FetchAdd(EraseDepth, 1) = 0 then
    LaneMM_Configure('erase=free');
  Result := True;
end;

// Clears `erase=free`, and leaves `erase=return` as it is.
procedure StopErasing;
const
  ReturnBit = 1;
begin
  if Odd(LaneMM_Settings.Values[opErase] shr ReturnBit) then
    LaneMM_Configure('erase=0,erase=return')
  else
    LaneMM_Configure('erase=0');
end;

function FastMM_EndEraseFreedBlockContent: Boolean;
begin
  if FetchAdd(EraseDepth, NativeUInt(-1)) = 1 then
    StopErasing;
  Result := True;
end;

function FastMM_EraseFreedBlockContentActive: Boolean;
begin
  Result := Odd(LaneMM_Settings.Values[opErase]);
end;

procedure PushAllocationGroup(NewCurrentAllocationGroup: Cardinal);
begin
  LaneMM_BeginGroup(NewCurrentAllocationGroup);
end;

procedure PopAllocationGroup;
begin
  LaneMM_EndGroup;
end;

procedure SetCurrentAllocationGroup(Group: Cardinal);
begin
  LaneMM_SetGroup(Group);
end;

function GetCurrentAllocationGroup: Cardinal;
begin
  Result := LaneMM_CurrentGroup;
end;

procedure LogAllocatedBlocksToFile(FirstAllocationGroupToLog, LastAllocationGroupToLog: Cardinal);
begin
  LaneMM_ReportGroupsInUse(FirstAllocationGroupToLog, LastAllocationGroupToLog);
end;

function FastMM_RegisterExpectedMemoryLeak(P: Pointer): Boolean;
begin
  Result := LaneMM_RegisterExpectedMemoryLeak(P);
end;

function FastMM_RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer): Boolean;
begin
  Result := LaneMM_RegisterExpectedLeakOfClass(AnyClass, Count);
end;

function FastMM_RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean;
begin
  Result := LaneMM_RegisterExpectedLeakOfSize(Size, Count);
end;

function FastMM_UnregisterExpectedMemoryLeak(P: Pointer): Boolean;
begin
  Result := LaneMM_UnregisterExpectedMemoryLeak(P);
end;

function FastMM_UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer): Boolean;
begin
  Result := LaneMM_UnregisterExpectedLeakOfClass(AnyClass, Count);
end;

function FastMM_UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean;
begin
  Result := LaneMM_UnregisterExpectedLeakOfSize(Size, Count);
end;

function FastMM_GetUsageSummary: TFastMM_UsageSummary;
var
  Status: TLaneMM_HeapStatus;
begin
  Status := LaneMM_HeapStatus;
  Result.AllocatedBytes := Status.UsedBytes;
  Result.OverheadBytes := Status.CommittedBytes - Status.UsedBytes;
  Result.EfficiencyPercentage := 100;
  if Status.CommittedBytes > 0 then
    Result.EfficiencyPercentage := 100 * Status.UsedBytes / Status.CommittedBytes;
end;

function FastMM_GetHeapStatus: THeapStatus;
begin
  Result := GetHeapStatus;
end;

procedure FastMM_SetMemoryUsageLimit(MaximumAllowedMemoryUsage: NativeUInt);
const
  ReserveShare = 16;
begin
  LaneMM_SetMemoryLimit(MaximumAllowedMemoryUsage);
  LaneMM_SetReserve(MaximumAllowedMemoryUsage div ReserveShare);
end;

function FastMM_GetMemoryUsageLimit: NativeUInt;
begin
  Result := LaneMM_Settings.Values[opLimit];
end;

function FastMM_GetCurrentMemoryUsage: NativeUInt;
begin
  Result := LaneMM_HeapStatus.CommittedBytes;
end;

function FastMM_SetEventLogFilename(FileName: PWideChar): Boolean;
begin
  Result := LaneMM_Configure('log=' + ShortString(AnsiString(UnicodeString(FileName))));
end;

function RegisterExpectedMemoryLeak(P: Pointer): Boolean;
begin
  Result := LaneMM_RegisterExpectedMemoryLeak(P);
end;

function RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer): Boolean;
begin
  Result := LaneMM_RegisterExpectedLeakOfClass(AnyClass, Count);
end;

function RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean;
begin
  Result := LaneMM_RegisterExpectedLeakOfSize(Size, Count);
end;

function UnregisterExpectedMemoryLeak(P: Pointer): Boolean;
begin
  Result := LaneMM_UnregisterExpectedMemoryLeak(P);
end;

function UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer): Boolean;
begin
  Result := LaneMM_UnregisterExpectedLeakOfClass(AnyClass, Count);
end;

function UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean;
begin
  Result := LaneMM_UnregisterExpectedLeakOfSize(Size, Count);
end;

procedure ScanMemoryPoolForCorruptions;
begin
  LaneMM_CheckHeap;
end;

procedure SetMMLogFileName(FileName: PAnsiChar);
begin
  LaneMM_Configure('log=' + ShortString(FileName));
end;

function GetReportMemoryLeaksOnShutdown: Boolean;
begin
  Result := LaneMM_Settings.Values[opLeaks] <> 0;
end;

procedure SetReportMemoryLeaksOnShutdown(Value: Boolean);
begin
  if Value then
    LaneMM_Configure('leaks')
  else
    LaneMM_Configure('leaks=0');
end;

end.
