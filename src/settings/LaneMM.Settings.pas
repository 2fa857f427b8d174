/// The run-time settings: names, defaults, descriptions, and their reader.
//
// Owns:       Settings; Report.LogPath, SystemLog.
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
/// Reads settings from the program itself, as SettingsRead.
function SettingsChange(const Words: ShortString): Boolean;
/// Returns whether a setting has another number than its default.
function SettingsAreChanged: Boolean;
/// Prints all settings with their defaults to stderr.
procedure SettingsHelp;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.ReportState, LaneMM.EventRules,
  LaneMM.LogFile, LaneMM.Text, LaneMM.SettingsState, LaneMM.SettingValues, LaneMM.HeapTrc;

const
  Variable: ShortString = 'LANEMM';
  HeapTrcVariable: ShortString = 'HEAPTRC';
  FileExtension: ShortString = '.lanemm';
  MaxWords = 4096;
  MaxWordLength = 31;
  SmallText = 16384;

type
  // The form of a setting: its name alone, or with a number, a text or a rule after `=`.
  TOptionKind = (okSwitch, okNumber, okTime, okInterval, okErase, okGuard, okByte, okRange, okName,
    okText, okSocket, okRule, okFormat);
  TOptionText = record
    Name: PAnsiChar;
    Kind: TOptionKind;
    Default: NativeUInt;
    Help: PAnsiChar;
  end;

const
  FormatNames: array[TLeakFormat] of PAnsiChar = ('json', 'junit', 'heaptrc', 'html');
  EraseNames: array[TErasure] of PAnsiChar = ('free', 'return', 'new');

const
  OptionTexts: array[TOption] of TOptionText = (
    (Name: 'off'; Kind: okSwitch; Default: 0;
      Help: 'leave the previous memory manager in place'),
    (Name: 'help'; Kind: okSwitch; Default: 0;
      Help: 'print this list and continue'),
    (Name: 'contention'; Kind: okSwitch; Default: 0;
      Help: 'log taken locks and frees of other threads'' blocks, by call site'),
    (Name: 'growth'; Kind: okSwitch; Default: 0;
      Help: 'log the call sites that grow blocks'),
    (Name: 'profile'; Kind: okSwitch; Default: 0;
      Help: 'sample allocations; without a format: pprof,folded,speedscope'),
    (Name: 'pprof'; Kind: okSwitch; Default: 0;
      Help: 'write the profiles for pprof'),
    (Name: 'folded'; Kind: okSwitch; Default: 0;
      Help: 'write the profiles as folded stacks, for flame graphs'),
    (Name: 'speedscope'; Kind: okSwitch; Default: 0;
      Help: 'write the profiles as JSON for speedscope'),
    (Name: 'html'; Kind: okSwitch; Default: 0;
      Help: 'write the profiles as one page with a table and a flame graph'),
    (Name: 'json'; Kind: okSwitch; Default: 0;
      Help: 'write the profiles with all numbers as one JSON object'),
    (Name: 'top'; Kind: okNumber; Default: 10;
      Help: 'maximum call sites in the event log and groups in a leak report'),
    (Name: 'least'; Kind: okNumber; Default: 10;
      Help: 'minimum events for a call site to be logged'),
    (Name: 'depth'; Kind: okNumber; Default: DefaultFrames;
      Help: 'maximum frames of a backtrace, 1 to 256'),
    (Name: 'rate'; Kind: okNumber; Default: 524288;
      Help: 'average bytes between two samples of the profile'),
    (Name: 'temporary'; Kind: okNumber; Default: 1;
      Help: 'other allocations of the thread before the free of a temporary block'),
    (Name: 'every'; Kind: okTime; Default: 0;
      Help: 'time after which the profiles are written again, such as 10s; 0: never'),
    (Name: 'keep'; Kind: okNumber; Default: 0;
      Help: 'profiles of the process to keep, the newest; 0: all'),
    (Name: 'signal'; Kind: okNumber; Default: 0;
      Help: 'number of the signal that writes the logs, 12 for SIGUSR2; 0: none'),
    (Name: 'live'; Kind: okNumber; Default: 1;
      Help: '0: no status page, which shows the process to the tool lanemm'),
    (Name: 'attach'; Kind: okNumber; Default: 1;
      Help: '0: the status page takes no requests of the tool lanemm'),
    (Name: 'huge'; Kind: okNumber; Default: HugeFromDefault;
      Help: 'bytes of full spans from which a thread gets huge pages; 0: never'),
    (Name: 'log'; Kind: okText; Default: 0;
      Help: 'event log file, or directory of logs and profiles'),
    (Name: 'log:most'; Kind: okNumber; Default: 0;
      Help: 'bytes of the event log before it gets the ending .1 and a new one begins; 0: any'),
    (Name: 'syslog'; Kind: okSocket; Default: 0;
      Help: 'socket of the system''s log, for event=KIND:syslog'),
    (Name: 'dump'; Kind: okNumber; Default: 1;
      Help: '0: no contents of blocks and no arguments of the program in reports'),
    (Name: 'event'; Kind: okRule; Default: 0;
      Help: 'handling of reports, e.g. double-free:stderr:once:halt=3'),
    (Name: 'stacks'; Kind: okSwitch; Default: 0;
      Help: 'note where each block is allocated, for leak reports and walks'),
    (Name: 'leaks'; Kind: okSwitch; Default: 0;
      Help: 'report leaks at exit'),
    (Name: 'leaks:exit'; Kind: okNumber; Default: 0;
      Help: 'exit code of a program that has leaks and would exit with 0'),
    (Name: 'leaks:dump'; Kind: okNumber; Default: 0;
      Help: 'show the first N bytes of a leaked block of each place, 4096 at most'),
    (Name: 'leaks:format'; Kind: okFormat; Default: 0;
      Help: 'also write the leaks to a file: json, junit, heaptrc or html; repeatable'),
    (Name: 'leaks:ignore'; Kind: okText; Default: 0;
      Help: 'file of leaks to ignore, by class or routine'),
    (Name: 'debug'; Kind: okSwitch; Default: 0;
      Help: 'detect invalid frees, overruns and use after free, with backtraces'),
    (Name: 'debug:exit'; Kind: okNumber; Default: 0;
      Help: 'exit code of a program with memory errors that would exit with 0'),
    (Name: 'check'; Kind: okInterval; Default: 0;
      Help: 'check all debug blocks before every Nth heap operation'),
    (Name: 'quarantine'; Kind: okNumber; Default: 4 shl 20;
      Help: 'bytes of freed debug blocks kept from reuse; of those above 64 KB a quarter counts'),
    (Name: 'fill'; Kind: okByte; Default: $90;
      Help: 'byte that fills new debug blocks, two hexadecimal digits'),
    // Positive as a number, so that a freed string looks counted: a second release changes it.
    (Name: 'freefill'; Kind: okByte; Default: $7E;
      Help: 'byte that fills freed debug blocks'),
    (Name: 'erase'; Kind: okErase; Default: 0;
      Help: 'zero freed blocks, returned memory; fill new blocks; repeatable'),
    (Name: 'guard'; Kind: okGuard; Default: 0;
      Help: 'guard pages after debug blocks; without debug, one per N bytes'),
    (Name: 'break'; Kind: okNumber; Default: 0;
      Help: 'report the allocation with this number in debug mode; 0: none'),
    (Name: 'limit'; Kind: okNumber; Default: 0;
      Help: 'maximum bytes of the heap; 0: no limit'),
    (Name: 'limit:soft'; Kind: okNumber; Default: 0;
      Help: 'report when the heap exceeds this many bytes; 0: never'),
    (Name: 'reserve'; Kind: okNumber; Default: 0;
      Help: 'bytes held back until memory runs out'),
    (Name: 'trace'; Kind: okSwitch; Default: 0;
      Help: 'log every allocation and free of debug blocks'),
    (Name: 'trace:size'; Kind: okRange; Default: 0;
      Help: 'log only blocks of these sizes'),
    (Name: 'trace:number'; Kind: okRange; Default: 0;
      Help: 'log only these allocation numbers'),
    (Name: 'trace:group'; Kind: okRange; Default: 0;
      Help: 'log only these allocation groups'),
    (Name: 'trace:class'; Kind: okName; Default: 0;
      Help: 'log only frees of objects of this class; * matches any text'),
    (Name: 'trace:most'; Kind: okNumber; Default: 1000;
      Help: 'maximum number of logged allocations and frees'),
    (Name: 'mixes'; Kind: okSwitch; Default: 0;
      Help: 'report mismatched frees: New or an object with FreeMem, in C++ new with free'));

function IsChanged(Option: TOption): Boolean;
begin
  Result := Settings.Values[Option] <> OptionTexts[Option].Default;
end;

function AreChanged(const Options: TOptions): Boolean;
var
  Option: TOption;
begin
  Result := False;
  for Option := Low(TOption) to High(TOption) do
    Result := Result or (Option in Options) and IsChanged(Option);
end;

function SettingsAreChanged: Boolean;
begin
  Result := AreChanged([Low(TOption)..High(TOption)]);
end;

// Returns the highest number that a setting accepts.
function HighestOf(Option: TOption): NativeUInt;
begin
  case Option of
    opTop: Result := 256; // call sites that the event log can list
    opDepth: Result := MaxFrames;
    opTemporary: Result := 1000; // each is numbered
    opDump, opLive, opAttach: Result := 1;
    opLeaksDump: Result := MostDump;
    opLeaksExit, opDebugExit: Result := 255; // exit codes of a process
  else
    Result := High(NativeUInt);
  end;
  if OptionTexts[Option].Kind = okSwitch then
    Result := 1;
end;

// Returns the lowest number that a setting accepts.
function LowestOf(Option: TOption): NativeUInt;
begin
  Result := Ord(Option = opDepth);
end;

function IsAllowed(Option: TOption; Value: NativeUInt): Boolean;
begin
  Result := (Value >= LowestOf(Option)) and (Value <= HighestOf(Option))
    and ((Option <> opSignal) or (Value = 0) or OsSignalIsFree(Value));
end;

// ---------------------------------------------------------------------------- messages

procedure AddPrefix(out Text: TText; const Source: ShortString);
begin
  TextOpen(Text, SmallText);
  TextAdd(Text, 'LaneMM: ');
  TextAdd(Text, Source);
  TextAdd(Text, ': ');
end;

// The tool that asked for the change gets what stderr would get.
procedure Print(var Text: TText);
begin
  if not ReportTaken(tkMessage, Text.Start, Text.Length) then
    OsWriteError(Text.Start, Text.Length);
  TextClose(Text);
end;

procedure AddHelpLine(var Text: TText; const Option: TOptionText; Default: NativeUInt);
const
  HelpColumn = 22; // longer than the longest setting with its value
var
  Start: NativeUInt;
begin
  TextAdd(Text, '  ');
  Start := Text.Length;
  TextAddChars(Text, Option.Name);
  case Option.Kind of
    okNumber: TextAdd(Text, '=N');
    okTime: TextAdd(Text, '=N|Ns|Nm|Nh');
    okInterval: TextAdd(Text, '=N|always');
    okErase: TextAdd(Text, '=free|return|new');
    okGuard: TextAdd(Text, '=pages|sample:N');
    okByte: TextAdd(Text, '=XX');
    okText, okSocket: TextAdd(Text, '=PATH');
    okRange: TextAdd(Text, '=N|N-N');
    okName: TextAdd(Text, '=NAME');
    okRule: TextAdd(Text, '=RULE');
    okFormat: TextAdd(Text, '=NAME');
  end;
  while NativeUInt(Text.Length - Start) < HelpColumn do
    TextAdd(Text, ' ');
  TextAddChars(Text, Option.Help);
  case Option.Kind of
    okSwitch, okTime, okInterval, okErase, okGuard, okRange, okName:
      TextAdd(Text, ' (off)');
    okNumber:
      begin
        TextAdd(Text, ' (');
        TextAddNumber(Text, Default);
        TextAdd(Text, ')');
      end;
    okByte:
      begin
        TextAdd(Text, ' (');
        TextAddHex(Text, Default, 2);
        TextAdd(Text, ')');
      end;
    okText:
      TextAdd(Text, ' (next to the program)');
    okSocket:
      TextAdd(Text, ' (/dev/log)');
    okRule:
      TextAdd(Text, ' (file, stderr)');
    okFormat:
      TextAdd(Text, ' (none)');
  end;
  TextAdd(Text, LineEnd);
end;

procedure SettingsHelp;
var
  Text: TText;
  Option: TOption;
begin
  TextOpen(Text, SmallText);
  TextAdd(Text, 'LaneMM: settings for the environment variable LANEMM, separated by commas,'#10);
  TextAdd(Text, 'or for the file <program>.lanemm; defaults in parentheses:'#10);
  for Option := Low(TOption) to High(TOption) do
    AddHelpLine(Text, OptionTexts[Option], OptionTexts[Option].Default);
  TextAdd(Text, 'SETTING=0 turns a setting off. Numbers may end in K, M or G.'#10);
  Print(Text);
end;

// ---------------------------------------------------------------------------- the nearest word

function Least(A, B: Cardinal): Cardinal;
begin
  if A < B then
    Result := A
  else
    Result := B;
end;

// Returns the number of characters to insert, delete or replace to turn Word into Known.
// Source: Wagner and Fischer, "The String-to-String Correction Problem", JACM 21 (1974).
function EditDistance(const Word: ShortString; Known: PAnsiChar): Cardinal;
var
  Row: array[0..MaxWordLength] of Cardinal;
  Index, Diagonal, Above: Cardinal;
begin
  for Index := 0 to Length(Word) do
    Row[Index] := Index;
  while Known^ <> #0 do
  begin
    Diagonal := Row[0];
    Inc(Row[0]);
    for Index := 1 to Length(Word) do
    begin
      Above := Row[Index];
      Row[Index] := Least(Diagonal + Ord(Known^ <> Word[Index]),
        Least(Row[Index - 1], Above) + 1);
      Diagonal := Above;
    end;
    Inc(Known);
  end;
  Result := Row[Length(Word)];
end;

// Returns the setting with the nearest name; Best receives the distance, 0 for an exact match.
function NearestOption(const Word: ShortString; out Best: Cardinal): TOption;
var
  Option: TOption;
  Distance: Cardinal;
begin
  Result := opHelp;
  Best := High(Best);
  for Option := Low(TOption) to High(TOption) do
  begin
    Distance := EditDistance(Word, OptionTexts[Option].Name);
    if Distance < Best then
    begin
      Best := Distance;
      Result := Option;
    end;
  end;
end;

procedure SayUnknown(const Word, Source: ShortString; Nearest: TOption);
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAdd(Text, 'unknown setting `');
  TextAdd(Text, Word);
  TextAdd(Text, '`; did you mean `');
  TextAddChars(Text, OptionTexts[Nearest].Name);
  TextAdd(Text, '`? LANEMM=help lists all settings'#10);
  Print(Text);
end;

procedure SayWrongValue(const Word, Source: ShortString);
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAdd(Text, 'missing or invalid value of `');
  TextAdd(Text, Word);
  TextAdd(Text, '`; LANEMM=help lists all settings'#10);
  Print(Text);
end;

// Says that a setting cannot have the number Value.
procedure SayNotAllowed(Option: TOption; Value: NativeUInt; const Source: ShortString);
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAdd(Text, 'invalid value of `');
  TextAddChars(Text, OptionTexts[Option].Name);
  TextAdd(Text, '`: ');
  TextAddNumber(Text, Value);
  if Value > HighestOf(Option) then
  begin
    TextAdd(Text, ' is more than ');
    TextAddNumber(Text, HighestOf(Option));
  end
  else if Value < LowestOf(Option) then
  begin
    TextAdd(Text, ' is less than ');
    TextAddNumber(Text, LowestOf(Option));
  end
  else
    TextAdd(Text, ' is not a signal that a program can use; 12 is SIGUSR2');
  TextAdd(Text, LineEnd);
  Print(Text);
end;

// Names those of Options that are set, in vain, as Needed is not.
procedure SayWithoutEffect(const Options: TOptions; const Needed: ShortString);
const
  Separators: array[Boolean] of ShortString = (', `', ': `');
var
  Text: TText;
  Option: TOption;
  IsFirst: Boolean;
begin
  if not AreChanged(Options) then
    Exit;
  TextOpen(Text, SmallText);
  TextAdd(Text, 'LaneMM: no effect without ');
  TextAdd(Text, Needed);
  IsFirst := True;
  for Option := Low(TOption) to High(TOption) do
    if (Option in Options) and IsChanged(Option) then
    begin
      TextAdd(Text, Separators[IsFirst]);
      TextAddChars(Text, OptionTexts[Option].Name);
      TextAdd(Text, '`');
      IsFirst := False;
    end;
  TextAdd(Text, LineEnd);
  Print(Text);
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

procedure ReadPath(var Words: PAnsiChar; out Path: TPath);
var
  Index: Cardinal;
begin
  Index := 0;
  while not ValueEnds(Words^) and (Index < High(Path)) do
  begin
    Path[Index] := Words^;
    Inc(Index);
    Inc(Words);
  end;
  Path[Index] := #0;
end;

// Reads the value of `log`, which counts from the next log on.
procedure ReadLogPath(var Words: PAnsiChar);
begin
  ReadPath(Words, Settings.LogPath);
  LogFileTryAgain;
end;

// Reads one of Count names up to the end of the setting and adds its bit to Bits; `0` clears all.
function ReadBit(var Words: PAnsiChar; Names: PPAnsiChar; Count: NativeInt; var Bits: NativeUInt)
  : Boolean;
var
  Name: ShortString;
  Index: NativeInt;
begin
  Name := ReadName(Words);
  Result := Name = '0';
  if Result then
    Bits := 0;
  for Index := 0 to Count - 1 do
    if EditDistance(Name, Names[Index]) = 0 then
    begin
      Bits := Bits or NativeUInt(1) shl Index;
      Result := True;
    end;
end;

// Reads the value of a setting that may be given several times.
function ReadBits(var Words: PAnsiChar; Option: TOption; var Bits: NativeUInt): Boolean;
begin
  if Option = opErase then
    Result := ReadBit(Words, @EraseNames, Length(EraseNames), Bits)
  else
    Result := ReadBit(Words, @FormatNames, Length(FormatNames), Bits);
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

// Reads a pattern; 0 clears the setting.
function ReadPattern(var Words: PAnsiChar; out IsUsed: NativeUInt): Boolean;
var
  Pattern: ^TPath;
begin
  Pattern := @Settings.TraceClass;
  ReadPath(Words, Pattern^);
  IsUsed := Ord((Pattern^[0] <> '0') or (Pattern^[1] <> #0));
  Result := Pattern^[0] <> #0;
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
  case Option of
    opLog: ReadLogPath(Words);
    opLeaksIgnore: ReadPath(Words, Settings.IgnorePath);
    opSyslog: ReadPath(Words, Settings.SyslogPath);
  end;
  case OptionTexts[Option].Kind of
    okText, okSocket: Exit(True);
    okRule: Exit(EventRuleRead(Words) and ValueEnds(Words^));
    okFormat, okErase: Exit(ReadBits(Words, Option, Value));
    okTime: Result := ValueTime(Words, Value);
    okByte: Result := ValueByte(Words, Value);
    okInterval: Result := ValueWordOrNumber(Words, 'always', Value);
    okGuard: Result := ValueGuard(Words, Value);
    okRange: Result := ReadRange(Words, Option, Value);
    okName: Result := ReadPattern(Words, Value);
  else
    Result := ValueNumber(Words, Value);
  end;
end;

function ReadWord(var Words: PAnsiChar; const Source: ShortString): Boolean;
var
  Name: ShortString;
  Option: TOption;
  Distance: Cardinal;
  Value: NativeUInt;
begin
  Name := ReadName(Words);
  Option := NearestOption(Name, Distance);
  Result := False;
  if Distance > 0 then
    SayUnknown(Name, Source, Option)
  else if not ReadValue(Words, Option, Value) then
    SayWrongValue(Name, Source)
  else if not IsAllowed(Option, Value) then
    SayNotAllowed(Option, Value, Source)
  else
  begin
    Settings.Values[Option] := Value;
    Include(Settings.Given, Option);
    Result := True;
  end;
  while not ValueEnds(Words^) do
    Inc(Words);
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

function SettingsChange(const Words: ShortString): Boolean;
var
  Ended: array[0..High(Byte)] of AnsiChar;
begin
  Move(Words[1], Ended, Length(Words));
  Ended[Length(Words)] := #0;
  Result := SettingsRead(@Ended, 'LaneMM_Configure');
end;

// ---------------------------------------------------------------------------- start

type
  // Room for one byte more than is read, and the end.
  TWords = array[0..MaxWords + 1] of AnsiChar;

procedure SayCut(const Source: ShortString);
var
  Text: TText;
begin
  AddPrefix(Text, Source);
  TextAdd(Text, 'the settings after the first ');
  TextAddNumber(Text, MaxWords);
  TextAdd(Text, ' bytes are not read'#10);
  Print(Text);
end;

// Reads all settings in Words; without those after MaxWords bytes, and the one that begins before
// and ends after them.
procedure ReadAll(var Words: TWords; const Source: ShortString);
var
  Length: NativeUInt;
  IsCut: Boolean;
begin
  Length := 0;
  while (Length <= MaxWords) and (Words[Length] <> #0) do
    Inc(Length);
  IsCut := Length > MaxWords;
  if IsCut then
    repeat
      Dec(Length);
    until (Length = 0) or ValueEnds(Words[Length]);
  Words[Length] := #0;
  SettingsRead(@Words[TextMarkLength(@Words, Length)], Source);
  if IsCut then
    SayCut(Source);
end;

procedure ReadSettingsFile;
var
  Path: TPath;
  Words: TWords;
  Length: NativeInt;
  Handle: TOsFile;
begin
  Length := OsProgramName(@Path, SizeOf(Path) - 8);
  if Length = 0 then
    Exit;
  Move(FileExtension[1], Path[Length], System.Length(FileExtension));
  Path[Length + System.Length(FileExtension)] := #0;
  Handle := OsFileOpen(@Path);
  if Handle < 0 then
    Exit;
  Length := OsFileRead(Handle, @Words, MaxWords + 1);
  OsFileClose(Handle);
  if Length < 0 then
    Exit;
  Words[Length] := #0;
  ReadAll(Words, 'settings file');
end;

// Returns the settings that need debug mode: most are for debug blocks, which guard=sample:N makes,
// too, and erase=new has the fill byte of new ones.
function OfDebug: TOptions;
begin
  Result := [opDebugExit, opCheck, opQuarantine, opFill, opFreeFill, opGuard, opBreak,
    opTrace..opMixes];
  if Settings.Values[opGuard] > 1 then
    Result := [opCheck, opFill];
  if IsErasingNew then
    Exclude(Result, opFill);
end;

// Names the settings that are set in vain. Those of heaptrc's variable are read later: they are
// meant for heaptrc.
procedure CheckEffects;
const
  OfLeaks = [opLeaksExit, opLeaksDump, opLeaksFormat];
  OfPlaces = [opLeaksDump];
  OfProfiles = [opPprof..opJson, opKeep, opSignal];
  OfSamples = [opTemporary, opEvery];
begin
  if not IsSet(opDebug) then
    SayWithoutEffect(OfDebug, '`debug`');
  if not IsSet(opLeaks) then
    SayWithoutEffect(OfLeaks, '`leaks`')
  else if not (IsSet(opDebug) or IsSet(opStacks)) then
    SayWithoutEffect(OfPlaces, '`stacks` or `debug`');
  if not (IsSet(opContention) or IsSet(opGrowth) or IsSet(opProfile)) then
    SayWithoutEffect(OfProfiles, '`contention`, `growth` or `profile`');
  if not IsSet(opProfile) then
    SayWithoutEffect(OfSamples, '`profile`');
end;

procedure ReadEnvironment;
var
  Words, HeapTrcWords: TWords;
  HasHeapTrc: Boolean;
begin
  HasHeapTrc := OsEnvironment(HeapTrcVariable, @HeapTrcWords, SizeOf(HeapTrcWords));
  if HasHeapTrc then
    HeapTrcDisable(@HeapTrcWords);
  if OsEnvironment(Variable, @Words, SizeOf(Words)) then
    ReadAll(Words, Variable);
  CheckEffects;
  if HasHeapTrc then
    HeapTrcRead(@HeapTrcWords);
end;

procedure SettingsStart;
var
  Option: TOption;
begin
  for Option := Low(TOption) to High(TOption) do
    Settings.Values[Option] := OptionTexts[Option].Default;
  EventRulesStart;
  Report.LogPath := @Settings.LogPath;
  Report.SystemLog := @Settings.SyslogPath;
  Settings.IsPrivileged := OsIsPrivileged;
  if not Settings.IsPrivileged then
  begin
    ReadSettingsFile;
    ReadEnvironment;
  end;
  if (Settings.Values[opHelp] <> 0) and not IsLibrary then
    SettingsHelp;
end;

end.
