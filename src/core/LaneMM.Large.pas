/// Large blocks: one block, one run of slices.
//
// Owns:       TSpan.BlockSize of large blocks: the usable bytes, whole pages; TSpan.SpareCount,
//             IsMoved, IsHuge and Getter; Process.MovedSpans, LargeProbe, LargeDensity;
//             THeap.Section, RunsClaimed, Runs, KeptSlices, MissedSlices, Getter.
// Invariants: BlockSize ends in the last slice before the SpareCount spare ones. Where there are
//             none, it may end in an earlier slice: that of a kept run. Spare slices were never
//             touched through this block; the block grows into them without a move.
// Kept runs:  a thread keeps short runs that it has freed for its next blocks. Such a run is
//             skReleased, with the end that ArenaTake gave it; it counts as backed. Each sweep
//             releases all runs.
// Lock Runs:  the heap's thread uses them between RunsEnter and RunsLeave, its section, while
//             RunsClaimed is 0. Another thread sets RunsClaimed, passes OsBarrier, and has them
//             if Section is 0: then each later section sees the claim. Else it goes without.
// Frees:      a block that a thread gets from its kept runs has it as getter, which ends its life
//             by a plain store, in its section. Another thread marks the block by a
//             compare-and-swap and passes OsBarrier. If the getter's section is not about this
//             block then, no later one frees it: it sees the mark. Of two that free a block at the
//             same moment one goes on, also if neither waits for the other. Both are refused, and
//             the block is lost, when the getter's thread is stopped in that section meanwhile.
//             Where OsBarrier begins to fail (a sandbox), such a free in that moment is not found.
// No barrier: without Process.HasBarrier no block has a getter; every free is a compare-and-swap.
//             A section of the assembler begins with a plain store only where blocks get a getter.
// Callers:    any thread; the block belongs to the caller. LargeKeep, LargeGetKept: the heap's
//             thread.
// Source:     the section: Dekker's algorithm with one side's barrier moved to the other, as in
//             Dice, Huang and Yang, "Asymmetric Dekker Synchronization" (2001).
unit LaneMM.Large;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// The lengths that serve a block of N slices, from N to 2 N, as bits of TKeptCounts.
  ServingLengths: array[1..LongestKept] of UInt64 = ($000000000000FF00, $00000000FFFFFF00,
    $0000FFFFFFFF0000, UInt64($FFFFFFFFFF000000), UInt64($FFFFFFFF00000000),
    UInt64($FFFFFF0000000000), UInt64($FFFF000000000000), UInt64($FF00000000000000));
  /// One run of a length in TKeptCounts.All.
  OneOfLength: array[1..LongestKept] of UInt64 = (1, $100, $10000, $1000000, $100000000,
    $10000000000, $1000000000000, $100000000000000);

/// Allocates a block of at least Size bytes, rounded to pages; nil when there is no memory.
function LargeGet(Size: NativeUInt): PSpan;
/// Allocates such a block from the runs that the heap keeps; nil if it has none.
function LargeGetKept(Heap: PHeap; Size: NativeUInt): PSpan;
/// Makes the run Span, taken and with its Owner and IsZero, a block of at least Size bytes.
procedure LargeFormat(Span: PSpan; Size: NativeUInt; Getter: PHeap = nil);
/// Frees the block.
procedure LargeFree(Span: PSpan);
/// Ends the life of a block that is freed; Word was its RemoteWord, Heap is the calling thread's or
/// nil. Returns false if another thread frees it or has freed it. Never waits.
function LargeEndLife(Heap: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
/// Keeps the run of a block whose life has ended for the next large block of the heap's thread;
/// false if it has no room: then to be released.
function LargeKeep(Heap: PHeap; Span: PSpan): Boolean;
/// Releases the run of a block whose life has ended.
procedure LargeRelease(Span: PSpan);
/// Returns the most usable bytes that the block could have in place now.
function LargeRoom(Span: PSpan): NativeUInt;
/// Makes the usable size at least Size in place. Returns false, and changes nothing, if it cannot.
function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
/// Reduces the usable size to Size, rounded up to pages.
procedure LargeShrink(Span: PSpan; Size: NativeUInt);
/// Moves the block to a new place of Size usable bytes, no fewer than it has; moves its pages where
/// the system can, else copies. Copied is the number of bytes copied. Nil, and nothing changed,
/// when there is no memory.
function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;

/// Keeps the run of a span that the caller owns, formatted as by ArenaTake; false if there is no
/// place for it. The heap's thread, which then calls WantSweep.
function RunKeep(Heap: PHeap; Span: PSpan): Boolean;
/// Takes the run of SliceCount slices that was kept last, as ArenaTake does; nil if none. The
/// heap's thread.
function RunTake(Heap: PHeap; SliceCount: NativeUInt): PSpan;
/// Ends a section of the heap's thread, also one that the assembler began.
procedure RunsLeave(Heap: PHeap);
/// Lets the next blocks from kept runs have the heap as getter, where that is possible.
procedure LargeUseGetter(Heap: PHeap);
/// Releases all runs that Count heaps keep, from Heap on, MostAtOnce at most. Any thread. False if
/// the thread of one uses them at this moment, or another thread releases them.
function LargeReleaseKept(Heap: PHeap; Count: Cardinal): Boolean;
/// Releases the runs of the heap's own thread; leaves them to a thread about to release them.
procedure LargeReleaseOwn(Heap: PHeap);
/// Returns the slices of the runs that the heap keeps; may be out of date.
function LargeKeptSlices(Heap: PHeap): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Lock, LaneMM.RemoteList,
  LaneMM.Frontier, LaneMM.Arena, LaneMM.Density;

const
  // Below this size a block moves to pages that are backed already, if there are any.
  SmallestSpare = 4 * 1024 * 1024;
  // Below this many bytes copying is cheaper than moving pages, whose old place must then be backed
  // anew.
  SmallestMove = SmallestSpare;
  // Each range that pages were moved to costs some mappings, of which a process may have 65,530;
  // above this number blocks are copied.
  MostMoved = 4096;

function SlicesFor(Size: NativeUInt): NativeUInt; inline;
begin
  Result := AlignUp(Size, SliceSize) shr SliceShift;
end;

// Returns true for a size that the system cannot back.
function IsTooLarge(Size: NativeUInt): Boolean;
begin
  Result := (Size > MaxRunSlices shl SliceShift) or not FrontierCanBack(Size);
end;

// Overwrites the link that a block of a former span may have left where Span begins: ReallocMem
// would copy it into a block, which would then look free.
procedure Forget(Span: PSpan);
begin
  if not Span^.IsZero then
    PBlock(Span^.Start)^.Link := HandedOut;
end;

// ---------------------------------------------------------------------------- kept runs

function LargeKeptSlices(Heap: PHeap): NativeUInt;
begin
  Result := Heap^.KeptSlices;
end;

// Begins a section of the heap's thread. Work is the span that it frees, or the heap. Returns
// whether it may use the runs. RunsLeave in any case.
function RunsEnter(Heap: PHeap; Work: Pointer): Boolean;
begin
  // Full barrier: this thread sees the claim, or the other one the section. Pairs with RunsClaim.
  Swap(Heap^.Section, NativeUInt(Work));
  // Acquire: the runs as the last claim left them. Pairs with RunsDisclaim.
  Result := LoadAcquire(Heap^.RunsClaimed) = 0;
end;

procedure RunsLeave(Heap: PHeap);
begin
  // Release: all that the section wrote. Pairs with RunsClaim and EndByOther.
  StoreRelease(Heap^.Section, 0);
end;

// Waits some turns, no longer, for the end of a section; returns false if it goes on. Of a section
// about another span than Span there is no need to wait; nil: of any.
function SectionEnds(Heap: PHeap; Span: PSpan): Boolean;
const
  MostTurns = 200;
var
  Turn: Cardinal;
  Work: NativeUInt;
begin
  for Turn := 1 to MostTurns do
  begin
    // Acquire: what the section wrote. Pairs with RunsLeave.
    Work := LoadAcquire(Heap^.Section);
    if (Work = 0) or (Span <> nil) and (Work <> NativeUInt(Span)) then
      Exit(True);
    SpinHint;
  end;
  Result := False;
end;

procedure RunsDisclaim(Heap: PHeap);
begin
  // Release: the runs. Pairs with RunsEnter.
  StoreRelease(Heap^.RunsClaimed, 0);
end;

// Claims the runs for another thread; false if one has. After OsBarrier it has them if SectionEnds.
function RunsClaim(Heap: PHeap): Boolean;
begin
  // Full barrier, and OsBarrier for the heap's thread: pairs with RunsEnter.
  Result := CompareAndSwap(Heap^.RunsClaimed, 0, 1);
end;

// Returns true if the heap may keep one more run of this length.
function HasRoom(Heap: PHeap; Length: NativeUInt): Boolean; inline;
begin
  Result := (Heap^.KeptSlices + Length <= LeastKept + Heap^.MissedSlices)
    and (Heap^.KeptCounts.Each[Length] < RunPlaces);
end;

// Counts SliceCount slices that the heap did not have.
procedure CountMissed(Heap: PHeap; SliceCount: NativeUInt);
begin
  Inc(Heap^.MissedSlices, SliceCount);
  if Heap^.MissedSlices > MostKept - LeastKept then
    Heap^.MissedSlices := MostKept - LeastKept;
end;

function RunKeep(Heap: PHeap; Span: PSpan): Boolean;
var
  Length: NativeUInt;
begin
  Length := Span^.SliceCount;
  if (Length < ShortestKept) or (Length > LongestKept) then
    Exit(False);
  Result := RunsEnter(Heap, Heap) and HasRoom(Heap, Length);
  if Result then
  begin
    Inc(Heap^.KeptSlices, Length);
    Span^.Kind := skReleased;
    Heap^.Runs[Length].Places[Heap^.KeptCounts.Each[Length]] := Span;
    YieldPoint;
    Inc(Heap^.KeptCounts.Each[Length]);
  end;
  RunsLeave(Heap);
end;

// Takes the run of this length that was kept last, but for KeptSlices. Under Runs.
function LastTake(Heap: PHeap; Length: NativeUInt): PSpan;
begin
  Dec(Heap^.KeptCounts.Each[Length]);
  YieldPoint;
  Result := Heap^.Runs[Length].Places[Heap^.KeptCounts.Each[Length]];
end;

// Returns the shortest of these lengths, bits of TKeptCounts; there is one.
function ShortestOf(Lengths: UInt64): NativeUInt;
begin
  Result := 1;
  while Lengths and High(Byte) = 0 do
  begin
    Lengths := Lengths shr 8;
    Inc(Result);
  end;
end;

// Takes the shortest run of one of these lengths, of one length that was kept last; nil if none.
function KeptTake(Heap: PHeap; Lengths: UInt64): PSpan;
var
  Length: NativeUInt;
begin
  Result := nil;
  if RunsEnter(Heap, Heap) and (Heap^.KeptCounts.All and Lengths <> 0) then
  begin
    Length := ShortestOf(Heap^.KeptCounts.All and Lengths);
    Result := LastTake(Heap, Length);
    Dec(Heap^.KeptSlices, Length);
  end;
  RunsLeave(Heap);
  if Result <> nil then
    Result^.IsZero := False;
end;

function RunTake(Heap: PHeap; SliceCount: NativeUInt): PSpan;
begin
  Result := nil;
  if (SliceCount >= ShortestKept) and (SliceCount <= LongestKept) then
    Result := KeptTake(Heap, OneOfLength[SliceCount] * High(Byte));
end;

// Takes a run of about this length, of which at most half is unused; nil if none.
function KeptTakeAbout(Heap: PHeap; SliceCount: NativeUInt): PSpan;
begin
  LockRecover; // before a run is taken that a recovery would take for a lost one
  Result := KeptTake(Heap, ServingLengths[SliceCount]);
  if Result = nil then
    CountMissed(Heap, SliceCount);
end;

procedure LargeUseGetter(Heap: PHeap);
begin
  if Process.HasBarrier then
    Heap^.Getter := Heap;
end;

// Releases all runs. Under Runs.
procedure ReleaseRuns(Heap: PHeap);
var
  Length: Cardinal;
begin
  for Length := ShortestKept to LongestKept do
    while Heap^.KeptCounts.Each[Length] > 0 do
      ArenaRelease(LastTake(Heap, Length));
  Heap^.KeptSlices := 0;
  Heap^.MissedSlices := 0;
end;

// Releases runs that this thread has claimed. HasPassed: all threads passed a barrier since.
function ReleaseClaimed(Heap: PHeap; HasPassed: Boolean): Boolean;
begin
  Result := HasPassed and SectionEnds(Heap, nil);
  if Result then
  begin
    ReleaseRuns(Heap);
    LargeUseGetter(Heap);
  end;
  RunsDisclaim(Heap);
end;

procedure LargeReleaseOwn(Heap: PHeap);
begin
  LockRecover; // as in LargeReleaseKept
  if RunsEnter(Heap, Heap) then
    ReleaseRuns(Heap);
  RunsLeave(Heap);
  LargeUseGetter(Heap);
end;

function LargeReleaseKept(Heap: PHeap; Count: Cardinal): Boolean;
var
  Other: PHeap;
  Claimed: UInt64; // a bit for each heap
  Index: Cardinal;
  HasPassed: Boolean;
begin
  LockRecover; // before a run is in no place, and none of the spans in use
  Result := True;
  Claimed := 0;
  Other := Heap;
  Index := 0;
  while (Other <> nil) and (Index < Count) do
  begin
    if Other^.KeptSlices <> 0 then
      if Other = OsThreadHeap then
        LargeReleaseOwn(Other) // needs no barrier
      else if RunsClaim(Other) then
        Claimed := Claimed or UInt64(1) shl Index
      else
        Result := False;
    Other := Other^.NextHeap;
    Inc(Index);
  end;
  HasPassed := (Claimed <> 0) and OsBarrier;
  while Claimed <> 0 do
  begin
    if Odd(Claimed) then
      Result := ReleaseClaimed(Heap, HasPassed) and Result;
    Claimed := Claimed shr 1;
    Heap := Heap^.NextHeap;
  end;
end;

// ---------------------------------------------------------------------------- end of life

// LargeEndLife for the getter's thread.
function EndByGetter(Heap: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
begin
  RunsEnter(Heap, Span);
  Result := RemoteEndOwnLife(Span, Word);
  RunsLeave(Heap);
end;

// LargeEndLife for another thread than that of Getter, whose next blocks have no getter then: a
// barrier for each free would cost more than the atomic operations.
function EndByOther(Getter: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
begin
  Result := RemoteMark(Span, Word);
  if not Result then
    Exit;
  Getter^.Getter := nil;
  OsBarrier;
  Result := SectionEnds(Getter, Span) and RemoteEndMarked(Span, Word);
end;

function LargeEndLife(Heap: PHeap; Span: PSpan; Word: TAtomicWord): Boolean;
var
  Getter: PHeap;
begin
  Getter := Span^.Getter;
  if Getter = nil then
    Result := RemoteTryEndLife(Span, Word)
  else if Getter = Heap then
    Result := EndByGetter(Heap, Span, Word)
  else
    Result := EndByOther(Getter, Span, Word);
end;

// ---------------------------------------------------------------------------- huge pages

// Large blocks get huge pages where such blocks are used densely. Process.LargeProbe is one without
// huge pages, whose density is measured when another block is taken, and when it is freed. Each
// dense one counts Process.LargeDensity up; one that is freed sparse clears it. From UseFrom on
// blocks that are not backed yet get huge pages, each of which counts up, too; at NextProbe one
// gets none in its first HugeSlices, and is the next probe.
const
  UseFrom = 3;
  AfterProbe = 8;
  NextProbe = 16;
  // Shorter blocks are not measured; of longer ones, so many of so many pages are.
  ShortestProbe = 4;
  MostMeasured = 8 * 1024 * 1024 div OsPageSize;
  PageSample = 64;
  // Looks until a probe gives way to another one: its thread may be about to fill it, or never do.
  MostLooks = 16;

// Returns true if a block is written densely, as far as it is measured.
function IsDense(Span: PSpan): Boolean;
var
  PageCount, Sample: NativeUInt;
begin
  PageCount := Span^.BlockSize div OsPageSize; // of another block by now, perhaps
  if PageCount > MostMeasured then
    PageCount := MostMeasured;
  Sample := PageSample;
  if Sample > PageCount then
    Sample := PageCount;
  Result := PagesAreDense(WrittenPages(Span^.Start, PageCount, Sample), Sample);
end;

procedure EndProbe;
begin
  Process.LargeProbe := nil;
  Process.LargeLooks := 0;
end;

// Counts a dense probe.
procedure CountDense;
begin
  EndProbe;
  if Process.LargeDensity < UseFrom then
    Inc(Process.LargeDensity);
end;

// Measures the probe before another block is taken.
procedure LookAtProbe(Span: PSpan);
begin
  Inc(Process.LargeLooks);
  if Span^.Kind <> skLarge then
    EndProbe
  else if IsDense(Span) then
    CountDense
  else if Process.LargeLooks >= MostLooks then
  begin
    EndProbe;
    if Process.LargeDensity >= UseFrom then
      Process.LargeDensity := UseFrom - 1;
  end;
end;

// Measures the probe when it is freed.
procedure FreeProbe(Span: PSpan);
begin
  if IsDense(Span) then
    CountDense
  else
  begin
    EndProbe;
    Process.LargeDensity := 0;
  end;
end;

// Returns whether the next block, of SliceCount slices, is to have huge pages.
function WantsHugePages(SliceCount: NativeUInt): Boolean;
var
  Probe: PSpan;
  Density: NativeInt;
begin
  if (SliceCount < ShortestProbe) or (Process.HugeFrom = 0) then
    Exit(False);
  Probe := Process.LargeProbe;
  if Probe <> nil then
    LookAtProbe(Probe);
  Density := Process.LargeDensity;
  Result := (Density >= UseFrom) and ((Density < NextProbe)
    or (Process.LargeProbe = nil) and (SliceCount > HugeSlices));
end;

// Requests huge pages, or forbids them, in the whole ones of a span from slice Skipped on.
procedure AdviseHuge(Span: PSpan; Skipped: NativeUInt; IsWanted: Boolean);
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

// Makes a new block the probe, unless there is one.
procedure StartProbe(Span: PSpan);
begin
  if Process.LargeProbe <> nil then
    Exit;
  Process.LargeProbe := Span;
  if Process.LargeDensity >= NextProbe then
    Process.LargeDensity := AfterProbe;
end;

// Prepares the memory of a new block, unless it was backed already.
procedure ChooseHuge(Span: PSpan; IsWanted: Boolean);
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
    AdviseHuge(Span, Skipped, True);
end;

// ---------------------------------------------------------------------------- get and free

procedure LargeFormat(Span: PSpan; Size: NativeUInt; Getter: PHeap);
begin
  Span^.BlockSize := AlignUp(Size, OsPageSize);
  RemoteStartGivenUp(Span);
  Span^.Getter := Getter;
  Forget(Span);
  Span^.Used := 1;
  Span^.DivideMagic := 1;
  Span^.CarvedBytes := 1;
  // Release: the record before its kind. Pairs with VisitArena.
  ReleaseFence;
  Span^.Kind := skLarge;
end;

function LargeGetKept(Heap: PHeap; Size: NativeUInt): PSpan;
var
  SliceCount: NativeUInt;
begin
  Result := nil;
  SliceCount := NativeUInt(Size - 1) shr SliceShift + 1;
  if SliceCount <= LongestKept then
    Result := KeptTakeAbout(Heap, SliceCount);
  if Result <> nil then
    LargeFormat(Result, Size, Heap^.Getter);
end;

// Returns the slices that a block which had to move takes to grow into.
function SpareFor(Size: NativeUInt): NativeUInt;
begin
  if not Process.HasSpare then
    Result := 0
  else if FrontierIsScarce then
    Result := SlicesFor(Size) * (SavingGrowthFactor - 1)
  else
    Result := SlicesFor(Size) * (GrowthFactor - 1);
end;

function LargeGet(Size: NativeUInt): PSpan;
var
  IsHuge: Boolean;
begin
  if IsTooLarge(Size) then
    Exit(nil);
  IsHuge := WantsHugePages(SlicesFor(Size));
  Result := ArenaTake(SlicesFor(Size), IsHuge);
  if Result = nil then
    Exit;
  LargeFormat(Result, Size);
  ChooseHuge(Result, IsHuge);
end;

// The same with spare slices to grow into, if there is so much address space.
function LargeGetSpare(Size: NativeUInt): PSpan;
begin
  if (Size < SmallestSpare) or IsTooLarge(Size) then
    Exit(LargeGet(Size));
  Result := ArenaTakeSpare(SlicesFor(Size), SpareFor(Size));
  if Result = nil then
    Exit(LargeGet(Size));
  LargeFormat(Result, Size);
  ChooseHuge(Result, WantsHugePages(SlicesFor(Size)));
end;

// Keeps a run from use for ever that the system has unmapped: others may have mapped memory there.
// No pages are moved any more, which may lose the next run.
procedure Lose(Span: PSpan);
begin
  ArenaUnuseSpare(Span^.SliceCount - Span^.SpareCount);
  Span^.SpareCount := Span^.SliceCount;
  Span^.Kind := skReserve;
  FetchAdd(Process.MovedSpans, MostMoved);
end;

// Releases a run to the arena. A run that pages were moved to is first made one mapping with its
// surroundings again, and then reads as zeros.
procedure Release(Span: PSpan);
var
  IsZero: Boolean;
begin
  if Span^.IsHuge then
    AdviseHuge(Span, 0, False);
  IsZero := Span^.SpareCount = Span^.SliceCount;
  if Span^.IsMoved then
  begin
    OsErase(Span^.Start, (Span^.SliceCount - Span^.SpareCount) * SliceSize);
    if OsRenew(Span^.Start, Span^.SliceCount * SliceSize) then
      IsZero := True
    else if not OsIsMapped(Span^.Start) then
    begin
      Lose(Span);
      Exit;
    end;
  end;
  if IsZero then
    ArenaReleaseZero(Span)
  else
    ArenaRelease(Span);
end;

// Releases the run of a block that has ended, or that its pages have left.
procedure ReleaseWhole(Span: PSpan);
begin
  Span^.Kind := skReleased;
  if Span^.IsMoved then
    FetchAdd(Process.MovedSpans, NativeUInt(-1));
  Release(Span);
end;

procedure LargeRelease(Span: PSpan);
begin
  LockRecover; // before the span is none of those in use
  if Span = Process.LargeProbe then
    FreeProbe(Span);
  ReleaseWhole(Span);
end;

procedure LargeFree(Span: PSpan);
begin
  RemoteEndLife(Span);
  LargeRelease(Span);
end;

function LargeKeep(Heap: PHeap; Span: PSpan): Boolean;
begin
  if Span^.IsMoved or (Span^.SpareCount <> 0) then
    Exit(False);
  LockRecover; // as in LargeRelease
  Result := RunKeep(Heap, Span);
end;

function LargeRoom(Span: PSpan): NativeUInt;
begin
  Result := (Span^.SliceCount + ArenaRoom(Span)) * SliceSize;
end;

function LargeGrow(Span: PSpan; Size: NativeUInt): Boolean;
var
  Needed, Spare: NativeUInt;
begin
  if IsTooLarge(Size) then
    Exit(False);
  LockRecover; // before slices are counted that the record does not have yet
  Needed := SlicesFor(Size);
  Spare := Span^.SpareCount;
  if (Spare <> 0) and (Needed < Span^.SliceCount) then
    Dec(Spare, Span^.SliceCount - Needed);
  if not ArenaUseSpare(Span, Spare) then
    Exit(False);
  Result := (Needed <= Span^.SliceCount) or ArenaGrow(Span, Needed);
  if not Result then
  begin
    ArenaUnuseSpare(Spare);
    Exit;
  end;
  Dec(Span^.SpareCount, Spare);
  Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

// Splits a block behind SliceCount slices. The rest has small pages from now on, and so has a huge
// page that lies in both: the kernel's thread would back the rest again after a purge.
function SplitBlock(Span: PSpan; SliceCount: NativeUInt): PSpan;
var
  Skipped: NativeUInt;
begin
  Skipped := SliceCount;
  if SliceCount < HugeSlices then
    Skipped := 0
  else
    Dec(Skipped, HugeSlices - 1);
  if Span^.IsHuge then
  begin
    AdviseHuge(Span, Skipped, False);
    Span^.IsHuge := Skipped > 0;
  end;
  Result := ArenaSplit(Span, SliceCount);
  Result^.IsHuge := False;
end;

procedure LargeShrink(Span: PSpan; Size: NativeUInt);
begin
  LockRecover; // before the rest is none of the spans in use
  if SlicesFor(Size) < Span^.SliceCount then
    Release(SplitBlock(Span, SlicesFor(Size)));
  Span^.BlockSize := AlignUp(Size, OsPageSize);
end;

// Returns true if the pages of Source may be moved.
function CanMove(Source: PSpan): Boolean;
begin
  Result := OsMovesPages and (Source^.BlockSize >= SmallestMove)
    and (LoadAcquire(Process.MovedSpans) < MostMoved);
end;

procedure CountMoved(Span: PSpan);
begin
  if not Span^.IsMoved then
    FetchAdd(Process.MovedSpans, 1);
  Span^.IsMoved := True;
end;

// Copies what was moved back to Source, which is several mappings then, too.
procedure TakeBack(Source, Target: PSpan; Moved: NativeUInt);
begin
  CountMoved(Source);
  Move(Target^.Start^, Source^.Start^, Moved);
  if OsRenew(Target^.Start, Moved) then
    Exit;
  if not OsIsMapped(Target^.Start) then
    Lose(Target)
  else
    OsClear(Target^.Start, Moved);
end;

// Moves the pages of Source to the run Target, as many as it has room for: all but spare ones.
// Returns whether it did; else the contents are in Source, and Target reads as zeros or is lost.
function MovePages(Source, Target: PSpan): Boolean;
var
  Size, Moved: NativeUInt;
begin
  if Source^.IsHuge then
    AdviseHuge(Source, 0, False); // the fewer mappings, the fewer calls
  Size := Source^.SliceCount;
  if Size > Target^.SliceCount then
    Size := Target^.SliceCount;
  Size := Size * SliceSize;
  Moved := OsMove(Source^.Start, Target^.Start, Size);
  Result := Moved = Size;
  if Result then
    CountMoved(Target)
  else if not OsIsMapped(Target^.Start + Moved) then
    Lose(Target);
  if not Result and (Moved <> 0) then
    TakeBack(Source, Target, Moved);
end;

// Moves the block by its pages; nil, and nothing changed, where that cannot be done.
function MoveByPages(Span: PSpan; Size: NativeUInt): PSpan;
var
  Moving, Added: NativeUInt;
begin
  // The slices that move count as spare until then: memory is not needed twice.
  Moving := SlicesFor(Span^.BlockSize);
  Added := SlicesFor(Size) - Moving;
  Result := ArenaTakeSpare(Added, SpareFor(Size) + Moving);
  if Result = nil then
    Result := ArenaTakeSpare(Added, Moving);
  if Result = nil then
    Exit;
  LargeFormat(Result, Size);
  if OsUse(Result^.Start + Moving * SliceSize, Added * SliceSize) and MovePages(Span, Result) then
  begin
    Dec(Result^.SpareCount, Moving);
    Span^.SpareCount := Span^.SliceCount;
    RemoteEndLife(Span);
    ReleaseWhole(Span);
    // The system may charge for the old place: the next trim ends that.
    CompareAndSwap(Process.Refused, RefusedAndUncharged, RefusedOnce);
    Exit;
  end;
  if Result^.Kind = skLarge then
    ArenaReleaseZero(Result);
  Result := nil;
end;

function LargeMove(Span: PSpan; Size: NativeUInt; out Copied: NativeUInt): PSpan;
begin
  Copied := 0;
  if IsTooLarge(Size) then
    Exit(nil);
  Result := nil;
  if CanMove(Span) then
    Result := MoveByPages(Span, Size);
  if Result <> nil then
    Exit;
  Result := LargeGetSpare(Size);
  if Result = nil then
    Exit;
  Copied := Span^.BlockSize;
  Move(Span^.Start^, Result^.Start^, Copied);
  LargeFree(Span);
end;

end.
