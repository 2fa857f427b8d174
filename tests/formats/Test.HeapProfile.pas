/// Tests of the heap's profile on a program with known amounts, sampled whole: peak, temporary
/// blocks, lifetimes, time line, fragments, classes, sizes, numbered files, text reports.
unit Test.HeapProfile;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, fpjson;

type
  THeapProfileTests = class(TLaneTest)
  strict private
    All: TJSONObject;
    procedure Read(const Settings, Part: string);
    function Heap: TJSONObject;
    function Sum(const Column, Routine: string): Int64;
    function OfClass(const Name: string; Column: Integer): Int64;
    function SizeEntry(Size: Integer): TJSONObject;
    procedure Exactly(Expected: Int64; const Column, Routine: string);
    procedure CheckParts(Site: TJSONObject);
    procedure CheckTotals;
  protected
    procedure TearDown; override;
  published
    procedure PeakIsThatOfTheHighestMoment;
    procedure PeakAtTheEndIsWhatIsInUse;
    procedure PeakIsEstimatedFromFewSamples;
    procedure TemporaryBlocksAreFreedAfterOneAllocationAtMost;
    procedure TemporaryBlocksWithoutAnAllocationBetween;
    procedure TemporaryBlocksWithSixAllocationsBetween;
    procedure LifetimesAreClassed;
    procedure TimeLineShowsGrowth;
    procedure PartlyUsedSpansAreChargedToTheBlocksThatKeepThem;
    procedure FragmentsAreEstimatedFromFewSamples;
    procedure ClassesAreNamed;
    procedure SizesAndSlackAreThoseOfTheSizeClass;
    procedure SumsAgree;
    procedure LeaksAreSampledBySite;
    procedure LeaksAreEstimatedFromFewSamples;
    procedure SuppressedBlocksAreNoLeaks;
    procedure LeaksAreKnownWhereTheyWereLookedFor;
    procedure LeaksThatEndTheProgramAreInTheProfile;
    procedure HeadDescribesTheRun;
    procedure SmallProgramHasAProfileWithoutARate;
    procedure LargeProgramIsThinnedOutWithoutARate;
    procedure ProfileWithoutASampleSaysSo;
    procedure ExampleHasTheShapeOfAReport;
    procedure ReportsAreNumberedAndTheNewestKept;
    procedure ReportsAreWrittenEverySoOften;
    procedure TextNamesSitesAndClasses;
    procedure HeadSaysWhichLineHasMost;
    procedure LineOfManyCallSitesIsOneRowWithTheirSums;
    procedure ErrorFollowsFromTheBytesThatItIsOf;
  end;

implementation

uses
  SysUtils, Math, Classes, jsonparser, testregistry, Test.Programs;

const
  Exact = 'profile,rate=1,json';
  // Indexes in the lists of a site's classes.
  AllocatedObjects = 1;
  AllocatedSpace = 2;
  InUseObjects = 3;
  InUseSpace = 4;

var
  Program_: TTestProgram;

function Planted: TTestProgram;
begin
  if Program_ = nil then
    Program_ := TTestProgram.Create('PlantedHeap', '-O1 -gl -Xs-');
  Result := Program_;
end;

procedure THeapProfileTests.TearDown;
begin
  FreeAndNil(All);
  inherited TearDown;
end;

procedure THeapProfileTests.Read(const Settings, Part: string);
begin
  FreeAndNil(All);
  Planted.Run(Settings, [Part]);
  Planted.EndedWith(0);
  All := GetJSON(Planted.Written('.json')) as TJSONObject;
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

procedure THeapProfileTests.Exactly(Expected: Int64; const Column, Routine: string);
begin
  AssertEquals(Column + ' of ' + Routine, Expected, Sum(Column, Routine));
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

// ---------------------------------------------------------------------------- the peak

procedure THeapProfileTests.PeakIsThatOfTheHighestMoment;
begin
  Read(Exact, 'peak');
  Exactly(100000, 'peak_space', 'FIRST');
  Exactly(100, 'peak_objects', 'FIRST');
  Exactly(1000000, 'peak_space', 'BURST');
  Exactly(200, 'peak_objects', 'BURST');
  Exactly(0, 'peak_space', 'LATER');
  Exactly(70000, 'inuse_space', 'FIRST');
  Exactly(0, 'inuse_space', 'BURST');
  Exactly(150000, 'inuse_space', 'LATER');
  AssertEquals('bytes', Sum('peak_space', ''), Heap.Objects['peak'].Int64s['space']);
  AssertEquals('blocks', Sum('peak_objects', ''), Heap.Objects['peak'].Int64s['objects']);
end;

procedure THeapProfileTests.PeakAtTheEndIsWhatIsInUse;
begin
  Read(Exact, 'growth');
  Exactly(100000, 'peak_space', 'GROW');
  Exactly(100000, 'inuse_space', 'GROW');
end;

// With one sample every 1,000 bytes on average, a block of 5,000 bytes is sampled with probability
// 1 - exp(-5), one of 1,000 bytes with 1 - exp(-1): standard deviations of 1 % and 8 %.
procedure THeapProfileTests.PeakIsEstimatedFromFewSamples;
begin
  Read('profile,rate=1000,json', 'peak');
  AtLeast(940000, Sum('peak_space', 'BURST'), 'bytes of the burst at the peak');
  AtMost(1060000, Sum('peak_space', 'BURST'), 'bytes of the burst at the peak');
  AtLeast(55000, Sum('peak_space', 'FIRST'), 'bytes of the first at the peak');
  AtMost(155000, Sum('peak_space', 'FIRST'), 'bytes of the first at the peak');
  Exactly(0, 'peak_space', 'LATER');
end;

// ---------------------------------------------------------------------------- temporary blocks

procedure THeapProfileTests.TemporaryBlocksAreFreedAfterOneAllocationAtMost;
begin
  Read(Exact, 'temporary');
  Exactly(1000, 'temporary_objects', 'TURN');
  Exactly(100000, 'temporary_space', 'TURN');
  Exactly(1000, 'temporary_objects', 'BESIDE');
  Exactly(0, 'temporary_objects', 'SLOW');
  Exactly(0, 'temporary_objects', 'CROSS');
  Exactly(1000, 'freed_objects', 'TURN');
end;

procedure THeapProfileTests.TemporaryBlocksWithoutAnAllocationBetween;
begin
  Read(Exact + ',temporary=0', 'temporary');
  Exactly(1000, 'temporary_objects', 'TURN');
  Exactly(500, 'temporary_objects', 'BESIDE');
  Exactly(150000, 'temporary_space', 'BESIDE');
  Exactly(0, 'temporary_objects', 'SLOW');
end;

procedure THeapProfileTests.TemporaryBlocksWithSixAllocationsBetween;
begin
  Read(Exact + ',temporary=4', 'temporary');
  Exactly(0, 'temporary_objects', 'SLOW');
  Read(Exact + ',temporary=5', 'temporary');
  Exactly(300, 'temporary_objects', 'SLOW');
  Exactly(0, 'temporary_objects', 'CROSS');
  // Of few samples, all are found, too: the allocations after a sample are numbered.
  Read('profile,rate=1000,json,temporary=5', 'temporary');
  AtLeast(1, Sum('alloc_samples', 'SLOW'), 'samples');
  AssertEquals(Sum('freed_objects', 'TURN'), Sum('temporary_objects', 'TURN'));
  AssertEquals(Sum('freed_objects', 'BESIDE'), Sum('temporary_objects', 'BESIDE'));
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

// ---------------------------------------------------------------------------- fragments, sizes

procedure THeapProfileTests.PartlyUsedSpansAreChargedToTheBlocksThatKeepThem;
begin
  Read(Exact, 'fragments');
  Exactly(0, 'fragment_space', 'BRIEF');
  AtLeast(22000000, Sum('fragment_space', 'LONG'), 'bytes that LONG keeps');
  AtMost(22600000, Sum('fragment_space', 'LONG'), 'bytes that LONG keeps');
  AtLeast(22000000, SizeEntry(640).Int64s['free_space'], 'free bytes of the size class');
end;

// 22,400,000 bytes, from about 780 samples: a standard deviation of 4 %. The spans of the samples
// themselves are apart.
procedure THeapProfileTests.FragmentsAreEstimatedFromFewSamples;
begin
  Read('profile,rate=4096,json', 'fragments');
  Exactly(0, 'fragment_space', 'BRIEF');
  AtLeast(17500000, Sum('fragment_space', 'LONG'), 'bytes that LONG keeps');
  AtMost(27500000, Sum('fragment_space', 'LONG'), 'bytes that LONG keeps');
end;

procedure THeapProfileTests.SizesAndSlackAreThoseOfTheSizeClass;
begin
  Read(Exact, 'peak');
  Exactly(70 * (1024 - 1000), 'slack_space', 'FIRST');
  AtLeast(150, SizeEntry(1024).Int64s['alloc_objects'], 'blocks of the size class');
  AtMost(160, SizeEntry(1024).Int64s['alloc_objects'], 'blocks of the size class');
  AtLeast(70000, SizeEntry(1024).Int64s['inuse_space'], 'bytes of the size class');
  AtLeast(1, SizeEntry(1024).Int64s['spans'], 'spans');
end;

// ---------------------------------------------------------------------------- classes, sums

procedure THeapProfileTests.ClassesAreNamed;
begin
  Read(Exact, 'classes');
  AssertEquals(100, OfClass('PlantedHeap.TThing', InUseObjects));
  AssertEquals(100, OfClass('PlantedHeap.TThing', AllocatedObjects));
  AssertEquals(30, OfClass('PlantedHeap.TOther', InUseObjects));
  AssertEquals(50, OfClass('PlantedHeap.TOther', AllocatedObjects));
  AtLeast(60, OfClass('AnsiString', AllocatedObjects), 'strings allocated');
  AtLeast(30, OfClass('AnsiString', InUseObjects), 'strings in use');
  AtLeast(30 * 500, OfClass('AnsiString', InUseSpace), 'their bytes');
  AtMost(OfClass('AnsiString', AllocatedSpace), OfClass('AnsiString', InUseSpace), 'their bytes');
end;

// The parts of a site add up to its values.
procedure THeapProfileTests.CheckParts(Site: TJSONObject);
var
  Column, Part: Integer;
  Parts: Int64;
begin
  for Column := AllocatedObjects to InUseSpace do
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

// Freed in time: 50 and 30 blocks of FIRST, all of BURST.
procedure THeapProfileTests.LeaksAreSampledBySite;
begin
  Read(Exact + ',folded,leaks', 'peak');
  Exactly(70, 'leak_objects', 'FIRST');
  Exactly(70000, 'leak_space', 'FIRST');
  Exactly(0, 'leak_objects', 'BURST');
  Exactly(50, 'leak_objects', 'LATER');
  Exactly(150000, 'leak_space', 'LATER');
  AssertEquals('blocks', Sum('leak_objects', ''), Heap.Objects['leaks'].Int64s['objects']);
  AtLeast(Sum('leak_space', ''), Heap.Objects['leaks'].Int64s['space'], 'usable bytes');
  AssertEquals('stacks of leaks as text', 2, Length(Planted.Written('heap-leaks.*.folded')
    .Split([#10], TStringSplitOptions.ExcludeEmpty)));
end;

// 50 blocks of 3,000 bytes, one sample every 1,000: a standard deviation of 4 %.
procedure THeapProfileTests.LeaksAreEstimatedFromFewSamples;
begin
  Read('profile,rate=1000,json,leaks', 'peak');
  AtLeast(115000, Sum('leak_space', 'LATER'), 'leaked bytes');
  AtMost(185000, Sum('leak_space', 'LATER'), 'leaked bytes');
  Exactly(0, 'leak_space', 'BURST');
  AssertEquals('blocks, of all', 120, Heap.Objects['leaks'].Int64s['objects']);
end;

procedure THeapProfileTests.SuppressedBlocksAreNoLeaks;
begin
  Read(Exact + ',leaks', 'suppressed');
  Exactly(0, 'leak_objects', 'FIRST');
  Exactly(150, 'inuse_objects', 'FIRST');
  Exactly(50, 'leak_objects', 'LATER');
  AssertEquals('blocks', 50, Heap.Objects['leaks'].Int64s['objects']);
end;

procedure THeapProfileTests.LeaksAreKnownWhereTheyWereLookedFor;
var
  Files: TStringList;
begin
  Read(Exact, 'peak');
  AssertTrue('without the setting', Heap.Find('leaks') = nil);
  AssertEquals('columns without it', 14, Heap.Arrays['columns'].Count);
  Planted.Run(Exact + ',leaks', ['reports']);
  Files := Planted.FilesOf('.json');
  try
    AssertEquals('reports', 3, Files.Count);
    AssertTrue('before the end', Pos('leak_space', ReadText(Files[0])) = 0);
    AssertTrue('at the end', Pos('leak_space', ReadText(Files[2])) > 0);
  finally
    Files.Free;
  end;
end;

procedure THeapProfileTests.LeaksThatEndTheProgramAreInTheProfile;
begin
  Planted.Run(Exact + ',leaks,event=leaks:file:halt=7', ['peak']);
  Planted.EndedWith(7);
  All := GetJSON(Planted.Written('.json')) as TJSONObject;
  Exactly(50, 'leak_objects', 'LATER');
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
  AssertEquals(Planted.ReportedPath, Head.Strings['program']);
  AssertTrue(Head.Strings['command'], Pos(' peak', Head.Strings['command']) > 0);
  AssertEquals(1, Head.Integers['rate']);
  AssertEquals(1, Head.Integers['report']);
  AssertEquals(0, Head.Integers['samples_lost']);
  AssertEquals(0, Head.Floats['error'], 0);
  AssertEquals(Sum('alloc_samples', ''), Head.Int64s['samples']);
  AtLeast(Head.Int64s['used'], Head.Int64s['committed'], 'committed bytes');
end;

// Of about 1.3 MB allocated; the mean grows to 1.3 KB.
procedure THeapProfileTests.SmallProgramHasAProfileWithoutARate;
begin
  Read('profile,json', 'peak');
  Inc(AssertCount);
  if Abs(Sum('inuse_space', 'LATER') - 150000) > 30000 then
    Fail('LATER: %d bytes', [Sum('inuse_space', 'LATER')]);
  AtMost(2048, All.Objects['head'].Int64s['rate'], 'mean');
  AtLeast(200, All.Objects['head'].Int64s['samples'], 'samples');
end;

// Sums of a growing mean have a standard error of 2 % in all; that of a site is higher.
procedure THeapProfileTests.LargeProgramIsThinnedOutWithoutARate;
var
  Samples: Int64;
begin
  Read('profile,json', 'fragments');
  Samples := Sum('alloc_samples', 'LONG') + Sum('alloc_samples', 'BRIEF');
  AtMost(20000, Samples, 'samples');
  Inc(AssertCount);
  if Abs(Sum('alloc_space', 'LONG') + Sum('alloc_space', 'BRIEF') - 25600000) > 25600000 div 8 then
    Fail('%d bytes', [Sum('alloc_space', 'LONG') + Sum('alloc_space', 'BRIEF')]);
end;

procedure THeapProfileTests.ProfileWithoutASampleSaysSo;
begin
  Planted.Run('profile,rate=1G', ['none']);
  AssertEquals('LaneMM: no profile written: no block was sampled', Trim(Planted.Errors));
  Planted.Run('profile,html,rate=1G', ['none']);
  Has('LaneMM: profile written to ', Planted.Errors);
  HasNot('no profile written', Planted.Errors);
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
  Text: TStringList;
  Example: TJSONData;
begin
  Planted.Run('contention,growth,least=1,profile,rate=1,json,leaks', ['array']);
  All := GetJSON(Planted.Written('.json')) as TJSONObject;
  Text := TStringList.Create;
  Example := nil;
  try
    Text.LoadFromFile(SourceFolder + 'tests/formats/profile-data.json');
    Example := GetJSON(Text.Text);
    AssertEquals(NamesOf(Example), NamesOf(All));
  finally
    Example.Free;
    Text.Free;
  end;
end;

// ---------------------------------------------------------------------------- files

procedure THeapProfileTests.ReportsAreNumberedAndTheNewestKept;
var
  Files: TStringList;
begin
  Planted.Run(Exact + ',keep=2', ['reports']);
  Files := Planted.FilesOf('.json');
  try
    AssertEquals(Files.Text, 2, Files.Count);
    AssertTrue(Files.Text, Pos('.2.json', Files[0]) > 0);
    AssertTrue(Files.Text, Pos('.3.json', Files[1]) > 0);
  finally
    Files.Free;
  end;
  Planted.Run(Exact + ',folded', ['reports']);
  Files := Planted.FilesOf('heap.*.folded');
  try
    AssertEquals(Files.Text, 3, Files.Count);
  finally
    Files.Free;
  end;
end;

procedure THeapProfileTests.ReportsAreWrittenEverySoOften;
var
  Files: TStringList;
begin
  Planted.Run(Exact + ',every=50ms', ['growth']);
  Files := Planted.FilesOf('.json');
  try
    AtLeast(3, Files.Count, 'reports'); // the program rests for 1,200 ms
  finally
    Files.Free;
  end;
end;

procedure THeapProfileTests.HeadSaysWhichLineHasMost;
var
  Log: string;
begin
  Planted.Run(Exact, ['reports']);
  Log := Planted.Written('EventLog.txt');
  Log := Copy(Log, Pos('In use: ', Log), 400);
  AssertTrue(Log, Pos(' % of it was allocated at PlantedHeap.lpr:', Log) > 0);
  AssertTrue(Log, Pos(' % of it was allocated at ', Log) < Pos('  1. ', Log));
end;

// Each call site of the line has less than each of the ten others.
procedure THeapProfileTests.LineOfManyCallSitesIsOneRowWithTheirSums;
var
  Log: string;
begin
  Planted.Run(Exact, ['paths']);
  Log := Planted.Written('EventLog.txt');
  Has(', by 64 call sites.'#10'  1. 43.8 KB, 64 blocks'#10, Log);
  Has('  2. 3,000 bytes, 1 block'#10, Log);
  Same(1, LinesFrom(Log, '  1. 43.8 KB, '), Log);
  HasNot('700 bytes, 1 block', Log);
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
  Planted.Run('profile,rate=4096', ['reports']);
  for Title in Titles do
  begin
    Line := Planted.Written('EventLog.txt');
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

procedure THeapProfileTests.TextNamesSitesAndClasses;
var
  Log: string;
begin
  Planted.Run(Exact, ['reports']);
  Log := Planted.Written('EventLog.txt');
  AssertTrue(Log, Pos('In use: ', Log) > 0);
  AssertTrue(Log, Pos('  1. 146.5 KB, 150 blocks'#10, Log) > 0);
  AssertTrue(Log, Pos('PLANTEDHEAP.FIRST', Log) > 0);
  AssertTrue(Log, Pos('By class:', Log) > 0);
  AssertTrue(Log, Pos(#10'  up to 1,024 bytes: 146.5 KB, 150 blocks in use; ', Log) > 0);
  AssertTrue(Planted.Errors, Pos('LaneMM heap report of process ', Planted.Errors) > 0);
end;

initialization
  RegisterTest(THeapProfileTests);
finalization
  Program_.Free;
end.
