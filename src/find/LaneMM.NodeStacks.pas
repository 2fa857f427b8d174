/// Backtraces of the blocks of a snapshot.
//
// Owns:       nothing.
// Callers:    any thread; a TSnapshot belongs to one.
unit LaneMM.NodeStacks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.BacktraceText, LaneMM.Snapshot;

/// Returns the number of the backtrace of a block that counts; 0 for any other, or without one.
function NodeStack(Node: PNode): Cardinal;
/// Symbolizes the backtraces of the blocks that count, each once.
procedure NodesSymbolize(const Snapshot: TSnapshot; out Symbolizer: TSymbolizer);

implementation

uses
  LaneMM.Hooks, LaneMM.Os, LaneMM.Walk, LaneMM.Unwind, LaneMM.BacktraceTable;

function NodeStack(Node: PNode): Cardinal;
var
  Block: TBlockInfo;
begin
  Result := 0;
  if (Node^.State = nsCounted) and WalkFind(Node^.Address, Block) then
    Result := Block.Stack;
end;

procedure NodesSymbolize(const Snapshot: TSnapshot; out Symbolizer: TSymbolizer);
const
  FirstStacks = 64;
  SeenBytes = (NodeMask + 1) div 8;
var
  Seen: PByte;
  Stack: TBacktrace;
  Index: NativeInt;
  Number, Place: Cardinal;
begin
  SymbolizerOpen(Symbolizer, FirstStacks);
  Seen := OsTakePages(SeenBytes); // a bit for each; without memory they are added many times
  for Index := 0 to NativeInt(Snapshot.NodeCount) - 1 do
  begin
    Number := NodeStack(Snapshot.Nodes + Index);
    Place := Number and NodeMask;
    if (Seen <> nil) and Odd(Seen[Place shr 3] shr (Place and 7))
      or not BacktraceRead(Number, Stack) then
      Continue;
    if Seen <> nil then
      Seen[Place shr 3] := Seen[Place shr 3] or 1 shl (Place and 7);
    SymbolizerAdd(Symbolizer, Stack);
  end;
  OsReleasePages(Seen, SeenBytes);
  SymbolizerResolve(Symbolizer);
end;

end.
