/// Why blocks of a target are still there: shortest ways to them from variables, stacks and other
/// memory of the program.
//
// A breadth-first search over all blocks in use, in which each word that holds an address in a block
// counts as a pointer; then one at any byte, as in packed records, where there are blocks that no
// aligned one leads to. Variables come first: what they lead to is not looked for from stacks and
// registers. Each block has one way, so that nothing counts twice; there may be others.
unit HeapWhys;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, Targets, TargetSymbols, HeapImages, HeapWalks,
  HeapRanges, HeapDominators;

type
  /// A block in use, and the way to it.
  TReached = record
    Address, Limit: UInt64; //< its addresses
    Kind: Integer;          //< number of its contents in Names
    From: Integer;          //< number of the block before it; below 0: -1 - the number of its root
    Way: Integer;           //< number of the way to it; 0: nothing leads to it
    IsOfVariable: Boolean;  //< a variable leads to it
  end;

  /// The last link of a way.
  TLink = record
    Before: Integer; //< number of the way without it; 0: none
    Name: Integer;   //< number of its text
  end;

  /// A row of the tree of what holds memory: blocks of one kind that those of the row above alone hold.
  THolding = record
    Above: Integer;              //< number of the row above, from 1; 0: what no single block holds
    Text: string;                //< contents; without a row above, a variable or a way from one
    OwnBlocks, OwnBytes: UInt64; //< these
    Blocks, Bytes: UInt64;       //< these, and all that they alone hold
  end;
  THoldings = TArray<THolding>;

  /// Blocks that have the same way, by what they hold.
  TWay = record
    Text: string;          //< its links, with ` -> ` between
    Blocks, Bytes: UInt64; //< the blocks at its end
  end;
  TWays = TArray<TWay>;

  /// Words that are looked at: multiples of eight bytes, all others, both.
  TSeenWords = (swAligned, swOdd, swAny);

  /// The ways to all blocks of a heap.
  TWhys = class
  private
    Image: THeapImage;
    Registers: TArray<TRegisters>; // of all threads; nil: unknown
    Count: Integer;               // of Blocks
    Queue: array of Integer;      // blocks that were reached, in that order
    QueueCount, Followed: Integer;
    Seen: TSeenWords;             // which are looked at now
    Aligned: Integer;             // of Queue, blocks whose aligned words were seen before
    Lowest, Highest: UInt64;      // addresses of all blocks
    HasVariables: Boolean;        // all that variables lead to was reached
    Roots: TList<UInt64>;         // places outside of the heap that lead to a block
    Own: TRanges;
    Names: TList<string>;         // of contents and of roots
    Numbers: TDictionary<string, Integer>;
    Symbols: TTargetSymbols;
    Links: TList<TLink>;
    LinkNumbers: TDictionary<UInt64, Integer>;
    Edges: TEdges;                // from number Count: from outside of the heap
    EdgeCount: Integer;
    procedure AddBlock(const Block: TBlockFound);
    function Find(Word: UInt64): Integer;
    procedure See(Word, Place: UInt64; From: Integer);
    procedure SeeRange(First, Limit: UInt64; From: Integer);
    procedure SeeRegions(OfModules: Boolean);
    procedure SeeRegisters;
    procedure FollowAll;
    procedure SeeAll(OfModules: Boolean);
    function NumberOf(const Name: string): Integer;
    function RootText(Place: UInt64): string;
    function KindText(Index: Integer): string;
    function Continued(Way, Name: Integer): Integer;
    procedure AddEdge(From, Target: Integer);
    procedure FindWays;
    function RowsOf(const Ways: TIntegers): THoldings;
    function WayText(Way: Integer): string;
  public
    /// All blocks in use, by address.
    Blocks: array of TReached;
    /// TheRegisters are those of all threads; nil: the target runs, or they are unknown.
    constructor Create(Heap: THeapImage; const TheRegisters: TArray<TRegisters>);
    destructor Destroy; override;
    /// Returns the number of the block at an address; -1: none.
    property BlockAt[Word: UInt64]: Integer read Find;
    /// Returns the ways to blocks with contents of this name, `Unit.Class` or `Class`, in any case; most
    /// blocks first. The one to blocks that nothing leads to is `nothing`.
    function WaysTo(const Name: string): TWays;
    /// Returns the tree of what holds all blocks, each row behind the one above it. Once.
    function Holdings: THoldings;
    /// Returns the links to a block, from the root on.
    function WayTo(Index: Integer): TArray<string>;
  end;

/// Returns the text of a block in ways and trees.
function LinkNameOf(const Block: TBlockFound): string;

implementation

uses
  Generics.Defaults, HeapContents;

const
  Unreached = Low(Integer);
  NoPlace = 0; // of a word in a register
  Nothing = 'nothing';
  DataLink = 'data';

// ---------------------------------------------------------------------------- blocks

function ByAddress(constref Left, Right: TReached): Integer;
begin
  Result := Ord(Left.Address > Right.Address) - Ord(Left.Address < Right.Address);
end;

procedure TWhys.AddBlock(const Block: TBlockFound);
begin
  if Block.IsFree or (Block.Size = 0) then
    Exit;
  if Count = Length(Blocks) then
    SetLength(Blocks, Count * 2 + 1024);
  Blocks[Count] := Default(TReached);
  Blocks[Count].Kind := NumberOf(ContentsName(Block));
  Blocks[Count].Address := Block.Address;
  Blocks[Count].Limit := Block.Address + Block.Size;
  Blocks[Count].From := Unreached;
  Inc(Count);
end;

constructor TWhys.Create(Heap: THeapImage; const TheRegisters: TArray<TRegisters>);
var
  Walker: TWalker;
begin
  inherited Create;
  Image := Heap;
  Registers := TheRegisters;
  Names := TList<string>.Create;
  Numbers := TDictionary<string, Integer>.Create;
  Links := TList<TLink>.Create;
  LinkNumbers := TDictionary<UInt64, Integer>.Create;
  Roots := TList<UInt64>.Create;
  Symbols := TTargetSymbols.Create(Image.Target);
  Own := OwnRanges(Image);
  Walker := TWalker.Create(Image);
  Walker.VisitAll(AddBlock);
  Walker.Free;
  SetLength(Blocks, Count);
  TArrayHelper<TReached>.Sort(Blocks, TComparer<TReached>.Construct(ByAddress));
  SetLength(Queue, Count);
  if Count > 0 then
  begin
    Lowest := Blocks[0].Address;
    Highest := Blocks[Count - 1].Limit;
  end;
  SeeAll(True);
  HasVariables := True;
  SeeAll(False);
  FindWays;
end;

destructor TWhys.Destroy;
begin
  LinkNumbers.Free;
  Links.Free;
  Symbols.Free;
  Roots.Free;
  Numbers.Free;
  Names.Free;
  inherited Destroy;
end;

function TWhys.Find(Word: UInt64): Integer;
var
  Low, High, Middle: Integer;
begin
  Low := 0;
  High := Count;
  while Low < High do
  begin
    Middle := (Low + High) div 2;
    if Blocks[Middle].Limit <= Word then
      Low := Middle + 1
    else
      High := Middle;
  end;
  if (Low = Count) or (Blocks[Low].Address > Word) then
    Low := -1;
  Result := Low;
end;

// ---------------------------------------------------------------------------- the search

procedure TWhys.AddEdge(From, Target: Integer);
begin
  if From < 0 then
    From := Count;
  if EdgeCount = Length(Edges) then
    SetLength(Edges, EdgeCount * 2 + 1024);
  Edges[EdgeCount].From := From;
  Edges[EdgeCount].Target := Target;
  Inc(EdgeCount);
end;

// Sees a word that lies at Place.
procedure TWhys.See(Word, Place: UInt64; From: Integer);
var
  Found: Integer;
begin
  Found := Find(Word);
  if (Found < 0) or HasVariables and Blocks[Found].IsOfVariable then
    Exit; // what a variable holds, no stack holds
  AddEdge(From, Found);
  if Blocks[Found].From <> Unreached then
    Exit;
  Blocks[Found].From := From;
  Blocks[Found].IsOfVariable := not HasVariables;
  if From < 0 then
    Blocks[Found].From := -1 - Roots.Add(Place);
  Queue[QueueCount] := Found;
  Inc(QueueCount);
end;

// Sees words of a block, number From, or of other memory, for which From is below 0.
procedure TWhys.SeeRange(First, Limit: UInt64; From: Integer);
const
  Portion = 1 shl 16;
  PageBytes = 4096;
  WordBytes = SizeOf(UInt64);
  Steps: array[TSeenWords] of Integer = (WordBytes, 1, 1);
var
  Read: array[0..Portion - 1] of Byte;
  Bytes, Got, Word: UInt64;
  Index: Integer;
begin
  while First < Limit do
  begin
    Bytes := Limit - First;
    if Bytes > Portion then
      Bytes := Portion;
    Got := Image.Pages.Read(First, @Read, Bytes);
    Index := 0;
    while Index <= Integer(Got) - WordBytes do
    begin
      Word := PUInt64(@Read[Index])^;
      if (Word >= Lowest) and (Word < Highest)
        and ((Seen <> swOdd) or ((First + UInt64(Index)) mod WordBytes <> 0)) then
        See(Word, First + UInt64(Index), From);
      Inc(Index, Steps[Seen]);
    end;
    if Got < Bytes then // behind the page that cannot be read
      First := (First + Got) and not UInt64(PageBytes - 1) + PageBytes
    else if (Bytes < Portion) or (Seen = swAligned) then
      Inc(First, Bytes)
    else
      Inc(First, Bytes - WordBytes + 1); // the last ones go on in the next portion
  end;
end;

// Sees variables of modules, or all other memory that can be written, such as stacks.
procedure TWhys.SeeRegions(OfModules: Boolean);
var
  Index: Integer;
  Region: PRegion;
  Part: TRange;
begin
  for Index := 0 to Image.Target.RegionCount - 1 do
  begin
    Region := Image.Target.Regions[Index];
    if IsOfProgram(Region) and ((Region^.Module <> '') = OfModules) then
      for Part in PartsOutside(Own, FirstInUse(Image.Target, Region, Registers),
        Image.Target.ReadableLimit(Region)) do
        SeeRange(Part.First, Part.Limit, -1);
  end;
end;

procedure TWhys.SeeRegisters;
var
  Each: TRegisters;
  Word: UInt64;
begin
  for Each in Registers do
    for Word in Each do
      See(Word, NoPlace, -1);
end;

procedure TWhys.FollowAll;
var
  Index: Integer;
begin
  while Followed < QueueCount do
  begin
    Index := Queue[Followed];
    if Followed = Aligned then
      Seen := swAny;
    Inc(Followed);
    SeeRange(Blocks[Index].Address, Blocks[Index].Limit, Index);
  end;
end;

// Sees variables, or all other memory and registers, and what they lead to: then, for blocks that no aligned word leads
// to, also words at any byte, as in packed records.
procedure TWhys.SeeAll(OfModules: Boolean);
var
  First: Integer;
begin
  First := QueueCount;
  Aligned := Count;
  Seen := swAligned;
  SeeRegions(OfModules);
  if not OfModules then
    SeeRegisters;
  FollowAll;
  if QueueCount = Count then
    Exit;
  Aligned := QueueCount;
  Seen := swOdd;
  SeeRegions(OfModules);
  Followed := First;
  FollowAll;
end;

// ---------------------------------------------------------------------------- ways

function TWhys.NumberOf(const Name: string): Integer;
begin
  if not Numbers.TryGetValue(Name, Result) then
  begin
    Result := Names.Add(Name);
    Numbers.Add(Name, Result);
  end;
end;

// Returns the name of a place outside of the heap.
function TWhys.RootText(Place: UInt64): string;
var
  Region: PRegion;
begin
  if Place = NoPlace then
    Exit('register');
  Result := Symbols.VariableAt(Place);
  if Result <> '' then
    Exit('variable ' + Result);
  Region := Image.Target.FindRegion(Place);
  if Region <> nil then
    Result := NameOfRegion(Region);
end;

// Returns a name of contents as a link.
function LinkOf(const Name: string): string;
begin
  Result := Name;
  if Result.StartsWith(DataName) then
    Result := DataLink;
end;

function LinkNameOf(const Block: TBlockFound): string;
begin
  Result := LinkOf(ContentsName(Block));
end;

function TWhys.KindText(Index: Integer): string;
begin
  Result := LinkOf(Names[Blocks[Index].Kind]);
end;

// Returns the number of the way that continues Way, 0: none, with a link. One that has that link
// already is not continued: nodes of a list or of a tree are one link.
function TWhys.Continued(Way, Name: Integer): Integer;
var
  Link: TLink;
  Key: UInt64;
begin
  Result := Way;
  while (Result > 0) and (Links[Result].Name <> Name) do
    Result := Links[Result].Before;
  if Result > 0 then
    Exit;
  Key := UInt64(Way) shl 32 or UInt64(Name);
  if LinkNumbers.TryGetValue(Key, Result) then
    Exit;
  Link.Before := Way;
  Link.Name := Name;
  Result := Links.Add(Link);
  LinkNumbers.Add(Key, Result);
end;

// Finds the way to each block that was reached: those before it come first.
procedure TWhys.FindWays;
var
  Place: UInt64;
  Index, Each: Integer;
begin
  for Place in Roots do
    if Place <> NoPlace then
      Symbols.AddVariable(Place);
  Symbols.Resolve;
  Links.Add(Default(TLink));
  for Index := 0 to QueueCount - 1 do
  begin
    Each := Queue[Index];
    if Blocks[Each].From < 0 then
      Blocks[Each].Way := Continued(0, NumberOf(RootText(Roots[-1 - Blocks[Each].From])))
    else
      Blocks[Each].Way := Blocks[Blocks[Each].From].Way;
    Blocks[Each].Way := Continued(Blocks[Each].Way, NumberOf(KindText(Each)));
  end;
end;

function TWhys.WayText(Way: Integer): string;
begin
  Result := Nothing;
  if Way = 0 then
    Exit;
  Result := Names[Links[Way].Name];
  while Links[Way].Before > 0 do
  begin
    Way := Links[Way].Before;
    Result := Names[Links[Way].Name] + ' -> ' + Result;
  end;
end;

// Returns the rows of links: Ways has the one of each block.
function TWhys.RowsOf(const Ways: TIntegers): THoldings;
var
  Sums: THoldings;    // by links
  Numbers: TIntegers; // likewise, of rows
  Index, Before, RowCount: Integer;
begin
  Result := nil;
  Sums := nil;
  Numbers := nil;
  SetLength(Sums, Links.Count);
  SetLength(Numbers, Links.Count);
  for Index := 0 to Count - 1 do
  begin
    Inc(Sums[Ways[Index]].OwnBlocks);
    Inc(Sums[Ways[Index]].OwnBytes, Blocks[Index].Limit - Blocks[Index].Address);
  end;
  for Index := High(Sums) downto 1 do
  begin
    Inc(Sums[Index].Blocks, Sums[Index].OwnBlocks);
    Inc(Sums[Index].Bytes, Sums[Index].OwnBytes);
    Before := Links[Index].Before;
    Inc(Sums[Before].Blocks, Sums[Index].Blocks);
    Inc(Sums[Before].Bytes, Sums[Index].Bytes);
  end;
  SetLength(Result, Links.Count);
  RowCount := 0;
  for Index := 1 to High(Sums) do
    if Sums[Index].Blocks > 0 then
    begin
      Sums[Index].Text := Names[Links[Index].Name];
      Sums[Index].Above := Numbers[Links[Index].Before];
      Result[RowCount] := Sums[Index];
      Inc(RowCount);
      Numbers[Index] := RowCount;
    end;
  SetLength(Result, RowCount);
end;

// The links are made anew: those of ways by dominators, from what leads to a block on. Blocks that
// nothing leads to have that as the row above them.
function TWhys.Holdings: THoldings;
var
  Dominators, Order, Ways: TIntegers;
  Index, Block, Before: Integer;
begin
  Ways := nil;
  Dominators := FindDominators(Count, Edges, EdgeCount, Order);
  SetLength(Ways, Count + 1);
  for Index := High(Order) - 1 downto 0 do
  begin
    Block := Order[Index];
    if Dominators[Block] = Count then
      Before := Continued(0, NumberOf(WayText(Links[Blocks[Block].Way].Before)))
    else
      Before := Ways[Dominators[Block]];
    Ways[Block] := Continued(Before, NumberOf(KindText(Block)));
  end;
  for Block := 0 to Count - 1 do
    if Blocks[Block].From = Unreached then
      Ways[Block] := Continued(Continued(0, NumberOf(Nothing)), NumberOf(KindText(Block)));
  Result := RowsOf(Ways);
end;

function TWhys.WayTo(Index: Integer): TArray<string>;
var
  Each, Length: Integer;
begin
  Length := 1;
  Each := Index;
  while Each >= 0 do
  begin
    Inc(Length);
    Each := Blocks[Each].From;
  end;
  SetLength(Result, Length);
  while Index >= 0 do
  begin
    Dec(Length);
    Result[Length] := Format('%s at $%s', [Names[Blocks[Index].Kind],
      LowerCase(HexStr(Blocks[Index].Address, 12))]);
    Index := Blocks[Index].From;
  end;
  Result[0] := Nothing;
  if Index <> Unreached then
    Result[0] := RootText(Roots[-1 - Index]);
end;

function ByCount(constref Left, Right: TWay): Integer;
begin
  Result := Ord(Left.Blocks < Right.Blocks) - Ord(Left.Blocks > Right.Blocks);
end;

function TWhys.WaysTo(const Name: string): TWays;
var
  Places: TDictionary<Integer, Integer>; // in Result, by way
  Each: TReached;
  Place: Integer;
begin
  Result := nil;
  Places := TDictionary<Integer, Integer>.Create;
  for Each in Blocks do
  begin
    if not SameText(Names[Each.Kind], Name) and not Names[Each.Kind].EndsWith('.' + Name, True) then
      Continue;
    if not Places.TryGetValue(Each.Way, Place) then
    begin
      Place := Length(Result);
      Places.Add(Each.Way, Place);
      SetLength(Result, Place + 1);
      Result[Place] := Default(TWay);
      Result[Place].Text := WayText(Each.Way);
    end;
    Inc(Result[Place].Blocks);
    Inc(Result[Place].Bytes, Each.Limit - Each.Address);
  end;
  Places.Free;
  TArrayHelper<TWay>.Sort(Result, TComparer<TWay>.Construct(ByCount));
end;

end.
