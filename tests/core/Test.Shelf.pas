/// Tests of LaneMM.Shelf, and of shelved blocks in LaneMM.RemoteList and LaneMM.Span: a thread that sleeps owns a span, and
/// this thread frees its blocks and shelves them.
unit Test.Shelf;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types, LaneMM.Hooks;

const
  // Of a class whose blocks are carved one by one, and lie across pages.
  BlockSize = 2560;
  UsedCount = 20;
  SpanBlocks = 25;
  // Blocks that pass from thread to thread.
  PassCount = 2000;

type
  TShelfTests = class(TQuietTest)
  strict private
    Owner: TServant;
    Span: PSpan;
    Blocks: array[0..UsedCount - 1] of PByte;
    More: array[0..SpanBlocks - 1] of PByte;
    MoreCount: Integer;
    Skipped: TPointers;
    Error: Integer;
    KeptHook: TCorruptionCall;
    Line: TStartLine;
    Roles, Current: TAtomicWord;
    Passed: array[0..PassCount - 1] of TAtomicWord;
    procedure GetBlocks;
    procedure GetOne;
    procedure GetMore;
    procedure Repair;
    procedure FreeMore;
    procedure FreeFirst;
    procedure FreeLast;
    procedure FreeLastButOne;
    procedure PutFirstTwice;
    procedure FreeBlocks(First, Last: Integer);
    procedure Shelve;
    function ShelveAll: PByte;
    function BackedPages: NativeUInt;
    procedure CheckMore;
    procedure RetireAll;
    procedure SweepAsRequested;
    procedure PutBack(First: NativeUInt; Count: Cardinal);
    procedure PassBlocks;
    procedure TakeBlocks;
    procedure ShelveAgain;
    procedure PlayRole;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure PagesOfFreedBlocksAreGivenBack;
    procedure TrimGivesThemBack;
    procedure GrowthGivesThemBack;
    procedure ThreadThatNeedsASpanLooksAtSomeHeapsOnly;
    procedure BlockInUseKeepsItsPage;
    procedure OwnerGetsEachBlockAgain;
    procedure OwnersFreePutsThemOnTheFreeList;
    procedure SecondFreeByAnotherThreadFails;
    procedure SecondFreeByTheOwnerFails;
    procedure OwnerTakesTheShelfWhereABlockIsOnItsListTwice;
    procedure BlockThatWasWrittenToIsReportedAndLeftOut;
    procedure BlockThatWasWrittenToBeforeIsReportedAndLeftOut;
    procedure RoutineThatIsToldOfItMayFillTheSpan;
    procedure ShelvedBlocksAreFree;
    procedure SpanOfAThreadThatEndsIsReleased;
    procedure SpanThatIsLeftWithAShelfRequestsASweep;
    procedure LastFreeIntoAnAbandonedSpanWithAShelfGivesItBack;
    procedure ThreadThatStopsWhileItShelvesStopsNobody;
    procedure ChildDropsWhatALostThreadWasShelving;
    procedure PushThatReadTheWordBeforeFails;
    procedure ContentsStayWhileOthersShelve;
  end;

implementation

uses
  testregistry, Test.System, Test.Repair, LaneMM.Bits, LaneMM.Atomic, LaneMM.Os,
  LaneMM.RemoteList, LaneMM.Arena, LaneMM.Span, LaneMM.Heap, LaneMM.Threads, LaneMM.Shelf,
  LaneMM.Purge, LaneMM.Walk;

procedure ShelveOf(Span: PSpan);
var
  Shelving: TShelving;
begin
  Shelving.Count := 0;
  ShelveSpan(Span, Shelving);
  ShelveEnd(Shelving);
end;

// Gets blocks until one is the first of a new span, then the others of it.
procedure TShelfTests.GetBlocks;
var
  Index: Integer;
begin
  repeat
    GetMem(Blocks[0], BlockSize);
    Span := ArenaSpan(Blocks[0]);
    if Span^.CarvedBytes = BlockSize then
      Break;
    SetLength(Skipped, Length(Skipped) + 1);
    Skipped[High(Skipped)] := Blocks[0];
  until False;
  for Index := 1 to UsedCount - 1 do
    GetMem(Blocks[Index], BlockSize);
  for Index := 0 to UsedCount - 1 do
    FillPattern(Blocks[Index], BlockSize, Index);
end;

procedure TShelfTests.SetUp;
begin
  inherited SetUp;
  MoreCount := 0;
  Corruptions := 0;
  KeptHook := Hooks.Corruption;
  Hooks.Corruption := CountCorruption;
  Owner := TServant.Create;
  Owner.Call(GetBlocks);
end;

procedure TShelfTests.TearDown;
begin
  Owner.Free;
  FreeBlocks(0, UsedCount - 1);
  FreeMore;
  FreeEach(Skipped, 1);
  Skipped := nil;
  Hooks.Corruption := KeptHook;
  inherited TearDown;
end;

procedure TShelfTests.GetOne;
begin
  FreeMem(GetMem(BlockSize));
end;

procedure TShelfTests.GetMore;
begin
  GetMem(More[MoreCount], BlockSize);
  FillPattern(More[MoreCount], BlockSize, MoreCount);
  Inc(MoreCount);
end;

procedure TShelfTests.FreeMore;
begin
  while MoreCount > 0 do
  begin
    Dec(MoreCount);
    FreeMem(More[MoreCount]);
  end;
end;

procedure TShelfTests.FreeFirst;
begin
  Error := ErrorOfFree(Blocks[0]);
end;

procedure TShelfTests.FreeLast;
begin
  FreeBlocks(UsedCount - 1, UsedCount - 1);
end;

procedure TShelfTests.FreeLastButOne;
begin
  FreeBlocks(UsedCount - 2, UsedCount - 2);
end;

// As when another thread freed the first block at the same moment as the owner.
procedure TShelfTests.PutFirstTwice;
begin
  SpanPut(Span, PBlock(Blocks[0]));
  SpanPut(Span, PBlock(Blocks[1]));
  SpanPut(Span, PBlock(Blocks[0]));
  Inc(Span^.Used);
end;

procedure TShelfTests.FreeBlocks(First, Last: Integer);
var
  Index: Integer;
begin
  for Index := First to Last do
  begin
    FreeMem(Blocks[Index]);
    Blocks[Index] := nil;
  end;
end;

procedure TShelfTests.Shelve;
var
  Shelving: TShelving;
begin
  Shelving.Count := 0;
  ShelveHeap(OwnerOf(Span), Shelving);
  ShelveEnd(Shelving);
end;

// Frees all blocks, and shelves them; returns the fourth.
function TShelfTests.ShelveAll: PByte;
begin
  Result := Blocks[3];
  FreeBlocks(0, UsedCount - 1);
  Shelve;
end;

function TShelfTests.BackedPages: NativeUInt;
begin
  Result := Test.System.BackedPages(Span^.Start, SliceSize);
end;

procedure TShelfTests.PagesOfFreedBlocksAreGivenBack;
begin
  FreeBlocks(0, UsedCount - 1);
  AtLeast(UsedCount * BlockSize div OsPageSize, BackedPages, 'pages before');
  Shelve;
  Same(0, BackedPages, 'pages');
end;

procedure TShelfTests.TrimGivesThemBack;
begin
  FreeBlocks(0, UsedCount - 1);
  ProcessTrim;
  Same(0, BackedPages, 'pages');
end;

procedure TShelfTests.GrowthGivesThemBack;
begin
  FreeBlocks(0, UsedCount - 1);
  Process.ShelveFrom := High(NativeUInt);
  Process.ShelveNext := nil;
  ProcessSweep;
  AtLeast(1, BackedPages, 'pages before');
  Process.ShelveFrom := 1;
  repeat
    ProcessSweep; // looks at some heaps
  until Process.ShelveFrom > 1;
  Same(0, BackedPages, 'pages');
end;

procedure TShelfTests.ThreadThatNeedsASpanLooksAtSomeHeapsOnly;
var
  Servants: array[1..100] of TServant;
  Index: Integer;
begin
  for Index := Low(Servants) to High(Servants) do
  begin
    Servants[Index] := TServant.Create;
    Servants[Index].Call(GetOne);
  end;
  Process.ShelveNext := nil;
  Process.ShelveFrom := 1;
  ProcessSweep;
  AssertTrue('heaps are left', Process.ShelveNext <> nil);
  while Process.ShelveNext <> nil do
    ProcessSweep;
  AtLeast(2, Process.ShelveFrom, 'slices of the next look');
  for Index := Low(Servants) to High(Servants) do
    Servants[Index].Free;
end;

// The block after the one in use begins in its page, and ends in one that is purged, or in the same
// where pages are larger.
procedure TShelfTests.BlockInUseKeepsItsPage;
var
  Index: Integer;
  Kept: NativeUInt;
begin
  Kept := OsGranule;
  if Kept > AlignUp(UsedCount * BlockSize, OsPageSize) then
    Kept := AlignUp(UsedCount * BlockSize, OsPageSize); // what was carved
  FreeBlocks(0, 4);
  FreeBlocks(6, UsedCount - 1);
  Shelve;
  AtLeast(UsedCount * BlockSize div OsPageSize, BackedPages, 'pages of a span in use');
  ShelveOf(Span);
  Same(Kept div OsPageSize, BackedPages, 'pages');
  Same(1, SpanUsedCount(Span), 'blocks in use');
  for Index := 2 to SpanBlocks do
    Owner.Call(GetMore);
  AssertTrue('contents', HasPattern(Blocks[5], BlockSize, 5));
  Same(SpanBlocks, SpanUsedCount(Span), 'blocks in use after others');
  Same(0, Corruptions, 'reports');
end;

// The owner gets all blocks of the span once, and then one of another.
procedure TShelfTests.CheckMore;
var
  Index: Integer;
begin
  for Index := 1 to SpanBlocks do
  begin
    AssertFalse('blocks left', (MoreCount >= SpanBlocks) or SpanIsFull(Span));
    Owner.Call(GetMore);
    AssertTrue('of the span', ArenaSpan(More[MoreCount - 1]) = Span);
  end;
  AssertTrue('full', SpanIsFull(Span));
  for Index := 0 to SpanBlocks - 1 do
    AssertTrue('contents', HasPattern(More[Index], BlockSize, Index));
  Same(SpanBlocks, SpanUsedCount(Span), 'blocks in use');
  Same(0, Corruptions, 'reports');
end;

procedure TShelfTests.OwnerGetsEachBlockAgain;
begin
  ShelveAll;
  CheckMore;
end;

procedure TShelfTests.OwnersFreePutsThemOnTheFreeList;
begin
  FreeBlocks(0, UsedCount - 2);
  ShelveOf(Span);
  AssertTrue('shelved', RemoteIsShelved(Span));
  Owner.Call(FreeLast);
  AssertTrue('taken', RemoteIsEmpty(Span));
  CheckMore;
end;

procedure TShelfTests.SecondFreeByAnotherThreadFails;
begin
  Same(InvalidPointer, ErrorOfFree(ShelveAll), 'second free');
  CheckMore;
end;

procedure TShelfTests.SecondFreeByTheOwnerFails;
var
  Kept: PByte;
begin
  Kept := Blocks[0];
  FreeBlocks(0, UsedCount - 1);
  Shelve;
  Blocks[0] := Kept;
  Owner.Call(FreeFirst);
  Blocks[0] := nil;
  Same(InvalidPointer, Error, 'second free');
  CheckMore;
end;

procedure TShelfTests.OwnerTakesTheShelfWhereABlockIsOnItsListTwice;
var
  Second: PBlock;
begin
  Owner.Call(PutFirstTwice);
  Second := PBlock(Blocks[1]);
  Blocks[0] := nil;
  Blocks[1] := nil;
  FreeBlocks(2, UsedCount - 2);
  ShelveOf(Span);
  AssertTrue('shelved', RemoteIsShelved(Span));
  Owner.Call(FreeLast);
  AssertTrue('taken', RemoteIsEmpty(Span));
  Second^.Link := LinkOf(Span, EndOfList); // once from here on
  CheckMore;
end;

procedure TShelfTests.BlockThatWasWrittenToIsReportedAndLeftOut;
var
  Kept: PByte;
  Index: Integer;
begin
  Kept := ShelveAll;
  FillPattern(Kept, BlockSize, 1);
  for Index := 1 to SpanBlocks do
    Owner.Call(GetMore);
  Same(1, Corruptions, 'reports');
  for Index := 0 to SpanBlocks - 1 do
    AssertTrue('not handed out', More[Index] <> Kept);
end;

procedure TShelfTests.Repair;
begin
  SpanRepair(Span);
end;

procedure TShelfTests.BlockThatWasWrittenToBeforeIsReportedAndLeftOut;
var
  Kept: PByte;
  Index: Integer;
begin
  Kept := Blocks[3];
  FreeBlocks(0, UsedCount - 1);
  FillPattern(Kept, BlockSize, 1);
  Shelve;
  Same(1, Corruptions, 'reports');
  for Index := 4 to SpanBlocks do
    Owner.Call(GetMore);
  for Index := 0 to MoreCount - 1 do
    AssertTrue('not handed out', More[Index] <> Kept);
  Same(1, Corruptions, 'reports in the end');
  Owner.Call(Repair);
end;

var
  Filling: TPointers;

procedure FillAtCorruption(Corruption: TCorruption; Span: PSpan; Block: PBlock);
var
  Index: Integer;
begin
  Inc(Corruptions);
  for Index := 0 to High(Filling) do
    GetMem(Filling[Index], BlockSize);
end;

procedure TShelfTests.RoutineThatIsToldOfItMayFillTheSpan;
var
  Kept: PByte;
begin
  Kept := ShelveAll;
  FillPattern(Kept, BlockSize, 1);
  SetLength(Filling, SpanBlocks);
  Hooks.Corruption := FillAtCorruption;
  Owner.Call(GetMore);
  Same(1, Corruptions, 'reports');
  AssertTrue('from the span', ArenaSpan(More[0]) = Span);
  AssertTrue('contents', HasPattern(More[0], BlockSize, 0));
  FreeEach(Filling, 1);
end;

procedure TShelfTests.ShelvedBlocksAreFree;
var
  Block: TBlockInfo;
begin
  AssertFalse('a walk finds it', WalkFind(ShelveAll, Block));
  Same(0, SpanUsedCount(Span), 'blocks in use');
  Same(UsedCount, RemoteFreedCount(Span), 'blocks freed');
end;

procedure TShelfTests.SpanOfAThreadThatEndsIsReleased;
var
  Pages: NativeUInt;
begin
  Pages := Process.ShelvedPages;
  ShelveAll;
  AtLeast(Pages + 1, Process.ShelvedPages, 'shelved pages of all spans');
  Owner.Free;
  Owner := nil;
  ThreadsAbandonVacant(High(Cardinal));
  AssertTrue('released', Span^.Kind <> skBlocks);
  Same(Pages, Process.ShelvedPages, 'shelved pages of all spans, after it');
end;

// What the purge thread does when it looks.
procedure TShelfTests.SweepAsRequested;
var
  Heap: PHeap;
begin
  while Swap(Process.SweepWanted, 0) <> 0 do
  begin
    Heap := ThreadsFirstHeap;
    while Heap <> nil do
    begin
      HeapSweep(Heap);
      Heap := Heap^.NextHeap;
    end;
  end;
end;

// As when the owner took a block after the look at the counts. All that others freed is shelved.
procedure TShelfTests.RetireAll;
begin
  HeapRetireAll(OsThreadHeap);
end;

// Its owner does not come back to the span, and the last free may have been.
procedure TShelfTests.SpanThatIsLeftWithAShelfRequestsASweep;
begin
  FreeBlocks(0, UsedCount - 3); // whole pages
  ShelveOf(Span);
  Same(0, RemoteCount(Span), 'blocks on the list');
  StoreRelease(Process.SweepWanted, 0);
  Owner.Call(RetireAll);
  AssertTrue('left', OwnerOf(Span)^.Current[Span^.SizeClass] <> Span);
  Same(1, LoadAcquire(Process.SweepWanted), 'requests of a sweep');
end;

procedure TShelfTests.LastFreeIntoAnAbandonedSpanWithAShelfGivesItBack;
begin
  Owner.Call(FreeLastButOne);
  FreeBlocks(0, UsedCount - 3);
  ShelveOf(Span);
  Same(0, RemoteCount(Span), 'blocks on the list');
  Owner.Free;
  Owner := nil;
  ThreadsAbandonVacant(High(Cardinal));
  SweepAsRequested;
  AssertTrue('abandoned', OwnerOf(Span) = Process.Abandoned);
  AssertTrue('shelved', RemoteIsShelved(Span));
  FreeBlocks(UsedCount - 1, UsedCount - 1);
  SweepAsRequested;
  AssertTrue('released', Span^.Kind <> skBlocks);
end;

// Ends the shelving of Count blocks from First on, with none on the shelf.
procedure TShelfTests.PutBack(First: NativeUInt; Count: Cardinal);
var
  Last: PBlock;
  Left: Cardinal;
begin
  Last := PBlock(Span^.Start + First);
  for Left := 2 to Count do
    Last := PBlock(Span^.Start + LinkOf(Span, Last^.Link));
  RemoteShelveEnd(Span, First, Last, Count);
end;

procedure TShelfTests.ThreadThatStopsWhileItShelvesStopsNobody;
var
  First: NativeUInt;
  Count: Cardinal;
begin
  FreeBlocks(0, UsedCount - 3);
  First := RemoteShelve(Span, Count);
  Same(UsedCount - 2, Count, 'blocks to shelve');
  FreeBlocks(UsedCount - 2, UsedCount - 2);
  Owner.Call(GetMore);
  AssertTrue('another span serves', ArenaSpan(More[0]) <> Span);
  Same(UsedCount * BlockSize, Span^.CarvedBytes, 'carved bytes');
  Span^.Owner := PHeap(NativeUInt(OwnerOf(Span)) + AwaitsFree);
  Owner.Call(FreeLast);
  AssertTrue('the next free looks again', Span^.Owner <> OwnerOf(Span));
  AssertFalse('life ended', RemoteEndLife(Span));
  ShelveOf(Span);
  AssertFalse('empty', SpanIsEmpty(Span));
  PutBack(First, Count);
  Same(UsedCount - 1, RemoteCount(Span), 'blocks on the list');
  AssertTrue('empty after it', SpanIsEmpty(Span));
end;

procedure TShelfTests.ChildDropsWhatALostThreadWasShelving;
var
  First: NativeUInt;
  Count: Cardinal;
begin
  FreeBlocks(0, UsedCount - 2);
  First := RemoteShelve(Span, Count);
  Span^.ShelvedPages := 1;
  RemoteShelveRecover(Span);
  AssertTrue('no list', RemoteIsEmpty(Span));
  Same(UsedCount, SpanUsedCount(Span), 'blocks that count as used');
  Owner.Call(GetMore);
  AssertTrue('serves', ArenaSpan(More[0]) = Span);
  PutBack(First, Count);
end;

// As when the thread stopped between its look at the word and its look at the block.
procedure TShelfTests.PushThatReadTheWordBeforeFails;
var
  Kept: PBlock;
  Word: NativeUInt;
begin
  Kept := PBlock(Blocks[3]);
  FreeBlocks(0, UsedCount - 1);
  Word := RemoteWord(Span);
  Shelve;
  AssertTrue('refused', RemotePush(Span, Kept, Word, Kept^.Link) = rpNotInUse);
  Same(0, RemoteCount(Span), 'blocks on the list');
end;

// The owner passes blocks to a thread that checks and frees them, while a third one shelves.
procedure TShelfTests.PassBlocks;
var
  Index: Integer;
  Block: PByte;
begin
  for Index := 0 to PassCount - 1 do
  begin
    GetMem(Block, BlockSize);
    StoreRelease(Current, NativeUInt(ArenaSpan(Block)));
    FillPattern(Block, BlockSize, Index);
    if Index mod 7 = 0 then
    begin
      FreeMem(Block); // in a span that may have a shelf
      GetMem(Block, BlockSize);
      FillPattern(Block, BlockSize, Index);
    end;
    StoreRelease(Passed[Index], NativeUInt(Block));
  end;
end;

procedure TShelfTests.TakeBlocks;
var
  Index: Integer;
begin
  for Index := 0 to PassCount - 1 do
  begin
    while LoadAcquire(Passed[Index]) = 0 do
      ThreadSwitch;
    AssertTrue('contents', HasPattern(PByte(Passed[Index]), BlockSize, Index));
    FreeMem(Pointer(Passed[Index]));
  end;
end;

procedure TShelfTests.ShelveAgain;
var
  This: PSpan;
begin
  repeat
    This := PSpan(LoadAcquire(Current));
    if This <> nil then
      ShelveOf(This);
  until LoadAcquire(Passed[PassCount - 1]) <> 0;
end;

procedure TShelfTests.PlayRole;
var
  Role: NativeUInt;
begin
  Role := FetchAdd(Roles, 1);
  Line.Await;
  case Role of
    0: PassBlocks;
    1: TakeBlocks;
    2: ShelveAgain;
  end;
end;

procedure TShelfTests.ContentsStayWhileOthersShelve;
var
  Before: NativeUInt;
begin
  Before := UsedBytes;
  FillChar(Passed, SizeOf(Passed), 0);
  Roles := 0;
  Current := 0;
  Line.Start(3);
  InThreads(3, PlayRole);
  Same(Before, UsedBytes, 'bytes in use');
  Same(0, Corruptions, 'reports');
end;

initialization
  RegisterTest(TShelfTests);
end.
