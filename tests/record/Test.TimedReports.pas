/// Tests of LaneMM.TimedReports, on a program that sleeps: its reports, and its threads.
unit Test.TimedReports;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, Test.Programs;

type
  TTimedReportsTests = class(TLaneTest)
  strict private
    IsEnding, IsWritten: Boolean;
    procedure Watch(Program_: TTestProgram; const Settings, Part, Script: string;
      ExitCode: Integer = 0; const Start: string = '');
    procedure AllFilesAreWhole(Program_: TTestProgram);
    procedure BeReporter;
    procedure HasThreads(Program_: TTestProgram; Count: Integer; const Settings: string);
  published
    procedure SleepingProgramWritesReports;
    procedure SleepingProgramWithoutThreadsWritesReports;
    procedure ThreadIsThereForTheSettingAlone;
    procedure PeriodIsChangedAtRunTime;
    procedure PeriodIsSetAtRunTime;
    procedure ThreadEndsWhenTheRightsChange;
    procedure ThreadEndsWhenTheRightsChangeBeforeItRuns;
    procedure ThreadsThatSampleWriteInItsPlace;
    procedure ChildWritesReportsOfItsOwn;
    procedure ChildThatAllocatesNothingHasNoThread;
    procedure EndOfTheProgramWaitsForTheReport;
    procedure EndWaitsForAReporterThatWrites;
    procedure SignalThatEndsTheProgramWaitsForTheReport;
  end;

implementation

uses
  SysUtils, Classes, fpjson, jsonparser, testregistry, LaneMM.Atomic, LaneMM.Os,
  LaneMM.ObserveState, LaneMM.TimedReports;

const
  Sampled = 'profile,rate=1,json';
  Timed = Sampled + ',every=100ms';

function WithThreads: TTestProgram;
begin
  Result := TestProgram('Sleeping');
end;

function WithoutThreads: TTestProgram;
begin
  Result := TestProgram('Sleeping', '-O1 -gl -Xs- -dALONE');
end;

// Runs a part of the program, whose number is $pid, maybe by the command Start, beside a script in
// which the functions stand. A condition that is not met within a minute fails the test, as does
// another exit code.
procedure TTimedReportsTests.Watch(Program_: TTestProgram;
  const Settings, Part, Script: string; ExitCode: Integer; const Start: string);
const
  Begins = 'rm -f in said; mkfifo in; %s "$P" %s < in > said & pid=$!; exec 9> in;'
    + ' fails() { echo "$1" >&2; kill -KILL $pid; exit 1; };'
    + ' await() { turns=0; until eval "$1"; do turns=$((turns + 1));'
    + ' [ $turns -lt 600 ] || fails "never: $1"; sleep 0.1; done; };'
    + ' reports() { ls | grep -c "^Sleeping_MemoryManager_Profile.*json$"; };'
    + ' threads() { ls "/proc/$1/task" | wc -l; };'
    // Of all threads: how often they have slept.
    + ' sleeps() { cat /proc/$pid/task/*/status'
    + ' | awk "/^voluntary/ { sum += \$2 } END { print sum }"; };'
    + ' rests() { slept=$(sleeps); sleep 0.3; [ "$slept" = "$(sleeps)" ]; };'
    + ' lines=0; configure() { echo "$1" >&9; lines=$((lines + 1));'
    + ' await "[ \$(grep -c done said) -eq $lines ]"; };'
    + ' await "grep -q ready said";';
  Ends = ' exec 9>&-; wait $pid';
begin
  Program_.RunInShell(Settings, Format(Begins, [Start, Part]) + Script + Ends);
  Program_.EndedWith(ExitCode);
end;

procedure TTimedReportsTests.AllFilesAreWhole(Program_: TTestProgram);
var
  FileName: string;
begin
  AtLeast(1, Program_.FilesOf('.json').Count, 'reports');
  for FileName in Program_.FilesOf('.json') do
    GetJSON(ReadText(FileName)).Free; // raises where the text ends too early
end;

// ---------------------------------------------------------------------------- reports

procedure TTimedReportsTests.SleepingProgramWritesReports;
begin
  Watch(WithThreads, Timed, '', 'await "[ \$(reports) -ge 3 ]";');
  AllFilesAreWhole(WithThreads);
end;

procedure TTimedReportsTests.SleepingProgramWithoutThreadsWritesReports;
begin
  Watch(WithoutThreads, Timed, '', 'await "[ \$(reports) -ge 3 ]";');
  AllFilesAreWhole(WithoutThreads);
end;

procedure TTimedReportsTests.HasThreads(Program_: TTestProgram; Count: Integer;
  const Settings: string);
begin
  Watch(Program_, Settings, '',
    Format('[ $(threads $pid) -eq %d ] || fails "threads: $(threads $pid)";', [Count]));
end;

procedure TTimedReportsTests.ThreadIsThereForTheSettingAlone;
begin
  HasThreads(WithThreads, 2, Sampled);
  HasThreads(WithThreads, 2, 'profile=0,every=1h');
  HasThreads(WithThreads, 3, Sampled + ',every=1h');
  HasThreads(WithoutThreads, 1, Sampled);
  HasThreads(WithoutThreads, 2, Sampled + ',every=1h');
end;

// ---------------------------------------------------------------------------- changes

procedure TTimedReportsTests.PeriodIsChangedAtRunTime;
begin
  // A report that is being written when it is switched off comes after it.
  Watch(WithThreads, Timed, '', 'await "[ \$(reports) -ge 2 ]"; configure every=0; before=$(reports);'
    + ' await rests; [ $(reports) -le $((before + 1)) ] || fails "it goes on";'
    + ' before=$(reports); configure every=50ms; await "[ \$(reports) -ge $((before + 3)) ]";'
    + ' configure profile=0; await rests;');
end;

procedure TTimedReportsTests.PeriodIsSetAtRunTime;
begin
  Watch(WithThreads, 'json', '', 'configure profile,every=50ms; await "[ \$(reports) -ge 3 ]";');
end;

procedure TTimedReportsTests.ThreadEndsWhenTheRightsChange;
begin
  Watch(WithThreads, Timed, '', 'await "[ \$(reports) -ge 2 ]"; [ $(threads $pid) -eq 3 ] || fails thread;'
    + ' configure rights; await "[ \$(threads $pid) -eq 2 ]";');
  AllFilesAreWhole(WithThreads);
end;

// On one processor, the first that the tests may use, the thread mostly runs after the change.
procedure TTimedReportsTests.ThreadEndsWhenTheRightsChangeBeforeItRuns;
const
  OneProcessor = 'taskset -c $(sed -n "s/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p" /proc/self/status)';
var
  Turn: Integer;
begin
  for Turn := 1 to 5 do
    Watch(WithThreads, Timed, 'rights', 'await "[ \$(threads $pid) -eq 2 ]";', 0, OneProcessor);
end;

procedure TTimedReportsTests.ThreadsThatSampleWriteInItsPlace;
begin
  Watch(WithThreads, Timed, '', 'configure rights; await "[ \$(threads $pid) -eq 2 ]";'
    + ' before=$(reports); await rests; [ $(reports) -eq $before ] || fails "it goes on";'
    + ' configure allocate; [ $(reports) -gt $before ] || fails "no report";');
  AllFilesAreWhole(WithThreads);
end;

// ---------------------------------------------------------------------------- fork

procedure TTimedReportsTests.ChildWritesReportsOfItsOwn;
begin
  Watch(WithThreads, Timed, 'fork', 'both() { [ $(ls | sed -n '
    + '"s/^Sleeping_MemoryManager_Profile[.]\([0-9]*\)[.]3[.]json$/\1/p" | wc -l) -eq 2 ]; }; await both;');
  AllFilesAreWhole(WithThreads);
end;

procedure TTimedReportsTests.ChildThatAllocatesNothingHasNoThread;
begin
  Watch(WithThreads, Timed, 'idle-child', 'await "[ \$(grep -c ready said) -eq 2 ]";'
    + ' await "[ \$(reports) -ge 2 ]"; child=$(cat /proc/$pid/task/$pid/children);'
    + ' [ $(threads ${child% }) -eq 1 ] || fails "threads: $(threads ${child% })";');
end;

// ---------------------------------------------------------------------------- the end

procedure TTimedReportsTests.EndOfTheProgramWaitsForTheReport;
var
  Turn: Integer;
begin
  for Turn := 1 to 20 do
  begin
    WithThreads.RunInShell(Sampled + ',every=1ms', '"$P" < /dev/null > said');
    WithThreads.EndedWith(0);
    AllFilesAreWhole(WithThreads);
  end;
end;

// What the reporter does when a report is written, some time after the end has begun.
procedure TTimedReportsTests.BeReporter;
const
  Waiting = 1;
begin
  while not IsEnding do
    Sleep(1);
  Sleep(50);
  IsWritten := True;
  StoreRelease(Observe.ReporterState, Waiting);
  OsWakeAll(Observe.ReporterState);
end;

procedure TTimedReportsTests.EndWaitsForAReporterThatWrites;
const
  Writing = 2;
var
  Reporter: TWorker;
begin
  IsEnding := False;
  IsWritten := False;
  StoreRelease(Observe.ReporterState, Writing);
  Reporter := TWorker.Create(BeReporter, False);
  try
    IsEnding := True;
    TimedReportsEnd;
    AssertTrue('the report was written first', IsWritten);
  finally
    Reporter.AwaitEnd;
    Reporter.Free;
    TimedReportsForget;
  end;
end;

procedure TTimedReportsTests.SignalThatEndsTheProgramWaitsForTheReport;
const
  EndedByTerm = 128 + 15;
var
  Turn: Integer;
begin
  for Turn := 1 to 5 do
  begin
    Watch(WithThreads, Sampled + ',every=1ms', '', 'await "[ \$(reports) -ge 2 ]"; kill -TERM $pid;',
      EndedByTerm);
    AllFilesAreWhole(WithThreads);
  end;
end;

initialization
  RegisterTest(TTimedReportsTests);
end.
