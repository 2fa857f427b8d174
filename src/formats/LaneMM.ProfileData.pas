/// One profile: the sites of a kind, their values, and the symbols of their frames.
//
// Owns:       nothing; a TProfile owns its symbols and mapped files until ProfileClose.
// Invariants: a profile has the sites that were in the table at ProfileOpen, and the values that
//             they had then: their frames have symbols, and all lists and formats of one report
//             agree while the program runs. What comes later is in the next.
// Callers:    any thread; a TProfile belongs to one.
unit LaneMM.ProfileData;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.Elf, LaneMM.Symbols, LaneMM.Unwind, LaneMM.CallSites, LaneMM.SampledClasses,
  LaneMM.Fragments;

type
  /// The kinds of profiles.
  TProfileKind = (pkContention, pkGrowth, pkHeap);

  /// The values of the sites, those of each kind of profile in a row.
  TProfileValue = (pvContentions, pvRemoteFrees, pvTakenLocks, pvReallocs, pvCopiedBytes,
    pvAllocatedCount, pvAllocatedBytes, pvInUseCount, pvInUseBytes, pvPeakCount, pvPeakBytes,
    pvTemporaryCount, pvTemporaryBytes, pvSlack, pvFragments, pvFreedCount, pvLifeMs,
    pvAllocatedSamples, pvInUseSamples, pvLeakedCount, pvLeakedBytes);

  /// A value that each site of a profile has.
  TValueKind = record
    Name: PAnsiChar;      //< as pprof names it
    UnitName: PAnsiChar;  //< count, bytes or ms
  end;

  /// Some values: those of a kind of profile.
  TValueRange = record
    First: TProfileValue; //< the first value
    Shown: TProfileValue; //< the last one that viewers of other formats get
    Last: TProfileValue;  //< the last one; see ProfileRange
    Main: TProfileValue;  //< the one that viewers show first
  end;

  PSiteValues = ^TSiteValues;
  /// The values of each site, by index.
  TSiteValues = array[0..SiteLimit - 1, TProfileValue] of UInt64;

  /// A bit for each site, by index.
  TSiteBits = array[0..SiteLimit div 32 - 1] of Cardinal;

  /// A profile while it is written.
  TProfile = record
    Kind: TProfileKind;    //< its kind
    Sites: TSiteBits;      //< its sites
    Symbols: TSymbols;     //< the symbols of all frames
    Elf: TElf;             //< the files that hold the texts of Symbols
    Contents: PSiteClasses; //< the classes of sampled blocks, by site
    FreeBytes: TFragments; //< free bytes of spans, and who claims them
    Values: PSiteValues;   //< the values; nil without memory
    LacksMemory: Boolean;  //< it has sites, and there is no memory for them
  end;
  PProfile = ^TProfile;

  /// A part of a site: the blocks of one class.
  TSitePart = record
    Site: PSite;           //< the site
    Item: PSiteClass;      //< the class; nil: all of the site
  end;

const
  /// The names of the profiles.
  ProfileNames: array[TProfileKind] of PAnsiChar = ('contention', 'growth', 'heap');
  /// The values of the profiles.
  ValueRanges: array[TProfileKind] of TValueRange = (
    (First: pvContentions; Shown: pvContentions; Last: pvTakenLocks; Main: pvContentions),
    (First: pvReallocs; Shown: pvCopiedBytes; Last: pvCopiedBytes; Main: pvCopiedBytes),
    (First: pvAllocatedCount; Shown: pvFragments; Last: pvLeakedBytes; Main: pvInUseBytes));
  /// The names and units of the values.
  ValueKinds: array[TProfileValue] of TValueKind = (
    (Name: 'contentions'; UnitName: 'count'),
    (Name: 'remote_frees'; UnitName: 'count'), (Name: 'taken_locks'; UnitName: 'count'),
    (Name: 'reallocs'; UnitName: 'count'), (Name: 'copied_space'; UnitName: 'bytes'),
    (Name: 'alloc_objects'; UnitName: 'count'), (Name: 'alloc_space'; UnitName: 'bytes'),
    (Name: 'inuse_objects'; UnitName: 'count'), (Name: 'inuse_space'; UnitName: 'bytes'),
    (Name: 'peak_objects'; UnitName: 'count'), (Name: 'peak_space'; UnitName: 'bytes'),
    (Name: 'temporary_objects'; UnitName: 'count'), (Name: 'temporary_space'; UnitName: 'bytes'),
    (Name: 'slack_space'; UnitName: 'bytes'), (Name: 'fragment_space'; UnitName: 'bytes'),
    (Name: 'freed_objects'; UnitName: 'count'), (Name: 'life_ms'; UnitName: 'ms'),
    (Name: 'alloc_samples'; UnitName: 'count'), (Name: 'inuse_samples'; UnitName: 'count'),
    (Name: 'leak_objects'; UnitName: 'count'), (Name: 'leak_space'; UnitName: 'bytes'));

/// Collects the sites of the profile and their values, and symbolizes their frames. Returns False
/// when there are none, or no memory; ProfileClose is due in any case.
function ProfileOpen(out Profile: TProfile; Kind: TProfileKind): Boolean;
/// Frees the symbols and unmaps the files.
procedure ProfileClose(var Profile: TProfile);
/// Moves Site to the next one of the profile, from nil to the first; returns whether there is one.
function ProfileNext(const Profile: TProfile; var Site: PSite): Boolean;
/// Reads the frames of a site that reports show, see BacktraceFold; at least one.
procedure ProfileReadStack(const Profile: TProfile; Site: PSite; out Stack: TBacktrace);
/// Returns the values that the profile has now: those of leaks only when leaks were looked for.
function ProfileRange(const Profile: TProfile): TValueRange;
/// Returns a value of a site, one of ValueRanges of the profile's kind.
function ProfileValue(const Profile: TProfile; Site: PSite; Value: TProfileValue): UInt64;
/// Returns the sum of a value over all sites.
function ProfileSum(const Profile: TProfile; Value: TProfileValue): UInt64;
/// Stores the first part of a site in Part: a class, or all of the site where no class is known.
procedure SitePartFirst(const Profile: TProfile; Site: PSite; out Part: TSitePart);
/// Moves to the next part; returns whether there is one.
function SitePartNext(var Part: TSitePart): Boolean;
/// Returns what a part has of a value of its site. Values that are not known by class are divided
/// like those in use or allocated. The sum of all parts is the value.
function SitePartValue(const Profile: TProfile; const Part: TSitePart; Value: TProfileValue):
  UInt64;
/// Adds the name of a frame: its routine, else its module and offset, else its address; `(cut)` for
/// CutFrame.
procedure ProfileAddName(var Text: TText; Symbol: PSymbol);
/// Adds the name of a frame, and the line that is known, to the JSON object that Text ends with.
procedure ProfileAddFrame(var Text: TText; Symbol: PSymbol);
/// Adds the frames of a site to the JSON list that Text ends with, as numbers of Symbols, and ends
/// the list.
procedure ProfileAddStack(var Text: TText; const Profile: TProfile; Site: PSite);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Json, LaneMM.BacktraceText, LaneMM.ObserveState,
  LaneMM.Samples;

const
  Members: array[TProfileKind] of set of TSiteKind = ([siShardMiss..siRemoteFree], [siGrowth],
    [siAllocation]);

function ProfileNext(const Profile: TProfile; var Site: PSite): Boolean;
begin
  repeat
    Result := SiteNext(Site);
  until not Result
    or Odd(Profile.Sites[SiteIndex(Site) div 32] shr (SiteIndex(Site) mod 32));
end;

// Collects the sites; returns the number of their frames.
function AddSites(var Profile: TProfile): NativeUInt;
var
  Index: Cardinal;
  Site: PSite;
begin
  Result := 0;
  Site := nil;
  while SiteNext(Site) do
    if Site^.Kind in Members[Profile.Kind] then
    begin
      Index := SiteIndex(Site);
      Profile.Sites[Index div 32] := Profile.Sites[Index div 32] or Cardinal(1) shl (Index mod 32);
      Inc(Result, Site^.Stack.Count);
    end;
end;

// Returns blocks of the site at the peak, or their bytes.
function PeakOf(Site: PSite; Value: TProfileValue): UInt64;
var
  Count, Bytes: NativeUInt;
begin
  SitePeak(Site, Count, Bytes);
  if Value = pvPeakCount then
    Result := Count
  else
    Result := Bytes;
end;

// Returns a value of a site as it is now.
function ValueNow(Site: PSite; Value: TProfileValue): UInt64;
begin
  case Value of
    pvCopiedBytes: Result := LoadAcquire(Site^.CopiedBytes);
    pvAllocatedBytes: Result := LoadAcquire(Site^.Bytes);
    pvInUseCount: Result := Remaining(Site^.Count, Site^.FreedCount);
    pvInUseBytes: Result := Remaining(Site^.Bytes, Site^.FreedBytes);
    pvPeakCount, pvPeakBytes: Result := PeakOf(Site, Value);
    pvTemporaryCount: Result := LoadAcquire(Site^.TemporaryCount);
    pvTemporaryBytes: Result := LoadAcquire(Site^.TemporaryBytes);
    pvSlack: Result := Remaining(Site^.Slack, Site^.FreedSlack);
    pvFragments: Result := 0; // see AddSample
    pvFreedCount: Result := LoadAcquire(Site^.FreedCount);
    pvLifeMs: Result := LoadAcquire(Site^.LifeMs);
    pvAllocatedSamples: Result := LoadAcquire(Site^.Samples);
    pvInUseSamples: Result := Remaining(Site^.Samples, Site^.FreedSamples);
    pvLeakedCount: Result := LoadAcquire(Site^.LeakedCount);
    pvLeakedBytes: Result := LoadAcquire(Site^.LeakedBytes);
    pvRemoteFrees: Result := LoadAcquire(Site^.Count) * Ord(Site^.Kind = siRemoteFree);
    pvTakenLocks: Result := LoadAcquire(Site^.Count) * Ord(Site^.Kind <> siRemoteFree);
  else
    Result := LoadAcquire(Site^.Count);
  end;
end;

procedure AddSample(const Sample: TSample; Context: Pointer);
var
  Profile: PProfile;
begin
  Profile := Context;
  SiteClassesAdd(Profile^.Contents, Sample);
  Inc(Profile^.Values^[SiteIndex(Sample.Site), pvFragments],
    FragmentsOfSample(Profile^.FreeBytes, Sample));
end;

procedure ClaimForSample(const Sample: TSample; Context: Pointer);
begin
  FragmentsClaim(PFragments(Context)^, Sample);
end;

// Looks at the samples in use, and at the contents of their blocks, which other threads may free.
procedure AddSamples(var Profile: TProfile);
begin
  Profile.Contents := SiteClassesOpen;
  FragmentsOpen(Profile.FreeBytes);
  Observe.HoldBlocks;
  SamplesVisit(ClaimForSample, @Profile.FreeBytes);
  SamplesVisit(AddSample, @Profile);
  Observe.LetGoBlocks;
  SiteClassesSort(Profile.Contents);
end;

function ProfileOpen(out Profile: TProfile; Kind: TProfileKind): Boolean;
var
  FrameCount: NativeUInt;
  Site: PSite;
  Value: TProfileValue;
  Frame: Cardinal;
begin
  Profile := Default(TProfile);
  Profile.Kind := Kind;
  FrameCount := AddSites(Profile);
  if FrameCount = 0 then
    Exit(False);
  Profile.Values := OsTakePages(SizeOf(TSiteValues));
  Profile.LacksMemory := Profile.Values = nil;
  if Profile.LacksMemory then
    Exit(False);
  SymbolsOpen(Profile.Symbols, FrameCount + 1);
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    // From the last value on: blocks in use or freed are never more than those allocated, of which
    // another thread may add some meanwhile.
    for Value := ValueRanges[Profile.Kind].Last downto ValueRanges[Profile.Kind].First do
      Profile.Values^[SiteIndex(Site), Value] := ValueNow(Site, Value);
    for Frame := 0 to Site^.Stack.Count - 1 do
      SymbolsAdd(Profile.Symbols, Site^.Stack.Frames[Frame]);
  end;
  SymbolsAdd(Profile.Symbols, CutFrame); // BacktraceFold may add it
  SymbolsSort(Profile.Symbols);
  ElfOpen(Profile.Elf);
  ElfResolve(Profile.Elf, Profile.Symbols);
  if Kind = pkHeap then
    AddSamples(Profile);
  Result := Profile.Symbols.Count > 0;
  Profile.LacksMemory := not Result;
end;

procedure ProfileClose(var Profile: TProfile);
begin
  OsReleasePages(Profile.Values, SizeOf(TSiteValues));
  SiteClassesClose(Profile.Contents);
  ElfClose(Profile.Elf);
  SymbolsClose(Profile.Symbols);
end;

procedure ProfileReadStack(const Profile: TProfile; Site: PSite; out Stack: TBacktrace);
begin
  Stack := Site^.Stack;
  BacktraceFold(Profile.Symbols, Stack);
end;

function ProfileRange(const Profile: TProfile): TValueRange;
begin
  Result := ValueRanges[Profile.Kind];
  if (Profile.Kind = pkHeap) and not Observe.HasLeaks then
    Result.Last := pvInUseSamples;
end;

function ProfileValue(const Profile: TProfile; Site: PSite; Value: TProfileValue): UInt64;
begin
  Result := Profile.Values^[SiteIndex(Site), Value];
end;

function ProfileSum(const Profile: TProfile; Value: TProfileValue): UInt64;
var
  Site: PSite;
begin
  Result := 0;
  Site := nil;
  while ProfileNext(Profile, Site) do
    Inc(Result, ProfileValue(Profile, Site, Value));
end;

procedure SitePartFirst(const Profile: TProfile; Site: PSite; out Part: TSitePart);
begin
  Part.Site := Site;
  Part.Item := SiteClassesOf(Profile.Contents, Site);
end;

function SitePartNext(var Part: TSitePart): Boolean;
begin
  if Part.Item <> nil then
    Part.Item := Part.Item^.Next;
  Result := Part.Item <> nil;
end;

// Returns the weight of a class in a value of its site.
function WeightOf(Item: PSiteClass; Value: TProfileValue): UInt64;
begin
  case Value of
    pvAllocatedCount: Result := Item^.Count;
    pvInUseCount: Result := Item^.InUseCount;
    pvInUseBytes, pvSlack, pvFragments: Result := Item^.InUseBytes;
  else
    Result := Item^.Bytes;
  end;
end;

function SitePartValue(const Profile: TProfile; const Part: TSitePart; Value: TProfileValue):
  UInt64;
var
  Each: PSiteClass;
  All, Before, Weight: UInt64;
begin
  Result := ProfileValue(Profile, Part.Site, Value);
  if Part.Item = nil then
    Exit;
  All := 0;
  Before := 0;
  Each := SiteClassesOf(Profile.Contents, Part.Site);
  while Each <> nil do
  begin
    if Each = Part.Item then
      Before := All;
    Inc(All, WeightOf(Each, Value));
    Each := Each^.Next;
  end;
  Weight := WeightOf(Part.Item, Value);
  if All > 0 then
    // Differences of rounded sums: so that they add up.
    Result := UInt64(Round(Result * ((Before + Weight) / All)) - Round(Result * (Before / All)))
  else if Part.Item <> SiteClassesOf(Profile.Contents, Part.Site) then
    Result := 0;
end;

procedure ProfileAddName(var Text: TText; Symbol: PSymbol);
begin
  if Symbol^.Address = CutFrame - 1 then
    TextAdd(Text, '(cut)')
  else if Symbol^.Routine <> nil then
    SymbolAddRoutine(Text, Symbol)
  else if Symbol^.Module <> nil then
    SymbolAddOffset(Text, Symbol)
  else
    TextAddHex(Text, Symbol^.Address, SizeOf(Symbol^.Address) * 2);
end;

procedure ProfileAddFrame(var Text: TText; Symbol: PSymbol);
var
  Name: TText;
  Characters: TPath;
begin
  // Through a text of its own: a file name may hold characters that JSON escapes.
  TextOpenAt(Name, @Characters, SizeOf(Characters));
  ProfileAddName(Name, Symbol);
  JsonAddText(Text, 'name', @Characters);
  if Symbol^.Line = 0 then
    Exit;
  JsonAddText(Text, 'file', Symbol^.FileName);
  JsonAddNumber(Text, 'line', Symbol^.Line);
end;

procedure ProfileAddStack(var Text: TText; const Profile: TProfile; Site: PSite);
var
  Stack: TBacktrace;
  Frame: NativeInt;
begin
  ProfileReadStack(Profile, Site, Stack);
  for Frame := NativeInt(Stack.Count) - 1 downto 0 do
    JsonAddItem(Text, SymbolsFind(Profile.Symbols, Stack.Frames[Frame]) - Profile.Symbols.Items);
  TextAdd(Text, ']');
end;

end.
