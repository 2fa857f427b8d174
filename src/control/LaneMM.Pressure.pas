/// Memory pressure in the container: free memory goes back, and the program's caches shrink, before
/// the system ends the process.
//
// Owns:       Observe.Group, Pressed, PressureBusy, PressureMs, PressureCalls.
// Invariants: at 90 % of the limit of a group around the process, or while tasks of its group wait
//             for memory, there is pressure; it ends an eighth below. All warm memory is purged at
//             each look while there is. The event is reported when it begins. The calls of the
//             program are made by the thread that purges alone, which holds no lock: a thread that
//             allocates may hold those of its caches.
// Callers:    PressureLook: Hooks.Pressure, any thread that holds no lock. PressureForget: the one
//             thread of a child process. The others: any thread.
// Progress:   one thread looks at a time, others go on. PressureOff waits for a call under way.
unit LaneMM.Pressure;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.ObserveState;

/// Looks at the groups, once a second.
procedure PressureLook;
/// Has Call called while there is pressure, once a second. Returns False when 16 calls are
/// registered.
function PressureOn(Call: TPressureCall; Context: Pointer): Boolean;
/// Takes such a call back; waits until it is over if it is being made, but not inside of one.
/// Returns False when it is not registered.
function PressureOff(Call: TPressureCall; Context: Pointer): Boolean;
/// In a child process: no thread looks.
procedure PressureForget;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Purge, LaneMM.OsGroup,
  LaneMM.SettingsState, LaneMM.EngineReports;

const
  LeastLookMs = 1000;
  PressedShare = 10; // there is pressure when less than one part in this many is free
  EndShare = 8;      // it ends when one part in this many less is used

function IsAbove(const Group: TGroupMemory; Limit: UInt64): Boolean;
begin
  Result := Group.IsWaiting or (Group.Limit <> 0) and (Group.Used >= Limit);
end;

// Calls the routines of the program; only from a thread that holds none of its locks, and where the
// run-time library knows that there are threads.
procedure CallProgram(const Group: TGroupMemory);
var
  Index: NativeInt;
  Call: TPressureCall;
begin
  if (OsThreadId <> Process.PurgeThread) or not IsMultiThread then
    Exit;
  for Index := Low(Observe.PressureCalls) to High(Observe.PressureCalls) do
  begin
    // Acquire: the context after the call. Pairs with PressureOn.
    @Call := Pointer(LoadAcquire(Observe.PressureCalls[Index].Call));
    if @Call <> nil then
      Call(Group.Used, Group.Limit, Observe.PressureCalls[Index].Context);
  end;
end;

procedure See;
var
  Group: TGroupMemory;
  Limit: UInt64;
  Path: PAnsiChar;
begin
  Path := nil;
  if Settings.GroupPath[0] <> #0 then
    Path := @Settings.GroupPath;
  OsGroupRead(Path, nil, Group);
  Limit := Group.Limit - Group.Limit div PressedShare;
  if IsAbove(Group, Limit) then
  begin
    ProcessTrim;
    Observe.Group := Group;
    if Swap(Observe.Pressed, 1) = 0 then
      LimitReport(leContainer, 0);
    CallProgram(Group);
  end
  else if not IsAbove(Group, Limit - Limit div EndShare) then
    StoreRelease(Observe.Pressed, 0);
end;

procedure PressureLook;
begin
  // Acquire: what the last look left. Pairs with the release below.
  if (Cardinal(OsNowMs - Observe.PressureMs) < LeastLookMs)
    or not CompareAndSwap(Observe.PressureBusy, 0, OsThreadId) then
    Exit;
  Observe.PressureMs := OsNowMs;
  See;
  StoreRelease(Observe.PressureBusy, 0);
  OsWakeAll(Observe.PressureBusy);
end;

function PressureOn(Call: TPressureCall; Context: Pointer): Boolean;
var
  Index: NativeInt;
begin
  Result := False;
  for Index := Low(Observe.PressureCalls) to High(Observe.PressureCalls) do
    if not Result and CompareAndSwap(Observe.PressureCalls[Index].IsTaken, 0, 1) then
    begin
      Observe.PressureCalls[Index].Context := Context;
      // Release: the context before the call. Pairs with CallProgram.
      StoreRelease(Observe.PressureCalls[Index].Call, NativeUInt(@Call));
      Result := True;
    end;
end;

// Waits until a call under way is over. A thread that looks without calls may be this one, in the
// program's routine for events.
procedure AwaitCall;
var
  Looker: NativeUInt;
begin
  Looker := LoadAcquire(Observe.PressureBusy);
  while (Looker <> 0) and (Looker = Process.PurgeThread) and (Looker <> OsThreadId) do
  begin
    OsWait(Observe.PressureBusy, Looker);
    Looker := LoadAcquire(Observe.PressureBusy);
  end;
end;

function PressureOff(Call: TPressureCall; Context: Pointer): Boolean;
var
  Index: NativeInt;
begin
  Result := False;
  LockRecover; // in a child process no call is under way
  for Index := Low(Observe.PressureCalls) to High(Observe.PressureCalls) do
    if not Result and (Observe.PressureCalls[Index].Context = Context)
      and CompareAndSwap(Observe.PressureCalls[Index].Call, NativeUInt(@Call), 0) then
    begin
      AwaitCall;
      StoreRelease(Observe.PressureCalls[Index].IsTaken, 0);
      Result := True;
    end;
end;

procedure PressureForget;
begin
  StoreRelease(Observe.PressureBusy, 0);
  StoreRelease(Observe.Pressed, 0);
end;

end.
