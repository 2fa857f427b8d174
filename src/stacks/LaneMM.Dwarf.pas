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
/// Moves past a string; returns False for an empty one.
function DwarfSkipText(var Cursor: TDwarfCursor): Boolean;
/// Returns a cursor at an offset of a section; at its end where it has no such offset.
function DwarfCursorAt(const Section: TDwarfSection; Offset: NativeUInt): TDwarfCursor;
/// Finds the unit at All, and moves All past it. Returns False if it reaches past the section.
function DwarfNextUnit(var All, Found: TDwarfCursor): Boolean;
/// Returns whether an address is what linkers write for code that they have dropped: no address, as
/// GNU's, or one of the last two, as LLVM's.
function DwarfIsDropped(Address: NativeUInt): Boolean;
/// Returns the name at an offset of a section; nil when it has no such name.
function DwarfNameAt(const Section: TDwarfSection; Offset: NativeUInt): PAnsiChar;

/// Sets FileName and Line of the symbols that Lines describes. Bias is the distance in bytes from
/// the addresses in the file to those of the process. Returns False when no unit of the section
/// could be read: another version, or still compressed.
function DwarfFindLines(const Symbols: TSymbols; const Lines: TDwarfLines; Bias: NativeUInt)
  : Boolean;
/// Sets FileName, IsHeader and Line of Symbol to a line of a file, by its number in the line table
/// at Offset.
procedure DwarfFindPlace(var Symbol: TSymbol; const Lines: TDwarfLines; Offset,
  FileIndex: NativeUInt; Line: Cardinal);

implementation

uses
  LaneMM.Text;

type
  // The files or the folders of a unit.
  TNames = record
    First: PByte;
    Formats: PByte;        // kind and form of each field of a name; nil before version 5
    FieldCount: Byte;      // number of these fields
    Count: NativeUInt;     // number of names; before version 5 the list ends itself
  end;

  // The header of one unit's line table.
  TLineTable = record
    Folders, Files: TNames;
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
    IsDropped: Boolean;    // its code is not in the file: Address says nothing
  end;

  TReading = record
    Symbols: ^TSymbols;
    Lines: ^TDwarfLines;
    Bias: NativeUInt;
    Table: TLineTable;
    Code: TDwarfCursor;
    Row: TRow;       // the registers of the line program
    LastRow: TRow;   // the last row, which holds from its address on
    Gap: TRow;       // the first row without a line after it, if IsValid
  end;

// ---------------------------------------------------------------------------- numbers

function DwarfReadFixed(var Cursor: TDwarfCursor; Size: Cardinal): NativeUInt;
var
  Index: NativeInt;
begin
  Result := 0;
  for Index := 0 to NativeInt(Size) - 1 do
  begin
    if Cursor.Next >= Cursor.Limit then
      Exit;
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
  if (Cursor.Next < Cursor.Limit) and (Cursor.Next^ < $80) then // most numbers
  begin
    Result := Cursor.Next^;
    Inc(Cursor.Next);
    Exit;
  end;
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

function DwarfSkipText(var Cursor: TDwarfCursor): Boolean;
begin
  Result := DwarfReadFixed(Cursor, 1) <> 0;
  if Result then
    while DwarfReadFixed(Cursor, 1) <> 0 do;
end;

function DwarfCursorAt(const Section: TDwarfSection; Offset: NativeUInt): TDwarfCursor;
begin
  Result.Limit := Section.Start + Section.Size;
  Result.Next := Result.Limit;
  if Offset < Section.Size then
    Result.Next := Section.Start + Offset;
end;

function DwarfNextUnit(var All, Found: TDwarfCursor): Boolean;
const
  LongestUnit = $FFFFFFF0; // above: the 64-bit format
var
  Length: NativeUInt;
begin
  Length := DwarfReadFixed(All, 4);
  Result := (Length < LongestUnit) and (Length <= NativeUInt(All.Limit - All.Next));
  if not Result then
    Exit;
  Found.Next := All.Next;
  Found.Limit := All.Next + Length;
  All.Next := Found.Limit;
end;

// ---------------------------------------------------------------------------- rows

function DwarfIsDropped(Address: NativeUInt): Boolean;
begin
  Result := (Address = 0) or (Address >= High(Address) - 1);
end;

function DwarfNameAt(const Section: TDwarfSection; Offset: NativeUInt): PAnsiChar;
begin
  Result := nil;
  if Offset < Section.Size then
    Result := PAnsiChar(Section.Start + Offset);
end;

// Reads a field of a file or a directory. Name receives its name, if the field has one; nil
// otherwise; Number its value. Returns False for a form that is not known, and a name without end.
function ReadField(const Lines: TDwarfLines; var Cursor: TDwarfCursor; Form: NativeUInt;
  out Name: PAnsiChar; out Number: NativeUInt): Boolean;
const
  FormData2 = $05; FormData4 = $06; FormData8 = $07; FormText = $08; FormBlock = $09;
  FormData1 = $0B; FormName = $0E; FormNumber = $0F; FormData16 = $1E; FormLineName = $1F;
begin
  Name := nil;
  Number := 0;
  Result := True;
  case Form of
    FormText:
      begin
        Name := PAnsiChar(Cursor.Next);
        DwarfSkipText(Cursor);
        Result := Cursor.Next[-1] = 0;
      end;
    FormLineName: Name := DwarfNameAt(Lines.LineNames, DwarfReadFixed(Cursor, 4));
    FormName: Name := DwarfNameAt(Lines.Names, DwarfReadFixed(Cursor, 4));
    FormData1: Number := DwarfReadFixed(Cursor, 1);
    FormData2: Number := DwarfReadFixed(Cursor, 2);
    FormData4: DwarfReadFixed(Cursor, 4);
    FormData8: DwarfReadFixed(Cursor, 8);
    FormData16: DwarfReadFixed(Cursor, 16);
    FormNumber: Number := DwarfReadUnsigned(Cursor);
    FormBlock: DwarfReadFixed(Cursor, DwarfReadUnsigned(Cursor));
  else
    Result := False;
  end;
end;

// Reads the fields of a file or a directory; returns False without any. Name receives its path, nil
// if there is none, Folder the number of its directory.
function ReadEntry(const Reading: TReading; var Cursor: TDwarfCursor; const Names: TNames;
  out Name: PAnsiChar; out Folder: NativeUInt): Boolean;
const
  KindPath = 1;
  KindFolder = 2;
var
  Format: TDwarfCursor;
  Kind, Number: NativeUInt;
  Count: Cardinal;
  Found: PAnsiChar;
begin
  Name := nil;
  Folder := 0;
  Format.Next := Names.Formats;
  Format.Limit := Cursor.Limit;
  Count := Names.FieldCount;
  Result := Count > 0; // else a list of any length is no bytes
  while Result and (Count > 0) do
  begin
    Kind := DwarfReadUnsigned(Format);
    Result := (Cursor.Next < Cursor.Limit)
      and ReadField(Reading.Lines^, Cursor, DwarfReadUnsigned(Format), Found, Number);
    if Kind = KindPath then
      Name := Found
    else if Kind = KindFolder then
      Folder := Number;
    Dec(Count);
  end;
end;

// Returns a name of a unit of version 5, whose lists count from 0; nil if there is none.
function NameByFormat(const Reading: TReading; const Names: TNames; Index: NativeUInt;
  out Folder: NativeUInt): PAnsiChar;
var
  Cursor: TDwarfCursor;
begin
  Result := nil;
  if Index >= Names.Count then
    Exit;
  Cursor.Next := Names.First;
  Cursor.Limit := Reading.Code.Limit;
  repeat
    if not ReadEntry(Reading, Cursor, Names, Result, Folder) then
      Exit(nil);
    Dec(Index);
  until Index = High(Index);
end;

// Returns a name of a unit before version 5, whose lists count from 1; nil if there is none. Those
// of files have HasFields.
function NameInList(const Reading: TReading; First: PByte; HasFields: Boolean; Index: NativeUInt;
  out Folder: NativeUInt): PAnsiChar;
var
  Cursor: TDwarfCursor;
begin
  Cursor.Next := First;
  Cursor.Limit := Reading.Code.Limit;
  repeat
    Result := PAnsiChar(Cursor.Next);
    Dec(Index);
    if not DwarfSkipText(Cursor) or (Cursor.Next >= Cursor.Limit) then
      Exit(nil);
    if HasFields then
    begin
      Folder := DwarfReadUnsigned(Cursor);
      DwarfReadUnsigned(Cursor); // time
      DwarfReadUnsigned(Cursor); // length
    end;
  until Index = 0;
end;

// Returns the name of a file without its folders; nil when it is not known.
function FileName(const Reading: TReading; Index: NativeUInt; out IsHeader: Boolean): PAnsiChar;
var
  Path: PAnsiChar;
  Folder, None: NativeUInt;
begin
  Path := nil;
  Folder := 0;
  if Reading.Table.Files.Formats <> nil then
  begin
    Result := NameByFormat(Reading, Reading.Table.Files, Index, Folder);
    Path := NameByFormat(Reading, Reading.Table.Folders, Folder, None);
  end
  else
  begin
    Result := NameInList(Reading, Reading.Table.Files.First, {HasFields} True, Index, Folder);
    if Folder > 0 then
      Path := NameInList(Reading, Reading.Table.Folders.First, {HasFields} False, Folder, None);
  end;
  IsHeader := PathIsOfStandard(Result) or PathIsOfStandard(Path);
  if Result <> nil then
    Result := TextFileName(Result);
end;

// Applies the last row: it holds up to the address of the current one.
procedure EndRow(var Reading: TReading);
var
  Index: NativeInt;
  Name: PAnsiChar;
  First, Limit: NativeUInt;
  IsHeader: Boolean;
begin
  if not Reading.LastRow.IsValid or Reading.LastRow.IsDropped or Reading.Row.IsDropped
    or (Reading.Row.Address <= Reading.LastRow.Address) then
    Exit;
  First := Reading.LastRow.Address + Reading.Bias;
  Limit := Reading.Row.Address + Reading.Bias;
  Index := SymbolsIndexOf(Reading.Symbols^, First);
  Name := nil;
  IsHeader := False;
  while (Index < Reading.Symbols^.Count) and (Reading.Symbols^.Items[Index].Address < Limit) do
  begin
    if Name = nil then
      Name := FileName(Reading, Reading.LastRow.FileIndex, IsHeader);
    Reading.Symbols^.Items[Index].FileName := Name;
    Reading.Symbols^.Items[Index].IsHeader := IsHeader;
    Reading.Symbols^.Items[Index].Line := Reading.LastRow.Line;
    Inc(Index);
  end;
end;

// Ends the last row where code without a line began.
procedure EndRowAtGap(var Reading: TReading);
var
  Row: TRow;
begin
  if not Reading.Gap.IsValid then
    Exit;
  Row := Reading.Row;
  Reading.Row := Reading.Gap;
  EndRow(Reading);
  Reading.LastRow := Reading.Gap;
  Reading.Row := Row;
  Reading.Gap.IsValid := False;
end;

// Free Pascal gives the code that handles exceptions no line: between two rows of one line it is of
// that line.
procedure AddRow(var Reading: TReading);
begin
  if (Reading.Row.Line = 0) and Reading.LastRow.IsValid and (Reading.LastRow.Line > 0) then
  begin
    if not Reading.Gap.IsValid then
      Reading.Gap := Reading.Row;
    Reading.Gap.IsValid := True;
    Exit;
  end;
  if (Reading.Row.Line <> Reading.LastRow.Line)
    or (Reading.Row.FileIndex <> Reading.LastRow.FileIndex) then
    EndRowAtGap(Reading);
  Reading.Gap.IsValid := False;
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
  Reading.Gap := Default(TRow);
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
        EndRowAtGap(Reading);
        EndRow(Reading);
        StartSequence(Reading);
      end;
    SetAddress:
      begin
        Reading.Row.Address := DwarfReadFixed(Reading.Code, Length - 1);
        Reading.Row.IsDropped := DwarfIsDropped(Reading.Row.Address);
      end;
  end;
  Reading.Code.Next := Behind;
end;

procedure RunStandard(var Reading: TReading; Opcode: Byte);
const
  Copy = 1;
  AdvanceAddress = 2;
  AdvanceLine = 3;
  SetFile = 4;
  AddConstant = 8;
  AdvanceFixed = 9;
var
  Index: Cardinal;
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
    for Index := 1 to Reading.Table.OpcodeLengths[Opcode - 1] do
      DwarfReadUnsigned(Reading.Code); // an operand
  end;
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
    else // a special one: it steps through addresses and lines
    begin
      Dec(Opcode, Reading.Table.FirstSpecial);
      Inc(Reading.Row.Address, NativeUInt(Opcode div Reading.Table.LineRange)
        * Reading.Table.StepLength);
      Inc(Reading.Row.Line, Reading.Table.LineBase + Opcode mod Reading.Table.LineRange);
      AddRow(Reading);
    end;
  end;
end;

// ---------------------------------------------------------------------------- units

// Reads the formats of a list of version 5, and the number of its entries.
procedure ReadFormats(var Code: TDwarfCursor; out Names: TNames);
var
  Index: NativeInt;
begin
  Names.FieldCount := DwarfReadFixed(Code, 1);
  Names.Formats := Code.Next;
  for Index := 1 to NativeInt(Names.FieldCount) * 2 do
    DwarfReadUnsigned(Code);
  Names.Count := DwarfReadUnsigned(Code);
  Names.First := Code.Next;
end;

// Moves past the directories of a unit of version 5, and finds its files.
function FindFiles(var Reading: TReading): Boolean;
var
  Name: PAnsiChar;
  Index, Folder: NativeUInt;
begin
  ReadFormats(Reading.Code, Reading.Table.Folders);
  Result := True;
  Index := Reading.Table.Folders.Count;
  while Result and (Index > 0) do
  begin
    Result := ReadEntry(Reading, Reading.Code, Reading.Table.Folders, Name, Folder);
    Dec(Index);
  end;
  ReadFormats(Reading.Code, Reading.Table.Files);
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
  begin
    Reading.Table.Folders.First := Reading.Code.Next;
    while DwarfSkipText(Reading.Code) do;
    Reading.Table.Files.Formats := nil;
    Reading.Table.Files.First := Reading.Code.Next;
  end
  else
    Result := FindFiles(Reading) and Result;
  Reading.Code.Next := Behind;
  Result := Result and (Reading.Table.Files.First <= Behind);
end;

function DwarfFindLines(const Symbols: TSymbols; const Lines: TDwarfLines; Bias: NativeUInt)
  : Boolean;
var
  Reading: TReading;
  All: TDwarfCursor;
begin
  Result := False;
  Reading.Symbols := @Symbols;
  Reading.Bias := Bias;
  Reading.Lines := @Lines;
  All := DwarfCursorAt(Lines.Lines, 0);
  while (All.Next < All.Limit) and DwarfNextUnit(All, Reading.Code) do
    if ReadHead(Reading) then
    begin
      RunProgram(Reading);
      Result := True;
    end;
end;

procedure DwarfFindPlace(var Symbol: TSymbol; const Lines: TDwarfLines; Offset,
  FileIndex: NativeUInt; Line: Cardinal);
var
  Reading: TReading;
  All: TDwarfCursor;
begin
  Symbol.FileName := nil;
  Symbol.IsHeader := False;
  Symbol.Line := 0;
  Reading.Lines := @Lines;
  All := DwarfCursorAt(Lines.Lines, Offset);
  if (Line = 0) or not DwarfNextUnit(All, Reading.Code) or not ReadHead(Reading) then
    Exit;
  Symbol.FileName := FileName(Reading, FileIndex, Symbol.IsHeader);
  if Symbol.FileName <> nil then
    Symbol.Line := Line;
end;

end.
