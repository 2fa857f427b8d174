/// The mailbox of the status page: takes the requests of a tool outside of the process.
//
// Owns:       the mailbox of the page, but for what the tool writes.
// Invariants: a request is obeyed in a signal handler. The interrupted thread may be anywhere, so
//             the handler first looks whether a lock that it may wait for is taken, maybe by the
//             very thread below it; then it leaves the request to the next signal, which the tool
//             sends until it has the answer. A lock that is free then is not one of this thread,
//             and a thread that takes it later goes on: the handler may wait for it.
//             Taken goes from one request to the next by one compare-and-swap, so each is obeyed
//             once, however many signals reach however many threads. See tests/model/mailbox.pml.
// Callers:    MailboxStart: once, before any other thread runs. The handler: any thread.
// Progress:   the handler waits a bounded time for the locks, and obeys no word that waits for the
//             interrupted thread.
unit LaneMM.Mailbox;

{$I ../LaneMM.inc}

interface

/// Makes the status page and sets the handlers of its signals, as the settings say.
procedure MailboxStart;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Lock, LaneMM.SettingsState,
  LaneMM.ObserveState, LaneMM.DebugState, LaneMM.LeaksState, LaneMM.Watch, LaneMM.StatusPage,
  LaneMM.OsPage, LaneMM.LivePage, LaneMM.Verbs;

// ---------------------------------------------------------------------------- safe moments

// Returns whether this thread holds none of what a word may wait for; nor the lock of the sampler,
// without which no other thread would sample for as long as a report takes.
function IsSafe: Boolean;
const
  PatienceMs = 3;
begin
  Result := WatchBecomesFree(Debug.Lock, PatienceMs) and WatchBecomesFree(Leaks.Lock, PatienceMs)
    and WatchBecomesFree(Observe.SampleLock, PatienceMs) and WatchIsQuiet and LivePageIsQuiet;
end;

// ---------------------------------------------------------------------------- requests

procedure Answer(var Mailbox: TPageMailbox);
var
  Words: array[0..WordsBytes - 1] of AnsiChar;
begin
  // Another process could change them meanwhile.
  Move(Mailbox.Words, Words, WordsBytes);
  Words[WordsBytes - 1] := #0;
  Mailbox.Answer[0] := #0;
  if IsSet(opAttach) then
    Mailbox.Outcome := Ord(VerbsObey(@Words, @Mailbox.Answer))
  else
    Mailbox.Outcome := Ord(poClosed);
  LivePageWrite;
end;

// Answers the request, unless it was taken; or leaves it to the next signal.
procedure Serve(var Mailbox: TPageMailbox);
var
  Requested, Taken: NativeUInt;
begin
  Taken := LoadAcquire(Mailbox.Taken.Value);
  // Acquire: the words after their number. Pairs with the tool's write.
  Requested := LoadAcquire(Mailbox.Requested.Value);
  if (Requested = Taken) or (Taken <> LoadAcquire(Mailbox.Answered.Value)) then
    Exit;
  if not IsSafe then
    FetchAdd(Mailbox.Postponed.Value, 1)
  else if CompareAndSwap(Mailbox.Taken.Value, Taken, Requested) then
  begin
    Answer(Mailbox);
    // Release: the answer before its number. Pairs with the tool's read.
    StoreRelease(Mailbox.Answered.Value, Requested);
  end;
end;

// Recovers a child process after fork; returns False in the middle of a recovery, which the signal
// has interrupted.
function HasRecovered: Boolean;
begin
  LockRecover;
  Result := (Process.ForkMark = nil) or (LoadAcquire(Process.ForkMark^) = 1);
end;

// The signal handler.
procedure TakeSignal(Signal: Integer); cdecl;
begin
  if not HasRecovered then
    Exit;
  LivePageRenew;
  // Of a child process that shares the memory of its parent, the page is that of the parent.
  if (LivePage <> nil) and (LivePage^.Head.ProcessId = OsProcessId) then
    Serve(LivePage^.Mailbox);
end;

// ---------------------------------------------------------------------------- start

procedure MailboxStart;
var
  Signals: TLiveSignals;
begin
  if not LivePageIsWanted then
    Exit;
  Signals := Default(TLiveSignals);
  if IsSet(opAttach) then
    OsPageSignals(TakeSignal, Signals[0], Signals[1]); // the program may take one itself later
  LivePageStart(Signals);
end;

end.
