/// `lanemm symbolize`: names and lines for the frames of a log that has modules and offsets alone.
unit ToolSymbolize;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Writes the log with routine and line behind each `module+0xOFFSET`.
procedure RunSymbolize(Arguments: TArguments);

const
  SymbolizeCommand: TCommand = (
    Name: 'symbolize';
    Usage: 'LOG [FILE|FOLDER...]';
    Help: 'Names routines and lines in a log of a program without debug information';
    Details: 'A frame `server+0x1f3a0` gets its routine and line out of the file server.dbg,'#10
      + 'server.debug or server with debug information: one of the FILEs, or in a FOLDER, beside'#10
      + 'the log, or here. With `-` the log is the standard input. Frames of modules that are not'#10
      + 'found stay as they are.'#10;
    Options: '';
    MostWords: AnyWords;
    Run: RunSymbolize);

implementation

uses
  SysUtils, Classes, RegExpr, Generics.Collections, LaneMM.Os, LaneMM.Text, LaneMM.Symbols,
  LaneMM.Elf;

const
  FramePattern = '([^\s(]+)\+0x([0-9a-fA-F]{1,16})';
  DebugSuffixes: array[0..2] of string = ('.dbg', '.debug', '');

type
  // The frames of one module.
  TModuleFrames = class
  public
    Offsets: TList<UInt64>;
    Texts: TDictionary<UInt64, string>;
    constructor Create;
    destructor Destroy; override;
    procedure Resolve(const FileName: string);
  end;
  TModules = TObjectDictionary<string, TModuleFrames>;

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

// Reads the texts of all frames out of the file of the module.
procedure TModuleFrames.Resolve(const FileName: string);
var
  Symbols: TSymbols;
  Elf: TElf;
  Mapping: TOsMapping;
  Index: NativeInt;
  Offset: UInt64;
  Symbol: PSymbol;
begin
  if Length(FileName) >= SizeOf(Mapping.Path) then
    raise ETool.Create(ecFailed, 'the path %s is too long', [FileName]);
  Mapping := Default(TOsMapping);
  Mapping.Limit := High(NativeUInt);
  Move(PAnsiChar(FileName)^, Mapping.Path, Length(FileName));
  SymbolsOpen(Symbols, Offsets.Count);
  ElfOpen(Elf);
  try
    // A log names the byte before a return address; SymbolsAdd takes that byte's successor.
    for Offset in Offsets do
      SymbolsAdd(Symbols, Offset + 1);
    SymbolsSort(Symbols);
    Index := 0;
    ElfResolveIn(Elf, Symbols, Index, Mapping);
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
function FindModule(const Name: string; Arguments: TArguments): string;
var
  Index: Integer;
begin
  for Index := 1 to Arguments.Words.Count - 1 do
    if IsFileOf(Arguments.Words[Index], Name) then
      Exit(Arguments.Words[Index])
    else if FindIn(IncludeTrailingPathDelimiter(Arguments.Words[Index]), Name, Result) then
      Exit;
  if not FindIn(ExtractFilePath(Arguments.Words[0]), Name, Result)
    and not FindIn('', Name, Result) then
    Result := '';
end;

procedure CollectFrames(Lines: TStrings; Frame: TRegExpr; Modules: TModules);
var
  Line: string;
  Module: TModuleFrames;
begin
  for Line in Lines do
    if Frame.Exec(Line) then
      repeat
        if not Modules.TryGetValue(Frame.Match[1], Module) then
        begin
          Module := TModuleFrames.Create;
          Modules.Add(Frame.Match[1], Module);
        end;
        Module.Offsets.Add(StrToQWord('$' + Frame.Match[2]));
      until not Frame.ExecNext;
end;

procedure ResolveModules(Modules: TModules; Arguments: TArguments);
var
  Name, FileName: string;
begin
  for Name in Modules.Keys do
  begin
    FileName := FindModule(Name, Arguments);
    if FileName <> '' then
    begin
      Modules[Name].Resolve(FileName);
      if Modules[Name].Texts.Count = 0 then
        WriteLn(StdErr, 'lanemm: ', FileName, ' has no names for the frames of ', Name,
          ': name a file with its debug information, or its folder');
    end
    else
      WriteLn(StdErr, 'lanemm: there is no file ', Name,
        ' with its debug information: name the file or its folder');
  end;
end;

// Returns Line with the texts behind its frames.
function Symbolized(const Line: string; Frame: TRegExpr; Modules: TModules): string;
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
      if Modules[Frame.Match[1]].Texts.TryGetValue(StrToQWord('$' + Frame.Match[2]), Text) then
        Result := Result + '  ' + Text;
    until not Frame.ExecNext;
  Result := Result + Copy(Line, Next, MaxInt);
end;

procedure ReadLog(const FileName: string; Lines: TStrings);
var
  Line: string;
begin
  if FileName <> '-' then
  begin
    if not FileExists(FileName) then
      raise ETool.Create(ecFailed, 'there is no file %s', [FileName]);
    Lines.LoadFromFile(FileName);
    Exit;
  end;
  while not Eof(Input) do
  begin
    ReadLn(Input, Line);
    Lines.Add(Line);
  end;
end;

procedure RunSymbolize(Arguments: TArguments);
var
  Lines: TStringList;
  Modules: TModules;
  Frame: TRegExpr;
  Line: string;
begin
  Lines := TStringList.Create;
  Modules := TModules.Create([doOwnsValues]);
  Frame := TRegExpr.Create(FramePattern);
  try
    ReadLog(Arguments.Word(0, 'LOG'), Lines);
    CollectFrames(Lines, Frame, Modules);
    ResolveModules(Modules, Arguments);
    for Line in Lines do
      WriteLn(Symbolized(Line, Frame, Modules));
  finally
    Frame.Free;
    Modules.Free;
    Lines.Free;
  end;
end;

end.
