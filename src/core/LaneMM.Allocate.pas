/// GetMem and AllocMem.
//
// Owns:       nothing.
// Invariants: the fast path touches only the thread's heap, the span's first cache line and the
//             block's first word: no lock, no atomic operation.
// Callers:    any thread, also before its first allocation and after its thread-end hooks.
// Errors:     no memory: run-time error 203 (EOutOfMemory), or nil with ReturnNilIfGrowHeapFails.
// Progress:   waits only in slow paths, for a lock.
// Source:     semantics: FPC rtl/inc/heap.inc.
unit LaneMM.Allocate;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks;

/// Allocates a block of at least Size bytes; Size 0 allocates a block, too.
function BlockGet(Size: TSize): Pointer;
/// Allocates like BlockGet, with all usable bytes zero.
function BlockGetZero(Size: TSize): Pointer;
/// Allocates like BlockGet and counts THeap.SampleIn down; Hooks.SampledGet allocates the block
/// that makes it negative.
function CountedBlockGet(Size: TSize): Pointer;
/// Returns the fastest form of CountedBlockGet available here.
function QuickCountedBlockGet: TSizeCall;
/// Allocates like BlockGet, but returns nil when there is no memory. Heap is the calling thread's,
/// or nil.
function BlockTryGet(Heap: PHeap; Size: NativeUInt): Pointer;
/// Releases the memory of a region that holds no block, as far as no other thread is in it. Heap is
/// the calling thread's, or nil.
procedure BlockTrimRegion(Heap, Region: PHeap);

{$ifdef LANEMM_ASM}
/// BlockGet in assembler, where the heap can be read with one instruction (Process.HasFastSlot).
function FastBlockGet(Size: TSize): Pointer;
{$ifdef LANEMM_ASM_LINUX}
/// FastBlockGet for a process with Process.HasFirstKeys.
function FirstKeyBlockGet(Size: TSize): Pointer;
{$endif}
/// BlockGet for a current span without a block, a thread without a heap, or a large size: the slow
/// path of the assembler routines, those of lib/ included.
function BlockGetSlow(Size: NativeUInt): Pointer;
{$endif}

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Arena, LaneMM.Span, LaneMM.KeptRuns,
  LaneMM.Large, LaneMM.Heap, LaneMM.RegionHeaps, LaneMM.Regions, LaneMM.Threads, LaneMM.Purge,
  LaneMM.Limits;

function LargeBlock(Size: NativeUInt): Pointer;
var
  Heap: PHeap;
  Span: PSpan;
begin
  Heap := ThreadHeap; // it keeps the run when the block is freed
  PurgeTick;
  Span := LargeGet(Size);
  if (Span <> nil) and (Heap <> nil) and (Heap^.Region <> nil)
    and not RegionHeapAdd(Heap, Span) then
  begin
    LargeFree(Span);
    Span := nil;
  end;
  Result := nil;
  if Span <> nil then
    Result := Span^.Start;
end;

// Allocates a large block from the runs that the heap keeps; nil if it has none.
function KeptBlock(Heap: PHeap; Size: NativeUInt): Pointer; inline;
var
  Span: PSpan;
begin
  Span := LargeGetKept(Heap, Size);
  if Span = nil then
    Exit(nil);
  if Process.PurgeThread = 0 then
    PurgeTick; // with a purge thread, memory that is kept needs no look
  Result := Span^.Start;
end;

function SmallBlock(SizeClass: Cardinal): Pointer;
var
  Heap: PHeap;
  Span: PSpan;
  IsNext: Boolean;
begin
  Heap := ThreadHeap;
  if Heap = nil then
  begin
    Result := HeapLateBlock(SizeClass);
    SpanReportFound(Process.Abandoned);
    PurgeTick;
    Exit;
  end;
  SizeClass := HeapServingClass(Heap, SizeClass);
  repeat
    Span := Heap^.Current[SizeClass];
    IsNext := (Span^.FreeList = EndOfList) and not SpanRefill(Span);
    if IsNext then
    begin
      ProcessSweep;
      Span := HeapNextSpan(Heap, SizeClass);
      if Span = nil then
        Exit(nil);
    end;
    Result := SpanTake(Span);
    if Result = nil then
      SpanReport(coLink, Span, SpanDropList(Span));
    SpanReportFound(Heap);
    if IsNext then
      PurgeTick; // after the take: under pressure it releases a current span without blocks
  until Result <> nil;
end;

function TryGetOnce(Size: NativeUInt): Pointer;
begin
  if Size > MaxClassSize then
    Result := LargeBlock(Size)
  else
    Result := SmallBlock(ClassOf(Size));
end;

procedure BlockTrimRegion(Heap, Region: PHeap);
begin
  if RegionOfHeap(Heap) = Region then
  begin
    HeapRetireEmpty(Heap);
    HeapSweepQueued(Heap);
  end;
  RegionTrim(Region);
end;

// Releases memory before a second try: that of the region whose limit refused the first, or of the
// process.
procedure TrimFor(Heap: PHeap);
begin
  if (RegionOfHeap(Heap) <> nil) and Heap^.Region^.Data.IsRefused then
    BlockTrimRegion(Heap, Heap^.Region)
  else
    ProcessTrim;
end;

// Allocates a block for a current span without one, a thread without a heap, or a large size. Nil
// without memory, after a second try with the memory that TrimFor released, unless none would do.
function TryGetSlow(Size: NativeUInt): Pointer;
begin
  Result := TryGetOnce(Size);
  if (Result = nil) and LargeIsPossible(Size) then
  begin
    TrimFor(OsThreadHeap);
    Result := TryGetOnce(Size);
  end;
  if (Result = nil) and (Size <= MaxSmallSize) and LastRunGive then
    Result := TryGetOnce(Size);
  if (LoadAcquire(Process.LastRun) <= LastRunGiven) and (Result <> nil) then
    LastRunTick(Size);
  if Process.HasLimits then
    LimitsTick;
end;

function BlockTryGet(Heap: PHeap; Size: NativeUInt): Pointer;
begin
  Result := nil;
  if (Heap <> nil) and (Size <= MaxClassSize) then
    Result := SpanTake(Heap^.Current[ClassOf(Size)])
  else if Heap <> nil then
    Result := KeptBlock(Heap, Size);
  if Result = nil then
    Result := TryGetSlow(Size);
end;

function BlockGet(Size: TSize): Pointer;
begin
  Result := BlockTryGet(OsThreadHeap, Size);
  if Result = nil then
    Result := LimitsRefuse(Size);
end;

function CountedBlockGet(Size: TSize): Pointer;
var
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if Heap <> nil then
  begin
    Dec(Heap^.SampleIn, Size);
    if Heap^.SampleIn < 0 then
      Exit(Hooks.SampledGet(Size));
  end;
  Result := BlockGet(Size);
end;

// Allocates for a current span without a block, a thread without a heap, or a large size: only then
// can a block be untouched.
function BlockGetZeroSlow(Size: NativeUInt; Heap: PHeap): Pointer;
var
  Span: PSpan;
begin
  if Heap <> nil then
    Heap^.Carved := nil;
  {$ifdef LANEMM_ASM}
  if Process.HasFastSlot then
    Result := FastBlockGet(Size)
  else
  {$endif}
    Result := BlockGet(Size);
  if Result = nil then
    Exit;
  Span := ArenaSpan(Result);
  if Span^.Kind = skInner then
    Dec(Span, Span^.Distance);
  if Span^.IsZero and ((Span^.Kind = skLarge) or (Heap <> nil) and (Heap^.Carved = Result)) then
  begin
    PBlock(Result)^.Link := 0; // all else was never touched
    if Span^.Kind = skLarge then
      Span^.IsZero := False; // the program may leave the zeros as they are
  end
  else if Span^.Kind <> skLarge then
    FillChar(Result^, Span^.BlockSize, 0)
  else if not PurgeClear(Span) then
    Result := LimitsRefuse(Size);
end;

function BlockGetZero(Size: TSize): Pointer;
var
  Span: PSpan;
  Heap: PHeap;
begin
  Heap := OsThreadHeap;
  if (Heap <> nil) and (Size <= MaxClassSize) then
  begin
    Span := Heap^.Current[ClassOf(Size)];
    Result := SpanTake(Span);
    if Result <> nil then
    begin
      FillChar(Result^, Span^.BlockSize, 0);
      Exit;
    end;
  end;
  Result := BlockGetZeroSlow(Size, Heap);
end;

{$ifdef LANEMM_ASM}
  {$ifdef LANEMM_ASM_LINUX}
    {$I LaneMM.Allocate.x64.inc}
  {$else}
    {$I LaneMM.Allocate.Windows.x64.inc}
  {$endif}
{$endif}

function QuickCountedBlockGet: TSizeCall;
begin
  Result := CountedBlockGet;
  {$ifdef LANEMM_ASM}
  if Process.HasFastSlot then
    Result := FastCountedBlockGet;
  {$endif}
end;

end.
