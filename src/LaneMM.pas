/// LaneMM, the memory manager: name it first in the program's `uses`, or compile with -FaLaneMM.
//
// Owns:       the installed TMemoryManager. It stays installed after every finalization, since
//             blocks outlive it.
// Callers:    any thread, unless a routine says otherwise. Sizes are bytes.
unit LaneMM;

{$define LANEMM_DOOR} // it lies above the rooms
{$I LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Hooks, LaneMM.Stats, LaneMM.ReportState, LaneMM.SettingsState,
  LaneMM.StacksState, LaneMM.ObserveState, LaneMM.Counting, LaneMM.CountedPlaces,
  LaneMM.HeapReport, LaneMM.Groups, LaneMM.Contents, LaneMM.Snapshot, LaneMM.Suppressions,
  LaneMM.LeaksSince, LaneMM.Version, LaneMM.ClassStates, LaneMM.RegionCalls;

type
  /// Counts and bytes of one tier of blocks, see LaneMM.Stats.
  TLaneMM_TierStatus = TTierStatus;
  /// The state of the heap of the whole process, see LaneMM.Stats.
  TLaneMM_HeapStatus = TStatus;
  /// A kind of operating system calls, the index of TLaneMM_HeapStatus.OsCalls.
  TLaneMM_OsCall = TOsCall;
  /// A setting, the index of TLaneMM_Settings.Values. docs/options.md describes each by its name:
  /// opLeaksExit is `leaks:exit`.
  TLaneMM_Option = TOption;
  /// The values of all settings, see LaneMM.SettingsState.
  TLaneMM_Settings = TSettings;
  /// A kind of events, see LaneMM.ReportState.
  TLaneMM_EventKind = TEventKind;
  /// Receives the report of an event: its kind, and Length bytes of UTF-8 text, valid during the
  /// call.
  TLaneMM_EventCall = TEventCall;
  /// Asks the program to free memory: the container has Used bytes of Limit; Limit 0: it has no
  /// limit, and its tasks wait. Context is that of LaneMM_OnPressure.
  TLaneMM_PressureCall = TPressureCall;
  /// The description of a block in use, see LaneMM.Hooks.
  TLaneMM_BlockInfo = TBlockInfo;
  /// Number and requested bytes of the debug blocks of a group that are in use.
  TLaneMM_GroupStatus = TGroupStatus;
  /// Receives one block in use. Context is the caller's.
  TLaneMM_BlockVisitor = TBlockVisitor;
  /// The blocks of one size class, see LaneMM.Stats.
  TLaneMM_ClassStatus = TClassStatus;
  /// The blocks of all size classes, from the smallest block size.
  TLaneMM_ClassStatuses = TClassStatuses;
  /// The state of one size class, see LaneMM.ClassStates.
  TLaneMM_ClassState = TClassState;
  /// The state of the heap by size class, see LaneMM.ClassStates.
  TLaneMM_State = THeapState;
  /// A span, or a large block, see LaneMM.Stats.
  TLaneMM_SpanInfo = TSpanInfo;
  /// Receives one span. Context is the caller's.
  TLaneMM_SpanVisitor = TSpanInfoVisitor;
  /// The kind of a span, see LaneMM.Layout. LaneMM_WalkSpans visits spans of blocks (skBlocks), of
  /// a large block (skLarge), and of debug blocks (skDebug).
  TLaneMM_SpanKind = TSpanKind;
  /// A kind of contents, see LaneMM.Contents.
  TLaneMM_ContentsKind = TContentsKind;
  /// What a block contains, see LaneMM.Contents.
  TLaneMM_Contents = TContents;
  /// A registered suppression, see LaneMM.Suppressions.
  TLaneMM_SuppressionInfo = TSuppressionInfo;
  /// Receives one suppression. Context is the caller's.
  TLaneMM_SuppressionVisitor = TSuppressionVisitor;
  /// A target of reports, see LaneMM.ReportState.
  TLaneMM_EventTarget = TEventTarget;
  /// A set of targets.
  TLaneMM_EventTargets = TEventTargets;
  /// Writes the return addresses of its callers, at most Limit, innermost first; returns their
  /// number. Runs inside of GetMem and FreeMem, see LaneMM_OnTakeStack.
  TLaneMM_FramesCall = TFramesCall;
  /// Writes return addresses as text to Buffer, see LaneMM.StacksState. Runs in reports: it uses no
  /// heap.
  TLaneMM_FramesTextCall = TFramesTextCall;
  /// A report of the sampled heap.
  TLaneMM_HeapReport = THeapReport;
  /// A snapshot of the blocks in use: their number and bytes by kind, class and size. The caller
  /// owns it until LaneMM_FreeSnapshot.
  TLaneMM_Snapshot = PSnapshot;

const
  /// The version of LaneMM, for example `1.0.0` or, of a candidate, `1.0.0-rc1`.
  LaneMM_Version = ThisVersion;

  {$I LaneMM.Constants.inc}

/// Returns the state of the heap by a walk, exact while no other thread changes it. Any thread.
function LaneMM_HeapStatus: TLaneMM_HeapStatus;
/// Returns the current settings. Any thread.
function LaneMM_Settings: TLaneMM_Settings;
/// Changes settings: NAME or NAME=VALUE, with commas between, as in the environment variable
/// LANEMM. NAME=0 clears a setting. Takes effect at once, except for settings that are read at
/// start only. Any thread. Returns False, and prints one line to stderr, for an unknown name or a
/// wrong value; the rest still apply. In the handler of a signal that has interrupted such a change
/// it changes nothing, and returns False.
function LaneMM_Configure(const Words: ShortString): Boolean;
/// Sets the hard limit: the most bytes that the heap may hold, rounded down to 64 KB but not to 0;
/// 0 means no limit. The bytes that it holds are LaneMM_HeapStatus.CommittedBytes. An allocation
/// beyond the limit, after free memory was purged, reports the event evLimit and fails as out of
/// memory: run-time error 203, or nil with ReturnNilIfGrowHeapFails. A limit below the bytes that
/// the heap holds stops its growth. The same as the setting `limit`. Any thread, one at a time.
procedure LaneMM_SetMemoryLimit(Bytes: NativeUInt);
/// Sets the soft limit, rounded as the hard one; 0 means none. When the heap holds more bytes,
/// after free memory was purged, the event evLimit is reported. Nothing is refused. The same as the
/// setting `limit:soft`. Any thread, one at a time. The events of both limits are reported again
/// only after the heap has held an eighth less.
procedure LaneMM_SetSoftMemoryLimit(Bytes: NativeUInt);
/// Sets the size of the emergency reserve, rounded up to 64 KB; 0 means none. The reserve counts as
/// held by the heap. When memory runs out, it becomes available to all threads and the event
/// evLimit is reported; it is filled again when twice its size is free. The same as the setting
/// `reserve`. Any thread, one at a time.
procedure LaneMM_SetReserve(Bytes: NativeUInt);
/// Returns whether the emergency reserve is full; False if it is in use, or none. Any thread.
function LaneMM_HasReserve: Boolean;
/// Writes the counts of `contention` and `growth` so far to the event log. Does nothing when there
/// are none. Returns False when no file could be written; the log then goes to stderr. Any thread.
function LaneMM_WriteEventLog: Boolean;
/// Writes the profiles, like the end of the program, with the next number in their names. Returns
/// False when a file could not be written. Any thread.
function LaneMM_WriteProfiles: Boolean;
/// Adds a report of the sampled heap to the event log: which call sites and classes have most of
/// what Report names. Returns False when no file could be written; the report then goes to stderr;
/// or when nothing was sampled. Any thread.
function LaneMM_WriteHeapReport(Report: TLaneMM_HeapReport): Boolean;
/// Enters debug mode for all threads: new blocks become debug blocks, which detect double and
/// invalid frees, overruns, underruns and uses after free. Calls nest. Without memory for it, debug
/// mode stays off. The same as the setting `debug`. Any thread, at any time.
procedure LaneMM_EnterDebugMode;
/// Takes back one call of LaneMM_EnterDebugMode; existing debug blocks keep their checks. Returns
/// False when there is none to take back. Any thread, at any time.
function LaneMM_ExitDebugMode: Boolean;
/// Returns True while new blocks are debug blocks: debug mode is on, by the setting or by
/// LaneMM_EnterDebugMode, and no other memory manager is installed. Any thread.
function LaneMM_DebugModeActive: Boolean;
/// Returns True while LaneMM is the memory manager of the program; False with the setting `off`, or
/// when another manager was installed later, also one that passes calls on. Any thread.
function LaneMM_IsInstalled: Boolean;
/// Allocates one debug block, whatever the mode. FreeMem frees it; ReallocMem may move it to a
/// normal block outside of debug mode. Without memory for debug mode, a normal block. Any thread.
function LaneMM_DebugGetMem(Size: NativeUInt): Pointer;
/// Allocates one debug block of zeros, as LaneMM_DebugGetMem.
function LaneMM_DebugAllocMem(Size: NativeUInt): Pointer;
/// Moves the contents of P, a block of any kind or nil, to a new debug block of Size bytes, always;
/// frees P if Size is 0. Returns P. Without memory it fails like ReallocMem. Any thread.
function LaneMM_DebugReallocMem(var P: Pointer; Size: NativeUInt): Pointer;
/// Returns the allocation number of the last debug block that the calling thread allocated; 0 if
/// none. Numbers rise within a thread.
function LaneMM_LastAllocationNumber: NativeUInt;
/// Sets the routine that takes backtraces instead of LaneMM's own; nil restores that. It may be
/// called for a moment after it was replaced. Its own calls of the heap and of LaneMM_TakeStack get
/// LaneMM's backtraces; with `contention` it uses no heap. Any thread, one at a time.
procedure LaneMM_OnTakeStack(Call: TLaneMM_FramesCall);
/// Sets the routine that writes backtraces in reports instead of LaneMM's own; nil restores that.
/// As LaneMM_OnTakeStack.
procedure LaneMM_OnStackText(Call: TLaneMM_FramesTextCall);
/// Writes at most Limit return addresses of this thread, innermost first; returns their number.
function LaneMM_TakeStack(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
/// Writes the return addresses of a stored backtrace, such as TLaneMM_BlockInfo.Stack; returns
/// their number, 0 for an unknown one. Any thread.
function LaneMM_ReadStack(Stack: Cardinal; Frames: PNativeUInt; Limit: Cardinal): Cardinal;
/// Writes return addresses to Buffer as reports show them: a line each, with routine and source
/// line where they are known, at most Size bytes; returns the length. Takes time: it reads the
/// debug information. Any thread.
function LaneMM_StackText(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar;
  Size: NativeUInt): NativeUInt;
/// Checks all debug blocks and reports damage, each once. Returns the number of damaged blocks that
/// were not reported before. Any thread, also while others allocate and free.
function LaneMM_CheckHeap: NativeUInt;
/// Checks the debug block that P lies in and reports damage. Returns False when the block is
/// damaged, also if that was reported before; True when P lies in no debug block. Any thread.
function LaneMM_CheckBlock(P: Pointer): Boolean;
/// Describes the block in use whose bytes hold P. P may be any pointer. Returns False when there is
/// no such block. Number, Thread and Stack are known of debug blocks, and with `stacks` of all
/// blocks; Group of debug blocks. Any thread.
function LaneMM_BlockInfo(P: Pointer; out Info: TLaneMM_BlockInfo): Boolean;
/// Puts the next debug blocks of the calling thread into an allocation group, a number that the
/// program chooses; 0 for none. Returns the group before.
function LaneMM_SetGroup(Group: Cardinal): Cardinal;
/// Opens a scope of the calling thread whose debug blocks belong to Group, until LaneMM_EndGroup.
/// Scopes nest. Returns False, and opens none, when 1,024 are open or there is no memory.
function LaneMM_BeginGroup(Group: Cardinal): Boolean;
/// Closes the innermost scope of the calling thread and restores the group before it. Returns False
/// when no scope is open.
function LaneMM_EndGroup: Boolean;
/// Returns the group of the next debug blocks of the calling thread; 0 for none.
function LaneMM_CurrentGroup: Cardinal;
/// Names or renames a group in reports. Copies Name, UTF-8 that ends with #0, up to 55 bytes.
/// Returns False for group 0, when 255 others have a name, or without memory. One thread at a time.
function LaneMM_SetGroupName(Group: Cardinal; Name: PAnsiChar): Boolean;
/// Returns number and requested bytes of the debug blocks of a group that are in use, by a walk
/// over all blocks. Exact while no other thread allocates or frees. Any thread.
function LaneMM_GroupStatus(Group: Cardinal): TLaneMM_GroupStatus;
/// Calls Visitor for each block in use, in the order of addresses, with the same fields as
/// LaneMM_BlockInfo. Blocks that other threads allocate or free meanwhile may be
/// visited or not; the memory of a visited block stays readable until the walk ends, also that of a
/// guarded block that another thread frees. Any thread.
procedure LaneMM_WalkBlocks(Visitor: TLaneMM_BlockVisitor; Context: Pointer);
/// Calls Visitor for each free block of the heap's spans, as LaneMM_WalkBlocks: it was in use
/// before, or is the next to be handed out. Freed debug blocks are none.
procedure LaneMM_WalkFreeBlocks(Visitor: TLaneMM_BlockVisitor; Context: Pointer);
/// Calls Visitor for each span and each large block, in the order of addresses: the map of the
/// heap. Any thread; exact while no other thread allocates or frees.
procedure LaneMM_WalkSpans(Visitor: TLaneMM_SpanVisitor; Context: Pointer);
/// Returns blocks and spans of each size class, by a walk over all spans; large blocks are in
/// LaneMM_HeapStatus. Any thread; exact while no other thread allocates or frees.
procedure LaneMM_ReadClasses(out Statuses: TLaneMM_ClassStatuses);
/// Returns the state of the heap: its sums, and of each size class blocks, bytes, slack, spans,
/// partly used spans and owners, by a walk. Any thread; exact while no other thread allocates or
/// frees. The record is 6 KB long.
function LaneMM_State: TLaneMM_State;
/// Returns the class of the object that P points to, nil if its first word is no class. P points to
/// a readable word. Classes of libraries that were loaded after the last LaneMM_WalkBlocks, or the
/// last report, are unknown. Any thread.
function LaneMM_DetectClass(P: Pointer): TClass;
/// Returns what a block contains, from its bytes: an object, a string, a dynamic array. Classes as
/// for LaneMM_DetectClass; other data may look like a string or an array by chance. Any thread.
function LaneMM_DetectContents(const Info: TLaneMM_BlockInfo): TLaneMM_Contents;
/// Returns the targets of the reports of a kind of events. Any thread.
function LaneMM_EventTargets(Kind: TLaneMM_EventKind): TLaneMM_EventTargets;
/// Sets the targets of the reports of a kind of events, as the setting `event` does. Any thread.
procedure LaneMM_SetEventTargets(Kind: TLaneMM_EventKind; Targets: TLaneMM_EventTargets);
/// Stores the path of the event log, ended by #0 and cut to Size bytes: the file that the next
/// report is appended to, if it can be written. Returns its length, 0 when there is none left.
function LaneMM_EventLogPath(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
/// Sets the file of the event log, or the directory of logs and profiles, as the setting `log`, but
/// for any path of up to 1,023 bytes, in UTF-8, ended by #0; nil or an empty path restores the
/// default. Returns False, and changes nothing, for a longer path. One thread at a time.
function LaneMM_SetEventLogPath(Path: PAnsiChar): Boolean;
/// Deletes the event log; the next report begins a new one. Returns False when there is none, when
/// the file does not begin with a report of LaneMM, or the system refuses. Any thread.
function LaneMM_DeleteEventLog: Boolean;
/// Sets the routine that receives each event whose rule names `callback`; nil removes it. It is
/// called in the thread of the event, not for events of its own, raises no exception, and may use
/// the heap, but not for a fault, or damage that a signal handler detects at the end. Any thread.
procedure LaneMM_OnEvent(Call: TLaneMM_EventCall);
/// Registers Call, a routine that shrinks a cache, to be called once a second while the container
/// is near its limit of memory, or its tasks wait for memory. The purge thread calls it, and holds
/// no lock; Call may take those of the cache and use the heap, and raises no exception. Switches
/// the setting `limit=container` on. Returns False, and calls nothing, in a program without the
/// thread library, in a library, and on Linux but for x86_64, where there is no such thread, or
/// when 16 calls are registered. In a program that has never started a thread, IsMultiThread is
/// False, and Call waits for that. Any thread.
function LaneMM_OnPressure(Call: TLaneMM_PressureCall; Context: Pointer): Boolean;
/// Takes back what LaneMM_OnPressure has registered with the same Call and Context. Waits for a
/// call under way, so the calling thread holds no lock that Call takes; not inside of Call. Returns
/// False when it is not registered. Any thread.
function LaneMM_OffPressure(Call: TLaneMM_PressureCall; Context: Pointer): Boolean;
/// Replaces the text of the message Name, see LaneMM.Messages; nil restores the original. Copies
/// NewText; both end with #0. Returns False when no message has this name, or 1 MB of texts is
/// full. One thread at a time.
function LaneMM_SetMessage(Name, NewText: PAnsiChar): Boolean;
/// Switches on the setting `leaks`: leaks are reported at the end of the program. Any thread.
procedure LaneMM_ReportMemoryLeaksOnShutdown;
/// Reports the blocks in use now, without suppressed ones, as a leak report and in the formats of
/// `leaks:format`. Returns their number; 0 also without memory. Any thread.
function LaneMM_ReportMemoryInUse: NativeUInt;
/// Does the same for the blocks of the allocation groups First to Last alone; normal blocks are in
/// group 0.
function LaneMM_ReportGroupsInUse(First, Last: Cardinal): NativeUInt;
/// Suppresses the leak of the block that P lies in. Returns False when 4,096 suppressions exist, or
/// without memory. Any thread, as for the five routines that follow.
function LaneMM_RegisterExpectedMemoryLeak(P: Pointer): Boolean;
/// Removes such a suppression. Returns False when there is none for P.
function LaneMM_UnregisterExpectedMemoryLeak(P: Pointer): Boolean;
/// Suppresses the leaks of Count more objects of AnyClass, descendants excluded. Returns False as
/// above, or when Count is 0.
function LaneMM_RegisterExpectedLeakOfClass(AnyClass: TClass; Count: NativeUInt): Boolean;
/// Suppresses Count fewer. Returns False, and changes nothing, when fewer are registered.
function LaneMM_UnregisterExpectedLeakOfClass(AnyClass: TClass; Count: NativeUInt): Boolean;
/// Suppresses the leaks of Count more blocks of Size requested bytes. Of normal blocks the
/// requested size is unknown: those with the usable size of such a block count. Returns False as
/// above.
function LaneMM_RegisterExpectedLeakOfSize(Size, Count: NativeUInt): Boolean;
/// Suppresses Count fewer. Returns False, and changes nothing, when fewer are registered.
function LaneMM_UnregisterExpectedLeakOfSize(Size, Count: NativeUInt): Boolean;
/// Calls Visitor for each registered suppression. It may add and remove suppressions. Any thread.
procedure LaneMM_WalkSuppressions(Visitor: TLaneMM_SuppressionVisitor; Context: Pointer);
/// Takes a snapshot of the blocks in use now; nil without memory. The caller owns it until
/// LaneMM_FreeSnapshot. Any thread.
function LaneMM_TakeSnapshot: TLaneMM_Snapshot;
/// Reports the growth from one snapshot to a later one; neither may be nil. Returns the bytes that
/// the groups of blocks grew by; 0 also without memory. Any thread.
function LaneMM_CompareSnapshots(Earlier, Later: TLaneMM_Snapshot): NativeUInt;
/// Frees a snapshot; nil is allowed. Any thread.
procedure LaneMM_FreeSnapshot(Snapshot: TLaneMM_Snapshot);
{$I LaneMM.Regions.inc}
{$I LaneMM.Testing.inc}
{$I LaneMM.Aligned.inc}
/// Purges all free memory of all threads now, but keeps their addresses. Any thread.
procedure LaneMM_Trim;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Walk, LaneMM.Purge, LaneMM.Engine,
  LaneMM.Text, LaneMM.Messages, LaneMM.LogFile, LaneMM.Events, LaneMM.Settings, LaneMM.Unwind,
  LaneMM.Modules, LaneMM.BacktraceTable, LaneMM.BacktraceText, LaneMM.EventLog, LaneMM.Profile,
  LaneMM.DebugState, LaneMM.Debug, LaneMM.DebugThreads, LaneMM.GuardPages, LaneMM.Leaks,
  LaneMM.Watch, LaneMM.SingleBlocks, LaneMM.AlignedBlocks, LaneMM.Mailbox, LaneMM.Pressure;

function LaneMM_HeapStatus: TLaneMM_HeapStatus;
begin
  StatusRead(Result);
end;

function LaneMM_Settings: TLaneMM_Settings;
begin
  Result := Settings;
end;

function LaneMM_Configure(const Words: ShortString): Boolean;
var
  Ended: array[0..High(Byte)] of AnsiChar;
begin
  Move(Words[1], Ended, Length(Words));
  Ended[Length(Words)] := #0;
  Result := WatchChange(@Ended, 'LaneMM_Configure');
end;

procedure SetNumber(Option: TOption; Value: NativeUInt);
begin
  Settings.Values[Option] := Value;
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

function LaneMM_WriteProfiles: Boolean;
begin
  Result := ProfileWrite;
end;

function LaneMM_WriteHeapReport(Report: TLaneMM_HeapReport): Boolean;
begin
  Result := HeapReportWrite(Report);
end;

procedure LaneMM_EnterDebugMode;
begin
  FetchAdd(Debug.Depth, 1);
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
  if not TextHasCall(@Visitor, 'LaneMM_WalkBlocks') then
    Exit;
  if LoadAcquire(Stacks.Modules) <> 0 then
    ModulesLook; // for LaneMM_DetectClass
  GuardPagesHold;
  WalkBlocks(Visitor, Context);
  GuardPagesLetGo;
end;

procedure LaneMM_OnEvent(Call: TLaneMM_EventCall);
begin
  Report.Call := Call;
end;

function LaneMM_OnPressure(Call: TLaneMM_PressureCall; Context: Pointer): Boolean;
begin
  if not TextHasCall(@Call, 'LaneMM_OnPressure') then
    Exit(False);
  Settings.HasContainer := True;
  WatchApply;
  Result := Process.IsStarted and PurgeWake and PressureOn(Call, Context);
end;

function LaneMM_OffPressure(Call: TLaneMM_PressureCall; Context: Pointer): Boolean;
begin
  Result := PressureOff(Call, Context);
end;

function LaneMM_SetMessage(Name, NewText: PAnsiChar): Boolean;
begin
  Result := MessageSet(Name, NewText);
end;

procedure LaneMM_ReportMemoryLeaksOnShutdown;
begin
  SetNumber(opLeaks, 1);
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

function LaneMM_DebugModeActive: Boolean;
begin
  Result := WatchDebugIsActive;
end;

function LaneMM_IsInstalled: Boolean;
begin
  Result := Process.IsStarted and WatchIsInstalled;
end;

function LaneMM_DebugGetMem(Size: NativeUInt): Pointer;
begin
  Result := SingleGet(Size);
end;

function LaneMM_DebugAllocMem(Size: NativeUInt): Pointer;
begin
  Result := SingleGetZero(Size);
end;

function LaneMM_DebugReallocMem(var P: Pointer; Size: NativeUInt): Pointer;
begin
  Result := SingleRealloc(P, Size);
end;

function LaneMM_LastAllocationNumber: NativeUInt;
begin
  Result := DebugLastNumber;
end;

procedure LaneMM_OnTakeStack(Call: TLaneMM_FramesCall);
begin
  Stacks.TakeFrames := Call;
end;

procedure LaneMM_OnStackText(Call: TLaneMM_FramesTextCall);
begin
  Stacks.FramesText := Call;
end;

// Copies the frames of a backtrace without CutFrame, at most Limit; returns their number.
function CopyFrames(const Stack: TBacktrace; Frames: PNativeUInt; Limit: Cardinal): Cardinal;
begin
  Result := Stack.Count;
  if (Result > 0) and (Stack.Frames[Result - 1] = CutFrame) then
    Dec(Result);
  if Result > Limit then
    Result := Limit;
  Move(Stack.Frames, Frames^, Result * SizeOf(Frames^));
end;

function LaneMM_TakeStack(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
var
  Stack: TBacktrace;
begin
  BacktraceTake(Stack);
  Result := CopyFrames(Stack, Frames, Limit);
end;

function LaneMM_ReadStack(Stack: Cardinal; Frames: PNativeUInt; Limit: Cardinal): Cardinal;
var
  Found: TBacktrace;
begin
  Result := 0;
  if BacktraceRead(Stack, Found) then
    Result := CopyFrames(Found, Frames, Limit);
end;

function LaneMM_StackText(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar;
  Size: NativeUInt): NativeUInt;
begin
  Result := FramesToText(Frames, Count, Buffer, Size);
end;

procedure LaneMM_WalkFreeBlocks(Visitor: TLaneMM_BlockVisitor; Context: Pointer);
begin
  if not TextHasCall(@Visitor, 'LaneMM_WalkFreeBlocks') then
    Exit;
  PurgeHold;
  WalkFreeBlocks(Visitor, Context);
  PurgeLetGo;
end;

procedure LaneMM_WalkSpans(Visitor: TLaneMM_SpanVisitor; Context: Pointer);
begin
  if TextHasCall(@Visitor, 'LaneMM_WalkSpans') then
    SpansVisit(Visitor, Context);
end;

procedure LaneMM_ReadClasses(out Statuses: TLaneMM_ClassStatuses);
begin
  ClassStatusRead(Statuses);
end;

function LaneMM_State: TLaneMM_State;
begin
  HeapStateRead(Result);
end;

// Finds the modules of the program, unless that was done before.
procedure KnowModules;
begin
  if LoadAcquire(Stacks.Modules) = 0 then
    ModulesLook;
end;

function LaneMM_DetectClass(P: Pointer): TClass;
begin
  KnowModules;
  Result := nil;
  if ClassIsValid(PNativeUInt(P)^) then
    Result := TClass(PNativeUInt(P)^);
end;

function LaneMM_DetectContents(const Info: TLaneMM_BlockInfo): TLaneMM_Contents;
begin
  KnowModules;
  ContentsRead(Info, Result);
end;

function LaneMM_EventTargets(Kind: TLaneMM_EventKind): TLaneMM_EventTargets;
begin
  Result := Report.Rules[Kind].Targets;
end;

procedure LaneMM_SetEventTargets(Kind: TLaneMM_EventKind; Targets: TLaneMM_EventTargets);
begin
  Report.Rules[Kind].Targets := Targets;
end;

function LaneMM_EventLogPath(Buffer: PAnsiChar; Size: NativeUInt): NativeUInt;
var
  Path: TText;
begin
  Result := 0;
  if not TextOpen(Path, OsPageSize) then
    Exit;
  if LogFilePath(EventLogSuffix, Path) and (Size > 0) then
  begin
    Result := Path.Length - 1;
    if Result >= Size then
      Result := Size - 1;
    Move(Path.Start^, Buffer^, Result);
    Buffer[Result] := #0;
  end;
  TextClose(Path);
end;

function LaneMM_SetEventLogPath(Path: PAnsiChar): Boolean;
var
  Length: NativeUInt;
begin
  Length := 0;
  if Path <> nil then
    Length := TextLength(Path);
  Result := Length <= High(Settings.LogPath);
  if not Result then
    Exit;
  if Length > 0 then
    Move(Path^, Settings.LogPath, Length);
  Settings.LogPath[Length] := #0;
  LogFileTryAgain;
end;

function LaneMM_DeleteEventLog: Boolean;
begin
  Result := LogFileDelete(EventLogSuffix);
end;

procedure LaneMM_WalkSuppressions(Visitor: TLaneMM_SuppressionVisitor; Context: Pointer);
begin
  if TextHasCall(@Visitor, 'LaneMM_WalkSuppressions') then
    SuppressionsVisit(Visitor, Context);
end;

{$I LaneMM.Regions.Bodies.inc}
{$I LaneMM.Testing.Bodies.inc}
{$I LaneMM.Aligned.Bodies.inc}

procedure Install;
begin
  SettingsStart;
  if IsSet(opOff) or not EngineStart then
    Exit; // the previous manager stays; EngineStart fails without memory or a thread key
  WatchConfine;
  EngineInstall;
  UnwindStart;
  WatchApply;
  MailboxStart;
  WatchForSuccessor;
end;

initialization
  Install;
finalization
  WatchEnd;
  if IsLibrary and Process.IsStarted then
    WatchUnload;
end.
