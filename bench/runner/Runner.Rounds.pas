/// Runs the binaries: round after round, every workload under every manager in turn.
//
// In each round another manager begins, and memory is warmed before each run, so that no
// manager always has the better place. Round 0 has few operations and is not counted: it
// brings the files into memory and finds what cannot run.
unit Runner.Rounds;

{$I Bench.inc}

interface

uses
  SysUtils, Runner.Results, Runner.Suite;

type
  /// The rounds of one suite. Tells progress and failures on stderr.
  TRounds = class
  private
    FResults: TResults;
    FBinaries: TStringArray;
    FScale: Double;
    FCount: Integer;
    FStarted: TDateTime;
    procedure TellProgress(Round, Row: Integer);
    function RunOnce(Manager, Row: Integer; Scale: Double; out Run: TRun): Boolean;
    procedure RunRow(Round, Row: Integer);
  public
    /// Binaries: paths of the Bench programs, in the order of Results.Managers.
    constructor Create(Results: TResults; const Binaries: TStringArray);
    /// Adds Count runs of each manager in each row to the results.
    /// Scale: factor of the operations.
    procedure Run(Count: Integer; Scale: Double);
  end;

implementation

uses
  Classes, DateUtils, Process, Runner.Machine;

const
  WarmBytes = 384 shl 20;
  WarmUpScale = 0.01;
  FieldCount = 7; // of the line that Bench prints; the measures come last

/// Returns what Binary wrote to stdout and stderr; IsGood tells whether it exited with 0.
function BenchOutput(const Binary: string; const Row: TRow; Scale: Double;
  out IsGood: Boolean): string;
var
  Bench: TProcess;
  Buffer: string[255];
begin
  Result := '';
  Bench := TProcess.Create(nil);
  try
    Bench.Executable := Binary;
    Bench.Parameters.AddStrings([Row.Workload, '--threads', Row.Threads,
      '--scale', FloatToStr(Scale)]);
    Bench.Options := [poUsePipes, poStderrToOutPut];
    Bench.Execute;
    repeat
      SetLength(Buffer, Bench.Output.Read(Buffer[1], High(Buffer)));
      Result := Result + Buffer;
    until Buffer = '';
    Bench.WaitOnExit;
    IsGood := Bench.ExitStatus = 0;
  finally
    Bench.Free;
  end;
end;

/// Reads the line that Bench prints; False if it is none.
function ParseRun(const Line: string; out Run: TRun): Boolean;
var
  Fields: TStringArray;
  Measure: TMeasure;
begin
  Fields := Trim(Line).Split([',']);
  Result := Length(Fields) = FieldCount;
  if Result then
    for Measure := Low(TMeasure) to High(TMeasure) do
      Run[Measure] := StrToFloat(Fields[FieldCount - Length(Run) + Ord(Measure)]);
end;

constructor TRounds.Create(Results: TResults; const Binaries: TStringArray);
begin
  inherited Create;
  FResults := Results;
  FBinaries := Binaries;
end;

procedure TRounds.TellProgress(Round, Row: Integer);
var
  Done, Total: Integer;
  Left: string;
begin
  if Round = 0 then
    Exit;
  Done := (Round - 1) * Length(FResults.Suite.Rows) + Row;
  Total := FCount * Length(FResults.Suite.Rows);
  Left := '';
  if Done > 0 then
    Left := Format(', about %.0f s left', [SecondSpan(Now, FStarted) * (Total - Done) / Done]);
  WriteLn(StdErr, Format('round %d of %d: %s%s',
    [Round, FCount, FResults.Suite.Rows[Row].Name, Left]));
end;

function TRounds.RunOnce(Manager, Row: Integer; Scale: Double; out Run: TRun): Boolean;
var
  Output: string;
begin
  MemoryWarm(WarmBytes);
  Output := BenchOutput(FBinaries[Manager], FResults.Suite.Rows[Row], Scale, Result);
  Result := Result and ParseRun(Output, Run);
  if not Result then
    WriteLn(StdErr, FResults.Managers[Manager], ' FAILED in ', FResults.Suite.Rows[Row].Name,
      ': ', Trim(Output));
end;

procedure TRounds.RunRow(Round, Row: Integer);
var
  Turn, Manager: Integer;
  Scale: Double;
  Run: TRun;
begin
  TellProgress(Round, Row);
  Scale := FScale;
  if Round = 0 then
    Scale := Scale * WarmUpScale;
  for Turn := 0 to High(FBinaries) do
  begin
    Manager := (Round + Turn) mod Length(FBinaries);
    if FResults.HasFailed(Manager, Row) then
      Continue;
    if not RunOnce(Manager, Row, Scale, Run) then
      FResults.MarkFailed(Manager, Row)
    else if Round > 0 then
      FResults.Add(Manager, Row, Run);
  end;
end;

procedure TRounds.Run(Count: Integer; Scale: Double);
var
  Round, Row: Integer;
begin
  FCount := Count;
  FScale := Scale;
  for Round := 0 to Count do
  begin
    if Round = 1 then
      FStarted := Now;
    for Row := 0 to High(FResults.Suite.Rows) do
      RunRow(Round, Row);
  end;
end;

end.
