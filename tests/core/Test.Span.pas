/// Tests of LaneMM.Span, on a span record and memory of their own.
unit Test.Span;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

const
  MostSlices = 32;

type
  TSpanTests = class(TLaneTest)
  strict private
    Records: array[0..MostSlices - 1] of TSpan;
    Memory: PByte;
    Span: PSpan;
    procedure Format(SizeClass: Cardinal);
    procedure Push(Block: PBlock);
    function TakeOrRefill: PBlock;
    function TakeAll: Integer;
    procedure CheckProducts;
    procedure CheckStarts(SizeClass: Cardinal);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure FreshSpanHasNoBlockToGiveBeforeARefill;
    procedure EveryClassGivesAllBlocksThatFit;
    procedure FreshBlocksComeInTheOrderOfAddress;
    procedure RefillOfAFullSpanFails;
    procedure FirstRefillLeavesMostOfTheSpanUntouched;
    procedure LastPutIsTakenFirst;
    procedure PutTellsTheLastBlock;
    procedure RefillTakesWhatOthersFreed;
    procedure FullMeansThatNothingIsLeftToGive;
    procedure EmptyCountsWhatOthersFreed;
    procedure BlockIsValidAtItsStartOnly;
    procedure BlockBeyondTheCarvedOnesIsNotValid;
    procedure ProductLimitSaysWhereBlocksBegin;
    procedure EachLifeHasAnotherKey;
    procedure FreeBlockLooksFree;
    procedure BlockHandedOutLooksInUse;
    procedure NastyFirstWordsLookInUse;
    procedure ListKnowsItsBlocks;
    procedure InnerRecordsLeadToTheFirst;
    {$ifdef LANEMM_YIELD}
    procedure SpanThatIsCollectedMeanwhileIsNotEmpty;
    {$endif}
    procedure FreshSpanHasNothingOfItsFormerLife;
    procedure CollectTakesWhatOthersFreed;
    procedure OverwrittenLinkEndsACollectedList;
    procedure EachBlockIsLookedAtWhereOthersFreed;
  end;

implementation

uses
  SysUtils, Math, testregistry, LaneMM.Layout, LaneMM.Hooks, LaneMM.Os, LaneMM.SizeClasses,
  LaneMM.RemoteList, LaneMM.Span;

const
  SmallClass = 2;

procedure TSpanTests.SetUp;
begin
  Memory := OsReserve(MostSlices * SliceSize);
  OsCommit(Memory, MostSlices * SliceSize);
  Span := @Records[0];
  Format(SmallClass);
end;

procedure TSpanTests.TearDown;
begin
  OsRelease(Memory, MostSlices * SliceSize);
end;

procedure TSpanTests.Format(SizeClass: Cardinal);
begin
  FillChar(Records, SizeOf(Records), 0);
  Span^.Start := Memory;
  Span^.SliceCount := Process.ClassSlices[SizeClass];
  AtMost(MostSlices, Span^.SliceCount, 'slices of a span');
  SpanFormat(Span, SizeClass, Process.Abandoned);
end;

procedure TSpanTests.Push(Block: PBlock);
begin
  RemotePush(Span, Block, RemoteWord(Span), Block^.Link);
end;

function TSpanTests.TakeOrRefill: PBlock;
begin
  Result := SpanTake(Span);
  if (Result = nil) and SpanRefill(Span) then
    Result := SpanTake(Span);
end;

function TSpanTests.TakeAll: Integer;
begin
  Result := 0;
  while TakeOrRefill <> nil do
    Inc(Result);
end;

procedure TSpanTests.FreshSpanHasNoBlockToGiveBeforeARefill;
begin
  AssertTrue('nil', SpanTake(Span) = nil);
  AssertTrue('refilled', SpanRefill(Span));
  AssertTrue('a block', SpanTake(Span) <> nil);
end;

procedure TSpanTests.EveryClassGivesAllBlocksThatFit;
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Format(SizeClass);
    Same(ClassToSize(SizeClass), Span^.BlockSize, 'block size');
    Same(Min(Span^.SliceCount * SliceSize div Span^.BlockSize, MostSpanBlocks), TakeAll, 'blocks');
  end;
end;

procedure TSpanTests.FreshBlocksComeInTheOrderOfAddress;
var
  SizeClass: Cardinal;
  Expected: PByte;
  Block: PBlock;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Format(SizeClass);
    Expected := Memory;
    Block := TakeOrRefill;
    while Block <> nil do
    begin
      AssertTrue('address', PByte(Block) = Expected);
      Inc(Expected, Span^.BlockSize);
      Block := TakeOrRefill;
    end;
  end;
end;

procedure TSpanTests.RefillOfAFullSpanFails;
begin
  TakeAll;
  AssertFalse('refilled', SpanRefill(Span));
end;

procedure TSpanTests.FirstRefillLeavesMostOfTheSpanUntouched;
begin
  SpanRefill(Span);
  AssertTrue('untouched', IsZero(Memory + SliceSize div 2, SliceSize div 2));
end;

procedure TSpanTests.LastPutIsTakenFirst;
var
  First, Second: PBlock;
begin
  First := TakeOrRefill;
  Second := TakeOrRefill;
  SpanPut(Span, First);
  SpanPut(Span, Second);
  AssertTrue('last', SpanTake(Span) = Second);
  AssertTrue('first', SpanTake(Span) = First);
end;

procedure TSpanTests.PutTellsTheLastBlock;
var
  First, Second: PBlock;
begin
  First := TakeOrRefill;
  Second := TakeOrRefill;
  AssertFalse('one is left', SpanPut(Span, First));
  AssertTrue('none is left', SpanPut(Span, Second));
end;

procedure TSpanTests.RefillTakesWhatOthersFreed;
var
  Count: Integer;
begin
  Count := TakeAll;
  Push(PBlock(Memory));
  Push(PBlock(Memory + Span^.BlockSize));
  AssertTrue('refilled', SpanRefill(Span));
  Same(2, TakeAll, 'blocks');
  Same(Count, Span^.Used, 'blocks in use');
end;

procedure TSpanTests.FullMeansThatNothingIsLeftToGive;
begin
  AssertFalse('fresh', SpanIsFull(Span));
  TakeAll;
  AssertTrue('all are taken', SpanIsFull(Span));
  Push(PBlock(Memory));
  AssertFalse('one was freed by another thread', SpanIsFull(Span));
  SpanRefill(Span);
  AssertFalse('one is on the list', SpanIsFull(Span));
end;

procedure TSpanTests.EmptyCountsWhatOthersFreed;
var
  First, Second: PBlock;
begin
  First := TakeOrRefill;
  Second := TakeOrRefill;
  Push(First);
  AssertFalse('one is in use', SpanIsEmpty(Span));
  SpanPut(Span, Second);
  AssertTrue('none is in use', SpanIsEmpty(Span));
end;

procedure TSpanTests.CheckStarts(SizeClass: Cardinal);
var
  Offset, Size: NativeUInt;
  Wrong: Integer;
begin
  Format(SizeClass);
  TakeAll;
  Wrong := 0;
  Size := Min(Span^.SliceCount * SliceSize div Span^.BlockSize, MostSpanBlocks) * Span^.BlockSize;
  Offset := 0;
  while Offset < Span^.SliceCount * SliceSize + SliceSize do
  begin
    if SpanBlockIsValid(Span, Memory + Offset)
      <> ((Offset mod Span^.BlockSize = 0) and (Offset < Size)) then
      Inc(Wrong);
    Inc(Offset, 8);
  end;
  Same(0, Wrong, 'wrong answers');
end;

procedure TSpanTests.BlockIsValidAtItsStartOnly;
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
    CheckStarts(SizeClass);
  Format(SmallClass);
  TakeAll;
  AssertFalse('before the span', SpanBlockIsValid(Span, Memory - Span^.BlockSize));
  AssertFalse('nil', SpanBlockIsValid(Span, nil));
  AssertFalse('odd', SpanBlockIsValid(Span, Memory + 1));
end;

procedure TSpanTests.BlockBeyondTheCarvedOnesIsNotValid;
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Format(SizeClass);
    AssertFalse('no block yet', SpanBlockIsValid(Span, Memory));
    SpanRefill(Span);
    AssertTrue('the first', SpanBlockIsValid(Span, Memory));
    AssertFalse('the one after the carved ones',
      SpanBlockIsValid(Span, Memory + Span^.CarvedBytes));
  end;
end;

procedure TSpanTests.CheckProducts;
var
  Offset: NativeUInt;
  Wrong: Cardinal;
begin
  Wrong := 0;
  for Offset := 0 to Span^.SliceCount * SliceSize - 1 do
    Inc(Wrong, Ord((UInt64(Offset) * Span^.DivideMagic < Span^.ProductLimit)
      <> (Offset mod Span^.BlockSize = 0) and (Offset < Span^.CarvedBytes)));
  Same(0, Wrong, 'offsets that the product judges wrongly, class ' + IntToStr(Span^.SizeClass));
end;

procedure TSpanTests.ProductLimitSaysWhereBlocksBegin;
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
  begin
    Format(SizeClass);
    CheckProducts;
    SpanRefill(Span);
    CheckProducts;
    TakeAll;
    CheckProducts;
  end;
end;

procedure TSpanTests.EachLifeHasAnotherKey;
var
  Life: Integer;
  Last: NativeUInt;
begin
  for Life := 1 to 100 do
  begin
    Last := Span^.LinkKey;
    SpanFormat(Span, SmallClass, Process.Abandoned);
    AssertTrue('another key', Last <> Span^.LinkKey);
    AssertFalse('nil', WordMayBeLink(Span, 0));
    AssertFalse('handed out', WordMayBeLink(Span, HandedOut));
    AssertFalse('an address', WordMayBeLink(Span, NativeUInt(Memory)));
    Same(6, Span^.LinkKey and 15, 'last bits');
  end;
end;

procedure TSpanTests.FreeBlockLooksFree;
var
  First, Second, Third: PBlock;
begin
  First := TakeOrRefill;
  Second := TakeOrRefill;
  Third := TakeOrRefill;
  SpanPut(Span, First);
  AssertTrue('freed by the owner', BlockLooksFree(Span, First));
  Push(Second);
  AssertTrue('freed by others, the end of the list', BlockLooksFree(Span, Second));
  Push(Third);
  AssertTrue('freed by others', BlockLooksFree(Span, Third));
end;

procedure TSpanTests.BlockHandedOutLooksInUse;
var
  Block: PBlock;
begin
  Block := TakeOrRefill;
  SpanPut(Span, Block);
  Block := TakeOrRefill;
  AssertFalse('never written', BlockLooksFree(Span, Block));
end;

procedure TSpanTests.NastyFirstWordsLookInUse;
var
  Block: PNativeUInt;
  Neighbour: NativeUInt;
begin
  Block := PNativeUInt(TakeOrRefill);
  Neighbour := NativeUInt(Block) + Span^.BlockSize;
  Block^ := 0;
  AssertFalse('zero', BlockLooksFree(Span, PBlock(Block)));
  Block^ := High(NativeUInt);
  AssertFalse('all ones', BlockLooksFree(Span, PBlock(Block)));
  Block^ := NativeUInt(Block);
  AssertFalse('its own address', BlockLooksFree(Span, PBlock(Block)));
  Block^ := not NativeUInt(Block);
  AssertFalse('its own address, inverted', BlockLooksFree(Span, PBlock(Block)));
  Block^ := Neighbour;
  AssertFalse('address of a neighbour', BlockLooksFree(Span, PBlock(Block)));
  Block^ := not Neighbour;
  AssertFalse('address of a neighbour, inverted', BlockLooksFree(Span, PBlock(Block)));
  Block^ := not EndOfList;
  AssertFalse('end of the list, inverted', BlockLooksFree(Span, PBlock(Block)));
  Block^ := LinkOf(Span, Span^.BlockSize + 8);
  AssertFalse('link to the middle of a block', BlockLooksFree(Span, PBlock(Block)));
end;

procedure TSpanTests.ListKnowsItsBlocks;
var
  First, Second: PBlock;
begin
  First := TakeOrRefill;
  Second := TakeOrRefill;
  AssertFalse('in use', SpanHasFreeBlock(Span, First));
  SpanPut(Span, First);
  SpanPut(Span, Second);
  AssertTrue('free, at the front', SpanHasFreeBlock(Span, Second));
  AssertTrue('free, behind', SpanHasFreeBlock(Span, First));
  SpanTake(Span);
  AssertFalse('in use again', SpanHasFreeBlock(Span, Second));
end;

procedure TSpanTests.InnerRecordsLeadToTheFirst;
var
  Index: Integer;
begin
  Format(SizeClassCount - 1);
  Same(Ord(skBlocks), Ord(Span^.Kind), 'kind of the first');
  for Index := 1 to Span^.SliceCount - 1 do
  begin
    Same(Ord(skInner), Ord(Records[Index].Kind), 'kind');
    Same(Index, Records[Index].Distance, 'distance');
  end;
end;

{$ifdef LANEMM_YIELD}
var
  CollectedSpan: PSpan;
  PlacesLeft: Integer;

// The owner's step, at a place where the sweeping thread may have to wait.
procedure CollectAtPlace;
begin
  Dec(PlacesLeft);
  if PlacesLeft = 0 then
    SpanCollect(CollectedSpan);
end;

// Two blocks are in use, others freed two: a count of the list from before the owner collects it
// equals a count of the blocks from after that.
procedure TSpanTests.SpanThatIsCollectedMeanwhileIsNotEmpty;
const
  MostPlaces = 6;
var
  Place, Index: Integer;
  Blocks: array[1..4] of PBlock;
  Kept: TPlainProcedure;
begin
  Kept := Hooks.Yield;
  for Place := 1 to MostPlaces do
  begin
    Format(SmallClass);
    for Index := 1 to High(Blocks) do
      Blocks[Index] := TakeOrRefill;
    Push(Blocks[1]);
    Push(Blocks[2]);
    CollectedSpan := Span;
    PlacesLeft := Place;
    Hooks.Yield := CollectAtPlace;
    Index := Ord(SpanIsEmpty(Span));
    Hooks.Yield := Kept;
    Same(0, Index, 'empty');
  end;
end;
{$endif}

procedure TSpanTests.FreshSpanHasNothingOfItsFormerLife;
begin
  Span^.Remote := LifeStep * 3 + LifeStep div 2 + 3; // as a thread lost in a fork may leave it
  Span^.IsShared := True;
  SpanFormat(Span, SmallClass, Process.Abandoned);
  Same(0, RemoteCount(Span), 'blocks that others freed');
  AssertTrue('refilled', SpanRefill(Span));
  AssertFalse('shared', Span^.IsShared);
end;

procedure TSpanTests.CollectTakesWhatOthersFreed;
var
  Count: Integer;
begin
  Count := TakeAll;
  Push(PBlock(Memory));
  Push(PBlock(Memory + Span^.BlockSize));
  SpanCollect(Span);
  Same(Count - 2, Span^.Used, 'blocks in use');
  AssertTrue('shared', Span^.IsShared);
  Same(2, TakeAll, 'blocks');
end;

procedure TSpanTests.OverwrittenLinkEndsACollectedList;
var
  Count: Integer;
begin
  Count := TakeAll;
  Push(PBlock(Memory));
  Push(PBlock(Memory + Span^.BlockSize));
  Push(PBlock(Memory + Span^.BlockSize * 2));
  PBlock(Memory + Span^.BlockSize)^.Link := 0;
  AssertTrue('which is damaged', SpanCollect(Span) = PBlock(Memory + Span^.BlockSize));
  Same(Count - 1, Span^.Used, 'blocks in use: the rest of the list is lost');
  Same(1, TakeAll, 'blocks');
end;

procedure TSpanTests.EachBlockIsLookedAtWhereOthersFreed;
var
  First, Second: PBlock;
  IsFirst: Boolean;
begin
  for IsFirst in Boolean do
  begin
    Format(SmallClass);
    First := TakeOrRefill;
    Second := TakeOrRefill;
    AssertTrue('without another thread none is', SpanUncountedBlock(Span) = nil);
    if IsFirst then
      Push(Second)
    else
      Push(First);
    AssertFalse('one looks used', SpanUncountedBlock(Span) = nil);
    if IsFirst then
    begin
      AssertTrue('the first', SpanUncountedBlock(Span) = First);
      SpanPut(Span, First);
    end
    else
    begin
      AssertTrue('the second', SpanUncountedBlock(Span) = Second);
      SpanPut(Span, Second);
    end;
    AssertTrue('all look free', SpanUncountedBlock(Span) = nil);
  end;
end;

initialization
  RegisterTest(TSpanTests);
end.
