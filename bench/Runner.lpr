/// Runs a suite over Bench programs built with different memory managers; compares them.
//
// Exit code: 0 when every workload ran; bars that are missed do not change it. 3 on a busy machine.
program Runner;

{$I Bench.inc}

uses
  SysUtils, Runner.Machine, Runner.Report, Runner.Results, Runner.Rounds, Runner.Suite;

const
  Usage =
    'Runner SUITE RESULTS ROUNDS SCALE COMMAND NAME=BINARY...' + LineEnding +
    '  SUITE        the suite file' + LineEnding +
    '  RESULTS      the CSV file to write' + LineEnding +
    '  ROUNDS       runs of each workload under each manager' + LineEnding +
    '  SCALE        factor of the operations' + LineEnding +
    '  COMMAND      what the user typed; goes into RESULTS, lines and all' + LineEnding +
    '  NAME=BINARY  a manager and a Bench program built with it';
  FirstBinary = 6;

/// Reads NAME=BINARY arguments; the base of the suite gets a second name at the end.
procedure ReadBinaries(const Suite: TSuite; out Names, Binaries: TStringArray);
var
  I, Base: Integer;
  Parts: TStringArray;
begin
  Names := nil;
  Binaries := nil;
  Base := 0;
  for I := FirstBinary to ParamCount do
  begin
    Parts := ParamStr(I).Split(['='], 2);
    if Parts[0] = Suite.Base then
      Base := Length(Names);
    Insert(Parts[0], Names, Length(Names));
    Insert(Parts[1], Binaries, Length(Binaries));
  end;
  Insert(Names[Base] + AgainSuffix, Names, Length(Names));
  Insert(Binaries[Base], Binaries, Length(Binaries));
end;

procedure Report(Results: TResults; const Header: array of string);
begin
  ResultsSave(Results, ParamStr(2), Header);
  TablePrint(Results, meTime,
    'Time per operation: ns for %s, all others relative to it (less is faster)', 1);
  TablePrint(Results, mePeak,
    'Peak resident memory: MB for %s, all others relative to it (less is smaller)', 1024);
  FactsPrint(Results);
  ControlPrint(Results);
  BarsPrint(Results);
  WriteLn;
  WriteLn('All numbers: ', ParamStr(2));
end;

/// Returns whether other programs keep the machine busy, and says how; BUSY=1 has it measured all the same.
function IsBusy: Boolean;
const
  SampleMs = 2000;
var
  Before: TTicks;
  Others: Double;
begin
  if GetEnvironmentVariable('BUSY') = '1' then
    Exit(False);
  Before := TicksNow;
  Sleep(SampleMs);
  Others := OthersSince(Before);
  Result := Others > BusyProcessors;
  if Result then
    WriteLn(StdErr, Format('The machine is busy: other programs, or the host, take %.2f processors (at most %.2f).'
      + LineEnding + 'Wait until it is at rest; BUSY=1 measures all the same, and the results file says so.',
      [Others, BusyProcessors]));
end;

procedure Main;
var
  Suite: TSuite;
  Names, Binaries, Header: TStringArray;
  Results: TResults;
  Rounds: TRounds;
begin
  Suite := SuiteLoad(ParamStr(1));
  ReadBinaries(Suite, Names, Binaries);
  Header := Concat(ParamStr(5).Split([LineEnding]), MachineDescription);
  Results := TResults.Create(Suite, Names);
  Rounds := TRounds.Create(Results, Binaries);
  try
    Rounds.Run(StrToInt(ParamStr(3)), StrToFloat(ParamStr(4)));
    Report(Results, Concat(Header, [Rounds.OthersDescription]));
    if Results.HasAnyFailed then
      ExitCode := 1;
  finally
    Rounds.Free;
    Results.Free;
  end;
end;

begin
  if ParamCount < FirstBinary then
  begin
    WriteLn(StdErr, Usage);
    Halt(2);
  end;
  if IsBusy then
    Halt(3);
  Main;
end.
