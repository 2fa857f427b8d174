/// Reports of the sampled heap as text: by line of the program, by class and by size.
//
// Owns:       nothing; the text lies in pages of its own, which are released after the write.
// Invariants: takes no lock and no memory of the heap. A report is appended to the log in one
//             write.
// Callers:    any thread, also in a signal handler.
unit LaneMM.HeapReport;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

type
  /// The reports: the order of their lines.
  THeapReport = (
    hrInUse,      //< bytes in use now
    hrPeak,       //< bytes in use when they were most
    hrAllocated,  //< bytes allocated since the start
    hrTemporary,  //< bytes of blocks that were freed at once
    hrFragments   //< free bytes that partly used spans keep
  );

const
  /// The words for the reports, in this order.
  HeapReportNames: array[THeapReport] of ShortString = ('inuse', 'peak', 'allocated', 'temporary',
    'fragments');

/// Adds the report to Text, without a head. Returns False without memory, or samples.
function HeapReportAdd(var Text: TText; Report: THeapReport): Boolean;
/// Appends the report to the event log, and writes its first lines to stderr; without a file,
/// writes all of it to stderr. Returns False when no file could be written, or nothing was sampled.
function HeapReportWrite(Report: THeapReport): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Stats, LaneMM.Events,
  LaneMM.LogFile, LaneMM.ReportHead, LaneMM.SettingsState, LaneMM.BacktraceText,
  LaneMM.Advice, LaneMM.CallTree, LaneMM.ObserveState, LaneMM.CallSites, LaneMM.SampledClasses,
  LaneMM.Samples, LaneMM.ProfileData;

const
  TextLimit = 4 shl 20;
  LinesOnScreen = 3;
  MostListed = 256;

type
  TReportValues = record
    Count: TProfileValue;  // the blocks of a report
    Bytes: TProfileValue;  // the bytes, which order the lines
    Samples: TProfileValue; // the samples that both come from
    Title: PAnsiChar;
  end;

  // A line of the program, or a class, with the sums of its call sites.
  TEntry = record
    Key: UInt64;           // of a line see AdvicePlaceKey; of a class its number
    Count, Bytes: UInt64;
    // Of a line alone.
    Place: NativeUInt;     // its return address at the first of the sites
    Sites: Cardinal;       // those with bytes
    Samples, Freed, LifeMs: UInt64;
  end;
  PEntry = ^TEntry;

  // A list of those with most bytes.
  TEntries = record
    Items: array[0..MostListed - 1] of PEntry;
    Length: NativeInt;
    Limit: NativeInt;
  end;

  // The lines that call sites are of.
  TLines = record
    Length: Cardinal;      // of Items
    OfSite: array[0..SiteLimit - 1] of PEntry; // by the index of the site; nil: it has no bytes
    Items: array[0..SiteLimit - 1] of TEntry;
    Slots: array[0..2 * SiteLimit - 1] of Word; // numbers from 1 on of Items, by their keys
  end;
  PLines = ^TLines;

  // All classes, which are no more than those of all call sites.
  TClasses = record
    Length: Cardinal;      // of Items
    Items: array[0..SiteClassLimit - 1] of TEntry;
  end;
  PClasses = ^TClasses;

const
  Values: array[THeapReport] of TReportValues = (
    (Count: pvInUseCount; Bytes: pvInUseBytes; Samples: pvInUseSamples; Title: 'In use'),
    (Count: pvPeakCount; Bytes: pvPeakBytes; Samples: pvAllocatedSamples;
      Title: 'In use at the peak'),
    (Count: pvAllocatedCount; Bytes: pvAllocatedBytes; Samples: pvAllocatedSamples;
      Title: 'Allocated'),
    (Count: pvTemporaryCount; Bytes: pvTemporaryBytes; Samples: pvAllocatedSamples;
      Title: 'Temporary'),
    (Count: pvInUseCount; Bytes: pvFragments; Samples: pvInUseSamples;
      Title: 'Free in spans (runs of pages with blocks of one size), kept by blocks in use'));

// ---------------------------------------------------------------------------- lists

// Adds an entry at its place: most bytes first.
procedure Insert(var List: TEntries; Entry: PEntry);
var
  Index: NativeInt;
begin
  if List.Length < List.Limit then
    Inc(List.Length)
  else if (List.Limit = 0) or (List.Items[List.Length - 1]^.Bytes >= Entry^.Bytes) then
    Exit;
  Index := List.Length - 1;
  while (Index > 0) and (List.Items[Index - 1]^.Bytes < Entry^.Bytes) do
  begin
    List.Items[Index] := List.Items[Index - 1];
    Dec(Index);
  end;
  List.Items[Index] := Entry;
end;

procedure Choose(out List: TEntries; Items: PEntry; Count: Cardinal);
var
  Index: NativeInt;
begin
  List := Default(TEntries);
  List.Limit := MostListed;
  if Settings.Values[opTop] < MostListed then
    List.Limit := Settings.Values[opTop];
  for Index := 0 to NativeInt(Count) - 1 do
    if Items[Index].Bytes > 0 then
      Insert(List, Items + Index);
end;

// Returns the line with the key, a new one without sites if there is none.
function LineOf(Lines: PLines; Key: UInt64): PEntry;
var
  Slot: Cardinal;
begin
  Slot := Key mod (2 * SiteLimit);
  while Lines^.Slots[Slot] <> 0 do
  begin
    Result := @Lines^.Items[Lines^.Slots[Slot] - 1];
    if Result^.Key = Key then
      Exit;
    Slot := (Slot + 1) mod (2 * SiteLimit);
  end;
  Result := @Lines^.Items[Lines^.Length];
  Inc(Lines^.Length);
  Lines^.Slots[Slot] := Lines^.Length;
  Result^.Key := Key;
end;

// Adds a site to its line: what it has freed, and the rest if it has bytes.
procedure AddToLine(const Profile: TProfile; Site: PSite; Report: THeapReport; Lines: PLines);
var
  Place: NativeUInt;
  Line: PEntry;
begin
  Place := AdvicePlace(Profile.Symbols, Site^.Stack);
  Line := LineOf(Lines, AdvicePlaceKey(Profile.Symbols, Place));
  Inc(Line^.Freed, ProfileValue(Profile, Site, pvFreedCount));
  Inc(Line^.LifeMs, ProfileValue(Profile, Site, pvLifeMs));
  if ProfileValue(Profile, Site, Values[Report].Bytes) = 0 then
    Exit;
  if Line^.Sites = 0 then
    Line^.Place := Place;
  Inc(Line^.Sites);
  Inc(Line^.Samples, ProfileValue(Profile, Site, Values[Report].Samples));
  Inc(Line^.Count, ProfileValue(Profile, Site, Values[Report].Count));
  Inc(Line^.Bytes, ProfileValue(Profile, Site, Values[Report].Bytes));
  Lines^.OfSite[SiteIndex(Site)] := Line;
end;

// Adds each part of a site to the sums of its class, at the index of the class or at the end.
procedure AddToClasses(const Profile: TProfile; Site: PSite; Report: THeapReport; All: PClasses);
var
  Part: TSitePart;
  Index: Cardinal;
begin
  SitePartFirst(Profile, Site, Part);
  if Part.Item <> nil then
    repeat
      Index := 0;
      while (Index < All^.Length) and (All^.Items[Index].Key <> Part.Item^.ClassId) do
        Inc(Index);
      if Index = All^.Length then
        Inc(All^.Length);
      All^.Items[Index].Key := Part.Item^.ClassId;
      Inc(All^.Items[Index].Count, SitePartValue(Profile, Part, Values[Report].Count));
      Inc(All^.Items[Index].Bytes, SitePartValue(Profile, Part, Values[Report].Bytes));
    until not SitePartNext(Part);
end;

// ---------------------------------------------------------------------------- lines

// Adds the samples behind an amount, where they are known, and how far its bytes may be off. Each
// stands for at most Mean bytes more than its block has, so the standard error of a sum of Bytes is
// at most Sqrt(Mean * Bytes). Fragments are shared out by the samples: their error is another one.
procedure AddError(var Text: TText; Report: THeapReport; Samples, Bytes: UInt64);
var
  Mean: NativeUInt;
begin
  Mean := SamplesMean;
  if Mean <= 1 then
    Exit;
  if not (Report in [hrPeak, hrTemporary]) then
    TextAddForm(Text, ', from %g sample%+', Samples);
  if (Bytes = 0) or (Report = hrFragments) then
    Exit;
  TextAddForm(Text, ', standard error of the bytes at most %u %%', Trunc(100 * Sqrt(Mean / Bytes))
    + 1);
end;

procedure AddAmount(var Text: TText; Count, Bytes: UInt64);
begin
  TextAddForm(Text, '%b, %g block%+', Bytes, Count);
end;

procedure AddLifetime(var Text: TText; Line: PEntry);
begin
  if Line^.Freed > 0 then
    TextAddForm(Text, ', %g block%+ freed after %g ms on average', Line^.Freed,
      Line^.LifeMs div Line^.Freed);
end;

procedure AddTitle(var Text: TText; const Profile: TProfile; Report: THeapReport);
var
  Bytes: UInt64;
begin
  Bytes := ProfileSum(Profile, Values[Report].Bytes);
  TextAddChars(Text, Values[Report].Title);
  TextAdd(Text, ': ');
  AddAmount(Text, ProfileSum(Profile, Values[Report].Count), Bytes);
  AddError(Text, Report, ProfileSum(Profile, Values[Report].Samples), Bytes);
  TextAdd(Text, '; by line of the program, most bytes first:'#10);
end;

// Adds whether one line of the program accounts for the bytes, and which.
procedure AddVerdict(var Text: TText; const Profile: TProfile; Report: THeapReport;
  const List: TEntries);
const
  LeastPercent = 10;
var
  Line: PEntry;
  Percent: UInt64;
begin
  if List.Length = 0 then
    Exit;
  Line := List.Items[0];
  Percent := Line^.Bytes * 100 div ProfileSum(Profile, Values[Report].Bytes);
  TextAdd(Text, '  ');
  if Percent < LeastPercent then
    TextAdd(Text, 'No line has more than ');
  TextAddForm(Text, '%u %% of it', Percent);
  if Percent >= LeastPercent then
  begin
    TextAdd(Text, ' was allocated at ');
    AdviceAddPlace(Text, Profile.Symbols, Line^.Place);
    if Line^.Sites > 1 then
      TextAddForm(Text, ', by %g call site%+', Line^.Sites);
  end;
  TextAdd(Text, '.'#10);
end;

// Adds the backtraces of the call sites of a line.
procedure AddStacks(var Text: TText; const Profile: TProfile; Report: THeapReport; Lines: PLines;
  Line: PEntry);
var
  Symbolizer: TSymbolizer;
  Tree: PCallTree;
  Site: PSite;
begin
  Symbolizer := Default(TSymbolizer);
  Symbolizer.Symbols := Profile.Symbols;
  Tree := CallTreeOpen;
  Site := nil;
  while ProfileNext(Profile, Site) do
    if Lines^.OfSite[SiteIndex(Site)] = Line then
      if Tree <> nil then
        CallTreeAdd(Tree, Profile.Symbols, Site^.Stack,
          ProfileValue(Profile, Site, Values[Report].Count),
          ProfileValue(Profile, Site, Values[Report].Bytes))
      else if Line^.Sites = 1 then
        BacktraceAddText(Text, Symbolizer, Site^.Stack);
  if Tree <> nil then
    CallTreeAddText(Text, Tree, Symbolizer);
  CallTreeClose(Tree);
end;

procedure AddLines(var Text: TText; const Profile: TProfile; Report: THeapReport);
var
  Lines: PLines;
  List: TEntries;
  Site: PSite;
  Index: NativeInt;
  Line: PEntry;
begin
  AddTitle(Text, Profile, Report);
  Lines := OsTakePages(SizeOf(TLines));
  if Lines = nil then
    Exit;
  Site := nil;
  while ProfileNext(Profile, Site) do
    AddToLine(Profile, Site, Report, Lines);
  Choose(List, @Lines^.Items, Lines^.Length);
  AddVerdict(Text, Profile, Report, List);
  for Index := 0 to List.Length - 1 do
  begin
    Line := List.Items[Index];
    TextAddForm(Text, '  %u. ', Index + 1);
    AddAmount(Text, Line^.Count, Line^.Bytes);
    AddError(Text, Report, Line^.Samples, Line^.Bytes);
    AddLifetime(Text, Line);
    TextAdd(Text, LineEnd);
    AddStacks(Text, Profile, Report, Lines, Line);
  end;
  OsReleasePages(Lines, SizeOf(TLines));
end;

procedure AddClasses(var Text: TText; const Profile: TProfile; Report: THeapReport);
var
  All: PClasses;
  List: TEntries;
  Site: PSite;
  Index: NativeInt;
begin
  All := OsTakePages(SizeOf(TClasses));
  if All = nil then
    Exit;
  Site := nil;
  while ProfileNext(Profile, Site) do
    AddToClasses(Profile, Site, Report, All);
  Choose(List, @All^.Items, All^.Length);
  if List.Length > 0 then
    TextAdd(Text, 'By class:'#10);
  for Index := 0 to List.Length - 1 do
  begin
    TextAddForm(Text, '  %u. ', Index + 1);
    ClassIdAddName(Text, NativeUInt(List.Items[Index]^.Key));
    TextAdd(Text, ': ');
    AddAmount(Text, List.Items[Index]^.Count, List.Items[Index]^.Bytes);
    TextAdd(Text, LineEnd);
  end;
  OsReleasePages(All, SizeOf(TClasses));
end;

procedure AddSize(var Text: TText; Index: Cardinal; const Statuses: TClassStatuses);
var
  Counts: PSizeCounts;
begin
  Counts := @Observe.Sizes[Index];
  TextAddForm(Text, '  up to %b: ', SizeLimitAt(Index));
  AddAmount(Text, Remaining(Counts^.Count, Counts^.FreedCount),
    Remaining(Counts^.Bytes, Counts^.FreedBytes));
  TextAdd(Text, ' in use; ');
  AddAmount(Text, LoadAcquire(Counts^.Count), LoadAcquire(Counts^.Bytes));
  TextAdd(Text, ' allocated');
  if Index < SizeClassCount then
    TextAddForm(Text, '; %b free in %g span%+', Statuses[Index].FreeCount
      * Statuses[Index].BlockSize, Statuses[Index].SpanCount);
  TextAdd(Text, LineEnd);
end;

procedure AddSizes(var Text: TText);
var
  Statuses: TClassStatuses;
  Index: Cardinal;
begin
  ClassStatusRead(Statuses);
  TextAdd(Text, 'By size:'#10);
  for Index := 0 to SizeCount - 1 do
    if LoadAcquire(Observe.Sizes[Index].Count) > 0 then
      AddSize(Text, Index, Statuses);
end;

// Writes Text to the log, and its first lines to stderr; all where there is no log.
function WriteText(const Text: TText): Boolean;
var
  Screen, Path: TText;
  Lines: Cardinal;
  Index: NativeUInt;
begin
  Result := TextOpen(Path, OsPageSize) and LogFileAppend(Text, EventLogSuffix, Path);
  Screen := Text;
  if Result then
  begin
    Lines := 0;
    Index := 0;
    while (Index < Text.Length) and (Lines < LinesOnScreen) do
    begin
      Inc(Lines, Ord(Text.Start[Index] = LineEnd[1]));
      Inc(Index);
    end;
    Screen.Length := Index;
  end;
  TextWrite(Screen, OsStandardError);
  TextClose(Path);
end;

function HeapReportAdd(var Text: TText; Report: THeapReport): Boolean;
var
  Profile: TProfile;
begin
  Result := ProfileOpen(Profile, pkHeap);
  if Result then
  begin
    AddLines(Text, Profile, Report);
    AddClasses(Text, Profile, Report);
    AddSizes(Text);
    if LoadAcquire(Observe.SamplesLost) > 0 then
      TextAddForm(Text, '  Missing in memory in use and at the peak: %g sample%+, for which the'
        + ' sampler had no space or no lock'#10, LoadAcquire(Observe.SamplesLost));
  end;
  ProfileClose(Profile);
end;

function HeapReportWrite(Report: THeapReport): Boolean;
var
  Text: TText;
begin
  Result := TextOpen(Text, TextLimit);
  HeadAddTitle(Text, 'heap report');
  Result := Result and HeapReportAdd(Text, Report) and WriteText(Text);
  TextClose(Text);
end;

end.
