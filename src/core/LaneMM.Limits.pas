/// Limits of what the heap holds, and the reserve for the time when there is no memory.
//
// Owns:       Process.Limits, HasLimits, ReserveSlices, MemoryFailed.
// Invariants: what is limited are the slices that the arena counts as backed: spans in use and
//             free runs that are warm. They are counted and taken under the arena's lock, so a hard
//             limit is exact. Before it refuses, and before a soft limit is reported, free memory
//             has been given back.
// Callers:    LimitsApply, LimitsTick: any thread that holds no lock.
unit LaneMM.Limits;

{$I ../LaneMM.inc}

interface

/// Does what Process.Settings says.
procedure LimitsApply;
/// Where memory may have grown, if there are limits: reports what was reached, fills the reserve.
procedure LimitsTick;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Unwind, LaneMM.Modules, LaneMM.Messages,
  LaneMM.Arena, LaneMM.Reserve, LaneMM.BacktraceText, LaneMM.Events, LaneMM.Threads;

// ---------------------------------------------------------------------------- reports

procedure AddStack(var Event: TEvent; const Fields: TFields; const Here: TStack);
var
  Traces: TTraces;
begin
  ModulesLook;
  TracesOpen(Traces, 1);
  TracesAdd(Traces, Here);
  TracesResolve(Traces);
  MessageAdd(Event.Text, msHereStack, Fields);
  TraceAdd(Event.Text, Traces, Here);
  TracesClose(Traces);
end;

// Reports Message about Slices, at a request of Size bytes.
procedure Tell(Message: TMessage; Slices, Size: NativeUInt; const Here: TStack);
var
  Event: TEvent;
  Fields: TFields;
begin
  if not EventOpen(Event, evLimit) then
    Exit;
  FieldsOpen(Fields);
  FieldName(Fields, fiProcess, OsProcessId);
  FieldName(Fields, fiThread, OsThreadId);
  FieldNumber(Fields, fiSize, Slices shl SliceShift);
  FieldNumber(Fields, fiUsable, ArenaBackedSlices shl SliceShift);
  FieldNumber(Fields, fiGiven, Size);
  MessageAdd(Event.Text, msHead, Fields);
  MessageAdd(Event.Text, Message, Fields);
  AddStack(Event, Fields, Here);
  FieldsClose(Fields);
  EventClose(Event);
end;

// Whether the limit was reached and this thread is the one that tells of it.
function IsNews(Kind: TLimitKind): Boolean;
begin
  Result := CompareAndSwap(Process.Limits[Kind].State, Ord(lsReached), Ord(lsTold));
end;

// ---------------------------------------------------------------------------- soft

// Gives free memory back; tells whether the soft limit is exceeded still.
function IsAboveSoft: Boolean;
begin
  ArenaPurge(ArenaBackedSlices - Process.Limits[lkSoft].Slices);
  if ArenaExceeds(lkSoft, 0) then
    ProcessTrim;
  Result := ArenaExceeds(lkSoft, 0);
end;

procedure SoftReached;
var
  Here: TStack;
begin
  if not ArenaExceeds(lkSoft, 0) or not IsAboveSoft then
  begin
    StoreRelease(Process.Limits[lkSoft].State, Ord(lsBelow));
    Exit;
  end;
  StackTake(Here);
  Tell(msLimitSoft, Process.Limits[lkSoft].Slices, 0, Here);
end;

procedure LimitsTick;
begin
  ReserveFill;
  if (LoadAcquire(Process.Limits[lkSoft].State) = Ord(lsReached)) and IsNews(lkSoft) then
    SoftReached;
end;

// ---------------------------------------------------------------------------- hard

// Size bytes were not to be had, also after free memory was given back.
procedure MemoryFailed(Size: TSize);
var
  Here: TStack;
  IsLimit, IsOpened: Boolean;
begin
  StackTake(Here);
  IsLimit := IsNews(lkHard);
  IsOpened := ReserveOpen; // first: who is told may need it
  if IsLimit then
    Tell(msLimitHard, Process.Limits[lkHard].Slices, Size, Here);
  if IsOpened then
    Tell(msReserve, Process.ReserveSlices, Size, Here);
end;

// ---------------------------------------------------------------------------- all

procedure SetLimit(Kind: TLimitKind; Option: TOption);
var
  Slices: NativeUInt;
begin
  Slices := Process.Settings.Values[Option] shr SliceShift;
  if (Slices = 0) and (Process.Settings.Values[Option] <> 0) then
    Slices := 1;
  if Slices = Process.Limits[Kind].Slices then
    Exit;
  Process.Limits[Kind].Slices := Slices;
  StoreRelease(Process.Limits[Kind].State, Ord(lsBelow));
end;

procedure SetReserve;
var
  Slices: NativeUInt;
begin
  Slices := (Process.Settings.Values[opReserve] + SliceSize - 1) shr SliceShift;
  if Slices = Process.ReserveSlices then
    Exit;
  ReserveDrop;
  Process.ReserveSlices := Slices;
end;

procedure LimitsApply;
begin
  SetLimit(lkSoft, opLimitSoft);
  SetLimit(lkHard, opLimit);
  SetReserve;
  Process.HasLimits := (Process.Limits[lkSoft].Slices or Process.Limits[lkHard].Slices
    or Process.ReserveSlices) <> 0;
  if not Process.HasLimits then
    Exit;
  Process.MemoryFailed := MemoryFailed;
  ReserveTake;
end;

end.
