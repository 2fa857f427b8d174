/// Samples allocations by bytes: which blocks are sampled, and where they lie.
//
// Owns:       Observe.Samples, SampleLock; THeap.SampleIn, SampleSeed.
// Invariants: the distances between samples are exponential, SamplesMean bytes on average when
//             they begin. So a block of Size bytes is sampled with the probability
//             1 - exp(-Size / mean), of the distance that ends in it, and stands for the
//             reciprocal: sums have no bias, whatever the means were, for each is known before
//             its distance begins.
//             A sampled block of a size class lies in a span that the heap Samples owns. No thread
//             has that heap, so each such block is freed as a remote block, and FreeMem needs no
//             test of its own. These spans are always current: no thread abandons them, and
//             SamplerSweep alone releases them.
//             Full ones wait in Samples.Queues, new ones first on Samples.Taken, linked through
//             Next. No system call is made under SampleLock.
// Callers:    any thread; SamplerRecover: the one thread of a child process.
// Progress:   A thread that finds SampleLock taken counts its block as allocated and freed at once.
// Source:     gperftools and tcmalloc, sampled heap profiles.
unit LaneMM.Sampler;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Creates the table and the heap; returns whether both exist.
function SamplerStart: Boolean;
/// Returns whether allocations are sampled. For callers that no installed entry has called: the
/// settings are read before the tables exist.
function SamplerIsOn: Boolean;
/// Sets the distance to the next sample of a thread: Mean bytes on average.
procedure SampleDistance(Heap: PHeap; Mean: Double);
/// Allocates a block and samples it. Set as Hooks.SampledGet, for threads that have a heap.
function SamplerGet(Size: TSize): Pointer;
/// SamplerGet of Size bytes that takes a block of Request bytes, AlignedRequest of them.
function SamplerGetAligned(Size, Request: NativeUInt): Pointer;
/// BlockGetZero with sampling.
function SamplerGetZero(Size: TSize): Pointer;
/// BlockRealloc, or EraseRealloc where freed blocks are erased, with sampling of blocks that grow
/// or move.
function SamplerRealloc(var P: Pointer; Size: TSize): Pointer;
/// Counts Size bytes for the block P, which may be nil, and samples it in place when its turn has
/// come: a debug block, on whose free SamplesRemove must be called, or a large block. The free of
/// any other would not be noticed: it counts as freed at once.
procedure SamplerSee(P: Pointer; Size: NativeUInt);
/// Releases the spans of samples without a block in use, as a sweep does those of heaps. Set as
/// Hooks.Sweep.
procedure SamplerSweep;
/// In a child process: clears all samples, and the lists of their spans if the copy may be torn.
procedure SamplerRecover(IsTorn: Boolean);

implementation

uses
  LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.RemoteList,
  LaneMM.Arena, LaneMM.Shards, LaneMM.Span, LaneMM.HeapRecords, LaneMM.Heap, LaneMM.Walk,
  LaneMM.Blocks, LaneMM.Allocate, LaneMM.Resize, LaneMM.SettingsState, LaneMM.Unwind,
  LaneMM.ObserveState, LaneMM.CallSites, LaneMM.Samples, LaneMM.Erase;

// ---------------------------------------------------------------------------- chance

// Returns a random number between 0 and 1, both excluded.
function Random01(Heap: PHeap): Double;
const
  Scale = 1 / 4294967296.0;
  // Of a full period, for words of 64 and of 32 bits; the low bits of 64 are the less random ones.
  Is64 = Ord(SizeOf(NativeUInt) = 8);
  SecondShift = 17 - 10 * Is64;
  ThirdShift = 5 + 12 * Is64;
  LowBits = 8 * Is64;
begin
  if Heap^.SampleSeed = 0 then
    Heap^.SampleSeed := OsRandom;
  // Xorshift: Marsaglia, "Xorshift RNGs", J. Statistical Software 8 (2003).
  Heap^.SampleSeed := Heap^.SampleSeed xor (Heap^.SampleSeed shl 13);
  Heap^.SampleSeed := Heap^.SampleSeed xor (Heap^.SampleSeed shr SecondShift);
  Heap^.SampleSeed := Heap^.SampleSeed xor (Heap^.SampleSeed shl ThirdShift);
  Result := (Cardinal(Heap^.SampleSeed shr LowBits) + 0.5) * Scale;
end;

procedure SampleDistance(Heap: PHeap; Mean: Double);
const
  Furthest = High(NativeInt) div 2; // Trunc of more bytes than a word holds raises an exception
var
  Distance: Double;
begin
  Distance := -Ln(Random01(Heap)) * Mean;
  if Distance > Furthest then
    Distance := Furthest;
  Heap^.SampleIn := Trunc(Distance);
end;

// Returns whether an allocation of Size bytes, for which SampleIn has become negative, is to be
// sampled; sets SampleIn, to the distance to the next sample if so. Mean receives the average of
// the distance that ends.
function IsDue(Heap: PHeap; Size: NativeUInt; out Mean: NativeUInt): Boolean;
var
  IsFirst: Boolean;
  Next: NativeUInt;
begin
  AcquireFence; // see SetEntries of LaneMM.Watch
  if Heap^.Region <> nil then // with 32 bits, a scope may allocate as much as RegionEnter allows
  begin
    Heap^.SampleIn := High(Heap^.SampleIn);
    Exit(False);
  end;
  if WindowPasses(Heap, Size) then
    Exit(False);
  IsFirst := Heap^.SampleSeed = 0;
  Next := SamplesMean;
  Mean := WindowSwapMean(Heap, Next);
  if IsFirst then
    Mean := Next;
  SampleDistance(Heap, Next);
  Result := not IsFirst or (Heap^.SampleIn < NativeInt(Size));
  if not Result then
    Dec(Heap^.SampleIn, Size); // the first call of a thread only starts the count
end;

// Rounds Value up or down at random, so that sums are right on average.
function RoundByChance(Heap: PHeap; Value: Double): NativeUInt;
begin
  Result := Trunc(Value + Random01(Heap));
end;

// Samples the block P of Size bytes, for which IsDue has returned True and Mean. Nil: a block whose
// free will not be noticed.
procedure Count(Heap: PHeap; P: Pointer; Size, Mean: NativeUInt);
var
  Stack: TBacktrace;
  Sample: TSample;
  Share: Double;
begin
  Sample := Default(TSample);
  BacktraceTake(Stack);
  Sample.Site := SiteFind(siAllocation, NoSizeClass, Stack);
  if Sample.Site = nil then
  begin
    FetchAdd(Observe.SamplesLost, 1);
    Exit;
  end;
  Share := 1 - Exp(-Size / Mean);
  Sample.Count := RoundByChance(Heap, 1 / Share);
  Sample.Bytes := RoundByChance(Heap, Size / Share);
  Sample.Size := Size;
  Sample.UsableSize := Size;
  if P <> nil then
    Sample.UsableSize := BlockUsableSize(P);
  Sample.Heap := Heap;
  Sample.Number := WindowNumber(Heap);
  if Sample.UsableSize <= MaxClassSize then // the span that now serves the thread's blocks alike
    Sample.Like := Heap^.Current[ClassOf(Sample.UsableSize)];
  if Sample.Like = @Process.EmptySpan then
    Sample.Like := nil;
  WindowOpen(Heap);
  SamplesAdd(P, Sample);
end;

// ---------------------------------------------------------------------------- blocks

// Makes another span of samples; false without memory. Without the lock, for it may take system
// calls: the span waits on Taken for the next thread that has the lock.
function AddSpan(SizeClass: Cardinal): Boolean;
var
  Span: PSpan;
begin
  Span := HeapNewSpan(Observe.Samples, SizeClass);
  Result := Span <> nil;
  if not Result then
    Exit;
  Span^.IsCurrent := True;
  Span^.Bias := 1;
  Inc(Span^.Used);
  HeapTakeOver(Observe.Samples, Span);
end;

procedure QueueAdd(Span: PSpan);
begin
  Span^.Next := Observe.Samples^.Queues[Span^.SizeClass];
  Observe.Samples^.Queues[Span^.SizeClass] := Span;
end;

// Queues the spans that were added.
procedure QueueTaken;
var
  Span, Next: PSpan;
begin
  if LoadAcquire(Observe.Samples^.Taken) = 0 then
    Exit;
  // Acquire: see the links. Pairs with HeapTakeOver.
  Span := PSpan(Swap(Observe.Samples^.Taken, 0));
  while Span <> nil do
  begin
    Next := Span^.Next;
    QueueAdd(Span);
    Span := Next;
  end;
end;

// Takes a span that is new or had a block freed since it was full out of the list of those; returns
// nil when there is none.
function TakeRefilled(SizeClass: Cardinal): PSpan;
var
  Link: ^PSpan;
begin
  Link := @Observe.Samples^.Queues[SizeClass];
  Result := Link^;
  while Result <> nil do
  begin
    if ((RemoteCount(Result) > 0) or (Result^.CarvedBytes = 0)) and SpanRefill(Result) then
    begin
      Link^ := Result^.Next;
      Exit;
    end;
    Link := @Result^.Next;
    Result := Link^;
  end;
end;

// Releases the spans without a block in use of a class out of the list. Under SampleLock.
procedure SweepClass(SizeClass: Cardinal);
var
  Link: ^PSpan;
  Span: PSpan;
begin
  Link := @Observe.Samples^.Queues[SizeClass];
  while Link^ <> nil do
  begin
    Span := Link^;
    if (SpanUsedCount(Span) = 0) and (SpanUncountedBlock(Span) = nil)
      and EndLife(Observe.Samples, Span) then
    begin
      Link^ := Span^.Next;
      Dec(Span^.Used, Span^.Bias);
      Span^.Bias := 0;
      Span^.IsCurrent := False;
      ShardsRelease(Span);
    end
    else
      Link := @Span^.Next;
  end;
end;

procedure SamplerSweep;
var
  SizeClass: Cardinal;
  Span: PSpan;
begin
  if not LockTry(Observe.SampleLock) then
    Exit;
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Span := Observe.Samples^.Current[SizeClass];
    if (Span <> @Process.EmptySpan) and (SpanUsedCount(Span) = 0) then
    begin
      Observe.Samples^.Current[SizeClass] := @Process.EmptySpan;
      QueueAdd(Span);
    end;
    SweepClass(SizeClass);
  end;
  LockLeave(Observe.SampleLock);
end;

// Allocates a block of the class from Span, one of the spans of samples. Nil when there is none
// with a free block, and Span is nil; or when a link of Span was overwritten. Under SampleLock.
function TakeBlock(SizeClass: Cardinal; out Span: PSpan): Pointer;
begin
  Span := Observe.Samples^.Current[SizeClass];
  if Odd(Span^.FreeList) and ((Span = @Process.EmptySpan) or not SpanRefill(Span)) then
  begin
    if Span <> @Process.EmptySpan then
      QueueAdd(Span);
    Observe.Samples^.Current[SizeClass] := @Process.EmptySpan;
    QueueTaken;
    Span := TakeRefilled(SizeClass);
    if Span = nil then
      Exit(nil);
    Observe.Samples^.Current[SizeClass] := Span;
  end;
  Result := SpanTake(Span);
end;

// Allocates a block whose free is noticed, of at most MaxClassSize bytes; nil when there is none
// now.
function BlockForSample(Size: NativeUInt): Pointer;
var
  Span: PSpan;
  Block: PBlock;
  IsCorrupt: Boolean;
begin
  Result := nil;
  Block := nil;
  if not LockTry(Observe.SampleLock) then
    Exit;
  Result := TakeBlock(ClassOf(Size), Span);
  if Span = nil then
  begin
    LockLeave(Observe.SampleLock);
    if not AddSpan(ClassOf(Size)) or not LockTryAgain(Observe.SampleLock) then
      Exit;
    Result := TakeBlock(ClassOf(Size), Span);
  end;
  IsCorrupt := (Result = nil) and (Span <> nil) and not Odd(Span^.FreeList);
  if IsCorrupt then
    Block := SpanDropList(Span);
  LockLeave(Observe.SampleLock);
  if IsCorrupt then
    SpanReport(coLink, Span, Block);
  SpanReportFound(Observe.Samples);
end;

// Samples P, a large block, whose free is noticed, or nil; returns it.
function SampledLarge(Heap: PHeap; P: Pointer; Size, Mean: NativeUInt): Pointer;
begin
  Result := P;
  if P <> nil then
    Count(Heap, P, Size, Mean);
end;

// Counts Size bytes of the thread, whose heap may be nil; returns whether an allocation of them is
// to be sampled.
function IsTurn(Heap: PHeap; Size: NativeUInt; out Mean: NativeUInt): Boolean; inline;
begin
  Result := Heap <> nil;
  if not Result then
    Exit;
  Dec(Heap^.SampleIn, Size);
  Result := (Heap^.SampleIn < 0) and IsDue(Heap, Size, Mean);
end;

// Allocates Request bytes, of which Size are requested and counted, and samples them.
function Sampled(Heap: PHeap; Size, Request, Mean: NativeUInt): Pointer;
var
  Block: Pointer;
begin
  if Request > MaxClassSize then
    Exit(SampledLarge(Heap, BlockGet(Request), Size, Mean));
  Block := BlockForSample(Request);
  Result := Block;
  if Result = nil then
    Result := BlockGet(Request);
  if Result <> nil then
    Count(Heap, Block, Size, Mean);
end;

function SamplerGet(Size: TSize): Pointer;
var
  Mean: NativeUInt;
begin
  if IsDue(OsThreadHeap, Size, Mean) then
    Result := Sampled(OsThreadHeap, Size, Size, Mean)
  else
    Result := BlockGet(Size);
end;

function SamplerGetAligned(Size, Request: NativeUInt): Pointer;
var
  Mean: NativeUInt;
begin
  if IsTurn(OsThreadHeap, Size, Mean) then
    Result := Sampled(OsThreadHeap, Size, Request, Mean)
  else
    Result := BlockGet(Request);
end;

procedure SamplerSee(P: Pointer; Size: NativeUInt);
var
  Span: PSpan;
  Mean: NativeUInt;
begin
  if (P = nil) or not IsTurn(OsThreadHeap, Size, Mean) then
    Exit;
  Span := BlockSpan(P);
  if (Span <> nil) and (Span^.Kind = skBlocks) then
    P := nil;
  Count(OsThreadHeap, P, Size, Mean);
end;

function SamplerGetZero(Size: TSize): Pointer;
var
  Mean: NativeUInt;
begin
  if not IsTurn(OsThreadHeap, Size, Mean) then
    Exit(BlockGetZero(Size));
  if Size > MaxClassSize then // its pages may never have been touched
    Exit(SampledLarge(OsThreadHeap, BlockGetZero(Size), Size, Mean));
  Result := Sampled(OsThreadHeap, Size, Size, Mean);
  if Result <> nil then
    FillChar(Result^, BlockUsableSize(Result), 0);
end;

// Samples the block P, which has grown to Size bytes: a large block in place, which it may be with
// the bytes to grow into, any other by moving it to a span of samples.
procedure SampleGrown(var P: Pointer; Size: NativeUInt);
var
  Target: Pointer;
  Usable, Mean: NativeUInt;
begin
  if not IsTurn(OsThreadHeap, Size, Mean) or (RegionOfBlock(P) <> nil) then
    Exit;
  Target := P;
  Usable := BlockUsableSize(P);
  if Usable <= MaxClassSize then
    Target := BlockForSample(Usable);
  if (Target <> nil) and (Target <> P) then
  begin
    Move(P^, Target^, Size);
    EraseFree(P); // BlockFree, unless freed blocks are erased
    P := Target;
  end;
  Count(OsThreadHeap, Target, Size, Mean);
end;

function SamplerRealloc(var P: Pointer; Size: TSize): Pointer;
var
  Before: Pointer;
  Span: PSpan;
  IsGrowing: Boolean;
begin
  if P = nil then
  begin
    if Size <> 0 then
      P := CountedBlockGet(Size);
    Exit(P);
  end;
  Before := P;
  Span := ArenaSpan(P);
  IsGrowing := (Size > MaxClassSize)
    and ((Span = nil) or (Span^.Kind <> skLarge) or (Size > Span^.BlockSize));
  if IsGrowing then
    SamplesRemove(P); // a large block grows in place or moves its pages, without a free
  if IsErasingFreed then
    Result := EraseRealloc(P, Size)
  else
    Result := BlockRealloc(P, Size);
  if (Result = nil) or (Result = Before) and not IsGrowing then
    Exit;
  SampleGrown(P, Size);
  Result := P;
end;

// ---------------------------------------------------------------------------- start

procedure SamplerRecover(IsTorn: Boolean);
begin
  if IsTorn and (Observe.Samples <> nil) then
  begin
    // The old spans of samples stay as they are, also one that a lost thread was adding: its record
    // may be that of an earlier moment. Allocations take new ones from now on.
    HeapReset(Observe.Samples);
    HeapFormat(Observe.Samples);
    LockReset(Observe.SampleLock);
  end;
  SamplesForget;
end;

function SamplerIsOn: Boolean;
begin
  // The tables come before the heap; IsDue has the fence.
  Result := IsSampling and (Observe.Samples <> nil);
end;

function SamplerStart: Boolean;
var
  Heap: PHeap;
begin
  if Observe.Samples <> nil then
    Exit(True);
  if not SamplesStart then
    Exit(False);
  Heap := OsTakePages(SizeOf(THeap));
  Result := Heap <> nil;
  if not Result then
    Exit;
  HeapFormat(Heap);
  ReleaseFence; // the tables and the heap before its address. Pairs with IsDue, see SamplerIsOn
  Observe.Samples := Heap;
end;

end.
