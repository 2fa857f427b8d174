/// Dominators of a graph: of each node the nearest one that all ways to it lead through.
//
// Semi-dominators with path compression, so that long chains, as those of syntax trees, cost no more than short ones.
// Source: Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems", Princeton University
//         (2005), the algorithm SNCA; Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a
//         Flowgraph", TOPLAS 1 (1979).
unit HeapDominators;

{$mode delphi}{$H+}

interface

type
  /// A reference of one node to another.
  TEdge = record
    From, Target: Integer; //< their numbers
  end;
  TEdges = TArray<TEdge>;
  TIntegers = TArray<Integer>;

const
  /// Stands for the dominator of a node that the root does not lead to.
  NoDominator = -1;

/// Returns the dominators of the nodes from 0 up to Root, the highest number, which dominates itself.
/// The first Count edges count, which lead the other way afterwards. Order receives the nodes that it leads to: each stands before its
/// dominator.
function FindDominators(Root: Integer; Edges: TEdges; Count: Integer; out Order: TIntegers)
  : TIntegers;

implementation

type
  // The neighbours of each node: those of node N lie in Nodes from First[N] up to First[N + 1].
  TNeighbours = record
    First, Nodes: TIntegers;
  end;

  // A search from the root: the nodes in the order in which it comes to them. The place there is the number of a node.
  TSearch = record
    Nodes: TIntegers;
    Numbers: TIntegers; // of each node
    Parents: TIntegers; // of each number that of the node it came from
  end;

  // The tree of a search, by numbers.
  TForest = record
    Ups: TIntegers;     // one above each, nearer to the root with each use
    Bests: TIntegers;   // the one with the lowest semi-dominator on the way to that
    Semis: TIntegers;
    Way: TIntegers;
    function Lowest(Number, Linked: Integer): Integer;
    procedure FindSemis(const Search: TSearch; const Behind: TNeighbours);
  end;

const
  NoNumber = -1;

// Lets each edge lead the other way.
procedure Reverse(Edges: TEdges; Count: Integer);
var
  Index: Integer;
  Edge: TEdge;
begin
  for Index := 0 to Count - 1 do
  begin
    Edge := Edges[Index];
    Edges[Index].From := Edge.Target;
    Edges[Index].Target := Edge.From;
  end;
end;

function NeighboursOf(Root: Integer; Edges: TEdges; Count: Integer): TNeighbours;
var
  Index: Integer;
  Next: TIntegers;
begin
  Result.First := nil;
  Result.Nodes := nil;
  SetLength(Result.First, Root + 2);
  SetLength(Result.Nodes, Count);
  for Index := 0 to Count - 1 do
    Inc(Result.First[Edges[Index].From + 1]);
  for Index := 1 to Root + 1 do
    Inc(Result.First[Index], Result.First[Index - 1]);
  Next := Copy(Result.First);
  for Index := 0 to Count - 1 do
  begin
    Result.Nodes[Next[Edges[Index].From]] := Edges[Index].Target;
    Inc(Next[Edges[Index].From]);
  end;
end;

// Searches from the root, deep first.
function SearchFrom(Root: Integer; const Ahead: TNeighbours): TSearch;
var
  Way, Next: TIntegers; // the nodes that are not left yet, and the neighbours of each to see next
  Depth, Count, Node: Integer;
begin
  Result := Default(TSearch);
  Way := nil;
  SetLength(Result.Nodes, Root + 1);
  SetLength(Result.Parents, Root + 1);
  SetLength(Result.Numbers, Root + 1);
  for Node := 0 to Root do
    Result.Numbers[Node] := NoNumber;
  SetLength(Way, Root + 2);
  Next := Copy(Ahead.First);
  Way[0] := Root;
  Depth := 1;
  Count := 1;
  Result.Nodes[0] := Root;
  Result.Numbers[Root] := 0;
  while Depth > 0 do
  begin
    Node := Way[Depth - 1];
    if Next[Node] = Ahead.First[Node + 1] then
    begin
      Dec(Depth);
      Continue;
    end;
    Inc(Next[Node]);
    Node := Ahead.Nodes[Next[Node] - 1];
    if Result.Numbers[Node] <> NoNumber then
      Continue;
    Result.Numbers[Node] := Count;
    Result.Parents[Count] := Result.Numbers[Way[Depth - 1]];
    Result.Nodes[Count] := Node;
    Inc(Count);
    Way[Depth] := Node;
    Inc(Depth);
  end;
  SetLength(Result.Nodes, Count);
end;

// Returns the number with the lowest semi-dominator among Number and those above it from Linked on, and makes the
// way to them short.
function TForest.Lowest(Number, Linked: Integer): Integer;
var
  Depth, Above: Integer;
begin
  Depth := 0;
  while Ups[Number] >= Linked do
  begin
    Way[Depth] := Number;
    Inc(Depth);
    Number := Ups[Number];
  end;
  Result := Bests[Number];
  while Depth > 0 do
  begin
    Dec(Depth);
    Above := Number;
    Number := Way[Depth];
    Ups[Number] := Ups[Above];
    if Semis[Result] < Semis[Bests[Number]] then
      Bests[Number] := Result
    else
      Result := Bests[Number];
  end;
end;

// Finds the semi-dominators of all numbers, from the last one on.
procedure TForest.FindSemis(const Search: TSearch; const Behind: TNeighbours);
var
  Number, Edge, Node, From, Found: Integer;
begin
  Ups := Copy(Search.Parents);
  SetLength(Way, Length(Search.Nodes));
  SetLength(Semis, Length(Search.Nodes));
  SetLength(Bests, Length(Search.Nodes));
  for Number := 0 to High(Semis) do
  begin
    Semis[Number] := Number;
    Bests[Number] := Number;
  end;
  for Number := High(Semis) downto 1 do
  begin
    Node := Search.Nodes[Number];
    Semis[Number] := Search.Parents[Number];
    for Edge := Behind.First[Node] to Behind.First[Node + 1] - 1 do
    begin
      From := Search.Numbers[Behind.Nodes[Edge]];
      if From = NoNumber then
        Continue;
      Found := Semis[Lowest(From, Number + 1)];
      if Found < Semis[Number] then
        Semis[Number] := Found;
    end;
  end;
end;

function FindDominators(Root: Integer; Edges: TEdges; Count: Integer; out Order: TIntegers)
  : TIntegers;
var
  Search: TSearch;
  Forest: TForest;
  Number, Found: Integer;
  Dominators: TIntegers; // by numbers
begin
  Search := SearchFrom(Root, NeighboursOf(Root, Edges, Count));
  Reverse(Edges, Count);
  Forest := Default(TForest);
  Forest.FindSemis(Search, NeighboursOf(Root, Edges, Count));
  Dominators := Search.Parents;
  Order := nil;
  Result := nil;
  SetLength(Order, Length(Search.Nodes));
  SetLength(Result, Root + 1);
  for Number := 0 to Root do
    Result[Number] := NoDominator;
  for Number := 0 to High(Order) do
  begin
    Found := Dominators[Number];
    while Found > Forest.Semis[Number] do
      Found := Dominators[Found];
    Dominators[Number] := Found;
    Result[Search.Nodes[Number]] := Search.Nodes[Found];
    Order[High(Order) - Number] := Search.Nodes[Number];
  end;
end;

end.
