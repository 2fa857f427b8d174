/// Reports of the sampled heap as text: by call site, by class and by size.
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
  /// The reports: the order of their call sites.
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
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.Stats, LaneMM.Events,
  LaneMM.LogFile, LaneMM.ReportHead, LaneMM.SettingsState, LaneMM.Symbols, LaneMM.BacktraceText,
  LaneMM.Advice, LaneMM.ObserveState, LaneMM.CallSites, LaneMM.SampledClasses, LaneMM.Samples,
  LaneMM.ProfileData;

const
  TextLimit = 4 shl 20;
  LinesOnScreen = 3;
  MostListed = 256;

type
  TReportValues = record
    Count: TProfileValue;  // the blocks of a report
    Bytes: TProfileValue;  // the bytes, which order the sites
    Samples: TProfileValue; // the samples that both come from
    Title: PAnsiChar;
  end;

  // An entry of a list: a call site or a class, with its blocks and bytes.
  TEntry = record
    Count, Bytes: UInt64;
    Site: PSite;
    ClassId: NativeUInt;
  end;
  TEntries = record
    Items: array[0..MostListed - 1] of TEntry;
    Length: NativeInt;
    Limit: NativeInt;
  end;

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
procedure Insert(var List: TEntries; const Entry: TEntry);
var
  Index: NativeInt;
begin
  if List.Length < List.Limit then
    Inc(List.Length)
  else if (List.Limit = 0) or (List.Items[List.Length - 1].Bytes >= Entry.Bytes) then
    Exit;
  Index := List.Length - 1;
  while (Index > 0) and (List.Items[Index - 1].Bytes < Entry.Bytes) do
  begin
    List.Items[Index] := List.Items[Index - 1];
    Dec(Index);
  end;
  List.Items[Index] := Entry;
end;

procedure OpenList(out List: TEntries);
begin
  List := Default(TEntries);
  List.Limit := MostListed;
  if Settings.Values[opTop] < MostListed then
    List.Limit := Settings.Values[opTop];
end;

procedure ChooseSites(const Profile: TProfile; Report: THeapReport; out List: TEntries);
var
  Entry: TEntry;
begin
  OpenList(List);
  Entry := Default(TEntry);
  while ProfileNext(Profile, Entry.Site) do
  begin
    Entry.Count := ProfileValue(Profile, Entry.Site, Values[Report].Count);
    Entry.Bytes := ProfileValue(Profile, Entry.Site, Values[Report].Bytes);
    if Entry.Bytes > 0 then
      Insert(List, Entry);
  end;
end;

// Adds a part of a site to the sums of its class, at the index of the class or at the end.
procedure AddToClass(const Profile: TProfile; const Part: TSitePart; Report: THeapReport;
  var List: TEntries);
var
  Index: NativeInt;
begin
  Index := 0;
  while (Index < List.Length) and (List.Items[Index].ClassId <> Part.Item^.ClassId) do
    Inc(Index);
  if Index = MostListed then
    Exit;
  if Index = List.Length then
    Inc(List.Length);
  List.Items[Index].ClassId := Part.Item^.ClassId;
  Inc(List.Items[Index].Count, SitePartValue(Profile, Part, Values[Report].Count));
  Inc(List.Items[Index].Bytes, SitePartValue(Profile, Part, Values[Report].Bytes));
end;

procedure ChooseClasses(const Profile: TProfile; Report: THeapReport; out List: TEntries);
var
  All: TEntries;
  Index: NativeInt;
  Site: PSite;
  Part: TSitePart;
begin
  All := Default(TEntries);
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    SitePartFirst(Profile, Site, Part);
    if Part.Item <> nil then
      repeat
        AddToClass(Profile, Part, Report, All);
      until not SitePartNext(Part);
  end;
  OpenList(List);
  for Index := 0 to All.Length - 1 do
    if All.Items[Index].Bytes > 0 then
      Insert(List, All.Items[Index]);
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

procedure AddLifetime(var Text: TText; const Profile: TProfile; Site: PSite);
var
  Freed: UInt64;
begin
  Freed := ProfileValue(Profile, Site, pvFreedCount);
  if Freed = 0 then
    Exit;
  TextAddForm(Text, ', %g block%+ freed after %g ms on average', Freed,
    ProfileValue(Profile, Site, pvLifeMs) div Freed);
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
  TextAdd(Text, '; by call site, most bytes first:'#10);
end;

// Finds the line of the program with most bytes, at how many of the call sites.
procedure FindMost(const Symbols: TSymbols; const List: TEntries; out Place: NativeUInt;
  out Bytes: UInt64; out Sites: Cardinal);
var
  Index, Other: NativeInt;
  Here: NativeUInt;
  Sum: UInt64;
  Count: Cardinal;
begin
  Bytes := 0;
  for Index := 0 to List.Length - 1 do
  begin
    Here := AdvicePlace(Symbols, List.Items[Index].Site^.Stack);
    Sum := 0;
    Count := 0;
    for Other := Index to List.Length - 1 do
      if AdviceIsSamePlace(Symbols, Here,
        AdvicePlace(Symbols, List.Items[Other].Site^.Stack)) then
      begin
        Inc(Sum, List.Items[Other].Bytes);
        Inc(Count);
      end;
    if Sum <= Bytes then
      Continue;
    Place := Here;
    Bytes := Sum;
    Sites := Count;
  end;
end;

// Adds whether one line of the program accounts for the bytes, and which.
procedure AddVerdict(var Text: TText; const Symbols: TSymbols; const Profile: TProfile;
  Report: THeapReport; const List: TEntries);
const
  LeastPercent = 10;
var
  Place: NativeUInt;
  Bytes, Percent: UInt64;
  Sites: Cardinal;
begin
  FindMost(Symbols, List, Place, Bytes, Sites);
  if Bytes = 0 then
    Exit;
  Percent := Bytes * 100 div ProfileSum(Profile, Values[Report].Bytes);
  TextAdd(Text, '  ');
  if Percent < LeastPercent then
    TextAdd(Text, 'No line has more than ');
  TextAddForm(Text, '%u %% of it', Percent);
  if Percent >= LeastPercent then
  begin
    TextAdd(Text, ' was allocated at ');
    AdviceAddPlace(Text, Symbols, Place);
    if Sites > 1 then
      TextAddForm(Text, ', by %g call site%+', Sites);
  end;
  TextAdd(Text, '.'#10);
end;

procedure AddSites(var Text: TText; const Profile: TProfile; Report: THeapReport;
  const List: TEntries);
var
  Symbolizer: TSymbolizer;
  Index: NativeInt;
  Entry: TEntry;
begin
  AddTitle(Text, Profile, Report);
  SymbolizerOpen(Symbolizer, List.Length);
  for Index := 0 to List.Length - 1 do
    SymbolizerAdd(Symbolizer, List.Items[Index].Site^.Stack);
  SymbolizerResolve(Symbolizer);
  AddVerdict(Text, Symbolizer.Symbols, Profile, Report, List);
  for Index := 0 to List.Length - 1 do
  begin
    Entry := List.Items[Index];
    TextAddForm(Text, '  %u. ', Index + 1);
    AddAmount(Text, Entry.Count, Entry.Bytes);
    AddError(Text, Report, ProfileValue(Profile, Entry.Site, Values[Report].Samples), Entry.Bytes);
    AddLifetime(Text, Profile, Entry.Site);
    TextAdd(Text, LineEnd);
    BacktraceAddText(Text, Symbolizer, Entry.Site^.Stack);
  end;
  SymbolizerClose(Symbolizer);
end;

procedure AddClasses(var Text: TText; const List: TEntries);
var
  Index: NativeInt;
begin
  if List.Length = 0 then
    Exit;
  TextAdd(Text, 'By class:'#10);
  for Index := 0 to List.Length - 1 do
  begin
    TextAddForm(Text, '  %u. ', Index + 1);
    ClassIdAddName(Text, List.Items[Index].ClassId);
    TextAdd(Text, ': ');
    AddAmount(Text, List.Items[Index].Count, List.Items[Index].Bytes);
    TextAdd(Text, LineEnd);
  end;
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

procedure AddHead(var Text: TText);
begin
  TextAddForm(Text, 'LaneMM heap report of process %u, ', OsProcessId);
  HeadAddTime(Text, OsUnixSeconds);
  TextAdd(Text, ', ');
  HeadAddCommand(Text);
  TextAdd(Text, LineEnd);
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
  Sites, ByClass: TEntries;
begin
  Result := ProfileOpen(Profile, pkHeap);
  if Result then
  begin
    ChooseSites(Profile, Report, Sites);
    ChooseClasses(Profile, Report, ByClass);
    AddSites(Text, Profile, Report, Sites);
    AddClasses(Text, ByClass);
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
  AddHead(Text);
  Result := Result and HeapReportAdd(Text, Report) and WriteText(Text);
  TextClose(Text);
end;

end.
