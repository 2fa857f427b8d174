/// Finds the start of a routine that was interrupted while it had nothing on the stack.
//
// Owns:       nothing.
// How:        a direct call of such a leaf has its address. Where it was called through a pointer,
//             as virtual methods are, its start is the nearest place before the instruction that
//             follows the end of a routine. Both are read instruction by instruction: from there
//             to the interrupted one nothing may change the stack pointer, and no code of the
//             routine before may jump past the start, which then would be a part of that routine.
// Invariants: reads code of this module alone, and what is not known is no leaf.
// Callers:    any thread, inside the handler of a fault. x86 only.
unit LaneMM.Leaves;

{$I ../LaneMM.inc}

interface

/// Returns whether the routine that was interrupted at Pc has nothing on the stack but Return, its
/// return address; Start receives its start.
function LeafFind(Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;

implementation

uses
  LaneMM.StacksState, LaneMM.CodeRanges, LaneMM.CallCode, LaneMM.Instructions;

const
  // The stack pointer's number in instructions.
  StackPointer = 4;

type
  // What lies between two addresses of code.
  TCodeScan = record
    Farthest: NativeUInt;   // the highest address that a jump within SearchBytes leads to; the
                            // highest of all, where a jump through a table leads anywhere
    MovesStack: Boolean;    // an instruction may change the stack pointer
    HasEnd: Boolean;        // a routine ends: an instruction leaves it, with no jump past it
    IsLeft: Boolean;        // at its end: nothing but fillers since an instruction that leaves
  end;

// Returns whether the instruction does nothing, as those that align routines.
function IsFiller(const Item: TInstruction): Boolean;
begin
  Result := (Item.Kind = ikOther) and (Item.Writes = 0)
    or (Item.Kind = ikAddress) and (Item.Operand.Base = Item.Target)
    and (Item.Operand.Index = NoRegister) and (Item.Operand.Offset = 0);
end;

// Decodes the code from First up to Limit. Returns False where an instruction is not known, or
// where none begins at Limit.
function Scan(First, Limit: NativeUInt; out Found: TCodeScan): Boolean;
var
  Item: TInstruction;
begin
  Found := Default(TCodeScan);
  while First < Limit do
  begin
    // The linker fills with zeros, an odd number of which is no instruction.
    if Found.IsLeft and (PByte(First)^ = 0) then
    begin
      Inc(First);
      Continue;
    end;
    if not InstructionAt(First, Item) then
      Exit(False);
    Inc(First, Item.Length);
    if (Item.Kind = ikLeave) and ((Item.Parts <> 0) or Item.HasOperand) then
      Found.Farthest := High(Found.Farthest)
    else if (Item.JumpTo > Found.Farthest) and (Item.JumpTo < First + SearchBytes) then
      Found.Farthest := Item.JumpTo;
    Found.MovesStack := Found.MovesStack or (Item.Writes and RegisterBit(StackPointer) <> 0);
    Found.HasEnd := Found.HasEnd or (Item.Kind = ikLeave) and (Found.Farthest < First);
    Found.IsLeft := (Item.Kind = ikLeave) or Found.IsLeft and IsFiller(Item);
  end;
  Result := First = Limit;
end;

// Returns whether the stack pointer at Pc is what it was at Start, where a routine begins.
function IsUntouched(Start, Pc: NativeUInt): Boolean;
var
  Found: TCodeScan;
begin
  Result := Scan(Start, Pc, Found) and not Found.MovesStack and not Found.HasEnd;
end;

// Returns the nearest start of a routine at or before Address, one with a whole prologue or one
// without any; 0 if none is near.
function NearestStart(Address: NativeUInt; HasPrologue: Boolean): NativeUInt;
var
  Rule: TUnwindRule;
  Limit: NativeUInt;
begin
  Result := Address and not NativeUInt(RoutineAlignment - 1);
  Limit := Stacks.CodeFirst;
  if NativeUInt(Address - Limit) > SearchBytes then
    Limit := Address - SearchBytes;
  while Result > Limit do
  begin
    if RoutineFollows(PByte(Result)) and (not HasPrologue or PrologueRead(PByte(Result), Rule)) then
      Exit;
    Dec(Result, RoutineAlignment);
  end;
  Result := 0;
end;

// Returns whether the code before Start, from the nearest routine with a prologue on, ends there
// and does not jump to Start or past it.
function BeginsRoutine(Start: NativeUInt): Boolean;
var
  Before: NativeUInt;
  Found: TCodeScan;
begin
  Before := NearestStart(Start - 1, True);
  Result := (Before <> 0) and Scan(Before, Start, Found) and Found.IsLeft
    and (Found.Farthest < Start);
end;

function LeafFind(Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;
const
  MostBytes = 4096;
var
  Rule: TUnwindRule;
begin
  Result := False;
  if not CodeIsOwn(Pc) then
    Exit;
  case CallBefore(Return, Start) of
    ckDirect:
      if CodeIsOwn(Start) and (NativeUInt(Pc - Start) < MostBytes) then
      begin
        PrologueRead(PByte(Start), Rule);
        Result := (Rule.Size = 0) and not Rule.IsFramed;
      end;
    ckIndirect:
      begin
        // UnwindAt: Pc is one more than the address of the instruction.
        Start := NearestStart(Pc - 1, False);
        Result := (Start <> 0) and IsUntouched(Start, Pc - 1) and BeginsRoutine(Start);
      end;
  end;
end;

end.
