/// The public routines and variables of FastMM4, with all of its options, on top of LaneMM.
//
// As FastMM5: put src/* on the unit path; it stays the first unit of the program. A name without a
// counterpart does not compile, and the error names the reason. docs/migrating.md has all names and
// options.
unit FastMM4;

{$hints off}
{$ifdef FPC} {$notes off} {$mode objfpc}{$H+} {$endif} // in Delphi mode no property outside of classes

interface

uses
  FastMM5, LaneMM.Compat.Reasons, LaneMM.Compat.State;

const
  /// The version of FastMM4 whose names this unit has.
  FastMMVersion = '4.993';
  /// The number of small block sizes.
  NumSmallBlockTypes = SmallTypes;

type
  {$ifdef FPC}
  TSmallBlockTypeState = LaneMM.Compat.State.TSmallBlockTypeState;
  TChunkStatus = LaneMM.Compat.State.TChunkStatus;
  TMemoryMap = LaneMM.Compat.State.TMemoryMap;
  {$endif}
  TSmallBlockTypeStates = array[0..NumSmallBlockTypes - 1] of TSmallBlockTypeState;

  /// The heap by block size. Spans of debug blocks are in no sum, their blocks are.
  TMemoryManagerState = record
    SmallBlockTypeStates: TSmallBlockTypeStates; //< small blocks
    AllocatedMediumBlockCount: Cardinal;         //< medium blocks in use
    TotalAllocatedMediumBlockSize: NativeUInt;   //< their usable bytes
    ReservedMediumBlockAddressSpace: NativeUInt; //< bytes of their spans
    AllocatedLargeBlockCount: Cardinal;          //< large blocks in use
    TotalAllocatedLargeBlockSize: NativeUInt;    //< their usable bytes
    ReservedLargeBlockAddressSpace: NativeUInt;  //< bytes of their spans
  end;
  /// A summary of the heap.
  TMemoryManagerUsageSummary = TFastMM_UsageSummary;
  /// A registered leak.
  TRegisteredMemoryLeak = TFastMM_RegisteredMemoryLeak;
  TRegisteredMemoryLeaks = TFastMM_RegisteredMemoryLeaks;
  /// What DetectStringData recognizes.
  TStringDataType = (stUnknown, stAnsiString, stUnicodeString);
  /// Receives a block, its requested or usable size, and the caller's pointer.
  TWalkAllocatedBlocksCallback = procedure(P: Pointer; BlockSize: NativeInt; UserData: Pointer);
  /// Which memory manager is installed.
  TFastMM_MemoryManagerInstallationState = FastMM5.TFastMM_MemoryManagerInstallationState;

const
  // The values of the enumerations above, so that a program names this unit alone.
  {$ifdef FPC}
  csUnallocated = LaneMM.Compat.State.csUnallocated;
  csAllocated = LaneMM.Compat.State.csAllocated;
  csReserved = LaneMM.Compat.State.csReserved;
  csSysAllocated = LaneMM.Compat.State.csSysAllocated;
  csSysReserved = LaneMM.Compat.State.csSysReserved;
  {$endif}
  mmisDefaultMemoryManagerInUse = FastMM5.mmisDefaultMemoryManagerInUse;
  mmisOtherThirdPartyMemoryManagerInstalled = FastMM5.mmisOtherThirdPartyMemoryManagerInstalled;
  mmisUsingSharedMemoryManager = FastMM5.mmisUsingSharedMemoryManager;
  mmisInstalled = FastMM5.mmisInstalled;

/// Allocates a block, as GetMem.
function FastGetMem(Size: NativeUInt): Pointer;
/// Frees a block, as FreeMem. Returns 0.
function FastFreeMem(P: Pointer): NativeUInt;
/// Resizes a block, as ReallocMem.
function FastReallocMem(var P: Pointer; NewSize: NativeUInt): Pointer;
/// Allocates a block of zeros, as AllocMem.
function FastAllocMem(Size: NativeUInt): Pointer;
/// Allocates one debug block, whatever the mode.
function DebugGetMem(Size: NativeInt): Pointer;
/// Frees a block of any kind. Returns 0.
function DebugFreeMem(P: Pointer): Integer;
/// Moves a block of any kind to a new debug block; returns its address.
function DebugReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
/// Allocates one debug block of zeros.
function DebugAllocMem(Size: NativeInt): Pointer;

/// Checks all debug blocks; reports damage, each once, and raises EInvalidPointer if there is new
/// damage.
procedure ScanMemoryPoolForCorruptions;
/// Returns the group of the next debug blocks of this thread.
function GetCurrentAllocationGroup: Cardinal;
/// Puts the next debug blocks of this thread into a group, until PopAllocationGroup.
procedure PushAllocationGroup(NewCurrentAllocationGroup: Cardinal);
/// Restores the group before.
procedure PopAllocationGroup;
/// Reports the blocks in use of these groups; of all, when the last one is 0 or below the first.
procedure LogAllocatedBlocksToFile(FirstAllocationGroupToLog, LastAllocationGroupToLog: Cardinal);
/// Sets the file of the event log; nil for the default.
procedure SetMMLogFileName(FileName: PAnsiChar = nil);
/// Deletes the event log.
procedure DeleteEventLog;

/// Returns the status of the heap as GetHeapStatus does.
function FastGetHeapStatus: THeapStatus;
/// Fills the state of the heap by block size.
procedure GetMemoryManagerState(var State: TMemoryManagerState);
/// Returns a summary of the heap.
function GetMemoryManagerUsageSummary: TMemoryManagerUsageSummary; overload;
/// Fills a summary of the heap.
procedure GetMemoryManagerUsageSummary(var Summary: TMemoryManagerUsageSummary); overload;
/// Fills the map of the lower 4 GB of the address space.
procedure GetMemoryMap(var MemoryMap: TMemoryMap);
/// Returns which memory manager is installed.
function FastMM_GetInstallationState: TFastMM_MemoryManagerInstallationState;

/// Suppresses the leak of the block at P. Returns False when there is no space to register it.
function RegisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
/// Suppresses the leaks of Count objects of this class.
function RegisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean; overload;
/// Suppresses the leaks of Count blocks of this size.
function RegisterExpectedMemoryLeak(Size: NativeInt; Count: Integer = 1): Boolean; overload;
/// Removes such a suppression. Returns False when it is not registered.
function UnregisterExpectedMemoryLeak(P: Pointer): Boolean; overload;
function UnregisterExpectedMemoryLeak(AnyClass: TClass; Count: Integer = 1): Boolean; overload;
function UnregisterExpectedMemoryLeak(Size: NativeInt; Count: Integer = 1): Boolean; overload;
/// Returns all suppressions.
function GetRegisteredMemoryLeaks: TRegisteredMemoryLeaks;
/// Returns the class of the object at P; nil if it is none.
function DetectClassInstance(P: Pointer): TClass;
/// Returns the kind of string that a block of AvailableSpace bytes seems to hold.
function DetectStringData(P: Pointer; AvailableSpace: NativeInt): TStringDataType;
/// Calls CallBack for each block in use. No lock is taken: the callback may use the heap.
procedure WalkAllocatedBlocks(CallBack: TWalkAllocatedBlocksCallback; UserData: Pointer);
/// Writes a summary of the heap and the blocks in use by class to a file. Returns False when it
/// cannot be written.
function LogMemoryManagerStateToFile(const FileName: string; const AdditionalDetails: string = ''):
  Boolean;

// The routines behind the properties; those of another unit Free Pascal 3.2.2 does not call.

/// See the property of this name, as for the routines that follow.
function GetScanBeforeEveryOperation: Boolean;
procedure SetScanBeforeEveryOperation(Value: Boolean);
function GetReportMemoryLeaksOnShutdown: Boolean;
procedure SetReportMemoryLeaksOnShutdown(Value: Boolean);

{$ifdef FPC}
/// True when each operation of debug mode checks all debug blocks.
property FullDebugModeScanMemoryPoolBeforeEveryOperation: Boolean read GetScanBeforeEveryOperation
  write SetScanBeforeEveryOperation;
/// Stands for the variable of Delphi's System unit.
property ReportMemoryLeaksOnShutdown: Boolean read GetReportMemoryLeaksOnShutdown
  write SetReportMemoryLeaksOnShutdown;
{$endif}

// The names without a counterpart, routines and variables.

var
  RunInitializationCode, InitializeMemoryManager, CheckCanInstallMemoryManager,
    InstallMemoryManager: LaneMM_installs_itself__remove_this
      deprecated 'LaneMM installs itself: remove this';
  FinalizeMemoryManager: LaneMM_is_never_uninstalled__remove_this
      deprecated 'LaneMM is never uninstalled: remove this';
  FreeAllMemory: LaneMM_cannot_free_the_blocks_of_others
      deprecated 'LaneMM does not free blocks in use: remove this';
  LogReleaseStackUsage: LaneMM_has_no_release_stack__remove_this
      deprecated 'LaneMM has no release stack: remove this';
  SuppressMessageBoxes: LaneMM_shows_no_message_boxes__remove_this
      deprecated 'LaneMM shows no message boxes: remove this';
  FullDebugModeRegisterAllAllocsAsExpectedMemoryLeak:
      Use_LaneMM_TakeSnapshot_and_LaneMM_CompareSnapshots
      deprecated 'use LaneMM_TakeSnapshot and LaneMM_CompareSnapshots';
  OnDebugGetMemFinish, OnDebugFreeMemStart, OnDebugFreeMemFinish, OnDebugReallocMemStart,
    OnDebugReallocMemFinish: Use_the_setting_trace_and_LaneMM_OnEvent
      deprecated 'use the setting trace and LaneMM_OnEvent';
  pCppDebugHook, GetCppVirtObjSizeByTypeIdPtrFunc, GetCppVirtObjTypeIdPtrFunc,
    GetCppVirtObjTypeNameFunc, GetCppVirtObjTypeNameByTypeIdPtrFunc,
    GetCppVirtObjTypeNameByVTablePtrFunc: LaneMM_is_not_for_C_Builder
      deprecated 'LaneMM is not for C++ Builder';

implementation

uses
  LaneMM;

function FastGetMem(Size: NativeUInt): Pointer;
begin
  GetMem(Result, Size);
end;

function FastFreeMem(P: Pointer): NativeUInt;
begin
  FreeMem(P);
  Result := 0;
end;

function FastReallocMem(var P: Pointer; NewSize: NativeUInt): Pointer;
begin
  ReallocMem(P, NewSize);
  Result := P;
end;

function FastAllocMem(Size: NativeUInt): Pointer;
begin
  Result := AllocMem(Size);
end;

function DebugGetMem(Size: NativeInt): Pointer;
begin
  Result := LaneMM_DebugGetMem(Size);
end;

function DebugFreeMem(P: Pointer): Integer;
begin
  Result := FastMM_DebugFreeMem(P);
end;

function DebugReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
begin
  Result := LaneMM_DebugReallocMem(P, NewSize);
end;

function DebugAllocMem(Size: NativeInt): Pointer;
begin
  Result := LaneMM_DebugAllocMem(Size);
end;

procedure ScanMemoryPoolForCorruptions;
begin
  FastMM_ScanDebugBlocksForCorruption;
end;

procedure PushAllocationGroup(NewCurrentAllocationGroup: Cardinal);
begin
  LaneMM_BeginGroup(NewCurrentAllocationGroup);
end;

procedure PopAllocationGroup;
begin
  LaneMM_EndGroup;
end;

procedure LogAllocatedBlocksToFile(FirstAllocationGroupToLog, LastAllocationGroupToLog: Cardinal);
begin
  if (LastAllocationGroupToLog = 0) or (LastAllocationGroupToLog < FirstAllocationGroupToLog) then
    LaneMM_ReportMemoryInUse
  else
    LaneMM_ReportGroupsInUse(FirstAllocationGroupToLog, LastAllocationGroupToLog);
end;

procedure SetMMLogFileName(FileName: PAnsiChar);
begin
  LaneMM_SetEventLogPath(FileName);
end;

procedure DeleteEventLog;
begin
  LaneMM_DeleteEventLog;
end;

function FastGetHeapStatus: THeapStatus;
begin
  Result := GetHeapStatus;
end;

procedure GetMemoryManagerState(var State: TMemoryManagerState);
var
  Medium, Large: TTierState;
begin
  ReadStates(State.SmallBlockTypeStates, Medium, Large);
  State.AllocatedMediumBlockCount := Medium.Count;
  State.TotalAllocatedMediumBlockSize := Medium.Bytes;
  State.ReservedMediumBlockAddressSpace := Medium.Reserved;
  State.AllocatedLargeBlockCount := Large.Count;
  State.TotalAllocatedLargeBlockSize := Large.Bytes;
  State.ReservedLargeBlockAddressSpace := Large.Reserved;
end;

function GetMemoryManagerUsageSummary: TMemoryManagerUsageSummary;
begin
  Result := FastMM_GetUsageSummary;
end;

procedure GetMemoryManagerUsageSummary(var Summary: TMemoryManagerUsageSummary);
begin
  Summary := FastMM_GetUsageSummary;
end;

procedure GetMemoryMap(var MemoryMap: TMemoryMap);
begin
  ReadMap(MemoryMap);
end;

function FastMM_GetInstallationState: TFastMM_MemoryManagerInstallationState;
begin
  Result := FastMM5.FastMM_GetInstallationState;
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

function GetRegisteredMemoryLeaks: TRegisteredMemoryLeaks;
begin
  Result := FastMM_GetRegisteredMemoryLeaks;
end;

function DetectClassInstance(P: Pointer): TClass;
begin
  Result := LaneMM_DetectClass(P);
end;

function DetectStringData(P: Pointer; AvailableSpace: NativeInt): TStringDataType;
const
  Types: array[TFastMM_StringDataType] of TStringDataType = (stUnknown, stAnsiString,
    stUnicodeString);
begin
  Result := Types[FastMM_DetectStringData(P, AvailableSpace)];
end;

type
  TWalk = record
    CallBack: TWalkAllocatedBlocksCallback;
    UserData: Pointer;
  end;
  PWalk = ^TWalk;

procedure Visit(const Block: TLaneMM_BlockInfo; Context: Pointer);
begin
  PWalk(Context)^.CallBack(Block.Address, Block.UsableSize, PWalk(Context)^.UserData);
end;

procedure WalkAllocatedBlocks(CallBack: TWalkAllocatedBlocksCallback; UserData: Pointer);
var
  Walk: TWalk;
begin
  Walk.CallBack := CallBack;
  Walk.UserData := UserData;
  LaneMM_WalkBlocks({$ifdef FPC}@{$endif}Visit, @Walk);
end;

function LogMemoryManagerStateToFile(const FileName, AdditionalDetails: string): Boolean;
begin
  Result := FastMM_LogStateToFile(PWideChar(UnicodeString(FileName)),
    PWideChar(UnicodeString(AdditionalDetails)));
end;

// ---------------------------------------------------------------------------- variables

{$I LaneMM.Compat.Properties.inc}

end.
