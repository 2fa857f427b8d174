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
  Classes, Math, StrUtils;

const
  ManagerField = 0;
  WorkloadField = 1;
  ThreadsField = 2;
  FirstMeasureField = 4;
  NumbersPerMeasure = 3; // median, smallest, largest of a common measure

type
  TFields = array[TMeasure] of Integer;

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

/// Finds the fields that hold the medians by the Heading; a file may lack the last measures.
function MedianFields(const Heading: TStringArray): TFields;
var
  Measure: TMeasure;
begin
  for Measure in TMeasure do
    if Measure <= LastCommonMeasure then
      Result[Measure] := FirstMeasureField + NumbersPerMeasure * Ord(Measure)
    else
      Result[Measure] := IndexStr(MeasureNames[Measure], Heading);
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

procedure AddLine(Results: TResults; const Fields: TStringArray; const Medians: TFields);
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
    if Medians[Measure] < 0 then
      Run[Measure] := NaN
    else
      Run[Measure] := StrToFloatDef(Fields[Medians[Measure]], NaN);
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
  Medians: TFields;
  I: Integer;
begin
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(FileName);
    Header := TakeHeader(Lines);
    Measured := Suite;
    DropMissingRows(Measured, Lines);
    Medians := MedianFields(Lines[0].Split([',']));
    Result := TResults.Create(Measured, ManagersIn(Lines));
    for I := 1 to Lines.Count - 1 do
      AddLine(Result, Lines[I].Split([',']), Medians);
  finally
    Lines.Free;
  end;
end;

end.
