/// The names of frames that a text has as module and offset: `server+0x1f3a0`.
unit FrameNames;

{$mode delphi}{$H+}

interface

uses
  Classes, Generics.Collections, ToolCommands;

type
  /// The frames of one module, and their texts.
  TModuleFrames = class
  public
    Offsets: TList<UInt64>;
    Texts: TDictionary<UInt64, string>;
    constructor Create;
    destructor Destroy; override;
    /// Reads the texts of all frames out of a file of the module; raises ETool for another file.
    procedure Resolve(const FileName: string);
  end;

  /// The frames of a text by module. Their names come from files of the modules with debug
  /// information.
  TFrameNames = class
  strict private
    NamesOf: TDictionary<string, string>;
    Modules: TObjectDictionary<string, TModuleFrames>;
    function FindModule(const Name: string): string;
    function ModuleOf(const Words: string): string;
    function IsOfOtherBuild(const Name, FileName: string): Boolean;
    procedure ResolveModule(const Name: string);
  public
    /// Files, and folders with files, that modules are looked for in; the first that has one counts.
    Places: TStringList;
    constructor Create;
    destructor Destroy; override;
    /// Adds the words of the arguments from the second on to Places; raises ETool for one that is neither
    /// a file nor a folder.
    procedure AddPlaces(Arguments: TArguments);
    /// Takes the frames of a line. After all of Places: they tell a name with blanks from words before it.
    procedure Add(const Line: string);
    /// Reads the texts of all frames that were added. A line on stderr for a module without a file.
    procedure Resolve;
    /// Returns the text of one frame, routine and line; empty: not known.
    function TextOf(const Name: string): string;
    /// Returns Line with the texts behind its frames.
    function Named(const Line: string): string;
  end;

implementation

uses
  SysUtils, StrUtils, LaneMM.Os, LaneMM.OsFiles, LaneMM.Text, LaneMM.Symbols, LaneMM.Elf, LaneMM.ElfFile,
  LaneMM.Pe, Targets;

const
  DebugSuffixes: array[0..2] of string = ('.dbg', '.debug', '');

// ---------------------------------------------------------------------------- frames of a line

type
  // A frame in a line.
  TFrameFound = record
    Words: string;  // the name of the module, and maybe words before it
    Offset: UInt64;
    Limit: Integer; // the index behind it
  end;

// Returns whether the sign may be one of a name: also a blank that stands alone.
function IsOfName(const Line: string; Index: Integer): Boolean;
begin
  Result := not (Line[Index] in [#9..#13, '(', '"'])
    and ((Line[Index] <> ' ') or (Index > 1) and (Line[Index - 1] <> ' ') and (Line[Index + 1] <> ' '));
end;

// Returns the index of the first word, from From on, of a name that ends before Limit; Limit if there is none.
function FirstOfName(const Line: string; From, Limit: Integer): Integer;
const
  MostName = 255; // bytes of the name of a file
begin
  Result := Limit;
  if (Limit = From) or (Line[Limit - 1] = ' ') then
    Exit;
  while (Result > From) and (Limit - Result < MostName) and IsOfName(Line, Result - 1) do
    Dec(Result);
  if (Result > From) and IsOfName(Line, Result - 1) then // in a word
    while (Result < Limit) and (Line[Result] <> ' ') do
      Inc(Result);
  while (Result < Limit) and (Line[Result] = ' ') do
    Inc(Result);
end;

// Finds the next frame, `server+0x1f3a0`, from the index From on. Two blanks are before a name with blanks.
function FindFrame(const Line: string; From: Integer; out Found: TFrameFound): Boolean;
const
  Mark = '+0x';
  MostDigits = 16;
var
  Place, First: Integer;
begin
  Place := From - 1;
  repeat
    Place := PosEx(Mark, Line, Place + 1);
    if Place = 0 then
      Exit(False);
    First := FirstOfName(Line, From, Place);
    Found.Limit := Place + Length(Mark);
    while (Found.Limit <= Length(Line)) and (Found.Limit < Place + Length(Mark) + MostDigits)
      and (Line[Found.Limit] in ['0'..'9', 'a'..'f', 'A'..'F']) do
      Inc(Found.Limit);
  until (First < Place) and (Found.Limit > Place + Length(Mark));
  Found.Words := Copy(Line, First, Place - First);
  Found.Offset := StrToQWord('$' + Copy(Line, Place + Length(Mark), Found.Limit - Place - Length(Mark)));
  Result := True;
end;

// ---------------------------------------------------------------------------- names

constructor TModuleFrames.Create;
begin
  inherited Create;
  Offsets := TList<UInt64>.Create;
  Texts := TDictionary<UInt64, string>.Create;
end;

destructor TModuleFrames.Destroy;
begin
  Texts.Free;
  Offsets.Free;
  inherited Destroy;
end;

function TextOfOne(Symbol: PSymbol): string;
var
  Text: TText;
begin
  TextOpen(Text, 65536);
  if Symbol^.Routine <> nil then
    SymbolAddRoutine(Text, Symbol);
  if Symbol^.Line > 0 then
  begin
    TextAdd(Text, '  ');
    SymbolAddPlace(Text, Symbol);
  end;
  SetString(Result, Text.Start, Text.Length);
  TextClose(Text);
end;

// Returns the text of a frame: of routines that are inlined into each other a line each, from the
// innermost on.
function TextOf(const Symbols: TSymbols; Symbol: PSymbol): string;
var
  Inlined: NativeUInt;
begin
  Result := '';
  Inlined := Symbol^.Inlined;
  while Inlined >= FirstInlined do
  begin
    Result := Result + TextOfOne(SymbolsFind(Symbols, Inlined)) + '  (inlined)'#10'          ';
    Inlined := SymbolsFind(Symbols, Inlined)^.Inlined;
  end;
  Result := Result + TextOfOne(Symbol);
end;

// Returns the address where a file of Windows is to be loaded, from which its frames count; 0 for
// another file.
function BaseOf(const FileName: string): NativeUInt;
var
  Image: PByte;
  Size: NativeUInt;
  Pe: TPeFile;
begin
  Result := 0;
  Image := OsFileMap(PAnsiChar(FileName), Size);
  if Image = nil then
    Exit;
  if PeOpen(Pe, Image, Size, 0) then
    Result := -Pe.Bias;
  OsFileUnmap(Image, Size);
end;

// Returns the file as if it were mapped from where it counts addresses.
function MappingOf(const FileName: string): TOsMapping;
begin
  Result := Default(TOsMapping);
  if Length(FileName) >= SizeOf(Result.Path) then
    raise ETool.Create(ecFailed, 'the path %s is too long', [FileName]);
  Result.First := BaseOf(FileName);
  Result.Limit := High(NativeUInt);
  Move(PAnsiChar(FileName)^, Result.Path, Length(FileName));
end;

procedure TModuleFrames.Resolve(const FileName: string);
var
  Symbols: TSymbols;
  Elf: TElf;
  Index: NativeInt;
  Offset: UInt64;
  Symbol: PSymbol;
begin
  SymbolsOpen(Symbols, Offsets.Count);
  ElfOpen(Elf);
  try
    // A log names the byte before a return address; SymbolsAdd takes that byte's successor.
    for Offset in Offsets do
      SymbolsAdd(Symbols, Offset + 1);
    SymbolsSort(Symbols);
    Index := 0;
    ElfResolveIn(Elf, Symbols, Index, MappingOf(FileName));
    if Elf.Count = 0 then
      raise ETool.Create(ecDamaged, '%s is no executable file', [FileName]);
    for Offset in Offsets do
    begin
      Symbol := SymbolsFind(Symbols, Offset + 1);
      if (Symbol <> nil) and (TextOfOne(Symbol) <> '') then
        Texts.AddOrSetValue(Offset, TextOf(Symbols, Symbol));
    end;
  finally
    ElfClose(Elf);
    SymbolsClose(Symbols);
  end;
end;

// Looks for the file of a module in Folder; returns whether it is there. One with the debug
// information alone, as `fpc -Xg` and objcopy write it, comes before the module.
function FindIn(const Folder, Name: string; out Path: string): Boolean;
var
  Suffix: string;
begin
  for Suffix in DebugSuffixes do
  begin
    Path := Folder + Name + Suffix;
    if FileExists(Path) then
      Exit(True);
  end;
  Result := False;
end;

function IsFileOf(const Path, Name: string): Boolean;
var
  Suffix: string;
begin
  for Suffix in DebugSuffixes do
    if ExtractFileName(Path) = Name + Suffix then
      Exit(FileExists(Path));
  Result := False;
end;

// Returns the path of the module's file; empty: none was found.
function TFrameNames.FindModule(const Name: string): string;
var
  Place: string;
begin
  for Place in Places do
    if IsFileOf(Place, Name) then
      Exit(Place)
    else if (Place = '') and FindIn('', Name, Result)
      or (Place <> '') and FindIn(IncludeTrailingPathDelimiter(Place), Name, Result) then
      Exit;
  Result := '';
end;

constructor TFrameNames.Create;
begin
  inherited Create;
  Modules := TObjectDictionary<string, TModuleFrames>.Create([doOwnsValues]);
  NamesOf := TDictionary<string, string>.Create;
  Places := TStringList.Create;
end;

destructor TFrameNames.Destroy;
begin
  Places.Free;
  NamesOf.Free;
  Modules.Free;
  inherited Destroy;
end;

// Returns the module of a frame: the longest name of which there is a file, else the last word.
function TFrameNames.ModuleOf(const Words: string): string;
begin
  if NamesOf.TryGetValue(Words, Result) then
    Exit;
  Result := Words;
  while (Pos(' ', Result) > 0) and (FindModule(Result) = '') do
    Delete(Result, 1, Pos(' ', Result));
  NamesOf.Add(Words, Result);
end;

procedure TFrameNames.Add(const Line: string);
var
  Module: TModuleFrames;
  Next: Integer;
  Found: TFrameFound;
begin
  Next := 1;
  while FindFrame(Line, Next, Found) do
  begin
    Next := Found.Limit;
    if not Modules.TryGetValue(ModuleOf(Found.Words), Module) then
    begin
      Module := TModuleFrames.Create;
      Modules.Add(ModuleOf(Found.Words), Module);
    end;
    Module.Offsets.Add(Found.Offset);
  end;
end;

// Returns whether a module in one of Places names the checksum of another file with debug information.
function TFrameNames.IsOfOtherBuild(const Name, FileName: string): Boolean;
var
  Place, Path: string;
  Module, Separate: TElfFile;
  Checksum: Cardinal;
  LinkName: PAnsiChar;
begin
  Result := False;
  for Place in Places do
  begin
    Path := Name;
    if DirectoryExists(Place) then
      Path := IncludeTrailingPathDelimiter(Place) + Name;
    if Result or (Path = FileName) or not FileExists(Path) or not ElfFileOpen(Module, MappingOf(Path)) then
      Continue;
    if ElfFileLink(Module, LinkName, Checksum) and ElfFileOpen(Separate, MappingOf(FileName)) then
    begin
      Result := not ElfFileIsWhole(Module) and (Crc32(Separate.Image, Separate.Size) <> Checksum);
      ElfFileClose(Separate);
    end;
    ElfFileClose(Module);
  end;
end;

// Raises ETool where the module gets no names.
procedure TFrameNames.ResolveModule(const Name: string);
var
  FileName: string;
begin
  FileName := FindModule(Name);
  if FileName = '' then
    raise ETool.Create(ecFailed, 'there is no file %s with its debug information: name the file or its folder',
      [Name]);
  if IsOfOtherBuild(Name, FileName) then
    raise ETool.Create(ecFailed, '%s is of another build than %s: name the one of the same build',
      [FileName, Name]);
  Modules[Name].Resolve(FileName);
  if Modules[Name].Texts.Count = 0 then
    raise ETool.Create(ecFailed, '%s has no names for the frames of %s: name a file with its debug'
      + ' information, or its folder', [FileName, Name]);
end;

procedure TFrameNames.Resolve;
var
  Name: string;
begin
  for Name in Modules.Keys do
    try
      ResolveModule(Name);
    except
      on Error: ETool do // the other modules may get names
        WriteLn(StdErr, 'lanemm: ', Printable(Error.Message));
    end;
end;

procedure TFrameNames.AddPlaces(Arguments: TArguments);
var
  Index: Integer;
begin
  for Index := 1 to Arguments.Words.Count - 1 do
  begin
    if not FileExists(Arguments.Words[Index]) and not DirectoryExists(Arguments.Words[Index]) then
      raise ETool.Create(ecFailed, 'there is no file or folder %s', [Arguments.Words[Index]]);
    Places.Add(Arguments.Words[Index]);
  end;
end;

function TFrameNames.TextOf(const Name: string): string;
var
  Module: TModuleFrames;
  Found: TFrameFound;
begin
  Result := '';
  if FindFrame(Name, 1, Found) and Modules.TryGetValue(ModuleOf(Found.Words), Module) then
    Module.Texts.TryGetValue(Found.Offset, Result);
end;

function TFrameNames.Named(const Line: string): string;
var
  Text: string;
  Next: Integer;
  Found: TFrameFound;
begin
  Result := '';
  Next := 1;
  while FindFrame(Line, Next, Found) do
  begin
    Result := Result + Copy(Line, Next, Found.Limit - Next);
    Next := Found.Limit;
    if Modules[ModuleOf(Found.Words)].Texts.TryGetValue(Found.Offset, Text) then
      Result := Result + '  ' + Text;
  end;
  Result := Result + Copy(Line, Next, MaxInt);
end;

end.
