/// A program whose threads wait for each other, or only look like that, for the tests of lanemm.
//
//   Stuck two | three | itself | ended | owned | wakeup | joined | signal [NUMBER] | idle | server
//     | timer | busy
//
// `two` and `three` are deadlocks of so many threads, `itself` one of a thread with itself; of `ended`
// the owner of a lock has ended, and of `owned` the owner waits for an event. In `wakeup` and `joined`
// an event is set and reset before a thread waits for it; in `signal` a handler could set it. The
// others are idle, a pool, a server, timers; or `busy`. Prints `ready 1` where the threads are about to wait, and ends with its input.
program Stuck;

{$mode objfpc}{$H+}

uses
  LaneMM, cthreads, SysUtils, Classes, SyncObjs, BaseUnix, Sockets;

type
  TWorker = class(TThread)
  public
    Number: Integer;
    procedure LockNext;
    procedure Execute; override;
  end;

var
  Locks: array[0..2] of TCriticalSection;
  A, B: TCriticalSection;
  Plain: TRTLCriticalSection;
  Event: PRTLEvent;
  Locked: Longint;
  Count: Integer;
  Command: string;

// Waits until all threads have their first lock.
procedure AwaitOthers;
begin
  InterlockedIncrement(Locked);
  while InterlockedExchangeAdd(Locked, 0) < Count do
    Sleep(1);
end;

procedure TWorker.LockNext;
begin
  Locks[Number].Enter;
  AwaitOthers;
  Locks[(Number + 1) mod Count].Enter; // dead-locked
end;

procedure TWorker.Execute;
begin
  if (Command = 'two') or (Command = 'three') then
    LockNext
  else if Command = 'busy' then
    repeat
      Inc(Locked);
    until False
  else if (Command <> 'ended') and (Command <> 'owned') then
    RTLEventWaitFor(Event) // for ever
  else if Number = 0 then
  begin
    EnterCriticalSection(Plain);
    AwaitOthers;
    if Command = 'owned' then
      RTLEventWaitFor(Event);
  end
  else
  begin
    AwaitOthers;
    while (Command = 'ended') and not Terminated do
      Sleep(1);
    EnterCriticalSection(Plain);
  end;
end;

function pthread_mutex_lock(Lock: Pointer): Integer; cdecl; external 'c';

// A lock that refuses its owner, as the C library's are by default.
function LockTwice(Parameter: Pointer): PtrInt;
var
  Lock: array[0..4] of Int64;
begin
  FillChar(Lock, SizeOf(Lock), 0);
  pthread_mutex_lock(@Lock);
  pthread_mutex_lock(@Lock);
  Result := 0;
end;

procedure Ignore(Signal: cint); cdecl;
begin
end;

procedure Accept;
var
  Server: TSocket;
  Address: TInetSockAddr;
begin
  Server := fpSocket(AF_INET, SOCK_STREAM, 0);
  FillChar(Address, SizeOf(Address), 0);
  Address.sin_family := AF_INET;
  fpBind(Server, @Address, SizeOf(Address));
  fpListen(Server, 1);
  fpAccept(Server, nil, nil);
end;

procedure ReadInput;
var
  Sign: AnsiChar;
begin
  while fpRead(0, Sign, 1) > 0 do;
end;

var
  Workers: array[0..2] of TWorker;
  Index: Integer;

begin
  Command := ParamStr(1);
  Count := 2 + Ord(Command = 'three');
  for Index := 0 to 2 do
    Locks[Index] := TCriticalSection.Create;
  A := Locks[0];
  B := Locks[1];
  InitCriticalSection(Plain);
  Event := RTLEventCreate;
  RTLEventSetEvent(Event);
  RTLEventResetEvent(Event);
  for Index := 0 to Count - 1 do
  begin
    Workers[Index] := TWorker.Create(True);
    Workers[Index].Number := Index;
    Workers[Index].Start;
  end;
  if Command = 'itself' then
    BeginThread(@LockTwice);
  if Command = 'ended' then
  begin
    Workers[0].WaitFor;
    Workers[1].Terminate;
  end;
  WriteLn('ready 1');
  Flush(Output);
  if Command = 'signal' then
    fpSignal(StrToIntDef(ParamStr(2), SIGTERM), @Ignore);
  if (Command = 'wakeup') or (Command = 'signal') then
    RTLEventWaitFor(Event)
  else if Command = 'joined' then
    Workers[0].WaitFor
  else if Command = 'server' then
    Accept
  else if Command = 'timer' then
    repeat
      Sleep(1000000);
    until False
  else
    ReadInput;
  Halt(0);
end.
