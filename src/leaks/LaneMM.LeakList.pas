/// What a leak report tells, ready to be written in any format.
//
// Owns:       the room of each TLeakList.
// Callers:    any thread; a TLeakList belongs to one. Takes no memory of the heap.
unit LaneMM.LeakList;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Text, LaneMM.BacktraceText, LaneMM.Unwind, LaneMM.Retainers, LaneMM.Snapshot;


const
  /// Most links of a chain of holders that are shown.
  ChainLimit = PathDepth + 2;

type
  /// What the list is about.
  TLeakTopic = (
    ltLeaks,   //< what was not freed
    ltInUse,   //< what is in use now
    ltGrown    //< what is in use now and was not before
  );

  /// The groups of a census, those with most bytes first.
  TLeakList = record
    Topic: TLeakTopic;     //< what it is about
    Snapshot: TSnapshot;       //< what is in use
    Retainers: TRetainers;     //< who holds what
    HasRetainers: Boolean;   //< that is known
    Symbolizer: TSymbolizer;       //< names of the code
    Order: PCardinal;      //< numbers of the groups
    Count: Cardinal;       //< how many
    Blocks: NativeUInt;    //< in all groups
    Bytes: NativeUInt;     //< of them
  end;

  /// Groups, one holding the next.
  TChain = record
    Links: array[0..ChainLimit - 1] of Cardinal; //< numbers of groups
    Count: Cardinal;                             //< how many
  end;

/// Lists the groups of the census, which the list takes over, and finds the holders of its blocks.
procedure LeakListOpen(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
/// The same for groups alone, without nodes.
procedure LeakListOpenGroups(out List: TLeakList; const Snapshot: TSnapshot; Topic: TLeakTopic);
/// Gives the room back; of the census only if the list has nodes.
procedure LeakListClose(var List: TLeakList);
/// The group at Index of the list.
function LeakGroup(const List: TLeakList; Index: Cardinal): PGroup;
/// Where a block of the group was got, or nil.
function LeakStack(Group: PGroup; out Stack: TBacktrace): Boolean;
/// The chain of holders of the group at Index that leads to most bytes, behind those of rank Rank;
/// Path is its last link. False when there is none.
function LeakRetainer(const List: TLeakList; Index, Rank: Cardinal; out Path: PRetainerPath): Boolean;
/// The groups above the last link of Path, from the first on; in a cycle: once round.
procedure LeakChain(const List: TLeakList; Path: PRetainerPath; out Chain: TChain);
/// Whether an interface is part of the cycle that Path begins with.
function LeakCycleHasInterface(const List: TLeakList; Path: PRetainerPath): Boolean;
/// Adds the name of a group: class, kind of string, or its size.
procedure LeakAddName(var Text: TText; Group: PGroup);
/// Adds the names of a chain with arrows between.
procedure LeakAddChain(var Text: TText; const List: TLeakList; const Chain: TChain);

implementation

uses
  LaneMM.BacktraceTable, LaneMM.Contents;

function LeakGroup(const List: TLeakList; Index: Cardinal): PGroup;
begin
  Result := List.Snapshot.Groups + List.Order[Index];
end;

function LeakStack(Group: PGroup; out Stack: TBacktrace): Boolean;
begin
  Result := BacktraceRead(Group^.First.Stack, Stack);
end;

procedure FindTraces(var List: TLeakList);
var
  Stack: TBacktrace;
  Index: NativeInt;
begin
  SymbolizerOpen(List.Symbolizer, List.Count);
  for Index := 0 to NativeInt(List.Count) - 1 do
    if LeakStack(LeakGroup(List, Index), Stack) then
      SymbolizerAdd(List.Symbolizer, Stack);
  SymbolizerResolve(List.Symbolizer);
end;

procedure LeakListOpenGroups(out List: TLeakList; const Snapshot: TSnapshot; Topic: TLeakTopic);
var
  Index: NativeInt;
begin
  List := Default(TLeakList);
  List.Topic := Topic;
  List.Snapshot := Snapshot;
  List.Order := SnapshotOrder(List.Snapshot, List.Count);
  for Index := 0 to NativeInt(List.Count) - 1 do
  begin
    Inc(List.Blocks, LeakGroup(List, Index)^.Count);
    Inc(List.Bytes, LeakGroup(List, Index)^.Bytes);
  end;
  FindTraces(List);
end;

procedure LeakListOpen(out List: TLeakList; var Snapshot: TSnapshot; Topic: TLeakTopic);
begin
  LeakListOpenGroups(List, Snapshot, Topic);
  List.HasRetainers := RetainersOpen(List.Retainers, List.Snapshot);
  Snapshot := Default(TSnapshot);
end;

procedure LeakListClose(var List: TLeakList);
begin
  SymbolizerClose(List.Symbolizer);
  if not List.HasRetainers then
    Exit;
  RetainersClose(List.Retainers);
  SnapshotClose(List.Snapshot);
end;

// ---------------------------------------------------------------------------- holders

// Whether the path says more about its group than that it is there.
function SaysWho(Path: PRetainerPath): Boolean;
begin
  Result := (Path^.Count > 0) and ((Path^.Parent <> NoPath) or Path^.IsCycle);
end;

function LeakRetainer(const List: TLeakList; Index, Rank: Cardinal; out Path: PRetainerPath): Boolean;
var
  Candidate, Last: PRetainerPath;
  Number: NativeInt;
begin
  Path := nil;
  Last := nil;
  if List.HasRetainers then
    repeat
      Path := nil;
      for Number := 1 to NativeInt(List.Retainers.PathCount) - 1 do
      begin
        Candidate := List.Retainers.Paths + Number;
        if (Candidate^.Group <> List.Order[Index]) or not SaysWho(Candidate) then
          Continue;
        // Those behind the last one, in the order of bytes, then of number.
        if ((Last = nil) or (Candidate^.Bytes < Last^.Bytes)
          or (Candidate^.Bytes = Last^.Bytes) and (Candidate > Last))
          and ((Path = nil) or (Candidate^.Bytes > Path^.Bytes)) then
          Path := Candidate;
      end;
      Last := Path;
      Dec(Rank);
    until (Path = nil) or (Rank = High(Rank));
  Result := Path <> nil;
end;

// The first link of the chain.
function RootOf(const List: TLeakList; Path: PRetainerPath): PRetainerPath;
begin
  Result := Path;
  while Result^.Parent <> NoPath do
    Result := List.Retainers.Paths + Result^.Parent;
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

// From the entry upwards, holder by holder, until the entry is met again.
procedure AddCycle(const List: TLeakList; Entry: Cardinal; var Chain: TChain);
var
  Index: Cardinal;
  Node: PNode;
begin
  AddLink(Chain, List.Snapshot.Nodes[Entry].Group);
  Index := List.Snapshot.Nodes[Entry].Retainer;
  while (Index <> Entry) and (Index <> NoNode) and (Chain.Count < ChainLimit - 1) do
  begin
    Node := List.Snapshot.Nodes + Index;
    if not (List.Snapshot.Groups[Node^.Group].Kind in [coUnknown, coDynamicArray]) then
      AddLink(Chain, Node^.Group);
    Index := Node^.Retainer;
  end;
  AddLink(Chain, List.Snapshot.Nodes[Entry].Group);
end;

procedure LeakChain(const List: TLeakList; Path: PRetainerPath; out Chain: TChain);
begin
  Chain.Count := 0;
  if Path^.IsCycle then
    AddCycle(List, RootOf(List, Path)^.First, Chain)
  else
    while Path^.Parent <> NoPath do
    begin
      Path := List.Retainers.Paths + Path^.Parent;
      AddLink(Chain, Path^.Group);
    end;
  Reverse(Chain);
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

procedure AddBlockName(var Text: TText; const Contents: ShortString; Size: NativeUInt);
begin
  TextAdd(Text, Contents);
  TextAddGrouped(Text, Size);
  TextAdd(Text, '-byte block');
end;

procedure LeakAddName(var Text: TText; Group: PGroup);
begin
  case Group^.Kind of
    coObject:
      ClassAddName(Text, Group^.ClassId);
    coAnsiString:
      TextAdd(Text, 'AnsiString');
    coUnicodeString:
      TextAdd(Text, 'UnicodeString');
    coDynamicArray:
      AddBlockName(Text, 'dynamic array in a ', Group^.BlockSize);
    coUnknown:
      AddBlockName(Text, '', Group^.BlockSize);
  end;
end;

procedure LeakAddChain(var Text: TText; const List: TLeakList; const Chain: TChain);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Chain.Count) - 1 do
  begin
    if Index > 0 then
      TextAdd(Text, ' -> ');
    LeakAddName(Text, List.Snapshot.Groups + Chain.Links[Index]);
  end;
end;

end.
