/// `lanemm selftest`: shows that LaneMM works on this machine, and says which machine it is.
unit ToolSelfTest;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Runs all suites. Raises ETool, after the results, when one has failed.
procedure RunSelfTest(Arguments: TArguments);

const
  SelfTestCommand: TCommand = (
    Name: 'selftest';
    Usage: '[OPTIONS]';
    Help: 'Tests LaneMM on this machine, and prints a block for an issue or a table';
    Details: '  --quick  less work, for seconds instead of a minute'#10
      + '  --json   the same as JSON'#10#10
      + 'Each suite starts lanemm-replay: threads that free each other''s blocks, resizes, contents'#10
      + 'verified, memory back to the system, limits, fork, regions, planted errors and leaks, and'#10
      + 'a process that lanemm reads and asks. What the machine forbids is skipped, with the reason.'#10
      + 'Nothing is sent, no file is left. Results go to stdout, progress to stderr; exit code 1 when'#10
      + 'a suite has failed.'#10;
    Options: 'quick json';
    MostWords: 0;
    Run: RunSelfTest);

implementation

uses
  SysUtils, StrUtils, Classes, Process, fpJson, LaneMM.Version, LaneMM.StatusPage, Programs,
  Targets, HeapContents, HeapLeaks, MachineFacts, ToolMailbox, ToolOpen, ToolReplay, ToolText,
  TryRuns;

const
  SettingsVariable = 'LANEMM';
  PatienceMs = 120000;        // for a suite
  AnswerMs = 10000;
  NoProc = '/proc is not mounted: LaneMM reads no settings there, and lanemm no processes';
  SkippedCode = 'exit code 3';
  FoundCode = 'exit code 9';  // of debug:exit and leaks:exit
  Debug = ',dump=0,debug:exit=9,debug';
  LeastMemory = 512 * 1024 * 1024; // in a container, for the suite that returns memory
  QuickWork = 1;
  FullWork = 80;
  // SelfTests as backtraces name it, and what it plants.
  TracedUnit = 'SELFTESTS';
  KeptName = 'SelfTests.TKept';
  KeptCount = 1000;
  LeakedName = 'SelfTests.TLeaked';
  LeakedCount = 100;
  StaleCount = 10; // addresses of them that may still lie on a stack

type
  TOutcome = (ouPassed, ouFailed, ouSkipped);

  // What lanemm-replay does, and what is expected of it.
  TSuite = record
    Name: string;
    Part: string;      // of SelfTests
    Settings: string;  // each with a comma before it
    Ends: string;      // as TRunResult.Failure; empty: exit code 0
    Says: string;      // on the standard error output, with | between; empty: anything
  end;

  // A look at a running process; returns what is wrong, or nothing.
  TLook = function(Id: Integer): string;

  TResult = record
    Name: string;
    Outcome: TOutcome;
    Text: string;      // what was expected and seen, or the reason
    Seconds: Double;
  end;

  TSelfTest = class
  private
    Results: array of TResult;
    Counts: array[TOutcome] of Integer;
    Facts: TStringList; // NAME=VALUE
    Work: Integer;
    Started: QWord;     // the suite
    procedure Start(const Name: string);
    procedure Finish(Outcome: TOutcome; const Text: string);
    function StartPart(const Part, Settings, Preloaded: string; out Printed: string): TRunResult;
    procedure Judge(const Suite: TSuite; const Found: TRunResult; const Printed: string);
    procedure RunSuite(const Suite: TSuite);
    procedure LookAt(const Name: string; Look: TLook; Id: Integer);
    procedure LookFromOutside;
    procedure ReadFacts;
    function Title: string;
    procedure WriteText;
    procedure WriteJson;
  public
    constructor Create(IsQuick: Boolean);
    destructor Destroy; override;
    procedure Run;
  end;

const
  OutcomeNames: array[TOutcome] of string = ('passed', 'failed', 'skipped');

  Suites: array[0..15] of TSuite = (
    (Name: 'blocks and resizes'; Part: 'blocks'; Settings: ''; Ends: ''; Says: ''),
    (Name: 'threads'; Part: 'threads'; Settings: ''; Ends: ''; Says: ''),
    (Name: 'threads, hardened blocks'; Part: 'contents'; Settings: ',hard'; Ends: ''; Says: ''),
    (Name: 'threads, debug mode'; Part: 'contents'; Settings: Debug + ',leaks:exit=9'; Ends: '';
      Says: 'LaneMM: no leaks and no memory errors'),
    (Name: 'C library'; Part: 'malloc'; Settings: ',off'; Ends: ''; Says: ''),
    (Name: 'fork beside threads'; Part: 'fork'; Settings: ''; Ends: ''; Says: ''),
    (Name: 'memory back to the system'; Part: 'return'; Settings: ''; Ends: ''; Says: ''),
    (Name: 'memory limit'; Part: 'limit'; Settings: ',limit=64M'; Ends: '';
      Says: 'Memory limit reached'),
    (Name: 'regions'; Part: 'regions'; Settings: ''; Ends: '';
      Says: 'Limit of the region "self test" reached'),
    (Name: 'overrun'; Part: 'overrun'; Settings: Debug; Ends: FoundCode;
      Says: 'Heap block overrun: bytes past the end were modified'),
    (Name: 'write after free'; Part: 'write'; Settings: Debug; Ends: FoundCode;
      Says: 'Write after free: bytes of a freed block were modified'),
    (Name: 'double free'; Part: 'twice'; Settings: Debug; Ends: FoundCode; Says: 'Double free'),
    (Name: 'freed object'; Part: 'freed'; Settings: Debug; Ends: FoundCode;
      Says: 'Use after free: virtual method|' + KeptName),
    (Name: 'guard pages'; Part: 'guard'; Settings: Debug + ',guard=pages'; Ends: FoundCode;
      Says: 'Heap block overrun: |at offset 112 of a block of 112 bytes'),
    (Name: 'leaks at the end'; Part: 'leak'; Settings: ',leaks:exit=9'; Ends: FoundCode;
      Says: '100 x ' + LeakedName),
    (Name: 'names in backtraces'; Part: 'overrun'; Settings: Debug; Ends: FoundCode;
      Says: TracedUnit + '.MISTAKE|' + TracedUnit + '.RUNNAMED|' + TracedUnit + '.RUNPART'));

// ---------------------------------------------------------------------------- suites

constructor TSelfTest.Create(IsQuick: Boolean);
begin
  inherited Create;
  Facts := TStringList.Create;
  Work := FullWork;
  if IsQuick then
    Work := QuickWork;
end;

destructor TSelfTest.Destroy;
begin
  Facts.Free;
  inherited Destroy;
end;

procedure TSelfTest.Start(const Name: string);
begin
  SetLength(Results, Length(Results) + 1);
  Results[High(Results)].Name := Name;
  Write(StdErr, Left(Name, 28));
  Flush(StdErr);
  Started := GetTickCount64;
end;

procedure TSelfTest.Finish(Outcome: TOutcome; const Text: string);
var
  Each: ^TResult;
begin
  Each := @Results[High(Results)];
  Each^.Outcome := Outcome;
  Each^.Text := Trim(Text);
  Each^.Seconds := (GetTickCount64 - Started) / 1000;
  Inc(Counts[Outcome]);
  WriteLn(StdErr, OutcomeNames[Outcome]);
  Flush(StdErr);
end;

// Starts lanemm-replay and waits for its end.
function TSelfTest.StartPart(const Part, Settings, Preloaded: string;
  out Printed: string): TRunResult;
var
  Order: TRunOrder;
begin
  Order := Default(TRunOrder);
  Order.Path := ReplayerPath;
  Order.OutputName := NewOutput;
  Order.ForMs := PatienceMs;
  Order.Preloaded := Preloaded;
  Order.Arguments := TStringList.Create;
  Order.Variables := OwnEnvironment;
  try
    Order.Arguments.AddStrings([ReplayerName, 'selftest', Part, IntToStr(Work)]);
    Order.Variables.Values[SettingsVariable] := 'event=all:stderr' + Settings;
    if Preloaded <> '' then
      SetBefore(Order.Variables, 'LD_PRELOAD', Preloaded, ':');
    Result := RunOnce(Order);
    if Result.Measures[meTime] = NotMeasured then
      Result.Failure := Format('no end after %d s', [PatienceMs div 1000]);
    Printed := Trim(ReadSmallFile(Order.OutputName));
  finally
    DeleteFile(Order.OutputName);
    Order.Variables.Free;
    Order.Arguments.Free;
  end;
end;

procedure TSelfTest.Judge(const Suite: TSuite; const Found: TRunResult; const Printed: string);
var
  Part, Wrong: string;
  IsStripped: Boolean;
begin
  Wrong := '';
  IsStripped := False;
  if Found.Failure <> Suite.Ends then
    Wrong := Format('expected %s, seen %s'#10, [IfThen(Suite.Ends = '', 'exit code 0', Suite.Ends),
      IfThen(Found.Failure = '', 'exit code 0', Found.Failure)]);
  for Part in Suite.Says.Split(['|'], TStringSplitOptions.ExcludeEmpty) do
    if Pos(Part, Found.Errors) > 0 then
      Continue
    else if Part.StartsWith(TracedUnit) and (Pos(ReplayerName + '+0x', Found.Errors) > 0) then
      IsStripped := True
    else
      Wrong := Format('%sexpected `%s` on stderr'#10, [Wrong, Part]);
  if Found.Failure = SkippedCode then
    Finish(ouSkipped, Printed)
  else if Wrong <> '' then
    Finish(ouFailed, Format('%s%s'#10'%s', [Wrong, Printed, Found.Errors]))
  else if IsStripped then
    Finish(ouSkipped, ReplayerName + ' has no table of symbols')
  else
    Finish(ouPassed, '');
end;

function HasProc: Boolean;
begin
  Result := DirectoryExists('/proc/self');
end;

procedure TSelfTest.RunSuite(const Suite: TSuite);
var
  Preloaded, Printed: string;
  Found: TRunResult;
begin
  Start(Suite.Name);
  Preloaded := '';
  if Suite.Part = 'malloc' then
  try
    Preloaded := LibraryPath;
  except
    on Error: ETool do
    begin
      Finish(ouSkipped, Error.Message);
      Exit;
    end;
  end;
  if (Suite.Settings <> '') and not HasProc then
    Finish(ouSkipped, NoProc)
  else if (Suite.Part = 'return') and (MemoryLimit > 0) and (MemoryLimit < LeastMemory) then
    Finish(ouSkipped, 'it needs 512 MB, and the container allows less')
  else
  begin
    Found := StartPart(Suite.Part, Suite.Settings, Preloaded, Printed);
    Judge(Suite, Found, Printed);
  end;
end;

// ---------------------------------------------------------------------------- from outside

function OpenChild(Id: Integer): TOpened;
var
  Arguments: TArguments;
begin
  Arguments := TArguments.Create;
  try
    Arguments.Words.Add(IntToStr(Id));
    Result := OpenProcess(Arguments);
  finally
    Arguments.Free;
  end;
end;

function LookForObjects(Id: Integer): string;
var
  Opened: TOpened;
  Group: TContentsGroup;
  Seen: UInt64;
begin
  Seen := 0;
  Opened := OpenChild(Id);
  try
    for Group in GroupContents(Opened.Image) do
      if Group.Name = KeptName then
        Seen := Group.Blocks;
  finally
    Opened.Free;
  end;
  Result := '';
  if Seen <> KeptCount then
    Result := Format('expected %d objects of %s, seen %d', [KeptCount, KeptName, Seen]);
end;

function LookForLeaks(Id: Integer): string;
var
  Opened: TOpened;
  Group: TLeakGroup;
  Seen: UInt64;
begin
  Seen := 0;
  Opened := OpenChild(Id);
  try
    for Group in FindLeaks(Opened.Image, nil).Groups do
      if Group.Name = LeakedName then
        Seen := Group.Blocks;
  finally
    Opened.Free;
  end;
  Result := '';
  if (Seen > LeakedCount) or (Seen < LeakedCount - StaleCount) then
    Result := Format('expected %d leaks of %s, give or take %d on its stack, seen %d', [LeakedCount,
      LeakedName, StaleCount, Seen]);
end;

function AskForStatus(Id: Integer): string;
var
  Mailbox: TMailbox;
begin
  Mailbox := TMailbox.Create(Id);
  try
    Mailbox.Ask('status', AnswerMs);
    Result := '';
    if (Mailbox.Outcome <> poDone) or (Pos('used', Mailbox.Answer) = 0) then
      Result := 'expected the status of the process, seen ' + Mailbox.PrintableAnswer;
  finally
    Mailbox.Free;
  end;
end;

procedure TSelfTest.LookAt(const Name: string; Look: TLook; Id: Integer);
var
  Wrong: string;
begin
  Start(Name);
  if not HasProc then
  begin
    Finish(ouSkipped, NoProc);
    Exit;
  end;
  try
    Wrong := Look(Id);
    Finish(TOutcome(Ord(Wrong <> '')), Wrong); // failed, or passed
  except
    on Error: ETool do
      if Error.Code = ecNotPermitted then
        Finish(ouSkipped, Error.Message)
      else
        Finish(ouFailed, Error.Message);
  end;
end;

procedure TSelfTest.LookFromOutside;
var
  Child: TProcess;
  Ready: AnsiChar; // the first character that it prints
begin
  Child := TProcess.Create(nil);
  try
    Child.Executable := ReplayerPath;
    Child.Parameters.AddStrings(['selftest', 'live', '1']);
    Child.Environment.AddStrings([SettingsVariable + '=event=all:stderr']);
    Child.Options := [poUsePipes];
    Child.Execute;
    Child.Output.Read(Ready, SizeOf(Ready));
    LookAt('read from outside', LookForObjects, Child.ProcessID);
    LookAt('leaks seen from outside', LookForLeaks, Child.ProcessID);
    LookAt('requests from outside', AskForStatus, Child.ProcessID);
    Child.Terminate(0);
    Child.WaitOnExit;
  finally
    Child.Free;
  end;
end;

procedure TSelfTest.Run;
var
  Suite: TSuite;
begin
  ReadFacts;
  for Suite in Suites do
    RunSuite(Suite);
  LookFromOutside;
end;

// ---------------------------------------------------------------------------- results

// Adds what lanemm-replay, which has a C library, says of it.
procedure TSelfTest.ReadFacts;
var
  Printed: string;
  Lines: TStringArray;
begin
  if StartPart('machine', '', '', Printed).Failure <> '' then
    Printed := 'unknown';
  Lines := (Printed + #10#10).Split([#10]);
  if (Lines[0] <> ThisVersion) and (Lines[0] <> 'unknown') then
    raise ETool.Create(ecOtherVersion, '%s has LaneMM %s, this is %s', [ReplayerPath, Lines[0],
      ThisVersion]);
  Facts.Values['built by'] := Format('Free Pascal %s for %s-%s', [{$I %FPCVERSION%},
    {$I %FPCTARGETCPU%}, LowerCase({$I %FPCTARGETOS%})]);
  Facts.Values['C library'] := Lines[1];
  Facts.Values['pages'] := Lines[2] + ', ' + PagesText;
  AddMachine(Facts);
end;

function TSelfTest.Title: string;
begin
  Result := Format('LaneMM %s: %d passed, %d failed, %d skipped', [ThisVersion, Counts[ouPassed],
    Counts[ouFailed], Counts[ouSkipped]]);
end;

procedure TSelfTest.WriteText;
var
  Each: TResult;
  Line: string;
  Index: Integer;
begin
  WriteLn(Title);
  WriteLn;
  for Index := 0 to Facts.Count - 1 do
    WriteLn(Left(Facts.Names[Index], 12), Facts.ValueFromIndex[Index]);
  WriteLn;
  for Each in Results do
  begin
    WriteLn(Left(OutcomeNames[Each.Outcome], 8), Each.Seconds:7:2, ' s  ', Each.Name);
    for Line in Each.Text.Split([#10], TStringSplitOptions.ExcludeEmpty) do
      WriteLn('':19, Line);
  end;
  WriteLn;
  WriteLn('| ', ThisVersion, ', ', FormatDateTime('yyyy-mm-dd', Now), ' | ', Facts.Values['machine'], ' | ', Facts.Values['system'], ', ',
    Facts.Values['C library'], ' | ', Facts.Values['built by'], ' | ', Facts.Values['pages'], ' | ',
    Title.Split([': '])[1], ' |');
end;

procedure TSelfTest.WriteJson;
var
  Json, Item: TJSONObject;
  List: TJSONArray;
  Each: TResult;
  Outcome: TOutcome;
  Index: Integer;
begin
  Json := TJSONObject.Create(['version', ThisVersion]);
  for Outcome in TOutcome do
    Json.Add(OutcomeNames[Outcome], Counts[Outcome]);
  Item := TJSONObject.Create;
  for Index := 0 to Facts.Count - 1 do
    Item.Add(Facts.Names[Index], Facts.ValueFromIndex[Index]);
  Json.Add('machine', Item);
  List := TJSONArray.Create;
  for Each in Results do
    List.Add(TJSONObject.Create(['name', Each.Name, 'outcome', OutcomeNames[Each.Outcome],
      'seconds', Each.Seconds, 'text', Each.Text]));
  Json.Add('suites', List);
  WriteLn(Json.FormatJSON);
  Json.Free;
end;

procedure RunSelfTest(Arguments: TArguments);
var
  Test: TSelfTest;
begin
  Test := TSelfTest.Create(Arguments.Has('quick'));
  try
    Test.Run;
    if Arguments.Has('json') then
      Test.WriteJson
    else
      Test.WriteText;
    if Test.Counts[ouFailed] > 0 then
      raise ETool.Create(ecFailed, Test.Title);
  finally
    Test.Free;
  end;
end;

end.
