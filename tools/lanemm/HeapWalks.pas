/// Walks over the blocks of a target.
unit HeapWalks;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, LaneMM.Layout, LaneMM.Types, LaneMM.DebugState, HeapImages;

type
  /// A block.
  TBlockFound = record
    Address: UInt64;     //< in the target
    Size: NativeUInt;    //< usable size; of a debug block, the requested one
    Run: PRun;           //< its span
    IsFree: Boolean;     //< free: it was in use before, or is the next to be handed out
    Data: PByte;         //< a copy of its bytes, until the next block; nil: they cannot be read
    Debug: PDebugBlock;  //< a copy of its bookkeeping record; nil: no debug block
  end;
  /// Visits a block.
  TBlockVisit = procedure(const Block: TBlockFound) of object;

  /// Reads the blocks of an image.
  TWalker = class
  private
    Image: THeapImage;
    Buffer: TBytes;
    Mapped: Pointer;     // of a large block: pages of its own, so that untouched ones cost nothing
    MappedSize: NativeUInt;
    procedure Unmap;
    function MapData(const Block: TBlockFound): PByte;
    procedure ReadData(var Block: TBlockFound);
    procedure VisitSpan(Run: PRun; Visit: TBlockVisit);
    procedure VisitLarge(Run: PRun; Visit: TBlockVisit);
    procedure VisitDebug(Run: PRun; Visit: TBlockVisit);
  public
    constructor Create(Heap: THeapImage);
    destructor Destroy; override;
    /// Calls Visit for the blocks of a run; for none of a free one.
    procedure VisitRun(Run: PRun; Visit: TBlockVisit);
    /// Returns the bookkeeping records of a span of debug blocks.
    function DebugRecords(Run: PRun): TArray<TDebugBlock>;
    /// Returns the requested size of one of them, number Index; where the record is damaged at most the
    /// size that has space there.
    function DebugSize(Run: PRun; Block: PDebugBlock; Index: Integer): NativeUInt;
  end;

const
  /// Bytes of a large block that are read at most.
  MostRead = 1 shl 28;

/// Calls Visit for all blocks, by arena and address.
procedure VisitBlocks(Heap: THeapImage; Visit: TBlockVisit);

implementation

uses
  Math, BaseUnix, LaneMM.RemoteList, LaneMM.Span, LaneMM.DebugSpans, LaneMM.DebugRecords;

constructor TWalker.Create(Heap: THeapImage);
begin
  inherited Create;
  Image := Heap;
end;

destructor TWalker.Destroy;
begin
  Unmap;
  inherited Destroy;
end;

procedure TWalker.Unmap;
begin
  if MappedSize > 0 then
    fpMunmap(Mapped, MappedSize);
  MappedSize := 0;
end;

procedure VisitBlocks(Heap: THeapImage; Visit: TBlockVisit);
var
  Walker: TWalker;
  Index: Integer;
begin
  Walker := TWalker.Create(Heap);
  try
    for Index := 0 to High(Heap.Runs) do
      Walker.VisitRun(@Heap.Runs[Index], Visit);
  finally
    Walker.Free;
  end;
end;

procedure TWalker.VisitRun(Run: PRun; Visit: TBlockVisit);
begin
  case Run^.Kind of
    skBlocks: VisitSpan(Run, Visit);
    skLarge: VisitLarge(Run, Visit);
    skDebug: VisitDebug(Run, Visit);
  end;
end;

procedure TWalker.VisitSpan(Run: PRun; Visit: TBlockVisit);
var
  Block: TBlockFound;
  Listed: TSpan; // without its shelf, which goes by addresses of the target
  Offset, Readable, Size: NativeUInt;
begin
  Listed := Run^.Span^;
  Listed.ShelvedPages := 0;
  Size := Run^.Span^.BlockSize;
  if (Size < BlockAlignment) or (Run^.Span^.CarvedBytes > Run^.SliceCount * SliceSize) then
    Exit;
  SetLength(Buffer, Run^.SliceCount * SliceSize);
  Readable := Image.Target.Read(Run^.Address, Pointer(Buffer), Run^.Span^.CarvedBytes);
  Block.Run := Run;
  Block.Size := Size;
  Block.Debug := nil;
  Offset := 0;
  while Offset + Size <= Readable do
  begin
    Block.Address := Run^.Address + Offset;
    Block.Data := @Buffer[Offset];
    Block.IsFree := BlockLooksFree(@Listed, PBlock(Block.Data))
      or RemoteShelfHas(Run^.Span, PBlock(Block.Address));
    Visit(Block);
    Inc(Offset, Size);
  end;
end;

// Returns a copy of a large block in pages of its own; nil if it cannot be read.
function TWalker.MapData(const Block: TBlockFound): PByte;
begin
  Result := nil;
  Mapped := fpMmap(nil, Block.Size, PROT_READ or PROT_WRITE, MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  if Mapped = MAP_FAILED then
    raise EOutOfMemory.Create('no memory for the copy of a block');
  MappedSize := Block.Size;
  if Image.Pages.ReadTouched(Block.Address, Mapped, Block.Size) then
    Result := Mapped;
end;

// Reads the contents of a block that is not too long.
procedure TWalker.ReadData(var Block: TBlockFound);
const
  LeastMapped = 1 shl 20;
begin
  Block.Data := nil;
  if Block.Size > MostRead then
    Exit;
  Unmap;
  if Block.Size >= LeastMapped then
  begin
    Block.Data := MapData(Block);
    Exit;
  end;
  SetLength(Buffer, Block.Size);
  if Image.Pages.ReadAll(Block.Address, Pointer(Buffer), Block.Size) then
    Block.Data := Pointer(Buffer);
end;

procedure TWalker.VisitLarge(Run: PRun; Visit: TBlockVisit);
var
  Block: TBlockFound;
begin
  Block := Default(TBlockFound);
  Block.Address := Run^.Address;
  Block.Size := Min(Run^.Span^.BlockSize, Run^.SliceCount * SliceSize);
  Block.Run := Run;
  ReadData(Block);
  Visit(Block);
end;

function TWalker.DebugRecords(Run: PRun): TArray<TDebugBlock>;
begin
  Result := nil;
  if Run^.Span^.CarvedBytes * SizeOf(TDebugBlock) > Run^.SliceCount * SliceSize then
    Exit;
  SetLength(Result, Run^.Span^.CarvedBytes);
  if not Image.Target.ReadAll(Run^.Address, Pointer(Result),
    NativeUInt(Length(Result)) * SizeOf(TDebugBlock)) then
    Result := nil;
end;

function TWalker.DebugSize(Run: PRun; Block: PDebugBlock; Index: Integer): NativeUInt;
var
  Place: TDebugPlace;
begin
  DebugPlaceIn(Run^.Span, Block, Index, Place);
  Result := Min(Block^.Size, Place.Capacity);
end;

procedure TWalker.VisitDebug(Run: PRun; Visit: TBlockVisit);
var
  Records: TArray<TDebugBlock>;
  Block: TBlockFound;
  Place: TDebugPlace;
  Index: Integer;
begin
  Records := DebugRecords(Run);
  Block.Run := Run;
  for Index := 0 to High(Records) do
  begin
    if DebugStateOf(Records[Index].State) = dsNever then
      Continue;
    DebugPlaceIn(Run^.Span, @Records[Index], Index, Place);
    Block.Address := UInt64(Place.Data);
    Block.Size := DebugSize(Run, @Records[Index], Index);
    Block.IsFree := DebugStateOf(Records[Index].State) <> dsInUse;
    Block.Debug := @Records[Index];
    ReadData(Block);
    Visit(Block);
  end;
end;

end.
