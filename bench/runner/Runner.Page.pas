/// Results as a page of Markdown, and as data for its charts.
unit Runner.Page;

{$I Bench.inc}

interface

uses
  SysUtils, Runner.Results;

/// Writes the page to the output. Header: the comment lines of the results; Source: the name
/// of the results file, Charts: that of the directory of the charts, as links on the page.
procedure PageWrite(Results: TResults; const Header: TStringArray; const Source, Charts: string);
/// Writes the sentence that README.md begins with to the output, and its chart in Charts.
procedure HeadlineWrite(Results: TResults; const Charts: string);
/// Writes the numbers that README.md states to the output. Header as for PageWrite.
procedure SummaryWrite(Results: TResults; const Header: TStringArray);
/// Writes what the charts of bench/charts draw, as *.dat files in Directory.
procedure ChartDataWrite(Results: TResults; const Directory: string);

implementation

uses
  Math, StrUtils, Runner.Report, Runner.Suite;

const
  WorthTuning = 1.25; // of the time of the best peer: from here on a cell is printed in bold
  WorthSaving = 1.50; // of the memory of the leanest peer: from here on a row is named
  OwnHeap = 'FPC';    // Free Pascal's heap
  NamedRows = 3;      // at most so many of the rows that the subject loses by most
  ThreadWorkloads: array[0..5] of string = ('pairs-64', 'churn-small', 'resize-random', 'nexus', 'producers', 'handover');

function SubjectIndex(Results: TResults): Integer;
begin
  Result := Results.IndexOf(Results.Suite.Subject);
end;

/// Returns whether a manager is in the charts; the second name of one that runs twice is not.
function IsCharted(const Manager: string): Boolean;
begin
  Result := not Manager.EndsWith(AgainSuffix);
end;

/// Returns a ratio with two digits, `-` for none; in bold if it exceeds Limit.
function RatioText(Ratio, Limit: Double): string;
begin
  if IsNan(Ratio) then
    Exit('-');
  Result := Format('%.2f', [Ratio]);
  if Ratio > Limit then
    Result := '**' + Result + '**';
end;

/// Returns whether there are numbers over threads for the charts.
function HasThreadWorkloads(Results: TResults): Boolean;
var
  Row: TRow;
  Workload: string;
begin
  Result := False;
  for Row in Results.Suite.Rows do
    for Workload in ThreadWorkloads do
      Result := Result or (Row.Workload = Workload);
end;

/// Returns a time as text: an operation in ns, a whole run in ms.
function TimeText(Nanoseconds: Double): string;
const
  Millisecond = 1000000;
begin
  if Nanoseconds < Millisecond then
    Result := Format('%.4g ns', [Nanoseconds])
  else
    Result := Format('%.0f ms', [Nanoseconds / Millisecond]);
end;

/// Writes the first two lines of a table: First and then all managers.
procedure WriteHeading(Results: TResults; const First: string);
var
  Manager: string;
begin
  WriteLn;
  Write('| ', First, ' |');
  for Manager in Results.Managers do
    Write(' ', Manager, ' |');
  WriteLn;
  Write('|---|');
  for Manager in Results.Managers do
    Write('---:|');
  WriteLn;
end;

/// Writes one line of a table: time / peak memory of all managers relative to the base, as
/// geometric means over the rows of Pattern.
procedure WriteRatios(Results: TResults; const Title, Pattern: string);
var
  Manager, Base: Integer;
begin
  Base := Results.IndexOf(Results.Suite.Base);
  Write('| ', Title, ' |');
  for Manager := 0 to High(Results.Managers) do
    Write(' ', RatioText(Results.MeanRatio(Manager, Base, Pattern, meTime), Infinity), ' / ',
      RatioText(Results.MeanRatio(Manager, Base, Pattern, mePeak), Infinity), ' |');
  WriteLn;
end;

procedure WriteTables(Results: TResults);
var
  Mean: TMean;
  Row: TRow;
begin
  WriteHeading(Results, 'time / peak memory');
  for Mean in Results.Suite.Means do
    WriteRatios(Results, Mean.Title, Mean.Pattern);
  WriteLn;
  WriteLn('## Every workload');
  WriteLn;
  WriteLn('workload/threads. The source of each workload defines its unit of operation.');
  WriteHeading(Results, 'time / peak memory');
  for Row in Results.Suite.Rows do
    WriteRatios(Results, Row.Name, Row.Name);
end;

/// Writes time and memory of the subject in each row, relative to the best peer there.
procedure WriteAgainstBest(Results: TResults);
var
  Row, Subject: Integer;
begin
  Subject := SubjectIndex(Results);
  WriteLn;
  WriteLn('## ', Results.Suite.Subject, ' against the best of all peers in each workload');
  WriteLn;
  WriteLn('The best in time and the best in memory may be two managers. Bold: more than ',
    WorthTuning:0:2, ' times', LineEnding, 'the best.');
  WriteLn;
  WriteLn('| workload/threads | time per operation | of the best | peak MB | of the best |');
  WriteLn('|---|---:|---:|---:|---:|');
  for Row := 0 to High(Results.Suite.Rows) do
    WriteLn(Format('| %s | %s | %s | %.4g | %s |', [Results.Suite.Rows[Row].Name,
      TimeText(Results.Median(Subject, Row, meTime)),
      RatioText(Results.Ratio(Subject, BestPeer, Row, meTime), WorthTuning),
      Results.Median(Subject, Row, mePeak) / 1024,
      RatioText(Results.Ratio(Subject, BestPeer, Row, mePeak), WorthTuning)]));
end;

/// Returns whether a workload has measured more than time and memory.
function HasFacts(Results: TResults): Boolean;
var
  Measure: TMeasure;
begin
  Result := False;
  for Measure := Succ(LastCommonMeasure) to High(TMeasure) do
    Result := Result or Results.HasMeasure(Measure);
end;

procedure WriteFacts(Results: TResults);
begin
  WriteLn;
  WriteLn('## Latency and idle memory');
  WriteLn;
  WriteLn('`p50_ns` to `longest_ns`: latency of one call of GetMem or FreeMem. `idle0_kb` to');
  WriteLn('`idle10_kb`: resident memory 0, 2 and 10 seconds after a burst of 1 GB was freed; `quiet_kb`:');
  WriteLn('after 2.5 seconds in which the program slept.');
  if Results.HasMeasure(mePeakCharged) then
    WriteLn('`*_charged_kb`: what the memory group of the run was charged then, and at most.');
  WriteLn;
  Write('```');
  FactsPrint(Results);
  WriteLn('```');
end;

procedure WriteBars(Results: TResults);
begin
  WriteLn;
  WriteLn('## Targets');
  WriteLn;
  Write('```');
  BarsPrint(Results);
  ControlPrint(Results);
  WriteLn('```');
end;

type
  // Rows in which the subject needs more than the best peer.
  TLostRows = record
    Count: Integer;  //< const   how many
    Names: string;   //< const   those that it loses by most, with their ratios
  end;

/// Returns the rows in which the subject has more than Limit times Measure of the best peer.
function LostRows(Results: TResults; Measure: TMeasure; Limit: Double): TLostRows;
var
  Row, Named, Worst, Subject: Integer;
  Bound: Double;

  function Lost(Row: Integer): Double;
  begin
    Result := Results.Ratio(Subject, BestPeer, Row, Measure);
    if IsNan(Result) then
      Result := 0;
  end;

begin
  Subject := SubjectIndex(Results);
  Result := Default(TLostRows);
  for Row := 0 to High(Results.Suite.Rows) do
    if Lost(Row) > Limit then
      Inc(Result.Count);
  Bound := Infinity;
  for Named := 1 to Min(Result.Count, NamedRows) do
  begin
    Worst := -1;
    for Row := 0 to High(Results.Suite.Rows) do
      if (Lost(Row) < Bound) and ((Worst < 0) or (Lost(Row) > Lost(Worst))) then
        Worst := Row;
    if Worst < 0 then
      Break;
    Bound := Lost(Worst);
    if Named > 1 then
      Result.Names := Result.Names + ', ';
    Result.Names := Result.Names + Format('`%s` %.2f', [Results.Suite.Rows[Worst].Name, Bound]);
  end;
end;

/// Writes one sentence: the mean of Measure against the best peer, and the rows above Limit.
procedure WriteLost(Results: TResults; const What: string; Measure: TMeasure; Limit: Double);
var
  Lost: TLostRows;
begin
  Lost := LostRows(Results, Measure, Limit);
  Write(Format('%s needs %.2f of the %s of the best manager of each row in the mean; ',
    [Results.Suite.Subject, Results.MeanRatio(SubjectIndex(Results), BestPeer, '*', Measure),
    What]));
  if Lost.Count = 0 then
    WriteLn(Format('in no row more than %.2f.', [Limit]))
  else
    WriteLn(Format('in %d of %d rows more than %.2f (most: %s).', [Lost.Count,
      Length(Results.Suite.Rows), Limit, Lost.Names]));
end;

/// Returns how many rows the subject wins or shares: no other manager needs less of Measure.
function WonRows(Results: TResults; Measure: TMeasure): Integer;
var
  Row: Integer;
begin
  Result := 0;
  for Row := 0 to High(Results.Suite.Rows) do
    if Results.Ratio(SubjectIndex(Results), BestPeer, Row, Measure) <= 1 then
      Inc(Result);
end;

/// Returns the indexes of the managers in the charts, those with the lowest time first.
function ManagersByTime(Results: TResults): TArray<Integer>;
var
  Manager, Place: Integer;

  function Time(Manager: Integer): Double;
  begin
    Result := Results.MeanRatio(Manager, Results.IndexOf(Results.Suite.Base), '*', meTime);
  end;

begin
  Result := nil;
  for Manager := 0 to High(Results.Managers) do
    if IsCharted(Results.Managers[Manager]) then
    begin
      Place := 0;
      while (Place < Length(Result)) and (Time(Result[Place]) <= Time(Manager)) do
        Inc(Place);
      Insert(Manager, Result, Place);
    end;
end;

/// Returns whether Manager is one of Names, or Names is empty.
function IsOneOf(const Manager: string; const Names: TStringArray): Boolean;
begin
  Result := (Names = nil) or (IndexStr(Manager, Names) >= 0);
end;

/// Writes the means of all rows: a line for each manager of Names or, if that is empty, for all, the fastest first.
procedure WriteStanding(Results: TResults; const Names: TStringArray);
var
  Manager, Base: Integer;
begin
  Base := Results.IndexOf(Results.Suite.Base);
  WriteLn('| | time | peak memory |');
  WriteLn('|---|---:|---:|');
  for Manager in ManagersByTime(Results) do
    if IsOneOf(Results.Managers[Manager], Names) then
      WriteLn(Format('| %s | %.2f | %.2f |', [Results.Managers[Manager],
        Results.MeanRatio(Manager, Base, '*', meTime), Results.MeanRatio(Manager, Base, '*', mePeak)]));
end;

/// Returns the rows in which a manager failed, as a list.
function FailedRows(Results: TResults; Manager: Integer): string;
var
  Row: Integer;
begin
  Result := '';
  for Row := 0 to High(Results.Suite.Rows) do
    if Results.RunCount(Manager, Row) = 0 then
      Result := Result + IfThen(Result = '', ' in ', ', ') + '`' + Results.Suite.Rows[Row].Name + '`';
end;

/// Writes which manager failed in which rows, if one did.
procedure WriteFailed(Results: TResults);
var
  Manager: Integer;
  Rows, Line: string;
begin
  Line := '';
  for Manager := 0 to High(Results.Managers) do
  begin
    Rows := FailedRows(Results, Manager);
    if Rows <> '' then
      Line := Line + IfThen(Line = '', '', '; ') + Results.Managers[Manager] + Rows;
  end;
  if Line <> '' then
    WriteLn('Failed, or took more than two minutes, and left out of the means: ', Line, '.');
end;

/// Writes what the numbers say, in sentences.
procedure WriteMeaning(Results: TResults);
var
  Base, Subject, Own: Integer;
begin
  Base := Results.IndexOf(Results.Suite.Base);
  Subject := SubjectIndex(Results);
  WriteLn(Format('- Over all %d rows %s needs %.2f of the time and %.2f of the peak memory of %s.',
    [Length(Results.Suite.Rows), Results.Suite.Subject,
    Results.MeanRatio(Subject, Base, '*', meTime), Results.MeanRatio(Subject, Base, '*', mePeak),
    Results.Suite.Base]));
  Own := Results.IndexOf(OwnHeap);
  if Own >= 0 then
    WriteLn(Format('- Beside Free Pascal''s own heap: %.2f of the time, %.2f of the memory.',
      [Results.MeanRatio(Subject, Own, '*', meTime), Results.MeanRatio(Subject, Own, '*', mePeak)]));
  WriteLn(Format('- No other manager is faster in %d of the rows, or leaner in %d.',
    [WonRows(Results, meTime), WonRows(Results, mePeak)]));
  Write('- ');
  WriteLost(Results, 'time', meTime, WorthTuning);
  Write('- ');
  WriteLost(Results, 'peak memory', mePeak, WorthSaving);
  WriteLn('- The best in time and the best in memory of a row are mostly two managers.');
  WriteLn('- No row is left out, and none is weighed: where a program spends its time decides which');
  WriteLn('  rows speak for it.');
end;

/// Returns what Header states after Name, or ''.
function HeaderValue(const Header: TStringArray; const Name: string): string;
var
  Line: string;
begin
  Result := '';
  for Line in Header do
    if Line.StartsWith(Name + ': ') then
      Exit(Line.Substring(Length(Name) + 2));
end;

procedure HeadlineWrite(Results: TResults; const Charts: string);
var
  Row, Own, Subject, Count: Integer;
  Ratio, Lowest, Highest: Double;
begin
  Own := Results.IndexOf(OwnHeap);
  Subject := SubjectIndex(Results);
  Count := 0;
  Lowest := Infinity;
  Highest := 0;
  for Row := 0 to High(Results.Suite.Rows) do
  begin
    Ratio := Results.Ratio(Own, Subject, Row, meTime);
    if IsNan(Ratio) then // a run failed
      Continue;
    Inc(Count);
    Lowest := Min(Lowest, Ratio);
    Highest := Max(Highest, Ratio);
  end;
  WriteLn(Format('**%.1f times as fast as Free Pascal''s heap** in the geometric mean of %d benchmark rows (from',
    [Results.MeanRatio(Own, Subject, '*', meTime), Count]));
  WriteLn(Format('%.2f to %.0f times), with %.2f of its peak memory.', [Lowest, Highest,
    Results.MeanRatio(Subject, Own, '*', mePeak)]));
  WriteLn;
  WriteLn(Format('![Time per operation of Free Pascal''s heap, %s and %s](docs/%s/bars.svg)',
    [Results.Suite.Base, Results.Suite.Subject, Charts]));
end;

procedure SummaryWrite(Results: TResults; const Header: TStringArray);
begin
  WriteLn('Time per operation and peak resident memory relative to ', Results.Suite.Base,
    ' (less is better): geometric means over ', Length(Results.Suite.Rows), ' rows, each');
  WriteLn('the median of interleaved runs on two cores (', HeaderValue(Header, 'CPU'), ', `',
    HeaderValue(Header, 'command'), '`, ', HeaderValue(Header, 'revision'), ', ',
    HeaderValue(Header, 'date'), ').');
  WriteLn;
  WriteStanding(Results, Results.Suite.First);
  WriteLn;
  WriteLost(Results, 'time', meTime, WorthTuning);
  WriteLost(Results, 'peak memory', mePeak, WorthSaving);
  WriteFailed(Results);
end;

procedure PageWrite(Results: TResults; const Header: TStringArray; const Source, Charts: string);
var
  Line: string;
begin
  WriteLn('# ', Results.Suite.Title);
  WriteLn;
  WriteLn('![time and memory of all managers](', Charts, '/overall.svg)');
  WriteLn;
  WriteMeaning(Results);
  WriteLn;
  WriteFailed(Results);
  WriteLn;
  WriteStanding(Results, nil);
  if HasThreadWorkloads(Results) then
  begin
    WriteLn;
    WriteLn('![time over threads](', Charts, '/threads.svg)');
  end;
  WriteLn;
  WriteLn('Generated by `bench/report.sh` from [', ExtractFileName(Source), '](', Source, '), which');
  WriteLn('has all numbers, including the extremes. [bench](../bench/README.md) describes the method.');
  if Charts = 'benchmarks' then
    WriteLn('Other pages: [managers in Pascal](benchmarks-pascal.md), [a web server](benchmarks-horse.md), '
      + '[one with a database](benchmarks-server.md), [C](benchmarks-c.md).');
  WriteLn('A cell shows time per operation and peak resident memory, both relative to ',
    Results.Suite.Base, ':');
  WriteLn('less is better. Numbers are medians, means are geometric.');
  WriteLn;
  WriteLn('```');
  for Line in Header do
    WriteLn(Line);
  WriteLn('```');
  WriteTables(Results);
  WriteAgainstBest(Results);
  WriteBars(Results);
  if HasFacts(Results) then
    WriteFacts(Results);
end;

/// Opens a file of chart data.
procedure StartData(var Data: TextFile; const Directory, Name: string);
begin
  AssignFile(Data, Directory + '/' + Name + '.dat');
  Rewrite(Data);
end;

/// The points of the chart of all managers.
type
  TPoint = record
    Manager: string;
    Time, Peak: Double;
    LabelAt: Double; // the peak at whose height its name is written
    Side: Integer; // of its name: 1 right, -1 left
  end;

  TPoints = array of TPoint;

/// Puts a point into a list that is in the order of the peaks.
procedure Insert(var Points: TPoints; const Point: TPoint);
var
  Place: Integer;
begin
  Place := Length(Points);
  SetLength(Points, Place + 1);
  while (Place > 0) and (Points[Place - 1].Peak > Point.Peak) do
  begin
    Points[Place] := Points[Place - 1];
    Dec(Place);
  end;
  Points[Place] := Point;
end;

/// Writes each name at the right of its point, or left of it where a point beside it is in its way; lifts
/// it above those below it that it would cover. Shares of the picture's width and height.
procedure PlaceLabels(var Points: TPoints);
const
  LabelWidth = 0.16;
  LabelHeight = 0.045;
var
  Point, Other: Integer;
  Slowest, Fastest, Width, Line, Distance: Double;
begin
  Slowest := Points[0].Time;
  Fastest := Slowest;
  for Point := 1 to High(Points) do
  begin
    Slowest := Max(Slowest, Points[Point].Time);
    Fastest := Min(Fastest, Points[Point].Time);
  end;
  Width := LabelWidth * (Slowest - Fastest);
  Line := LabelHeight * (Points[High(Points)].Peak - Points[0].Peak);
  for Point := 0 to High(Points) do
  begin
    Points[Point].Side := 1;
    for Other := 0 to High(Points) do
    begin
      Distance := Points[Other].Time - Points[Point].Time;
      if (Distance > Width / 8) and (Distance < Width)
        and (Abs(Points[Other].Peak - Points[Point].Peak) < Line) then
        Points[Point].Side := -1;
    end;
    Points[Point].LabelAt := Points[Point].Peak;
    for Other := 0 to Point - 1 do
      if Abs(Points[Point].Time - Points[Other].Time
        + (Points[Point].Side - Points[Other].Side) * Width / 2) < Width then
        Points[Point].LabelAt := Max(Points[Point].LabelAt, Points[Other].LabelAt + Line);
  end;
end;

/// Writes one line per manager: name, time, peak memory, and where its name is written: height, side.
procedure WriteOverall(Results: TResults; const Directory: string);
var
  Data: TextFile;
  Manager, Base: Integer;
  Points: TPoints;
  Point: TPoint;
begin
  Base := Results.IndexOf(Results.Suite.Base);
  Points := nil;
  for Manager := 0 to High(Results.Managers) do
    if IsCharted(Results.Managers[Manager]) then
    begin
      Point.Manager := Results.Managers[Manager];
      Point.Time := Results.MeanRatio(Manager, Base, '*', meTime);
      Point.Peak := Results.MeanRatio(Manager, Base, '*', mePeak);
      Insert(Points, Point);
    end;
  PlaceLabels(Points);
  StartData(Data, Directory, 'overall');
  for Point in Points do
    WriteLn(Data, Format('%s %.4f %.4f %.4f %d', [Point.Manager, Point.Time, Point.Peak,
      Point.LabelAt, Point.Side]));
  CloseFile(Data);
end;

/// Writes the times of Free Pascal's heap, the base and the subject, relative to the subject.
procedure WriteHeadlineBars(Results: TResults; const Directory: string);
var
  Data: TextFile;
  Manager: Integer;
begin
  StartData(Data, Directory, 'bars');
  for Manager in ManagersByTime(Results) do
    if IsOneOf(Results.Managers[Manager], [OwnHeap, Results.Suite.Base, Results.Suite.Subject]) then
      WriteLn(Data, Format('%s %.4f', [Results.Managers[Manager],
        Results.MeanRatio(Manager, SubjectIndex(Results), '*', meTime)]));
  CloseFile(Data);
end;

/// Writes one line of a table that begins with First: the time of each manager in Row, or
/// its name if Row is -1.
procedure WriteThreadsLine(var Data: TextFile; Results: TResults; const First: string;
  Row: Integer);
var
  Manager: Integer;
begin
  Write(Data, First);
  for Manager := 0 to High(Results.Managers) do
    if not IsCharted(Results.Managers[Manager]) then
      Continue
    else if Row < 0 then
      Write(Data, ' ', Results.Managers[Manager])
    else
      Write(Data, ' ', Results.Median(Manager, Row, meTime):0:3);
  WriteLn(Data);
end;

/// Writes one line per number of threads: the number, then ns per operation of all managers. The
/// first line names them.
procedure WriteThreads(Results: TResults; const Directory, Workload: string);
var
  Data: TextFile;
  Row: Integer;
begin
  StartData(Data, Directory, Workload);
  WriteThreadsLine(Data, Results, 'threads', -1);
  for Row := 0 to High(Results.Suite.Rows) do
    if Results.Suite.Rows[Row].Workload = Workload then
      WriteThreadsLine(Data, Results, Results.Suite.Rows[Row].Threads, Row);
  CloseFile(Data);
end;

procedure ChartDataWrite(Results: TResults; const Directory: string);
var
  Workload: string;
begin
  ForceDirectories(Directory);
  WriteOverall(Results, Directory);
  if (Results.IndexOf(OwnHeap) >= 0) and (Results.Suite.Base <> OwnHeap) then
    WriteHeadlineBars(Results, Directory);
  if HasThreadWorkloads(Results) then
    for Workload in ThreadWorkloads do
      WriteThreads(Results, Directory, Workload);
end;

end.
