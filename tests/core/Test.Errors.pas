/// Tests of LaneMM.Errors.
unit Test.Errors;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TErrorsTests = class(TLaneTest)
  strict private
    procedure CheckFalse;
    procedure CheckTrue;
    procedure CheckFalseWhereStderrIsAnotherFile;
  published
    procedure FalseLawEndsTheProgramWith204AndItsText;
    procedure TrueLawDoesNothing;
    procedure TextGoesIntoNoFileOfTheProgram;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Hooks, LaneMM.Errors;

procedure TErrorsTests.CheckFalse;
begin
  LaneMM.Errors.Check(False, 'a law of the test');
end;

procedure TErrorsTests.CheckTrue;
begin
  LaneMM.Errors.Check(True, 'a law of the test');
end;

procedure TErrorsTests.FalseLawEndsTheProgramWith204AndItsText;
var
  Text: string;
begin
  Same(204, RunInChild(CheckFalse, Text), 'exit code');
  AssertTrue('text: ' + Text, Pos('LaneMM: a law of the test'#10, Text) = 1);
end;

procedure TErrorsTests.TrueLawDoesNothing;
var
  Text: string;
begin
  Same(0, RunInChild(CheckTrue, Text), 'exit code');
  AssertEquals('text', '', Text);
end;

function IsAnother: Boolean;
begin
  Result := True;
end;

procedure TErrorsTests.CheckFalseWhereStderrIsAnotherFile;
begin
  Hooks.ErrorIsTaken := IsAnother;
  CheckFalse;
end;

procedure TErrorsTests.TextGoesIntoNoFileOfTheProgram;
var
  Text: string;
begin
  Same(204, RunInChild(CheckFalseWhereStderrIsAnotherFile, Text), 'exit code');
  AssertEquals('place of the text in stderr', 0, Pos('a law of the test', Text));
end;

initialization
  RegisterTest(TErrorsTests);
end.
