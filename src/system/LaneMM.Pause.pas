/// Pauses all other threads, so that their stacks can be read.
//
// Owns:       Paused, the state of a search.
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
/// Finds the end of the mapping that holds Address, in a call of Visitor. False unless it can be
/// written and has no name.
function PauseFindNameless(Address: NativeUInt; out Limit: NativeUInt): Boolean;
/// Resumes the paused threads.
procedure PauseEnd;
/// Finds the stack that holds Sp: its block, where a coroutine has one for its stack, else as
/// OsFindStack, which would look at all pages of the arena behind that block.
function PauseFindStack(Sp: NativeUInt; out First, Limit: NativeUInt): Boolean;
/// Returns its end, or the next page that cannot be read; Sp where it is unknown.
function PauseStackEnd(Sp: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Bits, LaneMM.Atomic, LaneMM.Os, LaneMM.Walk,
  LaneMM.OsProcess, LaneMM.OsSignals, LaneMM.OsThread;

type
  TPausedState = record
    Signal: Cardinal;     //< owner   the signal that pauses; 0: none yet
    State: TAtomicWord;   //< shared  Linux: odd while threads that receive the signal wait, another
                          //  number in each pause
    Places: TAtomicWord;  //< shared  Linux: places of Stacks that they have taken; above RoundShift
                          //  bits the pause
    Answers: TAtomicWord; //< shared  likewise those that have filled their place; Windows: paused
                          //  threads
    Stacks: Pointer;      //< const   their stack pointers; written before the first signal.
                          //  Windows: the paused threads, owner
    Cookie: NativeUInt;   //< owner   Windows: of the lock of the system's loader
    Mappings: Pointer;    //< owner   Linux: the mappings, while stacks are visited; nil: not known
  end;

var
  Paused: TPausedState;

type
  TAsking = record
    OwnId: Cardinal;
    Count: NativeUInt;
  end;
  PAsking = ^TAsking;

// Returns whether the thread is another one of the program, none of LaneMM's own.
function IsOther(Id: Cardinal; Asking: PAsking): Boolean;
begin
  Result := (Id <> Asking^.OwnId) and not ThreadIsOwn(Id);
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

function PauseFindStack(Sp: NativeUInt; out First, Limit: NativeUInt): Boolean;
var
  Block: TBlockInfo;
begin
  if not WalkFind(Pointer(Sp), Block) then
    Exit(OsFindStack(Sp, First, Limit));
  First := NativeUInt(Block.Address);
  Limit := (First + Block.UsableSize) and not NativeUInt(SizeOf(Pointer) - 1);
  Result := True;
end;

function PauseStackEnd(Sp: NativeUInt): NativeUInt;
var
  First: NativeUInt;
begin
  if PauseFindStack(Sp, First, Result) then
    Result := OsStackEnd(Sp, Result); // of a block, too
end;

function IsNameless(const Mapping: TOsMapping): Boolean;
begin
  Result := Mapping.IsWritable and not Mapping.IsFile and (Mapping.Path[0] = #0);
end;

function FindNameless(Address: NativeUInt; out Limit: NativeUInt): Boolean;
var
  Mapping: TOsMapping;
begin
  Result := OsFindRegion(Address, Mapping) and IsNameless(Mapping);
  Limit := Mapping.Limit;
end;

{$ifdef MSWINDOWS}
  {$I LaneMM.Pause.Windows.inc}
{$else}
  {$I LaneMM.Pause.Linux.inc}
{$endif}

end.
