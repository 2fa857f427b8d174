/// `lanemm ps`: which processes run on LaneMM.
unit ToolPs;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections, ToolCommands;

/// Prints a line for each process on LaneMM.
procedure RunPs(Arguments: TArguments);
/// Returns the numbers of all processes on LaneMM that the caller may know of.
function ProcessesOnLaneMM: TArray<Integer>;

const
  PsCommand: TCommand = (
    Name: 'ps';
    Usage: '[--dead FOLDER]';
    Help: 'Lists the processes that run on LaneMM';
    Details: 'Used is the size of the blocks in use, committed what the heap has from the system.'#10
      + 'A process whose memory you may not read is asked to write its totals to its status'#10
      + 'page: a star marks these, with their age if it does not answer.'#10
      + '  --dead FOLDER  the black boxes there whose processes have ended, see `lanemm blackbox`'#10;
    Options: 'dead:';
    MostWords: 0;
    Run: RunPs);

implementation

uses
  SysUtils, Targets, StatusPages, HeapNumbers, ToolMailbox, ToolOpen, ToolText, ToolBlackBox;

function ProcessesOnLaneMM: TArray<Integer>;
var
  Number: Integer;
begin
  Result := nil;
  for Number in NumbersIn('/proc') do
    if IsOnLaneMM(Number) or (OpenPages(Number) <> nil) then
      Insert(Number, Result, Length(Result));
end;

function Line(ProcessId: Integer; Used, Committed, Peak: UInt64; const Note: string): string;
begin
  Result := Right(IntToStr(ProcessId), 8) + Right(BytesText(Used), 12)
    + Right(BytesText(Committed), 12) + Right(BytesText(Peak), 12) + '  '
    + Left(ProcessName(ProcessId), 16) + Note;
end;

// Returns the line of a process whose memory can be read; raises ETool if it cannot.
function ReadLine(ProcessId: Integer; Arguments: TArguments): string;
var
  Opened: TOpened;
  Numbers: THeapNumbers;
begin
  Opened := OpenTarget(TProcessTarget.Create(ProcessId), Arguments);
  try
    ReadNumbers(Opened.Image, Numbers);
    Result := Line(ProcessId, Numbers.Used, Numbers.Committed, Numbers.Peak, '');
    if Opened.CopyCount > 1 then
      Result := Result + Format(' first of %d copies', [Opened.CopyCount]);
  finally
    Opened.Free;
  end;
end;

// Returns the line that its status page gives.
function PageLine(ProcessId: Integer; const Error: string): string;
var
  Pages: TPageCopies;
begin
  AskForTotals(ProcessId, Pages);
  if Pages = nil then
    Exit(Right(IntToStr(ProcessId), 8) + Right('-', 12) + Right('-', 12) + Right('-', 12) + '  '
      + Left(ProcessName(ProcessId), 16) + ' ' + Error);
  Result := Line(ProcessId, Pages[0].Page.Totals.UsedBytes, Pages[0].Page.Totals.CommittedBytes,
    Pages[0].Page.Totals.PeakBytes, Trim('* ' + AgeText(Pages[0].Page.Totals)) + ' ' + Error);
end;

// Returns the line of a process, whatever is wrong with it; empty: it has ended meanwhile.
function AnyLine(ProcessId: Integer; Arguments: TArguments): string;
begin
  Result := '';
  try
    Result := ReadLine(ProcessId, Arguments);
  except
    on Error: Exception do
      if not (Error is ETool) or (ETool(Error).Code <> ecNoProcess) then
        Result := PageLine(ProcessId, Error.Message);
  end;
end;

procedure RunPs(Arguments: TArguments);
var
  ProcessId: Integer;
  Found: string;
begin
  if Arguments.Has('dead') then
  begin
    ListBoxes(Arguments.Value('dead', ''));
    Exit;
  end;
  WriteLn('     PID        used   committed        peak  program');
  for ProcessId in ProcessesOnLaneMM do
  begin
    Found := AnyLine(ProcessId, Arguments);
    if Found <> '' then
      WriteLn(Found);
  end;
end;

end.
