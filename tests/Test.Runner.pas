/// Runs the registered tests and prints what fails.
unit Test.Runner;

{$mode delphi}{$H+}

interface

/// Does what the command line asks for; returns the exit code.
function RunTests: Integer;

implementation

uses
  SysUtils, Classes, StrUtils, BaseUnix, fpcunit, testregistry, Test.Tools, Yielding;

const
  Usage = 'RunTests [--suite=NAME] [--list] [--seed=N]'#10
    + '  --suite=NAME  only the tests of one unit, e.g. Blocks'#10
    + '  --list        print the names of the tests'#10
    + '  --seed=N      seed of the random sequences';
  // A test that takes longer hangs.
  SecondsPerTest = 120;

type
  /// Keeps the count and prints the failures as they come.
  TListener = class(TInterfacedObject, ITestListener)
  public
    procedure AddFailure(Test: TTest; Failure: TTestFailure);
    procedure AddError(Test: TTest; Error: TTestFailure);
    procedure StartTest(Test: TTest);
    procedure EndTest(Test: TTest);
    procedure StartTestSuite(Suite: TTestSuite);
    procedure EndTestSuite(Suite: TTestSuite);
  end;

var
  RunCount, FailedCount: Integer;
  CurrentTest: string;

procedure PrintCounts;
begin
  WriteLn(RunCount - FailedCount, ' passed, ', FailedCount, ' failed');
  Flush(Output);
end;

procedure TestHangs(Signal: LongInt); cdecl;
begin
  WriteLn(CurrentTest, ': hangs');
  Inc(FailedCount);
  PrintCounts;
  FpKill(FpGetPid, SIGKILL);
end;

procedure TListener.AddFailure(Test: TTest; Failure: TTestFailure);
begin
  Inc(FailedCount);
  WriteLn(CurrentTest, ': ', Failure.ExceptionMessage);
  Flush(Output);
end;

procedure TListener.AddError(Test: TTest; Error: TTestFailure);
begin
  Inc(FailedCount);
  WriteLn(CurrentTest, ': ', Error.ExceptionClassName, ': ', Error.ExceptionMessage);
  Flush(Output);
end;

procedure TListener.StartTest(Test: TTest);
begin
  Inc(RunCount);
  CurrentTest := Test.TestSuiteName + '.' + Test.TestName;
  FpAlarm(SecondsPerTest);
end;

procedure TListener.EndTest(Test: TTest);
begin
  FpAlarm(0);
end;

procedure TListener.StartTestSuite(Suite: TTestSuite);
begin
end;

procedure TListener.EndTestSuite(Suite: TTestSuite);
begin
end;

// The value of --Name=Value, or '' when it is not given.
function Option(const Name: string): string;
var
  Index: Integer;
begin
  Result := '';
  for Index := 1 to ParamCount do
    if StartsStr('--' + Name + '=', ParamStr(Index)) then
      Result := Copy(ParamStr(Index), Length(Name) + 4, MaxInt);
end;

function HasSwitch(const Name: string): Boolean;
var
  Index: Integer;
begin
  Result := False;
  for Index := 1 to ParamCount do
    Result := Result or (ParamStr(Index) = '--' + Name);
end;

function IsWanted(Suite: TTest; const Name: string): Boolean;
begin
  Result := (Name = '') or SameText(Suite.TestName, Name)
    or SameText(Suite.TestName, 'T' + Name + 'Tests');
end;

procedure ListSuite(Suite: TTestSuite);
var
  Index: Integer;
begin
  for Index := 0 to Suite.ChildTestCount - 1 do
    WriteLn(Suite.TestName, '.', Suite.Test[Index].TestName);
end;

procedure RunSuite(Suite: TTestSuite; Listener: ITestListener);
var
  Outcome: TTestResult;
begin
  Outcome := TTestResult.Create;
  try
    Outcome.AddListener(Listener);
    Suite.Run(Outcome);
  finally
    Outcome.Free;
  end;
end;

function RunTests: Integer;
var
  Suites: TTestSuite;
  Listener: ITestListener;
  Index: Integer;
begin
  if HasSwitch('help') then
  begin
    WriteLn(Usage);
    Exit(0);
  end;
  TestSeed := StrToInt64Def(Option('seed'), TestSeed);
  if not HasSwitch('list') then
    WriteLn('seed ', TestSeed);
  YieldingStart(TestSeed);
  FpSignal(SIGALRM, TestHangs);
  Listener := TListener.Create;
  Suites := GetTestRegistry;
  for Index := 0 to Suites.ChildTestCount - 1 do
    if IsWanted(Suites.Test[Index], Option('suite')) then
      if HasSwitch('list') then
        ListSuite(Suites.Test[Index] as TTestSuite)
      else
        RunSuite(Suites.Test[Index] as TTestSuite, Listener);
  if HasSwitch('list') then
    Exit(0);
  PrintCounts;
  Result := Ord((FailedCount > 0) or (RunCount = 0));
end;

end.
