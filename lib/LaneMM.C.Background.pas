/// The thread that purges, in the library: the setting `background`, and calls at memory pressure.
//
// Owns:       Background; the thread.
// Invariants: the thread is started by pthread_create in ordinary calls alone: when the library is
//             initialized, by its own functions, and after fork; never within malloc, which libc
//             calls under locks of its own. It has all signals of the program blocked, and those of
//             libc not: setuid waits for each thread. It is ended before fork, unless it is in a
//             call of the program's, and started again in the parent and in the child; a child that
//             was not made by libc's fork has none. A library that can be unloaded has none.
//             The lock is held from before fork until after it: libc runs the handlers of threads
//             that fork at once in any order.
// Callers:    BackgroundApply, BackgroundStart: any thread that may wait for a fork. BackgroundEnd:
//             one thread. BackgroundNotify: any thread. The fork handlers: libc.
// Progress:   a fork waits for the thread, 100 ms at most, and for forks of other threads. In the
//             handler of a signal that has interrupted the thread with the lock none waits for it.
unit LaneMM.C.Background;

{$I ../src/LaneMM.inc}

interface

/// Starts or ends the thread as the setting says. An ordinary call. False, and nothing done, in the
/// handler of a signal that has interrupted such a call or a fork of its thread.
function BackgroundApply: Boolean;
/// Starts the thread as if the setting said so; returns whether there is one.
function BackgroundStart: Boolean;
/// Lets the thread, if there is one, see new settings at once.
procedure BackgroundNotify;
/// Ends the thread, at the end of the program. False if it is still in a call of the program's.
function BackgroundEnd: Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.Purge,
  LaneMM.SettingsState, LaneMM.Watch, LaneMM.C.Handlers;

const
  SetMask = 2;

type
  // libc's sigset_t.
  TSignalSet = array[0..15] of UInt64;

  TBackground = record
    Taker: TAtomicWord;    // the lock, see WatchTake; no other one of LaneMM's is held where it
                           // is taken
    ForksInside: Boolean;  // a handler of a signal forks that has interrupted the thread with it
    Thread: NativeUInt;    // libc's number of the thread; 0: none, or it was joined
    IsOn: TAtomicWord;     // 1: there is a thread, or was when the process forked
    HasEnded: TAtomicWord; // 1: it can be joined without a wait
    HandlesForks: Boolean;
  end;

var
  Background: TBackground;

function LibcCreate(out Id: NativeUInt; Attributes, Routine, Argument: Pointer): LongInt; cdecl;
  external name 'pthread_create';
function LibcJoin(Id: NativeUInt; Answer: Pointer): LongInt; cdecl; external name 'pthread_join';
function LibcMask(How: LongInt; New, Old: Pointer): LongInt; cdecl;
  external name 'pthread_sigmask';
function LibcFill(out Signals: TSignalSet): LongInt; cdecl; external name 'sigfillset';

function RunThread(Argument: Pointer): Pointer; cdecl;
begin
  PurgeRun;
  StoreRelease(Background.HasEnded, 1); // after all that it has done. Pairs with Join
  OsWakeAll(Background.HasEnded);
  Result := nil;
end;

// Joins the thread, which has ended or is about to. Under the lock.
procedure Join;
begin
  if Background.Thread = 0 then
    Exit;
  while LoadAcquire(Background.HasEnded) = 0 do
    OsWaitMs(Background.HasEnded, 0, 1);
  LibcJoin(Background.Thread, nil);
  Background.Thread := 0;
end;

// Starts the thread if the place is free. Under the lock.
procedure Start;
var
  All, Before: TSignalSet;
begin
  if not PurgeClaim then
    Exit;
  Join; // the one before, whose end no thread may have waited for
  StoreRelease(Background.HasEnded, 0);
  LibcFill(All); // but for libc's own
  LibcMask(SetMask, @All, @Before);
  if LibcCreate(Background.Thread, nil, @RunThread, nil) = 0 then
    StoreRelease(Background.IsOn, 1)
  else
  begin
    Background.Thread := 0;
    PurgeGiveUp;
  end;
  LibcMask(SetMask, @Before, nil);
end;

// Tells the thread to end, and waits for that a bounded time: it may be in a call of the program's,
// which waits for a lock of the calling thread.
procedure Finish;
const
  MostRounds = 100;
  RoundMs = 1;
var
  Round: Cardinal;
begin
  if OsThreadId = Process.PurgeThread then
    Exit;
  if not PurgeDismiss then
  begin
    StoreRelease(Background.IsOn, 0); // the main thread has ended
    Exit;
  end;
  for Round := 1 to MostRounds do
    if LoadAcquire(Background.HasEnded) = 0 then
      OsWaitMs(Background.HasEnded, 0, RoundMs);
  if LoadAcquire(Background.HasEnded) <> 0 then
    Join;
end;

// ---------------------------------------------------------------------------- fork

procedure BeforeFork; cdecl;
begin
  Background.ForksInside := not WatchTake(Background.Taker);
  if not Background.ForksInside and (LoadAcquire(Background.IsOn) = 1) then
    Finish;
end;

procedure AfterFork; cdecl;
begin
  if Background.ForksInside then
  begin
    Background.ForksInside := False;
    Exit;
  end;
  if (LoadAcquire(Background.IsOn) = 1) and (OsThreadId <> Process.PurgeThread)
    and not PurgeRecall then
    Start;
  WatchLeave(Background.Taker);
end;

// The thread that forked is the only one. The engine recovers before another one starts.
procedure ChildStarted; cdecl;
begin
  WatchLeave(Background.Taker);
  Background.ForksInside := False;
  Background.Thread := 0;
  if LoadAcquire(Background.IsOn) = 0 then
    Exit;
  LockRecover;
  Start;
end;

// ---------------------------------------------------------------------------- all

procedure BackgroundNotify;
begin
  if PurgeWake then
    OsWake(Process.PurgeState); // it may wait for the end of a long delay
end;

function BackgroundEnd: Boolean;
begin
  if Swap(Background.IsOn, 0) = 1 then
    Finish;
  Result := (Background.Thread = 0) or (LoadAcquire(Background.HasEnded) = 1);
end;

// Under the lock.
procedure Apply;
begin
  if not IsSet(opBackground) then
  begin
    BackgroundEnd;
    Exit;
  end;
  if not Process.StaysLoaded or (Settings.Values[opCalls] = 0) then
    Exit;
  if not Background.HandlesForks then
    HandleForks(BeforeFork, AfterFork, ChildStarted, nil);
  Background.HandlesForks := True;
  if LoadAcquire(Background.IsOn) = 0 then
    Start
  else
    BackgroundNotify;
end;

function BackgroundApply: Boolean;
begin
  if not IsSet(opBackground) and (LoadAcquire(Background.IsOn) = 0) then
    Exit(True);
  Result := WatchTake(Background.Taker);
  if not Result then
    Exit;
  Apply;
  WatchLeave(Background.Taker);
end;

function BackgroundStart: Boolean;
begin
  Settings.Values[opBackground] := 1;
  Result := BackgroundApply and (LoadAcquire(Background.IsOn) = 1);
end;

end.
