/// What a thread keeps for itself in debug mode.
//
// Owns:       THeap.DebugThread and what it leads to. It stays with the record of the heap: the
//             next thread that gets the record goes on with it.
// Callers:    the thread itself. All take nil for a thread that has none.
unit LaneMM.DebugThreads;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.Types, LaneMM.StacksState, LaneMM.UnwindCache, LaneMM.DebugState;



const
  /// Most open scopes of allocation groups.
  MostGroupScopes = 1024;

type
  PDebugThread = ^TDebugThread;
  /// All zero at first.
  TDebugThread = record
    Blocks: TDebugCache;      //< owner   free blocks, and freed ones
    Stacks: TUnwindCache;      //< owner   its stack
    NextNumber: NativeUInt;   //< owner   of its next allocation
    NumberLimit: NativeUInt;  //< owner   the end of its numbers
    Heap: PHeap;              //< const   the record that it stays with
    Groups: array[0..MostGroupScopes - 1] of Cardinal; //< owner   of open scopes, outermost first
  end;

/// That of the calling thread; nil without memory.
function DebugThread: PDebugThread;
/// The number of the stack of the caller of the routine with this frame pointer, which is set;
/// 0 when it cannot be kept.
function DebugStack(Thread: PDebugThread; Frame: NativeUInt): Cardinal;
/// The system's number of the thread.
function DebugThreadId(Thread: PDebugThread): Cardinal;
/// The number of the next allocation. They rise in each thread, and are the order of all
/// allocations as long as there is one thread.
function DebugNumber(Thread: PDebugThread): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Threads, LaneMM.BacktraceTable, LaneMM.Unwind;

const
  // Numbers that a thread takes at a time.
  NumberBatch = 64;

function NewThread: PDebugThread;
var
  Heap: PHeap;
begin
  Heap := ThreadHeap;
  if Heap = nil then
    Exit(nil);
  if Heap^.DebugThread = nil then
    Heap^.DebugThread := OsTakePages(SizeOf(TDebugThread));
  Result := Heap^.DebugThread;
  if Result <> nil then
    Result^.Heap := Heap;
end;

function DebugThread: PDebugThread;
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if (Heap = nil) or (Heap^.DebugThread = nil) then
    Result := NewThread
  else
    Result := Heap^.DebugThread;
end;

function DebugStack(Thread: PDebugThread; Frame: NativeUInt): Cardinal;
var
  Stack: TBacktrace;
begin
  if (Thread <> nil) and (@Stacks.TakeFrames = nil) then
    Exit(UnwindCacheTake(Thread^.Stacks, Frame));
  BacktraceTake(Stack);
  Result := BacktraceKeep(Stack);
end;

function DebugThreadId(Thread: PDebugThread): Cardinal;
begin
  if Thread = nil then
    Exit(ThreadNumber);
  Result := Thread^.Heap^.ThreadNumber;
  if Result = 0 then
    Result := ThreadNumber;
end;

function DebugNumber(Thread: PDebugThread): NativeUInt;
begin
  if Thread = nil then
    Exit(FetchAdd(Debug.LastNumber, 1) + 1);
  if Thread^.NextNumber = Thread^.NumberLimit then
  begin
    Thread^.NextNumber := FetchAdd(Debug.LastNumber, NumberBatch) + 1;
    Thread^.NumberLimit := Thread^.NextNumber + NumberBatch;
  end;
  Result := Thread^.NextNumber;
  Inc(Thread^.NextNumber);
end;

end.
