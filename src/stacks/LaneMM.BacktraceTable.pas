/// The table of backtraces: each is stored once, under a number.
//
// Owns:       Stacks.Table, Sweeps.
// Layout:     a tree of calls. A node holds a return address and the number of its caller's node,
//             so backtraces share their outer frames, and a longer one is found from a shorter one
//             with one lookup. The number of a backtrace is the index of its innermost node, and
//             in the bits above how often that node was swept. Nodes lie in pieces; those of one
//             hash are a list.
// Invariants: a node that a list leads to does not change, but for a sweep. A number whose node was
//             swept since reads as none, never as another backtrace, unless it is as old as
//             MostLives sweeps of it. When the table is full, or has no memory, a new backtrace
//             gets LostBacktrace, and so does every longer one: a part would be another backtrace.
//             The last SpareNodes are for their innermost frames, with CutFrame for the others.
//             From FoldFrom nodes on recursion is folded: for a new node with the return address of
//             one of its callers that caller serves, so two frames that follow each other always
//             called each other.
// Sweeps:     one that finds the table full frees the nodes that no block uses, see
//             docs/protocols.md. Where a node is marked, its callers are.
// Callers:    BacktracesStart: under no lock, any number of times. BacktracesRecover: a child
//             process with one thread. The others: any thread.
// Progress:   lock-free. One thread sweeps at a time; the others get LostBacktrace meanwhile where
//             the table has no free node yet.
unit LaneMM.BacktraceTable;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Unwind;

const
  /// The number of a backtrace for which the table had no space.
  LostBacktrace = High(Cardinal);
  /// Nodes of a piece, most nodes, and lists, as powers of two. A number is below 2 to the power of
  /// NodeBits, with the sweeps of its node above; node 0 is none.
  PieceBits = 16;
  PieceNodes = 1 shl PieceBits;
  NodeBits = 22;
  MostPieces = 1 shl (NodeBits - PieceBits);
  NodeMask = 1 shl NodeBits - 1;
  HeadBits = 18;
  LateBits = 20;
  LateFrom = 1 shl HeadBits;
  /// Nodes that backtraces without space alone get, and how many of their frames these have.
  SpareNodes = 1 shl 16;
  SpareFrames = 10;
  /// Sweeps of a node after which its numbers are used again.
  MostLives = LostBacktrace shr NodeBits;

type
  PCallNode = ^TCallNode;
  /// A call: the backtrace that has one frame more than that of its caller.
  TCallNode = record
    Return: TAtomicWord; //< shared  the return address; 0: not written, or swept
    Outer: Cardinal;     //< const   the number of the caller's node; 0: none
    Next: Cardinal;      //< racy    the next node of the list, or of the free ones; 0: none. A
                         //  search that a sweep overtakes goes astray, and ends
  end;
  PCallPiece = ^TCallPiece;
  /// Nodes, and how often each was swept.
  TCallPiece = record
    Nodes: array[0..PieceNodes - 1] of TCallNode; //< shared  see there
    Lives: array[0..PieceNodes - 1] of Word;      //< racy    written by the thread that sweeps
  end;
  /// A bit for each node.
  TCallBits = array[0..NodeMask div (SizeOf(NativeUInt) * 8)] of TAtomicWord;
  PCallTable = ^TCallTable;
  /// The table.
  TCallTable = record
    Count: TAtomicWord;    //< shared  nodes that were ever used
    Free: TAtomicWord;     //< shared  the first swept node; above it, a count of those taken
    Sweeping: TAtomicWord; //< shared  1: a thread sweeps
    Lost: TAtomicWord;     //< shared  nodes that were asked for in vain
    SweepFrom: TAtomicWord; //< shared  Lost that is worth the next sweep
    Freed: TAtomicWord;    //< shared  nodes that were ever swept
    Marks: TCallBits;      //< shared  nodes in use, while a thread sweeps
    Pins: TCallBits;       //< shared  nodes that are never swept
    Pieces: array[0..MostPieces - 1] of TAtomicWord; //< shared  their addresses; 0: none yet
    Heads: array[0..LateFrom + 1 shl LateBits - 1] of TAtomicWord; //< shared  the lists, by the
                           //  hash of their nodes: those of early nodes, then those of late ones
  end;

/// Creates the table, and registers the code of this module for the backtraces of other copies of
/// LaneMM; returns whether the table exists.
function BacktracesStart: Boolean;
/// Returns the number of the backtrace that has the frame Return inside the backtrace Outer, 0 for
/// none. Returns LostBacktrace when the table is full, 0 when it does not exist.
function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
/// Stores a backtrace; returns its number, as BacktraceExtend. Without space it keeps SpareFrames
/// frames at most.
function BacktraceKeep(const Stack: TBacktrace): Cardinal;
/// Returns the number of the innermost frames of the backtrace Number, at most Count, as
/// BacktraceTrim; Number itself where it has no more, LostBacktrace without space.
function BacktraceShorten(Number, Count: Cardinal): Cardinal;
/// Reads the innermost frames of the backtrace Number, at most Stacks.Depth, without the frames of
/// the memory manager where they are recognized. Returns False when there is no such backtrace.
function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;
/// Returns the number of the backtrace that BacktraceRead reads: the same for all that differ only
/// in what it leaves out, and in recursion. Number itself when the table is full, LostBacktrace
/// when its node was swept.
function BacktraceTrim(Number: Cardinal): Cardinal;
/// Keeps a backtrace for ever, although no block may have its number.
procedure BacktracePin(Number: Cardinal);
/// Keeps a backtrace that is in use from the sweep that runs; called by Stacks.VisitNumbers.
procedure BacktraceMark(Number: Cardinal);
/// In a child process: ends the sweep of a thread that it does not have. IsTorn: see TChildCall.
procedure BacktracesRecover(IsTorn: Boolean);

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.StacksState, LaneMM.CodeRanges;

const
  FoldFrom = NodeMask div 4;
  // Callers that are compared before a node is made.
  MostCallers = 64;
  // Nodes that a search compares: a sweep may lead it from one list to the next.
  MostCompared = 4096;
  // A sweep that frees fewer nodes is not repeated before as many were asked for in vain.
  WorthFreeing = NodeMask div 8;
  WordBits = SizeOf(NativeUInt) * 8;

function BacktracesStart: Boolean;
begin
  if LoadAcquire(Stacks.Table) = 0 then
    CodeRangesStart;
  Result := OsTakeTable(Stacks.Table, SizeOf(TCallTable));
end;

function PieceOf(Table: PCallTable; Index: Cardinal): PCallPiece; inline;
begin
  Result := PCallPiece(LoadAcquire(Table^.Pieces[Index shr PieceBits]));
end;

// Returns the node at Index, which was in use.
function NodeAt(Table: PCallTable; Index: Cardinal): PCallNode; inline;
begin
  Result := @PieceOf(Table, Index)^.Nodes[Index and (PieceNodes - 1)];
end;

// Returns the number of the node at Index.
function NumberAt(Table: PCallTable; Index: Cardinal): Cardinal; inline;
begin
  Result := PieceOf(Table, Index)^.Lives[Index and (PieceNodes - 1)];
  Result := Result shl NodeBits or Index;
end;

// Returns whether Number is that of a node, which may be swept at any moment.
function IsNumber(Table: PCallTable; Number: Cardinal): Boolean; inline;
begin
  Result := (Number and NodeMask <> 0) and (PieceOf(Table, Number and NodeMask) <> nil)
    and (NumberAt(Table, Number and NodeMask) = Number);
end;

// Reads the node of Number; returns False if it was swept. All reads come between two of its life,
// which a sweep ends before the node gets another return address.
function ReadNode(Table: PCallTable; Number: Cardinal; out Return: NativeUInt; out Outer: Cardinal):
  Boolean;
var
  Node: PCallNode;
begin
  Result := False;
  if not IsNumber(Table, Number) then
    Exit;
  AcquireFence;
  Node := NodeAt(Table, Number and NodeMask);
  Return := LoadAcquire(Node^.Return);
  Outer := Node^.Outer;
  AcquireFence;
  Result := (Return <> 0) and (NumberAt(Table, Number and NodeMask) = Number);
end;

// ---------------------------------------------------------------------------- marks

function HasBit(var Bits: TCallBits; Index: Cardinal): Boolean; inline;
begin
  Result := Odd(LoadAcquire(Bits[Index div WordBits]) shr (Index mod WordBits));
end;

procedure SetBit(var Bits: TCallBits; Index: Cardinal);
var
  Before, Bit: NativeUInt;
begin
  Bit := NativeUInt(1) shl (Index mod WordBits);
  repeat
    Before := LoadAcquire(Bits[Index div WordBits]);
    // Full barrier: the mark before the second look at the node. Pairs with Kill.
  until CompareAndSwap(Bits[Index div WordBits], Before, Before or Bit);
end;

// Marks the nodes of a backtrace, the outermost first: where a node is marked, its callers are.
procedure Mark(Table: PCallTable; var Bits: TCallBits; Number: Cardinal);
var
  Chain: array[0..MostFrames + 1] of Cardinal;
  Count: Cardinal;
begin
  Count := 0;
  while (Count <= High(Chain)) and IsNumber(Table, Number)
    and not HasBit(Bits, Number and NodeMask) do
  begin
    Chain[Count] := Number and NodeMask;
    Inc(Count);
    Number := NodeAt(Table, Number and NodeMask)^.Outer;
  end;
  while Count > 0 do
  begin
    Dec(Count);
    SetBit(Bits, Chain[Count]);
  end;
end;

procedure BacktraceMark(Number: Cardinal);
begin
  Mark(PCallTable(Stacks.Table), PCallTable(Stacks.Table)^.Marks, Number);
end;

// ---------------------------------------------------------------------------- sweeps

// Adds a node that no list leads to any more to the free ones.
procedure PushFree(Table: PCallTable; Index: Cardinal);
var
  First: NativeUInt;
begin
  repeat
    First := LoadAcquire(Table^.Free);
    NodeAt(Table, Index)^.Next := First and NodeMask;
  until CompareAndSwap(Table^.Free, First, First and not NativeUInt(NodeMask) or Index);
end;

// Takes a free node; returns its index, or 0.
function PopFree(Table: PCallTable): Cardinal;
var
  First, Next: NativeUInt;
begin
  repeat
    First := LoadAcquire(Table^.Free);
    Result := First and NodeMask;
    if Result = 0 then
      Exit;
    Next := NodeAt(Table, Result)^.Next;
    // No ABA: the bits above the index count the nodes that were taken.
  until CompareAndSwap(Table^.Free, First, (First shr NodeBits + 1) shl NodeBits or Next);
end;

// Takes the return address from an unmarked node of a list: no search finds it then. Returns False,
// and gives it back, if another thread has marked it meanwhile.
function Kill(Table: PCallTable; Index: Cardinal): Boolean;
var
  Node: PCallNode;
  Return: NativeUInt;
begin
  Node := NodeAt(Table, Index);
  // Full barrier: either this thread sees the mark, or the other one that the node has gone. Pairs
  // with FindNode.
  Return := Swap(Node^.Return, 0);
  Result := not HasBit(Table^.Marks, Index);
  if not Result then
    StoreRelease(Node^.Return, Return);
end;

// Takes the node at Index, which Next follows, out of a list. Last is the one before it, 0 if that
// is not known: other threads add nodes at the start alone.
procedure Unlink(Table: PCallTable; var Head: TAtomicWord; Last, Index, Next: Cardinal);
begin
  if (Last = 0) and CompareAndSwap(Head, Index, Next) then
    Exit;
  if Last = 0 then
    Last := LoadAcquire(Head);
  while NodeAt(Table, Last)^.Next <> Index do
    Last := NodeAt(Table, Last)^.Next;
  NodeAt(Table, Last)^.Next := Next;
end;

procedure SweepList(Table: PCallTable; var Head: TAtomicWord);
var
  Last, Index, Next: Cardinal;
  Life: ^Word;
begin
  Last := 0;
  Index := LoadAcquire(Head);
  while Index <> 0 do
  begin
    Next := NodeAt(Table, Index)^.Next;
    if HasBit(Table^.Marks, Index) or not Kill(Table, Index) then
      Last := Index
    else
    begin
      Unlink(Table, Head, Last, Index, Next);
      Life := @PieceOf(Table, Index)^.Lives[Index and (PieceNodes - 1)];
      // Before its next return address: PushFree and PopFree are full barriers.
      Life^ := Cardinal(Life^ + 1) mod MostLives;
      PushFree(Table, Index);
      FetchAdd(Table^.Freed, 1);
    end;
    Index := Next;
  end;
end;

// Frees the nodes of all backtraces that no block uses, and that no thread gets from now on.
procedure Sweep(Table: PCallTable);
var
  Index, Before: NativeUInt;
begin
  Before := LoadAcquire(Table^.Freed);
  for Index := 0 to High(Table^.Marks) do
    StoreRelease(Table^.Marks[Index], LoadAcquire(Table^.Pins[Index]));
  // Full barrier: Sweeping before it. What a thread has kept does not count any more: it searches,
  // and marks what it finds. Pairs with DebugStack.
  FetchAdd(Stacks.Sweeps, 1);
  Stacks.VisitNumbers;
  for Index := 0 to High(Table^.Heads) do
    SweepList(Table, Table^.Heads[Index]);
  Before := NativeUInt(LoadAcquire(Table^.Freed) - Before);
  Index := LoadAcquire(Table^.Lost);
  if Before < WorthFreeing then
    Inc(Index, WorthFreeing);
  StoreRelease(Table^.SweepFrom, Index);
  StoreRelease(Table^.Sweeping, 0);
end;

procedure BacktracesRecover(IsTorn: Boolean);
var
  Table: PCallTable;
begin
  Table := PCallTable(Stacks.Table);
  if Table = nil then
    Exit;
  Table^.Sweeping := 0;
  if IsTorn then
    Table^.Free := 0; // its nodes may be in a list
end;

// ---------------------------------------------------------------------------- nodes

// Takes a node that was never used, while fewer than Limit were; returns its index, or 0.
function TakeUnused(Table: PCallTable; Limit: NativeUInt): Cardinal;
var
  Taken: NativeUInt;
begin
  Taken := LoadAcquire(Table^.Count);
  if Taken < Limit then
    Taken := FetchAdd(Table^.Count, 1);
  if Taken >= Limit then
    Exit(0);
  Result := Taken + 1;
  if (PieceOf(Table, Result) = nil)
    and not OsTakeTable(Table^.Pieces[Result shr PieceBits], SizeOf(TCallPiece)) then
    Result := 0;
end;

// Takes a node; returns its index, or 0 when there is none. Sweeps the table if that is due.
function TakeNode(Table: PCallTable; Limit: NativeUInt): Cardinal;
begin
  Result := PopFree(Table);
  if Result = 0 then
    Result := TakeUnused(Table, Limit);
  if Result <> 0 then
    Exit;
  if (FetchAdd(Table^.Lost, 1) < LoadAcquire(Table^.SweepFrom)) or (@Stacks.VisitNumbers = nil)
    or not CompareAndSwap(Table^.Sweeping, 0, 1) then
    Exit;
  Sweep(Table);
  Result := PopFree(Table);
end;

// Returns the number of the node of a list that has this return address and caller; 0 if none has.
// While a thread sweeps it is marked.
function FindNode(Table: PCallTable; Index: Cardinal; Return: NativeUInt;
  Outer: Cardinal): Cardinal;
var
  Node: PCallNode;
  FoundReturn: NativeUInt;
  FoundOuter, Left: Cardinal;
begin
  Left := MostCompared;
  while (Index <> 0) and (Left > 0) do
  begin
    Node := NodeAt(Table, Index);
    if (Node^.Return = Return) and (Node^.Outer = Outer) then
    begin
      Result := NumberAt(Table, Index);
      if LoadAcquire(Table^.Sweeping) <> 0 then
        Mark(Table, Table^.Marks, Result);
      // A second look, at this life of the node.
      if ReadNode(Table, Result, FoundReturn, FoundOuter) and (FoundReturn = Return)
        and (FoundOuter = Outer) then
        Exit;
    end;
    Index := Node^.Next;
    Dec(Left);
  end;
  Result := 0;
end;

// Returns whether Repeated may find a caller: a sweep may end those on the way.
function MayRepeat(Table: PCallTable; Outer: Cardinal; Return: NativeUInt): Boolean;
var
  Node: PCallNode;
  Callers: Cardinal;
begin
  Callers := MostCallers;
  repeat
    if Outer and NodeMask = 0 then
      Exit(False);
    Node := NodeAt(Table, Outer and NodeMask);
    if Node^.Return = Return then
      Exit(True);
    Outer := Node^.Outer;
    Dec(Callers);
  until Callers = 0;
  Result := False;
end;

// Returns the nearest of the backtrace Outer and those that it extends that ends with the frame
// Return; 0 if none does.
function Repeated(Table: PCallTable; Outer: Cardinal; Return: NativeUInt): Cardinal;
var
  Found: NativeUInt;
  Next, Callers: Cardinal;
begin
  Result := Outer;
  for Callers := 1 to MostCallers do
  begin
    if not ReadNode(Table, Result, Found, Next) then
      Exit(0);
    if Found = Return then
      Exit;
    Result := Next;
  end;
  Result := 0;
end;

// BacktraceExtend in a table of at most Limit nodes.
function ExtendIn(Outer: Cardinal; Return, Limit: NativeUInt): Cardinal;
var
  Table: PCallTable;
  Node: PCallNode;
  Head: ^TAtomicWord;
  First, Hash: NativeUInt;
  Index: Cardinal;
begin
  Table := PCallTable(LoadAcquire(Stacks.Table));
  if Table = nil then
    Exit(0);
  if Outer = LostBacktrace then
    Exit(LostBacktrace);
  Hash := (Return xor NativeUInt(Outer) * SpreadFactor) * SpreadFactor;
  Head := @Table^.Heads[Hash shr (WordBits - HeadBits)];
  // Acquire: the nodes as they were written before the head. Pairs with the swap below.
  Result := FindNode(Table, LoadAcquire(Head^), Return, Outer);
  if (Result = 0) and (LoadAcquire(Table^.Count) >= LateFrom) then
  begin
    Head := @Table^.Heads[LateFrom + Hash shr (WordBits - LateBits)];
    Result := FindNode(Table, LoadAcquire(Head^), Return, Outer);
  end;
  if (Result = 0) and (LoadAcquire(Table^.Count) >= FoldFrom)
    and MayRepeat(Table, Outer, Return) then
    Result := Repeated(Table, Outer, Return);
  if Result <> 0 then
    Exit;
  Index := TakeNode(Table, Limit);
  if Index = 0 then
    Exit(LostBacktrace);
  Node := NodeAt(Table, Index);
  Node^.Outer := Outer;
  StoreRelease(Node^.Return, Return);
  Result := NumberAt(Table, Index);
  if LoadAcquire(Table^.Sweeping) <> 0 then
    Mark(Table, Table^.Marks, Result);
  repeat
    First := LoadAcquire(Head^);
    Node^.Next := First;
    // Full barrier: the node before the head. No ABA: the node is in front of the first one.
  until CompareAndSwap(Head^, First, Index);
end;

function BacktraceExtend(Outer: Cardinal; Return: NativeUInt): Cardinal;
begin
  Result := ExtendIn(Outer, Return, NodeMask - SpareNodes);
end;

// Stores a backtrace in a table of at most Limit nodes.
function KeepIn(const Stack: TBacktrace; Limit: NativeUInt): Cardinal;
var
  Index: NativeInt;
begin
  Result := 0;
  for Index := NativeInt(Stack.Count) - 1 downto 0 do
    Result := ExtendIn(Result, Stack.Frames[Index], Limit);
end;

// Stores the Count innermost frames of a backtrace that has more, then CutFrame.
function KeepShort(const Stack: TBacktrace; Count: Cardinal): Cardinal;
var
  Short: TBacktrace;
begin
  Move(Stack.Frames, Short.Frames, Count * SizeOf(Short.Frames[0]));
  Short.Frames[Count] := CutFrame;
  Short.Count := Count + 1;
  Result := KeepIn(Short, NodeMask);
end;

function BacktraceKeep(const Stack: TBacktrace): Cardinal;
begin
  Result := KeepIn(Stack, NodeMask - SpareNodes);
  if Result <> LostBacktrace then
    Exit;
  if Stack.Count > SpareFrames then
    Result := KeepShort(Stack, SpareFrames)
  else
    Result := KeepIn(Stack, NodeMask);
end;

function BacktraceShorten(Number, Count: Cardinal): Cardinal;
var
  Stack: TBacktrace;
begin
  Result := Number;
  if BacktraceRead(Number, Stack) and (Stack.Count > Count) then
    Result := KeepShort(Stack, Count);
end;

function BacktraceRead(Number: Cardinal; out Stack: TBacktrace): Boolean;
var
  Table: PCallTable;
  Return: NativeUInt;
  Outer: Cardinal;
begin
  Stack.Call := mcUnknown;
  Stack.Count := 0;
  Table := PCallTable(LoadAcquire(Stacks.Table));
  if Table = nil then
    Exit(False);
  while Number <> 0 do
  begin
    if not ReadNode(Table, Number, Return, Outer) then
    begin
      Stack.Count := 0; // a part would be another backtrace
      Break;
    end;
    if not BacktraceAdd(Stack, Return) then
      Break;
    Number := Outer;
  end;
  Result := Stack.Count > 0;
end;

function BacktraceTrim(Number: Cardinal): Cardinal;
var
  Stack: TBacktrace;
begin
  if Number = 0 then
    Exit(0);
  if not BacktraceRead(Number, Stack) then
    Exit(LostBacktrace);
  BacktraceFoldRecursion(Stack, 0, @Stack.Frames);
  Result := KeepIn(Stack, NodeMask - SpareNodes);
  if Result = LostBacktrace then
    Result := Number;
end;

procedure BacktracePin(Number: Cardinal);
var
  Table: PCallTable;
begin
  Table := PCallTable(LoadAcquire(Stacks.Table));
  if Table = nil then
    Exit;
  Mark(Table, Table^.Pins, Number);
  if LoadAcquire(Table^.Sweeping) <> 0 then
    Mark(Table, Table^.Marks, Number);
end;

end.
