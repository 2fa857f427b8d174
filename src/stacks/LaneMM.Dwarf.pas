/// The number formats of DWARF debug information, and its line numbers, without the heap.
//
// Invariants: reads nothing outside the section, even if the section is malformed.
// Callers:    any thread.
// Source:     DWARF Debugging Information Format, versions 2 to 4, section 6.2; Free Pascal
//             writes version 2 for -g, -gl and -gw2, 3 for -gw3, 4 for -gw4.
unit LaneMM.Dwarf;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Symbols;

type
  /// A position in a section.
  TDwarfCursor = record
    Next, Limit: PByte;  //< the byte to read next, and the end of the section
  end;

/// Reads Size bytes, lowest first; bytes past the end of the section and of the result count as 0.
function DwarfReadFixed(var Cursor: TDwarfCursor; Size: Cardinal): NativeUInt;
/// Reads an unsigned LEB128 number.
function DwarfReadUnsigned(var Cursor: TDwarfCursor): NativeUInt;
/// Reads a signed LEB128 number.
function DwarfReadSigned(var Cursor: TDwarfCursor): NativeInt;

/// Sets FileName and Line of the symbols that the section .debug_line describes. Bias is the
/// distance in bytes from the addresses in the file to those of the process. Returns False when no
/// unit of the section could be read: another version, or compressed.
function DwarfFindLines(const Symbols: TSymbols; Section: PByte; Size, Bias: NativeUInt): Boolean;

implementation

type
  // The header of one unit's line table.
  TLineTable = record
    FileNames: PByte;
    OpcodeLengths: PByte;
    StepLength: Byte;
    LineBase: ShortInt;
    LineRange: Byte;
    FirstSpecial: Byte;
  end;

  // A row of the line table.
  TRow = record
    Address: NativeUInt;
    FileIndex: NativeUInt;
    Line: NativeInt;
    IsValid: Boolean;
  end;

  TReading = record
    Symbols: ^TSymbols;
    Bias: NativeUInt;
    Table: TLineTable;
    Code: TDwarfCursor;
    Row: TRow;       // the registers of the line program
    LastRow: TRow;   // the last row, which holds from its address on
  end;

// ---------------------------------------------------------------------------- numbers

function DwarfReadFixed(var Cursor: TDwarfCursor; Size: Cardinal): NativeUInt;
var
  Index: NativeInt;
begin
  Result := 0;
  for Index := 0 to NativeInt(Size) - 1 do
    if Cursor.Next < Cursor.Limit then
    begin
      if Index < SizeOf(Result) then
        Result := Result or NativeUInt(Cursor.Next^) shl (Index * 8);
      Inc(Cursor.Next);
    end;
end;

function DwarfReadUnsigned(var Cursor: TDwarfCursor): NativeUInt;
var
  Shift: Cardinal;
  Part: Byte;
begin
  Result := 0;
  Shift := 0;
  repeat
    Part := DwarfReadFixed(Cursor, 1);
    if Shift < SizeOf(Result) * 8 then
      Result := Result or NativeUInt(Part and $7F) shl Shift;
    Inc(Shift, 7);
  until Part < $80;
end;

function DwarfReadSigned(var Cursor: TDwarfCursor): NativeInt;
var
  Start: PByte;
  Bits: Cardinal;
begin
  Start := Cursor.Next;
  Result := NativeInt(DwarfReadUnsigned(Cursor));
  Bits := Cardinal(Cursor.Next - Start) * 7;
  if (Bits > 0) and (Bits < SizeOf(Result) * 8) and (Cursor.Next[-1] and $40 <> 0) then
    Result := Result or NativeInt(High(NativeUInt) shl Bits);
end;

// Moves past a string; returns False for the empty string that ends a list.
function SkipText(var Cursor: TDwarfCursor): Boolean;
begin
  Result := DwarfReadFixed(Cursor, 1) <> 0;
  if Result then
    while DwarfReadFixed(Cursor, 1) <> 0 do;
end;

// ---------------------------------------------------------------------------- rows

// Returns the name of a file in the unit's list, which counts from 1; nil when it has no such file.
function FileName(const Reading: TReading; Index: NativeUInt): PAnsiChar;
var
  Cursor: TDwarfCursor;
begin
  Cursor.Next := Reading.Table.FileNames;
  Cursor.Limit := Reading.Code.Limit;
  repeat
    Result := PAnsiChar(Cursor.Next);
    Dec(Index);
    if not SkipText(Cursor) or (Cursor.Next >= Cursor.Limit) then
      Exit(nil);
    DwarfReadUnsigned(Cursor); // directory
    DwarfReadUnsigned(Cursor); // time
    DwarfReadUnsigned(Cursor); // length
  until Index = 0;
end;

// Applies the last row: it holds up to the address of the current one.
procedure EndRow(var Reading: TReading);
var
  Index: NativeInt;
  Name: PAnsiChar;
  First, Limit: NativeUInt;
begin
  if not Reading.LastRow.IsValid or (Reading.Row.Address <= Reading.LastRow.Address) then
    Exit;
  First := Reading.LastRow.Address + Reading.Bias;
  Limit := Reading.Row.Address + Reading.Bias;
  Index := SymbolsIndexOf(Reading.Symbols^, First);
  Name := nil;
  while (Index < Reading.Symbols^.Count) and (Reading.Symbols^.Items[Index].Address < Limit) do
  begin
    if Name = nil then
      Name := FileName(Reading, Reading.LastRow.FileIndex);
    Reading.Symbols^.Items[Index].FileName := Name;
    Reading.Symbols^.Items[Index].Line := Reading.LastRow.Line;
    Inc(Index);
  end;
end;

procedure AddRow(var Reading: TReading);
begin
  EndRow(Reading);
  Reading.LastRow := Reading.Row;
  Reading.LastRow.IsValid := True;
end;

procedure StartSequence(var Reading: TReading);
begin
  Reading.Row := Default(TRow);
  Reading.Row.FileIndex := 1;
  Reading.Row.Line := 1;
  Reading.LastRow := Default(TRow);
end;

// ---------------------------------------------------------------------------- the program

procedure RunExtended(var Reading: TReading);
const
  EndSequence = 1;
  SetAddress = 2;
var
  Length: NativeUInt;
  Behind: PByte;
begin
  Length := DwarfReadUnsigned(Reading.Code);
  if (Length = 0) or (Length > NativeUInt(Reading.Code.Limit - Reading.Code.Next)) then
    Exit;
  Behind := Reading.Code.Next + Length;
  case DwarfReadFixed(Reading.Code, 1) of
    EndSequence:
      begin
        EndRow(Reading);
        StartSequence(Reading);
      end;
    SetAddress:
      Reading.Row.Address := DwarfReadFixed(Reading.Code, Length - 1);
  end;
  Reading.Code.Next := Behind;
end;

procedure SkipOperands(var Reading: TReading; Opcode: Byte);
var
  Index: Cardinal;
begin
  for Index := 1 to Reading.Table.OpcodeLengths[Opcode - 1] do
    DwarfReadUnsigned(Reading.Code);
end;

procedure RunStandard(var Reading: TReading; Opcode: Byte);
const
  Copy = 1;
  AdvanceAddress = 2;
  AdvanceLine = 3;
  SetFile = 4;
  AddConstant = 8;
  AdvanceFixed = 9;
begin
  case Opcode of
    Copy:
      AddRow(Reading);
    AdvanceAddress:
      Inc(Reading.Row.Address, DwarfReadUnsigned(Reading.Code) * Reading.Table.StepLength);
    AdvanceLine:
      Inc(Reading.Row.Line, DwarfReadSigned(Reading.Code));
    SetFile:
      Reading.Row.FileIndex := DwarfReadUnsigned(Reading.Code);
    AddConstant:
      Inc(Reading.Row.Address, NativeUInt((255 - Reading.Table.FirstSpecial)
        div Reading.Table.LineRange) * Reading.Table.StepLength);
    AdvanceFixed:
      Inc(Reading.Row.Address, DwarfReadFixed(Reading.Code, 2));
  else
    SkipOperands(Reading, Opcode);
  end;
end;

procedure RunSpecial(var Reading: TReading; Opcode: Byte);
begin
  Dec(Opcode, Reading.Table.FirstSpecial);
  Inc(Reading.Row.Address, NativeUInt(Opcode div Reading.Table.LineRange)
    * Reading.Table.StepLength);
  Inc(Reading.Row.Line, Reading.Table.LineBase + Opcode mod Reading.Table.LineRange);
  AddRow(Reading);
end;

procedure RunProgram(var Reading: TReading);
var
  Opcode: Byte;
begin
  StartSequence(Reading);
  while Reading.Code.Next < Reading.Code.Limit do
  begin
    Opcode := DwarfReadFixed(Reading.Code, 1);
    if Opcode = 0 then
      RunExtended(Reading)
    else if Opcode < Reading.Table.FirstSpecial then
      RunStandard(Reading, Opcode)
    else
      RunSpecial(Reading, Opcode);
  end;
end;

// ---------------------------------------------------------------------------- units

// Reads the header of a unit; the line program that follows remains to be read. Returns False for
// an unknown version or a malformed header.
function ReadHead(var Reading: TReading): Boolean;
const
  FirstWithOperations = 4;
  OpcodeCountOffset = 4;
  ShortestHead = 16;
var
  Version: Cardinal;
  Length: NativeUInt;
  Behind: PByte;
begin
  Version := DwarfReadFixed(Reading.Code, 2);
  Length := DwarfReadFixed(Reading.Code, 4);
  if not (Version in [2..4]) or (Length < ShortestHead)
    or (Length > NativeUInt(Reading.Code.Limit - Reading.Code.Next)) then
    Exit(False);
  Behind := Reading.Code.Next + Length;
  Reading.Table.StepLength := DwarfReadFixed(Reading.Code, 1);
  // Free Pascal omits maximum_operations_per_instruction in version 4. The length of the first
  // opcode, which is 0, then lies where the number of opcodes would.
  if (Version >= FirstWithOperations) and (Reading.Code.Next[OpcodeCountOffset] <> 0) then
    DwarfReadFixed(Reading.Code, 1);
  DwarfReadFixed(Reading.Code, 1); // default_is_stmt
  Reading.Table.LineBase := ShortInt(DwarfReadFixed(Reading.Code, 1));
  Reading.Table.LineRange := DwarfReadFixed(Reading.Code, 1);
  Reading.Table.FirstSpecial := DwarfReadFixed(Reading.Code, 1);
  Reading.Table.OpcodeLengths := Reading.Code.Next;
  Inc(Reading.Code.Next, Reading.Table.FirstSpecial - 1);
  while SkipText(Reading.Code) do; // directories
  Reading.Table.FileNames := Reading.Code.Next;
  Reading.Code.Next := Behind;
  Result := (Reading.Table.LineRange > 0) and (Reading.Table.FileNames <= Behind);
end;

function DwarfFindLines(const Symbols: TSymbols; Section: PByte; Size, Bias: NativeUInt): Boolean;
const
  LongestUnit = $FFFFFFF0; // above: the 64-bit format
var
  Reading: TReading;
  All: TDwarfCursor;
  Length: NativeUInt;
begin
  Result := False;
  Reading.Symbols := @Symbols;
  Reading.Bias := Bias;
  All.Next := Section;
  All.Limit := Section + Size;
  while All.Next < All.Limit do
  begin
    Length := DwarfReadFixed(All, 4);
    if (Length >= LongestUnit) or (Length > NativeUInt(All.Limit - All.Next)) then
      Exit;
    Reading.Code.Next := All.Next;
    Reading.Code.Limit := All.Next + Length;
    All.Next := Reading.Code.Limit;
    if ReadHead(Reading) then
    begin
      RunProgram(Reading);
      Result := True;
    end;
  end;
end;

end.
