// Leaks eight blocks; the table of backtraces is full when the last one is allocated. With an
// argument that block is overrun.
program FullTable;

{$mode delphi}{$pointermath on}

uses
  LaneMM, LaneMM.StacksState;

var
  Block: PByte;
  Turn: Integer;
begin
  for Turn := 1 to 7 do
    GetMem(Block, 50);
  // The number of nodes that were made is the table's first word. Nothing is swept.
  Stacks.VisitNumbers := nil;
  PNativeUInt(Stacks.Table)^ := High(Cardinal);
  GetMem(Block, 60);
  if ParamCount > 0 then
    Block[60] := 1;
end.
