/// `lanemm map`: the arenas as a picture.
unit ToolMap;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Shows the picture, or writes it as SVG.
procedure RunMap(Arguments: TArguments);

const
  MapCommand: TCommand = (
    Name: 'map';
    Usage: 'PID|FILE [--by=fill|class|thread] [--svg[=FILE]]';
    Help: 'Shows the memory as a picture: full, partly used, cached, returned';
    Details: '  --by=fill    how full each slice of 64 KB is (the default)'#10
      + '  --by=class   the size of its blocks'#10
      + '  --by=thread  the thread that owns it'#10
      + '  --svg=FILE   writes the picture as SVG; to stdout without FILE'#10
      + '  --plain      no colours, even on a terminal; --colour: always'#10
      + '  --width=N    columns, 22 or more'#10
      + '  --copy=N     the Nth copy of LaneMM of a process with several'#10#10
      + 'FILE is a core file.'#10;
    Options: 'by: svg:: plain colour width: copy:';
    MostWords: 1;
    Run: RunMap);

implementation

uses
  SysUtils, Classes, Math, LaneMM.Layout, HeapImages, HeapNumbers, HeapMaps, HeapText, ToolOpen, ToolText;

const
  // Colours of the kinds: of a terminal with 256, and of a page.
  TerminalColours: array[TSliceKind] of Byte = (28, 178, 230, 25, 90, 240, 139, 236, 160);
  PageColours: array[TSliceKind] of string = ('#1b7837', '#d9a400', '#f6e8b1', '#2166ac',
    '#762a83', '#777777', '#c2a5cf', '#e4e4e4', '#d6301d');
  ToneTerminal: array[0..11] of Byte = (25, 28, 178, 160, 90, 37, 166, 64, 132, 30, 136, 61);
  TonePage: array[0..11] of string = ('#2166ac', '#1b7837', '#d9a400', '#d6301d', '#762a83',
    '#35978f', '#e08214', '#7fbc41', '#c51b7d', '#01665e', '#8c510a', '#5e4fa2');
  LeastOpacity = 0.3;

function ViewOf(Arguments: TArguments): TMapView;
const
  Names: array[TMapView] of string = ('fill', 'class', 'thread');
var
  Name: string;
begin
  Name := Arguments.Value('by', 'fill');
  for Result := Low(TMapView) to High(TMapView) do
    if Names[Result] = Name then
      Exit;
  raise ETool.Create(ecUsage, '--by is fill, class or thread, not `%s`', [Name]);
end;

function HasTone(const Cell: TMapCell): Boolean;
begin
  Result := (Cell.Tone >= 0) and (Cell.Kind in [slFull, slPartly, slEmpty]);
end;

// ---------------------------------------------------------------------------- terminal

function TerminalColour(const Cell: TMapCell): Byte;
begin
  if HasTone(Cell) then
    Result := ToneTerminal[Cell.Tone mod Length(ToneTerminal)]
  else
    Result := TerminalColours[Cell.Kind];
end;

procedure WriteLegend(const Map: THeapMap; WithColours: Boolean);
var
  Kind: TSliceKind;
  Cell: TMapCell;
  Tone: Integer;
begin
  Cell := Default(TMapCell);
  Cell.Tone := -1;
  Cell.Tenths := 5;
  for Kind := Low(TSliceKind) to High(TSliceKind) do
    if Map.Counts[Kind] > 0 then
    begin
      Cell.Kind := Kind;
      if WithColours then
        Write(#27'[48;5;', TerminalColour(Cell), 'm ', #27'[0m ');
      WriteLn(CellSymbol(Cell), ' ', Left(KindNames[Kind], 14),
        Right(BytesText(Map.Counts[Kind] * SliceSize), 12));
    end;
  for Tone := 0 to High(Map.Tones) do
    if Map.Tones[Tone] <> '' then
      WriteLn(ToneSymbol(Tone), ' ', Map.Tones[Tone]);
end;

procedure WriteCells(const Map: THeapMap; Width: Integer; WithColours: Boolean);
var
  Index: Integer;
  Colour, Last: Integer;
begin
  Last := -1;
  for Index := 0 to High(Map.Cells) do
  begin
    if Index mod Width = 0 then
    begin
      if WithColours and (Index > 0) then
        Write(#27'[0m');
      if Index > 0 then
        WriteLn;
      Write(HexAddress(Map.Cells[Index].Run^.Address), ' ');
      Last := -1;
    end;
    Colour := TerminalColour(Map.Cells[Index]);
    if WithColours and (Colour <> Last) then
      Write(#27'[38;5;231;48;5;', Colour, 'm');
    Last := Colour;
    Write(CellSymbol(Map.Cells[Index]));
  end;
  if WithColours then
    Write(#27'[0m');
  WriteLn;
end;

procedure WriteRegionLines(Image: THeapImage);
const
  Most = 20;
var
  Numbers: THeapNumbers;
begin
  ReadNumbers(Image, Numbers);
  WriteRegions(Numbers, Most);
end;

procedure ShowMap(Opened: TOpened; Arguments: TArguments);
const
  AddressWidth = 14;
  CellStep = 8;         // cells of a line: a multiple of this
  MostCells = 1 shl 12; // of a line
  LegendLines = 16;
var
  Map: THeapMap;
  Columns, Lines: Integer;
  WithColours: Boolean;
begin
  TerminalSize(Columns, Lines);
  Columns := Min(Arguments.Number('width', Columns, AddressWidth + CellStep), High(Integer));
  Columns := EnsureRange(Columns - AddressWidth, CellStep, MostCells) div CellStep * CellStep;
  if Lines < 2 * LegendLines then
    Lines := 2 * LegendLines;
  WithColours := Arguments.Has('colour') or HasColours and not Arguments.Has('plain');
  Map := MakeMap(Opened.Image, ViewOf(Arguments), Columns * (Lines - LegendLines));
  WriteLn(DescribeTarget(Opened));
  WriteLn('A character is ', BytesText(Map.SlicesPerCell * SliceSize), '.');
  WriteLn;
  WriteCells(Map, Columns, WithColours);
  WriteLn;
  WriteLegend(Map, WithColours);
  WriteLn;
  WriteRegionLines(Opened.Image);
end;

// ---------------------------------------------------------------------------- SVG

function PageColour(const Cell: TMapCell): string;
begin
  if HasTone(Cell) then
    Result := TonePage[Cell.Tone mod Length(TonePage)]
  else
    Result := PageColours[Cell.Kind];
end;

function OpacityOf(const Cell: TMapCell): string;
begin
  Result := '';
  if Cell.Kind = slPartly then
    Result := Format(' fill-opacity="%.2f"',
      [LeastOpacity + (1 - LeastOpacity) * Cell.Tenths / 10]);
end;

function LooksAlike(const Left, Right: TMapCell): Boolean;
begin
  Result := (Left.Kind = Right.Kind) and (Left.Tenths = Right.Tenths) and (Left.Tone = Right.Tone)
    and (Left.Run = Right.Run);
end;

procedure AddLegend(Lines: TStrings; const Map: THeapMap; Top: Integer);
const
  LegendWidth = 165;
  PerLine = 5;
var
  Kind: TSliceKind;
  Tone, Place: Integer;

  procedure Add(const Colour, Text: string);
  var
    X, Y: Integer;
  begin
    X := 20 + Place mod PerLine * LegendWidth;
    Y := Top + Place div PerLine * 20;
    Lines.Add(Format('<rect x="%d" y="%d" width="12" height="12" fill="%s"/>', [X, Y, Colour]));
    Lines.Add(Format('<text x="%d" y="%d">%s</text>', [X + 17, Y + 10, XmlText(Text)]));
    Inc(Place);
  end;

begin
  Place := 0;
  for Kind := Low(TSliceKind) to High(TSliceKind) do
    if Map.Counts[Kind] > 0 then
      Add(PageColours[Kind], KindNames[Kind] + ' ' + BytesText(Map.Counts[Kind] * SliceSize));
  for Tone := 0 to High(Map.Tones) do
    if Map.Tones[Tone] <> '' then
      Add(TonePage[Tone mod Length(TonePage)], Map.Tones[Tone]);
end;

procedure AddCells(Lines: TStrings; Image: THeapImage; const Map: THeapMap; Side, PerRow,
  Top: Integer);
var
  Index, Next: Integer;
begin
  Index := 0;
  while Index < Length(Map.Cells) do
  begin
    Next := Index + 1;
    while (Next < Length(Map.Cells)) and (Next mod PerRow <> 0)
      and LooksAlike(Map.Cells[Index], Map.Cells[Next]) do
      Inc(Next);
    Lines.Add(Format('<rect x="%d" y="%d" width="%d" height="%d" fill="%s"%s><title>%s</title>'
      + '</rect>', [20 + Index mod PerRow * Side, Top + Index div PerRow * Side,
      (Next - Index) * Side - 1, Side - 1, PageColour(Map.Cells[Index]),
      OpacityOf(Map.Cells[Index]), XmlText(DescribeRun(Image, Map.Cells[Index].Run))]));
    Index := Next;
  end;
end;

procedure WriteSvg(Opened: TOpened; Arguments: TArguments);
const
  PerRow = 128;
  MostRows = 96;
  Top = 60;
  Namespace = 'http:/' + '/www.w3.org/2000/svg';
var
  Lines: TStringList;
  Map: THeapMap;
  Side, Rows, LegendTop: Integer;
  FileName: string;
begin
  Map := MakeMap(Opened.Image, ViewOf(Arguments), PerRow * MostRows);
  Rows := (Length(Map.Cells) + PerRow - 1) div PerRow;
  Side := 7;
  LegendTop := Top + Rows * Side + 16;
  Lines := TStringList.Create;
  Lines.Add(Format('<svg xmlns="%s" width="940" height="%d" viewBox="0 0 940 %1:d" role="img"'
    + ' font-family="sans-serif" font-size="12">', [Namespace,
    LegendTop + 20 * ((9 + Length(Map.Tones)) div 5 + 1)]));
  Lines.Add(Format('<title>%s</title>', [XmlText(DescribeTarget(Opened))]));
  Lines.Add('<rect width="100%" height="100%" fill="#ffffff"/>');
  Lines.Add(Format('<text x="20" y="28" font-size="15">%s</text>',
    [XmlText(DescribeTarget(Opened))]));
  Lines.Add(Format('<text x="20" y="48">A square is %s; a row %s.</text>',
    [BytesText(Map.SlicesPerCell * SliceSize), BytesText(PerRow * Map.SlicesPerCell * SliceSize)]));
  AddCells(Lines, Opened.Image, Map, Side, PerRow, Top);
  AddLegend(Lines, Map, LegendTop);
  Lines.Add('</svg>');
  FileName := Arguments.Value('svg', '');
  if FileName = '' then
    Write(Lines.Text)
  else
    Lines.SaveToFile(FileName);
  Lines.Free;
end;

procedure RunMap(Arguments: TArguments);
var
  Opened: TOpened;
begin
  Opened := OpenHeap(Arguments);
  try
    NoteChanges(Opened.Image);
    if Arguments.Has('svg') then
      WriteSvg(Opened, Arguments)
    else
      ShowMap(Opened, Arguments);
  finally
    Opened.Free;
  end;
end;

end.
