/// The free list of one span: blocks of one size class.
//
// Owns:       TSpan.FreeList, Used, CarvedBytes, and the fields that SpanFormat sets.
// Invariants: see TSpan. Blocks are linked by their first word, scrambled with a random key: no
//             program stores such a word by itself, and SpanTake overwrites it, so it identifies
//             a free block and with it a double free.
// Callers:    the span's owner; SpanBlockIsValid and BlockLooksFree: any thread; SpanIsEmpty: the
//             thread that holds the owner's lock.
// Progress:   every routine is wait-free, but SpanHasFreeBlock walks the list.
// Source:     divisibility by one multiplication: Lemire, Kaser and Kurz, "Faster Remainder by
//             Direct Computation" (2019).
unit LaneMM.Span;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.Atomic;

/// Formats a fresh run of slices as a span of the class, without a free block yet, owned by Heap.
procedure SpanFormat(Span: PSpan; SizeClass: Cardinal; Heap: PHeap);
/// Makes the records of the later slices of a span lead to the first.
procedure SpanFormatInner(Span: PSpan);
/// Takes a free block; nil when FreeList is empty.
function SpanTake(Span: PSpan): PBlock; inline;
/// Puts a block on FreeList. Returns true if no block is in use now.
function SpanPut(Span: PSpan; Block: PBlock): Boolean; inline;
/// Fills an empty FreeList with the blocks that other threads freed, or with blocks never used
/// before. Returns true if it has a block now.
function SpanRefill(Span: PSpan): Boolean;
/// Returns true if the span can serve no block until one is freed.
function SpanIsFull(Span: PSpan): Boolean;
/// Returns true if no block is in use; blocks that other threads freed count as free. Not for a
/// current span.
function SpanIsEmpty(Span: PSpan): Boolean;

/// Returns true if a block that was ever put on FreeList begins at P, which lies in the span.
function SpanBlockIsValid(Span: PSpan; P: Pointer): Boolean; inline;
/// Returns true if the first word of the block is one that only a free block of this span has.
function BlockLooksFree(Span: PSpan; Block: PBlock): Boolean;
/// Returns true if the block is on FreeList. Owner only.
function SpanHasFreeBlock(Span: PSpan; Block: PBlock): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.SizeClasses, LaneMM.Errors, LaneMM.RemoteList;

const
  // Untouched blocks are put on FreeList in portions of at most this many bytes, or one by one, so
  // that unused memory is not touched.
  CarveBytes = 4096;

procedure SpanFormatInner(Span: PSpan);
var
  Inner: PSpan;
  Index: Cardinal;
begin
  for Index := 1 to Span^.SliceCount - 1 do
  begin
    Inner := Span + Index;
    Inner^.Owner := NoOwner;
    Inner^.Distance := Index;
    Inner^.Kind := skInner;
  end;
end;

procedure SpanFormat(Span: PSpan; SizeClass: Cardinal; Heap: PHeap);
begin
  Span^.FreeList := EndOfList(Span);
  Span^.Used := 0;
  Span^.CarvedBytes := 0;
  Span^.BlockSize := ClassToSize(SizeClass);
  Span^.DivideMagic := High(UInt64) div Span^.BlockSize + 1;
  Span^.BlockBytes := Span^.SliceCount * SliceSize div Span^.BlockSize * Span^.BlockSize;
  Span^.SizeClass := SizeClass;
  Span^.IsCurrent := False;
  Span^.Remote := 0;
  Span^.Owner := Heap;
  SpanFormatInner(Span);
  YieldPoint;
  Span^.Kind := skBlocks;
end;

function SpanTake(Span: PSpan): PBlock;
begin
  if Odd(Span^.FreeList) then
    Exit(nil);
  Result := PBlock(Span^.FreeList);
  Span^.FreeList := LinkOf(Result^.Link);
  Result^.Link := HandedOut;
  Inc(Span^.Used);
end;

function SpanPut(Span: PSpan; Block: PBlock): Boolean;
begin
  Block^.Link := LinkOf(Span^.FreeList);
  Span^.FreeList := NativeUInt(Block);
  // A sweeping thread that sees the count sees the list. Pairs with the load in SpanIsEmpty.
  ReleaseFence;
  Dec(Span^.Used);
  YieldPoint; // a sweeping thread may release the span, and another one take it
  Result := Span^.Used = 0;
end;

// Puts the next portion of untouched blocks on the empty FreeList, in the order of address.
procedure Carve(Span: PSpan);
var
  Size: NativeUInt;
  Block, Last: PByte;
begin
  Size := Span^.BlockSize;
  if Size < CarveBytes then
    Size := CarveBytes div Span^.BlockSize * Span^.BlockSize;
  if Size > Span^.BlockBytes - Span^.CarvedBytes then
    Size := Span^.BlockBytes - Span^.CarvedBytes;
  if Size = 0 then
    Exit;
  Block := Span^.Start + Span^.CarvedBytes;
  Last := Block + Size - Span^.BlockSize;
  Inc(Span^.CarvedBytes, Size);
  Span^.FreeList := NativeUInt(Block);
  while Block < Last do
  begin
    PBlock(Block)^.Link := LinkOf(NativeUInt(Block + Span^.BlockSize));
    Inc(Block, Span^.BlockSize);
  end;
  PBlock(Last)^.Link := LinkOf(EndOfList(Span));
end;

procedure Collect(Span: PSpan);
var
  Count: Cardinal;
begin
  Span^.FreeList := RemoteTakeAll(Span, Count);
  if Checked then
    Check(Count <= Span^.Used, 'the blocks on Remote are counted in Used');
  Dec(Span^.Used, Count);
end;

function SpanRefill(Span: PSpan): Boolean;
begin
  if Checked then
  begin
    Check(Odd(Span^.FreeList), 'a span is refilled when FreeList is empty');
    Check((Span^.Used - Ord(Span^.IsCurrent)) * Span^.BlockSize = Span^.CarvedBytes,
      'used and free blocks are the carved ones');
  end;
  if Span^.BlockBytes = 0 then
    Exit(False); // Process.EmptySpan, which all heaps share
  Collect(Span);
  if Odd(Span^.FreeList) then
    Carve(Span);
  Result := not Odd(Span^.FreeList);
end;

function SpanIsFull(Span: PSpan): Boolean;
begin
  Result := Odd(Span^.FreeList) and (Span^.CarvedBytes = Span^.BlockBytes)
    and (RemoteCount(Span) = 0);
end;

function SpanIsEmpty(Span: PSpan): Boolean;
begin
  Result := Span^.Used = RemoteCount(Span);
end;

function SpanBlockIsValid(Span: PSpan; P: Pointer): Boolean;
var
  Offset: NativeUInt;
begin
  Offset := NativeUInt(P) - NativeUInt(Span^.Start);
  Result := (UInt64(Offset) * Span^.DivideMagic < Span^.DivideMagic)
    and (Offset < Span^.CarvedBytes);
end;

function BlockLooksFree(Span: PSpan; Block: PBlock): Boolean;
var
  Next: NativeUInt;
begin
  Next := LinkOf(Block^.Link);
  Result := (Next = EndOfList(Span))
    or (Next - NativeUInt(Span^.Start) < Span^.SliceCount * SliceSize)
    and SpanBlockIsValid(Span, Pointer(Next));
end;

function SpanHasFreeBlock(Span: PSpan; Block: PBlock): Boolean;
var
  Free: NativeUInt;
begin
  Free := Span^.FreeList;
  while not Odd(Free) and (Free <> NativeUInt(Block)) do
    Free := LinkOf(PBlock(Free)^.Link);
  Result := Free = NativeUInt(Block);
end;

end.
