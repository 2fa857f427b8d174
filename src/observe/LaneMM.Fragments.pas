/// The free bytes in partly used spans, shared among the blocks that keep the spans.
//
// Owns:       nothing.
// Invariants: each block in use of a span keeps an equal share of the span's free bytes. A sample
//             stands for itself, in a span of samples, and for others like it, which lie where
//             blocks of their size class came from at that time: in the span Like, or in one that
//             now is like it. If Like serves something else by now, a block like the sample would
//             be the last one there, and keep all of a span.
// Callers:    any thread. Exact while no other thread allocates or frees.
// Source:     tcmalloc, fragmentation profiles, which allocate a block beside each sample.
unit LaneMM.Fragments;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.CallSites;

/// Returns the free bytes that the blocks for which Sample stands keep.
function FragmentsOfSample(const Sample: TSample): UInt64;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.SizeClasses, LaneMM.Frontier, LaneMM.RemoteList;

// Returns the share of one block in the free bytes of its span, which has Used blocks in use and
// BlockBytes for blocks of BlockSize bytes.
function ShareOf(Used: NativeInt; BlockBytes, BlockSize: NativeUInt): Double;
var
  Free: NativeInt;
begin
  if Used < 1 then
    Used := 1;
  Free := NativeInt(BlockBytes div BlockSize) - Used;
  Result := 0;
  if Free > 0 then
    Result := Free / Used * BlockSize;
end;

function UsedOf(Span: PSpan): NativeInt;
begin
  Result := NativeInt(Span^.Used) - Span^.Held - NativeInt(RemoteCount(Span));
end;

// Returns the share of a block of the class in a span like Span, which holds no block for it.
function ShareBeside(Span: PSpan; SizeClass: Cardinal): Double;
var
  BlockSize: NativeUInt;
begin
  BlockSize := ClassToSize(SizeClass);
  if (Span <> nil) and (Span^.Kind = skBlocks) and (Span^.BlockSize = BlockSize) then
    Result := ShareOf(UsedOf(Span) + 1, Span^.BlockBytes, BlockSize)
  else
    Result := ShareOf(1, NativeUInt(Process.ClassSlices[SizeClass]) * SliceSize, BlockSize);
end;

function FragmentsOfSample(const Sample: TSample): UInt64;
var
  Span: PSpan;
  Bytes: Double;
begin
  Span := ArenaSpan(Pointer(Sample.Block));
  if (Span = nil) or (Span^.Kind <> skBlocks) then
    Exit(0); // a large block, or one of debug mode
  Bytes := ShareOf(UsedOf(Span), Span^.BlockBytes, Span^.BlockSize);
  if Sample.Count > 1 then
    Bytes := Bytes + ShareBeside(Sample.Like, Span^.SizeClass)
      * NativeUInt(Sample.Count - 1);
  Result := Round(Bytes);
end;

end.
