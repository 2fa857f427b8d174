/// FastMM's handlers of stack traces on top of LaneMM's: lists that end with 0, text in UTF-16.
//
// Owns:       the two handlers of the program.
// Callers:    the handlers: any thread, also inside of GetMem and in reports. That of texts uses no
//             heap; that of stack traces may, see LaneMM_OnTakeStack.
unit LaneMM.Compat.Stacks;

{$I ../LaneMM.inc}

interface

type
  /// Writes the return addresses of its callers, at most MaxDepth, without the first SkipFrames;
  /// the entries that remain are 0.
  TFastMM_GetStackTrace = procedure(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
  /// Writes MaxDepth return addresses as text, those that are 0 left out; returns the end of the
  /// text.
  TFastMM_ConvertStackTraceToText = function(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal;
    Buffer, BufferEnd: PWideChar): PWideChar;

/// LaneMM's backtrace in FastMM's form.
procedure OwnStackTrace(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
/// LaneMM's text in FastMM's form.
function OwnStackText(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal;
  Buffer, BufferEnd: PWideChar): PWideChar;
/// Returns the handler that takes stack traces.
function StackTraceHandler: TFastMM_GetStackTrace;
/// Sets the handler that takes stack traces; nil restores LaneMM's own.
procedure SetStackTraceHandler(Handler: TFastMM_GetStackTrace);
/// Returns the handler that writes them as text.
function StackTextHandler: TFastMM_ConvertStackTraceToText;
/// Sets the handler that writes them as text; nil restores LaneMM's own.
procedure SetStackTextHandler(Handler: TFastMM_ConvertStackTraceToText);

implementation

uses
  LaneMM;

const
  MostFrames = 256;
  MostText = 8191;

var
  TraceHandler: TFastMM_GetStackTrace;
  TextHandler: TFastMM_ConvertStackTraceToText;

procedure OwnStackTrace(ReturnAddresses: PNativeUInt; MaxDepth, SkipFrames: Cardinal);
var
  Frames: array[0..MostFrames - 1] of NativeUInt;
  Count: Cardinal;
begin
  Count := LaneMM_TakeStack(@Frames, MostFrames);
  if SkipFrames > Count then
    SkipFrames := Count;
  Dec(Count, SkipFrames);
  if Count > MaxDepth then
    Count := MaxDepth;
  FillChar(ReturnAddresses^, MaxDepth * SizeOf(NativeUInt), 0);
  Move(Frames[SkipFrames], ReturnAddresses^, Count * SizeOf(NativeUInt));
end;

// Copies the addresses that are not 0; returns their number.
function Compacted(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal; Frames: PNativeUInt): Cardinal;
var
  Index: Cardinal;
begin
  Result := 0;
  for Index := 1 to MaxDepth do
    if (ReturnAddresses[Index - 1] <> 0) and (Result < MostFrames) then
    begin
      Frames[Result] := ReturnAddresses[Index - 1];
      Inc(Result);
    end;
end;

function OwnStackText(ReturnAddresses: PNativeUInt; MaxDepth: Cardinal;
  Buffer, BufferEnd: PWideChar): PWideChar;
var
  Frames: array[0..MostFrames - 1] of NativeUInt;
  Text: array[0..MostText] of AnsiChar;
  Count, Length: NativeUInt;
begin
  Result := Buffer;
  if Buffer >= BufferEnd then
    Exit;
  Count := Compacted(ReturnAddresses, MaxDepth, @Frames);
  Length := LaneMM_StackText(@Frames, Count, @Text, MostText);
  Count := Utf8ToUnicode(Buffer, BufferEnd - Buffer, @Text, Length);
  if Count > 0 then
    Inc(Result, Count - 1); // without the #0
end;

// TLaneMM_FramesCall of the program's handler.
function TakeByHandler(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
begin
  FillChar(Frames^, Limit * SizeOf(NativeUInt), 0);
  TraceHandler(Frames, Limit, 0);
  Result := 0;
  while (Result < Limit) and (Frames[Result] <> 0) do
    Inc(Result);
end;

// TLaneMM_FramesTextCall of the program's handler. FastMM's text begins with the end of a line;
// LaneMM's ends with one, and without a text there is no line.
function TextByHandler(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar; Size: NativeUInt):
  NativeUInt;
var
  Wide: array[0..MostText] of WideChar;
  First, Last: PWideChar;
begin
  First := @Wide;
  Last := TextHandler(Frames, Count, @Wide, PWideChar(@Wide) + MostText);
  while (First < Last) and (First^ < ' ') do
    Inc(First);
  while (Last > First) and (Last[-1] < ' ') do
    Dec(Last);
  if First = Last then
    Exit(0);
  Last^ := #10;
  Result := UnicodeToUtf8(Buffer, Size, First, Last - First + 1);
  if Result > 0 then
    Dec(Result); // without the #0
end;

function StackTraceHandler: TFastMM_GetStackTrace;
begin
  Result := TraceHandler;
end;

procedure SetStackTraceHandler(Handler: TFastMM_GetStackTrace);
begin
  if @Handler = nil then
    Handler := OwnStackTrace;
  TraceHandler := Handler;
  if @Handler = @OwnStackTrace then
    LaneMM_OnTakeStack(nil)
  else
    LaneMM_OnTakeStack(TakeByHandler);
end;

function StackTextHandler: TFastMM_ConvertStackTraceToText;
begin
  Result := TextHandler;
end;

procedure SetStackTextHandler(Handler: TFastMM_ConvertStackTraceToText);
begin
  if @Handler = nil then
    Handler := OwnStackText;
  TextHandler := Handler;
  if @Handler = @OwnStackText then
    LaneMM_OnStackText(nil)
  else
    LaneMM_OnStackText(TextByHandler);
end;

initialization
  TraceHandler := OwnStackTrace;
  TextHandler := OwnStackText;
end.
