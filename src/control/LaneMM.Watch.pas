/// Applies the settings: the entries of the memory manager, the hooks, the signals, the final logs.
//
// Owns:       the installed entries of the memory manager; Hooks.RemoteFree, LargeFree, SampledGet,
//             LimitReached, Corruption and ChildStarted; Debug.FreeWatch, NotesBehind;
//             Observe.GrowthBehind, FillBehind; Control; the exit code, where `debug:exit` sets it.
// Invariants: entries are replaced only while they are LaneMM's: another manager installed in front
//             of LaneMM stays.
// Callers:    WatchApply, WatchChange: any thread that holds no lock. WatchWrite: any thread, also
//             in a signal handler. WatchEnd: the end of the program.
unit LaneMM.Watch;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Confines the engine to few system calls if the settings want that. Once, before the first block.
procedure WatchConfine;
/// Applies Settings and Debug.Depth, once the engine is started. A feature that finds no memory is
/// switched off again. False, and nothing applied, in the handler of a signal that has interrupted
/// such a call of its thread.
function WatchApply: Boolean;
/// Reads settings, as SettingsRead, and applies them once the engine is started. False, too, in
/// such a handler: nothing changes, and a line says so.
function WatchChange(Words: PAnsiChar; const Source: ShortString): Boolean;
/// Returns True while LaneMM's routines are the memory manager; False while another manager is
/// installed, also one that passes calls on to them.
function WatchIsInstalled: Boolean;
/// Returns True while new blocks are debug blocks: debug mode is on and its routines are installed.
function WatchDebugIsActive: Boolean;
/// Returns a number that the allocation numbers of later blocks exceed. Switches `stacks` on if no
/// blocks get numbers.
function WatchCheckpoint: NativeUInt;
/// Sets up debug mode for single blocks; False without memory.
function WatchDebugStart: Boolean;
/// Takes the lock Taker, 0 while it is free, for the calling thread, and waits for another one that
/// has it, looking once each millisecond. False in the handler of a signal that has interrupted the
/// thread which has it.
function WatchTake(var Taker: TAtomicWord): Boolean;
/// Releases it.
procedure WatchLeave(var Taker: TAtomicWord);
/// Returns whether the lock becomes free, looking once each millisecond: a thread that a signal
/// handler has interrupted may hold it. Takes it not.
function WatchBecomesFree(var Lock: TLock; Rounds: Cardinal): Boolean;
/// Returns whether no thread reads or applies settings, so that a signal handler may.
function WatchIsQuiet: Boolean;
/// Writes the event log and the profiles. Returns False when a file could not be written.
function WatchWrite: Boolean;
/// Once, after the start: lets the end of the program say when another manager took over.
procedure WatchForSuccessor;
/// At the end of the program: looks for leaks, writes the logs for the last time, checks all debug
/// blocks, reports the leaks, and sets the exit code of `debug:exit`, if it is 0 and memory errors
/// were reported. Of a library, removes the entry of its code.
procedure WatchEnd;
/// Takes back what a library has set in the process, before it is unloaded; after WatchEnd.
procedure WatchUnload;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsThread, LaneMM.OsSignals,
  LaneMM.Rtl, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Huge, LaneMM.Threads, LaneMM.Purge,
  LaneMM.Limits, LaneMM.Stats, LaneMM.Blocks, LaneMM.Allocate, LaneMM.Resize, LaneMM.Engine,
  LaneMM.ReportState, LaneMM.ReportHead, LaneMM.Text, LaneMM.ReportStack, LaneMM.LogFile,
  LaneMM.SettingsState, LaneMM.Settings, LaneMM.StacksState, LaneMM.Unwind, LaneMM.CodeRanges,
  LaneMM.BacktraceTable, LaneMM.Modules, LaneMM.ObserveState, LaneMM.CallSites, LaneMM.Counting,
  LaneMM.Recording, LaneMM.SeenCalls, LaneMM.EventLog, LaneMM.Growth, LaneMM.EngineReports,
  LaneMM.Profile, LaneMM.Samples, LaneMM.Sampler, LaneMM.TimedReports, LaneMM.BlackBox,
  LaneMM.Pressure, LaneMM.DebugState, LaneMM.DebugThreads, LaneMM.AllocationLog, LaneMM.BlockNotes,
  LaneMM.Debug, LaneMM.DebugSpans, LaneMM.Erase, LaneMM.Hard, LaneMM.GuardPages,
  LaneMM.DebugReport, LaneMM.GuardSample, LaneMM.LeakList, LaneMM.Leaks, LaneMM.LivePage;

type
  // The state that the room shares.
  TControl = record
    Taker: TAtomicWord;      //< shared  the lock of WatchApply, before all others: see WatchTake
    EndSignals: TAtomicWord; //< shared  1: the handlers of signals that end the program are set
    HasApplied: Boolean;     //< lock Taker  settings were applied before
    HasNotes: Boolean;       //< lock Taker  `stacks` is on
    NextExit: Pointer;       //< const   the exit procedure that was set before LaneMM's
    Entries: TMemoryManager; //< racy    the entries that were installed last; GetMem nil: those of
                             //  LaneMM.Engine. Written under Taker
    Changes: TAtomicWord;    //< shared  raised before and after the entries change: odd meanwhile
  end;

var
  Control: TControl;

// ---------------------------------------------------------------------------- one at a time

const
  // Stands for the thread that applies the first settings, while LaneMM starts: it has no heap yet.
  AtStart = High(TAtomicWord);

// Returns what stands for the calling thread: its heap, for which sandboxes need no system call, or
// its number.
function OwnMark: TAtomicWord;
begin
  if not Control.HasApplied then
    Exit(AtStart);
  Result := TAtomicWord(ThreadHeap);
  if Result = 0 then
    Result := OsThreadId;
end;

// A thread of LaneMM's own has the mark of the main thread where there is no thread library: so it
// waits for it, too, but a bounded time.
function WatchTake(var Taker: TAtomicWord): Boolean;
const
  PatienceMs = 100;
var
  Own, Other, Pause: TAtomicWord;
  Left: Cardinal;
begin
  LockRecover;
  Own := OwnMark;
  Pause := 0;
  Left := PatienceMs;
  // Full barrier: what the last thread wrote that had it. Pairs with WatchLeave.
  while not CompareAndSwap(Taker, 0, Own) do
  begin
    Other := LoadAcquire(Taker);
    if (Other = Own) or (Other = AtStart) then
      Dec(Left);
    if Left = 0 then
      Exit(False);
    OsWaitMs(Pause, 0, 1);
  end;
  Result := True;
end;

procedure WatchLeave(var Taker: TAtomicWord);
begin
  // Release: all that this thread wrote. Pairs with WatchTake.
  StoreRelease(Taker, 0);
end;

// ---------------------------------------------------------------------------- signals

function WatchIsQuiet: Boolean;
begin
  Result := (LoadAcquire(Control.Taker) = 0) and (LoadAcquire(Settings.Readers) = 0);
end;

// Context is the result of WatchWrite.
procedure WriteLogs(Context: Pointer);
begin
  Boolean(Context^) := EventLogWrite;
  if not ProfileWrite then
    Boolean(Context^) := False;
end;

function WatchWrite: Boolean;
begin
  ReportRun(WriteLogs, @Result);
end;

function WatchBecomesFree(var Lock: TLock; Rounds: Cardinal): Boolean;
var
  Round: Cardinal;
  Pause: TAtomicWord;
begin
  // Not on the lock's own word: LockLeave wakes one thread, which has to take the lock.
  Pause := 0;
  for Round := 1 to Rounds do
  begin
    if LoadAcquire(Lock.State) = 0 then
      Exit(True);
    OsWaitMs(Pause, 0, 1);
  end;
  Result := False;
end;

// Writes the logs and checks the heap when a signal ends the program.
procedure WriteLast(Context: Pointer);
const
  PatienceMs = 100;
begin
  RecordingEnd;
  TimedReportsEnd;
  if LoadAcquire(Observe.SiteKeys) <> 0 then
    WatchWrite;
  if Debug.IsStarted and WatchBecomesFree(Debug.Lock, PatienceMs) then
    DebugCheckHeap;
end;

// Handles a signal that ends the program: repeats it for the system's own action. The stack of the
// thread may be small.
procedure EndBySignal(Signal: Integer); cdecl;
begin
  ReportRun(WriteLast, nil);
  OsSignalSend(Signal);
end;

// Handles the signal of the setting; does nothing where nothing was ever watched.
procedure WriteOnSignal(Signal: Integer); cdecl;
begin
  if LoadAcquire(Observe.SiteKeys) <> 0 then
    WatchWrite;
end;

procedure TakeEndSignals;
const
  HangUp = 1;
  Interrupt = 2;
  Terminate = 15;
begin
  if not CompareAndSwap(Control.EndSignals, 0, 1) then
    Exit;
  if OsProcessId <> 1 then // the first process of a container: the system ignores both, it goes on
  begin
    OsSignalSet(HangUp, EndBySignal, suLast);
    if not IsLibrary then // interpreters test whether it has a handler
      OsSignalSet(Interrupt, EndBySignal, suLast);
  end;
  OsSignalSet(Terminate, EndBySignal, suLast);
end;

// ---------------------------------------------------------------------------- entries

// Counts the free of a remote block, with the backtrace of its allocation if `stacks` noted it.
procedure CountRemoteFree(Span: PSpan; P: Pointer);
var
  Block: TBlockInfo;
begin
  Block.Address := P;
  Block.Stack := 0;
  if @Hooks.BlockNote <> nil then
    Hooks.BlockNote(Span, Block);
  RemoteFreeCount(Span^.SizeClass, Block.Stack);
end;

procedure FreeSeen(Span: PSpan; P: Pointer);
begin
  if Span^.Owner = Observe.Samples then
  begin
    SamplesRemove(P);
    PurgeRequestOfLarge; // the span is current: the free asks for no sweep
  end
  else if IsSet(opContention) then
    CountRemoteFree(Span, P);
end;

procedure LargeFreeSeen(Span: PSpan; P: Pointer);
begin
  SamplesRemove(P);
end;

// Returns whether P, any pointer, is a large block.
function IsLarge(P: Pointer): Boolean;
var
  Span: PSpan;
begin
  Span := BlockSpan(P);
  Result := (Span <> nil) and (Span^.Kind = skLarge);
end;

// ReallocMem after a profile. A large block may move without a free: its sample ends before.
function OnceSampledRealloc(var P: Pointer; Size: TSize): Pointer;
begin
  if IsLarge(P) then
    SamplesRemove(P);
  if IsErasingFreed then
    Result := EraseRealloc(P, Size)
  else
    Result := BlockRealloc(P, Size);
end;

procedure UseEntries(var Manager: TMemoryManager);
begin
  EngineEntries(Manager);
  if IsSampling then
  begin
    Manager.GetMem := QuickCountedBlockGet();
    Manager.AllocMem := SamplerGetZero;
    Manager.ReallocMem := SamplerRealloc;
  end
  else if Observe.Samples <> nil then
    Manager.ReallocMem := OnceSampledRealloc;
  if GuardSampleIsOn then
  begin
    Manager.GetMem := QuickCountedBlockGet();
    Manager.AllocMem := GuardSampleGetZero;
  end;
end;

// A sampled debug block is one like any other; Debug.FreeWatch ends its sample when it is freed.
function SampledDebugGet(Size: TSize): Pointer;
begin
  Result := DebugGet(Size);
  SamplerSee(Result, Size);
end;

function SampledDebugGetZero(Size: TSize): Pointer;
begin
  Result := DebugGetZero(Size);
  SamplerSee(Result, Size);
end;

// A large block from before debug mode may move without a free. Also after a profile.
function SampledDebugRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Before: Pointer;
  WasLarge: Boolean;
begin
  Before := P;
  WasLarge := IsLarge(P);
  if WasLarge then
    SamplesRemove(P);
  Result := DebugRealloc(P, Size);
  if IsSampling and ((Result <> Before) or WasLarge) then
    SamplerSee(Result, Size);
end;

procedure UseDebugEntries(var Manager: TMemoryManager);
begin
  Manager.GetMem := DebugGet;
  Manager.AllocMem := DebugGetZero;
  Manager.ReallocMem := DebugRealloc;
  Manager.FreeMem := DebugFree;
  Manager.FreeMemSize := DebugFreeSize;
  if Observe.Samples <> nil then
    Manager.ReallocMem := SampledDebugRealloc;
  if not IsSampling then
    Exit;
  Manager.GetMem := SampledDebugGet;
  Manager.AllocMem := SampledDebugGetZero;
end;

// Returns whether the installed manager, which Manager receives, is LaneMM. It is, too, where it is
// just changing its entries: a copy of those may have some old ones.
function IsInstalled(out Manager: TMemoryManager): Boolean;
var
  Own: TMemoryManager;
  Changes: TAtomicWord;
begin
  Changes := LoadAcquire(Control.Changes); // pairs with SetEntries
  GetMemoryManager(Manager);
  Own := Control.Entries;
  if @Own.GetMem = nil then
    EngineEntries(Own);
  Result := (@Manager.GetMem = @Own.GetMem) and (@Manager.FreeMem = @Own.FreeMem)
    and (@Manager.AllocMem = @Own.AllocMem) and (@Manager.ReallocMem = @Own.ReallocMem)
    and (@Manager.MemSize = @Own.MemSize);
  AcquireFence; // the entries before the word is read again
  Result := Result or Odd(Changes) or (LoadAcquire(Control.Changes) <> Changes);
end;

function WatchIsInstalled: Boolean;
var
  Manager: TMemoryManager;
begin
  Result := IsInstalled(Manager);
end;

function WatchDebugIsActive: Boolean;
var
  Manager: TMemoryManager;
begin
  Result := IsInstalled(Manager) and (@Observe.GrowthBehind.FreeMem = @DebugFree);
end;

procedure SetEntries;
var
  Manager: TMemoryManager;
  IsDebug: Boolean;
begin
  if not IsInstalled(Manager) then
    Exit;
  // Repeated when another thread changed the mode meanwhile: the last one applies the final mode.
  repeat
    IsDebug := DebugIsOn;
    UseEntries(Manager);
    if IsDebug then
      UseDebugEntries(Manager)
    else
      EraseUseEntries(Manager, Debug.MarkBytes = 0);
    if IsDebug then
      Debug.MarksAreSure := False
    else if Debug.MarkBytes <> 0 then
      HardUseEntries(Manager);
    if IsSet(opStacks) and not IsDebug then
      NotedUseEntries(Manager);
    Observe.GrowthBehind := Manager;
    if IsSet(opGrowth) then
      GrowthUseEntries(Manager);
    if CallsAreSeen then
      CallsUseEntries(Manager);
    FetchAdd(Control.Changes, 1); // full barrier, as below: no entry changes outside
    Control.Entries := Manager;
    // Release: all that the new entries use before the entries. A thread that runs calls them at
    // once: those that use more than the engine begin with an acquire, or take a lock.
    ReleaseFence;
    SetMemoryManager(Manager);
    FetchAdd(Control.Changes, 1);
  until DebugIsOn = IsDebug;
end;

procedure DebugFreeSeen(Block: PDebugBlock);
begin
  if Observe.Samples <> nil then
    SamplesRemove(DebugBlockData(Block));
  if IsSet(opContention) and (Block^.AllocThread <> Block^.FreeThread)
    and (Block^.Size <= MaxClassSize) then
    RemoteFreeCount(SizeToClass(Block^.Size), Block^.AllocStack);
end;

procedure WatchFrees;
begin
  // Release: the tables before the hooks. Pairs with SamplesRemove and SampleWeight.
  ReleaseFence;
  if (Observe.Samples <> nil) or IsSet(opContention) then
    Debug.FreeWatch := DebugFreeSeen;
  if Observe.Samples <> nil then
  begin
    Hooks.Sweep := SamplerSweep;
    // Permanently: sampled blocks must be recognized when they are freed.
    Hooks.LargeFree := LargeFreeSeen;
    Hooks.RemoteFree := FreeSeen;
  end
  else if IsSet(opContention) then
    Hooks.RemoteFree := CountRemoteFree
  else
    Hooks.RemoteFree := nil;
end;

// Sets the routine that counting entries call. `guard=sample` and a profile have the same entries,
// which may be installed already: so the tables come first.
procedure SetSampledGet;
begin
  ReleaseFence; // the tables before the hook. Pairs with IsDue of LaneMM.Sampler
  if GuardSampleIsOn then
    Hooks.SampledGet := GuardSampleGet
  else if Observe.Samples <> nil then
    Hooks.SampledGet := SamplerGet;
end;

// ---------------------------------------------------------------------------- all

// Returns whether a feature that watches is set, and has its tables.
function IsWatching: Boolean;
begin
  Result := (IsSet(opContention) or IsSet(opGrowth) or IsSampling) and SitesStart and GrowthStart
    and (not IsSampling or SamplerStart);
end;

// Gives all blocks to come the largest alignment that was entered. IsTorn: a lost thread may have
// been doing that.
procedure ApplyAlignment(IsTorn: Boolean);
var
  Shift: Cardinal;
begin
  Shift := MostAlignShift;
  while (Shift > LeastAlignShift) and (LoadAcquire(Debug.Aligned[Shift]) = 0) do
    Dec(Shift);
  if Shift = LeastAlignShift then
    Shift := 0
  else
    Process.KeepsAlignment := True;
  if (Shift = Debug.AlignShift) and not IsTorn then
    Exit;
  Debug.AlignShift := Shift;
  SizeClassesAlign(Shift);
end;

// In a child process: clears the counts of the parent, and frees the locks of lost threads.
procedure ChildStarted(IsTorn: Boolean);
begin
  LivePageForget;
  Settings.SaysClean := False;
  StoreRelease(Settings.Readers, 0);
  LogFileForget;
  ModulesRecover;
  BacktracesRecover(IsTorn);
  SitesForget;
  GrowthForget;
  SamplerRecover(IsTorn);
  TimedReportsForget;
  BlackBoxForget;
  PressureForget;
  FillChar(Observe.LimitReports, SizeOf(Observe.LimitReports), 0);
  RecordingForget;
  StoreRelease(Observe.ReportCount, 0);
  StoreRelease(OwnThreads[otAnswerer], 0);
  Report.Tell := nil; // a request that is being answered is the parent's
  DebugRecover(IsTorn);
  CountingForget;
  StoreRelease(Report.DamageCount, 0);
  WatchLeave(Control.Taker);
  ApplyAlignment(IsTorn);
  LeaksForget;
end;

// Context is nil.
procedure WriteProfile(Context: Pointer);
begin
  ProfileWriteQuietly;
end;

// Set as Observe.WriteReport. The stack of the thread may be small.
procedure WriteTimedReport;
begin
  ReportRun(WriteProfile, nil);
end;

// Sets the routines that entries call, before a thread can meet such an entry.
procedure SetCalls;
begin
  Hooks.ChildStarted := ChildStarted;
  Stacks.VisitNumbers := NotesMarkUsed;
  Process.Rooms[rrSettings] := @Settings;
  Process.Rooms[rrStacks] := @Stacks;
  Process.Rooms[rrObserve] := @Observe;
  Process.Rooms[rrDebug] := @Debug;
  Observe.WriteReport := WriteTimedReport;
  Observe.HoldBlocks := GuardPagesHold;
  Observe.LetGoBlocks := GuardPagesLetGo;
  if @Observe.GrowthBehind.ReallocMem = nil then
    Observe.GrowthBehind.ReallocMem := BlockRealloc;
end;

procedure WatchConfine;
var
  Most: NativeUInt;
begin
  Most := Ord(Process.IsMalloc and not IsSet(opBackground));
  if Settings.Values[opCalls] <= Most then
    ProcessConfine;
end;

// Sets the parameters of the engine.
procedure ApplyToEngine;
begin
  HugeFromSet(Settings.Values[opHuge]);
  // Reports name the usable size, which is to be that of the class.
  Process.SharesSpans := not (IsSet(opLeaks) or IsSet(opContention) or IsSet(opGrowth)
    or IsSet(opProfile) or CountingIsOn);
  Process.IsNarrow := IsSet(opAbort) or IsSet(opHard) or IsSet(opDebug);
  Process.ErasesPages := Odd(Settings.Values[opErase] shr Ord(erReturn));
  Observe.AddMostUsed := LeaksAddMost;
  Observe.AddInUse := LeaksAddInUse;
  Hooks.LimitReached := LimitReport;
  Hooks.Corruption := CorruptionReport;
  Report.Aborts := IsSet(opAbort) or IsSet(opHard) or IsSet(opDebug) and IsSet(opDebugAbort);
  if Report.Aborts and (@Hooks.InvalidPointer = nil) then
    Hooks.InvalidPointer := InvalidReport;
  if IsSet(opLimitSoft) or IsSet(opLimit) or IsSet(opReserve) or IsSet(opLimitReport)
    or Settings.HasContainer then
    LimitReportKeep;
  LimitsSet(Settings.Values[opLimitSoft], Settings.Values[opLimit], Settings.Values[opReserve]);
  if IsSet(opLimitReport) then
    Process.HasLimits := True; // for the limit of the system
  if Settings.HasContainer then
    Hooks.Pressure := PressureLook // at once: the thread that purges rests without
  else
    Hooks.Pressure := nil;
  ApplyAlignment(False);
end;

// Starts or ends the recording. Another file ends the one before.
procedure ApplyRecord;
begin
  if IsSet(opRecord) and RecordingIsOn and not RecordingIsOfSetting then
  begin
    RecordingEnd; // which clears the setting
    Settings.Values[opRecord] := 1;
  end;
  if not IsSet(opRecord) then
    RecordingEnd
  else if not RecordingIsOn and not RecordingStart then
    Settings.Values[opRecord] := 0;
end;

procedure Apply;
begin
  ApplyToEngine;
  StacksSetDepth(Settings.Values[opDepth]);
  AllocationLogApply;
  SetCalls;
  if (DebugIsOn or GuardSampleIsOn) and not DebugStart then
  begin
    Settings.Values[opDebug] := 0;
    Settings.Values[opGuard] := 0;
    Swap(Debug.Depth, 0);
  end;
  // The marks of blocks start at the first call alone: blocks from before have none.
  if IsSet(opHard) and not Control.HasApplied and not DebugIsOn and DebugStart then
    HardStart;
  Control.HasApplied := True;
  if IsSet(opStacks) and not Control.HasNotes and not NotesStart then
    Settings.Values[opStacks] := 0;
  Control.HasNotes := IsSet(opStacks);
  ApplyRecord;
  if IsSet(opSignal) then // always, as the signal would end a program without a handler
    OsSignalSet(Settings.Values[opSignal], WriteOnSignal, suAgain);
  if not IsWatching then
  begin
    Settings.Values[opContention] := 0;
    Settings.Values[opGrowth] := 0;
    Settings.Values[opProfile] := 0;
    Settings.Values[opBlackBox] := 0;
    Settings.Values[opLimitReport] := 0;
  end;
  // The black box is written before a signal comes, as are reports at limits.
  if IsSet(opContention) or IsSet(opGrowth) or IsSet(opProfile) or Debug.IsStarted
    or RecordingIsOn then
    TakeEndSignals;
  if (@Control.Entries.GetMem = nil) and (LoadAcquire(Observe.SiteKeys) = 0)
    and not (Debug.IsStarted or IsSet(opStacks) or IsErasingFreed or IsErasingNew
    or CallsAreSeen) then
    Exit; // nothing lies in front of the engine, nor did
  LockMissesApply;
  if IsSet(opBlackBox) and not BlackBoxStart then
    Settings.Values[opBlackBox] := 0;
  WatchFrees;
  SetSampledGet;
  SetEntries;
  TimedReportsApply;
end;

// Applies the settings, and releases Taker, which the calling thread has.
procedure ApplyAndLeave;
begin
  Apply;
  WatchLeave(Control.Taker);
  if Debug.IsStarted then
    DebugApply;
end;

function WatchApply: Boolean;
begin
  // The starts of the rooms find one thread at a time.
  Result := Process.IsStarted and WatchTake(Control.Taker);
  if Result then
    ApplyAndLeave;
end;

function WatchChange(Words: PAnsiChar; const Source: ShortString): Boolean;
const
  NotDone: ShortString = ': not done, the handler of a signal has interrupted such a call';
begin
  if not Process.IsStarted then
    Exit(SettingsRead(Words, Source));
  if not WatchTake(Control.Taker) then
  begin
    ReportSayLine(Source + NotDone);
    Exit(False);
  end;
  Result := SettingsRead(Words, Source);
  ApplyAndLeave;
end;

function WatchCheckpoint: NativeUInt;
begin
  if Process.IsStarted and not IsSet(opStacks) and not DebugIsOn then
  begin
    Settings.Values[opStacks] := 1;
    WatchApply;
  end;
  Result := 0;
  if Debug.FirstNumber <> nil then
    Result := DebugNumbersMark;
end;

function WatchDebugStart: Boolean;
begin
  if Debug.IsStarted then
    Exit(True);
  Result := Process.IsStarted and WatchTake(Control.Taker); // DebugStart finds one at a time
  if not Result then
    Exit;
  Result := DebugStart;
  WatchLeave(Control.Taker);
end;

// An exit procedure of the program: it runs before cmem and the like are finalized and install the
// entries that they found.
procedure SaySuccessor;
var
  Manager: TMemoryManager;
begin
  ExitProc := Control.NextExit;
  if SettingsAreChanged and not IsInstalled(Manager) then
    ReportSayLine('another memory manager was installed after it, such as cmem or heaptrc; the'
      + ' settings apply only to calls that this manager passes on');
end;

procedure WatchForSuccessor;
begin
  if IsLibrary then
    Exit;
  Control.NextExit := ExitProc;
  ExitProc := @SaySuccessor;
end;

// Says that nothing was found: a program that is not on LaneMM says nothing, too.
procedure SayClean;
const
  Found: array[Boolean] of ShortString = ('LaneMM: no memory errors', 'LaneMM: no leaks');
  Also: ShortString = ' and no memory errors';
var
  Text: TText;
  Status: TStatus;
  Characters: TPath;
  Name: PAnsiChar;
begin
  if not TextOpen(Text, OsPageSize) then
    Exit;
  TextAdd(Text, Found[IsSet(opLeaks)]);
  if IsSet(opLeaks) and IsSet(opDebug) then
    TextAdd(Text, Also);
  if LoadAcquire(Debug.LastNumber) > 0 then
    TextAddForm(Text, ' in %g block%+', DebugNumberCount)
  else
  begin
    StatusRead(Status);
    TextAddForm(Text, '; at most %b of memory', Status.PeakBytes);
  end;
  if IsSet(opDebug) and (Settings.Values[opGuard] = 0) then
    TextAdd(Text, '; LANEMM=debug,guard=pages also finds reads of freed ones');
  Name := HeadLibrary(Characters);
  if Name <> nil then
    TextAddForm(Text, ', %s', NativeUInt(Name));
  ReportSayText(Text);
end;

// Returns whether the end is to say that nothing was found, if so.
function SaysClean: Boolean;
begin
  Result := Settings.SaysClean and LockHasRecovered and not DebugLockMayBeOwn and not IsSet(opQuiet)
    and (IsSet(opLeaks) or IsSet(opDebug)) and (etScreen in Report.Rules[evLeaks].Targets)
    and WatchIsInstalled and (LoadAcquire(Report.DamageCount) = 0);
end;

// Writes the reports of the end. Context is a frame of the stack that the thread ends on.
procedure ReportEnd(Context: Pointer);
var
  List: PLeakList;
begin
  RecordingEnd;
  TimedReportsEnd;
  Hooks.Pressure := nil;
  HardEnd(NativeUInt(Context));
  List := LeaksFind(NativeUInt(Context)); // before the profiles, which have the leaks
  AllocationLogEnd; // after the frees of units that LeaksFind finalizes
  if LoadAcquire(Observe.SiteKeys) <> 0 then
    WatchWrite;
  Debug.IsEnding := True;
  if Debug.IsStarted and not DebugIsUnusedChild then
    DebugCheckHeap;
  if IsLibrary then
    CodeRangesStop;
  if LeaksReport(List) and SaysClean then
    SayClean;
  if (ExitCode = 0) and (LoadAcquire(Report.DamageCount) <> 0) then
    ExitCode := Settings.Values[opDebugExit];
  BlackBoxEnd(ExitCode);
end;

procedure WatchEnd;
begin
  ReportRun(ReportEnd, get_frame);
end;

procedure WatchUnload;
begin
  OsSignalsLeave; // before the code of its handlers is gone
  if EngineStop then
    LivePageEnd;
end;

end.
