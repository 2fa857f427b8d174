/// The numbers of a heap as JSON.
unit HeapJson;

{$mode delphi}{$H+}

interface

uses
  fpJson, HeapImages, HeapNumbers, HeapContents, HeapDamage, HeapLeaks;

const
  /// Topics of reports: leaks, and what holds all blocks.
  LeaksTopic = 'leaks';
  HeldTopic = 'held';

/// Returns the numbers as an object of bytes and counts; the caller frees it.
function NumbersToJson(Image: THeapImage; const Numbers: THeapNumbers): TJSONObject;
/// Returns the groups as an array; the caller frees it.
function GroupsToJson(const Groups: TContentsGroups): TJSONArray;
/// Returns the damage as an array; the caller frees it.
function DamageToJson(const Damages: TDamages): TJSONArray;
/// Returns the leaks as an object of the form of a leak report, see docs/leaks.md; the caller frees it.
function LeaksToJson(Image: THeapImage; const Leaks: TLeaks; const Topic: string): TJSONObject;

implementation

uses
  SysUtils, DateUtils, LaneMM.Layout, Targets, TargetSymbols, ToolText;

// Adds numbers by their names, which have spaces between.
procedure AddNumbers(Json: TJSONObject; const Names: string; const Values: array of UInt64);
var
  Parts: TStringArray;
  Index: Integer;
begin
  Parts := Names.Split([' ']);
  for Index := 0 to High(Values) do
    Json.Add(Parts[Index], Int64(Values[Index]));
end;

function ClassToJson(const Numbers: TClassNumbers): TJSONObject;
begin
  Result := TJSONObject.Create;
  if Numbers.BlockSize > 0 then
    Result.Add('blockSize', Int64(Numbers.BlockSize));
  AddNumbers(Result, 'blocks bytes freeBlocks spans spanBytes slackBytes fullSpans partlyUsedSpans'
    + ' emptySpans owners', [Numbers.Blocks, Numbers.Bytes, Numbers.FreeBlocks, Numbers.Spans,
    Numbers.SpanBytes, SlackOf(Numbers), Numbers.FullSpans, Numbers.PartlySpans,
    Numbers.EmptySpans, Numbers.Owners]);
end;

procedure AddSpans(Json: TJSONObject; const Numbers: TThreadNumbers);
begin
  AddNumbers(Json, 'spans spanBytes blocks bytes freedByOthers', [Numbers.Spans,
    Numbers.SpanBytes, Numbers.Blocks, Numbers.Bytes, Numbers.RemoteBlocks]);
end;

function ThreadToJson(const Numbers: TThreadNumbers): TJSONObject;
begin
  Result := TJSONObject.Create(['heap', HexAddress(Numbers.Heap^.Address),
    'thread', Int64(Numbers.Heap^.Head.ThreadNumber), 'name', Numbers.Heap^.Name,
    'ended', Numbers.Heap^.IsAbandoned]);
  AddSpans(Result, Numbers);
  Result.Add('keptBytes', Int64(Numbers.KeptBytes));
end;

function RegionToJson(const Numbers: TRegionNumbers): TJSONObject;
begin
  Result := TJSONObject.Create(['name', Numbers.Name]);
  AddNumbers(Result, 'regions inside blocks bytes committedBytes peakBytes limitBytes',
    [Numbers.Regions, Numbers.Inside, Numbers.Blocks, Numbers.Bytes, Numbers.Committed,
    Numbers.Peak, Numbers.Limit]);
end;

function RunsToJson(const Runs: array of TRunNumbers): TJSONArray;
var
  Index: Integer;
begin
  Result := TJSONArray.Create;
  for Index := 0 to High(Runs) do
    if Runs[Index].Runs > 0 then
      Result.Add(TJSONObject.Create(['fromBytes', Int64(SliceSize) shl Index,
        'runs', Int64(Runs[Index].Runs), 'bytes', Int64(Runs[Index].Bytes)]));
end;

function TotalsToJson(const Numbers: THeapNumbers): TJSONObject;
begin
  Result := TJSONObject.Create;
  AddNumbers(Result, 'blocks usedBytes spanBytes committedBytes peakBytes cachedBytes'
    + ' returnedBytes reservedBytes untouchedBytes resizes moves copiedBytes contended',
    [Numbers.Blocks, Numbers.Used, Numbers.Spans, Numbers.Committed, Numbers.Peak, Numbers.Cached,
    Numbers.Returned, Numbers.Reserved, Numbers.Untouched, Numbers.Resizes, Numbers.Moves,
    Numbers.CopiedBytes, Numbers.Contended]);
end;

function NumbersToJson(Image: THeapImage; const Numbers: THeapNumbers): TJSONObject;
var
  Classes, Threads, Regions: TJSONArray;
  Unowned: TJSONObject;
  Each: TClassNumbers;
  Thread: TThreadNumbers;
  Region: TRegionNumbers;
begin
  Result := TJSONObject.Create(['process', Image.Target.ProcessId,
    'program', Printable(Image.Target.ProgramPath), 'records', Int64(Image.RecordCount),
    'changedRecords', Int64(Image.ChangedCount), 'damagedRecords', Int64(Image.DamagedCount),
    'totals', TotalsToJson(Numbers)]);
  Classes := TJSONArray.Create;
  for Each in Numbers.Classes do
    if Each.Spans > 0 then
      Classes.Add(ClassToJson(Each));
  Result.Add('classes', Classes);
  Result.Add('large', ClassToJson(Numbers.Large));
  Result.Add('debug', ClassToJson(Numbers.Debug));
  Threads := TJSONArray.Create;
  for Thread in Numbers.Threads do
    if not Thread.Heap^.IsUnused and not Thread.Heap^.IsOfRegion then
      Threads.Add(ThreadToJson(Thread));
  Result.Add('threads', Threads);
  Regions := TJSONArray.Create;
  for Region in Numbers.Regions do
    Regions.Add(RegionToJson(Region));
  Result.Add('regions', Regions);
  Unowned := TJSONObject.Create;
  AddSpans(Unowned, Numbers.Unowned);
  Result.Add('unowned', Unowned);
  Result.Add('cachedRuns', RunsToJson(Numbers.Warm));
  Result.Add('returnedRuns', RunsToJson(Numbers.Cold));
end;

function GroupsToJson(const Groups: TContentsGroups): TJSONArray;
var
  Group: TContentsGroup;
begin
  Result := TJSONArray.Create;
  for Group in Groups do
    Result.Add(TJSONObject.Create(['name', Group.Name, 'blocks', Int64(Group.Blocks),
      'bytes', Int64(Group.Bytes)]));
end;

function DamageToJson(const Damages: TDamages): TJSONArray;
var
  Damage: TDamage;
begin
  Result := TJSONArray.Create;
  for Damage in Damages do
    Result.Add(TJSONObject.Create(['address', HexAddress(Damage.Address), 'text', Damage.Text]));
end;

function FrameToJson(const Frame: TPlaceFrame): TJSONObject;
begin
  Result := TJSONObject.Create(['address', Int64(Frame.Address)]);
  if Frame.Routine <> '' then
    Result.Add('routine', Frame.Routine)
  else if Frame.Module <> '' then
    Result.Add('module', Frame.Module);
  if Frame.Line = 0 then
    Exit;
  Result.Add('file', Frame.FileName);
  Result.Add('line', Int64(Frame.Line));
end;

function PlaceToJson(const Place: TLeakPlace): TJSONObject;
var
  Frames: TJSONArray;
  Frame: TPlaceFrame;
begin
  Frames := TJSONArray.Create;
  for Frame in Place.Frames do
    Frames.Add(FrameToJson(Frame));
  Result := TJSONObject.Create(['blocks', Int64(Place.Blocks), 'bytes', Int64(Place.Bytes),
    'stack', Frames]);
end;

function LeakGroupToJson(const Leaks: TLeaks; Number: Integer): TJSONObject;
const
  MostPlaces = 10; // as reports of a process
var
  Group: TLeakGroup;
  Places: TJSONArray;
  Place: Integer;
begin
  Group := Leaks.Groups[Number];
  Result := TJSONObject.Create(['group', Number + 1, // from 1, as those of a process
    'name', Group.Name]);
  if Group.Region <> '' then
    Result.Add('region', Group.Region);
  AddNumbers(Result, 'blocks bytes retained', [Group.Blocks, Group.Bytes, Group.Retained]);
  Result.Add('texts', TJSONArray.Create);
  Result.Add('retainers', TJSONArray.Create);
  Places := TJSONArray.Create;
  for Place in PlacesOf(Leaks, Number) do
    if Places.Count < MostPlaces then
      Places.Add(PlaceToJson(Leaks.Places[Place]));
  Result.Add('places', Places);
end;

function ChainToJson(const Chain: TLeakChain): TJSONObject;
begin
  Result := TJSONObject.Create(['parent', Chain.Parent, 'group', Chain.Group + 1,
    'blocks', Int64(Chain.Blocks), 'bytes', Int64(Chain.Bytes), 'cycle', Chain.IsCycle]);
end;

function NoBlocks: TJSONObject;
begin
  Result := TJSONObject.Create(['blocks', 0, 'bytes', 0]);
end;

function LeaksToJson(Image: THeapImage; const Leaks: TLeaks; const Topic: string): TJSONObject;
var
  Groups, Chains: TJSONArray;
  Index: Integer;
begin
  Groups := TJSONArray.Create;
  for Index := 0 to High(Leaks.Groups) do
    Groups.Add(LeakGroupToJson(Leaks, Index));
  Chains := TJSONArray.Create;
  for Index := 0 to High(Leaks.Chains) do
    Chains.Add(ChainToJson(Leaks.Chains[Index]));
  Result := TJSONObject.Create(['topic', Topic, 'program', Printable(Image.Target.ProgramPath),
    'process', Image.Target.ProcessId, 'command', Printable(Image.Target.Name),
    'time', DateTimeToUnix(LocalTimeToUniversal(Now)), 'looks', Leaks.Looks,
    'threadsWithRegisters', Leaks.Threads, 'blocksInUse', Int64(Leaks.InUse),
    'blocks', Int64(Leaks.Blocks), 'bytes', Int64(Leaks.Bytes), 'suppressed', NoBlocks,
    'reachable', NoBlocks, 'groups', Groups, 'regions', GroupsToJson(Leaks.Regions),
    'retainerTree', Chains]);
end;

end.
