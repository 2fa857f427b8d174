/// Trials: runs under several memory managers in turn, compared; of `lanemm try` and `lanemm replay`.
unit Trials;

{$mode delphi}{$H+}

interface

uses
  Classes, fpJson, ToolCommands, TryRuns, TryReports;

const
  /// Names of managers.
  HeapName = 'Free Pascal''s heap';
  LibcName = 'glibc';
  OwnName = 'LaneMM';

type
  /// What is tried.
  TTrial = class
  private
    Rounds: Integer;
    IsQuiet: Boolean;
    HasProgress: Boolean; // a line of progress stands on the terminal
    Runs: Integer;        // that have ended
    Started: TDateTime;
    procedure ShowProgress(const Text: string);
    procedure ClearProgress;
    procedure RunOne(Candidate: TCandidate; Number: Integer);
    procedure RunRound(Number: Integer);
    procedure AddNotes;
    procedure NoteErrors(const Name, Errors: string);
  protected
    Title: string;         //< what is run
    All: TCandidates;
    Order: TRunOrder;
    Notes: TStringList;
    procedure Add(const Name, Preloaded, Settings: string);
    /// Adds what a program with LaneMM inside can run on.
    procedure AddPascal;
    /// Adds what the system has as libraries; LaneMM's is named OwnLibrary. LibcPath: of a program that
    /// loads another one; empty: none.
    procedure AddLibraries(const OwnLibrary, LibcPath: string);
    /// Adds the libraries of --with.
    procedure AddWith(Arguments: TArguments);
    /// Adds LaneMM with the settings of --words: its library, or inside.
    procedure AddWords(Arguments: TArguments; IsLibrary: Boolean);
    /// Leaves out all but those with these names, with commas between.
    procedure KeepOnly(const Names: string);
    /// Reads --rounds and --quiet.
    procedure ReadRounds(Arguments: TArguments);
    /// Raises ETool unless there is something to compare.
    procedure CheckCount;
    /// Completes Order for a run.
    procedure Prepare(Candidate: TCandidate); virtual;
    /// Sets Found.Failure if a run that ended well did something else than it should.
    procedure CheckRun(var Found: TRunResult); virtual;
    /// Returns a JSON object of what was run.
    function Described: TJSONObject; virtual; abstract;
  public
    constructor Create;
    destructor Destroy; override;
    procedure Run;
    procedure WriteText; virtual;
    procedure WriteJson;
  end;

implementation

uses
  SysUtils, Math, StrUtils, Programs, Targets, ToolText;

const
  PreloadVariable = 'LD_PRELOAD';
  SettingsVariable = 'LANEMM';

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

procedure TTrial.AddLibraries(const OwnLibrary, LibcPath: string);
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
  Add(LibcName, LibcPath, '');
  Add(OwnLibrary, LibraryPath, '');
  Missing := '';
  for Each in Known do
    if FindLibrary(Each.Files) <> '' then
      Add(Each.Name, FindLibrary(Each.Files), '')
    else
      Missing := Missing + ', ' + Each.Name;
  if Missing <> '' then
    Notes.Add('Not installed: ' + Missing.Substring(2) + '. --with=NAME=LIB adds a library.');
end;

procedure TTrial.AddWith(Arguments: TArguments);
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
    Add(Copy(Value, 1, Place - 1), Preloadable(Copy(Value, Place + 1)), '');
  end;
end;

procedure TTrial.AddWords(Arguments: TArguments; IsLibrary: Boolean);
var
  Value, Preloaded: string;
begin
  Preloaded := '';
  for Value in Arguments.All('words') do
  begin
    if IsLibrary then
      Preloaded := LibraryPath;
    Add(OwnName + ' ' + Value, Preloaded, Value);
  end;
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

procedure TTrial.ReadRounds(Arguments: TArguments);
const
  MostRounds = 100;
begin
  Rounds := Arguments.Number('rounds', 7, 1);
  if Rounds > MostRounds then
    raise ETool.Create(ecUsage, '--rounds may be %d at most', [MostRounds]);
  IsQuiet := Arguments.Has('quiet');
end;

procedure TTrial.CheckCount;
begin
  if Length(All) < 2 then
    raise ETool.Create(ecUsage, 'one manager alone cannot be compared');
end;

constructor TTrial.Create;
var
  Name: string;
begin
  inherited Create;
  Notes := TStringList.Create;
  for Name in [PreloadVariable, SettingsVariable] do
    if GetEnvironmentVariable(Name) <> '' then
      Notes.Add(Format('All runs have %s=%s, from the environment.', [Name,
        GetEnvironmentVariable(Name)]));
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

// What LaneMM says of its settings would be lost with the other errors; so would that another manager, such as
// cmem, took its place: then all runs are runs of that one.
procedure TTrial.NoteErrors(const Name, Errors: string);
var
  Line: string;
begin
  for Line in Errors.Split([#10]) do
    if Line.StartsWith('LaneMM: LANEMM') or Line.StartsWith('LaneMM: another memory manager') then
      Notes.Add(Name + ': ' + Line);
end;

procedure TTrial.Prepare(Candidate: TCandidate);
begin
  Order.Variables := OwnEnvironment;
  Order.Preloaded := Candidate.Preloaded;
  if Candidate.Preloaded <> '' then
    SetBefore(Order.Variables, PreloadVariable, Candidate.Preloaded, ':');
  if Candidate.Settings <> '' then
    SetBefore(Order.Variables, SettingsVariable, Candidate.Settings, ',');
end;

procedure TTrial.CheckRun(var Found: TRunResult);
begin
end;

// Runs the program once; round 0 is not counted.
procedure TTrial.RunOne(Candidate: TCandidate; Number: Integer);
const
  MostLines = 10;
var
  Result: TRunResult;
  Lines: TStringArray;
  Index: Integer;
begin
  Prepare(Candidate);
  Result := RunOnce(Order);
  Order.Variables.Free;
  if Result.Failure = '' then
    CheckRun(Result);
  Inc(Runs);
  if Runs <= Length(All) then
    NoteErrors(Candidate.Name, Result.Errors);
  if (Result.Failure <> '') and (Candidate = All[0]) then
  begin
    ClearProgress;
    Lines := Result.Errors.Split([#10], TStringSplitOptions.ExcludeEmpty);
    Lines := Copy(Lines, Max(0, Length(Lines) - MostLines), MostLines);
    for Index := 0 to High(Lines) do
      Lines[Index] := Printable(Lines[Index]);
    raise ETool.Create(ecFailed, '%s fails with %s: %s%s', [Title, Candidate.Name,
      Result.Failure, string.Join(#10'  ', Concat([''], Lines))]);
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
    [Title, Rounds]));
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
  Json := Described;
  Json.Add('rounds', Rounds);
  AddCandidates(Json, All);
  Lines := TJSONArray.Create;
  for Note in Notes do
    Lines.Add(Note);
  Json.Add('notes', Lines);
  WriteLn(Json.FormatJSON);
  Json.Free;
end;

end.
