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
  SysUtils, Generics.Collections, Targets, TargetSymbols, HeapImages, HeapWalks, HeapNodes,
  HeapLeaks, HeapDominators;

type
  /// The way to a block in use.
  TReached = record
    From: Integer;          //< number of the block before it; below 0: -1 - the number of its root
    Way: Integer;           //< number of the way to it; 0: nothing leads to it
    IsOfVariable: Boolean;  //< a variable leads to it
  end;

  /// The last link of a way.
  TLink = record
    Before: Integer; //< number of the way without it; 0: none
    Name: Integer;   //< number of its text
  end;

  /// Blocks that have the same way, by what they hold.
  TWay = record
    Text: string;          //< its links, with ` -> ` between
    Blocks, Bytes: UInt64; //< the blocks at its end
  end;
  TWays = TArray<TWay>;

  /// The ways to all blocks of a heap. The groups of its nodes are numbers of contents in Names.
  TWhys = class(THeapNodes)
  private
    Registers: TArray<TRegisters>; // of all threads; nil: unknown
    Ways: array of TReached;      // by numbers of nodes
    Queue: array of Integer;      // blocks that were reached, in that order
    QueueCount, Followed: Integer;
    Source: Integer;              // the block whose words are seen now; -1: other memory
    SkipsAligned: Boolean;        // its aligned words were seen before
    Aligned: Integer;             // of Queue, blocks of which that is so
    HasVariables: Boolean;        // all that variables lead to was reached
    Roots: TList<UInt64>;         // places outside of the heap that lead to a block
    Names: TList<string>;         // of contents and of roots
    Numbers: TDictionary<string, Integer>;
    Symbols: TTargetSymbols;
    Links: TList<TLink>;
    LinkNumbers: TDictionary<UInt64, Integer>;
    Edges: TEdges;                // from number Count: from outside of the heap
    EdgeCount: Integer;
    procedure See(Found: Integer; Place: UInt64);
    procedure SeeRanges(OfModules: Boolean);
    procedure SeeRegisters;
    procedure FollowAll;
    procedure SeeAll(OfModules: Boolean);
    function NumberOf(const Name: string): Integer;
    function RootText(Place: UInt64): string;
    function KindText(Index: Integer): string;
    function Continued(Way, Name: Integer): Integer;
    procedure AddEdge(Target: Integer);
    procedure FindWays;
    function ChainsOf(const LinksOf: TIntegers): TLeaks;
    function WayText(Way: Integer): string;
  protected
    procedure AddBlock(const Block: TBlockFound); override;
  public
    /// TheRegisters are those of all threads; nil: the target runs, or they are unknown.
    constructor Create(Heap: THeapImage; const TheRegisters: TArray<TRegisters>);
    destructor Destroy; override;
    /// Returns the number of the block at an address; -1: none.
    function BlockAt(Word: UInt64): Integer;
    /// Returns the ways to blocks with contents of this name, `Unit.Class` or `Class`, in any case; most
    /// blocks first. The one to blocks that nothing leads to is `nothing`.
    function WaysTo(const Name: string): TWays;
    /// Returns the tree of what holds all blocks, in the form of leaks without places: a chain is of
    /// blocks of one kind that those of its parent alone hold. Without a parent its group is a variable,
    /// or a way from one. Once.
    function Holdings: TLeaks;
    /// Returns the links to a block, from the root on.
    function WayTo(Index: Integer): TArray<string>;
  end;

/// Returns the text of a block in ways and trees.
function LinkNameOf(const Block: TBlockFound): string;

implementation

uses
  Generics.Defaults, LaneMM.Snapshot, LaneMM.Retainers, HeapRanges, HeapContents, ToolText;

const
  Unreached = Low(Integer);
  NoPlace = 0; // of a word in a register
  Nothing = 'nothing';
  DataLink = 'data';

// ---------------------------------------------------------------------------- blocks

procedure TWhys.AddBlock(const Block: TBlockFound);
begin
  inherited AddBlock(Block);
  if not Block.IsFree then
    Nodes[Count - 1].Group := NumberOf(ContentsName(Block));
end;

constructor TWhys.Create(Heap: THeapImage; const TheRegisters: TArray<TRegisters>);
var
  Index: Integer;
begin
  Names := TList<string>.Create;
  Numbers := TDictionary<string, Integer>.Create;
  inherited Create(Heap);
  Registers := TheRegisters;
  Links := TList<TLink>.Create;
  LinkNumbers := TDictionary<UInt64, Integer>.Create;
  Roots := TList<UInt64>.Create;
  Symbols := TTargetSymbols.Create(Image.Target);
  SetLength(Queue, Count);
  SetLength(Ways, Count);
  for Index := 0 to Count - 1 do
    Ways[Index].From := Unreached;
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

function TWhys.BlockAt(Word: UInt64): Integer;
begin
  Result := Integer(SnapshotNodeAt(Snapshot, Word)); // -1 for NoNode
end;

// ---------------------------------------------------------------------------- the search

procedure TWhys.AddEdge(Target: Integer);
begin
  if EdgeCount = Length(Edges) then
    SetLength(Edges, EdgeCount * 2 + 1024);
  Edges[EdgeCount].From := Source;
  if Source < 0 then
    Edges[EdgeCount].From := Count;
  Edges[EdgeCount].Target := Target;
  Inc(EdgeCount);
end;

// Sees that the word at Place points into a block.
procedure TWhys.See(Found: Integer; Place: UInt64);
begin
  if SkipsAligned and (Place mod SizeOf(UInt64) = 0)
    or HasVariables and Ways[Found].IsOfVariable then
    Exit; // what a variable holds, no stack holds
  AddEdge(Found);
  if Ways[Found].From <> Unreached then
    Exit;
  Ways[Found].From := Source;
  Ways[Found].IsOfVariable := not HasVariables;
  if Source < 0 then
    Ways[Found].From := -1 - Roots.Add(Place);
  Queue[QueueCount] := Found;
  Inc(QueueCount);
end;

procedure SeeFound(Index: Cardinal; Place: NativeUInt; Context: Pointer);
begin
  TWhys(Context).See(Index, Place);
end;

// Sees variables of modules, or all other memory that can be written, such as stacks.
procedure TWhys.SeeRanges(OfModules: Boolean);
var
  Range: TRange;
begin
  Source := -1;
  for Range in ProgramRanges(Image, Registers, OfModules) do
    RetainersSee(Snapshot, Range.First, Range.Limit, SeeFound, Self);
end;

procedure TWhys.SeeRegisters;
var
  Each: TRegisters;
  Word: UInt64;
begin
  for Each in Registers do
    for Word in Each do
      if BlockAt(Word) >= 0 then
        See(BlockAt(Word), NoPlace);
end;

procedure TWhys.FollowAll;
begin
  while Followed < QueueCount do
  begin
    Source := Queue[Followed];
    SkipsAligned := Followed < Aligned;
    Inc(Followed);
    RetainersSeeNode(Snapshot, Source, SeeFound, Self);
  end;
end;

// Sees variables, or all other memory and registers, and what they lead to: then, for blocks that no aligned word leads
// to, also words at any byte, as in packed records.
procedure TWhys.SeeAll(OfModules: Boolean);
var
  First: Integer;
begin
  First := QueueCount;
  Aligned := 0;
  SkipsAligned := False;
  Snapshot.IsPacked := False;
  SeeRanges(OfModules);
  if not OfModules then
    SeeRegisters;
  FollowAll;
  if QueueCount = Count then
    Exit;
  Aligned := QueueCount;
  SkipsAligned := True;
  Snapshot.IsPacked := True;
  SeeRanges(OfModules);
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
  Result := LinkOf(Names[Nodes[Index].Group]);
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
    if Ways[Each].From < 0 then
      Ways[Each].Way := Continued(0, NumberOf(RootText(Roots[-1 - Ways[Each].From])))
    else
      Ways[Each].Way := Ways[Ways[Each].From].Way;
    Ways[Each].Way := Continued(Ways[Each].Way, NumberOf(KindText(Each)));
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

// Sums the chains up, by group and all.
procedure SumChains(var Leaks: TLeaks);
var
  Chain: TLeakChain;
begin
  for Chain in Leaks.Chains do
  begin
    Inc(Leaks.Groups[Chain.Group].Blocks, Chain.Blocks);
    Inc(Leaks.Groups[Chain.Group].Bytes, Chain.Bytes);
    Inc(Leaks.Groups[Chain.Group].Retained, Chain.Retained); // no way has a text twice
    Inc(Leaks.Blocks, Chain.Blocks);
    Inc(Leaks.Bytes, Chain.Bytes);
  end;
  Leaks.InUse := Leaks.Blocks;
end;

// Returns the chains of links: LinksOf has the one of each block.
function TWhys.ChainsOf(const LinksOf: TIntegers): TLeaks;
var
  Chains: TArray<TLeakChain>; // by links
  Numbers: TIntegers;         // likewise, in Result, from 1
  Groups: TIntegers;          // the same by names
  Index, Before, Name, ChainCount, GroupCount: Integer;
begin
  Result := Default(TLeaks);
  Chains := nil;
  Numbers := nil;
  Groups := nil;
  SetLength(Chains, Links.Count);
  SetLength(Numbers, Links.Count);
  SetLength(Groups, Names.Count);
  for Index := 0 to Count - 1 do
  begin
    Inc(Chains[LinksOf[Index]].Blocks);
    Inc(Chains[LinksOf[Index]].Bytes, Nodes[Index].Size);
  end;
  for Index := High(Chains) downto 1 do
  begin
    Inc(Chains[Index].AllBlocks, Chains[Index].Blocks);
    Inc(Chains[Index].Retained, Chains[Index].Bytes);
    Before := Links[Index].Before;
    Inc(Chains[Before].AllBlocks, Chains[Index].AllBlocks);
    Inc(Chains[Before].Retained, Chains[Index].Retained);
  end;
  SetLength(Result.Chains, Links.Count);
  SetLength(Result.Groups, Names.Count);
  ChainCount := 0;
  GroupCount := 0;
  for Index := 1 to High(Chains) do
    if Chains[Index].AllBlocks > 0 then
    begin
      Name := Links[Index].Name;
      if Groups[Name] = 0 then
      begin
        Result.Groups[GroupCount].Name := Names[Name];
        Inc(GroupCount);
        Groups[Name] := GroupCount;
      end;
      Chains[Index].Parent := Numbers[Links[Index].Before];
      Chains[Index].Group := Groups[Name] - 1;
      Result.Chains[ChainCount] := Chains[Index];
      Inc(ChainCount);
      Numbers[Index] := ChainCount;
    end;
  SetLength(Result.Chains, ChainCount);
  SetLength(Result.Groups, GroupCount);
  SumChains(Result);
  RankLeaks(Result);
end;

// The links are made anew: those of ways by dominators, from what leads to a block on. Blocks that
// nothing leads to have that as their parent.
function TWhys.Holdings: TLeaks;
var
  Dominators, Order, LinksOf: TIntegers;
  Index, Block, Before: Integer;
begin
  LinksOf := nil;
  Dominators := FindDominators(Count, Edges, EdgeCount, Order);
  SetLength(LinksOf, Count + 1);
  for Index := High(Order) - 1 downto 0 do
  begin
    Block := Order[Index];
    if Dominators[Block] = Count then
      Before := Continued(0, NumberOf(WayText(Links[Ways[Block].Way].Before)))
    else
      Before := LinksOf[Dominators[Block]];
    LinksOf[Block] := Continued(Before, NumberOf(KindText(Block)));
  end;
  for Block := 0 to Count - 1 do
    if Ways[Block].From = Unreached then
      LinksOf[Block] := Continued(Continued(0, NumberOf(Nothing)), NumberOf(KindText(Block)));
  Result := ChainsOf(LinksOf);
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
    Each := Ways[Each].From;
  end;
  Result := nil;
  SetLength(Result, Length);
  while Index >= 0 do
  begin
    Dec(Length);
    Result[Length] := Format('%s at %s', [Names[Nodes[Index].Group],
      HexAddress(NativeUInt(Nodes[Index].Address))]);
    Index := Ways[Index].From;
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
  Index, Place: Integer;
  Kind: string;
begin
  Result := nil;
  Places := TDictionary<Integer, Integer>.Create;
  for Index := 0 to Count - 1 do
  begin
    Kind := Names[Nodes[Index].Group];
    if not SameText(Kind, Name) and not Kind.EndsWith('.' + Name, True) then
      Continue;
    if not Places.TryGetValue(Ways[Index].Way, Place) then
    begin
      Place := Length(Result);
      Places.Add(Ways[Index].Way, Place);
      SetLength(Result, Place + 1);
      Result[Place] := Default(TWay);
      Result[Place].Text := WayText(Ways[Index].Way);
    end;
    Inc(Result[Place].Blocks);
    Inc(Result[Place].Bytes, Nodes[Index].Size);
  end;
  Places.Free;
  TArrayHelper<TWay>.Sort(Result, TComparer<TWay>.Construct(ByCount));
end;

end.
