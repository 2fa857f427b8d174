/// Retainers and retained sizes: a conservative search through the blocks of a snapshot.
//
// Owns:       Retainer, Path, IsRetained, IsSeen and Entry of TNode; the memory of each TRetainers.
// Invariants: a block references every block that one of its words points into, but for the items
//             that a container no longer counts: these are stale, and retain nothing. A word is
//             aligned; one at any byte, as in a packed record, counts for blocks that no aligned
//             one points into. The search
//             begins with the blocks without a reference to them and is breadth first: each block
//             is reached once, on a shortest chain, and counts for that retainer alone, so
//             nothing counts twice. The blocks that it does not reach are parts of cycles, or
//             referenced from these: each cycle is entered once.
// Callers:    any thread; reads blocks of the snapshot only. LaneMM in the process, and lanemm for
//             another one or a core file.
// Source:     Boehm and Weiser, "Garbage Collection in an Uncooperative Environment", Software:
//             Practice and Experience 18 (1988).
unit LaneMM.Retainers;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Snapshot;

const
  /// No path: above the first link of a chain; also where all PathLimit paths are in use.
  NoPath = 0;
  /// Maximum number of paths.
  PathLimit = 16384;
  /// Maximum number of links of a path.
  PathDepth = 16;

type
  PRetainerPath = ^TRetainerPath;
  /// A chain of retainers by their groups, from a block without a retainer or the entry of a cycle
  /// to a last link. Blocks of data between objects are left out.
  TRetainerPath = record
    Parent: Cardinal;     //< the chain without its last link, or NoPath
    Group: Cardinal;      //< group of the last link
    Depth: Cardinal;      //< number of links
    NextStale: Cardinal;  //< next chain of one link with a Container, or NoPath; of NoPath itself
                          //  the first
    First: Cardinal;      //< the first node found on this path
    Count: NativeUInt;    //< nodes on this path
    Bytes: NativeUInt;    //< their bytes
    Container: Cardinal;  //< group of a container that no longer counts First; 0: none. Its nodes
                          //  alone: what they retain is on the path without one
    IsCycle: Boolean;     //< the chain begins in a cycle
  end;

  /// The paths of a snapshot.
  TRetainers = record
    Paths: PRetainerPath;   //< all paths
    PathCount: Cardinal;    //< number of paths, NoPath included
    Slots: PCardinal;       //< hash table of their numbers
    CycleCount: NativeUInt; //< cycles without a retainer outside
    Queue: PCardinal;       //< nodes in the order of the search
    QueueCount: Cardinal;   //< nodes in the queue
    Size: NativeUInt;       //< bytes at Paths, those of Slots and Queue included
  end;

  /// Visits the node that the word at Place points into.
  TSeeNode = procedure(Index: Cardinal; Place: NativeUInt; Context: Pointer);

/// Finds the retainer, path and retained size of each node that counts, and the retained size of
/// their groups. False, and nothing set, without memory.
function RetainersOpen(out Retainers: TRetainers; var Snapshot: TSnapshot): Boolean;
/// Releases the memory.
procedure RetainersClose(var Retainers: TRetainers);
/// Sets State in all nodes that count and are reachable from the words from First up to Limit.
/// Before RetainersOpen. Takes no memory.
procedure RetainersMark(var Snapshot: TSnapshot; First, Limit: NativeUInt; State: TNodeState);
/// From here on the search takes each byte for the first of a pointer, as those of packed records
/// may be. Sets State in what the nodes that have it lead to so; False, and nothing changes, if no
/// node counts any more. The words from which the marks began are the caller's to mark again.
function RetainersPack(var Snapshot: TSnapshot; State: TNodeState): Boolean;
/// Returns the blocks of a path and their bytes as a tree of retainers shows them: items that no
/// container counts any more, which have a path of their own, are at the one of their group.
procedure RetainersSumPath(const Retainers: TRetainers; Number: Cardinal; out Count,
  Bytes: NativeUInt);
/// RetainersMark for what one word points to, any number.
procedure RetainersMarkWord(var Snapshot: TSnapshot; Word: NativeUInt; State: TNodeState);
/// Calls See for each node that a word from First up to Limit points into.
procedure RetainersSee(const Snapshot: TSnapshot; First, Limit: NativeUInt; See: TSeeNode;
  Context: Pointer);
/// RetainersSee for the words of a node, without items that its container does not count.
procedure RetainersSeeNode(const Snapshot: TSnapshot; Index: Cardinal; See: TSeeNode;
  Context: Pointer);

implementation

uses
  LaneMM.Bits, LaneMM.Os, LaneMM.OsProcess, LaneMM.RetainedSizes;

const
  PathSlots = PathLimit * 2;

type
  // The state of RetainersMark. Next is a node whose words are to be seen, or NoNode; Path of each
  // leads to another one.
  TMarking = record
    Snapshot: ^TSnapshot;
    State: TNodeState;
    Next: Cardinal;
  end;
  PMarking = ^TMarking;

  // The state of the search for retainers; Retainer is searched now, IsStale: for stale items.
  TSearch = record
    Snapshot: ^TSnapshot;
    Retainers: ^TRetainers;
    Retainer: Cardinal;
    IsStale: Boolean;
    HasPacked: Boolean; // packed words alone lead to a node
  end;
  PSearch = ^TSearch;

// ---------------------------------------------------------------------------- words

// RetainersSee of words here: copies, of words Offset bytes farther on, or those of this process.
procedure SeeWords(const Snapshot: TSnapshot; First, Limit: PByte; Offset: NativeUInt;
  See: TSeeNode; Context: Pointer);
const
  Steps: array[Boolean] of NativeUInt = (SizeOf(NativeUInt), 1);
var
  Lowest, Bytes, Word, Step: NativeUInt;
  Start, Past: PByte;
  Index: Cardinal;
begin
  if Snapshot.NodeCount = 0 then
    Exit;
  Lowest := NativeUInt(Snapshot.Nodes^.Address);
  Bytes := NativeUInt(Snapshot.Nodes[Snapshot.NodeCount - 1].Address)
    + Snapshot.Nodes[Snapshot.NodeCount - 1].Size - Lowest + 1; // the last may be of no bytes
  Step := Steps[Snapshot.IsPacked];
  Start := First;
  Past := First;
  if (Offset <> 0) or (NativeUInt(Limit - First) < OsPageSize) then
    Past := Limit; // nothing smaller than a page is protected
  Dec(Limit, SizeOf(Word) - 1); // where no whole word begins any more
  while First < Limit do
    if First >= Past then
      Past := OsNextWords(Start, Limit, First)
    else
    begin
      Word := PNativeUInt(First)^;
      if NativeUInt(Word - Lowest) < Bytes then
      begin
        Index := SnapshotNodeAt(Snapshot, Word);
        if Index <> NoNode then
          See(Index, NativeUInt(First) + Offset, Context);
      end;
      Inc(First, Step);
    end;
end;

// RetainersSee of words elsewhere: of pages that can be read. A packed word may lie in two
// portions.
procedure SeeWordsElsewhere(const Snapshot: TSnapshot; First, Limit: NativeUInt; See: TSeeNode;
  Context: Pointer);
var
  Words: array[0..4095] of NativeUInt;
  Bytes, Got: NativeUInt;
begin
  while First < Limit do
  begin
    Bytes := Limit - First;
    if Bytes > SizeOf(Words) then
      Bytes := SizeOf(Words);
    Got := Snapshot.Read(First, @Words, Bytes, Snapshot.Source);
    SeeWords(Snapshot, @Words, PByte(@Words) + Got, First - NativeUInt(@Words), See, Context);
    if Got < Bytes then // on behind the page that cannot be read
      Bytes := Snapshot.Next((First + Got) and not NativeUInt(OsPageSize - 1) + OsPageSize, Limit,
        Snapshot.Source) - First
    else if Snapshot.IsPacked and (Bytes = SizeOf(Words)) then
      Dec(Bytes, SizeOf(NativeUInt));
    Inc(First, Bytes);
  end;
end;

procedure RetainersSee(const Snapshot: TSnapshot; First, Limit: NativeUInt; See: TSeeNode;
  Context: Pointer);
begin
  if @Snapshot.Read = nil then
    SeeWords(Snapshot, PByte(First), PByte(Limit), 0, See, Context)
  else
    SeeWordsElsewhere(Snapshot, First, Limit, See, Context);
end;

// Returns the end of what the node references.
function ReferencesLimit(Node: PNode): NativeUInt;
begin
  Result := NativeUInt(Node^.Address) + Node^.Size - Node^.Spare * SizeOf(Pointer);
end;

procedure RetainersSeeNode(const Snapshot: TSnapshot; Index: Cardinal; See: TSeeNode;
  Context: Pointer);
begin
  RetainersSee(Snapshot, NativeUInt(Snapshot.Nodes[Index].Address),
    ReferencesLimit(Snapshot.Nodes + Index), See, Context);
end;

// ---------------------------------------------------------------------------- marks

procedure MarkNode(Index: Cardinal; Place: NativeUInt; Context: Pointer);
var
  Marking: PMarking;
  Node: PNode;
begin
  Marking := Context;
  Node := Marking^.Snapshot^.Nodes + Index;
  if Node^.State <> nsCounted then
    Exit;
  Node^.State := Marking^.State;
  Node^.Path := Marking^.Next;
  Marking^.Next := Index;
end;

// Marks the node at Index, unless that is NoNode, and all that the marked ones lead to.
procedure MarkFrom(var Marking: TMarking; Index: Cardinal);
begin
  if Index <> NoNode then
    MarkNode(Index, 0, @Marking);
  while Marking.Next <> NoNode do
  begin
    Index := Marking.Next;
    Marking.Next := Marking.Snapshot^.Nodes[Index].Path;
    RetainersSeeNode(Marking.Snapshot^, Index, MarkNode, @Marking);
  end;
end;

procedure RetainersMark(var Snapshot: TSnapshot; First, Limit: NativeUInt; State: TNodeState);
var
  Marking: TMarking;
begin
  Marking.Snapshot := @Snapshot;
  Marking.State := State;
  Marking.Next := NoNode;
  RetainersSee(Snapshot, First, Limit, MarkNode, @Marking);
  MarkFrom(Marking, NoNode);
end;

procedure RetainersMarkWord(var Snapshot: TSnapshot; Word: NativeUInt; State: TNodeState);
var
  Marking: TMarking;
begin
  Marking.Snapshot := @Snapshot;
  Marking.State := State;
  Marking.Next := NoNode;
  MarkFrom(Marking, SnapshotNodeAt(Snapshot, Word));
end;

function RetainersPack(var Snapshot: TSnapshot; State: TNodeState): Boolean;
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
    Snapshot.IsPacked := Snapshot.IsPacked or (Snapshot.Nodes[Index].State = nsCounted);
  Result := Snapshot.IsPacked;
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    if Result and (Node^.State = State) then
      RetainersMark(Snapshot, NativeUInt(Node^.Address), ReferencesLimit(Node), State);
  end;
end;

// ---------------------------------------------------------------------------- paths

// Returns the slot of the path like Sought, or the free slot for it.
function FindPathSlot(const Retainers: TRetainers; const Sought: TRetainerPath): PCardinal;
var
  Index: Cardinal;
  Path: PRetainerPath;
begin
  Index := ((NativeUInt(Sought.Parent) shl 13 xor NativeUInt(Sought.Container) shl 3
    xor NativeUInt(Sought.Group) shl 1 xor NativeUInt(Ord(Sought.IsCycle))) * SpreadFactor)
    shr (SizeOf(Pointer) * 4) mod PathSlots;
  repeat
    Result := Retainers.Slots + Index;
    Path := Retainers.Paths + Result^;
    if (Result^ = NoPath) or (Path^.Parent = Sought.Parent) and (Path^.Group = Sought.Group)
      and (Path^.IsCycle = Sought.IsCycle) and (Path^.Container = Sought.Container) then
      Exit;
    Index := (Index + 1) mod PathSlots;
  until False;
end;

// Returns the path like Sought, which has Parent, Group, Container and IsCycle, a new one if there
// is none; NoPath when the table is full.
function FindPath(var Retainers: TRetainers; const Sought: TRetainerPath): Cardinal;
var
  Slot: PCardinal;
  Path: PRetainerPath;
begin
  Slot := FindPathSlot(Retainers, Sought);
  Result := Slot^;
  if (Result <> NoPath) or (Retainers.PathCount = PathLimit) then
    Exit;
  Result := Retainers.PathCount;
  Inc(Retainers.PathCount);
  Slot^ := Result;
  Path := Retainers.Paths + Result;
  Path^ := Sought;
  Path^.Depth := Retainers.Paths[Sought.Parent].Depth + 1;
  Path^.First := NoNode;
  if (Sought.Container <> 0) and (Sought.Parent = NoPath) then
  begin
    Path^.NextStale := Retainers.Paths^.NextStale;
    Retainers.Paths^.NextStale := Result;
  end;
end;

// Returns the path of a stale item as one of its group at the start of a chain.
function PathOutside(var Retainers: TRetainers; const Path: TRetainerPath): Cardinal;
var
  Plain: TRetainerPath;
begin
  Plain := Default(TRetainerPath);
  Plain.Parent := Path.Parent;
  Plain.Group := Path.Group;
  Plain.IsCycle := Path.IsCycle;
  Result := FindPath(Retainers, Plain);
end;

// Sets the path of a node, from that of its retainer.
procedure SetPath(var Retainers: TRetainers; const Snapshot: TSnapshot; Index: Cardinal);
var
  Node: PNode;
  Retainer: Cardinal;
  Path: TRetainerPath;
  Parent: PRetainerPath;
begin
  Node := Snapshot.Nodes + Index;
  Retainer := RetainerShown(Snapshot, Index);
  Path := Default(TRetainerPath);
  if Retainer <> NoNode then
    Path.Parent := Snapshot.Nodes[Retainer].Path;
  if Retainers.Paths[Path.Parent].Container <> 0 then
    Path.Parent := PathOutside(Retainers, Retainers.Paths[Path.Parent]);
  Parent := Retainers.Paths + Path.Parent;
  Path.Group := Node^.Group;
  Path.IsCycle := (Node^.Entry = neCycle) or Parent^.IsCycle;
  if Node^.Entry = neStale then
  begin
    PathOutside(Retainers, Path);
    Path.Container := Snapshot.Nodes[Node^.Retainer].Group;
  end;
  if (Path.Parent <> NoPath)
    and ((Parent^.Group = Path.Group) or (Parent^.Depth = PathDepth)) then
    Node^.Path := Path.Parent // a chain of blocks of one group is one link
  else
    Node^.Path := FindPath(Retainers, Path);
  Inc(Retainers.Paths[Node^.Path].Count);
  Inc(Retainers.Paths[Node^.Path].Bytes, Node^.Size);
  if Retainers.Paths[Node^.Path].First = NoNode then
    Retainers.Paths[Node^.Path].First := Index;
end;

procedure RetainersSumPath(const Retainers: TRetainers; Number: Cardinal; out Count,
  Bytes: NativeUInt);
var
  Path, Other: PRetainerPath;
begin
  Path := Retainers.Paths + Number;
  Count := Path^.Count;
  Bytes := Path^.Bytes;
  if Path^.Container <> 0 then
  begin
    Count := 0;
    Bytes := 0;
  end
  else if Path^.Parent = NoPath then
  begin
    Other := Retainers.Paths + Retainers.Paths^.NextStale;
    while Other <> Retainers.Paths do
    begin
      if (Other^.Group = Path^.Group) and (Other^.IsCycle = Path^.IsCycle) then
      begin
        Inc(Count, Other^.Count);
        Inc(Bytes, Other^.Bytes);
      end;
      Other := Retainers.Paths + Other^.NextStale;
    end;
  end;
end;

// ---------------------------------------------------------------------------- the search

procedure Reach(var Search: TSearch; Index: Cardinal);
begin
  Search.Snapshot^.Nodes[Index].IsSeen := True;
  if Search.Snapshot^.Nodes[Index].Entry <> neStale then
    Search.Snapshot^.Nodes[Index].Retainer := Search.Retainer;
  Search.Retainers^.Queue[Search.Retainers^.QueueCount] := Index;
  Inc(Search.Retainers^.QueueCount);
  SetPath(Search.Retainers^, Search.Snapshot^, Index);
end;

procedure NoteHeld(Index: Cardinal; Place: NativeUInt; Context: Pointer);
var
  Search: PSearch;
  Node: PNode;
begin
  Search := Context;
  Node := Search^.Snapshot^.Nodes + Index;
  if (Index = Search^.Retainer) or (Node^.State <> nsCounted)
    or (Search^.IsStale or Search^.Snapshot^.IsPacked)
    and (Node^.IsRetained or (Node^.Entry <> neNone)) then
    Exit;
  if Search^.IsStale then
    Node^.Entry := neStale
  else
    Node^.IsRetained := True;
  Search^.HasPacked := Search^.HasPacked or Search^.Snapshot^.IsPacked;
  Node^.Retainer := Search^.Retainer;
end;

procedure ReachHeld(Index: Cardinal; Place: NativeUInt; Context: Pointer);
var
  Search: PSearch;
begin
  Search := Context;
  if not Search^.Snapshot^.Nodes[Index].IsSeen
    and (Search^.Snapshot^.Nodes[Index].State = nsCounted) then
    Reach(Search^, Index);
end;

// Continues the search from the nodes in the queue, from First on, until it is exhausted.
procedure Spread(var Search: TSearch; First: Cardinal);
begin
  while First < Search.Retainers^.QueueCount do
  begin
    Search.Retainer := Search.Retainers^.Queue[First];
    RetainersSeeNode(Search.Snapshot^, Search.Retainer, ReachHeld, @Search);
    Inc(First);
  end;
end;

procedure FindHeld(var Search: TSearch);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Search.Snapshot^.NodeCount) - 1 do
    if Search.Snapshot^.Nodes[Index].State = nsCounted then
    begin
      Search.Retainer := Index;
      RetainersSeeNode(Search.Snapshot^, Index, NoteHeld, @Search);
    end;
end;

// Finds the nodes that stale items alone reference. After FindHeld.
procedure FindStale(var Search: TSearch);
var
  Index: NativeInt;
  Node: PNode;
begin
  Search.IsStale := True;
  for Index := 0 to NativeInt(Search.Snapshot^.NodeCount) - 1 do
  begin
    Node := Search.Snapshot^.Nodes + Index;
    if (Node^.State <> nsCounted) or (Node^.Spare = 0) then
      Continue;
    Search.Retainer := Node^.Container;
    RetainersSee(Search.Snapshot^, ReferencesLimit(Node),
      NativeUInt(Node^.Address) + Node^.Size, NoteHeld, @Search);
  end;
end;

procedure SearchFromRoots(var Search: TSearch);
var
  Index: NativeInt;
begin
  Search.Retainer := NoNode;
  for Index := 0 to NativeInt(Search.Snapshot^.NodeCount) - 1 do
    if (Search.Snapshot^.Nodes[Index].State = nsCounted)
      and not Search.Snapshot^.Nodes[Index].IsRetained then
      Reach(Search, Index);
  Spread(Search, 0);
end;

// Returns a node of the cycle that the retainers of Index lead to; NoNode when there is none, as
// another thread has changed the blocks since they were read. Entry marks the way and is reset.
function FindCycle(const Snapshot: TSnapshot; Index: Cardinal): Cardinal;
var
  Marked: Cardinal;
begin
  Result := Index;
  while (Result <> NoNode) and not Snapshot.Nodes[Result].IsSeen
    and (Snapshot.Nodes[Result].Entry = neNone) do
  begin
    Snapshot.Nodes[Result].Entry := neCycle;
    Result := Snapshot.Nodes[Result].Retainer;
  end;
  if (Result <> NoNode) and Snapshot.Nodes[Result].IsSeen then
    Result := NoNode;
  Marked := Index;
  while (Marked <> NoNode) and (Snapshot.Nodes[Marked].Entry = neCycle) do
  begin
    Snapshot.Nodes[Marked].Entry := neNone;
    Marked := Snapshot.Nodes[Marked].Retainer;
  end;
end;

// Returns a number that objects of one class, or data of one size, have; objects mostly the higher.
function RankOf(const Snapshot: TSnapshot; Index: Cardinal): NativeUInt;
begin
  Result := Snapshot.Groups[Snapshot.Nodes[Index].Group].ClassId;
  if Result = 0 then
    Result := Snapshot.Nodes[Index].Size;
end;

// Returns where the cycle of Index is entered: cycles of the same classes at the same class,
// wherever their blocks lie.
function EntryOf(const Snapshot: TSnapshot; Index: Cardinal): Cardinal;
var
  Node: Cardinal;
begin
  Result := Index;
  Node := Snapshot.Nodes[Index].Retainer;
  while Node <> Index do
  begin
    if RankOf(Snapshot, Node) > RankOf(Snapshot, Result) then
      Result := Node;
    Node := Snapshot.Nodes[Node].Retainer;
  end;
end;

// Enters the cycle at Entry.
procedure ReachCycle(var Search: TSearch; Entry: Cardinal);
var
  Node: PNode;
  CycleHolder: Cardinal;
begin
  Node := Search.Snapshot^.Nodes + Entry;
  Node^.Entry := neCycle;
  Inc(Search.Retainers^.CycleCount);
  CycleHolder := Node^.Retainer;
  Reach(Search, Entry);
  Node^.Retainer := CycleHolder;
end;

procedure SearchFromCycles(var Search: TSearch);
var
  Index: NativeInt;
  Entry, First: Cardinal;
begin
  for Index := 0 to NativeInt(Search.Snapshot^.NodeCount) - 1 do
  begin
    if (Search.Snapshot^.Nodes[Index].State <> nsCounted)
      or Search.Snapshot^.Nodes[Index].IsSeen then
      Continue;
    First := Search.Retainers^.QueueCount;
    Search.Retainer := NoNode;
    Entry := FindCycle(Search.Snapshot^, Index);
    if Entry = NoNode then
      Reach(Search, Index)
    else
      ReachCycle(Search, EntryOf(Search.Snapshot^, Entry));
    Spread(Search, First);
  end;
end;

function RetainersOpen(out Retainers: TRetainers; var Snapshot: TSnapshot): Boolean;
var
  Search: TSearch;
begin
  Retainers := Default(TRetainers);
  Retainers.Size := PathLimit * SizeOf(TRetainerPath) + PathSlots * SizeOf(Cardinal)
    + Snapshot.NodeCount * SizeOf(Cardinal);
  Retainers.Paths := OsTakePages(Retainers.Size);
  Result := Retainers.Paths <> nil;
  if not Result then
    Exit;
  Retainers.PathCount := 1;
  Retainers.Slots := PCardinal(Retainers.Paths + PathLimit);
  Retainers.Queue := Retainers.Slots + PathSlots;
  Search.Snapshot := @Snapshot;
  Search.Retainers := @Retainers;
  Search.IsStale := False;
  Search.HasPacked := False;
  Snapshot.IsPacked := False;
  FindHeld(Search);
  Snapshot.IsPacked := True;
  FindHeld(Search);
  Snapshot.IsPacked := Search.HasPacked;
  FindStale(Search);
  SearchFromRoots(Search);
  SearchFromCycles(Search);
  RetainedSizesSum(Snapshot, Retainers.Queue, Retainers.QueueCount);
end;

procedure RetainersClose(var Retainers: TRetainers);
begin
  OsReleasePages(Retainers.Paths, Retainers.Size);
  Retainers := Default(TRetainers);
end;

end.
