/// Tests of LaneMM.Heap, on two heaps of their own that play two threads.
unit Test.Heap;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  TSpans = array[1..10] of PSpan;
  TManySpans = array[1..MostAtOnce * 2] of PSpan;

  THeapTests = class(TQuietTest)
  strict private
    Mine, Others: PHeap;
    KeptAbandoned: PHeap;
    Blocks: array of PBlock;
    BlockCount: Integer;
    {$ifdef LINUX}
    procedure EndPurgeThread;
    {$endif}
    function TakeOf(Heap: PHeap; SizeClass: Cardinal): PBlock;
    function Take(Heap: PHeap): PBlock;
    procedure Put(Heap: PHeap; Block: PBlock);
    function FillSpanOf(SizeClass: Cardinal): PSpan;
    function FillSpan: PSpan;
    function SpanGivenUp: PSpan;
    function SpanTakenOver: PSpan;
    function BlockOf(Span: PSpan): PBlock;
    procedure FillSpans(out Spans: array of PSpan);
    procedure TakeOverMany(out Spans: array of PSpan);
    function CountQueued(const Spans: array of PSpan): Integer;
    procedure PutOf(const Spans: array of PSpan; Heap: PHeap; Count: Integer);
    function CountOwned(const Spans: array of PSpan; Heap: PHeap): Integer;
    procedure PutAllOf(Span: PSpan; Heap: PHeap; ButOne: Boolean);
    procedure PutAll(const Spans: array of PSpan; Heap: PHeap);
    function IsGone(Span: PSpan): Boolean;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure NextSpanBecomesCurrent;
    procedure AllOfASpanIsUsedBeforeTheNext;
    procedure FullSpanIsGivenUp;
    procedure FirstFreeIntoAGivenUpSpanTakesItOver;
    {$ifdef LINUX}
    procedure FreeThatTakesASpanOverLeavesCurrentSpans;
    procedure FreesBetweenAllocationsLeaveCurrentSpans;
    {$endif}
    procedure TakenOverSpanIsUsedBeforeANewOne;
    procedure SpanWithBlocksFreedByOthersIsKept;
    procedure EmptiedSpanGoesBackToTheArena;
    procedure EmptiedSpanWaitsWhileTheQueuesAreLocked;
    procedure SweepGivesBackWhatOthersEmptied;
    procedure BlockThatIsNotCountedKeepsItsSpan;
    procedure SweepLeavesSpansInUse;
    procedure SweepNeverWaits;
    procedure AbandonLeavesNothingInTheHeap;
    procedure AbandonedSpanIsUsedBeforeANewOne;
    procedure AbandonKeepsTheReallocCounts;
    procedure ResetAndRequeueFindTheSpansAgain;
    procedure SpanThatTheAbandonedHeapTookOverIsUsedBeforeANewOne;
    procedure SweepAwaitsTheNextFreeTwice;
    procedure SpanReclaimedWhileItIsShelvedAwaitsTheNextFree;
    procedure CurrentSpanAwaitsNoFree;
    procedure SweepKeepsASpanWithABlockThatIsNotCounted;
    {$ifdef CPU64} procedure FreeThatBeganBeforeTheReleaseFails; {$endif}
    procedure QueuedSpansAreTakenOneByOne;
    procedure AbandonReleasesWhatOthersEmptied;
    procedure AbandonMovesSpansJustTakenOver;
    procedure CurrentSpanThatOthersEmptiedIsRetired;
    procedure LateBlocksShareSpans;
    procedure NextSpanNeverWaits;
    procedure SpanThatIsLeftWithAFreedBlockRequestsASweep;
    procedure SpanTakenOverIsUsedWhileTheQueuesAreLocked;
    procedure EmptiedLongSpanIsKeptUntilASweep;
    procedure AbandonNeverWaits;
    procedure FirstBlocksOfAClassAreLarger;
    procedure FirstBlocksAreAlignedAsTheirClassIfTheProgramAligns;
    procedure FirstHeapHasBlocksOfTheirClass;
    procedure FirstSpanOfAClassStaysCurrent;
    procedure SpanAfterAFullOneIsReleasedWithItsLastBlock;
    procedure CurrentSpanWithABlockThatIsNotCountedIsKept;
    procedure RoomySpansThatOthersFilledAreLeftToAllButOne;
    procedure OwnSpansStayUntilThreeQuartersAreFree;
    procedure RoomySpansThatAreTakenMakeWayForOthers;
    procedure NoMoreSpansAreClaimedThanMayBeRoomy;
    procedure SpanThatBecameRoomyUnderATakenLockIsRoomyLater;
    procedure SweepLeavesRoomySpansInUse;
    procedure CallQueuesNoMoreThanSomeSpans;
    procedure SweepByPartsReachesEverySpan;
    procedure SpanThatLeavesTheQueueDoesNotEndASweepByParts;
    procedure CallLooksAtNoMoreThanSomeSpansWhileTheQueuesAreLocked;
    procedure SpanThatIsNotQueuedYetRequestsASweepWhenItIsEmptied;
  end;

implementation

uses
  testregistry, LaneMM.Hooks, LaneMM.Os, LaneMM.SizeClasses, LaneMM.Lock, LaneMM.Atomic,
  LaneMM.RemoteList, LaneMM.Span, LaneMM.Sweep, LaneMM.Shards, LaneMM.KeptRuns,
  LaneMM.Walk, LaneMM.Heap, LaneMM.Blocks, LaneMM.Purge;

const
  // A class that nothing else in this program uses much, with few blocks per span.
  BlockSize = 7168;
  // Of another class, whose spans are one slice, too.
  OtherSize = 5000;

var
  Corruptions: Integer;

procedure NoteCorruption(Corruption: TCorruption; Span: PSpan; Block: PBlock);
begin
  Inc(Corruptions, Ord(Corruption = coCount));
end;

// Spans that other threads left when they ended are set aside: some of their blocks may be in use.
procedure THeapTests.SetUp;
begin
  inherited SetUp;
  Mine := NewHeaps(3);
  Others := Mine + 1;
  KeptAbandoned := Process.Abandoned;
  Process.Abandoned := Others + 1;
  SetLength(Blocks, 1000);
  BlockCount := 0;
end;

// Nothing may point to the heaps of the test any more.
procedure THeapTests.TearDown;
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
    if Blocks[Index] <> nil then
      Put(Mine, Blocks[Index]);
  HeapAbandon(Mine);
  HeapAbandon(Others);
  Process.Abandoned := KeptAbandoned;
  HeapAbandon(Others + 1);
  inherited TearDown;
end;

// What GetMem does.
function THeapTests.TakeOf(Heap: PHeap; SizeClass: Cardinal): PBlock;
var
  Span: PSpan;
begin
  Span := Heap^.Current[SizeClass];
  if Odd(Span^.FreeList) and not SpanRefill(Span) then
    Span := HeapNextSpan(Heap, SizeClass);
  Result := SpanTake(Span);
  Blocks[BlockCount] := Result;
  Inc(BlockCount);
end;

function THeapTests.Take(Heap: PHeap): PBlock;
begin
  Result := TakeOf(Heap, SizeToClass(BlockSize));
end;

// What FreeMem does.
procedure THeapTests.Put(Heap: PHeap; Block: PBlock);
var
  Span: PSpan;
  Index: Integer;
begin
  Span := BlockSpan(Block);
  for Index := 0 to BlockCount - 1 do
    if Blocks[Index] = Block then
      Blocks[Index] := nil;
  if Span^.Owner = Heap then
  begin
    if SpanPut(Span, Block) then
      HeapEmptied(Heap, Span);
  end
  else if RemotePush(Span, Block, RemoteWord(Span), Block^.Link) = rpSpanIsYours then
  begin
    SpanPut(Span, Block);
    HeapTakeOver(Heap, Span);
  end;
end;

// Takes blocks until the current span has none left; returns that span.
function THeapTests.FillSpanOf(SizeClass: Cardinal): PSpan;
begin
  Result := BlockSpan(TakeOf(Mine, SizeClass));
  while not SpanIsFull(Result) do
    TakeOf(Mine, SizeClass);
end;

function THeapTests.FillSpan: PSpan;
begin
  Result := FillSpanOf(SizeToClass(BlockSize));
end;

// Returns a span that was filled and given up.
function THeapTests.SpanGivenUp: PSpan;
begin
  Result := FillSpan;
  Take(Mine);
end;

// Returns one that its heap took over again, by a free.
function THeapTests.SpanTakenOver: PSpan;
begin
  Result := SpanGivenUp;
  Put(Mine, BlockOf(Result));
end;

// Returns a block in use.
function THeapTests.BlockOf(Span: PSpan): PBlock;
var
  Index: Integer;
begin
  Result := nil;
  for Index := 0 to BlockCount - 1 do
    if (Blocks[Index] <> nil) and (BlockSpan(Blocks[Index]) = Span) then
      Exit(Blocks[Index]);
end;

// Fills spans, all of which are given up then.
procedure THeapTests.FillSpans(out Spans: array of PSpan);
var
  Index: Integer;
begin
  for Index := 0 to High(Spans) do
    Spans[Index] := FillSpan;
  Take(Mine);
end;

// Frees Count blocks of each span.
procedure THeapTests.PutOf(const Spans: array of PSpan; Heap: PHeap; Count: Integer);
var
  Span: PSpan;
  Left: Integer;
begin
  for Span in Spans do
    for Left := Count downto 1 do
      Put(Heap, BlockOf(Span));
end;

function THeapTests.CountOwned(const Spans: array of PSpan; Heap: PHeap): Integer;
var
  Span: PSpan;
begin
  Result := 0;
  for Span in Spans do
    Inc(Result, Ord(OwnerOf(Span) = Heap));
end;

procedure THeapTests.PutAllOf(Span: PSpan; Heap: PHeap; ButOne: Boolean);
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
    if (Blocks[Index] <> nil) and (BlockSpan(Blocks[Index]) = Span) then
      if ButOne then
        ButOne := False
      else
        Put(Heap, Blocks[Index]);
end;

procedure THeapTests.PutAll(const Spans: array of PSpan; Heap: PHeap);
var
  Span: PSpan;
begin
  for Span in Spans do
    PutAllOf(Span, Heap, False);
end;

function THeapTests.IsGone(Span: PSpan): Boolean;
begin
  Result := (Span^.Kind <> skBlocks) or (OwnerOf(Span) <> Mine);
end;

procedure THeapTests.NextSpanBecomesCurrent;
var
  Span: PSpan;
begin
  Span := HeapNextSpan(Mine, SizeToClass(BlockSize));
  AssertTrue('current', Mine^.Current[SizeToClass(BlockSize)] = Span);
  AssertTrue('knows it', Span^.IsCurrent);
  AssertTrue('owner', Span^.Owner = Mine);
  AssertFalse('has blocks', Odd(Span^.FreeList));
end;

procedure THeapTests.AllOfASpanIsUsedBeforeTheNext;
var
  First: PSpan;
begin
  First := FillSpan;
  AssertTrue('still current', Mine^.Current[SizeToClass(BlockSize)] = First);
  AssertTrue('another span', BlockSpan(Take(Mine)) <> First);
end;

procedure THeapTests.FullSpanIsGivenUp;
var
  Span: PSpan;
begin
  Span := SpanGivenUp;
  AssertTrue('owner', OwnerOf(Span) = NoOwner);
  AssertTrue('word', Span^.Remote and LaneMM.Layout.GivenUpSpan <> 0);
end;

procedure THeapTests.FirstFreeIntoAGivenUpSpanTakesItOver;
var
  Span: PSpan;
begin
  Span := SpanGivenUp;
  Put(Others, Blocks[0]);
  AssertTrue('owner', Span^.Owner = Others);
  AssertTrue('the block is given out again', BlockSpan(Take(Others)) = Span);
end;

{$ifdef LINUX}
// No thread purges, much is warm, and it is too early for a look.
procedure THeapTests.EndPurgeThread;
const
  WarmSlices = 200;
  MsPerDay = 24 * 60 * 60 * 1000;
var
  Run: PSpan;
begin
  Process.PurgeDelayMs := MsPerDay;
  Process.LookedMs := OsNowMs;
  PurgeNotifyOfEnd; // as after the end of the main thread
  Process.HasThreads := True;
  Process.SharesSpans := False; // each class has its own current span
  Run := ShardsTake(WarmSlices);
  Run^.IsWarm := True;
  ShardsRelease(Run);
end;

// A sweep is requested already: who asked for it tells a thread.
procedure THeapTests.FreeThatTakesASpanOverLeavesCurrentSpans;
const
  OtherSize = 48;
var
  Current: PSpan;
  P: Pointer;
begin
  if not InChild then
    Exit;
  EndPurgeThread;
  SweepRequest;
  FillSpan;
  Take(Mine); // gives it up
  GetMem(P, OtherSize);
  Current := OsThreadHeap^.Current[SizeToClass(OtherSize)];
  AssertTrue('in the current span', BlockSpan(P) = Current);
  OsThreadHeap^.FreesDue := 0; // else one free in 16 retires them
  FreeMem(Blocks[0]);
  AssertTrue('taken over', BlockSpan(Blocks[0])^.Owner = OsThreadHeap);
  AssertTrue('still the current span', OsThreadHeap^.Current[SizeToClass(OtherSize)] = Current);
end;

// A program that replaces blocks empties a span about as often as it needs one.
procedure THeapTests.FreesBetweenAllocationsLeaveCurrentSpans;
const
  OtherSize = 48;
var
  Current: PSpan;
  P: Pointer;
  Turn: Integer;
begin
  if not InChild then
    Exit;
  EndPurgeThread;
  GetMem(P, OtherSize);
  Current := OsThreadHeap^.Current[SizeToClass(OtherSize)];
  PurgeTick;
  for Turn := 1 to 100 do
  begin
    PurgeNotify;
    PurgeTick;
  end;
  AssertTrue('current after turns', OsThreadHeap^.Current[SizeToClass(OtherSize)] = Current);
  OsThreadHeap^.ClockDue := 5;
  for Turn := 1 to 100 do
    PurgeNotify;
  AssertTrue('retired after frees', OsThreadHeap^.Current[SizeToClass(OtherSize)] <> Current);
  Same(0, OsThreadHeap^.ClockDue, 'calls until one reads the clock');
  FreeMem(P);
end;
{$endif}

procedure THeapTests.TakenOverSpanIsUsedBeforeANewOne;
var
  First, Second: PSpan;
begin
  First := FillSpan;
  Second := FillSpan;
  Put(Mine, Blocks[0]);
  AssertTrue('first again', BlockSpan(Take(Mine)) = First);
  AssertTrue('second was left', Mine^.Current[SizeToClass(BlockSize)] <> Second);
end;

procedure THeapTests.SpanWithBlocksFreedByOthersIsKept;
var
  Span: PSpan;
begin
  Span := FillSpan;
  Put(Others, Blocks[0]);
  AssertTrue('the block is given out again', BlockSpan(Take(Mine)) = Span);
  AssertTrue('owner', Span^.Owner = Mine);
end;

procedure THeapTests.EmptiedSpanGoesBackToTheArena;
var
  Span: PSpan;
begin
  Span := SpanGivenUp;
  PutAllOf(Span, Mine, False);
  AssertTrue('gone', IsGone(Span));
end;

procedure THeapTests.EmptiedSpanWaitsWhileTheQueuesAreLocked;
var
  Span: PSpan;
begin
  Span := SpanGivenUp;
  LockEnter(Mine^.Lock);
  PutAllOf(Span, Mine, False);
  LockLeave(Mine^.Lock);
  AssertFalse('gone', IsGone(Span));
  HeapSweep(Mine);
  AssertTrue('gone after a sweep', IsGone(Span));
end;

procedure THeapTests.SweepGivesBackWhatOthersEmptied;
var
  Span: PSpan;
begin
  Span := SpanTakenOver;
  PutAllOf(Span, Others, False);
  AssertFalse('gone', IsGone(Span));
  HeapSweep(Mine);
  AssertTrue('gone after a sweep', IsGone(Span));
end;

procedure THeapTests.BlockThatIsNotCountedKeepsItsSpan;
var
  KeptHook: TCorruptionCall;
  Span: PSpan;
begin
  KeptHook := Hooks.Corruption;
  Hooks.Corruption := NoteCorruption;
  Corruptions := 0;
  try
    Span := FillSpan;
    Put(Others, Blocks[0]);
    Take(Mine);
    Take(Mine); // of another span
    Put(Mine, Blocks[1]);
    Dec(Span^.Used); // as when two threads have freed one block at the same moment
    PutAllOf(Span, Mine, True);
    AssertFalse('gone', IsGone(Span));
    Same(1, Corruptions, 'reports');
    HeapSweep(Mine);
    AssertFalse('gone after a sweep', IsGone(Span));
    Span^.Used := 1;
    PutAllOf(Span, Mine, False);
    AssertTrue('gone without a block in use', IsGone(Span));
  finally
    Hooks.Corruption := KeptHook;
  end;
end;

procedure THeapTests.SweepLeavesSpansInUse;
var
  Span: PSpan;
begin
  Span := SpanTakenOver;
  PutAllOf(Span, Others, True);
  HeapSweep(Mine);
  AssertFalse('gone', IsGone(Span));
  Same(1, SpanUsedCount(Span), 'blocks in use');
end;

procedure THeapTests.SweepNeverWaits;
var
  Span: PSpan;
begin
  Span := SpanTakenOver;
  PutAllOf(Span, Others, False);
  LockEnter(Mine^.Lock);
  HeapSweep(Mine);
  LockLeave(Mine^.Lock);
  AssertFalse('gone', IsGone(Span));
end;

procedure THeapTests.AbandonLeavesNothingInTheHeap;
var
  SizeClass: Integer;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
    TakeOf(Mine, SizeClass);
  FillSpan;
  Put(Mine, Blocks[BlockCount - 1]);
  HeapAbandon(Mine);
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    AssertTrue('current', Mine^.Current[SizeClass] = @Process.EmptySpan);
    AssertTrue('queue', Mine^.Queues[SizeClass] = nil);
    AssertTrue('owner', BlockSpan(Blocks[SizeClass])^.Owner <> Mine);
  end;
end;

procedure THeapTests.AbandonedSpanIsUsedBeforeANewOne;
var
  Span: PSpan;
begin
  Span := BlockSpan(Take(Mine));
  HeapAbandon(Mine);
  // Others may have left spans of the class, too.
  while (BlockSpan(Take(Others)) <> Span) and (BlockCount < 900) do;
  AssertTrue('owner', Span^.Owner = Others);
end;

procedure THeapTests.AbandonKeepsTheReallocCounts;
var
  Before: NativeUInt;
begin
  Before := Process.Abandoned^.Realloc.Moves;
  Mine^.Realloc.Moves := 42;
  HeapAbandon(Mine);
  Same(Before + 42, Process.Abandoned^.Realloc.Moves, 'moves of ended threads');
  Same(0, Mine^.Realloc.Moves, 'moves of the heap');
end;

procedure RequeueOf(Span: PSpan; Context: Pointer);
begin
  if (Span^.Kind = skBlocks) and (Span^.Owner = Context) and not Span^.IsCurrent then
    HeapRequeue(Context, Span);
end;

procedure THeapTests.ResetAndRequeueFindTheSpansAgain;
var
  First, Second: PSpan;
begin
  First := FillSpan;
  Second := FillSpan;
  Take(Mine);
  Put(Mine, Blocks[0]);
  PutAllOf(Second, Mine, True);
  LockEnter(Mine^.Lock);
  HeapReset(Mine);
  WalkSpans(RequeueOf, Mine);
  AssertTrue('the lock is free', LockTry(Mine^.Lock));
  LockLeave(Mine^.Lock);
  PutAllOf(First, Mine, False);
  AssertTrue('a span that is emptied later goes back', IsGone(First));
  PutAllOf(Second, Mine, False);
  AssertTrue('another, too', IsGone(Second));
end;

procedure THeapTests.SpanThatTheAbandonedHeapTookOverIsUsedBeforeANewOne;
var
  Span: PSpan;
  SizeClass: Cardinal;
begin
  SizeClass := SizeToClass(BlockSize);
  Span := SpanGivenUp;
  // Others may have left spans of the class, too.
  repeat
    while not SpanIsFull(Others^.Current[SizeClass]) do
      Take(Others);
    if Process.Abandoned^.Queues[SizeClass] <> nil then
      Take(Others);
  until (Process.Abandoned^.Queues[SizeClass] = nil)
    and SpanIsFull(Others^.Current[SizeClass]);
  Put(Process.Abandoned, Blocks[0]);
  AssertTrue('taken over', Span^.Owner = Process.Abandoned);
  AssertTrue('used', BlockSpan(Take(Others)) = Span);
end;

procedure THeapTests.SweepAwaitsTheNextFreeTwice;
var
  Span: PSpan;
  Turn: Integer;
begin
  Span := SpanTakenOver;
  Put(Others, Blocks[1]);
  for Turn := 1 to 3 do
  begin
    HeapSweep(Mine);
    AssertTrue('owner', OwnerOf(Span) = Mine);
    Same(AwaitsFree * (Turn - Turn div 3), NativeUInt(Span^.Owner) - NativeUInt(Mine), 'awaits');
  end;
  HeapAwaitedFree(Mine, Span);
  AssertTrue('awaits no more', Span^.Owner = Mine);
  Same(0, RemoteCount(Span), 'blocks that others freed and the owner has not counted');
end;

procedure THeapTests.SpanReclaimedWhileItIsShelvedAwaitsTheNextFree;
var
  Span: PSpan;
  First: NativeUInt;
  Count: Cardinal;
begin
  Span := FillSpan;
  Put(Others, BlockOf(Span));
  HeapAbandon(Mine);
  First := RemoteShelve(Span, Count);
  Same(1, Count, 'blocks that another thread is shelving');
  AssertTrue('another span serves', HeapNextSpan(Others, SizeToClass(BlockSize)) <> Span);
  AssertTrue('reclaimed', OwnerOf(Span) = Others);
  Same(AwaitsFree, NativeUInt(Span^.Owner) - NativeUInt(Others), 'awaits');
  RemoteShelveEnd(Span, First, PBlock(Span^.Start + First), Count);
end;

procedure THeapTests.CurrentSpanAwaitsNoFree;
var
  Span: PSpan;
begin
  Span := FillSpan;
  FillSpan;
  Put(Mine, Blocks[0]);
  Put(Others, Blocks[1]);
  HeapSweep(Mine);
  AssertFalse('awaits', Span^.Owner = Mine);
  AssertTrue('current', BlockSpan(Take(Mine)) = Span);
  AssertTrue('awaits no more', Span^.Owner = Mine);
end;

procedure THeapTests.SweepKeepsASpanWithABlockThatIsNotCounted;
var
  Span: PSpan;
begin
  Span := SpanTakenOver;
  PutAllOf(Span, Others, True);
  Dec(Span^.Used); // as when two threads have freed one block at the same moment
  HeapSweep(Mine);
  AssertFalse('gone', IsGone(Span));
  Inc(Span^.Used);
end;

{$ifdef CPU64}
procedure THeapTests.FreeThatBeganBeforeTheReleaseFails;
var
  Span: PSpan;
  Block: PBlock;
  Word: NativeUInt;
begin
  Span := SpanGivenUp;
  Block := Blocks[0];
  Put(Mine, Block);
  Word := RemoteWord(Span);
  PutAllOf(Span, Mine, False);
  AssertTrue('gone', IsGone(Span));
  AssertTrue('refused', RemotePush(Span, Block, Word, Block^.Link) = rpNotInUse);
end;
{$endif}

procedure THeapTests.QueuedSpansAreTakenOneByOne;
var
  First, Second, Taken: PSpan;
begin
  First := FillSpan;
  Second := FillSpan;
  FillSpan;
  Put(Mine, Blocks[0]);
  Put(Mine, Blocks[First^.BlockBytes div First^.BlockSize]);
  Taken := BlockSpan(Take(Mine));
  AssertTrue('one', (Taken = First) or (Taken = Second));
  AssertTrue('the other', NativeUInt(Taken) xor NativeUInt(BlockSpan(Take(Mine)))
    = NativeUInt(First) xor NativeUInt(Second));
end;

procedure THeapTests.AbandonReleasesWhatOthersEmptied;
var
  Span: PSpan;
begin
  Span := SpanTakenOver;
  PutAllOf(Span, Others, False);
  AssertTrue('in use', Span^.Kind = skBlocks);
  HeapAbandon(Mine);
  AssertFalse('released', Span^.Kind = skBlocks);
end;

procedure THeapTests.AbandonMovesSpansJustTakenOver;
var
  Span: PSpan;
begin
  Span := SpanTakenOver;
  HeapAbandon(Mine);
  Same(0, Mine^.Taken, 'spans taken over');
  AssertTrue('owner', OwnerOf(Span) = Process.Abandoned);
end;

procedure THeapTests.CurrentSpanThatOthersEmptiedIsRetired;
var
  Span: PSpan;
begin
  Span := BlockSpan(Take(Mine));
  Put(Others, Blocks[0]);
  HeapRetireEmpty(Mine);
  HeapSweep(Mine);
  AssertTrue('gone', IsGone(Span));
end;

procedure THeapTests.LateBlocksShareSpans;
var
  Index, Changes: Integer;
begin
  Changes := 0;
  for Index := 0 to 26 do
  begin
    Blocks[Index] := HeapLateBlock(SizeToClass(BlockSize));
    Inc(BlockCount);
    Inc(Changes, Ord((Index > 0) and (BlockSpan(Blocks[Index]) <> BlockSpan(Blocks[Index - 1]))));
  end;
  // Nine blocks are a span; others may have left spans with a few.
  AtMost(18, Changes, 'changes of the span');
end;

procedure THeapTests.NextSpanNeverWaits;
var
  Span, Next: PSpan;
begin
  Span := FillSpan;
  FillSpan;
  Put(Process.Abandoned, Blocks[0]);
  LockEnter(Mine^.Lock);
  LockEnter(Process.Abandoned^.Lock);
  Next := HeapNextSpan(Mine, SizeToClass(BlockSize));
  LockLeave(Process.Abandoned^.Lock);
  LockLeave(Mine^.Lock);
  AssertTrue('a span', (Next <> nil) and (Next <> Span));
  AssertTrue('the other stays', OwnerOf(Span) = Process.Abandoned);
end;

// The other thread requests none while the span is current.
procedure THeapTests.SpanThatIsLeftWithAFreedBlockRequestsASweep;
var
  First, Second: PSpan;
begin
  First := FillSpan;
  Second := FillSpan;
  Put(Mine, BlockOf(First));
  HeapSweep(Mine); // queues First
  Put(Others, BlockOf(Second));
  StoreRelease(Process.SweepWanted, 0);
  AssertTrue('next', HeapNextSpan(Mine, SizeToClass(BlockSize)) = First);
  AssertTrue('left', OwnerOf(Second) = Mine);
  Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
end;

procedure THeapTests.SpanTakenOverIsUsedWhileTheQueuesAreLocked;
var
  First, Second, Other, Next: PSpan;
begin
  First := FillSpan;
  Second := FillSpan;
  FillSpan;
  Other := FillSpanOf(SizeToClass(OtherSize));
  TakeOf(Mine, SizeToClass(OtherSize));
  Put(Mine, BlockOf(First));
  Put(Mine, BlockOf(Second));
  Put(Mine, BlockOf(Other));
  LockEnter(Mine^.Lock);
  Next := HeapNextSpan(Mine, SizeToClass(BlockSize));
  LockLeave(Mine^.Lock);
  AssertTrue('one of the two', (Next = First) or (Next = Second));
  HeapSweep(Mine); // queues the others
  if Next = First then
    First := Second;
  AssertTrue('the second', Mine^.Queues[SizeToClass(BlockSize)] = First);
  AssertTrue('the third', Mine^.Queues[SizeToClass(OtherSize)] = Other);
end;

// A span of two slices or more.
procedure THeapTests.EmptiedLongSpanIsKeptUntilASweep;
const
  LongSize = 20000;
var
  Span: PSpan;
  Last: Integer;
begin
  Span := FillSpanOf(SizeToClass(LongSize));
  AtLeast(2, Span^.SliceCount, 'slices');
  Last := BlockCount;
  TakeOf(Mine, SizeToClass(LongSize)); // of another span
  AssertTrue('another span', BlockSpan(Blocks[Last]) <> Span);
  StoreRelease(Process.SweepWanted, 0);
  PutAllOf(Span, Mine, False);
  Same(Span^.SliceCount, RunsKept(Mine), 'kept slices');
  Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
  HeapSweep(Mine);
  Same(0, RunsKept(Mine), 'kept slices after a sweep');
end;

procedure THeapTests.AbandonNeverWaits;
var
  Span: PSpan;
  IsDone: Boolean;
begin
  Span := SpanTakenOver;
  LockEnter(Mine^.Lock);
  IsDone := HeapAbandon(Mine);
  LockLeave(Mine^.Lock);
  AssertFalse('done under the lock', IsDone);
  AssertTrue('owner', OwnerOf(Span) = Mine);
  AssertTrue('done later', HeapAbandon(Mine));
  AssertTrue('owner later', OwnerOf(Span) = Process.Abandoned);
end;

procedure THeapTests.FirstBlocksOfAClassAreLarger;
var
  SizeClass, Serving, Count: Cardinal;
begin
  for SizeClass := 0 to LastSharedClass do
  begin
    Serving := HeapServingClass(Mine, SizeClass);
    Count := 1;
    while HeapServingClass(Mine, SizeClass) <> SizeClass do
      Inc(Count);
    AtLeast(SizeClass, Serving, 'serving class');
    AtMost(6 * ClassToSize(SizeClass), ClassToSize(Serving), 'size');
    AtMost(4 * OsPageSize, Count * ClassToSize(Serving), 'bytes');
    if ClassToSize(SizeClass) <= 96 then
      AtMost(OsPageSize div 2, Count * ClassToSize(Serving), 'bytes of small blocks');
  end;
  Same(LastSharedClass + 1, HeapServingClass(Mine, LastSharedClass + 1), 'class above');
end;

procedure THeapTests.FirstBlocksAreAlignedAsTheirClassIfTheProgramAligns;
var
  SizeClass: Cardinal;
  Size, Served, Wrong: NativeUInt;
begin
  Wrong := 0;
  Process.KeepsAlignment := True;
  for SizeClass := 0 to LastSharedClass do
  begin
    Size := ClassToSize(SizeClass);
    Served := ClassToSize(HeapServingClass(Mine, SizeClass));
    if Served mod (Size and (0 - Size)) <> 0 then
      Inc(Wrong);
  end;
  Process.KeepsAlignment := False;
  Same(0, Wrong, 'classes');
end;

procedure THeapTests.FirstHeapHasBlocksOfTheirClass;
begin
  Mine^.NextHeap := Process.Abandoned;
  Same(0, HeapServingClass(Mine, 0), 'class');
end;

procedure THeapTests.FirstSpanOfAClassStaysCurrent;
var
  Span: PSpan;
begin
  Span := BlockSpan(Take(Mine));
  Put(Mine, Blocks[0]);
  AssertTrue('current', Mine^.Current[SizeToClass(BlockSize)] = Span);
  AssertTrue('the same', BlockSpan(Take(Mine)) = Span);
end;

procedure THeapTests.SpanAfterAFullOneIsReleasedWithItsLastBlock;
var
  Span: PSpan;
  Last: Integer;
begin
  FillSpan;
  Last := BlockCount;
  Span := BlockSpan(Take(Mine));
  Put(Mine, Blocks[Last]);
  AssertTrue('no span', Mine^.Current[SizeToClass(BlockSize)] = @Process.EmptySpan);
  AssertTrue('released', IsGone(Span));
end;

procedure THeapTests.CurrentSpanWithABlockThatIsNotCountedIsKept;
var
  KeptHook: TCorruptionCall;
  Span: PSpan;
  First: Integer;
begin
  FillSpan;
  First := BlockCount;
  Span := BlockSpan(Take(Mine));
  Take(Mine);
  Span^.IsShared := True;
  Dec(Span^.Used); // as when two threads have freed one block at the same moment
  KeptHook := Hooks.Corruption;
  Corruptions := 0;
  Hooks.Corruption := NoteCorruption;
  Put(Mine, Blocks[First]);
  Hooks.Corruption := KeptHook;
  Same(1, Corruptions, 'reports');
  AssertTrue('current', Mine^.Current[SizeToClass(BlockSize)] = Span);
  Span^.Used := 1; // the block that was not counted
end;

procedure THeapTests.RoomySpansThatOthersFilledAreLeftToAllButOne;
var
  Spans: TSpans;
begin
  FillSpans(Spans);
  PutOf(Spans, Others, 3);
  Same(1, CountOwned(Spans, Others), 'kept');
  Same(High(Spans) - 1, CountOwned(Spans, Process.Abandoned), 'for all');
end;

// Of nine blocks each.
procedure THeapTests.OwnSpansStayUntilThreeQuartersAreFree;
var
  Spans: TSpans;
begin
  FillSpans(Spans);
  PutOf(Spans, Mine, 6);
  Same(High(Spans), CountOwned(Spans, Mine), 'kept');
  PutOf(Spans, Mine, 1);
  Same(1, CountOwned(Spans, Mine), 'kept when nearly empty');
end;

procedure THeapTests.RoomySpansThatAreTakenMakeWayForOthers;
var
  Spans: TSpans;
begin
  FillSpans(Spans);
  PutOf(Spans, Others, 3);
  HeapNextSpan(Others, SizeToClass(BlockSize));
  Same(0, Others^.Roomy[SizeToClass(BlockSize)], 'roomy');
end;

procedure THeapTests.NoMoreSpansAreClaimedThanMayBeRoomy;
var
  Spans: TSpans;
  Index, Claimed: Integer;
begin
  FillSpans(Spans);
  PutOf(Spans, Others, 3);
  Claimed := 0;
  for Index := 1 to High(Spans) do
    if OwnerOf(Spans[Index]) = Process.Abandoned then
      Inc(Claimed, Ord(HeapClaim(Others, Spans[Index])));
  Same(0, Claimed, 'claimed');
end;

procedure THeapTests.SpanThatBecameRoomyUnderATakenLockIsRoomyLater;
var
  Span: PSpan;
begin
  Span := SpanGivenUp;
  Put(Others, BlockOf(Span));
  LockEnter(Others^.Lock);
  Put(Others, BlockOf(Span));
  LockLeave(Others^.Lock);
  AssertTrue('missed', SpanIsOverdue(Span));
  HeapSweep(Others);
  AssertTrue('awaited', Span^.Owner <> Others);
  HeapAwaitedFree(Others, Span);
  Same(1, Others^.Roomy[SizeToClass(BlockSize)], 'roomy');
  AssertFalse('missed no longer', SpanIsOverdue(Span));
end;

procedure THeapTests.SweepLeavesRoomySpansInUse;
var
  Span: PSpan;
begin
  Span := SpanGivenUp;
  Put(Others, BlockOf(Span));
  Put(Mine, BlockOf(Span));
  Same(RemoteCount(Span), Span^.Used, 'as many freed as counted');
  HeapSweep(Others);
  AssertTrue('owner', OwnerOf(Span) = Others);
  Same(7, SpanUsedCount(Span), 'blocks in use');
end;

// Has Others take over spans that Mine fills, by one free of each: they wait on Taken.
procedure THeapTests.TakeOverMany(out Spans: array of PSpan);
begin
  SetLength(Blocks, Length(Spans) * 10 + 10);
  FillSpans(Spans);
  PutOf(Spans, Others, 1);
end;

function THeapTests.CountQueued(const Spans: array of PSpan): Integer;
var
  Span: PSpan;
begin
  Result := 0;
  for Span in Spans do
    Inc(Result, Ord(Span^.Prev <> nil));
end;

procedure THeapTests.CallQueuesNoMoreThanSomeSpans;
var
  Spans: TManySpans;
begin
  TakeOverMany(Spans);
  HeapNextSpan(Others, SizeToClass(OtherSize));
  Same(MostAtOnce, CountQueued(Spans), 'queued by one call');
  HeapNextSpan(Others, SizeToClass(OtherSize));
  Same(MostAtOnce * 2, CountQueued(Spans), 'queued by two');
end;

// All blocks of all spans are freed by others.
procedure THeapTests.SweepByPartsReachesEverySpan;
var
  Spans: TManySpans;
  Left: Cardinal;
begin
  TakeOverMany(Spans);
  PutAll(Spans, Mine);
  Left := 10;
  AssertFalse('at the end', HeapSweepSome(Others, Left));
  Same(0, Left, 'left');
  Same(High(Spans) - 10, CountOwned(Spans, Others), 'in use after ten');
  Left := High(Spans);
  HeapSweepSome(Others, Left);
  Left := High(Spans);
  AssertTrue('to the end', HeapSweepSome(Others, Left));
  Same(0, CountOwned(Spans, Others), 'in use');
end;

procedure THeapTests.SpanThatLeavesTheQueueDoesNotEndASweepByParts;
var
  Spans: TManySpans;
  Next: PSpan;
  Left: Cardinal;
begin
  TakeOverMany(Spans);
  Left := 1;
  HeapSweepSome(Others, Left);
  Left := 1;
  HeapSweepSome(Others, Left);
  Next := Others^.SweepAt;
  PutAllOf(Next, Others, False);
  AssertTrue('left', Others^.SweepAt <> Next);
  PutAll(Spans, Mine);
  Left := High(Spans);
  HeapSweepSome(Others, Left);
  Same(2 + MostAtOnce, CountOwned(Spans, Others), 'in use: swept before they were empty, or queued since');
  HeapSweepSome(Others, Left);
  HeapSweep(Others);
  Same(0, CountOwned(Spans, Others), 'in use');
end;

procedure THeapTests.CallLooksAtNoMoreThanSomeSpansWhileTheQueuesAreLocked;
var
  Spans: TManySpans;
  Newest: PSpan;
begin
  TakeOverMany(Spans);
  Newest := PSpan(LoadAcquire(Others^.Taken));
  LockEnter(Others^.Lock);
  StoreRelease(Process.SweepWanted, 0);
  HeapNextSpan(Others, SizeToClass(OtherSize));
  LockLeave(Others^.Lock);
  AssertTrue('the same list', PSpan(LoadAcquire(Others^.Taken)) = Newest);
  Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
end;

procedure THeapTests.SpanThatIsNotQueuedYetRequestsASweepWhenItIsEmptied;
var
  Spans: TManySpans;
begin
  TakeOverMany(Spans);
  StoreRelease(Process.SweepWanted, 0);
  PutAllOf(Spans[1], Others, False); // the last on Taken
  AssertTrue('in no queue', Spans[1]^.Prev = nil);
  Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
  HeapSweep(Others);
  AssertTrue('released', OwnerOf(Spans[1]) <> Others);
  PutAll(Spans, Others);
end;

initialization
  RegisterTest(THeapTests);
end.
