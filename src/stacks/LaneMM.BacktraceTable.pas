/// Call stacks, each kept once, under a number.
//
// Owns:       Stacks.Table.
// Layout:     a tree of calls. A node is a return address and the number of the node that called
//             from farther out, so stacks share what they have in common, and a longer one is found
//             from a shorter one with a single look. The number of a stack is its innermost node's.
// Invariants: a node is complete when its Outer is not 0; none is changed or removed then. A stack
//             that is kept has a number > 0. When the table is full, what is new gets 0.
// Callers:    BacktracesStart: under no lock, any number of times. The others: any thread.
// Progress:   wait-free: a node that another thread is just writing is passed over; the same stack
//             may so have two numbers.
unit LaneMM.BacktraceTable;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Unwind;


/// Makes the table; tells whether there is one.
function BacktracesStart: Boolean;
/// The number of the stack that has Return inside of the stack with the number Outer, which is 0
/// for none; 0 when it cannot be kept.
function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
/// The number of the stack; 0 when it cannot be kept.
function BacktraceKeep(const Stack: TBacktrace): Cardinal;
/// The innermost frames of the stack with the number, without the manager's own where they can be
/// told; False when there is no such stack.
function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.StacksState;

const
  NodeBits = 18;
  NodeCount = 1 shl NodeBits;
  // Nodes that are looked at for one stack before the table counts as full.
  MostLooks = 16;

type
  TNode = record
    Return: TAtomicWord; // 0: not used yet
    Outer: TAtomicWord;  // the number of the outer node plus 1; 0: not written yet
  end;
  // A node's number is its place.
  TTable = array[1..NodeCount] of TNode;
  PTable = ^TTable;

function BacktracesStart: Boolean;
var
  Pages: Pointer;
begin
  if LoadAcquire(Stacks.Table) <> 0 then
    Exit(True);
  Pages := OsTakePages(SizeOf(TTable));
  if (Pages <> nil) and not CompareAndSwap(Stacks.Table, 0, NativeUInt(Pages)) then
    OsReleasePages(Pages, SizeOf(TTable));
  Result := LoadAcquire(Stacks.Table) <> 0;
end;

// Takes an unused node; tells whether this thread has got it.
function TakeNode(var Node: TNode; Outer, Return: NativeUInt): Boolean;
begin
  Result := CompareAndSwap(Node.Return, 0, Return);
  if Result then
    // Release: who sees Outer sees Return. Pairs with BacktraceExtend and BacktraceRead.
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
    // Acquire: a node is as it was written when its Outer is seen. Pairs with TakeNode.
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
    Result := BacktraceExtend(Result, Stack.Frames[Index]);
end;

function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;
var
  Table: PTable;
  Outer: NativeUInt;
begin
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  Table := PTable(LoadAcquire(Stacks.Table));
  while (Table <> nil) and (Number > 0) and (Number <= NodeCount) and (Stack.Count < MaxFrames) do
  begin
    Outer := LoadAcquire(Table^[Number].Outer);
    if Outer = 0 then
      Break; // no such node: the number was written over
    BacktraceAdd(Stack, Table^[Number].Return);
    Number := Outer - 1;
  end;
  Result := Stack.Count > 0;
end;

end.
