/// `lanemm record`: a time line as comma-separated values.
unit ToolRecord;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Writes a line each time.
procedure RunRecord(Arguments: TArguments);

const
  RecordCommand: TCommand = (
    Name: 'record';
    Usage: 'PID [--every=TIME] [--lines=N] [--output=FILE]';
    Help: 'Writes a time line as comma-separated values';
    Details: '  --every=TIME   between two lines: 500ms, 2s, 5m; 1s by default'#10
      + '  --lines=N      ends after N lines; without it, with the process'#10
      + '  --output=FILE  writes to FILE, not to stdout'#10
      + '  --copy=N       the Nth copy of LaneMM of a process with several'#10;
    Options: 'every: lines: output: copy:';
    MostWords: 1;
    Run: RunRecord);

implementation

uses
  SysUtils, HeapImages, HeapNumbers, ToolOpen;

procedure WriteLine(var Target: Text; Image: THeapImage);
var
  Numbers: THeapNumbers;
begin
  ReadNumbers(Image, Numbers);
  WriteLn(Target, FormatDateTime('yyyy-mm-dd"T"hh:nn:ss.zzz', Now), ',', Numbers.Blocks, ',',
    Numbers.Used, ',', Numbers.Spans, ',', Numbers.Committed, ',', Numbers.Cached, ',',
    Numbers.Returned, ',', Numbers.Large.Bytes, ',', Length(Numbers.Threads), ',',
    Numbers.Resizes, ',', Numbers.Contended, ',', Image.ChangedCount);
  Flush(Target);
end;

procedure WriteTimeLine(var Target: Text; Image: THeapImage; DelayMs, MostLines: Int64);
var
  Line: Int64;
begin
  WriteLn(Target, 'time,blocks,used_bytes,span_bytes,committed_bytes,cached_bytes,',
    'returned_bytes,large_bytes,heaps,resizes,contended,changed_records');
  Line := 0;
  repeat
    WriteLine(Target, Image);
    Inc(Line);
    if Line = MostLines then
      Exit;
    Sleep(DelayMs);
    try
      Image.Refresh;
    except
      on Error: ETool do
        if Error.Code = ecNoProcess then
          Exit // it has ended: so does the time line
        else
          raise;
    end;
  until False;
end;

procedure RunRecord(Arguments: TArguments);
var
  Opened: TOpened;
  Target: Text;
  Delay, MostLines: Int64;
begin
  Delay := Arguments.Milliseconds('every', 1000);
  MostLines := Arguments.Number('lines', 0, 1);
  Opened := OpenProcess(Arguments);
  try
    AssignFile(Target, Arguments.Value('output', '')); // without a name: the standard output
    Rewrite(Target);
    try
      WriteTimeLine(Target, Opened.Image, Delay, MostLines);
    finally
      CloseFile(Target);
    end;
  finally
    Opened.Free;
  end;
end;

end.
