/// Leaks of a target: blocks in use that nothing in the program points to, directly or through other
/// blocks. A conservative search: each word that holds an address in a block counts as a pointer.
//
// The search begins with variables, with stacks from their stack pointers on, and with registers. All
// mappings that can be written count as variables, but for the engine's own records.
unit HeapLeaks;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, Targets, HeapImages, HeapWalks;

type
  /// Leaks of one kind of contents that no other leak points to.
  TLeakGroup = record
    Name: string;        //< as TContentsGroup.Name; of a cycle, of the block where it was entered
    IsCycle: Boolean;    //< cycles: their blocks point to one another
    Blocks: UInt64;      //< their number; of cycles, the number of these
    Bytes: UInt64;       //< their usable bytes
    Retained: UInt64;    //< bytes of these and of all leaks that they alone lead to
  end;

  /// The leaks of a target.
  TLeaks = record
    Groups: TArray<TLeakGroup>; //< most retained bytes first
    Blocks, Bytes: UInt64;      //< all leaks
    InUse: UInt64;              //< blocks in use
    Threads: Integer;           //< threads whose registers were read
    Looks: Integer;             //< how often each of them was found, 1 in a target that stands still
  end;

/// Finds the leaks. Of a process that runs, those that several looks in turn have found. Registers
/// are those of all threads; nil: the target runs, or they are unknown.
function FindLeaks(Image: THeapImage; const Registers: TArray<TRegisters>): TLeaks;

implementation

uses
  LaneMM.Layout, LaneMM.Types, HeapContents;

const
  PageBytes = 4096;
  // Looks at a process that runs, and the time between two.
  RunningLooks = 3;
  PauseMs = 50;

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
    Retained: UInt64;  // of a leak that no other one retains, with its own bytes; else 0
    State: TBlockState;
    IsCycle: Boolean;  // a cycle was entered here
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
    Own: array of TRange;      // the engine's memory, by address
    Pending: array of Integer; // blocks whose words are to be read
    PendingCount: Integer;
    Marking: TBlockState;      // what words lead to
    Groups: TDictionary<string, TLeakGroup>;
    procedure AddBlock(const Block: TBlockFound);
    procedure CollectBlocks;
    procedure AddOwn(First, Size: UInt64);
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
    function RetainedOf(Index: Integer): UInt64;
    procedure FindHeads;
    procedure AddToGroup(const Block: TBlockFound);
    procedure FillGroups;
  public
    constructor Create(Heap: THeapImage);
    destructor Destroy; override;
    procedure Mark(const Registers: TArray<TRegisters>; Known: TAddressSet);
    function Unreached: TAddressSet;
    procedure Sum(var Leaks: TLeaks);
  end;

constructor TLook.Create(Heap: THeapImage);
begin
  inherited Create;
  Image := Heap;
  Groups := TDictionary<string, TLeakGroup>.Create;
  CollectBlocks;
  CollectOwn;
end;

destructor TLook.Destroy;
begin
  Groups.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- blocks

procedure TLook.AddBlock(const Block: TBlockFound);
begin
  if Block.IsFree then
    Exit;
  if Count = Length(Blocks) then
    SetLength(Blocks, Count * 2 + 1024);
  Blocks[Count].Address := Block.Address;
  Blocks[Count].Size := Block.Size;
  Blocks[Count].Retained := 0;
  Blocks[Count].State := bsUnseen;
  Blocks[Count].IsCycle := False;
  Inc(Count);
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
end;

// ---------------------------------------------------------------------------- the engine's memory

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
end;

// ---------------------------------------------------------------------------- words

// Returns the number of the block in use that holds the address; -1 without one.
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
    else if Address - Blocks[Middle].Address < Blocks[Middle].Size then
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
  if (Index >= 0) and (Blocks[Index].State < Marking) then
    Push(Index);
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
    SeeRange(Blocks[Index].Address, Blocks[Index].Address + Blocks[Index].Size);
  end;
end;

// ---------------------------------------------------------------------------- what the program reaches

// Marks from First up to Limit, without the engine's memory.
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
  MarkRange(First, Region^.Limit);
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
      SeeRange(Blocks[Index].Address, Blocks[Index].Address + Blocks[Index].Size);
      Blocks[Index].State := Own;
      PendingCount := 0;
    end;
end;

// Returns the bytes of a leak and of all that it leads to and no other one has, and counts them.
function TLook.RetainedOf(Index: Integer): UInt64;
begin
  Result := 0;
  Push(Index);
  while PendingCount > 0 do
  begin
    Dec(PendingCount);
    Index := Pending[PendingCount];
    Inc(Result, Blocks[Index].Size);
    SeeRange(Blocks[Index].Address, Blocks[Index].Address + Blocks[Index].Size);
  end;
end;

// First the leaks that nothing points to; what these do not lead to are cycles.
procedure TLook.FindHeads;
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
      begin
        Blocks[Index].Retained := RetainedOf(Index);
        Blocks[Index].IsCycle := IsCycle;
      end;
end;

procedure TLook.AddToGroup(const Block: TBlockFound);
const
  Kinds: array[Boolean] of string = ('', 'cycle ');
var
  Index: Integer;
  Group: TLeakGroup;
  Name, Key: string;
begin
  Index := BlockAt(Block.Address);
  if Block.IsFree or (Index < 0) or (Blocks[Index].Retained = 0) then
    Exit;
  Name := ContentsName(Block);
  Key := Kinds[Blocks[Index].IsCycle] + Name;
  if not Groups.TryGetValue(Key, Group) then
    Group := Default(TLeakGroup);
  Group.Name := Name;
  Group.IsCycle := Blocks[Index].IsCycle;
  Inc(Group.Blocks);
  Inc(Group.Bytes, Block.Size);
  Inc(Group.Retained, Blocks[Index].Retained);
  Groups.AddOrSetValue(Key, Group);
end;

procedure TLook.FillGroups;
var
  Walker: TWalker;
begin
  Walker := TWalker.Create(Image);
  Walker.VisitAll(AddToGroup);
  Walker.Free;
end;

function Precedes(const Left, Right: TLeakGroup): Boolean;
begin
  Result := (Left.Retained > Right.Retained)
    or (Left.Retained = Right.Retained) and (Left.Name < Right.Name);
end;

// The groups are few: kinds of contents.
procedure Sort(var Groups: TArray<TLeakGroup>);
var
  Index, Place: Integer;
  Moved: TLeakGroup;
begin
  for Index := 1 to High(Groups) do
  begin
    Moved := Groups[Index];
    Place := Index;
    while (Place > 0) and Precedes(Moved, Groups[Place - 1]) do
    begin
      Groups[Place] := Groups[Place - 1];
      Dec(Place);
    end;
    Groups[Place] := Moved;
  end;
end;

procedure TLook.Sum(var Leaks: TLeaks);
var
  Index: Integer;
begin
  Leaks.InUse := Count;
  for Index := 0 to Count - 1 do
    if Blocks[Index].State <> bsReached then
    begin
      Inc(Leaks.Blocks);
      Inc(Leaks.Bytes, Blocks[Index].Size);
    end;
  if Leaks.Blocks = 0 then
    Exit;
  FindRetained;
  FindHeads;
  FillGroups;
  Leaks.Groups := Groups.Values.ToArray;
  Sort(Leaks.Groups);
end;

// ---------------------------------------------------------------------------- looks

// A block that nothing points to stays so. One that a look has taken for such a block, because its
// address was in a register or on its way from one place to another, is mostly reached by the next.
function FindLeaks(Image: THeapImage; const Registers: TArray<TRegisters>): TLeaks;
var
  Look: TLook;
  Known, Earlier: TAddressSet;
  Number: Integer;
begin
  Result := Default(TLeaks);
  Result.Threads := Length(Registers);
  Result.Looks := 1;
  if Registers = nil then
    Result.Looks := RunningLooks;
  Known := nil;
  for Number := 1 to Result.Looks do
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
      if Number = Result.Looks then
        Look.Sum(Result);
    finally
      Look.Free;
    end;
  end;
  Known.Free;
end;

end.
