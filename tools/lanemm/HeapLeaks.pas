/// Leaks of a target: blocks in use that nothing in the program points to, directly or through other
/// blocks. A conservative search: each word that holds an address in a block counts as a pointer; of
/// blocks that no aligned word leads to, also one that begins at any byte, as in packed records.
//
// The search begins with variables, with stacks from their stack pointers on, and with registers. All
// mappings that can be written count as variables, but for those that LaneMM has taken for itself.
// The items of a container end at its count.
unit HeapLeaks;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, LaneMM.Containers, LaneMM.Contents, Targets, TargetSymbols,
  HeapImages, HeapWalks, HeapPlaces, HeapContents;

type
  /// Leaks of one kind of contents.
  TLeakGroup = record
    Name: string;          //< as TContentsGroup.Name, and the region
    Blocks, Bytes: UInt64; //< their number, their usable bytes
    Retained: UInt64;      //< bytes of these and of all leaks that they alone lead to
    Region: string;        //< name of the region that they lie in; empty: none
  end;

  /// A line of the program that allocated leaks of a group, as far as the target knows.
  TLeakPlace = record
    Group: Integer;        //< number of the group, from 0
    Line: string;          //< as TPlaces.LineOf
    Frames: TArray<TPlaceFrame>; //< a backtrace there
    Blocks, Bytes: UInt64; //< what it allocated
  end;

  /// A chain of leaks by their groups, from one that nothing points to on. Blocks of one group in a
  /// row, as those of a list, are one link.
  TLeakChain = record
    Parent: Integer;       //< number of the chain without its last link, from 1; 0: none
    Group: Integer;        //< of the last link, from 0
    IsCycle: Boolean;      //< its first block lies in a cycle: others of it point to that
    Blocks, Bytes: UInt64; //< the blocks at its end
    Retained: UInt64;      //< their bytes, and those of the chains below
    AllBlocks: UInt64;     //< of TWhys.Holdings: these blocks, and those of the chains below
  end;

  /// The place of a row among those of one owner, which is a group, or a chain.
  TRank = record
    Owner: Integer;        //< number of that one
    Bytes: UInt64;         //< most come first
    Index: Integer;        //< of the row
  end;
  TRanks = TArray<TRank>;

  /// The leaks of a target.
  TLeaks = record
    Groups: TArray<TLeakGroup>; //< in any order
    Places: TArray<TLeakPlace>; //< likewise
    Chains: TArray<TLeakChain>; //< each behind its parent
    PlaceRanks, ChainRanks: TRanks; //< of Places by Group, of Chains by Parent: see RankLeaks
    Regions: TContentsGroups;   //< the leaks in regions, by their names, most bytes first
    Blocks, Bytes: UInt64;      //< all leaks
    InUse: UInt64;              //< blocks in use
    Threads: Integer;           //< threads whose registers were read
    Looks: Integer;             //< how often each of them was found, 1 in a target that stands still
  end;

/// Ranks Places and Chains, once these are known.
procedure RankLeaks(var Leaks: TLeaks);
/// Returns the indexes of the chains with this parent, most retained bytes first, without those that
/// retain less than Least, or have and retain no block.
function ChainsBelow(const Leaks: TLeaks; Parent: Integer; Least: UInt64 = 0): TArray<Integer>;
/// Returns the indexes of the places of a group, most bytes first.
function PlacesOf(const Leaks: TLeaks; Group: Integer): TArray<Integer>;
/// Adds a block of a group with a backtrace to its place, whose numbers are in Numbers.
procedure AddLeakPlace(var Leaks: TLeaks; Numbers: TDictionary<string, Integer>; Places: TPlaces;
  Group, Stack: Integer; Bytes: UInt64);
/// Finds the leaks. Of a process that runs, those that several looks in turn have found. Registers
/// are those of all threads; nil: the target runs, or they are unknown.
function FindLeaks(Image: THeapImage; const Registers: TArray<TRegisters>): TLeaks;

implementation

uses
  Math, Generics.Defaults, LaneMM.RtlRecords, LaneMM.Snapshot, LaneMM.Retainers, HeapNodes, HeapRanges;

const
  // Looks at a process that runs, and the time between two.
  RunningLooks = 3;
  PauseMs = 50;

type
  // A block of items, and the object that counts them.
  TItemsOf = record
    Items: TItems;
    Container: UInt64;
  end;

  TAddressSet = TDictionary<UInt64, Boolean>;

  // One look at the target.
  TLook = class(THeapNodes)
  private
    Kinds: TArray<TGroup>;     // of Snapshot: as Leaks.Groups
    Stacks: TArray<Integer>;   // of each leak its backtrace in Places, or -1
    Items: array of TItemsOf;  // of containers
    ItemsCount: Integer;
    Plain: TPlainClasses;
    Groups: TDictionary<string, Integer>;
    Places: TPlaces;
    PlaceNumbers: TDictionary<string, Integer>; // by group and line
    Leaks: TLeaks;
    procedure EndItems;
    procedure MarkRoots(const Registers: TArray<TRegisters>);
    procedure MarkOthers(Known: TAddressSet);
    function LeakAt(const Block: TBlockFound; out Index: Integer): Boolean;
    procedure FindStack(const Block: TBlockFound);
    function NumberOf(const Name: string; Kind: TContentsKind): Integer;
    procedure AddToGroup(const Block: TBlockFound);
    procedure FillGroups;
    procedure FindChains;
  protected
    procedure AddBlock(const Block: TBlockFound); override;
  public
    constructor Create(Heap: THeapImage);
    destructor Destroy; override;
    procedure Mark(const Registers: TArray<TRegisters>; Known: TAddressSet);
    function Unreached: TAddressSet;
    function Sum: TLeaks;
  end;

constructor TLook.Create(Heap: THeapImage);
begin
  inherited Create(Heap);
  Groups := TDictionary<string, Integer>.Create;
  PlaceNumbers := TDictionary<string, Integer>.Create;
  EndItems;
end;

destructor TLook.Destroy;
begin
  Places.Free;
  PlaceNumbers.Free;
  Groups.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- items of containers

procedure AddItems(const Items: TItems; Context: Pointer);
var
  Look: TLook;
begin
  Look := TLook(Context);
  if Look.ItemsCount = Length(Look.Items) then
    SetLength(Look.Items, Look.ItemsCount * 2 + 1024);
  Look.Items[Look.ItemsCount].Items := Items;
  Look.Items[Look.ItemsCount].Container := NativeUInt(Look.Nodes[Look.Count - 1].Address);
  Inc(Look.ItemsCount);
end;

procedure TLook.AddBlock(const Block: TBlockFound);
begin
  inherited AddBlock(Block);
  if not Block.IsFree and (Block.Data <> nil) then
    ContainerVisit(Block.Data, Block.Size, Plain, AddItems, Self);
end;

// Lets the references of blocks with items end behind those that count.
procedure TLook.EndItems;
var
  Index: Integer;
  Found, Container: Cardinal;
  Head: TArrayHead;
begin
  for Index := 0 to ItemsCount - 1 do
  begin
    Found := SnapshotNodeAt(Snapshot, Items[Index].Items.Block);
    Container := SnapshotNodeAt(Snapshot, Items[Index].Container);
    if (Found = NoNode) or (Container = NoNode)
      or (NativeUInt(Nodes[Found].Address) <> Items[Index].Items.Block)
      or not Image.Target.ReadAll(Items[Index].Items.Block, @Head, SizeOf(Head)) then
      Continue;
    Nodes[Found].Container := Container;
    Nodes[Found].Spare := ItemsSpare(Items[Index].Items, @Head, Nodes[Found].Size)
      div SizeOf(Pointer);
  end;
end;

// ---------------------------------------------------------------------------- what the program reaches

procedure TLook.MarkRoots(const Registers: TArray<TRegisters>);
var
  OfModules: Boolean;
  Range: TRange;
begin
  for OfModules := False to True do
    for Range in ProgramRanges(Image, Registers, OfModules) do
      RetainersMark(Snapshot, Range.First, Range.Limit, nsRunning);
end;

// Takes the blocks that earlier looks have reached as reached.
procedure TLook.MarkOthers(Known: TAddressSet);
var
  Index: Integer;
begin
  for Index := 0 to Count - 1 do
    if (Nodes[Index].State = nsCounted)
      and not Known.ContainsKey(NativeUInt(Nodes[Index].Address)) then
      RetainersMarkWord(Snapshot, NativeUInt(Nodes[Index].Address), nsRunning);
end;

procedure TLook.Mark(const Registers: TArray<TRegisters>; Known: TAddressSet);
var
  Each: TRegisters;
  Word: UInt64;
begin
  for Each in Registers do
    for Word in Each do
      RetainersMarkWord(Snapshot, Word, nsRunning);
  MarkRoots(Registers);
  if Known <> nil then
    MarkOthers(Known);
  if RetainersPack(Snapshot, nsRunning) then
    MarkRoots(Registers);
end;

function TLook.Unreached: TAddressSet;
var
  Index: Integer;
begin
  Result := TAddressSet.Create;
  for Index := 0 to Count - 1 do
    if Nodes[Index].State = nsCounted then
      Result.AddOrSetValue(NativeUInt(Nodes[Index].Address), True);
end;

// ---------------------------------------------------------------------------- groups

// Returns whether the block is a leak, and its index.
function TLook.LeakAt(const Block: TBlockFound; out Index: Integer): Boolean;
begin
  Index := Integer(SnapshotNodeAt(Snapshot, Block.Address));
  Result := not Block.IsFree and (Index >= 0) and (Nodes[Index].State = nsCounted);
end;

procedure TLook.FindStack(const Block: TBlockFound);
var
  Index: Integer;
begin
  if LeakAt(Block, Index) then
    Stacks[Index] := Places.StackOf(Block);
end;

procedure AddLeakPlace(var Leaks: TLeaks; Numbers: TDictionary<string, Integer>; Places: TPlaces;
  Group, Stack: Integer; Bytes: UInt64);
var
  Number: Integer;
  Key: string;
begin
  Key := Format('%d %s', [Group, Places.LineOf(Stack)]);
  if not Numbers.TryGetValue(Key, Number) then
  begin
    Number := Length(Leaks.Places);
    Numbers.Add(Key, Number);
    SetLength(Leaks.Places, Number + 1);
    Leaks.Places[Number] := Default(TLeakPlace);
    Leaks.Places[Number].Group := Group;
    Leaks.Places[Number].Line := Places.LineOf(Stack);
    Leaks.Places[Number].Frames := Places.TextOf(Stack);
  end;
  Inc(Leaks.Places[Number].Blocks);
  Inc(Leaks.Places[Number].Bytes, Bytes);
end;

function TLook.NumberOf(const Name: string; Kind: TContentsKind): Integer;
begin
  if Groups.TryGetValue(Name, Result) then
    Exit;
  Result := Length(Leaks.Groups);
  Groups.Add(Name, Result);
  SetLength(Leaks.Groups, Result + 1);
  Leaks.Groups[Result] := Default(TLeakGroup);
  Leaks.Groups[Result].Name := Name;
  SetLength(Kinds, Result + 1);
  Kinds[Result] := Default(TGroup);
  Kinds[Result].Kind := Kind;
end;

// Data of one line are one group, whatever their sizes.
procedure TLook.AddToGroup(const Block: TBlockFound);
var
  Index, Number: Integer;
  Name, Region: string;
  Kind: TContentsKind;
begin
  if not LeakAt(Block, Index) then
    Exit;
  Name := ContentsName(Block, Kind);
  if (Stacks[Index] >= 0) and Name.StartsWith(DataName) then
    Name := DataName + Places.LineOf(Stacks[Index]);
  Region := RegionNameOf(Image, Block);
  Number := NumberOf(InRegion(Name, Region), Kind);
  Leaks.Groups[Number].Region := Region;
  Nodes[Index].Group := Number;
  Inc(Leaks.Groups[Number].Blocks);
  Inc(Leaks.Groups[Number].Bytes, Nodes[Index].Size);
  Inc(Leaks.Blocks);
  Inc(Leaks.Bytes, Nodes[Index].Size);
  if Stacks[Index] >= 0 then
    AddLeakPlace(Leaks, PlaceNumbers, Places, Number, Stacks[Index], Nodes[Index].Size);
end;

// A block that gets no group was freed meanwhile, in a process that runs.
procedure TLook.FillGroups;
const
  NoGroup = High(Cardinal);
var
  Index: Integer;
begin
  SetLength(Stacks, Count);
  for Index := 0 to Count - 1 do
  begin
    Stacks[Index] := -1;
    Nodes[Index].Group := NoGroup;
  end;
  Places := TPlaces.Create(Image);
  VisitBlocks(Image, FindStack);
  Places.Resolve;
  VisitBlocks(Image, AddToGroup);
  for Index := 0 to Count - 1 do
    if Nodes[Index].Group = NoGroup then
      Nodes[Index].State := nsFreed;
end;

// Finds what retains the leaks, by the search of reports of a process.
procedure TLook.FindChains;
var
  Retainers: TRetainers;
  Index: Integer;
  Blocks, Bytes: NativeUInt;
  Chain: TLeakChain;
begin
  Snapshot.Groups := Pointer(Kinds);
  if not RetainersOpen(Retainers, Snapshot) then
    raise EOutOfMemory.Create('no memory for the chains of retainers');
  SetLength(Leaks.Chains, Retainers.PathCount - 1);
  for Index := High(Leaks.Chains) downto 0 do
  begin
    Chain := Leaks.Chains[Index]; // with what the chains below retain
    Chain.Parent := Retainers.Paths[Index + 1].Parent;
    Chain.Group := Retainers.Paths[Index + 1].Group;
    Chain.IsCycle := Retainers.Paths[Index + 1].IsCycle;
    RetainersSumPath(Retainers, Index + 1, Blocks, Bytes);
    Chain.Blocks := Blocks;
    Chain.Bytes := Bytes;
    Inc(Chain.Retained, Chain.Bytes);
    Leaks.Chains[Index] := Chain;
    if Chain.Parent > 0 then
      Inc(Leaks.Chains[Chain.Parent - 1].Retained, Chain.Retained);
  end;
  RetainersClose(Retainers);
  for Index := 0 to High(Leaks.Groups) do
    Leaks.Groups[Index].Retained := Kinds[Index].Retained;
end;

procedure SumRegions(var Leaks: TLeaks);
var
  Numbers: TDictionary<string, Integer>;
  Group: TLeakGroup;
begin
  Numbers := TDictionary<string, Integer>.Create;
  for Group in Leaks.Groups do
    if Group.Region <> '' then
      AddContents(Leaks.Regions, Numbers, Group.Region, Group.Blocks, Group.Bytes);
  Numbers.Free;
  SortContents(Leaks.Regions);
end;

function TLook.Sum: TLeaks;
begin
  Leaks := Default(TLeaks);
  Leaks.InUse := Count;
  FillGroups;
  if Leaks.Blocks > 0 then
    FindChains;
  SumRegions(Leaks);
  RankLeaks(Leaks);
  Result := Leaks;
end;

function CompareRanks(constref Left, Right: TRank): Integer;
begin
  Result := CompareValue(Left.Owner, Right.Owner);
  if Result = 0 then
    Result := CompareValue(Right.Bytes, Left.Bytes);
  if Result = 0 then
    Result := CompareValue(Left.Index, Right.Index);
end;

procedure RankLeaks(var Leaks: TLeaks);
var
  Index: Integer;
begin
  SetLength(Leaks.PlaceRanks, Length(Leaks.Places));
  for Index := 0 to High(Leaks.Places) do
  begin
    Leaks.PlaceRanks[Index].Owner := Leaks.Places[Index].Group;
    Leaks.PlaceRanks[Index].Bytes := Leaks.Places[Index].Bytes;
    Leaks.PlaceRanks[Index].Index := Index;
  end;
  SetLength(Leaks.ChainRanks, Length(Leaks.Chains));
  for Index := 0 to High(Leaks.Chains) do
  begin
    Leaks.ChainRanks[Index].Owner := Leaks.Chains[Index].Parent;
    Leaks.ChainRanks[Index].Bytes := Leaks.Chains[Index].Retained;
    Leaks.ChainRanks[Index].Index := Index;
  end;
  TArrayHelper<TRank>.Sort(Leaks.PlaceRanks, TComparer<TRank>.Construct(CompareRanks));
  TArrayHelper<TRank>.Sort(Leaks.ChainRanks, TComparer<TRank>.Construct(CompareRanks));
end;

// Returns the indexes of the rows of an owner, in the order of their ranks.
function RankedOf(const Ranks: TRanks; Owner: Integer): TArray<Integer>;
var
  First, Limit, Middle, Index: Integer;
begin
  First := 0;
  Limit := Length(Ranks);
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    if Ranks[Middle].Owner < Owner then
      First := Middle + 1
    else
      Limit := Middle;
  end;
  while (Limit < Length(Ranks)) and (Ranks[Limit].Owner = Owner) do
    Inc(Limit);
  Result := nil;
  SetLength(Result, Limit - First);
  for Index := 0 to High(Result) do
    Result[Index] := Ranks[First + Index].Index;
end;

function ChainsBelow(const Leaks: TLeaks; Parent: Integer; Least: UInt64): TArray<Integer>;
var
  Index, Count: Integer;
begin
  Result := RankedOf(Leaks.ChainRanks, Parent);
  Count := 0;
  for Index in Result do
    if (Leaks.Chains[Index].Retained >= Least)
      and (Leaks.Chains[Index].Blocks + Leaks.Chains[Index].Retained > 0) then
    begin
      Result[Count] := Index;
      Inc(Count);
    end;
  SetLength(Result, Count);
end;

function PlacesOf(const Leaks: TLeaks; Group: Integer): TArray<Integer>;
begin
  Result := RankedOf(Leaks.PlaceRanks, Group);
end;

// ---------------------------------------------------------------------------- looks

// A block that nothing points to stays so. One that a look has taken for such a block, because its
// address was in a register or on its way from one place to another, is mostly reached by the next.
function FindLeaks(Image: THeapImage; const Registers: TArray<TRegisters>): TLeaks;
var
  Look: TLook;
  Known, Earlier: TAddressSet;
  Number, Looks: Integer;
begin
  Looks := 1;
  if Registers = nil then
    Looks := RunningLooks;
  Known := nil;
  for Number := 1 to Looks do
  begin
    if Number > 1 then
    begin
      Sleep(PauseMs);
      Image.Target.RefreshRegions;
      Image.Refresh;
    end;
    Look := TLook.Create(Image);
    try
      Look.Mark(Registers, Known);
      Earlier := Known;
      Known := Look.Unreached;
      Earlier.Free;
      if Number = Looks then
        Result := Look.Sum;
    finally
      Look.Free;
    end;
  end;
  Known.Free;
  Result.Threads := Length(Registers);
  Result.Looks := Looks;
end;

end.
