/// Results as text: tables, targets, a CSV file.
unit Runner.Report;

{$I Bench.inc}

interface

uses
  Runner.Results, Runner.Suite;

/// Prints a table of Measure: the base's numbers divided by UnitSize, the others relative
/// to the base, and the geometric means. Caption is the heading of the table.
procedure TablePrint(Results: TResults; Measure: TMeasure; const Caption: string;
  UnitSize: Double);
/// Prints how far the manager that takes part twice differs from itself.
procedure ControlPrint(Results: TResults);
/// Prints for each target (bar) of the suite whether its subject meets it, and the number.
/// A target between managers that do not both take part is left out.
procedure BarsPrint(Results: TResults);
/// Prints the numbers that only some workloads measure, for every manager.
procedure FactsPrint(Results: TResults);
/// Writes medians, extremes and the time of each run as CSV, below the comment lines Header.
procedure ResultsSave(Results: TResults; const FileName: string; const Header: array of string);

implementation

uses
  SysUtils, Math;

const
  NameWidth = 18;
  CellWidth = 10;
  ColumnNames: array[meTime..LastCommonMeasure] of string = ('ns', 'cpu_ns', 'peak_kb',
    'final_kb');

function BaseIndex(Results: TResults): Integer;
begin
  Result := Max(0, Results.IndexOf(Results.Suite.Base));
end;

/// Sets Text in the column of row names.
function RowCell(const Text: string): string;
begin
  Result := Text.PadRight(NameWidth);
end;

/// Sets Text in the column of a manager.
function Cell(const Text, Manager: string): string;
begin
  Result := Text.PadLeft(Max(CellWidth, Length(Manager) + 2));
end;

function NumberCell(Number: Double; const Manager: string): string;
begin
  if IsNan(Number) then
    Result := Cell('failed', Manager)
  else
    Result := Cell(Format('%.2f', [Number]), Manager);
end;

procedure PrintHeading(Results: TResults; const Caption: string);
var
  Manager: string;
begin
  WriteLn;
  WriteLn(Caption);
  Write(RowCell('workload/threads'));
  for Manager in Results.Managers do
    Write(Cell(Manager, Manager));
  WriteLn;
end;

procedure PrintRow(Results: TResults; Row: Integer; Measure: TMeasure; UnitSize: Double);
var
  Manager, Base: Integer;
  Number: Double;
begin
  Base := BaseIndex(Results);
  Write(RowCell(Results.Suite.Rows[Row].Name));
  for Manager := 0 to High(Results.Managers) do
  begin
    if Manager = Base then
      Number := Results.Median(Base, Row, Measure) / UnitSize
    else
      Number := Results.Ratio(Manager, Base, Row, Measure);
    Write(NumberCell(Number, Results.Managers[Manager]));
  end;
  WriteLn;
end;

procedure PrintMean(Results: TResults; const Mean: TMean; Measure: TMeasure);
var
  Manager: Integer;
begin
  Write(RowCell('  ' + Mean.Title));
  for Manager := 0 to High(Results.Managers) do
    Write(NumberCell(Results.MeanRatio(Manager, BaseIndex(Results), Mean.Pattern, Measure),
      Results.Managers[Manager]));
  WriteLn;
end;

procedure TablePrint(Results: TResults; Measure: TMeasure; const Caption: string;
  UnitSize: Double);
var
  Row: Integer;
  Mean: TMean;
begin
  PrintHeading(Results, Format(Caption, [Results.Managers[BaseIndex(Results)]]));
  for Row := 0 to High(Results.Suite.Rows) do
    PrintRow(Results, Row, Measure, UnitSize);
  WriteLn('geometric means');
  for Mean in Results.Suite.Means do
    PrintMean(Results, Mean, Measure);
end;

procedure ControlPrint(Results: TResults);
var
  Base, Again, Row: Integer;
  Number, Lowest, Highest: Double;
begin
  Base := BaseIndex(Results);
  Again := Results.IndexOf(Results.Managers[Base] + AgainSuffix);
  if IsNan(Results.MeanRatio(Again, Base, '*', meTime)) then
    Exit;
  Lowest := Infinity;
  Highest := 0;
  for Row := 0 to High(Results.Suite.Rows) do
  begin
    Number := Results.Ratio(Again, Base, Row, meTime);
    if IsNan(Number) then // a run failed
      Continue;
    Lowest := Min(Lowest, Number);
    Highest := Max(Highest, Number);
  end;
  WriteLn;
  WriteLn(Format('Noise: %s relative to itself is %.3f in the geometric mean, %.2f to %.2f in ' +
    'single rows.', [Results.Managers[Base], Results.MeanRatio(Again, Base, '*', meTime), Lowest,
    Highest]));
  WriteLn('A smaller difference between two managers is not significant.');
end;

/// Returns 'PASS' if Number is at most Limit, else 'MISS'.
function Verdict(Number, Limit: Double): string;
begin
  if Number <= Limit then
    Result := 'PASS'
  else
    Result := 'MISS';
end;

procedure PrintMeanBar(Results: TResults; const Bar: TBar);
var
  Number: Double;
begin
  Number := Results.MeanRatio(Results.IndexOf(Bar.Subject), Results.IndexOf(Bar.Against), Bar.Pattern, Bar.Measure);
  if not IsNan(Number) then
    WriteLn(Format('%s  %s of %s: %.3f of %s, to be at most %.2f', [Verdict(Number, Bar.Limit),
      MeasureNames[Bar.Measure], Bar.Pattern, Number, Bar.Against, Bar.Limit]));
end;

/// Returns whether Bar is missed in a row: also by a subject that failed there, and not by one whose
/// rival failed.
function IsMissIn(Results: TResults; const Bar: TBar; Row: Integer; Number: Double): Boolean;
begin
  if IsNan(Number) then
    Result := IsNan(Results.Median(Results.IndexOf(Bar.Subject), Row, Bar.Measure))
  else
    Result := Number > Bar.Limit;
end;

/// Prints a bar that must hold in every row: how many fail it, and which.
procedure PrintEachBar(Results: TResults; const Bar: TBar);
var
  Row, MatchCount, MissCount: Integer;
  Number: Double;
  Misses: string;
begin
  MatchCount := 0;
  MissCount := 0;
  Misses := '';
  for Row := 0 to High(Results.Suite.Rows) do
    if RowMatches(Results.Suite.Rows[Row].Name, Bar.Pattern) then
    begin
      Inc(MatchCount);
      Number := Results.Ratio(Results.IndexOf(Bar.Subject), Results.IndexOf(Bar.Against), Row,
        Bar.Measure);
      if not IsMissIn(Results, Bar, Row, Number) then
        Continue;
      Inc(MissCount);
      Misses := Misses + '      ' + RowCell(Results.Suite.Rows[Row].Name)
        + NumberCell(Number, '') + LineEnding;
    end;
  WriteLn(Format('%s  %s of each of %s: at most %.2f of %s in all but %d of %d rows',
    [Verdict(MissCount, 0), MeasureNames[Bar.Measure], Bar.Pattern, Bar.Limit, Bar.Against,
    MissCount, MatchCount]));
  Write(Misses);
end;

/// Returns the median of the bar's subject in the row called Name, NaN if it has none.
function SubjectIn(Results: TResults; const Bar: TBar; const Name: string): Double;
var
  Row: Integer;
begin
  Row := Results.RowIndexOf(Name);
  if Row < 0 then
    Exit(NaN);
  Result := Results.Median(Results.IndexOf(Bar.Subject), Row, Bar.Measure);
end;

procedure PrintScaleBar(Results: TResults; const Bar: TBar);
var
  Number: Double;
begin
  Number := SubjectIn(Results, Bar, Bar.Pattern) / SubjectIn(Results, Bar, Bar.Against);
  if not IsNan(Number) then
    WriteLn(Format('%s  %s of %s: %.3f of %s, to be at most %.2f', [Verdict(Number, Bar.Limit),
      MeasureNames[Bar.Measure], Bar.Pattern, Number, Bar.Against, Bar.Limit]));
end;

procedure PrintFactBar(Results: TResults; const Bar: TBar);
var
  Number: Double;
begin
  Number := SubjectIn(Results, Bar, Bar.Pattern);
  if not IsNan(Number) then
    WriteLn(Format('%s  %s of %s: %.0f, to be at most %.0f', [Verdict(Number, Bar.Limit),
      MeasureNames[Bar.Measure], Bar.Pattern, Number, Bar.Limit]));
end;

procedure PrintBar(Results: TResults; const Bar: TBar);
begin
  case Bar.Kind of
    bkBar: PrintMeanBar(Results, Bar);
    bkEach: PrintEachBar(Results, Bar);
    bkScale: PrintScaleBar(Results, Bar);
    bkFact: PrintFactBar(Results, Bar);
  end;
end;

/// Returns whether the managers of Bar take part, and its measure was taken.
function CanCompare(Results: TResults; const Bar: TBar): Boolean;
begin
  Result := (Results.IndexOf(Bar.Subject) >= 0)
    and ((Bar.Kind in [bkScale, bkFact]) or (Results.IndexOf(Bar.Against) <> -1))
    and ((Bar.Kind <> bkEach) or Results.HasMeasure(Bar.Measure));
end;

procedure BarsPrint(Results: TResults);
var
  Subject: string;
  Bar: TBar;
begin
  Subject := '';
  for Bar in Results.Suite.Bars do
  begin
    if not CanCompare(Results, Bar) then
      Continue;
    if Bar.Subject <> Subject then
    begin
      WriteLn;
      WriteLn('Targets for ', Bar.Subject, ' (geometric means over the rows)');
      Subject := Bar.Subject;
    end;
    PrintBar(Results, Bar);
  end;
end;

/// Prints the numbers of Measure in those rows that have some.
procedure PrintFacts(Results: TResults; Measure: TMeasure);
var
  Row, Manager: Integer;
begin
  PrintHeading(Results, MeasureNames[Measure]);
  for Row := 0 to High(Results.Suite.Rows) do
    if not IsNan(Results.Median(BestPeer, Row, Measure)) then
    begin
      Write(RowCell(Results.Suite.Rows[Row].Name));
      for Manager := 0 to High(Results.Managers) do
        Write(Cell(Format('%.0f', [Results.Median(Manager, Row, Measure)]),
          Results.Managers[Manager]));
      WriteLn;
    end;
end;

procedure FactsPrint(Results: TResults);
var
  Measure: TMeasure;
begin
  for Measure := Succ(LastCommonMeasure) to High(TMeasure) do
    if Results.HasMeasure(Measure) then
      PrintFacts(Results, Measure);
end;

function CsvHeading: string;
var
  Measure: TMeasure;
begin
  Result := 'manager,workload,threads,runs';
  for Measure := Low(ColumnNames) to High(ColumnNames) do
    Result := Result + Format(',%0:s_median,%0:s_min,%0:s_max', [ColumnNames[Measure]]);
  for Measure := Succ(LastCommonMeasure) to High(TMeasure) do
    Result := Result + ',' + MeasureNames[Measure];
  Result := Result + ',all_ns';
end;

/// Returns a number as text, empty for NaN.
function FactText(Number: Double): string;
begin
  if IsNan(Number) then
    Result := ''
  else
    Result := Format('%.8g', [Number]);
end;

function CsvLine(Results: TResults; Manager, Row: Integer): string;
var
  Measure: TMeasure;
  Index: Integer;
begin
  Result := Format('%s,%s,%s,%d', [Results.Managers[Manager], Results.Suite.Rows[Row].Workload,
    Results.Suite.Rows[Row].Threads, Results.RunCount(Manager, Row)]);
  for Measure := Low(ColumnNames) to High(ColumnNames) do
    Result := Result + Format(',%.8g,%.8g,%.8g', [Results.Median(Manager, Row, Measure),
      Results.Smallest(Manager, Row, Measure), Results.Largest(Manager, Row, Measure)]);
  for Measure := Succ(LastCommonMeasure) to High(TMeasure) do
    Result := Result + ',' + FactText(Results.Median(Manager, Row, Measure));
  Result := Result + ',';
  for Index := 0 to Results.RunCount(Manager, Row) - 1 do
    Result := Result + Format('%.8g ', [Results.Value(Manager, Row, Index, meTime)]);
  Result := TrimRight(Result);
end;

procedure ResultsSave(Results: TResults; const FileName: string; const Header: array of string);
var
  Target: TextFile;
  Line: string;
  Manager, Row: Integer;
begin
  AssignFile(Target, FileName);
  Rewrite(Target);
  for Line in Header do
    WriteLn(Target, '# ', Line);
  WriteLn(Target, CsvHeading);
  for Row := 0 to High(Results.Suite.Rows) do
    for Manager := 0 to High(Results.Managers) do
      WriteLn(Target, CsvLine(Results, Manager, Row));
  CloseFile(Target);
end;

end.
