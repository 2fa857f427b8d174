/// Bytes to size class and back.
//
// Classes:    multiples of 16 bytes up to 256, then eight per doubling up to 8 KB, then four, up
//             to MaxClassSize. Above 128 bytes a block is at most 12.5 % larger than the requested
//             size, above 8 KB at most 25 % and a cache line, of which whole pages stay
//             unbacked; below 128 at most 15 bytes: the price of the alignment. Fewer classes have
//             fewer unused blocks, which weigh more there.
// Stagger:    above 8 KB all classes but the powers of two are a cache line longer than half or
//             whole pages. Otherwise the blocks of a span would all begin in one or two sets of a
//             processor's first cache. Powers of two stay as they are: sixteen blocks fill a span,
//             and blocks that are aligned to more than a cache line come from them.
// Spans:      spans of classes up to MaxSmallSize are one slice; those of larger classes are the
//             shortest run of slices that holds 16 blocks: less than a sixteenth stays unused. When
//             memory runs out, they are one slice, too (HeapNewSpan).
// Owns:       Process.ClassOf, ClassSlices.
// Callers:    any thread; all routines but SizeClassesStart and SizeClassesAlign are pure.
unit LaneMM.SizeClasses;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Returns the class of a requested size of 0 to MaxClassSize bytes.
function SizeToClass(Size: NativeUInt): Cardinal;
/// Returns SizeToClass(Size) by one lookup in the table of Process.
function ClassOf(Size: NativeUInt): Cardinal; inline;
/// Returns the usable size of a block of the class, in bytes.
function ClassToSize(SizeClass: Cardinal): NativeUInt;
/// Returns the class that serves a thread's first blocks of a class up to LastSharedClass, see
/// LaneMM.Heap.
function ServingClass(SizeClass: Cardinal): Cardinal;
/// Returns that class for a heap of a region: small regions are many.
function RegionServingClass(SizeClass: Cardinal): Cardinal;
/// Returns the highest number of such blocks of a class up to LastSharedClass.
function MostServed(SizeClass: Cardinal): Cardinal;
/// Returns true if a block for Size requested bytes may have BlockSize usable bytes, before it is
/// resized.
function SizeMayBe(Size, BlockSize: NativeUInt): Boolean;
/// Returns the first class, from SizeClass on, whose size is a multiple of 2 to the power of Shift,
/// at most SliceShift.
function AlignedClass(SizeClass, Shift: Cardinal): Cardinal;
/// Fills the size class tables of Process. Once, before any other thread runs.
procedure SizeClassesStart;
/// Changes the table for requests so that all blocks to come begin at multiples of 2 to the power
/// of Shift, at most 6; 0: of BlockAlignment. One thread at a time.
procedure SizeClassesAlign(Shift: Cardinal);

implementation

uses
  LaneMM.Bits, LaneMM.Os;

const
  FineClassCount = 16;
  FineLimitLog2 = 8; // 256 bytes
  ClassesPerDoublingLog2 = 3;
  CoarseLimitLog2 = 13;
  CoarsePerDoublingLog2 = 2;
  CoarsePerDoubling = 1 shl CoarsePerDoublingLog2;
  Stagger = CacheLineSize;
  // Fewest blocks of a span of more than one slice.
  BlocksPerSpan = 16;

// SizeToClass of a size above 8 KB, whose last byte, Last, has the number Log2.
function CoarseClass(Last: NativeUInt; Log2: Cardinal): Cardinal;
var
  First: NativeUInt;
begin
  First := NativeUInt(1) shl Log2;
  if Last < First + Stagger then
    Last := First
  else
    Dec(Last, Stagger);
  Result := FirstCoarseClass + (Log2 - CoarseLimitLog2) shl CoarsePerDoublingLog2
    + Cardinal(Last shr (Log2 - CoarsePerDoublingLog2)) - CoarsePerDoubling;
end;

function CoarseSize(SizeClass: Cardinal): NativeUInt;
var
  Log2, Quarter: Cardinal;
begin
  Dec(SizeClass, FirstCoarseClass);
  Log2 := CoarseLimitLog2 + SizeClass shr CoarsePerDoublingLog2;
  Quarter := SizeClass mod CoarsePerDoubling + 1;
  Result := NativeUInt(CoarsePerDoubling + Quarter) shl (Log2 - CoarsePerDoublingLog2);
  if Quarter < CoarsePerDoubling then
    Inc(Result, Stagger);
end;

function SizeToClass(Size: NativeUInt): Cardinal;
var
  Log2: Cardinal;
begin
  if Size <= BlockAlignment then
    Exit(0);
  Dec(Size);
  if Size < NativeUInt(1) shl FineLimitLog2 then
    Exit(Size div BlockAlignment);
  Log2 := FloorLog2(Size);
  if Log2 >= CoarseLimitLog2 then
    Exit(CoarseClass(Size, Log2));
  Result := FineClassCount + (Log2 - FineLimitLog2) shl ClassesPerDoublingLog2
    + Cardinal(Size shr (Log2 - ClassesPerDoublingLog2)) - 1 shl ClassesPerDoublingLog2;
end;

function ClassOf(Size: NativeUInt): Cardinal;
begin
  Result := Process.ClassOf[NativeUInt(Size + ClassStep - 1) div ClassStep];
end;

function ClassToSize(SizeClass: Cardinal): NativeUInt;
var
  Log2: Cardinal;
begin
  if SizeClass < FineClassCount then
    Exit((SizeClass + 1) * BlockAlignment);
  if SizeClass >= FirstCoarseClass then
    Exit(CoarseSize(SizeClass));
  Dec(SizeClass, FineClassCount);
  Log2 := FineLimitLog2 + SizeClass shr ClassesPerDoublingLog2;
  SizeClass := SizeClass and (1 shl ClassesPerDoublingLog2 - 1);
  Result := NativeUInt(SizeClass + 1 shl ClassesPerDoublingLog2 + 1)
    shl (Log2 - ClassesPerDoublingLog2);
end;

type
  TServing = record
    SizeClass: Byte;   //< const   whose pages serve all classes up to it
    MostBlocks: Byte;  //< const   of each of them
  end;

const
  // Classes of 96, 512, 2,048 and 8,192 bytes.
  Servings: array[0..3] of TServing = (
    (SizeClass: 5; MostBlocks: 20), (SizeClass: 23; MostBlocks: 8),
    (SizeClass: 39; MostBlocks: 4), (SizeClass: LastSharedClass; MostBlocks: 2));

// Sums instead of branches, which no CPU predicts for mixed sizes.
function ServingOf(SizeClass: Cardinal): Cardinal;
begin
  Result := Ord(SizeClass > Servings[0].SizeClass) + Ord(SizeClass > Servings[1].SizeClass)
    + Ord(SizeClass > Servings[2].SizeClass);
end;

function ServingClass(SizeClass: Cardinal): Cardinal;
begin
  Result := Servings[ServingOf(SizeClass)].SizeClass;
end;

// One page for blocks of up to 128 bytes, two for those up to 256: a region of 50 such blocks takes
// three, with the classes of threads seven.
function RegionServingClass(SizeClass: Cardinal): Cardinal;
begin
  if SizeClass < FineClassCount then
    Result := SizeClass or (FineClassCount div 2 - 1)
  else
    Result := ServingClass(SizeClass);
end;

function MostServed(SizeClass: Cardinal): Cardinal;
begin
  Result := Servings[ServingOf(SizeClass)].MostBlocks;
end;

function AlignedClass(SizeClass, Shift: Cardinal): Cardinal;
begin
  Result := SizeClass;
  while LowestBit(ClassToSize(Result)) < Shift do
    Inc(Result);
end;

function SizeMayBe(Size, BlockSize: NativeUInt): Boolean;
var
  SizeClass: Cardinal;
begin
  if Size > MaxClassSize then
    Exit(BlockSize = AlignUp(Size, OsPageSize));
  SizeClass := SizeToClass(Size);
  Result := (BlockSize = ClassToSize(SizeClass))
    or (SizeClass <= LastSharedClass) and ((BlockSize = ClassToSize(ServingClass(SizeClass)))
    or (BlockSize = ClassToSize(RegionServingClass(SizeClass))))
    or Process.KeepsAlignment
    and (BlockSize = ClassToSize(AlignedClass(SizeClass, LowestBit(BlockSize or SliceSize))));
end;

function SpanSlices(BlockSize: NativeUInt): NativeUInt;
begin
  Result := 1;
  if BlockSize > MaxSmallSize then
    Result := AlignUp(BlockSize * BlocksPerSpan, SliceSize) shr SliceShift;
end;

procedure SizeClassesAlign(Shift: Cardinal);
var
  First, Next, SizeClass: Cardinal;
begin
  First := 0;
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Next := ClassToSize(SizeClass) div ClassStep + 1;
    FillChar(Process.ClassOf[First], Next - First, AlignedClass(SizeClass, Shift));
    First := Next;
  end;
end;

procedure SizeClassesStart;
var
  Index: Cardinal;
begin
  SizeClassesAlign(0);
  for Index := 0 to SizeClassCount - 1 do
    Process.ClassSlices[Index] := SpanSlices(ClassToSize(Index));
end;

end.
