/// How long the engine's locks are held, in instructions, and that no system call is made meanwhile.
///
/// Prints three tables: of each lock and each routine that takes it, the median and the longest
/// section of mixed work; how sections grow that handle many spans, runs or blocks at once; and the
/// system calls under each lock. Fails if there is one, or if a routine that takes a lock was not
/// seen. No time is measured. One thread is stepped at a time: what others add to a section, they
/// add before, while locks are kept by hand. x86_64 with Linux; with symbols (-Xs-).
program LockSections;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, StrUtils, Promises, BareThreads, Stepping, LaneMM.Layout, LaneMM.Types,
  LaneMM.Atomic, LaneMM.Shards, LaneMM.Backed, LaneMM.Arena, LaneMM.Heap, LaneMM.Os,
  LaneMM.ObserveState, LaneMM.Elf, LaneMM.Symbols, LaneMM.Text;

type
  TKind = (kiShard, kiHeap, kiAbandoned, kiSamples, kiRuns);
  TWork = procedure(Count: Integer);
  TBlocks = array of PByte;

const
  KindNames: array[TKind] of string = ('TShard.Lock', 'THeap.Lock', 'Process.Abandoned^.Lock',
    'Observe.SampleLock', 'THeap.RunsClaimed');
  // Every routine that takes one of these locks. LaneMM.Shards.ShardLeave takes one again only
  // where another thread came in between.
  Takers: array[0..14] of string = ('Shards.Release', 'Shards.TakeOf', 'Shards.TakeNeighbour',
    'Shards.Enter', 'Heap.TakeQueued', 'Heap.Reclaim', 'Heap.HeapClaim', 'Heap.HeapEmptied',
    'Heap.HeapSweepQueued', 'Heap.HeapSweepSome', 'Heap.RequeueOverdue', 'Heap.HeapAbandonQueued',
    'Sampler.BlockForSample', 'Sampler.SamplerSweep', 'KeptRuns.RunsRelease');
  NoPurgeThread = 3;       // a value of Process.PurgeState
  Free = 0;
  Taken = 1;
  TurnCount = 1500;
  PlaceCount = 64;
  ThreadCount = 6;
  GrowingCount = 8;
  RunBlock = 16 * SliceSize; // a large block that its thread does not keep when it is freed
  KeptBlock = 2 * SliceSize; // one that it keeps
  SpanBlock = 2048;
  BlocksPerSpan = SliceSize div SpanBlock;
  RareBlock = 60000;
  RareSlices = 16;         // of a span of such blocks
  MostSlices = 4096;       // more than are committed at the start

var
  Blocks, Others: TBlocks;
  HasKept, MayEnd: PRTLEvent;
  State: Cardinal = 1;

// ---------------------------------------------------------------------------- blocks

function NewBlocks(Count: Integer; Size: NativeUInt): TBlocks;
var
  Index: Integer;
begin
  SetLength(Result, Count);
  for Index := 0 to Count - 1 do
    GetMem(Result[Index], Size);
end;

procedure FreeAll(var Some: TBlocks);
var
  Block: PByte;
begin
  for Block in Some do
    FreeMem(Block);
  Some := nil;
end;

function FreeOthers(Argument: Pointer): PtrInt;
var
  Block: PByte;
begin
  for Block in Others do
    FreeMem(Block);
  Result := 0;
end;

// Lets another thread free the blocks.
procedure FreeElsewhere;
begin
  WaitForThreadTerminate(BeginThread(FreeOthers, nil), 0);
  Others := nil;
end;

// ---------------------------------------------------------------------------- mixed work

// A size up to 2 MB; every doubling is as frequent as the next.
function SomeSize: NativeUInt;
begin
  Result := 16 + NextRandom(State, 2000000 shr NextRandom(State, 17));
end;

// Allocates, resizes and frees blocks of all sizes; all sections are counted.
procedure Mix(Turns: Integer);
var
  Index, Turn: Integer;
  Block: ^PByte;
begin
  SetLength(Blocks, PlaceCount);
  StepsWatch;
  for Turn := 1 to Turns do
  begin
    Index := NextRandom(State, PlaceCount);
    Block := @Blocks[Index];
    if Block^ = nil then
      GetMem(Block^, SomeSize)
    else if NextRandom(State, 4) = 0 then
      ReallocMem(Block^, SomeSize)
    else
    begin
      FreeMem(Block^);
      Block^ := nil;
    end;
  end;
  StepsPass;
  FreeAll(Blocks);
end;

// Called at the end of a thread, after LaneMM's own hook, as its key is younger: the block comes
// from the spans of ended threads.
procedure LateHook(Unused: Pointer);
begin
  FreeMem(GetMem(SpanBlock));
end;

function LiveShortly(Argument: Pointer): PtrInt;
var
  Index: Integer;
  Block: PByte;
begin
  GetMem(Others[0], SpanBlock);
  for Index := 1 to High(Others) do
    GetMem(Others[Index], 16 + NextRandom(State, 30000));
  for Index := 1 to High(Others) do
    if NextRandom(State, 2) = 0 then
    begin
      Block := Others[Index];
      Others[Index] := nil;
      FreeMem(Block);
    end;
  BareSetValue(@State);
  StepsWatch; // until its end
  Result := 0;
end;

// Threads that end and leave blocks behind, which the main thread takes over and frees.
procedure Bear;
var
  Index: Integer;
begin
  BareHook(LateHook);
  for Index := 1 to ThreadCount do
  begin
    SetLength(Others, PlaceCount);
    WaitForThreadTerminate(BeginThread(LiveShortly, nil), 0);
    Blocks := NewBlocks(2 * BlocksPerSpan, SpanBlock);
    FreeAll(Blocks);
    FreeAll(Others);
    StepsPass;
  end;
end;

procedure Sample;
begin
  LaneMM_Configure('profile,rate=16K');
  Mix(TurnCount div 4);
  LaneMM_Configure('profile=0');
end;

// Blocks that grow: into the run behind them, and by a move into spare slices.
procedure Lengthen;
var
  Index: Integer;
  Block, Behind: PByte;
begin
  for Index := 1 to GrowingCount do
  begin
    GetMem(Block, RunBlock);
    GetMem(Behind, RunBlock);
    FreeMem(Behind);
    StepsWatch;
    ReallocMem(Block, RunBlock + Index * SliceSize);
    ReallocMem(Block, Index * RunBlock * 2);
    FreeMem(Block);
    StepsPass;
  end;
end;

procedure Purge;
begin
  StepsWatch;
  ShardsPurgeIdle;
  LaneMM_Trim;
  StepsPass;
end;

// ---------------------------------------------------------------------------- many at once

// Frees the blocks from First on at a distance of Step; the others stay.
procedure FreeSome(const Some: TBlocks; First, Step: Integer);
begin
  while First < Length(Some) do
  begin
    FreeMem(Some[First]);
    Some[First] := nil;
    Inc(First, Step);
  end;
end;

// Blocks that fill Count spans, and one more.
function FullSpans(Count: Integer): TBlocks;
begin
  Result := NewBlocks((Count + 1) * BlocksPerSpan, SpanBlock);
end;

// Spans that were full, and of which this thread has freed a block: they wait on THeap.Taken.
procedure QueueSpans(Count: Integer);
begin
  Blocks := FullSpans(Count);
  FreeSome(Blocks, 0, BlocksPerSpan);
  Process.SweepWanted := 0; // else a sweep takes them first, if no memory is warm
  StepsWatch;
  Others := NewBlocks(BlocksPerSpan, SpanBlock);
  StepsPass;
  FreeAll(Others);
  FreeAll(Blocks);
end;

// Spans of a thread all blocks of which another one has freed.
procedure SweepSpans(Count: Integer);
var
  Left: Cardinal;
begin
  Others := FullSpans(Count);
  FreeSome(Others, 0, BlocksPerSpan);
  FreeElsewhere;
  Purge;
  StepsWatch;
  Left := MostAtOnce;
  HeapSweepSome(OsThreadHeap, Left);
  StepsPass;
end;

// A span with Count blocks, of which other threads have freed all but the last one.
procedure EmptyShared(Count: Integer);
var
  Last: PByte;
begin
  Others := NewBlocks(2 * Count, SliceSize div Count);
  FreeSome(Others, 0, Count);
  Last := Others[Count - 1];
  Others[Count - 1] := nil;
  FreeElsewhere;
  LaneMM_Trim; // so that the owner counts what the others have freed
  StepsWatch;
  FreeMem(Last);
  StepsPass;
end;

procedure SetShards(LockState: NativeUInt);
var
  Number: Integer;
begin
  for Number := 1 to Process.ShardCount do
    StoreRelease(Process.Shards[Number].Lock.State, LockState);
end;

// Runs that were released while another thread had the lock: most of them join two others.
procedure ReleaseRuns(Count: Integer);
begin
  Blocks := NewBlocks(Count, RunBlock);
  SetShards(Taken);
  FreeSome(Blocks, 1, 2);
  FreeSome(Blocks, 0, 2);
  SetShards(Free);
  Purge;
end;

// Runs that are a little too short for a block, where a limit forbids to take other memory.
procedure TryRuns(Count: Integer);
var
  Block: PByte;
begin
  Blocks := NewBlocks(2 * Count, RunBlock);
  FreeSome(Blocks, 0, 2);
  LaneMM_SetMemoryLimit(BackedSlices * SliceSize);
  StepsWatch;
  GetMem(Block, RunBlock + SliceSize);
  StepsPass;
  LaneMM_SetMemoryLimit(0);
  FreeMem(Block);
  FreeAll(Blocks);
end;

function LeaveSpans(Count: Pointer): PtrInt;
begin
  Others := FullSpans(PtrInt(Count));
  FreeSome(Others, 0, BlocksPerSpan);
  StepsWatch; // until its end
  Result := 0;
end;

// Spans that a thread leaves behind when it ends, and another thread queues.
procedure AbandonSpans(Count: Integer);
begin
  WaitForThreadTerminate(BeginThread(LeaveSpans, Pointer(PtrInt(Count))), 0);
  Blocks := NewBlocks(BlocksPerSpan, SpanBlock);
  StepsPass;
  FreeAll(Blocks);
  FreeAll(Others);
end;

// Full spans of sampled blocks, which are searched for one that has a free block again.
procedure SampleSpans(Count: Integer);
begin
  LaneMM_Configure('profile,rate=1');
  Blocks := FullSpans(Count);
  StepsWatch;
  Others := NewBlocks(BlocksPerSpan, SpanBlock);
  StepsPass;
  LaneMM_Configure('profile=0');
  FreeAll(Others);
  FreeAll(Blocks);
end;

// Runs that this thread keeps, and a sweep releases.
function KeepRuns(Count: Pointer): PtrInt;
var
  Some: TBlocks;
begin
  Some := NewBlocks(PtrInt(Count), KeptBlock);
  FreeAll(Some);
  RTLEventSetEvent(HasKept);
  RTLEventWaitFor(MayEnd);
  Result := 0;
end;

// A thread releases its own runs without a claim: these are of one that sleeps.
procedure ReleaseKept(Count: Integer);
var
  Keeper: TThreadID;
begin
  HasKept := RTLEventCreate;
  MayEnd := RTLEventCreate;
  Keeper := BeginThread(KeepRuns, Pointer(PtrInt(Count)));
  RTLEventWaitFor(HasKept);
  Purge;
  RTLEventSetEvent(MayEnd);
  WaitForThreadTerminate(Keeper, 0);
  RTLEventDestroy(HasKept);
  RTLEventDestroy(MayEnd);
end;

function ColdSlices: NativeUInt;
var
  Number: Integer;
begin
  Result := 0;
  for Number := 1 to Process.ShardCount do
    Inc(Result, Process.Shards[Number].ColdSlices);
end;

// A sampled block whose class has no span, where no other free slices are committed.
procedure SampleNewSlices;
var
  Arena: PArena;
  Index: Integer;
begin
  Arena := FrontierArena(0);
  SetLength(Blocks, MostSlices);
  Index := 0;
  while (Index < MostSlices) and ((ShardsWarmSlices + ColdSlices >= RareSlices)
    or (Arena^.Frontier + StepSlices <= Arena^.Committed)) do
  begin
    GetMem(Blocks[Index], 2 * SliceSize);
    Inc(Index);
  end;
  Expect(Index < MostSlices, 'all committed slices are used');
  LaneMM_Configure('profile,rate=1');
  StepsWatch;
  Others := NewBlocks(1, RareBlock);
  StepsPass;
  LaneMM_Configure('profile=0');
  FreeAll(Others);
  FreeAll(Blocks);
end;

type
  /// Work with Few and with Many items, whose longest sections are compared.
  TGrowth = record
    Item: string;
    Kind: TKind;
    Taker: string;
    Few, Many: Integer;
    Work: TWork;
  end;

const
  Growths: array[0..8] of TGrowth = (
    (Item: 'run that was released meanwhile'; Kind: kiShard; Taker: 'Shards.Enter'; Few: 10;
      Many: 30; Work: ReleaseRuns),
    (Item: 'run that is too short'; Kind: kiShard; Taker: 'Shards.TakeOf'; Few: 100; Many: 300;
      Work: TryRuns),
    (Item: 'span that is queued'; Kind: kiHeap; Taker: 'Heap.TakeQueued'; Few: 10; Many: 30;
      Work: QueueSpans),
    (Item: 'span of 32 blocks that is swept'; Kind: kiHeap; Taker: 'Heap.HeapSweepQueued'; Few: 10;
      Many: 30; Work: SweepSpans),
    (Item: 'block of an empty span'; Kind: kiHeap; Taker: 'Heap.HeapEmptied'; Few: 512; Many: 2048;
      Work: EmptyShared),
    (Item: 'span that is abandoned'; Kind: kiHeap; Taker: 'Heap.HeapAbandonQueued'; Few: 10;
      Many: 30; Work: AbandonSpans),
    (Item: 'abandoned span that is queued'; Kind: kiAbandoned; Taker: 'Heap.Reclaim'; Few: 10;
      Many: 30; Work: AbandonSpans),
    (Item: 'full span of sampled blocks'; Kind: kiSamples; Taker: 'Sampler.BlockForSample'; Few: 10;
      Many: 30; Work: SampleSpans),
    (Item: 'run that is kept'; Kind: kiRuns; Taker: 'KeptRuns.RunsRelease'; Few: 2; Many: 6;
      Work: ReleaseKept));

var
  // The first sections of the works, and behind the last one.
  Marks: array[0..High(Growths), 0..2] of Integer;

procedure RunGrowths;
var
  Index: Integer;
begin
  for Index := 0 to High(Growths) do
  begin
    LaneMM_Trim;
    Marks[Index, 0] := SectionCount;
    Growths[Index].Work(Growths[Index].Few);
    LaneMM_Trim;
    Marks[Index, 1] := SectionCount;
    Growths[Index].Work(Growths[Index].Many);
    Marks[Index, 2] := SectionCount;
  end;
end;

// ---------------------------------------------------------------------------- report

var
  MixedCount: Integer; // the sections before those of growths
  TakerOf: array[0..MostSections - 1] of Integer; // by section; an index in Takers
  Lengths: array[0..MostSections - 1] of NativeUInt;

function KindOf(const Section: TSection): TKind;
var
  Lock: NativeUInt;
begin
  Lock := Section.Lock;
  if Section.IsClaim then
    Result := kiRuns
  else if NativeUInt(Lock - NativeUInt(@Process.Shards)) < SizeOf(Process.Shards) then
    Result := kiShard
  else if Lock = NativeUInt(@Process.Abandoned^.Lock) then
    Result := kiAbandoned
  else if Lock = NativeUInt(@Observe.SampleLock) then
    Result := kiSamples
  else
    Result := kiHeap;
end;

function NameOf(const Symbol: TSymbol): string;
var
  Text: TText;
begin
  Result := '?';
  if (Symbol.Routine = nil) or not TextOpen(Text, 4096) then
    Exit;
  SymbolAddRoutine(Text, @Symbol);
  SetString(Result, Text.Start, Text.Length);
  TextClose(Text);
end;

// Finds the routine of each section.
procedure FindTakers;
var
  Symbols: TSymbols;
  Elf: TElf;
  Index: Integer;
  TakerOfSymbol: array of Integer;
begin
  SymbolsOpen(Symbols, SectionCount);
  for Index := 0 to SectionCount - 1 do
    SymbolsAdd(Symbols, Sections[Index].Routine + 1);
  SymbolsSort(Symbols);
  ElfOpen(Elf);
  ElfResolve(Elf, Symbols);
  SetLength(TakerOfSymbol, Symbols.Count);
  for Index := 0 to Symbols.Count - 1 do
  begin
    TakerOfSymbol[Index] := High(Takers);
    while (TakerOfSymbol[Index] >= 0)
      and not EndsText('LaneMM.' + Takers[TakerOfSymbol[Index]], NameOf(Symbols.Items[Index])) do
      Dec(TakerOfSymbol[Index]);
    Expect(TakerOfSymbol[Index] >= 0, NameOf(Symbols.Items[Index]) + ' is a known taker');
  end;
  for Index := 0 to SectionCount - 1 do
    TakerOf[Index] := TakerOfSymbol[SymbolsIndexOf(Symbols, Sections[Index].Routine)];
  ElfClose(Elf);
  SymbolsClose(Symbols);
end;

function IsOf(Index: Integer; Kind: TKind; const Taker: string): Boolean;
begin
  Result := (KindOf(Sections[Index]) = Kind) and (TakerOf[Index] >= 0)
    and (Takers[TakerOf[Index]] = Taker);
end;

// Puts the lengths of these sections of mixed work in order; returns how many.
function Gather(Kind: TKind; const Taker: string): Integer;
var
  Index, Place: Integer;
begin
  Result := 0;
  for Index := 0 to MixedCount - 1 do
    if IsOf(Index, Kind, Taker) then
    begin
      Place := Result;
      while (Place > 0) and (Lengths[Place - 1] > Sections[Index].StepCount) do
      begin
        Lengths[Place] := Lengths[Place - 1];
        Dec(Place);
      end;
      Lengths[Place] := Sections[Index].StepCount;
      Inc(Result);
    end;
end;

procedure PrintSections;
var
  Kind: TKind;
  Taker: string;
  Count: Integer;
begin
  WriteLn(Format('%-24s %-22s %10s %8s %8s', ['lock', 'routine', 'sections', 'median', 'longest']));
  for Kind in TKind do
    for Taker in Takers do
    begin
      Count := Gather(Kind, Taker);
      if Count > 0 then
        WriteLn(Format('%-24s %-22s %10d %8d %8d', [KindNames[Kind], Taker, Count,
          Lengths[Count div 2], Lengths[Count - 1]]));
    end;
end;

procedure PrintCalls;
var
  Index: Integer;
  Kind: TKind;
  Counts, Calls: array[TKind] of Integer;
begin
  FillChar(Counts, SizeOf(Counts), 0);
  FillChar(Calls, SizeOf(Calls), 0);
  for Index := 0 to SectionCount - 1 do
  begin
    Kind := KindOf(Sections[Index]);
    Inc(Counts[Kind]);
    Inc(Calls[Kind], Sections[Index].CallCount);
  end;
  WriteLn(Format('%-24s %10s %14s', ['lock', 'sections', 'system calls']));
  for Kind in TKind do
  begin
    WriteLn(Format('%-24s %10d %14d', [KindNames[Kind], Counts[Kind], Calls[Kind]]));
    Expect(Counts[Kind] > 0, KindNames[Kind] + ' was taken');
    if Kind <> kiRuns then
      Expect(Calls[Kind] = 0, 'no system call under ' + KindNames[Kind])
    else
      Expect(Calls[Kind] = Counts[Kind], 'one system call, the barrier, under each claim of runs');
  end;
end;

procedure ExpectTakers;
var
  Index: Integer;
  IsSeen: array[-1..High(Takers)] of Boolean;
begin
  FillChar(IsSeen, SizeOf(IsSeen), 0);
  for Index := 0 to SectionCount - 1 do
    IsSeen[TakerOf[Index]] := True;
  for Index := 0 to High(Takers) do
    Expect(IsSeen[Index], Takers[Index] + ' took a lock');
end;

function Longest(First, Last: Integer; const Growth: TGrowth): Int64;
var
  Index: Integer;
begin
  Result := 0;
  for Index := First to Last do
    if IsOf(Index, Growth.Kind, Growth.Taker) and (Sections[Index].StepCount > Result) then
      Result := Sections[Index].StepCount;
end;

procedure PrintGrowths;
var
  Index: Integer;
  Growth: TGrowth;
  AtFew, AtMany: Int64;
begin
  WriteLn(Format('%-24s %-22s %-32s %14s %14s %6s', ['lock', 'routine', 'grows with each', 'longest',
    'longest', 'each']));
  for Index := 0 to High(Growths) do
  begin
    Growth := Growths[Index];
    AtFew := Longest(Marks[Index, 0], Marks[Index, 1] - 1, Growth);
    AtMany := Longest(Marks[Index, 1], Marks[Index, 2] - 1, Growth);
    WriteLn(Format('%-24s %-22s %-32s %6d of %4d %6d of %4d %6.1f', [KindNames[Growth.Kind],
      Growth.Taker, Growth.Item, AtFew, Growth.Few, AtMany, Growth.Many,
      (AtMany - AtFew) / (Growth.Many - Growth.Few)]));
    Expect(AtMany > AtFew, 'a section grows with each ' + Growth.Item);
  end;
end;

begin
  Process.PurgeState := NoPurgeThread;
  Process.PurgeDelayMs := MaxInt; // no purge by the clock: Purge does it, and the runs are alike
  LaneMM_Configure('huge=0'); // the rest of a huge page would be a run of another length
  if not StepsPrepare then
  begin
    WriteLn('the code of LaneMM.Lock is not as expected');
    Halt(1);
  end;
  SampleNewSlices;
  Mix(TurnCount);
  Bear;
  Lengthen;
  Sample;
  Purge;
  MixedCount := SectionCount;
  RunGrowths;
  Expect(SectionCount <= MostSections, 'there is room for all sections');
  FindTakers;
  PrintSections;
  WriteLn;
  PrintGrowths;
  WriteLn;
  PrintCalls;
  WriteLn(StepCount, ' steps');
  ExpectTakers;
  Finish;
end.
