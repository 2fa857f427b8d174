/// Pauses all other threads, so that their stacks can be read.
//
// Owns:       Leaks.PauseSignal, PauseState, PauseAnswers, PauseStacks, PauseCookie.
// Invariants: a paused thread may hold any lock, so a report takes none until PauseEnd.
// Systems:    Linux: it waits in a signal handler, on its stack: its registers lie there, too; a
//             thread that blocks the signal keeps running. Windows: the system suspends it.
// Callers:    one thread, under Leaks.SearchLock.
// Progress:   PauseOthers waits for answers for a bounded time.
unit LaneMM.Pause;

{$I ../LaneMM.inc}

interface

type
  /// Visits the words of a stack from First up to Limit. Context is the caller's.
  TStackVisitor = procedure(First, Limit: NativeUInt; Context: Pointer);

/// Pauses the other threads, but for the purge thread. Linux: a library that may be unloaded pauses
/// none.
procedure PauseOthers;
/// Calls Visitor for the used part of the stack of each paused thread; Windows: also for its
/// registers and its variables.
procedure PauseVisitStacks(Visitor: TStackVisitor; Context: Pointer);
/// Resumes the paused threads.
procedure PauseEnd;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.ObserveState, LaneMM.LeaksState;

type
  TAsking = record
    OwnId: Cardinal;
    Count: NativeUInt;
  end;
  PAsking = ^TAsking;

// Returns whether the thread is another one of the program, none of LaneMM's own.
function IsOther(Id: Cardinal; Asking: PAsking): Boolean;
begin
  Result := (Id <> Asking^.OwnId) and (Id <> Process.PurgeThread)
    and (Id <> Observe.ReporterThread) and (Id <> LoadAcquire(Observe.AnswererThread));
end;

procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  if IsOther(Id, Context) then
    Inc(PAsking(Context)^.Count);
end;

// Counts the other threads. Returns whether there are any.
function CountOthers(out Asking: TAsking): Boolean;
begin
  Asking.OwnId := OsThreadId;
  Asking.Count := 0;
  OsVisitThreads(CountThread, @Asking);
  Result := Asking.Count <> 0;
end;

{$ifdef MSWINDOWS}
  {$I LaneMM.Pause.Windows.inc}
{$else}
  {$I LaneMM.Pause.Linux.inc}
{$endif}

end.
