/// The lines of the program that a count has found.
//
// Owns:       nothing.
// Callers:    the thread whose count ends.
unit LaneMM.CountedPlaces;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Counting;

type
  /// The allocations at one line.
  TCountedPlace = record
    Place: PAnsiChar;        //< owner   the line and its routine; nil: unknown, or a full table
    Count: NativeUInt;       //< owner   allocations
    Bytes: NativeUInt;       //< owner   bytes that they asked for
  end;
  /// Receives one line, valid during the call. Context is the caller's.
  TCountedVisitor = procedure(const Place: TCountedPlace; Context: Pointer);

/// CountStop; calls Visitor, unless it is nil, for the lines, that with most allocations first.
function CountStopAt(out Counts: TCounts; Visitor: TCountedVisitor; Context: Pointer): Boolean;

implementation

uses
  LaneMM.Text, LaneMM.BacktraceTable, LaneMM.BacktraceText, LaneMM.Unwind,
  LaneMM.Advice;

type
  TVisiting = record
    Visitor: TCountedVisitor;
    Context: Pointer;
  end;
  PVisiting = ^TVisiting;

// Sets Line of each site, and adds those of one line to the first of them.
procedure JoinSites(Sites: PCountSites; const Symbolizer: TSymbolizer);
var
  Index, Earlier: Cardinal;
  Stack: TBacktrace;
begin
  for Index := 0 to CountSiteSlots - 1 do
  begin
    if (Sites^[Index].Count = 0) or not BacktraceRead(Sites^[Index].Stack, Stack) then
      Continue;
    Sites^[Index].Line := BacktraceFrameKey(Symbolizer.Symbols,
      AdvicePlace(Symbolizer.Symbols, Stack));
    Earlier := 1;
    while (Earlier < Index) and ((Sites^[Earlier].Count = 0)
      or (Sites^[Earlier].Line <> Sites^[Index].Line)) do
      Inc(Earlier);
    if Earlier = Index then
      Continue;
    Inc(Sites^[Earlier].Count, Sites^[Index].Count);
    Inc(Sites^[Earlier].Bytes, Sites^[Index].Bytes);
    Sites^[Index].Count := 0;
  end;
end;

procedure VisitSite(const Site: TCountSite; const Symbolizer: TSymbolizer; Visiting: PVisiting);
var
  Place: TCountedPlace;
  Text: TText;
begin
  Place.Count := Site.Count;
  Place.Bytes := Site.Bytes;
  Place.Place := AdviceOpenLine(Text, Symbolizer.Symbols, Site.Stack);
  Visiting^.Visitor(Place, Visiting^.Context);
  TextClose(Text);
end;

// Visits the lines, that with most allocations first.
procedure VisitSites(Sites: PCountSites; Context: Pointer);
var
  Symbolizer: TSymbolizer;
  Stack: TBacktrace;
  Index: Cardinal;
  Most: PCountSite;
begin
  SymbolizerOpen(Symbolizer, CountSiteSlots);
  for Index := 0 to CountSiteSlots - 1 do
    if (Sites^[Index].Count > 0) and BacktraceRead(Sites^[Index].Stack, Stack) then
      SymbolizerAdd(Symbolizer, Stack);
  SymbolizerResolve(Symbolizer);
  JoinSites(Sites, Symbolizer);
  repeat
    Most := @Sites^[0];
    for Index := 1 to CountSiteSlots - 1 do
      if Sites^[Index].Count > Most^.Count then
        Most := @Sites^[Index];
    if Most^.Count = 0 then
      Break;
    VisitSite(Most^, Symbolizer, Context);
    Most^.Count := 0;
  until False;
  SymbolizerClose(Symbolizer);
end;

function CountStopAt(out Counts: TCounts; Visitor: TCountedVisitor; Context: Pointer): Boolean;
var
  Visiting: TVisiting;
begin
  Visiting.Visitor := Visitor;
  Visiting.Context := Context;
  if @Visitor = nil then
    Result := CountStop(Counts, nil, nil)
  else
    Result := CountStop(Counts, VisitSites, @Visiting);
end;

end.
