/// Retained sizes of nodes and groups, when each node has its retainer.
//
// Owns:       Retained, and then Container and Spare, of TNode; Retained, RootRetained and Above of
//             TGroup.
// Invariants: the retainers are a forest. A group retains what those of its nodes do that lie below
//             no other one of the group, whatever lies between: no block counts twice for it.
// Callers:    LaneMM.Retainers.
unit LaneMM.RetainedSizes;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Snapshot;

/// Returns whether the node at Index is a block of data, such as the items of a list.
function NodeIsData(const Snapshot: TSnapshot; Index: Cardinal): Boolean;
/// Returns the retainer of the node at Index as reports show it, without blocks of data between;
/// NoNode for none.
function RetainerShown(const Snapshot: TSnapshot; Index: Cardinal): Cardinal;
/// Sums up the retained sizes of the Count nodes in Queue, where each one comes after its retainer,
/// and those of their groups.
procedure RetainedSizesSum(var Snapshot: TSnapshot; Queue: PCardinal; Count: Cardinal);

implementation

uses
  LaneMM.Contents;

function NodeIsData(const Snapshot: TSnapshot; Index: Cardinal): Boolean;
begin
  Result := Snapshot.Groups[Snapshot.Nodes[Index].Group].Kind in [coUnknown, coDynamicArray];
end;

function RetainerShown(const Snapshot: TSnapshot; Index: Cardinal): Cardinal;
var
  Retainer: PNode;
begin
  if Snapshot.Nodes[Index].Entry <> neNone then
    Exit(NoNode);
  Result := Snapshot.Nodes[Index].Retainer;
  if Result = NoNode then
    Exit;
  Retainer := Snapshot.Nodes + Result;
  if NodeIsData(Snapshot, Result) and (Retainer^.Entry = neNone)
    and (Retainer^.Retainer <> NoNode) then
    Result := Retainer^.Retainer;
end;

// Sums up the retained sizes. Backwards: a retainer was reached before its nodes.
procedure SumUp(var Snapshot: TSnapshot; Queue: PCardinal; Count: Cardinal);
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := NativeInt(Count) - 1 downto 0 do
  begin
    Node := Snapshot.Nodes + Queue[Index];
    Inc(Node^.Retained, Node^.Size);
    if (Node^.Retainer <> NoNode) and (Node^.Entry = neNone) then
      Inc(Snapshot.Nodes[Node^.Retainer].Retained, Node^.Retained);
  end;
end;

// Links the nodes that each one retains, as the containers are known: the first at Container, the
// next at Spare.
procedure LinkRetained(var Snapshot: TSnapshot; Queue: PCardinal; Count: Cardinal);
var
  Index: NativeInt;
  Node: PNode;
begin
  for Index := 0 to NativeInt(Count) - 1 do
  begin
    Snapshot.Nodes[Queue[Index]].Container := NoNode;
    Snapshot.Nodes[Queue[Index]].Spare := NoNode;
  end;
  for Index := NativeInt(Count) - 1 downto 0 do
  begin
    Node := Snapshot.Nodes + Queue[Index];
    if (Node^.Retainer = NoNode) or (Node^.Entry <> neNone) then
      Continue;
    Node^.Spare := Snapshot.Nodes[Node^.Retainer].Container;
    Snapshot.Nodes[Node^.Retainer].Container := Queue[Index];
  end;
end;

// Counts what a node retains for its group, unless it lies below another one of the group.
procedure SumNode(var Snapshot: TSnapshot; Index: Cardinal);
var
  Group: PGroup;
begin
  Group := Snapshot.Groups + Snapshot.Nodes[Index].Group;
  Inc(Group^.Above);
  if Group^.Above > 1 then
    Exit;
  Inc(Group^.Retained, Snapshot.Nodes[Index].Retained);
  if RetainerShown(Snapshot, Index) = NoNode then
    Inc(Group^.RootRetained, Snapshot.Nodes[Index].Retained);
end;

// Returns the node after Index in the order of the tree: first those that it retains; NoNode after
// the last one below Root.
function NextInTree(var Snapshot: TSnapshot; Index, Root: Cardinal): Cardinal;
begin
  Result := Snapshot.Nodes[Index].Container;
  while Result = NoNode do
  begin
    Dec(Snapshot.Groups[Snapshot.Nodes[Index].Group].Above);
    if Index = Root then
      Exit;
    Result := Snapshot.Nodes[Index].Spare;
    Index := Snapshot.Nodes[Index].Retainer;
  end;
end;

procedure RetainedSizesSum(var Snapshot: TSnapshot; Queue: PCardinal; Count: Cardinal);
var
  Place: NativeInt;
  Index: Cardinal;
begin
  SumUp(Snapshot, Queue, Count);
  LinkRetained(Snapshot, Queue, Count);
  for Place := 0 to NativeInt(Count) - 1 do
  begin
    Index := Queue[Place];
    if (Snapshot.Nodes[Index].Retainer = NoNode) or (Snapshot.Nodes[Index].Entry <> neNone) then
      repeat
        SumNode(Snapshot, Index);
        Index := NextInTree(Snapshot, Index, Queue[Place]);
      until Index = NoNode;
  end;
end;

end.
