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
    procedure TopFitsASmallTerminal;
  end;

  /// Processes with odd names, and some that end while lanemm looks.
  TOddProcessTests = class(TPlantedTest)
  private
    procedure StartNamed(const Name: string);
    function StartForContainers: string;
  published
    procedure ANameThatIsNoTextIsRefusedByNone;
    procedure ANameOfOtherLettersKeepsTheColumns;
    procedure ATimeLineIsOfOneProcess;
    procedure ASegmentOfAnotherKindIsNoPage;
    procedure AProcessThatEndsMeanwhileIsNamed;
    procedure AProcessInAContainerIsReadAndAsked;
    procedure AToolThatWasKilledInAContainerIsNotWaitedFor;
    procedure ToolsWithOneNumberInTwoContainersAskInTurn;
  end;

implementation

uses
  SysUtils, fpJson, jsonparser, BaseUnix, Test.Cases;

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

// ---------------------------------------------------------------------------- TOddProcessTests

procedure TOddProcessTests.StartNamed(const Name: string);
begin
  Shell(Format('cp Planted ''%s''', [Name]));
  StartAndStop(Format('''./%s'' stop', [Name]), '');
  DeleteFile(Built + Name);
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
  end;
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
      Refuses(Format(Words, [Planted.Id]), 4, Format('process %d has no status page', [Planted.Id]));
  finally
    Other.Free;
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

// Starts a process that does not answer, for tools in namespaces of processes of their own. Returns what
// `unshare` needs to make one.
function TOddProcessTests.StartForContainers: string;
begin
  Result := '';
  if fpGetUid <> 0 then
    Result := '--user';
  Needs(Format('unshare %s --pid --fork true', [Result]), 'namespaces of processes');
  Start('./Planted churn', '');
  Planted.Send(SIGSTOP);
  Planted.AwaitStop;
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
  Rights := StartForContainers;
  Has('asked by another tool', Shell(Format(AskAndDie, [Rights, Planted.Id])));
  Planted.Send(SIGCONT);
  CallWell(Format('do %d status', [Planted.Id]));
  Has('used ', Printed);
end;

// Each has the number 1 in a container of its own. The second one waits for the first, and leaves it the
// mailbox when it ends.
procedure TOddProcessTests.ToolsWithOneNumberInTwoContainersAskInTurn;
const
  Contained = 'unshare %0:s --pid --fork --kill-child ../lanemm do %1:d status --timeout=';
  AskTwice = Contained + '1h & asking=$!; for turn in $(seq 100); do ' + Contained + '100ms 2>&1'
    + ' | grep "asked by another tool" && break; done;'
    + ' ../lanemm do %1:d status --timeout=100ms 2>&1; kill -KILL $asking; wait $asking';
var
  Rights, Said: string;
begin
  Rights := StartForContainers;
  Said := Shell(Format(AskTwice, [Rights, Planted.Id]));
  Has('asked by another tool'#10, Said);
  Has('asked by another tool'#10, Copy(Said, Pos(#10, Said) + 1));
  Planted.Send(SIGCONT);
  CallWell(Format('do %d status', [Planted.Id]));
end;

initialization
  RegisterCases(TOutputTests, 'lanemm/Output');
  RegisterCases(TOddProcessTests, 'lanemm/OddProcess');
end.
