/// `lanemm state` and `lanemm core`: all numbers of a heap, contents, damage, single addresses.
unit ToolState;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Shows a running process.
procedure RunState(Arguments: TArguments);
/// Shows a dead one.
procedure RunCore(Arguments: TArguments);

const
  StateOptions = 'json contents damage at: holders most: copy:';

  StateHelp = '  --contents   blocks in use by what they hold: classes, strings, arrays'#10
    + '  --most=N     at most N regions, contents or holders, 20 by default; 0: all'#10
    + '  --damage     checks all free lists and guards'#10
    + '  --at=ADDRESS what lies at an address: block, contents, size, in use or free, owner'#10
    + '  --holders    with --at: the places that hold an address of that block'#10
    + '  --json       the same as JSON, except --at'#10;

  StateCommand: TCommand = (
    Name: 'state';
    Usage: 'PID [OPTIONS]';
    Help: 'Shows size classes, threads and free runs of a process';
    Details: StateHelp
      + '  --copy=N     the Nth copy of LaneMM of a process with several'#10#10
      + 'The process takes no part: it may be stopped, or hang with a lock held. While it'#10
      + 'runs, records that change are counted; the numbers are exact when it stands still.'#10
      + 'Full spans belong to no thread until one of their blocks is freed.'#10;
    Options: StateOptions;
    MostWords: 1;
    Run: RunState);

  CoreCommand: TCommand = (
    Name: 'core';
    Usage: 'FILE [PROGRAM] [OPTIONS]';
    Help: 'Shows the heap of a dead process from its core file';
    Details: 'Contents and damage are always shown. PROGRAM is the program''s file, if it is no longer'#10
      + 'where it was when it ran.'#10#10 + StateHelp
      + '  --copy=N     the Nth copy of LaneMM of a process with several'#10;
    Options: StateOptions;
    MostWords: 2;
    Run: RunCore);

implementation

uses
  SysUtils, fpJson, TargetCores, HeapNumbers, HeapContents, HeapDamage, HeapJson,
  HeapText, StatusPages, ToolMailbox, ToolOpen, ToolText;

// Returns the address behind --at: hexadecimal with $ or 0x, or else decimal.
function AddressOf(Arguments: TArguments): UInt64;
var
  Text: string;
begin
  Text := Arguments.Value('at', '');
  if Text.StartsWith('0x') then
    Text := '$' + Copy(Text, 3, MaxInt);
  if not TryStrToQWord(Text, Result) then
    raise ETool.Create(ecUsage, '--at needs an address as $7f1200 or 0x7f1200, not `%s`',
      [Arguments.Value('at', '')]);
end;

procedure WriteJson(Opened: TOpened; WithContents, WithDamage: Boolean);
var
  Numbers: THeapNumbers;
  Json: TJSONObject;
begin
  ReadNumbers(Opened.Image, Numbers);
  Json := NumbersToJson(Opened.Image, Numbers);
  if WithContents then
    Json.Add('contents', GroupsToJson(GroupContents(Opened.Image)));
  if WithDamage then
    Json.Add('damage', DamageToJson(FindDamage(Opened.Image)));
  Opened.Target.CheckThere;
  WriteLn(Json.FormatJSON);
  Json.Free;
end;

procedure WriteText(Opened: TOpened; Arguments: TArguments; WithContents, WithDamage: Boolean);
var
  Numbers: THeapNumbers;
  Groups: TContentsGroups;
  Damages: TDamages;
begin
  if WithDamage then
    Damages := FindDamage(Opened.Image); // first: it may read all records anew
  ReadNumbers(Opened.Image, Numbers);
  if WithContents then
    Groups := GroupContents(Opened.Image);
  Opened.Target.CheckThere;
  WriteLn(DescribeTarget(Opened));
  WriteLn;
  WriteTotals(Numbers);
  WriteLn;
  WriteClasses(Numbers);
  WriteLn;
  WriteThreads(Numbers);
  WriteLn;
  WriteRegions(Numbers, Arguments.Number('most', 20, 0));
  WriteRuns(Numbers);
  if WithContents then
  begin
    WriteLn;
    WriteGroups(Groups, 'contents', Arguments.Number('most', 20, 0));
  end;
  if WithDamage then
  begin
    WriteLn;
    WriteDamage(Damages);
  end;
end;

// Raises ETool for options that have no effect together.
procedure CheckOptions(Arguments: TArguments);
begin
  if Arguments.Has('holders') and not Arguments.Has('at') then
    raise ETool.Create(ecUsage, '--holders needs --at=ADDRESS');
  if Arguments.Has('json') and Arguments.Has('at') then
    raise ETool.Create(ecUsage, 'there is no JSON of --at');
end;

procedure Show(Opened: TOpened; Arguments: TArguments; WithContents, WithDamage: Boolean);
begin
  NoteChanges(Opened.Image);
  if Arguments.Has('at') then
    WritePlace(Opened.Image, AddressOf(Arguments), Arguments.Has('holders'), Arguments.Number('most', 20, 0))
  else if Arguments.Has('json') then
    WriteJson(Opened, WithContents, WithDamage)
  else
    WriteText(Opened, Arguments, WithContents, WithDamage);
end;

// Writes the totals of the status pages of a process whose memory cannot be read.
procedure ShowPages(ProcessId: Integer);
var
  Pages: TPageCopies;
  Copy: TPageCopy;
begin
  AskForTotals(ProcessId, Pages);
  for Copy in Pages do
    WriteLn(Trim(Format('status page: used %s, committed %s, peak %s, %d threads %s',
      [BytesText(Copy.Page.Totals.UsedBytes), BytesText(Copy.Page.Totals.CommittedBytes),
      BytesText(Copy.Page.Totals.PeakBytes), Copy.Page.Totals.Threads,
      AgeText(Copy.Page.Totals)])));
end;

procedure RunState(Arguments: TArguments);
var
  Opened: TOpened;
begin
  CheckOptions(Arguments);
  try
    Opened := OpenProcess(Arguments);
  except
    on Error: ETool do
    begin
      if Error.Code in [ecNotPermitted, ecOtherVersion] then
        ShowPages(Arguments.ProcessId);
      raise;
    end;
  end;
  try
    Show(Opened, Arguments, Arguments.Has('contents'), Arguments.Has('damage'));
  finally
    Opened.Free;
  end;
end;

procedure RunCore(Arguments: TArguments);
var
  Opened: TOpened;
  Core: TCoreTarget;
  ProgramFile: string;
begin
  CheckOptions(Arguments);
  ProgramFile := '';
  if Arguments.Words.Count > 1 then
    ProgramFile := Arguments.Words[1];
  Core := TCoreTarget.Create(Arguments.Word(0, 'FILE'), ProgramFile);
  if Core.MissingBytes > 0 then
    WriteLn(StdErr, 'lanemm: ', Core.Name, ' is cut off: ', Core.MissingBytes,
      ' bytes are missing at its end');
  Opened := OpenTarget(Core, Arguments);
  try
    if not Arguments.Has('json') then
      WriteLn(Format('process %d, %d threads, signal %d', [Core.ProcessId, Length(Core.Threads),
        Core.Signal]));
    Show(Opened, Arguments, True, True);
  finally
    Opened.Free;
  end;
end;

end.
