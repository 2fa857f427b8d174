/// The numbers of a heap: totals, size classes, threads, free runs.
unit HeapNumbers;

{$mode delphi}{$H+}
{$I Comparers.inc}
{$pointermath on}

interface

uses
  LaneMM.Layout, HeapImages;

type
  /// Blocks of one kind: a size class, large blocks, or debug blocks.
  TClassNumbers = record
    BlockSize: UInt64;   //< usable bytes of a block; 0: they differ
    Blocks: UInt64;      //< in use
    Bytes: UInt64;       //< their usable bytes
    FreeBlocks: UInt64;  //< blocks of the spans that are not in use
    Spans: UInt64;       //< spans
    SpanBytes: UInt64;   //< their bytes
    FullSpans: UInt64;   //< spans without a free block
    PartlySpans: UInt64; //< spans with blocks in use and free blocks
    EmptySpans: UInt64;  //< spans without a block in use: kept for the next one
    Owners: UInt64;      //< heaps that own one
  end;

  /// What a thread owns.
  TThreadNumbers = record
    Heap: PHeapRecord;   //< its heap
    Spans: UInt64;       //< spans of blocks
    SpanBytes: UInt64;   //< their bytes
    Blocks: UInt64;      //< blocks in use in them, whichever thread uses them
    Bytes: UInt64;       //< their usable bytes
    RemoteBlocks: UInt64; //< blocks that other threads have freed and that wait for it
    KeptBytes: UInt64;   //< runs that it keeps for its next large blocks
  end;

  /// The regions of one name.
  TRegionNumbers = record
    Name: string;        //< their name
    Regions: UInt64;     //< their number
    Inside: UInt64;      //< scopes that threads are in
    Blocks: UInt64;      //< blocks in use
    Bytes: UInt64;       //< their usable bytes; of debug blocks, the requested ones
    Committed: UInt64;   //< backed memory, without that of debug blocks
    Peak: UInt64;        //< highest backed memory of one of them
    Limit: UInt64;       //< highest limit of one of them; 0: none
  end;

  /// Free runs of a length between two powers of two.
  TRunNumbers = record
    Runs: UInt64;        //< their number
    Bytes: UInt64;       //< their bytes
  end;

  /// All numbers of one moment. Bytes, unless the name says otherwise.
  THeapNumbers = record
    Reserved: UInt64;    //< address space
    Untouched: UInt64;   //< of it, never handed out
    Committed: UInt64;   //< memory in use or cached
    Peak: UInt64;        //< highest Committed
    Cached: UInt64;      //< of Committed, free runs not yet given back
    Returned: UInt64;    //< free runs that were given back to the system
    Used: UInt64;        //< usable bytes of all blocks in use
    Blocks: UInt64;      //< blocks in use
    Spans: UInt64;       //< bytes of all spans and large blocks
    Classes: array[0..SizeClassCount - 1] of TClassNumbers; //< spans of blocks by size class
    Large: TClassNumbers; //< large blocks
    Debug: TClassNumbers; //< debug blocks; FreeBlocks: freed, or never used
    Threads: array of TThreadNumbers; //< by heap
    Unowned: TThreadNumbers; //< full spans, which no thread owns until a block is freed, and those
                             //  of the sampler; Heap is nil
    Regions: TArray<TRegionNumbers>; //< by name, most bytes first
    Warm, Cold: array[0..63] of TRunNumbers; //< free runs by binary logarithm of their slices
    OsCalls: array[TOsCall] of UInt64; //< system calls since the start
    Resizes, Moves, CopiedBytes: UInt64; //< ReallocMem since the start
    Contended: UInt64;   //< failed tries to take the lock of a shard
  end;

/// Sums up an image.
procedure ReadNumbers(Image: THeapImage; out Numbers: THeapNumbers);
/// Returns the bytes of spans that are in no block in use.
function SlackOf(const Numbers: TClassNumbers): UInt64;
/// Returns the regions of the first Most names, 0: all; where there are more, their sum follows,
/// without a name.
function ShownRegions(const Numbers: THeapNumbers; Most: Integer): TArray<TRegionNumbers>;

implementation

uses
  Math, Generics.Collections, Generics.Defaults, SysUtils, LaneMM.Types, LaneMM.Bits, LaneMM.RemoteList, LaneMM.SizeClasses, LaneMM.DebugState,
  LaneMM.DebugRecords, HeapWalks;

function SlackOf(const Numbers: TClassNumbers): UInt64;
begin
  Result := 0;
  if Numbers.SpanBytes > Numbers.Bytes then
    Result := Numbers.SpanBytes - Numbers.Bytes;
end;

function KeptBytesOf(const Heap: THeap): UInt64;
var
  Length: Cardinal;
begin
  Result := 0;
  for Length := ShortestKept to LongestKept do
    Inc(Result, Heap.KeptCounts.Each[Length] * Length * SliceSize);
end;

procedure AddSpan(var Numbers: TClassNumbers; Blocks, Capacity, SpanBytes: UInt64);
begin
  Inc(Numbers.Blocks, Blocks);
  if Capacity > Blocks then
    Inc(Numbers.FreeBlocks, Capacity - Blocks);
  Inc(Numbers.Spans);
  Inc(Numbers.SpanBytes, SpanBytes);
  if Blocks = 0 then
    Inc(Numbers.EmptySpans)
  else if Blocks < Capacity then
    Inc(Numbers.PartlySpans)
  else
    Inc(Numbers.FullSpans);
end;

type
  // Sums up one image.
  TSummary = class
  private
    Image: THeapImage;
    Walker: TWalker;
    Numbers: ^THeapNumbers;
    // Heaps that own a span of each class: a bit for each heap.
    Owners: array of array of Boolean;
    // Of each heap that describes a region, its index in Regions.
    RegionOf: array of Integer;
    procedure AddRegion(Heap: PHeapRecord; Names: TDictionary<string, Integer>);
    procedure AddRegions;
    procedure AddToRegion(Heap: PHeapRecord; Blocks, Bytes: UInt64);
    procedure AddBlocks(Run: PRun);
    procedure AddOwned(Run: PRun; Blocks: UInt64; var Owner: TThreadNumbers);
    procedure AddOwner(Run: PRun; Blocks: UInt64);
    procedure AddLarge(Run: PRun);
    procedure AddDebug(Run: PRun);
    procedure AddFree(Run: PRun);
    procedure AddHeaps;
    procedure AddTotals;
    procedure AddAll;
  end;

// Adds a region to those of its name.
procedure TSummary.AddRegion(Heap: PHeapRecord; Names: TDictionary<string, Integer>);
var
  Index: Integer;
  Region: ^TRegionNumbers;
begin
  if not Names.TryGetValue(Heap^.RegionName, Index) then
  begin
    Index := Length(Numbers^.Regions);
    Names.Add(Heap^.RegionName, Index);
    SetLength(Numbers^.Regions, Index + 1);
    Numbers^.Regions[Index] := Default(TRegionNumbers);
    Numbers^.Regions[Index].Name := Heap^.RegionName;
  end;
  Region := @Numbers^.Regions[Index];
  RegionOf[Heap - PHeapRecord(Image.Heaps)] := Index;
  Inc(Region^.Regions);
  Inc(Region^.Committed, Heap^.Head.Data.Slices * SliceSize);
  Region^.Peak := Max(Region^.Peak, Heap^.Head.Data.Peak * SliceSize);
  Region^.Limit := Max(Region^.Limit, Heap^.Head.Data.Limit * SliceSize);
end;

procedure TSummary.AddRegions;
var
  Names: TDictionary<string, Integer>;
  Heap: PHeapRecord;
  Index, Described: Integer;
begin
  SetLength(RegionOf, Length(Image.Heaps));
  Names := TDictionary<string, Integer>.Create;
  for Index := 0 to High(Image.Heaps) do
    if Image.Heaps[Index].RegionName <> '' then
      AddRegion(@Image.Heaps[Index], Names);
  Names.Free;
  for Index := 0 to High(Image.Heaps) do
  begin
    Heap := @Image.Heaps[Index];
    if Heap^.IsOfRegion and (Heap^.Head.Outer <> nil)
      and Image.FindHeap(UInt64(Heap^.Head.Region), Described)
      and (Image.Heaps[Described].RegionName <> '') then
      Inc(Numbers^.Regions[RegionOf[Described]].Inside);
  end;
end;

procedure TSummary.AddToRegion(Heap: PHeapRecord; Blocks, Bytes: UInt64);
begin
  if Heap = nil then
    Exit;
  Inc(Numbers^.Regions[RegionOf[Heap - PHeapRecord(Image.Heaps)]].Blocks, Blocks);
  Inc(Numbers^.Regions[RegionOf[Heap - PHeapRecord(Image.Heaps)]].Bytes, Bytes);
end;

// Most bytes first; the same number by name.
function CompareRegions(constref Left, Right: TRegionNumbers): Integer;
begin
  Result := CompareValue(Right.Bytes, Left.Bytes);
  if Result = 0 then
    Result := CompareStr(Left.Name, Right.Name);
end;

function ShownRegions(const Numbers: THeapNumbers; Most: Integer): TArray<TRegionNumbers>;
var
  Index: Integer;
  Rest: ^TRegionNumbers;
begin
  Result := Copy(Numbers.Regions);
  if (Most = 0) or (Length(Result) <= Most) then
    Exit;
  SetLength(Result, Most + 1);
  Rest := @Result[Most];
  Rest^.Name := '';
  for Index := Most + 1 to High(Numbers.Regions) do
  begin
    Inc(Rest^.Regions, Numbers.Regions[Index].Regions);
    Inc(Rest^.Inside, Numbers.Regions[Index].Inside);
    Inc(Rest^.Blocks, Numbers.Regions[Index].Blocks);
    Inc(Rest^.Bytes, Numbers.Regions[Index].Bytes);
    Inc(Rest^.Committed, Numbers.Regions[Index].Committed);
    Rest^.Peak := Max(Rest^.Peak, Numbers.Regions[Index].Peak);
    Rest^.Limit := Max(Rest^.Limit, Numbers.Regions[Index].Limit);
  end;
end;

// Adds a span to what its owner has.
procedure TSummary.AddOwned(Run: PRun; Blocks: UInt64; var Owner: TThreadNumbers);
begin
  Inc(Owner.Spans);
  Inc(Owner.SpanBytes, Run^.SliceCount * SliceSize);
  Inc(Owner.Blocks, Blocks);
  Inc(Owner.Bytes, Blocks * Run^.Span^.BlockSize);
  Inc(Owner.RemoteBlocks, RemoteCount(Run^.Span));
end;

procedure TSummary.AddOwner(Run: PRun; Blocks: UInt64);
var
  Heap: PHeapRecord;
  Index: Integer;
begin
  Heap := Image.OwnerOfSpan(Run^.Span);
  if Heap = nil then
  begin
    AddOwned(Run, Blocks, Numbers^.Unowned);
    Exit;
  end;
  Index := Heap - PHeapRecord(Image.Heaps);
  if not Owners[Run^.Span^.SizeClass][Index] then
    Inc(Numbers^.Classes[Run^.Span^.SizeClass].Owners);
  Owners[Run^.Span^.SizeClass][Index] := True;
  AddOwned(Run, Blocks, Numbers^.Threads[Index]);
end;

procedure TSummary.AddBlocks(Run: PRun);
var
  Blocks: UInt64;
begin
  if Run^.Span^.SizeClass >= SizeClassCount then
    Exit;
  Blocks := Image.BlocksInUse(Run^.Span);
  AddSpan(Numbers^.Classes[Run^.Span^.SizeClass], Blocks, Image.CapacityOf(Run^.Span),
    Run^.SliceCount * SliceSize);
  Inc(Numbers^.Classes[Run^.Span^.SizeClass].Bytes, Blocks * Run^.Span^.BlockSize);
  AddOwner(Run, Blocks);
  AddToRegion(Image.RegionOfSpan(Run^.Span), Blocks, Blocks * Run^.Span^.BlockSize);
end;

procedure TSummary.AddLarge(Run: PRun);
begin
  AddSpan(Numbers^.Large, 1, 1, Run^.SliceCount * SliceSize);
  Inc(Numbers^.Large.Bytes, Run^.Span^.BlockSize);
  AddToRegion(Image.RegionOfSpan(Run^.Span), 1, Run^.Span^.BlockSize);
end;

procedure TSummary.AddDebug(Run: PRun);
var
  Records: TArray<TDebugBlock>;
  Index: Integer;
  Blocks, Size: UInt64;
begin
  Records := Walker.DebugRecords(Run);
  Blocks := 0;
  for Index := 0 to High(Records) do
    if DebugStateOf(Records[Index].State) = dsInUse then
    begin
      Size := Walker.DebugSize(Run, @Records[Index], Index);
      Inc(Blocks);
      Inc(Numbers^.Debug.Bytes, Size);
      AddToRegion(Image.RegionOfGroup(Records[Index].Group), 1, Size);
    end;
  AddSpan(Numbers^.Debug, Blocks, Run^.Span^.BlockBytes, Run^.SliceCount * SliceSize);
end;

procedure TSummary.AddFree(Run: PRun);
var
  Runs: ^TRunNumbers;
begin
  if (Run^.Kind = skReleased) or Run^.Span^.IsWarm then
    Runs := @Numbers^.Warm[FloorLog2(Run^.SliceCount)]
  else
  begin
    Runs := @Numbers^.Cold[FloorLog2(Run^.SliceCount)];
    Inc(Numbers^.Returned, Run^.SliceCount * SliceSize);
  end;
  Inc(Runs^.Runs);
  Inc(Runs^.Bytes, Run^.SliceCount * SliceSize);
end;

procedure TSummary.AddHeaps;
var
  Index: Integer;
  Heap: PHeapRecord;
begin
  SetLength(Numbers^.Threads, Length(Image.Heaps));
  SetLength(Owners, SizeClassCount, Length(Image.Heaps));
  for Index := 0 to High(Image.Heaps) do
  begin
    Heap := @Image.Heaps[Index];
    Numbers^.Threads[Index] := Default(TThreadNumbers);
    Numbers^.Threads[Index].Heap := Heap;
    Numbers^.Threads[Index].KeptBytes := KeptBytesOf(Heap^.Head);
    Inc(Numbers^.Cached, Numbers^.Threads[Index].KeptBytes);
    Inc(Numbers^.Resizes, Heap^.Head.Realloc.Calls);
    Inc(Numbers^.Moves, Heap^.Head.Realloc.Moves);
    Inc(Numbers^.CopiedBytes, Heap^.Head.Realloc.CopiedBytes);
  end;
end;

procedure TSummary.AddTotals;
var
  Number: Integer;
  Kind: TOsCall;
  Arena: TArenaImage;
begin
  for Arena in Image.Arenas do
  begin
    Inc(Numbers^.Reserved, Arena.Head.Reserved * SliceSize);
    Inc(Numbers^.Untouched, (Arena.Head.Reserved - Arena.Count) * SliceSize);
  end;
  Numbers^.Committed := Image.State^.Backed * SliceSize;
  Numbers^.Peak := Image.State^.PeakSlices * SliceSize;
  for Number := 1 to Image.State^.ShardCount do
  begin
    Inc(Numbers^.Cached, Image.State^.Shards[Number].WarmSlices * SliceSize);
    Inc(Numbers^.Contended, Image.State^.Shards[Number].Lock.Contended);
  end;
  for Kind := Low(TOsCall) to High(TOsCall) do
    Numbers^.OsCalls[Kind] := Image.State^.OsCalls[Kind];
end;

procedure TSummary.AddAll;
var
  Index: Integer;
begin
  for Index := 0 to SizeClassCount - 1 do
    Numbers^.Classes[Index].BlockSize := ClassToSize(Index);
  AddHeaps;
  AddRegions;
  AddTotals;
  for Index := 0 to High(Image.Runs) do
    case Image.Runs[Index].Kind of
      skBlocks: AddBlocks(@Image.Runs[Index]);
      skLarge: AddLarge(@Image.Runs[Index]);
      skDebug: AddDebug(@Image.Runs[Index]);
      skFree, skReleased: AddFree(@Image.Runs[Index]);
    end;
  Numbers^.Used := Numbers^.Large.Bytes + Numbers^.Debug.Bytes;
  Numbers^.Blocks := Numbers^.Large.Blocks + Numbers^.Debug.Blocks;
  Numbers^.Spans := Numbers^.Large.SpanBytes + Numbers^.Debug.SpanBytes;
  for Index := 0 to SizeClassCount - 1 do
  begin
    Inc(Numbers^.Used, Numbers^.Classes[Index].Bytes);
    Inc(Numbers^.Blocks, Numbers^.Classes[Index].Blocks);
    Inc(Numbers^.Spans, Numbers^.Classes[Index].SpanBytes);
  end;
  TArrayHelper<TRegionNumbers>.Sort(Numbers^.Regions,
    TComparer<TRegionNumbers>.Construct(CompareRegions));
end;

procedure ReadNumbers(Image: THeapImage; out Numbers: THeapNumbers);
var
  Summary: TSummary;
begin
  Numbers := Default(THeapNumbers);
  Summary := TSummary.Create;
  Summary.Image := Image;
  Summary.Numbers := @Numbers;
  Summary.Walker := TWalker.Create(Image);
  try
    Summary.AddAll;
  finally
    Summary.Walker.Free;
    Summary.Free;
  end;
end;

end.
