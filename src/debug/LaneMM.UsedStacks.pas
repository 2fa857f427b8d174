/// The backtraces that blocks use: what a sweep of their table keeps.
//
// Owns:       nothing.
// Invariants: reads no contents of blocks, which another thread may release meanwhile: the notes of
//             `stacks` lie beside the heap, and the records of debug blocks are read by the system.
//             So the note of a freed block counts as long as no other block is in its place.
// Callers:    the thread that sweeps, through Stacks.VisitNumbers, which LaneMM.Watch sets.
unit LaneMM.UsedStacks;

{$I ../LaneMM.inc}

interface

/// Calls BacktraceMark for the numbers of all blocks.
procedure UsedStacksMark;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.Walk, LaneMM.BacktraceTable, LaneMM.DebugState,
  LaneMM.DebugSpans, LaneMM.BlockNotes;

procedure MarkRecords(Span: PSpan);
const
  Portion = OsPageSize div SizeOf(TDebugBlock); // the first page of any span can be read
var
  Blocks: array[0..Portion - 1] of TDebugBlock;
  Index: Cardinal;
begin
  for Index := 0 to DebugBlockCount(Span) - 1 do
  begin
    if (Index mod Portion = 0)
      and not OsRead(NativeUInt(DebugBlockAt(Span, Index)), @Blocks, SizeOf(Blocks)) then
      Exit; // it was released
    BacktraceMark(Blocks[Index mod Portion].AllocStack);
    BacktraceMark(Blocks[Index mod Portion].FreeStack);
  end;
end;

procedure VisitSpan(Span: PSpan; Context: Pointer);
begin
  if Span^.Kind <> skDebug then
    NotesMark(Span)
  else if DebugBlockCount(Span) > 0 then
    MarkRecords(Span);
end;

procedure UsedStacksMark;
begin
  WalkSpans(VisitSpan, nil);
end;

end.
