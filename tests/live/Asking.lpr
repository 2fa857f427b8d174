/// Asks a process many times, and checks that each request is answered.
///
///   Asking PID COUNT [WORDS]   sends the same WORDS each time; without, a list of all kinds
program Asking;

{$mode delphi}{$H+}

uses
  SysUtils, LaneMM.StatusPage, ToolCommands, ToolMailbox;

const
  PatienceMs = 30000;
  // Cheap ones; each hundredth request is an expensive one.
  Words: array[0..11] of string = ('status', 'contention,least=3', 'trim', 'growth', 'contention=0',
    'profile,rate=64K', 'status,trim,status', 'profile=0', 'growth=0', 'debug', 'debug=0',
    'stacks=0,limit=0');
  Reports: array[0..5] of string = ('report=inuse', 'contention,report=contention',
    'report=inuse:json', 'snapshot', 'profile,report=profile:pprof', 'growth,report=growth:html');
  ReportEach = 100;

var
  Mailbox: TMailbox;
  Index, Count: Integer;
  Request: string;
  Answers: array[TPageOutcome] of Integer;

// Returns request number Index.
function RequestAt(Index: Integer): string;
begin
  if ParamCount > 2 then
    Exit(ParamStr(3));
  Result := Words[Index mod Length(Words)];
  if Index mod ReportEach = 0 then
    Result := Reports[Index div ReportEach mod Length(Reports)];
end;

begin
  Mailbox := TMailbox.Create(StrToInt(ParamStr(1)));
  Count := StrToInt(ParamStr(2));
  FillChar(Answers, SizeOf(Answers), 0);
  for Index := 1 to Count do
  begin
    Request := RequestAt(Index);
    try
      Mailbox.Ask(Request, PatienceMs);
    except
      on Error: ETool do
      begin
        WriteLn('request ', Index, ' `', Request, '`: ', Error.Message);
        Halt(1);
      end;
    end;
    Inc(Answers[Mailbox.Outcome]);
    if Mailbox.Outcome in [poWrongWords, poClosed] then
    begin
      WriteLn('request ', Index, ' `', Request, '`: ', Mailbox.Answer);
      Halt(1);
    end;
  end;
  WriteLn(Count, ' requests answered, ', Answers[poDone], ' of them done; ', Mailbox.RingCount,
    ' rings, ', Mailbox.StartCount, ' threads started, ', Mailbox.Copy.Mailbox.Postponed.Value, ' times postponed');
  Mailbox.Free;
end.
