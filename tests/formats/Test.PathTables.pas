/// Tests of the paths of retainers where there are very many.
unit Test.PathTables;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TPathTablesTests = class(TLaneTest)
  published
    procedure APathAmongAllIsFoundInAFewSteps;
  end;

implementation

uses
  testregistry, LaneMM.Snapshot, LaneMM.Retainers;

// Each block is of a kind of its own, and nothing retains it: as many chains as there can be, and
// then blocks for which there is none. The steps of a search are those along full slots.
procedure TPathTablesTests.APathAmongAllIsFoundInAFewSteps;
const
  Kinds = PathLimit + 1000;
  MostSteps = 400; // of 16,384 if the table were a list
var
  Snapshot: TSnapshot;
  Retainers: TRetainers;
  Nodes: array of TNode;
  Groups: array of TGroup;
  Words: array of NativeUInt;
  Index, Steps, Longest: Integer;
begin
  Nodes := nil;
  Groups := nil;
  Words := nil;
  SetLength(Nodes, Kinds);
  SetLength(Groups, Kinds);
  SetLength(Words, Kinds);
  for Index := 0 to Kinds - 1 do
  begin
    Nodes[Index].Address := @Words[Index];
    Nodes[Index].Size := SizeOf(NativeUInt);
    Nodes[Index].Retainer := NoNode;
    Nodes[Index].Group := Index;
  end;
  Snapshot := Default(TSnapshot);
  Snapshot.Nodes := Pointer(Nodes);
  Snapshot.NodeCount := Kinds;
  Snapshot.Groups := Pointer(Groups);
  Snapshot.GroupCount := Kinds;
  Check(RetainersOpen(Retainers, Snapshot), 'memory');
  Same(PathLimit, Retainers.PathCount, 'paths');
  Same(Kinds - PathLimit + 1, Retainers.Paths[NoPath].Count, 'blocks without one');
  Steps := 0;
  Longest := 0;
  for Index := 0 to PathLimit * 2 - 1 do
  begin
    Inc(Steps);
    if Retainers.Slots[Index] = NoPath then
      Steps := 0;
    if Steps > Longest then
      Longest := Steps;
  end;
  Check(Longest < MostSteps, 'full slots in a row');
  RetainersClose(Retainers);
end;

initialization
  RegisterTest(TPathTablesTests);
end.
