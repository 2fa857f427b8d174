/// What the tests of lanemm share: planted processes, and calls of lanemm.
unit Test.Lanemm.Tools;

{$mode delphi}{$H+}

interface

uses
  Classes, SysUtils, Process, fpJson, Test.Tools, Test.Cases;

type
  /// A process that runs until it is freed.
  TPlanted = class
  private
    Child: TProcess;
    Lines: TStringList;
  public
    /// Starts Command and reads what it prints up to `ready 1`. Settings are lines NAME=VALUE for
    /// its environment.
    constructor Create(const Command, Settings: string);
    /// Kills it.
    destructor Destroy; override;
    function Id: Integer;
    /// Returns the value of a line that it printed; raises an exception without one.
    function Value(const Name: string): string;
    function Number(const Name: string): Int64;
    /// Waits until it is stopped.
    procedure AwaitStop;
    function IsStopped: Boolean;
    /// Waits until it has ended, for ten seconds at most; returns whether it has.
    function AwaitEnd: Boolean;
    /// Sends it a signal.
    procedure Send(Signal: Integer);
    /// The lines that it printed.
    property Printed: TStringList read Lines;
  end;

  /// A test that calls lanemm. The words of its cases, see Test.Cases; all runs in the folder Built:
  ///
  ///   call ARGUMENTS       calls lanemm, which ends with exit code 0; the checks look at what it printed
  ///   fail CODE ARGUMENTS  the same with another exit code, and they look at stderr
  ///   errors               from here on they look at stderr, or again at what was `printed`
  ///   shell LINE           runs a line of the shell; they look at both outputs
  ///   file NAME TEXT       writes a file
  ///   needs WHAT: LINE     skips the test unless the line of the shell works
  ///
  /// Texts: {root} and {built} are folders with a slash, {version} is that of lanemm, {brace} and {esc} are
  /// signs.
  TLanemmTest = class(TCaseTest)
  protected
    /// Of the last call.
    ExitStatus: Integer;
    Printed, Errors: string;
    /// Of the last Ask or TakeAnswer; it is freed with the next one, or with the test.
    Answer: TJSONObject;
    procedure TearDown; override;
    procedure CheckExit(Code: Integer); override;
    procedure Act(const Word, Rest: string); override;
    function Value(const Name: string): string; override;
    /// Calls lanemm with these arguments, parted by blanks.
    procedure Call(const Arguments: string);
    /// The same, and fails unless its exit code is 0.
    procedure CallWell(const Arguments: string);
    /// The same; returns what it printed as JSON, which the caller frees.
    function CallForJson(const Arguments: string): TJSONObject;
    /// The same; it is the new Answer.
    function Ask(const Arguments: string): TJSONObject;
    /// Makes JSON the new Answer; returns it.
    function TakeAnswer(const Text: string): TJSONObject;
    /// Runs a line of a shell; returns what it printed to both outputs. ExitStatus is set.
    function Shell(const Line: string): string;
    /// Skips the test unless the command works: a container or a chroot may forbid it.
    procedure Needs(const Command, What: string);
    /// Fails unless a list of JSON has an object with Key = Value; returns it.
    function Item(Json: TJSONObject; const List, Key, Value: string): TJSONObject;
    /// Fails unless the exit code was Code and Part is in the error.
    procedure Refused(Code: Integer; const Part: string);
    /// The same of a call of lanemm.
    procedure Refuses(const Arguments: string; Code: Integer; const Part: string);
    /// Writes a file in the folder Built.
    procedure WriteText(const FileName, Text: string);
  end;

  /// The same for one planted program, which ends with the test. More words:
  ///
  ///   start COMMAND          starts the program, and waits until it is ready
  ///   stopped COMMAND        the same, and waits until it has stopped itself
  ///   await ARGUMENTS: TEXT  calls lanemm until it prints TEXT, for a minute
  ///
  /// Texts: {pid}; {value NAME} is what the program printed for NAME, {at NAME} that number as an address.
  TPlantedTest = class(TLanemmTest)
  protected
    Planted: TPlanted;
    /// Starts the program, in the place of an earlier one.
    procedure Start(const Command, Settings: string);
    /// The same, and waits until it has stopped itself.
    procedure StartAndStop(const Command, Settings: string);
    procedure Act(const Word, Rest: string); override;
    function Value(const Name: string): string; override;
    procedure TearDown; override;
  end;

/// The folders of the repository and of what the tests build, with a slash.
function Root: string;
function Built: string;

implementation

uses
  Test.System, BaseUnix, StrUtils, jsonparser, LaneMM.Version;

function Root: string;
begin
  Result := ExpandFileName(ExtractFilePath(ParamStr(0)) + '../../');
end;

function Built: string;
begin
  Result := Root + 'build/lanemm-tests/';
end;

// ---------------------------------------------------------------------------- TPlanted

constructor TPlanted.Create(const Command, Settings: string);
var
  Sign: AnsiChar;
  Line: string;
  Index: Integer;
begin
  inherited Create;
  Lines := TStringList.Create;
  Lines.NameValueSeparator := ' ';
  Child := TProcess.Create(nil);
  Child.Executable := '/bin/sh';
  Child.Parameters.Add('-c');
  Child.Parameters.Add('exec ' + Command);
  for Index := 1 to GetEnvironmentVariableCount do
    if not GetEnvironmentString(Index).StartsWith('LANEMM=') then
      Child.Environment.Add(GetEnvironmentString(Index));
  if Settings <> '' then
    Child.Environment.Add(Settings);
  Child.Options := [poUsePipes];
  Child.CurrentDirectory := Built;
  Child.Execute;
  Line := '';
  while (Lines.IndexOf('ready 1') < 0) and (Child.Output.Read(Sign, 1) = 1) do
    if Sign = #10 then
    begin
      Lines.Add(Line);
      Line := '';
    end
    else
      Line := Line + Sign;
  if Lines.IndexOf('ready 1') < 0 then
    raise Exception.Create(Command + ' has ended: ' + Lines.Text);
end;

destructor TPlanted.Destroy;
begin
  Send(SIGKILL);
  Child.WaitOnExit;
  Child.Free;
  Lines.Free;
  inherited Destroy;
end;

function TPlanted.Id: Integer;
begin
  Result := Child.ProcessID;
end;

function TPlanted.Value(const Name: string): string;
begin
  Result := Lines.Values[Name];
  if Result = '' then
    raise Exception.Create('nothing printed for ' + Name);
end;

function TPlanted.Number(const Name: string): Int64;
begin
  Result := StrToInt64(Value(Name));
end;

procedure TPlanted.Send(Signal: Integer);
begin
  fpKill(Id, Signal);
end;

function TPlanted.IsStopped: Boolean;
begin
  Result := Pos(') T ', ReadText(Format('/proc/%d/stat', [Id]))) > 0;
end;

procedure TPlanted.AwaitStop;
begin
  while not IsStopped do
    Sleep(1);
end;

function TPlanted.AwaitEnd: Boolean;
begin
  Result := Child.WaitOnExit(60000);
end;

// ---------------------------------------------------------------------------- TLanemmTest

procedure TLanemmTest.TearDown;
begin
  FreeAndNil(Answer);
  inherited TearDown;
end;

procedure TLanemmTest.Call(const Arguments: string);
var
  Child: TProcess;
  Argument: string;
begin
  Child := TProcess.Create(nil);
  Child.Executable := Root + 'build/lanemm';
  for Argument in Arguments.Split([' '], TStringSplitOptions.ExcludeEmpty) do
    Child.Parameters.Add(Argument);
  Child.CurrentDirectory := Built;
  Child.Options := [poUsePipes];
  Child.Execute;
  Printed := ReadAll(Child.Output);
  Errors := ReadAll(Child.Stderr);
  Child.WaitOnExit;
  ExitStatus := Child.ExitStatus;
  Child.Free;
end;

procedure TLanemmTest.CallWell(const Arguments: string);
begin
  Call(Arguments);
  Same(0, ExitStatus, Format('exit code of lanemm %s, which printed %s', [Arguments, Errors]));
end;

function TLanemmTest.CallForJson(const Arguments: string): TJSONObject;
begin
  CallWell(Arguments);
  Result := GetJSON(Printed) as TJSONObject;
end;

function TLanemmTest.Ask(const Arguments: string): TJSONObject;
begin
  CallWell(Arguments);
  Result := TakeAnswer(Printed);
end;

function TLanemmTest.TakeAnswer(const Text: string): TJSONObject;
begin
  FreeAndNil(Answer);
  Answer := GetJSON(Text) as TJSONObject;
  Result := Answer;
end;

procedure TLanemmTest.Needs(const Command, What: string);
begin
  Shell(Command);
  if ExitStatus <> 0 then
    Ignore('this machine allows no ' + What);
end;

function TLanemmTest.Shell(const Line: string): string;
var
  Child: TProcess;
begin
  Child := TProcess.Create(nil);
  Child.Executable := '/bin/sh';
  Child.Parameters.Add('-c');
  Child.Parameters.Add(Line);
  Child.CurrentDirectory := Built;
  Child.Options := [poUsePipes, poStderrToOutPut];
  Child.Execute;
  Result := ReadAll(Child.Output);
  Child.WaitOnExit;
  ExitStatus := Child.ExitStatus;
  Child.Free;
end;

function TLanemmTest.Item(Json: TJSONObject; const List, Key, Value: string): TJSONObject;
var
  Index: Integer;
  Items: TJSONArray;
begin
  Items := Json.Arrays[List];
  for Index := 0 to Items.Count - 1 do
    if Items.Objects[Index].Elements[Key].AsString = Value then
      Exit(Items.Objects[Index]);
  Fail(Format('%s has no %s with %s %s: %s', [List, List, Key, Value, Items.AsJSON]));
  Result := nil;
end;

procedure TLanemmTest.Refused(Code: Integer; const Part: string);
begin
  Has(Part, Errors);
  Same(Code, ExitStatus, 'exit code');
end;

procedure TLanemmTest.Refuses(const Arguments: string; Code: Integer; const Part: string);
begin
  Call(Arguments);
  Refused(Code, Part);
end;

procedure TLanemmTest.WriteText(const FileName, Text: string);
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.Text := Text;
  Lines.SaveToFile(Built + FileName);
  Lines.Free;
end;

procedure TLanemmTest.CheckExit(Code: Integer);
begin
  Same(Code, ExitStatus, 'exit code, with ' + Output);
end;

procedure TLanemmTest.Act(const Word, Rest: string);
var
  Place: Integer;
begin
  Place := Pos(' ', Rest + ' ');
  case IndexStr(Word, ['call', 'fail', 'errors', 'printed', 'shell', 'file', 'needs']) of
    0:
    begin
      CallWell(Rest);
      Output := Printed;
    end;
    1:
    begin
      Call(Copy(Rest, Place + 1));
      Output := Errors;
      CheckExit(StrToInt(Copy(Rest, 1, Place - 1)));
    end;
    2: Output := Errors;
    3: Output := Printed;
    4: Output := Shell(Rest);
    5: WriteText(Copy(Rest, 1, Place - 1), Copy(Rest, Place + 1));
    6: Needs(Copy(Rest, Pos(': ', Rest) + 2), Copy(Rest, 1, Pos(': ', Rest) - 1));
  else
    inherited Act(Word, Rest);
  end;
end;

function TLanemmTest.Value(const Name: string): string;
begin
  case IndexStr(Name, ['root', 'built', 'version', 'brace', 'esc']) of
    0: Result := Root;
    1: Result := Built;
    2: Result := ThisVersion;
    3: Result := '{';
    4: Result := #27;
  else
    Result := inherited Value(Name);
  end;
end;

// ---------------------------------------------------------------------------- TPlantedTest

procedure TPlantedTest.Act(const Word, Rest: string);
const
  MostLooks = 600;
var
  Looks, Place: Integer;
begin
  if (Word = 'start') or (Word = 'stopped') then
  begin
    Start(Rest, '');
    if Word = 'stopped' then
      Planted.AwaitStop;
  end
  else if Word = 'await' then
  begin
    Place := Pos(': ', Rest);
    Looks := 0;
    repeat
      Sleep(100 * Ord(Looks > 0));
      Act('call', Copy(Rest, 1, Place - 1));
      Inc(Looks);
    until (Looks = MostLooks) or (Pos(Copy(Rest, Place + 2), Output) > 0);
    Has(Copy(Rest, Place + 2), Output);
  end
  else
    inherited Act(Word, Rest);
end;

function TPlantedTest.Value(const Name: string): string;
begin
  if Name = 'pid' then
    Result := IntToStr(Planted.Id)
  else if StartsStr('value ', Name) then
    Result := Planted.Value(Copy(Name, 7))
  else if StartsStr('at ', Name) then
    Result := '$' + LowerCase(HexStr(Planted.Number(Copy(Name, 4)), 12))
  else
    Result := inherited Value(Name);
end;

procedure TPlantedTest.Start(const Command, Settings: string);
begin
  FreeAndNil(Planted);
  Planted := TPlanted.Create(Command, Settings);
end;

procedure TPlantedTest.StartAndStop(const Command, Settings: string);
begin
  Start(Command, Settings);
  Planted.AwaitStop;
end;

procedure TPlantedTest.TearDown;
begin
  FreeAndNil(Planted);
  inherited TearDown;
end;

end.
