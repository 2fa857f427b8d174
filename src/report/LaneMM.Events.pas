/// Reports: to the event log, the standard error output, a callback, as Report.Rules says.
//
// Owns:       Report.Call.
// Invariants: the text lies in room of its own; nothing here takes memory of the heap or a lock.
// Callers:    any thread that holds no lock: a callback may use the heap, and a rule may end the
//             program.
unit LaneMM.Events;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.ReportState, LaneMM.Text;


const
  /// What follows the program's name in the name of the event log.
  EventLogSuffix = '_MemoryManager_EventLog.txt';

type
  /// A report under construction.
  TEvent = record
    Kind: TEventKind;  //< what happened
    Text: TText;       //< what is said about it
  end;

/// Begins a report. False when nobody wants to hear of it (again): no EventClose then.
function EventOpen(out Event: TEvent; Kind: TEventKind): Boolean;
/// Sends the report to where its kind goes, and ends the program if its rule says so.
procedure EventClose(var Event: TEvent);

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.LogFile;

const
  TextLimit = 4 shl 20;

function EventOpen(out Event: TEvent; Kind: TEventKind): Boolean;
begin
  Event := Default(TEvent);
  Event.Kind := Kind;
  Result := (Report.Rules[Kind].Targets <> []) or Report.Rules[Kind].Halts;
  if Result and (FetchAdd(Report.Rules[Kind].Count, 1) <> 0) and Report.Rules[Kind].IsOnce then
    Result := False;
  if Result then
    TextOpen(Event.Text, TextLimit);
end;

procedure ToFile(const Text: TText; IsOnScreen: Boolean);
var
  Path: TText;
begin
  if not TextOpen(Path, OsPageSize) then
    Exit;
  if not LogFileAppend(Text, EventLogSuffix, Path) and not IsOnScreen then
    TextWrite(Text, OsStandardError);
  TextClose(Path);
end;

procedure EventClose(var Event: TEvent);
var
  Rule: TEventRule;
  Call: TEventCall;
begin
  Rule := Report.Rules[Event.Kind];
  if etFile in Rule.Targets then
    ToFile(Event.Text, etScreen in Rule.Targets);
  if etScreen in Rule.Targets then
    TextWrite(Event.Text, OsStandardError);
  Call := Report.Call;
  if (etCall in Rule.Targets) and (@Call <> nil) then
    Call(Event.Kind, Event.Text.Start, Event.Text.Length);
  TextClose(Event.Text);
  if Rule.Halts then
    Halt(Rule.ExitCode);
end;

end.
