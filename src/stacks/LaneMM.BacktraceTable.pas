/// The table of backtraces: each is stored once, under a number.
//
// Owns:       Stacks.Table.
// Layout:     a tree of calls. A node holds a return address and the number of its caller's node,
//             so backtraces share their outer frames, and a longer one is found from a shorter one
//             with one lookup. The number of a backtrace is that of its innermost node.
// Invariants: a node is complete when its Outer is not 0, and never changes from then on. A stored
//             backtrace has a number > 0. When the table is full, a new backtrace gets 0.
// Callers:    BacktracesStart: under no lock, any number of times. The others: any thread.
// Progress:   wait-free: a node that another thread is writing is skipped, so one backtrace may
//             have two numbers.
unit LaneMM.BacktraceTable;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Unwind;

/// Creates the table, and registers the code of this module for the backtraces of other copies of
/// LaneMM; returns whether the table exists.
function BacktracesStart: Boolean;
/// Returns the number of the backtrace that has the frame Return inside the backtrace Outer, 0 for
/// none. Returns 0 when the table is full or does not exist.
function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
/// Stores a backtrace; returns its number, 0 when the table is full or does not exist.
function BacktraceKeep(const Stack: TBacktrace): Cardinal;
/// Reads the innermost frames of the backtrace Number, at most Stacks.Depth, without the frames of
/// the memory manager where they are recognized. Returns False when there is no such backtrace.
function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;
/// Returns the number of the backtrace that BacktraceRead reads: the same for all that differ only
/// in what it leaves out. Number itself when the table is full.
function BacktraceTrim(Number: Cardinal): Cardinal;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.StacksState, LaneMM.CodeRanges;

const
  NodeBits = 18;
  NodeCount = 1 shl NodeBits;
  // Most nodes probed for one frame; after that the table counts as full.
  MostLooks = 16;

type
  TNode = record
    Return: TAtomicWord; // 0: unused
    Outer: TAtomicWord;  // the number of the caller's node plus 1; 0: not written yet
  end;
  // A node's number is its index.
  TTable = array[1..NodeCount] of TNode;
  PTable = ^TTable;

function BacktracesStart: Boolean;
var
  Pages: Pointer;
begin
  if LoadAcquire(Stacks.Table) <> 0 then
    Exit(True);
  CodeRangesStart;
  Pages := OsTakePages(SizeOf(TTable));
  if (Pages <> nil) and not CompareAndSwap(Stacks.Table, 0, NativeUInt(Pages)) then
    OsReleasePages(Pages, SizeOf(TTable));
  Result := LoadAcquire(Stacks.Table) <> 0;
end;

// Takes an unused node; returns whether this thread took it.
function TakeNode(var Node: TNode; Outer, Return: NativeUInt): Boolean;
begin
  Result := CompareAndSwap(Node.Return, 0, Return);
  if Result then
    // Release: Return before Outer. Pairs with BacktraceExtend and BacktraceRead.
    StoreRelease(Node.Outer, Outer + 1);
end;

function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
var
  Table: PTable;
  Hash: NativeUInt;
  Look: Cardinal;
begin
  Table := PTable(LoadAcquire(Stacks.Table));
  if Table = nil then
    Exit(0);
  Hash := (Return xor NativeUInt(Outer) * SpreadFactor) * SpreadFactor
    shr (SizeOf(Hash) * 8 - NodeBits);
  for Look := 0 to MostLooks - 1 do
  begin
    Result := (Hash + Look) and (NodeCount - 1) + 1;
    // Acquire: Return as it was written before Outer. Pairs with TakeNode.
    if (LoadAcquire(Table^[Result].Outer) = NativeUInt(Outer) + 1)
      and (Table^[Result].Return = Return) then
      Exit;
    if (LoadAcquire(Table^[Result].Return) = 0) and TakeNode(Table^[Result], Outer, Return) then
      Exit;
  end;
  Result := 0;
end;

function BacktraceKeep(const Stack: TBacktrace): Cardinal;
var
  Index: NativeInt;
begin
  Result := 0;
  for Index := NativeInt(Stack.Count) - 1 downto 0 do
  begin
    Result := BacktraceExtend(Result, Stack.Frames[Index]);
    if Result = 0 then
      Exit; // the table is full: a part would be no backtrace
  end;
end;

function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;
var
  Table: PTable;
  Outer: NativeUInt;
begin
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  Table := PTable(LoadAcquire(Stacks.Table));
  while (Table <> nil) and (Number > 0) and (Number <= NodeCount) do
  begin
    Outer := LoadAcquire(Table^[Number].Outer);
    if (Outer = 0) or not BacktraceAdd(Stack, Table^[Number].Return) then
      Break; // no such node: the number is corrupt; or it has more frames
    Number := Outer - 1;
  end;
  Result := Stack.Count > 0;
end;

function BacktraceTrim(Number: Cardinal): Cardinal;
var
  Stack: TBacktrace;
begin
  Result := 0;
  if BacktraceRead(Number, Stack) then
    Result := BacktraceKeep(Stack);
  if Result = 0 then
    Result := Number;
end;

end.
