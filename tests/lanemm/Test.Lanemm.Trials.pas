/// Tests of `lanemm try`: planted programs and libraries whose best manager is known by memory, and by
/// page faults; no time is compared.
unit Test.Lanemm.Trials;

{$mode delphi}{$H+}

interface

uses
  fpJson, Test.Lanemm.Tools;

type
  /// What the statistics claim.
  TTryStatisticsTests = class(TLanemmTest)
  published
    procedure TheChanceOfFiveBelowFiveIsTwoIn252;
    procedure TheChanceOfOneOverlapIsLarger;
    procedure EqualValuesDoNotDiffer;
    procedure FourValuesProveNothing;
    procedure LessThanOnePercentIsNoDifference;
    procedure TheMedianOfAnEvenNumberIsBetween;
  end;

  /// The command.
  TTryTests = class(TLanemmTest)
  private
    /// Calls `lanemm try` for JSON.
    function Ask(const Arguments: string): TJSONObject;
    /// Fails unless the manager is best by peak memory and page faults, and the other one worse.
    procedure Wins(const Best, Other: string);
    function Conclusion(const Measure: string): TJSONObject;
    function HasName(List: TJSONArray; const Name: string): Boolean;
    function Text: string;
    /// Returns the memory at rest with a manager.
    function Rest(const Manager: string): Int64;
  protected
    procedure Act(const Word, Rest: string); override;
    function Number(const Name: string): Int64; override;
  published
    procedure LaneMMHasFewerFaultsWhereArraysGrow;
    procedure ALibraryThatEndsTheProgramIsOut;
    procedure AProgramThatLoadsAManagerIsTriedAsItIsLinked;
    procedure AServerIsMeasuredAtRestAndEnded;
  end;

implementation

uses
  SysUtils, testregistry, Test.Cases, TryStatistics;

const
  HeapName = 'Free Pascal''s heap';
  HeavyBytes = 48 shl 20;

// ---------------------------------------------------------------------------- TTryStatisticsTests

procedure TTryStatisticsTests.TheChanceOfFiveBelowFiveIsTwoIn252;
begin
  AssertEquals(2 / 252, ChanceOf([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 1e-12);
  AssertTrue('they differ', Differ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]));
end;

procedure TTryStatisticsTests.TheChanceOfOneOverlapIsLarger;
begin
  AssertEquals(4 / 252, ChanceOf([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]), 1e-12);
  AssertFalse('they differ', Differ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]));
end;

procedure TTryStatisticsTests.EqualValuesDoNotDiffer;
begin
  AssertEquals(1.0, ChanceOf([7, 7, 7, 7, 7], [7, 7, 7, 7, 7]), 1e-12);
  AssertFalse('they differ', Differ([7, 7, 7, 7, 7], [7, 7, 7, 7, 7]));
end;

procedure TTryStatisticsTests.FourValuesProveNothing;
begin
  AssertFalse('they differ', Differ([1, 1, 1, 1], [100, 100, 100, 100]));
end;

procedure TTryStatisticsTests.LessThanOnePercentIsNoDifference;
begin
  AssertFalse('they differ', Differ([1000, 1000, 1000, 1000, 1000], [1009, 1009, 1009, 1009, 1009]));
end;

procedure TTryStatisticsTests.TheMedianOfAnEvenNumberIsBetween;
begin
  Same(15, Median([20, 10, 1, 100]), 'median');
  Same(10, Median([20, 10, 1]), 'median');
end;

// ---------------------------------------------------------------------------- TTryTests

function TTryTests.Ask(const Arguments: string): TJSONObject;
begin
  Result := inherited Ask('try --json --quiet ' + Arguments);
end;

function TTryTests.Conclusion(const Measure: string): TJSONObject;
begin
  Result := Item(Answer, 'conclusions', 'measure', Measure);
end;

function TTryTests.HasName(List: TJSONArray; const Name: string): Boolean;
var
  Index: Integer;
begin
  Result := False;
  for Index := 0 to List.Count - 1 do
    Result := Result or (List.Strings[Index] = Name);
end;

function TTryTests.Rest(const Manager: string): Int64;
begin
  Result := Item(Answer, 'managers', 'name', Manager).FindPath('medians.restBytes').AsInt64;
end;

function TTryTests.Text: string;
begin
  Result := Answer.Arrays['text'].AsJSON;
end;

procedure TTryTests.Wins(const Best, Other: string);
const
  Measures: array[0..1] of string = ('peakBytes', 'pageFaults');
var
  Measure: string;
begin
  for Measure in Measures do
  begin
    AssertEquals(Measure, Best, Conclusion(Measure).Strings['best']);
    AssertTrue(Other + ' is worse', HasName(Conclusion(Measure).Arrays['worse'], Other));
  end;
end;

procedure TTryTests.Act(const Word, Rest: string);
begin
  if Word = 'try' then
  begin
    Ask(Rest);
    Output := Text;
  end
  else if Word = 'wins' then
    Wins(Rest.Split([' | '])[0], Rest.Split([' | '])[1])
  else
    inherited Act(Word, Rest);
end;

function TTryTests.Number(const Name: string): Int64;
begin
  if Name = 'worse' then
    Result := Conclusion('peakBytes').Arrays['worse'].Count
  else
    Result := inherited Number(Name);
end;

procedure TTryTests.LaneMMHasFewerFaultsWhereArraysGrow;
begin
  Ask('--rounds=5 ./Tried grow');
  AssertTrue('Free Pascal''s heap is worse', HasName(Conclusion('pageFaults').Arrays['worse'],
    HeapName));
end;

procedure TTryTests.ALibraryThatEndsTheProgramIsOut;
var
  Broken: TJSONObject;
begin
  Ask('--rounds=1 --with=broken=./broken.so --only=glibc,LaneMM,broken -- true');
  Broken := Item(Answer, 'managers', 'name', 'broken');
  AssertEquals('failure', 'signal 6', Broken.Strings['failure']);
  AssertEquals('glibc', '', Item(Answer, 'managers', 'name', 'glibc').Strings['failure']);
end;

procedure TTryTests.AProgramThatLoadsAManagerIsTriedAsItIsLinked;
begin
  Shell('cp waste.so libmimalloc.so; echo "int main(void) { return 0; }" > loading.c;'
    + ' gcc -o loading loading.c -Wl,--no-as-needed,-rpath,. -L. -lmimalloc');
  Same(0, ExitStatus, 'exit code of the compiler');
  CallWell('try --rounds=1 --only=glibc,LaneMM -- ./loading');
  Has('The program loads libmimalloc.so, which `as linked` is', Printed);
  Ask('--rounds=1 --with=waste=./waste.so -- ./loading');
  AssertEquals('library', '', Item(Answer, 'managers', 'name', 'as linked').Strings['library']);
  Has('/libc.so.6', Item(Answer, 'managers', 'name', 'glibc').Strings['library']);
end;

procedure TTryTests.AServerIsMeasuredAtRestAndEnded;
begin
  TakeAnswer(Shell('../lanemm try --json --quiet --rounds=1 --for=2s --load=''kill -0 $TRY_PID'''
    + ' --only="LaneMM,LaneMM huge=0" ./Tried rest huge=0'));
  Same(0, ExitStatus, 'exit code');
  AtLeast(HeavyBytes, Rest('LaneMM'), 'at rest');
  AtMost(HeavyBytes div 2, Rest('LaneMM huge=0'), 'at rest');
end;

initialization
  RegisterTest(TTryStatisticsTests);
  RegisterCases(TTryTests, 'lanemm/Try');
end.
