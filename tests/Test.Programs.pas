/// Builds and runs the programs of tests/programs, for tests that check their output.
unit Test.Programs;

{$mode delphi}{$H+}

interface

uses
  Classes;

type
  /// A program, built once, and what its last run left.
  TTestProgram = class
  public
    /// Its folder, with a slash; its source, by lines.
    Folder: string;
    Source: TStringList;
    /// Of the last run.
    ExitCode: Integer;
    Errors: string;
    constructor Create(const Name, Options: string);
    destructor Destroy; override;
    /// Runs it with LANEMM=Settings after it has deleted what earlier runs wrote.
    procedure Run(const Settings: string; const Arguments: array of string);
    /// The same through a shell: Command calls the program as "$P".
    procedure RunInShell(const Settings, Command: string);
    /// The line, from 1, of the comment `// planted: What`; 0 when there is none.
    function PlantedLine(const What: string): Integer;
    /// The contents of the file of this program whose name ends with Suffix; '' without one.
    function Written(const Suffix: string): string;
    /// Deletes what it wrote.
    procedure Clean;
  strict private
    FileName, Name: string;
    procedure Start(const Executable, Settings: string; const Arguments: array of string);
  end;

implementation

uses
  SysUtils, Process;

function SourceFolder: string;
begin
  Result := ExpandFileName(ExtractFilePath(ParamStr(0)) + '../../');
end;

var
  Fresh: TStringList; // folders that have no units of an earlier run

// Deletes the units of an earlier run: the compiler does not see that sources have changed which it
// finds by the unit paths of LaneMM.inc.
procedure Freshen(const Folder: string);
var
  Found: TSearchRec;
begin
  if Fresh = nil then
    Fresh := TStringList.Create;
  if Fresh.IndexOf(Folder) >= 0 then
    Exit;
  Fresh.Add(Folder);
  if FindFirst(Folder + '*.ppu', 0, Found) = 0 then
    repeat
      DeleteFile(Folder + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

constructor TTestProgram.Create(const Name, Options: string);
var
  Output, Path: string;
begin
  Self.Name := Name;
  Path := SourceFolder + 'tests/programs/' + Name + '.lpr';
  Folder := ExtractFilePath(ParamStr(0)) + 'programs' + Options.Replace(' ', '') + '/';
  ForceDirectories(Folder);
  Freshen(Folder);
  if not RunCommand('sh', ['-c', Format('fpc -l- -v0 -ve %s "-Fu%ssrc" "-Fu%stests/programs"'
    + ' "-FE%s" "-FU%s" "%s"', [Options, SourceFolder, SourceFolder, Folder, Folder, Path])], Output) then
    raise Exception.Create('cannot build ' + Path + ': ' + Output);
  FileName := Folder + Name;
  Source := TStringList.Create;
  Source.LoadFromFile(Path);
end;

destructor TTestProgram.Destroy;
begin
  Source.Free;
  inherited Destroy;
end;

procedure TTestProgram.Clean;
var
  Found: TSearchRec;
begin
  if FindFirst(FileName + '_MemoryManager_*', 0, Found) = 0 then
    repeat
      DeleteFile(Folder + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

function ReadAll(Stream: TStream): string;
var
  Part: array[0..4095] of Char;
  Count: Integer;
begin
  Result := '';
  repeat
    Count := Stream.Read(Part, SizeOf(Part));
    Result := Result + Copy(Part, 1, Count);
  until Count <= 0;
end;

procedure TTestProgram.Start(const Executable, Settings: string;
  const Arguments: array of string);
var
  Child: TProcess;
  Argument: string;
  Index: Integer;
begin
  Clean;
  Child := TProcess.Create(nil);
  try
    Child.Executable := Executable;
    Child.CurrentDirectory := Folder;
    for Argument in Arguments do
      Child.Parameters.Add(Argument);
    for Index := 1 to GetEnvironmentVariableCount do
      if not GetEnvironmentString(Index).StartsWith('LANEMM=') then
        Child.Environment.Add(GetEnvironmentString(Index));
    Child.Environment.Add('LANEMM=' + Settings);
    Child.Environment.Add('P=' + FileName);
    Child.Options := [poUsePipes];
    Child.Execute;
    Errors := ReadAll(Child.Stderr);
    Child.WaitOnExit;
    ExitCode := Child.ExitStatus;
  finally
    Child.Free;
  end;
end;

procedure TTestProgram.Run(const Settings: string; const Arguments: array of string);
begin
  Start(FileName, Settings, Arguments);
end;

procedure TTestProgram.RunInShell(const Settings, Command: string);
begin
  Start('/bin/sh', Settings, ['-c', Command]);
end;

function TTestProgram.PlantedLine(const What: string): Integer;
begin
  Result := Source.Count;
  while (Result > 0) and not Source[Result - 1].EndsWith('// planted: ' + What) do
    Dec(Result);
end;

function TTestProgram.Written(const Suffix: string): string;
var
  Found: TSearchRec;
  Lines: TStringList;
begin
  Result := '';
  if FindFirst(FileName + '_MemoryManager_*' + Suffix, 0, Found) = 0 then
  begin
    Lines := TStringList.Create;
    Lines.LoadFromFile(Folder + Found.Name);
    Result := Lines.Text;
    Lines.Free;
  end;
  FindClose(Found);
end;

finalization
  Fresh.Free;
end.
