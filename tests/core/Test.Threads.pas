/// Tests of LaneMM.Threads: threads that are born, sleep and end, and what their memory does.
unit Test.Threads;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

const
  ManyThreads = {$ifdef LANEMM_YIELD} 60 {$else} 1200 {$endif};
  BurstBytes = 200 shl 20;

type
  TThreadsTests = class(TQuietTest)
  strict private
    Blocks: TPointers;
    Heaps: array[0..7] of PHeap;
    HeapCount: LongInt;
    Line: TStartLine;
    IsOver: TAtomicWord;
    Turns: TAtomicWord;
    Damaged: LongInt;
    Generator: TGenerator;
    procedure NoteHeap;
    procedure GetBurst;
    procedure FreeBlocks;
    procedure GetBurstAndFreeATenth;
    procedure FreeOddBlocks;
    procedure GetMegabyteAndFreeHalf;
    procedure GetMany;
    procedure ReallocTwice;
    procedure WorkUntilOver;
    procedure TrimTo(Limit: NativeUInt);
    procedure CompareSecondBurst(Resident: NativeUInt);
    procedure CheckBlocks;
    function HeapRecordCount: Integer;
  strict private
    GivenHeap: PHeap;
    GivenBlock: Pointer;
    AwaitedSpan: PSpan;
    procedure AskForAHeapWhileEnding;
    procedure FreeAllButBlock30;
    procedure GetOneOfEachSize;
    procedure GetManyOfEachSize;
    procedure GetAnObjectAndMore;
    procedure GetAnObjectAndFreeIt;
    procedure CheckPages;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure EachThreadHasItsOwnHeap;
    procedure HeapOfAThreadStaysTheSame;
    procedure HeapsAreSpreadOverTheShards;
    procedure HeapsOfEndedThreadsAreUsedAgain;
    procedure BlocksOfAnEndedThreadStayValid;
    procedure BlocksOfAnEndedThreadCanBeResized;
    procedure MemoryThatAnEndedThreadFreedIsUsedByOthers;
    procedure ManyThreadsLeaveMemoryBounded;
    procedure MemoryFreedByOthersIsUsedAgainWhileTheOwnerSleeps;
    procedure MemoryFreedByOthersIsUsedAgainByAThirdThread;
    procedure MemoryFreedByOwnerAndOthersIsUsedAgainAfterTrim;
    procedure TrimGivesBackWhatOthersFreedWhileTheOwnerSleeps;
    procedure TrimGivesBackWhatTheOwnerFreed;
    procedure TrimLeavesBlocksInUseAlone;
    procedure TrimHarmsNoThreadAtWork;
    procedure ReallocCountsOfEndedThreadsAreKept;
    procedure EndingThreadGetsBlocksAndNoHeap;
    procedure FreeThatASweepAwaitsReleasesItsSpan;
    procedure TrimReleasesCurrentSpansWithoutABlock;
    procedure FewBlocksOfManySizesTakeFewPages;
    procedure ThreadWithManyBlocksHasBlocksOfTheirSize;
    procedure NextThreadOfARecordTakesFewPages;
    procedure BlocksThatThreadsLeaveBehindHaveTheirSize;
    procedure ThreadsThatLeaveNothingShareSpansAgain;
  end;

  TEndedThreadsTests = class(TQuietTest)
  strict private
    Heap, NextHeap: PHeap;
    Span: PSpan;
    IsOwner: Boolean;
    NextBlock: Integer;
    Blocks: array[0..59] of Pointer;
    Own: array of Pointer; // of the calling thread
    procedure GetBlocks;
    procedure GetOneBlock;
    procedure TakeFirstBlock;
    procedure GetFirstBlock;
    procedure GetNextBlock;
    procedure GetAndFreeOneBlock;
    procedure GetOneBlockAndRetireItsSpan;
    procedure FreeBlocks(First, Last: Integer);
    procedure NoteOwner;
    procedure LeaveBlocks;
    procedure UseRoomySpans(SizeClass: Byte);
    procedure FreeOwn;
  published
    procedure HeapThatASweepHeldWhenItsThreadEndedIsAbandonedLater;
    procedure NextThreadTakesTheHeapOfAnEndedOneWithItsCurrentSpan;
    procedure QueuedSpanOfAnEndedThreadIsForAllAtOnce;
    procedure EndOfAThreadRequestsASweepOfALargeProgram;
    procedure EndOfAThreadReleasesCurrentSpansWithoutABlock;
    procedure HeapThatTheSystemRefusedToAThreadIsAbandonedLater;
    procedure TrimAbandonsVacantHeaps;
    procedure AtMostSoManyVacantHeapsAreAbandonedAtATime;
    procedure HeapIsToldFromItsLivesAThousandLater;
    procedure FirstFreeTakesOverASpanOfAnEndedThread;
    procedure LastFreeReleasesASpanOfAnEndedThread;
    procedure FreeOfABlockOfAnEndedThreadWaitsForNoLock;
  end;

implementation

uses
  SysUtils, testregistry, Test.System, LaneMM.Atomic, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock,
  LaneMM.Arena,
  LaneMM.Heap, LaneMM.Threads, LaneMM.Purge, LaneMM.Stats;

function SmallSpanBytes: NativeUInt;
var
  Status: TStatus;
begin
  StatusRead(Status);
  Result := Status.Small.SpanBytes;
end;

const
  Megabyte = 1 shl 20;

procedure TThreadsTests.SetUp;
begin
  inherited SetUp;
  Process.KeepsAlignment := False; // after tests of aligned blocks
  Blocks := nil;
  HeapCount := 0;
  IsOver := 0;
  Turns := 0;
  Damaged := 0;
  Generator.Start(TestSeed);
end;

procedure TThreadsTests.TearDown;
begin
  FreeBlocks;
  inherited TearDown;
end;

function TThreadsTests.HeapRecordCount: Integer;
var
  Heap: PHeap;
begin
  Result := 0;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Inc(Result);
    Heap := Heap^.NextHeap;
  end;
end;

// ---------------------------------------------------------------------------- heaps

procedure TThreadsTests.NoteHeap;
begin
  Heaps[InterlockedIncrement(HeapCount) - 1] := ThreadHeap;
  Line.Await;
end;

procedure TThreadsTests.EachThreadHasItsOwnHeap;
var
  Index, Other: Integer;
begin
  Line.Start(Length(Heaps));
  InThreads(Length(Heaps), NoteHeap);
  for Index := 0 to High(Heaps) do
  begin
    AssertTrue('a heap', Heaps[Index] <> nil);
    AssertTrue('not the main thread''s', Heaps[Index] <> ThreadHeap);
    for Other := 0 to Index - 1 do
      AssertTrue('not another''s', Heaps[Index] <> Heaps[Other]);
  end;
end;

procedure TThreadsTests.HeapOfAThreadStaysTheSame;
var
  Heap: PHeap;
begin
  Heap := ThreadHeap;
  ProcessTrim;
  AssertTrue('same', ThreadHeap = Heap);
end;

procedure TThreadsTests.HeapsAreSpreadOverTheShards;
var
  Counts: array[1..ShardLimit] of Integer;
  Heap: PHeap;
  Number, Total: Integer;
begin
  Line.Start(Length(Heaps));
  InThreads(Length(Heaps), NoteHeap);
  FillChar(Counts, SizeOf(Counts), 0);
  Total := 0;
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Inc(Counts[Heap^.HomeShard]);
    Inc(Total);
    Heap := Heap^.NextHeap;
  end;
  for Number := 1 to Process.ShardCount do
    AtLeast(Total div Process.ShardCount, Counts[Number], 'heaps of a shard');
end;

procedure TThreadsTests.HeapsOfEndedThreadsAreUsedAgain;
var
  Before, Index: Integer;
begin
  Line.Start(1);
  InThread(NoteHeap);
  Before := HeapRecordCount;
  for Index := 1 to ManyThreads do
  begin
    HeapCount := 0;
    InThread(NoteHeap);
  end;
  Same(Before, HeapRecordCount, 'heap records');
end;

// ---------------------------------------------------------------------------- ended threads

procedure TThreadsTests.GetMany;
var
  Index: Integer;
  Size: NativeUInt;
begin
  SetLength(Blocks, 5000);
  for Index := 0 to High(Blocks) do
  begin
    Size := SampleSizes[Index mod 12];
    GetMem(Blocks[Index], Size);
    FillPattern(Blocks[Index], Size, Index);
  end;
end;

procedure TThreadsTests.CheckBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    AssertTrue('contents', HasPattern(Blocks[Index], SampleSizes[Index mod 12], Index));
end;

procedure TThreadsTests.BlocksOfAnEndedThreadStayValid;
begin
  InThread(GetMany);
  AssertTrue('heap works', HeapWorks);
  CheckBlocks;
  FreeBlocks;
  AssertTrue('heap works after', HeapWorks);
end;

procedure TThreadsTests.BlocksOfAnEndedThreadCanBeResized;
var
  Index: Integer;
begin
  InThread(GetMany);
  for Index := 0 to High(Blocks) do
    ReallocMem(Blocks[Index], SampleSizes[Index mod 12] * 3 + 100);
  CheckBlocks;
  for Index := 0 to High(Blocks) do
    ReallocMem(Blocks[Index], SampleSizes[Index mod 12] + 1);
  CheckBlocks;
end;

procedure TThreadsTests.FreeOddBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if Odd(Index) then
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := nil;
    end;
end;

procedure TThreadsTests.GetMegabyteAndFreeHalf;
const
  Size = 112;
var
  Index: Integer;
begin
  SetLength(Blocks, Megabyte div Size);
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], Size);
    FillPattern(Blocks[Index], Size, Index);
  end;
  FreeOddBlocks;
end;

procedure TThreadsTests.MemoryThatAnEndedThreadFreedIsUsedByOthers;
var
  Kept: TPointers;
  Before: NativeUInt;
  Index: Integer;
begin
  InThread(GetMegabyteAndFreeHalf);
  Before := SmallSpanBytes;
  SetLength(Kept, Length(Blocks) div 2);
  for Index := 0 to High(Kept) do
    GetMem(Kept[Index], 112);
  AtMost(Before + 3 * SliceSize, SmallSpanBytes, 'bytes of spans');
  for Index := 0 to High(Kept) do
    FreeMem(Kept[Index]);
end;

// Resident bytes of the arenas; an emulator has memory of its own for each thread. On Windows, those of
// the process: there each page of an arena would be asked for by itself.
function ResidentInArenas: NativeUInt;
{$ifdef MSWINDOWS}
begin
  Result := ResidentBytes;
end;
{$else}
var
  Index: NativeUInt;
  Arena: PArena;
begin
  Result := 0;
  Index := 0;
  Arena := FrontierArena(Index);
  while Arena <> nil do
  begin
    Inc(Result, BackedPages(Arena^.Base, LoadAcquire(Arena^.Committed) * SliceSize) * OsPageSize);
    Inc(Index);
    Arena := FrontierArena(Index);
  end;
end;
{$endif}

procedure TThreadsTests.ManyThreadsLeaveMemoryBounded;
var
  Before: NativeUInt;
  Index: Integer;
begin
  InThread(GetMegabyteAndFreeHalf);
  FreeBlocks;
  Before := ResidentInArenas;
  for Index := 1 to ManyThreads do
  begin
    InThread(GetMegabyteAndFreeHalf);
    FreeBlocks;
  end;
  AtLeast(Megabyte, Before, 'resident bytes of one thread');
  AtMost(Before + 16 * Megabyte, ResidentInArenas, 'resident bytes');
end;

// ---------------------------------------------------------------------------- bursts

procedure TThreadsTests.GetBurst;
const
  MeanSize = 400;
var
  Index: Integer;
  Size: NativeUInt;
begin
  SetLength(Blocks, BurstBytes div MeanSize);
  for Index := 0 to High(Blocks) do
  begin
    Size := 8 + Generator.Below(2 * MeanSize - 16);
    GetMem(Blocks[Index], Size);
    FillChar(Blocks[Index]^, Size, 1);
  end;
end;

procedure TThreadsTests.FreeBlocks;
begin
  FreeEach(Blocks, 1);
  Blocks := nil;
end;

procedure TThreadsTests.GetBurstAndFreeATenth;
begin
  GetBurst;
  FreeEach(Blocks, 10);
end;

// Resident is the size with the first burst in use.
procedure TThreadsTests.CompareSecondBurst(Resident: NativeUInt);
begin
  AtMost(Resident + BurstBytes div 10, ResidentBytes, 'resident bytes with the second burst');
end;

// Trims while LaneMM's own thread sleeps.
procedure TThreadsTests.TrimTo(Limit: NativeUInt);
begin
  ProcessTrim;
  AtMost(Limit, ResidentBytes, 'resident bytes');
end;

procedure TThreadsTests.MemoryFreedByOthersIsUsedAgainWhileTheOwnerSleeps;
var
  Owner: TWorker;
  Resident: NativeUInt;
begin
  Owner := StartIdleThread(GetBurst);
  Resident := ResidentBytes;
  FreeBlocks;
  GetBurst;
  CompareSecondBurst(Resident);
  EndThread(Owner);
end;

procedure TThreadsTests.MemoryFreedByOthersIsUsedAgainByAThirdThread;
var
  Owner, Third: TWorker;
  Resident: NativeUInt;
begin
  Owner := StartIdleThread(GetBurst);
  Resident := ResidentBytes;
  FreeBlocks;
  Third := StartIdleThread(GetBurst);
  CompareSecondBurst(Resident);
  EndThread(Owner);
  EndThread(Third);
end;

procedure TThreadsTests.MemoryFreedByOwnerAndOthersIsUsedAgainAfterTrim;
var
  Owner: TWorker;
  Resident: NativeUInt;
begin
  Owner := StartIdleThread(GetBurstAndFreeATenth);
  Resident := ResidentBytes;
  FreeBlocks;
  TrimTo(Resident - BurstBytes div 2);
  GetBurst;
  CompareSecondBurst(Resident);
  EndThread(Owner);
end;

procedure TThreadsTests.TrimGivesBackWhatOthersFreedWhileTheOwnerSleeps;
var
  Owner: TWorker;
  Before, Resident: NativeUInt;
begin
  Before := ResidentBytes;
  Owner := StartIdleThread(GetBurstAndFreeATenth);
  Resident := ResidentBytes - Before;
  FreeBlocks;
  TrimTo(Before + Resident div 10);
  EndThread(Owner);
end;

procedure TThreadsTests.TrimGivesBackWhatTheOwnerFreed;
var
  Before, Resident: NativeUInt;
begin
  Before := ResidentBytes;
  GetBurst;
  Resident := ResidentBytes - Before;
  FreeBlocks;
  TrimTo(Before + Resident div 10);
end;

procedure TThreadsTests.TrimLeavesBlocksInUseAlone;
var
  Index: Integer;
begin
  GetMany;
  FreeOddBlocks;
  ProcessTrim;
  for Index := 0 to High(Blocks) do
    if Blocks[Index] <> nil then
      AssertTrue('contents', HasPattern(Blocks[Index], SampleSizes[Index mod 12], Index));
  AssertTrue('heap works', HeapWorks);
end;

procedure TThreadsTests.WorkUntilOver;
var
  Mine: array[0..63] of PByte;
  Sizes: array[0..63] of NativeUInt;
  Numbers: TGenerator;
  Index: Integer;
begin
  FillChar(Mine, SizeOf(Mine), 0);
  FillChar(Sizes, SizeOf(Sizes), 0);
  Numbers.Start(FetchAdd(Turns, 1));
  while LoadAcquire(IsOver) = 0 do
  begin
    Index := Numbers.Below(Length(Mine));
    if (Mine[Index] <> nil) and not HasPattern(Mine[Index], Sizes[Index], Index) then
      InterlockedIncrement(Damaged);
    FreeMem(Mine[Index]);
    Sizes[Index] := Numbers.NextSize(200000);
    GetMem(Mine[Index], Sizes[Index]);
    FillPattern(Mine[Index], Sizes[Index], Index);
    FetchAdd(Turns, 1);
  end;
  for Index := 0 to High(Mine) do
    FreeMem(Mine[Index]);
end;

procedure TThreadsTests.TrimHarmsNoThreadAtWork;
const
  WorkerCount = 3;
  TurnCount = 30000;
var
  Workers: array[1..WorkerCount] of TWorker;
  Index: Integer;
begin
  for Index := 1 to WorkerCount do
    Workers[Index] := TWorker.Create(WorkUntilOver, False);
  repeat
    ProcessTrim;
  until LoadAcquire(Turns) > TurnCount;
  StoreRelease(IsOver, 1);
  for Index := 1 to WorkerCount do
    EndThread(Workers[Index]);
  Same(0, Damaged, 'blocks with other contents');
end;

procedure TThreadsTests.ReallocTwice;
var
  P: Pointer;
begin
  GetMem(P, 100);
  ReallocMem(P, 10000);
  ReallocMem(P, 50000);
  FreeMem(P);
end;

procedure TThreadsTests.ReallocCountsOfEndedThreadsAreKept;
var
  Before, After: TReallocCounts;
begin
  ProcessReallocCounts(Before);
  InThread(ReallocTwice);
  ProcessReallocCounts(After);
  AtLeast(Before.Calls + 2, After.Calls, 'calls');
  AtLeast(Before.Moves + 2, After.Moves, 'moves');
  AtLeast(Before.CopiedBytes + 100, After.CopiedBytes, 'bytes copied');
end;

// Asks as a routine does that the thread library calls after LaneMM's.
procedure TThreadsTests.AskForAHeapWhileEnding;
var
  Kept: PHeap;
begin
  Kept := ThreadHeap;
  OsSetThreadEnding;
  OsSetThreadHeap(nil);
  GivenHeap := ThreadHeap;
  GivenBlock := GetMem(100);
  OsSetThreadHeap(Kept);
end;

const
  AwaitedSize = 7168;

procedure TThreadsTests.FreeAllButBlock30;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if (Index <> 30) and (Blocks[Index] <> nil) and (ArenaSpan(Blocks[Index]) = AwaitedSpan) then
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := nil;
    end;
end;

procedure TThreadsTests.EndingThreadGetsBlocksAndNoHeap;
begin
  InThread(AskForAHeapWhileEnding);
  AssertTrue('heap', GivenHeap = nil);
  Same(112, FreeMem(GivenBlock), 'usable size');
end;

procedure TThreadsTests.FreeThatASweepAwaitsReleasesItsSpan;
var
  Index: Integer;
begin
  SetLength(Blocks, 60);
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], AwaitedSize);
  // A span between others: full, so given up. The first free takes it over.
  AwaitedSpan := ArenaSpan(Blocks[30]);
  for Index := 0 to High(Blocks) do
    if (Index <> 30) and (ArenaSpan(Blocks[Index]) = AwaitedSpan) then
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := nil;
      Break;
    end;
  AssertTrue('taken over', OwnerOf(AwaitedSpan) = OsThreadHeap);
  InThread(FreeAllButBlock30);
  HeapSweep(OsThreadHeap);
  AssertTrue('awaits', (OwnerOf(AwaitedSpan) = OsThreadHeap)
    and (AwaitedSpan^.Owner <> OsThreadHeap));
  FreeMem(Blocks[30]);
  Blocks[30] := nil;
  AssertFalse('released', (AwaitedSpan^.Kind = skBlocks)
    and (OwnerOf(AwaitedSpan) = OsThreadHeap));
  FreeEach(Blocks, 1);
end;

procedure TThreadsTests.TrimReleasesCurrentSpansWithoutABlock;
var
  P: Pointer;
  Index: Integer;
begin
  SetLength(Blocks, 60);
  Index := -1;
  repeat // until the block is the first of its span
    Inc(Index);
    GetMem(Blocks[Index], AwaitedSize);
  until ArenaSpan(Blocks[Index])^.Used = ArenaSpan(Blocks[Index])^.Bias + 1;
  P := Blocks[Index];
  Blocks[Index] := nil;
  FreeMem(P); // a span after a full one is released here; the next one stays
  GetMem(P, AwaitedSize);
  FreeMem(P);
  Same(1, OsThreadHeap^.Current[SizeToClass(AwaitedSize)]^.Used, 'held');
  ProcessTrim;
  AssertTrue('current', OsThreadHeap^.Current[SizeToClass(AwaitedSize)] = @Process.EmptySpan);
  FreeEach(Blocks, 1);
end;

// ---------------------------------------------------------------------------- vacant heaps

// Returns the number of vacant heaps, and in IsAmong whether Heap is one of them.
function CountVacant(Heap: PHeap; out IsAmong: Boolean): Integer;
var
  Index: Integer;
  Next: PHeap;
begin
  Result := 0;
  IsAmong := False;
  for Index := 0 to High(Process.VacantHeaps) do
  begin
    Next := FirstHeapOf(LoadAcquire(Process.VacantHeaps[Index]));
    while Next <> nil do
    begin
      Inc(Result);
      IsAmong := IsAmong or (Next = Heap);
      Next := Next^.NextUnused;
    end;
  end;
end;

function IsVacant(Heap: PHeap): Boolean;
begin
  CountVacant(Heap, Result);
end;

function VacantCount: Integer;
var
  IsAmong: Boolean;
begin
  Result := CountVacant(nil, IsAmong);
end;

procedure TEndedThreadsTests.FreeBlocks(First, Last: Integer);
var
  Index: Integer;
begin
  for Index := First to Last do
    FreeMem(Blocks[Index]);
end;

procedure TEndedThreadsTests.GetBlocks;
var
  Index: Integer;
begin
  Heap := ThreadHeap;
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], AwaitedSize);
  FreeMem(Blocks[0]);
end;

procedure TEndedThreadsTests.HeapThatASweepHeldWhenItsThreadEndedIsAbandonedLater;
var
  Owner: TWorker;
begin
  Owner := StartIdleThread(GetBlocks);
  LockEnter(Heap^.Lock);
  EndThread(Owner);
  Swap(Process.SweepWanted, 0);
  ThreadsAbandonVacant(High(Cardinal));
  Same(1, LoadAcquire(Process.SweepWanted), 'a sweep is wanted');
  LockLeave(Heap^.Lock);
  AssertTrue('owner', OwnerOf(ArenaSpan(Blocks[1])) = Heap);
  AssertTrue('vacant', IsVacant(Heap));
  ThreadsAbandonVacant(High(Cardinal));
  AssertTrue('abandoned', OwnerOf(ArenaSpan(Blocks[1])) = Process.Abandoned);
  AssertFalse('still vacant', IsVacant(Heap));
  FreeBlocks(1, High(Blocks));
end;

procedure TEndedThreadsTests.NoteOwner;
begin
  NextHeap := ThreadHeap;
  IsOwner := OwnerOf(ArenaSpan(Blocks[1])) = NextHeap;
  FreeBlocks(1, High(Blocks));
end;

procedure TEndedThreadsTests.NextThreadTakesTheHeapOfAnEndedOneWithItsCurrentSpan;
begin
  ThreadsAbandonVacant(High(Cardinal));
  EndThread(StartIdleThread(GetBlocks));
  AssertTrue('vacant', IsVacant(Heap));
  EndThread(StartIdleThread(NoteOwner));
  AssertTrue('same heap', NextHeap = Heap);
  AssertTrue('owner', IsOwner);
end;

procedure TEndedThreadsTests.GetOneBlockAndRetireItsSpan;
begin
  Heap := ThreadHeap;
  GetOneBlock;
  HeapRetireAll(Heap);
end;

procedure TEndedThreadsTests.QueuedSpanOfAnEndedThreadIsForAllAtOnce;
begin
  ThreadsAbandonVacant(High(Cardinal));
  EndThread(StartIdleThread(GetOneBlockAndRetireItsSpan));
  AssertTrue('vacant', IsVacant(Heap));
  AssertTrue('owner', OwnerOf(ArenaSpan(Blocks[0])) = Process.Abandoned);
  FreeBlocks(0, 0);
end;

procedure TEndedThreadsTests.EndOfAThreadRequestsASweepOfALargeProgram;
var
  Large: Pointer;
begin
  Swap(Process.SweepWanted, 0);
  Large := GetMem(8 * Megabyte);
  EndThread(StartIdleThread(GetOneBlock));
  Same(1, LoadAcquire(Process.SweepWanted), 'a sweep is wanted');
  FreeMem(Large);
  FreeBlocks(0, 0);
end;

procedure TEndedThreadsTests.GetAndFreeOneBlock;
begin
  Heap := ThreadHeap;
  TakeFirstBlock; // others may have left blocks in the spans before it
  FreeMem(Blocks[0]); // a span after a full one is released here; the next one stays
  GetOneBlock;
  Span := ArenaSpan(Blocks[0]);
  FreeMem(Blocks[0]);
  IsOwner := OwnerOf(Span) = Heap;
end;

procedure TEndedThreadsTests.EndOfAThreadReleasesCurrentSpansWithoutABlock;
begin
  ThreadsAbandonVacant(High(Cardinal));
  EndThread(StartIdleThread(GetAndFreeOneBlock));
  AssertTrue('vacant', IsVacant(Heap));
  AssertTrue('current before', IsOwner);
  AssertTrue('released', OwnerOf(Span) <> Heap);
  FreeOwn;
end;

// A sweep may have looked while the thread had the heap in its hands.
procedure TEndedThreadsTests.HeapThatTheSystemRefusedToAThreadIsAbandonedLater;
const
  NoKey = High(Cardinal);
var
  Own, Given: PHeap;
  Key: Cardinal;
begin
  ThreadsAbandonVacant(High(Cardinal));
  EndThread(StartIdleThread(GetBlocks));
  Own := OsThreadHeap;
  Key := Process.ThreadKey;
  OsSetThreadHeap(nil);
  Process.ThreadKey := NoKey;
  Swap(Process.SweepWanted, 0);
  Given := ThreadHeap;
  Process.ThreadKey := Key;
  OsSetThreadHeap(Own);
  AssertTrue('refused', Given = nil);
  AssertTrue('vacant', IsVacant(Heap));
  Same(1, LoadAcquire(Process.SweepWanted), 'a sweep is wanted');
  FreeBlocks(1, High(Blocks));
end;

procedure TEndedThreadsTests.TrimAbandonsVacantHeaps;
begin
  EndThread(StartIdleThread(GetOneBlock));
  ProcessTrim;
  AssertTrue('abandoned', OwnerOf(ArenaSpan(Blocks[0])) = Process.Abandoned);
  FreeBlocks(0, 0);
end;

procedure TEndedThreadsTests.GetNextBlock;
begin
  GetMem(Blocks[NextBlock], AwaitedSize);
  Inc(NextBlock);
end;

procedure TEndedThreadsTests.AtMostSoManyVacantHeapsAreAbandonedAtATime;
var
  Workers: array[0..3] of TWorker;
  Index, Before: Integer;
begin
  NextBlock := 0;
  for Index := 0 to High(Workers) do
    Workers[Index] := StartIdleThread(GetNextBlock);
  for Index := 0 to High(Workers) do
    EndThread(Workers[Index]);
  Before := VacantCount;
  AtLeast(Length(Workers), Before, 'vacant heaps');
  ThreadsAbandonVacant(3);
  Same(Before - 3, VacantCount, 'vacant heaps left');
  Same(1, LoadAcquire(Process.SweepWanted), 'a sweep is wanted');
  FreeBlocks(0, High(Workers));
end;

// A pop that another thread began before these lives must not take what it read for what is there.
procedure TEndedThreadsTests.HeapIsToldFromItsLivesAThousandLater;
const
  Lives = 1000;
var
  First, Last: array[0..VacantStacks - 1] of TAtomicWord;
  Life, Index: Integer;
  Word: TAtomicWord;
begin
  for Life := 0 to Lives do
  begin
    NextBlock := 0;
    EndThread(StartIdleThread(GetNextBlock));
    FreeBlocks(0, 0);
    for Index := 0 to VacantStacks - 1 do
    begin
      Word := LoadAcquire(Process.VacantHeaps[Index]);
      if Life = 0 then
        First[Index] := Word
      else if Word <> Last[Index] then
        AssertTrue(Format('life %d', [Life]), Word <> First[Index]);
      Last[Index] := Word;
    end;
  end;
end;

// Ends a thread that leaves one span with all blocks of Blocks but the first.
procedure TEndedThreadsTests.LeaveBlocks;
begin
  EndThread(StartIdleThread(GetBlocks));
  ThreadsAbandonVacant(High(Cardinal));
  AssertTrue('abandoned', OwnerOf(ArenaSpan(Blocks[High(Blocks)])) = Process.Abandoned);
end;

// Takes blocks until the thread has no roomy span of the class, so that it claims the next one.
procedure TEndedThreadsTests.UseRoomySpans(SizeClass: Byte);
begin
  SetLength(Own, 0);
  while OsThreadHeap^.Roomy[SizeClass] > 0 do
  begin
    SetLength(Own, Length(Own) + 1);
    GetMem(Own[High(Own)], ClassToSize(SizeClass));
  end;
end;

procedure TEndedThreadsTests.FreeOwn;
var
  Index: Integer;
begin
  for Index := 0 to High(Own) do
    FreeMem(Own[Index]);
end;

procedure TEndedThreadsTests.FirstFreeTakesOverASpanOfAnEndedThread;
var
  First: Integer;
begin
  LeaveBlocks;
  UseRoomySpans(ArenaSpan(Blocks[High(Blocks)])^.SizeClass);
  // The last span may have one block only, whose free releases it.
  First := High(Blocks);
  while ArenaSpan(Blocks[First]) <> ArenaSpan(Blocks[First - 1]) do
    Dec(First);
  FreeBlocks(First, First);
  AssertTrue('owner', OwnerOf(ArenaSpan(Blocks[First])) = OsThreadHeap);
  FreeBlocks(1, First - 1);
  FreeBlocks(First + 1, High(Blocks));
  FreeOwn;
end;

procedure TEndedThreadsTests.GetOneBlock;
begin
  GetMem(Blocks[0], AwaitedSize);
end;

// Gets a block of a span that has no other. Own holds the spans before it full.
procedure TEndedThreadsTests.TakeFirstBlock;
begin
  SetLength(Own, 0);
  repeat
    SetLength(Own, Length(Own) + 1);
    GetMem(Own[High(Own)], AwaitedSize);
    Blocks[0] := Own[High(Own)];
    Span := ArenaSpan(Blocks[0]);
  until Span^.Used - Span^.Bias = 1;
  SetLength(Own, High(Own));
end;

procedure TEndedThreadsTests.GetFirstBlock;
begin
  TakeFirstBlock;
  FreeOwn;
end;

procedure TEndedThreadsTests.LastFreeReleasesASpanOfAnEndedThread;
begin
  EndThread(StartIdleThread(GetFirstBlock));
  ThreadsAbandonVacant(High(Cardinal));
  AssertTrue('abandoned', OwnerOf(Span) = Process.Abandoned);
  Same(1, Span^.Used, 'blocks in use');
  UseRoomySpans(Span^.SizeClass);
  FreeMem(Blocks[0]);
  AssertTrue('kind', Span^.Kind <> skBlocks);
  FreeOwn;
end;

procedure TEndedThreadsTests.FreeOfABlockOfAnEndedThreadWaitsForNoLock;
begin
  LeaveBlocks;
  LockEnter(Process.Abandoned^.Lock);
  FreeMem(Blocks[High(Blocks)]);
  AssertTrue('owner', OwnerOf(ArenaSpan(Blocks[High(Blocks)])) = Process.Abandoned);
  LockLeave(Process.Abandoned^.Lock);
  FreeBlocks(1, High(Blocks) - 1);
end;

procedure TThreadsTests.GetOneOfEachSize;
var
  SizeClass: Integer;
begin
  SetLength(Blocks, LastSharedClass + 1);
  for SizeClass := 0 to LastSharedClass do
    GetMem(Blocks[SizeClass], ClassToSize(SizeClass));
end;

procedure TThreadsTests.GetManyOfEachSize;
const
  BlocksPerSize = 50;
var
  Index: Integer;
begin
  SetLength(Blocks, (LastSharedClass + 1) * BlocksPerSize);
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], ClassToSize(Index mod (LastSharedClass + 1)));
end;

// Blocks of so many classes, one beside the other, take 28 pages: one of 96 bytes, 3 of 512, 8 of 2 KB, 16
// of 8 KB. Where they lie depends on what other tests left in spans of ended threads.
procedure TThreadsTests.CheckPages;
const
  ServingClasses = 4;
var
  Classes: set of Byte;
  Index, ClassCount: Integer;
begin
  Classes := [];
  ClassCount := 0;
  for Index := 0 to High(Blocks) do
    if not (ArenaSpan(Blocks[Index])^.SizeClass in Classes) then
    begin
      Include(Classes, ArenaSpan(Blocks[Index])^.SizeClass);
      Inc(ClassCount);
    end;
  AtMost(ServingClasses, ClassCount, 'size classes');
end;

procedure TThreadsTests.FewBlocksOfManySizesTakeFewPages;
begin
  ThreadsAbandonVacant(High(Cardinal)); // those of other tests have current spans of many sizes
  InThread(GetOneOfEachSize);
  CheckPages;
end;

procedure TThreadsTests.ThreadWithManyBlocksHasBlocksOfTheirSize;
var
  SizeClass: Integer;
begin
  InThread(GetManyOfEachSize);
  for SizeClass := 0 to LastSharedClass do
    Same(ClassToSize(SizeClass), MemSize(Blocks[High(Blocks) - LastSharedClass + SizeClass]),
      'usable size');
end;

procedure TThreadsTests.NextThreadOfARecordTakesFewPages;
begin
  InThread(GetManyOfEachSize);
  FreeBlocks;
  FewBlocksOfManySizesTakeFewPages;
end;

procedure TThreadsTests.GetAnObjectAndMore;
const
  Size = 144;
var
  Index: Integer;
begin
  for Index := 1 to 2 do
  begin
    SetLength(Blocks, Length(Blocks) + 1);
    GetMem(Blocks[High(Blocks)], Size);
  end;
  FreeMem(AllocMem(Size));
end;

procedure TThreadsTests.GetAnObjectAndFreeIt;
begin
  GetAnObjectAndMore;
  FreeBlocks;
end;

procedure TThreadsTests.BlocksThatThreadsLeaveBehindHaveTheirSize;
const
  ThreadCount = 100;
  Size = 144;
var
  Bytes: NativeUInt;
  Index: Integer;
begin
  for Index := 1 to ThreadCount do
    InThread(GetAnObjectAndMore);
  Bytes := 0;
  for Index := 0 to High(Blocks) do
    Inc(Bytes, MemSize(Blocks[Index]));
  FreeBlocks;
  AtMost(ThreadCount * 2 * Size * 5 div 4, Bytes, 'usable bytes');
end;

procedure TThreadsTests.ThreadsThatLeaveNothingShareSpansAgain;
var
  Index: Integer;
begin
  BlocksThatThreadsLeaveBehindHaveTheirSize;
  for Index := 1 to 20 do
    InThread(GetAnObjectAndFreeIt);
  FewBlocksOfManySizesTakeFewPages;
end;

initialization
  RegisterTest(TThreadsTests);
  RegisterTest(TEndedThreadsTests);
end.
