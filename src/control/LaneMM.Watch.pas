/// Turns watching on and off as the settings say, and sees to it that logs are written.
//
// Owns:       which entries of the memory manager are installed; Hooks.RemoteFree,
//             WatchLargeFree, GrowthCall, EndSignals.
// Invariants: an entry is replaced only if it is one of ours: another manager that was put in
//             front of LaneMM stays.
// Callers:    WatchApply: any thread. WatchEnd: the end of the program.
unit LaneMM.Watch;

{$I ../LaneMM.inc}

interface

/// Does what Settings says, and Debug.Depth.
procedure WatchApply;
/// Writes what has been counted. False when a file could not be written.
function WatchWrite: Boolean;
/// The end of the program: writes what has been counted, for the last time.
procedure WatchEnd;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses,
  LaneMM.Lock, LaneMM.Limits, LaneMM.Blocks, LaneMM.Allocate, LaneMM.Resize, LaneMM.Engine,
  LaneMM.SettingsState, LaneMM.Modules, LaneMM.ObserveState, LaneMM.CallSites, LaneMM.EventLog,
  LaneMM.Growth, LaneMM.LimitReport, LaneMM.LockProfile, LaneMM.Profile, LaneMM.Sampler,
  LaneMM.DebugState, LaneMM.AllocationLog, LaneMM.Debug, LaneMM.DebugSampler, LaneMM.DebugSpans,
  LaneMM.Erase, LaneMM.GuardSample, LaneMM.LeaksState;

type
  // The state of the room.
  TControl = record
    EndSignals: TAtomicWord; //< shared  1: the signals that end the program are taken
  end;

var
  Control: TControl;

// ---------------------------------------------------------------------------- signals

function WatchWrite: Boolean;
begin
  Result := EventLogWrite;
  if not ProfileWrite then
    Result := False;
end;

// Whether the interrupted thread does not hold the lock of debug mode: others leave it soon.
function CanCheck: Boolean;
const
  PatienceMs = 1;
  MostRounds = 100;
var
  Round, State: NativeUInt;
begin
  for Round := 1 to MostRounds do
  begin
    State := LoadAcquire(Debug.Lock.State);
    if State = 0 then
      Exit(True);
    OsWaitMs(Debug.Lock.State, State, PatienceMs);
  end;
  Result := False;
end;

// A signal that ends the program: the logs and the last check first, then what the system does with
// the signal.
procedure EndBySignal(Signal: LongInt); cdecl;
begin
  WatchWrite;
  if Debug.IsStarted and CanCheck then
    DebugCheckHeap;
  OsSignalSend(Signal);
end;

procedure WriteOnSignal(Signal: LongInt); cdecl;
begin
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
  OsSignalSet(HangUp, EndBySignal, suLast);
  if not IsLibrary then // interpreters look whether somebody has it
    OsSignalSet(Interrupt, EndBySignal, suLast);
  OsSignalSet(Terminate, EndBySignal, suLast);
end;

// ---------------------------------------------------------------------------- entries

procedure FreeSeen(Span: PSpan; P: Pointer);
begin
  if Span^.Owner = Observe.Samples then
    SamplerForget(P)
  else if IsSet(opContention) then
    RemoteFreeCount(Span^.SizeClass);
end;

procedure CountRemoteFree(Span: PSpan; P: Pointer);
begin
  RemoteFreeCount(Span^.SizeClass);
end;

procedure LargeFreeSeen(Span: PSpan; P: Pointer);
begin
  SamplerForget(P);
end;

// Whether a few blocks get guard pages. A profile has the counter for itself.
function IsGuarding: Boolean;
begin
  Result := (Settings.Values[opGuard] > 1) and not IsSet(opProfile);
end;

function IsErasingFreed: Boolean;
begin
  Result := Odd(Settings.Values[opErase] shr Ord(erFree));
end;

procedure UseEntries(var Manager: TMemoryManager);
begin
  EngineEntries(Manager);
  if IsSet(opProfile) then
  begin
    Manager.GetMem := QuickCountedBlockGet();
    Manager.AllocMem := SamplerGetZero;
    Manager.ReallocMem := SamplerRealloc;
  end;
  if IsGuarding then
    Manager.GetMem := QuickCountedBlockGet();
end;

procedure UseEraseEntries(var Manager: TMemoryManager);
begin
  Manager.FreeMem := EraseFree;
  Manager.FreeMemSize := EraseFreeSize;
  Manager.ReallocMem := EraseRealloc;
end;

procedure UseDebugEntries(var Manager: TMemoryManager);
begin
  Manager.GetMem := DebugGet;
  Manager.AllocMem := DebugGetZero;
  Manager.ReallocMem := DebugRealloc;
  Manager.FreeMem := DebugFree;
  Manager.FreeMemSize := DebugFreeSize;
  if not IsSet(opProfile) then
    Exit;
  Manager.GetMem := SampledDebugGet;
  Manager.AllocMem := SampledDebugGetZero;
  Manager.ReallocMem := SampledDebugRealloc;
end;

// Around whatever resizes blocks.
procedure UseGrowthEntry(var Manager: TMemoryManager);
begin
  Observe.GrowthCall := Manager.ReallocMem;
  if IsSet(opGrowth) then
    Manager.ReallocMem := GrowthRealloc;
end;

procedure SetEntries;
var
  Manager: TMemoryManager;
  IsDebug: Boolean;
begin
  GetMemoryManager(Manager);
  if @Manager.MemSize <> @BlockUsableSize then
    Exit;
  // Once more when another thread has changed the mode meanwhile: the last one sees it as it is.
  repeat
    IsDebug := DebugIsOn;
    UseEntries(Manager);
    if IsDebug then
      UseDebugEntries(Manager)
    else if IsErasingFreed then
      UseEraseEntries(Manager);
    UseGrowthEntry(Manager);
    SetMemoryManager(Manager);
  until DebugIsOn = IsDebug;
end;

// Counts a debug block that is being freed, if another thread allocated it.
procedure CountDebugFree(Block: PDebugBlock);
begin
  if (Block^.AllocThread <> Block^.FreeThread) and (Block^.Size <= MaxClassSize) then
    RemoteFreeCount(SizeToClass(Block^.Size));
end;

procedure DebugFreeSeen(Block: PDebugBlock);
begin
  if Observe.Samples <> nil then
    SamplerForget(DebugBlockData(Block));
  if IsSet(opContention) then
    CountDebugFree(Block);
end;

procedure WatchFrees;
begin
  if (Observe.Samples <> nil) or IsSet(opContention) then
    Debug.FreeWatch := DebugFreeSeen;
  if Observe.Samples <> nil then
  begin
    // For good: blocks that were sampled are recognised when they are freed.
    Hooks.LargeFree := LargeFreeSeen;
    Hooks.RemoteFree := FreeSeen;
  end
  else if IsSet(opContention) then
    Hooks.RemoteFree := CountRemoteFree
  else
    Hooks.RemoteFree := nil;
end;

// ---------------------------------------------------------------------------- all

// Whether something is watched, and can be.
function IsWatching: Boolean;
begin
  Result := IsSet(opContention) or IsSet(opGrowth) or IsSet(opProfile);
  if Result and not (SitesStart and GrowthStart) then
    Result := False;
  if IsSet(opProfile) and not SamplerStart then
    Result := False;
end;

// In a child process: forgets what it has not counted itself, and frees the locks of lost threads.
procedure ChildStarted;
begin
  ModulesRecover;
  SitesForget;
  LockProfileForget;
  GrowthForget;
  SamplerRecover;
  DebugRecover;
  LockReset(Leaks.Lock); // its entries are whole after every single write
end;

// What the entries call, before any thread can meet one of them: at the start of the program.
procedure SetCalls;
begin
  if IsGuarding then
    Hooks.SampledGet := GuardSampleGet
  else
    Hooks.SampledGet := SamplerGet;
  Hooks.ChildStarted := ChildStarted;
  if @Observe.GrowthCall = nil then
    Observe.GrowthCall := BlockRealloc;
end;

// Whether blocks are erased, or were: then entries are to be set.
function IsErasing: Boolean;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Manager);
  Result := IsErasingFreed or (@Manager.FreeMem = @EraseFree);
end;

// There is no memory for it.
procedure StopDebug;
begin
  Settings.Values[opDebug] := 0;
  Settings.Values[opGuard] := 0;
  Swap(Debug.Depth, 0);
end;

// The parameters of the engine.
procedure ApplyToEngine;
begin
  Process.HugeFrom := Settings.Values[opHuge] shr SliceShift;
  Process.ErasesPages := Odd(Settings.Values[opErase] shr Ord(erReturn));
  Hooks.LimitReached := LimitReport;
  LimitsSet(Settings.Values[opLimitSoft], Settings.Values[opLimit], Settings.Values[opReserve]);
end;

procedure WatchApply;
begin
  ApplyToEngine;
  AllocationLogApply;
  SetCalls;
  if (DebugIsOn or IsGuarding) and not DebugStart then
    StopDebug;
  if not IsWatching then
  begin
    if (LoadAcquire(Observe.SiteKeys) = 0) and not Debug.IsStarted and not IsErasing then
      Exit;
    Settings.Values[opContention] := 0;
    Settings.Values[opGrowth] := 0;
    Settings.Values[opProfile] := 0;
  end;
  if IsSet(opContention) then
    LockProfileStart
  else
    LockProfileStop;
  WatchFrees;
  SetEntries;
  TakeEndSignals;
  if IsSet(opSignal) then
    OsSignalSet(Settings.Values[opSignal], WriteOnSignal, suAgain);
end;

procedure WatchEnd;
begin
  AllocationLogEnd;
  if LoadAcquire(Observe.SiteKeys) <> 0 then
    WatchWrite;
  if Debug.IsStarted then
    DebugCheckHeap;
end;

end.
