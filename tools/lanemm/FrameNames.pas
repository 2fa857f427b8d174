/// The names of frames that a text has as module and offset: `server+0x1f3a0`.
unit FrameNames;

{$mode delphi}{$H+}

interface

uses
  Classes, RegExpr, Generics.Collections, ToolCommands;

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
    Frame: TRegExpr;
    NamesOf: TDictionary<string, string>;
    Modules: TObjectDictionary<string, TModuleFrames>;
    function FindModule(const Name: string): string;
    function FrameModule: string;
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
  SysUtils, LaneMM.Os, LaneMM.OsFiles, LaneMM.Text, LaneMM.Symbols, LaneMM.Elf, LaneMM.ElfFile,
  LaneMM.Pe;

const
  FramePattern = '(([^\s("]+ )*[^\s("]+)\+0x([0-9a-fA-F]{1,16})'; // two blanks are before a name with blanks
  OffsetMatch = 3;
  DebugSuffixes: array[0..2] of string = ('.dbg', '.debug', '');

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
  Frame := TRegExpr.Create(FramePattern);
  Modules := TObjectDictionary<string, TModuleFrames>.Create([doOwnsValues]);
  NamesOf := TDictionary<string, string>.Create;
  Places := TStringList.Create;
end;

destructor TFrameNames.Destroy;
begin
  Places.Free;
  NamesOf.Free;
  Modules.Free;
  Frame.Free;
  inherited Destroy;
end;

// Returns the module of the frame that was found: the longest name of which there is a file, else the
// last word.
function TFrameNames.FrameModule: string;
var
  Words: string;
begin
  Words := Frame.Match[1];
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
begin
  if Frame.Exec(Line) then
    repeat
      if not Modules.TryGetValue(FrameModule, Module) then
      begin
        Module := TModuleFrames.Create;
        Modules.Add(FrameModule, Module);
      end;
      Module.Offsets.Add(StrToQWord('$' + Frame.Match[OffsetMatch]));
    until not Frame.ExecNext;
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

procedure TFrameNames.ResolveModule(const Name: string);
var
  FileName: string;
begin
  FileName := FindModule(Name);
  if FileName = '' then
    WriteLn(StdErr, 'lanemm: there is no file ', Name,
      ' with its debug information: name the file or its folder')
  else if IsOfOtherBuild(Name, FileName) then
    WriteLn(StdErr, 'lanemm: ', FileName, ' is of another build than ', Name,
      ': name the one of the same build')
  else
  begin
    Modules[Name].Resolve(FileName);
    if Modules[Name].Texts.Count = 0 then
      WriteLn(StdErr, 'lanemm: ', FileName, ' has no names for the frames of ', Name,
        ': name a file with its debug information, or its folder');
  end;
end;

procedure TFrameNames.Resolve;
var
  Name: string;
begin
  for Name in Modules.Keys do
    ResolveModule(Name);
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
begin
  Result := '';
  if Frame.Exec(Name) and Modules.TryGetValue(FrameModule, Module) then
    Module.Texts.TryGetValue(StrToQWord('$' + Frame.Match[OffsetMatch]), Result);
end;

function TFrameNames.Named(const Line: string): string;
var
  Text: string;
  Next: Integer;
begin
  Result := '';
  Next := 1;
  if Frame.Exec(Line) then
    repeat
      Result := Result + Copy(Line, Next, Frame.MatchPos[0] + Frame.MatchLen[0] - Next);
      Next := Frame.MatchPos[0] + Frame.MatchLen[0];
      if Modules[FrameModule].Texts.TryGetValue(StrToQWord('$' + Frame.Match[OffsetMatch]), Text) then
        Result := Result + '  ' + Text;
    until not Frame.ExecNext;
  Result := Result + Copy(Line, Next, MaxInt);
end;

end.
