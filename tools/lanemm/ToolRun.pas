/// `lanemm run`: starts a program on LaneMM.
unit ToolRun;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Replaces lanemm by the program; returns only by raising ETool.
procedure RunRun(Arguments: TArguments);

const
  RunCommand: TCommand = (
    Name: 'run';
    Usage: '[WORDS] PROGRAM [ARGUMENTS...]';
    Help: 'Starts a program on LaneMM';
    Details:
      'WORDS, settings as in the variable LANEMM, are added to it. A program that contains LaneMM'#10
      + 'needs no more; any other one is started with liblanemm.so in LD_PRELOAD: the file that'#10
      + 'the variable LIBLANEMM names, otherwise one beside lanemm or in a folder for libraries.'#10;
    Options: '*';
    MostWords: AnyWords;
    Run: RunRun);

implementation

uses
  SysUtils, Classes, BaseUnix, Targets, Programs;

procedure RunRun(Arguments: TArguments);
var
  Words, Path: string;
  Found: TProgram;
  Variables: TStringList;
begin
  Words := '';
  if (Arguments.Words.Count > 1) and (ProgramPath(Arguments.Words[0]) = '') then
  begin
    Words := Arguments.Words[0];
    Arguments.Words.Delete(0);
  end;
  Path := ProgramPath(Arguments.Word(0, 'PROGRAM'));
  if (Path = '') and FileExists(Words) then
    raise ETool.Create(ecFailed, '%s', [NoProgramText(Words)]);
  if (Path = '') and (Words <> '') then
    raise ETool.Create(ecFailed, 'there is no program `%s`, and no program `%s` after settings',
      [Words, Arguments.Words[0]]);
  if Path = '' then
    raise ETool.Create(ecFailed, '%s', [NoProgramText(Arguments.Words[0])]);
  Variables := OwnEnvironment;
  if Words <> '' then
    SetBefore(Variables, 'LANEMM', Words, ',');
  Found := ReadProgram(Path);
  if not Found.HasLaneMM then
  begin
    if Found.IsStatic then
      raise ETool.Create(ecNotOnLaneMM, '%s is static and has no LaneMM inside: link it with'
        + ' liblanemm.a, or compile it with -FaLaneMM', [Path]);
    SetBefore(Variables, 'LD_PRELOAD', LibraryPath, ':');
    if Found.HasMalloc then
      WriteLn(StdErr, 'lanemm: ', Printable(Path), ' has a malloc of its own, so it does not run on LaneMM');
    Flush(StdErr);
  end;
  Execute(Path, Arguments.Words, Variables);
  raise ETool.Create(ecFailed, '%s cannot be started: %s', [Path, SysErrorMessage(fpgeterrno)]);
end;

end.
