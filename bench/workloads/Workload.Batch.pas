/// How fast does a big structure of small objects, or of records, come and go?
//
// Makes a list of nodes of 40 bytes, then checks and frees them all, the oldest first; again
// and again. Objects are made by a constructor, records by New. One operation is one node:
// made, checked, freed.
// Source: docs/seeds.md, A7 (ten million nodes, as objects and as records) and C4 (delete
//         from the front).
unit Workload.Batch;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

type
  TObjectNode = class
    Next: TObjectNode;
    Number: Int64;
    Left, Right: TObjectNode;
  end;

  PRecordNode = ^TRecordNode;
  TRecordNode = record
    Next: PRecordNode;         //< owner   the node made after this one
    Number: Int64;             //< owner   its place in the list
    Left, Right: PRecordNode;  //< owner   unused, as in the leaf of a tree
    Value: Pointer;            //< owner   unused
  end;

procedure CheckNode(IsRight: Boolean); inline;
begin
  Check(IsRight, 'batch: a node has lost its contents');
end;

function ObjectsMake(Count: Int64): TObjectNode;
var
  Node: TObjectNode;
  I: Int64;
begin
  Result := TObjectNode.Create;
  Node := Result;
  for I := 1 to Count - 1 do
  begin
    Node.Next := TObjectNode.Create;
    Node := Node.Next;
    Node.Number := I;
  end;
end;

procedure ObjectsFree(First: TObjectNode; Count: Int64);
var
  Node, Next: TObjectNode;
  I: Int64;
begin
  Next := First;
  for I := 0 to Count - 1 do
  begin
    Node := Next;
    CheckNode((Node.Number = I) and (Node.Left = nil) and (Node.Right = nil));
    Next := Node.Next;
    Node.Free;
  end;
  CheckNode(Next = nil);
end;

function RecordsMake(Count: Int64): PRecordNode;
var
  Place: ^PRecordNode;
  I: Int64;
begin
  Place := @Result;
  for I := 0 to Count - 1 do
  begin
    New(Place^);
    Place^^.Number := I;
    Place := @Place^^.Next;
  end;
  Place^ := nil;
end;

procedure RecordsFree(First: PRecordNode; Count: Int64);
var
  Node, Next: PRecordNode;
  I: Int64;
begin
  Next := First;
  for I := 0 to Count - 1 do
  begin
    Node := Next;
    CheckNode(Node^.Number = I);
    Next := Node^.Next;
    Dispose(Node);
  end;
  CheckNode(Next = nil);
end;

procedure ObjectsRun(Count: Int64);
begin
  ObjectsFree(ObjectsMake(Count), Count);
end;

procedure RecordsRun(Count: Int64);
begin
  RecordsFree(RecordsMake(Count), Count);
end;

initialization
  AddWorkloadInParts('batch-100K', 10000000, 100000, ObjectsRun);
  AddWorkloadInParts('batch-1M', 10000000, 1000000, ObjectsRun);
  AddWorkloadInParts('batch-10M', 10000000, 10000000, ObjectsRun);
  AddWorkloadInParts('records-100K', 20000000, 100000, RecordsRun);
  AddWorkloadInParts('records-10M', 10000000, 10000000, RecordsRun);

end.
