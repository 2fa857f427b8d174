/// `lanemm do`, `lanemm report`: requests to a running process.
unit ToolAsk;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Sends words to a process and prints the answer.
procedure RunDo(Arguments: TArguments);
/// Lets a process write a report and prints it, or the names of its files.
procedure RunReport(Arguments: TArguments);

const
  DoCommand: TCommand = (
    Name: 'do';
    Usage: 'PID WORDS...';
    Help: 'Changes settings of a process, or has it act: status, trim, snapshot, write';
    Details:
      'Settings are those of the variable LANEMM, for example `profile,rate=64K`,'#10
      + '`contention`, `debug`, `limit=2G`; `NAME=0` switches one off.'#10
      + 'Verbs: status, trim, snapshot (the second one reports the growth since the first),'#10
      + 'write (the event log and the profiles), report=KIND, see `lanemm report`.'#10
      + '--timeout=TIME  how long to wait for the answer; 10s'#10;
    Options: 'timeout:';
    MostWords: AnyWords;
    Run: RunDo);

  ReportCommand: TCommand = (
    Name: 'report';
    Usage: 'PID KIND';
    Help: 'Writes a report of a process: inuse, leaks, threads, peak, profile, contention, growth';
    Details:
      'inuse       the blocks in use by class, with what holds them; where the sampler runs,'#10
      + '            by call site, too'#10
      + 'peak, allocated, temporary, fragments'#10
      + '            call sites by sampled blocks; `lanemm do PID profile` starts the sampler'#10
      + 'profile     the files of the sampler'#10
      + 'contention  taken locks and frees by other threads; `lanemm do PID contention`'#10
      + 'growth      blocks that grow; `lanemm do PID growth`'#10
      + 'leaks       blocks in use that nothing points to, directly or through others: lanemm'#10
      + '            reads them, the process takes no part; PID may be a core file. Exact for a'#10
      + '            process that is stopped, or with --pause, which stops its threads meanwhile.'#10
      + '            --most=N lines, 20 by default, 0: all; --copy=N as for state'#10
      + 'threads     each thread with its backtrace, what it waits for and which thread holds that;'#10
      + '            deadlocks first. lanemm reads it: threads that run or wait for locks, events'#10
      + '            or a time are paused for milliseconds. PID may be a core file, or a process'#10
      + '            that is stopped or in a debugger, or one that does not run on LaneMM'#10
      + 'Prints the report. With a format, writes the file to stdout; if that is a terminal, prints'#10
      + 'its name instead, except for leaks: `report PID profile --html > page.html`'#10
      + '--json --html --pprof --folded --speedscope (inuse and leaks: --json --html; threads: none)'#10
      + '--timeout=TIME  how long to wait for the report; 60s'#10;
    Options: 'json html pprof folded speedscope timeout: pause most: copy:';
    MostWords: 2;
    Run: RunReport);

implementation

uses
  SysUtils, StrUtils, Classes, Math, BaseUnix, TermIO, LaneMM.StatusPage, Targets, HeapNumbers,
  HeapText, ToolOpen, ToolMailbox, ToolLeaks, ToolThreads;

const
  DoPatienceMs = 10000;
  ReportPatienceMs = 60000;
  InUseKind = 'inuse';
  LeaksKind = 'leaks'; // the reports that lanemm makes itself
  ThreadsKind = 'threads';

// Returns the words of the command line behind the first one, with commas between.
function WordsOf(Arguments: TArguments): string;
begin
  Arguments.Word(1, 'WORDS');
  Result := string.Join(',', Copy(Arguments.Words.ToStringArray, 1));
end;

// Raises ETool, with the answer, unless the process did what it was asked for.
procedure CheckOutcome(Mailbox: TMailbox; const Pid: string);
begin
  case Mailbox.Outcome of
    poDone: ;
    poWrongWords: raise ETool.Create(ecUsage, Trim(Mailbox.PrintableAnswer));
    poClosed: raise ETool.Create(ecNotPermitted, 'the process takes no requests: `attach=0`');
  else
    // The process does not know by which number it was asked.
    raise ETool.Create(ecFailed, StringReplace(Trim(Mailbox.PrintableAnswer), ' do PID ',
      ' do ' + Pid + ' ', []));
  end;
end;

procedure RunDo(Arguments: TArguments);
var
  Mailbox: TMailbox;
begin
  Mailbox := TMailbox.Create(Arguments.ProcessId);
  try
    Mailbox.Ask(WordsOf(Arguments), Arguments.Milliseconds('timeout', DoPatienceMs));
    CheckOutcome(Mailbox, Arguments.Words[0]);
    Write(Mailbox.PrintableAnswer);
  finally
    Mailbox.Free;
  end;
end;

// Returns the line at which the last Count reports begin; 0: there are not so many, or the first one
// begins there.
function FirstOfLast(const Lines: TStringArray; Count: Integer): Integer;
const
  Heads: array[0..2] of string = ('LaneMM: process ', 'LaneMM event log ', 'LaneMM heap report ');
var
  Head: string;
begin
  Result := Length(Lines);
  while (Result > 0) and (Count > 0) do
  begin
    Dec(Result);
    for Head in Heads do
      if Lines[Result].StartsWith(Head) then
        Dec(Count);
  end;
end;

// Returns the lines in the last bytes of a file. The first one may be cut.
function LastLines(Source: TStream; Bytes: Int64): TStringArray;
var
  Text: string;
begin
  SetLength(Text, Bytes);
  Source.Seek(-Bytes, soEnd);
  SetLength(Text, Source.Read(Pointer(Text)^, Bytes));
  if Text.EndsWith(#10) then
    SetLength(Text, Length(Text) - 1);
  Result := Text.Split([#10]);
end;

// Prints the last Count reports of an event log, to which each report is appended: it is read from its
// end, as it may be larger than memory.
procedure PrintLast(const Path: string; Count: Integer);
const
  FirstBytes = 1 shl 16;
  MostBytes = 1 shl 28;
var
  Source: TFileStream;
  Bytes: Int64;
  Lines: TStringArray;
  First, Index: Integer;
begin
  Source := TFileStream.Create(Path, fmOpenRead or fmShareDenyNone);
  try
    Bytes := FirstBytes div 4;
    repeat
      Bytes := Bytes * 4;
      Lines := LastLines(Source, Min(Bytes, Source.Size));
      First := FirstOfLast(Lines, Count);
    until (First > 0) or (Bytes >= Min(MostBytes, Source.Size));
    for Index := First to High(Lines) do
      WriteLn(Printable(Lines[Index]));
  finally
    Source.Free;
  end;
end;

// Prints the answer; of an event log the reports that it got, of any other file the name.
procedure PrintReport(const Answer: string);
var
  Line, Log, Path: string;
  LogCount: Integer;
begin
  LogCount := 0;
  for Line in Answer.Split([#10], TStringSplitOptions.ExcludeEmpty) do
  begin
    Path := Line;
    if Line.StartsWith(FilePrefix) then
      Delete(Path, 1, Length(FilePrefix));
    if Line.StartsWith(FilePrefix) and Path.EndsWith('.txt') and IsPlainFile(Path) then
    begin
      Log := Path;
      Inc(LogCount);
    end
    else
      WriteLn(Printable(Path));
  end;
  if LogCount > 0 then
    PrintLast(Log, LogCount);
end;

// Returns whether the user of the process owns the file: an answer may name any.
function IsOwnFile(Handle: THandle; const Pid: string): Boolean;
var
  Status, Owner: TStat;
begin
  Result := (FpFStat(Handle, Status) = 0) and (fpStat('/proc/' + Pid, Owner) = 0)
    and (Status.st_uid = Owner.st_uid);
end;

// Copies the only file that the answer names, but for logs, to the standard output; returns False if
// that is a terminal, or there is no such file of the process.
function CopyFile(const Answer, Pid: string): Boolean;
var
  Line, Path: string;
  Source, Target: THandleStream;
begin
  Path := '';
  for Line in Answer.Split([#10], TStringSplitOptions.ExcludeEmpty) do
    if Line.StartsWith(FilePrefix) and not Line.EndsWith('.txt') then
    begin
      if Path <> '' then
        Exit(False);
      Path := Copy(Line, Length(FilePrefix) + 1, MaxInt);
    end;
  Result := (IsATTY(Output) = 0) and IsPlainFile(Path);
  if not Result then
    Exit;
  Source := TFileStream.Create(Path, fmOpenRead or fmShareDenyNone);
  Target := THandleStream.Create(StdOutputHandle);
  try
    Result := IsOwnFile(Source.Handle, Pid);
    if Result then
    begin
      Target.CopyFrom(Source, 0);
      WriteLn(StdErr, 'lanemm: a copy of ', Printable(Path));
    end;
  finally
    Target.Free;
    Source.Free;
  end;
end;

// Returns the format that the options name; empty without one. Raises ETool for options that this kind
// of report does not have, or more formats than one.
function FormatOf(Arguments: TArguments; const Kind: string): string;
const
  Formats: array[0..4] of string = ('json', 'html', 'pprof', 'folded', 'speedscope');
  ListFormats = 2; // of Formats, those of reports by contents
  OfLeaks: array[0..2] of string = ('pause', 'most', 'copy');
var
  Option: string;
  Index: Integer;
begin
  Result := '';
  for Index := 0 to High(Formats) do
    if Arguments.Has(Formats[Index]) then
    begin
      if (Index >= ListFormats) and ((Kind = LeaksKind) or (Kind = InUseKind)) then
        raise ETool.Create(ecUsage, 'the report `%s` has no format --%s, but --json and --html',
          [Kind, Formats[Index]]);
      if Result <> '' then
        raise ETool.Create(ecUsage, 'one format at a time');
      Result := Formats[Index];
    end;
  if (Result <> '') and (Kind = ThreadsKind) then
    raise ETool.Create(ecUsage, 'the report `%s` is text alone', [Kind]);
  for Option in OfLeaks do
    if Arguments.Has(Option) and (Kind <> LeaksKind) then
      raise ETool.Create(ecUsage, '--%s is for the report `%s` alone', [Option, LeaksKind]);
end;

// Returns the word that asks for a report in a format, which may be empty.
function ReportWord(const Kind, Format: string): string;
begin
  if IndexStr(Kind, ReportKinds) < 0 then
    raise ETool.Create(ecUsage, 'there is no report `%s`: %s',
      [Kind, string.Join(', ', ReportKinds)]);
  Result := 'report=' + Kind;
  if Format <> '' then
    Result := Result + ':' + Format;
end;

// Writes the regions of a process: no profile samples their blocks.
procedure WriteRegionsOf(Arguments: TArguments);
const
  Most = 20;
var
  Opened: TOpened;
  Numbers: THeapNumbers;
begin
  try
    Opened := OpenProcess(Arguments);
    try
      ReadNumbers(Opened.Image, Numbers);
      if Numbers.Regions <> nil then
        WriteLn('Regions, which no profile samples:');
      WriteRegions(Numbers, Most);
    finally
      Opened.Free;
    end;
  except
    on Error: ETool do
      if not (Error.Code in [ecNotPermitted, ecOtherVersion]) then
        raise;
  end;
end;

procedure RunReport(Arguments: TArguments);
var
  Mailbox: TMailbox;
  Kind, Format: string;
begin
  Arguments.Word(0, 'PID'); // of two that are missing it is the one to name
  Kind := Arguments.Word(1, 'KIND');
  Format := FormatOf(Arguments, Kind);
  if Kind = LeaksKind then
  begin
    ShowLeaks(Arguments);
    Exit;
  end;
  if Kind = ThreadsKind then
  begin
    ShowThreads(Arguments);
    Exit;
  end;
  Mailbox := TMailbox.Create(Arguments.ProcessId);
  try
    Mailbox.Ask(ReportWord(Kind, Format), Arguments.Milliseconds('timeout', ReportPatienceMs));
    CheckOutcome(Mailbox, Arguments.Words[0]);
    if (Format = '') or not CopyFile(Mailbox.Answer, Arguments.Words[0]) then
      PrintReport(Mailbox.Answer);
  finally
    Mailbox.Free;
  end;
  if (Kind = InUseKind) and (Format = '') then
    WriteRegionsOf(Arguments);
end;

end.
