/// Tests of LaneMM.Lock.
unit Test.Lock;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TLockTests = class(TLaneTest)
  strict private
    Lock: TLock;
    Sum: Integer;
    Entered: TAtomicWord;
    TookIt: Boolean;
    procedure AddUnderTheLock;
    procedure EnterOnce;
    procedure TryOnce;
    procedure TryAgain;
    function RunInChild(Law: Boolean; out Text: string): Integer;
  protected
    procedure SetUp; override;
  published
    procedure EnterExcludesOtherThreads;
    procedure TryTakesAFreeLock;
    procedure TryFailsWhileAnotherThreadHasTheLock;
    procedure LeaveFreesTheLock;
    procedure ResetFreesALockThatNobodyCanLeave;
    procedure FailedFirstTriesAreCounted;
    procedure FailedTriesAreCountedButNotTheirRepetition;
    procedure UncontendedLockCallsTheSystemNever;
    procedure ParkedThreadsAreWokenOneByOne;
    procedure FalseLawEndsTheProgramWith204AndItsText;
    procedure TrueLawDoesNothing;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Atomic, LaneMM.Lock;

const
  ThreadCount = 4;
  AddCount = 50000;

procedure TLockTests.SetUp;
begin
  FillChar(Lock, SizeOf(Lock), 0);
  Sum := 0;
  Entered := 0;
end;

procedure TLockTests.AddUnderTheLock;
var
  Index: Integer;
begin
  for Index := 1 to AddCount do
  begin
    LockEnter(Lock);
    Inc(Sum);
    LockLeave(Lock);
  end;
end;

procedure TLockTests.EnterExcludesOtherThreads;
begin
  InThreads(ThreadCount, AddUnderTheLock);
  Same(ThreadCount * AddCount, Sum, 'sum');
end;

procedure TLockTests.TryTakesAFreeLock;
begin
  AssertTrue('taken', LockTry(Lock));
  LockLeave(Lock);
end;

procedure TLockTests.TryOnce;
begin
  TookIt := LockTry(Lock);
end;

procedure TLockTests.TryFailsWhileAnotherThreadHasTheLock;
begin
  LockEnter(Lock);
  InThread(TryOnce);
  LockLeave(Lock);
  AssertFalse('taken', TookIt);
end;

procedure TLockTests.LeaveFreesTheLock;
begin
  LockEnter(Lock);
  LockLeave(Lock);
  InThread(TryOnce);
  AssertTrue('taken', TookIt);
end;

procedure TLockTests.ResetFreesALockThatNobodyCanLeave;
begin
  LockEnter(Lock);
  LockReset(Lock);
  AssertTrue('taken', LockTry(Lock));
end;

procedure TLockTests.EnterOnce;
begin
  LockEnter(Lock);
  FetchAdd(Entered, 1);
  LockLeave(Lock);
end;

procedure TLockTests.FailedFirstTriesAreCounted;
var
  Worker: TWorker;
begin
  LockEnter(Lock);
  Same(0, Lock.Contended, 'before');
  Worker := TWorker.Create(EnterOnce, False);
  while LoadAcquire(Lock.Contended) = 0 do
    ThreadSwitch;
  Same(0, LoadAcquire(Entered), 'threads inside while the lock is taken');
  LockLeave(Lock);
  EndThread(Worker);
  Same(1, Entered, 'threads that were inside');
  Same(1, Lock.Contended, 'count');
end;

procedure TLockTests.TryAgain;
begin
  TookIt := LockTryAgain(Lock);
end;

procedure TLockTests.FailedTriesAreCountedButNotTheirRepetition;
begin
  LockEnter(Lock);
  InThread(TryOnce);
  Same(1, Lock.Contended, 'count');
  InThread(TryAgain);
  AssertFalse('taken', TookIt);
  Same(1, Lock.Contended, 'count');
  LockLeave(Lock);
  InThread(TryAgain);
  AssertTrue('taken', TookIt);
end;

procedure TLockTests.UncontendedLockCallsTheSystemNever;
var
  Before: NativeUInt;
begin
  Before := Process.OsCalls[ocWait] + Process.OsCalls[ocWake];
  AddUnderTheLock;
  Same(Before, Process.OsCalls[ocWait] + Process.OsCalls[ocWake], 'calls');
end;

procedure TLockTests.ParkedThreadsAreWokenOneByOne;
const
  TakenWithWaiters = 2;
var
  Workers: array[1..ThreadCount] of TWorker;
  Index: Integer;
begin
  LockEnter(Lock);
  for Index := 1 to ThreadCount do
    Workers[Index] := TWorker.Create(EnterOnce, False);
  while (LoadAcquire(Lock.Contended) < ThreadCount)
    or (LoadAcquire(Lock.State) <> TakenWithWaiters) do
    ThreadSwitch;
  LockLeave(Lock);
  for Index := 1 to ThreadCount do
    EndThread(Workers[Index]);
  Same(ThreadCount, Entered, 'threads that came in');
  AssertTrue('free at the end', LockTry(Lock));
end;

// States a law in a child process; returns its exit code and what it wrote.
function TLockTests.RunInChild(Law: Boolean; out Text: string): Integer;
var
  Pipe: TFilDes;
  Child: TPid;
  Status, Length: Integer;
  Found: array[0..199] of AnsiChar;
begin
  AssertEquals('pipe', 0, FpPipe(Pipe));
  Flush(Output);
  Child := FpFork;
  if Child = 0 then
  begin
    FpDup2(Pipe[1], StdErrorHandle);
    LaneMM.Lock.Check(Law, 'a law of the test');
    FpExit(0);
  end;
  FpClose(Pipe[1]);
  Text := '';
  repeat
    Length := FpRead(Pipe[0], @Found[0], SizeOf(Found));
    Text := Text + Copy(Found, 1, Length);
  until Length <= 0;
  FpClose(Pipe[0]);
  FpWaitPid(Child, Status, 0);
  AssertTrue('child has ended by itself', WIfExited(Status));
  Result := WExitStatus(Status);
end;

procedure TLockTests.FalseLawEndsTheProgramWith204AndItsText;
var
  Text: string;
begin
  Same(204, RunInChild(False, Text), 'exit code');
  AssertTrue('text: ' + Text, Pos('LaneMM: a law of the test'#10, Text) = 1);
end;

procedure TLockTests.TrueLawDoesNothing;
var
  Text: string;
begin
  Same(0, RunInChild(True, Text), 'exit code');
  AssertEquals('text', '', Text);
end;

initialization
  RegisterTest(TLockTests);
end.
