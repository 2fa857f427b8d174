/// Results files read back.
unit Runner.Load;

{$I Bench.inc}

interface

uses
  SysUtils, Runner.Results, Runner.Suite;

/// Reads what ResultsSave wrote: the time of every run, and of all other measures the median.
/// Rows that only the file or only Suite has are left out. Header: the comment lines at the start.
/// The caller frees the result.
function ResultsLoad(const FileName: string; const Suite: TSuite;
  out Header: TStringArray): TResults;

implementation

uses
  Classes, Math;

const
  ManagerField = 0;
  WorkloadField = 1;
  ThreadsField = 2;
  FirstMeasureField = 4;
  NumbersPerMeasure = 3; // median, smallest, largest of a common measure

/// Moves the comment lines from Lines to the result, without their `# `.
function TakeHeader(Lines: TStringList): TStringArray;
begin
  Result := nil;
  while (Lines.Count > 0) and Lines[0].StartsWith('# ') do
  begin
    Insert(Copy(Lines[0], 3, MaxInt), Result, Length(Result));
    Lines.Delete(0);
  end;
end;

/// Names the managers in the order of their first lines.
function ManagersIn(Lines: TStringList): TStringArray;
var
  I: Integer;
  Manager: string;
begin
  Result := nil;
  for I := 1 to Lines.Count - 1 do
  begin
    Manager := Lines[I].Split([','])[ManagerField];
    if (Length(Result) > 0) and (Manager = Result[0]) and (I > 1) then
      Exit;
    Insert(Manager, Result, Length(Result));
  end;
end;

/// Gives the field that holds the median of Measure.
function MedianField(Measure: TMeasure): Integer;
begin
  if Measure <= LastCommonMeasure then
    Result := FirstMeasureField + NumbersPerMeasure * Ord(Measure)
  else
    Result := FirstMeasureField + NumbersPerMeasure * (Ord(LastCommonMeasure) + 1) +
      Ord(Measure) - Ord(LastCommonMeasure) - 1;
end;

/// Leaves only those rows in Suite that some of the Lines have.
procedure DropMissingRows(var Suite: TSuite; Lines: TStringList);
var
  I, Row: Integer;
  Key: string;
  IsFound: Boolean;
begin
  for Row := High(Suite.Rows) downto 0 do
  begin
    Key := Format(',%s,%s,', [Suite.Rows[Row].Workload, Suite.Rows[Row].Threads]);
    IsFound := False;
    for I := 1 to Lines.Count - 1 do
      IsFound := IsFound or (Pos(Key, Lines[I]) > 0);
    if not IsFound then
      Delete(Suite.Rows, Row, 1);
  end;
end;

procedure AddLine(Results: TResults; const Fields: TStringArray);
var
  Manager, Row: Integer;
  Measure: TMeasure;
  Time: string;
  Run: TRun;
begin
  Manager := Results.IndexOf(Fields[ManagerField]);
  Row := Results.RowIndexOf(Fields[WorkloadField] + '/' + Fields[ThreadsField]);
  if Row < 0 then
    Exit;
  for Measure in TMeasure do
    Run[Measure] := StrToFloatDef(Fields[MedianField(Measure)], NaN);
  if IsNan(Run[meTime]) then
    Results.MarkFailed(Manager, Row)
  else
    for Time in Fields[High(Fields)].Split([' ']) do
    begin
      Run[meTime] := StrToFloat(Time);
      Results.Add(Manager, Row, Run);
    end;
end;

function ResultsLoad(const FileName: string; const Suite: TSuite;
  out Header: TStringArray): TResults;
var
  Lines: TStringList;
  Measured: TSuite;
  I: Integer;
begin
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(FileName);
    Header := TakeHeader(Lines);
    Measured := Suite;
    DropMissingRows(Measured, Lines);
    Result := TResults.Create(Measured, ManagersIn(Lines));
    for I := 1 to Lines.Count - 1 do
      AddLine(Result, Lines[I].Split([',']));
  finally
    Lines.Free;
  end;
end;

end.
