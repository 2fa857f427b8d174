/// The table of backtraces: each is stored once, under a number.
//
// Owns:       Stacks.Table.
// Layout:     a tree of calls. A node holds a return address and the number of its caller's node,
//             so backtraces share their outer frames, and a longer one is found from a shorter one
//             with one lookup. The number of a backtrace is that of its innermost node. Nodes are
//             numbered in the order in which they came, and lie in pieces; those of one hash are a
//             list.
// Invariants: a node never changes once a list leads to it, and its caller's node has a lower
//             number. When the table is full, or has no memory, a new backtrace gets LostBacktrace,
//             and so does every longer one: a part would be another backtrace. From FoldFrom nodes
//             on recursion is folded: for a new node with the return address of one of its callers
//             that caller serves, so two frames that follow each other always called each other.
// Callers:    BacktracesStart: under no lock, any number of times. The others: any thread.
// Progress:   wait-free: a node is published by one try, and a thread that fails keeps its own, so
//             one backtrace may have two numbers.
unit LaneMM.BacktraceTable;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Unwind;

const
  /// The number of a backtrace for which the table had no space.
  LostBacktrace = High(Cardinal);

/// Creates the table, and registers the code of this module for the backtraces of other copies of
/// LaneMM; returns whether the table exists.
function BacktracesStart: Boolean;
/// Returns the number of the backtrace that has the frame Return inside the backtrace Outer, 0 for
/// none. Returns LostBacktrace when the table is full, 0 when it does not exist.
function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
/// Stores a backtrace; returns its number, as BacktraceExtend.
function BacktraceKeep(const Stack: TBacktrace): Cardinal;
/// Reads the innermost frames of the backtrace Number, at most Stacks.Depth, without the frames of
/// the memory manager where they are recognized. Returns False when there is no such backtrace.
function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;
/// Returns the number of the backtrace that BacktraceRead reads: the same for all that differ only
/// in what it leaves out, and in recursion. Number itself when the table is full.
function BacktraceTrim(Number: Cardinal): Cardinal;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.StacksState, LaneMM.CodeRanges;

const
  PieceBits = 16;
  PieceNodes = 1 shl PieceBits;
  MostPieces = 64;
  HeadBits = 18;
  FoldFrom = PieceNodes * MostPieces div 4;
  // Callers that are compared before a node is made.
  MostCallers = 64;

type
  TNode = record
    Return: NativeUInt; // 0: not written yet
    Outer: Cardinal;    // the number of the caller's node; 0: none
    Next: Cardinal;     // the next node of the list; 0: none
  end;
  PNode = ^TNode;
  TTable = record
    Count: TAtomicWord; // numbers that were given out
    Pieces: array[0..MostPieces - 1] of TAtomicWord; // their nodes; 0: none yet
    Heads: array[0..1 shl HeadBits - 1] of TAtomicWord; // the lists, by the hash of their nodes
  end;
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

// Returns the node with this number, which was given out; nil when there is none.
function NodeAt(Table: PTable; Number: Cardinal): PNode; inline;
begin
  Result := PNode(LoadAcquire(Table^.Pieces[Cardinal(Number - 1) shr PieceBits]));
  if Result <> nil then
    Inc(Result, Cardinal(Number - 1) and (PieceNodes - 1));
end;

// Takes an unused node; returns its number, or LostBacktrace.
function TakeNode(Table: PTable; out Node: PNode): Cardinal;
var
  Pages: Pointer;
  Taken: NativeUInt;
begin
  Result := LostBacktrace;
  Taken := LoadAcquire(Table^.Count);
  if Taken < PieceNodes * MostPieces then
    Taken := FetchAdd(Table^.Count, 1);
  if Taken >= PieceNodes * MostPieces then
    Exit;
  if LoadAcquire(Table^.Pieces[Taken shr PieceBits]) = 0 then
  begin
    Pages := OsTakePages(PieceNodes * SizeOf(TNode));
    if (Pages <> nil)
      and not CompareAndSwap(Table^.Pieces[Taken shr PieceBits], 0, NativeUInt(Pages)) then
      OsReleasePages(Pages, PieceNodes * SizeOf(TNode));
  end;
  Node := NodeAt(Table, Taken + 1);
  if Node <> nil then
    Result := Taken + 1;
end;

// Returns the nearest of the backtrace Outer and those that it extends that ends with the frame
// Return; 0 if none does.
function Repeated(Table: PTable; Outer: Cardinal; Return: NativeUInt): Cardinal;
var
  Node: PNode;
  Callers: Cardinal;
begin
  Result := Outer;
  for Callers := 1 to MostCallers do
  begin
    if Result = 0 then
      Exit;
    Node := NodeAt(Table, Result);
    if Node^.Return = Return then
      Exit;
    Result := Node^.Outer;
  end;
  Result := 0;
end;

function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
var
  Table: PTable;
  Node: PNode;
  Head: ^TAtomicWord;
  First: NativeUInt;
begin
  Table := PTable(LoadAcquire(Stacks.Table));
  if Table = nil then
    Exit(0);
  if Outer = LostBacktrace then
    Exit(LostBacktrace);
  Head := @Table^.Heads[(Return xor NativeUInt(Outer) * SpreadFactor) * SpreadFactor
    shr (SizeOf(NativeUInt) * 8 - HeadBits)];
  // Acquire: the nodes as they were written before the head. Pairs with the swap below.
  First := LoadAcquire(Head^);
  Result := First;
  while Result <> 0 do
  begin
    Node := NodeAt(Table, Result);
    if (Node^.Return = Return) and (Node^.Outer = Outer) then
      Exit;
    Result := Node^.Next;
  end;
  if LoadAcquire(Table^.Count) >= FoldFrom then
  begin
    Result := Repeated(Table, Outer, Return);
    if Result <> 0 then
      Exit;
  end;
  Result := TakeNode(Table, Node);
  if Result = LostBacktrace then
    Exit;
  Node^.Return := Return;
  Node^.Outer := Outer;
  Node^.Next := First;
  // Full barrier: the node before the head. A node that another thread has published meanwhile
  // stays, and no list leads to this one, whose number is this thread's alone.
  CompareAndSwap(Head^, First, Result);
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
  Node: PNode;
begin
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  Table := PTable(LoadAcquire(Stacks.Table));
  while (Table <> nil) and (Number > 0) and (Number <= LoadAcquire(Table^.Count))
    and (Number <= PieceNodes * MostPieces) do
  begin
    Node := NodeAt(Table, Number);
    if (Node = nil) or (Node^.Return = 0) or not BacktraceAdd(Stack, Node^.Return) then
      Break; // no such node: the number is corrupt; or it has more frames
    Number := Node^.Outer;
  end;
  Result := Stack.Count > 0;
end;

function BacktraceTrim(Number: Cardinal): Cardinal;
var
  Stack: TBacktrace;
begin
  Result := 0;
  if BacktraceRead(Number, Stack) then
  begin
    BacktraceFoldRecursion(Stack, 0, @Stack.Frames);
    Result := BacktraceKeep(Stack);
  end;
  if (Result = 0) or (Result = LostBacktrace) then
    Result := Number;
end;

end.
