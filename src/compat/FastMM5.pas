/// The public routines and variables of FastMM5 5.07, on top of LaneMM.
//
// A program that uses FastMM5 gets LaneMM when the compiler finds this unit first: put src/* on the
// unit path. It stays the first unit of the program. A name without a counterpart does not compile;
// the error names the reason, see LaneMM.Compat.Reasons. docs/migrating.md has all names.
// Differences: block headers, arenas and lock timeouts do not exist, so the timeouts are ignored.
// Delphi has no properties outside of classes: there the routines behind them are called.
unit FastMM5;

{$hints off}
{$ifdef FPC} {$notes off} {$mode objfpc}{$H+} {$endif} // in Delphi mode no property outside of classes

interface

uses
  LaneMM, LaneMM.Compat.Reasons, LaneMM.Compat.Stacks, LaneMM.Compat.State, LaneMM.Compat.Walks,
  LaneMM.Compat.Events, LaneMM.Compat.Modes;

const
  /// The version of FastMM whose names this unit has.
  CFastMM_Version = 507;

type
  {$ifdef FPC}
  /// The blocks of one size.
  TSmallBlockTypeState = LaneMM.Compat.State.TSmallBlockTypeState;
  /// What 64 KB of addresses are used for.
  TChunkStatus = LaneMM.Compat.State.TChunkStatus;
  /// The lower 4 GB of the address space.
  TMemoryMap = LaneMM.Compat.State.TMemoryMap;
  {$endif}

  /// For calls that have no counterpart.
  TFastMM_MemoryManagerOptimizationStrategy = (mmosOptimizeForSpeed, mmosBalanced,
    mmosOptimizeForLowMemoryUsage);
  /// For calls that have no counterpart.
  TFastMM_DebugModeOption = (dmoNeverFreeSmallBlockSpans, dmoNeverMergeFreeMediumBlocks);
  TFastMM_DebugModeOptions = set of TFastMM_DebugModeOption;

  /// Kinds of events, see LaneMM.Compat.Events.
  TFastMM_MemoryManagerEventType = LaneMM.Compat.Events.TFastMM_MemoryManagerEventType;
  TFastMM_MemoryManagerEventTypeSet = LaneMM.Compat.Events.TFastMM_MemoryManagerEventTypeSet;

  /// Which memory manager is installed. LaneMM is never a shared one: its copies free each other's
  /// blocks.
  TFastMM_MemoryManagerInstallationState = (mmisDefaultMemoryManagerInUse,
    mmisOtherThirdPartyMemoryManagerInstalled, mmisUsingSharedMemoryManager, mmisInstalled);

  /// The record of a debug block, see LaneMM.Compat.Walks.
  TFastMM_DebugBlockHeader = LaneMM.Compat.Walks.TFastMM_DebugBlockHeader;
  PFastMM_DebugBlockHeader = ^TFastMM_DebugBlockHeader;
  /// What FastMM_WalkBlocks visits, see LaneMM.Compat.Walks.
  TFastMM_WalkAllocatedBlocksBlockType = LaneMM.Compat.Walks.TFastMM_WalkAllocatedBlocksBlockType;
  TFastMM_WalkBlocksBlockTypes = LaneMM.Compat.Walks.TFastMM_WalkBlocksBlockTypes;
  /// A block or a span, see LaneMM.Compat.Walks.
  TFastMM_WalkAllocatedBlocks_BlockInfo = LaneMM.Compat.Walks.TFastMM_WalkAllocatedBlocks_BlockInfo;
  TFastMM_WalkBlocksCallback = LaneMM.Compat.Walks.TFastMM_WalkBlocksCallback;

  /// What FastMM_DetectStringData recognizes.
  TFastMM_StringDataType = (sdtNotAString, sdtAnsiString, sdtUnicodeString);

  /// Alignments of all blocks to come.
  TFastMM_MinimumAddressAlignment = (maa8Bytes, maa16Bytes, maa32Bytes, maa64Bytes);
  TFastMM_MinimumAddressAlignmentSet = set of TFastMM_MinimumAddressAlignment;

  /// The encoding of text files.
  TFastMM_TextFileEncoding = (teUTF8);

  /// Takes a stack trace, see LaneMM.Compat.Stacks.
  TFastMM_GetStackTrace = LaneMM.Compat.Stacks.TFastMM_GetStackTrace;
  /// Writes it as text, see LaneMM.Compat.Stacks.
  TFastMM_ConvertStackTraceToText = LaneMM.Compat.Stacks.TFastMM_ConvertStackTraceToText;

  /// Writes a stack trace as text in FastMM4's form.
  TFastMM_LegacyConvertStackTraceToText = function(ReturnAddresses: PNativeUInt;
    MaxDepth: Cardinal; Buffer: PAnsiChar): PAnsiChar;

  /// A registered leak, see LaneMM.Compat.State.
  TFastMM_RegisteredMemoryLeak = LaneMM.Compat.State.TFastMM_RegisteredMemoryLeak;
  TFastMM_RegisteredMemoryLeaks = LaneMM.Compat.State.TFastMM_RegisteredMemoryLeaks;

  /// A summary of the heap.
  TFastMM_UsageSummary = record
    AllocatedBytes: NativeUInt;    //< usable bytes of all blocks in use
    OverheadBytes: NativeUInt;     //< bytes that the heap holds beyond them
    EfficiencyPercentage: Double;  //< AllocatedBytes as a percentage of both together
  end;

  /// The heap by block size. Spans of debug blocks are in no sum, their blocks are.
  TFastMM_MemoryManagerState = packed record
    SmallBlockTypeCount: Cardinal;               //< number of small block sizes
    SmallBlockTypeStates: array[0..MostSmallTypes - 1] of TSmallBlockTypeState; //< their blocks
    AllocatedMediumBlockCount: Cardinal;         //< medium blocks in use
    TotalAllocatedMediumBlockSize: NativeUInt;   //< their usable bytes
    ReservedMediumBlockAddressSpace: NativeUInt; //< bytes of their spans
    AllocatedLargeBlockCount: Cardinal;          //< large blocks in use
    TotalAllocatedLargeBlockSize: NativeUInt;    //< their usable bytes
    ReservedLargeBlockAddressSpace: NativeUInt;  //< bytes of their spans
  end;

  /// The order of the list of FastMM_LogStateToFile.
  TFastMM_LogStateToFile_SortOrder = (soDescendingTotalMemoryUsage, soAlphabetical);

const
  // The values of the enumerations above, so that a program names this unit alone.

  btLargeBlock = LaneMM.Compat.Walks.btLargeBlock;
  btMediumBlockSpan = LaneMM.Compat.Walks.btMediumBlockSpan;
  btMediumBlock = LaneMM.Compat.Walks.btMediumBlock;
  btSmallBlockSpan = LaneMM.Compat.Walks.btSmallBlockSpan;
  btSmallBlock = LaneMM.Compat.Walks.btSmallBlock;
  mmetAnotherThirdPartyMemoryManagerAlreadyInstalled =
    LaneMM.Compat.Events.mmetAnotherThirdPartyMemoryManagerAlreadyInstalled;
  mmetCannotInstallAfterDefaultMemoryManagerHasBeenUsed =
    LaneMM.Compat.Events.mmetCannotInstallAfterDefaultMemoryManagerHasBeenUsed;
  mmetCannotSwitchToSharedMemoryManagerWithLivePointers =
    LaneMM.Compat.Events.mmetCannotSwitchToSharedMemoryManagerWithLivePointers;
  mmetUnexpectedMemoryLeakDetail = LaneMM.Compat.Events.mmetUnexpectedMemoryLeakDetail;
  mmetUnexpectedMemoryLeakSummary = LaneMM.Compat.Events.mmetUnexpectedMemoryLeakSummary;
  mmetDebugBlockDoubleFree = LaneMM.Compat.Events.mmetDebugBlockDoubleFree;
  mmetDebugBlockReallocOfFreedBlock = LaneMM.Compat.Events.mmetDebugBlockReallocOfFreedBlock;
  mmetDebugBlockHeaderCorruption = LaneMM.Compat.Events.mmetDebugBlockHeaderCorruption;
  mmetDebugBlockFooterCorruption = LaneMM.Compat.Events.mmetDebugBlockFooterCorruption;
  mmetDebugBlockModifiedAfterFree = LaneMM.Compat.Events.mmetDebugBlockModifiedAfterFree;
  mmetVirtualMethodCallOnFreedObject = LaneMM.Compat.Events.mmetVirtualMethodCallOnFreedObject;
  {$ifdef FPC}
  csUnallocated = LaneMM.Compat.State.csUnallocated;
  csAllocated = LaneMM.Compat.State.csAllocated;
  csReserved = LaneMM.Compat.State.csReserved;
  csSysAllocated = LaneMM.Compat.State.csSysAllocated;
  csSysReserved = LaneMM.Compat.State.csSysReserved;
  {$endif}

/// Allocates a block of Size bytes, as GetMem.
function FastMM_GetMem(Size: NativeInt): Pointer;
/// Frees a block, as FreeMem. Returns 0; an invalid pointer is a run-time error.
function FastMM_FreeMem(P: Pointer): Integer;
/// Resizes a block, as ReallocMem; returns its new address.
function FastMM_ReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
/// Allocates a block of Size zero bytes, as AllocMem.
function FastMM_AllocMem(Size: NativeInt): Pointer;

/// Allocates one debug block, whatever the mode, see LaneMM_DebugGetMem.
function FastMM_DebugGetMem(Size: NativeInt): Pointer;
/// Frees a block of any kind. Returns 0; an invalid pointer is a run-time error.
function FastMM_DebugFreeMem(P: Pointer): Integer;
/// Moves a block of any kind to a new debug block; returns its address.
function FastMM_DebugReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
/// Allocates one debug block of zeros.
function FastMM_DebugAllocMem(Size: NativeInt): Pointer;

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
/// Returns all suppressions.
function FastMM_GetRegisteredMemoryLeaks: TFastMM_RegisteredMemoryLeaks;

/// Returns the requested size of a debug block, the usable size of any other one.
function FastMM_BlockCurrentUserBytes(P: Pointer): NativeInt;
/// Returns the bytes that the program may use of a block: the same number, as ReallocMem keeps all
/// of them.
function FastMM_BlockMaximumUserBytes(P: Pointer): NativeInt;
/// Purges free memory, see LaneMM_Trim: frees of other threads' blocks take effect at once. Returns
/// True.
function FastMM_ProcessAllPendingFrees: Boolean;
/// Calls CallBack for all blocks and spans of these types; [] for all types. Freed debug blocks are
/// not visited. The groups are those of debug blocks; others are in group 0. No lock is taken.
/// Returns True.
function FastMM_WalkBlocks(CallBack: TFastMM_WalkBlocksCallback;
  WalkBlockTypes: TFastMM_WalkBlocksBlockTypes = []; WalkUsedBlocksOnly: Boolean = True;
  UserData: Pointer = nil; LockTimeoutMilliseconds: Cardinal = 1000;
  MinimumAllocationGroup: Cardinal = 0; MaximumAllocationGroup: Cardinal = $ffffffff): Boolean;
/// Returns the kind of string that a block of AvailableSpace bytes seems to hold.
function FastMM_DetectStringData(P: Pointer; AvailableSpace: NativeInt): TFastMM_StringDataType;
/// Returns the class of the object at P; nil if it is none.
function FastMM_DetectClassInstance(P: Pointer): TClass;
/// Checks all debug blocks; reports damage, each once, and raises EInvalidPointer if there is new
/// damage. Returns True.
function FastMM_ScanDebugBlocksForCorruption(LockTimeoutMilliseconds: Cardinal = 50): Boolean;
/// Returns the bytes that the heap holds, those that the limit counts.
function FastMM_GetCurrentMemoryUsage: NativeUInt;
/// Returns the status of the heap as GetHeapStatus does.
function FastMM_GetHeapStatus(LockTimeoutMilliseconds: Cardinal = 50): THeapStatus;
/// Returns a summary of the heap.
function FastMM_GetUsageSummary(LockTimeoutMilliseconds: Cardinal = 50): TFastMM_UsageSummary;
/// Fills the state of the heap by block size.
procedure FastMM_GetMemoryManagerState(var State: TFastMM_MemoryManagerState;
  LockTimeoutMilliseconds: Cardinal = 50);
/// Fills the map of the lower 4 GB of the address space, see LaneMM_WalkSpans for the heap's own.
procedure FastMM_GetMemoryMap(var MemoryMap: TMemoryMap; LockTimeoutMilliseconds: Cardinal = 50);
/// Writes a summary of the heap and the blocks in use by class to a file. Returns False when it
/// cannot be written.
function FastMM_LogStateToFile(FileName: PWideChar; AdditionalDetails: PWideChar = nil;
  TruncateFile: Boolean = True;
  SortOrder: TFastMM_LogStateToFile_SortOrder = soDescendingTotalMemoryUsage;
  LockTimeoutMilliseconds: Cardinal = 50; AddUsageInAllocationGroupsFrom: Cardinal = 0;
  AddUsageInAllocationGroupsUpTo: Cardinal = $ffffffff;
  SubtractUsageInAllocationGroupsFrom: Cardinal = $ffffffff;
  SubtractUsageInAllocationGroupsUpTo: Cardinal = 0): Boolean;

/// Returns which memory manager is installed.
function FastMM_GetInstallationState: TFastMM_MemoryManagerInstallationState;
/// Aligns all blocks to come, of all threads, see LaneMM_EnterAlignment; 16 bytes at least.
procedure FastMM_EnterMinimumAddressAlignment(Alignment: TFastMM_MinimumAddressAlignment);
/// Takes back one such call.
procedure FastMM_ExitMinimumAddressAlignment(Alignment: TFastMM_MinimumAddressAlignment);
/// Returns the largest alignment that was entered; maa16Bytes if none.
function FastMM_GetCurrentMinimumAddressAlignment: TFastMM_MinimumAddressAlignment;
/// Limits the bytes that the heap may hold; 0 for no limit. A sixteenth of them becomes the
/// emergency reserve, so that a program can still allocate a little after the first refusal.
procedure FastMM_SetMemoryUsageLimit(MaximumAllowedMemoryUsage: NativeUInt);
/// Returns the limit in bytes.
function FastMM_GetMemoryUsageLimit: NativeUInt;

/// Enters debug mode, see LaneMM_EnterDebugMode; calls nest. Returns False while another memory
/// manager is installed; the call counts all the same.
function FastMM_EnterDebugMode: Boolean;
/// Takes back one call of FastMM_EnterDebugMode. Returns False when there is none, or while another
/// memory manager is installed.
function FastMM_ExitDebugMode: Boolean;
/// Returns whether new blocks are debug blocks.
function FastMM_DebugModeActive: Boolean;
/// Fills new blocks with the byte of the setting `fill` from now on, see `erase=new`; calls nest.
/// Returns False while another memory manager is installed; the call counts all the same.
function FastMM_BeginEraseAllocatedBlockContent: Boolean;
/// Takes back one such call; the last one clears `erase=new` if the first has set it. Returns False
/// when there is none, or while another memory manager is installed.
function FastMM_EndEraseAllocatedBlockContent: Boolean;
/// Returns whether new blocks are filled.
function FastMM_EraseAllocatedBlockContentActive: Boolean;
/// Fills freed blocks with zeros from now on; calls nest. Returns False while another memory
/// manager is installed; the call counts all the same.
function FastMM_BeginEraseFreedBlockContent: Boolean;
/// Takes back one such call; the last one clears `erase=free` if the first has set it. Returns
/// False when there is none, or while another memory manager is installed.
function FastMM_EndEraseFreedBlockContent: Boolean;
/// Returns whether freed blocks are erased.
function FastMM_EraseFreedBlockContentActive: Boolean;
/// Returns the most frames of a backtrace, at most 255.
function FastMM_GetDebugModeStackTraceEntryCount: Byte;
/// Sets the most frames of a backtrace, as `depth`; 0 counts as 1.
procedure FastMM_SetDebugModeStackTraceEntryCount(StackTraceEntryCount: Byte);

/// Takes no stack trace: sets all entries to 0.
procedure FastMM_NoOpGetStackTrace(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
/// Writes no text: returns the start of the buffer.
function FastMM_NoOpConvertStackTraceToText(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal;
  BufferPosition, BufferEnd: PWideChar): PWideChar;
/// Lets the event log be beside the program again.
procedure FastMM_SetDefaultEventLogFilename;
/// Sets the file of the event log; nil for the default. Returns False for a path that is too long.
function FastMM_SetEventLogFilename(FileName: PWideChar): Boolean;
/// Returns the path of the event log, valid until the next call of any thread.
function FastMM_GetEventLogFilename: PWideChar;
/// Deletes the event log. Returns False when there is none, or the system refuses.
function FastMM_DeleteEventLogFile: Boolean;

// The routines behind the properties; those of another unit Free Pascal 3.2.2 does not call.

/// See the property of this name, as for the routines that follow.
function GetCurrentAllocationGroup: Cardinal;
procedure SetCurrentAllocationGroup(Group: Cardinal);
function GetLastAllocationNumber: Cardinal;
function GetDebugBreakAllocationNumber: Cardinal;
procedure SetDebugBreakAllocationNumber(Number: Cardinal);
function GetScanBeforeEveryOperation: Boolean;
procedure SetScanBeforeEveryOperation(Value: Boolean);
function GetOutputDebugStringEvents: TFastMM_MemoryManagerEventTypeSet;
procedure SetOutputDebugStringEvents(Events: TFastMM_MemoryManagerEventTypeSet);
function GetLogToFileEvents: TFastMM_MemoryManagerEventTypeSet;
procedure SetLogToFileEvents(Events: TFastMM_MemoryManagerEventTypeSet);
function GetGetStackTrace: TFastMM_GetStackTrace;
procedure SetGetStackTrace(Handler: TFastMM_GetStackTrace);
function GetConvertStackTraceToText: TFastMM_ConvertStackTraceToText;
procedure SetConvertStackTraceToText(Handler: TFastMM_ConvertStackTraceToText);
function GetReportMemoryLeaksOnShutdown: Boolean;
procedure SetReportMemoryLeaksOnShutdown(Value: Boolean);

{$ifdef FPC}
/// The group of the next debug blocks of this thread.
property FastMM_CurrentAllocationGroup: Cardinal read GetCurrentAllocationGroup
  write SetCurrentAllocationGroup;
/// The number of this thread's last debug block; the thread's own, so it cannot be set.
property FastMM_LastAllocationNumber: Cardinal read GetLastAllocationNumber;
/// The allocation that is reported; 0 for none. A breakpoint on NumberReached stops there.
property FastMM_DebugBreakAllocationNumber: Cardinal read GetDebugBreakAllocationNumber
  write SetDebugBreakAllocationNumber;
/// True when each operation checks all debug blocks.
property FastMM_DebugMode_ScanForCorruptionBeforeEveryOperation: Boolean
  read GetScanBeforeEveryOperation write SetScanBeforeEveryOperation;
/// The events that are reported to stderr.
property FastMM_OutputDebugStringEvents: TFastMM_MemoryManagerEventTypeSet
  read GetOutputDebugStringEvents write SetOutputDebugStringEvents;
/// The events that are reported to the event log.
property FastMM_LogToFileEvents: TFastMM_MemoryManagerEventTypeSet read GetLogToFileEvents
  write SetLogToFileEvents;
/// The handler that takes stack traces; nil for LaneMM's own.
property FastMM_GetStackTrace: TFastMM_GetStackTrace read GetGetStackTrace
  write SetGetStackTrace;
/// The handler that writes them as text; nil for LaneMM's own.
property FastMM_ConvertStackTraceToText: TFastMM_ConvertStackTraceToText
  read GetConvertStackTraceToText write SetConvertStackTraceToText;
/// Stands for the variable of Delphi's System unit.
property ReportMemoryLeaksOnShutdown: Boolean read GetReportMemoryLeaksOnShutdown
  write SetReportMemoryLeaksOnShutdown;
{$endif}

var
  /// The encoding of text files: no other one exists.
  FastMM_TextFileEncoding: TFastMM_TextFileEncoding;
  /// Always empty.
  FastMM_MessageBoxEvents: set of LaneMM_shows_no_message_boxes;

// The names without a counterpart, routines and variables.

procedure FastMM_SetOptimizationStrategy(Reason: LaneMM_needs_no_strategy__remove_this);
  external {$ifndef FPC} 'LaneMM' {$endif} name 'LaneMM needs no strategy: remove this';
procedure FastMM_SetDebugModeOptions(Reason: Use_the_setting_quarantine_for_freed_debug_blocks);
  external {$ifndef FPC} 'LaneMM' {$endif} name 'set quarantine=N: freed debug blocks wait there';

var
  FastMM_AttemptToUseSharedMemoryManager, FastMM_ShareMemoryManager:
      LaneMM_shares_blocks_with_its_copies__remove_this
      deprecated 'copies of LaneMM share blocks: remove this';
  FastMM_Initialize: LaneMM_installs_itself__remove_this
      deprecated 'LaneMM installs itself: remove this';
  FastMM_Finalize, FastMM_NeverUninstall: LaneMM_is_never_uninstalled__remove_this
      deprecated 'LaneMM is never uninstalled: remove this';
  FastMM_GetCurrentOptimizationStrategy: LaneMM_needs_no_strategy__remove_this
      deprecated 'LaneMM needs no strategy: remove this';
  FastMM_LoadDebugSupportLibrary, FastMM_FreeDebugSupportLibrary, FastMM_DebugSupportLibraryName,
    DebugLibrary_GetRawStackTrace, DebugLibrary_GetFrameBasedStackTrace,
    DebugLibrary_LogStackTrace_Legacy, CFastMM_DefaultDebugSupportLibraryName:
      LaneMM_needs_no_debug_library__remove_this
      deprecated 'LaneMM needs no debug library: remove this';
  FastMM_GetDebugModeOptions: Use_the_setting_quarantine_for_freed_debug_blocks
      deprecated 'set quarantine=N: freed debug blocks wait there';
  teUTF8_BOM, teUTF16LE, teUTF16LE_BOM: LaneMM_writes_UTF_8_without_a_byte_order_mark
      deprecated 'LaneMM writes UTF-8 without a byte order mark';
  CFastMM_SmallBlockArenaCount, CFastMM_MediumBlockArenaCount, CFastMM_LargeBlockArenaCount:
      LaneMM_has_thread_heaps_instead_of_arenas
      deprecated 'LaneMM has thread heaps instead of arenas';
  FastMM_AllocateTopDown: LaneMM_cannot_allocate_top_down__remove_this
      deprecated 'LaneMM cannot allocate top down: remove this';
  FastMM_SmallBlockThreadContentionCount, FastMM_MediumBlockThreadContentionCount,
    FastMM_LargeBlockThreadContentionCount: Use_LaneMM_HeapStatus_Contended_for_all_sizes
      deprecated 'use LaneMM_HeapStatus.Contended, the count for all sizes';
  FastMM_LogFileEntryHeader, FastMM_CannotInstallAfterDefaultMemoryManagerHasBeenUsedMessage,
    FastMM_CannotSwitchToSharedMemoryManagerWithLivePointersMessage,
    FastMM_AnotherMemoryManagerAlreadyInstalledMessage, FastMM_MemoryLeakDetailMessage_NormalBlock,
    FastMM_MemoryLeakDetailMessage_DebugBlock, FastMM_MemoryLeakSummaryMessage_LeakDetailNotLogged,
    FastMM_MemoryLeakSummaryMessage_LeakDetailLoggedToEventLog, FastMM_DebugBlockDoubleFree,
    FastMM_DebugBlockReallocOfFreedBlock, FastMM_BlockModifiedAfterFreeMessage,
    FastMM_BlockHeaderCorruptedMessage, FastMM_BlockFooterCorruptedMessage_AllocatedBlock,
    FastMM_BlockFooterCorruptedMessage_FreedBlock, FastMM_VirtualMethodCallOnFreedObjectMessage,
    FastMM_LogStateToFileTemplate, FastMM_LogStateToFileTemplate_UsageDetail:
      Use_LaneMM_SetMessage_its_texts_have_named_fields
      deprecated 'use LaneMM_SetMessage, whose texts have named fields';
  FastMM_CannotSwitchMemoryManagerMessageBoxCaption, FastMM_MemoryLeakMessageBoxCaption,
    FastMM_MemoryCorruptionMessageBoxCaption,
    FastMM_VirtualMethodCallOnFreedObjectMessageBoxCaption:
      LaneMM_shows_no_message_boxes__remove_this
      deprecated 'LaneMM shows no message boxes: remove this';

implementation

uses
  LaneMM.SettingsState, LaneMM.Errors, LaneMM.Compat.Usage, LaneMM.Compat.Options;

// ---------------------------------------------------------------------------- blocks

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

function FastMM_DebugGetMem(Size: NativeInt): Pointer;
begin
  Result := LaneMM_DebugGetMem(Size);
end;

function FastMM_DebugFreeMem(P: Pointer): Integer;
begin
  FreeMem(P);
  Result := 0;
end;

function FastMM_DebugReallocMem(P: Pointer; NewSize: NativeInt): Pointer;
begin
  Result := LaneMM_DebugReallocMem(P, NewSize);
end;

function FastMM_DebugAllocMem(Size: NativeInt): Pointer;
begin
  Result := LaneMM_DebugAllocMem(Size);
end;

function FastMM_BlockCurrentUserBytes(P: Pointer): NativeInt;
var
  Info: TLaneMM_BlockInfo;
begin
  Result := 0;
  if LaneMM_BlockInfo(P, Info) then
    Result := Info.UsableSize;
end;

function FastMM_BlockMaximumUserBytes(P: Pointer): NativeInt;
begin
  Result := FastMM_BlockCurrentUserBytes(P);
end;

function FastMM_ProcessAllPendingFrees: Boolean;
begin
  LaneMM_Trim;
  Result := True;
end;

// ---------------------------------------------------------------------------- suppressions

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

function FastMM_GetRegisteredMemoryLeaks: TFastMM_RegisteredMemoryLeaks;
begin
  Result := RegisteredLeaks;
end;

// ---------------------------------------------------------------------------- walks, checks

function FastMM_WalkBlocks(CallBack: TFastMM_WalkBlocksCallback;
  WalkBlockTypes: TFastMM_WalkBlocksBlockTypes; WalkUsedBlocksOnly: Boolean; UserData: Pointer;
  LockTimeoutMilliseconds, MinimumAllocationGroup, MaximumAllocationGroup: Cardinal): Boolean;
begin
  BlocksWalk(CallBack, WalkBlockTypes, WalkUsedBlocksOnly, UserData, MinimumAllocationGroup,
    MaximumAllocationGroup);
  Result := True;
end;

function FastMM_DetectStringData(P: Pointer; AvailableSpace: NativeInt): TFastMM_StringDataType;
var
  Info: TLaneMM_BlockInfo;
begin
  Result := sdtNotAString;
  if AvailableSpace <= 0 then
    Exit;
  FillChar(Info, SizeOf(Info), 0);
  Info.Address := P;
  Info.UsableSize := AvailableSpace;
  case LaneMM_DetectContents(Info).Kind of
    coAnsiString: Result := sdtAnsiString;
    coUnicodeString: Result := sdtUnicodeString;
  end;
end;

function FastMM_DetectClassInstance(P: Pointer): TClass;
begin
  Result := LaneMM_DetectClass(P);
end;

function FastMM_ScanDebugBlocksForCorruption(LockTimeoutMilliseconds: Cardinal): Boolean;
begin
  if LaneMM_CheckHeap > 0 then
    ErrorInvalidPointer;
  Result := True;
end;

// ---------------------------------------------------------------------------- state

function FastMM_GetCurrentMemoryUsage: NativeUInt;
begin
  Result := LaneMM_HeapStatus.CommittedBytes;
end;

function FastMM_GetHeapStatus(LockTimeoutMilliseconds: Cardinal): THeapStatus;
begin
  Result := GetHeapStatus;
end;

function FastMM_GetUsageSummary(LockTimeoutMilliseconds: Cardinal): TFastMM_UsageSummary;
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

procedure FastMM_GetMemoryManagerState(var State: TFastMM_MemoryManagerState;
  LockTimeoutMilliseconds: Cardinal);
var
  Medium, Large: TTierState;
begin
  State.SmallBlockTypeCount := ReadStates(State.SmallBlockTypeStates, Medium, Large);
  State.AllocatedMediumBlockCount := Medium.Count;
  State.TotalAllocatedMediumBlockSize := Medium.Bytes;
  State.ReservedMediumBlockAddressSpace := Medium.Reserved;
  State.AllocatedLargeBlockCount := Large.Count;
  State.TotalAllocatedLargeBlockSize := Large.Bytes;
  State.ReservedLargeBlockAddressSpace := Large.Reserved;
end;

procedure FastMM_GetMemoryMap(var MemoryMap: TMemoryMap; LockTimeoutMilliseconds: Cardinal);
begin
  ReadMap(MemoryMap);
end;

function FastMM_LogStateToFile(FileName, AdditionalDetails: PWideChar; TruncateFile: Boolean;
  SortOrder: TFastMM_LogStateToFile_SortOrder; LockTimeoutMilliseconds,
  AddUsageInAllocationGroupsFrom, AddUsageInAllocationGroupsUpTo,
  SubtractUsageInAllocationGroupsFrom, SubtractUsageInAllocationGroupsUpTo: Cardinal): Boolean;
const
  Orders: array[TFastMM_LogStateToFile_SortOrder] of TUsageOrder = (uoBytes, uoName);
var
  Request: TUsageRequest;
begin
  Request.Details := UnicodeString(AdditionalDetails);
  Request.IsAppended := not TruncateFile;
  Request.Order := Orders[SortOrder];
  Request.AddFrom := AddUsageInAllocationGroupsFrom;
  Request.AddUpTo := AddUsageInAllocationGroupsUpTo;
  Request.SubtractFrom := SubtractUsageInAllocationGroupsFrom;
  Request.SubtractUpTo := SubtractUsageInAllocationGroupsUpTo;
  Result := UsageWrite(UnicodeString(FileName), Request);
end;

function FastMM_GetInstallationState: TFastMM_MemoryManagerInstallationState;
begin
  if LaneMM_IsInstalled then
    Result := mmisInstalled
  else if IsMemoryManagerSet then
    Result := mmisOtherThirdPartyMemoryManagerInstalled
  else
    Result := mmisDefaultMemoryManagerInUse;
end;

// ---------------------------------------------------------------------------- configuration

procedure FastMM_EnterMinimumAddressAlignment(Alignment: TFastMM_MinimumAddressAlignment);
begin
  if Alignment <> maa8Bytes then
    LaneMM_EnterAlignment(8 shl Ord(Alignment));
end;

procedure FastMM_ExitMinimumAddressAlignment(Alignment: TFastMM_MinimumAddressAlignment);
begin
  LaneMM_ExitAlignment(8 shl Ord(Alignment));
end;

function FastMM_GetCurrentMinimumAddressAlignment: TFastMM_MinimumAddressAlignment;
begin
  Result := TFastMM_MinimumAddressAlignment(1 + LaneMM_Alignment shr 5);
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

function FastMM_EnterDebugMode: Boolean;
begin
  LaneMM_EnterDebugMode;
  Result := LaneMM_IsInstalled;
end;

function FastMM_ExitDebugMode: Boolean;
begin
  Result := LaneMM_ExitDebugMode and LaneMM_IsInstalled;
end;

function FastMM_DebugModeActive: Boolean;
begin
  Result := LaneMM_DebugModeActive;
end;

function FastMM_BeginEraseAllocatedBlockContent: Boolean;
begin
  Result := ErasingBegin(erNew);
end;

function FastMM_EndEraseAllocatedBlockContent: Boolean;
begin
  Result := ErasingEnd(erNew);
end;

function FastMM_EraseAllocatedBlockContentActive: Boolean;
begin
  Result := ErasingIsOn(erNew);
end;

function FastMM_BeginEraseFreedBlockContent: Boolean;
begin
  Result := ErasingBegin(erFree);
end;

function FastMM_EndEraseFreedBlockContent: Boolean;
begin
  Result := ErasingEnd(erFree);
end;

function FastMM_EraseFreedBlockContentActive: Boolean;
begin
  Result := ErasingIsOn(erFree);
end;

function FastMM_GetDebugModeStackTraceEntryCount: Byte;
begin
  Result := FrameLimit;
end;

procedure FastMM_SetDebugModeStackTraceEntryCount(StackTraceEntryCount: Byte);
begin
  SetNumber('depth=', StackTraceEntryCount + Ord(StackTraceEntryCount = 0));
end;

procedure FastMM_NoOpGetStackTrace(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
begin
  FillChar(ReturnAddresses^, MaxDepth * SizeOf(NativeUInt), 0);
end;

function FastMM_NoOpConvertStackTraceToText(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal;
  BufferPosition, BufferEnd: PWideChar): PWideChar;
begin
  Result := BufferPosition;
end;

procedure FastMM_SetDefaultEventLogFilename;
begin
  LaneMM_SetEventLogPath(nil);
end;

function FastMM_SetEventLogFilename(FileName: PWideChar): Boolean;
begin
  Result := LaneMM_SetEventLogPath(PAnsiChar(UTF8Encode(UnicodeString(FileName))));
end;

function FastMM_GetEventLogFilename: PWideChar;
begin
  Result := EventLogName;
end;

function FastMM_DeleteEventLogFile: Boolean;
begin
  Result := LaneMM_DeleteEventLog;
end;

// ---------------------------------------------------------------------------- variables

{$I LaneMM.Compat.Properties.inc}

procedure SetCurrentAllocationGroup(Group: Cardinal);
begin
  LaneMM_SetGroup(Group);
end;

function GetLastAllocationNumber: Cardinal;
begin
  Result := LaneMM_LastAllocationNumber;
end;

function GetDebugBreakAllocationNumber: Cardinal;
begin
  Result := LaneMM_Settings.Values[opBreak];
end;

procedure SetDebugBreakAllocationNumber(Number: Cardinal);
begin
  SetNumber('break=', Number);
end;

function GetOutputDebugStringEvents: TFastMM_MemoryManagerEventTypeSet;
begin
  Result := EventsTo(etScreen);
end;

procedure SetOutputDebugStringEvents(Events: TFastMM_MemoryManagerEventTypeSet);
begin
  SetEventsTo(etScreen, Events);
end;

function GetLogToFileEvents: TFastMM_MemoryManagerEventTypeSet;
begin
  Result := EventsTo(etFile);
end;

procedure SetLogToFileEvents(Events: TFastMM_MemoryManagerEventTypeSet);
begin
  SetEventsTo(etFile, Events);
end;

function GetGetStackTrace: TFastMM_GetStackTrace;
begin
  Result := StackTraceHandler;
end;

procedure SetGetStackTrace(Handler: TFastMM_GetStackTrace);
begin
  SetStackTraceHandler(Handler);
end;

function GetConvertStackTraceToText: TFastMM_ConvertStackTraceToText;
begin
  Result := StackTextHandler;
end;

procedure SetConvertStackTraceToText(Handler: TFastMM_ConvertStackTraceToText);
begin
  SetStackTextHandler(Handler);
end;

end.
