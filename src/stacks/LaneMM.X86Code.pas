/// Decodes instructions of x86_64 and i386.
//
// Owns:       nothing.
// Invariants: every instruction has its length, and Writes holds each general register that it may
//             change; the rest is read of moves, address computations, jumps and calls alone, and
//             Access of most. What is not known ends the decoding. Registers have their numbers in
//             instructions: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp, 5 rbp, 6 rsi, 7 rdi, 8 to 15.
// Callers:    LaneMM.CallCode, for code that can be read.
// Source:     Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
//             appendix A.
unit LaneMM.X86Code;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Instructions;

/// Decodes the instruction at Code; returns False for one that is not known. Reads up to
/// 16 bytes.
function X86Decode(Code: PByte; out Item: TInstruction): Boolean;

implementation

uses
  LaneMM.Layout;

const
  Rax = 0;
  Rcx = 1;
  Rdx = 2;
  Rbx = 3;
  Rsp = 4;
  Rbp = 5;
  Rsi = 6;
  Rdi = 7;
  // Those that implicit operands of instructions change.
  Implicit = 1 shl Rax or 1 shl Rcx or 1 shl Rdx or 1 shl Rsi or 1 shl Rdi;
  // Those that a routine may change: all but rbx, rsp, rbp and r12 to r15; on i386, and for
  // routines of Windows, esi and edi are kept too, but it is no error to take them for changed.
  OfCalls = Implicit or $F00;
  OfSystemCalls = $800;
  // REX: 64 bits, and the high bits of the registers.
  RexWide = 8;
  RexReg = 4;
  RexIndex = 2;
  RexBase = 1;

type
  TOpcodes = set of Byte;

  TDecoder = record
    Next: PByte;
    Rex, Map, Opcode: Byte;
    IsNarrow: Boolean;    // the prefix of 16 bits
    Repeated: Byte;       // the prefix F2 or F3; 0: neither
    IsElsewhere: Boolean; // the prefix of a segment with a base
    IsVector: Boolean;    // the prefix of vector instructions
    IsLong: Boolean;      // its bit of 32 bytes
    HasMask: Boolean;     // it has four bytes: the instruction may access less
    HasForm: Boolean;     // there is a byte of registers
    IsNext: Boolean;      // the offset of the operand counts from the next instruction
    Mode, Reg, Rm: Byte;  // its parts; without it Rm is the register that the opcode names
  end;

const
  // Opcodes with a byte of registers; those where its middle part is part of the opcode; those with
  // an immediate operand of one byte, and of one word.
  FormsOfOne: TOpcodes = [$00..$03, $08..$0B, $10..$13, $18..$1B, $20..$23, $28..$2B, $30..$33,
    $38..$3B, $63, $69, $6B, $80, $81, $83..$8F, $C0, $C1, $C6, $C7, $D0..$D3, $D8..$DF, $F6, $F7,
    $FE, $FF];
  Groups: TOpcodes = [$80, $81, $83, $8F, $C0, $C1, $C6, $C7, $D0..$D3, $D8..$DF, $F6, $F7, $FE,
    $FF];
  BytesOfOne: TOpcodes = [$04, $0C, $14, $1C, $24, $2C, $34, $3C, $6A, $6B, $70..$7F, $80, $83, $A8,
    $B0..$B7, $C0, $C1, $C6, $CD, $E0..$E3, $E4..$E7, $EB];
  WordsOfOne: TOpcodes = [$05, $0D, $15, $1D, $25, $2D, $35, $3D, $68, $69, $81, $A9, $B8..$BF, $C7,
    $E8, $E9];
  UnknownOfOne: TOpcodes = [$62, $67, $82, $9A, $C4, $C5, $C8, $CA, $CB, $CF, $D4..$D6, $EA, $F1];
  UnknownWide: TOpcodes = [$06, $07, $0E, $16, $17, $1E, $1F, $27, $2F, $37, $3F, $60, $61, $CE];
  NoFormsOfTwo: TOpcodes = [$05, $06, $08, $09, $0B, $0E, $30..$37, $77, $80..$8F, $A0, $A1, $A2,
    $A8, $A9, $AA, $C8..$CF];
  BytesOfTwo: TOpcodes = [$70..$73, $A4, $AC, $BA, $C2, $C4..$C6];
  // Nothing is written but memory, or flags, unless the byte of registers names a register for it.
  StoresOfOne: TOpcodes = [$00, $01, $08, $09, $10, $11, $18, $19, $20, $21, $28, $29, $30, $31,
    $88, $89];
  ComparesOfOne: TOpcodes = [$38..$3B, $84, $85];
  // The registers are vectors, or there are none.
  OfVectors: TOpcodes = [$0D, $10..$1F, $28..$2B, $2E, $2F, $51..$7D, $7F, $C2, $C4, $C6, $D0..$D6,
    $D8..$FF];
  // Those of two bytes that write a byte of a register.
  BytesOfTwoWritten: TOpcodes = [$90..$9F, $B0, $C0];
  StringsOfOne: TOpcodes = [$6C..$6F, $A4..$A7, $AA..$AF];

// ---------------------------------------------------------------------------- the parts

function Take(var At: TDecoder): Byte; inline;
begin
  Result := At.Next^;
  Inc(At.Next);
end;

procedure ReadPrefixes(var At: TDecoder);
begin
  while At.Next^ in [$66, $F2, $F3, $F0, $2E, $36, $3E, $26, $64, $65] do
  begin
    At.IsNarrow := At.IsNarrow or (At.Next^ = $66);
    At.IsElsewhere := At.IsElsewhere or (At.Next^ in [$64, $65]);
    if At.Next^ in [$F2, $F3] then
      At.Repeated := At.Next^;
    Inc(At.Next);
  end;
  if IsX64 and (At.Next^ and $F0 = $40) then
    At.Rex := Take(At) and 15;
end;

// Reads the two, three or four bytes: bits of registers, inverted, the map of opcodes, the length,
// and the prefix that the instruction would have without this one.
procedure ReadVector(var At: TDecoder);
const
  Repeats: array[0..3] of Byte = (0, 0, $F3, $F2);
var
  Kind, Bits, Form: Byte;
begin
  At.IsVector := True;
  Kind := Take(At);
  Form := Take(At);
  Bits := not Form;
  At.Map := 1;
  At.Rex := Bits shr 5 and RexReg;
  if Kind <> $C5 then
  begin
    At.Rex := Bits shr 5;
    At.Map := Form and 7;
    Form := Take(At);
    At.HasMask := Kind = $62;
    Inc(At.Next, Ord(At.HasMask));
  end;
  At.IsLong := Form and 4 <> 0;
  At.IsNarrow := Form and 3 = 1;
  At.Repeated := Repeats[Form and 3];
end;

procedure ReadOpcode(var At: TDecoder);
begin
  // On i386 the first byte is another instruction's if the next one names memory.
  if (At.Next^ in [$C4, $C5, $62]) and (IsX64 or (At.Next[1] >= $C0)) then
    ReadVector(At);
  At.Opcode := Take(At);
  if At.IsVector or (At.Opcode <> $0F) then
    Exit;
  At.Map := 1;
  At.Opcode := Take(At);
  if At.Opcode = $38 then
    At.Map := 2
  else if At.Opcode = $3A then
    At.Map := 3;
  if At.Map > 1 then
    At.Opcode := Take(At);
end;

// Reads the byte with a base, an index and a shift.
procedure ReadIndex(var At: TDecoder; var Operand: TOperand);
var
  Parts: Byte;
begin
  Parts := Take(At);
  Operand.Shift := Parts shr 6;
  Operand.Index := Parts shr 3 and 7 or Ord(At.Rex and RexIndex <> 0) shl 3;
  if Operand.Index = Rsp then
    Operand.Index := NoRegister;
  Operand.Base := Parts and 7 or Ord(At.Rex and RexBase <> 0) shl 3;
  if (Parts and 7 <> Rbp) or (At.Mode <> 0) then
    Exit;
  Operand.Base := NoRegister;
  Operand.Offset := PInteger(At.Next)^;
  Inc(At.Next, 4);
end;

// Reads the operand in memory.
procedure ReadOperand(var At: TDecoder; var Operand: TOperand);
begin
  At.IsNext := (At.Mode = 0) and (At.Rm and 7 = Rbp);
  if At.IsNext then
    Operand.Base := NoRegister
  else if At.Rm and 7 = Rsp then
    ReadIndex(At, Operand)
  else
    Operand.Base := At.Rm;
  if At.Mode = 1 then
  begin
    Operand.Offset := PShortInt(At.Next)^;
    Inc(At.Next);
  end
  else if (At.Mode = 2) or At.IsNext then
  begin
    Operand.Offset := PInteger(At.Next)^;
    Inc(At.Next, 4);
  end;
  At.IsNext := At.IsNext and IsX64;
end;

// Bytes of the immediate operand.
function ImmediateSize(const At: TDecoder): Cardinal;
const
  TestGroup = [$F6, $F7];
begin
  Result := 0;
  if At.Map = 3 then
    Exit(1);
  if At.Map = 2 then
    Exit(0);
  if At.Map = 1 then
  begin
    if not At.IsVector and (At.Opcode in [$80..$8F]) then
      Exit(4);
    Exit(Ord(At.Opcode in BytesOfTwo));
  end;
  if (At.Opcode in TestGroup) and (At.Reg and 7 > 1) then
    Exit(0);
  if At.Opcode in [$A0..$A3] then
    Exit(SizeOf(Pointer));
  if At.Opcode = $C2 then
    Exit(2);
  if (At.Opcode in BytesOfOne) or (At.Opcode = $F6) then
    Exit(1);
  if not ((At.Opcode in WordsOfOne) or (At.Opcode = $F7)) then
    Exit(0);
  Result := 4;
  if (At.Opcode in [$B8..$BF]) and (At.Rex and RexWide <> 0) then
    Result := 8
  else if At.IsNarrow and not (At.Opcode in [$E8, $E9]) then
    Result := 2;
end;

// ---------------------------------------------------------------------------- the access

// Bytes of an operand that is no single byte.
function WordAccess(const At: TDecoder): Byte;
begin
  Result := 4;
  if At.Rex and RexWide <> 0 then
    Result := 8
  else if At.IsNarrow then
    Result := 2;
end;

// Bytes of a vector in memory, or of a part of it; 0: unknown.
function VectorAccess(const At: TDecoder): Byte;
var
  Whole: Byte;
begin
  Whole := 16 shl Ord(At.IsLong);
  Result := 0;
  case At.Opcode of
    $10, $11, $51, $58, $59, $5C..$5F:
      case At.Repeated of
        $F3: Result := 4;
        $F2: Result := 8;
      else
        Result := Whole;
      end;
    $13, $17, $D6: Result := 8;
    $28, $29, $2B, $54..$57: Result := Whole;
    $6F, $7F:
      if At.IsNarrow or (At.Repeated <> 0) then
        Result := Whole
      else
        Result := 8;
    $6E, $7E:
      if (At.Repeated <> 0) or (At.Rex and RexWide <> 0) then
        Result := 8
      else if not At.IsVector then
        Result := 4;
  end;
end;

// Bytes that an instruction with an opcode of two bytes accesses; 0: unknown.
function AccessOfTwo(const At: TDecoder): Byte;
const
  Words = [$40..$4F, $A4, $A5, $AC, $AD, $AF, $B1, $B8, $BA, $BC, $BD, $C1, $C3];
begin
  if At.IsVector then
    Exit(VectorAccess(At));
  if At.Opcode in Words then
    Exit(WordAccess(At));
  case At.Opcode of
    $90..$9F, $B0, $B6, $BE, $C0: Result := 1;
    $B7, $BF: Result := 2;
  else
    Result := VectorAccess(At);
  end;
end;

function AccessOfOne(const At: TDecoder): Byte;
begin
  Result := 1;
  case At.Opcode of
    $8C, $8E: Result := 2;
    $63: Result := 4;
    $D8..$DF: Result := 0;
    $8F: Result := SizeOf(Pointer);
    $FF:
      if At.Reg and 7 < 2 then
        Result := WordAccess(At)
      else
        Result := SizeOf(Pointer);
  else
    if Odd(At.Opcode) then
      Result := WordAccess(At);
  end;
end;

// ---------------------------------------------------------------------------- the effect

// Returns the registers that an instruction with a byte of registers may change.
function WritesOfForm(const At: TDecoder): TRegisterSet;
const
  OfPrefix = [$F3, $F6];  // of map 2: write the register that the prefix names
  ToGeneral = [$78, $79]; // with four bytes of prefix: write a general register
begin
  if (At.Map = 1) and (At.Opcode in OfVectors)
    and not (At.HasMask and (At.Opcode in ToGeneral)) then
    Exit(0);
  if At.IsVector and (At.Map = 2) and (At.Opcode in OfPrefix) then
    Exit(High(TRegisterSet));
  Result := 0;
  if At.Mode = 3 then
    Result := RegisterBit(At.Rm);
  if (At.Map <> 0) or not ((At.Opcode in Groups) or (At.Opcode in StoresOfOne)) then
    Result := Result or RegisterBit(At.Reg);
  // Without a prefix, the bytes ah, ch, dh and bh have the numbers of spl, bpl, sil and dil.
  if (At.Map = 0) and not Odd(At.Opcode) or (At.Map = 1) and (At.Opcode in BytesOfTwoWritten) then
    Result := Result or Result shr 4 and 15;
  if At.Map <> 0 then
  begin
    if At.Opcode in [$01, $B0, $B1, $C7] then
      Result := Result or Implicit;
    Exit;
  end;
  if (At.Opcode in ComparesOfOne) or (At.Opcode in [$80, $81, $83]) and (At.Reg and 7 = 7) then
    Result := 0
  else if (At.Opcode in [$F6, $F7]) and (At.Reg and 7 >= 4) or (At.Opcode = $DF) then
    Result := Result or 1 shl Rax or 1 shl Rdx
  else if (At.Opcode = $8F) or (At.Opcode = $FF) and (At.Reg and 7 = 6) then
    Result := Result or 1 shl Rsp;
end;

function WritesOfOthers(const At: TDecoder): TRegisterSet;
begin
  if At.Map <> 0 then
    case At.Opcode of
      $80..$8F, $0B: Exit(0);
      $A2: Exit(Implicit or 1 shl Rbx); // cpuid
      $C8..$CF: Exit(RegisterBit(At.Rm));
    else
      Exit(Implicit or OfSystemCalls);
    end;
  case At.Opcode of
    $40..$4F, $B8..$BF: Result := RegisterBit(At.Rm);
    $58..$5F: Result := RegisterBit(At.Rm) or 1 shl Rsp;
    $91..$97: Result := RegisterBit(At.Rm) or 1 shl Rax;
    $B0..$B7: Result := RegisterBit(At.Rm) or RegisterBit(At.Rm and 3);
    $50..$57, $68, $6A: Result := 1 shl Rsp;
    $3C, $3D, $70..$7F, $90, $A2, $A3, $A8, $A9, $E9, $EB: Result := 0;
    $60, $61: Result := High(TRegisterSet);
    $C9: Result := 1 shl Rsp or 1 shl Rbp;
    $A0, $A1: Result := 1 shl Rax;
  else
    Result := Implicit;
  end;
end;

procedure ReadPlainAddress(const At: TDecoder; var Item: TInstruction);
begin
  Item.Operand.Offset := PNativeInt(At.Next - SizeOf(Pointer))^;
  Item.Target := Rax;
  Item.HasOperand := True;
  if IsX64 and (At.Rex and RexWide = 0) or At.IsNarrow or At.IsElsewhere then
    Exit;
  if At.Opcode = $A1 then
    Item.Kind := ikLoad
  else if At.Opcode = $A3 then
    Item.Kind := ikStore;
end;

// add and sub of a constant to a register.
procedure ReadSum(const At: TDecoder; var Item: TInstruction);
var
  Value: NativeInt;
begin
  if (At.Mode <> 3) or not (At.Reg and 7 in [0, 5]) then
    Exit;
  if At.Opcode = $83 then
    Value := PShortInt(At.Next - 1)^
  else
    Value := PInteger(At.Next - 4)^;
  if At.Reg and 7 = 5 then
    Value := -Value;
  Item.Kind := ikAddress;
  Item.Target := At.Rm;
  Item.Operand.Base := At.Rm;
  Item.Operand.Offset := Value;
end;

// C7, which extends the sign, and B8 to BF.
procedure ReadConstant(const At: TDecoder; var Item: TInstruction);
begin
  Item.Kind := ikAddress;
  Item.Target := At.Rm;
  if At.Rex and RexWide = 0 then
    Item.Operand.Offset := NativeInt(PCardinal(At.Next - 4)^)
  else if At.Opcode = $C7 then
    Item.Operand.Offset := PInteger(At.Next - 4)^
  else
    Item.Operand.Offset := PNativeInt(At.Next - SizeOf(Pointer))^;
end;

procedure ReadCopy(var Item: TInstruction; Target, Source: Byte);
begin
  Item.Kind := ikAddress;
  Item.Target := Target;
  Item.Operand.Base := Source;
end;

// Moves of whole words.
procedure ReadMove(const At: TDecoder; var Item: TInstruction);
begin
  if At.IsNarrow or At.IsElsewhere or (At.Map <> 0) or IsX64 and (At.Rex and RexWide = 0) then
    Exit;
  Item.Target := At.Reg;
  case At.Opcode of
    $81, $83: ReadSum(At, Item);
    $89:
      if At.Mode = 3 then
        ReadCopy(Item, At.Rm, At.Reg)
      else
        Item.Kind := ikStore;
    $8B:
      if At.Mode = 3 then
        ReadCopy(Item, At.Reg, At.Rm)
      else
        Item.Kind := ikLoad;
    $8D: Item.Kind := ikAddress;
    $C7:
      if At.Mode = 3 then
        ReadConstant(At, Item);
  end;
end;

// FF: calls and jumps through a register or memory.
procedure ReadIndirect(const At: TDecoder; var Item: TInstruction);
begin
  case At.Reg and 7 of
    2, 3: Item.Kind := ikCall;
    4, 5: Item.Kind := ikLeave;
  else
    Exit;
  end;
  Item.Writes := 0;
  if At.Mode = 3 then
    Item.Parts := RegisterBit(At.Rm);
end;

procedure ReadFlow(const At: TDecoder; var Item: TInstruction);
begin
  if At.Map = 1 then
  begin
    if not At.IsVector and (At.Opcode in [$80..$8F]) then
      InstructionJump(Item, ikJump, NativeUInt(At.Next), PInteger(At.Next - 4)^)
    else if At.Opcode = $0B then
      Item.Kind := ikLeave;
  end
  else if At.Map = 0 then
    case At.Opcode of
      $50..$57:
        begin
          Item.Kind := ikPush;
          Item.Target := At.Rm;
        end;
      $70..$7F, $E0..$E3:
        InstructionJump(Item, ikJump, NativeUInt(At.Next), PShortInt(At.Next - 1)^);
      $E8: Item.Kind := ikCall;
      $E9: InstructionJump(Item, ikLeave, NativeUInt(At.Next), PInteger(At.Next - 4)^);
      $EB: InstructionJump(Item, ikLeave, NativeUInt(At.Next), PShortInt(At.Next - 1)^);
      $C2, $C3, $F4, $CC: Item.Kind := ikLeave;
      $FF: ReadIndirect(At, Item);
    end;

  if Item.Kind = ikCall then
    Item.Writes := OfCalls;
end;

// ---------------------------------------------------------------------------- all

procedure ReadForm(var At: TDecoder; var Item: TInstruction);
var
  Form: Byte;
begin
  Form := Take(At);
  At.Mode := Form shr 6;
  At.Reg := Form shr 3 and 7 or Ord(At.Rex and RexReg <> 0) shl 3;
  At.Rm := Form and 7 or Ord(At.Rex and RexBase <> 0) shl 3;
  if At.Mode = 3 then
    Exit;
  ReadOperand(At, Item.Operand);
  if not At.IsElsewhere and ((At.Map <> 0) or (At.Opcode <> $8D)) then
    InstructionAccess(Item);
end;

function X86Decode(Code: PByte; out Item: TInstruction): Boolean;
var
  At: TDecoder;
begin
  At := Default(TDecoder);
  At.Next := Code;
  Item := InstructionOpen;
  ReadPrefixes(At);
  ReadOpcode(At);
  Result := (At.Map <= 3) and ((At.Map <> 0) or not (At.Opcode in UnknownOfOne)
    and not (IsX64 and (At.Opcode in UnknownWide)));
  if not Result then
    Exit;
  At.HasForm := (At.Map > 1) or (At.Map = 1) and not (At.Opcode in NoFormsOfTwo)
    or (At.Map = 0) and (At.Opcode in FormsOfOne);
  if At.HasForm then
    ReadForm(At, Item)
  else
    At.Rm := At.Opcode and 7 or Ord(At.Rex and RexBase <> 0) shl 3;
  Inc(At.Next, ImmediateSize(At));
  Item.Length := At.Next - Code;
  if At.IsNext then
    Inc(Item.Operand.Offset, NativeInt(At.Next));
  if At.HasForm then
  begin
    Item.Writes := WritesOfForm(At);
    ReadMove(At, Item);
  end
  else
    Item.Writes := WritesOfOthers(At);
  if At.Map = 0 then
    if At.Opcode in [$A0..$A3] then
      ReadPlainAddress(At, Item)
    else if (At.Opcode in [$B8..$BF]) and not At.IsNarrow then
      ReadConstant(At, Item)
    else if At.Opcode in StringsOfOne then
      Item.Parts := 1 shl Rsi or 1 shl Rdi;
  if Item.HasOperand and not At.HasMask then
    case At.Map of
      0: Item.Access := AccessOfOne(At);
      1: Item.Access := AccessOfTwo(At);
    end;
  ReadFlow(At, Item);
end;

end.
