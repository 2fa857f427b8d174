/// Visits all blocks in use, and finds the block that holds an address.
//
// Owns:       nothing.
// Invariants: takes no lock and allocates nothing; reads span records and the first word of blocks.
//             That word alone shows whether a block is free (see LaneMM.Span), so no list is
//             walked: a thread that allocates or frees blocks meanwhile changes the answer for
//             these blocks only. Exact while no other thread allocates or frees.
// Callers:    any thread.
unit LaneMM.Walk;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.Hooks;

type
  /// Visits a span. Context is the caller's.
  TSpanVisitor = procedure(Span: PSpan; Context: Pointer);

/// Calls Visitor for each span of blocks, large block and span of debug blocks, by address. Any
/// thread; while other threads run, the records of their spans may be out of date.
procedure WalkSpans(Visitor: TSpanVisitor; Context: Pointer);
/// Calls Visitor for each block in use, by address.
procedure WalkBlocks(Visitor: TBlockVisitor; Context: Pointer);
/// Calls Visitor for each free block of the spans of blocks, by address: it was in use before, or
/// is the next to be handed out. Freed debug blocks and free runs are none.
procedure WalkFreeBlocks(Visitor: TBlockVisitor; Context: Pointer);
/// Finds the block in use that holds P, any pointer; returns whether it exists.
function WalkFind(P: Pointer; out Block: TBlockInfo): Boolean;

/// Calls Visitor for each block in use of a region, as WalkBlocks does.
procedure WalkRegion(Region: PHeap; Visitor: TBlockVisitor; Context: Pointer);
/// Returns the number of blocks of a region that are in use, and their bytes; exact while no other
/// thread changes it.
procedure RegionSum(Region: PHeap; out Blocks, Bytes: NativeUInt);
/// Returns the region that the block at P, in use or just freed, belongs to; nil if none.
function RegionOfBlock(P: Pointer): PHeap;
/// Returns whether a block belongs to another region than the one that the thread of Heap, which
/// may be nil, is in; no region counts as one, too.
function BlockIsElsewhere(P: Pointer; Heap: PHeap): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Os, LaneMM.Arena, LaneMM.Span;

procedure VisitArena(Arena: PArena; Visitor: TSpanVisitor; Context: Pointer);
var
  Span, Last: PSpan;
begin
  Span := Arena^.Spans;
  Last := Span + LoadAcquire(Arena^.Frontier);
  while Span < Last do
  begin
    if Span^.Kind in [skBlocks, skLarge, skDebug] then
    begin
      // Acquire: the record after its kind; a record that is new has no address before. Pairs with
      // SpanFormat, DebugSpanFormat and LargeFormat.
      AcquireFence;
      Visitor(Span, Context);
    end;
    if (Span^.Kind in KindsInUse + [skFree]) and (Span^.SliceCount > 0) then
      Inc(Span, Span^.SliceCount)
    else
      Inc(Span);
  end;
end;

// Returns the arena with the lowest address above Last, which may be nil; nil if none.
function NextArena(Last: PArena): PArena;
var
  Index: NativeUInt;
  Arena: PArena;
begin
  Result := nil;
  Index := 0;
  Arena := FrontierArena(Index);
  while Arena <> nil do
  begin
    if ((Last = nil) or (Arena^.Base > Last^.Base))
      and ((Result = nil) or (Arena^.Base < Result^.Base)) then
      Result := Arena;
    Inc(Index);
    Arena := FrontierArena(Index);
  end;
end;

procedure WalkSpans(Visitor: TSpanVisitor; Context: Pointer);
var
  Arena: PArena;
begin
  Arena := NextArena(nil);
  while Arena <> nil do
  begin
    VisitArena(Arena, Visitor, Context);
    Arena := NextArena(Arena);
  end;
end;

type
  TWalk = record
    Visitor: TBlockVisitor;
    Context: Pointer;
    Region: PHeap;      // visits the blocks of this region; nil: all
    WantsFree: Boolean; // visits free blocks, else those in use
  end;
  PWalk = ^TWalk;

// Returns whether the block, in use for the engine, is so for the program.
function Describe(Span: PSpan; Address: PByte; Size: NativeUInt; out Block: TBlockInfo): Boolean;
var
  MarkedSize: TMarkedSizeCall;
  Requested: NativeInt;
begin
  Block := Default(TBlockInfo);
  Block.Address := Address;
  Block.UsableSize := Size;
  Block.RequestedSize := Size;
  Block.Kind := Span^.Kind;
  if @Hooks.BlockNote <> nil then
    Hooks.BlockNote(Span, Block);
  MarkedSize := Hooks.MarkedSize;
  if @MarkedSize = nil then
    Exit(True);
  Requested := MarkedSize(Address, Size);
  Result := Requested >= 0;
  if not Result then
    Exit;
  Block.UsableSize := Requested;
  Block.RequestedSize := Requested;
end;

// Returns whether a block looks free. One whose first page the program has protected is in use, and
// not read: nothing smaller than a page, or that begins within one, is protected alone.
function LooksFree(Span: PSpan; Address: PByte; Size: NativeUInt): Boolean;
begin
  Result := ((Size < OsPageSize) or (NativeUInt(Address) and (OsPageSize - 1) <> 0)
    or OsCanRead(Address, OsPageSize)) and BlockLooksFree(Span, PBlock(Address));
end;

procedure VisitBlocks(Span: PSpan; Walk: PWalk);
var
  Block: TBlockInfo;
  Address, Limit: PByte;
  Size: NativeUInt;
begin
  // Read once: while other threads run, the record may become that of another span.
  Size := Span^.BlockSize;
  Address := Span^.Start;
  Limit := Address + Span^.CarvedBytes;
  if Size = 0 then
    Exit;
  while Address + Size <= Limit do
  begin
    if LooksFree(Span, Address, Size) = Walk^.WantsFree then
      if Describe(Span, Address, Size, Block) or Walk^.WantsFree then
        Walk^.Visitor(Block, Walk^.Context);
    Inc(Address, Size);
  end;
end;

// Returns whether a span in use belongs to the region.
function IsOfRegion(Span: PSpan; Region: PHeap): Boolean;
var
  Heap: PHeap;
begin
  Result := Span^.Kind in [skBlocks, skLarge];
  if not Result then
    Exit;
  Heap := RegionHeapOf(Span);
  Result := (Heap <> nil) and (Heap^.Region = Region);
end;

procedure VisitSpan(Span: PSpan; Context: Pointer);
var
  Walk: PWalk;
  Block: TBlockInfo;
begin
  Walk := Context;
  if (Walk^.Region <> nil) and not IsOfRegion(Span, Walk^.Region)
    or Walk^.WantsFree and (Span^.Kind <> skBlocks) then
    Exit;
  case Span^.Kind of
    skBlocks:
      VisitBlocks(Span, Walk);
    skLarge:
      if Describe(Span, Span^.Start, Span^.BlockSize, Block) then
        Walk^.Visitor(Block, Walk^.Context);
    skDebug:
      if @Hooks.DebugVisit <> nil then
        Hooks.DebugVisit(Span, Walk^.Visitor, Walk^.Context);
  end;
end;

procedure WalkRegion(Region: PHeap; Visitor: TBlockVisitor; Context: Pointer);
var
  Walk: TWalk;
begin
  Walk.Visitor := Visitor;
  Walk.Context := Context;
  Walk.Region := Region;
  Walk.WantsFree := False;
  WalkSpans(VisitSpan, @Walk);
end;

procedure WalkBlocks(Visitor: TBlockVisitor; Context: Pointer);
begin
  WalkRegion(nil, Visitor, Context);
end;

procedure WalkFreeBlocks(Visitor: TBlockVisitor; Context: Pointer);
var
  Walk: TWalk;
begin
  Walk.Visitor := Visitor;
  Walk.Context := Context;
  Walk.Region := nil;
  Walk.WantsFree := True;
  WalkSpans(VisitSpan, @Walk);
end;

type
  TRegionSum = record
    Region: PHeap;
    Blocks, Bytes: NativeUInt;
  end;
  PRegionSum = ^TRegionSum;

procedure SumSpan(Span: PSpan; Context: Pointer);
var
  Sum: PRegionSum;
  Count: NativeUInt;
begin
  Sum := Context;
  if not IsOfRegion(Span, Sum^.Region) then
    Exit;
  Count := 1;
  if Span^.Kind = skBlocks then
    Count := SpanUsedCount(Span);
  Inc(Sum^.Blocks, Count);
  Inc(Sum^.Bytes, Count * Span^.BlockSize);
end;

procedure RegionSum(Region: PHeap; out Blocks, Bytes: NativeUInt);
var
  Sum: TRegionSum;
begin
  Sum.Region := Region;
  Sum.Blocks := 0;
  Sum.Bytes := 0;
  WalkSpans(SumSpan, @Sum);
  Blocks := Sum.Blocks;
  Bytes := Sum.Bytes;
end;

function RegionOfBlock(P: Pointer): PHeap;
var
  Span: PSpan;
begin
  Result := nil;
  Span := ArenaSpan(P);
  if (Span <> nil) and (Span^.Kind = skInner) then
    Span := ArenaFirst(Span, [skBlocks, skLarge]);
  if (Span = nil) or not (Span^.Kind in [skBlocks, skLarge]) then
    Exit;
  Result := RegionHeapOf(Span);
  if Result <> nil then
    Result := Result^.Region;
end;

function BlockIsElsewhere(P: Pointer; Heap: PHeap): Boolean;
begin
  Result := (LoadAcquire(Process.RegionsMade) <> 0) and (RegionOfBlock(P) <> RegionOfHeap(Heap));
end;

type
  TSearch = record
    Address: NativeUInt;
    Found: PSpan;
  end;
  PSearch = ^TSearch;

procedure SearchSpan(Span: PSpan; Context: Pointer);
var
  Search: PSearch;
begin
  Search := Context;
  if NativeUInt(Search^.Address - NativeUInt(Span^.Start)) < Span^.SliceCount * SliceSize then
    Search^.Found := Span;
end;

// Returns the first record of the span in use that holds P, or nil. The records of the slices
// inside a large block do not lead to its first one: a walk over all spans finds it.
function FindSpan(P: Pointer): PSpan;
const
  Kinds = [skBlocks, skLarge, skDebug];
var
  Search: TSearch;
begin
  Result := ArenaSpan(P);
  if (Result = nil) or (Result^.Kind in Kinds) then
    Exit;
  Result := ArenaFirst(Result, Kinds);
  if Result <> nil then
    Exit;
  Search.Address := NativeUInt(P);
  Search.Found := nil;
  WalkSpans(SearchSpan, @Search);
  Result := Search.Found;
end;

function WalkFind(P: Pointer; out Block: TBlockInfo): Boolean;
var
  Span: PSpan;
  Offset, Size: NativeUInt;
begin
  Block := Default(TBlockInfo);
  Result := False;
  Span := FindSpan(P);
  if Span = nil then
    Exit;
  if (Span^.Kind = skDebug) and (@Hooks.DebugFind <> nil) then
    Exit(Hooks.DebugFind(Span, P, Block));
  if not (Span^.Kind in [skBlocks, skLarge]) then
    Exit;
  Offset := NativeUInt(P) - NativeUInt(Span^.Start);
  Size := Span^.BlockSize;
  if Size = 0 then
    Exit;
  if not Describe(Span, Span^.Start + Offset - Offset mod Size, Size, Block) then
    Exit;
  if Span^.Kind = skLarge then
    Result := Offset < Size
  else
    Result := (Offset < Span^.CarvedBytes)
      and not LooksFree(Span, Block.Address, Size);
end;

end.
