/// Programs that lanemm starts: where they are, what they are, and their environment.
unit Programs;

{$mode delphi}{$H+}

interface

uses
  Classes, ToolCommands;

type
  /// What the file of a program says.
  TProgram = record
    Path: string;
    HasLaneMM: Boolean;    //< it carries the first bytes of the status page
    IsStatic: Boolean;     //< it loads no libraries: it names no dynamic linker
    IsOtherWidth: Boolean; //< it has other words than lanemm: libraries of lanemm's cannot be loaded
    IsFreePascal: Boolean; //< Free Pascal has compiled it
    HasMalloc: Boolean;    //< it has a malloc of its own, which comes before that of any library
    LinkedWith: string;    //< the name of the manager's library that it loads; empty: none
  end;

/// Returns the path of a program, found as a shell finds it; empty if there is none.
function ProgramPath(const Name: string): string;
/// Returns a sentence for a name that ProgramPath finds no program of.
function NoProgramText(const Name: string): string;
/// Returns the folder of lanemm, with a slash.
function OwnFolder: string;
/// Returns the path of liblanemm.so; raises ETool without one.
function LibraryPath: string;
/// Returns the path of the first of these libraries, names with a colon between, in the folders for
/// libraries; empty if there is none.
function FindLibrary(const Names: string): string;
/// Reads the file of a program.
function ReadProgram(const Path: string): TProgram;
/// Returns the environment of lanemm, lines NAME=VALUE, which the caller frees.
function OwnEnvironment: TStringList;
/// Puts First before the value of a variable, with Separator between.
procedure SetBefore(Variables: TStrings; const Name, First, Separator: string);
/// Returns the absolute path of a library for LD_PRELOAD. Fails where it has a character that separates paths
/// there: a program would run without the library.
function Preloadable(const Path: string): string;
/// Replaces this process by the program; returns only when the system refuses.
procedure Execute(const Path: string; Arguments, Variables: TStrings);

implementation

uses
  SysUtils, BaseUnix, LaneMM.Os, LaneMM.Dwarf, LaneMM.ElfFile, LaneMM.StatusPage;

const
  LibraryName = 'liblanemm.so';
  LibraryFolders: array[0..6] of string = ('/usr/local/lib/', '/usr/lib/x86_64-linux-gnu/',
    '/usr/lib/aarch64-linux-gnu/', '/lib/x86_64-linux-gnu/', '/lib/aarch64-linux-gnu/', '/usr/lib64/',
    '/usr/lib/');

function ProgramPath(const Name: string): string;
begin
  if Pos('/', Name) > 0 then
    Result := Name
  else
    Result := ExeSearch(Name, '');
  if (Result <> '') and (not FileExists(Result) or (FpAccess(Result, X_OK) <> 0)) then
    Result := '';
end;

function NoProgramText(const Name: string): string;
begin
  Result := Format('there is no program `%s`', [Name]);
  if FileExists(Name) and (Pos('/', Name) > 0) then
    Result := Format('`%s` is no program: it is not executable', [Name])
  else if ProgramPath('./' + Name) <> '' then
    Result := Result + Format(' on the path; did you mean `./%s`?', [Name]);
end;

function OwnFolder: string;
begin
  Result := ParamStr(0);
  if Result = '' then // /proc is not mounted
    Result := ProgramPath(argv[0]);
  Result := ExtractFilePath(ExpandFileName(Result));
end;

function Preloadable(const Path: string): string;
begin
  Result := ExpandFileName(Path);
  if LastDelimiter(' :', Result) > 0 then
    raise ETool.Create(ecFailed, 'the dynamic linker cannot preload %s, as a space or a colon ends a path there:'
      + ' name a link to it elsewhere, by --with or the variable LIBLANEMM', [Result]);
end;

function LibraryPath: string;
const
  OwnFolders: array[0..1] of string = ('lib/', '../lib/');
var
  Folder: string;
begin
  Result := GetEnvironmentVariable('LIBLANEMM');
  if (Result <> '') and not FileExists(Result) then
    raise ETool.Create(ecFailed, 'there is no file %s, which the variable LIBLANEMM names', [Result]);
  if Result <> '' then
    Exit(Preloadable(Result));
  for Folder in OwnFolders do
    if FileExists(OwnFolder + Folder + LibraryName) then
      Exit(Preloadable(OwnFolder + Folder + LibraryName));
  Result := FindLibrary(LibraryName + ':' + LibraryName + '.1');
  if Result = '' then
    raise ETool.Create(ecFailed, LibraryName + ' is not installed: `make install`, or name it in the'
      + ' variable LIBLANEMM');
end;

function FindLibrary(const Names: string): string;
var
  Name, Folder: string;
begin
  for Name in Names.Split([':']) do
    for Folder in LibraryFolders do
      if FileExists(Folder + Name) then
        Exit(Folder + Name);
  Result := '';
end;

type
  // An entry of the table of symbols of an ELF file of 64 bits.
  TElfSymbol = packed record
    Name: Cardinal;
    Kind, Visibility: Byte;
    Section: Word; // 0: of another file
    Value, Size: UInt64;
  end;

// Returns whether the program exports a malloc: the linker exports it where a library calls malloc.
function HasOwnMalloc(const Path: string): Boolean;
var
  Mapping: TOsMapping;
  Elf: TElfFile;
  Symbols, Names: TDwarfSection;
  Symbol: ^TElfSymbol;
  Index: Integer;
begin
  Result := False;
  Mapping := Default(TOsMapping);
  StrPLCopy(@Mapping.Path, Path, High(Mapping.Path));
  if not ElfFileOpen(Elf, Mapping) then
    Exit;
  Symbols := ElfFileSection(Elf, '.dynsym');
  Names := ElfFileNames(Elf, '.dynstr');
  Symbol := Pointer(Symbols.Start);
  for Index := 1 to Symbols.Size div SizeOf(Symbol^) do
  begin
    Result := Result or (Symbol^.Section <> 0) and (Symbol^.Name < Names.Size)
      and (StrComp(PAnsiChar(Names.Start + Symbol^.Name), 'malloc') = 0);
    Inc(Symbol);
  end;
  ElfFileClose(Elf);
end;

// Returns the first name of a manager's library in the file.
function LinkedLibrary(const Contents: RawByteString): string;
const
  Known: array[0..6] of string = ('libjemalloc.so', 'libmimalloc.so', 'libtcmalloc', 'libtbbmalloc',
    'libsnmalloc', 'librpmalloc', LibraryName);
begin
  for Result in Known do
    if Pos(#0 + Result, Contents) > 0 then
      Exit;
  Result := '';
end;

function ReadProgram(const Path: string): TProgram;
const
  ElfMagic = #127'ELF';
  WidthIndex = 5; // of the byte after the magic: 1 for words of 32 bits, 2 for 64
  Width = SizeOf(Pointer) div 4;
var
  Source: TFileStream;
  Contents: RawByteString;
  IsElf: Boolean;
begin
  Source := TFileStream.Create(Path, fmOpenRead or fmShareDenyNone);
  try
    SetLength(Contents, Source.Size);
    Source.ReadBuffer(PAnsiChar(Contents)^, Length(Contents));
  finally
    Source.Free;
  end;
  IsElf := Copy(Contents, 1, Length(ElfMagic)) = ElfMagic;
  Result.Path := Path;
  Result.HasLaneMM := Pos(RawByteString(PageMagic), Contents) > 0;
  Result.IsStatic := IsElf and (Pos('/ld-', Contents) = 0);
  Result.IsOtherWidth := IsElf and (Length(Contents) >= WidthIndex)
    and (Ord(Contents[WidthIndex]) <> Width);
  Result.HasMalloc := IsElf and not Result.IsOtherWidth and HasOwnMalloc(Path);
  Result.LinkedWith := '';
  if IsElf then
    Result.LinkedWith := LinkedLibrary(Contents);
  Result.IsFreePascal := IsElf and (Pos('FPC ' + '3.', Contents) > 0);
end;

function OwnEnvironment: TStringList;
var
  Index: Integer;
begin
  Result := TStringList.Create;
  for Index := 1 to GetEnvironmentVariableCount do
    Result.Add(GetEnvironmentString(Index));
end;

procedure SetBefore(Variables: TStrings; const Name, First, Separator: string);
var
  Index: Integer;
begin
  Index := Variables.IndexOfName(Name);
  if Index < 0 then
    Variables.Add(Name + '=' + First)
  else if Variables.ValueFromIndex[Index] = '' then
    Variables.ValueFromIndex[Index] := First
  else
    Variables.ValueFromIndex[Index] := First + Separator + Variables.ValueFromIndex[Index];
end;

procedure Execute(const Path: string; Arguments, Variables: TStrings);

  function AsArray(Lines: TStrings): TArray<PAnsiChar>;
  var
    Index: Integer;
  begin
    Result := nil;
    SetLength(Result, Lines.Count + 1);
    for Index := 0 to Lines.Count - 1 do
      Result[Index] := StrNew(PAnsiChar(Lines[Index]));
    Result[Lines.Count] := nil;
  end;

begin
  FpExecve(PAnsiChar(Path), PPAnsiChar(AsArray(Arguments)), PPAnsiChar(AsArray(Variables)));
end;

end.
