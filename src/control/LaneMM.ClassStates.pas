/// The state of the heap by size class, as FastMM's memory manager state.
//
// Owns:       nothing.
// Invariants: a walk over all spans and heaps, without a lock: exact while no other thread
//             allocates or frees.
// Callers:    any thread.
unit LaneMM.ClassStates;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Stats;

type
  /// The blocks of one size class. Debug blocks are in no class.
  TClassState = record
    BlockSize: NativeUInt;    //< usable bytes of a block
    BlockCount: NativeUInt;   //< blocks in use
    UsedBytes: NativeUInt;    //< their usable bytes
    FreeCount: NativeUInt;    //< blocks of the spans that are not in use
    SlackBytes: NativeUInt;   //< bytes of the spans that are not in a block in use
    SpanCount: NativeUInt;    //< spans of this class
    SpanBytes: NativeUInt;    //< their bytes
    PartSpanCount: NativeUInt; //< spans that hold free blocks beside blocks in use
    OwnerCount: NativeUInt;   //< threads that hold a span with a free block; the ended ones are one
  end;
  /// The state of the heap.
  THeapState = record
    Status: TStatus;          //< the sums, and the large blocks
    ByClass: array[0..SizeClassCount - 1] of TClassState; //< from the smallest block size
  end;

/// Sums up the state. Never fails.
procedure HeapStateRead(out State: THeapState);

implementation

uses
  LaneMM.Types, LaneMM.SizeClasses, LaneMM.Span, LaneMM.Walk, LaneMM.Threads;

type
  PHeapState = ^THeapState;

procedure AddSpan(Span: PSpan; Context: Pointer);
var
  State: ^TClassState;
  Size, Capacity, Count: NativeUInt;
begin
  Size := Span^.BlockSize; // read once: the record may become that of another span
  if (Span^.Kind <> skBlocks) or (Span^.SizeClass >= SizeClassCount) or (Size = 0) then
    Exit;
  State := @PHeapState(Context)^.ByClass[Span^.SizeClass];
  Capacity := Span^.BlockBytes div Size;
  Count := SpanUsedCount(Span);
  if Count > Capacity then // the record became another span's
    Count := Capacity;
  Inc(State^.BlockCount, Count);
  Inc(State^.UsedBytes, Count * Size);
  Inc(State^.FreeCount, Capacity - Count);
  Inc(State^.SpanCount);
  Inc(State^.SpanBytes, Span^.SliceCount * SliceSize);
  if (Count > 0) and (Count < Capacity) then
    Inc(State^.PartSpanCount);
end;

procedure HeapStateRead(out State: THeapState);
var
  SizeClass: Cardinal;
  Heap: PHeap;
begin
  State := Default(THeapState);
  StatusRead(State.Status);
  for SizeClass := 0 to SizeClassCount - 1 do
    State.ByClass[SizeClass].BlockSize := ClassToSize(SizeClass);
  WalkSpans(AddSpan, @State);
  for SizeClass := 0 to SizeClassCount - 1 do
    State.ByClass[SizeClass].SlackBytes := State.ByClass[SizeClass].SpanBytes
      - State.ByClass[SizeClass].UsedBytes;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    for SizeClass := 0 to SizeClassCount - 1 do
      if (Heap^.Queues[SizeClass] <> nil) or (Heap^.Current[SizeClass] <> nil)
        and (Heap^.Current[SizeClass] <> @Process.EmptySpan) then
        Inc(State.ByClass[SizeClass].OwnerCount);
    Heap := Heap^.NextHeap;
  end;
end;

end.
