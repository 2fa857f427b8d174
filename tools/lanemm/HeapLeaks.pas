/// Leaks of a target: blocks in use that nothing in the program points to, directly or through other
/// blocks. A conservative search: each word that holds an address in a block counts as a pointer.
//
// The search begins with variables, with stacks from their stack pointers on, and with registers. All
// mappings that can be written count as variables, but for those that LaneMM has taken for itself.
// The items of a container end at its count.
unit HeapLeaks;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, LaneMM.Containers, Targets, HeapImages, HeapWalks, HeapPlaces,
  HeapContents;

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
  end;

  /// The leaks of a target.
  TLeaks = record
    Groups: TArray<TLeakGroup>; //< in any order
    Places: TArray<TLeakPlace>; //< likewise
    Chains: TArray<TLeakChain>; //< each behind its parent
    Regions: TContentsGroups;   //< the leaks in regions, by their names, most bytes first
    Blocks, Bytes: UInt64;      //< all leaks
    InUse: UInt64;              //< blocks in use
    Threads: Integer;           //< threads whose registers were read
    Looks: Integer;             //< how often each of them was found, 1 in a target that stands still
  end;

/// Returns the indexes of the chains with this parent, most retained bytes first.
function ChainsBelow(const Leaks: TLeaks; Parent: Integer): TArray<Integer>;
/// Returns the indexes of the places of a group, most bytes first.
function PlacesOf(const Leaks: TLeaks; Group: Integer): TArray<Integer>;
/// Finds the leaks. Of a process that runs, those that several looks in turn have found. Registers
/// are those of all threads; nil: the target runs, or they are unknown.
function FindLeaks(Image: THeapImage; const Registers: TArray<TRegisters>): TLeaks;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.RtlRecords;

const
  PageBytes = 4096;
  // Looks at a process that runs, and the time between two.
  RunningLooks = 3;
  PauseMs = 50;
  // Longer chains, and further ones, count for their parents.
  MostLinks = 16;
  MostChains = 16384;

type
  // In the order in which a state replaces another.
  TBlockState = (
    bsUnseen,   // nothing that was read so far points to it
    bsRetained, // a leak points to it
    bsCounted,  // it counts for the leak that retains it, or for itself
    bsReached   // the program reaches it
  );

  // A block in use.
  TInUse = record
    Address, Size: UInt64;
    Limit: UInt64;     // behind its words; of a container's items behind the last that counts
    Group: Integer;    // of a leak: number of its group
    Chain: Integer;    // of a leak that was counted: number of its chain, from 1
    Stack: Integer;    // of a leak: its backtrace in Places
    State: TBlockState;
  end;

  TRange = record
    First, Limit: UInt64;
  end;

  TAddressSet = TDictionary<UInt64, Boolean>;

  // One look at the target.
  TLook = class
  private
    Image: THeapImage;
    Blocks: array of TInUse;   // by run, then by address
    Count: Integer;
    FirstOf: array of Integer; // of each run its first block; one more at the end
    Own: array of TRange;      // LaneMM's memory, by address
    Items: array of TItems;    // of containers
    ItemsCount: Integer;
    Plain: TPlainClasses;
    Pending: array of Integer; // blocks whose words are to be read
    PendingCount: Integer;
    Marking: TBlockState;      // what words lead to
    Chain: Integer;            // that of the leak whose words are seen
    Groups: TDictionary<string, Integer>;
    Places: TPlaces;
    PlaceNumbers: TDictionary<string, Integer>; // by group and line
    ChainNumbers: TDictionary<UInt64, Integer>; // by parent and group
    Leaks: TLeaks;
    procedure AddBlock(const Block: TBlockFound);
    procedure EndItems;
    procedure CollectBlocks;
    procedure AddOwn(First, Size: UInt64);
    procedure AddTaken;
    procedure CollectOwn;
    function BlockAt(Address: UInt64): Integer;
    procedure Push(Index: Integer);
    procedure SeeWord(Word: UInt64); inline;
    procedure SeeRange(First, Limit: UInt64);
    procedure FollowPending;
    procedure MarkRegion(Region: PRegion; const Registers: TArray<TRegisters>);
    procedure MarkRange(First, Limit: UInt64);
    procedure MarkRoots(const Registers: TArray<TRegisters>);
    procedure MarkOthers(Known: TAddressSet);
    procedure FindRetained;
    function LeakAt(const Block: TBlockFound; out Index: Integer): Boolean;
    procedure FindStack(const Block: TBlockFound);
    function NumberOf(const Name: string): Integer;
    procedure AddToGroup(const Block: TBlockFound);
    procedure AddToPlace(Index: Integer);
    procedure FillGroups;
    function LinksOf(Number: Integer): Integer;
    function HasGroup(Number, Group: Integer): Boolean;
    function ChainTo(Parent, Group: Integer; IsCycle: Boolean): Integer;
    procedure CountLeak(Index, Number: Integer);
    procedure FollowLeak(Index: Integer; IsCycle: Boolean);
    procedure FollowLeaks;
    procedure SumRetained;
  public
    constructor Create(Heap: THeapImage);
    destructor Destroy; override;
    procedure Mark(const Registers: TArray<TRegisters>; Known: TAddressSet);
    function Unreached: TAddressSet;
    function Sum: TLeaks;
  end;

constructor TLook.Create(Heap: THeapImage);
begin
  inherited Create;
  Image := Heap;
  Groups := TDictionary<string, Integer>.Create;
  ChainNumbers := TDictionary<UInt64, Integer>.Create;
  PlaceNumbers := TDictionary<string, Integer>.Create;
  CollectBlocks;
  CollectOwn;
end;

destructor TLook.Destroy;
begin
  Places.Free;
  PlaceNumbers.Free;
  ChainNumbers.Free;
  Groups.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- blocks

procedure AddItems(const Items: TItems; Context: Pointer);
var
  Look: TLook;
begin
  Look := TLook(Context);
  if Look.ItemsCount = Length(Look.Items) then
    SetLength(Look.Items, Look.ItemsCount * 2 + 1024);
  Look.Items[Look.ItemsCount] := Items;
  Inc(Look.ItemsCount);
end;

procedure TLook.AddBlock(const Block: TBlockFound);
begin
  if Block.IsFree then
    Exit;
  if Count = Length(Blocks) then
    SetLength(Blocks, Count * 2 + 1024);
  Blocks[Count].Address := Block.Address;
  Blocks[Count].Size := Block.Size;
  Blocks[Count].Limit := Block.Address + Block.Size;
  Blocks[Count].Group := -1;
  Blocks[Count].Chain := 0;
  Blocks[Count].Stack := -1;
  Blocks[Count].State := bsUnseen;
  Inc(Count);
  if Block.Data <> nil then
    ContainerVisit(Block.Data, Block.Size, Plain, AddItems, Self);
end;

// Lets the words of blocks with items end behind those that count.
procedure TLook.EndItems;
var
  Index, Found: Integer;
  Head: TArrayHead;
begin
  for Index := 0 to ItemsCount - 1 do
  begin
    Found := BlockAt(Items[Index].Block);
    if (Found >= 0) and (Blocks[Found].Address = Items[Index].Block)
      and Image.Target.ReadAll(Items[Index].Block, @Head, SizeOf(Head)) then
      Blocks[Found].Limit := Blocks[Found].Address + Blocks[Found].Size
        - ItemsSpare(Items[Index], @Head, Blocks[Found].Size);
  end;
end;

procedure TLook.CollectBlocks;
var
  Walker: TWalker;
  Index: Integer;
begin
  Walker := TWalker.Create(Image);
  SetLength(FirstOf, Length(Image.Runs) + 1);
  for Index := 0 to High(Image.Runs) do
  begin
    FirstOf[Index] := Count;
    Walker.VisitRun(@Image.Runs[Index], AddBlock);
  end;
  FirstOf[High(FirstOf)] := Count;
  Walker.Free;
  EndItems;
end;

// ---------------------------------------------------------------------------- LaneMM's memory

procedure TLook.AddOwn(First, Size: UInt64);
var
  Range: TRange;
  Place: Integer;
begin
  Range.First := First;
  Range.Limit := First + Size;
  Place := Length(Own);
  while (Place > 0) and (Own[Place - 1].First > First) do
    Dec(Place);
  Insert(Range, Own, Place);
end;

// Adds the pages of OsTakePages: tables of samples, of growing blocks, of calls.
procedure TLook.AddTaken;
var
  Table: TOsTakenTable;
  Each: TOsTaken;
  Address: UInt64;
  Left: Integer;
begin
  Address := Image.State^.TakenPages;
  Left := 1000; // tables that change meanwhile may lead in a circle
  while (Address <> 0) and (Left > 0)
    and Image.Target.ReadAll(Address, @Table, SizeOf(Table)) do
  begin
    AddOwn(Address, SizeOf(Table));
    for Each in Table.Ranges do
      if Each.First <> 0 then
        AddOwn(Each.First, Each.Size);
    Address := UInt64(Table.Next);
    Dec(Left);
  end;
end;

// Its records hold addresses of blocks, too: those that it carved or freed last.
procedure TLook.CollectOwn;
var
  Arena: TArenaImage;
  Index: Integer;
begin
  AddOwn(Image.Address, SizeOf(TProcess));
  for Arena in Image.Arenas do
  begin
    AddOwn(UInt64(Arena.Head.Base), Arena.Head.Reserved * SliceSize);
    AddOwn(Arena.Address, UInt64(Arena.Head.Spans + Arena.Head.Reserved) - Arena.Address);
  end;
  for Index := 0 to High(Image.Heaps) do
    AddOwn(Image.Heaps[Index].Address, SizeOf(THeap));
  AddTaken;
end;

// ---------------------------------------------------------------------------- words

// Returns the number of the block in use that holds the address; -1 without one. A block of no bytes
// holds its own.
function TLook.BlockAt(Address: UInt64): Integer;
var
  Run: PRun;
  Low, High, Middle: Integer;
begin
  Result := -1;
  Run := Image.FindRun(Address);
  if Run = nil then
    Exit;
  Low := FirstOf[Run - PRun(@Image.Runs[0])];
  High := FirstOf[Run - PRun(@Image.Runs[0]) + 1];
  while Low < High do
  begin
    Middle := (Low + High) div 2;
    if Blocks[Middle].Address > Address then
      High := Middle
    else if (Address = Blocks[Middle].Address)
      or (Address - Blocks[Middle].Address < Blocks[Middle].Size) then
      Exit(Middle)
    else
      Low := Middle + 1;
  end;
end;

procedure TLook.Push(Index: Integer);
begin
  Blocks[Index].State := Marking;
  if PendingCount = Length(Pending) then
    SetLength(Pending, PendingCount * 2 + 1024);
  Pending[PendingCount] := Index;
  Inc(PendingCount);
end;

procedure TLook.SeeWord(Word: UInt64);
var
  Index: Integer;
begin
  if Word < PageBytes then
    Exit;
  Index := BlockAt(Word);
  if (Index < 0) or (Blocks[Index].State >= Marking) then
    Exit;
  Push(Index);
  if Marking = bsCounted then
    CountLeak(Index, ChainTo(Chain, Blocks[Index].Group, False));
end;

// Sees all words from First up to Limit that can be read.
procedure TLook.SeeRange(First, Limit: UInt64);
const
  Portion = 1 shl 16;
var
  Words: array[0..Portion div SizeOf(UInt64) - 1] of UInt64;
  Bytes, WordCount: UInt64;
  Index: Integer;
begin
  while First < Limit do
  begin
    Bytes := Limit - First;
    if Bytes > Portion then
      Bytes := Portion;
    WordCount := Image.Target.Read(First, @Words, Bytes) div SizeOf(UInt64);
    for Index := 0 to Integer(WordCount) - 1 do
      SeeWord(Words[Index]);
    if WordCount < Bytes div SizeOf(UInt64) then // behind the page that cannot be read
      First := (First + WordCount * SizeOf(UInt64)) and not UInt64(PageBytes - 1) + PageBytes
    else
      Inc(First, Bytes);
  end;
end;

procedure TLook.FollowPending;
var
  Index: Integer;
begin
  while PendingCount > 0 do
  begin
    Dec(PendingCount);
    Index := Pending[PendingCount];
    SeeRange(Blocks[Index].Address, Blocks[Index].Limit);
  end;
end;

// ---------------------------------------------------------------------------- what the program reaches

// Marks from First up to Limit, without LaneMM's memory.
procedure TLook.MarkRange(First, Limit: UInt64);
var
  Range: TRange;
begin
  for Range in Own do
    if (First < Range.Limit) and (Range.First < Limit) then
    begin
      SeeRange(First, Range.First);
      First := Range.Limit;
    end;
  SeeRange(First, Limit);
  FollowPending;
end;

// Returns whether what lies before the region cannot be read: the guard below a stack.
function HasGuard(Target: TTarget; Region: PRegion): Boolean;
var
  Before: PRegion;
begin
  Before := Target.FindRegion(Region^.First - 1);
  Result := (Before = nil) or not Before^.IsReadable;
end;

procedure TLook.MarkRegion(Region: PRegion; const Registers: TArray<TRegisters>);
const
  RedZone = 128; // bytes below the stack pointer that a routine may use
var
  Each: TRegisters;
  First, Stack: UInt64;
begin
  First := Region^.First;
  for Each in Registers do
  begin
    Stack := Each[StackRegister] - RedZone;
    if (Stack > First) and (Stack < Region^.Limit) and HasGuard(Image.Target, Region) then
      First := Stack and not UInt64(SizeOf(UInt64) - 1);
  end;
  MarkRange(First, Image.Target.ReadableLimit(Region));
end;

procedure TLook.MarkRoots(const Registers: TArray<TRegisters>);
var
  Region: PRegion;
  Index: Integer;
  Each: TRegisters;
  Word: UInt64;
begin
  Marking := bsReached;
  for Each in Registers do
    for Word in Each do
      SeeWord(Word);
  for Index := 0 to Image.Target.RegionCount - 1 do
  begin
    Region := Image.Target.Regions[Index];
    if Region^.IsReadable and (Region^.IsWritable or (Region^.Module <> '') and not Region^.IsCode)
      and not Region^.Path.StartsWith('/dev/') then
      MarkRegion(Region, Registers);
  end;
end;

// Takes the blocks that earlier looks have reached as reached.
procedure TLook.MarkOthers(Known: TAddressSet);
var
  Index: Integer;
begin
  for Index := 0 to Count - 1 do
    if (Blocks[Index].State = bsUnseen) and not Known.ContainsKey(Blocks[Index].Address) then
    begin
      Push(Index);
      FollowPending;
    end;
end;

procedure TLook.Mark(const Registers: TArray<TRegisters>; Known: TAddressSet);
begin
  MarkRoots(Registers);
  if Known <> nil then
    MarkOthers(Known);
end;

function TLook.Unreached: TAddressSet;
var
  Index: Integer;
begin
  Result := TAddressSet.Create;
  for Index := 0 to Count - 1 do
    if Blocks[Index].State = bsUnseen then
      Result.AddOrSetValue(Blocks[Index].Address, True);
end;

// ---------------------------------------------------------------------------- groups

// Marks the leaks that another leak points to.
procedure TLook.FindRetained;
var
  Index: Integer;
  Own: TBlockState;
begin
  Marking := bsRetained;
  for Index := 0 to Count - 1 do
    if Blocks[Index].State < bsCounted then
    begin
      Own := Blocks[Index].State;
      Blocks[Index].State := bsCounted; // what it holds of itself does not count
      SeeRange(Blocks[Index].Address, Blocks[Index].Limit);
      Blocks[Index].State := Own;
      PendingCount := 0;
    end;
end;

// Returns whether the block is a leak, and its index.
function TLook.LeakAt(const Block: TBlockFound; out Index: Integer): Boolean;
begin
  Index := BlockAt(Block.Address);
  Result := not Block.IsFree and (Index >= 0) and (Blocks[Index].State <> bsReached);
end;

procedure TLook.FindStack(const Block: TBlockFound);
var
  Index: Integer;
begin
  if LeakAt(Block, Index) then
    Blocks[Index].Stack := Places.StackOf(Block);
end;

function TLook.NumberOf(const Name: string): Integer;
begin
  if Groups.TryGetValue(Name, Result) then
    Exit;
  Result := Length(Leaks.Groups);
  Groups.Add(Name, Result);
  SetLength(Leaks.Groups, Result + 1);
  Leaks.Groups[Result] := Default(TLeakGroup);
  Leaks.Groups[Result].Name := Name;
end;

// Data of one line are one group, whatever their sizes.
procedure TLook.AddToGroup(const Block: TBlockFound);
var
  Index, Number: Integer;
  Name, Region: string;
begin
  if not LeakAt(Block, Index) then
    Exit;
  Name := ContentsName(Block);
  if (Blocks[Index].Stack >= 0) and Name.StartsWith(DataName) then
    Name := DataName + Places.LineOf(Blocks[Index].Stack);
  Region := RegionNameOf(Image, Block);
  Number := NumberOf(InRegion(Name, Region));
  Leaks.Groups[Number].Region := Region;
  Blocks[Index].Group := Number;
  Inc(Leaks.Groups[Number].Blocks);
  Inc(Leaks.Groups[Number].Bytes, Blocks[Index].Size);
  Inc(Leaks.Blocks);
  Inc(Leaks.Bytes, Blocks[Index].Size);
  if Blocks[Index].Stack >= 0 then
    AddToPlace(Index);
end;

procedure TLook.AddToPlace(Index: Integer);
var
  Number: Integer;
  Key: string;
begin
  Key := Format('%d %s', [Blocks[Index].Group, Places.LineOf(Blocks[Index].Stack)]);
  if not PlaceNumbers.TryGetValue(Key, Number) then
  begin
    Number := Length(Leaks.Places);
    PlaceNumbers.Add(Key, Number);
    SetLength(Leaks.Places, Number + 1);
    Leaks.Places[Number] := Default(TLeakPlace);
    Leaks.Places[Number].Group := Blocks[Index].Group;
    Leaks.Places[Number].Line := Places.LineOf(Blocks[Index].Stack);
    Leaks.Places[Number].Frames := Places.TextOf(Blocks[Index].Stack);
  end;
  Inc(Leaks.Places[Number].Blocks);
  Inc(Leaks.Places[Number].Bytes, Blocks[Index].Size);
end;

// A block that gets no group was freed meanwhile, in a process that runs.
procedure TLook.FillGroups;
var
  Walker: TWalker;
  Index: Integer;
begin
  Walker := TWalker.Create(Image);
  Places := TPlaces.Create(Image);
  Walker.VisitAll(FindStack);
  Places.Resolve;
  Walker.VisitAll(AddToGroup);
  Walker.Free;
  for Index := 0 to Count - 1 do
    if Blocks[Index].Group < 0 then
      Blocks[Index].State := bsReached;
end;

// ---------------------------------------------------------------------------- chains

function TLook.LinksOf(Number: Integer): Integer;
begin
  Result := 0;
  while Number > 0 do
  begin
    Inc(Result);
    Number := Leaks.Chains[Number - 1].Parent;
  end;
end;

// Returns the number of the chain that continues Parent with this group.
function TLook.ChainTo(Parent, Group: Integer; IsCycle: Boolean): Integer;
var
  Key: UInt64;
begin
  if (Parent > 0) and (Leaks.Chains[Parent - 1].Group = Group) then
    Exit(Parent);
  Key := UInt64(Parent) shl 33 or UInt64(Group) shl 1 or UInt64(IsCycle);
  if ChainNumbers.TryGetValue(Key, Result) then
    Exit;
  if (Parent > 0) and ((LinksOf(Parent) = MostLinks) or (Length(Leaks.Chains) >= MostChains)) then
    Exit(Parent);
  Result := Length(Leaks.Chains) + 1;
  SetLength(Leaks.Chains, Result);
  Leaks.Chains[Result - 1] := Default(TLeakChain);
  Leaks.Chains[Result - 1].Parent := Parent;
  Leaks.Chains[Result - 1].Group := Group;
  Leaks.Chains[Result - 1].IsCycle := IsCycle;
  ChainNumbers.Add(Key, Result);
end;

procedure TLook.CountLeak(Index, Number: Integer);
begin
  Blocks[Index].Chain := Number;
  Inc(Leaks.Chains[Number - 1].Blocks);
  Inc(Leaks.Chains[Number - 1].Bytes, Blocks[Index].Size);
end;

// Counts a leak and all that it leads to and no other one has, nearest blocks first.
procedure TLook.FollowLeak(Index: Integer; IsCycle: Boolean);
var
  Next: Integer;
begin
  Push(Index);
  CountLeak(Index, ChainTo(0, Blocks[Index].Group, IsCycle));
  Next := 0;
  while Next < PendingCount do
  begin
    Index := Pending[Next];
    Chain := Blocks[Index].Chain;
    SeeRange(Blocks[Index].Address, Blocks[Index].Limit);
    Inc(Next);
  end;
  PendingCount := 0;
end;

// First the leaks that nothing points to; what these do not lead to are cycles.
procedure TLook.FollowLeaks;
const
  Entries: array[Boolean] of TBlockState = (bsUnseen, bsRetained);
var
  Index: Integer;
  IsCycle: Boolean;
begin
  Marking := bsCounted;
  for IsCycle := False to True do
    for Index := 0 to Count - 1 do
      if Blocks[Index].State = Entries[IsCycle] then
        FollowLeak(Index, IsCycle);
end;

// Returns whether one of the links of the chain is of this group.
function TLook.HasGroup(Number, Group: Integer): Boolean;
begin
  while (Number > 0) and (Leaks.Chains[Number - 1].Group <> Group) do
    Number := Leaks.Chains[Number - 1].Parent;
  Result := Number > 0;
end;

procedure TLook.SumRetained;
var
  Index: Integer;
begin
  for Index := High(Leaks.Chains) downto 0 do
  begin
    Inc(Leaks.Chains[Index].Retained, Leaks.Chains[Index].Bytes);
    if Leaks.Chains[Index].Parent > 0 then
      Inc(Leaks.Chains[Leaks.Chains[Index].Parent - 1].Retained, Leaks.Chains[Index].Retained);
    if not HasGroup(Leaks.Chains[Index].Parent, Leaks.Chains[Index].Group) then
      Inc(Leaks.Groups[Leaks.Chains[Index].Group].Retained, Leaks.Chains[Index].Retained);
  end;
end;

function TLook.Sum: TLeaks;
var
  Group: TLeakGroup;
begin
  Leaks := Default(TLeaks);
  Leaks.InUse := Count;
  FillGroups;
  if Leaks.Blocks > 0 then
  begin
    FindRetained;
    FollowLeaks;
    SumRetained;
  end;
  for Group in Leaks.Groups do
    if Group.Region <> '' then
      AddContents(Leaks.Regions, Group.Region, Group.Blocks, Group.Bytes);
  SortContents(Leaks.Regions);
  Result := Leaks;
end;

function ChainsBelow(const Leaks: TLeaks; Parent: Integer): TArray<Integer>;
var
  Index, Place: Integer;
begin
  Result := nil;
  for Index := 0 to High(Leaks.Chains) do
    if Leaks.Chains[Index].Parent = Parent then
    begin
      Place := Length(Result);
      while (Place > 0)
        and (Leaks.Chains[Result[Place - 1]].Retained < Leaks.Chains[Index].Retained) do
        Dec(Place);
      Insert(Index, Result, Place);
    end;
end;

function PlacesOf(const Leaks: TLeaks; Group: Integer): TArray<Integer>;
var
  Index, Place: Integer;
begin
  Result := nil;
  for Index := 0 to High(Leaks.Places) do
    if Leaks.Places[Index].Group = Group then
    begin
      Place := Length(Result);
      while (Place > 0)
        and (Leaks.Places[Result[Place - 1]].Bytes < Leaks.Places[Index].Bytes) do
        Dec(Place);
      Insert(Index, Result, Place);
    end;
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
