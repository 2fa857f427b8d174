/// Tests of LaneMM.RemoteList, on a span record of their own.
unit Test.RemoteList;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types, LaneMM.RemoteList;

const
  BlockSize = 64;
  BlockCount = 1024;

type
  TRemoteListTests = class(TLaneTest)
  strict private
    Span: TSpan;
    Memory: PByte;
    Count: Cardinal; // of the blocks that were taken
    Taken: array[0..BlockCount - 1] of LongInt;
    Pushing: TAtomicWord;
    NextBlock: TAtomicWord;
    Winners: LongInt;
    Line: TStartLine;
    function BlockAt(Index: NativeUInt): PBlock;
    function Push(Block: PBlock): TRemotePush;
    procedure CountTaken(First: NativeUInt);
    procedure PushShare;
    procedure PushOne;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure PushedBlocksAreTakenNewestFirst;
    procedure TakeAllLeavesTheListEmpty;
    procedure TakeAllOfAnEmptyListIsTheEndOfTheList;
    procedure CountIsTheNumberOfPushes;
    procedure FirstAndLastPlaceOfALongSpanFit;
    procedure GiveUpNeedsAnEmptyList;
    procedure PushOnAGivenUpSpanHandsItOver;
    procedure SecondPushOnAGivenUpSpanIsOnTheList;
    procedure OneThreadOnlyWinsAGivenUpSpan;
    procedure ConcurrentPushesAreTakenOnceEach;
    procedure OneThreadOnlyFreesABlock;
    {$ifdef CPU64} procedure PushOfALifeThatEndedFails; {$endif}
    {$ifdef CPU64} procedure PushBetweenTwoLivesFails; {$endif}
    procedure LargeBlockIsFreedByOneThreadOnly;
  end;

implementation

uses
  testregistry, LaneMM.Atomic, LaneMM.Os;

const
  SpanSize = 16 * SliceSize;
  PusherCount = 3;
  RoundCount = 200;

procedure TRemoteListTests.SetUp;
begin
  FillChar(Span, SizeOf(Span), 0);
  Memory := OsReserve(SpanSize);
  OsCommit(Memory, SpanSize);
  Span.Start := Memory;
end;

procedure TRemoteListTests.TearDown;
begin
  OsRelease(Memory, SpanSize);
end;

function TRemoteListTests.BlockAt(Index: NativeUInt): PBlock;
begin
  Result := PBlock(Memory + Index * BlockSize);
end;

function TRemoteListTests.Push(Block: PBlock): TRemotePush;
begin
  Result := RemotePush(@Span, Block, RemoteWord(@Span), Block^.Link);
end;

procedure TRemoteListTests.PushedBlocksAreTakenNewestFirst;
var
  Index: Integer;
  First: NativeUInt;
begin
  for Index := 1 to 5 do
    Push(BlockAt(Index));
  First := RemoteTakeAll(@Span, Count);
  Same(5, Count, 'blocks');
  for Index := 5 downto 1 do
  begin
    AssertTrue('order', Memory + First = PByte(BlockAt(Index)));
    First := LinkOf(@Span, PBlock(Memory + First)^.Link);
  end;
  AssertTrue('end', First = EndOfList);
end;

procedure TRemoteListTests.TakeAllLeavesTheListEmpty;
begin
  Push(BlockAt(0));
  RemoteTakeAll(@Span, Count);
  Same(0, RemoteCount(@Span), 'blocks on the list');
  RemoteTakeAll(@Span, Count);
  Same(0, Count, 'blocks taken again');
end;

procedure TRemoteListTests.TakeAllOfAnEmptyListIsTheEndOfTheList;
begin
  AssertTrue('end', RemoteTakeAll(@Span, Count) = EndOfList);
  Same(0, Count, 'blocks');
end;

procedure TRemoteListTests.CountIsTheNumberOfPushes;
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
  begin
    Same(Index, RemoteCount(@Span), 'blocks');
    AssertTrue('pushed', Push(BlockAt(Index)) = rpPushed);
  end;
end;

procedure TRemoteListTests.FirstAndLastPlaceOfALongSpanFit;
var
  Last: PBlock;
begin
  Last := PBlock(Memory + SpanSize - BlockAlignment);
  Push(BlockAt(0));
  Push(Last);
  AssertTrue('last place', Memory + RemoteTakeAll(@Span, Count) = PByte(Last));
  Same(0, LinkOf(@Span, Last^.Link), 'first place');
end;

procedure TRemoteListTests.GiveUpNeedsAnEmptyList;
begin
  Push(BlockAt(0));
  AssertFalse('with a block', RemoteGiveUp(@Span));
  Same(1, RemoteCount(@Span), 'blocks on the list');
  RemoteTakeAll(@Span, Count);
  AssertTrue('empty', RemoteGiveUp(@Span));
  Same(0, RemoteCount(@Span), 'blocks of a given-up span');
end;

procedure TRemoteListTests.PushOnAGivenUpSpanHandsItOver;
begin
  RemoteGiveUp(@Span);
  AssertTrue('handed over', Push(BlockAt(0)) = rpSpanIsYours);
  Same(0, RemoteCount(@Span), 'the block stays in the hand');
end;

procedure TRemoteListTests.SecondPushOnAGivenUpSpanIsOnTheList;
begin
  RemoteGiveUp(@Span);
  Push(BlockAt(0));
  AssertTrue('pushed', Push(BlockAt(1)) = rpPushed);
  Same(1, RemoteCount(@Span), 'blocks on the list');
end;

procedure TRemoteListTests.PushOne;
var
  Index: NativeUInt;
begin
  Index := FetchAdd(NextBlock, 1);
  Line.Await;
  if Push(BlockAt(Index)) = rpSpanIsYours then
    InterlockedIncrement(Winners);
end;

procedure TRemoteListTests.OneThreadOnlyWinsAGivenUpSpan;
var
  Round: Integer;
begin
  for Round := 1 to RoundCount do
  begin
    Span.Remote := 0;
    RemoteGiveUp(@Span);
    Winners := 0;
    NextBlock := 0;
    Line.Start(PusherCount);
    InThreads(PusherCount, PushOne);
    Same(1, Winners, 'threads that won');
    Same(PusherCount - 1, RemoteCount(@Span), 'blocks on the list');
  end;
end;

procedure TRemoteListTests.PushShare;
var
  Index: NativeUInt;
begin
  Line.Await;
  repeat
    Index := FetchAdd(NextBlock, 1);
    if Index >= BlockCount then
      Break;
    Push(BlockAt(Index));
  until False;
  FetchAdd(Pushing, NativeUInt(-1));
end;

procedure TRemoteListTests.CountTaken(First: NativeUInt);
begin
  while not Odd(First) do
  begin
    Inc(Taken[First div BlockSize]);
    First := LinkOf(@Span, PBlock(Memory + First)^.Link);
    Dec(Count);
  end;
  Same(0, Integer(Count), 'count beside the length of the list');
end;

procedure TRemoteListTests.ConcurrentPushesAreTakenOnceEach;
var
  Workers: array[1..PusherCount] of TWorker;
  Round, Index: Integer;
  IsLast: Boolean;
begin
  for Round := 1 to RoundCount do
  begin
    FillChar(Taken, SizeOf(Taken), 0);
    NextBlock := 0;
    Pushing := PusherCount;
    Line.Start(PusherCount);
    for Index := 1 to PusherCount do
      Workers[Index] := TWorker.Create(PushShare, False);
    repeat
      IsLast := LoadAcquire(Pushing) = 0;
      CountTaken(RemoteTakeAll(@Span, Count));
    until IsLast;
    for Index := 1 to PusherCount do
      EndThread(Workers[Index]);
    for Index := 0 to BlockCount - 1 do
      Same(1, Taken[Index], 'times that a block was taken');
  end;
end;

procedure TRemoteListTests.OneThreadOnlyFreesABlock;
var
  Word, Seen: NativeUInt;
begin
  Word := RemoteWord(@Span);
  Seen := BlockAt(0)^.Link;
  AssertTrue('first', RemotePush(@Span, BlockAt(0), Word, Seen) = rpPushed);
  AssertTrue('second', RemotePush(@Span, BlockAt(0), Word, Seen) = rpNotInUse);
  Same(1, RemoteCount(@Span), 'blocks on the list');
end;

{$ifdef CPU64}
procedure TRemoteListTests.PushOfALifeThatEndedFails;
var
  Word: NativeUInt;
begin
  Word := RemoteWord(@Span);
  RemoteEndLife(@Span);
  RemoteStartLife(@Span);
  AssertTrue('refused', RemotePush(@Span, BlockAt(0), Word, BlockAt(0)^.Link) = rpNotInUse);
  Same(0, RemoteCount(@Span), 'blocks on the list');
end;

procedure TRemoteListTests.PushBetweenTwoLivesFails;
var
  Word: NativeUInt;
begin
  RemoteEndLife(@Span);
  Word := RemoteWord(@Span);
  RemoteStartLife(@Span);
  AssertTrue('refused', RemotePush(@Span, BlockAt(0), Word, BlockAt(0)^.Link) = rpNotInUse);
  Same(0, RemoteCount(@Span), 'blocks on the list');
end;
{$endif}

procedure TRemoteListTests.LargeBlockIsFreedByOneThreadOnly;
var
  Word: NativeUInt;
begin
  RemoteGiveUp(@Span);
  Word := RemoteWord(@Span);
  AssertTrue('first', RemoteTryEndLife(@Span, Word));
  AssertFalse('at the same moment', RemoteTryEndLife(@Span, Word));
  AssertFalse('later', RemoteTryEndLife(@Span, RemoteWord(@Span)));
end;

initialization
  RegisterTest(TRemoteListTests);
end.
