/// How fast does a big structure of small objects come and go?
//
// Makes 1,000,000 objects linked in a list, then frees them all, the oldest first; again
// and again. One operation is one object: made, checked, freed.
// Source: docs/seeds.md, A7 (ten million nodes) and C4 (delete from the front).
unit Workload.Batch;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  BatchSize = 1000000;

type
  TNode = class
    Next: TNode;
    Number: Int64;
    Left, Right: TNode;
  end;

  TBatch = class(TWorkload)
  public
    procedure Run(const Job: TJob); override;
  end;

function NodesMake(Count: Int64): TNode;
var
  Node: TNode;
  I: Int64;
begin
  Result := TNode.Create;
  Node := Result;
  for I := 1 to Count - 1 do
  begin
    Node.Next := TNode.Create;
    Node := Node.Next;
    Node.Number := I;
  end;
end;

procedure NodesFree(First: TNode; Count: Int64);
var
  Node: TNode;
  I: Int64;
begin
  for I := 0 to Count - 1 do
  begin
    Node := First;
    if (Node.Number <> I) or (Node.Left <> nil) or (Node.Right <> nil) then
      Fail('batch: an object has lost its contents');
    First := Node.Next;
    Node.Free;
  end;
  if First <> nil then
    Fail('batch: the list is too long');
end;

procedure TBatch.Run(const Job: TJob);
var
  Left, Count: Int64;
begin
  Left := Job.Operations;
  while Left > 0 do
  begin
    Count := BatchSize;
    if Left < Count then
      Count := Left;
    NodesFree(NodesMake(Count), Count);
    Dec(Left, Count);
  end;
end;

initialization
  TBatch.Create('batch-1M', 16000000);

end.
