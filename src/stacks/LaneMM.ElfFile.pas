/// An executable file: its sections, the names of its routines, its debug information.
//
// Formats:    ELF is read here, that of Windows by LaneMM.Pe; the first bytes of a file tell.
//             Sections that zlib has compressed (SHF_COMPRESSED) are decompressed by
//             LaneMM.Inflate; others, as by zstd, stay as they are, and LaneMM.Dwarf refuses them.
// Owns:       nothing; a TElfFile owns its mapped file and its sections until ElfFileClose.
// Invariants: checks the offsets that it reads from a file against the file's size; names end
//             within their section. A file that is shortened while it is read faults.
// Callers:    any thread; a TElfFile belongs to one.
// Source:     System V ABI, chapter 4 (Object Files, Section Compression, Notes); GDB's manual,
//             18.3 (Debugging Information in Separate Files). The field offsets below hold for the
//             64-bit and the 32-bit format, by the size of an address.
unit LaneMM.ElfFile;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Os, LaneMM.OsFiles, LaneMM.Symbols, LaneMM.Dwarf, LaneMM.Pe;

const
  /// Most sections of a file that are decompressed: those of LaneMM.Elf.
  MaxUnpacked = 9;
  /// Most bytes of a build ID.
  MaxBuildId = 32;

type
  PElfFile = ^TElfFile;
  /// A mapped executable file.
  TElfFile = record
    Image: PByte;        //< its contents, mapped read-only
    Size: NativeUInt;    //< bytes
    Bias: NativeUInt;    //< distance from the addresses in the file to those of the process
    Head: NativeUInt;    //< ELF: address in the file of its first byte; the highest: not loaded
    IsPe: Boolean;       //< it has the format of Windows
    Pe: TPeFile;         //< then: its tables
    Unpacked: array[0..MaxUnpacked - 1] of TDwarfSection; //< sections that were decompressed
    UnpackedCount: Cardinal;                              //< how many
  end;

  /// The mark of a build, which the linker writes into a file; its debug information has the same.
  TBuildId = record
    Length: Cardinal;                         //< bytes, at least 2
    Bytes: array[0..MaxBuildId - 1] of Byte;  //< those after Length are 0
  end;

/// Returns whether the mapping is one of the program's file, which may have been deleted since, as
/// an upgrade does.
function ElfIsProgram(const Mapping: TOsMapping): Boolean;
/// Maps the file of Mapping. Returns whether it is a readable executable file; the caller owns it
/// then until ElfFileClose.
function ElfFileOpen(out Elf: TElfFile; const Mapping: TOsMapping): Boolean;
/// Returns whether the file is the one that this process has loaded: another one may have its path
/// in the root that the process has now. True where it is not known, as of a file of Windows.
function ElfFileIsLoaded(const Elf: TElfFile): Boolean;
/// Unmaps it; the texts of symbols that came from it become invalid.
procedure ElfFileClose(var Elf: TElfFile);
/// Sets the routines, or variables, of the symbols, which are sorted, that lie in the file.
procedure ElfFileNameRoutines(const Elf: TElfFile; const Symbols: TSymbols);
/// Returns a section of debug information, decompressed, up to MaxUnpacked of a file; nothing if
/// there is none of this name. It is the file's.
function ElfFileSection(var Elf: TElfFile; const Name: ShortString): TDwarfSection;
/// ElfFileSection of a section of names: none, if its last name has no end.
function ElfFileNames(var Elf: TElfFile; const Name: ShortString): TDwarfSection;
/// Returns whether the file is one of Windows, or has line numbers: no other file has them.
function ElfFileIsWhole(const Elf: TElfFile): Boolean;
/// Finds the name of the file with the debug information, ended by #0, and that file's checksum.
function ElfFileLink(const Elf: TElfFile; out Name: PAnsiChar; out Checksum: Cardinal): Boolean;
/// Returns the checksum CRC-32, by which a link names a file.
function Crc32(Data: PByte; Size: NativeUInt): Cardinal;
/// Reads the build ID; returns False if the file has none.
function ElfFileBuildId(const Elf: TElfFile; out Id: TBuildId): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Text, LaneMM.Bits, LaneMM.Inflate;

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

  // Fields of a program header, after its kind.
  SegmentRights = 24 - 20 * Is64;
  SegmentFileOffset = AddressSize;
  SegmentAddress = 2 * AddressSize;
  SegmentFileSize = 4 * AddressSize;
  SegmentHeaderSize = 32 + 24 * Is64;
  SegmentIsLoaded = 1;
  SegmentIsProtected = $6474E552; // the part of a loaded one that is made read-only
  RightToRun = 1;
  RightToWrite = 2;
  NoHead = High(NativeUInt);

  HeadSize = 52 + 12 * Is64;     // of the file

  // Fields of a section header.
  SectionFlags = 8;
  SectionFileOffset = 8 + 2 * AddressSize;
  SectionSize = 8 + 3 * AddressSize;
  SectionLink = 8 + 4 * AddressSize;
  SectionHeaderSize = 40 + 24 * Is64;

  SectionIsLoaded = 2;
  SectionIsCompressed = $800;

  // Fields of the header of a compressed section.
  PackedKind = 0;
  PackedSize = AddressSize;      // bytes of the section, not compressed
  PackedHeaderSize = 3 * AddressSize;
  PackedByZlib = 1;
  MostRatio = 1032;              // no stream of zlib stands for so many times its bytes

  // A note: the length of its name, of its contents, its kind; then the name and the contents.
  NoteLength = 4;
  NoteKind = 8;
  NoteName = 12;
  NoteHeaderSize = 16;           // with a name of up to four bytes
  GnuName = $554E47;             // GNU, ended by #0
  BuildIdKind = 3;

  // Fields of a symbol table entry.
  SymbolInfo = 12 - 8 * Is64;
  SymbolSection = SymbolInfo + 2;
  SymbolValue = 4 + 4 * Is64;
  SymbolSize = SymbolValue + AddressSize;
  SymbolEntry = 16 + 8 * Is64;
  SymbolKindMask = 15;
  VariableKind = 1;
  RoutineKind = 2;

type
  TSection = record
    Start: PByte;
    Size: NativeUInt;
    Name: Cardinal;  // where its name begins among those of all sections
    Link: Cardinal;
    IsLoaded, IsCompressed: Boolean;
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

// Returns how many of the rights of a segment, to run and to write, are those of Mapping.
function RightsInCommon(Segment: PByte; const Mapping: TOsMapping): Cardinal;
var
  Rights: Cardinal;
begin
  Rights := PCardinal(Segment + SegmentRights)^;
  Result := Ord((Rights and RightToRun <> 0) = Mapping.IsCode)
    + Ord((Rights and RightToWrite <> 0) = Mapping.IsWritable);
end;

// Returns whether Mapping may map the segment.
function IsMapped(Segment: PByte; const Mapping: TOsMapping): Boolean;
begin
  Result := ((PCardinal(Segment)^ = SegmentIsLoaded)
    or (PCardinal(Segment)^ = SegmentIsProtected))
    and (Mapping.FileOffset + OsGranule > WordAt(Segment + SegmentFileOffset))
    and (Mapping.FileOffset < WordAt(Segment + SegmentFileOffset)
    + WordAt(Segment + SegmentFileSize));
end;

// Finds Head, and Bias: that of the segment that Mapping maps; 0 for a file at fixed addresses, or
// that is not loaded. Several segments may lie in one page of the file: then the rights tell.
procedure ReadSegments(var Elf: TElfFile; const Mapping: TOsMapping);
var
  Segment: PByte;
  EntrySize, Index, Fit: Cardinal;
  Offset: NativeUInt;
  IsMoved: Boolean;
begin
  Elf.Head := NoHead;
  IsMoved := (HalfAt(Elf.Image + TypeOffset) = PositionIndependent) and (Mapping.First <> 0);
  Fit := 0;
  EntrySize := HalfAt(Elf.Image + SegmentEntryOffset);
  Offset := WordAt(Elf.Image + SegmentTableOffset);
  for Index := 1 to HalfAt(Elf.Image + CountsOffset) do
  begin
    if not Holds(Elf, Offset, SegmentHeaderSize) then
      Exit;
    Segment := Elf.Image + Offset;
    if (Elf.Head = NoHead) and (PCardinal(Segment)^ = SegmentIsLoaded)
      and (WordAt(Segment + SegmentFileOffset) = 0) then
      Elf.Head := WordAt(Segment + SegmentAddress);
    if IsMoved and IsMapped(Segment, Mapping) and (RightsInCommon(Segment, Mapping) >= Fit) then
    begin
      Fit := RightsInCommon(Segment, Mapping);
      Elf.Bias := Mapping.First - Mapping.FileOffset - WordAt(Segment + SegmentAddress)
        + WordAt(Segment + SegmentFileOffset);
    end;
    Inc(Offset, EntrySize);
  end;
end;

function ElfIsProgram(const Mapping: TOsMapping): Boolean;
const
  Mark: ShortString = ' (deleted)';
var
  Path: TPath;
  Count, Index: NativeUInt;
begin
  Result := False;
  Count := OsProgramPath(@Path, SizeOf(Path));
  if (Count = 0) or (Count + Length(Mark) >= SizeOf(Path)) then
    Exit;
  for Index := 0 to Count - 1 do
    if Path[Index] <> Mapping.Path[Index] then
      Exit;
  Result := (Mapping.Path[Count] = #0) or TextIs(@Mapping.Path[Count], Mark);
end;

function ElfFileOpen(out Elf: TElfFile; const Mapping: TOsMapping): Boolean;
const
  Magic = $464C457F;
begin
  Elf := Default(TElfFile);
  Elf.Image := OsFileMap(@Mapping.Path, Elf.Size);
  if (Elf.Image = nil) and ElfIsProgram(Mapping) then
    Elf.Image := OsFileMap('/proc/self/exe', Elf.Size);
  if (Elf.Image = nil) and ElfIsProgram(Mapping) then
    Elf.Image := OsFileMap('/proc/thread-self/exe', Elf.Size); // the main thread has ended
  if Elf.Image = nil then
    Exit(False);
  Result := Holds(Elf, 0, HeadSize) and (PCardinal(Elf.Image)^ = Magic);
  if Result then
    ReadSegments(Elf, Mapping)
  else if PeOpen(Elf.Pe, Elf.Image, Elf.Size, Mapping.First - Mapping.FileOffset) then
  begin
    Elf.IsPe := True;
    Elf.Bias := Elf.Pe.Bias;
    Result := True;
  end
  else
    OsFileUnmap(Elf.Image, Elf.Size);
end;

// Tells files apart by their heads: these have the places of all tables.
function ElfFileIsLoaded(const Elf: TElfFile): Boolean;
var
  Head: array[0..HeadSize div SizeOf(Cardinal) - 1] of Cardinal;
  Index: Cardinal;
begin
  Result := True;
  if not Elf.IsPe and (Elf.Head <> NoHead) and OsRead(Elf.Bias + Elf.Head, @Head, HeadSize) then
    for Index := 0 to High(Head) do
      Result := Result and (Head[Index] = (PCardinal(Elf.Image) + Index)^);
end;

procedure ElfFileClose(var Elf: TElfFile);
begin
  while Elf.UnpackedCount > 0 do
  begin
    Dec(Elf.UnpackedCount);
    OsReleasePages(Elf.Unpacked[Elf.UnpackedCount].Start, Elf.Unpacked[Elf.UnpackedCount].Size);
  end;
  OsFileUnmap(Elf.Image, Elf.Size);
  Elf := Default(TElfFile);
end;

// ---------------------------------------------------------------------------- sections

function ReadSection(const Elf: TElfFile; Index: Cardinal; out Section: TSection): Boolean;
var
  Offset: NativeUInt;
  Entry: PByte;
begin
  Offset := WordAt(Elf.Image + SectionTableOffset)
    + NativeUInt(Index) * HalfAt(Elf.Image + CountsOffset + 2);
  Result := (Index < HalfAt(Elf.Image + CountsOffset + 4))
    and Holds(Elf, Offset, SectionHeaderSize);
  if not Result then
    Exit;
  Entry := Elf.Image + Offset;
  Section.Start := Elf.Image + WordAt(Entry + SectionFileOffset);
  Section.Size := WordAt(Entry + SectionSize);
  Section.Name := PCardinal(Entry)^;
  Section.Link := PCardinal(Entry + SectionLink)^;
  Section.IsLoaded := WordAt(Entry + SectionFlags) and SectionIsLoaded <> 0;
  Section.IsCompressed := WordAt(Entry + SectionFlags) and SectionIsCompressed <> 0;
  Result := Holds(Elf, WordAt(Entry + SectionFileOffset), Section.Size);
end;

// Reads a section of names, each ended by #0, the last one too.
function ReadNames(const Elf: TElfFile; Index: Cardinal; out Names: TSection): Boolean;
begin
  Result := ReadSection(Elf, Index, Names) and (Names.Size > 0)
    and (Names.Start[Names.Size - 1] = 0);
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
    if ReadSection(Elf, Index, Section) and (Section.Name < Names.Size)
      and TextIs(PAnsiChar(Names.Start + Section.Name), Name) then
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

// Returns whether a symbol has an address. Free Pascal 3.3.1 gives names to places in debug
// information, which have an offset there.
function HasAddress(const Elf: TElfFile; Entry: PByte): Boolean;
var
  Index: Cardinal;
  Section: TSection;
begin
  Index := HalfAt(Entry + SymbolSection);
  Section := Default(TSection);
  ReadSection(Elf, Index, Section); // false for one without bytes in the file
  Result := (Index = 0) or (Section.Start = nil) or Section.IsLoaded;
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
    if (Entry[SymbolInfo] and SymbolKindMask in [VariableKind, RoutineKind])
      and (PCardinal(Entry)^ < Names.Size) and HasAddress(Elf, Entry) then
      NameRange(Symbols, WordAt(Entry + SymbolValue) + Elf.Bias, WordAt(Entry + SymbolSize),
        PAnsiChar(Names.Start + PCardinal(Entry)^));
    Inc(Entry, SymbolEntry);
  end;
end;

procedure ElfFileNameRoutines(const Elf: TElfFile; const Symbols: TSymbols);
begin
  if Elf.IsPe then
    PeFindRoutines(Elf.Pe, Symbols)
  else
    FindRoutines(Elf, Symbols);
end;

// ---------------------------------------------------------------------------- debug information

// Decompresses a section; leaves it as it is where that fails.
procedure Unpack(var Elf: TElfFile; var Section: TDwarfSection);
var
  Target: TDwarfSection;
begin
  if (Elf.UnpackedCount = MaxUnpacked) or (Section.Size < PackedHeaderSize)
    or (PCardinal(Section.Start + PackedKind)^ <> PackedByZlib) then
    Exit;
  Target.Size := WordAt(Section.Start + PackedSize);
  if (Target.Size = 0) or (Target.Size div MostRatio > Section.Size) then
    Exit;
  Target.Start := OsTakePages(Target.Size);
  if Target.Start = nil then
    Exit;
  if Inflate(Section.Start + PackedHeaderSize, Section.Size - PackedHeaderSize, Target.Start,
    Target.Size) then
  begin
    Elf.Unpacked[Elf.UnpackedCount] := Target;
    Inc(Elf.UnpackedCount);
    Section := Target;
  end
  else
    OsReleasePages(Target.Start, Target.Size);
end;

function ElfFileSection(var Elf: TElfFile; const Name: ShortString): TDwarfSection;
var
  Section: TSection;
begin
  if Elf.IsPe then
    Exit(PeFindSection(Elf.Pe, Name));
  Result := Default(TDwarfSection);
  if not FindSection(Elf, Name, Section) then
    Exit;
  Result.Start := Section.Start;
  Result.Size := Section.Size;
  if Section.IsCompressed then
    Unpack(Elf, Result);
end;

function ElfFileNames(var Elf: TElfFile; const Name: ShortString): TDwarfSection;
begin
  Result := ElfFileSection(Elf, Name);
  if (Result.Size > 0) and (Result.Start[Result.Size - 1] <> 0) then
    Result := Default(TDwarfSection);
end;

function ElfFileIsWhole(const Elf: TElfFile): Boolean;
var
  Lines: TSection;
begin
  Result := Elf.IsPe or FindSection(Elf, '.debug_line', Lines);
end;

// ---------------------------------------------------------------------------- separate files

// Four bits at a time.
function Crc32(Data: PByte; Size: NativeUInt): Cardinal;
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
    Result := Result xor Data[Index];
    Result := Result shr 4 xor Steps[Result and 15];
    Result := Result shr 4 xor Steps[Result and 15];
  end;
  Result := not Result;
end;

function ElfFileLink(const Elf: TElfFile; out Name: PAnsiChar; out Checksum: Cardinal): Boolean;
var
  Link: TSection;
  Length: NativeUInt;
begin
  Result := FindSection(Elf, '.gnu_debuglink', Link);
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

function ElfFileBuildId(const Elf: TElfFile; out Id: TBuildId): Boolean;
var
  Note: TSection;
begin
  Id := Default(TBuildId);
  Result := FindSection(Elf, '.note.gnu.build-id', Note) and (Note.Size >= NoteHeaderSize)
    and (PCardinal(Note.Start + NoteKind)^ = BuildIdKind)
    and (PCardinal(Note.Start + NoteName)^ = GnuName);
  if not Result then
    Exit;
  Id.Length := PCardinal(Note.Start + NoteLength)^;
  Result := (Id.Length >= 2) and (Id.Length <= MaxBuildId)
    and (NoteHeaderSize + Id.Length <= Note.Size);
  if Result then
    Move(Note.Start[NoteHeaderSize], Id.Bytes, Id.Length);
end;

end.
