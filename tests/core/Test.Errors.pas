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
  published
    procedure FalseLawEndsTheProgramWith204AndItsText;
    procedure TrueLawDoesNothing;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Errors;

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

initialization
  RegisterTest(TErrorsTests);
end.
