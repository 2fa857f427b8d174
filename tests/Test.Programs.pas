/// Builds and runs the programs of tests/programs, for tests that check their output: with the options
/// of LaneMM.inc that the tests themselves were built with.
unit Test.Programs;

{$mode delphi}{$H+}

interface

uses
  Classes;

type
  /// A program or library, built once after each change of a source, and what its last run left.
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
    /// Fails with what it wrote unless its last run ended with Code.
    procedure EndedWith(Code: Integer; const What: string = 'exit code');
    /// Its path as reports name it; the drive Z of wine is the root folder.
    function ReportedPath: string;
    /// Its path as its command line has it, which wine writes anew.
    function CommandPath: string;
    /// The file of its system that takes all and keeps nothing.
    function NullDevice: string;
    /// The line, from 1, of the comment `// planted: What`; 0 when there is none.
    function PlantedLine(const What: string): Integer;
    /// The contents of the file of this program whose name ends with Suffix; '' without one.
    function Written(const Suffix: string): string;
    /// The paths of its files whose names end with Suffix, in order; the list stays until the next call.
    function FilesOf(const Suffix: string): TStringList;
    /// Whether it is built for Windows.
    function IsForWindows: Boolean;
    /// Writes a file into its folder; returns its path.
    function WriteFile(const FileName, Text: string): string;
    /// Deletes what it wrote.
    procedure Clean;
  strict private
    FileName, Name: string;
    Files: TStringList;
    function BuiltFile: string;
    procedure Start(const Executable, Settings: string; const Arguments: array of string);
  end;

/// Returns the program of tests/programs, which is built with these options when it is asked for first, and
/// stays.
function TestProgram(const Name: string; const Options: string = '-O1 -gl -Xs-'): TTestProgram;

/// Bytes of an address in the programs of Compiler: 4 or 8.
function WordSize: Integer;
/// The folder of this repository, with a slash.
function SourceFolder: string;
/// The compiler: that of the tests.
function Compiler: string;
/// Runs a command of the shell; Output is what it prints. Returns whether it succeeds. RunCommand would
/// use a processor as long as it waits.
function RunShell(const Command: string; out Output: string): Boolean;

implementation

uses
  SysUtils, StrUtils, Math, Process, fpcunit, Test.System, Test.Tools;

// The folder of the repository: the tests are built somewhere below it.
function SourceFolder: string;
begin
  Result := ExtractFilePath(ExpandFileName(ParamStr(0)));
  while not FileExists(Result + 'src/LaneMM.inc') do
  begin
    if Length(Result) <= 1 then
      raise Exception.Create('The sources are not around ' + ParamStr(0));
    Result := ExtractFilePath(ExcludeTrailingPathDelimiter(Result));
  end;
end;

function Compiler: string;
begin
  Result := GetEnvironmentVariable('FPC');
  if Result = '' then
    Result := 'fpc';
end;

{$ifdef MSWINDOWS}
// The processor that the test programs run on: they are built with the tests.
function TargetProcessor: string;
begin
  Result := {$I %FPCTARGETCPU%};
end;

function RunShell(const Command: string; out Output: string): Boolean;
begin
  raise Exception.Create('no shell: ' + Command);
end;
{$else}
var
  Processor: string;

function RunShell(const Command: string; out Output: string): Boolean;
var
  Child: TProcess;
begin
  Child := TProcess.Create(nil);
  try
    Child.Executable := '/bin/sh';
    Child.Parameters.Add('-c');
    Child.Parameters.Add(Command);
    Child.Options := [poUsePipes, poStderrToOutPut];
    Child.Execute;
    Output := ReadAll(Child.Output);
    Child.WaitOnExit;
    Result := Child.ExitStatus = 0;
  finally
    Child.Free;
  end;
end;

// The processor that the programs of Compiler run on, as the compiler names it.
function TargetProcessor: string;
begin
  if (Processor = '') and not RunShell('"' + Compiler + '" -iTP', Processor) then
    raise Exception.Create(Compiler + ' does not say its target');
  Processor := Trim(Processor);
  Result := Processor;
end;
{$endif}

function WordSize: Integer;
begin
  Result := IfThen(TargetProcessor = 'i386', 4, 8);
end;

type
  TBuildOption = record
    Name: string;
    IsOn: Boolean;
  end;

const
  // The options of LaneMM.inc, and whether this program was built with them.
  BuildOptions: array[0..4] of TBuildOption = (
    (Name: 'LANEMM_CHECKED'; IsOn: {$ifdef LANEMM_CHECKED} True {$else} False {$endif}),
    (Name: 'LANEMM_PUREPASCAL'; IsOn: {$ifdef LANEMM_PUREPASCAL} True {$else} False {$endif}),
    (Name: 'LANEMM_YIELD'; IsOn: {$ifdef LANEMM_YIELD} True {$else} False {$endif}),
    (Name: 'LANEMM_FAULTS'; IsOn: {$ifdef LANEMM_FAULTS} True {$else} False {$endif}),
    (Name: 'LANEMM_PAGES'; IsOn: {$ifdef LANEMM_PAGES} True {$else} False {$endif}));

// The option of LaneMM.inc as the compiler wants it: '' when this program was built without it.
function Flag(const Name: string): string;
var
  Option: TBuildOption;
begin
  for Option in BuildOptions do
    if Option.Name = Name then
      Exit(IfThen(Option.IsOn, ' -d' + Name));
  raise Exception.Create('BuildOptions of Test.Programs lacks ' + Name + ' of LaneMM.inc');
end;

// The flags of the build under test: the programs get them, too.
function BuildFlags: string;
const
  Entry = '//   ';
var
  Line: string;
begin
  Result := '';
  for Line in ReadText(SourceFolder + 'src/LaneMM.inc').Split([LineEnding]) do
    if StartsStr(Entry + 'LANEMM_', Line) then
      Result := Result + Flag(ExtractWord(1, Copy(Line, Length(Entry) + 1), [' ']));
end;

// The command that runs a program of another target; '' where the system does.
function Runner: string;
begin
  Result := GetEnvironmentVariable('RUN');
end;

function OutputOf(const Command: string): string;
begin
  if not RunShell(Command, Result) then
    raise Exception.Create(Command + ': ' + Result);
end;

// Deletes all that was built into Folder before the last change of a source. The compiler does not see
// that sources have changed which it finds by the unit paths of LaneMM.inc.
procedure Freshen(const Folder: string);
const
  Command = 'cd "%s" && if [ ! -e begun ] || [ -n "$(find "%ssrc" "%stests/programs" -newer begun | head -n 1)" ]; then'
    + ' find . -type f -delete; : > begun; fi';
begin
  ForceDirectories(Folder);
  OutputOf(Format(Command, [Folder, SourceFolder, SourceFolder]));
end;

// The options that its units are compiled with: one kind of line information, for the program itself says
// which kinds are read; no symbols of the program alone, and nothing that concerns linking. So many
// programs share the units of LaneMM, whose compilation takes most of the time.
function UnitOptions(const Options: string): string;
var
  Option: string;
begin
  Result := '';
  for Option in Options.Split([' '], TStringSplitOptions.ExcludeEmpty) do
    if MatchStr(Option, ['-g', '-gl', '-gw2', '-gw3', '-gw4']) then
    begin
      if Pos(' -gw2', Result) = 0 then
        Result := Result + ' -gw2';
    end
    else if not StartsStr('-X', Option) and not StartsStr('-Fa', Option)
      and (not StartsStr('-d', Option) or StartsStr('-dLANEMM_', Option)) then
      Result := Result + ' ' + Option;
end;

// Returns the executable file, which has an extension on Windows; of a library, that of the library.
function TTestProgram.BuiltFile: string;
const
  Forms: array[0..2] of string = ('%s%s.exe', '%slib%s.so', '%s%s.dll');
var
  Form: string;
begin
  Result := FileName;
  for Form in Forms do
    if FileExists(Format(Form, [Folder, Name])) then
      Result := Format(Form, [Folder, Name]);
end;

function TTestProgram.IsForWindows: Boolean;
begin
  Result := BuiltFile <> FileName;
end;

function TTestProgram.ReportedPath: string;
begin
  Result := IfThen(IsForWindows, 'Z:') + BuiltFile;
end;

function TTestProgram.CommandPath: string;
begin
  Result := BuiltFile;
  if IsForWindows then
    Result := '"' + ReportedPath.Replace('/', '\') + '"';
end;

function TTestProgram.NullDevice: string;
begin
  Result := IfThen(IsForWindows, 'NUL', '/dev/null');
end;

constructor TTestProgram.Create(const Name, Options: string);
const
  Compile = '"%s" -l- -v0 -ve -g- -CR- -Co- %s "-Fu%ssrc" "-Fu%stests/programs" "-FE%s" "-FU%s" "%s"';
var
  All, Units, UnitFolder, Path: string;
begin
  Self.Name := Name;
  All := Options + BuildFlags;
  // There -g and -gl alone write stabs, which LaneMM does not read.
  if (TargetProcessor = 'i386') and (Pos('-g', All) > 0) and (Pos('-gw', All) = 0) then
    All := All + ' -gw2';
  Path := SourceFolder + 'tests/programs/' + Name + '.lpr';
  Folder := ExtractFilePath(ParamStr(0)) + 'programs' + All.Replace(' ', '') + '/';
  FileName := Folder + Name;
  {$ifdef UNIX}
  Units := UnitOptions(All);
  UnitFolder := ExtractFilePath(ParamStr(0)) + 'units' + Units.Replace(' ', '').Replace('/', '-') + '/';
  Freshen(Folder);
  Freshen(UnitFolder);
  if not FileExists(UnitFolder + 'LaneMM.ppu') and not FileExists(UnitFolder + 'lanemm.ppu') then
    OutputOf(Format(Compile, [Compiler, Units, SourceFolder, SourceFolder, UnitFolder, UnitFolder,
      SourceFolder + 'src/LaneMM.pas']));
  if not FileExists(BuiltFile) then
    OutputOf(Format(Compile, [Compiler, All, SourceFolder, SourceFolder, Folder, UnitFolder, Path]));
  {$else} // tests that ran on this machine for its target have built it
  if not FileExists(BuiltFile) then
    raise Exception.Create('Not built: ' + BuiltFile);
  {$endif}
  Source := TStringList.Create;
  Source.LoadFromFile(Path);
  Files := TStringList.Create;
  Files.Sorted := True;
end;

destructor TTestProgram.Destroy;
begin
  Files.Free;
  Source.Free;
  inherited Destroy;
end;

function TTestProgram.FilesOf(const Suffix: string): TStringList;
var
  Found: TSearchRec;
begin
  Result := Files;
  Files.Clear;
  if FindFirst(FileName + '_*MemoryManager_*' + Suffix, 0, Found) = 0 then
    repeat
      Files.Add(Folder + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

procedure TTestProgram.Clean;
var
  Found: TSearchRec;
begin
  if FindFirst(FileName + '_*MemoryManager_*', 0, Found) = 0 then
    repeat
      DeleteFile(Folder + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
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
    if (Runner <> '') and (Executable = FileName) then
    begin
      Child.Executable := Runner;
      Child.Parameters.Add(FileName);
    end;
    Child.CurrentDirectory := Folder;
    for Argument in Arguments do
      Child.Parameters.Add(Argument);
    for Index := 1 to GetEnvironmentVariableCount do
      if not GetEnvironmentString(Index).StartsWith('LANEMM=') then
        Child.Environment.Add(GetEnvironmentString(Index));
    // First, so that a test may take it back.
    Child.Environment.Add('LANEMM=' + IfThen((Pos('leaks', Settings) > 0)
      or (Pos('debug', Settings) > 0), 'quiet,') + Settings);
    Child.Environment.Add('P=' + FileName);
    Child.Options := [poUsePipes];
    Child.Execute;
    Errors := ReadAll(Child.Stderr).Replace(#13#10, #10);
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
  Start('/bin/sh', Settings, ['-c', IfThen(Runner = '', Command,
    Command.Replace('"$P"', '"$RUN" "$P"'))]);
end;

procedure TTestProgram.EndedWith(Code: Integer; const What: string);
begin
  TAssert.AssertEquals(What + ', with `' + Errors + '`', Code, ExitCode);
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
begin
  Result := '';
  if FindFirst(FileName + '_MemoryManager_*' + Suffix, 0, Found) = 0 then
    Result := ReadText(Folder + Found.Name);
  FindClose(Found);
end;

function TTestProgram.WriteFile(const FileName, Text: string): string;
var
  Target: TFileStream;
begin
  Result := Folder + FileName;
  Target := TFileStream.Create(Result, fmCreate);
  Target.WriteBuffer(Pointer(Text)^, Length(Text));
  Target.Free;
end;

var
  // By name and options.
  Programs: TStringList;

function TestProgram(const Name, Options: string): TTestProgram;
var
  Index: Integer;
begin
  Index := Programs.IndexOf(Name + ' ' + Options);
  if Index < 0 then
    Index := Programs.AddObject(Name + ' ' + Options, TTestProgram.Create(Name, Options));
  Result := TTestProgram(Programs.Objects[Index]);
end;

initialization
  Programs := TStringList.Create;
  Programs.OwnsObjects := True;
finalization
  Programs.Free;
end.
