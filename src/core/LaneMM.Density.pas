/// How much of the memory in blocks the program has touched.
//
// Owns:       Process.MeasuredAt, IsDense.
// How:        counts in a sample of the slices in spans of blocks, spread over all that were
//             handed out, how many of the pages that were carved are backed. A program that takes
//             buffers and fills part of each has few of them, and huge pages would back the rest.
//             The answer holds until the process has an eighth more or less memory.
// Limits:     a huge page is backed whether it is touched or not. So a program that is dense at
//             first, and sparse when it has huge pages, is seen as dense.
// Callers:    any thread that holds no lock.
// Progress:   bounded: 64 calls of the system at most.
unit LaneMM.Density;

{$I ../LaneMM.inc}

interface

/// Returns whether the program touches nearly all pages of the blocks that it takes, as far as that
/// is known. True where it has few blocks below 64 KB.
function DensityIsHigh: Boolean;
/// Returns whether so many backed pages of all are what a dense use backs: seven of eight.
function PagesAreDense(Backed, Pages: NativeUInt): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Frontier,
  LaneMM.Arena;

const
  // Slices of the sample, and most records that are read to find them.
  SampleCount = 64;
  MostLooks = 4096;
  // The part of the memory by which it changes until the next look.
  ChangeShare = 8;
  // Bits of a part of all slices.
  PartBits = 32;

type
  // Slices in spans of blocks.
  TSample = record
    Count: Cardinal;
    Carved: NativeUInt; // pages of blocks that were handed out once
    Backed: NativeUInt; // of these
  end;

function PagesAreDense(Backed, Pages: NativeUInt): Boolean;
const
  SparseShare = 8;
begin
  Result := Backed >= NativeUInt(Pages - Pages div SparseShare);
end;

// Adds a slice, unless it is of no span of blocks. Its span may change meanwhile: then the numbers
// are those of other blocks.
procedure AddSlice(var Sample: TSample; Slice: PSpan);
var
  Span: PSpan;
  Offset, Size: NativeUInt;
begin
  Span := Slice;
  if Slice^.Kind = skInner then
    Span := ArenaFirst(Slice, [skBlocks]);
  if (Span = nil) or (Span^.Kind <> skBlocks) then
    Exit;
  // Acquire: the record after its kind; a record that is new has no address before. Pairs with
  // SpanFormat.
  AcquireFence;
  Offset := NativeUInt(Slice - Span) * SliceSize;
  Size := Span^.CarvedBytes;
  if Size <= Offset then
    Exit;
  Dec(Size, Offset);
  if Size > SliceSize then
    Size := SliceSize;
  Dec(Size, Size mod OsPageSize);
  Inc(Sample.Count);
  Inc(Sample.Carved, Size div OsPageSize);
  Inc(Sample.Backed, OsBackedPages(Span^.Start + Offset, Size));
end;

// Looks at slices that lie about evenly in all that were handed out.
function IsUsedDensely: Boolean;
var
  Sample: TSample;
  HandedOut, Part: UInt64;
  Look: Cardinal;
begin
  Sample := Default(TSample);
  HandedOut := FrontierSlices;
  Look := 0;
  repeat
    Inc(Look);
    Part := NativeUInt(Look * SpreadFactor) shr (SizeOf(NativeUInt) * 8 - PartBits);
    AddSlice(Sample, FrontierSlice(Part * HandedOut shr PartBits));
  until (Sample.Count = SampleCount) or (Look = MostLooks);
  Result := PagesAreDense(Sample.Backed, Sample.Carved);
end;

function DensityIsHigh: Boolean;
var
  Backed, MeasuredAt, Change: NativeUInt;
begin
  Backed := ArenaBackedSlices;
  MeasuredAt := Process.MeasuredAt; // once: another thread may measure, too
  Change := MeasuredAt div ChangeShare;
  if NativeUInt(Backed - MeasuredAt + Change) > 2 * Change then
  begin
    Process.IsDense := IsUsedDensely;
    Process.MeasuredAt := Backed;
  end;
  Result := Process.IsDense;
end;

end.
