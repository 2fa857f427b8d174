/// Lets every kind of system call fail in a program: the Nth time, and from then on, each N by
/// itself. A run passes when the program ends with exit code 0; where calls go on failing, also with
/// run-time error 203: out of memory.
program RunFaults;

{$mode delphi}{$H+}

uses
  cthreads, SysUtils, StrUtils, Classes, BaseUnix, Unix;

const
  Usage = 'RunFaults [--short] [--plain] [--call=N] [--first=N] PROGRAM'#10
    + '  --short    not all N, but 1, 3, 7, 15, ...'#10
    + '  --plain    only without settings'#10
    + '  --call=N   only the system call with this number'#10
    + '  --first=N  only this N';
  Patience = 60;         // seconds after which a program hangs
  LastFirst = 200;       // the highest N
  Lasting = 1000000000;  // calls that fail from the Nth on
  OutOfMemory = 203;
  Unhandled = 217;       // the run-time library found no memory to raise that error
  // What LaneMM is set to: each of its rooms makes calls of its own.
  SettingsCount = 5;
  AllSettings: array[1..SettingsCount] of string = ('', 'debug,leaks,guard=pages,trace,trace:most=5,mixes',
    'profile,html,rate=10K,contention,least=1,growth', 'leaks,stacks,leaks:format=json,guard=sample:1000',
    'limit=100M,reserve=4M,huge=1M,erase=return');

  NeverFail = [39, 186]; // the numbers of the process and of the thread

var
  PassedCount, FailedCount: Integer;
  Folder, TheProgram: string;
  IsShort: Boolean = False;

// The value of --Name=N, or 0.
function Option(const Name: string): Integer;
var
  Index: Integer;
begin
  Result := 0;
  for Index := 1 to ParamCount do
    if StartsStr('--' + Name + '=', ParamStr(Index)) then
      Result := StrToInt(Copy(ParamStr(Index), Length(Name) + 4, MaxInt));
end;

// The error that the system gives for a call.
function ErrorOf(Call: Integer): Integer;
begin
  case Call of
    0: Result := ESysEIO;
    1: Result := ESysENOSPC;
    9..11, 25, 28: Result := ESysENOMEM;
    202: Result := ESysEINTR;
    257: Result := ESysEMFILE;
  else
    Result := ESysEPERM;
  end;
end;

function ReadText(const FileName: string): string;
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.LoadFromFile(FileName);
  Result := Lines.Text;
  Lines.Free;
end;

// Runs the program with a plan and settings; its exit code, or 1000 and the signal that ended it.
function Run(const Plan, Settings, Argument: string): Integer;
var
  Command: string;
  Status: LongInt;
begin
  Command := Format('ulimit -c 0; exec timeout -s ALRM %d env LANEMM_FAULT=%s ''LANEMM=%s,log=%s/'' '
    + '''%s'' %s > ''%s/out'' 2> ''%s/errors''',
    [Patience, Plan, Settings, Folder, TheProgram, Argument, Folder, Folder]);
  Status := FpSystem(Command);
  if WIfSignaled(Status) then
    Exit(1000 + WTermSig(Status));
  Result := WExitStatus(Status);
  if Result > Unhandled then // a shell or timeout passes a signal on so
    Result := 1000 + Result;
end;

function MayEnd(Code, Count: Integer): Boolean;
begin
  Result := (Code = 0) or ((Count > 1) and ((Code = OutOfMemory) or (Code = Unhandled)));
end;

procedure RunCase(const Settings: string; Call, First, Count: Integer);
var
  Plan: string;
  Code: Integer;
begin
  Plan := Format('%d,%d,%d,%d', [Call, First, Count, ErrorOf(Call)]);
  Code := Run(Plan, Settings, '');
  if MayEnd(Code, Count) then
    Inc(PassedCount)
  else
  begin
    Inc(FailedCount);
    WriteLn(Format('LANEMM_FAULT=%s LANEMM=%s %s: exit code %d',
      [Plan, Settings, ExtractRelativePath(GetCurrentDir + '/', TheProgram), Code]));
    Write(LeftStr(ReadText(Folder + '/out'), 500));
    Write(RightStr(ReadText(Folder + '/errors'), 500));
    Flush(Output);
  end;
end;

function NextFirst(First: Integer): Integer;
begin
  Result := First + 1;
  if IsShort then
    Result := First * 2 + 1;
end;

procedure RunCall(const Settings: string; Call, CallCount: Integer);
var
  First: Integer;
begin
  First := 1;
  while (First <= CallCount) and (First <= LastFirst) do
  begin
    if Option('first') in [0, First] then
    begin
      RunCase(Settings, Call, First, 1);
      RunCase(Settings, Call, First, Lasting);
    end;
    First := NextFirst(First);
  end;
end;

procedure RunSettings(const Settings: string);
var
  Calls: TStringList;
  Index, Call, Before: Integer;
begin
  Before := PassedCount + FailedCount;
  if Run('-1,0,0,0', Settings, 'list') <> 0 then
  begin
    Inc(FailedCount);
    WriteLn('LANEMM=', Settings, ': the program does not even work when no call fails');
    Exit;
  end;
  Calls := TStringList.Create;
  Calls.LoadFromFile(Folder + '/out');
  for Index := 0 to Calls.Count - 1 do
  begin
    Call := StrToInt(ExtractWord(1, Calls[Index], [' ']));
    if (Option('call') in [0, Call]) and not (Call in NeverFail) then
      RunCall(Settings, Call, StrToInt(ExtractWord(2, Calls[Index], [' '])));
  end;
  WriteLn(Format('%5d runs, LANEMM=%s', [PassedCount + FailedCount - Before, Settings]));
  Flush(Output);
  Calls.Free;
end;

var
  Index, LastSettings: Integer;
begin
  if (ParamCount = 0) or (ParamStr(1) = '--help') then
  begin
    WriteLn(Usage);
    Halt(0);
  end;
  for Index := 1 to ParamCount do
    IsShort := IsShort or (ParamStr(Index) = '--short');
  LastSettings := SettingsCount;
  for Index := 1 to ParamCount do
    if ParamStr(Index) = '--plain' then
      LastSettings := 1;
  TheProgram := ExpandFileName(ParamStr(ParamCount));
  Folder := ExtractFilePath(TheProgram) + 'logs';
  ForceDirectories(Folder);
  ChDir(Folder); // where logs go whose own folder cannot be opened
  for Index := 1 to LastSettings do
    RunSettings(AllSettings[Index]);
  WriteLn(PassedCount, ' passed, ', FailedCount, ' failed');
  Halt(Ord(FailedCount > 0));
end.
