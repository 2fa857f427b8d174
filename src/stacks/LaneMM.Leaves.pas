/// Finds the start of a routine that has no frame where it was interrupted, or called another one.
//
// Owns:       nothing.
// x86:        a leaf has nothing on the stack but its return address. A direct call of it has its
//             address. Where it was called through a pointer, as virtual methods are, its start is
//             the nearest place before the instruction that follows the end of a routine. Both are
//             read instruction by instruction: from there to the interrupted one nothing may change
//             the stack pointer, and no code of the routine before may jump past the start, which
//             then would be a part of that routine.
// AArch64:    a leaf has its return address in the link register, and the frame pointer is that of
//             its caller. Routines of Free Pascal begin with a frame, those in assembler need not.
//             One that was called through a pointer begins after the last end of a routine since
//             the nearest frame. From its start on nothing may change the two registers.
// Invariants: reads code of this module alone, and what is not known is no leaf.
// Callers:    any thread, also inside the handler of a fault.
unit LaneMM.Leaves;

{$I ../LaneMM.inc}

interface

/// Returns whether the routine that was interrupted at Pc has no frame, and Return, at the top of
/// the stack or in the link register, is its return address; Start receives its start.
function LeafFind(Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;
/// Returns whether the routine of the instruction at Pc has changed nothing on its way there that
/// leads to its caller; Start receives its start. x86 only.
function FramelessFind(Pc: NativeUInt; out Start: NativeUInt): Boolean;
/// Returns the nearest address at or before Pc, in this module, where a routine makes its frame; 0
/// if none is near. AArch64 only.
function A64FrameFind(Pc: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.StacksState, LaneMM.CodeRanges, LaneMM.CallCode, LaneMM.Instructions,
  LaneMM.A64Code;

const
  // What a leaf leaves as it is: the stack pointer of x86; frame pointer and link of AArch64.
  KeptRegisters: array[Boolean] of TRegisterSet = (1 shl StackRegister,
    1 shl FrameRegister or 1 shl A64Link);

type
  // What lies between two addresses of code.
  TCodeScan = record
    Farthest: NativeUInt;   // the highest address that a jump within SearchBytes leads to; the
                            // highest of all, where a jump through a table leads anywhere
    Writes: TRegisterSet;   // registers that an instruction may change
    LastEnd: NativeUInt;    // after the last instruction that leaves a routine, with no jump past
                            // it, and the fillers behind; 0: no routine ends
    IsLeft: Boolean;        // at its end: nothing but fillers since an instruction that leaves
  end;

// Returns whether the instruction does nothing, as those that align routines.
function IsFiller(const Item: TInstruction): Boolean;
begin
  Result := (Item.Kind = ikOther) and (Item.Writes = 0)
    or (Item.Kind = ikAddress) and (Item.Operand.Base = Item.Target)
    and (Item.Operand.Index = NoRegister) and (Item.Operand.Offset = 0);
end;

// Returns the bytes of zeros, with which the linker fills, that are no instruction there.
function ZeroLength(Code: NativeUInt): Cardinal;
begin
  Result := 1; // x86: an odd number of them is no instruction
  if A64IsHere then
    Result := SizeOf(Cardinal);
  if (PByte(Code)^ <> 0) or A64IsHere and (PCardinal(Code)^ <> 0) then
    Result := 0;
end;

// Adds the instruction at Code to Found; returns its length, 0 where it is not known.
function ScanOne(Code: NativeUInt; var Found: TCodeScan): Cardinal;
var
  Item: TInstruction;
begin
  if not InstructionAt(Code, Item) then
    Exit(0);
  Result := Item.Length;
  if (Item.Kind = ikLeave) and ((Item.Parts <> 0) or Item.HasOperand) then
    Found.Farthest := High(Found.Farthest)
  else if (Item.JumpTo > Found.Farthest) and (Item.JumpTo < Code + SearchBytes) then
    Found.Farthest := Item.JumpTo;
  Found.Writes := Found.Writes or Item.Writes;
  Found.IsLeft := (Item.Kind = ikLeave)
    or Found.IsLeft and (Found.Farthest < Code) and IsFiller(Item);
end;

// Decodes the code from First up to Limit. Returns False where an instruction is not known, or
// where none begins at Limit.
function Scan(First, Limit: NativeUInt; out Found: TCodeScan): Boolean;
var
  Length: Cardinal;
begin
  Found := Default(TCodeScan);
  while First < Limit do
  begin
    Length := 0;
    if Found.IsLeft then
      Length := ZeroLength(First);
    if Length = 0 then
      Length := ScanOne(First, Found);
    if Length = 0 then
      Exit(False);
    Inc(First, Length);
    if Found.IsLeft and (Found.Farthest < First) then
      Found.LastEnd := First;
  end;
  Result := First = Limit;
end;

// Returns whether a leaf that begins at Start has changed nothing before Pc that leads to its
// caller.
function IsUntouched(Start, Pc: NativeUInt): Boolean;
var
  Found: TCodeScan;
begin
  Result := Scan(Start, Pc, Found) and (Found.Writes and KeptRegisters[IsA64] = 0)
    and (Found.LastEnd = 0);
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

function FramelessFind(Pc: NativeUInt; out Start: NativeUInt): Boolean;
begin
  Start := 0;
  if CodeIsOwn(Pc) then
    Start := NearestStart(Pc, False);
  Result := (Start <> 0) and IsUntouched(Start, Pc) and BeginsRoutine(Start);
end;

// LeafFind for x86.
function X86LeafFind(Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;
const
  MostBytes = 4096;
var
  Rule: TUnwindRule;
begin
  Result := False;
  case CallBefore(Return, Start) of
    ckDirect:
      if CodeIsOwn(Start) and (NativeUInt(Pc - Start) < MostBytes) then
      begin
        PrologueRead(PByte(Start), Rule);
        Result := (Rule.Size = 0) and not Rule.IsFramed;
      end;
    ckIndirect: Result := FramelessFind(Pc, Start);
  end;
end;

function A64FrameFind(Pc: NativeUInt): NativeUInt;
var
  Limit: NativeUInt;
begin
  Limit := Stacks.CodeFirst;
  if NativeUInt(Pc - Limit) > SearchBytes then
    Limit := Pc - SearchBytes;
  Result := Pc and not NativeUInt(SizeOf(Cardinal) - 1);
  while (Result > Limit) and not A64IsStart(Result) do
    Dec(Result, SizeOf(Cardinal));
  if Result <= Limit then
    Result := 0;
end;

// Returns the place after the nearest end of a routine, or zeros, before Pc.
function NearestEnd(Pc: NativeUInt): NativeUInt;
var
  Item: TInstruction;
begin
  Result := Pc;
  repeat
    Dec(Result, SizeOf(Cardinal));
  until (Result <= Stacks.CodeFirst) or (PCardinal(Result)^ = 0)
    or InstructionAt(Result, Item) and (Item.Kind = ikLeave);
  Inc(Result, SizeOf(Cardinal));
end;

// LeafFind for AArch64.
function A64LeafFind(Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;
var
  Found: TCodeScan;
begin
  case CallBefore(Return, Start) of
    ckDirect: Result := NativeUInt(Pc - Start) < SearchBytes;
    ckIndirect:
      begin
        Start := A64FrameFind(Pc);
        if Start = 0 then
          Start := NearestEnd(Pc) // no routine before has a frame
        else
        begin
          Scan(Start, Pc, Found);
          if Found.LastEnd <> 0 then
            Start := Found.LastEnd;
        end;
        Result := True;
      end;
  else
    Result := False;
  end;
  Result := Result and IsUntouched(Start, Pc);
end;

function LeafFind(Pc, Return: NativeUInt; out Start: NativeUInt): Boolean;
begin
  Start := 0;
  Dec(Pc); // UnwindAt: one more than the address of the instruction
  if not CodeIsOwn(Pc) then
    Result := False
  else if A64IsHere then
    Result := A64LeafFind(Pc, Return, Start)
  else
    Result := X86LeafFind(Pc, Return, Start);
end;

end.
