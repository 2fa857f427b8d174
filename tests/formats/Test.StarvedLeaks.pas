/// Tests of LaneMM.Leaks and the units below it where there is little memory, with a program that limits
/// its own addresses.
unit Test.StarvedLeaks;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TStarvedLeaksTests = class(TLaneTest)
  strict private
    procedure EndWith(Spare, Format: string);
    procedure SaysUnknown(const Spare: string);
  protected
    procedure SetUp; override;
  published
    procedure LeaksThatCannotBeExaminedAreSaid;
    procedure ExitCodeIsThatOfLeaksWithoutAnyMemory;
    procedure NothingLeaksWithoutABlockInUse;
    procedure WhatARunningThreadHoldsIsNoLeakWithLittleMemory;
    procedure LeakFileWithoutMemoryReleasesNothing;
    procedure WhatHoldsTheMemoryIsNamedWhereThereIsNone;
    procedure WholeReportIsWrittenWhereThereIsNoMemory;
  end;

implementation

uses
  SysUtils, fpjson, jsonparser, testregistry, Test.Programs;

const
  // What is left for the report, in KB: enough for its groups and not for its blocks, for neither
  // of them, for nothing.
  ForGroups = '5000';
  ForText = '1000';
  ForNothing = '0';
  Unknown = 'Memory leaks are unknown: 200,';
  Reason = ' blocks in use could not be examined for lack of memory.'#10;

var
  Starved: TTestProgram;

procedure TStarvedLeaksTests.SetUp;
begin
  if Starved = nil then
    Starved := TTestProgram.Create('StarvedLeaks', '-O1 -gl -Xs-');
end;

procedure TStarvedLeaksTests.EndWith(Spare, Format: string);
begin
  Starved.Run('leaks,leaks:exit=9' + Format, ['end', Spare]);
  Starved.EndedWith(9);
end;

procedure TStarvedLeaksTests.SaysUnknown(const Spare: string);
var
  Root: TJSONData;
begin
  EndWith(Spare, ',leaks:format=json');
  Has(Unknown, Starved.Errors);
  Has(Reason, Starved.Errors);
  Root := GetJSON(Starved.Written('.json'));
  try
    AtLeast(200000, Root.FindPath('notExamined').AsInteger, 'blocks not examined');
    Same(0, Root.FindPath('blocks').AsInteger, 'blocks');
  finally
    Root.Free;
  end;
  EndWith(Spare, ',leaks:format=junit');
  Has(' tests="1" failures="0" errors="1">', Starved.Written('.xml'));
  Has('<error type="memory" message="200,', Starved.Written('.xml'));
  EndWith(Spare, ',leaks:format=heaptrc');
  Has('Blocks not examined for lack of memory : 200', Starved.Written('.trc'));
end;

procedure TStarvedLeaksTests.LeaksThatCannotBeExaminedAreSaid;
begin
  SaysUnknown(ForGroups);
  SaysUnknown(ForText);
end;

procedure TStarvedLeaksTests.ExitCodeIsThatOfLeaksWithoutAnyMemory;
begin
  EndWith(ForNothing, '');
end;

// The program has none, and no memory either.
procedure TStarvedLeaksTests.NothingLeaksWithoutABlockInUse;
var
  Words, Spare: string;
begin
  for Words in TStringArray.Create('leaks', 'debug,leaks', 'leaks,stacks') do
    for Spare in [ForNothing, ForText] do
    begin
      Starved.Run(Words + ',quiet,leaks:exit=9', ['none', Spare]);
      Starved.EndedWith(0, Words);
      AssertEquals(Words, '', Starved.Errors);
    end;
end;

// With less and less to spare, down to what the groups need.
procedure TStarvedLeaksTests.WhatARunningThreadHoldsIsNoLeakWithLittleMemory;
const
  Step = 400; // KB: less than 4 bytes for each block
var
  Spare: Integer;
begin
  Spare := 16000;
  repeat
    Starved.Run('leaks,leaks:exit=9', ['hold', IntToStr(Spare)]);
    AssertEquals('leaks with ' + IntToStr(Spare) + ' KB', 0, Pos('Memory leaks: ', Starved.Errors));
    Dec(Spare, Step);
  until (Pos(Unknown, Starved.Errors) > 0) or (Spare < 0);
  Has(Unknown, Starved.Errors);
  AtMost(16000 - 2 * Step, Spare, 'it was enough at first');
end;

// Variables that nothing has set have a pattern there.
procedure TStarvedLeaksTests.LeakFileWithoutMemoryReleasesNothing;
var
  Trashed: TTestProgram;
  Format: string;
begin
  Trashed := TTestProgram.Create('StarvedLeaks', '-O1 -gt');
  try
    for Format in TStringArray.Create('json', 'junit', 'heaptrc', 'html') do
    begin
      Trashed.Run('event=leaks:file,leaks:format=' + Format, ['report', '400']);
      Trashed.EndedWith(0, Format);
    end;
  finally
    Trashed.Free;
  end;
end;

// The exception finds memory, too.
procedure TStarvedLeaksTests.WholeReportIsWrittenWhereThereIsNoMemory;
begin
  Starved.Run('reserve=1M,limit:report', ['full', '30000']);
  Has('Out of memory: an allocation of 8', Starved.Errors);
  Has('% of it was allocated at StarvedLeaks.lpr:'
    + IntToStr(Starved.PlantedLine('row')), Starved.Errors);
  Has(' StarvedLeaks.TRow: ', Starved.Errors);
  Has(' x StarvedLeaks.TRow, ', Starved.Errors);
  Starved.EndedWith(0);
end;

// Also with notes, which take memory of their own until it is gone.
procedure TStarvedLeaksTests.WhatHoldsTheMemoryIsNamedWhereThereIsNone;
var
  Words: string;
begin
  for Words in TStringArray.Create('reserve=1M', 'reserve=1M,stacks', 'reserve=1M,debug') do
  begin
    Starved.Run(Words, ['full', '10000']);
    Has('Out of memory: an allocation of 8', Starved.Errors);
    Has(' bytes; most of it:', Starved.Errors);
    Has(' x StarvedLeaks.TRow, ', Starved.Errors);
    Starved.EndedWith(0, Words);
  end;
end;

initialization
  RegisterTest(TStarvedLeaksTests);
finalization
  Starved.Free;
end.
