/// Programs that the window runs: the project, with LANEMM set, and the tool `lanemm`.
//
// How:     nothing waits. Poll, called by a timer, reads what a program has printed.
// Callers: one thread at a time.
unit LaneIdeRuns;

{$mode objfpc}{$H+}

interface

uses
  Classes, Process, LaneIdeReports;

type
  /// What is to run: the program of a project.
  TTarget = class
  public
    FileName, Parameters, Folder: string;
    Variables: TStringList;   // NAME=VALUE, in place of those of the environment
    constructor Create;
    destructor Destroy; override;
  end;

  /// A program that runs, or has run, and what it has printed.
  TTask = class
  private
    Child: TProcess;
  public
    Output, Errors: string;
    Most: Integer;        // bytes of each that are kept
    constructor Create(const FileName: string; MergesErrors: Boolean);
    destructor Destroy; override;
    procedure Start;
    /// Reads what was printed. Returns False when the program has ended.
    function Poll: Boolean;
    procedure Stop;
    property Process: TProcess read Child;
  end;

/// Returns the settings that make LaneMM write its reports into Folder.
function SettingsOf(Kind: TRunKind; const Folder: string): string;
/// Starts a target with these settings behind those that it has, and More behind them.
function StartTarget(Target: TTarget; const Settings, More: string): TTask;
/// Starts a command of the tool `lanemm` for a process: its name, and its options.
function StartTool(const Tool, Command: string; ProcessId: Integer; const Options: array of string): TTask;
/// Returns a new folder that its user alone can read.
function NewFolder: string;
/// Deletes a folder of NewFolder with its files; nothing for an empty text.
procedure DropFolder(const Folder: string);

implementation

uses
  {$ifdef UNIX} BaseUnix, {$endif} SysUtils, Pipes, LaneIdeReading;

const
  MostOutput = 4 shl 20; // bytes of what a program prints that are kept
  MostAtOnce = 1 shl 20; // that are read in one call: a program may print without end

constructor TTarget.Create;
begin
  Variables := TStringList.Create;
end;

destructor TTarget.Destroy;
begin
  Variables.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- tasks

constructor TTask.Create(const FileName: string; MergesErrors: Boolean);
begin
  Child := TProcess.Create(nil);
  Child.Executable := FileName;
  Child.Options := [poUsePipes];
  Most := MostOutput;
  if MergesErrors then
    Child.Options := Child.Options + [poStderrToOutPut];
end;

destructor TTask.Destroy;
begin
  Child.Free;
  inherited Destroy;
end;

procedure TTask.Start;
begin
  Child.Execute;
  Child.CloseInput; // a program that reads finds the end at once
end;

// Reads what has been printed, MostAtOnce bytes at most: more than a pipe of a program that has ended holds.
procedure ReadSome(Stream: TInputPipeStream; var Text: string; Most: Integer);
var
  Part: string;
  Size, Left: LongInt;
begin
  Left := MostAtOnce;
  repeat
    Size := Stream.NumBytesAvailable;
    if Size = 0 then
      Break;
    SetLength(Part, Size);
    Size := Stream.Read(Part[1], Size);
    if Length(Text) < Most then
      Text := Text + Copy(Part, 1, Size);
    Dec(Left, Size);
  until (Size <= 0) or (Left <= 0);
end;

function TTask.Poll: Boolean;
begin
  Result := Child.Running; // before the last bytes are read
  ReadSome(Child.Output, Output, Most);
  if Child.Stderr <> nil then
    ReadSome(Child.Stderr, Errors, Most);
end;

procedure TTask.Stop;
begin
  {$ifdef UNIX}
  fpKill(Child.ProcessID, SIGTERM); // LaneMM writes its reports then
  {$else}
  Child.Terminate(1);
  {$endif}
end;

// ---------------------------------------------------------------------------- what runs

function SettingsOf(Kind: TRunKind; const Folder: string): string;
const
  Words: array[TRunKind] of string = ('leaks,stacks,leaks:format=json',
    'debug,leaks,leaks:format=json', 'profile,json,growth,contention');
begin
  Result := Words[Kind] + ',log="' + IncludeTrailingPathDelimiter(Folder) + '"';
end;

function StartTarget(Target: TTarget; const Settings, More: string): TTask;
const
  Variable = 'LANEMM';
var
  Number: Integer;
  Own: string;
begin
  Result := TTask.Create(Target.FileName, True);
  try
    CommandToList(Target.Parameters, Result.Process.Parameters);
    Result.Process.CurrentDirectory := Target.Folder;
    for Number := 1 to GetEnvironmentVariableCount do
      Result.Process.Environment.Add(GetEnvironmentString(Number));
    for Number := 0 to Target.Variables.Count - 1 do
      Result.Process.Environment.Values[Target.Variables.Names[Number]] :=
        Target.Variables.ValueFromIndex[Number];
    Own := Result.Process.Environment.Values[Variable];
    if Own <> '' then
      Own := Own + ',';
    Own := Own + Settings;
    if More <> '' then
      Own := Own + ',' + More;
    Result.Process.Environment.Values[Variable] := Own;
    Result.Start;
  except
    Result.Free;
    raise;
  end;
end;

function StartTool(const Tool, Command: string; ProcessId: Integer; const Options: array of string): TTask;
begin
  Result := TTask.Create(Tool, False);
  try
    Result.Most := MaxInt;
    Result.Process.Parameters.Add(Command);
    Result.Process.Parameters.Add(IntToStr(ProcessId));
    Result.Process.Parameters.AddStrings(Options);
    Result.Start;
  except
    Result.Free;
    raise;
  end;
end;

// ---------------------------------------------------------------------------- folders

function MakeFolder(const Folder: string): Boolean;
begin
  {$ifdef UNIX}
  Result := fpMkdir(Folder, &700) = 0;
  {$else}
  Result := CreateDir(Folder);
  {$endif}
end;

function NewFolder: string;
const
  Attempts = 10000;
var
  Number: Integer;
begin
  for Number := 1 to Attempts do
  begin
    Result := Format('%slanemm-ide-%d-%d', [GetTempDir(False), GetProcessID, Number]);
    if MakeFolder(Result) then
      Exit;
  end;
  raise ELaneIde.Create(Result);
end;

procedure DropFolder(const Folder: string);
var
  Found: TSearchRec;
begin
  if Folder = '' then
    Exit; // not the root
  if FindFirst(IncludeTrailingPathDelimiter(Folder) + '*', faAnyFile, Found) = 0 then
    repeat
      DeleteFile(IncludeTrailingPathDelimiter(Folder) + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
  RemoveDir(Folder);
end;

end.
