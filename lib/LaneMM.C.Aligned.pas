/// Blocks with an alignment of more than BlockAlignment.
//
// Owns:       nothing.
// Invariants: spans begin at multiples of SliceSize. So a block of a class whose size is a multiple
//             of the alignment is aligned, and a large block is aligned to SliceSize. For larger
//             alignments the slices before the first aligned one are freed. An aligned block is an
//             ordinary block: its address is the start of the block.
// Callers:    any thread.
unit LaneMM.C.Aligned;

{$I ../src/LaneMM.inc}

interface

/// Allocates at least Size bytes at a multiple of Alignment, a power of two. Returns nil, and sets
/// errno to ENOMEM, when there is no memory.
function AlignedGet(Alignment, Size: NativeUInt): Pointer;
/// Returns the size that is requested for such a block, with an alignment of at most SliceSize.
function AlignedRequest(Alignment, Size: NativeUInt): NativeUInt;
/// AlignedGet while a setting watches: the block is a debug block, is sampled, filled or noted.
function AlignedGetWatched(Alignment, Size: NativeUInt): Pointer;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Bits, LaneMM.SizeClasses, LaneMM.Shards,
  LaneMM.Large, LaneMM.RegionHeaps, LaneMM.Threads, LaneMM.Allocate, LaneMM.SettingsState,
  LaneMM.Sampler, LaneMM.DebugState, LaneMM.BlockNotes, LaneMM.Debug, LaneMM.Erase, LaneMM.Hard,
  LaneMM.GuardSample, LaneMM.C.Errno, LaneMM.C.Manager;

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
  Result := LargeGet(Size + Alignment - SliceSize);
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

// Returns the smallest block size of a size class, at least Size, that is a multiple of Alignment.
function AlignedSize(Alignment, Size: NativeUInt): NativeUInt;
var
  SizeClass: Cardinal;
begin
  SizeClass := SizeToClass(Size);
  while ClassToSize(SizeClass) mod Alignment <> 0 do
    Inc(SizeClass);
  Result := ClassToSize(SizeClass);
end;

function LargeAligned(Alignment, Size: NativeUInt): Pointer;
var
  Span: PSpan;
begin
  if Size = 0 then
    Size := 1;
  Span := nil;
  if Size + Alignment > Size then
    Span := LargeGetAligned(Alignment, Size);
  if Span <> nil then
    Exit(Span^.Start);
  ErrnoSet(ErrorNoMemory);
  Result := nil;
end;

function AlignedRequest(Alignment, Size: NativeUInt): NativeUInt;
begin
  Result := Size;
  if (Alignment > BlockAlignment) and (Size <= MaxClassSize) then
    Result := AlignedSize(Alignment, Size);
end;

function AlignedGet(Alignment, Size: NativeUInt): Pointer;
begin
  if Alignment > SliceSize then
    Result := LargeAligned(Alignment, Size)
  else
    Result := BlockGet(AlignedRequest(Alignment, Size));
end;

// The memory manager record holds the sampling entry.
function AlignedGetSampled(Alignment, Size: NativeUInt): Pointer;
begin
  if Alignment <= SliceSize then
    Exit(Installed.GetMem(AlignedRequest(Alignment, Size)));
  Result := LargeAligned(Alignment, Size);
  EraseFillNew(Result);
  SamplerSee(Result, Size);
end;

function AlignedGetDebug(Alignment, Size: NativeUInt): Pointer;
begin
  Result := DebugGetAligned(Size, FloorLog2(Alignment));
  if Result = nil then
    Exit(AlignedGet(Alignment, Size));
  if IsSet(opProfile) then
    SamplerSee(Result, Size);
end;

function AlignedGetGuarded(Alignment, Size: NativeUInt): Pointer;
begin
  Result := nil;
  if Size > High(Size) - Debug.MarkBytes then
    Dec(Size, Debug.MarkBytes); // still too many
  if GuardSampleIsOn and Debug.IsStarted then // the setting comes before it
    Result := GuardSampleTry(Size, FloorLog2(Alignment));
  if Result = nil then
    Result := AlignedGet(Alignment, Size + Debug.MarkBytes);
  EraseFillNew(Result);
  HardMark(Result, Size, faPlain);
end;

function AlignedGetWatched(Alignment, Size: NativeUInt): Pointer;
begin
  if Alignment <= BlockAlignment then
    Exit(Installed.GetMem(Size));
  if DebugIsOn then
    Exit(AlignedGetDebug(Alignment, Size));
  if IsSet(opProfile) and (Debug.MarkBytes = 0) then
    Result := AlignedGetSampled(Alignment, Size)
  else
    Result := AlignedGetGuarded(Alignment, Size);
  NoteBlock(Result, Size, NativeUInt(get_frame));
end;

end.
