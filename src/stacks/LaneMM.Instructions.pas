/// What one instruction of a processor does, as far as backtraces and the origin of an address need
/// it.
//
// Owns:       nothing.
// Callers:    LaneMM.X86Code and LaneMM.A64Code decode, those named there read.
unit LaneMM.Instructions;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

const
  /// No register.
  NoRegister = 32;
  /// General registers of the processor, whose numbers are below this one; AArch64: without the
  /// stack pointer.
  GeneralRegisters = 31 - 23 * Ord(IsX86) + 8 * Ord(IsX64);
  /// Numbers of the stack pointer and of the frame pointer.
  StackRegister = 31 - 27 * Ord(IsX86);
  FrameRegister = 29 - 24 * Ord(IsX86);

type
  /// A set of registers: a bit for each, by the number that instructions have for it.
  TRegisterSet = Cardinal;
  /// An address that an instruction computes: Base + Index shl Shift + Offset.
  TOperand = record
    Base: Byte;        //< owner   register, or NoRegister
    Index: Byte;       //< owner   likewise
    Shift: Byte;       //< owner   bits
    Offset: NativeInt; //< owner   bytes; without registers the address itself
  end;
  /// What an instruction does, by its effect on one register or word.
  TInstructionKind = (
    ikOther,   //< anything else
    ikLoad,    //< Target := word at Operand
    ikStore,   //< word at Operand := Target
    ikAddress, //< Target := Operand
    ikPush,    //< pushes Target
    ikCall,    //< calls a routine
    ikJump,    //< may continue at JumpTo
    ikLeave    //< does not continue after it; at JumpTo, unless that is 0
  );
  /// An instruction.
  TInstruction = record
    Kind: TInstructionKind; //< owner   see there
    Length: Cardinal;       //< owner   bytes
    Target: Byte;           //< owner   register, see TInstructionKind
    Operand: TOperand;      //< owner   likewise
    HasOperand: Boolean;    //< owner   it accesses the memory at Operand
    IsRead: Boolean;        //< owner   AArch64: and reads it
    Access: Byte;           //< owner   bytes there; 0: unknown
    Parts: TRegisterSet;    //< owner   the addresses that it accesses are made of these
    Writes: TRegisterSet;   //< owner   it may change these, never fewer than it does
    JumpTo: NativeUInt;     //< owner   where it may continue; 0: unknown, or nowhere else
  end;

/// Returns the set of one register; empty for NoRegister.
function RegisterBit(Number: Cardinal): TRegisterSet; inline;
/// Returns an instruction that does nothing.
function InstructionOpen: TInstruction;
/// Notes the memory operand of an instruction.
procedure InstructionAccess(var Item: TInstruction);
/// Makes an instruction one that may continue, or does, at a distance in bytes from Place.
procedure InstructionJump(var Item: TInstruction; Kind: TInstructionKind; Place: NativeUInt;
  Distance: NativeInt);

implementation

function RegisterBit(Number: Cardinal): TRegisterSet;
begin
  Result := 0;
  if Number < NoRegister then
    Result := TRegisterSet(1) shl Number;
end;

function InstructionOpen: TInstruction;
begin
  Result := Default(TInstruction);
  Result.Target := NoRegister;
  Result.Operand.Base := NoRegister;
  Result.Operand.Index := NoRegister;
end;

procedure InstructionAccess(var Item: TInstruction);
begin
  Item.HasOperand := True;
  Item.Parts := RegisterBit(Item.Operand.Base) or RegisterBit(Item.Operand.Index);
end;

procedure InstructionJump(var Item: TInstruction; Kind: TInstructionKind; Place: NativeUInt;
  Distance: NativeInt);
begin
  Item.Kind := Kind;
  Item.JumpTo := Place + NativeUInt(Distance);
end;

end.
