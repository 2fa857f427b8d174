/// Decodes instructions of AArch64.
//
// Owns:       nothing.
// Invariants: Writes holds each general register that an instruction may change; the rest is read
//             of moves, address computations, jumps and calls alone. Registers have their numbers
//             in instructions; 31 is the stack pointer, and zero is taken for it in computations.
// Callers:    LaneMM.CallCode and LaneMM.FaultOrigin, for code that can be read.
// Source:     Arm Architecture Reference Manual for A-profile, C4.1.
unit LaneMM.A64Code;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Instructions;

const
  /// Number of the link register.
  A64Link = 30;

/// Decodes the instruction at Code.
procedure A64Decode(Code: NativeUInt; out Item: TInstruction);
/// Returns whether the instruction begins a routine: it saves the frame pointer and the link.
function A64IsStart(Code: NativeUInt): Boolean;
/// Returns whether the routine at Code begins with its frame: 16 bytes with frame pointer and link,
/// to which the frame pointer is set.
function A64MakesFrame(Code: NativeUInt): Boolean;
/// Returns whether this program has such code.
function A64IsHere: Boolean;

implementation

uses
  LaneMM.Layout;

const
  // Those that a routine may change: x0 to x18 and x30.
  OfCalls = $4007FFFF;

// Returns the signed number of these bits.
function Signed(Word, First, Count: Cardinal): NativeInt;
begin
  Result := Word shr First and (1 shl Count - 1);
  if Result shr (Count - 1) <> 0 then
    Dec(Result, NativeInt(1) shl Count);
end;

function IsLoad(Word: Cardinal): Boolean;
const
  Vector = $4000000;
begin
  if Word and ($3A000000 or Vector) = $38000000 then
    Result := Word and $C00000 <> 0
  else
    Result := Word and $400000 <> 0;
end;

// Immediate offsets, scaled or not, before or after the access, or a register.
procedure ReadSingle(Word: Cardinal; var Item: TInstruction);
const
  Vector = $4000000;
  Whole = $C4000000;
  WholeWord = $C0000000;
  RegisterForm = $200800;
  After = $400;
  Changes = $400;
  Shifted = $1000;
begin
  if Word and $1000000 <> 0 then
    Item.Operand.Offset := NativeInt(Word shr 10 and $FFF) shl (Word shr 30)
  else if Word and $200C00 = RegisterForm then
  begin
    Item.Operand.Index := Word shr 16 and 31;
    if Word and Shifted <> 0 then
      Item.Operand.Shift := Word shr 30;
  end
  else
  begin
    if Word and $C00 <> After then
      Item.Operand.Offset := Signed(Word, 12, 9);
    if Word and Changes <> 0 then
      Item.Writes := Item.Writes or RegisterBit(Item.Operand.Base);
  end;
  if Word and Vector = 0 then
    Item.Access := 1 shl (Word shr 30);
  if Word and Whole <> WholeWord then
    Exit;
  case Word shr 22 and 3 of
    0: Item.Kind := ikStore;
    1: Item.Kind := ikLoad;
  end;
end;

// Returns whether the instruction reads a word and stores another one at once.
function IsExchange(Word: Cardinal): Boolean;
begin
  Result := Word and $3F200C00 = $38200000;
end;

procedure ReadAccess(Code: NativeUInt; Word: Cardinal; var Item: TInstruction);
const
  PairMask = $3A000000;
  Pair = $28000000;
  ChangesPair = $800000;
begin
  Item.Target := Word and 31;
  Item.Operand.Base := Word shr 5 and 31;
  Item.IsRead := IsLoad(Word) or IsExchange(Word);
  if Item.IsRead then
    Item.Writes := RegisterBit(Item.Target);
  if Word and $3B000000 = $18000000 then
  begin
    Item.IsRead := True;
    Item.Writes := RegisterBit(Item.Target);
    Item.Operand.Base := NoRegister;
    Item.Operand.Offset := NativeInt(Code) + Signed(Word, 5, 19) * 4;
  end
  else if IsExchange(Word) then
    Item.Access := 1 shl (Word shr 30)
  else if Word and $3A000000 = $38000000 then
    ReadSingle(Word, Item)
  else
  begin
    if Item.IsRead then
      Item.Writes := Item.Writes or RegisterBit(Word shr 10 and 31);
    if Word and PairMask = Pair then
      Item.Operand.Offset := Signed(Word, 15, 7) * 8
    else // with order, or of vectors: one register reports success
      Item.Writes := Item.Writes or RegisterBit(Word shr 16 and 31);
    if (Word and PairMask <> Pair) or (Word and ChangesPair <> 0) then
      Item.Writes := Item.Writes or RegisterBit(Item.Operand.Base);
  end;
  InstructionAccess(Item);
end;

// Copies, sums with a constant, addresses of pages.
function ReadAddress(Code: NativeUInt; Word: Cardinal; var Item: TInstruction): Boolean;
const
  TwelveBits = $400000;
begin
  Result := True;
  Item.Target := Word and 31;
  if Word and $FFE0FFE0 = $AA0003E0 then
    Item.Operand.Base := Word shr 16 and 31
  else if Word and $BF800000 = $91000000 then
  begin
    Item.Operand.Base := Word shr 5 and 31;
    Item.Operand.Offset := Word shr 10 and $FFF;
    if Word and TwelveBits <> 0 then
      Item.Operand.Offset := Item.Operand.Offset shl 12;
    if Word and $40000000 <> 0 then
      Item.Operand.Offset := -Item.Operand.Offset;
  end
  else if Word and $9F000000 = $90000000 then
    Item.Operand.Offset := NativeInt(Code and not NativeUInt(4095))
      + (Signed(Word, 5, 19) * 4 + NativeInt(Word shr 29 and 3)) * 4096
  else
    Result := False;
  if Result then
    Item.Kind := ikAddress;
end;

function ReadFlow(Code: NativeUInt; Word: Cardinal; var Item: TInstruction): Boolean;
const
  PlainReturn = $D65F03C0;
begin
  Result := True;
  if Word and $FC000000 = $94000000 then
    Item.Kind := ikCall
  else if Word and $FC000000 = $14000000 then
    InstructionJump(Item, ikLeave, Code, Signed(Word, 0, 26) * 4)
  else if (Word and $FF000010 = $54000000) or (Word and $7E000000 = $34000000) then
    InstructionJump(Item, ikJump, Code, Signed(Word, 5, 19) * 4)
  else if Word and $7E000000 = $36000000 then
    InstructionJump(Item, ikJump, Code, Signed(Word, 5, 14) * 4)
  else if Word and $FE000000 = $D6000000 then
  begin
    Item.Kind := ikLeave;
    if Word and $FFFFFC1F = $D63F0000 then
      Item.Kind := ikCall;
    if Word <> PlainReturn then
      Item.Parts := RegisterBit(Word shr 5 and 31);
  end
  else
    Result := False;
  if Item.Kind = ikCall then
    Item.Writes := OfCalls;
end;

// No inline routine: the compiler warns where a constant makes code unreachable.
function A64IsHere: Boolean;
begin
  Result := IsA64;
end;

procedure A64Decode(Code: NativeUInt; out Item: TInstruction);
const
  AccessMask = $0A000000;
  Access = $08000000;
var
  Word: Cardinal;
begin
  Item := InstructionOpen;
  Item.Length := SizeOf(Word);
  Word := PCardinal(Code)^;
  if Word and AccessMask = Access then
    ReadAccess(Code, Word, Item)
  else if not ReadFlow(Code, Word, Item) then
  begin
    // Number 31 is the stack pointer in sums alone.
    if ReadAddress(Code, Word, Item) or (Word and $1FE00000 = $0B200000) or (Word and 31 < 31) then
      Item.Writes := RegisterBit(Word and 31);
  end;
end;

function A64IsStart(Code: NativeUInt): Boolean;
begin
  Result := PCardinal(Code)^ and $FFC07FFF = $A9807BFD; // stp x29, x30, [sp, offset]!
end;

function A64MakesFrame(Code: NativeUInt): Boolean;
begin
  // stp x29, x30, [sp, -16]!; mov x29, sp
  Result := (PCardinal(Code)[0] = $A9BF7BFD) and (PCardinal(Code)[1] = $910003FD);
end;

end.
