/// Call stacks, each kept once, under a number.
//
// Owns:       Process.StackTable.
// Invariants: the stack is written before its number stands in the table; neither is removed.
//             When the table is full, stacks have the number 0: they are not kept.
// Callers:    StacksStart: under no lock, any number of times. The others: any thread.
// Progress:   lock-free: an entry that another thread wrote first is looked at again.
unit LaneMM.Stacks;

{$I LaneMM.inc}

interface

uses
  LaneMM.Stack;

/// Makes the table; tells whether there is one.
function StacksStart: Boolean;
/// The number of the stack; 0 when it cannot be kept.
function StackKeep(const Stack: TStack): Cardinal;
/// The stack with the number, which stays for ever; nil when there is none.
function StackAt(Number: Cardinal): PStack;

implementation

uses
  LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os;

const
  NumberBits = 16;
  MostStacks = 1 shl NumberBits - 1;
  NumberMask = MostStacks;
  EntryCount = 2 * (MostStacks + 1);

type
  // An entry is a number, with a part of the hash above it; 0 where there is none.
  TTable = record
    Used: TAtomicWord;
    Entries: array[0..EntryCount - 1] of TAtomicWord;
    Stacks: array[1..MostStacks] of TStack;
  end;
  PTable = ^TTable;

function StacksStart: Boolean;
var
  Room: Pointer;
  Size: NativeUInt;
begin
  if LoadAcquire(Process.StackTable) <> 0 then
    Exit(True);
  Size := AlignUp(SizeOf(TTable), OsPageSize);
  Room := OsReserve(Size);
  Result := (Room <> nil) and OsCommit(Room, Size)
    and CompareAndSwap(Process.StackTable, 0, NativeUInt(Room));
  if (Room <> nil) and not Result then
    OsRelease(Room, Size);
  Result := LoadAcquire(Process.StackTable) <> 0;
end;

function IsSame(const First, Second: TStack): Boolean;
begin
  Result := (First.Count = Second.Count) and (First.Call = Second.Call)
    and (CompareByte(First.Frames, Second.Frames, First.Count * SizeOf(NativeUInt)) = 0);
end;

// A place for one more stack, which is written; 0 when there is none.
function Add(Table: PTable; const Stack: TStack): Cardinal;
var
  Number: NativeUInt;
begin
  if LoadAcquire(Table^.Used) >= MostStacks then
    Exit(0);
  Number := FetchAdd(Table^.Used, 1) + 1;
  if Number > MostStacks then
    Exit(0);
  Table^.Stacks[Number].Call := Stack.Call;
  Table^.Stacks[Number].Count := Stack.Count;
  Move(Stack.Frames, Table^.Stacks[Number].Frames, Stack.Count * SizeOf(NativeUInt));
  Result := Number;
end;

function StackKeep(const Stack: TStack): Cardinal;
var
  Table: PTable;
  Hash, Index, Found: NativeUInt;
  Written: Cardinal;
begin
  Table := PTable(LoadAcquire(Process.StackTable));
  if Table = nil then
    Exit(0);
  Written := 0;
  Hash := StackHash(Stack, 0);
  Index := Hash mod EntryCount;
  repeat
    // Acquire: see the stack. Pairs with the swap below.
    Found := LoadAcquire(Table^.Entries[Index]);
    if Found = 0 then
    begin
      if Written = 0 then
        Written := Add(Table, Stack);
      if (Written = 0)
        or CompareAndSwap(Table^.Entries[Index], 0, Hash and not NumberMask or Written) then
        Exit(Written);
      Found := LoadAcquire(Table^.Entries[Index]); // another thread took the entry
    end;
    if ((Found xor Hash) and not NumberMask = 0)
      and IsSame(Table^.Stacks[Found and NumberMask], Stack) then
      Exit(Found and NumberMask);
    Index := (Index + 1) mod EntryCount;
  until False;
end;

function StackAt(Number: Cardinal): PStack;
begin
  if (Number - 1 < MostStacks) and (LoadAcquire(Process.StackTable) <> 0) then
    Result := @PTable(Process.StackTable)^.Stacks[Number]
  else
    Result := nil;
end;

end.
