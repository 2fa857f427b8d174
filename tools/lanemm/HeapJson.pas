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
  SysUtils, DateUtils, LaneMM.Layout, Targets, TargetSymbols;

function ClassToJson(const Numbers: TClassNumbers): TJSONObject;
begin
  Result := TJSONObject.Create;
  if Numbers.BlockSize > 0 then
    Result.Add('blockSize', Int64(Numbers.BlockSize));
  Result.Add('blocks', Int64(Numbers.Blocks));
  Result.Add('bytes', Int64(Numbers.Bytes));
  Result.Add('freeBlocks', Int64(Numbers.FreeBlocks));
  Result.Add('spans', Int64(Numbers.Spans));
  Result.Add('spanBytes', Int64(Numbers.SpanBytes));
  Result.Add('slackBytes', Int64(SlackOf(Numbers)));
  Result.Add('fullSpans', Int64(Numbers.FullSpans));
  Result.Add('partlyUsedSpans', Int64(Numbers.PartlySpans));
  Result.Add('emptySpans', Int64(Numbers.EmptySpans));
  Result.Add('owners', Int64(Numbers.Owners));
end;

procedure AddSpans(Json: TJSONObject; const Numbers: TThreadNumbers);
begin
  Json.Add('spans', Int64(Numbers.Spans));
  Json.Add('spanBytes', Int64(Numbers.SpanBytes));
  Json.Add('blocks', Int64(Numbers.Blocks));
  Json.Add('bytes', Int64(Numbers.Bytes));
  Json.Add('freedByOthers', Int64(Numbers.RemoteBlocks));
end;

function ThreadToJson(const Numbers: TThreadNumbers): TJSONObject;
begin
  Result := TJSONObject.Create;
  Result.Add('heap', '$' + LowerCase(HexStr(Numbers.Heap^.Address, 12)));
  Result.Add('thread', Int64(Numbers.Heap^.Head.ThreadNumber));
  Result.Add('name', Numbers.Heap^.Name);
  Result.Add('ended', Numbers.Heap^.IsAbandoned);
  AddSpans(Result, Numbers);
  Result.Add('keptBytes', Int64(Numbers.KeptBytes));
end;

function RegionToJson(const Numbers: TRegionNumbers): TJSONObject;
begin
  Result := TJSONObject.Create;
  Result.Add('name', Numbers.Name);
  Result.Add('regions', Int64(Numbers.Regions));
  Result.Add('inside', Int64(Numbers.Inside));
  Result.Add('blocks', Int64(Numbers.Blocks));
  Result.Add('bytes', Int64(Numbers.Bytes));
  Result.Add('committedBytes', Int64(Numbers.Committed));
  Result.Add('peakBytes', Int64(Numbers.Peak));
  Result.Add('limitBytes', Int64(Numbers.Limit));
end;

function RunsToJson(const Runs: array of TRunNumbers): TJSONArray;
var
  Index: Integer;
  Each: TJSONObject;
begin
  Result := TJSONArray.Create;
  for Index := 0 to High(Runs) do
    if Runs[Index].Runs > 0 then
    begin
      Each := TJSONObject.Create;
      Each.Add('fromBytes', Int64(SliceSize) shl Index);
      Each.Add('runs', Int64(Runs[Index].Runs));
      Each.Add('bytes', Int64(Runs[Index].Bytes));
      Result.Add(Each);
    end;
end;

function TotalsToJson(const Numbers: THeapNumbers): TJSONObject;
begin
  Result := TJSONObject.Create;
  Result.Add('blocks', Int64(Numbers.Blocks));
  Result.Add('usedBytes', Int64(Numbers.Used));
  Result.Add('spanBytes', Int64(Numbers.Spans));
  Result.Add('committedBytes', Int64(Numbers.Committed));
  Result.Add('peakBytes', Int64(Numbers.Peak));
  Result.Add('cachedBytes', Int64(Numbers.Cached));
  Result.Add('returnedBytes', Int64(Numbers.Returned));
  Result.Add('reservedBytes', Int64(Numbers.Reserved));
  Result.Add('untouchedBytes', Int64(Numbers.Untouched));
  Result.Add('resizes', Int64(Numbers.Resizes));
  Result.Add('moves', Int64(Numbers.Moves));
  Result.Add('copiedBytes', Int64(Numbers.CopiedBytes));
  Result.Add('contended', Int64(Numbers.Contended));
end;

function NumbersToJson(Image: THeapImage; const Numbers: THeapNumbers): TJSONObject;
var
  Classes, Threads, Regions: TJSONArray;
  Unowned: TJSONObject;
  Each: TClassNumbers;
  Thread: TThreadNumbers;
  Region: TRegionNumbers;
begin
  Result := TJSONObject.Create;
  Result.Add('process', Image.Target.ProcessId);
  Result.Add('program', Printable(Image.Target.ProgramPath));
  Result.Add('records', Int64(Image.RecordCount));
  Result.Add('changedRecords', Int64(Image.ChangedCount));
  Result.Add('damagedRecords', Int64(Image.DamagedCount));
  Result.Add('totals', TotalsToJson(Numbers));
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
  Each: TJSONObject;
begin
  Result := TJSONArray.Create;
  for Group in Groups do
  begin
    Each := TJSONObject.Create;
    Each.Add('name', Group.Name);
    Each.Add('blocks', Int64(Group.Blocks));
    Each.Add('bytes', Int64(Group.Bytes));
    Result.Add(Each);
  end;
end;

function DamageToJson(const Damages: TDamages): TJSONArray;
var
  Damage: TDamage;
  Each: TJSONObject;
begin
  Result := TJSONArray.Create;
  for Damage in Damages do
  begin
    Each := TJSONObject.Create;
    Each.Add('address', '$' + LowerCase(HexStr(Damage.Address, 12)));
    Each.Add('text', Damage.Text);
    Result.Add(Each);
  end;
end;

function FrameToJson(const Frame: TPlaceFrame): TJSONObject;
begin
  Result := TJSONObject.Create;
  Result.Add('address', Int64(Frame.Address));
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
  Result := TJSONObject.Create;
  Result.Add('blocks', Int64(Place.Blocks));
  Result.Add('bytes', Int64(Place.Bytes));
  Frames := TJSONArray.Create;
  for Frame in Place.Frames do
    Frames.Add(FrameToJson(Frame));
  Result.Add('stack', Frames);
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
  Result := TJSONObject.Create;
  Result.Add('group', Number + 1); // from 1, as those of a process
  Result.Add('name', Group.Name);
  if Group.Region <> '' then
    Result.Add('region', Group.Region);
  Result.Add('blocks', Int64(Group.Blocks));
  Result.Add('bytes', Int64(Group.Bytes));
  Result.Add('retained', Int64(Group.Retained));
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
  Result := TJSONObject.Create;
  Result.Add('parent', Chain.Parent);
  Result.Add('group', Chain.Group + 1);
  Result.Add('blocks', Int64(Chain.Blocks));
  Result.Add('bytes', Int64(Chain.Bytes));
  Result.Add('cycle', Chain.IsCycle);
end;

function NoBlocks: TJSONObject;
begin
  Result := TJSONObject.Create;
  Result.Add('blocks', 0);
  Result.Add('bytes', 0);
end;

procedure AddLeakHead(Json: TJSONObject; Image: THeapImage; const Leaks: TLeaks);
begin
  Json.Add('program', Printable(Image.Target.ProgramPath));
  Json.Add('process', Image.Target.ProcessId);
  Json.Add('command', Printable(Image.Target.Name));
  Json.Add('time', DateTimeToUnix(LocalTimeToUniversal(Now)));
  Json.Add('looks', Leaks.Looks);
  Json.Add('threadsWithRegisters', Leaks.Threads);
  Json.Add('blocksInUse', Int64(Leaks.InUse));
  Json.Add('blocks', Int64(Leaks.Blocks));
  Json.Add('bytes', Int64(Leaks.Bytes));
  Json.Add('suppressed', NoBlocks);
  Json.Add('reachable', NoBlocks);
end;

function LeaksToJson(Image: THeapImage; const Leaks: TLeaks; const Topic: string): TJSONObject;
var
  Groups, Chains: TJSONArray;
  Index: Integer;
begin
  Result := TJSONObject.Create;
  Result.Add('topic', Topic);
  AddLeakHead(Result, Image, Leaks);
  Groups := TJSONArray.Create;
  for Index := 0 to High(Leaks.Groups) do
    Groups.Add(LeakGroupToJson(Leaks, Index));
  Result.Add('groups', Groups);
  Result.Add('regions', GroupsToJson(Leaks.Regions));
  Chains := TJSONArray.Create;
  for Index := 0 to High(Leaks.Chains) do
    Chains.Add(ChainToJson(Leaks.Chains[Index]));
  Result.Add('retainerTree', Chains);
end;

end.
