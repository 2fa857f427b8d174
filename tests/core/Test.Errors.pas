/// Tests of LaneMM.Errors.
unit Test.Errors;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TErrorsTests = class(TLaneTest)
  strict private
    function RunInChild(Law: Boolean; out Text: string): Integer;
  published
    procedure FalseLawEndsTheProgramWith204AndItsText;
    procedure TrueLawDoesNothing;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Errors;

// Checks a law in a child process; returns its exit code and what it wrote.
function TErrorsTests.RunInChild(Law: Boolean; out Text: string): Integer;
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
    LaneMM.Errors.Check(Law, 'a law of the test');
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

procedure TErrorsTests.FalseLawEndsTheProgramWith204AndItsText;
var
  Text: string;
begin
  Same(204, RunInChild(False, Text), 'exit code');
  AssertTrue('text: ' + Text, Pos('LaneMM: a law of the test'#10, Text) = 1);
end;

procedure TErrorsTests.TrueLawDoesNothing;
var
  Text: string;
begin
  Same(0, RunInChild(True, Text), 'exit code');
  AssertEquals('text', '', Text);
end;

initialization
  RegisterTest(TErrorsTests);
end.
