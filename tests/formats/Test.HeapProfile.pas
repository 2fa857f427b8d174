/// Tests of the heap's profile on a program with known amounts, sampled whole: peak, temporary
/// blocks, lifetimes, time line, fragments, classes, sizes, numbered files, text reports.
unit Test.HeapProfile;

{$mode delphi}{$H+}

interface

uses
  fpjson, Test.Cases;

type
  THeapProfileTests = class(TProgramTest)
  strict private
    All: TJSONObject;
    procedure Load;
    procedure Read(const Settings, Part: string);
    function Heap: TJSONObject;
    function Sum(const Column, Routine: string): Int64;
    function OfClass(const Name: string; Column: Integer): Int64;
    function SizeEntry(Size: Integer): TJSONObject;
    procedure CheckParts(Site: TJSONObject);
    procedure CheckTotals;
  protected
    procedure Act(const Word, Rest: string); override;
    function Number(const Name: string): Int64; override;
    procedure TearDown; override;
  published
    procedure LifetimesAreClassed;
    procedure TimeLineShowsGrowth;
    procedure SumsAgree;
    procedure LeaksAreKnownWhereTheyWereLookedFor;
    procedure HeadDescribesTheRun;
    procedure ExampleHasTheShapeOfAReport;
    procedure ReportsAreNumberedAndTheNewestKept;
    procedure ReportsAreWrittenEverySoOften;
    procedure ErrorFollowsFromTheBytesThatItIsOf;
  end;

implementation

uses
  SysUtils, StrUtils, Classes, jsonparser, Test.Tools, Test.Programs;

const
  Exact = 'profile,rate=1,json';
  // The lists of a site's classes, behind the number of the class.
  ClassColumns: array[1..4] of string = ('alloc_objects', 'alloc_space', 'inuse_objects', 'inuse_space');

procedure THeapProfileTests.TearDown;
begin
  FreeAndNil(All);
  inherited TearDown;
end;

procedure THeapProfileTests.Load;
begin
  FreeAndNil(All);
  Output := Program_.Written('.json');
  All := GetJSON(Output) as TJSONObject;
end;

procedure THeapProfileTests.Read(const Settings, Part: string);
begin
  Program_.Run(Settings, [Part]);
  Program_.EndedWith(0);
  Load;
end;

procedure THeapProfileTests.Act(const Word, Rest: string);
begin
  if Word = 'read' then
    Read(Rest.Split([' '])[0], Rest.Split([' '])[1])
  else if Word = 'load' then
    Load
  else
    inherited Act(Word, Rest);
end;

function THeapProfileTests.Number(const Name: string): Int64;
var
  Parts: TStringArray;
begin
  Parts := (Name + ':').Split([':']);
  case IndexStr(Parts[0], ['class', 'size', 'head']) of
    0: Result := OfClass(Parts[2], 1 + IndexStr(Parts[1], ClassColumns));
    1: Result := SizeEntry(StrToInt(Parts[2])).Int64s[Parts[1]];
    2: Result := All.Objects['head'].Int64s[Parts[1]];
  else
    Result := Sum(Parts[0], Parts[1]);
  end;
end;

// The profile of the heap, which is the last one.
function THeapProfileTests.Heap: TJSONObject;
begin
  Result := All.Arrays['profiles'].Objects[All.Arrays['profiles'].Count - 1];
  AssertEquals('heap', Result.Strings['kind']);
end;

function ColumnOf(Heap: TJSONObject; const Name: string): Integer;
begin
  for Result := 0 to Heap.Arrays['columns'].Count - 1 do
    if Heap.Arrays['columns'].Objects[Result].Strings['name'] = Name then
      Exit;
  raise Exception.Create('No column ' + Name);
end;

// Whether the routine of the program is in the site's stack; any for ''.
function IsAt(Heap, Site: TJSONObject; const Routine: string): Boolean;
var
  Index: Integer;
begin
  Result := Routine = '';
  for Index := 0 to Site.Arrays['stack'].Count - 1 do
    if Heap.Arrays['frames'].Objects[Site.Arrays['stack'].Integers[Index]].Strings['name']
      = 'PLANTEDHEAP.' + Routine then
      Result := True;
end;

function THeapProfileTests.Sum(const Column, Routine: string): Int64;
var
  Index, Place: Integer;
  Site: TJSONObject;
begin
  Result := 0;
  Place := ColumnOf(Heap, Column);
  for Index := 0 to Heap.Arrays['sites'].Count - 1 do
  begin
    Site := Heap.Arrays['sites'].Objects[Index];
    if IsAt(Heap, Site, Routine) then
      Inc(Result, Site.Arrays['values'].Int64s[Place]);
  end;
end;

// The sum over the sites of what one class has there.
function THeapProfileTests.OfClass(const Name: string; Column: Integer): Int64;
var
  Index, Part: Integer;
  Site: TJSONObject;
  Item: TJSONArray;
begin
  Result := 0;
  for Index := 0 to Heap.Arrays['sites'].Count - 1 do
  begin
    Site := Heap.Arrays['sites'].Objects[Index];
    for Part := 0 to Site.Arrays['classes'].Count - 1 do
    begin
      Item := Site.Arrays['classes'].Arrays[Part];
      if Heap.Arrays['classes'].Objects[Item.Integers[0]].Strings['name'] = Name then
        Inc(Result, Item.Int64s[Column]);
    end;
  end;
end;

function THeapProfileTests.SizeEntry(Size: Integer): TJSONObject;
var
  Index: Integer;
begin
  for Index := 0 to Heap.Arrays['sizes'].Count - 1 do
  begin
    Result := Heap.Arrays['sizes'].Objects[Index];
    if Result.Int64s['size'] = Size then
      Exit;
  end;
  raise Exception.Create('No size ' + IntToStr(Size));
end;

// ---------------------------------------------------------------------------- time

procedure THeapProfileTests.LifetimesAreClassed;
var
  Index, Class_: Integer;
  Site: TJSONObject;
  Long: Int64;
begin
  Read(Exact, 'lives');
  Long := 0;
  for Index := 0 to Heap.Arrays['sites'].Count - 1 do
  begin
    Site := Heap.Arrays['sites'].Objects[Index];
    if IsAt(Heap, Site, 'SHORT') and (Site.Find('life') <> nil) then
      for Class_ := 0 to Heap.Arrays['life_limits'].Count do
        if (Class_ > 0) and (Heap.Arrays['life_limits'].Integers[Class_ - 1] >= 100) then
          Inc(Long, Site.Arrays['life'].Int64s[Class_]);
  end;
  AssertEquals('blocks that were in use for 100 ms', 100, Long);
  AtLeast(100 * 100, Sum('life_ms', 'SHORT'), 'sum of the lifetimes');
end;

procedure THeapProfileTests.TimeLineShowsGrowth;
var
  Line, Part: TJSONArray;
  Index, Site: Integer;
begin
  Read(Exact, 'growth');
  Line := Heap.Objects['line'].Arrays['inuse_space'];
  AtLeast(3, Line.Count, 'points');
  for Index := 1 to Line.Count - 1 do
    AtLeast(Heap.Objects['line'].Arrays['ms'].Int64s[Index - 1],
      Heap.Objects['line'].Arrays['ms'].Int64s[Index], 'time');
  AssertEquals('points of another column', Line.Count,
    Heap.Objects['line'].Arrays['committed'].Count);
  AssertEquals('at the end', Sum('inuse_space', ''), Line.Int64s[Line.Count - 1]);
  for Site := 0 to Heap.Arrays['sites'].Count - 1 do
    if IsAt(Heap, Heap.Arrays['sites'].Objects[Site], 'GROW') then
    begin
      Part := Heap.Arrays['sites'].Objects[Site].Arrays['line'];
      AtLeast(3, Part.Count, 'points of the site');
      AtMost(50000, Part.Int64s[0], 'bytes at the first of them');
      for Index := 1 to Part.Count - 1 do
        AtLeast(Part.Int64s[Index - 1], Part.Int64s[Index], 'bytes in use');
      AssertEquals('bytes at the last one', 100000, Part.Int64s[Part.Count - 1]);
      Exit;
    end;
  Fail('No site of GROW');
end;

// ---------------------------------------------------------------------------- classes, sums

// The parts of a site add up to its values.
procedure THeapProfileTests.CheckParts(Site: TJSONObject);
var
  Column, Part: Integer;
  Parts: Int64;
begin
  for Column := 1 to High(ClassColumns) do
  begin
    Parts := 0;
    for Part := 0 to Site.Arrays['classes'].Count - 1 do
      Inc(Parts, Site.Arrays['classes'].Arrays[Part].Int64s[Column]);
    AssertEquals(Site.Arrays['values'].Int64s[Column - 1], Parts);
  end;
end;

procedure THeapProfileTests.CheckTotals;
var
  Index: Integer;
  Bytes: Int64;
begin
  Bytes := 0;
  for Index := 0 to Heap.Arrays['sites'].Count - 1 do
    CheckParts(Heap.Arrays['sites'].Objects[Index]);
  for Index := 0 to Heap.Arrays['sizes'].Count - 1 do
    Inc(Bytes, Heap.Arrays['sizes'].Objects[Index].Int64s['alloc_space']);
  AssertEquals('bytes by size and by site', Sum('alloc_space', ''), Bytes);
end;

procedure THeapProfileTests.SumsAgree;
begin
  Read(Exact, 'classes');
  CheckTotals;
  Read('profile,rate=1000,json', 'peak');
  CheckTotals;
end;

// ---------------------------------------------------------------------------- leaks

procedure THeapProfileTests.LeaksAreKnownWhereTheyWereLookedFor;
var
  Files: TStringList;
begin
  Read(Exact, 'peak');
  AssertTrue('without the setting', Heap.Find('leaks') = nil);
  AssertEquals('columns without it', 14, Heap.Arrays['columns'].Count);
  Program_.Run(Exact + ',leaks', ['reports']);
  Files := Program_.FilesOf('.json');
  AssertEquals('reports', 3, Files.Count);
  AssertTrue('before the end', Pos('leak_space', ReadText(Files[0])) = 0);
  AssertTrue('at the end', Pos('leak_space', ReadText(Files[2])) > 0);
end;

// ---------------------------------------------------------------------------- the object

procedure THeapProfileTests.HeadDescribesTheRun;
var
  Head: TJSONObject;
begin
  Read(Exact, 'peak');
  Head := All.Objects['head'];
  AssertEquals('lanemm', All.Strings['format']);
  AssertEquals(1, All.Integers['version']);
  AssertEquals(Program_.ReportedPath, Head.Strings['program']);
  AssertTrue(Head.Strings['command'], Pos(' peak', Head.Strings['command']) > 0);
  AssertEquals(1, Head.Integers['rate']);
  AssertEquals(1, Head.Integers['report']);
  AssertEquals(0, Head.Integers['samples_lost']);
  AssertEquals(0, Head.Floats['error'], 0);
  AssertEquals(Sum('alloc_samples', ''), Head.Int64s['samples']);
  AtLeast(Head.Int64s['used'], Head.Int64s['committed'], 'committed bytes');
end;

// The names of an object, also of those in its lists of objects, as paths.
procedure AddNames(Data: TJSONData; const Path: string; Names: TStringList);
var
  Index: Integer;
begin
  if Data is TJSONObject then
    for Index := 0 to Data.Count - 1 do
    begin
      Names.Add(Path + '.' + TJSONObject(Data).Names[Index]);
      AddNames(Data.Items[Index], Path + '.' + TJSONObject(Data).Names[Index], Names);
    end
  else if Data is TJSONArray then
    for Index := 0 to Data.Count - 1 do
      AddNames(Data.Items[Index], Path, Names);
end;

function NamesOf(Data: TJSONData): string;
var
  Names: TStringList;
begin
  Names := TStringList.Create;
  try
    Names.Sorted := True;
    Names.Duplicates := dupIgnore;
    AddNames(Data, '', Names);
    Result := Names.Text;
  finally
    Names.Free;
  end;
end;

// The example is what page and tools are tested with.
procedure THeapProfileTests.ExampleHasTheShapeOfAReport;
var
  Example: TJSONData;
begin
  Program_.Run('contention,growth,least=1,profile,rate=1,json,leaks', ['array']);
  Load;
  Example := GetJSON(ReadText(SourceFolder + 'tests/formats/profile-data.json'));
  try
    AssertEquals(NamesOf(Example), NamesOf(All));
  finally
    Example.Free;
  end;
end;

// ---------------------------------------------------------------------------- files

procedure THeapProfileTests.ReportsAreNumberedAndTheNewestKept;
var
  Files: TStringList;
begin
  Program_.Run(Exact + ',keep=2', ['reports']);
  Files := Program_.FilesOf('.json');
  AssertEquals(Files.Text, 2, Files.Count);
  AssertTrue(Files.Text, Pos('.2.json', Files[0]) > 0);
  AssertTrue(Files.Text, Pos('.3.json', Files[1]) > 0);
  Program_.Run(Exact + ',folded', ['reports']);
  AssertEquals(3, Program_.FilesOf('heap.*.folded').Count);
end;

procedure THeapProfileTests.ReportsAreWrittenEverySoOften;
begin
  Program_.Run(Exact + ',every=50ms', ['growth']);
  AtLeast(3, Program_.FilesOf('.json').Count, 'reports'); // the program rests for 1,200 ms
end;

// Each sample stands for 4,096 bytes or a little more: so few of them are behind the sum.
procedure THeapProfileTests.ErrorFollowsFromTheBytesThatItIsOf;
const
  Titles: array[0..1] of string = ('In use: ', 'In use at the peak: ');
  Mark = ', standard error of the bytes at most ';
var
  Title, Line: string;
  Bytes: Double;
  Code: Integer;
begin
  Program_.Run('profile,rate=4096', ['reports']);
  for Title in Titles do
  begin
    Line := Program_.Written('EventLog.txt');
    Has(#10 + Title, Line);
    Line := Copy(Line, Pos(#10 + Title, Line) + 1 + Length(Title));
    Line := Copy(Line, 1, Pos(#10, Line) - 1);
    Has(' KB, ', Line);
    Val(Copy(Line, 1, Pos(' ', Line) - 1).Replace(',', ''), Bytes, Code);
    Same(0, Code, Line);
    Bytes := Bytes * 1024;
    Has(Mark, Line);
    Line := Copy(Line, Pos(Mark, Line) + Length(Mark));
    AtLeast(Trunc(100 * Sqrt(4096 / (Bytes + 100))), StrToInt(Copy(Line, 1, Pos(' ', Line) - 1)), Title);
    AtMost(Trunc(100 * Sqrt(4096 / (Bytes - 100))) + 1, StrToInt(Copy(Line, 1, Pos(' ', Line) - 1)), Title);
  end;
end;

initialization
  RegisterCases(THeapProfileTests, 'formats/HeapProfile');
end.
