/// Tests of lanemm where something is odd: the terminal, the output, a name, a process that ends.
unit Test.Lanemm.Odd;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// Terminals, of which script of util-linux makes one, and other outputs.
  TOutputTests = class(TPlantedTest)
  private
    procedure OnTerminal(const Size, Before, Arguments: string);
  protected
    procedure SetUp; override;
  published
    procedure AMapFitsANarrowTerminal;
    procedure AMapOfAnyWidthIsShown;
    procedure ColoursAreForTerminalsThatWantThem;
    procedure TopFitsASmallTerminal;
    procedure TopNeedsATerminalOfAKnownKind;
    procedure OutputThatCannotBeWrittenIsAnError;
    procedure AnOptionWithoutEffectIsRefused;
    procedure APipeIsWrittenToAndStays;
    procedure MetricsAreNotWrittenThroughALink;
  end;

  /// Processes with odd names, and some that end while lanemm looks.
  TOddProcessTests = class(TPlantedTest)
  private
    procedure StartNamed(const Name: string);
  published
    procedure ANameThatWasCutIsText;
    procedure ANameThatIsNoTextIsRefusedByNone;
    procedure AFolderThatIsNoTextIsRefusedByNone;
    procedure ANameOfOtherLettersKeepsTheColumns;
    procedure ANameCannotControlTheTerminal;
    procedure AClosedOutputIsNotThePageOfTheProcess;
    procedure AThreadStandsForItsProcess;
    procedure AProcessWithoutItsMainThreadIsReadByAnother;
    procedure ATimeLineIsOfOneProcess;
    procedure ASegmentOfAnotherKindIsNoPage;
    procedure AnAnswerCannotControlTheTerminal;
    procedure AFileOfAnotherUserIsNotCopied;
    procedure AnAnswerWithoutAnEndIsCut;
    procedure AReportThatIsOffNamesTheCommand;
    procedure APageGoesToTheStandardOutput;
    procedure AnAnswerThatNamesAPipeIsNotWaitedFor;
    procedure AVersionCannotControlTheTerminal;
    procedure AProcessThatEndsMeanwhileIsNamed;
    procedure AProcessInAContainerIsReadAndAsked;
    procedure AToolThatWasKilledInAContainerIsNotWaitedFor;
    procedure AProgramOf32BitsIsNotRead;
    procedure AProgramOf32BitsWithoutAPageIsNotRead;
    procedure AProgramOf32BitsIsAsked;
  end;

implementation

uses
  SysUtils, fpJson, jsonparser, testregistry, BaseUnix;

const
  Escape = #27;

// ---------------------------------------------------------------------------- TOutputTests

procedure TOutputTests.SetUp;
begin
  StartAndStop('./Planted stop', '');
end;

// Calls lanemm with the planted process on a terminal of this size, which gets a q.
// Before: what precedes it on the line of the shell.
procedure TOutputTests.OnTerminal(const Size, Before, Arguments: string);
begin
  Needs('script -qec true /dev/null', 'terminals');
  Printed := Shell(Format('(printf q; sleep 1) | TERM=xterm script -qec '
    + '"stty %s; %s ../lanemm %s" /dev/null', [Size, Before, Format(Arguments, [Planted.Id])]));
end;

procedure TOutputTests.AMapFitsANarrowTerminal;
begin
  OnTerminal('cols 20 rows 5', '', 'map %d --plain');
  Same(0, ExitStatus, Printed);
  Has('A character is', Printed);
  Has('L', Printed);
end;

procedure TOutputTests.AMapOfAnyWidthIsShown;
begin
  CallWell(Format('map %d --plain --width=9999999999999', [Planted.Id]));
  Has('LLLLLLLLLLLLLLLL', Printed);
  Call(Format('map %d --plain --width=21', [Planted.Id]));
  Refused(2, '--width needs a number of at least 22');
end;

procedure TOutputTests.ColoursAreForTerminalsThatWantThem;
begin
  OnTerminal('cols 80 rows 40', '', 'map %d');
  Has(Escape, Printed);
  OnTerminal('cols 80 rows 40', '', 'map %d --plain');
  HasNot(Escape, Printed);
  OnTerminal('cols 80 rows 40', 'NO_COLOR=1', 'map %d');
  HasNot(Escape, Printed);
  OnTerminal('cols 80 rows 40', 'TERM=dumb', 'map %d');
  HasNot(Escape, Printed);
  CallWell(Format('map %d --colour', [Planted.Id]));
  Has(Escape, Printed);
end;

// A picture begins at the top left and ends with the rest of the screen cleared.
procedure TOutputTests.TopFitsASmallTerminal;
const
  Begins = Escape + '[H';
  Ends = Escape + '[J';
var
  Picture, Line: string;
begin
  OnTerminal('cols 20 rows 5', '', 'top %d');
  Same(0, ExitStatus, Printed);
  Picture := Copy(Printed, Pos(Begins, Printed) + Length(Begins), MaxInt);
  Picture := Copy(Picture, 1, Pos(Ends, Picture) - 1);
  Same(5, Length(Picture.Split([#10])), 'lines of ' + Picture);
  for Line in Picture.Split([#10]) do
    AtMost(20, Length(Line.Replace(Escape + '[K', '').Replace(#13, '')), 'columns of ' + Line);
end;

procedure TOutputTests.TopNeedsATerminalOfAKnownKind;
begin
  OnTerminal('cols 80 rows 24', 'TERM=dumb', 'top %d');
  Same(2, ExitStatus, Printed);
  Has('top needs a terminal', Printed);
  OnTerminal('cols 80 rows 24', 'TERM=', 'top %d');
  Same(2, ExitStatus, Printed);
  Call(Format('top %d', [Planted.Id]));
  Refused(2, 'top needs a terminal');
end;

procedure TOutputTests.OutputThatCannotBeWrittenIsAnError;
const
  Commands: array[0..5] of string = ('ps', 'state %d', 'state %d --json', 'map %d', 'prom %d',
    'top %d --once');
var
  Command: string;
begin
  for Command in Commands do
  begin
    Errors := Shell(Format('../lanemm %s > /dev/full', [Format(Command, [Planted.Id])]));
    Refused(1, 'lanemm: ');
  end;
end;

procedure TOutputTests.AnOptionWithoutEffectIsRefused;
const
  Calls: array[0..6] of string = ('report 1 inuse --pprof', 'report 1 leaks --folded',
    'report 1 peak --pause', 'report 1 peak --most=3', 'report 1 peak --json --html',
    'state 1 --holders', 'state 1 --at=16 --json');
  Parts: array[0..6] of string = ('`inuse` has no format --pprof', '`leaks` has no format --folded',
    '--pause is for', '--most is for', 'one format', '--holders needs --at', 'no JSON of --at');
var
  Index: Integer;
begin
  for Index := 0 to High(Calls) do
  begin
    Call(Calls[Index]);
    Refused(2, Parts[Index]);
  end;
end;

// A file of metrics is replaced as a whole; /dev/null was, too.
procedure TOutputTests.APipeIsWrittenToAndStays;
begin
  Has('lanemm_up', Shell(Format('rm -f pipe; mkfifo pipe; timeout 60 cat pipe & '
    + '../lanemm prom %d --output=pipe; wait', [Planted.Id])));
  CheckEquals('', Shell('test -p pipe || echo replaced; rm pipe'));
end;

// The folder of the metrics is one of another user, who may guess the number of the process.
procedure TOutputTests.MetricsAreNotWrittenThroughALink;
begin
  CheckEquals('kept', Trim(Shell(Format('echo kept > victim; sh -c ''ln -s victim linked.prom.$$.new; '
    + 'exec ../lanemm prom %d --output=linked.prom''; cat victim', [Planted.Id]))));
  Has('lanemm_up', Shell('cat linked.prom; rm victim linked.prom'));
  CheckEquals('', Shell('ls | grep linked'));
end;

// ---------------------------------------------------------------------------- TOddProcessTests

procedure TOddProcessTests.StartNamed(const Name: string);
begin
  Shell(Format('cp Planted ''%s''', [Name]));
  StartAndStop(Format('''./%s'' stop', [Name]), '');
  DeleteFile(Built + Name);
end;

// The system keeps 15 bytes of a name: the last letter has two.
procedure TOddProcessTests.ANameThatWasCutIsText;
begin
  StartNamed('fourteen-bytes' + #$C3#$A4);
  CallWell(Format('prom %d --output=%snamed.prom', [Planted.Id, Built]));
  Has(Format('lanemm_up{pid="%d",program="fourteen-bytes?"} 1', [Planted.Id]),
    Shell('cat named.prom'));
  CheckEquals('', Shell('promtool check metrics < named.prom'));
end;

// Bytes that have the form of UTF-8 and are none, of which one makes Prometheus refuse all metrics.
procedure TOddProcessTests.ANameThatIsNoTextIsRefusedByNone;
const
  // Half a pair of UTF-16, beyond U+10FFFF, two that are too long, five bytes, no letter.
  Names: array[0..5] of string = (#$ED#$A0#$80, #$F4#$90#$80#$80, #$C0#$AF, #$E0#$80#$AF,
    #$F8#$88#$80#$80#$80, #$EF#$BF#$BF);
  Reads = 'python3 -c "import json, sys, xml.dom.minidom as xml; file = lambda name: open(name, ''rb'')'
    + '.read().decode(); json.loads(file(''named.json'')); xml.parse(''named.svg'')"';
var
  Name: string;
begin
  for Name in Names do
  begin
    StartNamed(Name + 'x');
    CallWell(Format('prom %d --output=named.prom', [Planted.Id]));
    Has(Format('program="%sx"} 1', [StringOfChar('?', Length(Name))]), Shell('cat named.prom'));
    CheckEquals('', Shell('promtool check metrics < named.prom'));
    CheckEquals('', Shell(Format('../lanemm state %d --json > named.json; '
      + '../lanemm map %0:d --by=thread --svg=named.svg; %s', [Planted.Id, Reads])));
    TearDown;
  end;
end;

procedure TOddProcessTests.AFolderThatIsNoTextIsRefusedByNone;
const
  Folder = 'no'#$FF'text'#27'[31m';
  Calls: array[0..3] of string = ('state %d --json', 'report %d leaks --json',
    'report %d leaks --html', 'state %d --at=%d --holders');
var
  Words: string;
begin
  Shell(Format('mkdir -p ''%s''; cp Planted ''%0:s''/', [Folder]));
  StartAndStop(Format('''./%s/Planted'' stop', [Folder]), '');
  for Words in Calls do
  begin
    CallWell(Format(Words, [Planted.Id, Planted.Number('variable')]));
    Has('no?text?[31m/Planted', Printed);
    HasNot(Escape, Printed);
  end;
  Shell(Format('rm -r ''%s''', [Folder]));
end;

// Letters of two bytes; the system keeps seven and a half.
procedure TOddProcessTests.ANameOfOtherLettersKeepsTheColumns;
const
  Letters = #$C3#$A4#$C3#$A4#$C3#$A4#$C3#$A4#$C3#$A4#$C3#$A4#$C3#$A4;
begin
  StartNamed(Letters + Letters);
  CallWell(Format('state %d', [Planted.Id]));
  Has(Format('%8d  %s?                 ', [Planted.Id, Letters]), Printed);
  CallWell(Format('top %d --once --threads', [Planted.Id]));
  Has(Format('%d %s', [Planted.Id, Copy(Letters, 1, 6 * 2)]), Printed);
end;

procedure TOddProcessTests.ANameCannotControlTheTerminal;
const
  Commands: array[0..4] of string = ('ps', 'state %d', 'top %d --once', 'top %d --once --threads',
    'map %d --by=thread');
var
  Command: string;
begin
  StartNamed('red' + Escape + '[31m');
  for Command in Commands do
  begin
    CallWell(Format(Command, [Planted.Id]));
    Has('red?[31m', Printed);
    HasNot(Escape, Printed);
  end;
end;

// The page, a file then, had got the number of the closed one, and the report.
procedure TOddProcessTests.AClosedOutputIsNotThePageOfTheProcess;
const
  Closings: array[0..2] of string = ('>&-', '>&- 2>&-', '<&- >&- 2>&-');
var
  Closing: string;
begin
  Start('./Planted churn', '');
  for Closing in Closings do
  begin
    Shell(Format('../lanemm report %d inuse %s', [Planted.Id, Closing]));
    Same(1, ExitStatus, 'exit code with ' + Closing);
    CallWell(Format('do %d status', [Planted.Id]));
    Has('used ', Printed);
  end;
end;

// As `top -H` and `ps -L` list them.
procedure TOddProcessTests.AThreadStandsForItsProcess;
const
  Calls: array[0..2] of string = ('do %d status', 'state %d', 'report %d inuse');
var
  Thread: Integer;
  Words: string;
begin
  Start('./Planted churn', '');
  Thread := StrToInt(Trim(Shell(Format('ls /proc/%d/task | grep -v %0:d | head -n 1', [Planted.Id]))));
  for Words in Calls do
  begin
    CallWell(Format(Words, [Thread]));
    Has('use', Printed);
  end;
end;

procedure TOddProcessTests.AProcessWithoutItsMainThreadIsReadByAnother;
var
  Thread: string;
begin
  Start('./PlantedC ended', 'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  Shell(Format('until grep -q "^State:.Z" /proc/%d/task/%0:d/status; do sleep 0.1; done', [Planted.Id]));
  Thread := Trim(Shell(Format('ls /proc/%d/task | grep -v %0:d', [Planted.Id])));
  Call(Format('state %d', [Planted.Id]));
  Refused(3, Format('the main thread of process %d has ended', [Planted.Id]));
  Has('name another one of its threads: ' + Thread, Errors);
  CallWell('state ' + Thread);
  Has('   7,168         800 ', Printed);
  CallWell(Format('do %s status', [Thread]));
  Has('used ', Printed);
end;

// The number of a process that has ended is given to another one, which a container can choose. That
// one has more blocks.
procedure TOddProcessTests.ATimeLineIsOfOneProcess;
const
  Reuse: array[0..7] of string = (
    './Planted stop > first.out & first=$!',
    'until grep -q ready first.out; do sleep 0.1; done',
    '../lanemm record $first --every=1s --output=line.csv & record=$!',
    'until [ $(wc -l < line.csv) -gt 1 ]; do sleep 0.1; done',
    'kill -KILL $first; wait $first 2> killed',
    'echo $((first - 1)) > /proc/sys/kernel/ns_last_pid; ./Planted churn > second.out & second=$!',
    '[ $first -eq $second ] && echo again',
    '(sleep 10; kill $record 2> killed) & wait $record && echo ended');
var
  Rights, Line: string;
  Lines: TStringArray;
begin
  Rights := '--mount';
  if fpGetUid <> 0 then
    Rights := '--user --map-root-user';
  Needs(Format('unshare %s --fork --pid --mount-proc true', [Rights]), 'namespaces of processes');
  Shell('rm -f line.csv; touch line.csv first.out');
  CheckEquals('again'#10'ended', Trim(Shell(Format('unshare %s --fork --pid --mount-proc --kill-child '
    + 'sh -c ''%s''', [Rights, string.Join(#10, Reuse)]))));
  // The second process has other numbers of blocks, which change.
  Lines := Shell('tail -n +2 line.csv | cut -d , -f 2').TrimRight.Split([#10]);
  for Line in Lines do
    CheckEquals(Lines[0], Line, 'blocks');
end;

// Other programs have such segments, too.
procedure TOddProcessTests.ASegmentOfAnotherKindIsNoPage;
const
  Asked: array[0..1] of string = ('do %d status', 'report %d inuse');
var
  Words: string;
  Other: TPlanted;
begin
  Other := TPlanted.Create('./Planted stop', '');
  try
    Start('./Hostile other', '');
    CallWell('ps');
    HasNot(Format('%8d ', [Planted.Id]), Printed);
    Has(Format('%8d ', [Other.Id]), Printed);
    CallWell('prom');
    HasNot(Format('pid="%d"', [Planted.Id]), Printed);
    Has(Format('lanemm_up{pid="%d",program="Planted"} 1', [Other.Id]), Printed);
    for Words in Asked do
    begin
      Call(Format(Words, [Planted.Id]));
      Refused(4, Format('process %d has no status page', [Planted.Id]));
    end;
  finally
    Other.Free;
  end;
end;

procedure TOddProcessTests.AnAnswerCannotControlTheTerminal;
begin
  Start('./Hostile "red' + Escape + '[31m|more"', '');
  CallWell(Format('do %d status', [Planted.Id]));
  CheckEquals('red?[31m'#10'more'#10, Printed);
  CallWell(Format('report %d inuse', [Planted.Id]));
  CheckEquals('red?[31m'#10'more'#10, Printed);
end;

procedure TOddProcessTests.AFileOfAnotherUserIsNotCopied;
begin
  Needs('echo secret > other.html && chown 65534 other.html', 'files of other users');
  Start(Format('./Hostile "file %sother.html|"', [Built]), '');
  CallWell(Format('report %d profile --html', [Planted.Id]));
  CheckEquals(Built + 'other.html'#10, Printed);
  Shell('rm -f other.html');
end;

procedure TOddProcessTests.AnAnswerWithoutAnEndIsCut;
const
  AnswerBytes = 2048;
begin
  Start('./Hostile endless', '');
  CallWell(Format('do %d status', [Planted.Id]));
  CheckEquals(StringOfChar('x', AnswerBytes), Trim(Printed));
end;

procedure TOddProcessTests.AReportThatIsOffNamesTheCommand;
const
  Kinds: array[0..3] of string = ('profile', 'peak', 'contention', 'growth');
  Names: array[0..3] of string = ('profile', 'profile', 'contention', 'growth');
var
  Index: Integer;
begin
  Start('./Planted churn', '');
  for Index := 0 to High(Kinds) do
  begin
    Call(Format('report %d %s', [Planted.Id, Kinds[Index]]));
    Refused(1, Format('%s is off: `lanemm do %d %0:s` turns it on', [Names[Index], Planted.Id]));
  end;
end;

// Also a page on which there is nothing: no site of contention has so many events.
procedure TOddProcessTests.APageGoesToTheStandardOutput;
const
  Settings = 'contention,profile,least=1000000000';
var
  Kind: string;
begin
  Start('./Planted churn', Format('LANEMM=log=%s', [Built]));
  CallWell(Format('do %d %s', [Planted.Id, Settings]));
  for Kind in TStringArray.Create('contention', 'profile', 'inuse', 'leaks') do
  begin
    CallWell(Format('report %d %s --html', [Planted.Id, Kind]));
    Has('<!doctype html>', LowerCase(Copy(Printed, 1, 20)));
    Has('</html>'#10, Printed);
  end;
  Shell('rm -f Planted_MemoryManager_*');
end;

procedure TOddProcessTests.AnAnswerThatNamesAPipeIsNotWaitedFor;
begin
  Shell('rm -f pipe.txt; mkfifo pipe.txt');
  Start(Format('./Hostile "file %spipe.txt|"', [Built]), '');
  CheckEquals(Built + 'pipe.txt', Trim(Shell(Format('timeout 20 ../lanemm report %d inuse',
    [Planted.Id]))));
  Shell('rm pipe.txt');
end;

procedure TOddProcessTests.AVersionCannotControlTheTerminal;
const
  Calls: array[0..1] of string = ('state %d', 'do %d status');
var
  Words: string;
begin
  Start('./Hostile version', '');
  for Words in Calls do
  begin
    Call(Format(Words, [Planted.Id]));
    Refused(6, 'has LaneMM ' + StringOfChar('?', 16) + ' with layout');
  end;
end;

// Either it was read as a whole, or the error says that it has ended.
procedure TOddProcessTests.AProcessThatEndsMeanwhileIsNamed;
const
  EndedCode = 3;
  Turns = 20;
var
  Turn, EndedCount: Integer;
  Killing: string;
  Json: TJSONObject;
begin
  EndedCount := 0;
  for Turn := 0 to Turns do
  begin
    StartAndStop('./Planted stop', '');
    Killing := Format('(sleep 0.%.3d; kill -KILL %d) &', [3 * Turn, Planted.Id]);
    if Turn = 0 then
    begin
      Killing := '';
      Planted.Send(SIGKILL);
      Check(Planted.AwaitEnd, 'it has ended');
    end;
    Errors := Shell(Format('%s ../lanemm state %d --contents --damage --json > ended.json',
      [Killing, Planted.Id]));
    if ExitStatus = EndedCode then
    begin
      Has(Format('process %d', [Planted.Id]), Errors);
      Inc(EndedCount);
    end
    else
    begin
      Same(0, ExitStatus, Errors);
      Json := GetJSON(Shell('cat ended.json')) as TJSONObject;
      Same(750, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'objects');
      Json.Free;
    end;
    TearDown;
  end;
  AtLeast(1, EndedCount, 'times that it had ended');
end;

// In a container a process has another number, and files that are not to be seen from outside.
procedure TOddProcessTests.AProcessInAContainerIsReadAndAsked;
const
  Container = 'unshare %s --fork --pid --mount-proc --kill-child '
    + 'sh -c "mount -t tmpfs tmpfs contained && exec ./Planted churn"';
var
  Rights, Id, Numbers: string;
  Index, Number, Count: Integer;
begin
  Rights := '--mount';
  if fpGetUid <> 0 then
    Rights := '--user --map-root-user';
  Needs(Format('unshare %s --fork --pid --mount-proc true', [Rights]), 'namespaces of processes');
  Shell('mkdir -p contained');
  Start(Format(Container, [Rights]), Format('LANEMM=log=%scontained/', [Built]));
  Id := Trim(Shell(Format('cat /proc/%d/task/%0:d/children', [Planted.Id])));
  CallWell(Format('do %s status', [Id]));
  Has('used ', Printed);
  CallWell(Format('state %s', [Id]));
  Has('       1  Planted ', Printed);
  // Its threads have small numbers there, which many a word of its memory has, too.
  Numbers := ',';
  Count := 0;
  for Index := 0 to Ask(Format('state %s --json', [Id])).Arrays['threads'].Count - 1 do
  begin
    Number := Answer.Arrays['threads'].Objects[Index].Integers['thread'];
    if Number = 0 then
      Continue; // of a thread that has ended
    HasNot(Format(',%d,', [Number]), Numbers);
    Numbers := Format('%s%d,', [Numbers, Number]);
    Inc(Count);
  end;
  AtLeast(3, Count, 'threads with numbers');
  CallWell(Format('report %s inuse', [Id]));
  Has('LaneMM: process 1,', Printed);
  Has('Memory in use: ', Printed);
  CallWell(Format('do %s report=inuse', [Id]));
  Has(Format('file /proc/%s/root/%s', [Id, Copy(Built, 2)]), Printed);
  CheckEquals('', Shell('ls contained'));
end;

// There its number is 1, which is another process outside.
procedure TOddProcessTests.AToolThatWasKilledInAContainerIsNotWaitedFor;
const
  AskAndDie = 'unshare %s --pid --fork --kill-child ../lanemm do %d status --timeout=1h & asking=$!;'
    + ' for turn in $(seq 600); do ../lanemm do %1:d status --timeout=100ms 2>&1'
    + ' | grep "asked by another tool" && break; done; kill -KILL $asking; wait $asking';
var
  Rights: string;
begin
  Rights := '';
  if fpGetUid <> 0 then
    Rights := '--user';
  Needs(Format('unshare %s --pid --fork true', [Rights]), 'namespaces of processes');
  Start('./Planted churn', '');
  Planted.Send(SIGSTOP);
  Planted.AwaitStop;
  Has('asked by another tool', Shell(Format(AskAndDie, [Rights, Planted.Id])));
  Planted.Send(SIGCONT);
  CallWell(Format('do %d status', [Planted.Id]));
  Has('used ', Printed);
end;

// ---------------------------------------------------------------------------- 32 bits

const
  Reading: array[0..6] of string = ('state %d', 'state %d --contents --json', 'report %d leaks',
    'map %d', 'top %d --once', 'record %d', 'state %d --at=$8048000');

procedure TOddProcessTests.AProgramOf32BitsIsNotRead;
var
  Words: string;
begin
  Start('./Small', '');
  for Words in Reading do
  begin
    Call(Format(Words, [Planted.Id]));
    Refused(6, Format('process %d is a program of 32 bits, and this lanemm reads the memory of'
      + ' those of 64', [Planted.Id]));
  end;
end;

procedure TOddProcessTests.AProgramOf32BitsWithoutAPageIsNotRead;
begin
  Start('./Small none', '');
  Call(Format('state %d', [Planted.Id]));
  Refused(6, 'is a program of 32 bits');
  Call(Format('do %d status', [Planted.Id]));
  Refused(4, 'has no status page');
end;

procedure TOddProcessTests.AProgramOf32BitsIsAsked;
begin
  Start('./Small', '');
  CallWell(Format('do %d some,words', [Planted.Id]));
  CheckEquals('some,words', Trim(Printed));
  CallWell(Format('report %d profile --json', [Planted.Id]));
  CheckEquals('report=profile:json', Trim(Printed));
  CallWell('ps');
  Has(Format('%8d     12.1 KB     64.0 KB     64.0 KB  Small ', [Planted.Id]), Printed);
  CallWell(Format('prom %d', [Planted.Id]));
  Has(Format('lanemm_used_bytes{pid="%d",program="Small"} 12345', [Planted.Id]), Printed);
  Call(Format('state %d', [Planted.Id]));
  Has('status page: used 12.1 KB, committed 64.0 KB', Printed);
end;

initialization
  RegisterTest(TOutputTests);
  RegisterTest(TOddProcessTests);
end.
