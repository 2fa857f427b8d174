/// A suite: the workloads, their numbers of threads, and the targets for the numbers.
//
// A suite is a text file, one entry per line:
//   title TEXT                          the title of the page of results; Benchmarks unless given
//   managers NAME...                    the managers to run; all unless given (read by run.sh)
//   peers MANAGER...                    the managers that `best` is one of; all unless given
//   base MANAGER                        the manager that ratios are relative to
//   subject MANAGER                     the manager that the bars below this line judge
//   row WORKLOAD THREADS...             one row of the tables for each number of threads
//   once WORKLOAD THREADS...            the same, but only in the first round
//   mean TITLE PATTERN                  a geometric mean over the rows that match
//   first MANAGER...                    the managers of the table in README.md; all unless given
//   bar MEASURE PATTERN MANAGER LIMIT   subject / MANAGER over these rows: at most LIMIT
//   each MEASURE PATTERN MANAGER LIMIT  the same for every one of these rows
//   scale MEASURE ROW ROW LIMIT         subject in the first row / in the second: at most LIMIT
//   fact MEASURE ROW LIMIT              subject in this row: at most LIMIT
// A row is named workload/threads; in a pattern `*` stands for any text. MEASURE is one of
// MeasureNames. MANAGER may be `best`: the best of the peers in a row, without the subject.
// Lines that start with # are comments.
unit Runner.Suite;

{$I Bench.inc}

interface

uses
  SysUtils;

type
  /// The measures: the first four of every run, the others where a workload measures them, the memory
  /// that is charged where a memory group can be made.
  TMeasure = (meTime, meCpu, mePeak, meFinal, meIdle0, meIdle2, meIdle10, meP50, meP99, meP999,
    meLongest, meInside, meStalled, meIdle1, meQuiet, mePeakCharged, meQuietCharged, meIdle0Charged,
    meIdle1Charged, meIdle2Charged, meIdle10Charged, meHuge, meLazy);

  /// One line of the tables.
  TRow = record
    Workload: string;    //< const   as in Bench
    Threads: string;     //< const   a number
    Name: string;        //< const   workload/threads
    IsOnce: Boolean;     //< const   runs in the first round only
  end;

  /// A geometric mean below the tables.
  TMean = record
    Title: string;       //< const   what it is called
    Pattern: string;     //< const   the rows it covers
  end;

  /// How a bar compares; the names are those of the lines above.
  TBarKind = (bkBar, bkEach, bkScale, bkFact);

  /// What the subject has to reach.
  TBar = record
    Kind: TBarKind;      //< const   how it compares
    Subject: string;     //< const   whose numbers it judges
    Measure: TMeasure;   //< const   what is compared
    Pattern: string;     //< const   in which rows
    Against: string;     //< const   with which manager, or with the subject in which row
    Limit: Double;       //< const   highest ratio or number that passes
  end;

  /// A suite file.
  TSuite = record
    Title: string;          //< const   of the page
    Peers: TStringArray;    //< const   managers that `best` is one of; none: all
    First: TStringArray;    //< const   managers of the table in README.md; none: all
    Base: string;           //< const   manager that the ratios are relative to
    Subject: string;        //< const   manager named last that bars judge
    Rows: array of TRow;    //< const   in the order of the file
    Means: array of TMean;  //< const   in the order of the file
    Bars: array of TBar;    //< const   in the order of the file
  end;

const
  /// The names of the measures, as in suite and results files.
  MeasureNames: array[TMeasure] of string = ('time', 'cpu', 'peak', 'final', 'idle0_kb',
    'idle2_kb', 'idle10_kb', 'p50_ns', 'p99_ns', 'p999_ns', 'longest_ns', 'inside', 'stalled',
    'idle1_kb', 'quiet_kb', 'peak_charged_kb', 'quiet_charged_kb', 'idle0_charged_kb',
    'idle1_charged_kb', 'idle2_charged_kb', 'idle10_charged_kb', 'huge_kb', 'lazy_kb');
  /// The last measure that every run has.
  LastCommonMeasure = meFinal;
  /// Stands for the best of the peers, without the subject.
  BestName = 'best';

/// Reads a suite file. Raises EConvertError on a line that it does not understand.
function SuiteLoad(const FileName: string): TSuite;
/// Finds a measure. Raises EConvertError if there is none of that name.
function MeasureByName(const Name: string): TMeasure;
/// Returns whether the row called Name matches Pattern.
function RowMatches(const Name, Pattern: string): Boolean;

implementation

uses
  Classes, StrUtils;

type
  /// The first words of lines.
  TLineKind = (lkTitle, lkManagers, lkPeers, lkFirst, lkBase, lkSubject, lkRow, lkOnce, lkMean, lkBar,
    lkEach, lkScale, lkFact);

const
  /// How lines begin, and the number of words they have at least.
  LineKinds: array[TLineKind] of record
    Name: string;
    WordCount: Integer;
  end = (
    (Name: 'title'; WordCount: 2),
    (Name: 'managers'; WordCount: 2),
    (Name: 'peers'; WordCount: 2),
    (Name: 'first'; WordCount: 2),
    (Name: 'base'; WordCount: 2),
    (Name: 'subject'; WordCount: 2),
    (Name: 'row'; WordCount: 3),
    (Name: 'once'; WordCount: 3),
    (Name: 'mean'; WordCount: 3),
    (Name: 'bar'; WordCount: 5),
    (Name: 'each'; WordCount: 5),
    (Name: 'scale'; WordCount: 5),
    (Name: 'fact'; WordCount: 4));

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
  Row.IsOnce := Words[0] = 'once';
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

procedure AddBar(var Suite: TSuite; Kind: TBarKind; const Words: TStringArray);
var
  Bar: TBar;
begin
  Bar.Kind := Kind;
  Bar.Subject := Suite.Subject;
  Bar.Measure := MeasureByName(Words[1]);
  Bar.Pattern := Words[2];
  Bar.Against := '';
  if Kind <> bkFact then
    Bar.Against := Words[3];
  Bar.Limit := StrToFloat(Words[High(Words)]);
  Insert(Bar, Suite.Bars, Length(Suite.Bars));
end;

/// Finds what a line begins with. Raises EConvertError if it is no line of a suite.
function LineKind(const Words: TStringArray): TLineKind;
begin
  for Result := Low(TLineKind) to High(TLineKind) do
    if (LineKinds[Result].Name = Words[0]) and (Length(Words) >= LineKinds[Result].WordCount) then
      Exit;
  raise EConvertError.CreateFmt('"%s" is no line of a suite', [string.Join(' ', Words)]);
end;

procedure AddLine(var Suite: TSuite; const Words: TStringArray);
begin
  case LineKind(Words) of
    lkTitle: Suite.Title := string.Join(' ', Copy(Words, 1, MaxInt));
    lkManagers: ;
    lkPeers: Suite.Peers := Copy(Words, 1, MaxInt);
    lkFirst: Suite.First := Copy(Words, 1, MaxInt);
    lkBase: Suite.Base := Words[1];
    lkSubject: Suite.Subject := Words[1];
    lkRow, lkOnce: AddRows(Suite, Words);
    lkMean: AddMean(Suite, Words);
    lkBar: AddBar(Suite, bkBar, Words);
    lkEach: AddBar(Suite, bkEach, Words);
    lkScale: AddBar(Suite, bkScale, Words);
    lkFact: AddBar(Suite, bkFact, Words);
  end;
end;

function SuiteLoad(const FileName: string): TSuite;
var
  Lines: TStringList;
  Line: string;
begin
  Result := Default(TSuite);
  Result.Title := 'Benchmarks';
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(FileName);
    for Line in Lines do
      if (Trim(Line) <> '') and (Line[1] <> '#') then
        AddLine(Result, Line.Split([' '], TStringSplitOptions.ExcludeEmpty));
  finally
    Lines.Free;
  end;
end;

end.
