/// `lanemm report PID threads`: which thread waits for which.
unit ToolThreads;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Shows the threads of the process, or the core file, that the first word names.
procedure ShowThreads(Arguments: TArguments);

implementation

uses
  SysUtils, TargetSymbols, ThreadStacks, ThreadWaits, ToolOpen;

const
  FullDepth = 64; // frames of a backtrace

function NameOf(const Thread: TThreadState): string;
begin
  Result := Format('thread %d', [Thread.Number]);
  if Thread.Name <> '' then
    Result := Format('%s (%s)', [Result, Thread.Name]);
end;

// Returns what the thread does, with the line where it does it.
function WaitText(Report: TThreadReport; const Thread: TThreadState): string;
begin
  case Thread.Kind of
    waRuns: Result := 'runs';
    waEngine: Result := 'is LaneMM''s own';
  else
    Result := 'waits for ' + Thread.What;
  end;
  if Thread.IsRefused then
    Result := 'waits for ever for ' + Thread.What;
  if not Thread.HasRegisters then
    Result := 'is in an unknown state'
  else if (Thread.Kind = waTime) and (Thread.Owner <> 0) then
    Result := Result + ' for a limited time';
  Result := Result + Report.LineOf(Thread);
  if (Thread.Owner = 0) or (Thread.Kind = waThread) then
    Exit;
  if Thread.Owner = Thread.Number then
    Result := Result + ', which it holds itself'
  else if Report.Find(Thread.Owner) = nil then
    Result := Format('%s, held by thread %d, which has ended', [Result, Thread.Owner])
  else
    Result := Format('%s, held by thread %d', [Result, Thread.Owner]);
end;

procedure WriteLine(Report: TThreadReport; Thread: PThreadState; const Indent: string);
begin
  WriteLn(Indent, NameOf(Thread^), ' ', WaitText(Report, Thread^));
end;

// Writes a title, and the threads behind it; nothing without any.
procedure WriteFinding(Report: TThreadReport; const Title: string; const Numbers: TArray<Cardinal>);
var
  Number: Cardinal;
begin
  if Numbers <> nil then
    WriteLn(Title);
  for Number in Numbers do
    WriteLine(Report, Report.Find(Number), '  ');
end;

// Returns the numbers of signals, with blanks before them.
function SignalsText(Signals: Int64): string;
var
  Index: Integer;
begin
  Result := '';
  for Index := 1 to 64 do
    if Signals and (Int64(1) shl (Index - 1)) <> 0 then
      Result := Result + ' ' + IntToStr(Index);
end;

// Returns the threads that the system refused a lock for a deadlock.
function Refused(Report: TThreadReport): TArray<Cardinal>;
var
  Each: TThreadState;
begin
  Result := nil;
  for Each in Report.Threads do
    if Each.IsRefused then
      Insert(Each.Number, Result, Length(Result));
end;

// Returns whether one of the stuck threads waits for another to initialize something.
function HasInitializing(Report: TThreadReport): Boolean;
var
  Number: Cardinal;
begin
  for Number in Report.Victims([waEvent]) do
    if Report.Find(Number)^.IsInitializing then
      Exit(True);
  Result := False;
end;

// Returns the title of threads that wait for events which no thread can set.
function TitleOfForgotten(Report: TThreadReport): string;
const
  Causes: array[Boolean] of string = ('Lost wake-up: ', 'Deadlock or lost wake-up: ');
begin
  Result := 'no thread is left to set the events that these wait for';
  if (Report.Signals <> 0) and (Report.Signals <> -1) then // negative: the last signal is among them
    Result := Format('%s, but maybe the handler of a signal:%s', [Result, SignalsText(Report.Signals)])
  else if (Report.Cycles = nil) and (Refused(Report) = nil) then
    Exit(Causes[HasInitializing(Report)] + Result);
  Result[1] := 'N';
end;

// Returns the threads that wait for others, without those that the system refused.
function OtherVictims(Report: TThreadReport): TArray<Cardinal>;
var
  Number: Cardinal;
begin
  Result := nil;
  for Number in Report.Victims([waLock, waThread]) do
    if not Report.Find(Number)^.IsRefused then
      Insert(Number, Result, Length(Result));
end;

// Writes what is wrong; returns whether something is.
function WriteFindings(Report: TThreadReport): Boolean;
var
  Cycle, Forgotten, Others: TArray<Cardinal>;
begin
  for Cycle in Report.Cycles do
    if Length(Cycle) = 1 then
      WriteFinding(Report, 'Deadlock of a thread with itself:', Cycle)
    else
      WriteFinding(Report, Format('Deadlock of %d threads:', [Length(Cycle)]), Cycle);
  WriteFinding(Report, 'Deadlock that the system found when a thread asked for a lock:', Refused(Report));
  Forgotten := Report.Victims([waEvent]);
  Others := OtherVictims(Report);
  WriteFinding(Report, TitleOfForgotten(Report) + ':', Forgotten);
  WriteFinding(Report, 'Threads that wait for ever for others:', Others);
  Result := (Report.Cycles <> nil) or (Forgotten <> nil) or (Others <> nil)
    or (Refused(Report) <> nil);
end;

procedure WriteThread(Report: TThreadReport; Thread: PThreadState);
var
  Frame: TPlaceFrame;
  Depth: Integer;
begin
  WriteLn;
  WriteLine(Report, Thread, '');
  Depth := 0;
  for Frame in Report.FramesOf(Thread^) do
  begin
    Inc(Depth);
    if Depth <= FullDepth then
      WriteLn('    ', FrameLine(Frame));
  end;
  if Depth > FullDepth then
    WriteLn('    ', Depth - FullDepth, ' more');
end;

procedure WriteReport(Report: TThreadReport);
var
  Index: Integer;
begin
  if not WriteFindings(Report) then
    WriteLn('No deadlock, and no lost wake-up that can be known.');
  for Index := 0 to High(Report.Threads) do
    WriteThread(Report, @Report.Threads[Index]);
  WriteLn;
  WriteLn('Known are the owners of mutexes, such as critical sections, and of locks for writing. An event'
    + ' has none: any'#10'thread that goes on may set it. The line is where a thread is, not where it'
    + ' took what it holds.');
  if Report.Signals = -1 then
    WriteLn('The signals that the program handled are not known.');
end;

procedure ShowThreads(Arguments: TArguments);
const
  Plural: array[Boolean] of string = ('', 's');
var
  Opened: TOpened;
  Report: TThreadReport;
begin
  if not CanWalk then
    raise ETool.Create(ecFailed, 'the report `threads` is there for x86_64 alone');
  Report := nil;
  Opened := OpenAny(Arguments);
  try
    Report := TThreadReport.Create(Opened.Target, Opened.Image);
    Opened.Target.CheckThere;
    WriteLn(DescribeTarget(Opened), ', ', Length(Report.Threads), ' thread',
      Plural[Length(Report.Threads) <> 1]);
    WriteLn;
    WriteReport(Report);
  finally
    Report.Free;
    Opened.Free;
  end;
end;

end.
