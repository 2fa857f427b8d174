/// The public routines of FastMM5 and FastMM4 that programs use most, on LaneMM.
//
// A program that uses FastMM5 gets LaneMM by finding this unit instead: put src and src/compat on
// the unit path. It stays the first unit of the program.
// What has no counterpart does not compile: its name stands here as a number with a hint.
unit FastMM5;

{$ifdef FPC} {$mode objfpc}{$H+} {$endif}

interface

uses
  LaneMM;

type
  /// What is in use, as FastMM5 sums it up.
  TFastMM_UsageSummary = record
    AllocatedBytes: NativeUInt;    //< usable bytes of all blocks in use
    OverheadBytes: NativeUInt;     //< what the process holds beyond them
    EfficiencyPercentage: Double;  //< share of the first in both
  end;

/// The four calls of the memory manager.
function FastMM_GetMem(Size: NativeInt): Pointer;
/// Returns 0, or the error.
function FastMM_FreeMem(P: Pointer): Integer;
/// Returns where the block is now.
function FastMM_ReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
/// The block is zero.
function FastMM_AllocMem(Size: NativeInt): Pointer;

/// From now on blocks are debug blocks; calls nest.
function FastMM_EnterDebugMode: Boolean;
/// Takes one call of FastMM_EnterDebugMode back.
function FastMM_ExitDebugMode: Boolean;
/// Reports what is wrong with any debug block.
procedure FastMM_ScanDebugBlocksForCorruption;

/// From now on freed blocks are filled with zeros; calls nest. Always True.
function FastMM_BeginEraseFreedBlockContent: Boolean;
/// Takes one call of it back. Always True.
function FastMM_EndEraseFreedBlockContent: Boolean;
/// Whether they are.
function FastMM_EraseFreedBlockContentActive: Boolean;

/// The next debug blocks of this thread belong to a group, until FastMM4's PopAllocationGroup.
procedure PushAllocationGroup(NewCurrentAllocationGroup: Cardinal);
/// Back to the group before.
procedure PopAllocationGroup;
/// Sets the group of this thread.
procedure SetCurrentAllocationGroup(Group: Cardinal);
/// The group of this thread.
function GetCurrentAllocationGroup: Cardinal;
/// Reports the blocks of these groups that are in use.
procedure LogAllocatedBlocksToFile(FirstAllocationGroupToLog, LastAllocationGroupToLog: Cardinal);

{$ifdef FPC}
/// As the variable of FastMM5, but each thread has its own.
property FastMM_CurrentAllocationGroup: Cardinal read GetCurrentAllocationGroup
  write SetCurrentAllocationGroup;
{$endif}

/// The block at P is no leak.
function FastMM_RegisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
/// Nor are Count objects of this class.
function FastMM_RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean;
  overload;
/// Nor are Count blocks of this size.
function FastMM_RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer = 1): Boolean;
  overload;
/// Take these back.
function FastMM_UnregisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
function FastMM_UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean;
  overload;
function FastMM_UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer = 1): Boolean;
  overload;

/// What is in use.
function FastMM_GetUsageSummary: TFastMM_UsageSummary;
/// The same as the run-time library's record.
function FastMM_GetHeapStatus: THeapStatus;
/// Most bytes that the heap may hold, 0 for any. After the first refusal a little more can be had:
/// the reserve is set to a sixteenth of the limit, which it is a part of.
procedure FastMM_SetMemoryUsageLimit(MaximumAllowedMemoryUsage: NativeUInt);
/// What was set.
function FastMM_GetMemoryUsageLimit: NativeUInt;
/// What the limit counts.
function FastMM_GetCurrentMemoryUsage: NativeUInt;
/// Where reports go.
function FastMM_SetEventLogFilename(FileName: PWideChar): Boolean;

// FastMM4's names of the same.

/// The block at P is no leak.
function RegisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
/// Nor are Count objects of this class.
function RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean; overload;
/// Nor are Count blocks of this size.
function RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean; overload;
/// Take these back.
function UnregisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
function UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean; overload;
function UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer): Boolean; overload;
/// Reports what is wrong with any debug block.
procedure ScanMemoryPoolForCorruptions;
/// Where reports go.
procedure SetMMLogFileName(FileName: PAnsiChar = nil);

/// Whether what was not freed is reported at the end.
function GetReportMemoryLeaksOnShutdown: Boolean;
/// Says so.
procedure SetReportMemoryLeaksOnShutdown(Value: Boolean);

{$ifdef FPC}
/// As the variable of Delphi's System unit.
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

function FastMM_GetMem(Size: NativeInt): Pointer;
begin
  Result := GetMem(Size);
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
  EraseDepth: LongInt;

function FastMM_BeginEraseFreedBlockContent: Boolean;
begin
  if InterlockedIncrement(EraseDepth) = 1 then
    LaneMM_Configure('erase=free');
  Result := True;
end;

function FastMM_EndEraseFreedBlockContent: Boolean;
begin
  if InterlockedDecrement(EraseDepth) = 0 then
    LaneMM_Configure('erase=0');
  Result := True;
end;

function FastMM_EraseFreedBlockContentActive: Boolean;
begin
  Result := LaneMM_Settings.Values[opErase] <> 0;
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
