/// Dominators of a graph: of each node the nearest one that all ways to it lead through.
//
// Source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", Rice University
//         TR-06-33870 (2001).
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

// Returns the nodes in the order in which a search, deep first, leaves them.
function LeftOrder(Root: Integer; const Ahead: TNeighbours): TIntegers;
var
  Way, Next: TIntegers; // the nodes that are not left yet, and the neighbours of each to see next
  IsSeen: array of Boolean;
  Depth, Count, Node: Integer;
begin
  Result := nil;
  Way := nil;
  IsSeen := nil;
  SetLength(Result, Root + 1);
  SetLength(Way, Root + 2);
  SetLength(IsSeen, Root + 1);
  Next := Copy(Ahead.First);
  Count := 0;
  Depth := 1;
  Way[0] := Root;
  IsSeen[Root] := True;
  while Depth > 0 do
  begin
    Node := Way[Depth - 1];
    if Next[Node] = Ahead.First[Node + 1] then
    begin
      Result[Count] := Node;
      Inc(Count);
      Dec(Depth);
      Continue;
    end;
    Inc(Next[Node]);
    Node := Ahead.Nodes[Next[Node] - 1];
    if IsSeen[Node] then
      Continue;
    IsSeen[Node] := True;
    Way[Depth] := Node;
    Inc(Depth);
  end;
  SetLength(Result, Count);
end;

// Returns the nearest node that dominates both. Place is of each node that in the order.
function Common(First, Second: Integer; const Dominators, Place: TIntegers): Integer; inline;
begin
  while First <> Second do
    if Place[First] < Place[Second] then
      First := Dominators[First]
    else
      Second := Dominators[Second];
  Result := First;
end;

// Improves the dominators of all nodes once; returns whether any changed.
function Improve(const Order, Place: TIntegers; const Behind: TNeighbours; Dominators: TIntegers)
  : Boolean;
var
  Index, Node, Edge, Other, Found: Integer;
begin
  Result := False;
  for Index := High(Order) - 1 downto 0 do // the last one is the root
  begin
    Node := Order[Index];
    Found := NoDominator;
    for Edge := Behind.First[Node] to Behind.First[Node + 1] - 1 do
    begin
      Other := Behind.Nodes[Edge];
      if Dominators[Other] = NoDominator then
        Continue;
      if Found = NoDominator then
        Found := Other
      else
        Found := Common(Other, Found, Dominators, Place);
    end;
    Result := Result or (Dominators[Node] <> Found);
    Dominators[Node] := Found;
  end;
end;

function FindDominators(Root: Integer; Edges: TEdges; Count: Integer; out Order: TIntegers)
  : TIntegers;
var
  Place: TIntegers;
  Behind: TNeighbours;
  Index: Integer;
begin
  Result := nil;
  Place := nil;
  SetLength(Result, Root + 1);
  SetLength(Place, Root + 1);
  for Index := 0 to Root do
    Result[Index] := NoDominator;
  Result[Root] := Root;
  Order := LeftOrder(Root, NeighboursOf(Root, Edges, Count));
  for Index := 0 to High(Order) do
    Place[Order[Index]] := Index;
  Reverse(Edges, Count);
  Behind := NeighboursOf(Root, Edges, Count);
  while Improve(Order, Place, Behind, Result) do;
end;

end.
