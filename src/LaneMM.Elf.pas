/// The executable file of this module: routine names and line numbers of its addresses.
//
// Owns:       the mapping of the file in each TElf.
// Invariants: reads nothing outside the file, whatever it holds.
// Callers:    any thread; a TElf belongs to one.
// Source:     System V ABI, chapter 4 (Object Files). The field offsets below hold for the 64-bit
//             and the 32-bit format, by the size of an address.
unit LaneMM.Elf;

{$I LaneMM.inc}

interface

uses
  LaneMM.Symbols;

type
  /// A mapped executable file.
  TElf = record
    Image: PByte;        //< its contents; nil when it could not be read
    Size: NativeUInt;    //< bytes
    Bias: NativeUInt;    //< from the addresses in the file to those of the process
  end;

/// Maps the file that this code was loaded from.
procedure ElfOpen(out Elf: TElf);
/// Gives the mapping back; the texts of the symbols are gone then.
procedure ElfClose(var Elf: TElf);
/// Finds routines, files and lines of the symbols. False without line numbers in the file.
function ElfResolve(const Elf: TElf; const Symbols: TSymbols): Boolean;

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.Dwarf;

const
  AddressSize = SizeOf(Pointer);
  Is64 = Ord(AddressSize = 8);

  // Fields of the file's head.
  TypeOffset = 16;
  SegmentTableOffset = 24 + AddressSize;
  SectionTableOffset = SegmentTableOffset + AddressSize;
  CountsOffset = SectionTableOffset + AddressSize + 8;
  SegmentEntryOffset = CountsOffset - 2;
  PositionIndependent = 3;

  // Fields of a segment.
  SegmentFileOffset = AddressSize;
  SegmentAddress = 2 * AddressSize;
  SegmentFileSize = 4 * AddressSize;

  // Fields of a section.
  SectionFileOffset = 8 + 2 * AddressSize;
  SectionSize = 8 + 3 * AddressSize;
  SectionLink = 8 + 4 * AddressSize;

  // Fields of a symbol.
  SymbolInfo = 12 - 8 * Is64;
  SymbolValue = 4 + 4 * Is64;
  SymbolSize = SymbolValue + AddressSize;
  SymbolEntry = 16 + 8 * Is64;
  SymbolKindMask = 15;
  RoutineKind = 2;

type
  TSection = record
    Start: PByte;
    Size: NativeUInt;
    Link: Cardinal;
  end;

// Whether Length bytes from Offset on lie in the file.
function Holds(const Elf: TElf; Offset, Length: NativeUInt): Boolean; inline;
begin
  Result := (Offset <= Elf.Size) and (Length <= Elf.Size - Offset);
end;

function HalfAt(P: PByte): Cardinal; inline;
begin
  Result := PWord(P)^;
end;

function WordAt(P: PByte): NativeUInt; inline;
begin
  Result := PNativeUInt(P)^;
end;

// ---------------------------------------------------------------------------- the file

// The distance at which the segment with this part of the file was loaded.
function FindBias(const Elf: TElf; const Mapping: TOsMapping): NativeUInt;
var
  Segment: PByte;
  EntrySize, Index: Cardinal;
  Offset: NativeUInt;
begin
  Result := 0;
  if HalfAt(Elf.Image + TypeOffset) <> PositionIndependent then
    Exit;
  EntrySize := HalfAt(Elf.Image + SegmentEntryOffset);
  Offset := WordAt(Elf.Image + SegmentTableOffset);
  for Index := 1 to HalfAt(Elf.Image + CountsOffset) do
  begin
    if not Holds(Elf, Offset, EntrySize) then
      Exit;
    Segment := Elf.Image + Offset;
    if (Mapping.FileOffset + OsPageSize > WordAt(Segment + SegmentFileOffset))
      and (Mapping.FileOffset < WordAt(Segment + SegmentFileOffset)
      + WordAt(Segment + SegmentFileSize)) then
      Result := Mapping.First - Mapping.FileOffset - WordAt(Segment + SegmentAddress)
        + WordAt(Segment + SegmentFileOffset);
    Inc(Offset, EntrySize);
  end;
end;

procedure ElfOpen(out Elf: TElf);
const
  Magic = $464C457F;
  HeadSize = 52 + 12 * Is64;
var
  Mapping: TOsMapping;
begin
  Elf := Default(TElf);
  if not OsFindMapping(Process.CodeFirst, Mapping) then
    Exit;
  Elf.Image := OsFileMap(@Mapping.Path, Elf.Size);
  if Elf.Image = nil then
    Exit;
  if Holds(Elf, 0, HeadSize) and (PCardinal(Elf.Image)^ = Magic) then
    Elf.Bias := FindBias(Elf, Mapping)
  else
    ElfClose(Elf);
end;

procedure ElfClose(var Elf: TElf);
begin
  if Elf.Image <> nil then
    OsFileUnmap(Elf.Image, Elf.Size);
  Elf := Default(TElf);
end;

// ---------------------------------------------------------------------------- sections

function ReadSection(const Elf: TElf; Index: Cardinal; out Section: TSection): Boolean;
var
  Offset: NativeUInt;
  Entry: PByte;
  EntrySize: Cardinal;
begin
  EntrySize := HalfAt(Elf.Image + CountsOffset + 2);
  Offset := WordAt(Elf.Image + SectionTableOffset) + NativeUInt(Index) * EntrySize;
  Result := (Index < HalfAt(Elf.Image + CountsOffset + 4)) and Holds(Elf, Offset, EntrySize);
  if not Result then
    Exit;
  Entry := Elf.Image + Offset;
  Section.Start := Elf.Image + WordAt(Entry + SectionFileOffset);
  Section.Size := WordAt(Entry + SectionSize);
  Section.Link := PCardinal(Entry + SectionLink)^;
  Result := Holds(Elf, WordAt(Entry + SectionFileOffset), Section.Size);
end;

function SectionName(const Elf: TElf; Index: Cardinal; const Names: TSection): PAnsiChar;
var
  Offset: Cardinal;
begin
  Offset := PCardinal(Elf.Image + WordAt(Elf.Image + SectionTableOffset)
    + NativeUInt(Index) * HalfAt(Elf.Image + CountsOffset + 2))^;
  if Offset < Names.Size then
    Result := PAnsiChar(Names.Start + Offset)
  else
    Result := '';
end;

function FindSection(const Elf: TElf; const Name: ShortString; out Section: TSection): Boolean;
var
  Names: TSection;
  Index: Cardinal;
  Found: PAnsiChar;
begin
  Result := False;
  if not ReadSection(Elf, HalfAt(Elf.Image + CountsOffset + 6), Names) then
    Exit;
  for Index := 1 to HalfAt(Elf.Image + CountsOffset + 4) - 1 do
    if ReadSection(Elf, Index, Section) then
    begin
      Found := SectionName(Elf, Index, Names);
      if (CompareByte(Found^, Name[1], Length(Name)) = 0) and (Found[Length(Name)] = #0) then
        Exit(True);
    end;
end;

// ---------------------------------------------------------------------------- symbols

procedure NameRange(const Symbols: TSymbols; First, Size: NativeUInt; Name: PAnsiChar);
var
  Index: NativeInt;
begin
  Index := SymbolsIndexOf(Symbols, First);
  while (Index < Symbols.Count) and (Symbols.Items[Index].Address - First < Size) do
  begin
    Symbols.Items[Index].Routine := Name;
    Inc(Index);
  end;
end;

procedure FindRoutines(const Elf: TElf; const Symbols: TSymbols);
var
  Table, Names: TSection;
  Entry, Limit: PByte;
begin
  if not FindSection(Elf, '.symtab', Table) or not ReadSection(Elf, Table.Link, Names) then
    Exit;
  Entry := Table.Start;
  Limit := Table.Start + Table.Size;
  while Entry + SymbolEntry <= Limit do
  begin
    if (Entry[SymbolInfo] and SymbolKindMask = RoutineKind)
      and (PCardinal(Entry)^ < Names.Size) then
      NameRange(Symbols, WordAt(Entry + SymbolValue) + Elf.Bias, WordAt(Entry + SymbolSize),
        PAnsiChar(Names.Start + PCardinal(Entry)^));
    Inc(Entry, SymbolEntry);
  end;
end;

function ElfResolve(const Elf: TElf; const Symbols: TSymbols): Boolean;
var
  Lines: TSection;
begin
  if Elf.Image = nil then
    Exit(False);
  FindRoutines(Elf, Symbols);
  Result := FindSection(Elf, '.debug_line', Lines);
  if Result then
    DwarfFindLines(Symbols, Lines.Start, Lines.Size, Elf.Bias);
end;

end.
