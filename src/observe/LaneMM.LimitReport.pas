/// Reports of memory limits: the soft one, the hard one, the emergency reserve.
//
// Owns:       nothing.
// Callers:    LimitReport: set as Hooks.LimitReached; any thread that holds no lock.
unit LaneMM.LimitReport;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

/// Reports the event with the backtrace of the request; Size is the request in bytes, or 0.
procedure LimitReport(Event: TLimitEvent; Size: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.Arena, LaneMM.ReportState, LaneMM.Events,
  LaneMM.Messages, LaneMM.Text, LaneMM.BacktraceText, LaneMM.Modules, LaneMM.Unwind;

// Returns the size in bytes of the limit, or of the reserve.
function BytesOf(Event: TLimitEvent): NativeUInt;
begin
  case Event of
    leSoft: Result := Process.Limits[lkSoft].Slices;
    leHard: Result := Process.Limits[lkHard].Slices;
  else
    Result := Process.ReserveSlices;
  end;
  Result := Result shl SliceShift;
end;

procedure AddStack(var Text: TText; const Fields: TFields; const Here: TBacktrace);
var
  Symbolizer: TSymbolizer;
begin
  ModulesLook;
  SymbolizerOpen(Symbolizer, 1);
  SymbolizerAdd(Symbolizer, Here);
  SymbolizerResolve(Symbolizer);
  MessageAdd(Text, msHereStack, Fields);
  BacktraceAddText(Text, Symbolizer, Here);
  SymbolizerClose(Symbolizer);
end;

procedure LimitReport(Event: TLimitEvent; Size: NativeUInt);
const
  Messages: array[TLimitEvent] of TMessage = (msLimitSoft, msLimitHard, msReserve);
var
  Here: TBacktrace;
  Opened: TEvent;
  Fields: TFields;
begin
  BacktraceTake(Here);
  if not EventOpen(Opened, evLimit) then
    Exit;
  FieldsOpen(Fields);
  FieldName(Fields, fiProcess, OsProcessId);
  FieldName(Fields, fiThread, OsThreadId);
  FieldCount(Fields, fiSize, BytesOf(Event), 'byte');
  FieldCount(Fields, fiUsable, ArenaBackedSlices shl SliceShift, 'byte');
  FieldCount(Fields, fiGiven, Size, 'byte');
  MessageAdd(Opened.Text, msHead, Fields);
  MessageAdd(Opened.Text, Messages[Event], Fields);
  AddStack(Opened.Text, Fields, Here);
  FieldsClose(Fields);
  EventClose(Opened);
end;

end.
