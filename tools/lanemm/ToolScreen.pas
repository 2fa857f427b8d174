/// The terminal as a screen with keys, for a view that draws itself again and again.
//
// Signals become bytes of a pipe, which is waited for together with the keys: none is lost between
// a look and the wait. While the program is stopped, and when it ends, the terminal is as it was.
unit ToolScreen;

{$mode delphi}{$H+}

interface

uses
  TermIO;

type
  /// The terminal of the standard input and output.
  TScreen = class
  private
    Before: TermIOS;
    procedure Enter;
    procedure Leave;
    procedure Stop;
    procedure Obey(Signal: Byte);
  public
    /// A signal or the end of the input ends the view.
    IsClosed: Boolean;
    /// Takes the terminal: keys come at once and unseen, without a cursor. One at a time. Raises
    /// ETool where there is none, or one of no known kind.
    constructor Create;
    /// Gives the terminal back.
    destructor Destroy; override;
    /// Waits for a key, at most DelayMs milliseconds, without a limit if that is negative. Returns
    /// its bytes, several for one such as an arrow; none after the time or a signal. Everything is
    /// to be drawn anew then: the terminal may have another size.
    function Wait(DelayMs: Int64): string;
  end;

implementation

uses
  BaseUnix, ToolCommands, ToolText;

const
  Watched: array[0..6] of Integer = (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH);

var
  // The pipe of the signals.
  Signals: TFilDes;

procedure Note(Signal: LongInt); cdecl;
var
  Sign: Byte;
  Error: cint;
begin
  Error := fpgeterrno;
  Sign := Signal;
  fpWrite(Signals[1], @Sign, 1);
  fpseterrno(Error);
end;

procedure HandleAll(Handler: SignalHandler);
var
  Signal: Integer;
begin
  for Signal in Watched do
    fpSignal(Signal, Handler);
end;

constructor TScreen.Create;
begin
  inherited Create;
  if (IsATTY(StdInputHandle) <> 1) or not IsTerminal then
    raise ETool.Create(ecUsage, 'top needs a terminal, and its kind in TERM; --once does without');
  TCGetAttr(StdInputHandle, Before);
  fpPipe(Signals);
  HandleAll(Note);
  Enter;
end;

destructor TScreen.Destroy;
begin
  if Signals[1] <> 0 then
  begin
    Leave;
    HandleAll(SignalHandler(SIG_DFL));
    fpClose(Signals[0]);
    fpClose(Signals[1]);
    Signals := Default(TFilDes);
  end;
  inherited Destroy;
end;

// In the background the system stops the program here, until it has the terminal.
procedure TScreen.Enter;
var
  Raw: TermIOS;
begin
  Raw := Before;
  Raw.c_lflag := Raw.c_lflag and not (ICANON or ECHO);
  TCSetAttr(StdInputHandle, TCSANOW, Raw);
  Write(#27'[?1049h'#27'[?25l');
  Flush(Output);
end;

procedure TScreen.Leave;
begin
  {$push}{$I-} // the terminal may have gone
  Write(#27'[?25h'#27'[?1049l');
  Flush(Output);
  {$pop}
  InOutRes := 0;
  TCSetAttr(StdInputHandle, TCSANOW, Before);
end;

// Stops the program, as the signal would have done by itself, until it goes on.
procedure TScreen.Stop;
begin
  Leave;
  fpSignal(SIGTSTP, SignalHandler(SIG_DFL));
  fpKill(fpGetPid, SIGTSTP);
  fpSignal(SIGTSTP, Note);
  Enter;
end;

procedure TScreen.Obey(Signal: Byte);
begin
  case Signal of
    SIGTSTP: Stop;
    SIGCONT: Enter; // it was stopped without notice, or is in the foreground again
    SIGWINCH: ;
  else
    IsClosed := True;
  end;
end;

function TScreen.Wait(DelayMs: Int64): string;
const
  MostBytes = 32;
var
  Handles: TFDSet;
  Time: TTimeVal;
  Limit: PTimeVal;
  Signal: Byte;
  Count: Integer;
begin
  Result := '';
  fpFD_ZERO(Handles);
  fpFD_SET(StdInputHandle, Handles);
  fpFD_SET(Signals[0], Handles);
  Time.tv_sec := DelayMs div 1000;
  Time.tv_usec := DelayMs mod 1000 * 1000;
  Limit := @Time;
  if DelayMs < 0 then
    Limit := nil;
  // A signal ends the wait early; its byte is there at the next one.
  if fpSelect(Signals[0] + 1, @Handles, nil, nil, Limit) <= 0 then
    Exit;
  if (fpFD_ISSET(Signals[0], Handles) = 1) and (fpRead(Signals[0], @Signal, 1) = 1) then
  begin
    Obey(Signal);
    Exit;
  end;
  SetLength(Result, MostBytes);
  Count := fpRead(StdInputHandle, @Result[1], MostBytes);
  IsClosed := Count <= 0;
  if IsClosed then
    Count := 0;
  SetLength(Result, Count);
end;

end.
