/// `lanemm try`: which memory manager, and which setting, is best for a program.
unit ToolTry;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Runs the program under each manager in turn, and compares what it took.
procedure RunTry(Arguments: TArguments);

const
  TryCommand: TCommand = (
    Name: 'try';
    Usage: '[OPTIONS] [--] PROGRAM [ARGUMENTS...]';
    Help: 'Compares memory managers and settings for a program';
    Details: '  --rounds=N       runs of each, 7 by default; fewer than 5 prove nothing'#10
      + '  --with=NAME=LIB  one more manager: a library to preload, such as mi=/opt/libmimalloc.so'#10
      + '  --words=WORDS    LaneMM once more, with these settings of the variable LANEMM'#10
      + '  --only=NAMES     only these, with commas between'#10
      + '  --for=TIME       for a server: ends the program after TIME, by SIGTERM'#10
      + '  --load=COMMAND   a shell command that runs beside the program once it rests, with its'#10
      + '                   number in TRY_PID. The time is that of the load; --for is 30s by default'#10
      + '  --exit=N         the exit code of a run without a failure, 0 by default'#10
      + '  --output=FILE    writes what the program prints to FILE, not to /dev/null'#10
      + '  --json           the numbers of all runs, medians and conclusions as JSON'#10
      + '  --quiet          no progress on stderr'#10#10
      + 'A program that has LaneMM inside runs on Free Pascal''s heap (LANEMM=off), on LaneMM, and on'#10
      + 'LaneMM without huge pages. Any other one runs on glibc''s malloc, on liblanemm.so, and on'#10
      + 'those of jemalloc, mimalloc, tcmalloc, tbb, snmalloc and rpmalloc that are installed. The'#10
      + 'rounds are interleaved; one before them is not counted. docs/try.md has more.'#10;
    Options: 'rounds: with: words: only: for: load: exit: output: json quiet *';
    MostWords: AnyWords;
    Run: RunTry);

implementation

uses
  SysUtils, Classes, StrUtils, Math, fpJson, Programs, Trials;

type
  // A program.
  TProgramTrial = class(TTrial)
  private
    Found: TProgram;
    procedure AddManagers;
    procedure CheckProgram;
    procedure ReadOptions(Arguments: TArguments);
  protected
    function Described: TJSONObject; override;
  public
    constructor Create(Arguments: TArguments);
  end;

const
  LinkedName = 'as linked';

procedure TProgramTrial.AddManagers;
begin
  if Found.HasLaneMM then
  begin
    AddPascal;
    Exit;
  end;
  if Found.LinkedWith <> '' then
  begin
    Add(LinkedName, '', '');
    Notes.Add(Format('The program loads %s, which `%s` is.', [Found.LinkedWith, LinkedName]));
  end;
  AddLibraries(OwnName, IfThen(Found.LinkedWith <> '', FindLibrary('libc.so.6')));
end;

// Raises ETool for a program that takes no other manager.
procedure TProgramTrial.CheckProgram;
begin
  if Found.HasLaneMM then
    Exit;
  if Found.IsStatic then
    raise ETool.Create(ecNotOnLaneMM, '%s is static and has no LaneMM inside: it takes no other'
      + ' manager; link it without -static, or compile it with -FaLaneMM', [Found.Path]);
  if Found.IsOtherWidth then
    raise ETool.Create(ecNotOnLaneMM, '%s has a different word size from the libraries of'
      + ' this machine, so it cannot load them', [Found.Path]);
  if Found.HasMalloc then
    raise ETool.Create(ecNotOnLaneMM, '%s has a malloc of its own, so it takes no other manager',
      [Found.Path]);
  if Found.IsFreePascal then
    Notes.Add('The program was compiled by Free Pascal without LaneMM: only with cmem its blocks come'
      + ' from malloc. Compile it with -FaLaneMM to try LaneMM.');
end;

procedure TProgramTrial.ReadOptions(Arguments: TArguments);
const
  DefaultForMs = 30000;
begin
  ReadRounds(Arguments);
  Order.Path := Found.Path;
  Order.Arguments := Arguments.Words;
  Order.OutputName := Arguments.Value('output', '/dev/null');
  Order.ExpectedExit := Arguments.Number('exit', 0, 0);
  Order.Load := Arguments.Value('load', '');
  Order.ForMs := Arguments.Milliseconds('for', IfThen(Order.Load <> '', DefaultForMs, 0));
end;

constructor TProgramTrial.Create(Arguments: TArguments);
begin
  inherited Create;
  Title := ProgramPath(Arguments.Word(0, 'PROGRAM'));
  if Title = '' then
    raise ETool.Create(ecFailed, '%s', [NoProgramText(Arguments.Words[0])]);
  Found := ReadProgram(Title);
  CheckProgram;
  ReadOptions(Arguments);
  AddManagers;
  if Found.HasLaneMM and Arguments.Has('with') then
    raise ETool.Create(ecUsage, '%s has LaneMM inside, so it takes no other library; --words tries'
      + ' settings of LaneMM', [Title]);
  AddWith(Arguments);
  AddWords(Arguments, not Found.HasLaneMM);
  if Arguments.Has('only') then
    KeepOnly(Arguments.Value('only', ''));
  CheckCount;
end;

function TProgramTrial.Described: TJSONObject;
begin
  Result := TJSONObject.Create(['program', Title, 'hasLaneMM', Found.HasLaneMM]);
end;

procedure RunTry(Arguments: TArguments);
var
  Trial: TProgramTrial;
begin
  Trial := TProgramTrial.Create(Arguments);
  try
    Trial.Run;
    if Arguments.Has('json') then
      Trial.WriteJson
    else
      Trial.WriteText;
  finally
    Trial.Free;
  end;
end;

end.
