/// What the unwind tables of a module say of a routine: where its caller's registers are.
//
// Owns:       nothing.
// Invariants: reads the table, .eh_frame, and the stack between the stack pointer and its end. Of the
//             registers only rsp and rbp are tracked: compiled code defines the end of a frame (the CFA
//             of DWARF) by no other. A distance in a table counts from its own place, so a module may
//             be a copy at another address, as in lanemm; Pc is an address in that copy then.
// Callers:    any thread; takes no lock and allocates no memory.
// Source:     DWARF Debugging Information Format 4, section 6.4; Linux Standard Base 5.0, 10.6
//             (.eh_frame, .eh_frame_hdr).
unit LaneMM.C.FrameTables;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.StacksState;

const
  /// DWARF's numbers of registers.
  RegisterRbp = 6;
  RegisterRsp = 7;

type
  /// How a register of the caller is found.
  TFrameRuleKind = (rkSame, rkAtOffset, rkAtPlace, rkUnknown);
  /// Where it was saved: at an offset from the end of the frame, or at the address that an expression
  /// computes.
  TFrameRule = record
    Kind: TFrameRuleKind; //< owner   which of both
    Offset: NativeInt;    //< owner   of the first
    Place: PByte;         //< owner   the expression
  end;

  /// The registers that are tracked, and all others.
  TFrameOwner = (roRbp, roReturn, roOther);
  /// How to unwind a routine at one of its instructions. The end of the frame is a register and an
  /// offset, or the value of an expression.
  TFrameRules = record
    EndRegister: NativeUInt; //< owner   the register
    EndOffset: NativeInt;    //< owner   the offset
    EndPlace: PByte;         //< owner   the expression; nil: the register and the offset count
    IsOfSignal: Boolean;     //< owner   a signal has interrupted the caller: it made no call
    Kept: array[TFrameOwner] of TFrameRule; //< owner   those of the caller
  end;

/// Returns the entry of .eh_frame for the last routine that begins at Pc or before, by the sorted
/// table .eh_frame_hdr; nil without one.
function FrameEntry(Table: PByte; Pc: NativeUInt): PByte;
/// Returns the code of the routine that an entry is of: its start, and its bytes. False for an entry
/// of another kind.
function FrameCode(Entry: PByte; out First, Size: NativeUInt): Boolean;
/// Reads the rules at Pc from the entry of its routine; returns False if they are unknown.
function FrameRules(Entry: PByte; Pc: NativeUInt; out Rules: TFrameRules): Boolean;
/// Unwinds a routine by its rules; returns False if they lead nowhere.
function FrameLeave(var Walk: TUnwind; const Rules: TFrameRules): Boolean;

implementation

uses
  LaneMM.Dwarf;

const
  RegisterReturn = 16;

type
  // The state of a call frame program, which changes the rules from instruction to instruction.
  TRun = record
    Code: TDwarfCursor;
    CodeUnit: NativeUInt;
    DataUnit: NativeInt;
    Location: NativeUInt;
    Rules, FirstRules: TFrameRules;
    Saved: array[0..3] of TFrameRules;
    SavedCount: Cardinal;
    IsUnknown: Boolean;
  end;

function DistanceAt(P: PByte): NativeInt; inline;
begin
  Result := PLongInt(P)^;
end;

// ---------------------------------------------------------------------------- tables

function FrameEntry(Table: PByte; Pc: NativeUInt): PByte;
const
  UsualEncodings = $3B031B01; // version 1; distances of four bytes, sorted
  CountOffset = 8;
  RowsOffset = 12;
  RowSize = 8;
var
  First, Limit, Middle: NativeInt;
begin
  if (Table = nil) or (PCardinal(Table)^ <> UsualEncodings) then
    Exit(nil);
  First := 0;
  Limit := PCardinal(Table + CountOffset)^;
  while First < Limit do
  begin
    Middle := (First + Limit) div 2;
    if NativeUInt(Table + DistanceAt(Table + RowsOffset + Middle * RowSize)) <= Pc then
      First := Middle + 1
    else
      Limit := Middle;
  end;
  if First = 0 then
    Exit(nil);
  Result := Table + DistanceAt(Table + RowsOffset + (First - 1) * RowSize + 4);
end;

// Returns the fields after the length of an entry.
function OpenEntry(Entry: PByte): TDwarfCursor;
begin
  Result.Next := Entry + 4;
  Result.Limit := Result.Next + PCardinal(Entry)^;
end;

// Returns the bytes of an address in this encoding.
function EncodedSize(Encoding: Byte): Cardinal;
begin
  if Encoding and 7 = 3 then
    Result := 4
  else
    Result := 8;
end;

// Reads the augmentation string at Letters with its data; returns the encoding of addresses.
function ReadEncoding(Letters: PAnsiChar; var Fields: TDwarfCursor): Byte;
begin
  Result := 0;
  Inc(Letters); // z: the length, which the caller has read
  while Letters^ <> #0 do
  begin
    case Letters^ of
      'R':
        Exit(DwarfReadFixed(Fields, 1));
      'P':
        DwarfReadFixed(Fields, EncodedSize(DwarfReadFixed(Fields, 1)));
      'L':
        DwarfReadFixed(Fields, 1);
    end;
    Inc(Letters);
  end;
end;

// Returns whether the augmentation string is that of the routine that handlers of signals return to.
function IsOfSignal(Letters: PAnsiChar): Boolean;
begin
  while not (Letters^ in [#0, 'S']) do
    Inc(Letters);
  Result := Letters^ = 'S';
end;

// Reads the common information entry of several routines; its program yields the initial rules.
function OpenShared(Entry: PByte; out Run: TRun; out Encoding: Byte): Boolean;
var
  Letters: PAnsiChar;
  Length: NativeUInt;
begin
  Run := Default(TRun);
  Run.Code := OpenEntry(Entry);
  Inc(Run.Code.Next, 5); // number, version
  Letters := PAnsiChar(Run.Code.Next);
  while DwarfReadFixed(Run.Code, 1) <> 0 do;
  Run.CodeUnit := DwarfReadUnsigned(Run.Code);
  Run.DataUnit := DwarfReadSigned(Run.Code);
  Result := (DwarfReadUnsigned(Run.Code) = RegisterReturn) and (Letters^ = 'z');
  if not Result then
    Exit;
  Length := DwarfReadUnsigned(Run.Code);
  Entry := Run.Code.Next + Length;
  Encoding := ReadEncoding(Letters, Run.Code);
  Run.Rules.IsOfSignal := IsOfSignal(Letters);
  Run.Code.Next := Entry;
end;

// ---------------------------------------------------------------------------- the program

function OwnerOf(Number: NativeUInt): TFrameOwner;
begin
  case Number of
    RegisterRbp: Result := roRbp;
    RegisterReturn: Result := roReturn;
  else
    Result := roOther;
  end;
end;

procedure SetRule(var Run: TRun; Number: NativeUInt; Kind: TFrameRuleKind; Offset: NativeInt);
var
  Rule: ^TFrameRule;
begin
  Rule := @Run.Rules.Kept[OwnerOf(Number)];
  Rule^.Kind := Kind;
  Rule^.Offset := Offset;
end;

procedure Restore(var Run: TRun; Number: NativeUInt);
begin
  Run.Rules.Kept[OwnerOf(Number)] := Run.FirstRules.Kept[OwnerOf(Number)];
end;

// Returns the expression at the cursor and skips it.
function ReadPlace(var Run: TRun): PByte;
var
  Length: NativeUInt;
begin
  Result := Run.Code.Next;
  Length := DwarfReadUnsigned(Run.Code);
  Inc(Run.Code.Next, Length);
end;

procedure SetPlace(var Run: TRun; Number: NativeUInt);
begin
  SetRule(Run, Number, rkAtPlace, 0);
  Run.Rules.Kept[OwnerOf(Number)].Place := ReadPlace(Run);
end;

procedure SaveRules(var Run: TRun);
begin
  Run.IsUnknown := Run.SavedCount > High(Run.Saved);
  if Run.IsUnknown then
    Exit;
  Run.Saved[Run.SavedCount] := Run.Rules;
  Inc(Run.SavedCount);
end;

procedure TakeRules(var Run: TRun);
begin
  Run.IsUnknown := Run.SavedCount = 0;
  if Run.IsUnknown then
    Exit;
  Dec(Run.SavedCount);
  Run.Rules := Run.Saved[Run.SavedCount];
end;

procedure SetEnd(var Run: TRun; Number: NativeUInt; Offset: NativeInt);
begin
  Run.Rules.EndPlace := nil;
  Run.Rules.EndRegister := Number;
  Run.Rules.EndOffset := Offset;
end;

// Runs the operations that name a register, or the size of arguments.
procedure RunRegister(var Run: TRun; Operation: Byte);
var
  Number: NativeUInt;
begin
  Number := DwarfReadUnsigned(Run.Code);
  case Operation of
    $05: SetRule(Run, Number, rkAtOffset, NativeInt(DwarfReadUnsigned(Run.Code)) * Run.DataUnit);
    $06: Restore(Run, Number);
    $07: SetRule(Run, Number, rkUnknown, 0);
    $08: SetRule(Run, Number, rkSame, 0);
    $0C: SetEnd(Run, Number, DwarfReadUnsigned(Run.Code));
    $0D: SetEnd(Run, Number, Run.Rules.EndOffset);
    $0E: SetEnd(Run, Run.Rules.EndRegister, Number);
    $10: SetPlace(Run, Number);
    $11: SetRule(Run, Number, rkAtOffset, DwarfReadSigned(Run.Code) * Run.DataUnit);
    $12: SetEnd(Run, Number, DwarfReadSigned(Run.Code) * Run.DataUnit);
    $2E: ; // size of the arguments: not needed
  else
    Run.IsUnknown := True;
  end;
end;

procedure RunOperation(var Run: TRun);
const
  Advance = 1;
  Offset = 2;
  RestoreFirst = 3;
var
  Operation, Low: Byte;
begin
  Operation := DwarfReadFixed(Run.Code, 1);
  Low := Operation and 63;
  case Operation shr 6 of
    Advance: Inc(Run.Location, Low * Run.CodeUnit);
    Offset: SetRule(Run, Low, rkAtOffset, NativeInt(DwarfReadUnsigned(Run.Code)) * Run.DataUnit);
    RestoreFirst: Restore(Run, Low);
  else
    case Operation of
      $00: ;
      $02: Inc(Run.Location, DwarfReadFixed(Run.Code, 1) * Run.CodeUnit);
      $03: Inc(Run.Location, DwarfReadFixed(Run.Code, 2) * Run.CodeUnit);
      $04: Inc(Run.Location, DwarfReadFixed(Run.Code, 4) * Run.CodeUnit);
      $0A: SaveRules(Run);
      $0B: TakeRules(Run);
      $0F: Run.Rules.EndPlace := ReadPlace(Run);
      $13: SetEnd(Run, Run.Rules.EndRegister, DwarfReadSigned(Run.Code) * Run.DataUnit);
    else
      RunRegister(Run, Operation);
    end;
  end;
end;

// Runs the program up to the instruction at Pc.
procedure RunTo(var Run: TRun; Pc: NativeUInt);
begin
  while (Run.Code.Next < Run.Code.Limit) and (Run.Location <= Pc) and not Run.IsUnknown do
    RunOperation(Run);
end;

// Reads the entry of a routine up to its program; Run is that of the entry it shares.
function OpenRoutine(Entry: PByte; out Run: TRun; out Own: TDwarfCursor;
  out First, Size: NativeUInt): Boolean;
var
  Encoding: Byte;
begin
  Own := OpenEntry(Entry);
  Result := OpenShared(Own.Next - PCardinal(Own.Next)^, Run, Encoding);
  if not Result then
    Exit;
  Inc(Own.Next, 4);
  First := NativeUInt(Own.Next + DistanceAt(Own.Next)); // as in the sorted table
  Inc(Own.Next, EncodedSize(Encoding));
  Size := DwarfReadFixed(Own, EncodedSize(Encoding));
end;

function FrameCode(Entry: PByte; out First, Size: NativeUInt): Boolean;
var
  Run: TRun;
  Own: TDwarfCursor;
begin
  Result := OpenRoutine(Entry, Run, Own, First, Size);
end;

function FrameRules(Entry: PByte; Pc: NativeUInt; out Rules: TFrameRules): Boolean;
var
  Run: TRun;
  Own: TDwarfCursor;
  First, Size, Length: NativeUInt;
begin
  Result := OpenRoutine(Entry, Run, Own, First, Size);
  if not Result then
    Exit;
  RunTo(Run, Pc);
  Run.FirstRules := Run.Rules;
  Length := DwarfReadUnsigned(Own);
  Inc(Own.Next, Length);
  Run.Code := Own;
  Run.Location := First;
  RunTo(Run, Pc);
  Rules := Run.Rules;
  Result := (Pc - First < Size) and not Run.IsUnknown;
end;

// ---------------------------------------------------------------------------- steps

// Reads the value of a register in the routine; returns false for one that is not tracked.
function ReadRegister(const Walk: TUnwind; Number: NativeUInt;
  out Value: NativeUInt): Boolean;
begin
  Result := True;
  case Number of
    RegisterRbp: Value := Walk.Frame;
    RegisterRsp: Value := Walk.Sp;
  else
    Result := False;
  end;
end;

// Evaluates an expression: a register and an offset, then any number of dereferences.
function FindPlace(const Walk: TUnwind; Place: PByte; out Address: NativeUInt): Boolean;
const
  RegisterAndOffset = $70;
  Dereference = $06;
var
  Code: TDwarfCursor;
  Length, Number: NativeUInt;
begin
  Code.Next := Place;
  Code.Limit := Place + 16;
  Length := DwarfReadUnsigned(Code);
  Code.Limit := Code.Next + Length;
  Number := DwarfReadFixed(Code, 1) - RegisterAndOffset;
  Result := ReadRegister(Walk, Number, Address);
  if not Result then
    Exit;
  Inc(Address, DwarfReadSigned(Code));
  while Result and (Code.Next < Code.Limit) do
  begin
    Result := (DwarfReadFixed(Code, 1) = Dereference) and UnwindHas(Walk, Address);
    if Result then
      Address := StackWord(Address);
  end;
end;

function FindEnd(const Walk: TUnwind; const Rules: TFrameRules;
  out FrameEnd: NativeUInt): Boolean;
begin
  if Rules.EndPlace <> nil then
    Exit(FindPlace(Walk, Rules.EndPlace, FrameEnd));
  Result := ReadRegister(Walk, Rules.EndRegister, FrameEnd);
  Inc(FrameEnd, Rules.EndOffset);
end;

// Replaces Value by its value in the caller, according to Rule, and At by its address, if it was
// saved; returns false if unknown.
function Recover(const Walk: TUnwind; const Rule: TFrameRule; FrameEnd: NativeUInt;
  var Value, At: NativeUInt): Boolean;
var
  Address: NativeUInt;
begin
  case Rule.Kind of
    rkSame: Exit(True);
    rkAtOffset: Address := FrameEnd + NativeUInt(Rule.Offset);
    rkAtPlace:
      if not FindPlace(Walk, Rule.Place, Address) then
        Exit(False);
  else
    Exit(False);
  end;
  Result := UnwindHas(Walk, Address);
  if not Result then
    Exit;
  Value := StackWord(Address);
  At := Address;
end;

function FrameLeave(var Walk: TUnwind; const Rules: TFrameRules): Boolean;
var
  FrameEnd, Return, Frame, At: NativeUInt;
begin
  Return := 0;
  Frame := Walk.Frame;
  At := 0;
  Result := FindEnd(Walk, Rules, FrameEnd) and (FrameEnd > Walk.Sp)
    and (FrameEnd <= Walk.Limit)
    and Recover(Walk, Rules.Kept[roReturn], FrameEnd, Return, At) and (Return <> 0);
  if not Result then
    Exit;
  At := 0;
  Recover(Walk, Rules.Kept[roRbp], FrameEnd, Frame, At);
  Walk.Pc := Return + Ord(Rules.IsOfSignal); // as if a call returned there: lookups use Pc - 1
  Walk.Sp := FrameEnd;
  Walk.Frame := Frame;
  Walk.FrameAt := At;
end;

end.
