/// LaneMM, the memory manager: use it first in the program, or compile with -FaLaneMM.
//
// Owns:       the installed TMemoryManager. It stays installed for ever: blocks outlive every
//             finalization.
// Callers:    any thread.
unit LaneMM;

{$I LaneMM.inc}

interface


uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Stats, LaneMM.ReportState, LaneMM.SettingsState,
  LaneMM.Groups, LaneMM.Leaks;


type
  /// Blocks of one tier, see LaneMM.Stats.
  TLaneMM_TierStatus = TTierStatus;
  /// The state of the whole process, see LaneMM.Stats.
  TLaneMM_HeapStatus = TStatus;
  /// Kinds of operating system calls, the index of TLaneMM_HeapStatus.OsCalls.
  TLaneMM_OsCall = TOsCall;
  /// What can be set at run time, the index of TLaneMM_Settings.Values.
  TLaneMM_Option = TOption;
  /// The settings, see LaneMM.Settings.
  TLaneMM_Settings = TSettings;
  /// Kinds of events, see LaneMM.EventRules.
  TLaneMM_EventKind = TEventKind;
  /// Is told of events.
  TLaneMM_EventCall = TEventCall;
  /// What is known of a block.
  TLaneMM_BlockInfo = TBlockInfo;
  /// Blocks of a group in use.
  TLaneMM_GroupStatus = TGroupStatus;
  /// Looks at one block.
  TLaneMM_BlockVisitor = TBlockVisitor;

  /// What was in use at one moment, see LaneMM.Leaks.
  TLaneMM_Snapshot = PSnapshot;

const
  // The values of the enumerations above, so that a program names this unit alone.

  /// Settings: the index of TLaneMM_Settings.Values.
  opOff = LaneMM.SettingsState.opOff;
  opHelp = LaneMM.SettingsState.opHelp;
  opContention = LaneMM.SettingsState.opContention;
  opGrowth = LaneMM.SettingsState.opGrowth;
  opProfile = LaneMM.SettingsState.opProfile;
  opPprof = LaneMM.SettingsState.opPprof;
  opFolded = LaneMM.SettingsState.opFolded;
  opSpeedscope = LaneMM.SettingsState.opSpeedscope;
  opHtml = LaneMM.SettingsState.opHtml;
  opTop = LaneMM.SettingsState.opTop;
  opLeast = LaneMM.SettingsState.opLeast;
  opRate = LaneMM.SettingsState.opRate;
  opSignal = LaneMM.SettingsState.opSignal;
  opHuge = LaneMM.SettingsState.opHuge;
  opLog = LaneMM.SettingsState.opLog;
  opEvent = LaneMM.SettingsState.opEvent;
  opLeaks = LaneMM.SettingsState.opLeaks;
  opLeaksExit = LaneMM.SettingsState.opLeaksExit;
  opLeaksFormat = LaneMM.SettingsState.opLeaksFormat;
  opLeaksIgnore = LaneMM.SettingsState.opLeaksIgnore;
  opDebug = LaneMM.SettingsState.opDebug;
  opCheck = LaneMM.SettingsState.opCheck;
  opQuarantine = LaneMM.SettingsState.opQuarantine;
  opFill = LaneMM.SettingsState.opFill;
  opFreeFill = LaneMM.SettingsState.opFreeFill;
  opErase = LaneMM.SettingsState.opErase;
  opGuard = LaneMM.SettingsState.opGuard;
  opBreak = LaneMM.SettingsState.opBreak;
  opLimit = LaneMM.SettingsState.opLimit;
  opLimitSoft = LaneMM.SettingsState.opLimitSoft;
  opReserve = LaneMM.SettingsState.opReserve;
  opTrace = LaneMM.SettingsState.opTrace;
  opTraceSize = LaneMM.SettingsState.opTraceSize;
  opTraceNumber = LaneMM.SettingsState.opTraceNumber;
  opTraceGroup = LaneMM.SettingsState.opTraceGroup;
  opTraceClass = LaneMM.SettingsState.opTraceClass;
  opTraceMost = LaneMM.SettingsState.opTraceMost;
  opMixes = LaneMM.SettingsState.opMixes;

  /// Kinds of events.
  evLeaks = LaneMM.ReportState.evLeaks;
  evDoubleFree = LaneMM.ReportState.evDoubleFree;
  evInvalidFree = LaneMM.ReportState.evInvalidFree;
  evWriteBefore = LaneMM.ReportState.evWriteBefore;
  evWriteAfter = LaneMM.ReportState.evWriteAfter;
  evWriteAfterFree = LaneMM.ReportState.evWriteAfterFree;
  evFreedCall = LaneMM.ReportState.evFreedCall;
  evWrongSize = LaneMM.ReportState.evWrongSize;
  evUninitialised = LaneMM.ReportState.evUninitialised;
  evGuard = LaneMM.ReportState.evGuard;
  evBookkeeping = LaneMM.ReportState.evBookkeeping;
  evNumber = LaneMM.ReportState.evNumber;
  evMismatch = LaneMM.ReportState.evMismatch;
  evAllocation = LaneMM.ReportState.evAllocation;
  evFree = LaneMM.ReportState.evFree;
  evLimit = LaneMM.ReportState.evLimit;

  /// Kinds of operating system calls.
  ocReserve = LaneMM.Layout.ocReserve;
  ocRelease = LaneMM.Layout.ocRelease;
  ocCommit = LaneMM.Layout.ocCommit;
  ocHuge = LaneMM.Layout.ocHuge;
  ocPurge = LaneMM.Layout.ocPurge;
  ocMove = LaneMM.Layout.ocMove;
  ocWait = LaneMM.Layout.ocWait;
  ocWake = LaneMM.Layout.ocWake;
  ocClock = LaneMM.Layout.ocClock;

/// Sums up the process; exact while no other thread allocates or frees. Any thread.
function LaneMM_HeapStatus: TLaneMM_HeapStatus;
/// The settings as they are now.
function LaneMM_Settings: TLaneMM_Settings;
/// Changes settings: words and key=value, with commas between, as in the environment variable
/// LANEMM; WORD=0 takes a word back. False, and a line on the standard error output, when one is
/// unknown; the others count. Any thread, any time.
function LaneMM_Configure(const Words: ShortString): Boolean;
/// Sets the most bytes that the heap may hold, 0 for any: what goes beyond is out of memory. The
/// setting `limit` does the same. What it holds is LaneMM_HeapStatus.CommittedBytes. Any thread.
procedure LaneMM_SetMemoryLimit(Bytes: NativeUInt);
/// Sets how many bytes of the heap are reported, once each time that it grows beyond them, 0 for
/// none: the setting `limit:soft`.
procedure LaneMM_SetSoftMemoryLimit(Bytes: NativeUInt);
/// Keeps as many bytes back until memory runs out, 0 for none: the setting `reserve`.
procedure LaneMM_SetReserve(Bytes: NativeUInt);
/// Whether the reserve is there; False while it is in use, or when there is none.
function LaneMM_HasReserve: Boolean;
/// Writes now what contention and growth have counted so far. Any thread. False when no file
/// could be written: then the standard error output got it.
function LaneMM_WriteEventLog: Boolean;
/// From now on new blocks are debug blocks: they find wrong frees and writes outside of blocks.
/// Calls nest. The setting `debug` does the same for the whole program. Any thread, any time.
procedure LaneMM_EnterDebugMode;
/// Ends what one call of LaneMM_EnterDebugMode began; debug blocks stay what they are. False when
/// there was none.
function LaneMM_ExitDebugMode: Boolean;
/// Looks at all debug blocks and reports what is wrong. Returns how many blocks are damaged. Any
/// thread, also while others run.
function LaneMM_CheckHeap: NativeUInt;
/// The same for the debug block at P, or around it. False when it is damaged.
function LaneMM_CheckBlock(P: Pointer): Boolean;
/// Tells what is known of the block in use that holds P, any pointer; False when there is none.
function LaneMM_BlockInfo(P: Pointer; out Info: TLaneMM_BlockInfo): Boolean;
/// Puts the next debug blocks of this thread into a group, a number that the program chooses, 0 for
/// none; returns the group before, for the end of a scope.
function LaneMM_SetGroup(Group: Cardinal): Cardinal;
/// The same as a scope: until LaneMM_EndGroup. Scopes of a thread nest, 1,024 deep.
function LaneMM_BeginGroup(Group: Cardinal): Boolean;
/// Ends it: back to the group before. False when no scope is open.
function LaneMM_EndGroup: Boolean;
/// The group of the next debug blocks of this thread.
function LaneMM_CurrentGroup: Cardinal;
/// Gives a group a name for reports, of at most 55 characters, which is copied. False when 255 have
/// one. One thread at a time.
function LaneMM_SetGroupName(Group: Cardinal; Name: PAnsiChar): Boolean;
/// Sums up the debug blocks of a group that are in use, by a walk. Any thread.
function LaneMM_GroupStatus(Group: Cardinal): TLaneMM_GroupStatus;
/// Calls Visitor for each block in use, by address; of debug blocks it is told number, thread,
/// stack and group. Any thread; what others do meanwhile may be seen or not. What was visited stays
/// readable until the end, also a block with guard pages that another thread frees.
procedure LaneMM_WalkBlocks(Visitor: TLaneMM_BlockVisitor; Context: Pointer);
/// Has Call told of each event whose rule names `callback`, in the thread that has caused or found
/// it; nil takes it back. Call may use the heap, but not while a fault is reported, or damage when
/// a signal ends the program.
procedure LaneMM_OnEvent(Call: TLaneMM_EventCall);
/// Replaces the text of the message with this name, see LaneMM.Messages; nil restores ours. Texts
/// are copied, and ended by #0. False when there is no such message. One thread at a time.
function LaneMM_SetMessage(Name, NewText: PAnsiChar): Boolean;
/// Sets `leaks`: what was not freed is reported at the end of the program.
procedure LaneMM_ReportMemoryLeaksOnShutdown;
/// Reports what is in use now, as at the end. Returns the number of blocks. Any thread.
function LaneMM_ReportMemoryInUse: NativeUInt;
/// The same for the blocks of the groups First to Last alone.
function LaneMM_ReportGroupsInUse(First, Last: Cardinal): NativeUInt;
/// Expects the block that P lies in at the end: it is no leak. False when there is no room to note
/// it. Any thread, as all that follow.
function LaneMM_RegisterExpectedMemoryLeak(P: Pointer): Boolean;
/// Takes that back. False when it was not registered.
function LaneMM_UnregisterExpectedMemoryLeak(P: Pointer): Boolean;
/// Expects Count more objects of just this class.
function LaneMM_RegisterExpectedLeakOfClass(AnyClass: TClass; Count: NativeUInt): Boolean;
/// Takes that back, of Count objects.
function LaneMM_UnregisterExpectedLeakOfClass(AnyClass: TClass; Count: NativeUInt): Boolean;
/// Expects Count more blocks of Size bytes. Without debug mode, where the size that was asked for
/// is not known, of those bytes that a block of Size gets.
function LaneMM_RegisterExpectedLeakOfSize(Size, Count: NativeUInt): Boolean;
/// Takes that back, of Count blocks.
function LaneMM_UnregisterExpectedLeakOfSize(Size, Count: NativeUInt): Boolean;
/// Takes note of what is in use now; nil without memory. The caller owns it.
function LaneMM_TakeSnapshot: TLaneMM_Snapshot;
/// Reports what is in use at Later beyond what was at Earlier. Returns the bytes of the kinds that
/// grew.
function LaneMM_CompareSnapshots(Earlier, Later: TLaneMM_Snapshot): NativeUInt;
/// Frees a snapshot; nil is allowed.
procedure LaneMM_FreeSnapshot(Snapshot: TLaneMM_Snapshot);
/// Gives all memory that is not in use back to the system, of all threads, now. Any thread.
procedure LaneMM_Trim;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Purge, LaneMM.Walk, LaneMM.Engine, LaneMM.Messages,
  LaneMM.Settings, LaneMM.Unwind, LaneMM.EventLog, LaneMM.DebugState, LaneMM.Debug,
  LaneMM.GuardPages, LaneMM.Suppressions, LaneMM.Watch;

function LaneMM_HeapStatus: TLaneMM_HeapStatus;
begin
  StatusRead(Result);
end;

function LaneMM_Settings: TLaneMM_Settings;
begin
  Result := Settings;
end;

function LaneMM_Configure(const Words: ShortString): Boolean;
begin
  Result := SettingsChange(Words);
  if Process.IsStarted then
    WatchApply;
end;

procedure SetNumber(Option: TOption; Value: NativeUInt);
begin
  Settings.Values[Option] := Value;
  if Process.IsStarted then
    WatchApply;
end;

procedure LaneMM_SetMemoryLimit(Bytes: NativeUInt);
begin
  SetNumber(opLimit, Bytes);
end;

procedure LaneMM_SetSoftMemoryLimit(Bytes: NativeUInt);
begin
  SetNumber(opLimitSoft, Bytes);
end;

procedure LaneMM_SetReserve(Bytes: NativeUInt);
begin
  SetNumber(opReserve, Bytes);
end;

function LaneMM_HasReserve: Boolean;
begin
  Result := LoadAcquire(Process.Reserve) <> 0;
end;

function LaneMM_WriteEventLog: Boolean;
begin
  Result := EventLogWrite;
end;

procedure LaneMM_EnterDebugMode;
begin
  FetchAdd(Debug.Depth, 1);
  if Process.IsStarted then
    WatchApply;
end;

function LaneMM_ExitDebugMode: Boolean;
var
  Depth: NativeUInt;
begin
  repeat
    Depth := LoadAcquire(Debug.Depth);
    if Depth = 0 then
      Exit(False);
  until CompareAndSwap(Debug.Depth, Depth, Depth - 1);
  WatchApply;
  Result := True;
end;

function LaneMM_CheckHeap: NativeUInt;
begin
  Result := DebugCheckHeap;
end;

function LaneMM_CheckBlock(P: Pointer): Boolean;
begin
  Result := DebugIsWhole(P);
end;

function LaneMM_BlockInfo(P: Pointer; out Info: TLaneMM_BlockInfo): Boolean;
begin
  GuardPagesHold;
  Result := WalkFind(P, Info);
  GuardPagesLetGo;
end;

function LaneMM_SetGroup(Group: Cardinal): Cardinal;
begin
  Result := GroupSet(Group);
end;

function LaneMM_BeginGroup(Group: Cardinal): Boolean;
begin
  Result := GroupBegin(Group);
end;

function LaneMM_EndGroup: Boolean;
begin
  Result := GroupEnd;
end;

function LaneMM_CurrentGroup: Cardinal;
begin
  Result := GroupCurrent;
end;

function LaneMM_SetGroupName(Group: Cardinal; Name: PAnsiChar): Boolean;
begin
  Result := GroupSetName(Group, Name);
end;

function LaneMM_GroupStatus(Group: Cardinal): TLaneMM_GroupStatus;
begin
  GroupRead(Group, Result);
end;

procedure LaneMM_WalkBlocks(Visitor: TLaneMM_BlockVisitor; Context: Pointer);
begin
  GuardPagesHold;
  WalkBlocks(Visitor, Context);
  GuardPagesLetGo;
end;

procedure LaneMM_OnEvent(Call: TLaneMM_EventCall);
begin
  Report.Call := Call;
end;

function LaneMM_SetMessage(Name, NewText: PAnsiChar): Boolean;
begin
  Result := MessageSet(Name, NewText);
end;

procedure LaneMM_ReportMemoryLeaksOnShutdown;
begin
  Settings.Values[opLeaks] := 1;
end;

function LaneMM_ReportMemoryInUse: NativeUInt;
begin
  Result := LeaksReportInUse(0, High(Cardinal));
end;

function LaneMM_ReportGroupsInUse(First, Last: Cardinal): NativeUInt;
begin
  Result := LeaksReportInUse(First, Last);
end;

function LaneMM_RegisterExpectedMemoryLeak(P: Pointer): Boolean;
begin
  Result := SuppressionAdd(suBlock, NativeUInt(P), 1);
end;

function LaneMM_UnregisterExpectedMemoryLeak(P: Pointer): Boolean;
begin
  Result := SuppressionRemove(suBlock, NativeUInt(P), 1);
end;

function LaneMM_RegisterExpectedLeakOfClass(AnyClass: TClass; Count: NativeUInt): Boolean;
begin
  Result := SuppressionAdd(suClass, NativeUInt(AnyClass), Count);
end;

function LaneMM_UnregisterExpectedLeakOfClass(AnyClass: TClass; Count: NativeUInt): Boolean;
begin
  Result := SuppressionRemove(suClass, NativeUInt(AnyClass), Count);
end;

function LaneMM_RegisterExpectedLeakOfSize(Size, Count: NativeUInt): Boolean;
begin
  Result := SuppressionAdd(suSize, Size, Count);
end;

function LaneMM_UnregisterExpectedLeakOfSize(Size, Count: NativeUInt): Boolean;
begin
  Result := SuppressionRemove(suSize, Size, Count);
end;

function LaneMM_TakeSnapshot: TLaneMM_Snapshot;
begin
  Result := SnapshotTake;
end;

function LaneMM_CompareSnapshots(Earlier, Later: TLaneMM_Snapshot): NativeUInt;
begin
  Result := SnapshotCompare(Earlier, Later);
end;

procedure LaneMM_FreeSnapshot(Snapshot: TLaneMM_Snapshot);
begin
  SnapshotFree(Snapshot);
end;

procedure LaneMM_Trim;
begin
  ProcessTrim;
end;

procedure Install;
begin
  SettingsStart;
  // Without memory, or with the setting `off`, the previous manager stays.
  if IsSet(opOff) or not EngineStart then
    Exit;
  EngineInstall;
  UnwindStart;
  WatchApply;
end;

initialization
  Install;
finalization
  WatchEnd;
  LeaksEnd;
  if IsLibrary and Process.IsStarted then
    EngineStop;
end.
