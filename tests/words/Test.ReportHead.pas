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
  Result := TTestProgram.Create('DamagedEnd', '-O1 -gl -Xs-');
end;

procedure TReportHeadTests.ReportHasProcessTimeAndCommandLine;
var
  Before, After: string;
  Users: TTestProgram;
begin
  Users := Damaged;
  Before := FormatDateTime('yyyy"-"mm"-"dd" "hh":', LocalTimeToUniversal(Now));
  Users.Run('debug', ['halt']);
  After := FormatDateTime('yyyy"-"mm"-"dd" "hh":', LocalTimeToUniversal(Now));
  Has('LaneMM: process ', Users.Errors);
  Has(', version ' + LaneMM_Version + ', ', Users.Errors);
  if Pos(After, Users.Errors) = 0 then
    Has(Before, Users.Errors);
  Has(' UTC, ' + Users.CommandPath + ' halt:'#10, Users.Errors);
  Users.Free;
end;

procedure TReportHeadTests.LogOfEventsHasThemToo;
var
  Events: TTestProgram;
begin
  Events := TTestProgram.Create('WatchEvents', '-O1 -gl -Xs-');
  Events.Run('growth', ['growth', '1000']);
  Has('LaneMM event log of process ', Events.Written('EventLog.txt'));
  Has(', version ' + LaneMM_Version + ', ', Events.Written('EventLog.txt'));
  Has(' UTC, ' + Events.CommandPath + ' growth 1000'#10, Events.Written('EventLog.txt'));
  Events.Free;
end;

procedure TReportHeadTests.LongCommandLineIsCut;
var
  Users: TTestProgram;
begin
  Users := Damaged;
  Users.Run('debug', ['halt', StringOfChar('x', 40) + #10 + StringOfChar('y', 150)]);
  Has('x?y', Users.Errors);
  Has('yyy...:'#10, Users.Errors);
  HasNot(StringOfChar('y', 150), Users.Errors);
  Users.Free;
end;

const
  Euro = #$E2#$82#$AC;
  Unknown = #$EF#$BF#$BD; // U+FFFD

// The euro signs begin at each of the three places of the bytes where the line is cut.
procedure TReportHeadTests.LongCommandLineIsCutBetweenCharacters;
var
  Users: TTestProgram;
  Start: Integer;
begin
  Users := Damaged;
  for Start := 1 to 3 do
  begin
    Users.Run('debug', ['halt', StringOfChar('x', Start) + DupeString(Euro, 100)]);
    Has(Euro + '...:'#10, Users.Errors);
  end;
  Users.Free;
end;

// The paths of the file and of its program are ASCII.
procedure TReportHeadTests.JsonOfAnyCommandLineIsUtf8;
var
  Leaking: TTestProgram;
begin
  Leaking := TTestProgram.Create('Leaking', '-O1 -gl -Xs-');
  Leaking.Run('leaks,leaks:format=json', ['texts', 'caf'#$E9' '#$C3#$A9' '#$FF]);
  Has('texts caf' + Unknown + ' '#$C3#$A9' ' + Unknown + '"', Leaking.Written('.json'));
  Leaking.Free;
end;

// The file is stored without compression.
procedure TReportHeadTests.PprofOfAnyCommandLineIsUtf8;
var
  Samples: TTestProgram;
begin
  Samples := TTestProgram.Create('WatchSamples', '-O1 -gl -Xs-');
  Samples.Run('profile,pprof', ['1', 'caf'#$E9' '#$C3#$A9]);
  Has(' 1 caf' + Unknown + ' '#$C3#$A9', process ', Samples.Written('.pb.gz'));
  Samples.Free;
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
var
  Leaking: TTestProgram;
begin
  Leaking := TTestProgram.Create('Leaking', '-O1 -gl -Xs-');
  Leaking.Run('leaks,leaks:format=json', ['texts']);
  Has('Item 0', Leaking.Errors);
  Has('Item 0', Leaking.Written('.json'));
  Leaking.Run('leaks,leaks:format=json,dump=0', ['texts']);
  Has('5 x AnsiString', Leaking.Errors);
  HasNot('Item 0', Leaking.Errors);
  HasNot('Leaking texts', Leaking.Errors);
  HasNot('Item 0', Leaking.Written('.json'));
  Leaking.Free;
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
  Users: TTestProgram;
  Log: TSystemLog;
  Text: string;
begin
  Users := Damaged;
  Log := TSystemLog.Create(Users.Folder + 'log.socket');
  Users.Run('debug,event=all:syslog,syslog=' + Log.Path, ['halt']);
  Users.EndedWith(3);
  AssertEquals('on the screen', '', Users.Errors);
  Text := Log.Take;
  Has('Heap block overrun: bytes past the end were modified.', Text);
  Same(2, Length(Text.Split(['<12>DamagedEnd['])) - 1, 'messages');
  Has(']: LaneMM: process ', Text);
  Log.Free;
  Users.Free;
end;

procedure TReportHeadTests.MissingSystemLogStopsNothing;
var
  Users: TTestProgram;
begin
  Users := Damaged;
  Users.Run('debug,event=all:syslog:file,syslog=' + Users.Folder + 'none', ['halt']);
  Users.EndedWith(3);
  Has('Heap block overrun', Users.Written('EventLog.txt'));
  Users.Free;
end;

procedure TReportHeadTests.FullSystemLogStopsNothing;
var
  Users: TTestProgram;
  Log: TSystemLog;
begin
  Users := Damaged;
  Log := TSystemLog.Create(Users.Folder + 'log.socket');
  Users.Run('debug,trace,trace:most=100000,event=all:syslog,syslog=' + Log.Path, ['halt']);
  Users.EndedWith(3);
  Has('Allocation log: a block was allocated.', Log.Take);
  Log.Free;
  Users.Free;
end;

function CountOf(const Part, Text: string): Integer;
begin
  Result := Length(Text.Split([Part])) - 1;
end;

procedure TReportHeadTests.ReportsThatTheSystemLogDoesNotTakeGoToStandardError;
var
  Users: TTestProgram;
  Notice: string;
begin
  Users := Damaged;
  Notice := 'LaneMM: ' + Users.Folder + 'none, the socket of the system''s log, cannot be written; '
    + 'reports go to stderr'#10;
  Users.Run('debug,event=all:syslog,syslog=' + Users.Folder + 'none', ['halt']);
  Users.EndedWith(3);
  AssertTrue(Users.Errors, StartsStr(Notice, Users.Errors));
  Same(1, CountOf(Notice, Users.Errors), 'lines about the log');
  Has('Double free', Users.Errors);
  Has('Heap block overrun: bytes past the end were modified.', Users.Errors);
  AssertEquals('event log', '', Users.Written('EventLog.txt'));
  Users.Free;
end;

procedure TReportHeadTests.ReportThatNoLogTakesIsOnStandardErrorOnce;
var
  Users: TTestProgram;
  Targets: string;
begin
  Users := Damaged;
  for Targets in TStringArray.Create('syslog:stderr', 'syslog:file:stderr', 'syslog:file') do
  begin
    Users.Run('debug,event=all:' + Targets + ',syslog=' + Users.Folder + 'none', ['halt']);
    Users.EndedWith(3);
    Same(1, CountOf('Heap block overrun', Users.Errors), Targets);
  end;
  // A folder is where the event log would be.
  Users.RunInShell('debug,event=all:syslog:file,syslog=' + Users.Folder + 'none',
    'log="${P}_MemoryManager_EventLog.txt"; cd "${P%/*}"; mkdir "$log"; "$P" halt; code=$?; '
    + 'rmdir "$log"; exit $code');
  Users.EndedWith(3);
  Has('EventLog.txt cannot be written'#10, Users.Errors);
  Same(1, CountOf('Heap block overrun', Users.Errors), 'no log at all');
  Users.Free;
end;

initialization
  RegisterTest(TReportHeadTests);
end.
