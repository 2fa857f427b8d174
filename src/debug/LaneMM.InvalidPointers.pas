/// Reports pointers that are no block in use, in a free, a resize or a question for the size.
//
// Owns:       nothing.
// Callers:    any thread that holds no lock.
unit LaneMM.InvalidPointers;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks, LaneMM.Messages, LaneMM.DebugState;

/// Reports a call with P, any pointer at which no debug block in use begins, and where it lies.
procedure InvalidReport(P: Pointer; Call: TInvalidCall);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Arena, LaneMM.Span, LaneMM.Walk, LaneMM.ReportState,
  LaneMM.DebugCheck, LaneMM.DebugReport, LaneMM.DebugSpans, LaneMM.GuardPages, LaneMM.Patterns;

// Returns the note about an address outside of the heap.
function NoteOutside(Address: NativeUInt): TNote;
begin
  if PatternIsNear(Address, Debug.FreeFill) then
    Result := noFreedFill
  else if PatternIsNear(Address, Debug.NewFill) then
    Result := noNewFill
  else
    Result := noElsewhere;
end;

// Adds to Finding where P lies, which is in no debug block.
procedure LookAround(P: Pointer; var Finding: TFinding);
var
  Span: PSpan;
  Info: TBlockInfo;
  IsInUse: Boolean;
begin
  Span := ArenaSpan(P);
  if Span = nil then
  begin
    Finding.Note := NoteOutside(NativeUInt(P));
    Exit;
  end;
  Finding.Note := noFree;
  GuardPagesHold;
  IsInUse := WalkFind(P, Info);
  GuardPagesLetGo;
  if IsInUse then
  begin
    Finding.Note := noNormal;
    Finding.Data := NativeUInt(Info.Address);
    Finding.Block.Size := Info.UsableSize;
  end
  else if (Span^.Kind = skBlocks) and SpanBlockIsValid(Span, P) then
  begin
    Finding.Kind := evDoubleFree;
    Finding.Message := msDoubleFree;
    Finding.Note := noNormal;
    Finding.Data := NativeUInt(P);
    Finding.Block.Size := Span^.BlockSize;
  end;
end;

procedure InvalidReport(P: Pointer; Call: TInvalidCall);
const
  Messages: array[TInvalidCall] of TMessage = (msInvalidFree, msInvalidRealloc, msInvalidSize);
var
  Finding: TFinding;
  Block: PDebugBlock;
begin
  Block := DebugBlockOf(P);
  if Block <> nil then
  begin
    FindingFrom(Finding, evInvalidFree, Messages[Call], Block);
    Finding.Note := noInner;
  end
  else
  begin
    Finding := Default(TFinding);
    Finding.Kind := evInvalidFree;
    Finding.Message := Messages[Call];
    LookAround(P, Finding);
  end;
  Finding.Address := NativeUInt(P);
  FindingReport(Finding);
end;

end.
