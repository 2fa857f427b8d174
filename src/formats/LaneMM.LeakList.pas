/// The data of a leak report, ready to be written in any format.
//
// Owns:       the memory of each TLeakList.
// Callers:    any thread; a TLeakList belongs to one. Allocates nothing from the heap.
unit LaneMM.LeakList;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.BacktraceText, LaneMM.Unwind, LaneMM.Places, LaneMM.Retainers,
  LaneMM.Snapshot;

const
  /// Maximum number of links of a chain of retainers that are reported.
  ChainLimit = PathDepth + 2;
  /// Maximum number of places of a group that are reported, and of backtraces of a place.
  MostPlaces = 10;
  MostStacks = 100;

type
  /// The subject of a report.
  TLeakTopic = (
    ltLeaks,   //< blocks that were not freed
    ltInUse,   //< blocks in use now
    ltGrown    //< growth between two snapshots
  );

  PLeakList = ^TLeakList;
  /// The groups of a snapshot. Leaks: first those that nothing retains, by what they retain; the
  /// others, and all groups of another topic, in descending order of bytes.
  TLeakList = record
    Topic: TLeakTopic;       //< subject of the report
    Snapshot: TSnapshot;     //< blocks in use and their groups
    Retainers: TRetainers;   //< chains of retainers, if HasRetainers
    HasRetainers: Boolean;   //< Retainers is open
    IsUnknown: Boolean;      //< no block is listed, and some were not examined: they may be leaks
    Symbolizer: TSymbolizer; //< symbols of the places that are reported
    Order: PCardinal;        //< numbers of the groups
    Count: Cardinal;         //< length of Order
    PlaceCount: Cardinal;    //< places, before those of one line were joined
    Blocks: NativeUInt;      //< blocks of all groups
    Bytes: NativeUInt;       //< their bytes
  end;

  /// Groups of blocks, each a retainer of the next.
  TChain = record
    Links: array[0..ChainLimit - 1] of Cardinal; //< numbers of the groups
    Count: Cardinal;                             //< links in use
  end;

/// Lists the groups of Snapshot, which the list takes over, and finds the retainers of its blocks.
/// A snapshot that SnapshotOpen could not take has none.
procedure LeakListOpen(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
/// LeakListOpen of groups alone: needs no nodes, finds no retainers.
procedure LeakListOpenGroups(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
/// Releases the memory, that of the snapshot too.
procedure LeakListClose(var List: TLeakList);
/// Returns the group at Index of the list.
function LeakGroup(const List: TLeakList; Index: Cardinal): PGroup;
/// Returns the place of the group at Index with most bytes after Last, or of all if Last is nil;
/// nil when there is none.
function LeakPlace(const List: TLeakList; Index: Cardinal; Last: PPlace): PPlace;
/// Moves Path, the last link of a chain of retainers of the group at Index, to the next one by
/// descending bytes, from nil to the first; returns whether there is one. A cycle is found once,
/// for all that it retains.
function LeakRetainer(const List: TLeakList; Index: Cardinal; var Path: PRetainerPath): Boolean;
/// Returns the number of blocks of the group at Index in all these chains.
function LeakRetainedCount(const List: TLeakList; Index: Cardinal): NativeUInt;
/// Lists the groups above the last link of Path, outermost first; of a cycle its links, back to the
/// first one; of stale items the links down to their container.
procedure LeakChain(const List: TLeakList; Path: PRetainerPath; out Chain: TChain);
/// Returns True if Path begins with a cycle that has an interface among its references.
function LeakCycleHasInterface(const List: TLeakList; Path: PRetainerPath): Boolean;
/// Adds the name of a group of the list: its class, kind of string, or size.
procedure LeakAddName(var Text: TText; const List: TLeakList; Group: PGroup);

implementation

uses
  LaneMM.Atomic, LaneMM.BacktraceTable, LaneMM.Contents, LaneMM.Modules, LaneMM.Advice,
  LaneMM.Groups, LaneMM.RetainedSizes;

function LeakGroup(const List: TLeakList; Index: Cardinal): PGroup;
begin
  Result := List.Snapshot.Groups + List.Order[Index];
end;

// Returns the first link of the chain.
function RootOf(const List: TLeakList; Path: PRetainerPath): PRetainerPath;
begin
  Result := Path;
  while Result^.Parent <> NoPath do
    Result := List.Retainers.Paths + Result^.Parent;
end;

// Counts the nodes of Path, in a cycle, for an earlier path with the same group and cycle, if there
// is one: a report names the cycle only.
procedure JoinCycle(const List: TLeakList; Path: PRetainerPath);
var
  Earlier, Root: PRetainerPath;
begin
  Root := RootOf(List, Path);
  Earlier := Root;
  while (Earlier < Path)
    and ((Earlier^.Group <> Path^.Group) or (RootOf(List, Earlier) <> Root)) do
    Inc(Earlier);
  if Earlier = Path then
    Exit;
  Inc(Earlier^.Count, Path^.Count);
  Inc(Earlier^.Bytes, Path^.Bytes);
  Path^.Count := 0;
  Path^.Bytes := 0;
end;

function LeakPlace(const List: TLeakList; Index: Cardinal; Last: PPlace): PPlace;
begin
  Result := PlacesNext(List.Snapshot.Places^, LeakGroup(List, Index)^.Place, Last);
end;

type
  TVisitPlace = procedure(var List: TLeakList; Place: PPlace; const Stack: TBacktrace);

// Calls Visit for each place with blocks.
procedure VisitPlaces(var List: TLeakList; Visit: TVisitPlace);
var
  Index: NativeInt;
  Number: Cardinal;
  Place: PPlace;
  Stack: TBacktrace;
begin
  for Index := 0 to NativeInt(List.Count) - 1 do
  begin
    Number := LeakGroup(List, Index)^.Place;
    while Number <> NoPlace do
    begin
      Place := @List.Snapshot.Places^.Items[Number];
      if (Place^.Count + Place^.Bytes > 0) and BacktraceRead(Place^.Stack, Stack) then
        Visit(List, Place, Stack);
      Number := Place^.Next;
    end;
  end;
end;

procedure CountPlace(var List: TLeakList; Place: PPlace; const Stack: TBacktrace);
begin
  Inc(List.PlaceCount);
end;

procedure AddPlace(var List: TLeakList; Place: PPlace; const Stack: TBacktrace);
begin
  SymbolizerAdd(List.Symbolizer, Stack);
end;

procedure NumberText(var List: TLeakList; Place: PPlace; const Stack: TBacktrace);
begin
  Place^.TextNumber := BacktraceTextHash(List.Symbolizer.Symbols, Stack);
end;

// The line that a report names; the address, where it is not known.
procedure NumberLine(var List: TLeakList; Place: PPlace; const Stack: TBacktrace);
begin
  Place^.TextNumber := BacktraceFrameKey(List.Symbolizer.Symbols,
    AdvicePlace(List.Symbolizer.Symbols, Stack));
end;

// Returns the line, and the region, of a group of unknown contents whose blocks have one backtrace;
// 0 of another.
function LineOf(const List: TLeakList; Group: PGroup): UInt64;
begin
  Result := 0;
  if (Group^.Stack <> 0) and (Group^.Place <> NoPlace) then
    Result := List.Snapshot.Places^.Items[Group^.Place].TextNumber xor Group^.Region;
end;

// Joins the groups of unknown contents of one line: their sizes differ, or the callers of the line.
procedure JoinLines(var List: TLeakList);
var
  Index, Earlier: NativeInt;
  Line: UInt64;
begin
  for Index := 1 to NativeInt(List.Count) - 1 do
  begin
    Line := LineOf(List, LeakGroup(List, Index));
    Earlier := 0;
    while (Line <> 0) and (Earlier < Index) and (LineOf(List, LeakGroup(List, Earlier)) <> Line) do
      Inc(Earlier);
    if (Line <> 0) and (Earlier < Index) then
      SnapshotJoin(List.Snapshot, List.Order[Earlier], List.Order[Index]);
  end;
  SnapshotJoined(List.Snapshot);
end;

// Symbolizes the backtraces, and makes the groups those that a report has.
procedure FindTraces(var List: TLeakList);
begin
  List.Order := SnapshotOrder(List.Snapshot, False, List.Count);
  VisitPlaces(List, CountPlace);
  SymbolizerOpen(List.Symbolizer, List.PlaceCount);
  VisitPlaces(List, AddPlace);
  SymbolizerResolve(List.Symbolizer);
  VisitPlaces(List, NumberLine);
  JoinLines(List);
end;

// Lists the groups and sums them up. After the search for retainers, if there is one.
procedure ListGroups(var List: TLeakList);
var
  Index: NativeInt;
begin
  List.Order := SnapshotOrder(List.Snapshot, List.Topic = ltLeaks, List.Count);
  for Index := 0 to NativeInt(List.Count) - 1 do
  begin
    Inc(List.Blocks, LeakGroup(List, Index)^.Count);
    Inc(List.Bytes, LeakGroup(List, Index)^.Bytes);
  end;
  List.IsUnknown := (List.Blocks = 0) and (List.Snapshot.LostCount > 0);
  // Places of a group that would read the same: an unrolled loop has a return address for each call
  // in one line. Then those of one line.
  VisitPlaces(List, NumberText);
  PlacesJoin(List.Snapshot.Places^);
  VisitPlaces(List, NumberLine);
  PlacesJoin(List.Snapshot.Places^);
end;

procedure TakeOver(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
begin
  List := Default(TLeakList);
  List.Topic := Topic;
  List.Snapshot := Snapshot;
  Snapshot := Default(TSnapshot);
end;

procedure LeakListOpenGroups(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
begin
  TakeOver(List, Snapshot, Topic);
  FindTraces(List);
  ListGroups(List);
end;

procedure LeakListOpen(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
var
  Number: NativeInt;
begin
  TakeOver(List, Snapshot, Topic);
  List.IsUnknown := List.Snapshot.LostCount > 0;
  if List.Snapshot.Groups = nil then
    Exit;
  FindTraces(List);
  List.HasRetainers := RetainersOpen(List.Retainers, List.Snapshot);
  for Number := 1 to NativeInt(List.Retainers.PathCount) - 1 do
    if List.Retainers.Paths[Number].IsCycle then
      JoinCycle(List, List.Retainers.Paths + Number);
  ListGroups(List);
end;

procedure LeakListClose(var List: TLeakList);
begin
  SymbolizerClose(List.Symbolizer);
  if List.HasRetainers then
    RetainersClose(List.Retainers);
  SnapshotClose(List.Snapshot);
end;

// ---------------------------------------------------------------------------- retainers

// Returns True if the path is one of the group at Index that has blocks, and retainers, a container
// or a cycle to report.
function SaysWho(const List: TLeakList; Index: Cardinal; Path: PRetainerPath): Boolean;
begin
  Result := (Path^.Group = List.Order[Index]) and (Path^.Count > 0)
    and ((Path^.Parent <> NoPath) or (Path^.Container <> 0) or Path^.IsCycle);
end;

// Without retainers there are no paths.
function LeakRetainer(const List: TLeakList; Index: Cardinal; var Path: PRetainerPath): Boolean;
var
  Candidate, Last: PRetainerPath;
  Number: NativeInt;
begin
  Last := Path;
  Path := nil;
  for Number := 1 to NativeInt(List.Retainers.PathCount) - 1 do
  begin
    Candidate := List.Retainers.Paths + Number;
    // Only paths after the last one: of fewer bytes, or as many and a higher number.
    if SaysWho(List, Index, Candidate) and ((Last = nil) or (Candidate^.Bytes < Last^.Bytes)
      or (Candidate^.Bytes = Last^.Bytes) and (Candidate > Last))
      and ((Path = nil) or (Candidate^.Bytes > Path^.Bytes)) then
      Path := Candidate;
  end;
  Result := Path <> nil;
end;

function LeakRetainedCount(const List: TLeakList; Index: Cardinal): NativeUInt;
var
  Number: NativeInt;
begin
  Result := 0;
  for Number := 1 to NativeInt(List.Retainers.PathCount) - 1 do
    if SaysWho(List, Index, List.Retainers.Paths + Number) then
      Inc(Result, List.Retainers.Paths[Number].Count);
end;

procedure AddLink(var Chain: TChain; Group: Cardinal);
begin
  if Chain.Count = ChainLimit then
    Exit;
  Chain.Links[Chain.Count] := Group;
  Inc(Chain.Count);
end;

procedure Reverse(var Chain: TChain);
var
  First, Last: NativeInt;
  Kept: Cardinal;
begin
  First := 0;
  Last := NativeInt(Chain.Count) - 1;
  while First < Last do
  begin
    Kept := Chain.Links[First];
    Chain.Links[First] := Chain.Links[Last];
    Chain.Links[Last] := Kept;
    Inc(First);
    Dec(Last);
  end;
end;

// Follows the retainers from Entry until Entry is met again. Data between objects are left out, and
// a chain of blocks of one group is one link.
procedure AddCycle(const List: TLeakList; Entry: Cardinal; var Chain: TChain);
var
  Index, Group: Cardinal;
begin
  AddLink(Chain, List.Snapshot.Nodes[Entry].Group);
  Index := List.Snapshot.Nodes[Entry].Retainer;
  while (Index <> Entry) and (Index <> NoNode) and (Chain.Count < ChainLimit - 1) do
  begin
    Group := List.Snapshot.Nodes[Index].Group;
    if (NodeIsData(List.Snapshot, Entry) or not NodeIsData(List.Snapshot, Index))
      and (Group <> Chain.Links[Chain.Count - 1]) then
      AddLink(Chain, Group);
    Index := List.Snapshot.Nodes[Index].Retainer;
  end;
  AddLink(Chain, List.Snapshot.Nodes[Entry].Group);
end;

procedure LeakChain(const List: TLeakList; Path: PRetainerPath; out Chain: TChain);
begin
  Chain.Count := 0;
  if Path^.IsCycle then
    AddCycle(List, RootOf(List, Path)^.First, Chain)
  else
  begin
    if Path^.Container <> 0 then
    begin
      AddLink(Chain, Path^.Container);
      Path := List.Retainers.Paths + List.Snapshot.Nodes[
        List.Snapshot.Nodes[Path^.First].Retainer].Path;
    end;
    while Path^.Parent <> NoPath do
    begin
      Path := List.Retainers.Paths + Path^.Parent;
      AddLink(Chain, Path^.Group);
    end;
  end;
  Reverse(Chain);
end;

type
  // A node, and whether a word of its retainer is an interface of it.
  TInterfaceLook = record
    Node: PNode;
    Index: Cardinal;
    Found: Boolean;
  end;

// An interface points to a word of the object after the first, which is the address of its methods.
procedure SeeInterface(Index: Cardinal; Place: NativeUInt; Context: Pointer);
var
  Look: ^TInterfaceLook;
  Address: NativeUInt;
begin
  Look := Context;
  if Look^.Found or (Index <> Look^.Index) or (Place and (SizeOf(Pointer) - 1) <> 0) then
    Exit;
  Address := LoadAcquire(PNativeUInt(Place)^); // once: a thread may be writing it
  // The compiler takes a difference with SizeOf for signed.
  if (NativeUInt(Address - NativeUInt(Look^.Node^.Address) - 1)
    < NativeUInt(Look^.Node^.Size - SizeOf(Pointer)))
    and (Address and (SizeOf(Pointer) - 1) = 0) then
    Look^.Found := ModulesHaveData(PNativeUInt(Address)^, SizeOf(Pointer));
end;

// Returns True if the node's retainer has a word that is an interface of the node.
function RetainedByInterface(const Snapshot: TSnapshot; Index: Cardinal): Boolean;
var
  Look: TInterfaceLook;
  Retainer: PNode;
begin
  Look.Node := Snapshot.Nodes + Index;
  Look.Index := Index;
  Look.Found := False;
  if (Look.Node^.Retainer = NoNode)
    or (Snapshot.Groups[Look.Node^.Group].Kind <> coObject) then
    Exit(False);
  Retainer := Snapshot.Nodes + Look.Node^.Retainer;
  RetainersSee(Snapshot, NativeUInt(Retainer^.Address),
    NativeUInt(Retainer^.Address) + Retainer^.Size, SeeInterface, @Look);
  Result := Look.Found;
end;

function LeakCycleHasInterface(const List: TLeakList; Path: PRetainerPath): Boolean;
var
  Entry, Index, Steps: Cardinal;
begin
  Result := False;
  if not Path^.IsCycle then
    Exit;
  Entry := RootOf(List, Path)^.First;
  Index := Entry;
  Steps := 0;
  repeat
    Result := RetainedByInterface(List.Snapshot, Index);
    Index := List.Snapshot.Nodes[Index].Retainer;
    Inc(Steps);
  until Result or (Index = Entry) or (Index = NoNode) or (Steps = List.Snapshot.NodeCount);
end;

// ---------------------------------------------------------------------------- names

// Adds a name for blocks of unknown contents.
procedure AddSizes(var Text: TText; Group: PGroup);
begin
  if Group^.Least = Group^.Most then
    TextAddForm(Text, '%g-byte block', Group^.Most)
  else
    TextAddForm(Text, 'block of %g to %g byte%+', Group^.Least, Group^.Most);
end;

procedure LeakAddName(var Text: TText; const List: TLeakList; Group: PGroup);
begin
  if Group = List.Snapshot.Groups then
  begin
    TextAdd(Text, 'block of another kind');
    Exit;
  end;
  case Group^.Kind of
    coObject:
      ClassAddName(Text, Group^.ClassId);
    coUnknown:
      AddSizes(Text, Group);
  else
    TextAddChars(Text, ContentsNames[Group^.Kind]);
  end;
  if Group^.Region = 0 then
    Exit;
  TextAdd(Text, ' in region "');
  GroupAddRegion(Text, Group^.Allocation);
  TextAdd(Text, '"');
end;

end.
