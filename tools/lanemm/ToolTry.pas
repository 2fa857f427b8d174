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
    Details: '  --rounds=N       so many runs of each, 7 by default; fewer than 5 prove nothing'#10
      + '  --with=NAME=LIB  one more manager: a library to preload, such as mi=/opt/libmimalloc.so'#10
      + '  --words=WORDS    LaneMM once more, with these settings of the variable LANEMM'#10
      + '  --only=NAMES     only these, with commas between'#10
      + '  --for=TIME       ends the program after TIME, by SIGTERM: a server'#10
      + '  --load=COMMAND   a line for the shell that runs beside it, once it rests; TRY_PID is the'#10
      + '                   number of the process. The time is that of the load. 30s without --for'#10
      + '  --exit=N         the exit code of the program when it is well, 0 by default'#10
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
  SysUtils, Classes, Math, StrUtils, fpJson, Programs, Targets, TryRuns, TryReports,
  ToolText;

const
  PreloadVariable = 'LD_PRELOAD';
  SettingsVariable = 'LANEMM';

type
  // What is tried.
  TTrial = class
  private
    Found: TProgram;
    All: TCandidates;
    Order: TRunOrder;
    Rounds: Integer;
    IsQuiet: Boolean;
    HasProgress: Boolean; // a line of progress stands on the terminal
    Runs: Integer;        // that have ended
    Started: TDateTime;
    Notes: TStringList;
    procedure Add(const Name, Preloaded, Settings: string);
    procedure AddPascal;
    procedure AddLibraries;
    procedure AddOptions(Arguments: TArguments);
    procedure KeepOnly(const Names: string);
    procedure CheckProgram;
    procedure ReadOptions(Arguments: TArguments);
    procedure ShowProgress(const Text: string);
    procedure ClearProgress;
    procedure RunOne(Candidate: TCandidate; Number: Integer);
    procedure RunRound(Number: Integer);
    procedure AddNotes;
    procedure NoteErrors(const Name, Errors: string);
  public
    constructor Create(Arguments: TArguments);
    destructor Destroy; override;
    procedure Run;
    procedure WriteText;
    procedure WriteJson;
  end;

const
  HeapName = 'Free Pascal''s heap';
  LibcName = 'glibc';
  LinkedName = 'as linked';
  OwnName = 'LaneMM';

// ---------------------------------------------------------------------------- what is tried

procedure TTrial.Add(const Name, Preloaded, Settings: string);
var
  Candidate: TCandidate;
begin
  for Candidate in All do
    if Candidate.Name = Name then
      raise ETool.Create(ecUsage, 'there are two managers `%s`', [Name]);
  Candidate := TCandidate.Create;
  Candidate.Name := Name;
  Candidate.Preloaded := Preloaded;
  Candidate.Settings := Settings;
  Insert(Candidate, All, Length(All));
end;

procedure TTrial.AddPascal;
begin
  Add(HeapName, '', 'off');
  Add(OwnName, '', '');
  Add(OwnName + ' huge=0', '', 'huge=0');
end;

procedure TTrial.AddLibraries;
type
  TKnown = record
    Name, Files: string;
  end;
const
  Known: array[0..5] of TKnown = (
    (Name: 'jemalloc'; Files: 'libjemalloc.so.2:libjemalloc.so'),
    (Name: 'mimalloc'; Files: 'libmimalloc.so.3:libmimalloc.so.2:libmimalloc.so'),
    (Name: 'tcmalloc'; Files: 'libtcmalloc_minimal.so.4:libtcmalloc.so.4:libtcmalloc.so'),
    (Name: 'tbb'; Files: 'libtbbmalloc_proxy.so.2:libtbbmalloc_proxy.so'),
    (Name: 'snmalloc'; Files: 'libsnmallocshim.so:libsnmalloc.so'),
    (Name: 'rpmalloc'; Files: 'librpmallocwrap.so:librpmalloc.so'));
var
  Each: TKnown;
  Missing: string;
begin
  if Found.LinkedWith <> '' then
  begin
    Add(LinkedName, '', '');
    Notes.Add(Format('The program loads %s, which `%s` is.', [Found.LinkedWith, LinkedName]));
  end;
  Add(LibcName, IfThen(Found.LinkedWith <> '', FindLibrary('libc.so.6')), '');
  Add(OwnName, LibraryPath, '');
  Missing := '';
  for Each in Known do
    if FindLibrary(Each.Files) <> '' then
      Add(Each.Name, FindLibrary(Each.Files), '')
    else
      Missing := Missing + ', ' + Each.Name;
  if Missing <> '' then
    Notes.Add('Not installed: ' + Missing.Substring(2) + '. --with=NAME=LIB adds a library.');
end;

procedure TTrial.AddOptions(Arguments: TArguments);
var
  Value: string;
  Place: Integer;
begin
  for Value in Arguments.All('with') do
  begin
    Place := Pos('=', Value);
    if (Place < 2) or not FileExists(Copy(Value, Place + 1)) then
      raise ETool.Create(ecUsage, '--with needs a name and the file of a library, as'
        + ' mi=/opt/libmimalloc.so, not `%s`', [Value]);
    if Found.HasLaneMM then
      raise ETool.Create(ecUsage, '%s has LaneMM inside, so it takes no other library; --words tries'
        + ' settings of LaneMM', [Found.Path]);
    Add(Copy(Value, 1, Place - 1), ExpandFileName(Copy(Value, Place + 1)), '');
  end;
  for Value in Arguments.All('words') do
    Add(OwnName + ' ' + Value, IfThen(Found.HasLaneMM, '', LibraryPath), Value);
end;

procedure TTrial.KeepOnly(const Names: string);
var
  Name: string;
  Index: Integer;
  Kept: TCandidates;
  Candidate: TCandidate;
begin
  Kept := nil;
  for Name in Names.Split([',']) do
  begin
    Index := High(All);
    while (Index >= 0) and (All[Index].Name <> Name) do
      Dec(Index);
    if Index < 0 then
      raise ETool.Create(ecUsage, 'there is no manager `%s` to try', [Name]);
  end;
  for Candidate in All do
    if IndexStr(Candidate.Name, Names.Split([','])) >= 0 then
      Insert(Candidate, Kept, Length(Kept))
    else
      Candidate.Free;
  All := Kept;
end;

// Raises ETool for a program that takes no other manager.
procedure TTrial.CheckProgram;
begin
  if Found.HasLaneMM then
    Exit;
  if Found.IsStatic then
    raise ETool.Create(ecNotOnLaneMM, '%s is static and has no LaneMM inside: it takes no other'
      + ' manager; link it without -static, or compile it with -FaLaneMM', [Found.Path]);
  if Found.IsOtherWidth then
    raise ETool.Create(ecNotOnLaneMM, '%s is a program of other words than the libraries of this'
      + ' machine, which it cannot load', [Found.Path]);
  if Found.HasMalloc then
    raise ETool.Create(ecNotOnLaneMM, '%s has a malloc of its own, so it takes no other manager',
      [Found.Path]);
  if Found.IsFreePascal then
    Notes.Add('The program was compiled by Free Pascal without LaneMM: only with cmem its blocks come'
      + ' from malloc. Compile it with -FaLaneMM to try LaneMM.');
end;

procedure TTrial.ReadOptions(Arguments: TArguments);
const
  DefaultForMs = 30000;
  MostRounds = 100;
begin
  Rounds := Arguments.Number('rounds', 7, 1);
  if Rounds > MostRounds then
    raise ETool.Create(ecUsage, '--rounds may be %d at most', [MostRounds]);
  IsQuiet := Arguments.Has('quiet');
  Order.Path := Found.Path;
  Order.Arguments := Arguments.Words;
  Order.OutputName := Arguments.Value('output', '/dev/null');
  Order.ExpectedExit := Arguments.Number('exit', 0, 0);
  Order.Load := Arguments.Value('load', '');
  Order.ForMs := Arguments.Milliseconds('for', IfThen(Order.Load <> '', DefaultForMs, 0));
end;

constructor TTrial.Create(Arguments: TArguments);
var
  Path: string;
begin
  inherited Create;
  Notes := TStringList.Create;
  for Path in [PreloadVariable, SettingsVariable] do
    if GetEnvironmentVariable(Path) <> '' then
      Notes.Add(Format('All runs have %s=%s, which stands in the environment.', [Path,
        GetEnvironmentVariable(Path)]));
  Path := ProgramPath(Arguments.Word(0, 'PROGRAM'));
  if Path = '' then
    raise ETool.Create(ecFailed, 'there is no program `%s`', [Arguments.Words[0]]);
  Found := ReadProgram(Path);
  CheckProgram;
  ReadOptions(Arguments);
  if Found.HasLaneMM then
    AddPascal
  else
    AddLibraries;
  AddOptions(Arguments);
  if Arguments.Has('only') then
    KeepOnly(Arguments.Value('only', ''));
  if Length(All) < 2 then
    raise ETool.Create(ecUsage, 'one manager alone cannot be compared');
end;

destructor TTrial.Destroy;
var
  Candidate: TCandidate;
begin
  for Candidate in All do
    Candidate.Free;
  Notes.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- runs

// Shows where the trial is, and how long it lasts: in place on a terminal.
procedure TTrial.ShowProgress(const Text: string);
begin
  if IsQuiet then
    Exit;
  ClearProgress;
  Write(StdErr, 'lanemm: ', Text);
  HasProgress := IsErrorTerminal;
  if not HasProgress then
    WriteLn(StdErr);
  Flush(StdErr);
end;

procedure TTrial.ClearProgress;
begin
  if HasProgress then
    Write(StdErr, #13#27'[K');
  HasProgress := False;
  Flush(StdErr);
end;

// What LaneMM says of its settings would be lost with the other errors.
procedure TTrial.NoteErrors(const Name, Errors: string);
var
  Line: string;
begin
  for Line in Errors.Split([#10]) do
    if Line.StartsWith('LaneMM: LANEMM') then
      Notes.Add(Name + ': ' + Line);
end;

// Runs the program once; round 0 is not counted.
procedure TTrial.RunOne(Candidate: TCandidate; Number: Integer);
const
  MostLines = 10;
var
  Result: TRunResult;
  Lines: TStringArray;
begin
  Order.Variables := OwnEnvironment;
  Order.Preloaded := Candidate.Preloaded;
  if Candidate.Preloaded <> '' then
    SetBefore(Order.Variables, PreloadVariable, Candidate.Preloaded, ':');
  if Candidate.Settings <> '' then
    SetBefore(Order.Variables, SettingsVariable, Candidate.Settings, ',');
  Result := RunOnce(Order);
  Order.Variables.Free;
  Inc(Runs);
  if Runs <= Length(All) then
    NoteErrors(Candidate.Name, Result.Errors);
  if (Result.Failure <> '') and (Candidate = All[0]) then
  begin
    ClearProgress;
    Lines := Result.Errors.Split([#10], TStringSplitOptions.ExcludeEmpty);
    Lines := Copy(Lines, Max(0, Length(Lines) - MostLines), MostLines);
    raise ETool.Create(ecFailed, '%s fails with %s: %s%s', [Found.Path, Candidate.Name,
      Result.Failure, Printable(string.Join(#10'  ', Concat([''], Lines)))]);
  end;
  if Result.Failure <> '' then
    Candidate.Failure := Result.Failure + IfThen(Number > 1, Format(', in round %d', [Number]));
  if Number > 0 then
    Candidate.Add(Result.Measures);
end;

// Runs the program under each once; each round begins with another one.
procedure TTrial.RunRound(Number: Integer);
var
  Index: Integer;
  Candidate: TCandidate;
  Left: string;
begin
  for Index := 0 to High(All) do
  begin
    Candidate := All[(Index + Number) mod Length(All)];
    if Candidate.Failure <> '' then
      Continue;
    Left := '';
    if Runs >= Length(All) then
      Left := Format(', %d s left', [Round((Now - Started) * SecsPerDay / Runs
        * ((Rounds - Number + 1) * Length(All) - Index))]);
    if IsErrorTerminal then
      ShowProgress(Format('round %d of %d, %s%s', [Number, Rounds, Candidate.Name, Left]))
    else if Index = 0 then
      ShowProgress(Format('round %d of %d%s', [Number, Rounds, Left]));
    RunOne(Candidate, Number);
  end;
end;

procedure TTrial.Run;
var
  Number, First, Rest: Integer;
  Candidate: TCandidate;
begin
  LeastPeak;
  Started := Now;
  First := Ord(Order.ForMs > 0); // a server begins with a start of its own anyway
  for Number := First to Rounds do
    RunRound(Number);
  ClearProgress;
  Rest := 0;
  for Candidate in All do
    Inc(Rest, Ord(Candidate.Failure = ''));
  AddNotes;
  if Rest < 2 then
    for Candidate in All do
      if Candidate.Failure <> '' then
        raise ETool.Create(ecFailed, 'nothing is left to compare: %s: %s', [Candidate.Name,
          Candidate.Failure]);
end;

// ---------------------------------------------------------------------------- results

// What the table cannot show.
procedure TTrial.AddNotes;
var
  Candidate: TCandidate;
  Value: Int64;
  IsSmall: Boolean;
begin
  IsSmall := False;
  for Candidate in All do
    for Value in Candidate.Values[mePeak] do
      IsSmall := IsSmall or (Value <= LeastPeak);
  if IsSmall then
    Notes.Add('A smaller peak is shown as ' + BytesText(LeastPeak) + '.');
end;

procedure TTrial.WriteText;
var
  Note: string;
begin
  WriteLn(Format('%s: medians of %d runs on each manager. Noise: half of the range, of the median.',
    [Found.Path, Rounds]));
  WriteLn;
  WriteCandidates(All);
  for Note in Notes do
    WriteLn(Note);
end;

procedure TTrial.WriteJson;
var
  Json: TJSONObject;
  Lines: TJSONArray;
  Note: string;
begin
  Json := TJSONObject.Create(['program', Found.Path, 'hasLaneMM', Found.HasLaneMM, 'rounds', Rounds]);
  AddCandidates(Json, All);
  Lines := TJSONArray.Create;
  for Note in Notes do
    Lines.Add(Note);
  Json.Add('notes', Lines);
  WriteLn(Json.FormatJSON);
  Json.Free;
end;

procedure RunTry(Arguments: TArguments);
var
  Trial: TTrial;
begin
  Trial := TTrial.Create(Arguments);
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
