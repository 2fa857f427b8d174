/// The number formats of DWARF debug information, and its line numbers, without the heap.
//
// Invariants: reads nothing outside the section, even if the section is malformed.
// Callers:    any thread.
// Source:     DWARF Debugging Information Format, versions 2 to 5, section 6.2; Free Pascal
//             writes version 2 for -g, -gl and -gw2, 3 for -gw3, 4 for -gw4; gcc writes 5.
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

  /// A section of a file; Start nil: the file has none.
  TDwarfSection = record
    Start: PByte;
    Size: NativeUInt;
  end;
  /// The sections of line numbers.
  TDwarfLines = record
    Lines: TDwarfSection;      //< .debug_line
    LineNames: TDwarfSection;  //< .debug_line_str; ends with #0
    Names: TDwarfSection;      //< .debug_str; ends with #0
  end;

/// Reads Size bytes, lowest first; bytes past the end of the section and of the result count as 0.
function DwarfReadFixed(var Cursor: TDwarfCursor; Size: Cardinal): NativeUInt;
/// Reads an unsigned LEB128 number.
function DwarfReadUnsigned(var Cursor: TDwarfCursor): NativeUInt;
/// Reads a signed LEB128 number.
function DwarfReadSigned(var Cursor: TDwarfCursor): NativeInt;

/// Sets FileName and Line of the symbols that Lines describes. Bias is the distance in bytes from
/// the addresses in the file to those of the process. Returns False when no unit of the section
/// could be read: another version, or still compressed.
function DwarfFindLines(const Symbols: TSymbols; const Lines: TDwarfLines; Bias: NativeUInt)
  : Boolean;

implementation

type
  // The header of one unit's line table.
  TLineTable = record
    FileNames: PByte;
    FileFormats: PByte;    // kind and form of each field of a file; nil before version 5
    FieldCount: Byte;      // number of these fields
    FileCount: NativeUInt; // number of files; before version 5 the list ends itself
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
    Lines: ^TDwarfLines;
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

// Returns the name at an offset of a section; nil when it has no such name.
function NameAt(const Section: TDwarfSection; Offset: NativeUInt): PAnsiChar;
begin
  Result := nil;
  if Offset < Section.Size then
    Result := PAnsiChar(Section.Start + Offset);
end;

// Reads a field of a file or a directory. Name receives its name, if the field has one; nil
// otherwise. Returns False for a form that is not known.
function ReadField(const Lines: TDwarfLines; var Cursor: TDwarfCursor; Form: NativeUInt;
  out Name: PAnsiChar): Boolean;
const
  FormData2 = $05; FormData4 = $06; FormData8 = $07; FormText = $08; FormBlock = $09;
  FormData1 = $0B; FormName = $0E; FormNumber = $0F; FormData16 = $1E; FormLineName = $1F;
begin
  Name := nil;
  Result := True;
  case Form of
    FormText:
      begin
        Name := PAnsiChar(Cursor.Next);
        SkipText(Cursor);
      end;
    FormLineName: Name := NameAt(Lines.LineNames, DwarfReadFixed(Cursor, 4));
    FormName: Name := NameAt(Lines.Names, DwarfReadFixed(Cursor, 4));
    FormData1: DwarfReadFixed(Cursor, 1);
    FormData2: DwarfReadFixed(Cursor, 2);
    FormData4: DwarfReadFixed(Cursor, 4);
    FormData8: DwarfReadFixed(Cursor, 8);
    FormData16: DwarfReadFixed(Cursor, 16);
    FormNumber: DwarfReadUnsigned(Cursor);
    FormBlock: DwarfReadFixed(Cursor, DwarfReadUnsigned(Cursor));
  else
    Result := False;
  end;
end;

// Reads the fields of a file or a directory, Count of them, whose kinds and forms lie at Formats.
// Name receives its path, nil if there is none.
function ReadEntry(const Reading: TReading; var Cursor: TDwarfCursor; Formats: PByte;
  Count: Cardinal; out Name: PAnsiChar): Boolean;
const
  KindPath = 1;
var
  Format: TDwarfCursor;
  Kind: NativeUInt;
  Found: PAnsiChar;
begin
  Name := nil;
  Result := True;
  Format.Next := Formats;
  Format.Limit := Cursor.Limit;
  while Result and (Count > 0) do
  begin
    Kind := DwarfReadUnsigned(Format);
    Result := (Cursor.Next < Cursor.Limit)
      and ReadField(Reading.Lines^, Cursor, DwarfReadUnsigned(Format), Found);
    if Kind = KindPath then
      Name := Found;
    Dec(Count);
  end;
end;

// Returns the name of a file of a unit of version 5, whose list counts from 0.
function FileNameByFormat(const Reading: TReading; Index: NativeUInt): PAnsiChar;
var
  Cursor: TDwarfCursor;
begin
  Result := nil;
  if Index >= Reading.Table.FileCount then
    Exit;
  Cursor.Next := Reading.Table.FileNames;
  Cursor.Limit := Reading.Code.Limit;
  repeat
    if not ReadEntry(Reading, Cursor, Reading.Table.FileFormats, Reading.Table.FieldCount, Result)
      then
      Exit(nil);
    Dec(Index);
  until Index = High(Index);
end;

// Returns the name of a file in the list of a unit before version 5, which counts from 1; nil when
// it has no such file.
function FileNameInList(const Reading: TReading; Index: NativeUInt): PAnsiChar;
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

// Returns the name of a file without its folders; nil when it is not known.
function FileName(const Reading: TReading; Index: NativeUInt): PAnsiChar;
var
  Next: PAnsiChar;
begin
  if Reading.Table.FileFormats = nil then
    Result := FileNameInList(Reading, Index)
  else
    Result := FileNameByFormat(Reading, Index);
  Next := Result;
  while (Next <> nil) and (Next^ <> #0) do
  begin
    if Next^ = '/' then
      Result := Next + 1;
    Inc(Next);
  end;
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

// Reads the formats of a list of version 5, and the number of its entries, into the fields of
// Table for files.
procedure ReadFormats(var Code: TDwarfCursor; var Table: TLineTable);
var
  Index: NativeInt;
begin
  Table.FieldCount := DwarfReadFixed(Code, 1);
  Table.FileFormats := Code.Next;
  for Index := 1 to NativeInt(Table.FieldCount) * 2 do
    DwarfReadUnsigned(Code);
  Table.FileCount := DwarfReadUnsigned(Code);
end;

// Moves past the directories of a unit of version 5, and finds its files.
function FindFiles(var Reading: TReading): Boolean;
var
  Name: PAnsiChar;
begin
  ReadFormats(Reading.Code, Reading.Table);
  Result := True;
  while Result and (Reading.Table.FileCount > 0) do
  begin
    Result := ReadEntry(Reading, Reading.Code, Reading.Table.FileFormats,
      Reading.Table.FieldCount, Name);
    Dec(Reading.Table.FileCount);
  end;
  ReadFormats(Reading.Code, Reading.Table);
end;

// The same before version 5.
procedure FindFilesInList(var Reading: TReading);
begin
  while SkipText(Reading.Code) do; // directories
  Reading.Table.FileFormats := nil;
end;

// Reads the header of a unit; the line program that follows remains to be read. Returns False for
// an unknown version or a malformed header.
function ReadHead(var Reading: TReading): Boolean;
const
  FirstWithOperations = 4;
  FirstWithFormats = 5;
  OpcodeCountOffset = 4;
  ShortestHead = 16;
var
  Version: Cardinal;
  Length: NativeUInt;
  Behind: PByte;
begin
  Version := DwarfReadFixed(Reading.Code, 2);
  if Version >= FirstWithFormats then
    DwarfReadFixed(Reading.Code, 2); // sizes of an address and of a segment
  Length := DwarfReadFixed(Reading.Code, 4);
  if not (Version in [2..5]) or (Length < ShortestHead)
    or (Length > NativeUInt(Reading.Code.Limit - Reading.Code.Next)) then
    Exit(False);
  Behind := Reading.Code.Next + Length;
  Reading.Table.StepLength := DwarfReadFixed(Reading.Code, 1);
  // Free Pascal omits maximum_operations_per_instruction in version 4. The length of the first
  // opcode, which is 0, then lies where the number of opcodes would.
  if (Version >= FirstWithFormats)
    or (Version = FirstWithOperations) and (Reading.Code.Next[OpcodeCountOffset] <> 0) then
    DwarfReadFixed(Reading.Code, 1);
  DwarfReadFixed(Reading.Code, 1); // default_is_stmt
  Reading.Table.LineBase := ShortInt(DwarfReadFixed(Reading.Code, 1));
  Reading.Table.LineRange := DwarfReadFixed(Reading.Code, 1);
  Reading.Table.FirstSpecial := DwarfReadFixed(Reading.Code, 1);
  Reading.Table.OpcodeLengths := Reading.Code.Next;
  Inc(Reading.Code.Next, Reading.Table.FirstSpecial - 1);
  Result := Reading.Table.LineRange > 0;
  if Version < FirstWithFormats then
    FindFilesInList(Reading)
  else
    Result := FindFiles(Reading) and Result;
  Reading.Table.FileNames := Reading.Code.Next;
  Reading.Code.Next := Behind;
  Result := Result and (Reading.Table.FileNames <= Behind);
end;

function DwarfFindLines(const Symbols: TSymbols; const Lines: TDwarfLines; Bias: NativeUInt)
  : Boolean;
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
  Reading.Lines := @Lines;
  All.Next := Lines.Lines.Start;
  All.Limit := Lines.Lines.Start + Lines.Lines.Size;
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
