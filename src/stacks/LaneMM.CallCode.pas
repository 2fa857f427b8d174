/// Reads machine code for backtraces: calls before return addresses, starts of routines.
//
// Owns:       nothing.
// Invariants: reads code through LaneMM.CodeRanges. Routines begin at multiples of
//             RoutineAlignment.
// Callers:    any thread, also inside a signal handler.
unit LaneMM.CallCode;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState, LaneMM.Instructions;

const
  /// Routines begin at multiples of this many bytes; a search for a start goes back SearchBytes.
  RoutineAlignment = 16;
  SearchBytes = 1 shl 20;

type
  /// The call before a return address: none, of a routine by its address, or through a pointer.
  TCallKind = (ckNone, ckDirect, ckIndirect);

/// Returns the kind of call before Return; Target receives the target of a direct one.
function CallBefore(Return: NativeUInt; out Target: NativeUInt): TCallKind;
/// Returns the address of the pointer that the call before Return goes through, in this module; 0
/// if it is not part of the instructions.
function CallPointer(Return: NativeUInt): NativeUInt;
/// Returns whether the call before Return names the address of that pointer itself, without a
/// register. x86 only.
function CallNamesPointer(Return: NativeUInt): Boolean;
/// Returns the offset in bytes into the method table that the call before Return used; -1 when that
/// call is not an indirect one through a register, or cannot be read.
function VirtualCallOffset(Return: NativeUInt): NativeInt;
/// Decodes the instruction at Pc, which can be read; returns False for one that is not known.
function InstructionAt(Pc: NativeUInt; out Item: TInstruction): Boolean;
/// Decodes push, mov rbp,rsp and the subtraction from rsp at the start of a routine, but for
/// Rule.Start. Returns whether there is more than pushes, which are bytes that other instructions
/// have too. x86 only.
function PrologueRead(Code: PByte; out Rule: TUnwindRule): Boolean;
/// Returns whether a return stands before Code, with nothing but bytes of the assembler's fillers
/// between. x86 only.
function RoutineFollows(Code: PByte): Boolean;
/// Returns whether a routine with a prologue may begin here: with a push, or an instruction with a
/// REX prefix; on i386 with any instruction. x86 only.
function RoutineMayStart(Code: PByte): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.CodeRanges, LaneMM.X86Code, LaneMM.A64Code;

{$I ../LaneMM.AfterUses.inc}

function DistanceAt(Code: PByte): NativeInt; inline;
begin
  Result := PInteger(Code)^;
end;

// ---------------------------------------------------------------------------- x86 calls

// Returns whether an indirect call precedes Code: FF /2 with one of its operand forms.
function FollowsIndirectCall(Code: PByte): Boolean;
const
  CallOpcode = $FF;
  Extension = 2 shl 3;
begin
  Result := (Code[-2] = CallOpcode) and (Code[-1] and $38 = Extension)
    or (Code[-3] = CallOpcode) and (Code[-2] and $F8 = $40 or Extension)
    or (Code[-3] = CallOpcode) and (Code[-2] = $04 or Extension)
    or (Code[-4] = CallOpcode) and (Code[-3] = $44 or Extension)
    or (Code[-6] = CallOpcode) and ((Code[-5] and $F8 = $80 or Extension)
      or (Code[-5] = $05 or Extension))
    or (Code[-7] = CallOpcode) and (Code[-6] in [$04 or Extension, $84 or Extension]);
end;

function X86CallBefore(Return: NativeUInt; out Target: NativeUInt): TCallKind;
const
  CallOpcode = $E8;
  CallLength = 5;
var
  Code: PByte;
  Bytes: TCodeBytes;
begin
  Target := 0;
  Code := CodeAt(Return, Bytes);
  if Code = nil then
    Exit(ckNone);
  if Code[-CallLength] = CallOpcode then
  begin
    Target := Return + NativeUInt(DistanceAt(Code - SizeOf(Integer)));
    if IsCode(Target) then
      Exit(ckDirect);
  end;
  if FollowsIndirectCall(Code) then
    Result := ckIndirect
  else
    Result := ckNone;
end;

// ---------------------------------------------------------------------------- x86 routines

// The instructions of i386 are the same without the prefix of 64 bits.
function PrologueRead(Code: PByte; out Rule: TUnwindRule): Boolean;
const
  MostPushed = 16 * SizeOf(Pointer); // bytes; there are no more registers
  Prefix = $48;
  PrefixLength = Ord(IsX64);
  MovFrame = $E589;          // mov rbp, rsp
  LeaShort = $24648D;        // lea rsp, [rsp + byte]
  LeaLong = $24A48D;         // lea rsp, [rsp + long]
  SubShort = $EC83;          // sub rsp, byte
  SubLong = $EC81;           // sub rsp, long
  TwoBytes = $FFFF;
  ThreeBytes = $FFFFFF;
  PushFrame = $55;
var
  Instruction: Cardinal;
begin
  Rule := Default(TUnwindRule);
  repeat
    if Code^ and $F8 = $50 then
    begin
      Inc(Rule.Size, SizeOf(Pointer));
      if Code^ = PushFrame then
        Rule.SavedFrame := Rule.Size;
      Inc(Code);
    end
    else if IsX64 and (Code^ = $41) and (Code[1] and $F8 = $50) then
    begin
      Inc(Rule.Size, SizeOf(Pointer));
      Inc(Code, 2);
    end
    else
      Break;
  until Rule.Size = MostPushed;
  Result := not IsX64 or (Code^ = Prefix);
  if not Result then
    Exit;
  Inc(Code, PrefixLength);
  Instruction := PCardinal(Code)^ and ThreeBytes;
  if (Instruction and TwoBytes = MovFrame) and (Rule.SavedFrame <> 0) then
    Rule.IsFramed := True
  else if Instruction = LeaShort then
    Dec(Rule.Size, NativeInt(PShortInt(Code + 3)^))
  else if Instruction = LeaLong then
    Dec(Rule.Size, DistanceAt(Code + 3))
  else if Instruction and TwoBytes = SubShort then
    Inc(Rule.Size, NativeInt(PShortInt(Code + 2)^))
  else if Instruction and TwoBytes = SubLong then
    Inc(Rule.Size, DistanceAt(Code + 2))
  else
    Result := False;
end;

function RoutineFollows(Code: PByte): Boolean;
const
  ReturnOpcode = $C3;
  ReturnPopOpcode = $C2; // i386: with the bytes of arguments, less than 256
  Fillers = [$90, $66, $0F, $1F, $2E, $40, $44, $80, $84, $00, $8D, $B4, $B6, $BC, $26, $27, $76,
    $74];
var
  First: PByte;
begin
  First := Code - RoutineAlignment;
  repeat
    Dec(Code);
  until (Code = First) or not (Code^ in Fillers);
  Result := (Code^ = ReturnOpcode) or not IsX64 and (Code[-1] = ReturnPopOpcode);
end;

function RoutineMayStart(Code: PByte): Boolean;
begin
  Result := not IsX64 or (Code^ and $F8 = $50) or (Code^ in [$41, $48]);
end;

// ---------------------------------------------------------------------------- AArch64 code

// Returns whether a call before Return goes through a register, which Load, right before it, loads.
function A64LoadBefore(Return: NativeUInt; out Load: TInstruction): Boolean;
var
  Call: TInstruction;
begin
  A64Decode(Return - 4, Call);
  A64Decode(Return - 8, Load);
  Result := (Call.Kind = ikCall) and (Load.Kind = ikLoad)
    and (Call.Parts = RegisterBit(Load.Target)) and (Load.Operand.Index = NoRegister);
end;

// adrp base, page; add base, base, offset; ldr register, [base, offset]; blr register
function A64CallPointer(Return: NativeUInt): NativeUInt;
var
  Load, Sum, Page: TInstruction;
  Base: Byte;
begin
  Result := 0;
  if not A64LoadBefore(Return, Load) then
    Exit;
  Base := Load.Operand.Base;
  A64Decode(Return - 12, Sum);
  A64Decode(Return - 16, Page);
  if (Sum.Kind = ikAddress) and (Sum.Target = Base) and (Sum.Operand.Base = Base)
    and (Page.Kind = ikAddress) and (Page.Target = Base) and (Page.Operand.Base = NoRegister) then
    Result := NativeUInt(Page.Operand.Offset + Sum.Operand.Offset + Load.Operand.Offset);
end;

function A64CallBefore(Return: NativeUInt; out Target: NativeUInt): TCallKind;
const
  CallOpcode = $94000000; // bl, with 26 bits of a signed number of instructions
var
  Call: Cardinal;
begin
  Result := ckNone;
  Target := 0;
  if not CodeIsOwn(Return) then
    Exit;
  Call := PCardinal(Return)[-1];
  if Call and $FC000000 = CallOpcode then
  begin
    Target := Return - SizeOf(Call) + NativeUInt(NativeInt(Integer(Call shl 6)) div 64 * 4);
    Result := ckDirect;
  end
  else if Call and $FFFFFC1F = $D63F0000 then // blr
    Result := ckIndirect;
end;

// ---------------------------------------------------------------------------- both

function CallBefore(Return: NativeUInt; out Target: NativeUInt): TCallKind;
begin
  if IsX86 then
    Result := X86CallBefore(Return, Target)
  else
    Result := A64CallBefore(Return, Target);
end;

function InstructionAt(Pc: NativeUInt; out Item: TInstruction): Boolean;
begin
  Result := True;
  if A64IsHere then
    A64Decode(Pc, Item)
  else
    Result := X86Decode(PByte(Pc), Item);
end;

// ---------------------------------------------------------------------------- pointers

const
  CallRelative = $15FF; // i386: call [address]
  CallRelativeLength = 6;
  CallAbsolute = $2514FF;
  CallAbsoluteLength = 7;
  ThreeBytes = $FFFFFF;

// Returns the address of the pointer that the call before Return goes through, 0 for any other:
// call [rip + distance]; from Free Pascal 3.3 on, call [address], and in the run-time library
// lea rax, [rip + distance], call [rax + offset].
function X64CallPointer(Return: NativeUInt): NativeUInt;
const
  CallOffset = $50FF;
  CallOffsetLength = 3;
  LeaRelative = $058D48;
  LeaRelativeLength = 7;
var
  Call: NativeUInt;
begin
  Result := 0;
  Call := Return - CallOffsetLength;
  if PWord(Return - CallRelativeLength)^ = CallRelative then
    Result := Return + NativeUInt(DistanceAt(PByte(Return) - SizeOf(Integer)))
  else if PCardinal(Return - CallAbsoluteLength)^ and ThreeBytes = CallAbsolute then
    Result := PCardinal(Return - SizeOf(Cardinal))^
  else if (PWord(Call)^ = CallOffset)
    and (PCardinal(Call - LeaRelativeLength)^ and ThreeBytes = LeaRelative) then
    Result := Call + NativeUInt(DistanceAt(PByte(Call) - SizeOf(Integer))) + PByte(Return)[-1];
end;

function CallPointer(Return: NativeUInt): NativeUInt;
begin
  Result := 0;
  if not CodeIsOwn(Return) then
    Exit;
  if IsA64 then
    Result := A64CallPointer(Return)
  else if IsX64 then
    Result := X64CallPointer(Return)
  else if IsX86 and (PWord(Return - CallRelativeLength)^ = CallRelative) then
    Result := PNativeUInt(Return - SizeOf(Pointer))^;
end;

function CallNamesPointer(Return: NativeUInt): Boolean;
begin
  Result := not IsA64 and CodeIsOwn(Return)
    and ((PWord(Return - CallRelativeLength)^ = CallRelative)
    or IsX64 and (PCardinal(Return - CallAbsoluteLength)^ and ThreeBytes = CallAbsolute));
end;

// x86: FF /2 with a register and an offset of four bytes, one byte or none.
function X86CallOffset(Return: NativeUInt): NativeInt;
const
  CallOpcode = $FF;
  Extension = 2 shl 3;
  LongForm = $80 or Extension;
  ShortForm = $40 or Extension;
  FormMask = $F8;
var
  Code: PByte;
  Bytes: TCodeBytes;
begin
  Result := -1;
  Code := CodeAt(Return, Bytes);
  if Code = nil then
    Exit;
  if (Code[-6] = CallOpcode) and (Code[-5] and FormMask = LongForm) then
    Result := DistanceAt(Code - SizeOf(Integer))
  else if (Code[-3] = CallOpcode) and (Code[-2] and FormMask = ShortForm) then
    Result := PShortInt(Code - 1)^
  else if (Code[-2] = CallOpcode) and (Code[-1] and FormMask = Extension) then
    Result := 0;
end;

function VirtualCallOffset(Return: NativeUInt): NativeInt;
var
  Load: TInstruction;
begin
  Result := -1;
  if IsX86 then
    Result := X86CallOffset(Return)
  else if CodeIsOwn(Return) and A64LoadBefore(Return, Load) then
    Result := Load.Operand.Offset;
end;

end.
