/// The mailbox of the status page: takes the requests of a tool outside of the process.
//
// Owns:       the mailbox of the page, but for what the tool writes; Hooks.Ring, Process.BellSeen,
//             OwnThreads[otAnswerer].
// Invariants: no signal, no file and, unless `attach=2` asks for it, no thread is there for
//             requests. A tool changes Process.Bell. A thread that sees it, in a slow path of
//             GetMem or FreeMem, or the purge thread, starts a thread that answers and ends: it has
//             a stack of its own and holds no lock. The tool itself starts one in a program that
//             does nothing, if the system lets it. Where there is no such thread (not on x86_64,
//             a library that may be unloaded, a thread key beyond the fast slots), the thread that
//             saw the change answers, if its stack has room.
//             The answering thread first looks whether a lock that it may wait for is taken, maybe
//             by the very thread that it is; then it leaves the request to the next ring.
//             Taken goes from one request to the next by one compare-and-swap, so each is obeyed
//             once, however many threads answer. See tests/model/mailbox.pml.
// Callers:    MailboxStart: once, before any other thread runs. The hook: any thread.
// Progress:   the answering thread waits a bounded time for the locks.
unit LaneMM.Mailbox;

{$I ../LaneMM.inc}

interface

/// Makes the status page as the settings say.
procedure MailboxStart;

implementation

uses
  LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.OsThread,
  LaneMM.Lock, LaneMM.Heap, LaneMM.Threads, LaneMM.SettingsState, LaneMM.ObserveState,
  LaneMM.DebugState, LaneMM.LeaksState, LaneMM.Watch, LaneMM.StatusPage, LaneMM.LivePage,
  LaneMM.Verbs;

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

// Answers the request, unless it was taken; or leaves it to the next ring.
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

// Recovers a child process after fork; returns False in the middle of a recovery.
function HasRecovered: Boolean;
begin
  LockRecover;
  Result := LockHasRecovered;
end;

procedure ServePage;
begin
  LivePageRenew;
  if LivePageIsOwn then
    Serve(LivePage^.Mailbox);
end;

// ---------------------------------------------------------------------------- who answers

// Returns whether this thread waits for the next ring: it is the one that `attach=2` asks for, and
// the program has the user with whom it started, whom a thread of LaneMM's own keeps.
function StaysForNext: Boolean;
begin
  Result := (Settings.Values[opAttach] = 2) and OsPageIsAllowed
    and (CompareAndSwap(OwnThreads[otAnswerer], 0, OsThreadId)
    or (LoadAcquire(OwnThreads[otAnswerer]) = OsThreadId));
end;

// A thread of LaneMM's own. It recovers a child process after fork, unless the other thread there
// has to: the records of heaps that are made anew must not be in use.
procedure RunAnswerer;
var
  Rung: NativeUInt;
  HasOwnHeap: Boolean;
begin
  HasOwnHeap := OsThreadHeap = nil; // without a thread library that of the main thread is there
  if not LockHasRecovered
    and not (HeapIsOnly and (LoadAcquire(Process.PurgeState) = 0) and HasRecovered) then
    Exit;
  repeat
    // Acquire: before the request is looked for, so that none is missed. Pairs with the tool's
    // write.
    Rung := LoadAcquire(LivePage^.Mailbox.Bell.Value);
    ServePage;
    if not StaysForNext then
      Break;
    OsPageWait(LivePage^.Mailbox.Bell.Value, Cardinal(Rung));
  until not OsPageIsAllowed;
  CompareAndSwap(OwnThreads[otAnswerer], OsThreadId, 0);
  if HasOwnHeap and (OsThreadHeap <> nil) then
    ThreadEnd(OsThreadHeap); // no thread library does it
end;

// Answers on the stack of a thread of the program, if that has room. One mapping may have several
// stacks, with guard pages between, see OsFindStack.
procedure AnswerHere;
const
  StackNeed = 128 shl 10;
var
  Mapping: TOsMapping;
  OnStack: Byte;
begin
  if OsThreadIsMain or OsFindRegion(NativeUInt(@OnStack), Mapping)
    and (NativeUInt(NativeUInt(@OnStack) - Mapping.First) >= StackNeed)
    and OsCanRead(Pointer(NativeUInt(@OnStack) and not NativeUInt(OsPageSize - 1) - StackNeed),
    StackNeed) then
    ServePage;
end;

// Returns whether the tool rings for this process, and no thread is at work on it.
function IsForThis: Boolean;
var
  Page: PStatusPage;
begin
  Page := LivePage;
  if LivePageIsOwn then
    Result := LoadAcquire(Page^.Mailbox.Requested.Value) <> LoadAcquire(Page^.Mailbox.Taken.Value)
  else
    Result := LoadAcquire(Page^.Mailbox.Wanted.Value) = OsProcessId;
end;

// Set as Hooks.Ring. Of several threads one acts.
procedure TakeRing;
var
  Seen, Rung: NativeUInt;
begin
  Seen := LoadAcquire(Process.BellSeen);
  Rung := LoadAcquire(Process.Bell^);
  if (Rung = Seen) or not CompareAndSwap(Process.BellSeen, Seen, Rung) or not HasRecovered
    or (LoadAcquire(OwnThreads[otAnswerer]) <> 0) or not IsForThis then
    Exit;
  if OsMayUnload or not OsBareThreadStart(RunAnswerer) then // the code would go under the thread
    AnswerHere;
end;

// ---------------------------------------------------------------------------- start

procedure MailboxStart;
var
  Plan: TBareThreadPlan;
begin
  if not IsSet(opLive) or not IsSet(opCalls) or Settings.IsPrivileged or not OsPageIsAllowed then
    Exit;
  Hooks.Ring := TakeRing;
  Plan := Default(TBareThreadPlan);
  if IsSet(opAttach) and not OsMayUnload then
    Plan := OsBareThreadPlan;
  if IsSet(opAttach) then
    LivePageStart(RunAnswerer, Plan)
  else
    LivePageStart(nil, Plan);
  if (Settings.Values[opAttach] = 2) and not OsMayUnload and (LivePage <> nil) then
    OsBareThreadStart(RunAnswerer);
end;

end.
