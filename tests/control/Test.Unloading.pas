/// Tests that a library which is unloaded leaves nothing behind that leads into its code, in a program
/// without LaneMM.
unit Test.Unloading;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, Test.Programs;

type
  TUnloadingTests = class(TLaneTest)
  strict private
    Library_, Host: TTestProgram;
    procedure ExpectNothingLeft(const Settings: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure SignalsAndFilesAreThoseOfBefore;
    procedure SignalsAndFilesAreThoseOfBeforeInDebugMode;
    procedure SignalsOfASettingAreFreeAgain;
    procedure FaultAfterwardsIsTheProgramsOwn;
  end;

implementation

uses
  testregistry;

const
  Options = '-O1 -Cg -gl -Xs-';

procedure TUnloadingTests.SetUp;
begin
  Library_ := TTestProgram.Create('Plugin', Options);
  Host := TTestProgram.Create('Loader', Options);
end;

procedure TUnloadingTests.TearDown;
begin
  Library_.Free;
  Host.Free;
end;

procedure TUnloadingTests.ExpectNothingLeft(const Settings: string);
begin
  Host.Run(Settings, ['handlers']);
  AssertEquals(Settings, '', Host.Errors);
  Host.EndedWith(0, Settings);
end;

procedure TUnloadingTests.SignalsAndFilesAreThoseOfBefore;
begin
  ExpectNothingLeft('');
end;

procedure TUnloadingTests.SignalsAndFilesAreThoseOfBeforeInDebugMode;
begin
  ExpectNothingLeft('debug,leaks');
end;

procedure TUnloadingTests.SignalsOfASettingAreFreeAgain;
begin
  ExpectNothingLeft('contention,signal=12,log=/dev/null');
end;

procedure TUnloadingTests.FaultAfterwardsIsTheProgramsOwn;
const
  Unhandled = 217;
begin
  Host.Run('debug', ['fault']);
  Host.EndedWith(Unhandled);
  Has('EAccessViolation', Host.Errors);
end;

initialization
  RegisterTest(TUnloadingTests);
end.
