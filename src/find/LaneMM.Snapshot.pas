/// A snapshot: all blocks in use at one moment, grouped by their contents.
//
// Owns:       the memory of each TSnapshot.
// Invariants: allocates nothing from the heap. Nodes are sorted by address. Group 0 takes the
//             blocks of groups that no longer fit into the table.
// Callers:    any thread; a TSnapshot belongs to one. Blocks that other threads allocate or free
//             meanwhile may be included or missing.
unit LaneMM.Snapshot;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Contents, LaneMM.Places;

const
  /// No node.
  NoNode = High(Cardinal);
  /// Maximum number of groups, group 0 included.
  GroupLimit = 8192;
  /// Maximum number of strings of a group whose first characters are kept, and of these characters.
  MostExamples = 3;
  ExampleLength = 40;

type
  /// How a block counts.
  TNodeState = (
    nsCounted,    //< it is reported
    nsSuppressed, //< a suppression matches it
    nsRunning,    //< reachable from a running thread, an exception or the roots of lib/
    nsOther,      //< it is not selected: another allocation group, an inherited block
    nsFreed       //< another thread has freed it meanwhile
  );

  /// How the search for retainers has come to a block.
  TNodeEntry = (
    neNone,       //< nothing references it, or its retainer does
    neCycle,      //< it is the entry of a cycle
    neStale       //< nothing but items that a container, its Retainer, no longer counts
  );

  PNode = ^TNode;
  /// A block in use.
  TNode = record
    Address: PByte;        //< its address
    Size: NativeUInt;      //< its requested size, as far as that is known, else its usable size
    Retained: NativeUInt;  //< retained size, Size included; see LaneMM.Retainers
    Group: Cardinal;       //< number of its group
    Retainer: Cardinal;    //< its retainer, or NoNode
    Path: Cardinal;        //< path to it, or a link of RetainersMark, see LaneMM.Retainers
    State: TNodeState;     //< how it counts
    IsRetained: Boolean;   //< another node references it
    IsSeen: Boolean;       //< the search has reached it
    Entry: TNodeEntry;     //< how the search has reached it
    Container: Cardinal;   //< the object whose items it has, if Spare > 0; after the search for
                           //  retainers the first node that it retains
    Spare: Cardinal;       //< words at its end: items that the container does not count; after the
                           //  search the next node of its retainer
  end;

  /// The first characters of a string, in quotes, ended by #0.
  TExample = array[0..ExampleLength + 7] of AnsiChar;

  PGroup = ^TGroup;
  /// Blocks of one kind.
  TGroup = record
    Kind: TContentsKind;   //< kind of their contents
    ClassId: NativeUInt;   //< class of objects, see LaneMM.Contents; else 0
    BlockSize: NativeUInt; //< bytes of each block; 0 for known contents, with Stack, and group 0
    Region: NativeUInt;    //< GroupKey of the region that the blocks lie in, or 0
    Allocation: Cardinal;  //< the allocation group of one of them
    Stack: Cardinal;       //< of unknown contents the backtrace of each block, if it is known
    Least: NativeUInt;     //< bytes of the smallest block
    Most: NativeUInt;      //< bytes of the largest one
    Joined: Cardinal;      //< number of the group that has its blocks now, or 0
    Count: NativeUInt;     //< number of blocks that count
    Bytes: NativeUInt;     //< their bytes
    Retained: NativeUInt;  //< their retained size, Bytes included; see LaneMM.Retainers
    RootRetained: NativeUInt; //< the part of Retained below blocks without a retainer
    Above: Cardinal;       //< nodes on the way of LaneMM.Retainers that are of it
    Place: Cardinal;       //< the first of its places, see LaneMM.Places
    ExampleCount: Cardinal; //< strings in Examples
    Examples: array[0..MostExamples - 1] of TExample; //< the first strings
  end;

  PTotal = ^TTotal;
  /// Blocks of one allocation group, see LaneMM.Groups, or of the regions of one name.
  TTotal = record
    Key: NativeUInt;       //< GroupKey; 0: of all groups beyond the first 1,023
    Group: Cardinal;       //< its number, or that of one of the regions
    Count: NativeUInt;     //< number of blocks that count
    Bytes: NativeUInt;     //< their bytes
  end;

  /// Reads up to Size bytes from Address on, of a heap elsewhere; returns how many it could read.
  TReadBytes = function(Address: NativeUInt; Target: Pointer; Size: NativeUInt; Source: Pointer)
    : NativeUInt;
  /// Returns the first address from Address, the start of a page, up to Limit that is worth a read;
  /// Limit if there is none.
  TNextBytes = function(Address, Limit: NativeUInt; Source: Pointer): NativeUInt;

  PSnapshot = ^TSnapshot;
  /// The blocks in use at one moment, of this process or, for lanemm, of another or a core file.
  TSnapshot = record
    Read: TReadBytes;         //< reads their words; nil: they are read where they lie
    Next: TNextBytes;         //< leads on behind pages that it could not read; with Read
    Source: Pointer;          //< the last argument of both
    IsPacked: Boolean;        //< a pointer may begin at any byte, not at words alone
    Nodes: PNode;             //< blocks by address
    NodeCount: Cardinal;      //< number of nodes
    NodeLimit: Cardinal;      //< capacity of Nodes
    LostCount: NativeUInt;    //< blocks beyond this capacity: nothing is known of them
    Groups: PGroup;           //< groups of blocks
    GroupCount: Cardinal;     //< number of groups, group 0 included
    Slots: PCardinal;         //< hash table of group numbers
    Places: PPlaces;          //< the places of the groups
    Counts: array[TNodeState] of NativeUInt; //< number of blocks by state
    Bytes: array[TNodeState] of NativeUInt;  //< their bytes
    Totals: PTotal;           //< totals of allocation groups
    TotalCount: Cardinal;     //< number of totals
    LastGroup: Cardinal;      //< the allocation group that was looked up last, or 0
    LastTotal: PTotal;        //< its total
    LastKey: NativeUInt;      //< its GroupKey
  end;

/// Returns the bytes of the tables at Groups.
function SnapshotTablesSize: NativeUInt;
/// Returns the number of blocks in use, in a child process after fork that of its own ones, see
/// DebugIsInherited. Needs no memory.
function SnapshotCount: NativeUInt;
/// Takes a snapshot of all blocks in use. Blocks without memory for a node are counted in
/// LostCount; False without memory for the groups: then all blocks are, and there is no group.
function SnapshotOpen(out Snapshot: TSnapshot): Boolean;
/// Selects the blocks of the allocation groups First to Last with allocation numbers from Since on;
/// the others no longer count. Before SnapshotGroup.
procedure SnapshotSelect(var Snapshot: TSnapshot; First, Last: Cardinal; Since: NativeUInt);
/// Selects the process's own blocks: in a child after fork the inherited ones no longer count.
procedure SnapshotSelectOwn(var Snapshot: TSnapshot);
/// Finds the blocks that have items of containers, and fills their Container and Spare.
procedure SnapshotFindContainers(var Snapshot: TSnapshot);
/// Puts the blocks that count into groups, and fills Counts, Bytes and Totals.
procedure SnapshotGroup(var Snapshot: TSnapshot);
/// Adds the places and examples of the groups, of the blocks that still count: after
/// SnapshotExclude.
procedure SnapshotDescribe(var Snapshot: TSnapshot);
/// Takes a block that counts out of its group: a suppression matches it.
procedure SnapshotExclude(var Snapshot: TSnapshot; Index: Cardinal);
/// Adds the blocks and places of group Other to group Number, which it leaves empty. SnapshotJoined
/// comes after all.
procedure SnapshotJoin(var Snapshot: TSnapshot; Number, Other: Cardinal);
/// Makes the nodes those of the groups that have their blocks now.
procedure SnapshotJoined(var Snapshot: TSnapshot);
/// Releases the memory of the nodes; the groups stay.
procedure SnapshotDropNodes(var Snapshot: TSnapshot);
/// Releases all memory.
procedure SnapshotClose(var Snapshot: TSnapshot);
/// Returns the node whose block contains Address, any number; NoNode when there is none.
function SnapshotNodeAt(const Snapshot: TSnapshot; Address: NativeUInt): Cardinal;
/// Makes a snapshot, without nodes, of the growth of the groups from Earlier to Later; groups that
/// did not grow have no blocks and 0 bytes. False without memory.
function SnapshotCopyGrown(out Grown: TSnapshot; const Earlier, Later: TSnapshot): Boolean;
/// Returns the numbers of the groups with any blocks, Count of them, in descending order of bytes;
/// with RootsFirst in descending order of RootRetained, then of bytes. They belong to the snapshot
/// and are valid until the next call.
function SnapshotOrder(const Snapshot: TSnapshot; RootsFirst: Boolean; out Count: Cardinal)
  : PCardinal;

implementation

uses
  LaneMM.Layout, LaneMM.Bits, LaneMM.Types, LaneMM.Hooks, LaneMM.Os, LaneMM.Walk, LaneMM.Text,
  LaneMM.SettingsState, LaneMM.DebugThreads, LaneMM.Groups, LaneMM.Containers,
  LaneMM.BacktraceTable;

const
  SlotCount = GroupLimit * 2;
  TotalLimit = 1024;
  // Spare nodes for blocks that other threads allocate during the walk; one more for every four
  // blocks where there are addresses for them: their pages are touched only as they are used.
  SpareNodes = 4096;
  NodesPerSpare = 4;
  // With 32 bits their bytes stay below 4 GB.
  MostNodes = NativeUInt(1) shl (26 + 2 * Ord(SizeOf(Pointer) = 8));

type
  // The groups, the slots that find them, their order, the totals, the places.
  TGroupTables = record
    Groups: array[0..GroupLimit - 1] of TGroup;
    Slots: array[0..SlotCount - 1] of Cardinal;
    Order: array[0..GroupLimit - 1] of Cardinal;
    Totals: array[0..TotalLimit - 1] of TTotal;
    Places: TPlaces;
  end;
  PGroupTables = ^TGroupTables;

// ---------------------------------------------------------------------------- nodes

procedure CountBlock(const Block: TBlockInfo; Context: Pointer);
begin
  Inc(PNativeUInt(Context)^);
end;

procedure CountOwnBlock(const Block: TBlockInfo; Context: Pointer);
begin
  if not DebugIsInherited(Block.Number) then
    Inc(PNativeUInt(Context)^);
end;

procedure AddNode(const Block: TBlockInfo; Context: Pointer);
var
  Snapshot: PSnapshot;
  Node: PNode;
begin
  Snapshot := Context;
  if Snapshot^.NodeCount = Snapshot^.NodeLimit then
  begin
    Inc(Snapshot^.LostCount);
    Exit;
  end;
  Node := Snapshot^.Nodes + Snapshot^.NodeCount;
  Node^.Address := Block.Address;
  Node^.Size := Block.RequestedSize;
  Node^.Retainer := NoNode;
  Inc(Snapshot^.NodeCount);
end;

// Makes an empty snapshot; False without memory.
function TakeTables(out Snapshot: TSnapshot): Boolean;
var
  Tables: PGroupTables;
begin
  Snapshot := Default(TSnapshot);
  Tables := OsTakePages(SizeOf(TGroupTables));
  Result := Tables <> nil;
  if not Result then
    Exit;
  Snapshot.Groups := @Tables^.Groups;
  Snapshot.Slots := @Tables^.Slots;
  Snapshot.Totals := @Tables^.Totals;
  Snapshot.Places := @Tables^.Places;
end;

function SnapshotTablesSize: NativeUInt;
begin
  Result := SizeOf(TGroupTables);
end;

function SnapshotCount: NativeUInt;
begin
  Result := 0;
  WalkBlocks(CountOwnBlock, @Result);
end;

procedure TakeNodes(var Snapshot: TSnapshot; Count: NativeUInt);
begin
  if Count > MostNodes then
    Count := MostNodes;
  Snapshot.Nodes := OsTakePages(Count * SizeOf(TNode));
  if Snapshot.Nodes <> nil then
    Snapshot.NodeLimit := Count;
end;

function SnapshotOpen(out Snapshot: TSnapshot): Boolean;
var
  Count: NativeUInt;
begin
  Count := 0;
  WalkBlocks(CountBlock, @Count);
  if not TakeTables(Snapshot) then
  begin
    Snapshot.LostCount := Count;
    Exit(False);
  end;
  Snapshot.GroupCount := 1;
  Inc(Count, SpareNodes);
  TakeNodes(Snapshot, Count + Count div NodesPerSpare);
  if Snapshot.Nodes = nil then
    TakeNodes(Snapshot, Count);
  WalkBlocks(AddNode, @Snapshot);
  Result := True;
end;

procedure SnapshotDropNodes(var Snapshot: TSnapshot);
begin
  // Before they are released, addresses are gone: for a search of another thread, see
  // LaneMM.References, they are memory like any other at that moment.
  FillChar(Snapshot.Nodes^, Snapshot.NodeCount * SizeOf(TNode), 0);
  OsReleasePages(Snapshot.Nodes, Snapshot.NodeLimit * SizeOf(TNode));
  Snapshot.Nodes := nil;
  Snapshot.NodeCount := 0;
  Snapshot.NodeLimit := 0;
end;

procedure SnapshotClose(var Snapshot: TSnapshot);
begin
  SnapshotDropNodes(Snapshot);
  OsReleasePages(Snapshot.Groups, SizeOf(TGroupTables));
  Snapshot := Default(TSnapshot);
end;

function SnapshotNodeAt(const Snapshot: TSnapshot; Address: NativeUInt): Cardinal;
var
  First, Limit, Middle: Cardinal;
  Node: PNode;
begin
  First := 0;
  Limit := Snapshot.NodeCount;
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    Node := Snapshot.Nodes + Middle;
    if Address < NativeUInt(Node^.Address) then
      Limit := Middle
    else if (NativeUInt(Address - NativeUInt(Node^.Address)) < Node^.Size)
      or (Address = NativeUInt(Node^.Address)) then // one of no bytes contains its own
      Exit(Middle)
    else
      First := Middle + 1;
  end;
  Result := NoNode;
end;

// ---------------------------------------------------------------------------- containers

type
  TContainers = record
    Snapshot: PSnapshot;
    Index: Cardinal;      // the block whose containers are looked for
    Plain: TPlainClasses;
  end;
  PContainers = ^TContainers;

procedure AddItems(const Items: TItems; Context: Pointer);
var
  Containers: PContainers;
  Node: PNode;
  Index: Cardinal;
begin
  Containers := Context;
  Index := SnapshotNodeAt(Containers^.Snapshot^, Items.Block);
  if Index = NoNode then
    Exit;
  Node := Containers^.Snapshot^.Nodes + Index;
  if NativeUInt(Node^.Address) <> Items.Block then
    Exit;
  Node^.Container := Containers^.Index;
  Node^.Spare := ItemsSpare(Items, Node^.Address, Node^.Size) div SizeOf(Pointer);
end;

procedure SnapshotFindContainers(var Snapshot: TSnapshot);
var
  Containers: TContainers;
  Node: PNode;
  Index: NativeInt;
begin
  if Process.IsMalloc then
    Exit;
  Containers := Default(TContainers);
  Containers.Snapshot := @Snapshot;
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    Containers.Index := Index;
    if Node^.Size <= MaxClassSize then // others may lose their pages meanwhile
      ContainerVisit(Node^.Address, Node^.Size, Containers.Plain, AddItems, @Containers);
  end;
end;

// ---------------------------------------------------------------------------- groups

// Sets what distinguishes the group of a block: of unknown contents the backtrace or, without one,
// the size; blocks of other contents are one group of any size.
procedure KeyOf(const Contents: TContents; const Block: TBlockInfo; Size: NativeUInt;
  out Key: TGroup);
begin
  Key.Kind := Contents.Kind;
  Key.ClassId := Contents.ClassId;
  Key.BlockSize := 0;
  Key.Stack := 0;
  if Contents.Kind <> coUnknown then
    Exit;
  Key.Stack := BacktraceTrim(Block.Stack);
  if Key.Stack = LostBacktrace then
    Key.Stack := 0;
  if Key.Stack = 0 then
    Key.BlockSize := Size;
end;

// Returns the slot of the group, or the free slot for it.
function FindSlot(const Snapshot: TSnapshot; const Key: TGroup): PCardinal;
var
  Index: Cardinal;
  Group: PGroup;
begin
  Index := ((Key.ClassId xor Key.Region xor (Key.BlockSize shl 4)
    xor (NativeUInt(Key.Stack) shl 3) xor NativeUInt(Ord(Key.Kind))) * SpreadFactor)
    shr (SizeOf(Pointer) * 4) mod SlotCount;
  repeat
    Result := Snapshot.Slots + Index;
    Group := Snapshot.Groups + Result^;
    if (Result^ = 0) or (Group^.Kind = Key.Kind) and (Group^.ClassId = Key.ClassId)
      and (Group^.Region = Key.Region) and (Group^.BlockSize = Key.BlockSize)
      and (Group^.Stack = Key.Stack) then
      Exit;
    Index := (Index + 1) mod SlotCount;
  until False;
end;

// Returns the number of the group, a new one if there is none; 0 when Limit groups are there.
function FindGroup(var Snapshot: TSnapshot; const Key: TGroup; Limit: Cardinal): Cardinal;
var
  Slot: PCardinal;
  Group: PGroup;
begin
  Slot := FindSlot(Snapshot, Key);
  if (Slot^ = 0) and (Snapshot.GroupCount < Limit) then
  begin
    Slot^ := Snapshot.GroupCount;
    Inc(Snapshot.GroupCount);
    Group := Snapshot.Groups + Slot^;
    Group^.Kind := Key.Kind;
    Group^.ClassId := Key.ClassId;
    Group^.BlockSize := Key.BlockSize;
    Group^.Stack := Key.Stack;
    Group^.Region := Key.Region;
    Group^.Allocation := Key.Allocation;
    Group^.Least := High(NativeUInt);
  end;
  Result := Slot^;
end;

// FindGroup. Backtraces take three eighths of the groups at most, and their innermost frames one;
// then the size distinguishes blocks.
function GroupOf(var Snapshot: TSnapshot; var Key: TGroup; Size: NativeUInt): Cardinal;
begin
  if Key.Stack <> 0 then
  begin
    Result := FindGroup(Snapshot, Key, GroupLimit div 8 * 3);
    if Result <> 0 then
      Exit;
    Key.Stack := BacktraceShorten(Key.Stack, ShortFrames);
    if Key.Stack <> LostBacktrace then
      Result := FindGroup(Snapshot, Key, GroupLimit div 2);
    if Result <> 0 then
      Exit;
    Key.Stack := 0;
    Key.BlockSize := Size;
  end;
  Result := FindGroup(Snapshot, Key, GroupLimit);
end;

// Adds the text of a string, if there is space for it.
procedure AddExample(Group: PGroup; const Block: TBlockInfo);
var
  Text: TText;
  Contents: TContents;
begin
  if not (Group^.Kind in [coAnsiString, coUnicodeString]) or not IsSet(opDump)
    or (Group^.ExampleCount = MostExamples) then
    Exit;
  ContentsRead(Block, Contents);
  if Contents.Kind <> Group^.Kind then
    Exit; // another thread has changed it meanwhile
  TextOpenAt(Text, @Group^.Examples[Group^.ExampleCount], SizeOf(TExample));
  ContentsAddText(Text, Contents, ExampleLength);
  Inc(Group^.ExampleCount);
end;

// Returns the total of an allocation group other than 0, that of Block. Blocks that follow each
// other are mostly of one group.
function TotalOf(var Snapshot: TSnapshot; const Block: TBlockInfo; Group: Cardinal): PTotal;
begin
  if Snapshot.LastGroup = Group then
    Exit(Snapshot.LastTotal);
  Snapshot.LastGroup := Group;
  Snapshot.LastKey := GroupKey(Block, Group);
  Result := Snapshot.Totals;
  while (Result < Snapshot.Totals + Snapshot.TotalCount) and (Result^.Key <> Snapshot.LastKey) do
    Inc(Result);
  if Result = Snapshot.Totals + TotalLimit then
    Dec(Result)
  else if Result = Snapshot.Totals + Snapshot.TotalCount then
  begin
    Inc(Snapshot.TotalCount);
    Result^.Group := Group;
    Result^.Key := Snapshot.LastKey;
    if Snapshot.TotalCount = TotalLimit then
      Result^.Key := 0;
  end;
  Snapshot.LastTotal := Result;
end;

// Adds blocks to the total of an allocation group, that of Block; negative numbers subtract them.
procedure AddTotal(var Snapshot: TSnapshot; const Block: TBlockInfo; Group: Cardinal; Count,
  Bytes: NativeInt);
var
  Total: PTotal;
begin
  if Group = 0 then
    Exit;
  Total := TotalOf(Snapshot, Block, Group);
  Inc(Total^.Count, Count);
  Inc(Total^.Bytes, Bytes);
end;

procedure AddToGroup(var Snapshot: TSnapshot; Node: PNode; const Block: TBlockInfo);
var
  Contents: TContents;
  Key: TGroup;
  Group: PGroup;
begin
  ContentsRead(Block, Contents);
  KeyOf(Contents, Block, Node^.Size, Key);
  Key.Allocation := GroupOfBlock(Block);
  AddTotal(Snapshot, Block, Key.Allocation, 1, Node^.Size);
  Key.Region := 0;
  if Key.Allocation >= RegionGroups then
    Key.Region := Snapshot.LastKey;
  Node^.Group := GroupOf(Snapshot, Key, Node^.Size);
  Group := Snapshot.Groups + Node^.Group;
  Inc(Group^.Count);
  Inc(Group^.Bytes, Node^.Size);
  if Node^.Size < Group^.Least then
    Group^.Least := Node^.Size;
  if Node^.Size > Group^.Most then
    Group^.Most := Node^.Size;
end;

procedure SnapshotSelect(var Snapshot: TSnapshot; First, Last: Cardinal; Since: NativeUInt);
var
  Index: NativeInt;
  Node: PNode;
  Block: TBlockInfo;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    if WalkFind(Node^.Address, Block)
      and ((Block.Group < First) or (Block.Group > Last) or (Block.Number < Since)) then
      Node^.State := nsOther;
  end;
end;

procedure SnapshotSelectOwn(var Snapshot: TSnapshot);
var
  Index: NativeInt;
  Node: PNode;
  Block: TBlockInfo;
begin
  if not DebugIsChild then
    Exit;
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    if WalkFind(Node^.Address, Block) and DebugIsInherited(Block.Number) then
      Node^.State := nsOther;
  end;
end;

procedure SnapshotGroup(var Snapshot: TSnapshot);
var
  Index: NativeInt;
  Node: PNode;
  Block: TBlockInfo;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    if Node^.State = nsCounted then
      if WalkFind(Node^.Address, Block) then
        AddToGroup(Snapshot, Node, Block)
      else
        Node^.State := nsFreed;
    Inc(Snapshot.Counts[Node^.State]);
    Inc(Snapshot.Bytes[Node^.State], Node^.Size);
  end;
end;

procedure SnapshotDescribe(var Snapshot: TSnapshot);
var
  Index: NativeInt;
  Node: PNode;
  Group: PGroup;
  Block: TBlockInfo;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Node := Snapshot.Nodes + Index;
    if (Node^.State <> nsCounted) or not WalkFind(Node^.Address, Block) then
      Continue;
    Group := Snapshot.Groups + Node^.Group;
    AddExample(Group, Block);
    PlacesAdd(Snapshot.Places^, Node^.Group, Group^.Place, Block, Node^.Size);
  end;
end;

procedure SnapshotExclude(var Snapshot: TSnapshot; Index: Cardinal);
var
  Node: PNode;
  Block: TBlockInfo;
begin
  Node := Snapshot.Nodes + Index;
  Node^.State := nsSuppressed;
  if WalkFind(Node^.Address, Block) then
    AddTotal(Snapshot, Block, GroupOfBlock(Block), -1, -NativeInt(Node^.Size));
  Dec(Snapshot.Groups[Node^.Group].Count);
  Dec(Snapshot.Groups[Node^.Group].Bytes, Node^.Size);
  Dec(Snapshot.Counts[nsCounted]);
  Dec(Snapshot.Bytes[nsCounted], Node^.Size);
  Inc(Snapshot.Counts[nsSuppressed]);
  Inc(Snapshot.Bytes[nsSuppressed], Node^.Size);
end;

procedure SnapshotJoin(var Snapshot: TSnapshot; Number, Other: Cardinal);
var
  Group, Emptied: PGroup;
  Place: PPlace;
  Moved: Cardinal;
begin
  Group := Snapshot.Groups + Number;
  Emptied := Snapshot.Groups + Other;
  Inc(Group^.Count, Emptied^.Count);
  Inc(Group^.Bytes, Emptied^.Bytes);
  if Emptied^.Least < Group^.Least then
    Group^.Least := Emptied^.Least;
  if Emptied^.Most > Group^.Most then
    Group^.Most := Emptied^.Most;
  Emptied^.Count := 0;
  Emptied^.Bytes := 0;
  Emptied^.Joined := Number;
  while Emptied^.Place <> NoPlace do
  begin
    Moved := Emptied^.Place;
    Place := @Snapshot.Places^.Items[Moved];
    Emptied^.Place := Place^.Next;
    Place^.Group := Number;
    Place^.Next := Group^.Place;
    Group^.Place := Moved;
  end;
end;

procedure SnapshotJoined(var Snapshot: TSnapshot);
var
  Index: NativeInt;
  Joined: Cardinal;
begin
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Joined := Snapshot.Groups[Snapshot.Nodes[Index].Group].Joined;
    if Joined <> 0 then
      Snapshot.Nodes[Index].Group := Joined;
  end;
end;

// Subtracts what was there before; no fewer than 0 remain. Blocks of no bytes grow by their number.
procedure SubtractCounts(var Count, Bytes: NativeUInt; EarlierCount, EarlierBytes: NativeUInt);
begin
  if (EarlierBytes >= Bytes) and ((Bytes > 0) or (EarlierCount >= Count)) then
  begin
    Count := 0;
    Bytes := 0;
    Exit;
  end;
  Dec(Bytes, EarlierBytes);
  if EarlierCount < Count then
    Dec(Count, EarlierCount)
  else
    Count := 0; // as many blocks or fewer, but larger ones
end;

// Subtracts the blocks of the places of the group Number in Earlier.
procedure SubtractPlaces(var Grown: TSnapshot; Group: PGroup; const Earlier: TSnapshot;
  Number: Cardinal);
var
  Index: Cardinal;
  Place, Before: PPlace;
begin
  Index := Group^.Place;
  while Index <> NoPlace do
  begin
    Place := @Grown.Places^.Items[Index];
    Before := PlacesFind(Earlier.Places^, Number, Place^.Stack);
    if Before <> nil then
      SubtractCounts(Place^.Count, Place^.Bytes, Before^.Count, Before^.Bytes);
    Index := Place^.Next;
  end;
end;

// Subtracts the blocks of the group in Earlier. Group 0 is in no slot.
procedure Subtract(var Grown: TSnapshot; Group: PGroup; const Earlier: TSnapshot);
var
  Before: PGroup;
  Number: Cardinal;
begin
  Number := 0;
  if Group <> Grown.Groups then
  begin
    Number := FindSlot(Earlier, Group^)^;
    if Number = 0 then
      Exit;
  end;
  Before := Earlier.Groups + Number;
  SubtractCounts(Group^.Count, Group^.Bytes, Before^.Count, Before^.Bytes);
  SubtractPlaces(Grown, Group, Earlier, Number);
end;

function SnapshotCopyGrown(out Grown: TSnapshot; const Earlier, Later: TSnapshot): Boolean;
var
  Index: NativeInt;
begin
  Result := TakeTables(Grown);
  if not Result then
    Exit;
  Grown.GroupCount := Later.GroupCount;
  Move(Later.Groups^, Grown.Groups^, Later.GroupCount * SizeOf(TGroup));
  Move(Later.Places^, Grown.Places^, SizeOf(TPlaces));
  for Index := 0 to NativeInt(Grown.GroupCount) - 1 do
    Subtract(Grown, Grown.Groups + Index, Earlier);
end;

// Returns True if A comes before B.
function ComesBefore(A, B: PGroup; RootsFirst: Boolean): Boolean;
begin
  if RootsFirst and (A^.RootRetained <> B^.RootRetained) then
    Result := A^.RootRetained > B^.RootRetained
  else
    Result := A^.Bytes > B^.Bytes;
end;

// Source: Shell, "A High-Speed Sorting Procedure", CACM 2 (1959).
function SnapshotOrder(const Snapshot: TSnapshot; RootsFirst: Boolean; out Count: Cardinal)
  : PCardinal;
var
  Gap, Index, Place: NativeInt;
  Moved: Cardinal;
begin
  Result := @PGroupTables(Snapshot.Groups)^.Order;
  Count := 0;
  for Index := 0 to NativeInt(Snapshot.GroupCount) - 1 do
    if Snapshot.Groups[Index].Count + Snapshot.Groups[Index].Bytes > 0 then
    begin
      Result[Count] := Index;
      Inc(Count);
    end;
  Gap := Count div 2;
  while Gap > 0 do
  begin
    for Index := Gap to NativeInt(Count) - 1 do
    begin
      Moved := Result[Index];
      Place := Index;
      while (Place >= Gap) and ComesBefore(Snapshot.Groups + Moved,
        Snapshot.Groups + Result[Place - Gap], RootsFirst) do
      begin
        Result[Place] := Result[Place - Gap];
        Dec(Place, Gap);
      end;
      Result[Place] := Moved;
    end;
    Gap := Gap div 2;
  end;
end;

end.
