/// The free bytes in partly used spans, shared among the blocks that keep the spans.
//
// Owns:       nothing.
// Invariants: each block in use of a span keeps an equal share of the span's free bytes. A sample
//             stands for itself, in a span of samples, and for others like it, which lie where
//             blocks of their size class came from at that time: in the span Like, or in one that
//             now is like it. If Like serves something else by now, a block like the sample would
//             be the last one there, and keep all of a span. Many blocks like it in few spans
//             would count too much then: what is attributed to the blocks of a size class is at
//             most what its spans have free.
// Callers:    any thread. Exact while no other thread allocates or frees.
// Source:     tcmalloc, fragmentation profiles, which allocate a block beside each sample.
unit LaneMM.Fragments;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.SizeClasses, LaneMM.Stats, LaneMM.CallSites;

type
  /// How full the spans of each size class are, and what is charged for them.
  TFragments = record
    Statuses: TClassStatuses;                         //< owner   how full its spans are
    Claimed: array[0..SizeClassCount - 1] of UInt64;  //< owner   sum of the shares of its samples
  end;
  PFragments = ^TFragments;

/// Counts the free bytes of all spans, before the samples are claimed for.
procedure FragmentsOpen(out Fragments: TFragments);
/// Adds what the blocks for which Sample stands would keep. Once for each sample, before the first
/// call of FragmentsOfSample.
procedure FragmentsClaim(var Fragments: TFragments; const Sample: TSample);
/// Returns the free bytes that the blocks for which Sample stands keep.
function FragmentsOfSample(const Fragments: TFragments; const Sample: TSample): UInt64;

implementation

uses
  LaneMM.Types, LaneMM.Arena, LaneMM.Span;

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

// Returns the share of a block of the class in a span like Span, which holds no block for it.
function ShareBeside(Span: PSpan; SizeClass: Cardinal): Double;
var
  BlockSize: NativeUInt;
begin
  BlockSize := ClassToSize(SizeClass);
  if (Span <> nil) and (Span^.Kind = skBlocks) and (Span^.BlockSize = BlockSize) then
    Result := ShareOf(SpanUsedCount(Span) + 1, Span^.BlockBytes, BlockSize)
  else
    Result := ShareOf(1, NativeUInt(Process.ClassSlices[SizeClass]) * SliceSize, BlockSize);
end;

// Returns the span of the sample; nil for a large block, or one of debug mode.
function SpanOfSample(const Sample: TSample): PSpan;
begin
  Result := ArenaSpan(Pointer(Sample.Block));
  if (Result <> nil) and (Result^.Kind <> skBlocks) then
    Result := nil;
end;

// Returns what the blocks keep for which a sample in Span stands, as if each was alone there.
function ClaimOf(const Sample: TSample; Span: PSpan): UInt64;
var
  Bytes: Double;
begin
  Bytes := ShareOf(SpanUsedCount(Span), Span^.BlockBytes, Span^.BlockSize);
  if Sample.Count > 1 then
    Bytes := Bytes + ShareBeside(Sample.Like, Span^.SizeClass)
      * NativeUInt(Sample.Count - 1);
  Result := Round(Bytes);
end;

procedure FragmentsOpen(out Fragments: TFragments);
begin
  Fragments := Default(TFragments);
  ClassStatusRead(Fragments.Statuses);
end;

procedure FragmentsClaim(var Fragments: TFragments; const Sample: TSample);
var
  Span: PSpan;
begin
  Span := SpanOfSample(Sample);
  if Span <> nil then
    Inc(Fragments.Claimed[Span^.SizeClass], ClaimOf(Sample, Span));
end;

function FragmentsOfSample(const Fragments: TFragments; const Sample: TSample): UInt64;
var
  Span: PSpan;
  Free, Claimed: UInt64;
begin
  Span := SpanOfSample(Sample);
  if Span = nil then
    Exit(0);
  Result := ClaimOf(Sample, Span);
  Free := Fragments.Statuses[Span^.SizeClass].FreeCount * Span^.BlockSize;
  Claimed := Fragments.Claimed[Span^.SizeClass];
  if Claimed > Free then
    Result := Trunc(Result / Claimed * Free);
end;

end.
