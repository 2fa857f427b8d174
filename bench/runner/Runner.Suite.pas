/// A suite: which workloads run with how many threads, and what the numbers must reach.
//
// A suite is a text file, one entry per line:
//   base MANAGER                        what the ratios are relative to
//   subject MANAGER                     whose numbers the bars judge
//   row WORKLOAD THREADS...             one row of the tables for each number of threads
//   mean TITLE PATTERN                  a geometric mean over the rows that match
//   bar MEASURE PATTERN MANAGER LIMIT   subject / MANAGER over these rows: at most LIMIT
// A row is named workload/threads; in a pattern `*` stands for any text. MEASURE is time,
// cpu, peak or final. Lines that start with # are comments.
unit Runner.Suite;

{$I Bench.inc}

interface

type
  /// What is measured in every run.
  TMeasure = (meTime, meCpu, mePeak, meFinal);

  /// One line of the tables.
  TRow = record
    Workload: string;    //< const   as in Bench
    Threads: string;     //< const   a number
    Name: string;        //< const   workload/threads
  end;

  /// A geometric mean below the tables.
  TMean = record
    Title: string;       //< const   what it is called
    Pattern: string;     //< const   the rows it covers
  end;

  /// What the subject has to reach.
  TBar = record
    Measure: TMeasure;   //< const   what is compared
    Pattern: string;     //< const   over which rows, as a geometric mean
    Against: string;     //< const   with which manager
    Limit: Double;       //< const   highest ratio that passes
  end;

  /// A suite file.
  TSuite = record
    Base: string;           //< const   manager that the ratios are relative to
    Subject: string;        //< const   manager that the bars judge
    Rows: array of TRow;    //< const   in the order of the file
    Means: array of TMean;  //< const   in the order of the file
    Bars: array of TBar;    //< const   in the order of the file
  end;

const
  /// The names of the measures, as in suite and results files.
  MeasureNames: array[TMeasure] of string = ('time', 'cpu', 'peak', 'final');

/// Reads a suite file. Raises EConvertError on a line that it does not understand.
function SuiteLoad(const FileName: string): TSuite;
/// Tells whether the row called Name is one of those that Pattern stands for.
function RowMatches(const Name, Pattern: string): Boolean;

implementation

uses
  SysUtils, Classes, StrUtils;

function RowMatches(const Name, Pattern: string): Boolean;
begin
  Result := IsWild(Name, Pattern, False);
end;

function MeasureByName(const Name: string): TMeasure;
begin
  for Result := Low(TMeasure) to High(TMeasure) do
    if MeasureNames[Result] = Name then
      Exit;
  raise EConvertError.CreateFmt('"%s" is no measure', [Name]);
end;

procedure AddRows(var Suite: TSuite; const Words: TStringArray);
var
  Row: TRow;
  I: Integer;
begin
  Row.Workload := Words[1];
  for I := 2 to High(Words) do
  begin
    Row.Threads := Words[I];
    Row.Name := Row.Workload + '/' + Row.Threads;
    Insert(Row, Suite.Rows, Length(Suite.Rows));
  end;
end;

procedure AddMean(var Suite: TSuite; const Words: TStringArray);
var
  Mean: TMean;
begin
  Mean.Title := Words[1];
  Mean.Pattern := Words[2];
  Insert(Mean, Suite.Means, Length(Suite.Means));
end;

procedure AddBar(var Suite: TSuite; const Words: TStringArray);
var
  Bar: TBar;
begin
  Bar.Measure := MeasureByName(Words[1]);
  Bar.Pattern := Words[2];
  Bar.Against := Words[3];
  Bar.Limit := StrToFloat(Words[4]);
  Insert(Bar, Suite.Bars, Length(Suite.Bars));
end;

procedure AddLine(var Suite: TSuite; const Line: string);
var
  Words: TStringArray;
begin
  Words := Line.Split([' '], TStringSplitOptions.ExcludeEmpty);
  if (Words[0] = 'row') and (Length(Words) > 2) then
    AddRows(Suite, Words)
  else if (Words[0] = 'mean') and (Length(Words) = 3) then
    AddMean(Suite, Words)
  else if (Words[0] = 'bar') and (Length(Words) = 5) then
    AddBar(Suite, Words)
  else if (Words[0] = 'base') and (Length(Words) = 2) then
    Suite.Base := Words[1]
  else if (Words[0] = 'subject') and (Length(Words) = 2) then
    Suite.Subject := Words[1]
  else
    raise EConvertError.CreateFmt('"%s" is no line of a suite', [Line]);
end;

function SuiteLoad(const FileName: string): TSuite;
var
  Lines: TStringList;
  Line: string;
begin
  Result := Default(TSuite);
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(FileName);
    for Line in Lines do
      if (Trim(Line) <> '') and (Line[1] <> '#') then
        AddLine(Result, Line);
  finally
    Lines.Free;
  end;
end;

end.
