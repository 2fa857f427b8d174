/// Pauses all other threads, so that their stacks can be read.
//
// Owns:       Leaks.PauseSignal, PauseState, PauseAnswers, PauseStacks.
// Invariants: a paused thread waits in a signal handler, on its own stack: its registers lie there,
//             too. It may hold any lock, so a report takes none until PauseEnd. A thread that
//             blocks the signal keeps running.
// Callers:    one thread, at the end of the program.
// Progress:   PauseOthers waits for answers for a bounded time.
unit LaneMM.Pause;

{$I ../LaneMM.inc}

interface

type
  /// Visits the words of a stack from First up to Limit. Context is the caller's.
  TStackVisitor = procedure(First, Limit: NativeUInt; Context: Pointer);

/// Pauses the other threads, but for the purge thread.
procedure PauseOthers;
/// Calls Visitor for the used part of the stack of each paused thread.
procedure PauseVisitStacks(Visitor: TStackVisitor; Context: Pointer);
/// Resumes the paused threads.
procedure PauseEnd;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.LeaksState;

const
  // SIGURG on Linux, which is ignored unless the program handles it, and signals without a meaning.
  Signals: array[0..3] of Cardinal = (23, 60, 61, 62);
  MostThreads = 65536;
  PatienceMs = 10;
  MostRounds = 50;

type
  TStacks = array[0..MostThreads - 1] of TAtomicWord;
  PStacks = ^TStacks;

  TAsking = record
    OwnId: Cardinal;
    Count: NativeUInt;
  end;
  PAsking = ^TAsking;

// The signal handler: runs in each thread that receives the signal.
procedure AwaitEnd(Signal: Integer); cdecl;
var
  Place: NativeUInt;
begin
  // Full barrier: PauseStacks is read after this. Pairs with PauseOthers.
  Place := FetchAdd(Leaks.PauseAnswers, 1);
  if Place < MostThreads then
    // Release: the stack before its address. Pairs with PauseVisitStacks.
    StoreRelease(PStacks(Leaks.PauseStacks)^[Place], NativeUInt(@Place));
  while LoadAcquire(Leaks.PauseState) = 1 do
    OsWait(Leaks.PauseState, 1);
end;

// Takes a signal that the program neither handles nor ignores; False when there is none.
function TakeSignal: Boolean;
var
  Index: Cardinal;
begin
  for Index := 0 to High(Signals) do
    if (Leaks.PauseSignal = 0) and OsSignalSet(Signals[Index], AwaitEnd, suAgain) then
      Leaks.PauseSignal := Signals[Index];
  Result := Leaks.PauseSignal <> 0;
end;

procedure CountThread(Id: Cardinal; Context: Pointer);
begin
  if (Id <> PAsking(Context)^.OwnId) and (Id <> Process.PurgeThread) then
    Inc(PAsking(Context)^.Count);
end;

procedure AskThread(Id: Cardinal; Context: Pointer);
begin
  if (Id <> PAsking(Context)^.OwnId) and (Id <> Process.PurgeThread) then
    OsSignalSendTo(Id, Leaks.PauseSignal);
end;

// Waits until Count threads have answered, MostRounds * PatienceMs at most.
procedure AwaitAnswers(Count: NativeUInt);
var
  Round, Answers: NativeUInt;
begin
  for Round := 1 to MostRounds do
  begin
    Answers := LoadAcquire(Leaks.PauseAnswers);
    if Answers >= Count then
      Exit;
    OsWaitMs(Leaks.PauseAnswers, Answers, PatienceMs);
  end;
end;

procedure PauseVisitStacks(Visitor: TStackVisitor; Context: Pointer);
var
  Index: NativeInt;
  Stack: NativeUInt;
  Mapping: TOsMapping;
begin
  for Index := 0 to NativeInt(LoadAcquire(Leaks.PauseAnswers)) - 1 do
  begin
    Stack := 0;
    if Index < MostThreads then
      // Acquire: the stack after its address. Pairs with AwaitEnd.
      Stack := LoadAcquire(PStacks(Leaks.PauseStacks)^[Index]);
    if (Stack <> 0) and OsFindMapping(Stack, Mapping) then
      Visitor(Stack and not (SizeOf(Pointer) - 1), Mapping.Limit, Context);
  end;
end;

procedure PauseOthers;
var
  Asking: TAsking;
begin
  Asking.OwnId := OsThreadId;
  Asking.Count := 0;
  OsVisitThreads(CountThread, @Asking);
  if (Asking.Count = 0) or not TakeSignal then
    Exit;
  if Leaks.PauseStacks = nil then
    Leaks.PauseStacks := OsTakePages(SizeOf(TStacks));
  if Leaks.PauseStacks = nil then
    Exit;
  // Release: PauseStacks before the count. Pairs with AwaitEnd.
  StoreRelease(Leaks.PauseAnswers, 0);
  StoreRelease(Leaks.PauseState, 1);
  OsVisitThreads(AskThread, @Asking);
  AwaitAnswers(Asking.Count);
end;

procedure PauseEnd;
begin
  StoreRelease(Leaks.PauseState, 0);
  OsWakeAll(Leaks.PauseState);
end;

end.
