/// How well do lists of objects that are built and emptied scale over threads?
//
// Lists in turn: each adds 12,000 objects, then deletes them from the front until it is
// empty. One operation is one object. The list is linked: TList.Delete(0) would move 48 KB
// per object, fifty times the work of the memory manager.
// Source: docs/seeds.md, C4: the ParallelAllocations demo of the book, 100 lists.
unit Workload.Parallel;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  ListLength = 12000;

type
  TItem = class
    Next: TItem;
    Number: Integer;
  end;

  /// A list of which one adds at the end and deletes from the front.
  TQueue = class
  private
    FFirst, FLast: TItem;
  public
    procedure Add(Item: TItem);
    procedure DeleteFirst(Expected: Integer);
  end;

procedure TQueue.Add(Item: TItem);
begin
  if FFirst = nil then
    FFirst := Item
  else
    FLast.Next := Item;
  FLast := Item;
end;

procedure TQueue.DeleteFirst(Expected: Integer);
var
  Item: TItem;
begin
  Item := FFirst;
  Check(Item.Number = Expected, 'parallel: an object has lost its contents');
  FFirst := Item.Next;
  Item.Free;
end;

procedure ParallelRun(const Job: TJob);
var
  Queue: TQueue;
  Item: TItem;
  Round: Int64;
  I: Integer;
begin
  for Round := 1 to Job.Operations div ListLength do
  begin
    Queue := TQueue.Create;
    for I := 1 to ListLength do
    begin
      Item := TItem.Create;
      Item.Number := I;
      Queue.Add(Item);
    end;
    for I := 1 to ListLength do
      Queue.DeleteFirst(I);
    Queue.Free;
  end;
end;

initialization
  AddWorkload('parallel-lists', 100 * 8 * ListLength, ParallelRun);

end.
