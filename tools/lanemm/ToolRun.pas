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
      'WORDS, settings as in the variable LANEMM, are added to it. A program that has LaneMM'#10
      + 'inside gets them alone; any other one gets liblanemm.so through LD_PRELOAD: that of'#10
      + 'the variable LIBLANEMM, else one beside lanemm or in a folder for libraries.'#10;
    Options: '*';
    MostWords: AnyWords;
    Run: RunRun);

implementation

uses
  SysUtils, Classes, BaseUnix, LaneMM.StatusPage;

const
  LibraryName = 'liblanemm.so';

// Returns the path of a program, found as a shell finds it; empty if there is none.
function ProgramPath(const Name: string): string;
begin
  if Pos('/', Name) > 0 then
    Result := Name
  else
    Result := ExeSearch(Name, '');
  if (Result <> '') and (not FileExists(Result) or (FpAccess(Result, X_OK) <> 0)) then
    Result := '';
end;

// Returns the path of the library; raises ETool without one.
function LibraryPath: string;
const
  Folders: array[0..5] of string = ('lib/', '../lib/', '/usr/local/lib/', '/usr/lib/',
    '/usr/lib/x86_64-linux-gnu/', '/usr/lib/aarch64-linux-gnu/');
var
  Folder: string;
begin
  Result := GetEnvironmentVariable('LIBLANEMM');
  if (Result <> '') and not FileExists(Result) then
    raise ETool.Create(ecFailed, 'there is no file %s, which the variable LIBLANEMM names', [Result]);
  if Result <> '' then
    Exit(ExpandFileName(Result));
  for Folder in Folders do
  begin
    Result := Folder + LibraryName;
    if Folder[1] <> '/' then
      Result := ExpandFileName(ExtractFilePath(ParamStr(0)) + Result);
    if FileExists(Result) then
      Exit;
  end;
  raise ETool.Create(ecFailed, LibraryName + ' is not installed: `make install`, or name it in the'
    + ' variable LIBLANEMM');
end;

function ReadProgram(const Path: string): RawByteString;
var
  Source: TFileStream;
begin
  Source := TFileStream.Create(Path, fmOpenRead or fmShareDenyNone);
  try
    SetLength(Result, Source.Size);
    Source.ReadBuffer(PAnsiChar(Result)^, Length(Result));
  finally
    Source.Free;
  end;
end;

// Returns whether the program has LaneMM inside: it carries the first bytes of the status page.
function HasLaneMM(const Contents: RawByteString): Boolean;
begin
  Result := Pos(RawByteString(PageMagic), Contents) > 0;
end;

// Returns whether the file is a program that loads no libraries: it names no dynamic linker.
function IsStatic(const Contents: RawByteString): Boolean;
const
  ElfMagic = #127'ELF';
begin
  Result := (Copy(Contents, 1, 4) = ElfMagic) and (Pos('/ld-', Contents) = 0);
end;

// Returns the environment with First before the value of a variable, with Separator between.
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

// Replaces lanemm by the program.
procedure Execute(const Path: string; Arguments: TStrings; Variables: TStrings);

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
  raise ETool.Create(ecFailed, '%s cannot be started: %s', [Path, SysErrorMessage(fpgeterrno)]);
end;

procedure RunRun(Arguments: TArguments);
var
  Words, Path: string;
  Contents: RawByteString;
  Variables: TStringList;
  Index: Integer;
begin
  Words := '';
  if (Arguments.Words.Count > 1) and (ProgramPath(Arguments.Words[0]) = '') then
  begin
    Words := Arguments.Words[0];
    Arguments.Words.Delete(0);
  end;
  Path := ProgramPath(Arguments.Word(0, 'PROGRAM'));
  if (Path = '') and (Words <> '') then
    raise ETool.Create(ecFailed, 'there is no program `%s`, and no program `%s` after settings',
      [Words, Arguments.Words[0]]);
  if Path = '' then
    raise ETool.Create(ecFailed, 'there is no program `%s`', [Arguments.Words[0]]);
  Variables := TStringList.Create;
  for Index := 1 to GetEnvironmentVariableCount do
    Variables.Add(GetEnvironmentString(Index));
  if Words <> '' then
    SetBefore(Variables, 'LANEMM', Words, ',');
  Contents := ReadProgram(Path);
  if not HasLaneMM(Contents) then
  begin
    if IsStatic(Contents) then
      raise ETool.Create(ecNotOnLaneMM, '%s is static and has no LaneMM inside: link it with'
        + ' liblanemm.a, or compile it with -FaLaneMM', [Path]);
    SetBefore(Variables, 'LD_PRELOAD', LibraryPath, ':');
  end;
  Execute(Path, Arguments.Words, Variables);
end;

end.
