/// The executable files of the process: symbols and line numbers of its code addresses.
//
// Formats:    ELF is read here, that of Windows by LaneMM.Pe; the first bytes of a file tell. A
//             file without line numbers may name another one that has them (.gnu_debuglink), beside
//             it or in the folder .debug there; it counts if its checksum is the one expected.
// Owns:       nothing; a TElf owns its mapped files and their paths until ElfClose.
// Invariants: checks the offsets that it reads from a file against the file's size; names end
//             within their section. A file that is shortened while it is read faults.
// Callers:    any thread; a TElf belongs to one.
// Source:     System V ABI, chapter 4 (Object Files); GDB's manual, 18.3 (Debugging Information in
//             Separate Files). The field offsets below hold for the 64-bit
//             and the 32-bit format, by the size of an address.
unit LaneMM.Elf;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Text, LaneMM.Symbols, LaneMM.Pe;

const
  /// Most files that one TElf maps; symbols of further files stay unresolved.
  MaxElfFiles = 64;

type
  /// A mapped executable file.
  TElfFile = record
    Image: PByte;        //< its contents, mapped read-only
    Size: NativeUInt;    //< bytes
    Bias: NativeUInt;    //< distance from the addresses in the file to those of the process
    IsPe: Boolean;       //< it has the format of Windows
    Pe: TPeFile;         //< then: its tables
  end;

  /// The executable files of a set of symbols.
  TElf = record
    Files: array[0..MaxElfFiles - 1] of TElfFile; //< those below Count are mapped
    Count: Cardinal;                              //< number of files
    Paths: TText;                                 //< their paths, each ended by #0
    HasUnknownLines: Boolean;                     //< a file has line numbers that cannot be read
  end;

/// Makes an empty set. The caller owns it until ElfClose.
procedure ElfOpen(out Elf: TElf);
/// Unmaps the files; the texts of the symbols become invalid.
procedure ElfClose(var Elf: TElf);
/// Sets module, routine, file and line of the symbols, which must be sorted. Returns False when no
/// file has line numbers that can be read.
function ElfResolve(var Elf: TElf; const Symbols: TSymbols): Boolean;
/// Sets routine, file and line of sorted symbols whose addresses are those in the file at Path.
/// Returns False when that is no executable file.
function ElfResolveFile(var Elf: TElf; const Path: TPath; const Symbols: TSymbols): Boolean;

implementation

uses
  LaneMM.Os, LaneMM.Bits, LaneMM.Dwarf;

const
  AddressSize = SizeOf(Pointer);
  Is64 = Ord(AddressSize = 8);

  // Fields of the file header.
  TypeOffset = 16;
  SegmentTableOffset = 24 + AddressSize;
  SectionTableOffset = SegmentTableOffset + AddressSize;
  CountsOffset = SectionTableOffset + AddressSize + 8;
  SegmentEntryOffset = CountsOffset - 2;
  PositionIndependent = 3;

  // Fields of a program header.
  SegmentFileOffset = AddressSize;
  SegmentAddress = 2 * AddressSize;
  SegmentFileSize = 4 * AddressSize;
  SegmentHeaderSize = 32 + 24 * Is64;

  // Fields of a section header.
  SectionFileOffset = 8 + 2 * AddressSize;
  SectionSize = 8 + 3 * AddressSize;
  SectionLink = 8 + 4 * AddressSize;
  SectionHeaderSize = 40 + 24 * Is64;

  // Fields of a symbol table entry.
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

// Returns whether Length bytes from Offset on lie in the file.
function Holds(const Elf: TElfFile; Offset, Length: NativeUInt): Boolean; inline;
begin
  Result := (Offset <= Elf.Size) and (Length <= NativeUInt(Elf.Size - Offset));
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

// Returns the load bias of the segment that Mapping maps; 0 for a file at fixed addresses.
function FindBias(const Elf: TElfFile; const Mapping: TOsMapping): NativeUInt;
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
    if not Holds(Elf, Offset, SegmentHeaderSize) then
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

// Maps the file of Mapping; returns whether it is a readable executable file.
function OpenFile(out Elf: TElfFile; const Mapping: TOsMapping): Boolean;
const
  Magic = $464C457F;
  HeadSize = 52 + 12 * Is64;
begin
  Elf := Default(TElfFile);
  Elf.Image := OsFileMap(@Mapping.Path, Elf.Size);
  if Elf.Image = nil then
    Exit(False);
  Result := Holds(Elf, 0, HeadSize) and (PCardinal(Elf.Image)^ = Magic);
  if Result then
    Elf.Bias := FindBias(Elf, Mapping)
  else if PeOpen(Elf.Pe, Elf.Image, Elf.Size, Mapping.First - Mapping.FileOffset) then
  begin
    Elf.IsPe := True;
    Elf.Bias := Elf.Pe.Bias;
    Result := True;
  end
  else
    OsFileUnmap(Elf.Image, Elf.Size);
end;

procedure ElfOpen(out Elf: TElf);
const
  PathLimit = 65536;
begin
  Elf := Default(TElf);
  TextOpen(Elf.Paths, PathLimit);
end;

procedure ElfClose(var Elf: TElf);
begin
  while Elf.Count > 0 do
  begin
    Dec(Elf.Count);
    OsFileUnmap(Elf.Files[Elf.Count].Image, Elf.Files[Elf.Count].Size);
  end;
  TextClose(Elf.Paths);
end;

// ---------------------------------------------------------------------------- sections

function ReadSection(const Elf: TElfFile; Index: Cardinal; out Section: TSection): Boolean;
var
  Offset: NativeUInt;
  Entry: PByte;
  EntrySize: Cardinal;
begin
  EntrySize := HalfAt(Elf.Image + CountsOffset + 2);
  Offset := WordAt(Elf.Image + SectionTableOffset) + NativeUInt(Index) * EntrySize;
  Result := (Index < HalfAt(Elf.Image + CountsOffset + 4))
    and Holds(Elf, Offset, SectionHeaderSize);
  if not Result then
    Exit;
  Entry := Elf.Image + Offset;
  Section.Start := Elf.Image + WordAt(Entry + SectionFileOffset);
  Section.Size := WordAt(Entry + SectionSize);
  Section.Link := PCardinal(Entry + SectionLink)^;
  Result := Holds(Elf, WordAt(Entry + SectionFileOffset), Section.Size);
end;

// Reads a section of names, each ended by #0, the last one too.
function ReadNames(const Elf: TElfFile; Index: Cardinal; out Names: TSection): Boolean;
begin
  Result := ReadSection(Elf, Index, Names) and (Names.Size > 0)
    and (Names.Start[Names.Size - 1] = 0);
end;

function SectionName(const Elf: TElfFile; Index: Cardinal; const Names: TSection): PAnsiChar;
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

function FindSection(const Elf: TElfFile; const Name: ShortString; out Section: TSection): Boolean;
var
  Names: TSection;
  Index: Cardinal;
begin
  Result := False;
  if not ReadNames(Elf, HalfAt(Elf.Image + CountsOffset + 6), Names) then
    Exit;
  for Index := 1 to HalfAt(Elf.Image + CountsOffset + 4) - 1 do
    if ReadSection(Elf, Index, Section) and TextIs(SectionName(Elf, Index, Names), Name) then
      Exit(True);
end;

// ---------------------------------------------------------------------------- symbols

procedure NameRange(const Symbols: TSymbols; First, Size: NativeUInt; Name: PAnsiChar);
var
  Index: NativeInt;
begin
  Index := SymbolsIndexOf(Symbols, First);
  while (Index < Symbols.Count) and (NativeUInt(Symbols.Items[Index].Address - First) < Size) do
  begin
    Symbols.Items[Index].Routine := Name;
    Inc(Index);
  end;
end;

procedure FindRoutines(const Elf: TElfFile; const Symbols: TSymbols);
var
  Table, Names: TSection;
  Entry, Limit: PByte;
begin
  if not FindSection(Elf, '.symtab', Table) and not FindSection(Elf, '.dynsym', Table) then
    Exit;
  if not ReadNames(Elf, Table.Link, Names) then
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

procedure NameRoutines(const Elf: TElfFile; const Symbols: TSymbols);
begin
  if Elf.IsPe then
    PeFindRoutines(Elf.Pe, Symbols)
  else
    FindRoutines(Elf, Symbols);
end;

// Returns a section for LaneMM.Dwarf.
function DebugSection(const Elf: TElfFile; const Name: ShortString): TDwarfSection;
var
  Section: TSection;
begin
  Result := Default(TDwarfSection);
  if Elf.IsPe then
  begin
    PeFindSection(Elf.Pe, Name, Result.Start, Result.Size);
    Exit;
  end;
  if not FindSection(Elf, Name, Section) then
    Exit;
  Result.Start := Section.Start;
  Result.Size := Section.Size;
end;

// The same for a section of names: none, if its last name has no end.
function DebugNames(const Elf: TElfFile; const Name: ShortString): TDwarfSection;
begin
  Result := DebugSection(Elf, Name);
  if (Result.Size > 0) and (Result.Start[Result.Size - 1] <> 0) then
    Result := Default(TDwarfSection);
end;

// Resolves the symbols of the last file of Elf; returns whether it has readable line numbers.
function ResolveFile(var Elf: TElf; const Symbols: TSymbols): Boolean;
var
  Lines: TDwarfLines;
begin
  NameRoutines(Elf.Files[Elf.Count - 1], Symbols);
  Lines.Lines := DebugSection(Elf.Files[Elf.Count - 1], '.debug_line');
  if Lines.Lines.Start = nil then
    Exit(False);
  Lines.LineNames := DebugNames(Elf.Files[Elf.Count - 1], '.debug_line_str');
  Lines.Names := DebugNames(Elf.Files[Elf.Count - 1], '.debug_str');
  Result := DwarfFindLines(Symbols, Lines, Elf.Files[Elf.Count - 1].Bias);
  if not Result then
    Elf.HasUnknownLines := True;
end;

// ---------------------------------------------------------------------------- separate files

// CRC-32, four bits at a time.
function ChecksumOf(P: PByte; Size: NativeUInt): Cardinal;
const
  Steps: array[0..15] of Cardinal = ($00000000, $1DB71064, $3B6E20C8, $26D930AC, $76DC4190,
    $6B6B51F4, $4DB26158, $5005713C, $EDB88320, $F00F9344, $D6D6A3E8, $CB61B38C, $9B64C2B0,
    $86D3D2D4, $A00AE278, $BDBDF21C);
var
  Index: NativeInt;
begin
  Result := High(Cardinal);
  for Index := 0 to NativeInt(Size) - 1 do
  begin
    Result := Result xor P[Index];
    Result := Result shr 4 xor Steps[Result and 15];
    Result := Result shr 4 xor Steps[Result and 15];
  end;
  Result := not Result;
end;

// Finds the name of the file with the debug information of a file that has none, and its checksum.
function FindLink(const Elf: TElfFile; out Name: PAnsiChar; out Checksum: Cardinal): Boolean;
var
  Lines, Link: TSection;
  Length: NativeUInt;
begin
  Result := not Elf.IsPe and not FindSection(Elf, '.debug_line', Lines)
    and FindSection(Elf, '.gnu_debuglink', Link);
  if not Result then
    Exit;
  Name := PAnsiChar(Link.Start);
  Length := 0;
  while (Length < Link.Size) and (Name[Length] <> #0) do
    Inc(Length);
  Length := AlignUp(Length + 1, SizeOf(Checksum));
  Result := Length + SizeOf(Checksum) <= Link.Size;
  if Result then
    Checksum := PCardinal(Link.Start + Length)^;
end;

// Replaces the name of the file in Path by Folder and Name; returns False where they do not fit.
function ReplaceName(var Path: TPath; const Folder: ShortString; Name: PAnsiChar): Boolean;
var
  Index, Start: NativeUInt;
begin
  Start := 0;
  for Index := 0 to High(Path) do
    if Path[Index] = '/' then
      Start := Index + 1
    else if Path[Index] = #0 then
      Break;
  Result := Start + Length(Folder) + TextLength(Name) < High(Path);
  if not Result then
    Exit;
  Move(Folder[1], Path[Start], Length(Folder));
  Move(Name^, Path[Start + Length(Folder)], TextLength(Name) + 1);
end;

// Maps the file of debug information that the last file of Elf, that of Mapping, names; returns
// whether it is the one of that build. It is then the last file.
function OpenDebugFile(var Elf: TElf; const Mapping: TOsMapping): Boolean;
const
  Folders: array[0..1] of ShortString = ('', '.debug/');
var
  Index, Checksum: Cardinal;
  Name: PAnsiChar;
  Separate: TOsMapping;
  Target: ^TElfFile;
begin
  Result := False;
  if (Elf.Count = MaxElfFiles) or not FindLink(Elf.Files[Elf.Count - 1], Name, Checksum) then
    Exit;
  Target := @Elf.Files[Elf.Count];
  for Index := 0 to High(Folders) do
  begin
    Separate := Mapping;
    if not ReplaceName(Separate.Path, Folders[Index], Name) or not OpenFile(Target^, Separate) then
      Continue;
    if ChecksumOf(Target^.Image, Target^.Size) = Checksum then
    begin
      Target^.Bias := Elf.Files[Elf.Count - 1].Bias;
      Inc(Elf.Count);
      Exit(True);
    end;
    OsFileUnmap(Target^.Image, Target^.Size);
  end;
end;

// ---------------------------------------------------------------------------- modules

function KeepPath(var Elf: TElf; const Mapping: TOsMapping): PAnsiChar;
begin
  Result := nil;
  if (Mapping.Path[0] = #0) or Elf.Paths.IsCut then
    Exit;
  Result := Elf.Paths.Start + Elf.Paths.Length;
  TextAddChars(Elf.Paths, @Mapping.Path);
  TextAdd(Elf.Paths, #0);
  if Elf.Paths.IsCut then
    Result := nil;
end;

// Sets the module of the symbols from Index on that lie in Mapping; Bias as in TElfFile. Returns
// the index of the first symbol after Mapping.
function SetModule(const Symbols: TSymbols; Index: NativeInt; const Mapping: TOsMapping;
  Module: PAnsiChar; Bias: NativeUInt): NativeInt;
begin
  Result := Index;
  while (Result < Symbols.Count) and (Symbols.Items[Result].Address < Mapping.Limit) do
  begin
    Symbols.Items[Result].Module := Module;
    Symbols.Items[Result].Offset := Symbols.Items[Result].Address - Bias;
    Inc(Result);
  end;
end;

// Resolves the symbol at Index and the others of its module, whose code is one mapping.
function ResolveModule(var Elf: TElf; const Symbols: TSymbols; var Index: NativeInt): Boolean;
var
  Mapping: TOsMapping;
  Bias: NativeUInt;
  IsOpen: Boolean;
begin
  Result := False;
  if not OsFindMapping(Symbols.Items[Index].Address, Mapping) then
  begin
    Inc(Index);
    Exit;
  end;
  Bias := Mapping.First - Mapping.FileOffset;
  IsOpen := (Elf.Count < MaxElfFiles) and OpenFile(Elf.Files[Elf.Count], Mapping);
  if IsOpen then
  begin
    Bias := Elf.Files[Elf.Count].Bias;
    Inc(Elf.Count);
    Result := ResolveFile(Elf, Symbols);
    if OpenDebugFile(Elf, Mapping) then
      Result := ResolveFile(Elf, Symbols);
  end;
  Index := SetModule(Symbols, Index, Mapping, KeepPath(Elf, Mapping), Bias);
end;

function ElfResolve(var Elf: TElf; const Symbols: TSymbols): Boolean;
var
  Index: NativeInt;
begin
  Result := False;
  Index := 0;
  while Index < Symbols.Count do
    if ResolveModule(Elf, Symbols, Index) then
      Result := True;
end;

function ElfResolveFile(var Elf: TElf; const Path: TPath; const Symbols: TSymbols): Boolean;
var
  Mapping: TOsMapping;
begin
  Mapping := Default(TOsMapping); // at address 0: the bias is 0
  Mapping.Path := Path;
  Result := (Elf.Count < MaxElfFiles) and OpenFile(Elf.Files[Elf.Count], Mapping);
  if not Result then
    Exit;
  Inc(Elf.Count);
  ResolveFile(Elf, Symbols);
end;

end.
