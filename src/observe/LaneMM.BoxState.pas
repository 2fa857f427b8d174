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
  LaneMM.Layout, LaneMM.Stats, LaneMM.Text, LaneMM.ElfFile;

const
  /// Modules that a box names.
  MostBoxModules = 128;

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

  PBoxState = ^TBoxState;
  /// The memory of the box, from one state to the next.
  TBoxState = record
    Last: TBoxPoint;         //< owner  the state that was written last
    PeakSlices: NativeUInt;  //< owner  most backed slices that were seen
    PeakSeconds: UInt64;     //< owner  when
    Points: array[TBoxRate] of TBoxPoints; //< owner  the last points
    LookedMs: Cardinal;      //< owner  OsNowMs of the last look for modules
    LacksModule: Boolean;    //< owner  a frame was in none
    ModuleCount: NativeUInt; //< owner  modules
    Modules: array[0..MostBoxModules - 1] of TBoxModule; //< owner  the modules
  end;

/// Looks for the modules that are loaded now.
procedure BoxFindModules(var State: TBoxState);
/// Keeps a point, at each rate whose distance to the one before has passed.
procedure BoxNotePoint(var State: TBoxState; const Point: TBoxPoint);
/// Adds the state of the process.
procedure BoxAddState(var Text: TText; var State: TBoxState; const Status: TStatus);

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Threads, LaneMM.Json, LaneMM.ReportHead,
  LaneMM.Unwind, LaneMM.ObserveState, LaneMM.CallSites, LaneMM.SampledClasses, LaneMM.Samples;

const
  // The call sites with most bytes in use, and as many of those with most at the peak.
  MostSites = 24;
  MostFramesOfSite = 32;
  MostRegions = 32;
  NoClass = High(NativeUInt); // of a site without a sampled block in use

type
  // Sites, those with most bytes first.
  TTop = record
    Count: NativeUInt;
    Sites: array[0..MostSites - 1] of PSite;
    Bytes: array[0..MostSites - 1] of NativeUInt;
  end;
  // What is listed: the sites, and for each the class of one of its blocks.
  PListed = ^TListed;
  TListed = record
    Count, Found: NativeUInt;
    Sites: array[0..2 * MostSites - 1] of PSite;
    ClassIds: array[0..2 * MostSites - 1] of NativeUInt;
  end;

const
  RateNames: array[TBoxRate] of ShortString = ('seconds', 'minutes', 'hours');
  RateSteps: array[TBoxRate] of Cardinal = (1, 60, 3600);

// ---------------------------------------------------------------------------- modules

procedure SeeModule(const Mapping: TOsMapping; Context: Pointer);
var
  State: PBoxState;
  Module: ^TBoxModule;
  Elf: TElfFile;
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
  if ElfFileOpen(Elf, Mapping) then
  begin
    Module^.Bias := Elf.Bias;
    if not ElfFileBuildId(Elf, Module^.Id) then
      Module^.Id.Length := 0;
    ElfFileClose(Elf);
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
begin
  for Result := 0 to NativeInt(State.ModuleCount) - 1 do
    if (Address >= State.Modules[Result].First) and (Address < State.Modules[Result].Limit) then
      Exit;
  Result := MostBoxModules;
end;

procedure AddModules(var Text: TText; const State: TBoxState);
var
  Index, Digit: NativeInt;
begin
  JsonOpen(Text, 'modules', '[');
  for Index := 0 to NativeInt(State.ModuleCount) - 1 do
  begin
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

procedure TopAdd(var Top: TTop; Site: PSite; Bytes: NativeUInt);
var
  Index: NativeUInt;
begin
  if (Bytes = 0) or (Top.Count = MostSites) and (Bytes <= Top.Bytes[MostSites - 1]) then
    Exit;
  if Top.Count < MostSites then
    Inc(Top.Count);
  Index := Top.Count - 1;
  while (Index > 0) and (Top.Bytes[Index - 1] < Bytes) do
  begin
    Top.Sites[Index] := Top.Sites[Index - 1];
    Top.Bytes[Index] := Top.Bytes[Index - 1];
    Dec(Index);
  end;
  Top.Sites[Index] := Site;
  Top.Bytes[Index] := Bytes;
end;

procedure ListAdd(var Listed: TListed; const Top: TTop);
var
  Index, Before: NativeInt;
  IsNew: Boolean;
begin
  for Index := 0 to NativeInt(Top.Count) - 1 do
  begin
    IsNew := True;
    for Before := 0 to NativeInt(Listed.Count) - 1 do
      IsNew := IsNew and (Listed.Sites[Before] <> Top.Sites[Index]);
    if not IsNew then
      Continue;
    Listed.Sites[Listed.Count] := Top.Sites[Index];
    Listed.ClassIds[Listed.Count] := NoClass;
    Inc(Listed.Count);
  end;
end;

// Takes the class of the block for its site, unless it has one.
procedure SeeSample(const Sample: TSample; Context: Pointer);
var
  Listed: PListed;
  Index: NativeInt;
begin
  Listed := Context;
  if Listed^.Found = Listed^.Count then
    Exit;
  for Index := 0 to NativeInt(Listed^.Count) - 1 do
    if (Listed^.Sites[Index] = Sample.Site) and (Listed^.ClassIds[Index] = NoClass) then
    begin
      Listed^.ClassIds[Index] := SampleClass(Sample);
      Inc(Listed^.Found);
    end;
end;

procedure FindSites(out Listed: TListed);
var
  InUse, Peak: TTop;
  Index: Cardinal;
  Site: PSite;
  Count, Bytes: NativeUInt;
begin
  Listed := Default(TListed);
  InUse := Default(TTop);
  Peak := Default(TTop);
  if LoadAcquire(Observe.SiteKeys) = 0 then
    Exit;
  for Index := 0 to SiteLimit - 1 do
  begin
    Site := SiteAt(Index);
    if (Site = nil) or (Site^.Kind <> siAllocation) then
      Continue;
    TopAdd(InUse, Site, Remaining(Site^.Bytes, Site^.FreedBytes));
    SitePeak(Site, Count, Bytes);
    TopAdd(Peak, Site, Bytes);
  end;
  ListAdd(Listed, InUse);
  ListAdd(Listed, Peak);
  Observe.HoldBlocks;
  SamplesVisit(SeeSample, @Listed);
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
  Characters: TPath;
  Count, Bytes: NativeUInt;
  Frame: NativeInt;
begin
  JsonOpenLine(Text);
  if ClassId <> NoClass then
  begin
    TextOpenAt(Name, @Characters, SizeOf(Characters));
    ClassIdAddName(Name, ClassId);
    JsonAddText(Text, 'class', @Characters);
  end;
  JsonAddNumber(Text, 'blocks', Remaining(Site^.Count, Site^.FreedCount));
  JsonAddNumber(Text, 'bytes', Remaining(Site^.Bytes, Site^.FreedBytes));
  SitePeak(Site, Count, Bytes);
  JsonAddNumber(Text, 'peak_blocks', Count);
  JsonAddNumber(Text, 'peak_bytes', Bytes);
  JsonOpen(Text, 'stack', '[');
  for Frame := 0 to NativeInt(Site^.Stack.Count) - 1 do
    if Frame < MostFramesOfSite then
      AddFrame(Text, State, Site^.Stack.Frames[Frame]);
  TextAdd(Text, ']}');
end;

procedure AddSites(var Text: TText; var State: TBoxState);
var
  Listed: TListed;
  Index: NativeInt;
begin
  FindSites(Listed);
  JsonOpen(Text, 'sites', '[');
  for Index := 0 to NativeInt(Listed.Count) - 1 do
    AddSite(Text, State, Listed.Sites[Index], Listed.ClassIds[Index]);
  TextAdd(Text, ']');
end;

// ---------------------------------------------------------------------------- the heap

procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  Inc(PUInt64(Context)^);
end;

procedure AddHeap(var Text: TText; const State: TBoxState; const Status: TStatus);
var
  Threads: UInt64;
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
  Threads := 0;
  OsVisitThreads(CountThread, @Threads);
  JsonAddNumber(Text, 'threads', Threads);
  JsonAddNumber(Text, 'sampled_in_use', LoadAcquire(Observe.InUseBytes));
  TextAdd(Text, '}');
end;

procedure AddClasses(var Text: TText);
var
  Statuses: TClassStatuses;
  Index: Cardinal;
begin
  ClassStatusRead(Statuses);
  JsonOpen(Text, 'sizes', '[');
  for Index := 0 to High(Statuses) do
  begin
    if Statuses[Index].SpanBytes = 0 then
      Continue;
    JsonOpenItem(Text);
    JsonAddNumber(Text, 'size', Statuses[Index].BlockSize);
    JsonAddNumber(Text, 'blocks', Statuses[Index].BlockCount);
    JsonAddNumber(Text, 'span_bytes', Statuses[Index].SpanBytes);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

procedure AddRegions(var Text: TText);
var
  Heap: PHeap;
  Count: Cardinal;
begin
  JsonOpen(Text, 'regions', '[');
  Count := 0;
  Heap := ThreadsFirstHeap;
  while (Heap <> nil) and (Count < MostRegions) do
  begin
    if (Heap^.Region = Heap) and (LoadAcquire(Heap^.Data.Made) <> RegionEnded) then
    begin
      JsonOpenItem(Text);
      JsonAddText(Text, 'name', @Heap^.Data.Name);
      JsonAddNumber(Text, 'committed', UInt64(LoadAcquire(Heap^.Data.Slices)) * SliceSize);
      JsonAddNumber(Text, 'peak', UInt64(Heap^.Data.Peak) * SliceSize);
      JsonAddNumber(Text, 'limit', UInt64(Heap^.Data.Limit) * SliceSize);
      TextAdd(Text, '}');
      Inc(Count);
    end;
    Heap := Heap^.NextHeap;
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

procedure Note(var Points: TBoxPoints; const Point: TBoxPoint; Step: Cardinal);
begin
  if (Points.Count > 0) and (Point.Seconds < Points.Items[Points.Count - 1].Seconds + Step) then
    Exit;
  if Points.Count = Length(Points.Items) then
  begin
    Move(Points.Items[1], Points.Items[0], SizeOf(Points.Items) - SizeOf(TBoxPoint));
    Dec(Points.Count);
  end;
  Points.Items[Points.Count] := Point;
  Inc(Points.Count);
end;

procedure BoxNotePoint(var State: TBoxState; const Point: TBoxPoint);
var
  Rate: TBoxRate;
begin
  for Rate := Low(TBoxRate) to High(TBoxRate) do
    Note(State.Points[Rate], Point, RateSteps[Rate]);
end;

procedure BoxAddState(var Text: TText; var State: TBoxState; const Status: TStatus);
var
  Rate: TBoxRate;
begin
  TextAdd(Text, '{"format":"lanemm-box","version":1,"head":{');
  HeadAddJson(Text);
  TextAdd(Text, '}');
  AddHeap(Text, State, Status);
  AddClasses(Text);
  AddRegions(Text);
  for Rate := Low(TBoxRate) to High(TBoxRate) do
    AddPoints(Text, State.Points[Rate], RateNames[Rate]);
  AddModules(Text, State);
  AddSites(Text, State);
  TextAdd(Text, '}');
  TextAdd(Text, LineEnd);
end;

end.
