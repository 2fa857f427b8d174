/// The commands of lanemm: what a command is, its arguments, its errors.
unit ToolCommands;

{$mode delphi}{$H+}

interface

uses
  SysUtils, Classes, CustApp;

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
    ecDamaged        //< a file is cut off, damaged, or of another format
  );

  /// An error that is printed as one line and ends lanemm with Code.
  ETool = class(Exception)
  public
    Code: TExitCode;
    constructor Create(ACode: TExitCode; const Text: string); overload;
    constructor Create(ACode: TExitCode; const Text: string; const Values: array of const);
      overload;
  end;

  /// The arguments behind the command: options as --name, --name=VALUE or --name VALUE, and words.
  TArguments = class(TCustomApplication)
  private
    FirstIndex: Integer;
  protected
    function GetParams(Index: Integer): string; override;
    function GetParamCount: Integer; override;
  public
    /// The arguments that are no options.
    Words: TStringList;
    /// First is the number of arguments before them.
    constructor Create(First: Integer); reintroduce;
    destructor Destroy; override;
    /// Fills Words; raises ETool for an option that is not in Options, names with a blank between
    /// them, `:` after a name that takes a value.
    procedure Parse(const Options: string);
    /// Returns whether the option is there.
    function Has(const Option: string): Boolean;
    /// Returns the value of the option; Default if it is not there.
    function Value(const Option, Default: string): string;
    /// Returns the number behind the option; Default if it is not there. Raises ETool for what is
    /// no number, or below Lowest.
    function Number(const Option: string; Default, Lowest: Int64): Int64;
    /// Returns the time behind the option in milliseconds: `500ms`, `2s`, `5m`, or seconds.
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
    Run: TCommandCall; //< does it
  end;
  PCommand = ^TCommand;

/// Runs the command that the command line names; returns the exit code of the program.
function RunCommands(const Commands: array of PCommand): TExitCode;

implementation

const
  Head = 'lanemm COMMAND [ARGUMENTS]: looks at programs that run on LaneMM.'#10;
  Foot = #10'`lanemm COMMAND --help` tells more. Exit codes: 0 done, 1 failed, 2 wrong arguments,'#10
    + '3 no such process, 4 not on LaneMM, 5 not permitted, 6 another version of LaneMM,'#10
    + '7 a damaged file.';

// ---------------------------------------------------------------------------- ETool

constructor ETool.Create(ACode: TExitCode; const Text: string);
begin
  inherited Create(Text);
  Code := ACode;
end;

constructor ETool.Create(ACode: TExitCode; const Text: string; const Values: array of const);
begin
  inherited CreateFmt(Text, Values);
  Code := ACode;
end;

// ---------------------------------------------------------------------------- TArguments

constructor TArguments.Create(First: Integer);
begin
  inherited Create(nil);
  FirstIndex := First;
  Words := TStringList.Create;
end;

destructor TArguments.Destroy;
begin
  Words.Free;
  inherited Destroy;
end;

function TArguments.GetParams(Index: Integer): string;
begin
  if Index = 0 then
    Exit(ParamStr(0));
  Result := ParamStr(Index + FirstIndex);
end;

function TArguments.GetParamCount: Integer;
begin
  Result := System.ParamCount - FirstIndex;
end;

procedure TArguments.Parse(const Options: string);
var
  Names, Found: TStringList;
  Error: string;
begin
  Names := TStringList.Create;
  Found := TStringList.Create;
  try
    Names.Delimiter := ' ';
    Names.DelimitedText := Options + ' help';
    Error := CheckOptions('', Names, Found, Words, False);
    if Error <> '' then
      raise ETool.Create(ecUsage, Error);
  finally
    Names.Free;
    Found.Free;
  end;
end;

function TArguments.Has(const Option: string): Boolean;
begin
  Result := HasOption(Option);
end;

function TArguments.Value(const Option, Default: string): string;
begin
  Result := Default;
  if Has(Option) then
    Result := GetOptionValue(Option);
end;

function TArguments.Number(const Option: string; Default, Lowest: Int64): Int64;
begin
  if not Has(Option) then
    Exit(Default);
  if not TryStrToInt64(GetOptionValue(Option), Result) or (Result < Lowest) then
    raise ETool.Create(ecUsage, '--%s needs a number of at least %d, not `%s`',
      [Option, Lowest, GetOptionValue(Option)]);
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
  Text := GetOptionValue(Option);
  if (Text <> '') and (Text[Length(Text)] in ['0'..'9']) then
    Text := Text + 's';
  for Index := 0 to High(Units) do
    if Text.EndsWith(Units[Index])
      and TryStrToInt64(Copy(Text, 1, Length(Text) - Length(Units[Index])), Result)
      and (Result > 0) then
      Exit(Result * Factors[Index]);
  raise ETool.Create(ecUsage, '--%s needs a time as 500ms, 2s, 5m or 1h, not `%s`',
    [Option, GetOptionValue(Option)]);
end;

function TArguments.Word(Index: Integer; const Name: string): string;
begin
  if Index >= Words.Count then
    raise ETool.Create(ecUsage, '%s is missing', [Name]);
  Result := Words[Index];
end;

function TArguments.ProcessId: Integer;
begin
  if not TryStrToInt(Word(0, 'PID'), Result) or (Result <= 0) then
    raise ETool.Create(ecUsage, '`%s` is not the number of a process', [Words[0]]);
end;

// ---------------------------------------------------------------------------- commands

procedure ShowHelp(const Commands: array of PCommand);
var
  Command: PCommand;
begin
  WriteLn(Head);
  for Command in Commands do
    WriteLn('  ', Command^.Name: -10, ' ', Command^.Help);
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
  raise ETool.Create(ecUsage, 'there is no command `%s`; `lanemm help` lists them', [Name]);
end;

procedure RunCommand(const Command: TCommand);
var
  Arguments: TArguments;
begin
  Arguments := TArguments.Create(1);
  try
    if Arguments.Has('help') then
      ShowCommandHelp(Command)
    else
    begin
      Arguments.Parse(Command.Options);
      Command.Run(Arguments);
    end;
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
  else if Name = 'help' then
    ShowHelp(Commands)
  else if Name = '' then
    raise ETool.Create(ecUsage, 'a command is missing; `lanemm help` lists them')
  else
    RunCommand(FindCommand(Commands, Name)^);
end;

function RunCommands(const Commands: array of PCommand): TExitCode;
begin
  Result := ecDone;
  try
    RunNamed(Commands, ParamStr(1));
  except
    on Error: ETool do
    begin
      WriteLn(StdErr, 'lanemm: ', Error.Message);
      Result := Error.Code;
    end;
    on Error: Exception do
    begin
      WriteLn(StdErr, 'lanemm: ', Error.Message);
      Result := ecFailed;
    end;
  end;
end;

end.
