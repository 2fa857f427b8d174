/// The commands of lanemm: what a command is, its arguments, its errors.
unit ToolCommands;

{$mode delphi}{$H+}

interface

uses
  SysUtils, Classes;

const
  /// As TCommand.MostWords: any number.
  AnyWords = MaxInt;
  /// The kinds of `lanemm report`; lanemm makes the last two itself.
  ReportKinds: array[0..9] of string = ('inuse', 'peak', 'allocated', 'temporary', 'fragments',
    'profile', 'contention', 'growth', 'leaks', 'threads');

type
  /// Exit codes of lanemm.
  TExitCode = (
    ecDone,          //< all that was asked for was done
    ecFailed,        //< it failed; the error says why
    ecUsage,         //< the arguments are wrong
    ecNoProcess,     //< there is no such process
    ecNotOnLaneMM,   //< the process does not run on LaneMM
    ecNotPermitted,  //< the system refuses to let the caller look
    ecOtherVersion,  //< the process has a version of LaneMM with other records
    ecDamaged,       //< a file is cut off, damaged, or of another format
    ecGrown          //< memory grew by more than --fail-over allows
  );

  /// An error that is printed as one line and ends lanemm with Code.
  ETool = class(Exception)
  public
    Code: TExitCode;
    constructor Create(ExitWith: TExitCode; const Text: string); overload;
    constructor Create(ExitWith: TExitCode; const Text: string; const Values: array of const);
      overload;
  end;

  /// The arguments behind the command: options as --name, --name=VALUE or --name VALUE, and words.
  TArguments = class
  private
    Known: TStringList;  // names, with `:` after those that take a value, `::` that may have one
    Values: TStringList; // NAME=VALUE of the options that are there
    function KnownName(const Name: string): string;
    procedure AddOption(const Option: string; var Index: Integer);
  public
    /// The arguments that are no options.
    Words: TStringList;
    constructor Create;
    destructor Destroy; override;
    /// Reads the arguments from number First on; raises ETool for an option that is not in Options:
    /// names with a blank between them, `:` after a name that takes a value, `::` after one that
    /// may have one, behind `=`. `*`: the options end at the first word, as they do at `--`.
    procedure Parse(const Options: string; First: Integer);
    /// Returns whether the option is there.
    function Has(const Option: string): Boolean;
    /// Returns the value of the option, the last one if it is there several times; Default if it is not there.
    function Value(const Option, Default: string): string;
    /// Returns the values of an option that may be there several times.
    function All(const Option: string): TArray<string>;
    /// Returns the number behind the option, High(LongInt) for a larger one; Default if it is not there. Raises
    /// ETool for what is no number, or below Lowest.
    function Number(const Option: string; Default, Lowest: Int64): Int64;
    /// Returns the time behind the option in milliseconds: `500ms`, `2s`, `5m`, or seconds; up to 24
    /// days.
    function Milliseconds(const Option: string; Default: Int64): Int64;
    /// Returns word number Index, from 0; raises ETool, that Name is missing, without it.
    function Word(Index: Integer; const Name: string): string;
    /// Returns the first word as the number of a process; raises ETool if it is none.
    function ProcessId: Integer;
  end;

  /// Does what the command is for; raises ETool, or any exception, when it fails.
  TCommandCall = procedure(Arguments: TArguments);

  /// A command.
  TCommand = record
    Name: string;      //< the word of the command line
    Usage: string;     //< the arguments after it
    Help: string;      //< what it does, in one line
    Details: string;   //< lines of its own help, each ended by #10
    Options: string;   //< see TArguments.Parse; `help` is known for all
    MostWords: Integer; //< arguments that are no options; AnyWords: any number
    Run: TCommandCall; //< does it
  end;
  PCommand = ^TCommand;

/// Returns whether Text is the number of a process, and the number.
function TryProcessId(const Text: string; out Id: Integer): Boolean;
/// Runs the command that the command line names; returns the exit code of the program.
function RunCommands(const Commands: array of PCommand): TExitCode;

implementation

uses
  BaseUnix, Linux, StrUtils, LaneMM.Version;

const
  Head = 'lanemm COMMAND [ARGUMENTS]: looks at programs that run on LaneMM.'#10;
  Foot = #10'`lanemm COMMAND --help` prints more, `lanemm --version` the version. Exit codes:'#10
    + '0 done, 1 failed, 2 wrong arguments, 3 no such process, 4 not on LaneMM,'#10
    + '5 not permitted, 6 another version of LaneMM, 7 a damaged file,'#10
    + '8 grown by more than --fail-over.';

// Returns what to call instead of a command or an option that does not exist.
function Instead(const Name, Usual: string): string;
begin
  Result := Usual;
  if IndexStr(Name, ReportKinds) >= 0 then
    Result := Format('`lanemm report PID %s` reports that, see `lanemm report --help`',
      [Name]);
end;

// ---------------------------------------------------------------------------- ETool

constructor ETool.Create(ExitWith: TExitCode; const Text: string);
begin
  inherited Create(Text);
  Code := ExitWith;
end;

constructor ETool.Create(ExitWith: TExitCode; const Text: string; const Values: array of const);
begin
  inherited CreateFmt(Text, Values);
  Code := ExitWith;
end;

// ---------------------------------------------------------------------------- TArguments

constructor TArguments.Create;
begin
  inherited Create;
  Known := TStringList.Create;
  Values := TStringList.Create;
  Words := TStringList.Create;
end;

destructor TArguments.Destroy;
begin
  Words.Free;
  Values.Free;
  Known.Free;
  inherited Destroy;
end;

function TryProcessId(const Text: string; out Id: Integer): Boolean;
var
  Number: Int64;
begin
  Result := TryStrToInt64(Text, Number) and (Number > 0) and (Number <= High(Id));
  Id := Number;
end;

// Returns the name as it stands in Known; raises ETool without it.
function TArguments.KnownName(const Name: string): string;
begin
  for Result in Known do
    if Result.TrimRight([':']) = Name then
      Exit;
  raise ETool.Create(ecUsage, 'there is no option --%s; %s',
    [Name, Instead(Name, Format('`lanemm %s --help` lists them', [ParamStr(1)]))]);
end;

// Adds an option without its two hyphens; Index is moved to its value, if that comes after it.
procedure TArguments.AddOption(const Option: string; var Index: Integer);
var
  Name, Text: string;
  HasText: Boolean;
begin
  HasText := Pos('=', Option) > 0;
  Name := Option.Split(['='])[0];
  Text := Copy(Option, Length(Name) + 2, MaxInt);
  Name := KnownName(Name);
  if HasText and not Name.EndsWith(':') then
    raise ETool.Create(ecUsage, '--%s takes no value', [Name]);
  if Name.EndsWith(':') and not Name.EndsWith('::') and not HasText then
  begin
    Inc(Index);
    if Index > ParamCount then
      raise ETool.Create(ecUsage, '--%s needs a value', [Name.TrimRight([':'])]);
    Text := ParamStr(Index);
  end;
  Values.Add(Name.TrimRight([':']) + '=' + Text);
end;

procedure TArguments.Parse(const Options: string; First: Integer);
const
  FirstWordEnds = '*';
var
  Index: Integer;
  EndsOptions: Boolean;
begin
  EndsOptions := False;
  Known.Delimiter := ' ';
  Known.DelimitedText := Options;
  Index := First;
  while Index <= ParamCount do
  begin
    if (ParamStr(Index) = '--') and not EndsOptions then
      EndsOptions := True
    else if (ParamStr(Index) = '-h') and not EndsOptions then
      AddOption('help', Index)
    else if ParamStr(Index).StartsWith('--') and not EndsOptions then
      AddOption(Copy(ParamStr(Index), 3, MaxInt), Index)
    else
    begin
      Words.Add(ParamStr(Index));
      EndsOptions := EndsOptions or (Known.IndexOf(FirstWordEnds) >= 0);
    end;
    Inc(Index);
  end;
end;

function TArguments.Has(const Option: string): Boolean;
begin
  Result := Values.IndexOfName(Option) >= 0;
end;

function TArguments.Value(const Option, Default: string): string;
begin
  Result := Default;
  if Has(Option) then
    Result := All(Option)[High(All(Option))];
end;

function TArguments.All(const Option: string): TArray<string>;
var
  Index: Integer;
begin
  Result := nil;
  for Index := 0 to Values.Count - 1 do
    if Values.Names[Index] = Option then
      Insert(Values.ValueFromIndex[Index], Result, Length(Result));
end;

function TArguments.Number(const Option: string; Default, Lowest: Int64): Int64;
begin
  if not Has(Option) then
    Exit(Default);
  if not TryStrToInt64(Value(Option, ''), Result) or (Result < Lowest) then
    raise ETool.Create(ecUsage, '--%s needs a number of at least %d, not `%s`',
      [Option, Lowest, Value(Option, '')]);
  if Result > High(LongInt) then
    Result := High(LongInt); // no list has more
end;

function TArguments.Milliseconds(const Option: string; Default: Int64): Int64;
const
  Units: array[0..3] of string = ('ms', 's', 'm', 'h');
  Factors: array[0..3] of Int64 = (1, 1000, 60000, 3600000);
var
  Text: string;
  Index: Integer;
begin
  if not Has(Option) then
    Exit(Default);
  Text := Value(Option, '');
  if (Text <> '') and (Text[Length(Text)] in ['0'..'9']) then
    Text := Text + 's';
  for Index := 0 to High(Units) do
    if Text.EndsWith(Units[Index])
      and TryStrToInt64(Copy(Text, 1, Length(Text) - Length(Units[Index])), Result)
      and (Result > 0) and (Result <= High(LongInt) div Factors[Index]) then
      Exit(Result * Factors[Index]);
  raise ETool.Create(ecUsage, '--%s needs a time as 500ms, 2s, 5m or 1h, up to 596h, not `%s`',
    [Option, Value(Option, '')]);
end;

function TArguments.Word(Index: Integer; const Name: string): string;
begin
  if Index >= Words.Count then
    raise ETool.Create(ecUsage, '%s is missing; see `lanemm %s --help`', [Name, ParamStr(1)]);
  Result := Words[Index];
end;

function TArguments.ProcessId: Integer;
begin
  if not TryProcessId(Word(0, 'PID'), Result) then
    raise ETool.Create(ecUsage, '`%s` is not the number of a process', [Words[0]]);
end;

// ---------------------------------------------------------------------------- commands

procedure ShowHelp(const Commands: array of PCommand);
var
  Command: PCommand;
begin
  WriteLn(Head);
  for Command in Commands do
    WriteLn('  ', Command^.Name, StringOfChar(' ', 11 - Length(Command^.Name)), Command^.Help);
  WriteLn(Foot);
end;

procedure ShowCommandHelp(const Command: TCommand);
begin
  WriteLn('lanemm ', Command.Name, ' ', Command.Usage);
  WriteLn;
  WriteLn(Command.Help, '.');
  if Command.Details <> '' then
    Write(#10, Command.Details);
end;

function FindCommand(const Commands: array of PCommand; const Name: string): PCommand;
begin
  for Result in Commands do
    if Result^.Name = Name then
      Exit;
  raise ETool.Create(ecUsage, 'there is no command `%s`; %s',
    [Name, Instead(Name, '`lanemm help` lists them')]);
end;

procedure RunCommand(const Command: TCommand);
var
  Arguments: TArguments;
begin
  Arguments := TArguments.Create;
  try
    Arguments.Parse(Trim(Command.Options + ' help'), 2);
    if Arguments.Has('help') then
      ShowCommandHelp(Command)
    else if Arguments.Words.Count > Command.MostWords then
      raise ETool.Create(ecUsage, '`%s` is one word too many; see `lanemm %s --help`',
        [Arguments.Words[Command.MostWords], Command.Name])
    else
      Command.Run(Arguments);
  finally
    Arguments.Free;
  end;
end;

procedure RunNamed(const Commands: array of PCommand; const Name: string);
begin
  if (Name = '--help') or (Name = '-h') then
    ShowHelp(Commands)
  else if (Name = 'help') and (ParamCount > 1) then
    ShowCommandHelp(FindCommand(Commands, ParamStr(2))^)
  else if (Name = 'help') or (Name = '') then
    ShowHelp(Commands)
  else if Name = '--version' then
    WriteLn('lanemm ', ThisVersion)
  else
    RunCommand(FindCommand(Commands, Name)^);
end;

// Takes the numbers of standard files that the caller has closed: the next file that is opened would
// get one, and what is printed would be written into it, such as the status page of a process.
procedure TakeStandardFiles;
var
  Handle: LongInt;
begin
  repeat
    Handle := FpOpen('/dev/null', O_RDONLY or O_CLOEXEC); // what is written to it is an error
  until (Handle < 0) or (Handle > StdErrorHandle);
  if Handle >= 0 then
    FpClose(Handle);
end;

procedure PrintError(const Text: string);
begin
  {$push}{$I-} // there may be no standard error output
  WriteLn(StdErr, 'lanemm: ', Text);
  Flush(StdErr); // at the end of the program it would not be, after an output that has failed
  {$pop}
  InOutRes := 0;
end;

function RunCommands(const Commands: array of PCommand): TExitCode;
begin
  Result := ecDone;
  TakeStandardFiles;
  try
    RunNamed(Commands, ParamStr(1));
    Flush(Output); // what cannot be written is an error
  except
    on Error: Exception do
    begin
      PrintError(Error.Message);
      Result := ecFailed;
      if Error is ETool then
        Result := ETool(Error).Code;
    end;
  end;
end;

end.
