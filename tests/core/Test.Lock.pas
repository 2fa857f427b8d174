/// Tests of LaneMM.Lock.
unit Test.Lock;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Layout;

type
  TLockTests = class(TQuietTest)
  strict private
    Lock: TLock;
    Sum: Integer;
    Entered: TAtomicWord;
    TookIt: Boolean;
    procedure AddUnderTheLock;
    procedure EnterOnce;
    procedure TryOnce;
    procedure TryAgain;
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
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Types, LaneMM.Atomic, LaneMM.Lock;

const
  ThreadCount = 4;
  AddCount = 50000;

procedure TLockTests.SetUp;
begin
  inherited SetUp;
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

initialization
  RegisterTest(TLockTests);
end.
