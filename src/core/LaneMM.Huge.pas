/// Decides where huge pages pay: where the program touches nearly all memory that it takes.
//
// Owns:       Process.MeasuredAt, IsDense, LargeProbe, LargeLooks, LargeDensity; TSpan.IsHuge.
// Spans:      a sample of the slices in spans of blocks is read, spread over all that were handed
//             out: how many of the carved pages hold a word that is not 0. A program that takes
//             buffers and fills part of each has few of them, and huge pages would back the rest.
//             The answer holds until the process has an eighth more or less memory. The system is
//             not asked (mincore): a sandbox may end a process for that. It ends none for madvise,
//             which reports pages that the program has protected (OsCanRead).
// Large:      large blocks get huge pages where such blocks are used densely. LargeProbe is one
//             without huge pages, whose density is measured when another block is taken, and when
//             it is freed. Each dense one counts LargeDensity up; one that is freed sparse clears
//             it. From UseFrom on blocks that are not backed yet get huge pages, each of which
//             counts up, too; at NextProbe one gets none in its first HugeSlices, and is the next
//             probe. Until one was sparse or UseFrom is reached, each new block is measured when
//             it is freed. Zeros alone count as dense unless AllocMem or calloc took the block: the
//             program has filled it with them, or has not touched it, and huge pages would have
//             backed nothing.
// Limits:     otherwise a page of zeros counts as one that was never touched.
// Reads:      memory of other threads, which may free it meanwhile: between ReadBegin and ReadEnd
//             what is purged stays readable, and debug mode closes no page (LaneMM.GuardPages).
//             Pages that it has closed are in spans of another kind, which are not read.
// Callers:    any thread that holds no lock.
// Progress:   bounded: 64 slices are read, and 4,096 records.
unit LaneMM.Huge;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types;

/// Returns whether the program touches nearly all pages of the blocks that it takes, as far as that
/// is known. True where it has few blocks below 64 KB.
function DensityIsHigh: Boolean;
/// Returns how many pages hold a word that is not 0: of Most pages, spread over the PageCount from
/// P on, or of all if they are fewer. Such a page is backed.
function WrittenPages(P: PByte; PageCount, Most: NativeUInt): NativeUInt;
/// Returns whether the next large block, of SliceCount slices, is to have huge pages.
function HugeIsWanted(SliceCount: NativeUInt): Boolean;
/// Requests huge pages, or forbids them, in the whole ones of a span from slice Skipped on.
procedure HugeAdvise(Span: PSpan; Skipped: NativeUInt; IsWanted: Boolean);
/// Sets Process.HugeFrom, by bytes. Where pages are larger than OsPageSize huge ones are 32 and 512
/// MB: none are requested.
procedure HugeFromSet(Size: NativeUInt);
/// Prepares the memory of a new large block, unless it was backed already.
procedure HugePrepare(Span: PSpan; IsWanted: Boolean);
/// Measures a large block that is freed, if it is the probe or nothing else has decided yet.
procedure HugeEnd(Span: PSpan);

implementation

uses
  LaneMM.Layout, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Arena,
  LaneMM.Backed;

const
  // Slices of the sample, and most records that are read to find them.
  SampleCount = 64;
  MostLooks = 4096;
  // The part of the memory by which it changes until the next look.
  ChangeShare = 8;
  // Bits of a part of all slices.
  PartBits = 32;
  AllPages = SliceSize div OsPageSize;

type
  // Slices in spans of blocks.
  TSample = record
    Count: Cardinal;     // also of those that cannot be read
    Carved: NativeUInt;  // pages of blocks that were handed out once
    Written: NativeUInt; // of these
  end;

// Returns whether so many written pages of all are what a dense use leaves: seven of eight.
function PagesAreDense(Written, Pages: NativeUInt): Boolean;
const
  SparseShare = 8;
begin
  Result := Written >= NativeUInt(Pages - Pages div SparseShare);
end;

// Begins to read memory that others may free; false while a purge is under way, which may close it.
function ReadBegin: Boolean;
begin
  // Full barrier: a purge that begins sees the reader, or this thread sees the purge. Pairs with
  // Purge in LaneMM.Shards.
  FetchAdd(Process.PurgesHeld, 1);
  Result := LoadAcquire(Process.PurgesUnderWay) = 0;
end;

procedure ReadEnd;
begin
  // Full barrier: the reads come before. Pairs with Purge in LaneMM.Shards.
  FetchAdd(Process.PurgesHeld, NativeUInt(-1));
end;

// Returns a number below Limit, spread evenly over Index, 0, 1, 2 and so on.
function Spread(Index: NativeUInt; Limit: UInt64): NativeUInt;
var
  Part: UInt64;
begin
  Part := NativeUInt(Index * SpreadFactor) shr (SizeOf(NativeUInt) * 8 - PartBits);
  Result := Part * Limit shr PartBits;
end;

// Returns one page of a sample that has one of each Step.
function SampledPage(P: PByte; Step, Index: NativeUInt): PNativeUInt;
begin
  Result := PNativeUInt(P + (Index * Step + Spread(Index, Step)) * OsPageSize);
end;

function WrittenPages(P: PByte; PageCount, Most: NativeUInt): NativeUInt;
var
  Step, Index: NativeUInt;
begin
  Result := 0;
  if PageCount < Most then
    Most := PageCount;
  if Most = 0 then
    Exit;
  Step := PageCount div Most;
  for Index := 0 to Most - 1 do
    if not OsPageIsZero(SampledPage(P, Step, Index)) then
      Inc(Result);
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
  if not OsCanRead(Span^.Start + Offset, Size) then
    Exit;
  Inc(Sample.Carved, Size div OsPageSize);
  Inc(Sample.Written, WrittenPages(Span^.Start + Offset, Size div OsPageSize, AllPages));
end;

// Looks at slices that lie about evenly in all that were handed out.
function IsUsedDensely: Boolean;
var
  Sample: TSample;
  HandedOut: NativeUInt;
  Look: Cardinal;
begin
  Sample := Default(TSample);
  HandedOut := FrontierSlices;
  Look := 0;
  repeat
    Inc(Look);
    AddSlice(Sample, FrontierSlice(Spread(Look, HandedOut)));
  until (Sample.Count = SampleCount) or (Look = MostLooks);
  Result := PagesAreDense(Sample.Written, Sample.Carved);
end;

function DensityIsHigh: Boolean;
var
  Backed, MeasuredAt, Change: NativeUInt;
begin
  Backed := BackedSlices;
  MeasuredAt := Process.MeasuredAt; // once: another thread may measure, too
  Change := MeasuredAt div ChangeShare;
  if NativeUInt(Backed - MeasuredAt + Change) > 2 * Change then
  begin
    if ReadBegin then
    begin
      Process.IsDense := IsUsedDensely;
      Process.MeasuredAt := Backed;
    end;
    ReadEnd;
  end;
  Result := Process.IsDense;
end;

// ---------------------------------------------------------------------------- large blocks

const
  // What LargeDensity is after a sparse block.
  SparseDensity = -1;
  UseFrom = 3;
  AfterProbe = 8;
  NextProbe = 16;
  // Shorter blocks are not measured; of longer ones, so many of so many pages are.
  ShortestProbe = 4;
  MostMeasured = 8 * 1024 * 1024 div OsPageSize;
  PageSample = 64;
  // Of a block that may hold zeros alone, so many pages of all.
  BlankSample = 512;
  // Looks until a probe gives way to another one: its thread may be about to fill it, or never do.
  ProbeLooks = 16;

// Returns how many pages of a block are measured, from its start on.
function MeasuredPages(Span: PSpan): NativeUInt;
begin
  Result := Span^.BlockSize div OsPageSize; // of another block by now, perhaps
  if Result > MostMeasured then
    Result := MostMeasured;
end;

// Returns whether a block can be read, as far as it is measured.
function CanMeasure(Span: PSpan): Boolean;
begin
  Result := OsCanRead(Span^.Start, MeasuredPages(Span) * OsPageSize);
end;

// Returns true if a block is written densely, as far as it is measured.
function BlockIsDense(Span: PSpan): Boolean;
var
  PageCount, Sample: NativeUInt;
begin
  PageCount := MeasuredPages(Span);
  Sample := PageSample;
  if Sample > PageCount then
    Sample := PageCount;
  Result := PagesAreDense(WrittenPages(Span^.Start, PageCount, Sample), Sample);
end;

// Returns whether a block that was new, without a promise of zeros, holds zeros alone, as far as it
// is read: it was filled with them, or not touched. The system is asked for each page: its answer
// for a whole block would take page tables for all of it.
function BlockIsBlank(Span: PSpan): Boolean;
var
  PageCount, Sample, Index: NativeUInt;
  Page: PNativeUInt;
begin
  if not Span^.IsZero then
    Exit(False);
  PageCount := Span^.BlockSize div OsPageSize;
  Sample := BlankSample;
  if Sample > PageCount then
    Sample := PageCount;
  for Index := 0 to Sample - 1 do
  begin
    Page := SampledPage(Span^.Start, PageCount div Sample, Index);
    if not OsCanRead(Page, OsPageSize) or not OsPageIsZero(Page) then
      Exit(False);
  end;
  Result := True;
end;

procedure EndProbe;
begin
  Process.LargeProbe := nil;
  Process.LargeLooks := 0;
end;

procedure CountDense;
begin
  if Process.LargeDensity < UseFrom then
    Inc(Process.LargeDensity);
end;

// Measures the probe before another block is taken.
procedure LookAtProbe(Span: PSpan);
begin
  Inc(Process.LargeLooks);
  if (Span^.Kind <> skLarge) or not CanMeasure(Span) then
    EndProbe
  else if BlockIsDense(Span) then
  begin
    EndProbe;
    CountDense;
  end
  else if Process.LargeLooks >= ProbeLooks then
  begin
    EndProbe;
    if Process.LargeDensity >= UseFrom then
      Process.LargeDensity := UseFrom - 1;
  end;
end;

// Returns whether the block is the probe or, while nothing else decides, a new one that has not
// moved.
function IsMeasured(Span: PSpan): Boolean;
var
  Density: NativeInt;
begin
  if Span = Process.LargeProbe then
    Exit(True);
  Density := Process.LargeDensity;
  Result := Span^.IsZero and (Span^.Traits = []) and (Density > SparseDensity)
    and (Density < UseFrom) and (Span^.SliceCount >= ShortestProbe) and (Process.HugeFrom <> 0);
end;

procedure HugeEnd(Span: PSpan);
begin
  if not IsMeasured(Span) then
    Exit;
  if Span = Process.LargeProbe then
    EndProbe;
  if not CanMeasure(Span) then
    Exit;
  if BlockIsDense(Span) or BlockIsBlank(Span) then
    CountDense
  else
    Process.LargeDensity := SparseDensity;
end;

function HugeIsWanted(SliceCount: NativeUInt): Boolean;
var
  Probe: PSpan;
  Density: NativeInt;
begin
  if (SliceCount < ShortestProbe) or (Process.HugeFrom = 0) then
    Exit(False);
  Probe := Process.LargeProbe;
  if Probe <> nil then
  begin
    if ReadBegin then
      LookAtProbe(Probe);
    ReadEnd;
  end;
  Density := Process.LargeDensity;
  Result := (Density >= UseFrom) and ((Density < NextProbe)
    or (Process.LargeProbe = nil) and (SliceCount > HugeSlices));
end;

procedure HugeAdvise(Span: PSpan; Skipped: NativeUInt; IsWanted: Boolean);
var
  First, Limit: NativeUInt;
begin
  First := AlignUp(NativeUInt(Span^.Start) + Skipped * SliceSize, HugeSlices * SliceSize);
  Limit := NativeUInt(Span^.Start) + Span^.SliceCount * SliceSize;
  Dec(Limit, Limit mod (HugeSlices * SliceSize));
  Span^.IsHuge := IsWanted;
  if First >= Limit then
    Exit;
  if IsWanted then
    OsUseHugePages(Pointer(First), Limit - First)
  else
    OsUseSmallPages(Pointer(First), Limit - First);
end;

procedure HugeFromSet(Size: NativeUInt);
begin
  Process.HugeFrom := 0;
  if OsGranule = OsPageSize then
    Process.HugeFrom := Size shr SliceShift;
end;

// Makes a new block the probe, unless there is one.
procedure StartProbe(Span: PSpan);
begin
  if Process.LargeProbe <> nil then
    Exit;
  Process.LargeProbe := Span;
  if Process.LargeDensity >= NextProbe then
    Process.LargeDensity := AfterProbe;
end;

procedure HugePrepare(Span: PSpan; IsWanted: Boolean);
var
  Skipped: NativeUInt;
begin
  if not Span^.IsZero or (Span^.SliceCount < ShortestProbe) or (Process.HugeFrom = 0) then
    Exit;
  Skipped := 0;
  if IsWanted and (Process.LargeDensity < NextProbe) then
    Inc(Process.LargeDensity)
  else
  begin
    Skipped := HugeSlices;
    StartProbe(Span);
  end;
  if IsWanted then
    HugeAdvise(Span, Skipped, True);
end;

end.
