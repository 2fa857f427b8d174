/// Runs the registered tests, in their order or shuffled, and prints what fails.
unit Test.Runner;

{$mode delphi}{$H+}

interface

/// Does what the command line asks for; returns the exit code.
function RunTests: Integer;

implementation

uses
  SysUtils, Classes, StrUtils, Process, fpcunit, testregistry, Test.System, Test.Tools, Yielding;

const
  Usage = 'RunTests [--suite=NAME] [--skip=NAME] [--test=NAME] [--alone] [--shuffle] [--seed=N]'#10
    + '         [--limit=N] [--times] [--list]'#10
    + '  --suite=NAME  only the tests of one unit, e.g. Blocks, or of several: Blocks,Walk'#10
    + '  --skip=NAME   not the tests of this unit, or of several'#10
    + '  --test=NAME   only the tests of this name'#10
    + '  --alone       each suite in a process of its own'#10
    + '  --shuffle     the suites, and the tests of each, in an order that the seed gives'#10
    + '  --seed=N      the seed of the order and of the random sequences; it is printed. Without'#10
    + '                it: always the same, and with --shuffle another one in each run'#10
    + '  --limit=N     the seconds after which a test hangs (1800)'#10
    + '  --times       print the processor seconds of each suite'#10
    + '  --without=FILE  not the tests that begin a line of FILE, each followed by a colon and the'#10
    + '                reason: what an emulator or a target cannot do, see tests/matrix'#10
    + '  --list        print the names of the tests';
  // A test that takes longer hangs, unless --limit says another time: long, for a busy machine.
  DefaultLimit = 1800;
  // Begins the lines before the counts that name the failed tests.
  FailedMark = 'failed: ';

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
  // Names of tests that this run is still to leave out.
  LeftOut: TStringList;
  RunCount, FailedCount: Integer;
  // Suites that have ended, and that this run has.
  SuiteNumber, SuiteCount: Integer;
  SecondsPerTest: Integer;
  CurrentTest: string;
  // Names of failed tests, as lines for the end of the output.
  FailedNames: string;

procedure CountFailure(const Name: string);
begin
  Inc(FailedCount);
  FailedNames := FailedNames + FailedMark + Name + LineEnding;
end;

procedure PrintCounts;
begin
  WriteLn(RunCount - FailedCount, ' passed, ', FailedCount, ' failed');
  Flush(Output);
end;

// Allocates nothing: the test may hang inside the memory manager.
procedure TestHangs;
begin
  WriteLn(CurrentTest, ': hangs');
  Inc(FailedCount);
  Write(FailedNames);
  WriteLn(FailedMark, CurrentTest);
  PrintCounts;
  EndProcess(1);
end;

procedure TListener.AddFailure(Test: TTest; Failure: TTestFailure);
begin
  if Failure.IsIgnoredTest then
  begin
    Dec(RunCount);
    WriteLn('skipped: ', CurrentTest, ': ', Failure.ExceptionMessage);
    Flush(Output);
    Exit;
  end;
  CountFailure(CurrentTest);
  WriteLn(CurrentTest, ': ', Failure.ExceptionMessage);
  Flush(Output);
end;

procedure TListener.AddError(Test: TTest; Error: TTestFailure);
begin
  CountFailure(CurrentTest);
  WriteLn(CurrentTest, ': ', Error.ExceptionClassName, ': ', Error.ExceptionMessage);
  WriteLn(Error.LocationInfo);
  Flush(Output);
end;

procedure TListener.StartTest(Test: TTest);
begin
  Inc(RunCount);
  CurrentTest := Test.TestSuiteName + '.' + Test.TestName;
  SetAlarm(SecondsPerTest, TestHangs);
end;

procedure TListener.EndTest(Test: TTest);
begin
  SetAlarm(0, TestHangs);
end;

procedure TListener.StartTestSuite(Suite: TTestSuite);
begin
end;

procedure TListener.EndTestSuite(Suite: TTestSuite);
begin
end;

function HasSwitch(const Name: string): Boolean;
var
  Index: Integer;
begin
  Result := False;
  for Index := 1 to ParamCount do
    Result := Result or (ParamStr(Index) = '--' + Name);
end;

function IsOption(const Argument: string): Boolean;
begin
  Result := MatchStr(Argument, ['--help', '--alone', '--shuffle', '--times', '--list'])
    or StartsStr('--suite=', Argument) or StartsStr('--skip=', Argument)
    or StartsStr('--without=', Argument) or StartsStr('--test=', Argument)
    or StartsStr('--seed=', Argument) and (StrToInt64Def(Option('seed'), -1) >= 0)
    or StartsStr('--limit=', Argument) and (StrToIntDef(Option('limit'), 0) > 0);
end;

// The first argument without a meaning; '' when there is none.
function UnknownArgument: string;
var
  Index: Integer;
begin
  Result := '';
  for Index := ParamCount downto 1 do
    if not IsOption(ParamStr(Index)) then
      Result := ParamStr(Index);
end;

procedure ChooseSeed;
const
  SeedCount = 1000000000;
begin
  if Option('seed') <> '' then
    TestSeed := StrToInt64(Option('seed'))
  else if HasSwitch('shuffle') then
    TestSeed := (GetTickCount64 * 1000 + UInt64(GetProcessID)) mod SeedCount;
end;

// The name of the suite's unit.
function UnitName(Suite: TTest): string;
begin
  Result := Suite.TestName;
  if StartsStr('T', Result) and EndsStr('Tests', Result) then
    Result := Copy(Result, 2, Length(Result) - 6);
end;

// Whether the option names the suite, by its name or that of its unit.
function IsNamed(Suite: TTest; const Names: string): Boolean;
var
  Name: string;
begin
  Result := False;
  for Name in Option(Names).Split([',']) do
    Result := Result or SameText(Suite.TestName, Name) or SameText(UnitName(Suite), Name);
end;

function IsWanted(Suite: TTest): Boolean;
begin
  Result := ((Option('suite') = '') or IsNamed(Suite, 'suite')) and not IsNamed(Suite, 'skip');
end;

// The tests of Suite, or the suites of the registry, in the order of this run.
function InOrder(Suite: TTestSuite): TFPList;
var
  Order: TGenerator;
  Index: Integer;
begin
  Result := TFPList.Create;
  for Index := 0 to Suite.ChildTestCount - 1 do
    Result.Add(Suite.Test[Index]);
  if not HasSwitch('shuffle') then
    Exit;
  Order.Start(TestSeed);
  for Index := Result.Count - 1 downto 1 do
    Result.Exchange(Index, Order.Below(Index + 1));
end;

// Reads the names of the tests that this run leaves out.
procedure ReadLeftOut;
var
  Line: string;
begin
  LeftOut := TStringList.Create;
  if Option('without') = '' then
    Exit;
  for Line in ReadText(Option('without')).Split([LineEnding]) do
    if Pos(':', Line) > 0 then
      LeftOut.Add(Copy(Line, 1, Pos(':', Line) - 1));
end;

// Whether this run has the test. A name that is left out is gone from the list then.
function IsInRun(Suite: TTestSuite; const Name: string): Boolean;
var
  Index: Integer;
begin
  Index := LeftOut.IndexOf(Suite.TestName + '.' + Name);
  Result := (Index < 0) and ((Option('test') = '') or SameText(Option('test'), Name));
  if Index >= 0 then
    LeftOut.Delete(Index);
end;

// A name of a suite of this program that no test has is a mistake in the list.
procedure CheckLeftOut;
var
  Name: string;
  Index: Integer;
begin
  if HasSwitch('alone') or HasSwitch('list') or (Option('suite') + Option('test') <> '') then
    Exit;
  for Name in LeftOut do
    for Index := 0 to GetTestRegistry.ChildTestCount - 1 do
      if StartsStr(GetTestRegistry.Test[Index].TestName + '.', Name) then
        CountFailure(Name + ' is no test');
end;

procedure ListSuite(Suite: TTestSuite);
var
  Tests: TFPList;
  Index: Integer;
begin
  Tests := InOrder(Suite);
  for Index := 0 to Tests.Count - 1 do
    WriteLn(Suite.TestName, '.', TTest(Tests[Index]).TestName);
  Tests.Free;
end;

procedure RunSuite(Suite: TTestSuite; Listener: ITestListener);
var
  Outcome: TTestResult;
  Tests: TFPList;
  Index: Integer;
begin
  Tests := InOrder(Suite);
  Outcome := TTestResult.Create;
  try
    Outcome.AddListener(Listener);
    for Index := 0 to Tests.Count - 1 do
      if IsInRun(Suite, TTest(Tests[Index]).TestName) then
        TTest(Tests[Index]).Run(Outcome);
  finally
    Outcome.Free;
    Tests.Free;
  end;
end;

// Takes the lines that the process of one suite printed: its counts and the names of its failed tests
// are added to those of this process, the rest is printed.
procedure TakeLines(Lines: TStrings; out HasCounts: Boolean);
var
  Line: string;
  Passed, Failed: Integer;
begin
  HasCounts := False;
  for Line in Lines do
    if SScanf(Line, '%d passed, %d failed', [@Passed, @Failed]) = 2 then
    begin
      HasCounts := True;
      Inc(RunCount, Passed + Failed);
      Inc(FailedCount, Failed);
    end
    else if StartsStr(FailedMark, Line) then
      FailedNames := FailedNames + Line + LineEnding
    else if not (StartsStr('seed ', Line) or StartsStr('1/1 ', Line)) then
      WriteLn(Line);
end;

// Whether a test of Suite is not left out.
function HasTests(Suite: TTestSuite): Boolean;
var
  Index: Integer;
begin
  Result := False;
  for Index := 0 to Suite.ChildTestCount - 1 do
    Result := Result or (LeftOut.IndexOf(Suite.TestName + '.' + Suite.Test[Index].TestName) < 0);
end;

// Runs Suite, if it has tests, in a process of its own. A process without counts is one failed
// test, and so is one that has counted no failure and ends badly.
procedure RunAlone(Suite: TTestSuite);
var
  Child: TProcess;
  Lines: TStringList;
  HasCounts: Boolean;
  FailedBefore: Integer;
begin
  if not HasTests(Suite) then
    Exit;
  Child := TProcess.Create(nil);
  Lines := TStringList.Create;
  try
    Child.Executable := GetEnvironmentVariable('RUN');
    // What runs programs of Windows is no program of Windows, and not needed inside.
    if (Child.Executable = '') or (PathDelim = '\') then
      Child.Executable := ParamStr(0)
    else
      Child.Parameters.Add(ParamStr(0));
    Child.Parameters.Add('--suite=' + Suite.TestName);
    Child.Parameters.Add('--seed=' + IntToStr(TestSeed));
    if HasSwitch('shuffle') then
      Child.Parameters.Add('--shuffle');
    if Option('limit') <> '' then
      Child.Parameters.Add('--limit=' + Option('limit'));
    if Option('without') <> '' then
      Child.Parameters.Add('--without=' + Option('without'));
    Child.Options := [poUsePipes, poStderrToOutPut];
    Child.Execute;
    Lines.Text := ReadAll(Child.Output);
    Child.WaitOnExit;
    FailedBefore := FailedCount;
    TakeLines(Lines, HasCounts);
    if HasCounts and ((FailedCount > FailedBefore) or (Child.ExitStatus = 0)) then
      Exit;
    WriteLn(Suite.TestName, ': ended badly, status ', Child.ExitStatus);
    Inc(RunCount);
    CountFailure(Suite.TestName);
  finally
    Lines.Free;
    Child.Free;
  end;
end;

// A line for a person who waits, which tools/sum-tests.sh reads, too.
procedure PrintProgress(Suite: TTestSuite; Tests, Failed: Integer; Seconds: UInt64);
begin
  Write(SuiteNumber, '/', SuiteCount, ' ', UnitName(Suite), ' ', Tests, IfThen(Tests = 1, ' test ', ' tests '),
    Seconds, ' s');
  if Failed > 0 then
    Write(', ', Failed, ' failed');
  WriteLn;
end;

procedure DoSuite(Suite: TTestSuite; Listener: ITestListener);
var
  Before: Double;
  Start: UInt64;
  RunBefore, FailedBefore: Integer;
begin
  Before := ProcessorSeconds;
  Start := GetTickCount64;
  RunBefore := RunCount;
  FailedBefore := FailedCount;
  Inc(SuiteNumber);
  if HasSwitch('list') then
    ListSuite(Suite)
  else if HasSwitch('alone') then
    RunAlone(Suite)
  else
    RunSuite(Suite, Listener);
  if HasSwitch('times') then
    WriteLn(Suite.TestName, ': ', ProcessorSeconds - Before:0:1, ' s');
  if not HasSwitch('list') then
    PrintProgress(Suite, RunCount - RunBefore, FailedCount - FailedBefore,
      (GetTickCount64 - Start) div 1000);
  Flush(Output);
end;

function RunTests: Integer;
var
  Suites: TFPList;
  Listener: ITestListener;
  Index: Integer;
begin
  if HasSwitch('help') or (UnknownArgument <> '') then
  begin
    WriteLn(Usage);
    Exit(Ord(not HasSwitch('help')));
  end;
  SetTextLineEnding(Output, #10); // scripts read it, on every system
  ChooseSeed;
  SecondsPerTest := StrToIntDef(Option('limit'), DefaultLimit);
  if not HasSwitch('list') then
    WriteLn('seed ', TestSeed);
  ReadLeftOut;
  YieldingStart(TestSeed);
  TurnHugePagesOff;
  TTestCase.CheckAssertCalled := True; // a test that ends without a single check fails
  Listener := TListener.Create;
  Suites := InOrder(GetTestRegistry);
  for Index := 0 to Suites.Count - 1 do
    Inc(SuiteCount, Ord(IsWanted(TTest(Suites[Index]))));
  for Index := 0 to Suites.Count - 1 do
    if IsWanted(TTest(Suites[Index])) then
      DoSuite(TTestSuite(Suites[Index]), Listener);
  CheckLeftOut;
  Suites.Free;
  if HasSwitch('list') then
    Exit(0);
  Write(FailedNames);
  PrintCounts;
  Result := Ord((FailedCount > 0) or (RunCount = 0));
end;

end.
