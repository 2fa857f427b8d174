/// Tests of LaneMM.EventLog, LaneMM.CallSites, LaneMM.Growth and LaneMM.LogFile, with a program
/// that plants the events to be found.
unit Test.EventLog;

{$mode delphi}{$H+}

interface

uses
  Test.Cases;

type
  TEventLogTests = class(TProgramTest)
  published
    procedure GrowthIsSortedByTheWorkItCauses;
  end;

implementation

uses
  SysUtils, Test.Programs;

procedure TEventLogTests.GrowthIsSortedByTheWorkItCauses;
var
  Line, Log: string;
  Work, Last: Double;
  Lines: Integer;

  // The number before a word, without its commas.
  function NumberBefore(const Word: string): Double;
  var
    Start, Limit: Integer;
  begin
    Limit := Pos(Word, Line) - 1;
    Start := Limit;
    while (Start > 1) and (Line[Start - 1] in ['0'..'9', ',', '.']) do
      Dec(Start);
    Result := StrToFloat(StringReplace(Copy(Line, Start, Limit - Start + 1), ',', '',
      [rfReplaceAll]));
  end;

  function BytesCopied: Double;
  begin
    if Pos(' MB copied', Line) > 0 then
      Result := NumberBefore(' MB copied') * 1048576
    else if Pos(' KB copied', Line) > 0 then
      Result := NumberBefore(' KB copied') * 1024
    else
      Result := NumberBefore(' bytes copied');
  end;

begin
  TestProgram('Growing').Run('growth,top=20,least=1', []);
  Log := TestProgram('Growing').Written('EventLog.txt');
  Has(' of them moves that copied ', Log);
  Has(' in all, most work first:', Log);
  Last := 1e18;
  Lines := 0;
  for Line in Log.Split([#10]) do
    if Pos(' copied: ', Line) > 0 then
    begin
      Work := NumberBefore(' times') * 128 + BytesCopied;
      AssertTrue(Log, Work <= Last * 1.001 + 110000); // sizes are rounded
      Last := Work;
      Inc(Lines);
    end;
  AtLeast(6, Lines, 'lines');
end;

initialization
  RegisterCases(TEventLogTests, 'formats/EventLog');
end.
