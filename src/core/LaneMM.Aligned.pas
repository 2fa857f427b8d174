/// Blocks with an alignment of more than BlockAlignment.
//
// Owns:       Process.KeepsAlignment.
// Invariants: spans begin at multiples of SliceSize. So a block of a class whose size is a multiple
//             of the alignment is aligned, and a large block is aligned to SliceSize. For larger
//             alignments the slices before the first aligned one are freed. An aligned block is an
//             ordinary block: its address is the start of the block.
// Callers:    any thread.
// Errors:     no memory: as LaneMM.Allocate.
unit LaneMM.Aligned;

{$I ../LaneMM.inc}

interface

/// Allocates at least Size bytes at a multiple of Alignment, a power of two.
function AlignedGet(Alignment, Size: NativeUInt): Pointer;
/// AlignedGet in the region of another block P, or in none if P is in none. P may be nil.
function AlignedGetBeside(P: Pointer; Alignment, Size: NativeUInt): Pointer;
/// Returns the size that is requested for such a block, with an alignment of at most SliceSize.
function AlignedRequest(Alignment, Size: NativeUInt): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.Os, LaneMM.Errors, LaneMM.SizeClasses,
  LaneMM.Shards, LaneMM.Large, LaneMM.RegionHeaps, LaneMM.Regions, LaneMM.Threads, LaneMM.Walk,
  LaneMM.Purge, LaneMM.Limits, LaneMM.Allocate;

const
  // An aligned block may have huge pages that is so many times as large as its alignment.
  LeastShare = 4;

// Splits Span at FirstSlice: returns the rear part as a large block, frees the front part.
function CutFront(Span: PSpan; FirstSlice: NativeUInt): PSpan;
begin
  Result := ShardsSplit(Span, FirstSlice);
  Result^.Owner := NoOwner;
  Result^.IsZero := Span^.IsZero;
  LargeFormat(Result, Span^.BlockSize - FirstSlice shl SliceShift);
  Span^.BlockSize := FirstSlice shl SliceShift;
  LargeFree(Span);
end;

// Allocates a large block at a multiple of Alignment, which is larger than SliceSize.
function LargeGetAligned(Alignment, Size: NativeUInt): PSpan;
var
  Front: NativeUInt;
  Heap: PHeap;
begin
  // What is cut off would be backed by huge pages for nothing.
  Result := LargeGet(Size + Alignment - SliceSize, Size div LeastShare >= Alignment);
  if Result = nil then
    Exit;
  Front := AlignUp(NativeUInt(Result^.Start), Alignment) - NativeUInt(Result^.Start);
  LargeShrink(Result, Front + Size);
  if Front <> 0 then
    Result := CutFront(Result, Front shr SliceShift);
  Heap := ThreadHeap;
  if (RegionOfHeap(Heap) = nil) or RegionHeapAdd(Heap, Result) then
    Exit;
  LargeFree(Result);
  Result := nil;
end;

function AlignedRequest(Alignment, Size: NativeUInt): NativeUInt;
begin
  Result := Size;
  if (Alignment > BlockAlignment) and (Size <= MaxClassSize) then
    Result := ClassToSize(AlignedClass(SizeToClass(Size), FloorLog2(Alignment)));
end;

function LargeTryGet(Alignment, Size: NativeUInt): Pointer;
var
  Span: PSpan;
begin
  if Size = 0 then
    Size := 1;
  if Size + Alignment < Size then
    Exit(nil);
  Span := LargeGetAligned(Alignment, Size);
  if (Span = nil) and LargeIsPossible(Size + Alignment - SliceSize) then
  begin
    ProcessTrim;
    Span := LargeGetAligned(Alignment, Size);
  end;
  Result := nil;
  if Span <> nil then
    Result := Span^.Start;
end;

// AlignedGet that returns nil without memory.
function TryGet(Alignment, Size: NativeUInt): Pointer;
begin
  if Alignment > SliceSize then
    Exit(LargeTryGet(Alignment, Size));
  if Alignment > BlockAlignment then
    Process.KeepsAlignment := True;
  Result := BlockTryGet(OsThreadHeap, AlignedRequest(Alignment, Size));
end;

function AlignedGet(Alignment, Size: NativeUInt): Pointer;
begin
  Result := TryGet(Alignment, Size);
  if Result = nil then
    Result := LimitsRefuse(Size);
end;

function AlignedGetBeside(P: Pointer; Alignment, Size: NativeUInt): Pointer;
var
  Before: PHeap;
begin
  if (P = nil) or not BlockIsElsewhere(P, OsThreadHeap) then
    Exit(AlignedGet(Alignment, Size));
  Before := ThreadHeap;
  if (Before = nil) or not RegionVisit(RegionOfBlock(P), Before) then
    Exit(LimitsRefuse(Size));
  Result := TryGet(Alignment, Size);
  if Result = nil then
    LimitsReport(Size); // inside, where a region's limit is found; an exception begins outside
  RegionReturn(Before);
  if Result = nil then
    Result := ErrorOutOfMemory;
end;

end.
