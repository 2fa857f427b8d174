/// Tests of LaneMM.Large.
unit Test.Large;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Types;

type
  TLargeTests = class(TQuietTest)
  strict private
    Copied: NativeUInt; // by the last move
    function Get(Size: NativeUInt): PSpan;
    procedure MoveAndCheck(Size, NewSize: NativeUInt);
    function GetUntouched: PByte;
    function UseBlocks(Count: Integer; Step: NativeUInt; Value: Byte = 1): Integer;
    procedure ForgetDensity(HugeFrom: NativeUInt);
  protected
    procedure TearDown; override;
  published
    procedure BlockStartsASlice;
    procedure MoreThanThereIsGivesNil;
    procedure GrowNeverMovesAndKeepsTheContents;
    procedure GrowWithinTheLastSliceAlwaysWorks;
    procedure GrowBeyondAllMemoryFails;
    procedure ShrinkKeepsPlaceAndContents;
    procedure ShrinkFreesWholeSlices;
    procedure MoveKeepsTheContents;
    procedure MoveTakesLittleRoomWhereAddressesAreScarce;
    procedure MoveTakesNoRoomThatTheSystemChargesFor;
    procedure MoveToMoreThanThereIsChangesNothing;
    procedure MovedBlockCanBeMovedFreedAndUsedAgain;
    procedure ShrinkByOneSliceFreesIt;
    procedure BlockGrowsInPlaceAsFarAsItCan;
    procedure SpareSlicesOfAFreedBlockAreCold;
    procedure BlockHoldsNoLinkOfAFormerSpan;
    procedure BlocksUsedDenselyGetHugePages;
    procedure BlocksUsedSparselyGetNoHugePages;
    procedure BlocksThatBecomeSparseLoseHugePages;
    procedure BlocksThatAreFilledLateCountAsDense;
    procedure BlockThatIsNeverFilledGivesWayToOthers;
    procedure BlocksFilledWithZerosGetHugePages;
    procedure UntouchedZerosOfAllocMemCountAsSparse;
    procedure NewBlocksAreMeasuredBesideAnUnfilledOne;
    {$ifdef LINUX}
    procedure DenseBlockBeginsAtAHugePageAndLeavesItsRestWarm;
    procedure RestOfAShortenedBlockIsNotBackedByHugePages;
    {$endif}
    procedure GrowthBesideMoreWarmMemoryThanIsInUseTakesNoMore;
  end;

implementation

uses
  testregistry, Test.System, LaneMM.Layout, LaneMM.Os, LaneMM.Arena, LaneMM.Shards,
  LaneMM.Span, LaneMM.Backed, LaneMM.Large, LaneMM.Purge;

const
  Megabyte = NativeUInt(1) shl 20;
  // Steps of UseBlocks: every page, every second one.
  Dense = OsPageSize;
  Sparse = OsPageSize * 2;

procedure TLargeTests.TearDown;
begin
  ForgetDensity(0);
  inherited TearDown; // restores HugeFrom
end;

function TLargeTests.Get(Size: NativeUInt): PSpan;
begin
  Result := LargeGet(Size);
  AssertTrue('got', Result <> nil);
end;

procedure TLargeTests.BlockStartsASlice;
var
  Span: PSpan;
begin
  Span := Get(100000);
  Same(0, NativeUInt(Span^.Start) mod SliceSize, 'start modulo a slice');
  LargeFree(Span);
end;

procedure TLargeTests.MoreThanThereIsGivesNil;
var
  {$ifdef CPU64} Log2: Integer; {$endif}
  Distance: NativeUInt;
begin
  {$ifdef CPU64}
  for Log2 := 48 to 63 do
    AssertTrue('a power of two', LargeGet(NativeUInt(1) shl Log2) = nil);
  {$endif}
  AssertTrue('impossible', LargeGet(Impossible) = nil);
  for Distance := 0 to 3 * SliceSize do
    AssertTrue('close to the top', LargeGet(High(NativeUInt) - Distance) = nil);
end;

procedure TLargeTests.GrowNeverMovesAndKeepsTheContents;
var
  Span, Rest: PSpan;
  Start: PByte;
begin
  // Two neighbours; the second is freed, so the first can grow.
  Span := Get(10 * Megabyte);
  Start := Span^.Start;
  LargeShrink(Span, Megabyte);
  Rest := Get(Megabyte);
  LargeFree(Rest);
  FillPattern(Start, Megabyte, 1);
  if LargeGrow(Span, 5 * Megabyte) then
  begin
    AtLeast(5 * Megabyte, Span^.BlockSize, 'usable');
    FillPattern(Start + Megabyte, 4 * Megabyte, 2);
    AssertTrue('new part', HasPattern(Start + Megabyte, 4 * Megabyte, 2));
  end;
  AssertTrue('start', Span^.Start = Start);
  AssertTrue('contents', HasPattern(Start, Megabyte, 1));
  LargeFree(Span);
end;

procedure TLargeTests.GrowWithinTheLastSliceAlwaysWorks;
var
  Span: PSpan;
begin
  Span := Get(SliceSize + 1);
  AssertTrue('grown', LargeGrow(Span, 2 * SliceSize));
  Same(2 * SliceSize, Span^.BlockSize, 'usable');
  LargeFree(Span);
end;

procedure TLargeTests.GrowBeyondAllMemoryFails;
var
  Span: PSpan;
begin
  Span := Get(Megabyte);
  AssertFalse('impossible', LargeGrow(Span, Impossible));
  AssertFalse('the top', LargeGrow(Span, High(NativeUInt)));
  Same(Megabyte, Span^.BlockSize, 'usable');
  LargeFree(Span);
end;

procedure TLargeTests.ShrinkKeepsPlaceAndContents;
var
  Span: PSpan;
  Start: PByte;
begin
  Span := Get(5 * Megabyte);
  Start := Span^.Start;
  FillPattern(Start, Megabyte, 1);
  LargeShrink(Span, Megabyte);
  AssertTrue('start', Span^.Start = Start);
  Same(Megabyte, Span^.BlockSize, 'usable');
  AssertTrue('contents', HasPattern(Start, Megabyte, 1));
  LargeFree(Span);
end;

procedure TLargeTests.ShrinkFreesWholeSlices;
var
  Span, Rest: PSpan;
begin
  Span := Get(500 * SliceSize);
  LargeShrink(Span, 100 * SliceSize);
  Same(100, Span^.SliceCount, 'slices');
  Rest := ArenaSpan(Span^.Start + 100 * SliceSize);
  AssertTrue('the rest is not in use', not (Rest^.Kind in [skBlocks, skLarge, skInner]));
  AssertTrue('the rest can be had', LargeGrow(Span, 500 * SliceSize));
  LargeFree(Span);
end;

procedure TLargeTests.MoveAndCheck(Size, NewSize: NativeUInt);
var
  Source, Target: PSpan;
begin
  Source := Get(Size);
  Size := Source^.BlockSize;
  FillPattern(Source^.Start, Size, 1);
  Target := LargeMove(Source, NewSize, Copied);
  AssertTrue('moved', Target <> nil);
  AtLeast(NewSize, Target^.BlockSize, 'usable');
  AtMost(Size, Copied, 'bytes copied');
  AssertTrue('contents', HasPattern(Target^.Start, Size, 1));
  LargeFree(Target);
end;

procedure TLargeTests.MoveKeepsTheContents;
begin
  MoveAndCheck(70 * 1024, 200 * 1024);
  MoveAndCheck(255 * 1024, 300 * 1024);
  MoveAndCheck(256 * 1024, 257 * 1024);
  MoveAndCheck(Megabyte, Megabyte);
  MoveAndCheck(3 * Megabyte, 20 * Megabyte);
end;

procedure TLargeTests.MoveTakesLittleRoomWhereAddressesAreScarce;
var
  Span: PSpan;
begin
  Process.SavingFrom := 0;
  Span := LargeMove(Get(5 * Megabyte), 6 * Megabyte, Copied);
  AssertTrue('moved', Span <> nil);
  Same(6 * Megabyte div SliceSize * SavingGrowthFactor, Span^.SliceCount, 'slices');
  LargeFree(Span);
end;

procedure TLargeTests.MoveTakesNoRoomThatTheSystemChargesFor;
var
  Spans: array[0..1] of PSpan;
  Index: Integer;
begin
  Process.HasSpare := False;
  Spans[0] := LargeMove(Get(5 * Megabyte), 6 * Megabyte, Copied);
  Spans[1] := LargeMove(Get(Megabyte), 6 * Megabyte, Copied);
  for Index := 0 to 1 do
  begin
    Same(6 * Megabyte div SliceSize, Spans[Index]^.SliceCount, 'slices');
    LargeFree(Spans[Index]);
  end;
end;

procedure TLargeTests.MoveToMoreThanThereIsChangesNothing;
var
  Span: PSpan;
begin
  Span := Get(Megabyte);
  FillPattern(Span^.Start, Megabyte, 1);
  AssertTrue('nil', LargeMove(Span, Impossible, Copied) = nil);
  Same(0, Copied, 'bytes copied');
  AssertTrue('contents', HasPattern(Span^.Start, Megabyte, 1));
  LargeFree(Span);
end;

procedure TLargeTests.MovedBlockCanBeMovedFreedAndUsedAgain;
var
  Span: PSpan;
  Round: Integer;
begin
  Span := Get(Megabyte);
  FillPattern(Span^.Start, Megabyte, 1);
  for Round := 2 to 20 do
  begin
    Span := LargeMove(Span, Round * Megabyte, Copied);
    AssertTrue('contents', HasPattern(Span^.Start, Megabyte, 1));
    FillPattern(Span^.Start + (Round - 1) * Megabyte, Megabyte, Round);
    if Round mod 5 = 0 then
      LargeShrink(Span, Round * Megabyte - Megabyte div 2);
  end;
  LargeFree(Span);
  AssertTrue('heap works', HeapWorks);
end;

procedure TLargeTests.BlockHoldsNoLinkOfAFormerSpan;
var
  Blocks: TPointers;
  Large: array[0..19] of PSpan;
  Index: Integer;
begin
  SetLength(Blocks, 20000);
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], 200);
  FreeEach(Blocks, 1);
  for Index := 0 to High(Large) do
  begin
    Large[Index] := Get(SliceSize);
    AssertFalse('a link', WordMayBeLink(Large[Index], PBlock(Large[Index]^.Start)^.Link));
  end;
  for Index := 0 to High(Large) do
    LargeFree(Large[Index]);
end;

procedure TLargeTests.ShrinkByOneSliceFreesIt;
var
  Span: PSpan;
begin
  Span := Get(2 * SliceSize);
  LargeShrink(Span, SliceSize);
  Same(1, Span^.SliceCount, 'slices');
  LargeFree(Span);
end;

// Four slices are free behind the block, fewer than its next resizes would like.
procedure TLargeTests.BlockGrowsInPlaceAsFarAsItCan;
var
  Span, Gap, Wall: PSpan;
  P: Pointer;
begin
  Span := Get(30 * SliceSize);
  Gap := ShardsSplit(Span, 20);
  Wall := ShardsSplit(Gap, 4);
  Span^.BlockSize := 20 * SliceSize;
  ShardsRelease(Gap);
  P := Span^.Start;
  ReallocMem(P, 20 * SliceSize + 1);
  AssertTrue('in place', P = Span^.Start);
  Same(24 * SliceSize, MemSize(P), 'usable bytes');
  FreeMem(P);
  ShardsRelease(Wall);
end;

procedure TLargeTests.SpareSlicesOfAFreedBlockAreCold;
var
  Span: PSpan;
  Before, Used: NativeUInt;
begin
  Span := LargeMove(Get(Megabyte), 5 * Megabyte, Copied);
  AssertFalse('moved', ltMoved in Span^.Traits);
  AtLeast(1, Span^.SpareCount, 'spare slices');
  Used := Span^.SliceCount - Span^.SpareCount;
  Before := ShardsWarmSlices;
  LargeFree(Span);
  AtMost(Before + Used, ShardsWarmSlices, 'warm slices');
end;

procedure TLargeTests.ForgetDensity(HugeFrom: NativeUInt);
begin
  Process.HugeFrom := HugeFrom;
  Process.LargeDensity := 0;
  Process.LargeProbe := nil;
  Process.LargeLooks := 0;
end;

// Allocates a block of 6 MB without a page, also where a test has read free memory.
function TLargeTests.GetUntouched: PByte;
begin
  Result := GetMem(6 * Megabyte);
  AssertTrue('purged', OsPurge(Result, 6 * Megabyte) and OsUse(Result, 6 * Megabyte));
end;

// Allocates a block of 6 MB, writes Value in each Step bytes and frees it, again and again. Returns
// how many of the blocks got huge pages.
function TLargeTests.UseBlocks(Count: Integer; Step: NativeUInt; Value: Byte): Integer;
var
  P: PByte;
  Offset: NativeUInt;
begin
  Result := 0;
  for Count := Count downto 1 do
  begin
    ShardsPurge(AllSlices);
    P := GetUntouched;
    Offset := 0;
    while Offset < 6 * Megabyte do
    begin
      P[Offset] := Value;
      Inc(Offset, Step);
    end;
    Inc(Result, Ord(ArenaSpan(P)^.IsHuge));
    FreeMem(P);
  end;
end;

procedure TLargeTests.BlocksUsedDenselyGetHugePages;
begin
  ForgetDensity(1);
  Same(0, UseBlocks(3, Dense), 'of three blocks');
  Same(5, UseBlocks(5, Dense), 'of five more');
end;

procedure TLargeTests.BlocksUsedSparselyGetNoHugePages;
begin
  ForgetDensity(1);
  Same(0, UseBlocks(20, Sparse), 'of twenty blocks');
end;

procedure TLargeTests.BlocksThatBecomeSparseLoseHugePages;
begin
  ForgetDensity(1);
  UseBlocks(6, Dense);
  UseBlocks(20, Sparse);
  Same(0, UseBlocks(20, Sparse), 'of the last twenty blocks');
end;

// As a thread that was stopped before it could fill its block, while another thread takes one.
procedure TLargeTests.BlocksThatAreFilledLateCountAsDense;
var
  P, Other: PByte;
  Turn: Integer;
begin
  ForgetDensity(1);
  UseBlocks(1, Sparse); // from then on the probe alone counts
  for Turn := 1 to 4 do
  begin
    ShardsPurge(AllSlices);
    P := GetUntouched;
    Other := AllocMem(6 * Megabyte);
    FillChar(P^, 6 * Megabyte, 1);
    FreeMem(P);
    FreeMem(Other);
  end;
  Same(1, UseBlocks(1, Dense), 'of the next blocks');
end;

procedure TLargeTests.BlockThatIsNeverFilledGivesWayToOthers;
var
  P: PByte;
begin
  ForgetDensity(1);
  ShardsPurge(AllSlices);
  P := GetUntouched;
  UseBlocks(25, Dense);
  Same(3, UseBlocks(3, Dense), 'of the last three blocks');
  FreeMem(P);
end;

procedure TLargeTests.BlocksFilledWithZerosGetHugePages;
begin
  ForgetDensity(1);
  UseBlocks(3, Dense, 0);
  Same(5, UseBlocks(5, Dense, 0), 'of five more');
end;

procedure TLargeTests.UntouchedZerosOfAllocMemCountAsSparse;
var
  Turn: Integer;
begin
  ForgetDensity(1);
  for Turn := 1 to 3 do
  begin
    ShardsPurge(AllSlices);
    FreeMem(AllocMem(6 * Megabyte));
  end;
  Same(0, UseBlocks(1, Dense), 'of the next blocks');
end;

procedure TLargeTests.NewBlocksAreMeasuredBesideAnUnfilledOne;
var
  P: PByte;
begin
  ForgetDensity(1);
  ShardsPurge(AllSlices);
  P := GetUntouched;
  UseBlocks(3, Dense);
  Same(1, UseBlocks(1, Dense), 'of the next blocks');
  FreeMem(P);
end;

{$ifdef LINUX}
procedure TLargeTests.DenseBlockBeginsAtAHugePageAndLeavesItsRestWarm;
const
  RestSlices = 11;
var
  Warm: NativeUInt;
  Span: PSpan;
begin
  ForgetDensity(1);
  UseBlocks(3, Dense);
  ShardsPurge(AllSlices);
  Warm := ShardsWarmSlices;
  Span := Get((3 * HugeSlices - RestSlices) * SliceSize);
  Same(RestSlices, ShardsWarmSlices - Warm, 'warm slices');
  Same(0, NativeUInt(Span^.Start) mod (HugeSlices * SliceSize), 'start modulo a huge page');
  AssertTrue('claims zeros', Span^.IsZero);
  AssertTrue('zeros', IsZero(Span^.Start, Span^.BlockSize));
  LargeFree(Span);
end;

procedure TLargeTests.RestOfAShortenedBlockIsNotBackedByHugePages;
const
  HugePage = HugeSlices * SliceSize;
var
  Span: PSpan;
begin
  ForgetDensity(1);
  UseBlocks(3, Dense);
  ShardsPurge(AllSlices);
  Span := Get(4 * HugePage);
  AssertTrue('has huge pages', Span^.IsHuge);
  LargeShrink(Span, 2 * HugePage + HugePage div 4);
  AssertTrue('the block keeps its own', Span^.IsHuge);
  AssertFalse('the huge page in both parts', MappingHasFlag(Span^.Start + 2 * HugePage, 'hg'));
  AssertFalse('the rest', MappingHasFlag(Span^.Start + 3 * HugePage, 'hg'));
  LargeShrink(Span, HugePage div 4);
  AssertFalse('the short block has none', Span^.IsHuge);
  AssertFalse('the first huge page', MappingHasFlag(Span^.Start, 'hg'));
  LargeFree(Span);
end;
{$endif}

procedure TLargeTests.GrowthBesideMoreWarmMemoryThanIsInUseTakesNoMore;
const
  Step = Megabyte;
  PartSize = 16 * Step; // other tests have used most addresses of 32 bits
var
  Parts: TPointers;
  Index: Integer;
  P, Wall: Pointer;
  Size, Before: NativeUInt;
begin
  ProcessTrim;
  // More than other tests have left.
  SetLength(Parts, (192 * Step + 2 * BackedSlices * SliceSize) div PartSize + 1);
  for Index := 0 to High(Parts) do
    GetMem(Parts[Index], PartSize);
  FreeEach(Parts, 1);
  P := GetMem(5 * Step);
  Wall := GetMem(Step); // P moves, and grows where no memory is warm
  Before := BackedSlices;
  Size := 5 * Step;
  while Size < 32 * Step do
  begin
    Inc(Size, Step);
    ReallocMem(P, Size);
  end;
  AtMost(Before + 2 * Step div SliceSize, BackedSlices, 'backed slices');
  FreeMem(P);
  FreeMem(Wall);
end;

initialization
  RegisterTest(TLargeTests);
end.
