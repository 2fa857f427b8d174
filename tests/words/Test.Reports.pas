/// Tests of what becomes of reports in bad places: no screen, no disk, a program that dies, memory
/// that is spoilt in every way.
unit Test.Reports;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TReportsTests = class(TLaneTest)
  strict private
    procedure IsComplete(const Text: string);
    procedure IsWholeEnd(const How: string; ExitCode: Integer);
    procedure SpoiltMemoryIsReported(const Settings: string; Count: Integer);
  published
    procedure ReportIsCompleteInTheFileThatTheScreenIsSentTo;
    procedure BlockThatAnExceptionLeavesHasItsLine;
    procedure FullLogLeavesTheScreen;
    procedure FullScreenLeavesTheLog;
    procedure ProgramGoesOnWhenNothingTakesTheReport;
    procedure ProgramGoesOnWithoutAScreen;
    procedure ProgramWithoutAnyTerminalWritesTheLog;
    procedure ClosedPipeDoesNotEndTheProgram;
    procedure LimitOnFilesDoesNotEndTheProgram;
    procedure FileOfTheProgramIsNotTakenForTheScreen;
    procedure DamageIsReportedAtTheEnd;
    procedure DamageIsReportedAfterHalt;
    procedure DamageIsReportedAfterAnException;
    procedure DamageSetsTheExitCodeOfAProgramWithoutOne;
    procedure ReportsBeforeAFaultAreComplete;
    procedure ReportsAfterAFaultInARoutineWithoutAFrameAreComplete;
    procedure ReportsBeforeAKillAreComplete;
    procedure NothingSpoiltMakesAReportFault;
    procedure NothingSpoiltMakesACheckFault;
    procedure NothingSpoiltMakesALeakReportFault;
    procedure NothingSpoiltBetweenGuardPagesMakesAReportFault;
  end;

implementation

uses
  SysUtils, testregistry, Test.Programs;

const
  LogSuffix = 'EventLog.txt';
  TwiceLine = 'Double free: the block was already freed.';
  BehindLine = 'Heap block overrun: bytes past the end were modified.';

var
  Damaged, Spoiling: TTestProgram;

function Program_: TTestProgram;
begin
  if Damaged = nil then
    Damaged := TTestProgram.Create('DamagedEnd', '-O1 -gl -Xs-');
  Result := Damaged;
end;

// The double free, with its stack, and the damage, down to the bytes.
procedure TReportsTests.IsComplete(const Text: string);
begin
  Has(TwiceLine, Text);
  Has(Format('DamagedEnd.lpr:%d'#10, [Program_.PlantedLine('twice')]), Text);
  Has(BehindLine, Text);
  Has(Format('DamagedEnd.lpr:%d'#10, [Program_.PlantedLine('got')]), Text);
  Has('*01 e7 e7', Text);
end;

procedure TReportsTests.ReportIsCompleteInTheFileThatTheScreenIsSentTo;
begin
  Program_.RunInShell('debug', '"$P" > "$P.out" 2>&1; code=$?; cat "$P.out" >&2; exit $code');
  Program_.EndedWith(0);
  IsComplete(Program_.Errors);
  AssertEquals('the log', Program_.Written(LogSuffix),
    Program_.Errors.Replace('caught'#10, '').Replace('ended'#10, ''));
end;

// The overrun is detected when the exception has left the main block, in code without a line.
procedure TReportsTests.BlockThatAnExceptionLeavesHasItsLine;
var
  Text: string;
begin
  Program_.Run('debug', ['exception']);
  Text := Program_.Errors;
  Text := Copy(Text, Pos(BehindLine, Text));
  Text := Copy(Text, Pos('  Detected at', Text));
  Has('  main  DamagedEnd.lpr:', Copy(Text, 1, 200));
end;

procedure TReportsTests.FullLogLeavesTheScreen;
begin
  // No folder may be tried instead: each is as full as the disk.
  Program_.Run('debug,log=/dev/full', ['']);
  Program_.EndedWith(0);
  IsComplete(Program_.Errors);
  Program_.Run('debug,event=all:file,log=/dev/full', ['']);
  Program_.EndedWith(0);
  IsComplete(Program_.Errors + Program_.Written(LogSuffix));
end;

procedure TReportsTests.FullScreenLeavesTheLog;
begin
  Program_.RunInShell('debug', '"$P" 2>/dev/full');
  Program_.EndedWith(0);
  IsComplete(Program_.Written(LogSuffix));
end;

procedure TReportsTests.ProgramGoesOnWhenNothingTakesTheReport;
begin
  Program_.RunInShell('debug,event=all:stderr', '"$P" halt 2>/dev/full');
  Program_.EndedWith(3);
end;

procedure TReportsTests.ProgramGoesOnWithoutAScreen;
begin
  Program_.RunInShell('debug,leaks,event=all:stderr', '"$P" halt 2>&-');
  Program_.EndedWith(3);
end;

procedure TReportsTests.ProgramWithoutAnyTerminalWritesTheLog;
begin
  Program_.RunInShell('debug', 'setsid "$P" halt <&- >&- 2>&-');
  Program_.EndedWith(3);
  IsComplete(Program_.Written(LogSuffix));
end;

// The reading end is closed before the program starts; a file holds its exit code.
procedure TReportsTests.ClosedPipeDoesNotEndTheProgram;
begin
  Program_.RunInShell('debug,event=all:stderr', 'rm -f "$P.closed";'
    + ' { until [ -e "$P.closed" ]; do :; done; "$P" halt 2>&1 >/dev/null; echo $? > "$P.code"; }'
    + ' | { exec <&-; : > "$P.closed"; }; exit $(cat "$P.code")');
  Program_.EndedWith(3);
end;

// In blocks of 512 bytes: nothing fits, or a part.
procedure TReportsTests.LimitOnFilesDoesNotEndTheProgram;
var
  Blocks: Integer;
begin
  for Blocks := 0 to 2 do
  begin
    Program_.RunInShell('debug', Format('ulimit -f %d; exec "$P" halt', [Blocks]));
    Program_.EndedWith(3);
    IsComplete(Program_.Errors);
  end;
end;

procedure TReportsTests.FileOfTheProgramIsNotTakenForTheScreen;
begin
  Program_.RunInShell('debug,event=all:stderr',
    '"$P" file "$P.own" >/dev/null 2>&-; cat "$P.own" >&2');
  AssertEquals('own', Program_.Errors);
  Program_.RunInShell('', '"$P" file "$P.own" >/dev/null 2>&-; cat "$P.own" >&2');
  AssertEquals('without a report', 'own', Program_.Errors);
end;

procedure TReportsTests.IsWholeEnd(const How: string; ExitCode: Integer);
begin
  Program_.Run('debug', [How]);
  Program_.EndedWith(ExitCode);
  IsComplete(Program_.Errors);
  IsComplete(Program_.Written(LogSuffix));
end;

procedure TReportsTests.DamageIsReportedAtTheEnd;
begin
  IsWholeEnd('', 0);
end;

procedure TReportsTests.DamageIsReportedAfterHalt;
begin
  IsWholeEnd('halt', 3);
end;

procedure TReportsTests.DamageIsReportedAfterAnException;
begin
  IsWholeEnd('exception', 217);
  Has('nobody handles this', Program_.Errors);
end;

procedure TReportsTests.DamageSetsTheExitCodeOfAProgramWithoutOne;
begin
  Program_.Run('debug,debug:exit=9', ['']);
  Program_.EndedWith(9, 'normal end');
  Program_.Run('debug,debug:exit=9', ['halt']);
  Program_.EndedWith(3, 'exit code of the program');
  Program_.Run('debug,debug:exit=9', ['exception']);
  Program_.EndedWith(217, 'exception');
end;

procedure TReportsTests.ReportsBeforeAFaultAreComplete;
begin
  IsWholeEnd('fault', 217);
end;

// Free Pascal 3.3.1 takes the stack for aligned, also after such a fault.
procedure TReportsTests.ReportsAfterAFaultInARoutineWithoutAFrameAreComplete;
begin
  IsWholeEnd('leaf', 217);
  Program_.Run('leaks', ['leaf']);
  Program_.EndedWith(217);
  Has('Memory leaks: ', Program_.Errors);
  Has('Memory leaks: ', Program_.Written(LogSuffix));
end;

// No check at the end, but what was found before is there.
procedure TReportsTests.ReportsBeforeAKillAreComplete;
begin
  Program_.RunInShell('debug,check=always', '"$P" kill');
  IsComplete(Program_.Errors);
  IsComplete(Program_.Written(LogSuffix));
end;

// ---------------------------------------------------------------------------- spoilt memory

procedure TReportsTests.SpoiltMemoryIsReported(const Settings: string; Count: Integer);
begin
  if Spoiling = nil then
    Spoiling := TTestProgram.Create('Spoiling', '-O1 -gl -Xs-');
  Spoiling.RunInShell(Settings + ',event=all:file,log=' + Spoiling.NullDevice,
    Format('"$P" %d %d >&2', [TestSeed, Count]));
  AssertEquals('seeds that failed', '', Spoiling.Errors);
  Spoiling.EndedWith(0);
end;

procedure TReportsTests.NothingSpoiltMakesAReportFault;
begin
  SpoiltMemoryIsReported('debug,leaks', 40);
end;

procedure TReportsTests.NothingSpoiltMakesACheckFault;
begin
  SpoiltMemoryIsReported('debug,check=20,quarantine=10K,leaks', 20);
end;

procedure TReportsTests.NothingSpoiltMakesALeakReportFault;
begin
  SpoiltMemoryIsReported('leaks', 60);
end;

procedure TReportsTests.NothingSpoiltBetweenGuardPagesMakesAReportFault;
begin
  SpoiltMemoryIsReported('debug,guard=pages,leaks', 40);
end;

initialization
  RegisterTest(TReportsTests);
finalization
  Damaged.Free;
  Spoiling.Free;
end.
