/// The profiles as one JSON object, with all values: the data of a page; docs/profile-data.md.
//
// Owns:       nothing.
// Invariants: no `<` in the text, so that it can stand inside an HTML script.
// Callers:    any thread. ProfileJsonBegin, ProfileJsonAdd for each profile, ProfileJsonEnd.
unit LaneMM.ProfileJson;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.ProfileData;

/// Begins the object: what was measured, in the report of this number.
procedure ProfileJsonBegin(var Text: TText; ReportNumber: NativeUInt);
/// Adds a profile.
procedure ProfileJsonAdd(var Text: TText; const Profile: TProfile);
/// Ends the object.
procedure ProfileJsonEnd(var Text: TText);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Stats, LaneMM.Json, LaneMM.ReportHead, LaneMM.SettingsState,
  LaneMM.Symbols, LaneMM.ObserveState, LaneMM.Advice, LaneMM.CallSites, LaneMM.SampledClasses,
  LaneMM.Samples, LaneMM.TimeLine;

const
  // Distinct classes that a report names; the others count as `other`.
  MostClasses = 1024;

type
  // The classes of a report, by their number in it.
  TClassList = record
    Ids: array[0..MostClasses - 1] of NativeUInt;
    Count: Cardinal;
  end;

// ---------------------------------------------------------------------------- head

// Returns the samples of all sites.
function AllSamples: UInt64;
var
  Site: PSite;
begin
  Result := 0;
  Site := nil;
  while SiteNext(Site) do
    Inc(Result, LoadAcquire(Site^.Samples));
end;

// Returns the standard error of the bytes allocated, as a share: of n samples with one mean
// 1 / sqrt(n); where the mean has grown, the root of the sum of size * mean.
function ErrorOf(Samples: UInt64): Double;
var
  Part: Double;
begin
  Result := 0;
  if (Samples = 0) or (SamplesMean <= 1) then
    Exit;
  if opRate in Settings.Given then
    Exit(1 / Sqrt(Samples));
  Part := SamplesMean / LoadAcquire(Observe.AllocatedBytes);
  if Part > 1 / MeanShare then
    Part := 1 / MeanShare; // AllocatedBytes has wrapped, or has grown meanwhile
  Result := Sqrt(Part - MeanShare * Part * Part / 2);
end;

// Adds the standard error of a sum of this many samples, with four decimals.
procedure AddError(var Text: TText; Samples: UInt64);
const
  One = 10000;
var
  Digits: ShortString;
  Error: UInt64;
begin
  Error := Trunc(One * ErrorOf(Samples) + 0.5);
  JsonAddKey(Text, 'error');
  TextAddNumber(Text, Error div One);
  Str(UInt64(One + Error mod One), Digits);
  Digits[1] := '.';
  TextAdd(Text, Digits);
end;

// Adds how blocks are sampled.
procedure AddSampling(var Text: TText);
var
  Samples: UInt64;
begin
  Samples := AllSamples;
  JsonAddNumber(Text, 'rate', SamplesMean);
  JsonAddNumber(Text, 'samples', Samples);
  JsonAddNumber(Text, 'samples_lost', LoadAcquire(Observe.SamplesLost));
  AddError(Text, Samples);
  JsonAddNumber(Text, 'temporary', Settings.Values[opTemporary]);
  JsonAddNumber(Text, 'every_ms', Settings.Values[opEvery]);
end;

procedure ProfileJsonBegin(var Text: TText; ReportNumber: NativeUInt);
var
  Status: TStatus;
begin
  StatusRead(Status);
  TextAdd(Text, '{"format":"lanemm","version":1,"head":{');
  HeadAddJson(Text);
  JsonAddNumber(Text, 'report', ReportNumber);
  JsonAddNumber(Text, 'run_ms', RunMs);
  if LoadAcquire(Observe.SampleTable) <> 0 then
    AddSampling(Text);
  JsonAddNumber(Text, 'events_lost', LoadAcquire(Observe.SitesLost));
  JsonAddNumber(Text, 'committed', Status.CommittedBytes);
  JsonAddNumber(Text, 'used', Status.UsedBytes);
  TextAdd(Text, '},"profiles":[');
end;

procedure ProfileJsonEnd(var Text: TText);
begin
  TextAdd(Text, #10']}'#10);
end;

// ---------------------------------------------------------------------------- columns, frames

procedure AddColumns(var Text: TText; const Range: TValueRange);
var
  Value: TProfileValue;
begin
  JsonOpen(Text, 'columns', '[');
  for Value := Range.First to Range.Last do
  begin
    JsonOpenItem(Text);
    JsonAddText(Text, 'name', ValueKinds[Value].Name);
    JsonAddText(Text, 'unit', ValueKinds[Value].UnitName);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
  JsonAddNumber(Text, 'main', Ord(Range.Main) - Ord(Range.First));
end;

procedure AddFrame(var Text: TText; Symbol: PSymbol);
begin
  JsonOpenLine(Text);
  ProfileAddFrame(Text, Symbol);
  if (Symbol^.Routine <> nil) and SymbolIsLibrary(Symbol) then
    JsonAddNumber(Text, 'library', 1);
  if Symbol^.Address >= FirstInlined - 1 then
    JsonAddNumber(Text, 'inlined', 1);
  TextAdd(Text, '}');
end;

// ---------------------------------------------------------------------------- sites

procedure AddValues(var Text: TText; const Profile: TProfile; Site: PSite);
var
  Range: TValueRange;
  Value: TProfileValue;
begin
  Range := ProfileRange(Profile);
  JsonOpen(Text, 'values', '[');
  for Value := Range.First to Range.Last do
    JsonAddItem(Text, ProfileValue(Profile, Site, Value));
  TextAdd(Text, ']');
end;

// Adds what a report says of growth besides the numbers.
procedure AddAdvice(var Text: TText; const Profile: TProfile; Site: PSite);
var
  Place: TText;
  Characters: TPath;
  Advice: TAdvice;
begin
  TextOpenAt(Place, @Characters, SizeOf(Characters));
  AdviceAddPlace(Place, Profile.Symbols, AdvicePlace(Profile.Symbols, Site^.Stack));
  Advice := AdviceOf(Profile.Symbols, Site^.Stack);
  JsonAddText(Text, 'place', @Characters);
  JsonAddText(Text, 'grew', Advice.Grew);
  JsonAddText(Text, 'advice', Advice.Text);
end;

procedure AddLives(var Text: TText; Site: PSite);
var
  Index: Cardinal;
begin
  if LoadAcquire(Site^.FreedCount) = 0 then
    Exit;
  JsonOpen(Text, 'life', '[');
  for Index := 0 to High(Site^.Lives) do
    JsonAddItem(Text, LoadAcquire(Site^.Lives[Index]));
  TextAdd(Text, ']');
end;

procedure AddSiteLine(var Text: TText; Line: PTimeLine; Site: PSite);
var
  Index: NativeUInt;
begin
  Index := 0;
  while (Index < Line^.Count) and (Line^.Sites[Index][SiteIndex(Site)] = 0) do
    Inc(Index);
  if Index = Line^.Count then
    Exit;
  JsonOpen(Text, 'line', '[');
  while Index < Line^.Count do
  begin
    JsonAddItem(Text, Line^.Sites[Index][SiteIndex(Site)]);
    Inc(Index);
  end;
  TextAdd(Text, ']');
end;

// Returns the number of a class in the report, a new one if needed.
function NumberOf(var List: TClassList; ClassId: NativeUInt): Cardinal;
begin
  Result := 0;
  while (Result < List.Count) and (List.Ids[Result] <> ClassId) do
    Inc(Result);
  if Result < List.Count then
    Exit;
  if List.Count = MostClasses then
    Exit(0); // `other`
  List.Ids[Result] := ClassId;
  Inc(List.Count);
end;

procedure AddSiteClasses(var Text: TText; const Profile: TProfile; Site: PSite;
  var List: TClassList);
var
  Part: TSitePart;
  Value: TProfileValue;
begin
  SitePartFirst(Profile, Site, Part);
  if Part.Item = nil then
    Exit;
  JsonOpen(Text, 'classes', '[');
  repeat
    JsonAddComma(Text);
    TextAdd(Text, '[');
    TextAddNumber(Text, NumberOf(List, Part.Item^.ClassId));
    for Value := pvAllocatedCount to pvInUseBytes do
      JsonAddItem(Text, SitePartValue(Profile, Part, Value));
    TextAdd(Text, ']');
  until not SitePartNext(Part);
  TextAdd(Text, ']');
end;

procedure AddSites(var Text: TText; const Profile: TProfile; Line: PTimeLine;
  var List: TClassList);
var
  Site: PSite;
begin
  JsonOpen(Text, 'sites', '[');
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    JsonOpenLine(Text);
    JsonOpen(Text, 'stack', '[');
    ProfileAddStack(Text, Profile, Site);
    AddValues(Text, Profile, Site);
    if Profile.Kind = pkHeap then
    begin
      AddLives(Text, Site);
      if Line <> nil then
        AddSiteLine(Text, Line, Site);
      AddSiteClasses(Text, Profile, Site, List);
    end
    else if Profile.Kind = pkGrowth then
      AddAdvice(Text, Profile, Site);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

// ---------------------------------------------------------------------------- the heap

procedure AddLine(var Text: TText; Line: PTimeLine);
const
  Names: array[0..4] of ShortString = ('ms', 'inuse_objects', 'inuse_space', 'alloc_space',
    'committed');
var
  Column: Cardinal;
  Index: NativeInt;
begin
  JsonOpen(Text, 'line', '{');
  for Column := 0 to High(Names) do
  begin
    JsonOpen(Text, Names[Column], '[');
    for Index := 0 to NativeInt(Line^.Count) - 1 do
      case Column of
        0: JsonAddItem(Text, Line^.Points[Index].Ms);
        1: JsonAddItem(Text, Line^.Points[Index].InUseCount);
        2: JsonAddItem(Text, Line^.Points[Index].InUseBytes);
        3: JsonAddItem(Text, Line^.Points[Index].AllocatedBytes);
      else
        JsonAddItem(Text, Line^.Points[Index].Committed);
      end;
    TextAdd(Text, ']');
  end;
  TextAdd(Text, '}');
end;

procedure AddClasses(var Text: TText; const List: TClassList);
var
  Index: NativeInt;
  Name: TText;
  Characters: TPath;
begin
  JsonOpen(Text, 'classes', '[');
  for Index := 0 to NativeInt(List.Count) - 1 do
  begin
    TextOpenAt(Name, @Characters, SizeOf(Characters));
    ClassIdAddName(Name, List.Ids[Index]);
    JsonOpenLine(Text);
    JsonAddText(Text, 'name', @Characters);
    JsonAddText(Text, 'kind', ClassIdKind(List.Ids[Index]));
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

procedure AddSizes(var Text: TText);
var
  Statuses: TClassStatuses;
  Index: Cardinal;
  Counts: PSizeCounts;
begin
  ClassStatusRead(Statuses);
  JsonOpen(Text, 'sizes', '[');
  for Index := 0 to SizeCount - 1 do
  begin
    Counts := @Observe.Sizes[Index];
    if LoadAcquire(Counts^.Count) = 0 then
      Continue;
    JsonOpenLine(Text);
    JsonAddNumber(Text, 'size', SizeLimitAt(Index));
    JsonAddNumber(Text, 'alloc_objects', LoadAcquire(Counts^.Count));
    JsonAddNumber(Text, 'alloc_space', LoadAcquire(Counts^.Bytes));
    JsonAddNumber(Text, 'inuse_objects', Remaining(Counts^.Count, Counts^.FreedCount));
    JsonAddNumber(Text, 'inuse_space', Remaining(Counts^.Bytes, Counts^.FreedBytes));
    if Index < SizeClassCount then
    begin
      JsonAddNumber(Text, 'spans', Statuses[Index].SpanCount);
      JsonAddNumber(Text, 'span_space', Statuses[Index].SpanBytes);
      JsonAddNumber(Text, 'free_space', Statuses[Index].FreeCount * Statuses[Index].BlockSize);
    end;
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

procedure AddHeap(var Text: TText; const Profile: TProfile);
var
  Line: PTimeLine;
  List: TClassList;
  Index: Cardinal;
begin
  List.Count := 0;
  NumberOf(List, OtherClass);
  Line := TimeLineOpen;
  AddSites(Text, Profile, Line, List);
  if Line <> nil then
    AddLine(Text, Line);
  TimeLineClose(Line);
  JsonOpen(Text, 'peak', '{');
  JsonAddNumber(Text, 'ms', LoadAcquire(Observe.PeakMs));
  JsonAddNumber(Text, 'objects', ProfileSum(Profile, pvPeakCount));
  JsonAddNumber(Text, 'space', ProfileSum(Profile, pvPeakBytes));
  TextAdd(Text, '}');
  if Observe.HasLeaks then
  begin
    JsonOpen(Text, 'leaks', '{'); // of all blocks: not sampled
    JsonAddNumber(Text, 'objects', Observe.LeakedCount);
    JsonAddNumber(Text, 'space', Observe.LeakedBytes);
    TextAdd(Text, '}');
  end;
  JsonOpen(Text, 'life_limits', '[');
  for Index := 0 to High(LifeLimits) do
    JsonAddItem(Text, LifeLimits[Index]);
  TextAdd(Text, ']');
  if Profile.Contents <> nil then
    AddClasses(Text, List);
  AddSizes(Text);
end;

procedure ProfileJsonAdd(var Text: TText; const Profile: TProfile);
var
  Range: TValueRange;
  None: TClassList;
  Index: NativeInt;
begin
  Range := ProfileRange(Profile);
  JsonOpenLine(Text);
  JsonAddText(Text, 'kind', ProfileNames[Profile.Kind]);
  AddColumns(Text, Range);
  JsonOpen(Text, 'frames', '[');
  for Index := 0 to Profile.Symbols.Count - 1 do
    AddFrame(Text, @Profile.Symbols.Items[Index]);
  TextAdd(Text, ']');
  None.Count := 0;
  if Profile.Kind = pkHeap then
    AddHeap(Text, Profile)
  else
    AddSites(Text, Profile, nil, None);
  TextAdd(Text, '}');
end;

end.
