/// Mends a span that a test has damaged, so that later tests find sums that agree.
unit Test.Repair;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  LaneMM.Types;

/// Puts all blocks of the span that look free on its list, as if nothing had been lost. The span is
/// the calling thread's; blocks that other threads have freed stay on their list.
procedure SpanRepair(Span: PSpan);

implementation

uses
  LaneMM.Span, LaneMM.RemoteList;

// Returns whether another thread has freed the block.
function IsOnRemoteList(Span: PSpan; Block: PBlock): Boolean;
var
  Offset: NativeUInt;
begin
  Offset := RemoteFirst(Span);
  while (Offset <> EndOfList) and (Span^.Start + Offset <> PByte(Block)) do
    Offset := LinkOf(Span, PBlock(Span^.Start + Offset)^.Link);
  Result := Offset <> EndOfList;
end;

procedure SpanRepair(Span: PSpan);
var
  Offset: NativeUInt;
  Block: PBlock;
begin
  SpanDropList(Span);
  Offset := 0;
  while Offset < Span^.CarvedBytes do
  begin
    Block := PBlock(Span^.Start + Offset);
    if WordMayBeLink(Span, Block^.Link) and not IsOnRemoteList(Span, Block) then
      SpanPut(Span, Block);
    Inc(Offset, Span^.BlockSize);
  end;
end;

end.
