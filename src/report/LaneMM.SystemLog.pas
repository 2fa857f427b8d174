/// Sends reports to the system's log: syslog, or the journal, which listens at the same socket.
//
// Owns:       nothing.
// Invariants: a report is one message, a long one several, of whole lines as far as they fit. A log
//             that takes no more is not waited for: its queue is short, and the rest is lost.
// Callers:    any thread; uses system calls only.
// Source:     RFC 3164, The BSD syslog Protocol, sections 4.1.1 and 4.1.3.
unit LaneMM.SystemLog;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Sends Text under the name of the program.
procedure SystemLogSend(const Text: TText);

implementation

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.ReportState;

const
  DefaultSocket: PAnsiChar = '/dev/log';
  // Bytes of a message that every daemon takes.
  MostBytes = 8000;
  // Of facility user, severity warning.
  Priority = '<12>';

function Socket: PAnsiChar;
begin
  Result := PAnsiChar(Report.SystemLog);
  if (Result = nil) or (Result^ = #0) then
    Result := DefaultSocket;
end;

// Adds what each message begins with: `<12>program[process]: `.
procedure AddTag(var Message: TText);
var
  Path: TPath;
  Name: PAnsiChar;
  Index: NativeInt;
  Length: NativeUInt;
begin
  Length := OsProgramPath(@Path, SizeOf(Path));
  Name := @Path;
  for Index := 0 to NativeInt(Length) - 1 do
    if Path[Index] = '/' then
      Name := @Path[Index + 1];
  TextAdd(Message, Priority);
  TextAddChars(Message, Name);
  TextAdd(Message, '[');
  TextAddNumber(Message, OsProcessId);
  TextAdd(Message, ']: ');
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

procedure SystemLogSend(const Text: TText);
var
  Message: TText;
  First, Limit, TagLength: NativeUInt;
begin
  if not TextOpen(Message, MostBytes + 2 * OsPageSize) then
    Exit;
  AddTag(Message);
  TagLength := Message.Length;
  First := 0;
  while First < Text.Length do
  begin
    Limit := EndOf(Text, First);
    Message.Length := TagLength;
    TextAddSome(Message, Text.Start + First, Limit - First);
    OsLogSend(Socket, Message.Start, Message.Length);
    First := Limit;
  end;
  TextClose(Message);
end;

end.
