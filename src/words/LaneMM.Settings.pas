/// The run-time settings: their reader. LaneMM.SettingTable has their names and defaults.
//
// Owns:       Settings.
// Invariants: later sources override earlier ones: the defaults, the file `<program>.lanemm` beside
//             the program, the environment variable LANEMM, the calls of the program. A program
//             with more rights than its user (set-user-ID) obeys its calls alone.
// Callers:    SettingsStart: once, before any other thread runs. The others: any thread, one at a
//             time.
// Errors:     an unknown setting or a wrong value prints one line to stderr; the rest still apply.
unit LaneMM.Settings;

{$I ../LaneMM.inc}

interface

/// Sets the defaults, then reads the file and the environment if the process may obey them.
procedure SettingsStart;
/// Reads settings, each NAME or NAME=VALUE, separated by commas, blanks or line ends; `#` begins a
/// comment. Words ends with #0. Source names the origin in messages. Returns False when a setting
/// was unknown or its value wrong.
function SettingsRead(Words: PAnsiChar; const Source: ShortString): Boolean;
/// Returns whether a setting has another number than its default.
function SettingsAreChanged: Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.OsProcess, LaneMM.OsFiles, LaneMM.EventRules,
  LaneMM.LogFile, LaneMM.Text, LaneMM.SettingsState, LaneMM.SettingTable,
  LaneMM.SettingValues, LaneMM.SettingMessages, LaneMM.SettingSources, LaneMM.HeapTrc;

const
  Variable: ShortString = 'LANEMM';
  HeapTrcVariable: ShortString = 'HEAPTRC';

function SettingsAreChanged: Boolean;
begin
  Result := OptionsAreChanged([Low(TOption)..High(TOption)]);
end;

// ---------------------------------------------------------------------------- words

// Reads the name up to `=` or the end of the setting, in lower case; Words moves past it.
function ReadName(var Words: PAnsiChar): ShortString;
begin
  Result := '';
  while not ValueEnds(Words^) and (Words^ <> '=') do
  begin
    if Length(Result) < MaxWordLength then
      Result := Result + TextLower(Words^);
    Inc(Words);
  end;
end;

// Reads a path up to the end of the setting; one in quotes, which may have separators, up to the
// second one. False, and Path is as before, where it is too long, the second quote is missing, or
// more follows it.
function ReadPath(var Words: PAnsiChar; var Path: TPath): Boolean;
const
  Quote = '"';
var
  Found: TPath;
  Index: Cardinal;
  IsQuoted: Boolean;
begin
  Index := 0;
  IsQuoted := Words^ = Quote;
  Inc(Words, Ord(IsQuoted));
  while (Words^ <> #0) and (Index < High(Path))
    and (IsQuoted and (Words^ <> Quote) or not IsQuoted and not ValueEnds(Words^)) do
  begin
    Found[Index] := Words^;
    Inc(Index);
    Inc(Words);
  end;
  Found[Index] := #0;
  Result := not IsQuoted or (Words^ = Quote);
  Inc(Words, Ord(IsQuoted and (Words^ = Quote)));
  Result := Result and ValueEnds(Words^);
  if Result then
    Move(Found, Path, Index + 1);
end;

// Reads a path that has a default, which 0 and an empty one in quotes restore.
function ReadPlace(var Words: PAnsiChar; var Path: TPath): Boolean;
begin
  Result := ReadPath(Words, Path);
  if Result and TextIs(@Path, '0') then
    Path[0] := #0;
end;

// Reads one of the words that settings of Kind accept, up to the end of the setting, and adds its
// bit to Bits; `0` clears all.
function ReadBit(var Words: PAnsiChar; Kind: TOptionKind; var Bits: NativeUInt): Boolean;
var
  Word: ShortString;
  Index: Cardinal;
begin
  Word := ReadName(Words);
  Index := OptionWordIndex(Kind, Word);
  Result := ValueEnds(Words^) and ((Word = '0') or (Index < High(Index)));
  if Result and (Word = '0') then
    Bits := 0
  else if Result then
    Bits := Bits or NativeUInt(1) shl Index;
end;

// Reads a number, or two with a minus between them; 0 alone clears the setting.
function ReadRange(var Words: PAnsiChar; Option: TOption; out IsUsed: NativeUInt): Boolean;
var
  Range: TSettingsRange;
begin
  Result := ValueNumber(Words, Range.First) or (Words^ = '-');
  Range.Last := Range.First;
  IsUsed := Ord((Range.First <> 0) or (Words^ = '-'));
  if Words^ = '-' then
  begin
    Inc(Words);
    Result := ValueNumber(Words, Range.Last);
  end;
  Result := Result and (Range.First <= Range.Last);
  if Result then
    Settings.Ranges[Option] := Range;
end;

// Adds a pattern to those of `hide`, if there is space.
function AddHidden(const Pattern: TPath): Boolean;
var
  Length, Used: NativeUInt;
begin
  Length := TextLength(@Pattern) + 1;
  Used := 0;
  while Settings.Hidden[Used] <> #0 do
    Inc(Used, TextLength(@Settings.Hidden[Used]) + 1);
  Result := Used + Length < SizeOf(TPath);
  if Result then
    Move(Pattern, Settings.Hidden[Used], Length);
end;

// Reads a pattern; 0 clears the setting.
function ReadPattern(var Words: PAnsiChar; Option: TOption; out IsUsed: NativeUInt): Boolean;
var
  Pattern: TPath;
begin
  Pattern[0] := #0;
  Result := ReadPath(Words, Pattern) and (Pattern[0] <> #0);
  IsUsed := Ord((Pattern[0] <> '0') or (Pattern[1] <> #0));
  if not Result then
    Exit;
  if Option = opTraceClass then
    Settings.TraceClass := Pattern
  else if IsUsed = 0 then
    FillChar(Settings.Hidden, SizeOf(TPath), 0)
  else
    Result := AddHidden(Pattern);
end;

// Reads a path, for `blackbox` also 1; 0 clears the setting. Returns whether that is allowed.
function ReadFile(var Words: PAnsiChar; Option: TOption; var Path: TPath; out IsUsed: NativeUInt)
  : Boolean;
begin
  Result := ReadPath(Words, Path);
  IsUsed := Ord(not TextIs(@Path, '0'));
  if not Result then
    Exit;
  if (IsUsed = 0) or (Option = opBlackBox) and TextIs(@Path, '1') then
    Path[0] := #0;
  Result := (Option = opBlackBox) or (IsUsed = 0) or (Path[0] <> #0);
end;

// Reads a number, of which 0 clears all, or `container`, which a path may follow and which leaves
// the number.
function ReadLimit(var Words: PAnsiChar; var Value: NativeUInt): Boolean;
const
  Container: ShortString = 'container';
var
  Path: TPath;
begin
  if not TextBegins(Words, Container)
    or not (ValueEnds(Words[Length(Container)]) or (Words[Length(Container)] = ':')) then
  begin
    Result := ValueNumber(Words, Value);
    Settings.HasContainer := Settings.HasContainer and not (Result and (Value = 0));
    Exit;
  end;
  Inc(Words, Length(Container));
  Path[0] := #0;
  Result := True;
  if Words^ = ':' then
  begin
    Inc(Words);
    Result := ReadPath(Words, Path);
  end;
  if not Result then
    Exit;
  Settings.GroupPath := Path;
  Settings.HasContainer := True;
end;

// Reads the value after the name, if any, into Value; a switch without one is 1. A setting whose
// value is no number keeps its number. Returns False when the value is missing or wrong.
function ReadValue(var Words: PAnsiChar; Option: TOption; out Value: NativeUInt): Boolean;
begin
  Value := 1;
  if Words^ <> '=' then
    Exit(OptionTexts[Option].Kind = okSwitch);
  Inc(Words);
  Value := Settings.Values[Option];
  if ValueEnds(Words^) and ((Option = opBlackBox)
    or (OptionTexts[Option].Kind in [okText, okSocket, okFile])) then
    Exit(False); // the path from before stays
  case Option of
    opBlackBox: Exit(ReadFile(Words, Option, Settings.BoxPath, Value));
    opRecord: Exit(ReadFile(Words, Option, Settings.RecordPath, Value));
    opLog:
      begin
        Result := ReadPlace(Words, Settings.LogPath);
        if Result then
          LogFileTryAgain; // it counts from the next log on
        Exit;
      end;
    opLeaksIgnore: Exit(ReadPath(Words, Settings.IgnorePath)); // 0 is not the default there
    opSyslog: Exit(ReadPlace(Words, Settings.SyslogPath));
  end;
  case OptionTexts[Option].Kind of
    okRule: Exit(EventRuleRead(Words) and ValueEnds(Words^));
    okFormat, okErase: Exit(ReadBit(Words, OptionTexts[Option].Kind, Value));
    okLimit: Result := ReadLimit(Words, Value);
    okTime: Result := ValueTime(Words, Value);
    okByte: Result := ValueByte(Words, Value);
    okInterval: Result := ValueWordOrNumber(Words, 'always', Value);
    okGuard: Result := ValueGuard(Words, Value);
    okRange: Result := ReadRange(Words, Option, Value);
    okName: Result := ReadPattern(Words, Option, Value);
  else
    Result := ValueNumber(Words, Value);
  end;
end;

function ReadWord(var Words: PAnsiChar; const Source: ShortString): Boolean;
var
  Setting: PAnsiChar;
  Name: ShortString;
  Option: TOption;
  Distance: Cardinal;
  Value: NativeUInt;
begin
  Setting := Words;
  Name := ReadName(Words);
  Option := OptionNearest(Name, Distance);
  Result := False;
  if Distance > 0 then
    SettingSayUnknown(Name, Source, Option, Distance)
  else if not ReadValue(Words, Option, Value) then
    SettingSayWrong(Option, Setting, Words, Source)
  else if not OptionAllows(Option, Value) then
    SettingSayNotAllowed(Option, Value, Source)
  else
  begin
    Settings.Values[Option] := Value;
    Include(Settings.Given, Option);
    Result := True;
  end;
  if not Result then
    Words := Setting; // its value may have been left within quotes
  ValueSkip(Words);
end;

function SettingsRead(Words: PAnsiChar; const Source: ShortString): Boolean;
begin
  Result := True;
  OsKeepStandardError;
  FetchAdd(Settings.Readers, 1); // any order: LaneMM.Mailbox looks whether this thread is here
  while Words^ <> #0 do
    if Words^ = '#' then
      while not (Words^ in [#0, #10]) do
        Inc(Words)
    else if ValueEnds(Words^) then
      Inc(Words)
    else if not ReadWord(Words, Source) then
      Result := False;
  FetchAdd(Settings.Readers, NativeUInt(-1));
end;

// ---------------------------------------------------------------------------- start

procedure ReadSource(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);
begin
  SettingsRead(Words, Source);
  if CutAt > 0 then
    SettingSayCut(CutAt, Source);
end;

// Returns the settings that need debug mode: most are for debug blocks, which guard=sample:N makes,
// too, and erase=new has the fill byte of new ones.
function OfDebug: TOptions;
begin
  Result := [opDebugExit, opDebugAbort, opCheck, opQuarantine, opFill, opFreeFill, opGuard, opBreak,
    opTrace..opMixes];
  if (Settings.Values[opGuard] > 1) or IsSet(opHard) then
    Result := [opCheck, opFill];
  if Settings.Values[opGuard] = 1 then
    Include(Result, opGuard);
  if IsErasingNew then
    Exclude(Result, opFill);
end;

// Turns Needed on where Options need it for an effect; where a source has turned it off, says that
// they have none.
procedure Imply(Needed: TOption; const Options: TOptions; const Names: ShortString);
begin
  if Needed in Settings.Given then
    SettingSayWithoutEffect(Options, Names)
  else if OptionsAreChanged(Options) then
    Settings.Values[Needed] := 1;
end;

// Turns on what settings need that would have no effect alone, and names those that are set in
// vain. Settings of heaptrc's variable are read later: they are meant for heaptrc.
procedure CheckEffects;
const
  OfLeaks = [opLeaksExit, opLeaksDump, opLeaksFormat];
  OfPlaces = [opLeaksDump];
  OfProfiles = [opPprof..opJson, opKeep];
  OfSamples = [opRate, opTemporary, opEvery];
begin
  if not IsSet(opDebug) then
    if (Settings.Values[opGuard] > 1) or IsSet(opHard) then
      SettingSayWithoutEffect(OfDebug, '`debug`') // which would take the samples' place
    else
      Imply(opDebug, OfDebug, '`debug`');
  if not IsSet(opLeaks) then
    Imply(opLeaks, OfLeaks, '`leaks`');
  if IsSet(opLeaks) and not (IsSet(opDebug) or IsSet(opStacks)) then
    Imply(opStacks, OfPlaces, '`stacks` or `debug`');
  if not IsSet(opProfile) then
    Imply(opProfile, OfSamples, '`profile`');
  if not (IsSet(opContention) or IsSet(opGrowth) or IsSet(opProfile)) then
    Imply(opProfile, OfProfiles, '`contention`, `growth` or `profile`');
  if not (IsSet(opContention) or IsSet(opGrowth) or IsSet(opProfile)) then
    SettingSayWithoutEffect([opSignal], '`contention`, `growth` or `profile`');
  Settings.SaysClean := IsSet(opLeaks) or IsSet(opDebug);
end;

procedure ReadSources;
var
  HasHeapTrc: Boolean;
begin
  SourceReadFile(ReadSource);
  HasHeapTrc := SourceReadVariable(HeapTrcVariable, HeapTrcDisable);
  SourceReadVariable(Variable, ReadSource);
  CheckEffects;
  if HasHeapTrc then
    SourceReadVariable(HeapTrcVariable, HeapTrcRead);
end;

procedure SettingsStart;
var
  Option: TOption;
begin
  for Option := Low(TOption) to High(TOption) do
    Settings.Values[Option] := OptionTexts[Option].Initial;
  EventRulesStart;
  Settings.IsPrivileged := OsIsPrivileged;
  if not Settings.IsPrivileged then
    ReadSources;
  if (Settings.Values[opHelp] <> 0) and not IsLibrary then
    SettingsHelp;
end;

end.
