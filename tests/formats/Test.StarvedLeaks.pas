/// Tests of LaneMM.Leaks and the units below it where there is little memory, with a program that limits
/// its own addresses.
unit Test.StarvedLeaks;

{$mode delphi}{$H+}

interface

uses
  Test.Cases;

type
  TStarvedLeaksTests = class(TProgramTest)
  published
    procedure WhatARunningThreadHoldsIsNoLeakWithLittleMemory;
    procedure ReportWithLittleMemoryIsWhole;
  end;

implementation

uses
  SysUtils;

// With less and less to spare, down to what the groups need.
procedure TStarvedLeaksTests.WhatARunningThreadHoldsIsNoLeakWithLittleMemory;
const
  Unknown = 'Memory leaks are unknown: 200,';
  Step = 400; // KB: less than 4 bytes for each block
var
  Spare: Integer;
begin
  Spare := 16000;
  repeat
    Program_.Run('leaks,leaks:exit=9', ['hold', IntToStr(Spare)]);
    AssertEquals('leaks with ' + IntToStr(Spare) + ' KB', 0, Pos('Memory leaks: ', Program_.Errors));
    Dec(Spare, Step);
  until (Pos(Unknown, Program_.Errors) > 0) or (Spare < 0);
  Has(Unknown, Program_.Errors);
  AtMost(16000 - 2 * Step, Spare, 'it was enough at first');
end;

// The text of a report takes what there is, and its numbers find nothing more.
procedure TStarvedLeaksTests.ReportWithLittleMemoryIsWhole;
const
  Most = 400; // KB
  Step = 8;   // less than a text needs
var
  Spare, Count: Integer;
begin
  Spare := 0;
  Count := 0;
  repeat
    Program_.Run('leaks', ['end', IntToStr(Spare)]);
    if Pos('Memory leaks are unknown: ', Program_.Errors) > 0 then
    begin
      Inc(Count);
      AssertEquals(Program_.Errors, 0, Pos('process ,', Program_.Errors));
      Has('Memory leaks are unknown: 200,', Program_.Errors);
    end;
    Inc(Spare, Step);
  until Spare > Most;
  AtLeast(1, Count, 'there was a report');
end;

initialization
  RegisterCases(TStarvedLeaksTests, 'formats/StarvedLeaks');
end.
