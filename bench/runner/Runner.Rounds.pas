/// Runs the binaries: round after round, every workload under every manager in turn.
//
// The order of the managers is shuffled, with a fixed seed, and memory is warmed before each
// measured run, so that no manager always has the better place. Round 0 has few operations and is not
// counted: it loads the files into memory and finds the runs that fail. A run that takes very
// long is not repeated.
unit Runner.Rounds;

{$I Bench.inc}

interface

uses
  SysUtils, MemoryGroup, Runner.Machine, Runner.Results, Runner.Suite;

type
  /// The rounds of one suite. Prints progress and failures to stderr.
  TRounds = class
  private
    FResults: TResults;
    FBinaries: TStringArray;
    FScale: Double;
    FCount: Integer;
    FStarted: TDateTime;
    FIsShort: Boolean;
    FIsLong: array of array of Boolean;
    FOrder: array of Integer;
    FRandom: UInt64;
    FRunCount: Integer;
    FGroup: TGroupFolder;
    FOthers: TArray<Double>; // processors, the fewest first
    FBusiestRow: string;
    procedure EnterGroup(Sender: TObject);
    function BenchOutput(const Binary: string; const Row: TRow; Scale: Double;
      out ExitStatus: Integer): string;
    procedure MeasureGroup(var Run: TRun);
    procedure Shuffle;
    procedure TellProgress(Round, Row: Integer);
    function WarmSize(Round, Row: Integer): NativeUInt;
    function RunOnce(Manager, Row: Integer; Scale: Double; out Run: TRun): Boolean;
    procedure NoteOthers(Round, Row: Integer; const Before: TTicks);
    procedure RunRow(Round, Row: Integer);
  public
    /// Binaries: paths of the Bench programs, in the order of Results.Managers.
    constructor Create(Results: TResults; const Binaries: TStringArray);
    /// Adds Count runs of each manager in each row to the results.
    /// Scale: factor of the operations.
    procedure Run(Count: Integer; Scale: Double);
    /// Describes in a line of the results file how busy other programs kept the machine.
    function OthersDescription: string;
  end;

const
  /// So many processors that other programs take are a busy machine: a few hundredths are usual at rest.
  BusyProcessors = 0.25;

implementation

uses
  Classes, DateUtils, Math, Process, Bench.Blocks;

const
  PauseFile = 'build/bench/pause';
  PauseMs = 200;
  WarmBytes = 1280 shl 20; // more than any run of the suites `quick` and `full` has at its peak
  WarmUpScale = 0.01;
  LongRunSeconds: array[Boolean] of Double = (8, 2); // with SHORT=1
  FirstNumber = 3; // field of the line that Bench prints

/// Called in the new process, before it becomes Bench: all of its memory is charged to the group.
procedure TRounds.EnterGroup(Sender: TObject);
begin
  if FGroup <> '' then
    GroupEnter(FGroup);
end;

/// Returns what Binary wrote to stdout and stderr. ExitStatus: as from wait(2); 0 is success.
function TRounds.BenchOutput(const Binary: string; const Row: TRow; Scale: Double;
  out ExitStatus: Integer): string;
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
    Bench.OnForkEvent := EnterGroup;
    Bench.Execute;
    repeat
      SetLength(Buffer, Bench.Output.Read(Buffer[1], High(Buffer)));
      Result := Result + Buffer;
    until Buffer = '';
    Bench.WaitOnExit;
    ExitStatus := Bench.ExitStatus;
  finally
    Bench.Free;
  end;
end;

/// Reads the line that Bench prints; False if it is none.
function ParseLine(const Line: string; out Run: TRun): Boolean;
var
  Fields, Fact: TStringArray;
  Measure: TMeasure;
  I: Integer;
begin
  for Measure in TMeasure do
    Run[Measure] := NaN;
  Fields := Trim(Line).Split([',']);
  Result := Length(Fields) > FirstNumber + Ord(LastCommonMeasure);
  for Measure := meTime to LastCommonMeasure do
    Result := Result and TryStrToFloat(Fields[FirstNumber + Ord(Measure)], Run[Measure]);
  if Result then
    for I := FirstNumber + Ord(LastCommonMeasure) + 1 to High(Fields) do
    begin
      Fact := Fields[I].Split(['=']);
      Run[MeasureByName(Fact[0])] := StrToFloat(Fact[1]);
    end;
end;

/// Finds that line; the memory manager may have written others.
function ParseRun(const Output: string; out Run: TRun): Boolean;
var
  Line: string;
begin
  for Line in Output.Split([LineEnding]) do
    if ParseLine(Line, Run) then
      Exit(True);
  Result := False;
end;

constructor TRounds.Create(Results: TResults; const Binaries: TStringArray);
var
  I: Integer;
begin
  inherited Create;
  FResults := Results;
  FBinaries := Binaries;
  FRandom := RandomSeed(0);
  FIsShort := GetEnvironmentVariable('SHORT') = '1';
  SetLength(FIsLong, Length(Binaries), Length(Results.Suite.Rows));
  SetLength(FOrder, Length(Binaries));
  for I := 0 to High(FOrder) do
    FOrder[I] := I;
end;

procedure TRounds.Shuffle;
var
  I, Other, Number: Integer;
begin
  for I := High(FOrder) downto 1 do
  begin
    Other := RandomIndex(RandomNext(FRandom), I + 1);
    Number := FOrder[I];
    FOrder[I] := FOrder[Other];
    FOrder[Other] := Number;
  end;
end;

procedure TRounds.TellProgress(Round, Row: Integer);
var
  Done, Total: Integer;
  Left: string;
begin
  if Round = 0 then
  begin
    WriteLn(StdErr, 'warm-up: ', FResults.Suite.Rows[Row].Name);
    Exit;
  end;
  Done := (Round - 1) * Length(FResults.Suite.Rows) + Row;
  Total := FCount * Length(FResults.Suite.Rows);
  Left := '';
  if Done > 0 then
    Left := Format(', about %.0f s left', [SecondSpan(Now, FStarted) * (Total - Done) / Done]);
  WriteLn(StdErr, Format('round %d of %d: %s%s',
    [Round, FCount, FResults.Suite.Rows[Row].Name, Left]));
end;

/// Adds what was charged at the most to a run, and removes its group.
procedure TRounds.MeasureGroup(var Run: TRun);
var
  Peak: Int64;
begin
  Peak := GroupPeak(FGroup);
  if Peak >= 0 then
    Run[mePeakCharged] := Peak div 1024;
  if FGroup <> '' then
    GroupRemove(FGroup);
end;

/// Returns how much memory to touch before a run: with SHORT=1 and from the second round on, more than any
/// manager had in this row.
function TRounds.WarmSize(Round, Row: Integer): NativeUInt;
const
  SpareKb = 64 * 1024;
var
  Manager: Integer;
  PeakKb: Double;
begin
  Result := WarmBytes;
  if not FIsShort or (Round < 2) then
    Exit;
  PeakKb := 0;
  for Manager := 0 to High(FBinaries) do
    if FResults.RunCount(Manager, Row) > 0 then
      PeakKb := Max(PeakKb, FResults.Largest(Manager, Row, mePeak));
  Result := Min(WarmBytes, Trunc(PeakKb * 1.25 + SpareKb) * 1024);
end;

function TRounds.RunOnce(Manager, Row: Integer; Scale: Double; out Run: TRun): Boolean;
var
  Output: string;
  ExitStatus: Integer;
begin
  Inc(FRunCount);
  FGroup := GroupMake(Format('bench-%d-%d', [GetProcessID, FRunCount]));
  Output := BenchOutput(FBinaries[Manager], FResults.Suite.Rows[Row], Scale, ExitStatus);
  Result := (ExitStatus = 0) and ParseRun(Output, Run);
  MeasureGroup(Run);
  if not Result then
    WriteLn(StdErr, Format('%s FAILED in %s, wait status %d: %s', [FResults.Managers[Manager],
      FResults.Suite.Rows[Row].Name, ExitStatus, Trim(Output)]));
end;

// Waits between two rows while other programs load the machine.
procedure WaitWhilePaused;
begin
  while FileExists(PauseFile) do
    Sleep(PauseMs);
end;

/// Notes how many processors other programs took during a row of a measured round, in ascending order.
procedure TRounds.NoteOthers(Round, Row: Integer; const Before: TTicks);
var
  Others: Double;
  Place: Integer;
begin
  if Round = 0 then
    Exit;
  Others := OthersSince(Before);
  Place := Length(FOthers);
  while (Place > 0) and (FOthers[Place - 1] > Others) do
    Dec(Place);
  if Place = Length(FOthers) then
    FBusiestRow := FResults.Suite.Rows[Row].Name;
  Insert(Others, FOthers, Place);
end;

procedure TRounds.RunRow(Round, Row: Integer);
var
  Manager: Integer;
  Scale: Double;
  Began: TDateTime;
  Run: TRun;
  Before: TTicks;
begin
  if FResults.Suite.Rows[Row].IsOnce and (Round <> 1) then
    Exit;
  WaitWhilePaused;
  TellProgress(Round, Row);
  Scale := FScale;
  if Round = 0 then
    Scale := Scale * WarmUpScale;
  Shuffle;
  Before := TicksNow;
  for Manager in FOrder do
  begin
    if FResults.HasFailed(Manager, Row) or FIsLong[Manager, Row] then
      Continue;
    if Round > 0 then
      MemoryWarm(WarmSize(Round, Row));
    Began := Now;
    if not RunOnce(Manager, Row, Scale, Run) then
      FResults.MarkFailed(Manager, Row)
    else if Round > 0 then
    begin
      FResults.Add(Manager, Row, Run);
      FIsLong[Manager, Row] := SecondSpan(Now, Began) > LongRunSeconds[FIsShort];
    end;
  end;
  NoteOthers(Round, Row, Before);
end;

function TRounds.OthersDescription: string;
var
  Middle: Double;
begin
  if FOthers = nil then
    Exit('processors that other programs took: not measured');
  Middle := FOthers[High(FOthers) div 2];
  Result := Format('processors that other programs or the host took: %.2f in the median of the rows, at most %.2f in %s',
    [Middle, FOthers[High(FOthers)], FBusiestRow]);
  if Middle > BusyProcessors then
    Result := 'BUSY MACHINE: ' + Result;
end;

procedure TRounds.Run(Count: Integer; Scale: Double);
var
  Round, Row: Integer;
begin
  FCount := Count;
  FScale := Scale;
  if Scale >= 1 then
    SupplyWarm;
  for Round := 0 to Count do
  begin
    if Round = 1 then
      FStarted := Now;
    for Row := 0 to High(FResults.Suite.Rows) do
      RunRow(Round, Row);
  end;
end;

end.
