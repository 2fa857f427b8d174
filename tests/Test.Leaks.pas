/// Tests of LaneMM.Leaks and what it is made of, on a program that leaks what it is told to.
unit Test.Leaks;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TLeaksTests = class(TLaneTest)
  strict private
    procedure Has(const Part: string);
    procedure HasNot(const Part: string);
    procedure ReportsNothing(const What, How: string; ExitCode: Integer);
    procedure Reports(const What, How: string);
  published
    procedure NothingIsReportedWithoutTheSetting;
    procedure ProgramWithoutLeaksReportsNothing;
    procedure WhatARoutineUsedThatWasHaltedIsNoLeak;
    procedure AnUnhandledExceptionIsNoLeak;
    procedure WhatARunningThreadUsesIsNoLeak;
    procedure LeaksAreFoundBesideRunningThreads;
    procedure LeaksAreFoundAfterHalt;
    procedure LeaksAreFoundAfterAnException;
    procedure ObjectsAreCountedByClass;
    procedure StringsAreShownWithTheirFirstCharacters;
    procedure ArraysAreCounted;
    procedure UnknownBlocksAreCountedBySize;
    procedure LargeBlocksAreCounted;
    procedure OwnersAreNamedWithWhatTheyHold;
    procedure CyclesOfInterfacesAreNamed;
    procedure ChainOfOneClassIsNoHolder;
    procedure BlocksFreedByAnotherThreadAreNoLeaks;
    procedure ExitCodeIsSetOnLeaksOnly;
    procedure ExitCodeOfTheProgramStays;
    procedure ReportGoesToTheLogToo;
    procedure OptimisedProgramReportsTheSame;
    procedure TopLimitsTheGroups;
  end;

implementation

uses
  SysUtils, testregistry, Test.Programs;

const
  LogSuffix = 'EventLog.txt';

var
  Debugged, Optimised: TTestProgram;

function Leaking: TTestProgram;
begin
  if Debugged = nil then
    Debugged := TTestProgram.Create('Leaking', '-O1 -gl -Xs-');
  Result := Debugged;
end;

procedure TLeaksTests.Has(const Part: string);
begin
  if Pos(Part, Leaking.Errors) = 0 then
    Fail('`%s` is missing in: %s', [Part, Leaking.Errors]);
end;

procedure TLeaksTests.HasNot(const Part: string);
begin
  if Pos(Part, Leaking.Errors) > 0 then
    Fail('`%s` stands in: %s', [Part, Leaking.Errors]);
end;

procedure TLeaksTests.Reports(const What, How: string);
begin
  Leaking.Run('leaks', [What, How]);
end;

procedure TLeaksTests.ReportsNothing(const What, How: string; ExitCode: Integer);
begin
  Leaking.Run('leaks,leaks:exit=9', [What, How]);
  Same(ExitCode, Leaking.ExitCode, 'exit code');
  HasNot('not freed');
  AssertEquals('log', '', Leaking.Written(LogSuffix));
end;

procedure TLeaksTests.NothingIsReportedWithoutTheSetting;
begin
  Leaking.Run('', ['objects']);
  Same(0, Leaking.ExitCode, 'exit code');
  AssertEquals('', Leaking.Errors);
  AssertEquals('', Leaking.Written(LogSuffix));
end;

procedure TLeaksTests.ProgramWithoutLeaksReportsNothing;
begin
  ReportsNothing('none', '', 0);
  AssertEquals('', Leaking.Errors);
end;

procedure TLeaksTests.WhatARoutineUsedThatWasHaltedIsNoLeak;
begin
  ReportsNothing('none', 'halt', 3);
end;

procedure TLeaksTests.AnUnhandledExceptionIsNoLeak;
begin
  ReportsNothing('none', 'exception', 217);
end;

procedure TLeaksTests.WhatARunningThreadUsesIsNoLeak;
var
  Round: Integer;
begin
  for Round := 1 to 10 do
    ReportsNothing('none', 'thread', 0);
end;

procedure TLeaksTests.LeaksAreFoundBesideRunningThreads;
begin
  Reports('objects', 'thread');
  Has('12 x Leaking.TFoo, 384 bytes');
  HasNot('TResident');
  HasNot('TStringList');
end;

procedure TLeaksTests.LeaksAreFoundAfterHalt;
begin
  Reports('cycle', 'halt');
  Same(3, Leaking.ExitCode, 'exit code');
  Has('6 blocks, 288 bytes, were not freed:');
end;

procedure TLeaksTests.LeaksAreFoundAfterAnException;
begin
  Reports('unknown', 'exception');
  Same(217, Leaking.ExitCode, 'exit code');
  Has('10 x unknown block of 112 bytes, 1,120 bytes');
  HasNot('Exception,');
end;

procedure TLeaksTests.ObjectsAreCountedByClass;
begin
  Reports('objects', '');
  Has('14 blocks, 416 bytes, were not freed:');
  Has('12 x Leaking.TFoo, 384 bytes');
  Has('2 x System.TObject, 32 bytes');
end;

procedure TLeaksTests.StringsAreShownWithTheirFirstCharacters;
begin
  Reports('texts', '');
  Has('6 blocks, 208 bytes, were not freed:');
  Has('5 x AnsiString, 160 bytes');
  Has('"Item 0", "Item 1", "Item 2", ...');
  Has('1 x UnicodeString, 48 bytes');
  Has('"Wide 7"');
end;

procedure TLeaksTests.ArraysAreCounted;
begin
  Reports('arrays', '');
  Has('3 blocks, 12,288 bytes, were not freed:');
  Has('3 x dynamic array in 4,096 bytes, 12,288 bytes');
end;

procedure TLeaksTests.UnknownBlocksAreCountedBySize;
begin
  Reports('unknown', '');
  Has('10 blocks, 1,120 bytes, were not freed:');
  Has('10 x unknown block of 112 bytes, 1,120 bytes');
end;

procedure TLeaksTests.LargeBlocksAreCounted;
begin
  Reports('large', '');
  Has('1 x unknown block of 3,002,368 bytes, 3,002,368 bytes');
  Has('1 x unknown block of 102,400 bytes, 102,400 bytes');
end;

procedure TLeaksTests.OwnersAreNamedWithWhatTheyHold;
begin
  Reports('form', '');
  Has('12,004 blocks, 482,384 bytes, were not freed:');
  Has('12,000 x Leaking.TFoo, 384,000 bytes');
  Has('12,000 held by Leaking.TForm1 -> Classes.TList -> Classes.TFPList');
  Has('1 x Leaking.TForm1, 16 bytes'#10
    + '      with all that is held by them: 482,384 bytes');
end;

procedure TLeaksTests.CyclesOfInterfacesAreNamed;
begin
  Reports('cycle', '');
  Has('6 blocks, 288 bytes, were not freed:');
  Has('held by the cycle of interfaces Leaking.T');
  Has('Leaking.TParent -> Leaking.TChild');
  Has('Leaking.TChild -> Leaking.TParent');
end;

procedure TLeaksTests.ChainOfOneClassIsNoHolder;
begin
  Reports('chain', '');
  Has('1,000 x Leaking.TLink, 16,000 bytes');
  HasNot('held by');
end;

procedure TLeaksTests.BlocksFreedByAnotherThreadAreNoLeaks;
begin
  Reports('threads', '');
  Has('50 blocks, 1,600 bytes, were not freed:');
  Has('50 x Leaking.TFoo, 1,600 bytes');
end;

procedure TLeaksTests.ExitCodeIsSetOnLeaksOnly;
begin
  Leaking.Run('leaks,leaks:exit=9', ['objects']);
  Same(9, Leaking.ExitCode, 'exit code with leaks');
  Leaking.Run('leaks,leaks:exit=9', ['none']);
  Same(0, Leaking.ExitCode, 'exit code without leaks');
  Leaking.Run('leaks', ['objects']);
  Same(0, Leaking.ExitCode, 'exit code without the setting');
end;

procedure TLeaksTests.ExitCodeOfTheProgramStays;
begin
  Leaking.Run('leaks,leaks:exit=9', ['objects', 'halt']);
  Same(3, Leaking.ExitCode, 'exit code');
end;

procedure TLeaksTests.ReportGoesToTheLogToo;
begin
  Reports('objects', '');
  AssertEquals(Leaking.Errors, Leaking.Written(LogSuffix));
  Leaking.Run('leaks,event=leaks:file', ['objects']);
  AssertEquals('', Leaking.Errors);
  AssertTrue(Pos('12 x Leaking.TFoo', Leaking.Written(LogSuffix)) > 0);
end;

procedure TLeaksTests.OptimisedProgramReportsTheSame;
begin
  if Optimised = nil then
    Optimised := TTestProgram.Create('Leaking', '-O4 -Xs');
  Optimised.Run('leaks', ['form']);
  AssertTrue(Optimised.Errors,
    Pos('12,000 held by Leaking.TForm1 -> Classes.TList -> Classes.TFPList', Optimised.Errors) > 0);
end;

procedure TLeaksTests.TopLimitsTheGroups;
begin
  Leaking.Run('leaks,top=1', ['objects']);
  Has('12 x Leaking.TFoo');
  HasNot('TObject');
  Has('and 2 blocks, 32 bytes, of other kinds');
end;

initialization
  RegisterTest(TLeaksTests);
finalization
  Debugged.Free;
  Optimised.Free;
end.
