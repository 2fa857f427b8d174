/// Sends reports to the system's log: syslog, or the journal, which listens at the same socket.
//
// Owns:       Report.SystemLogFailures.
// Invariants: a report is one message, a long one several, of whole lines as far as they fit. A log
//             that takes no more is not waited for: its queue is short.
// Callers:    any thread; uses system calls only.
// Source:     RFC 3164, The BSD syslog Protocol, sections 4.1.1 and 4.1.3.
unit LaneMM.SystemLog;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Sends Text under the name of the program. Returns False when the log has not taken all of it;
/// the first time, a line on stderr says so.
function SystemLogSend(const Text: TText): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.OsFiles, LaneMM.SettingsState,
  LaneMM.ReportState;

const
  DefaultSocket: PAnsiChar = '/dev/log';
  // Bytes of a message that every daemon takes.
  MostBytes = 8000;
  // Of facility user, severity warning.
  Priority = '<12>';

function Socket: PAnsiChar;
begin
  Result := @Settings.SyslogPath;
  if Result^ = #0 then
    Result := DefaultSocket;
end;

// Adds what each message begins with: `<12>program[process]: `.
procedure AddTag(var Message: TText);
var
  Path: TPath;
begin
  OsProgramPath(@Path, SizeOf(Path));
  TextAddForm(Message, Priority + '%s[%u]: ', NativeUInt(TextFileName(@Path)), OsProcessId);
end;

// Returns the end of the message that begins at First: after its last line that fits.
function EndOf(const Text: TText; First: NativeUInt): NativeUInt;
var
  Last: NativeUInt;
begin
  if NativeUInt(Text.Length - First) <= MostBytes then
    Exit(Text.Length);
  Last := First + MostBytes;
  Result := Last;
  while (Result > First) and (Text.Start[Result - 1] <> #10) do
    Dec(Result);
  if Result = First then
    Result := Last;
end;

// Sends the lines of Text, each message with its tag. Returns whether the log has taken all.
function SendLines(const Text: TText): Boolean;
var
  Message: TText;
  First, Limit, TagLength: NativeUInt;
begin
  Result := TextOpen(Message, MostBytes + 2 * OsPageSize);
  AddTag(Message);
  TagLength := Message.Length;
  First := 0;
  while Result and (First < Text.Length) do
  begin
    Limit := EndOf(Text, First);
    Message.Length := TagLength;
    TextAddSome(Message, Text.Start + First, Limit - First);
    Result := OsLogSend(Socket, Message.Start, Message.Length);
    First := Limit;
  end;
  TextClose(Message);
end;

function SystemLogSend(const Text: TText): Boolean;
begin
  Result := SendLines(Text);
  // Any order: a count.
  if not Result and (FetchAdd(Report.SystemLogFailures, 1) = 0) then
    TextSay('', Socket,
      ', the socket of the system''s log, cannot be written; reports go to stderr');
end;

end.
