/// Lets all other threads wait, so that their stacks can be looked at.
//
// Owns:       PauseSignal, PauseState, PauseAnswers, PauseStacks of Process.
// Invariants: a thread that waits does so in a signal handler, on its own stack: its registers lie
//             there, too. It may hold any lock of the program, but for those of LaneMM's report
//             there is none. Threads that block the signal do not answer and go on.
// Callers:    one thread, at the end of the program.
// Progress:   PauseOthers waits for answers for a bounded time.
unit LaneMM.Pause;

{$I ../LaneMM.inc}

interface

type
  /// Looks at the words of a stack from First up to Limit. Context is the caller's.
  TStackVisitor = procedure(First, Limit: NativeUInt; Context: Pointer);

/// Lets the other threads wait.
procedure PauseOthers;
/// Calls Visitor for the part of the stack of each waiting thread that is in use.
procedure PauseVisitStacks(Visitor: TStackVisitor; Context: Pointer);
/// Lets them go on.
procedure PauseEnd;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.LeaksState;

const
  // Linux's number for urgent data on a socket, which is ignored where nobody handles it, and some
  // without a meaning.
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

// In each thread that is asked.
procedure AwaitEnd(Signal: LongInt); cdecl;
var
  Place: NativeUInt;
begin
  Place := FetchAdd(Leaks.PauseAnswers, 1);
  if Place < MostThreads then
    // Release: pairs with VisitStacks.
    StoreRelease(PStacks(Leaks.PauseStacks)^[Place], NativeUInt(@Place));
  while LoadAcquire(Leaks.PauseState) = 1 do
    OsWait(Leaks.PauseState, 1);
end;

// Whether there is a signal that nobody uses.
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

// Waits until Count threads have answered, or long enough.
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
