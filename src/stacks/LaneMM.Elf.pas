/// The executable files of the process: symbols and line numbers of its code addresses.
//
// Files:      a file without line numbers may have them in another one: that of its build ID in
//             the folder where packages of debug information put it, or the one that it names
//             (.gnu_debuglink), beside it or in the folder .debug there. It counts if build ID or
//             checksum is the one expected.
// Owns:       nothing; a TElf owns its files and their paths until ElfClose.
// Callers:    any thread; a TElf belongs to one.
// Source:     GDB's manual, 18.3 (Debugging Information in Separate Files).
unit LaneMM.Elf;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.OsProcess, LaneMM.Text, LaneMM.Symbols, LaneMM.ElfFile;

const
  /// Most files that one TElf maps, fewer without memory: a module and its debug information are
  /// two. Symbols of further files stay unresolved.
  MaxElfFiles = 4096;

type
  /// The executable files of a set of symbols.
  TElf = record
    Files: PElfFile;          //< those below Count are mapped
    Count: Cardinal;          //< number of files
    Limit: Cardinal;          //< most files
    Paths: TText;             //< their paths, each ended by #0
    Folder: ShortString;      //< where packages put debug information
    HasLines: Boolean;        //< a file has line numbers that can be read
    HasUnknownLines: Boolean; //< a file has others
    IsOwn: Boolean;           //< the mappings are those of this process
  end;

/// Makes an empty set. The caller owns it until ElfClose.
procedure ElfOpen(out Elf: TElf);
/// Unmaps the files; the texts of the symbols become invalid.
procedure ElfClose(var Elf: TElf);
/// Sets module, routine, file and line of the symbols, which must be sorted, and adds the routines
/// inlined there.
procedure ElfResolve(var Elf: TElf; var Symbols: TSymbols);
/// The same for the symbol at Index and the others in Mapping, the code of its module, in this or
/// another process, or at address 0; Index becomes that of the first symbol after it.
procedure ElfResolveIn(var Elf: TElf; var Symbols: TSymbols; var Index: NativeInt;
  const Mapping: TOsMapping);
/// OsFindMapping; of variables that begin as zero, which lie in a mapping of their own behind the
/// file of their module, that of the file, up to their end.
function ElfFindModule(Address: NativeUInt; out Mapping: TOsMapping): Boolean;

implementation

uses
  LaneMM.Dwarf, LaneMM.Inlined;

procedure ElfOpen(out Elf: TElf);
const
  PathLimit = 1 shl 18;
  Packages: ShortString = '/usr/lib/debug';
begin
  Elf := Default(TElf);
  Elf.Limit := MaxElfFiles;
  repeat
    Elf.Files := OsTakePages(Elf.Limit * SizeOf(TElfFile));
    if Elf.Files = nil then
      Elf.Limit := Elf.Limit div 4; // not half of what there is: the names need some, too
  until (Elf.Files <> nil) or (Elf.Limit = 0);
  Move(Packages, Elf.Folder, Length(Packages) + 1); // an assignment needs a routine that lib/ lacks
  TextOpen(Elf.Paths, PathLimit);
end;

procedure ElfClose(var Elf: TElf);
begin
  while Elf.Count > 0 do
  begin
    Dec(Elf.Count);
    ElfFileClose(Elf.Files[Elf.Count]);
  end;
  OsReleasePages(Elf.Files, Elf.Limit * SizeOf(TElfFile));
  Elf.Files := nil;
  TextClose(Elf.Paths);
end;

// Resolves the symbols of a file.
procedure ResolveFile(var Elf: TElf; var Source: TElfFile; var Symbols: TSymbols);
var
  Lines: TDwarfLines;
  Info: TDwarfInfo;
begin
  ElfFileNameRoutines(Source, Symbols);
  Lines.Lines := ElfFileSection(Source, '.debug_line');
  if Lines.Lines.Start = nil then
    Exit;
  Lines.LineNames := ElfFileNames(Source, '.debug_line_str');
  Lines.Names := ElfFileNames(Source, '.debug_str');
  if not DwarfFindLines(Symbols, Lines, Source.Bias) then
  begin
    Elf.HasUnknownLines := True;
    Exit;
  end;
  Elf.HasLines := True;
  Info.Info := ElfFileSection(Source, '.debug_info');
  Info.Abbreviations := ElfFileSection(Source, '.debug_abbrev');
  if Info.Info.Start = nil then
    Exit;
  Info.Ranges := ElfFileSection(Source, '.debug_ranges');
  Info.RangeLists := ElfFileSection(Source, '.debug_rnglists');
  Info.Addresses := ElfFileSection(Source, '.debug_addr');
  Info.NameOffsets := ElfFileSection(Source, '.debug_str_offsets');
  Info.Lines := Lines;
  InlinedFind(Symbols, Info, Source.Bias);
end;

// ---------------------------------------------------------------------------- separate files

// Makes the file that was opened behind the last one the last one, if it is the one wanted; else
// closes it. Returns whether it is.
function Keep(var Elf: TElf; IsWanted: Boolean): Boolean;
begin
  Result := IsWanted;
  if IsWanted then
    Inc(Elf.Count)
  else
    ElfFileClose(Elf.Files[Elf.Count]);
end;

// Opens the file that the last one names.
function OpenByLink(var Elf: TElf; const Mapping: TOsMapping): Boolean;
const
  Folders: array[0..1] of ShortString = ('', '.debug/');
var
  Index, Checksum: Cardinal;
  Name: PAnsiChar;
  Separate: TOsMapping;
  Path: TText;
begin
  Result := False;
  if not ElfFileLink(Elf.Files[Elf.Count - 1], Name, Checksum) then
    Exit;
  Separate := Mapping;
  for Index := 0 to High(Folders) do
  begin
    TextOpenAt(Path, @Separate.Path, SizeOf(Separate.Path));
    TextAddSome(Path, @Mapping.Path, TextFileName(@Mapping.Path) - PAnsiChar(@Mapping.Path));
    TextAdd(Path, Folders[Index]);
    TextAddChars(Path, Name);
    if not Path.IsCut and ElfFileOpen(Elf.Files[Elf.Count], Separate)
      and Keep(Elf, Crc32(Elf.Files[Elf.Count].Image, Elf.Files[Elf.Count].Size) = Checksum) then
      Exit(True);
  end;
end;

// Sets Path to that of the debug information of a build: FOLDER/.build-id/ab/cdef.debug.
procedure SetPath(out Path: TPath; const Folder: ShortString; const Id: TBuildId);
var
  Text: TText;
  Index: Cardinal;
begin
  TextOpenAt(Text, @Path, SizeOf(Path));
  TextAdd(Text, Folder);
  TextAdd(Text, '/.build-id/');
  for Index := 0 to Id.Length - 1 do
  begin
    if Index = 1 then
      TextAdd(Text, '/');
    TextAddHex(Text, Id.Bytes[Index], 2);
  end;
  TextAdd(Text, '.debug');
end;

function IsSame(const First, Second: TBuildId): Boolean;
var
  Index: Cardinal;
begin
  Result := First.Length = Second.Length;
  for Index := 0 to MaxBuildId - 1 do
    Result := Result and (First.Bytes[Index] = Second.Bytes[Index]);
end;

// Opens the file of the last one's build.
function OpenByBuildId(var Elf: TElf; const Mapping: TOsMapping): Boolean;
var
  Id, Other: TBuildId;
  Separate: TOsMapping;
begin
  if not ElfFileBuildId(Elf.Files[Elf.Count - 1], Id) then
    Exit(False);
  Separate := Mapping;
  SetPath(Separate.Path, Elf.Folder, Id);
  Result := ElfFileOpen(Elf.Files[Elf.Count], Separate)
    and Keep(Elf, ElfFileBuildId(Elf.Files[Elf.Count], Other) and IsSame(Id, Other));
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

procedure ElfResolveIn(var Elf: TElf; var Symbols: TSymbols; var Index: NativeInt;
  const Mapping: TOsMapping);
var
  Bias: NativeUInt;
begin
  Bias := Mapping.First - Mapping.FileOffset;
  if (Elf.Count < Elf.Limit) and ElfFileOpen(Elf.Files[Elf.Count], Mapping)
    and Keep(Elf, not Elf.IsOwn or ElfFileIsLoaded(Elf.Files[Elf.Count])) then
  begin
    Bias := Elf.Files[Elf.Count - 1].Bias;
    ResolveFile(Elf, Elf.Files[Elf.Count - 1], Symbols);
    // A file with its debug information, which it has not, is the last one then.
    if (Elf.Count < Elf.Limit) and not ElfFileIsWhole(Elf.Files[Elf.Count - 1])
      and (OpenByBuildId(Elf, Mapping) or OpenByLink(Elf, Mapping)) then
    begin
      Elf.Files[Elf.Count - 1].Bias := Bias;
      ResolveFile(Elf, Elf.Files[Elf.Count - 1], Symbols);
    end;
  end;
  Index := SetModule(Symbols, Index, Mapping, KeepPath(Elf, Mapping), Bias);
end;

function ElfFindModule(Address: NativeUInt; out Mapping: TOsMapping): Boolean;
var
  Before: TOsMapping;
begin
  Result := OsFindMapping(Address, Mapping);
  if not Result or Mapping.IsCode or (Mapping.Path[0] <> #0)
    or not OsFindMapping(Mapping.First - 1, Before) or not Before.IsFile then
    Exit;
  Before.Limit := Mapping.Limit;
  Mapping := Before;
end;

// Returns whether a file that was opened for its names is mapped there: it lies where a module lay
// that was unloaded.
function IsImage(const Elf: TElf; const Mapping: TOsMapping): Boolean;
var
  Index: NativeInt;
begin
  Result := False;
  for Index := 0 to NativeInt(Elf.Count) - 1 do
    Result := Result or (NativeUInt(Elf.Files[Index].Image) = Mapping.First);
end;

// To find a mapping takes time for all before it: a pass over them finds those of many modules.
// These are resolved after it: the file of the mappings may be the last that can be open.

type
  PSymbols = ^TSymbols;
  // A mapping with symbols.
  PFound = ^TFound;
  TFound = record
    Mapping: TOsMapping;
    Symbol: NativeInt; // the first of them
  end;

  PFoundTable = ^TFoundTable;
  TFoundTable = record
    Symbols: PSymbols;
    Index: NativeInt;             // the first symbol after those of the mappings
    Before: TOsMapping;           // the mapping before the next one
    Count, Most: NativeInt;       // of Items
    Items: array[0..0] of TFound; // Most of them
  end;

// Moves Index on to the first symbol from Address on; at most to those that are no addresses.
procedure SkipSymbols(var Table: TFoundTable; Address: NativeUInt);
begin
  if Address > FirstInlined - 1 then
    Address := FirstInlined - 1;
  while (Table.Index < Table.Symbols^.Count)
    and (Table.Symbols^.Items[Table.Index].Address < Address) do
    Inc(Table.Index);
end;

// Finds the modules of symbols as ElfFindModule does.
procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Table: PFoundTable;
  Found: PFound;
begin
  Table := Context;
  if Table^.Count = Table^.Most then
    Exit;
  SkipSymbols(Table^, Mapping.First);
  Found := PFound(@Table^.Items) + Table^.Count;
  Found^.Symbol := Table^.Index;
  SkipSymbols(Table^, Mapping.Limit);
  if Table^.Index > Found^.Symbol then
  begin
    Inc(Table^.Count);
    Found^.Mapping := Mapping;
    if not Mapping.IsCode and (Mapping.Path[0] = #0) and Table^.Before.IsFile
      and (Table^.Before.Limit = Mapping.First) then
    begin
      Found^.Mapping := Table^.Before;
      Found^.Mapping.Limit := Mapping.Limit;
    end;
  end;
  Table^.Before := Mapping;
end;

// Resolves the symbols of the next mappings; returns whether there were any.
function ResolveNext(var Elf: TElf; var Table: TFoundTable): Boolean;
var
  Index: NativeInt;
  Found: PFound;
begin
  Table.Count := 0;
  Table.Before.IsFile := False;
  OsVisitMappings(SeeMapping, @Table);
  for Index := 0 to Table.Count - 1 do
  begin
    Found := PFound(@Table.Items) + Index;
    if not IsImage(Elf, Found^.Mapping) then
      ElfResolveIn(Elf, Table.Symbols^, Found^.Symbol, Found^.Mapping);
  end;
  Result := Table.Count > 0;
end;

procedure ElfResolve(var Elf: TElf; var Symbols: TSymbols);
const
  MostFound = 256;
var
  Single: TFoundTable;
  Table: PFoundTable;
  Most: NativeInt;
  Size: NativeUInt;
begin
  Elf.IsOwn := True;
  Most := MostFound;
  if Symbols.Count < Most then
    Most := Symbols.Count; // a mapping has one at least
  Size := SizeOf(TFoundTable) + NativeUInt(Most) * SizeOf(TFound);
  Single.Most := 1;
  Table := OsTakePages(Size);
  if Table = nil then
    Table := @Single
  else
    Table^.Most := Most;
  Table^.Symbols := @Symbols;
  Table^.Index := 0;
  repeat
  until not ResolveNext(Elf, Table^);
  if Table <> @Single then
    OsReleasePages(Table, Size);
end;

end.
