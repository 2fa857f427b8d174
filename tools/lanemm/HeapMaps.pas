/// The arenas as a picture: a cell for each slice, or for some, in the order of address.
unit HeapMaps;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  HeapImages;

type
  /// What a slice is.
  TSliceKind = (
    slFull,      //< of a span without a free block
    slPartly,    //< of a span with blocks in use and free blocks
    slEmpty,     //< of a span that is kept without a block in use
    slLarge,     //< of a large block
    slDebug,     //< of debug blocks
    slReserve,   //< of the emergency reserve
    slCached,    //< free, not yet given back
    slReturned,  //< free, given back to the system
    slChanging   //< being taken or given back
  );

  /// What the symbols and colours of a map stand for.
  TMapView = (mvFill, mvClass, mvThread);

  /// Cells that show the same.
  TMapCell = record
    Kind: TSliceKind;    //< what most of its slices are
    Tenths: Integer;     //< of slPartly: tenths in use, 1 to 9
    Tone: Integer;       //< number of the size class or thread; -1: none
    Run: PRun;           //< the run of its first slice
  end;

  /// A picture.
  THeapMap = record
    Cells: array of TMapCell;  //< by arena and address
    SlicesPerCell: Integer;    //< slices that a cell stands for
    Counts: array[TSliceKind] of UInt64; //< slices of each kind
    Tones: array of string;    //< names of the tones, in the order of their numbers
  end;

/// Makes the picture with at most MostCells cells.
function MakeMap(Image: THeapImage; View: TMapView; MostCells: Integer): THeapMap;
/// Returns the symbol of a cell in text.
function CellSymbol(const Cell: TMapCell): AnsiChar;
/// Returns the symbol of a tone.
function ToneSymbol(Tone: Integer): AnsiChar;
/// Returns a sentence on the run of a cell.
function DescribeRun(Image: THeapImage; Run: PRun): string;

const
  /// Symbols of the kinds in text; of slPartly the tenths, 1 to 9.
  KindSymbols: array[TSliceKind] of AnsiChar = ('#', '5', '0', 'L', 'D', 'R', 'c', '.', '?');
  /// Names of the kinds.
  KindNames: array[TSliceKind] of string = ('full', 'partly used', 'kept empty', 'large block',
    'debug blocks', 'reserve', 'cached', 'returned', 'changing');

implementation

uses
  SysUtils, Math, LaneMM.Layout, LaneMM.Bits, ToolText;

const
  // Size classes of one power of two have one tone.
  SmallestTone = 4;
  ToneLetters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

function ToneSymbol(Tone: Integer): AnsiChar;
begin
  if Tone < 0 then
    Result := '='
  else if Tone < Length(ToneLetters) then
    Result := ToneLetters[Tone + 1]
  else
    Result := '*';
end;

function CellSymbol(const Cell: TMapCell): AnsiChar;
begin
  if (Cell.Tone >= 0) and (Cell.Kind in [slFull, slPartly, slEmpty]) then
    Result := ToneSymbol(Cell.Tone)
  else if Cell.Kind = slPartly then
    Result := AnsiChar(Ord('0') + Cell.Tenths)
  else
    Result := KindSymbols[Cell.Kind];
end;

function KindOfBlocks(Image: THeapImage; Run: PRun): TSliceKind;
var
  Blocks: NativeUInt;
begin
  Blocks := Image.BlocksInUse(Run^.Span);
  if Blocks = 0 then
    Result := slEmpty
  else if Blocks >= Image.CapacityOf(Run^.Span) then
    Result := slFull
  else
    Result := slPartly;
end;

function KindOf(Image: THeapImage; Run: PRun): TSliceKind;
begin
  case Run^.Kind of
    skBlocks: Result := KindOfBlocks(Image, Run);
    skLarge: Result := slLarge;
    skDebug: Result := slDebug;
    skReserve: Result := slReserve;
    skReleased: Result := slCached;
    skFree:
      if Run^.Span^.IsWarm then
        Result := slCached
      else
        Result := slReturned;
  else
    Result := slChanging;
  end;
end;

function TenthsOf(Image: THeapImage; Run: PRun): Integer;
var
  Capacity: NativeUInt;
begin
  Capacity := Image.CapacityOf(Run^.Span);
  if Capacity = 0 then
    Exit(1);
  Result := EnsureRange(Integer(Image.BlocksInUse(Run^.Span) * 10 div Capacity), 1, 9);
end;

function ToneOf(Image: THeapImage; Run: PRun; View: TMapView): Integer;
var
  Heap: PHeapRecord;
begin
  Result := -1;
  if Run^.Kind <> skBlocks then
    Exit;
  if View = mvClass then
    Exit(FloorLog2(Run^.Span^.BlockSize) - SmallestTone);
  Heap := Image.OwnerOfSpan(Run^.Span);
  if (View = mvThread) and (Heap <> nil) then
    Result := Heap - PHeapRecord(Image.Heaps);
end;

// Returns a cell of one slice.
function CellOf(Image: THeapImage; Run: PRun; View: TMapView): TMapCell;
begin
  Result.Kind := KindOf(Image, Run);
  Result.Tenths := 0;
  if Result.Kind = slPartly then
    Result.Tenths := TenthsOf(Image, Run);
  Result.Tone := ToneOf(Image, Run, View);
  Result.Run := Run;
end;

procedure NameTones(Image: THeapImage; View: TMapView; var Map: THeapMap);
var
  Index: Integer;
begin
  case View of
    mvClass:
      begin
        SetLength(Map.Tones, FloorLog2(MaxClassSize) - SmallestTone + 1);
        for Index := 0 to High(Map.Tones) do
          Map.Tones[Index] := Format('%d to %d bytes', [1 shl (Index + SmallestTone),
            2 shl (Index + SmallestTone) - 1]);
        Map.Tones[High(Map.Tones)] := Format('%d bytes', [MaxClassSize]);
      end;
    mvThread:
      begin
        SetLength(Map.Tones, Length(Image.Heaps));
        for Index := 0 to High(Map.Tones) do
          if Image.Heaps[Index].IsAbandoned then
            Map.Tones[Index] := 'ended threads'
          else if Image.Heaps[Index].IsOfRegion then
            Map.Tones[Index] := 'region ' + Image.Heaps[Index].RegionName
          else if not Image.Heaps[Index].IsUnused then
            Map.Tones[Index] := Trim(Format('%d %s', [Image.Heaps[Index].Head.ThreadNumber,
              Image.Heaps[Index].Name]));
      end;
  end;
end;

// Returns the cell that stands for most of the slices, Slices[First..First + Count - 1].
function MostOf(const Slices: array of TMapCell; First, Count: Integer): TMapCell;
var
  Counts: array[TSliceKind] of Integer;
  Index: Integer;
  Best: TSliceKind;
begin
  FillChar(Counts, SizeOf(Counts), 0);
  for Index := First to First + Count - 1 do
    Inc(Counts[Slices[Index].Kind]);
  Best := slFull;
  for Index := First to First + Count - 1 do
    if Counts[Slices[Index].Kind] > Counts[Best] then
      Best := Slices[Index].Kind;
  for Index := First to First + Count - 1 do
    if Slices[Index].Kind = Best then
      Exit(Slices[Index]);
  Result := Slices[First];
end;

function MakeMap(Image: THeapImage; View: TMapView; MostCells: Integer): THeapMap;
var
  Slices: array of TMapCell;
  Cell: TMapCell;
  Index, Slice, Count: Integer;
begin
  Result := Default(THeapMap);
  Count := 0;
  for Index := 0 to High(Image.Runs) do
    Inc(Count, Image.Runs[Index].SliceCount);
  SetLength(Slices, Count);
  Count := 0;
  for Index := 0 to High(Image.Runs) do
  begin
    Cell := CellOf(Image, @Image.Runs[Index], View);
    Inc(Result.Counts[Cell.Kind], Image.Runs[Index].SliceCount);
    for Slice := 1 to Image.Runs[Index].SliceCount do
    begin
      Slices[Count] := Cell;
      Inc(Count);
    end;
  end;
  NameTones(Image, View, Result);
  Result.SlicesPerCell := 1;
  while Count div Result.SlicesPerCell > MostCells do
    Result.SlicesPerCell := Result.SlicesPerCell * 2;
  SetLength(Result.Cells, (Count + Result.SlicesPerCell - 1) div Result.SlicesPerCell);
  for Index := 0 to High(Result.Cells) do
  begin
    Slice := Min(Count - Index * Result.SlicesPerCell, Result.SlicesPerCell);
    Result.Cells[Index] := MostOf(Slices, Index * Result.SlicesPerCell, Slice);
  end;
end;

function DescribeRun(Image: THeapImage; Run: PRun): string;
var
  Heap, Region: PHeapRecord;
begin
  Result := Format('$%x, %s, %s', [Run^.Address, BytesText(Run^.SliceCount * SliceSize),
    KindNames[KindOf(Image, Run)]]);
  case Run^.Kind of
    skBlocks:
      begin
        Result := Result + Format(': %d of %d blocks of %d bytes', [Image.BlocksInUse(Run^.Span),
          Image.CapacityOf(Run^.Span), Run^.Span^.BlockSize]);
        Heap := Image.OwnerOfSpan(Run^.Span);
        if (Heap <> nil) and not Heap^.IsOfRegion then
          Result := Result + Format(', thread %d %s', [Heap^.Head.ThreadNumber, Heap^.Name]);
      end;
    skLarge: Result := Result + Format(': %s usable', [BytesText(Run^.Span^.BlockSize)]);
  end;
  Region := Image.RegionOfSpan(Run^.Span);
  if (Run^.Kind in [skBlocks, skLarge]) and (Region <> nil) then
    Result := Format('%s, region %s', [TrimRight(Result), Region^.RegionName]);
  Result := TrimRight(Result);
end;

end.
