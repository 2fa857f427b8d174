/// Timed reports: writes the profiles again after each period of the setting every=N.
//
// Owns:       Observe.ReportMs, ReportEveryMs, ReporterState, ReporterChanges, ReporterRights;
//             OwnThreads[otReporter].
// Invariants: a thread of LaneMM's own, the reporter, writes them. There is at most one; it starts
//             when the setting is first on, and waits without a timer while it is off again. In
//             the state Refused threads that sample write. docs/protocols.md, Timed reports, has
//             the steps of ReporterState and ReporterChanges.
// Callers:    TimedReportsApply: one thread at a time, also in a signal handler.
//             TimedReportsForget: the one thread of a child process. The others: any thread.
// Progress:   wait-free but for TimedReportsEnd, which waits for a report for a bounded time.
unit LaneMM.TimedReports;

{$I ../LaneMM.inc}

interface

/// Applies the settings `profile` and `every`: starts or wakes the reporter, which parks
/// without a period.
procedure TimedReportsApply;
/// Called after each sample: starts the reporter of a child process; where there can be none,
/// writes the report if it is time for it. Under no lock.
procedure TimedReportsSeen;
/// At the end of the program: waits until a report that the reporter has begun is written; then it
/// writes no other. Threads that sample in its place are not waited for.
procedure TimedReportsEnd;
/// In a child process: there is no reporter, and the period begins.
procedure TimedReportsForget;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.OsThread, LaneMM.SettingsState, LaneMM.ObserveState;

const
  // Values of Observe.ReporterState.
  NotStarted = 0;
  Waiting = 1;
  Writing = 2;
  Ended = 3;
  Refused = 4;

// Returns the milliseconds between two reports; 0: none is wanted.
function PeriodMs: Cardinal;
begin
  Result := 0;
  if IsSet(opProfile) then
    Result := Settings.Values[opEvery];
end;

// Returns the milliseconds until the report after that of the time Last; 0: it is due.
function MsLeft(Last: NativeUInt; Period: Cardinal): Cardinal;
var
  Passed: Cardinal;
begin
  Result := 0;
  Passed := OsNowMs - Cardinal(Last);
  if Passed < Period then
    Result := Period - Passed;
end;

// ---------------------------------------------------------------------------- the reporter

procedure WriteInTurn;
begin
  StoreRelease(Observe.ReportMs, OsNowMs);
  if not CompareAndSwap(Observe.ReporterState, Waiting, Writing) then
    Exit; // the program ends
  Observe.WriteReport;
  // Release: the files before the state. Pairs with TimedReportsEnd.
  StoreRelease(Observe.ReporterState, Waiting);
  OsWakeAll(Observe.ReporterState);
end;

// Returns whether the reporter ends, as the program has changed its user: it would keep the old
// rights.
function EndsForRights: Boolean;
begin
  Result := (OsRightsMark <> Observe.ReporterRights)
    and CompareAndSwap(Observe.ReporterState, Waiting, Refused);
end;

// The reporter.
procedure RunReporter;
var
  Changes: NativeUInt;
  Period, Left: Cardinal;
begin
  OwnThreads[otReporter] := OsThreadId;
  while not EndsForRights do
  begin
    // Acquire: the period after the count. Pairs with FetchAdd in TimedReportsApply.
    Changes := LoadAcquire(Observe.ReporterChanges);
    Period := PeriodMs;
    Left := MsLeft(LoadAcquire(Observe.ReportMs), Period);
    if Period = 0 then
      OsWait(Observe.ReporterChanges, Changes)
    else if Left > 0 then
      OsWaitMs(Observe.ReporterChanges, Changes, Left)
    else
      WriteInTurn;
  end;
  OwnThreads[otReporter] := 0;
end;

// Returns whether the thread of the reporter has been started. A library may be unloaded, under a
// thread that runs in it; the C library never is.
function StartItsThread: Boolean;
begin
  // Before it: the program may change its user before the thread runs.
  Observe.ReporterRights := OsRightsMark;
  Result := not OsMayUnload and OsBareThreadStart(RunReporter);
end;

// Starts the reporter unless that was tried.
procedure StartReporter;
begin
  if CompareAndSwap(Observe.ReporterState, NotStarted, Waiting) and not StartItsThread then
    CompareAndSwap(Observe.ReporterState, Waiting, Refused); // unless the program ends
end;

procedure TimedReportsApply;
begin
  if Observe.ReportEveryMs = PeriodMs then
    Exit;
  Observe.ReportEveryMs := PeriodMs;
  StoreRelease(Observe.ReportMs, OsNowMs);
  // Full barrier: the period before the count. Pairs with LoadAcquire in RunReporter.
  FetchAdd(Observe.ReporterChanges, 1);
  OsWake(Observe.ReporterChanges);
  if PeriodMs > 0 then
    StartReporter;
end;

procedure TimedReportsEnd;
const
  PatienceMs = 10000;
var
  Start: Cardinal;
  State: NativeUInt;
begin
  Start := OsNowMs;
  repeat
    // Acquire: the files of a report. Pairs with StoreRelease in WriteInTurn.
    State := LoadAcquire(Observe.ReporterState);
    if State = Writing then
      OsWaitMs(Observe.ReporterState, Writing, PatienceMs)
    else if (State >= Ended) or CompareAndSwap(Observe.ReporterState, State, Ended) then
      Exit;
  until Cardinal(OsNowMs - Start) >= PatienceMs;
end;

procedure TimedReportsForget;
begin
  OwnThreads[otReporter] := 0;
  StoreRelease(Observe.ReportMs, OsNowMs);
  StoreRelease(Observe.ReporterState, NotStarted);
end;

// ---------------------------------------------------------------------------- without a reporter

// Writes the report if it is time for it: one of the threads that see the time pass.
procedure WriteIfDue;
var
  Last: NativeUInt;
begin
  Last := LoadAcquire(Observe.ReportMs);
  if (MsLeft(Last, PeriodMs) = 0) and CompareAndSwap(Observe.ReportMs, Last, OsNowMs) then
  begin
    Observe.WriteReport;
    StoreRelease(Observe.ReportMs, OsNowMs); // it may take longer than the period
  end;
end;

procedure TimedReportsSeen;
begin
  if PeriodMs = 0 then
    Exit;
  case LoadAcquire(Observe.ReporterState) of
    NotStarted: StartReporter;
    Refused: WriteIfDue;
  end;
end;

end.
