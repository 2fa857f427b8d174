/// Tests of LaneMM.ReportHead and of what reports leave out, with a program that damages a block.
unit Test.ReportHead;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TReportHeadTests = class(TLaneTest)
  strict private
    procedure IsWritten(const Expected: string; Seconds: UInt64);
    procedure Escapes(const Json, Xml, Part: string);
  published
    procedure TimesAreWrittenAsTheCalendarHasThem;
    procedure ReportHasProcessTimeAndCommandLine;
    procedure LogOfEventsHasThemToo;
    procedure LongCommandLineIsCut;
    procedure LongCommandLineIsCutBetweenCharacters;
    procedure JsonOfAnyCommandLineIsUtf8;
    procedure PprofOfAnyCommandLineIsUtf8;
    procedure JsonAndXmlOfAnyTextAreUtf8;
    procedure ContentsAndArgumentsCanBeLeftOut;
    procedure SystemLogGetsEachReport;
    procedure MissingSystemLogStopsNothing;
    procedure FullSystemLogStopsNothing;
    procedure ReportsThatTheSystemLogDoesNotTakeGoToStandardError;
    procedure ReportThatNoLogTakesIsOnStandardErrorOnce;
  end;

implementation

uses
  Classes, SysUtils, StrUtils, DateUtils, BaseUnix, Sockets, testregistry, Test.Programs, LaneMM,
  LaneMM.Text, LaneMM.ReportHead;

procedure TReportHeadTests.IsWritten(const Expected: string; Seconds: UInt64);
var
  Text: TText;
  Written: string;
begin
  AssertTrue(TextOpen(Text, 4096));
  HeadAddTime(Text, Seconds);
  SetString(Written, Text.Start, Text.Length);
  TextClose(Text);
  AssertEquals(Expected, Written);
end;

procedure TReportHeadTests.TimesAreWrittenAsTheCalendarHasThem;
var
  Time: TDateTime;
  Day: Integer;
begin
  IsWritten('1970-01-01 00:00:00 UTC', 0);
  IsWritten('2000-02-29 23:59:59 UTC', 951868799);
  for Day := 0 to 60000 do
  begin
    Time := UnixToDateTime(Day * Int64(86400) + Day);
    IsWritten(FormatDateTime('yyyy"-"mm"-"dd" "hh":"nn":"ss', Time) + ' UTC',
      Day * UInt64(86400) + Day);
  end;
end;

function Damaged: TTestProgram;
begin
  Result := TestProgram('DamagedEnd');
end;

procedure TReportHeadTests.ReportHasProcessTimeAndCommandLine;
var
  Before, After: string;
begin
  Before := FormatDateTime('yyyy"-"mm"-"dd" "hh":', LocalTimeToUniversal(Now));
  Damaged.Run('debug', ['halt']);
  After := FormatDateTime('yyyy"-"mm"-"dd" "hh":', LocalTimeToUniversal(Now));
  Has('LaneMM: process ', Damaged.Errors);
  Has(', version ' + LaneMM_Version + ', ', Damaged.Errors);
  if Pos(After, Damaged.Errors) = 0 then
    Has(Before, Damaged.Errors);
  Has(' UTC, ' + Damaged.CommandPath + ' halt:'#10, Damaged.Errors);
end;

procedure TReportHeadTests.LogOfEventsHasThemToo;
begin
  TestProgram('WatchEvents').Run('growth', ['growth', '1000']);
  Has('LaneMM event log of process ', TestProgram('WatchEvents').Written('EventLog.txt'));
  Has(', version ' + LaneMM_Version + ', ', TestProgram('WatchEvents').Written('EventLog.txt'));
  Has(' UTC, ' + TestProgram('WatchEvents').CommandPath + ' growth 1000'#10, TestProgram('WatchEvents').Written('EventLog.txt'));
end;

procedure TReportHeadTests.LongCommandLineIsCut;
begin
  Damaged.Run('debug', ['halt', StringOfChar('x', 40) + #10 + StringOfChar('y', 150)]);
  Has('x?y', Damaged.Errors);
  Has('yyy...:'#10, Damaged.Errors);
  HasNot(StringOfChar('y', 150), Damaged.Errors);
end;

const
  Euro = #$E2#$82#$AC;
  Unknown = #$EF#$BF#$BD; // U+FFFD

// The euro signs begin at each of the three places of the bytes where the line is cut.
procedure TReportHeadTests.LongCommandLineIsCutBetweenCharacters;
var
  Start: Integer;
begin
  for Start := 1 to 3 do
  begin
    Damaged.Run('debug', ['halt', StringOfChar('x', Start) + DupeString(Euro, 100)]);
    Has(Euro + '...:'#10, Damaged.Errors);
  end;
end;

// The paths of the file and of its program are ASCII.
procedure TReportHeadTests.JsonOfAnyCommandLineIsUtf8;
begin
  TestProgram('Leaking').Run('leaks,leaks:format=json', ['texts', 'caf'#$E9' '#$C3#$A9' '#$FF]);
  Has('texts caf' + Unknown + ' '#$C3#$A9' ' + Unknown + '"', TestProgram('Leaking').Written('.json'));
end;

// The file is stored without compression.
procedure TReportHeadTests.PprofOfAnyCommandLineIsUtf8;
begin
  TestProgram('WatchSamples').Run('profile,pprof', ['1', 'caf'#$E9' '#$C3#$A9]);
  Has(' 1 caf' + Unknown + ' '#$C3#$A9', process ', TestProgram('WatchSamples').Written('.pb.gz'));
end;

procedure TReportHeadTests.Escapes(const Json, Xml, Part: string);
var
  Text: TText;
begin
  AssertTrue(TextOpen(Text, 4096));
  TextAddJson(Text, PAnsiChar(Part));
  AssertEquals('JSON', Json, string(PAnsiChar(Text.Start)));
  TextClose(Text);
  AssertTrue(TextOpen(Text, 4096));
  TextAddXml(Text, PAnsiChar(Part));
  AssertEquals('XML', Xml, string(PAnsiChar(Text.Start)));
  TextClose(Text);
end;

// The Unicode Standard, table 3-7, the bytes at its limits; XML 1.0, production 2.
procedure TReportHeadTests.JsonAndXmlOfAnyTextAreUtf8;
const
  Whole: array[0..11] of string = ('a'#$7F, #$C2#$80, #$DF#$BF, #$E0#$A0#$80, #$EC#$BF#$BF, #$ED#$9F#$BF,
    #$EE#$80#$80, #$EF#$BF#$BD, #$F0#$90#$80#$80, #$F3#$BF#$BF#$BF, #$F4#$80#$80#$80, #$F4#$8F#$BF#$BF);
  None: array[0..14] of string = (#$80, #$BF, #$C1#$BF, #$C2, #$E0#$9F#$BF, #$ED#$A0#$80, #$E2#$82,
    #$F0#$8F#$BF#$BF, #$F4#$90#$80#$80, #$F5#$80#$80#$80, #$FF, #$F0#$90#$80, #$EF#$BF#$BE, #$EF#$BF#$BF,
    #$C0#$80);
var
  Each: string;
begin
  for Each in Whole do
    Escapes('x' + Each + 'y', 'x' + Each + 'y', 'x' + Each + 'y');
  for Each in None do
    Escapes('x' + DupeString(Unknown, Length(Each)) + 'y', 'x' + DupeString(Unknown, Length(Each)) + 'y',
      'x' + Each + 'y');
  Escapes(Unknown + '\u003c\u0022', Unknown + '&lt;&quot;', #$E2'<"');
  Escapes('\u0001\u000b\u001f\u0009', '...'#9, #1#11#31#9);
end;

procedure TReportHeadTests.ContentsAndArgumentsCanBeLeftOut;
begin
  TestProgram('Leaking').Run('leaks,leaks:format=json', ['texts']);
  Has('Item 0', TestProgram('Leaking').Errors);
  Has('Item 0', TestProgram('Leaking').Written('.json'));
  TestProgram('Leaking').Run('leaks,leaks:format=json,dump=0', ['texts']);
  Has('5 x AnsiString', TestProgram('Leaking').Errors);
  HasNot('Item 0', TestProgram('Leaking').Errors);
  HasNot('Leaking texts', TestProgram('Leaking').Errors);
  HasNot('Item 0', TestProgram('Leaking').Written('.json'));
end;

// ---------------------------------------------------------------------------- the system's log

type
  // A socket as the system's log has it.
  TSystemLog = class
    Path: string;
    Handle: LongInt;
    constructor Create(const Name: string);
    destructor Destroy; override;
    function Take: string;
  end;

constructor TSystemLog.Create(const Name: string);
var
  Address: sockaddr_un;
begin
  Path := Name;
  DeleteFile(Path);
  Handle := fpSocket(AF_UNIX, SOCK_DGRAM, 0);
  Address := Default(sockaddr_un);
  Address.sun_family := AF_UNIX;
  Move(Path[1], Address.sun_path, Length(Path));
  if fpBind(Handle, @Address, SizeOf(Address)) <> 0 then
    raise Exception.CreateFmt('no socket at %s: error %d', [Path, SocketError]);
end;

destructor TSystemLog.Destroy;
begin
  fpClose(Handle);
  DeleteFile(Path);
end;

// All that was sent, a line for each message.
function TSystemLog.Take: string;
const
  DoNotWait = $40;
var
  Message: array[0..8191] of AnsiChar;
  Count: NativeInt;
  Part: string;
begin
  Result := '';
  repeat
    Count := fpRecv(Handle, @Message, SizeOf(Message), DoNotWait);
    if Count <= 0 then
      Exit;
    SetString(Part, PAnsiChar(@Message), Count);
    Result := Result + Part + #10;
  until False;
end;

procedure TReportHeadTests.SystemLogGetsEachReport;
var
  Log: TSystemLog;
  Text: string;
begin
  Log := TSystemLog.Create(Damaged.Folder + 'log.socket');
  Damaged.Run('debug,event=all:syslog,syslog="' + Log.Path + '"', ['halt']);
  Damaged.EndedWith(3);
  AssertEquals('on the screen', '', Damaged.Errors);
  Text := Log.Take;
  Has('Heap block overrun: bytes past the end were modified.', Text);
  Same(2, Length(Text.Split(['<12>DamagedEnd['])) - 1, 'messages');
  Has(']: LaneMM: process ', Text);
  Log.Free;
end;

procedure TReportHeadTests.MissingSystemLogStopsNothing;
begin
  Damaged.Run('debug,event=all:syslog:file,syslog="' + Damaged.Folder + 'none"', ['halt']);
  Damaged.EndedWith(3);
  Has('Heap block overrun', Damaged.Written('EventLog.txt'));
end;

procedure TReportHeadTests.FullSystemLogStopsNothing;
var
  Log: TSystemLog;
begin
  Log := TSystemLog.Create(Damaged.Folder + 'log.socket');
  Damaged.Run('debug,trace,trace:most=100000,event=all:syslog,syslog="' + Log.Path + '"', ['halt']);
  Damaged.EndedWith(3);
  Has('Allocation log: a block was allocated.', Log.Take);
  Log.Free;
end;

function CountOf(const Part, Text: string): Integer;
begin
  Result := Length(Text.Split([Part])) - 1;
end;

procedure TReportHeadTests.ReportsThatTheSystemLogDoesNotTakeGoToStandardError;
var
  Notice: string;
begin
  Notice := 'LaneMM: ' + Damaged.Folder + 'none, the socket of the system''s log, cannot be written; '
    + 'reports go to stderr'#10;
  Damaged.Run('debug,event=all:syslog,syslog="' + Damaged.Folder + 'none"', ['halt']);
  Damaged.EndedWith(3);
  AssertTrue(Damaged.Errors, StartsStr(Notice, Damaged.Errors));
  Same(1, CountOf(Notice, Damaged.Errors), 'lines about the log');
  Has('Double free', Damaged.Errors);
  Has('Heap block overrun: bytes past the end were modified.', Damaged.Errors);
  AssertEquals('event log', '', Damaged.Written('EventLog.txt'));
end;

procedure TReportHeadTests.ReportThatNoLogTakesIsOnStandardErrorOnce;
var
  Targets: string;
begin
  for Targets in TStringArray.Create('syslog:stderr', 'syslog:file:stderr', 'syslog:file') do
  begin
    Damaged.Run('debug,event=all:' + Targets + ',syslog="' + Damaged.Folder + 'none"', ['halt']);
    Damaged.EndedWith(3);
    Same(1, CountOf('Heap block overrun', Damaged.Errors), Targets);
  end;
  // A folder is where the event log would be.
  Damaged.RunInShell('debug,event=all:syslog:file,syslog="' + Damaged.Folder + 'none"',
    'log="${P}_MemoryManager_EventLog.txt"; cd "${P%/*}"; mkdir "$log"; "$P" halt; code=$?; '
    + 'rmdir "$log"; exit $code');
  Damaged.EndedWith(3);
  Has('EventLog.txt cannot be written'#10, Damaged.Errors);
  Same(1, CountOf('Heap block overrun', Damaged.Errors), 'no log at all');
end;

initialization
  RegisterTest(TReportHeadTests);
end.
