/// Sends reports to the event log, stderr, a callback and the system's log, as Report.Rules says.
//
// Owns:       TEventRule.Count; Report.DamageCount.
// Invariants: the text lies in pages of its own; takes no lock and no memory of the heap.
// Callers:    any thread that holds no lock: a callback may use the heap, and a rule may end the
//             program.
unit LaneMM.Events;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.ReportState, LaneMM.Text;

const
  /// The end of the event log's file name, after the name of the program.
  EventLogSuffix = '_MemoryManager_EventLog.txt';

type
  /// A report under construction.
  TEvent = record
    Kind: TEventKind;  //< kind of the event
    Text: TText;       //< text of the report
  end;

/// Returns whether the rule of the kind lets the next event be reported.
function EventIsWanted(Kind: TEventKind): Boolean;
/// Counts an event and begins its report. Returns False when the rule of its kind suppresses the
/// report; then EventClose must not be called.
function EventOpen(out Event: TEvent; Kind: TEventKind): Boolean;
/// Sends the report as its rule says and frees the text; ends the program if the rule says so, or
/// Report.Aborts after a memory error.
procedure EventClose(var Event: TEvent);

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.OsSignals, LaneMM.LogFile, LaneMM.SystemLog;

const
  TextLimit = 4 shl 20;
  // Memory errors of the program, for the settings `abort`, `debug:abort` and `debug:exit`.
  Damage = [evDoubleFree..evBookkeeping, evMismatch, evCorruption];

function IsOn(const Rule: TEventRule): Boolean;
begin
  Result := (Rule.Targets <> []) or Rule.Halts;
end;

function EventIsWanted(Kind: TEventKind): Boolean;
var
  Rule: ^TEventRule;
begin
  Rule := @Report.Rules[Kind];
  Result := IsOn(Rule^) and not (Rule^.IsOnce and (LoadAcquire(Rule^.Count) <> 0));
end;

function EventOpen(out Event: TEvent; Kind: TEventKind): Boolean;
begin
  Event := Default(TEvent);
  Event.Kind := Kind;
  Result := IsOn(Report.Rules[Kind]);
  if Result and (Kind in Damage) then
    FetchAdd(Report.DamageCount, 1); // any order: a count
  if Result and (FetchAdd(Report.Rules[Kind].Count, 1) <> 0) and Report.Rules[Kind].IsOnce then
    Result := False;
  if Result then
    TextOpen(Event.Text, TextLimit);
end;

// Returns whether the event log has taken the text.
function IsInFile(const Text: TText): Boolean;
var
  Path: TText;
begin
  Result := TextOpen(Path, OsPageSize) and LogFileAppend(Text, EventLogSuffix, Path);
  TextClose(Path);
end;

// Sends the text to the files and the screen. What a log does not take goes to stderr, once.
procedure SendText(const Text: TText; Targets: TEventTargets);
begin
  if (etFile in Targets) and not IsInFile(Text) then
    Include(Targets, etScreen);
  if (etSystemLog in Targets) and not SystemLogSend(Text) then
    Include(Targets, etScreen);
  if etScreen in Targets then
    TextWrite(Text, OsStandardError);
end;

// Calls the program's routine, unless this thread is in it: an event that it causes itself would
// call it without end. The thread that purges calls it only where the run-time library knows that
// there are threads.
procedure CallProgram(const Event: TEvent);
var
  Call: TEventCall;
  Heap: PHeap;
begin
  Call := Report.Call; // once: the program may remove it meanwhile
  Heap := OsThreadHeap;
  if (@Call = nil) or (Heap <> nil) and Heap^.Notes.IsCalling
    or (OsThreadId = Process.PurgeThread) and not IsMultiThread then
    Exit;
  if Heap <> nil then
    Heap^.Notes.IsCalling := True;
  Call(Event.Kind, Event.Text.Start, Event.Text.Length);
  if Heap <> nil then
    Heap^.Notes.IsCalling := False;
end;

procedure EventClose(var Event: TEvent);
var
  Rule: TEventRule;
  Keep: TEventCall;
  Aborts: Boolean;
begin
  Keep := Report.Keep; // once: the end of the process removes it
  if @Keep <> nil then
    Keep(Event.Kind, Event.Text.Start, Event.Text.Length);
  Rule := Report.Rules[Event.Kind];
  Aborts := Report.Aborts and (Event.Kind in Damage);
  // Asked for by a tool, in a signal handler: the program's routine must not be called there.
  if ReportTaken(tkEvent, Event.Text.Start, Event.Text.Length) then
  begin
    Rule.Targets := [etFile];
    Rule.Halts := False;
    Aborts := False;
  end;
  SendText(Event.Text, Rule.Targets);
  if etCall in Rule.Targets then
    CallProgram(Event);
  TextClose(Event.Text);
  if Aborts then
    OsAbort;
  if Rule.Halts then
    Halt(Rule.ExitCode);
end;

end.
