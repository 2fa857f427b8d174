/// Do blocks that are made together lie together?
//
// Builds a list of 100,000 nodes of 32 bytes among blocks of the small mix that are freed
// and made in between, then walks it. One operation is one node visited; the nodes' sum is
// checked after each walk.
// Source: the linked list case of the FastCode memory manager challenge (docs/seeds.md,
//         E4): the locality of the blocks is in the times of the program, not of the manager.
unit Workload.Traversal;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Slots, Bench.Workloads;

const
  NodeCount = 100000;
  OtherCount = 1000;

type
  PNode = ^TNode;
  TNode = record
    Next: PNode;                         //< owner   the node made before
    Number: Int64;                       //< owner   its place in the order of making
    Payload: array[0..1] of Int64;       //< owner   unused
  end;

function NodesMake(var State: UInt64): PNode;
var
  Others: TSlots;
  Node: PNode;
  I: Integer;
begin
  Others := nil;
  SlotsFill(Others, OtherCount, SmallMix, State);
  Result := nil;
  for I := 1 to NodeCount do
  begin
    New(Node);
    Node^.Next := Result;
    Node^.Number := I;
    Result := Node;
    SlotsReplace(Others, 1, SmallMix, State);
  end;
  SlotsFree(Others, SmallMix);
end;

function NodesSum(Node: PNode): Int64;
begin
  Result := 0;
  while Node <> nil do
  begin
    Inc(Result, Node^.Number);
    Node := Node^.Next;
  end;
end;

procedure NodesFree(Node: PNode);
var
  Next: PNode;
begin
  while Node <> nil do
  begin
    Next := Node^.Next;
    Dispose(Node);
    Node := Next;
  end;
end;

procedure TraversalRun(const Job: TJob);
var
  First: PNode;
  State: UInt64;
  I: Int64;
begin
  State := RandomSeed(Job.Thread);
  First := NodesMake(State);
  for I := 1 to Job.Operations div NodeCount do
    Check(NodesSum(First) = Int64(NodeCount) * (NodeCount + 1) div 2,
      'traversal: a node has lost its contents');
  NodesFree(First);
end;

initialization
  AddWorkload('traversal', 40000000, TraversalRun);

end.
