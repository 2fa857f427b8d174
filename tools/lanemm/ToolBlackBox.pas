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
  SysUtils, Classes, Math, DateUtils, StrUtils, fpJson, Targets, BoxFiles, BoxNames, BoxPages, ToolText;

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
  WriteLn(Printable(Box.Sentence));
  WriteLn(Printable(Box.Head('command')), ', process ', Box.ProcessId, ', last state of ',
    TimeText(Box.Seconds), IfThen(Box.IsLater and (Box.ExitCode < 0) and not Box.IsOfLivingProcess,
    '; it ended while it wrote the next one', ''));
  WriteLn('In use ', BytesText(Box.Heap('used')), ' in ', Grouped(Box.Heap('blocks')),
    ' blocks; at most ', BytesText(Box.Heap('peak')), ' of memory, at ',
    TimeText(Box.Heap('peak_time')));
end;

type
  TRowText = function(Box: TNamedBox; Row: TJSONData): string;

// Prints a table of the rows from First on, at most Most; nothing without a row.
procedure SayTable(Box: TNamedBox; Rows: TJSONArray; First, Most: Integer; const Head: string;
  RowText: TRowText);
var
  Index: Integer;
  Line: string;
begin
  if Rows.Count = 0 then
    Exit;
  WriteLn;
  WriteLn(Head);
  for Index := First to Min(Rows.Count, First + Most) - 1 do
    for Line in RowText(Box, Rows[Index]).Split([#10]) do
      WriteLn(Printable(Line));
end;

function Bytes(Row: TJSONData; const Name: string; Width: Integer): string;
begin
  Result := Right(BytesText(TBoxFile.Number(Row, Name)), Width);
end;

function SiteText(Box: TNamedBox; Row: TJSONData): string;
var
  Site: TJSONObject;
  Frame: TBoxFrame;
begin
  Site := TJSONObject(Row);
  Result := Bytes(Site, 'bytes', 12) + Right(Box.Share(Box.Number(Site, 'bytes')), 9)
    + Right(Grouped(Box.Number(Site, 'blocks')), 12) + Bytes(Site, 'peak_bytes', 13) + '  '
    + Site.Get('class', '');
  for Frame in Box.ShownFrames(Site) do
    Result := Result + #10 + StringOfChar(' ', 16) + Frame.Name
      + IfThen(Frame.Place = '', '', '  ' + Frame.Place)
      + IfThen(Frame.IsInlined, '  (inlined)', '');
end;

procedure SaySites(Box: TNamedBox);
var
  Sites: TJSONArray;
begin
  Sites := Box.List('sites');
  SayTable(Box, Sites, 0, MostSites, 'Call sites, by sampled bytes in use:'#10
    + '      bytes    share      blocks   bytes at peak  class', SiteText);
  if Sites.Count > MostSites then
    WriteLn(Sites.Count - MostSites:12, ' more: --json');
end;

// Most memory first: of rows that have either of the two.
function CompareRows(Item1, Item2: Pointer): Integer;
const
  Names: array[0..1] of string = ('span_bytes', 'committed');
var
  Name: string;
begin
  Result := 0;
  for Name in Names do
    if Result = 0 then
      Result := CompareValue(TBoxFile.Number(TJSONData(Item2), Name),
        TBoxFile.Number(TJSONData(Item1), Name));
end;

function SizeText(Box: TNamedBox; Row: TJSONData): string;
begin
  Result := Right(Grouped(Box.Number(Row, 'size')), 11)
    + Right(Grouped(Box.Number(Row, 'blocks')), 12) + Bytes(Row, 'span_bytes', 12);
end;

function RegionText(Box: TNamedBox; Row: TJSONData): string;
begin
  Result := Bytes(Row, 'committed', 11) + Bytes(Row, 'peak', 12)
    + IfThen(Box.Number(Row, 'limit') = 0, Right('-', 12), Bytes(Row, 'limit', 12)) + '  '
    + TJSONObject(Row).Get('name', '');
end;

function ThreadText(Box: TNamedBox; Row: TJSONData): string;
begin
  Result := Bytes(Row, 'bytes', 11) + Right(IntToStr(Box.Number(Row, 'thread')), 12) + '  '
    + TJSONObject(Row).Get('name', '');
end;

function PointText(Box: TNamedBox; Row: TJSONData): string;
var
  Index: Integer;
begin
  Result := Right(TimeText(TJSONArray(Row).Int64s[0]), 24);
  for Index := 1 to 3 do
    Result := Result + Right(BytesText(TJSONArray(Row).Int64s[Index]), 12);
end;

procedure SayRates(Box: TNamedBox; const Name, Title: string);
var
  Points: TJSONArray;
begin
  Points := Box.List(Name);
  if Points.Count > 1 then
    SayTable(Box, Points, Max(0, Points.Count - MostPoints), MostPoints, Title + #10
      + '                    time      in use      memory   allocated since the start', PointText);
end;

function EventText(Box: TNamedBox; Row: TJSONData): string;
begin
  Result := TimeText(Box.Number(Row, 'time')) + #10 + TrimRight(TJSONObject(Row).Get('text', ''));
end;

procedure Say(Box: TNamedBox);
begin
  SayFirst(Box);
  SaySites(Box);
  Box.List('sizes').Sort(CompareRows);
  SayTable(Box, Box.List('sizes'), 0, MostSizes, 'Blocks by size, those with most memory:'#10
    + '       size      blocks      memory', SizeText);
  Box.List('regions').Sort(CompareRows);
  SayTable(Box, Box.List('regions'), 0, MostRegions, 'Regions, those with most memory:'#10
    + '     memory     at most       limit  name', RegionText);
  SayTable(Box, Box.List('threads'), 0, MostThreads,
    'Threads, by sampled bytes in use of ' + Grouped(Box.Heap('threads')) + ':'#10
    + '      bytes      thread  name', ThreadText);
  SayRates(Box, 'seconds', 'Last seconds:');
  SayRates(Box, 'minutes', 'Last minutes:');
  SayRates(Box, 'hours', 'Last hours:');
  SayTable(Box, Box.List('events'), 0, MaxInt, 'Last events:', EventText);
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
  if not IsPlainFile(Path) then
    Exit(Path + ' is no black box');
  Box := nil;
  Result := '';
  try
    Box := TBoxFile.Create(Path);
    if not Box.IsOfLivingProcess then
      Result := Right(IntToStr(Box.ProcessId), 8) + Right(BytesText(Box.Heap('used')), 12)
        + Right(BytesText(Box.Heap('committed')), 12) + Right(BytesText(Box.Heap('peak')), 12) + '  '
        + TimeText(Box.Seconds) + '  ' + Path + Then_(Box);
  except
    on Error: Exception do // of this file alone
      Result := Error.Message;
  end;
  Box.Free;
end;

procedure ListBoxes(const Folder: string);
var
  Found: TSearchRec;
  Line: string;
begin
  if not DirectoryExists(Folder) then
    raise ETool.Create(ecFailed, 'there is no folder %s', [Folder]);
  WriteLn('     PID        used   committed        peak  last state               black box');
  if FindFirst(IncludeTrailingPathDelimiter(Folder) + '*.lanebox', faAnyFile, Found) = 0 then
    repeat
      Line := LineOf(IncludeTrailingPathDelimiter(Folder) + Found.Name);
      if Line <> '' then
        WriteLn(Printable(Line));
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

end.
