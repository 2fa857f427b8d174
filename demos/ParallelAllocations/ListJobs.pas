/// Lists that are filled with objects and emptied again, one by one or spread over threads.
unit ListJobs;

{$mode delphi}{$H+}

interface

var
  /// Lists to work through.
  ListCount: Integer;
  /// Objects of each list.
  ObjectCount: Integer;
  /// Threads of RunParallel.
  ThreadCount: Integer;
  /// Lists that did not hold what was put in, over all runs.
  WrongLists: LongInt;

/// Works through all lists in the calling thread.
procedure RunSerial;

/// Works through all lists in ThreadCount new threads and waits for their end.
procedure RunParallel;

implementation

uses
  Contnrs;

type
  TItem = class
    Value: Integer;
  end;

var
  ListsTaken: LongInt; // by all threads

/// Fills one list and empties it from the front.
procedure ListFillAndEmpty;
var
  List: TObjectList;
  Item: TItem;
  I: Integer;
  Sum: Int64;
begin
  List := TObjectList.Create;
  for I := 1 to ObjectCount do
  begin
    Item := TItem.Create;
    Item.Value := I;
    List.Add(Item);
  end;
  Sum := 0;
  while List.Count > 0 do
  begin
    Inc(Sum, TItem(List[0]).Value);
    List.Delete(0);
  end;
  List.Free;
  if Sum <> Int64(ObjectCount) * (ObjectCount + 1) div 2 then
    InterlockedIncrement(WrongLists);
end;

procedure RunSerial;
var
  I: Integer;
begin
  for I := 1 to ListCount do
    ListFillAndEmpty;
end;

/// A thread: takes the next list until there is none left.
function Work(Unused: Pointer): PtrInt;
begin
  while InterlockedIncrement(ListsTaken) <= ListCount do
    ListFillAndEmpty;
  Result := 0;
end;

procedure RunParallel;
var
  Threads: array of TThreadID;
  I: Integer;
begin
  ListsTaken := 0;
  SetLength(Threads, ThreadCount);
  for I := 0 to High(Threads) do
    Threads[I] := BeginThread(Work, nil);
  // TThread.WaitFor looks only every 100 ms whether a thread has ended: too coarse to time.
  for I := 0 to High(Threads) do
    WaitForThreadTerminate(Threads[I], 0);
end;

end.
