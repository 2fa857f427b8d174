/// What the black box says of the process: the heap, its call sites, the points in time, as JSON.
//
// Owns:       nothing; a TBoxState belongs to LaneMM.BlackBox.
// Invariants: no heap and no lock is used, and no symbol looked up: a frame is its module and the
//             place of the call in it.
// Callers:    the thread that has the black box.
unit LaneMM.BoxState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Stats, LaneMM.Text, LaneMM.ElfFile, LaneMM.CallSites,
  LaneMM.OsGroup, LaneMM.BoxThreads;

const
  /// Modules that a box names.
  MostBoxModules = 128;
  /// Regions that a box has.
  MostBoxRegions = 32;
  /// Distance of two times when the call sites in use are kept, in seconds, and number of those.
  BoxEarlierSeconds = 10;
  BoxEarlierCount = 3;

type
  /// The state at a time: bytes of blocks in use, of the heap, and allocated since the start.
  TBoxPoint = record
    Seconds: UInt64;   //< owner  since 1970
    Used: UInt64;      //< owner  usable bytes of the blocks in use
    Committed: UInt64; //< owner  memory of the heap
    Allocated: UInt64; //< owner  bytes allocated, as the samples tell
  end;
  /// The distances of points that are kept.
  TBoxRate = (raSecond, raMinute, raHour);
  PBoxPoints = ^TBoxPoints;
  /// The last points at one of them, the oldest first.
  TBoxPoints = record
    Count: NativeUInt;                 //< owner  points
    Items: array[0..59] of TBoxPoint;  //< owner  the points
  end;

  /// The code of a module.
  TBoxModule = record
    First, Limit: NativeUInt; //< owner  its addresses
    Bias: NativeUInt;         //< owner  see TElfFile
    Id: TBuildId;             //< owner  the mark of its build; Length 0: none
    Path: TPath;              //< owner  its file
  end;

  /// The call sites of a state, and for each the class of one of its blocks.
  TBoxSites = record
    Count: NativeUInt;                                      //< owner  sites
    Found: NativeUInt;                                      //< owner  of them, those with a class
    Sites: array[0..2 * MostBoxKeys - 1] of PSite;         //< owner  the sites
    ClassIds: array[0..2 * MostBoxKeys - 1] of NativeUInt; //< owner  see SampleClass
  end;

  /// The regions with most memory, most first.
  TBoxRegions = record
    Count: NativeUInt;                                  //< owner  regions
    Heaps: array[0..MostBoxRegions - 1] of PHeap;       //< owner  the heaps that describe them
    Slices: array[0..MostBoxRegions - 1] of NativeUInt; //< owner  their backed slices
  end;

  PBoxState = ^TBoxState;
  /// The memory of the box, from one state to the next. What a state is made of lies here, too: a
  /// thread that allocates may have a small stack.
  TBoxState = record
    Last: TBoxPoint;         //< owner  the state that was written last
    PeakSlices: NativeUInt;  //< owner  most backed slices that were seen
    PeakSeconds: UInt64;     //< owner  when
    Points: array[TBoxRate] of TBoxPoints; //< owner  the last points
    Group: TGroupMemory;     //< owner  the container
    GroupMs: Cardinal;       //< owner  OsNowMs when it was read
    LookedMs: Cardinal;      //< owner  OsNowMs of the last look for modules
    LacksModule: Boolean;    //< owner  a frame was in none
    ModuleCount: NativeUInt; //< owner  modules
    Modules: array[0..MostBoxModules - 1] of TBoxModule; //< owner  the modules
    Ended: UInt64;           //< owner  exit code + 1; 0: the program runs
    InUse, Peak: TBoxTop;    //< owner  call sites with most bytes in use, and at the peak
    Earlier: array[0..BoxEarlierCount - 1] of TBoxTop; //< owner  InUse of before, last one first
    Threads: TBoxThreads;    //< owner  the threads
    HeldBytes: UInt64;       //< owner  usable bytes in use of all sites
    Sites: TBoxSites;        //< owner  both
    Regions: TBoxRegions;    //< owner  the regions
    Sizes: TClassStatuses;   //< owner  blocks by size
    Name: TPath;             //< owner  the name of a class
    Elf: TElfFile;           //< owner  the file of a module
  end;

/// Looks for the modules that are loaded now.
procedure BoxFindModules(var State: TBoxState);
/// Keeps a point, at each rate whose distance to the one before has passed.
procedure BoxNotePoint(var State: TBoxState; const Point: TBoxPoint);
/// Keeps the call sites in use, where BoxEarlierSeconds have passed.
procedure BoxNoteTime(var State: TBoxState; Seconds: UInt64);
/// Adds the state of the process.
procedure BoxAddState(var Text: TText; var State: TBoxState; const Status: TStatus);

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.Threads, LaneMM.Json,
  LaneMM.ReportHead, LaneMM.Unwind, LaneMM.BoxFormat, LaneMM.ObserveState, LaneMM.SampledClasses,
  LaneMM.Samples;

const
  MostFramesOfSite = 32;
  // Characters after which no module and no site is added: what follows has space.
  ModulesLimit = BoxTextBytes div 3;
  SitesLimit = BoxTextBytes - 16384;
  NoClass = High(NativeUInt); // of a site without a sampled block in use

  RateNames: array[TBoxRate] of ShortString = ('seconds', 'minutes', 'hours');
  RateSteps: array[TBoxRate] of Cardinal = (1, 60, 3600);

// ---------------------------------------------------------------------------- modules

procedure SeeModule(const Mapping: TOsMapping; Context: Pointer);
var
  State: PBoxState;
  Module: ^TBoxModule;
begin
  State := Context;
  if not (Mapping.IsCode and Mapping.IsFile) or (State^.ModuleCount = MostBoxModules) then
    Exit;
  Module := @State^.Modules[State^.ModuleCount];
  Module^.First := Mapping.First;
  Module^.Limit := Mapping.Limit;
  Module^.Bias := Mapping.First - Mapping.FileOffset;
  Module^.Id.Length := 0;
  Module^.Path := Mapping.Path;
  if ElfFileOpen(State^.Elf, Mapping) then
  begin
    Module^.Bias := State^.Elf.Bias;
    if not ElfFileBuildId(State^.Elf, Module^.Id) then
      Module^.Id.Length := 0;
    ElfFileClose(State^.Elf);
  end;
  Inc(State^.ModuleCount);
end;

procedure BoxFindModules(var State: TBoxState);
begin
  State.ModuleCount := 0;
  State.LacksModule := False;
  State.LookedMs := OsNowMs;
  OsVisitMappings(SeeModule, @State);
end;

// Returns the module whose code has the address; MostBoxModules: none.
function ModuleOf(const State: TBoxState; Address: NativeUInt): NativeUInt;
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(State.ModuleCount) - 1 do
    if (Address >= State.Modules[Index].First) and (Address < State.Modules[Index].Limit) then
      Exit(Index);
  Result := MostBoxModules;
end;

procedure AddModules(var Text: TText; const State: TBoxState);
var
  Index, Digit: NativeInt;
begin
  JsonOpen(Text, 'modules', '[');
  for Index := 0 to NativeInt(State.ModuleCount) - 1 do
  begin
    if Text.Length > ModulesLimit then
      Break;
    JsonOpenLine(Text);
    JsonAddText(Text, 'path', @State.Modules[Index].Path);
    if State.Modules[Index].Id.Length > 0 then
    begin
      JsonAddKey(Text, 'build_id');
      TextAdd(Text, '"');
      for Digit := 0 to NativeInt(State.Modules[Index].Id.Length) - 1 do
        TextAddHex(Text, State.Modules[Index].Id.Bytes[Digit], 2);
      TextAdd(Text, '"');
    end;
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

// ---------------------------------------------------------------------------- sites

procedure ListAdd(var Listed: TBoxSites; const Top: TBoxTop);
var
  Index, Before: NativeInt;
  IsNew: Boolean;
begin
  for Index := 0 to NativeInt(Top.Count) - 1 do
  begin
    IsNew := True;
    for Before := 0 to NativeInt(Listed.Count) - 1 do
      IsNew := IsNew and (NativeUInt(Listed.Sites[Before]) <> Top.Keys[Index]);
    if not IsNew then
      Continue;
    Listed.Sites[Listed.Count] := PSite(Top.Keys[Index]);
    Listed.ClassIds[Listed.Count] := NoClass;
    Inc(Listed.Count);
  end;
end;

// Adds the bytes to the thread of the block; takes its class for its site, unless it has one.
procedure SeeSample(const Sample: TSample; Context: Pointer);
var
  Listed: ^TBoxSites;
  Index: NativeInt;
begin
  // The record of a thread that has ended has no number, or that of the next thread that uses it.
  if (Sample.Heap <> nil) and (Sample.Heap^.ThreadNumber <> 0) then
    BoxAddOfThread(PBoxState(Context)^.Threads, Sample.Heap^.ThreadNumber,
      Sample.Bytes + NativeUInt(Sample.UsableSize - Sample.Size) * Sample.Count);
  Listed := @PBoxState(Context)^.Sites;
  if Listed^.Found = Listed^.Count then
    Exit;
  for Index := 0 to NativeInt(Listed^.Count) - 1 do
    if (Listed^.Sites[Index] = Sample.Site) and (Listed^.ClassIds[Index] = NoClass) then
    begin
      Listed^.ClassIds[Index] := SampleClass(Sample);
      Inc(Listed^.Found);
    end;
end;

// Returns the usable bytes in use of a site: what the samples stand for, with the slack.
function HeldBytes(Site: PSite): NativeUInt;
begin
  Result := Remaining(Site^.Bytes, Site^.FreedBytes) + Remaining(Site^.Slack, Site^.FreedSlack);
end;

// Returns those at the peak. Where that is past, their slack is estimated by that of all blocks of
// the site.
function PeakHeldBytes(Site: PSite; out Count: NativeUInt): NativeUInt;
var
  All: NativeUInt;
begin
  SitePeak(Site, Count, Result);
  if Result = Remaining(Site^.Bytes, Site^.FreedBytes) then
    Exit(HeldBytes(Site));
  All := LoadAcquire(Site^.Bytes);
  if All <> 0 then
    Inc(Result, NativeUInt(Trunc(Result / All * LoadAcquire(Site^.Slack))));
end;

procedure FindSites(var State: TBoxState);
var
  Site: PSite;
  Count: NativeUInt;
begin
  State.InUse.Count := 0;
  State.Peak.Count := 0;
  State.Sites.Count := 0;
  State.Sites.Found := 0;
  State.HeldBytes := 0;
  FillChar(State.Threads.Sums, SizeOf(State.Threads.Sums), 0);
  if LoadAcquire(Observe.SiteKeys) = 0 then
    Exit;
  Site := nil;
  while SiteNext(Site) do
    if Site^.Kind = siAllocation then
    begin
      BoxTopAdd(State.InUse, NativeUInt(Site), HeldBytes(Site));
      Inc(State.HeldBytes, HeldBytes(Site));
      BoxTopAdd(State.Peak, NativeUInt(Site), PeakHeldBytes(Site, Count));
    end;
  ListAdd(State.Sites, State.InUse);
  ListAdd(State.Sites, State.Peak);
  Observe.HoldBlocks;
  SamplesVisit(SeeSample, @State);
  Observe.LetGoBlocks;
end;

// Adds a frame as reports name those without symbols: the module and the place of the call in it.
procedure AddFrame(var Text: TText; var State: TBoxState; Return: NativeUInt);
var
  Module: NativeUInt;
begin
  JsonAddComma(Text);
  TextAdd(Text, '"');
  Module := ModuleOf(State, Return - 1);
  if Return = CutFrame then
    TextAdd(Text, '(cut)')
  else if Module = MostBoxModules then
  begin
    State.LacksModule := True;
    TextAddHex(Text, Return - 1, 1);
  end
  else
  begin
    TextAddJson(Text, TextFileName(@State.Modules[Module].Path));
    TextAdd(Text, '+0x');
    TextAddHex(Text, Return - 1 - State.Modules[Module].Bias, 1);
  end;
  TextAdd(Text, '"');
end;

procedure AddSite(var Text: TText; var State: TBoxState; Site: PSite; ClassId: NativeUInt);
var
  Name: TText;
  Count, Bytes, Before: NativeUInt;
  Frame: NativeInt;
begin
  JsonOpenLine(Text);
  if ClassId <> NoClass then
  begin
    TextOpenAt(Name, @State.Name, SizeOf(State.Name));
    ClassIdAddName(Name, ClassId);
    JsonAddText(Text, 'class', @State.Name);
  end;
  JsonAddNumber(Text, 'blocks', Remaining(Site^.Count, Site^.FreedCount));
  JsonAddNumber(Text, 'bytes', HeldBytes(Site));
  Bytes := PeakHeldBytes(Site, Count);
  JsonAddNumber(Text, 'peak_blocks', Count);
  JsonAddNumber(Text, 'peak_bytes', Bytes);
  Before := BoxTopFind(State.Earlier[BoxEarlierCount - 1], NativeUInt(Site));
  if Before < State.Earlier[BoxEarlierCount - 1].Count then
    JsonAddNumber(Text, 'earlier_bytes', State.Earlier[BoxEarlierCount - 1].Bytes[Before]);
  JsonOpen(Text, 'stack', '[');
  for Frame := 0 to NativeInt(Site^.Stack.Count) - 1 do
    if Frame < MostFramesOfSite then
      AddFrame(Text, State, Site^.Stack.Frames[Frame]);
  TextAdd(Text, ']}');
end;

// ---------------------------------------------------------------------------- the heap

procedure AddHeap(var Text: TText; const State: TBoxState; const Status: TStatus);
begin
  JsonOpen(Text, 'heap', '{');
  JsonAddNumber(Text, 'used', Status.UsedBytes);
  JsonAddNumber(Text, 'blocks', Status.Small.BlockCount + Status.Medium.BlockCount
    + Status.Large.BlockCount);
  JsonAddNumber(Text, 'committed', Status.CommittedBytes);
  JsonAddNumber(Text, 'cached', Status.CachedBytes);
  JsonAddNumber(Text, 'peak', UInt64(State.PeakSlices) * SliceSize);
  JsonAddNumber(Text, 'peak_time', State.PeakSeconds);
  JsonAddNumber(Text, 'limit', UInt64(Process.Limits[lkHard].Slices) * SliceSize);
  JsonAddNumber(Text, 'limit_soft', UInt64(Process.Limits[lkSoft].Slices) * SliceSize);
  JsonAddNumber(Text, 'limit_container', State.Group.Limit);
  JsonAddNumber(Text, 'container', State.Group.Used);
  JsonAddNumber(Text, 'threads', State.Threads.Total);
  JsonAddNumber(Text, 'earlier_time', State.Earlier[BoxEarlierCount - 1].Seconds);
  JsonAddNumber(Text, 'sampled_in_use', State.HeldBytes);
  TextAdd(Text, '}');
end;

procedure AddSizes(var Text: TText; var State: TBoxState);
var
  Index: Cardinal;
begin
  ClassStatusRead(State.Sizes);
  JsonOpen(Text, 'sizes', '[');
  for Index := 0 to High(State.Sizes) do
  begin
    if State.Sizes[Index].SpanBytes = 0 then
      Continue;
    JsonOpenItem(Text);
    JsonAddNumber(Text, 'size', State.Sizes[Index].BlockSize);
    JsonAddNumber(Text, 'blocks', State.Sizes[Index].BlockCount);
    JsonAddNumber(Text, 'span_bytes', State.Sizes[Index].SpanBytes);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

// Adds a region, if it is one of those with most memory.
procedure ListRegion(var Regions: TBoxRegions; Heap: PHeap);
var
  Slices, Index: NativeUInt;
begin
  Slices := LoadAcquire(Heap^.Data.Slices);
  if Regions.Count < MostBoxRegions then
    Inc(Regions.Count)
  else if Slices <= Regions.Slices[MostBoxRegions - 1] then
    Exit;
  Index := Regions.Count - 1;
  while (Index > 0) and (Regions.Slices[Index - 1] < Slices) do
  begin
    Regions.Heaps[Index] := Regions.Heaps[Index - 1];
    Regions.Slices[Index] := Regions.Slices[Index - 1];
    Dec(Index);
  end;
  Regions.Heaps[Index] := Heap;
  Regions.Slices[Index] := Slices;
end;

procedure AddRegions(var Text: TText; var Regions: TBoxRegions);
var
  Heap: PHeap;
  Index: NativeInt;
begin
  Regions.Count := 0;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    if (Heap^.Region = Heap) and (LoadAcquire(Heap^.Data.Made) <> RegionEnded) then
      ListRegion(Regions, Heap);
    Heap := Heap^.NextHeap;
  end;
  JsonOpen(Text, 'regions', '[');
  for Index := 0 to NativeInt(Regions.Count) - 1 do
  begin
    Heap := Regions.Heaps[Index];
    JsonOpenItem(Text);
    JsonAddText(Text, 'name', @Heap^.Data.Name);
    JsonAddNumber(Text, 'committed', UInt64(Regions.Slices[Index]) * SliceSize);
    JsonAddNumber(Text, 'peak', UInt64(Heap^.Data.Peak) * SliceSize);
    JsonAddNumber(Text, 'limit', UInt64(Heap^.Data.Limit) * SliceSize);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

// Adds the points of a rate as lists of [seconds, used, committed, allocated].
procedure AddPoints(var Text: TText; const Points: TBoxPoints; const Name: ShortString);
var
  Index: NativeInt;
begin
  JsonOpen(Text, Name, '[');
  for Index := 0 to NativeInt(Points.Count) - 1 do
  begin
    JsonAddComma(Text);
    TextAdd(Text, '[');
    JsonAddItem(Text, Points.Items[Index].Seconds);
    JsonAddItem(Text, Points.Items[Index].Used);
    JsonAddItem(Text, Points.Items[Index].Committed);
    JsonAddItem(Text, Points.Items[Index].Allocated);
    TextAdd(Text, ']');
  end;
  TextAdd(Text, ']');
end;

// ---------------------------------------------------------------------------- the state

// Sets a time back, at most to 0.
procedure SetBack(var Seconds: UInt64; Distance: UInt64);
begin
  if Distance > Seconds then
    Distance := Seconds;
  Dec(Seconds, Distance);
end;

// Where the clock was set back, earlier points count as if it had been so before: otherwise none
// would be kept until it has caught up.
procedure SetPointsBack(Points: PBoxPoints; Seconds: UInt64);
var
  Index: NativeInt;
  Last: UInt64;
begin
  if Points^.Count = 0 then
    Exit;
  Last := Points^.Items[Points^.Count - 1].Seconds;
  if Last > Seconds then
    for Index := 0 to NativeInt(Points^.Count) - 1 do
      SetBack(Points^.Items[Index].Seconds, Last - Seconds);
end;

procedure BoxNotePoint(var State: TBoxState; const Point: TBoxPoint);
var
  Rate: TBoxRate;
  Points: PBoxPoints;
begin
  for Rate := Low(TBoxRate) to High(TBoxRate) do
  begin
    Points := @State.Points[Rate];
    SetPointsBack(Points, Point.Seconds);
    if (Points^.Count > 0)
      and (Point.Seconds < Points^.Items[Points^.Count - 1].Seconds + RateSteps[Rate]) then
      Continue;
    if Points^.Count = Length(Points^.Items) then
    begin
      Move(Points^.Items[1], Points^.Items[0], SizeOf(Points^.Items) - SizeOf(TBoxPoint));
      Dec(Points^.Count);
    end;
    Points^.Items[Points^.Count] := Point;
    Inc(Points^.Count);
  end;
end;

procedure BoxNoteTime(var State: TBoxState; Seconds: UInt64);
var
  Index: Cardinal;
  Last: UInt64;
begin
  Last := State.Earlier[0].Seconds;
  if Last > Seconds then // likewise
    for Index := 0 to BoxEarlierCount - 1 do
      SetBack(State.Earlier[Index].Seconds, Last - Seconds);
  if Seconds < State.Earlier[0].Seconds + BoxEarlierSeconds then
    Exit;
  if State.Earlier[0].Seconds = 0 then // the process begins: nothing is in use
    for Index := 0 to BoxEarlierCount - 1 do
      State.Earlier[Index].Seconds := Seconds;
  for Index := BoxEarlierCount - 1 downto 1 do
    State.Earlier[Index] := State.Earlier[Index - 1];
  State.Earlier[0] := State.InUse;
  State.Earlier[0].Seconds := Seconds;
end;

procedure BoxAddState(var Text: TText; var State: TBoxState; const Status: TStatus);
var
  Rate: TBoxRate;
  Index: NativeInt;
begin
  TextAdd(Text, '{"format":"lanemm-box","version":2,"head":{');
  HeadAddJson(Text);
  if State.Ended <> 0 then
    JsonAddNumber(Text, 'exit_code', State.Ended - 1);
  TextAdd(Text, '}');
  FindSites(State);
  BoxFindThreads(State.Threads);
  AddHeap(Text, State, Status);
  AddSizes(Text, State);
  AddRegions(Text, State.Regions);
  BoxAddThreads(Text, State.Threads);
  for Rate := Low(TBoxRate) to High(TBoxRate) do
    AddPoints(Text, State.Points[Rate], RateNames[Rate]);
  AddModules(Text, State);
  JsonOpen(Text, 'sites', '[');
  for Index := 0 to NativeInt(State.Sites.Count) - 1 do
    if Text.Length <= SitesLimit then
      AddSite(Text, State, State.Sites.Sites[Index], State.Sites.ClassIds[Index]);
  TextAdd(Text, ']}'#10);
end;

end.
