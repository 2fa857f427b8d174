/// Mends a span that a test has damaged, so that later tests find sums that agree.
unit Test.Repair;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  LaneMM.Types;

/// Puts all blocks of the span that look free on its list, as if nothing had been lost. The span is
/// the calling thread's, and no other thread has freed a block that it has not collected.
procedure SpanRepair(Span: PSpan);

implementation

uses
  LaneMM.Span;

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
    if WordMayBeLink(Span, Block^.Link) then
      SpanPut(Span, Block);
    Inc(Offset, Span^.BlockSize);
  end;
end;

end.
