/// Tests of ProcessPauses: a thread that was stopped goes on as if it had not been.
unit Test.Lanemm.Pauses;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  /// Threads of a child process.
  TPauseTests = class(TLaneTest)
  published
    procedure ASignalThatComesBeforeTheStopIsNotLost;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, ProcessPauses;

var
  Received: Integer;
  IsDone: Boolean;

procedure Count(Signal: cint); cdecl;
begin
  Inc(Received);
end;

procedure Finish(Signal: cint); cdecl;
begin
  IsDone := True;
end;

// Sends itself signals; ends with 0 if it has got each of them.
procedure SendSignals;
var
  Own, Sent: Integer;
begin
  fpSignal(SIGUSR1, Count);
  fpSignal(SIGUSR2, Finish);
  Own := fpGetPid;
  Sent := 0;
  repeat
    fpKill(Own, SIGUSR1);
    Inc(Sent);
  until IsDone;
  fpExit(Ord(Received <> Sent));
end;

// Between the two requests of ptrace one of its signals often stops it, if only it runs then.
procedure TPauseTests.ASignalThatComesBeforeTheStopIsNotLost;
const
  LeastTurns = 200;
  PatienceMs = 20000;
var
  Child, Status: LongInt;
  Turn, SignalCount: Integer;
  Limit: QWord;
  Seized: TSeized;
begin
  Child := fpFork;
  if Child = 0 then
    SendSignals;
  SignalCount := 0;
  Turn := 0;
  Limit := GetTickCount64 + PatienceMs;
  repeat
    Inc(Turn);
    if ThreadSeize(Child, 0, Seized) then
    begin
      Inc(SignalCount, Ord(ThreadAwait(Seized) = spSignal));
      ThreadLetGo(Seized);
    end;
  until (Turn >= LeastTurns) and (SignalCount > 0) or (GetTickCount64 > Limit);
  fpKill(Child, SIGUSR2);
  fpWaitPid(Child, Status, 0);
  AtLeast(1, SignalCount, 'stops at a signal');
  Same(0, Status, 'the child has got all signals');
end;

initialization
  RegisterTest(TPauseTests);
end.
