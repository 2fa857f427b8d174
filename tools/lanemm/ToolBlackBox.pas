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
    Help: 'Says what a process held that was killed, from its black box';
    Details: '  --json  the last state as it was written'#10
      + 'BOX is the file that `LANEMM=blackbox` leaves: PROGRAM.PID.lanebox. Lines come from the'#10
      + 'debug information of the program: in one of the FILEs or FOLDERs, beside BOX, here, or'#10
      + 'where the program was. `lanemm ps --dead FOLDER` lists the boxes there.'#10;
    Options: 'json';
    MostWords: AnyWords;
    Run: RunBlackBox);

implementation

uses
  SysUtils, Classes, Math, DateUtils, StrUtils, fpJson, BoxFiles, FrameNames, ToolText;

const
  MostSites = 10;
  MostSizes = 8;
  MostRegions = 8;
  Recent = 30; // seconds

type
  // A box and the names of its frames.
  TBoxReport = class
  strict private
    Box: TBoxFile;
    Names: TFrameNames;
    procedure AddPlaces(Arguments: TArguments);
    procedure AddFrames;
    function Stack(Site: TJSONObject): TStringArray;
    function PlaceOf(Site: TJSONObject): string;
    function Share(Bytes: Int64): string;
    function GrownBytes(out Seconds: Int64): Int64;
    procedure SayFirst;
    procedure SaySite(Site: TJSONObject);
    procedure SaySites;
    procedure SaySizes;
    procedure SayRegions;
    procedure SayRates(const Name, Title: string);
  public
    constructor Create(Arguments: TArguments);
    destructor Destroy; override;
    procedure Say;
  end;

function TimeText(Seconds: Int64): string;
begin
  Result := FormatDateTime('yyyy-mm-dd hh:nn:ss" UTC"', UnixToDateTime(Seconds));
end;

constructor TBoxReport.Create(Arguments: TArguments);
begin
  inherited Create;
  Names := TFrameNames.Create;
  Box := TBoxFile.Create(Arguments.Word(0, 'BOX'));
  AddPlaces(Arguments);
  AddFrames;
end;

destructor TBoxReport.Destroy;
begin
  Box.Free;
  Names.Free;
  inherited Destroy;
end;

procedure TBoxReport.AddPlaces(Arguments: TArguments);
var
  Index: Integer;
  Modules: TJSONData;
begin
  for Index := 1 to Arguments.Words.Count - 1 do
    Names.Places.Add(Arguments.Words[Index]);
  Names.Places.Add(ExtractFilePath(Box.Path));
  Names.Places.Add('');
  Modules := Box.State.Find('modules');
  if Modules is TJSONArray then
    for Index := 0 to Modules.Count - 1 do
      if Modules.Items[Index] is TJSONObject then
        Names.Places.Add(ExtractFilePath(TJSONObject(Modules.Items[Index]).Get('path', '')));
end;

function TBoxReport.Stack(Site: TJSONObject): TStringArray;
var
  Frames: TJSONData;
  Index: Integer;
begin
  Result := nil;
  Frames := Site.Find('stack');
  if not (Frames is TJSONArray) then
    Exit;
  SetLength(Result, Frames.Count);
  for Index := 0 to Frames.Count - 1 do
    Result[Index] := Frames.Items[Index].AsString;
end;

procedure TBoxReport.AddFrames;
var
  Index: Integer;
  Frame: string;
begin
  for Index := 0 to Box.Sites.Count - 1 do
    for Frame in Stack(Box.Sites.Objects[Index]) do
      Names.Add(Frame);
  Names.Resolve;
end;

// Returns whether a text of a frame is of the program: it has a line, and is no unit of LaneMM.
function IsOfProgram(const Text: string): Boolean;
begin
  Result := (Pos(':', Text) > 0) and (Pos('  LaneMM.', Text) = 0);
end;

// Returns the innermost line of the program; empty: none is known.
function TBoxReport.PlaceOf(Site: TJSONObject): string;
var
  Frame, Text: string;
begin
  for Frame in Stack(Site) do
  begin
    Text := Names.TextOf(Frame);
    if IsOfProgram(Text) then
      Exit(Trim(Copy(Text, Pos('  ', Text), MaxInt)));
  end;
  Result := '';
end;

function TBoxReport.Share(Bytes: Int64): string;
begin
  Result := Percent(Bytes, Max(Box.Heap('sampled_in_use'), 1));
end;

// Returns how much more is in use than some seconds before the last state.
function TBoxReport.GrownBytes(out Seconds: Int64): Int64;
var
  Points: TJSONData;
  Index: Integer;
  Point: TJSONArray;
begin
  Result := 0;
  Seconds := 0;
  Points := Box.State.Find('seconds');
  if not (Points is TJSONArray) then
    Exit;
  for Index := Points.Count - 1 downto 0 do
  begin
    Point := TJSONArray(Points).Arrays[Index];
    if Box.Seconds - Point.Int64s[0] > Recent then
      Exit;
    Seconds := Box.Seconds - Point.Int64s[0];
    Result := Box.Heap('used') - Point.Int64s[1];
  end;
end;

procedure TBoxReport.SayFirst;
var
  Line: string;
  Site: TJSONObject;
  Grown, Seconds: Int64;
begin
  Line := 'In use ' + BytesText(Box.Heap('used')) + ' in ' + Grouped(Box.Heap('blocks')) + ' blocks, '
    + BytesText(Box.Heap('committed')) + ' of memory';
  if Box.Heap('limit') > 0 then
    Line := Line + ' of a limit of ' + BytesText(Box.Heap('limit'));
  Line := Line + '; at most ' + BytesText(Box.Heap('peak')) + ', at ' + TimeText(Box.Heap('peak_time'));
  if Box.Sites.Count > 0 then
  begin
    Site := Box.Sites.Objects[0];
    Line := Line + '; ' + Share(TBoxFile.Number(Site, 'bytes')) + ' are ' + Site.Get('class', 'blocks');
    if PlaceOf(Site) <> '' then
      Line := Line + ', allocated at ' + PlaceOf(Site);
  end;
  Grown := GrownBytes(Seconds);
  if (Grown > 0) and (Seconds > 0) then
    Line := Line + Format('; %s more in the last %d s', [BytesText(Grown), Seconds]);
  WriteLn(Line, '; ', Grouped(Box.Heap('threads')), ' threads.');
end;

procedure TBoxReport.SaySite(Site: TJSONObject);
var
  Frame, Text: string;
  IsInside: Boolean;
begin
  WriteLn(Right(BytesText(TBoxFile.Number(Site, 'bytes')), 12), Right(Share(TBoxFile.Number(Site,
    'bytes')), 9), Right(Grouped(TBoxFile.Number(Site, 'blocks')), 12),
    Right(BytesText(TBoxFile.Number(Site, 'peak_bytes')), 13), '  ', Site.Get('class', ''));
  IsInside := True;
  for Frame in Stack(Site) do
  begin
    Text := Names.TextOf(Frame);
    IsInside := IsInside and (Pos('LaneMM.', Text) > 0);
    if not IsInside then
      WriteLn('':16, IfThen(Text = '', Frame, Text));
  end;
end;

procedure TBoxReport.SaySites;
var
  Index: Integer;
begin
  WriteLn;
  WriteLn('Call sites, by sampled bytes in use:');
  WriteLn('      bytes    share      blocks   bytes at peak  class');
  for Index := 0 to Min(Box.Sites.Count, MostSites) - 1 do
    SaySite(Box.Sites.Objects[Index]);
  if Box.Sites.Count > MostSites then
    WriteLn(Box.Sites.Count - MostSites:12, ' more: --json');
end;

function CompareSizes(List: TStringList; Index1, Index2: Integer): Integer;
begin
  Result := CompareValue(TBoxFile.Number(TJSONData(List.Objects[Index2]), 'span_bytes'),
    TBoxFile.Number(TJSONData(List.Objects[Index1]), 'span_bytes'));
end;

procedure TBoxReport.SaySizes;
var
  Sizes: TJSONData;
  Sorted: TStringList;
  Index: Integer;
  Size: TJSONData;
begin
  Sizes := Box.State.Find('sizes');
  if not (Sizes is TJSONArray) or (Sizes.Count = 0) then
    Exit;
  Sorted := TStringList.Create;
  try
    for Index := 0 to Sizes.Count - 1 do
      Sorted.AddObject('', Sizes.Items[Index]);
    Sorted.CustomSort(CompareSizes);
    WriteLn;
    WriteLn('Blocks by size, those with most memory:');
    WriteLn('       size      blocks      memory');
    for Index := 0 to Min(Sorted.Count, MostSizes) - 1 do
    begin
      Size := TJSONData(Sorted.Objects[Index]);
      WriteLn(Right(Grouped(TBoxFile.Number(Size, 'size')), 11),
        Right(Grouped(TBoxFile.Number(Size, 'blocks')), 12),
        Right(BytesText(TBoxFile.Number(Size, 'span_bytes')), 12));
    end;
  finally
    Sorted.Free;
  end;
end;

procedure TBoxReport.SayRegions;
var
  Regions: TJSONData;
  Index: Integer;
begin
  Regions := Box.State.Find('regions');
  if not (Regions is TJSONArray) or (Regions.Count = 0) then
    Exit;
  WriteLn;
  WriteLn('Regions:');
  WriteLn('     memory     at most       limit  name');
  for Index := 0 to Min(Regions.Count, MostRegions) - 1 do
    WriteLn(Right(BytesText(TBoxFile.Number(Regions.Items[Index], 'committed')), 11),
      Right(BytesText(TBoxFile.Number(Regions.Items[Index], 'peak')), 12),
      Right(IfThen(TBoxFile.Number(Regions.Items[Index], 'limit') = 0, '-',
        BytesText(TBoxFile.Number(Regions.Items[Index], 'limit'))), 12),
      '  ', TJSONObject(Regions.Items[Index]).Get('name', ''));
end;

procedure TBoxReport.SayRates(const Name, Title: string);
var
  Points: TJSONData;
  Point: TJSONArray;
  Index: Integer;
begin
  Points := Box.State.Find(Name);
  if not (Points is TJSONArray) or (Points.Count < 2) then
    Exit;
  WriteLn;
  WriteLn(Title);
  WriteLn('                    time      in use      memory   allocated since the start');
  for Index := Max(0, Points.Count - 10) to Points.Count - 1 do
  begin
    Point := TJSONArray(Points).Arrays[Index];
    WriteLn(Right(TimeText(Point.Int64s[0]), 24), Right(BytesText(Point.Int64s[1]), 12),
      Right(BytesText(Point.Int64s[2]), 12), Right(BytesText(Point.Int64s[3]), 12));
  end;
end;

procedure TBoxReport.Say;
var
  Head: TJSONData;
begin
  Head := Box.State.Find('head');
  if Head is TJSONObject then
    WriteLn(TJSONObject(Head).Get('command', ''), ', process ', Box.ProcessId, ', last state of ',
      TimeText(Box.Seconds), IfThen(Box.IsOfLivingProcess, '; it still runs',
      IfThen(Box.IsLater, '; it ended while it wrote the next one', '')));
  SayFirst;
  SaySites;
  SaySizes;
  SayRegions;
  SayRates('seconds', 'Last seconds:');
  SayRates('minutes', 'Last minutes:');
  SayRates('hours', 'Last hours:');
end;

procedure RunBlackBox(Arguments: TArguments);
var
  Report: TBoxReport;
  Box: TBoxFile;
begin
  if Arguments.Has('json') then
  begin
    Box := TBoxFile.Create(Arguments.Word(0, 'BOX'));
    Write(Box.Text);
    Box.Free;
    Exit;
  end;
  Report := TBoxReport.Create(Arguments);
  try
    Report.Say;
  finally
    Report.Free;
  end;
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
      + TimeText(Box.Seconds) + '  ' + Path;
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
