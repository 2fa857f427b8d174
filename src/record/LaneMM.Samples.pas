/// The samples in use, and the sums that all reports are made of: by call site and by size. Numbers
/// the allocations of a thread near its samples: so it shows how many came before a free.
//
// Owns:       Observe.SampleTable, SamplesLost, InUseCount, InUseBytes, AllocatedBytes, PeakTotal,
//             PeakMs, Sizes, Windows; of each site of allocations all counts; THeap.SampleIn while
//             a window is open.
// Invariants: a block is in the table from before its allocation returns until its free begins.
// Windows:    a window is open for the temporary=N setting's N allocations after a sample and one
//             more: each of them enters the sampler, which numbers it. Then THeap.SampleIn has
//             what is left of the distance to the next sample, and allocations are not numbered.
//             So the numbers of two samples, and of a sample and a free, differ by the allocations
//             between them, or by more than N, as these are.
//             An entry of the table belongs to a heap permanently; the thread that has the heap is
//             the only one that changes the rest of the entry.
// The peak:   PeakTotal, the highest InUseBytes, names the peak: it only grows. When it changes,
//             the peak of each site is what it has in use. Before that changes for the first time
//             afterwards, the site keeps its counts and PeakTotal. So a new peak costs one step,
//             whatever the number of sites.
//             No lock: a thread that is adding or removing a sample at the moment of a peak may be
//             counted before or after it. The sums are off by one sample of each such thread.
// Callers:    SamplesStart: under no lock. SamplesForget: the one thread of a child process. Those
//             of windows: the thread of Heap. The others: any thread.
// Progress:   a sample ends wait-free but for the classes of LaneMM.SampledClasses, which are
//             lock-free, as is the peak: a thread repeats its step only if another has raised it.
unit LaneMM.Samples;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.CallSites, LaneMM.ObserveState;

const
  /// See SamplesMean: the sums of a program have a standard error of 1 / sqrt(2 * MeanShare), 2 %.
  MeanShare = 1024;

type
  /// Visits a sample. Context is the caller's.
  TSampleVisitor = procedure(const Sample: TSample; Context: Pointer);

/// Creates the table; returns whether it exists.
function SamplesStart: Boolean;
/// Adds Sample of block P, with all but Block and BornMs, to the table and to all sums. Nil: one
/// whose free will not be noticed; it counts as freed at once, as with a full table.
procedure SamplesAdd(P: Pointer; var Sample: TSample);
/// Removes the block P, which is being freed and not yet changed, if it is in the table; adds it to
/// the sums of freed blocks.
procedure SamplesRemove(P: Pointer);
/// Calls Visitor for a copy of each sample in the table. Exact while no other thread samples.
procedure SamplesVisit(Visitor: TSampleVisitor; Context: Pointer);
/// In a child process: removes all samples and clears the sums.
procedure SamplesForget;
/// Returns the mean bytes to the next sample: without the setting `rate` 1 at the start, then a
/// MeanShare of what was allocated, up to the rate.
function SamplesMean: NativeUInt;
/// Returns the largest size at an index of Observe.Sizes.
function SizeLimitAt(Index: Cardinal): NativeUInt;
/// Returns the blocks of a site that were in use at the peak, and their bytes.
procedure SitePeak(Site: PSite; out Count, Bytes: NativeUInt);

/// Numbers an allocation of Size bytes, for which SampleIn has become negative. Returns True if it
/// is one in a window, and not to be sampled; SampleIn is set then.
function WindowPasses(Heap: PHeap; Size: NativeUInt): Boolean;
/// Opens a window at a sample that was numbered by WindowPasses; SampleIn is the distance to the
/// next one.
procedure WindowOpen(Heap: PHeap);
/// Sets the mean of the distance that begins; returns that of the one before, Next if it is unknown
/// or the table is full.
function WindowSwapMean(Heap: PHeap; Next: NativeUInt): NativeUInt;
/// Returns the number of the last allocation that was numbered; 0 when the table is full.
function WindowNumber(Heap: PHeap): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.SizeClasses, LaneMM.SettingsState,
  LaneMM.SampledClasses, LaneMM.TimeLine, LaneMM.TimedReports;

const
  TableBytes = SampleLimit * SizeOf(TSample);
  MostProbes = 64;
  // Block of an entry that a thread is writing.
  Busy = 1;
  WindowCount = 4096;

type
  TWindow = record
    Heap: TAtomicWord;    //< shared  the heap of the thread; 0: unused
    Number: NativeUInt;   //< owner   of the last allocation that was numbered
    Left: NativeUInt;     //< owner   allocations to number; 0: the window is closed
    Distance: NativeInt;  //< owner   while it is open, bytes to the next sample
    Mean: NativeUInt;     //< owner   average of the distance to it when that began; 0: none yet
  end;
  PWindow = ^TWindow;

// ---------------------------------------------------------------------------- sizes

// Returns the index in Observe.Sizes of a requested size.
function SizeIndexOf(Size: NativeUInt): Cardinal;
begin
  if Size <= MaxClassSize then
    Result := SizeToClass(Size)
  else
    Result := SizeClassCount + FloorLog2(Size - 1) - FloorLog2(MaxClassSize);
end;

function SizeLimitAt(Index: Cardinal): NativeUInt;
begin
  if Index < SizeClassCount then
    Result := ClassToSize(Index)
  else
    Result := NativeUInt(MaxClassSize) shl (Index - SizeClassCount + 1);
end;

// ---------------------------------------------------------------------------- the peak

// Keeps the counts of a site, before they change, if they are those of the last peak. The claim
// comes first: of two threads one keeps them.
procedure PeakKeep(Site: PSite);
var
  Peak, Kept: NativeUInt;
begin
  // Acquire: pairs with PeakRaise. An older one is no peak any more.
  Peak := LoadAcquire(Observe.PeakTotal);
  Kept := LoadAcquire(Site^.KeptPeak);
  if (Kept = Peak) or not CompareAndSwap(Site^.KeptPeak, Kept, Peak) then
    Exit;
  StoreRelease(Site^.PeakCount, Remaining(Site^.Count, Site^.FreedCount));
  StoreRelease(Site^.PeakBytes, Remaining(Site^.Bytes, Site^.FreedBytes));
end;

procedure SitePeak(Site: PSite; out Count, Bytes: NativeUInt);
begin
  if LoadAcquire(Site^.KeptPeak) = LoadAcquire(Observe.PeakTotal) then
  begin
    Count := LoadAcquire(Site^.PeakCount);
    Bytes := LoadAcquire(Site^.PeakBytes);
    Exit;
  end;
  Count := Remaining(Site^.Count, Site^.FreedCount);
  Bytes := Remaining(Site^.Bytes, Site^.FreedBytes);
end;

// Begins a new peak if Total, the bytes in use, is more than ever.
procedure PeakRaise(Total: NativeUInt);
var
  Highest: NativeUInt;
begin
  repeat
    Highest := LoadAcquire(Observe.PeakTotal);
    if Total <= Highest then
      Exit;
    // Release: the sums of the site before the peak. Pairs with PeakKeep. No ABA: it only grows.
  until CompareAndSwap(Observe.PeakTotal, Highest, Total);
  StoreRelease(Observe.PeakMs, RunMs);
end;

// ---------------------------------------------------------------------------- windows

// Returns the entry of the heap, a new one if needed; nil when the table is full.
function WindowOf(Heap: PHeap): PWindow;
var
  Index, Probe: NativeUInt;
begin
  Index := NativeUInt(Heap) div SizeOf(THeap) * SpreadFactor shr 16;
  for Probe := 0 to WindowCount - 1 do
  begin
    Result := PWindow(LoadAcquire(Observe.Windows)) + (Index + Probe) mod WindowCount;
    if (LoadAcquire(Result^.Heap) = 0) and CompareAndSwap(Result^.Heap, 0, NativeUInt(Heap))
      or (LoadAcquire(Result^.Heap) = NativeUInt(Heap)) then
      Exit;
  end;
  Result := nil;
end;

function WindowPasses(Heap: PHeap; Size: NativeUInt): Boolean;
var
  Window: PWindow;
begin
  Window := WindowOf(Heap);
  if Window = nil then
    Exit(False);
  Inc(Window^.Number);
  if Window^.Left = 0 then
    Exit(False);
  Dec(Window^.Left);
  Dec(Window^.Distance, Size);
  Result := Window^.Distance >= 0;
  if not Result then
    Window^.Left := 0
  else if Window^.Left = 0 then
    Heap^.SampleIn := Window^.Distance
  else
    Heap^.SampleIn := -1;
end;

procedure WindowOpen(Heap: PHeap);
var
  Window: PWindow;
begin
  Window := WindowOf(Heap);
  if Window = nil then
    Exit;
  Window^.Left := Settings.Values[opTemporary] + 1;
  Window^.Distance := Heap^.SampleIn;
  Heap^.SampleIn := -1;
end;

function WindowSwapMean(Heap: PHeap; Next: NativeUInt): NativeUInt;
var
  Window: PWindow;
begin
  Result := 0;
  Window := WindowOf(Heap);
  if Window <> nil then
  begin
    Result := Window^.Mean;
    Window^.Mean := Next;
  end;
  if Result = 0 then
    Result := Next;
end;

function WindowNumber(Heap: PHeap): NativeUInt;
var
  Window: PWindow;
begin
  Window := WindowOf(Heap);
  if Window = nil then
    Exit(0);
  Result := Window^.Number;
end;

// ---------------------------------------------------------------------------- sums

function SlackOf(const Sample: TSample): NativeUInt;
begin
  Result := NativeUInt(Sample.UsableSize - Sample.Size) * Sample.Count;
end;

// Returns whether the calling thread has allocated the block, and few others since.
function IsTemporary(const Sample: TSample): Boolean;
begin
  Result := (Sample.Number <> 0) and (Sample.Heap = OsThreadHeap)
    and (NativeUInt(WindowNumber(Sample.Heap) - Sample.Number) <= Settings.Values[opTemporary]);
end;

// Takes the blocks out of those in use.
procedure EndUse(const Sample: TSample);
var
  Sizes: PSizeCounts;
begin
  // For a thread that has added to InUseBytes and was stopped before it could: the sites have what
  // they had at that peak until this thread goes on.
  PeakRaise(LoadAcquire(Observe.InUseBytes));
  PeakKeep(Sample.Site);
  FetchAdd(Sample.Site^.FreedCount, Sample.Count);
  FetchAdd(Sample.Site^.FreedBytes, Sample.Bytes);
  FetchAdd(Sample.Site^.FreedSlack, SlackOf(Sample));
  FetchAdd(Sample.Site^.FreedSamples, 1);
  Sizes := @Observe.Sizes[SizeIndexOf(Sample.Size)];
  FetchAdd(Sizes^.FreedCount, Sample.Count);
  FetchAdd(Sizes^.FreedBytes, Sample.Bytes);
  FetchAdd(Observe.InUseCount, NativeUInt(-NativeInt(Sample.Count)));
  FetchAdd(Observe.InUseBytes, NativeUInt(-NativeInt(Sample.Bytes)));
end;

procedure AddFree(P: Pointer; const Sample: TSample);
var
  LifeMs, Index: Cardinal;
begin
  EndUse(Sample);
  LifeMs := OsNowMs - Sample.BornMs;
  Index := 0;
  while (Index <= High(LifeLimits)) and (LifeMs >= LifeLimits[Index]) do
    Inc(Index);
  FetchAdd(Sample.Site^.LifeMs, LifeMs * Sample.Count);
  FetchAdd(Sample.Site^.Lives[Index], Sample.Count);
  if IsTemporary(Sample) then
  begin
    FetchAdd(Sample.Site^.TemporaryCount, Sample.Count);
    FetchAdd(Sample.Site^.TemporaryBytes, Sample.Bytes);
  end;
  ClassesAddFreed(P, Sample);
end;

function SamplesMean: NativeUInt;
begin
  Result := Settings.Values[opRate];
  if not (opRate in Settings.Given) then
  begin
    if LoadAcquire(Observe.AllocatedBytes) div MeanShare > LoadAcquire(Observe.SampleMean) then
      StoreRelease(Observe.SampleMean, LoadAcquire(Observe.AllocatedBytes) div MeanShare);
    if LoadAcquire(Observe.SampleMean) < Result then
      Result := LoadAcquire(Observe.SampleMean);
  end;
  if Result = 0 then
    Result := 1;
end;

// ---------------------------------------------------------------------------- the table

function EntryAt(Index: NativeUInt): PSample; inline;
begin
  Result := PSample(LoadAcquire(Observe.SampleTable)) + Index mod SampleLimit;
end;

function FirstIndex(P: Pointer): NativeUInt; inline;
begin
  Result := NativeUInt(P) shr 4 xor NativeUInt(P) shr 20;
end;

// Returns whether the table has space for the sample near its place.
function Remember(P: Pointer; const Sample: TSample): Boolean;
var
  Entry: PSample;
  Probe: Cardinal;
begin
  for Probe := 0 to MostProbes - 1 do
  begin
    Entry := EntryAt(FirstIndex(P) + Probe);
    if (LoadAcquire(Entry^.Block) = 0) and CompareAndSwap(Entry^.Block, 0, Busy) then
    begin
      Move(Sample.Site, Entry^.Site, SizeOf(TSample) - SizeOf(TAtomicWord));
      // Release: the fields before the block. Pairs with SamplesRemove.
      StoreRelease(Entry^.Block, NativeUInt(P));
      Exit(True);
    end;
  end;
  Result := False;
end;

procedure SamplesAdd(P: Pointer; var Sample: TSample);
var
  Sizes: PSizeCounts;
begin
  Sample.BornMs := OsNowMs;
  PeakKeep(Sample.Site);
  SiteAddEvents(Sample.Site, Sample.Count);
  FetchAdd(Sample.Site^.Bytes, Sample.Bytes);
  FetchAdd(Sample.Site^.Slack, SlackOf(Sample));
  FetchAdd(Sample.Site^.Samples, 1);
  FetchAdd(Observe.AllocatedBytes, Sample.Bytes);
  Sizes := @Observe.Sizes[SizeIndexOf(Sample.Size)];
  FetchAdd(Sizes^.Count, Sample.Count);
  FetchAdd(Sizes^.Bytes, Sample.Bytes);
  FetchAdd(Observe.InUseCount, Sample.Count);
  PeakRaise(FetchAdd(Observe.InUseBytes, Sample.Bytes) + Sample.Bytes);
  if (P = nil) or not Remember(P, Sample) then
  begin
    FetchAdd(Observe.SamplesLost, 1);
    EndUse(Sample); // its free will not be noticed
  end;
  TimeLineTick;
  TimedReportsSeen;
end;

procedure SamplesRemove(P: Pointer);
var
  Entry: PSample;
  Probe: Cardinal;
begin
  AcquireFence; // the table after the hook. Pairs with WatchFrees of LaneMM.Watch
  for Probe := 0 to MostProbes - 1 do
  begin
    Entry := EntryAt(FirstIndex(P) + Probe);
    if LoadAcquire(Entry^.Block) = NativeUInt(P) then
    begin
      AddFree(P, Entry^);
      StoreRelease(Entry^.Block, 0);
      TimeLineTick;
      Exit;
    end;
  end;
end;

procedure SamplesVisit(Visitor: TSampleVisitor; Context: Pointer);
var
  Index: NativeUInt;
  Sample: TSample;
begin
  if LoadAcquire(Observe.SampleTable) = 0 then
    Exit;
  for Index := 0 to SampleLimit - 1 do
  begin
    if LoadAcquire(EntryAt(Index)^.Block) <= Busy then
      Continue;
    Sample := EntryAt(Index)^;
    AcquireFence; // the copy before the second look
    // A free and a new sample in between are taken for the block that was there before, if at all.
    if (Sample.Block > Busy) and (LoadAcquire(EntryAt(Index)^.Block) = Sample.Block) then
      Visitor(Sample, Context);
  end;
end;

// ---------------------------------------------------------------------------- start

procedure SamplesForget;
begin
  if Observe.SampleTable <> 0 then
    OsClear(Pointer(Observe.SampleTable), TableBytes);
  Observe.SamplesLost := 0;
  Observe.InUseCount := 0;
  Observe.InUseBytes := 0;
  Observe.AllocatedBytes := 0;
  Observe.SampleMean := 0;
  Observe.PeakTotal := 0;
  Observe.PeakMs := 0;
  FillChar(Observe.Sizes, SizeOf(Observe.Sizes), 0);
  TimeLineForget;
  ClassesForget;
end;

function SamplesStart: Boolean;
begin
  // All else before the table. Pairs with EntryAt.
  Result := (Observe.SampleTable <> 0)
    or OsTakeTable(Observe.Windows, WindowCount * SizeOf(TWindow)) // pairs with WindowOf
    and ClassesStart and TimeLineStart
    and OsTakeTable(Observe.SampleTable, TableBytes);
end;

end.
