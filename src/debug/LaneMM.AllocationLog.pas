/// The allocation log: an event for each allocation and free of a debug block that the settings
/// choose.
//
// Owns:       Debug.IsLogging, LoggedCount; TThreadNotes.IsLogging.
// Invariants: at most `trace:most` events are logged; AllocationLogEnd reports how many more there
//             were. Those that their rule leaves out do not count. Allocations and frees of an
//             event callback are not logged.
// Callers:    AllocationLogAllocated, AllocationLogFreed: the thread that changes the block.
//             AllocationLogApply: any thread. AllocationLogEnd: the end of the program.
unit LaneMM.AllocationLog;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.DebugState;

/// Turns the log on or off, as Settings says.
procedure AllocationLogApply;
/// Logs the allocation of Block if it is chosen. Block is in the state dsChanging.
procedure AllocationLogAllocated(Block: PDebugBlock);
/// Logs the free of Block if it is chosen. Its record is complete, its contents are not filled yet.
procedure AllocationLogFreed(Block: PDebugBlock);
/// Reports how many events were not logged, if any.
procedure AllocationLogEnd;
/// Reports Block, the allocation with the number of the setting `break`, in the state dsChanging. A
/// good place for a breakpoint.
procedure NumberReached(Block: PDebugBlock);

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.ReportState, LaneMM.Events, LaneMM.Messages,
  LaneMM.ReportHead, LaneMM.Text, LaneMM.SettingsState, LaneMM.Contents,
  LaneMM.DebugReport;

procedure AllocationLogApply;
begin
  Debug.IsLogging := IsSet(opTrace) or IsSet(opTraceSize) or IsSet(opTraceNumber)
    or IsSet(opTraceGroup) or IsSet(opTraceClass);
end;

// ---------------------------------------------------------------------------- choice

function IsInRange(Option: TOption; Value: NativeUInt): Boolean;
begin
  Result := not IsSet(Option) or (Value >= Settings.Ranges[Option].First)
    and (Value <= Settings.Ranges[Option].Last);
end;

function IsChosen(Block: PDebugBlock): Boolean;
begin
  Result := IsInRange(opTraceSize, Block^.Size) and IsInRange(opTraceNumber, Block^.Number)
    and IsInRange(opTraceGroup, Block^.Group);
end;

// Returns True if the setting names the class, with the name of its unit or without.
function IsOfClass(ClassId: NativeUInt): Boolean;
var
  Name: TText;
  Start: PAnsiChar;
begin
  Result := False;
  if not ClassIsValid(ClassId) or not TextOpen(Name, OsPageSize) then
    Exit;
  ClassAddName(Name, ClassId);
  TextAdd(Name, #0);
  Start := Name.Start;
  repeat
    Result := TextFits(Start, @Settings.TraceClass);
    while not (Start^ in ['.', #0]) do
      Inc(Start);
    if Start^ = '.' then
      Inc(Start);
  until Result or (Start^ = #0);
  TextClose(Name);
end;

// ---------------------------------------------------------------------------- events

// Reports a block that this thread changes; State is the one that it is to have.
procedure Tell(Block: PDebugBlock; Kind: TEventKind; Message: TMessage; State: TDebugState);
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if (Heap = nil) or Heap^.Notes.IsLogging or not EventIsWanted(Kind)
    or (FetchAdd(Debug.LoggedCount, 1) >= Settings.Values[opTraceMost]) then
    Exit;
  Heap^.Notes.IsLogging := True;
  FindingReportChange(Block, Kind, Message, State);
  Heap^.Notes.IsLogging := False;
end;

procedure AllocationLogAllocated(Block: PDebugBlock);
begin
  // The class is not known before the contents are.
  if IsChosen(Block) and not IsSet(opTraceClass) then
    Tell(Block, evAllocation, msLogAllocated, dsInUse);
end;

procedure AllocationLogFreed(Block: PDebugBlock);
begin
  if IsChosen(Block) and (not IsSet(opTraceClass) or IsOfClass(Block^.FirstWord)) then
    Tell(Block, evFree, msLogFreed, dsFreed);
end;

procedure NumberReached(Block: PDebugBlock);
begin
  FindingReportChange(Block, evNumber, msNumber, dsInUse);
end;

procedure AllocationLogEnd;
var
  Count, Most: NativeUInt;
  Kind: TEventKind;
  Event: TEvent;
  Fields: TFields;
begin
  Count := LoadAcquire(Debug.LoggedCount);
  Most := Settings.Values[opTraceMost];
  Kind := evAllocation;
  if not EventIsWanted(Kind) then
    Kind := evFree;
  if (Count <= Most) or not EventOpen(Event, Kind) then
    Exit;
  FieldsOpen(Fields);
  FieldNumber(Fields, fiCount, '%g event%+', NativeUInt(Count - Most));
  FieldNumber(Fields, fiNumber, '%g', Most);
  HeadAdd(Event.Text, Fields);
  MessageAdd(Event.Text, msLogLeft, Fields);
  FieldsClose(Fields);
  EventClose(Event);
end;

end.
