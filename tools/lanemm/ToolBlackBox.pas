/// `lanemm blackbox`: what a process that was killed held.
unit ToolBlackBox;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Prints what a black box says.
procedure RunBlackBox(Arguments: TArguments);
/// Prints a line for each black box in a folder whose process has ended.
procedure ListBoxes(const Folder: string);

const
  BlackBoxCommand: TCommand = (
    Name: 'blackbox';
    Usage: 'BOX [FILE|FOLDER...]';
    Help: 'Shows what a killed process held, from its black box';
    Details: '  --json  the last state and the last events'#10
      + '  --html  a page for a browser, in one file'#10
      + 'BOX is the file that `LANEMM=blackbox` leaves: PROGRAM.PID.lanebox. Lines come from the'#10
      + 'debug information of the program: in one of the FILEs or FOLDERs, beside BOX, here, or'#10
      + 'where the program was. `lanemm ps --dead FOLDER` lists the boxes there.'#10;
    Options: 'json html';
    MostWords: AnyWords;
    Run: RunBlackBox);

implementation

uses
  SysUtils, Classes, Math, DateUtils, StrUtils, fpJson, BoxFiles, BoxNames, BoxPages, ToolText;

const
  MostSites = 10;
  MostSizes = 8;
  MostRegions = 8;
  MostThreads = 8;
  MostPoints = 10;

function TimeText(Seconds: Int64): string;
begin
  Result := FormatDateTime('yyyy-mm-dd hh:nn:ss" UTC"', UnixToDateTime(Seconds));
end;

procedure SayFirst(Box: TNamedBox);
begin
  WriteLn(Box.Sentence);
  WriteLn(Box.Head('command'), ', process ', Box.ProcessId, ', last state of ',
    TimeText(Box.Seconds), IfThen(Box.IsLater and (Box.ExitCode < 0) and not Box.IsOfLivingProcess,
    '; it ended while it wrote the next one', ''));
  WriteLn('In use ', BytesText(Box.Heap('used')), ' in ', Grouped(Box.Heap('blocks')),
    ' blocks; at most ', BytesText(Box.Heap('peak')), ' of memory, at ',
    TimeText(Box.Heap('peak_time')));
end;

procedure SaySite(Box: TNamedBox; Site: TJSONObject);
var
  Frame: TBoxFrame;
begin
  WriteLn(Right(BytesText(Box.Number(Site, 'bytes')), 12), Right(Box.Share(Box.Number(Site,
    'bytes')), 9), Right(Grouped(Box.Number(Site, 'blocks')), 12),
    Right(BytesText(Box.Number(Site, 'peak_bytes')), 13), '  ', Site.Get('class', ''));
  for Frame in Box.Frames(Site) do
    WriteLn('':16, Frame.Name, IfThen(Frame.Place = '', '', '  ' + Frame.Place),
      IfThen(Frame.IsInlined, '  (inlined)', ''));
end;

procedure SaySites(Box: TNamedBox);
var
  Index: Integer;
begin
  WriteLn;
  WriteLn('Call sites, by sampled bytes in use:');
  WriteLn('      bytes    share      blocks   bytes at peak  class');
  for Index := 0 to Min(Box.List('sites').Count, MostSites) - 1 do
    SaySite(Box, Box.List('sites').Objects[Index]);
  if Box.List('sites').Count > MostSites then
    WriteLn(Box.List('sites').Count - MostSites:12, ' more: --json');
end;

function CompareSizes(List: TStringList; Index1, Index2: Integer): Integer;
begin
  Result := CompareValue(TBoxFile.Number(TJSONData(List.Objects[Index2]), 'span_bytes'),
    TBoxFile.Number(TJSONData(List.Objects[Index1]), 'span_bytes'));
end;

procedure SaySizes(Box: TNamedBox);
var
  Sorted: TStringList;
  Index: Integer;
  Size: TJSONData;
begin
  if Box.List('sizes').Count = 0 then
    Exit;
  Sorted := TStringList.Create;
  try
    for Index := 0 to Box.List('sizes').Count - 1 do
      Sorted.AddObject('', Box.List('sizes')[Index]);
    Sorted.CustomSort(CompareSizes);
    WriteLn;
    WriteLn('Blocks by size, those with most memory:');
    WriteLn('       size      blocks      memory');
    for Index := 0 to Min(Sorted.Count, MostSizes) - 1 do
    begin
      Size := TJSONData(Sorted.Objects[Index]);
      WriteLn(Right(Grouped(Box.Number(Size, 'size')), 11),
        Right(Grouped(Box.Number(Size, 'blocks')), 12),
        Right(BytesText(Box.Number(Size, 'span_bytes')), 12));
    end;
  finally
    Sorted.Free;
  end;
end;

procedure SayRegions(Box: TNamedBox);
var
  Index: Integer;
  Region: TJSONObject;
begin
  if Box.List('regions').Count = 0 then
    Exit;
  WriteLn;
  WriteLn('Regions:');
  WriteLn('     memory     at most       limit  name');
  for Index := 0 to Min(Box.List('regions').Count, MostRegions) - 1 do
  begin
    Region := Box.List('regions').Objects[Index];
    WriteLn(Right(BytesText(Box.Number(Region, 'committed')), 11),
      Right(BytesText(Box.Number(Region, 'peak')), 12),
      Right(IfThen(Box.Number(Region, 'limit') = 0, '-', BytesText(Box.Number(Region, 'limit'))),
      12), '  ', Region.Get('name', ''));
  end;
end;

procedure SayThreads(Box: TNamedBox);
var
  Index: Integer;
  Thread: TJSONObject;
begin
  if Box.List('threads').Count = 0 then
    Exit;
  WriteLn;
  WriteLn('Threads, by sampled bytes in use of ', Grouped(Box.Heap('threads')), ':');
  WriteLn('      bytes      thread  name');
  for Index := 0 to Min(Box.List('threads').Count, MostThreads) - 1 do
  begin
    Thread := Box.List('threads').Objects[Index];
    WriteLn(Right(BytesText(Box.Number(Thread, 'bytes')), 11),
      Right(IntToStr(Box.Number(Thread, 'thread')), 12), '  ', Thread.Get('name', ''));
  end;
end;

procedure SayEvents(Box: TNamedBox);
var
  Index: Integer;
  Event: TJSONObject;
begin
  if Box.List('events').Count = 0 then
    Exit;
  WriteLn;
  WriteLn('Last events:');
  for Index := 0 to Box.List('events').Count - 1 do
  begin
    Event := Box.List('events').Objects[Index];
    WriteLn(TimeText(Box.Number(Event, 'time')));
    WriteLn(TrimRight(Event.Get('text', '')));
  end;
end;

procedure SayRates(Box: TNamedBox; const Name, Title: string);
var
  Points, Point: TJSONArray;
  Index: Integer;
begin
  Points := Box.List(Name);
  if Points.Count < 2 then
    Exit;
  WriteLn;
  WriteLn(Title);
  WriteLn('                    time      in use      memory   allocated since the start');
  for Index := Max(0, Points.Count - MostPoints) to Points.Count - 1 do
  begin
    Point := Points.Arrays[Index];
    WriteLn(Right(TimeText(Point.Int64s[0]), 24), Right(BytesText(Point.Int64s[1]), 12),
      Right(BytesText(Point.Int64s[2]), 12), Right(BytesText(Point.Int64s[3]), 12));
  end;
end;

procedure Say(Box: TNamedBox);
begin
  SayFirst(Box);
  SaySites(Box);
  SaySizes(Box);
  SayRegions(Box);
  SayThreads(Box);
  SayRates(Box, 'seconds', 'Last seconds:');
  SayRates(Box, 'minutes', 'Last minutes:');
  SayRates(Box, 'hours', 'Last hours:');
  SayEvents(Box);
end;

procedure WriteJson(const Path: string);
var
  Box: TBoxFile;
begin
  Box := TBoxFile.Create(Path);
  try
    TJSONData.CompressedJSON := True;
    WriteLn(Box.State.AsJSON);
  finally
    Box.Free;
  end;
end;

procedure RunBlackBox(Arguments: TArguments);
var
  Box: TNamedBox;
begin
  if Arguments.Has('json') then
  begin
    WriteJson(Arguments.Word(0, 'BOX'));
    Exit;
  end;
  Box := TNamedBox.Create(Arguments);
  try
    if Arguments.Has('html') then
      BoxWritePage(Box)
    else
      Say(Box);
  finally
    Box.Free;
  end;
end;

// Returns what the line of a box says of the next one of its process.
function Then_(Box: TBoxFile): string;
begin
  Result := Box.NextPath;
  if Result <> '' then
    Result := ', then ' + ExtractFileName(Result);
end;

// Returns the line of a black box, or the error; empty: its process runs.
function LineOf(const Path: string): string;
var
  Box: TBoxFile;
begin
  try
    Box := TBoxFile.Create(Path);
  except
    on Error: ETool do
      Exit(Error.Message);
  end;
  Result := '';
  if not Box.IsOfLivingProcess then
    Result := Right(IntToStr(Box.ProcessId), 8) + Right(BytesText(Box.Heap('used')), 12)
      + Right(BytesText(Box.Heap('committed')), 12) + Right(BytesText(Box.Heap('peak')), 12) + '  '
      + TimeText(Box.Seconds) + '  ' + Path + Then_(Box);
  Box.Free;
end;

procedure ListBoxes(const Folder: string);
var
  Found: TSearchRec;
  Line: string;
begin
  WriteLn('     PID        used   committed        peak  last state               black box');
  if FindFirst(IncludeTrailingPathDelimiter(Folder) + '*.lanebox', faAnyFile, Found) = 0 then
    repeat
      Line := LineOf(IncludeTrailingPathDelimiter(Folder) + Found.Name);
      if Line <> '' then
        WriteLn(Line);
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

end.
