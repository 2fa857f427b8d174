/// `lanemm replay`: repeats the calls that a program made, under several memory managers.
unit ToolReplay;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Reads the recording, and repeats it under each manager in turn.
procedure RunReplay(Arguments: TArguments);
/// Returns the path of lanemm-replay; raises ETool without it.
function ReplayerPath: string;

const
  /// The program that lanemm starts on LaneMM.
  ReplayerName = 'lanemm-replay';

  ReplayCommand: TCommand = (
    Name: 'replay';
    Usage: 'FILE [OPTIONS]';
    Help: 'Repeats the calls of a recorded program under memory managers';
    Details: '  --managers=NAMES only these, with commas between: the names of the table'#10
      + '  --rounds=N       runs of each, 7 by default; fewer than 5 prove nothing'#10
      + '  --with=NAME=LIB  one more manager: a library to preload, such as mi=/opt/libmimalloc.so'#10
      + '  --words=WORDS    LaneMM once more, with these settings of the variable LANEMM'#10
      + '  --plan=FILE      writes the calls to FILE, with numbers in place of addresses, and ends'#10
      + '  --json           the numbers of all runs, medians and conclusions as JSON'#10
      + '  --quiet          no progress on stderr'#10#10
      + 'LANEMM=record=FILE records a program, in Pascal or on liblanemm.so. One in Pascal is repeated'#10
      + 'on Free Pascal''s heap, on LaneMM, and on LaneMM without huge pages; with --managers also on'#10
      + 'glibc, liblanemm and the libraries of `lanemm try`, as is one in C. Threads take turns in the'#10
      + 'order of the recording; the blocks are touched. docs/try.md has more.'#10;
    Options: 'managers: rounds: with: words: plan: json quiet';
    MostWords: 1;
    Run: RunReplay);

implementation

uses
  SysUtils, Classes, fpJson, Programs, Recordings, Targets, ToolText, Trials, TryRuns, TryReports;

const
  LibraryName = 'liblanemm';

type
  // A recording.
  TReplay = class(TTrial)
  private
    Plan: TFileStream;   // without a name; the runs open it by its number
    Recorded: TRecorded;
    function HasAll(const Names: string): Boolean;
    procedure AddManagers(Arguments: TArguments);
    procedure AddOrder;
    function TheEnd: string;
  protected
    procedure Prepare(Candidate: TCandidate); override;
    procedure CheckRun(var Found: TRunResult); override;
    function Described: TJSONObject; override;
  public
    constructor Create(Arguments: TArguments);
    destructor Destroy; override;
    procedure WritePlan(const Name: string);
    procedure WriteText; override;
  end;

function ReplayerPath: string;
const
  Folders: array[0..1] of string = ('', '../libexec/');
var
  Folder: string;
begin
  for Folder in Folders do
  begin
    Result := ExpandFileName(OwnFolder + Folder + ReplayerName);
    if FileExists(Result) then
      Exit;
  end;
  raise ETool.Create(ecFailed, 'the program %s is missing; it stands beside lanemm, or in ../libexec',
    [ReplayerName]);
end;

// Marks those from number First on as malloc's. Free Pascal's heap serves the rest of the program.
procedure MarkMalloc(const All: TCandidates; First: Integer);
var
  Index: Integer;
begin
  for Index := First to High(All) do
  begin
    All[Index].IsMalloc := True;
    if All[Index].Settings = '' then
      All[Index].Settings := 'off';
  end;
end;

// Returns whether the names, with commas between, are those of the managers so far.
function TReplay.HasAll(const Names: string): Boolean;
var
  Name: string;
  Candidate: TCandidate;
  Count: Integer;
begin
  Count := 0;
  for Name in Names.Split([',']) do
    for Candidate in All do
      Inc(Count, Ord(Candidate.Name = Name));
  Result := Count = Length(Names.Split([',']));
end;

procedure TReplay.AddManagers(Arguments: TArguments);
var
  First: Integer;
begin
  if Recorded.IsMalloc then
  begin
    AddLibraries(OwnName, '');
    MarkMalloc(All, 0);
  end
  else
    AddPascal;
  First := Length(All);
  AddWith(Arguments);
  MarkMalloc(All, First);
  First := Length(All);
  AddWords(Arguments, Recorded.IsMalloc);
  if Recorded.IsMalloc then
    MarkMalloc(All, First);
  if Arguments.Has('managers') and not Recorded.IsMalloc
    and not HasAll(Arguments.Value('managers', '')) then
  begin
    First := Length(All);
    AddLibraries(LibraryName, '');
    MarkMalloc(All, First);
  end;
  if Arguments.Has('managers') then
    KeepOnly(Arguments.Value('managers', ''));
  CheckCount;
end;

procedure TReplay.AddOrder;
begin
  Order.Path := ReplayerPath;
  Order.Arguments := TStringList.Create;
  Order.OutputName := NewOutput;
end;

// Returns a file without a name.
function NewFile: TFileStream;
var
  Name: string;
begin
  Name := NewOutput;
  Result := TFileStream.Create(Name, fmOpenReadWrite or fmShareDenyNone);
  DeleteFile(Name);
end;

constructor TReplay.Create(Arguments: TArguments);
begin
  inherited Create;
  Title := Arguments.Word(0, 'FILE');
  Plan := NewFile;
  Recorded := ReadRecording(Title, Plan);
  if Recorded.Counts.Allocations = 0 then
    raise ETool.Create(ecDamaged, '%s has no calls', [Title]);
  if Arguments.Has('plan') then
    Exit;
  ReadRounds(Arguments);
  AddManagers(Arguments);
  AddOrder;
end;

// Writes the plan to a file, only now that it is whole: the file may be the recording.
procedure TReplay.WritePlan(const Name: string);
var
  Written: TFileStream;
begin
  Written := TFileStream.Create(Name, fmCreate);
  try
    Written.CopyFrom(Plan, 0);
  finally
    Written.Free;
  end;
end;

destructor TReplay.Destroy;
begin
  if Order.OutputName <> '' then
    DeleteFile(Order.OutputName);
  Order.Arguments.Free;
  Plan.Free;
  inherited Destroy;
end;

procedure TReplay.Prepare(Candidate: TCandidate);
const
  Calls: array[Boolean] of string = ('pascal', 'malloc');
begin
  inherited Prepare(Candidate);
  Order.Arguments.Clear;
  Order.Arguments.AddStrings([ReplayerName, Calls[Candidate.IsMalloc],
    Format('/proc/self/fd/%d', [Plan.Handle]), IntToStr(Recorded.Slots), IntToStr(Recorded.Threads)]);
end;

procedure TReplay.CheckRun(var Found: TRunResult);
var
  Printed: string;
begin
  Printed := Trim(ReadSmallFile(Order.OutputName));
  if Printed <> Recorded.Counts.Text then
    Found.Failure := 'it made other calls: ' + Printed;
end;

// Returns a sentence about the end of the recording; empty for one that is whole.
function TReplay.TheEnd: string;
begin
  Result := '';
  if not Recorded.HasEnd then
    Result := 'The file has no end: the program was killed, or still runs. What is whole is repeated.'
  else if Recorded.HasLimit then
    Result := 'The recording ended at its limit, record:most.';
end;

procedure TReplay.WriteText;
begin
  WriteLn(Format('%s: %s', [Title, Recorded.Counts.Text]));
  WriteLn(Format('Threads: %d. At most %s blocks with %s at a time.', [Recorded.Threads,
    Grouped(Recorded.Slots), BytesText(Recorded.MostBytes)]));
  if Recorded.Unknown > 0 then
    Notes.Add(Format('Calls for blocks from before the recording: %d; their frees are left out, their'
      + ' resizes are allocations.', [Recorded.Unknown]));
  if TheEnd <> '' then
    Notes.Add(TheEnd);
  inherited WriteText;
end;

function TReplay.Described: TJSONObject;
begin
  Result := TJSONObject.Create(['recording', Title, 'ofMalloc', Recorded.IsMalloc,
    'allocations', Recorded.Counts.Allocations, 'frees', Recorded.Counts.Frees,
    'resizes', Recorded.Counts.Resizes, 'bytes', Recorded.Counts.Bytes,
    'threads', Recorded.Threads, 'mostBlocks', Recorded.Slots, 'mostBytes', Recorded.MostBytes,
    'unknownBlocks', Recorded.Unknown, 'hasEnd', Recorded.HasEnd, 'hasLimit', Recorded.HasLimit]);
end;

procedure RunReplay(Arguments: TArguments);
var
  Replay: TReplay;
begin
  Replay := TReplay.Create(Arguments);
  try
    if Arguments.Has('plan') then
    begin
      Replay.WritePlan(Arguments.Value('plan', ''));
      WriteLn(Replay.Recorded.Counts.Text);
    end
    else
    begin
      Replay.Run;
      if Arguments.Has('json') then
        Replay.WriteJson
      else
        Replay.WriteText;
    end;
  finally
    Replay.Free;
  end;
end;

end.
