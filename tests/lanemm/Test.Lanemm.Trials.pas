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
    Answer: TJSONObject;
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
    procedure TearDown; override;
  published
    procedure FreePascalsHeapWinsWhereItIsLeaner;
    procedure ASettingWinsWhereItIsLeaner;
    procedure SettingsOfTheUserAreTried;
    procedure LaneMMHasFewerFaultsWhereArraysGrow;
    procedure NoDifferenceIsClaimedWhereThereIsNone;
    procedure FewRoundsProveNothing;
    procedure GlibcWinsOverALibraryThatWastes;
    procedure ALibraryThatEndsTheProgramIsOut;
    procedure ALibraryThatIsNotLoadedIsOut;
    procedure AProgramThatFailsIsNamedWithItsErrors;
    procedure AnExpectedExitCodeIsWell;
    procedure AStaticProgramIsRefused;
    procedure AProgramWithItsOwnMallocIsRefused;
    procedure AProgramThatLoadsAManagerIsTriedAsItIsLinked;
    procedure AServerIsMeasuredAtRestAndEnded;
    procedure ALoadThatFailsIsNamed;
    procedure ALoadThatLastsIsEndedWithWhatItStarted;
    procedure ProgressHasALineForEachRound;
    procedure TheTableNamesTheWinner;
    procedure WrongOptionsAreNamed;
  end;

implementation

uses
  SysUtils, testregistry, jsonparser, TryStatistics;

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

procedure TTryTests.TearDown;
begin
  FreeAndNil(Answer);
end;

function TTryTests.Ask(const Arguments: string): TJSONObject;
begin
  FreeAndNil(Answer);
  Answer := CallForJson('try --json --quiet ' + Arguments);
  Result := Answer;
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

procedure TTryTests.FreePascalsHeapWinsWhereItIsLeaner;
begin
  Ask('--rounds=5 ./Tried off');
  Wins(HeapName, 'LaneMM');
  Has('Peak memory: Free Pascal''s heap is best', Text);
  HasNot('LaneMM wins', Text);
end;

procedure TTryTests.ASettingWinsWhereItIsLeaner;
begin
  Ask('--rounds=5 -- ./Tried huge=0');
  Wins('LaneMM huge=0', HeapName);
end;

procedure TTryTests.SettingsOfTheUserAreTried;
begin
  Ask('--rounds=5 --words=purge=70 --words=purge=80 ./Tried purge=80');
  Wins('LaneMM purge=80', 'LaneMM purge=70');
end;

procedure TTryTests.LaneMMHasFewerFaultsWhereArraysGrow;
begin
  Ask('--rounds=5 ./Tried grow');
  AssertTrue('Free Pascal''s heap is worse', HasName(Conclusion('pageFaults').Arrays['worse'],
    HeapName));
end;

procedure TTryTests.NoDifferenceIsClaimedWhereThereIsNone;
begin
  Ask('--rounds=5 ./Tried neither');
  Same(0, Conclusion('peakBytes').Arrays['worse'].Count, 'worse by peak');
  Has('Peak memory: no significant difference.', Text);
end;

procedure TTryTests.FewRoundsProveNothing;
begin
  Ask('--rounds=2 ./Tried off');
  Same(0, Conclusion('peakBytes').Arrays['worse'].Count, 'worse by peak');
  Has('With fewer than 5 rounds no difference is significant', Text);
end;

procedure TTryTests.GlibcWinsOverALibraryThatWastes;
begin
  Ask('--rounds=5 --with=waste=./waste.so --only=glibc,LaneMM,waste -- true');
  Wins('glibc', 'waste');
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

procedure TTryTests.ALibraryThatIsNotLoadedIsOut;
begin
  Call('try --rounds=1 --only=glibc,LaneMM -- env -u LD_PRELOAD sleep 0.3');
  Refused(1, 'nothing is left to compare: LaneMM: it does not load ');
end;

procedure TTryTests.AProgramThatFailsIsNamedWithItsErrors;
begin
  Call('try --only=glibc,LaneMM -- ls /nonexistent');
  Refused(1, 'fails with glibc: exit code 2');
  Has('/nonexistent', Errors);
end;

procedure TTryTests.AnExpectedExitCodeIsWell;
begin
  CallWell('try --rounds=1 --only=glibc,LaneMM --exit=2 -- ls /nonexistent');
  Call('try --rounds=1 --only=glibc,LaneMM --exit=2 -- true');
  Refused(1, 'fails with glibc: exit code 0');
end;

procedure TTryTests.AStaticProgramIsRefused;
begin
  Call('try -- ./Small');
  Refused(4, 'is static and has no LaneMM inside: it takes no other manager');
end;

procedure TTryTests.AProgramWithItsOwnMallocIsRefused;
begin
  Shell('printf "#include <stddef.h>\nstatic char room[1 << 20], *end = room;\n'
    + 'void *malloc(size_t size) { end += size + 15 & ~15; return end - size; }\n'
    + 'void free(void *block) {}\nint main(void) { return 0; }\n" > own.c; gcc -w -o own own.c');
  Same(0, ExitStatus, 'exit code of the compiler');
  Call('try -- ./own');
  Refused(4, './own has a malloc of its own, so it takes no other manager');
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
  Answer := GetJSON(Shell('../lanemm try --json --quiet --rounds=1 --for=2s --load=''kill -0 $TRY_PID'''
    + ' --only="LaneMM,LaneMM huge=0" ./Tried rest huge=0')) as TJSONObject;
  Same(0, ExitStatus, 'exit code');
  AtLeast(HeavyBytes, Rest('LaneMM'), 'at rest');
  AtMost(HeavyBytes div 2, Rest('LaneMM huge=0'), 'at rest');
end;

procedure TTryTests.ALoadThatFailsIsNamed;
begin
  Call('try --rounds=1 --for=20s --load=false --only=glibc,LaneMM -- sleep 100');
  Refused(1, 'fails with glibc: the load has ended with exit code 1');
end;

procedure TTryTests.ALoadThatLastsIsEndedWithWhatItStarted;
begin
  Shell('rm -f load.pid; ../lanemm try --quiet --rounds=1 --for=2s --only=glibc,LaneMM'
    + ' --load=''sleep 500 & echo $! > load.pid; wait'' sleep 100 > load.txt 2>&1');
  Same(1, ExitStatus, 'exit code');
  Has('the load has not ended in the time of --for', Shell('cat load.txt'));
  AssertEquals('ended'#10, Shell('for try in $(seq 100); do if [ -z "$(cat /proc/$(cat load.pid)/cmdline'
    + ' 2>&- | tr -d "\0")" ]; then echo ended; break; fi; sleep 0.1; done'));
end;

procedure TTryTests.ProgressHasALineForEachRound;
begin
  CallWell('try --rounds=2 --only=glibc,LaneMM -- true');
  Has('round 1 of 2', Errors);
  Has('round 2 of 2', Errors);
  HasNot(#27, Errors);
end;

procedure TTryTests.TheTableNamesTheWinner;
begin
  CallWell('try --rounds=5 --quiet --with=waste=./waste.so --only=glibc,waste -- true');
  AssertEquals('errors', '', Errors);
  Has('Peak memory: glibc is best, ', Printed);
  Has(' below waste.', Printed);
end;

procedure TTryTests.WrongOptionsAreNamed;
begin
  Call('try');
  Refused(2, 'PROGRAM is missing');
  Call('try --with=nothing -- true');
  Refused(2, '--with needs a name and the file of a library');
  Call('try --with=waste=./waste.so ./Tried off');
  Refused(2, 'has LaneMM inside');
  Call('try --only=glibc -- true');
  Refused(2, 'one manager alone');
  Call('try --only=glibc,other -- true');
  Refused(2, 'there is no manager `other`');
  Call('try -- ./nothing');
  Refused(1, 'there is no program `./nothing`');
end;

initialization
  RegisterTest(TTryStatisticsTests);
  RegisterTest(TTryTests);
end.
