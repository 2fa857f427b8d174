/// The numbers of all runs and what follows from them: medians, ratios, geometric means.
//
// Managers and rows are given by their index; BestPeer is the one with the smallest median in
// a row, the subject left out. A manager that failed in a row has no numbers there: its
// median and its ratios are NaN, and means leave the row out.
unit Runner.Results;

{$I Bench.inc}

interface

uses
  SysUtils, Runner.Suite;

const
  /// Ends the second name of the manager that takes part twice, as the control of the noise.
  AgainSuffix = '-again';
  /// Stands for the best of the peers, where a manager is asked for.
  BestPeer = -2;

type
  /// One number per measure.
  TRun = array[TMeasure] of Double;

  /// All runs of one suite.
  TResults = class
  private
    FSuite: TSuite;
    FManagers: TStringArray;
    FRuns: array of array of array of TRun;
    FFailed: array of array of Boolean;
    function IsPeer(const Manager: string): Boolean;
    function BestOfPeers(Row: Integer; Measure: TMeasure): Double;
    function Sorted(Manager, Row: Integer; Measure: TMeasure): TArray<Double>;
  public
    /// Starts without runs.
    constructor Create(const Suite: TSuite; const Managers: TStringArray);
    /// Adds one run.
    procedure Add(Manager, Row: Integer; const Run: TRun);
    /// Drops the runs of Manager in Row; there will be none from now on.
    procedure MarkFailed(Manager, Row: Integer);
    /// Returns whether Manager failed in Row.
    function HasFailed(Manager, Row: Integer): Boolean;
    /// Returns whether any manager failed in any row.
    function HasAnyFailed: Boolean;
    /// Number of runs.
    function RunCount(Manager, Row: Integer): Integer;
    /// One number of one run.
    function Value(Manager, Row, Index: Integer; Measure: TMeasure): Double;
    /// The middle number, or the mean of the two in the middle; runs that have none are left out.
    function Median(Manager, Row: Integer; Measure: TMeasure): Double;
    /// The smallest number.
    function Smallest(Manager, Row: Integer; Measure: TMeasure): Double;
    /// The largest number.
    function Largest(Manager, Row: Integer; Measure: TMeasure): Double;
    /// The median of Manager relative to that of Base.
    function Ratio(Manager, Base, Row: Integer; Measure: TMeasure): Double;
    /// The geometric mean of the ratios over the rows that match Pattern, without those in which one
    /// of the two failed.
    function MeanRatio(Manager, Base: Integer; const Pattern: string; Measure: TMeasure): Double;
    /// The index of a manager, BestPeer for `best`, -1 if it does not take part.
    function IndexOf(const Manager: string): Integer;
    /// Returns whether any run has a number for Measure.
    function HasMeasure(Measure: TMeasure): Boolean;
    /// The index of a row, -1 if the suite does not have it.
    function RowIndexOf(const Name: string): Integer;
    /// The suite.
    property Suite: TSuite read FSuite;
    /// The names of the managers.
    property Managers: TStringArray read FManagers;
  end;

implementation

uses
  Math, StrUtils;

constructor TResults.Create(const Suite: TSuite; const Managers: TStringArray);
begin
  inherited Create;
  FSuite := Suite;
  FManagers := Managers;
  SetLength(FRuns, Length(Managers), Length(Suite.Rows));
  SetLength(FFailed, Length(Managers), Length(Suite.Rows));
end;

procedure TResults.Add(Manager, Row: Integer; const Run: TRun);
begin
  Insert(Run, FRuns[Manager, Row], Length(FRuns[Manager, Row]));
end;

procedure TResults.MarkFailed(Manager, Row: Integer);
begin
  FFailed[Manager, Row] := True;
  FRuns[Manager, Row] := nil;
end;

function TResults.HasFailed(Manager, Row: Integer): Boolean;
begin
  Result := FFailed[Manager, Row];
end;

function TResults.HasAnyFailed: Boolean;
var
  Manager, Row: Integer;
begin
  Result := False;
  for Manager := 0 to High(FManagers) do
    for Row := 0 to High(FSuite.Rows) do
      Result := Result or FFailed[Manager, Row];
end;

function TResults.RunCount(Manager, Row: Integer): Integer;
begin
  Result := Length(FRuns[Manager, Row]);
end;

function TResults.Value(Manager, Row, Index: Integer; Measure: TMeasure): Double;
begin
  Result := FRuns[Manager, Row, Index][Measure];
end;

function TResults.Sorted(Manager, Row: Integer; Measure: TMeasure): TArray<Double>;
var
  Index, Place: Integer;
begin
  Result := nil;
  for Index := 0 to RunCount(Manager, Row) - 1 do
  begin
    if IsNan(Value(Manager, Row, Index, Measure)) then
      Continue; // comparing it would raise an exception
    Place := Length(Result);
    while (Place > 0) and (Result[Place - 1] > Value(Manager, Row, Index, Measure)) do
      Dec(Place);
    Insert(Value(Manager, Row, Index, Measure), Result, Place);
  end;
end;

function TResults.Median(Manager, Row: Integer; Measure: TMeasure): Double;
var
  Values: TArray<Double>;
  Count: Integer;
begin
  if Manager = BestPeer then
    Exit(BestOfPeers(Row, Measure));
  Values := Sorted(Manager, Row, Measure);
  Count := Length(Values);
  if Count = 0 then
    Exit(NaN);
  Result := (Values[(Count - 1) div 2] + Values[Count div 2]) / 2;
end;

function TResults.IsPeer(const Manager: string): Boolean;
begin
  Result := (Manager <> FSuite.Subject) and not Manager.EndsWith(AgainSuffix)
    and ((FSuite.Peers = nil) or (IndexStr(Manager, FSuite.Peers) >= 0));
end;

function TResults.BestOfPeers(Row: Integer; Measure: TMeasure): Double;
var
  Manager: Integer;
  Number: Double;
begin
  Result := NaN;
  for Manager := 0 to High(FManagers) do
    if IsPeer(FManagers[Manager]) then
    begin
      Number := Median(Manager, Row, Measure);
      if not IsNan(Number) and (IsNan(Result) or (Number < Result)) then
        Result := Number;
    end;
end;

function TResults.Smallest(Manager, Row: Integer; Measure: TMeasure): Double;
begin
  if RunCount(Manager, Row) = 0 then
    Exit(NaN);
  Result := Sorted(Manager, Row, Measure)[0];
end;

function TResults.Largest(Manager, Row: Integer; Measure: TMeasure): Double;
begin
  if RunCount(Manager, Row) = 0 then
    Exit(NaN);
  Result := Sorted(Manager, Row, Measure)[RunCount(Manager, Row) - 1];
end;

function TResults.Ratio(Manager, Base, Row: Integer; Measure: TMeasure): Double;
begin
  Result := Median(Manager, Row, Measure) / Median(Base, Row, Measure);
end;

function TResults.MeanRatio(Manager, Base: Integer; const Pattern: string;
  Measure: TMeasure): Double;
var
  Row, Count: Integer;
  Sum: Double;
begin
  Count := 0;
  Sum := 0;
  for Row := 0 to High(FSuite.Rows) do
    if RowMatches(FSuite.Rows[Row].Name, Pattern)
      and not IsNan(Ratio(Manager, Base, Row, Measure)) then
    begin
      Sum := Sum + Ln(Ratio(Manager, Base, Row, Measure));
      Inc(Count);
    end;
  if Count = 0 then
    Exit(NaN);
  Result := Exp(Sum / Count);
end;

function TResults.IndexOf(const Manager: string): Integer;
begin
  if Manager = BestName then
    Exit(BestPeer);
  Result := High(FManagers);
  while (Result >= 0) and (FManagers[Result] <> Manager) do
    Dec(Result);
end;

function TResults.HasMeasure(Measure: TMeasure): Boolean;
var
  Row: Integer;
begin
  Result := False;
  for Row := 0 to High(FSuite.Rows) do
    Result := Result or not IsNan(BestOfPeers(Row, Measure));
end;

function TResults.RowIndexOf(const Name: string): Integer;
begin
  Result := High(FSuite.Rows);
  while (Result >= 0) and (FSuite.Rows[Result].Name <> Name) do
    Dec(Result);
end;

end.
