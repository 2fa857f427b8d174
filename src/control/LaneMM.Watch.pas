/// Turns watching on and off as the settings say, and sees to it that logs are written.
//
// Owns:       which entries of the memory manager are installed; Process.WatchRemoteFree,
//             WatchLargeFree, GrowthCall, EndSignals.
// Invariants: an entry is replaced only if it is one of ours: another manager that was put in
//             front of LaneMM stays.
// Callers:    WatchApply: any thread. WatchEnd: the end of the program.
unit LaneMM.Watch;

{$I ../LaneMM.inc}

interface

/// Does what Process.Settings says, and Process.DebugDepth.
procedure WatchApply;
/// Writes what has been counted. False when a file could not be written.
function WatchWrite: Boolean;
/// The end of the program: writes what has been counted, for the last time.
procedure WatchEnd;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.CallSites, LaneMM.LockProfile, LaneMM.Growth,
  LaneMM.Sampler, LaneMM.Limits, LaneMM.AllocationLog, LaneMM.Blocks, LaneMM.Erase, LaneMM.Debug,
  LaneMM.DebugBlocks, LaneMM.DebugSampler, LaneMM.GuardSample, LaneMM.EventLog, LaneMM.Profile;

function IsSet(Option: TOption): Boolean;
begin
  Result := Process.Settings.Values[Option] <> 0;
end;

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
    State := LoadAcquire(Process.DebugLock.State);
    if State = 0 then
      Exit(True);
    OsWaitMs(Process.DebugLock.State, State, PatienceMs);
  end;
  Result := False;
end;

// A signal that ends the program: the logs and the last check first, then what the system does with
// the signal.
procedure EndBySignal(Signal: LongInt); cdecl;
begin
  WatchWrite;
  if (Process.Debug <> nil) and CanCheck then
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
  if not CompareAndSwap(Process.EndSignals, 0, 1) then
    Exit;
  OsSignalSet(HangUp, EndBySignal, suLast);
  if not IsLibrary then // interpreters look whether somebody has it
    OsSignalSet(Interrupt, EndBySignal, suLast);
  OsSignalSet(Terminate, EndBySignal, suLast);
end;

// ---------------------------------------------------------------------------- entries

procedure FreeSeen(Span: PSpan; P: Pointer);
begin
  if Span^.Owner = Process.Samples then
    SamplerForget(P)
  else if IsSet(opContention) then
    WaitsCountRemoteFree(Span, P);
end;

procedure LargeFreeSeen(Span: PSpan; P: Pointer);
begin
  SamplerForget(P);
end;

// Whether a few blocks get guard pages. A profile has the counter for itself.
function IsGuarding: Boolean;
begin
  Result := (Process.Settings.Values[opGuard] > 1) and not IsSet(opProfile);
end;

function IsErasingFreed: Boolean;
begin
  Result := Odd(Process.Settings.Values[opErase] shr Ord(erFree));
end;

procedure UseEntries(var Manager: TMemoryManager);
begin
  BlockEntries(Manager);
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
  Process.GrowthCall := Manager.ReallocMem;
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

procedure DebugFreeSeen(Block: PDebugBlock);
begin
  if Process.Samples <> nil then
    SamplerForget(DebugBlockData(Block));
  if IsSet(opContention) then
    WaitsCountDebugFree(Block);
end;

procedure WatchFrees;
begin
  if (Process.Samples <> nil) or IsSet(opContention) then
    Process.WatchDebugFree := DebugFreeSeen;
  if Process.Samples <> nil then
  begin
    // For good: blocks that were sampled are recognised when they are freed.
    Process.WatchLargeFree := LargeFreeSeen;
    Process.WatchRemoteFree := FreeSeen;
  end
  else if IsSet(opContention) then
    Process.WatchRemoteFree := WaitsCountRemoteFree
  else
    Process.WatchRemoteFree := nil;
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

// What a child process has not counted itself.
procedure ForgetCounts;
begin
  SitesForget;
  WaitsForget;
  GrowthForget;
  SamplerForgetAll;
end;

// What the entries call, before any thread can meet one of them: at the start of the program.
procedure SetCalls;
begin
  if IsGuarding then
    Process.SampledGet := GuardSampleGet
  else
    Process.SampledGet := SamplerGet;
  Process.ForkForget := ForgetCounts;
  if @Process.GrowthCall = nil then
    Process.GrowthCall := BlockRealloc;
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
  Process.Settings.Values[opDebug] := 0;
  Process.Settings.Values[opGuard] := 0;
  Swap(Process.DebugDepth, 0);
end;

procedure WatchApply;
begin
  LimitsApply;
  TracingApply;
  SetCalls;
  if (DebugIsOn or IsGuarding) and not DebugStart then
    StopDebug;
  if not IsWatching then
  begin
    if (LoadAcquire(Process.SiteKeys) = 0) and (Process.Debug = nil) and not IsErasing then
      Exit;
    Process.Settings.Values[opContention] := 0;
    Process.Settings.Values[opGrowth] := 0;
    Process.Settings.Values[opProfile] := 0;
  end;
  if IsSet(opContention) then
    WaitsWatch
  else
    WaitsUnwatch;
  WatchFrees;
  SetEntries;
  TakeEndSignals;
  if IsSet(opSignal) then
    OsSignalSet(Process.Settings.Values[opSignal], WriteOnSignal, suAgain);
end;

procedure WatchEnd;
begin
  TracingEnd;
  if LoadAcquire(Process.SiteKeys) <> 0 then
    WatchWrite;
  if Process.Debug <> nil then
    DebugCheckHeap;
end;

end.
