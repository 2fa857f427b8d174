/// Routines that a compiler inlined, by DWARF debug information, without the heap.
//
// Reads:      of each compilation unit whose code has a symbol all entries, in their order: that of
//             a routine comes before those of the routines inlined into it. Of units without
//             inlined routines, as Free Pascal's, only the table of abbreviations.
// Owns:       nothing; a table of abbreviations while it reads.
// Invariants: reads nothing outside the sections; each step of a loop consumes bytes of a section
//             or of Steps, which the sizes of the sections bound.
// Limits:     the 32-bit format; up to MostAbbreviations of a unit. Entries in other files (split
//             DWARF, dwz) are not read: their routines stay not expanded, or without a name.
// Callers:    any thread.
// Source:     DWARF Debugging Information Format, versions 2 to 5, sections 2.17, 3.3.8, 7.5.
unit LaneMM.Inlined;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Symbols, LaneMM.Dwarf;

type
  /// The sections of debug information.
  TDwarfInfo = record
    Info: TDwarfSection;           //< .debug_info
    Abbreviations: TDwarfSection;  //< .debug_abbrev
    Ranges: TDwarfSection;         //< .debug_ranges, before version 5
    RangeLists: TDwarfSection;     //< .debug_rnglists, from version 5 on
    Addresses: TDwarfSection;      //< .debug_addr
    NameOffsets: TDwarfSection;    //< .debug_str_offsets
    Lines: TDwarfLines;            //< line numbers and names
  end;

/// Adds the routines inlined at the addresses of Symbols, which are sorted and have their lines.
/// Bias as in DwarfFindLines.
procedure InlinedFind(var Symbols: TSymbols; const Info: TDwarfInfo; Bias: NativeUInt);

implementation

uses
  LaneMM.Os;

const
  MostAbbreviations = 16384;
  // An entry is read from several, of which each refers to the next.
  MostReferences = 8;

  TagInlined = $1D;

  FormAddress = $01; FormText = $08; FormName = $0E; FormAnyReference = $10;
  FormReference1 = $11; FormReferenceNumber = $15; FormIndirect = $16;
  FormNameIndex = $1A; FormAddressIndex = $1B; FormLineName = $1F; FormConstant = $21;
  FormRangeIndex = $23; FormNameIndex1 = $25; FormNameIndex4 = $28; FormAddressIndex1 = $29;
  FormAddressIndex4 = $2C;

  // Bytes of a form; below 0 those that follow.
  SizeNumber = -1; SizeAddress = -2; SizeBlock = -3; SizeText = -4; SizeUnknown = -5;
  FormSizes: array[0..FormAddressIndex4] of ShortInt = (SizeUnknown, SizeAddress, SizeUnknown,
    {block2, block4} SizeBlock, SizeBlock, {data2, data4, data8} 2, 4, 8, SizeText,
    {block, block1} SizeBlock, SizeBlock, {data1, flag} 1, 1, SizeNumber, {strp} 4, SizeNumber,
    {ref_addr} 4, {ref1} 1, 2, 4, 8, SizeNumber, {indirect} SizeUnknown, {sec_offset} 4,
    {exprloc} SizeBlock, {flag_present} 0, SizeNumber, SizeNumber, {ref_sup4, strp_sup} 4, 4,
    {data16} 16, {line_strp} 4, {ref_sig8} 8, {implicit_const} 0, {loclistx} SizeNumber, SizeNumber,
    {ref_sup8} 8, {strx1} 1, 2, 3, 4, {addrx1} 1, 2, 3, 4);

type
  // The attributes that are read.
  TAttribute = (atNone, atName, atLines, atLow, atHigh, atOrigin, atSpecification, atRanges,
    atCallFile, atCallLine, atLinkName, atNameBase, atAddressBase, atRangeBase);

  // The value of an attribute; Form 0: it is missing.
  TValue = record
    Form: NativeUInt;
    Number: NativeUInt;   // of a text in the entry its address
  end;
  TValues = array[TAttribute] of TValue;

  PAbbreviation = ^TAbbreviation;
  // The layout of some entries.
  TAbbreviation = record
    Attributes: PByte;    // kinds and forms; nil: there is no such abbreviation
    Size: SmallInt;       // bytes of all attributes; -1: they vary
    IsInlined: Boolean;
  end;
  PAbbreviations = ^TAbbreviations;
  TAbbreviations = array[0..MostAbbreviations - 1] of TAbbreviation;

  TUnit = record
    Start: PByte;         // of the header
    Entries: TDwarfCursor;
    Abbreviations: TDwarfCursor;
    Version: Cardinal;
    AddressSize: Cardinal;
    Values: TValues;      // of the first entry
  end;

  // The code ranges of an entry.
  TRanges = record
    Cursor: TDwarfCursor;
    IsList: Boolean;      // else First and Limit are the only one
    IsRead: Boolean;      // and that was read
    Base: NativeUInt;
    IsBaseDropped: Boolean; // the list gives a base whose code is not in the file
    First, Limit: NativeUInt;
  end;

  TReading = record
    Symbols: ^TSymbols;
    Count: NativeInt;     // of symbols that are not inlined
    Info: ^TDwarfInfo;
    Bias: NativeUInt;
    Table: PAbbreviations;
    TableOf: PByte;       // the abbreviations that are in Table
    HasInlined: Boolean;  // one of them is of inlined routines
    Steps: NativeUInt;    // ranges that may be read
    Levels: NativeUInt;   // of them such that have symbols
    Here: TUnit;
  end;

procedure Skip(var Cursor: TDwarfCursor; Size: NativeUInt);
begin
  if Size < NativeUInt(Cursor.Limit - Cursor.Next) then
    Inc(Cursor.Next, Size)
  else
    Cursor.Next := Cursor.Limit;
end;

// ---------------------------------------------------------------------------- attributes

// Returns the bytes of a form, as FormSizes has them.
function SizeOfForm(const Reading: TReading; Form: NativeUInt): NativeInt;
const
  GnuAddressIndex = $1F01; GnuNameIndex = $1F02; GnuReference = $1F20; GnuName = $1F21;
begin
  case Form of
    0..FormAddressIndex4: Result := FormSizes[Form];
    GnuAddressIndex, GnuNameIndex: Result := SizeNumber;
    GnuReference, GnuName: Result := 4;
  else
    Result := SizeUnknown;
  end;
  if (Result = SizeAddress) or (Form = FormAnyReference) and (Reading.Here.Version = 2) then
    Result := Reading.Here.AddressSize;
end;

procedure SkipBlock(var Cursor: TDwarfCursor; Form: NativeUInt);
begin
  case Form of
    $03: Skip(Cursor, DwarfReadFixed(Cursor, 2));
    $04: Skip(Cursor, DwarfReadFixed(Cursor, 4));
    $0A: Skip(Cursor, DwarfReadFixed(Cursor, 1));
  else
    Skip(Cursor, DwarfReadUnsigned(Cursor));
  end;
end;

// Reads a value; Constant is that of an implicit one. Returns False for an unknown form.
function ReadValue(const Reading: TReading; var Cursor: TDwarfCursor; Constant: NativeUInt;
  var Value: TValue): Boolean;
var
  Size: NativeInt;
begin
  if Value.Form = FormIndirect then
    Value.Form := DwarfReadUnsigned(Cursor);
  Size := SizeOfForm(Reading, Value.Form);
  Value.Number := Constant;
  Result := Size <> SizeUnknown;
  case Size of
    SizeUnknown, 0: ;
    SizeNumber: Value.Number := DwarfReadUnsigned(Cursor);
    SizeBlock: SkipBlock(Cursor, Value.Form);
    SizeText:
      begin
        Value.Number := NativeUInt(Cursor.Next);
        Result := (Cursor.Next < Cursor.Limit);
        DwarfSkipText(Cursor);
        Result := Result and (Cursor.Next[-1] = 0);
      end;
  else
    Value.Number := DwarfReadFixed(Cursor, Size);
  end;
end;

function AttributeOf(Kind: NativeUInt): TAttribute;
begin
  case Kind of
    $03: Result := atName;
    $10: Result := atLines;
    $11: Result := atLow;
    $12: Result := atHigh;
    $31: Result := atOrigin;
    $47: Result := atSpecification;
    $55: Result := atRanges;
    $58: Result := atCallFile;
    $59: Result := atCallLine;
    $6E, $2007: Result := atLinkName;
    $72: Result := atNameBase;
    $73, $2133: Result := atAddressBase;
    $74: Result := atRangeBase;
  else
    Result := atNone;
  end;
end;

// Reads kind and form of an attribute; returns False for those that end the list.
function ReadLayout(var Layout: TDwarfCursor; out Kind, Form, Constant: NativeUInt): Boolean;
begin
  Kind := DwarfReadUnsigned(Layout);
  Form := DwarfReadUnsigned(Layout);
  Constant := 0;
  if Form = FormConstant then
    Constant := NativeUInt(DwarfReadSigned(Layout));
  Result := Form <> 0;
end;

// Reads the attributes of an entry. Returns False if a form is unknown.
function ReadEntry(const Reading: TReading; var Cursor: TDwarfCursor; Attributes: PByte;
  out Values: TValues): Boolean;
var
  Layout: TDwarfCursor;
  Kind, Constant: NativeUInt;
  Value: TValue;
begin
  Values := Default(TValues);
  Result := True;
  Layout := Reading.Here.Abbreviations;
  Layout.Next := Attributes;
  while Result and ReadLayout(Layout, Kind, Value.Form, Constant) do
  begin
    Result := ReadValue(Reading, Cursor, Constant, Value);
    Values[AttributeOf(Kind)] := Value;
  end;
end;

// ---------------------------------------------------------------------------- abbreviations

// Reads an abbreviation; returns False at the end of the table.
function ReadAbbreviation(const Reading: TReading; var Cursor: TDwarfCursor; out Code: NativeUInt;
  out Abbreviation: TAbbreviation): Boolean;
const
  LargestSize = 1024;
var
  Kind, Form, Constant: NativeUInt;
  Size: NativeInt;
begin
  Code := DwarfReadUnsigned(Cursor);
  Result := Code <> 0;
  if not Result then
    Exit;
  Abbreviation.IsInlined := DwarfReadUnsigned(Cursor) = TagInlined;
  DwarfReadFixed(Cursor, 1); // has children
  Abbreviation.Attributes := Cursor.Next;
  Abbreviation.Size := 0;
  while ReadLayout(Cursor, Kind, Form, Constant) do
  begin
    Size := SizeOfForm(Reading, Form);
    if (Size < 0) or (Abbreviation.Size < 0) or (Abbreviation.Size > LargestSize) then
      Abbreviation.Size := -1
    else
      Inc(Abbreviation.Size, Size);
  end;
end;

// Returns the layout of an entry of the unit, by its abbreviation's code; nil if there is none.
function FindAttributes(const Reading: TReading; Code: NativeUInt): PByte;
var
  Cursor: TDwarfCursor;
  Found: NativeUInt;
  Abbreviation: TAbbreviation;
begin
  if Reading.TableOf = Reading.Here.Abbreviations.Next then
  begin
    Result := nil;
    if Code < MostAbbreviations then
      Result := Reading.Table^[Code].Attributes;
    Exit;
  end;
  Cursor := Reading.Here.Abbreviations;
  while ReadAbbreviation(Reading, Cursor, Found, Abbreviation) do
    if Found = Code then
      Exit(Abbreviation.Attributes);
  Result := nil;
end;

// Fills the table with the abbreviations of the unit.
procedure FillTable(var Reading: TReading);
var
  Cursor: TDwarfCursor;
  Code: NativeUInt;
  Abbreviation: TAbbreviation;
begin
  FillChar(Reading.Table^, SizeOf(TAbbreviations), 0);
  Reading.TableOf := Reading.Here.Abbreviations.Next;
  Reading.HasInlined := False;
  Cursor := Reading.Here.Abbreviations;
  while ReadAbbreviation(Reading, Cursor, Code, Abbreviation) do
    if Code < MostAbbreviations then
    begin
      Reading.Table^[Code] := Abbreviation;
      Reading.HasInlined := Reading.HasInlined or Abbreviation.IsInlined;
    end;
end;

// ---------------------------------------------------------------------------- units

// Reads the header of the unit at All, and moves All past it. Returns False where there is none.
function NextUnit(const Reading: TReading; var All: TDwarfCursor; out Found: TUnit): Boolean;
const
  WithKinds = 5;
  Skeleton = 4;            // an eight-byte number follows the header; also in split units
  TypeUnit = 2;
var
  Offset: NativeUInt;
  Kind: Cardinal;
begin
  Found.Start := All.Next;
  Result := DwarfNextUnit(All, Found.Entries) and (Found.Entries.Next < Found.Entries.Limit);
  if not Result then
    Exit;
  Found.Version := DwarfReadFixed(Found.Entries, 2);
  if Found.Version >= WithKinds then
  begin
    Kind := DwarfReadFixed(Found.Entries, 1);
    Found.AddressSize := DwarfReadFixed(Found.Entries, 1);
    Offset := DwarfReadFixed(Found.Entries, 4);
    if Kind in [Skeleton, Skeleton + 1] then
      Skip(Found.Entries, 8)
    else if Kind in [TypeUnit, TypeUnit + 4] then
      Skip(Found.Entries, 12);
  end
  else
  begin
    Offset := DwarfReadFixed(Found.Entries, 4);
    Found.AddressSize := DwarfReadFixed(Found.Entries, 1);
  end;
  if not (Found.Version in [2..WithKinds]) or not (Found.AddressSize in [4, 8]) then
    Found.Entries.Next := Found.Entries.Limit;
  Found.Abbreviations := DwarfCursorAt(Reading.Info^.Abbreviations, Offset);
end;

// Reads the first entry of the unit Reading.Here, which leaves its cursor at the second one.
function ReadFirst(var Reading: TReading): Boolean;
var
  Attributes: PByte;
begin
  Attributes := FindAttributes(Reading, DwarfReadUnsigned(Reading.Here.Entries));
  Result := (Attributes <> nil)
    and ReadEntry(Reading, Reading.Here.Entries, Attributes, Reading.Here.Values);
end;

// Makes the unit that has an entry, by its offset in the section, that of Reading.
function EnterUnit(var Reading: TReading; Offset: NativeUInt): Boolean;
var
  All, Last: TDwarfCursor;
begin
  All := DwarfCursorAt(Reading.Info^.Info, 0);
  repeat // the lengths alone: there may be thousands
    Last := All;
    Skip(All, DwarfReadFixed(All, 4));
    if All.Next = Last.Next then
      Exit(False);
  until NativeUInt(All.Next - Reading.Info^.Info.Start) > Offset;
  Result := NextUnit(Reading, Last, Reading.Here) and ReadFirst(Reading);
end;

// ---------------------------------------------------------------------------- values

// Returns an address of the unit by its number.
function AddressAt(const Reading: TReading; Index: NativeUInt): NativeUInt;
var
  Cursor: TDwarfCursor;
begin
  Cursor := DwarfCursorAt(Reading.Info^.Addresses, Reading.Here.Values[atAddressBase].Number
    + Index * Reading.Here.AddressSize);
  Result := DwarfReadFixed(Cursor, Reading.Here.AddressSize);
end;

// Returns the address that a value is.
function AddressOf(const Reading: TReading; const Value: TValue): NativeUInt;
begin
  Result := Value.Number;
  if Value.Form <> FormAddress then
    Result := AddressAt(Reading, Result);
end;

// Returns the text that a value is; nil if there is none.
function TextOf(const Reading: TReading; const Value: TValue): PAnsiChar;
var
  Cursor: TDwarfCursor;
begin
  Result := nil;
  case Value.Form of
    FormText: Result := PAnsiChar(Value.Number);
    FormName: Result := DwarfNameAt(Reading.Info^.Lines.Names, Value.Number);
    FormLineName: Result := DwarfNameAt(Reading.Info^.Lines.LineNames, Value.Number);
    FormNameIndex, FormNameIndex1..FormNameIndex4:
      begin
        Cursor := DwarfCursorAt(Reading.Info^.NameOffsets, Reading.Here.Values[atNameBase].Number
          + Value.Number * 4);
        if Cursor.Next < Cursor.Limit then
          Result := DwarfNameAt(Reading.Info^.Lines.Names, DwarfReadFixed(Cursor, 4));
      end;
  end;
end;

// Reads the entry that Value refers to, in its unit.
function Follow(var Reading: TReading; const Value: TValue; out Values: TValues): Boolean;
var
  Cursor: TDwarfCursor;
  Attributes: PByte;
  Offset: NativeUInt;
begin
  Offset := Value.Number;
  case Value.Form of
    FormAnyReference:
      if not EnterUnit(Reading, Offset) then
        Exit(False);
    FormReference1..FormReferenceNumber:
      Inc(Offset, Reading.Here.Start - Reading.Info^.Info.Start);
  else
    Exit(False);
  end;
  Cursor := DwarfCursorAt(Reading.Info^.Info, Offset);
  Attributes := FindAttributes(Reading, DwarfReadUnsigned(Cursor));
  Result := (Attributes <> nil) and ReadEntry(Reading, Cursor, Attributes, Values);
end;

// Returns the name of an entry: the linker's, if it or one that it refers to has such; else that of
// the source.
function NameOf(const Reading: TReading; const Entry: TValues): PAnsiChar;
var
  There: TReading;
  Values: TValues;
  Reference: TValue;
  Name: PAnsiChar;
  Count: Cardinal;
begin
  Result := nil;
  There := Reading;
  Values := Entry;
  for Count := 0 to MostReferences do
  begin
    Name := TextOf(There, Values[atLinkName]);
    if Name <> nil then
      Exit(Name);
    if Result = nil then
      Result := TextOf(There, Values[atName]);
    Reference := Values[atOrigin];
    if Reference.Form = 0 then
      Reference := Values[atSpecification];
    if not Follow(There, Reference, Values) then
      Exit;
  end;
end;

// ---------------------------------------------------------------------------- ranges

// Finds the code ranges of an entry; returns False if it has none.
function RangesOpen(const Reading: TReading; const Values: TValues; out Ranges: TRanges): Boolean;
var
  Offset: NativeUInt;
  Index: TDwarfCursor;
begin
  Ranges := Default(TRanges);
  Ranges.IsList := Values[atRanges].Form <> 0;
  Result := Ranges.IsList or (Values[atLow].Form <> 0) and (Values[atHigh].Form <> 0);
  if not Result then
    Exit;
  if not Ranges.IsList then
  begin
    Ranges.First := AddressOf(Reading, Values[atLow]);
    Ranges.Limit := Values[atHigh].Number;
    case Values[atHigh].Form of
      FormAddress, FormAddressIndex, FormAddressIndex1..FormAddressIndex4:
        Ranges.Limit := AddressOf(Reading, Values[atHigh]);
    else
      Inc(Ranges.Limit, Ranges.First);
    end;
    Exit;
  end;
  if Reading.Here.Values[atLow].Form <> 0 then
    Ranges.Base := AddressOf(Reading, Reading.Here.Values[atLow]);
  Offset := Values[atRanges].Number;
  if Values[atRanges].Form = FormRangeIndex then
  begin
    Index := DwarfCursorAt(Reading.Info^.RangeLists, Reading.Here.Values[atRangeBase].Number
      + Offset * 4);
    Offset := Reading.Here.Values[atRangeBase].Number + DwarfReadFixed(Index, 4);
  end;
  if Reading.Here.Version < 5 then
    Ranges.Cursor := DwarfCursorAt(Reading.Info^.Ranges, Offset)
  else
    Ranges.Cursor := DwarfCursorAt(Reading.Info^.RangeLists, Offset);
end;

// Reads an entry of a list before version 5; returns False at its end.
function NextPair(const Reading: TReading; var Ranges: TRanges): Boolean;
begin
  Ranges.First := DwarfReadFixed(Ranges.Cursor, Reading.Here.AddressSize);
  Ranges.Limit := DwarfReadFixed(Ranges.Cursor, Reading.Here.AddressSize);
  Result := (Ranges.First <> 0) or (Ranges.Limit <> 0);
  if (Ranges.First = High(NativeUInt))
    or (Reading.Here.AddressSize = 4) and (Ranges.First = High(Cardinal)) then
  begin
    Ranges.Base := Ranges.Limit;
    Ranges.First := Ranges.Limit; // an empty range
    Ranges.IsBaseDropped := DwarfIsDropped(Ranges.Base);
    Exit;
  end;
  Inc(Ranges.First, Ranges.Base);
  Inc(Ranges.Limit, Ranges.Base);
  if Ranges.IsBaseDropped then
    Ranges.Limit := Ranges.First;
end;

// NextPair from version 5 on.
function NextOfList(const Reading: TReading; var Ranges: TRanges): Boolean;
const
  BaseIndex = 1; IndexToIndex = 2; IndexAndLength = 3; Offsets = 4; BaseAddress = 5;
  AddressToAddress = 6; AddressAndLength = 7;
var
  Kind: Cardinal;
begin
  Kind := DwarfReadFixed(Ranges.Cursor, 1);
  Result := Kind in [BaseIndex..AddressAndLength];
  case Kind of
    BaseIndex, IndexToIndex, IndexAndLength:
      Ranges.First := AddressAt(Reading, DwarfReadUnsigned(Ranges.Cursor));
    Offsets: Ranges.First := Ranges.Base + DwarfReadUnsigned(Ranges.Cursor);
  else
    Ranges.First := DwarfReadFixed(Ranges.Cursor, Reading.Here.AddressSize);
  end;
  case Kind of
    BaseIndex, BaseAddress:
      begin
        Ranges.Base := Ranges.First;
        Ranges.Limit := Ranges.First; // an empty range
        Ranges.IsBaseDropped := DwarfIsDropped(Ranges.Base);
      end;
    IndexToIndex: Ranges.Limit := AddressAt(Reading, DwarfReadUnsigned(Ranges.Cursor));
    Offsets:
      begin
        Ranges.Limit := Ranges.Base + DwarfReadUnsigned(Ranges.Cursor);
        if Ranges.IsBaseDropped then
          Ranges.Limit := Ranges.First;
      end;
    AddressToAddress: Ranges.Limit := DwarfReadFixed(Ranges.Cursor, Reading.Here.AddressSize);
  else
    Ranges.Limit := Ranges.First + DwarfReadUnsigned(Ranges.Cursor);
  end;
end;

// Reads the next range; returns False if there is no more. Index receives the first symbol in it,
// or after it.
function RangesNext(var Reading: TReading; var Ranges: TRanges; out Index: NativeInt): Boolean;
begin
  Result := (Reading.Steps > 0) and not Ranges.IsRead;
  if not Result then
    Exit;
  Dec(Reading.Steps);
  Ranges.IsRead := not Ranges.IsList;
  if Ranges.IsList then
    if Reading.Here.Version < 5 then
      Result := NextPair(Reading, Ranges)
    else
      Result := NextOfList(Reading, Ranges);
  Index := Reading.Count;
  if Result and (Ranges.First < Ranges.Limit) and not DwarfIsDropped(Ranges.First) then
    Index := SymbolsIndexOf(Reading.Symbols^, Ranges.First + Reading.Bias);
end;

// Returns whether the symbol at Index lies in the range.
function IsInRange(const Reading: TReading; const Ranges: TRanges; Index: NativeInt): Boolean;
begin
  Result := (Index < Reading.Count)
    and (NativeUInt(Reading.Symbols^.Items[Index].Address - Reading.Bias) < Ranges.Limit);
end;

// ---------------------------------------------------------------------------- entries

// Returns whether a symbol lies in the code of the unit.
function HasSymbols(var Reading: TReading): Boolean;
var
  Ranges: TRanges;
  Index: NativeInt;
begin
  Result := False;
  if not RangesOpen(Reading, Reading.Here.Values, Ranges) then
    Exit;
  while not Result and RangesNext(Reading, Ranges, Index) do
    Result := IsInRange(Reading, Ranges, Index);
end;

// Adds the inlined routine to the symbols from Index on that lie in the range.
procedure AddLevel(var Reading: TReading; const Entry: TValues; const Ranges: TRanges;
  Index: NativeInt);
var
  Call: TSymbol;
begin
  if not IsInRange(Reading, Ranges, Index) or (Reading.Levels = 0) then
    Exit;
  Dec(Reading.Levels);
  Call.Routine := NameOf(Reading, Entry);
  if Call.Routine = nil then
    Call.Routine := '??'; // as addr2line and gdb say
  DwarfFindPlace(Call, Reading.Info^.Lines, Reading.Here.Values[atLines].Number,
    Entry[atCallFile].Number, Entry[atCallLine].Number);
  while IsInRange(Reading, Ranges, Index) do
  begin
    SymbolsInline(Reading.Symbols^, Index, Call);
    Inc(Index);
  end;
end;

// Adds the inlined routine to the symbols in its ranges.
procedure AddInlined(var Reading: TReading; const Entry: TValues);
var
  Ranges: TRanges;
  Index: NativeInt;
begin
  if RangesOpen(Reading, Entry, Ranges) then
    while RangesNext(Reading, Ranges, Index) do
      AddLevel(Reading, Entry, Ranges, Index);
end;

// Reads all entries of the unit.
procedure ReadEntries(var Reading: TReading);
var
  Code: NativeUInt;
  Abbreviation: PAbbreviation;
  Values: TValues;
begin
  while Reading.Here.Entries.Next < Reading.Here.Entries.Limit do
  begin
    Code := DwarfReadUnsigned(Reading.Here.Entries);
    if Code = 0 then
      Continue; // the end of a list of children
    if Code >= MostAbbreviations then
      Exit;
    Abbreviation := @Reading.Table^[Code];
    if Abbreviation^.Attributes = nil then
      Exit;
    if (Abbreviation^.Size >= 0) and not Abbreviation^.IsInlined then
      Skip(Reading.Here.Entries, Abbreviation^.Size)
    else if not ReadEntry(Reading, Reading.Here.Entries, Abbreviation^.Attributes, Values) then
      Exit
    else if Abbreviation^.IsInlined then
      AddInlined(Reading, Values);
  end;
end;

procedure InlinedFind(var Symbols: TSymbols; const Info: TDwarfInfo; Bias: NativeUInt);
var
  Reading: TReading;
  All: TDwarfCursor;
begin
  Reading := Default(TReading);
  Reading.Table := OsTakePages(SizeOf(TAbbreviations));
  if Reading.Table = nil then
    Exit;
  Reading.Symbols := @Symbols;
  Reading.Count := SymbolsIndexOf(Symbols, FirstInlined - 1);
  Reading.Info := @Info;
  Reading.Bias := Bias;
  Reading.Levels := Reading.Count * MostInlined;
  Reading.Steps := Info.Info.Size + Info.Ranges.Size + Info.RangeLists.Size;
  All := DwarfCursorAt(Info.Info, 0);
  while NextUnit(Reading, All, Reading.Here) do
    if ReadFirst(Reading) and HasSymbols(Reading) then
    begin
      if Reading.TableOf <> Reading.Here.Abbreviations.Next then
        FillTable(Reading);
      if Reading.HasInlined then
        ReadEntries(Reading);
    end;
  OsReleasePages(Reading.Table, SizeOf(TAbbreviations));
end;

end.
