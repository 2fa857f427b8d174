/// Who holds what: a conservative search through the blocks of a census.
//
// Owns:       Holder, Path, Retained, IsHeld, IsSeen, IsCycle of nodes; the room of a THolders.
// Invariants: a block holds each block whose bytes one of its words leads to. The search goes from
//             blocks that nobody holds, breadth first: each block is reached once, on a shortest
//             chain, and counts for its holder alone, so nothing counts twice. What the search
//             does not reach is held by itself: there each cycle is entered once.
// Callers:    any thread; reads blocks of the census only.
// Source:     Boehm and Weiser, "Garbage Collection in an Uncooperative Environment", Software:
//             Practice and Experience 18 (1988).
unit LaneMM.Retainers;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Snapshot;


const
  /// No path: a block that nobody holds has none above it.
  NoPath = 0;
  /// Most different paths.
  PathLimit = 16384;
  /// Links of a path at most.
  PathDepth = 16;

type
  PRetainerPath = ^TRetainerPath;
  /// A chain of holders, without their names: the groups of blocks from one that nobody holds down
  /// to a last one. Blocks of data between objects are left out.
  TRetainerPath = record
    Parent: Cardinal;     //< the chain without its last link, or NoPath
    Group: Cardinal;      //< the last link
    Depth: Cardinal;      //< links
    Child, Sibling: Cardinal; //< the first chain with one more link; the next one of the same
    First: Cardinal;      //< a node that it leads to
    Count: NativeUInt;    //< nodes that it leads to
    Bytes: NativeUInt;    //< their bytes
    IsCycle: Boolean;     //< it begins in a cycle
    IsNested: Boolean;    //< the last group stands in the chain before, too
  end;

  /// The paths of a census.
  THolders = record
    Paths: PRetainerPath;          //< all
    PathCount: Cardinal;   //< how many, NoPath included
    CycleCount: NativeUInt; //< cycles that nobody holds
    Queue: PCardinal;      //< nodes in the order of the search
    QueueCount: Cardinal;  //< how many
    Room: NativeUInt;      //< bytes of all
  end;

/// Finds holders, chains and retained bytes of the nodes that count, and sets Retained of their
/// groups. False without memory: then nobody holds anything.
function HoldersOpen(out Holders: THolders; var Census: TCensus): Boolean;
/// Gives the room back.
procedure HoldersClose(var Holders: THolders);
/// Marks what the words from First up to Limit lead to, and all that this holds, as State.
procedure HoldersMark(var Census: TCensus; First, Limit: NativeUInt; State: TNodeState);
/// Whether the word of the node's holder that leads to the node is an interface of it.
function HeldByInterface(const Census: TCensus; Index: Cardinal): Boolean;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Modules, LaneMM.Contents;

type
  // Looks at a node that a word leads to.
  TSeeNode = procedure(Index: Cardinal; Context: Pointer);

  // A search that marks.
  TMarking = record
    Census: ^TCensus;
    State: TNodeState;
    Queue: PCardinal;
    QueueCount: Cardinal;
  end;
  PMarking = ^TMarking;

  // A search for holders.
  TSearch = record
    Census: ^TCensus;
    Holders: ^THolders;
    Holder: Cardinal;
  end;
  PSearch = ^TSearch;

// ---------------------------------------------------------------------------- words

// Calls See for each node that a word from First up to Limit leads to.
procedure SeeWords(const Census: TCensus; First, Limit: PNativeUInt; See: TSeeNode;
  Context: Pointer);
var
  Lowest, Bytes: NativeUInt;
  Index: Cardinal;
begin
  if Census.NodeCount = 0 then
    Exit;
  Lowest := NativeUInt(Census.Nodes^.Address);
  Bytes := NativeUInt(Census.Nodes[Census.NodeCount - 1].Address)
    + Census.Nodes[Census.NodeCount - 1].Size - Lowest;
  while First + 1 <= Limit do
  begin
    if First^ - Lowest < Bytes then
    begin
      Index := CensusNodeAt(Census, First^);
      if Index <> NoNode then
        See(Index, Context);
    end;
    Inc(First);
  end;
end;

procedure SeeNode(const Census: TCensus; Index: Cardinal; See: TSeeNode; Context: Pointer);
var
  Node: PNode;
begin
  Node := Census.Nodes + Index;
  SeeWords(Census, PNativeUInt(Node^.Address), PNativeUInt(Node^.Address + Node^.Size), See,
    Context);
end;

// ---------------------------------------------------------------------------- marks

procedure MarkNode(Index: Cardinal; Context: Pointer);
var
  Marking: PMarking;
begin
  Marking := Context;
  if Marking^.Census^.Nodes[Index].State <> noCounted then
    Exit;
  Marking^.Census^.Nodes[Index].State := Marking^.State;
  Marking^.Queue[Marking^.QueueCount] := Index;
  Inc(Marking^.QueueCount);
end;

procedure HoldersMark(var Census: TCensus; First, Limit: NativeUInt; State: TNodeState);
var
  Marking: TMarking;
  Next: Cardinal;
begin
  Marking.Census := @Census;
  Marking.State := State;
  Marking.QueueCount := 0;
  Marking.Queue := OsTakePages(Census.NodeCount * SizeOf(Cardinal) + 1);
  if Marking.Queue = nil then
    Exit;
  SeeWords(Census, PNativeUInt(First), PNativeUInt(Limit), MarkNode, @Marking);
  Next := 0;
  while Next < Marking.QueueCount do
  begin
    SeeNode(Census, Marking.Queue[Next], MarkNode, @Marking);
    Inc(Next);
  end;
  OsReleasePages(Marking.Queue, Census.NodeCount * SizeOf(Cardinal) + 1);
end;

// ---------------------------------------------------------------------------- paths

// Blocks of data between objects: the items of a list.
function IsBetween(const Census: TCensus; Group: Cardinal): Boolean;
begin
  Result := Census.Groups[Group].Kind in [coUnknown, coDynamicArray];
end;

// Whether Group is a link of the path.
function PathHas(const Holders: THolders; Path, Group: Cardinal): Boolean;
begin
  while Path <> NoPath do
  begin
    if Holders.Paths[Path].Group = Group then
      Exit(True);
    Path := Holders.Paths[Path].Parent;
  end;
  Result := False;
end;

// A new path that goes on from Parent to Group; NoPath when the table is full.
function AddPath(var Holders: THolders; Parent, Group: Cardinal; IsCycle: Boolean): Cardinal;
var
  Path: PRetainerPath;
begin
  if Holders.PathCount = PathLimit then
    Exit(NoPath);
  Result := Holders.PathCount;
  Inc(Holders.PathCount);
  Path := Holders.Paths + Result;
  Path^.Parent := Parent;
  Path^.Group := Group;
  Path^.Depth := Holders.Paths[Parent].Depth + 1;
  Path^.IsCycle := IsCycle;
  Path^.IsNested := PathHas(Holders, Parent, Group);
  Path^.First := NoNode;
  Path^.Sibling := Holders.Paths[Parent].Child;
  Holders.Paths[Parent].Child := Result;
end;

// The path that goes on from Parent to Group. What is found comes to the front.
function FindPath(var Holders: THolders; Parent, Group: Cardinal; IsCycle: Boolean): Cardinal;
var
  Link: PCardinal;
  Path: PRetainerPath;
begin
  Link := @Holders.Paths[Parent].Child;
  while Link^ <> NoPath do
  begin
    Result := Link^;
    Path := Holders.Paths + Result;
    if (Path^.Group = Group) and (Path^.IsCycle = IsCycle) then
    begin
      Link^ := Path^.Sibling;
      Path^.Sibling := Holders.Paths[Parent].Child;
      Holders.Paths[Parent].Child := Result;
      Exit;
    end;
    Link := @Path^.Sibling;
  end;
  Result := AddPath(Holders, Parent, Group, IsCycle);
end;

// The node that holds Index as a reader sees it, or NoNode.
function ShownHolder(const Census: TCensus; Index: Cardinal): Cardinal;
var
  Holder: PNode;
begin
  if Census.Nodes[Index].IsCycle then
    Exit(NoNode);
  Result := Census.Nodes[Index].Holder;
  if Result = NoNode then
    Exit;
  Holder := Census.Nodes + Result;
  if IsBetween(Census, Holder^.Group) and not Holder^.IsCycle and (Holder^.Holder <> NoNode) then
    Result := Holder^.Holder;
end;

// Sets the path of a node whose holder has one.
procedure SetPath(var Holders: THolders; const Census: TCensus; Index: Cardinal);
var
  Node: PNode;
  Holder, Parent: Cardinal;
begin
  Node := Census.Nodes + Index;
  Holder := ShownHolder(Census, Index);
  Parent := NoPath;
  if Holder <> NoNode then
    Parent := Census.Nodes[Holder].Path;
  if (Parent <> NoPath) and ((Holders.Paths[Parent].Group = Node^.Group)
    or (Holders.Paths[Parent].Depth = PathDepth)) then
    Node^.Path := Parent // a chain of blocks of one kind is one link
  else
    Node^.Path := FindPath(Holders, Parent, Node^.Group, Node^.IsCycle
      or (Parent <> NoPath) and Holders.Paths[Parent].IsCycle);
  Inc(Holders.Paths[Node^.Path].Count);
  Inc(Holders.Paths[Node^.Path].Bytes, Node^.Size);
  if Holders.Paths[Node^.Path].First = NoNode then
    Holders.Paths[Node^.Path].First := Index;
end;

// ---------------------------------------------------------------------------- the search

procedure Reach(var Search: TSearch; Index: Cardinal);
begin
  Search.Census^.Nodes[Index].IsSeen := True;
  Search.Census^.Nodes[Index].Holder := Search.Holder;
  Search.Holders^.Queue[Search.Holders^.QueueCount] := Index;
  Inc(Search.Holders^.QueueCount);
  SetPath(Search.Holders^, Search.Census^, Index);
end;

procedure NoteHeld(Index: Cardinal; Context: Pointer);
var
  Search: PSearch;
  Node: PNode;
begin
  Search := Context;
  Node := Search^.Census^.Nodes + Index;
  if (Index = Search^.Holder) or (Node^.State <> noCounted) then
    Exit;
  Node^.IsHeld := True;
  Node^.Holder := Search^.Holder;
end;

procedure ReachHeld(Index: Cardinal; Context: Pointer);
var
  Search: PSearch;
begin
  Search := Context;
  if not Search^.Census^.Nodes[Index].IsSeen
    and (Search^.Census^.Nodes[Index].State = noCounted) then
    Reach(Search^, Index);
end;

// Goes on from the nodes in the queue, from First on, until nothing new is reached.
procedure Spread(var Search: TSearch; First: Cardinal);
begin
  while First < Search.Holders^.QueueCount do
  begin
    Search.Holder := Search.Holders^.Queue[First];
    SeeNode(Search.Census^, Search.Holder, ReachHeld, @Search);
    Inc(First);
  end;
end;

procedure FindHeld(var Search: TSearch);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Search.Census^.NodeCount) - 1 do
    if Search.Census^.Nodes[Index].State = noCounted then
    begin
      Search.Holder := Index;
      SeeNode(Search.Census^, Index, NoteHeld, @Search);
    end;
end;

procedure SearchFromRoots(var Search: TSearch);
var
  Index: NativeInt;
begin
  Search.Holder := NoNode;
  for Index := 0 to NativeInt(Search.Census^.NodeCount) - 1 do
    if (Search.Census^.Nodes[Index].State = noCounted)
      and not Search.Census^.Nodes[Index].IsHeld then
      Reach(Search, Index);
  Spread(Search, 0);
end;

// A node of the cycle that is met when the holders of Index are followed up; NoNode when a thread
// has changed the blocks since they were looked at, and there is none. IsCycle marks the way; it
// is taken back.
function FindCycle(const Census: TCensus; Index: Cardinal): Cardinal;
var
  Marked: Cardinal;
begin
  Result := Index;
  while (Result <> NoNode) and not Census.Nodes[Result].IsSeen
    and not Census.Nodes[Result].IsCycle do
  begin
    Census.Nodes[Result].IsCycle := True;
    Result := Census.Nodes[Result].Holder;
  end;
  if (Result <> NoNode) and Census.Nodes[Result].IsSeen then
    Result := NoNode;
  Marked := Index;
  while (Marked <> NoNode) and Census.Nodes[Marked].IsCycle do
  begin
    Census.Nodes[Marked].IsCycle := False;
    Marked := Census.Nodes[Marked].Holder;
  end;
end;

// The nearest object above the node in its cycle, or the node.
function ObjectAbove(const Census: TCensus; Index: Cardinal): Cardinal;
begin
  Result := Index;
  repeat
    if Census.Groups[Census.Nodes[Result].Group].Kind = coObject then
      Exit;
    Result := Census.Nodes[Result].Holder;
  until Result = Index;
end;

// Enters the cycle at Entry.
procedure ReachCycle(var Search: TSearch; Entry: Cardinal);
var
  Node: PNode;
  CycleHolder: Cardinal;
begin
  Node := Search.Census^.Nodes + Entry;
  Node^.IsCycle := True;
  Inc(Search.Holders^.CycleCount);
  CycleHolder := Node^.Holder;
  Reach(Search, Entry);
  Node^.Holder := CycleHolder;
end;

procedure SearchFromCycles(var Search: TSearch);
var
  Index: NativeInt;
  Entry, First: Cardinal;
begin
  for Index := 0 to NativeInt(Search.Census^.NodeCount) - 1 do
  begin
    if (Search.Census^.Nodes[Index].State <> noCounted) or Search.Census^.Nodes[Index].IsSeen then
      Continue;
    First := Search.Holders^.QueueCount;
    Search.Holder := NoNode;
    Entry := FindCycle(Search.Census^, Index);
    if Entry = NoNode then
      Reach(Search, Index)
    else
      ReachCycle(Search, ObjectAbove(Search.Census^, Entry));
    Spread(Search, First);
  end;
end;

// Backwards: what is held was reached after its holder.
procedure SumUp(const Holders: THolders; var Census: TCensus);
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := NativeInt(Holders.QueueCount) - 1 downto 0 do
  begin
    Node := Census.Nodes + Holders.Queue[Index];
    Inc(Node^.Retained, Node^.Size);
    if (Node^.Holder <> NoNode) and not Node^.IsCycle then
      Inc(Census.Nodes[Node^.Holder].Retained, Node^.Retained);
  end;
end;

// A node inside another one of its group counts there.
procedure SumGroups(const Holders: THolders; var Census: TCensus);
var
  Index: NativeInt;
  Node: PNode;
  Holder: Cardinal;
begin
  for Index := 0 to NativeInt(Holders.QueueCount) - 1 do
  begin
    Node := Census.Nodes + Holders.Queue[Index];
    if Holders.Paths[Node^.Path].IsNested then
      Continue;
    Holder := ShownHolder(Census, Holders.Queue[Index]);
    if (Holder = NoNode) or (Census.Nodes[Holder].Group <> Node^.Group) then
      Inc(Census.Groups[Node^.Group].Retained, Node^.Retained);
  end;
end;

function HoldersOpen(out Holders: THolders; var Census: TCensus): Boolean;
var
  Search: TSearch;
begin
  Holders := Default(THolders);
  Holders.Room := PathLimit * SizeOf(TRetainerPath) + Census.NodeCount * SizeOf(Cardinal);
  Holders.Paths := OsTakePages(Holders.Room);
  Result := Holders.Paths <> nil;
  if not Result then
    Exit;
  Holders.PathCount := 1;
  Holders.Queue := PCardinal(Holders.Paths + PathLimit);
  Search.Census := @Census;
  Search.Holders := @Holders;
  FindHeld(Search);
  SearchFromRoots(Search);
  SearchFromCycles(Search);
  SumUp(Holders, Census);
  SumGroups(Holders, Census);
end;

procedure HoldersClose(var Holders: THolders);
begin
  OsReleasePages(Holders.Paths, Holders.Room);
  Holders := Default(THolders);
end;

// ---------------------------------------------------------------------------- interfaces

function HeldByInterface(const Census: TCensus; Index: Cardinal): Boolean;
var
  Node, Holder: PNode;
  Word, Last: PNativeUInt;
  Address: NativeUInt;
begin
  Result := False;
  Node := Census.Nodes + Index;
  if (Node^.Holder = NoNode) or (Census.Groups[Node^.Group].Kind <> coObject) then
    Exit;
  Holder := Census.Nodes + Node^.Holder;
  Word := PNativeUInt(Holder^.Address);
  Last := PNativeUInt(Holder^.Address + Holder^.Size) - 1;
  while not Result and (Word <= Last) do
  begin
    // An interface leads to a word behind the first, which holds the address of its methods.
    // (The compiler takes a difference with SizeOf for signed.)
    Address := LoadAcquire(Word^); // once: a thread may be writing it
    if (Address - NativeUInt(Node^.Address) - 1 < NativeUInt(Node^.Size - SizeOf(Pointer)))
      and (Address and (SizeOf(Pointer) - 1) = 0) then
      Result := ModulesHaveData(PNativeUInt(Address)^, SizeOf(Pointer));
    Inc(Word);
  end;
end;

end.
