/// Tests of LaneMM.Leaves: whole backtraces of faults in routines that have nothing on the stack.
unit Test.Leaves;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TLeavesTests = class(TLaneTest)
  strict private
    procedure CompareAll(const Options: string);
  published
    procedure CallersAreFoundInOptimisedPrograms;
    procedure CallersAreFoundInPositionIndependentPrograms;
    procedure CallersAreFoundInProgramsWithFrames;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs;

type
  TExpected = record
    Way, Frames: string;
  end;

const
  // How the routine is called, and the backtrace of its fault, up to the main block.
  AllExpected: array[0..7] of TExpected = (
    (Way: 'name'; Frames: 'LEAVES.READ LEAVES.BYNAME LEAVES.GO main'),
    (Way: 'pointer'; Frames: 'LEAVES.READ LEAVES.BYPOINTER LEAVES.GO main'),
    (Way: 'method'; Frames: 'LEAVES.TREADER.READ LEAVES.BYMETHOD LEAVES.GO main'),
    (Way: 'virtual'; Frames: 'LEAVES.TREADER.READ LEAVES.BYVIRTUAL LEAVES.GO main'),
    (Way: 'override'; Frames: 'LEAVES.TOTHERREADER.READ LEAVES.BYOVERRIDE LEAVES.GO main'),
    (Way: 'interface'; Frames: 'LEAVES.TREADER.READIT LEAVES.BYINTERFACE LEAVES.GO main'),
    (Way: 'choice'; Frames: 'LEAVES.TREADER.CHOOSE LEAVES.BYCHOICE LEAVES.GO main'),
    (Way: 'saving'; Frames: 'LEAVES.TREADER.READTWICE LEAVES.BYSAVING LEAVES.GO main'));

// The routines of the backtrace with this heading.
function FramesBelow(const Heading, Report: string): string;
var
  Line: string;
  IsBelow: Boolean;
begin
  Result := '';
  IsBelow := False;
  for Line in Report.Split([#10]) do
    if Line.StartsWith('      0') and IsBelow then
      Result := Result + ' ' + ExtractWord(2, Line, [' '])
    else
      IsBelow := Line.StartsWith(Heading);
  Result := Trim(Result);
end;

procedure TLeavesTests.CompareAll(const Options: string);
var
  Leaves: TTestProgram;
  Expected: TExpected;
begin
  Leaves := TTestProgram.Create('Leaves', Options);
  for Expected in AllExpected do
  begin
    Leaves.Run('debug', [Expected.Way]);
    Has('Use after free: the contents of a freed block were used as an address.'#10,
      Leaves.Errors);
    AssertEquals(Expected.Way + ' with ' + Options, Expected.Frames,
      FramesBelow('  Occurred at', Leaves.Errors));
  end;
  Leaves.Run('debug', ['none']);
  AssertEquals('', Leaves.Errors);
  Leaves.Free;
end;

procedure TLeavesTests.CallersAreFoundInOptimisedPrograms;
begin
  CompareAll('-O4 -Xs-');
end;

procedure TLeavesTests.CallersAreFoundInPositionIndependentPrograms;
begin
  CompareAll('-O2 -Cg -Xs-');
end;

procedure TLeavesTests.CallersAreFoundInProgramsWithFrames;
begin
  CompareAll('-O1 -Xs-');
end;

initialization
  RegisterTest(TLeavesTests);
end.
