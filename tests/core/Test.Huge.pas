/// Tests of LaneMM.Huge, on the memory of this process.
unit Test.Huge;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  THugeTests = class(TQuietTest)
  strict private
    Blocks: array of Pointer;
    procedure TakeBlocks(Count: NativeInt);
    procedure FillBlocks;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BuffersOfWhichAPartIsUsedAreSparse;
    procedure FilledBlocksAreDense;
    procedure AnswerHoldsWhileMemoryIsTheSame;
    procedure MemoryIsMeasuredAgainWhenItHasGrown;
    {$ifdef LINUX}
    procedure MeasureMakesFewCallsOfTheSystem;
    procedure PagesThatTheProgramProtectsAreNotRead;
    procedure ProbeWithAPageThatTheProgramProtectsIsNotRead;
    procedure FreedBlockWithAProtectedPageIsNotRead;
    {$endif}
    procedure SampleOfPagesIsSpreadOverAll;
    procedure LargerPagesHaveNoHugeOnes;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.Arena, LaneMM.Shards, LaneMM.Backed,
  LaneMM.Allocate, LaneMM.Free, LaneMM.Huge;

type
  TCounts = array[TOsCall] of NativeUInt;

const
  // Of such a block nothing but the first page is written when it is carved.
  BlockSize = 32768;
  // So many blocks that nothing else in the process counts.
  ManyBlocks = 3000;

// Their pages are new, and small.
procedure THugeTests.SetUp;
begin
  inherited;
  Process.HugeFrom := 0;
  ShardsPurge(AllSlices);
  TakeBlocks(ManyBlocks);
  Process.MeasuredAt := 0;
end;

procedure THugeTests.TearDown;
var
  Block: Pointer;
begin
  for Block in Blocks do
    BlockFree(Block);
  Blocks := nil;
  Process.MeasuredAt := 0;
  ShardsPurge(AllSlices);
  inherited;
end;

procedure THugeTests.TakeBlocks(Count: NativeInt);
var
  First, Index: NativeInt;
begin
  First := Length(Blocks);
  SetLength(Blocks, First + Count);
  for Index := First to High(Blocks) do
    Blocks[Index] := BlockGet(BlockSize);
end;

procedure THugeTests.FillBlocks;
var
  Block: Pointer;
begin
  for Block in Blocks do
    FillChar(Block^, BlockSize, 1);
end;

procedure THugeTests.BuffersOfWhichAPartIsUsedAreSparse;
begin
  AssertFalse('dense', DensityIsHigh);
end;

procedure THugeTests.FilledBlocksAreDense;
begin
  FillBlocks;
  AssertTrue('dense', DensityIsHigh);
end;

procedure THugeTests.AnswerHoldsWhileMemoryIsTheSame;
begin
  AssertFalse('dense at first', DensityIsHigh);
  FillBlocks;
  AssertFalse('dense', DensityIsHigh);
end;

procedure THugeTests.MemoryIsMeasuredAgainWhenItHasGrown;
var
  Before: NativeUInt;
begin
  DensityIsHigh;
  Before := Process.MeasuredAt;
  while BackedSlices <= Before + Before div 8 + 1 do
    TakeBlocks(ManyBlocks div 100);
  Same(Before, Process.MeasuredAt, 'slices at the last measure');
  DensityIsHigh;
  Same(BackedSlices, Process.MeasuredAt, 'slices at this one');
end;

{$ifdef LINUX} // of other systems the calls are not counted
procedure THugeTests.MeasureMakesFewCallsOfTheSystem;
var
  Before, After: TCounts;
  Call: TOsCall;
begin
  Move(Process.OsCalls, Before, SizeOf(Before));
  DensityIsHigh;
  Move(Process.OsCalls, After, SizeOf(After));
  AssertTrue('a measure', Process.MeasuredAt <> 0);
  for Call := Low(TOsCall) to High(TOsCall) do
    if Call = ocHuge then
      AtMost(Before[Call] + 128, After[Call], 'two for each slice')
    else if not (Call in [ocClock, ocWait, ocPurge]) then // those of the purge thread
      Same(Before[Call], After[Call], 'calls');
end;

// As stacks of coroutines have guard pages in blocks.
procedure THugeTests.PagesThatTheProgramProtectsAreNotRead;
const
  Size = MaxClassSize; // whole pages
var
  Stacks: array[0..1999] of Pointer;
  Index: Integer;
  Before: NativeUInt;
begin
  for Index := 0 to High(Stacks) do
  begin
    GetMem(Stacks[Index], Size);
    AssertTrue('protected', OsForbid(Stacks[Index], Size));
  end;
  Before := Process.OsCalls[ocHuge];
  DensityIsHigh;
  AssertTrue('a measure', Process.MeasuredAt <> 0);
  AtMost(Before + 128, Process.OsCalls[ocHuge], 'calls');
  for Index := 0 to High(Stacks) do
  begin
    AssertTrue('and not any more', OsCommit(Stacks[Index], Size));
    FreeMem(Stacks[Index]);
  end;
end;

procedure THugeTests.ProbeWithAPageThatTheProgramProtectsIsNotRead;
const
  Size = 64 * SliceSize;
var
  P: PByte;
begin
  GetMem(P, Size);
  AssertTrue('protected', OsForbid(P, Size));
  Process.LargeProbe := ArenaSpan(P);
  Process.LargeLooks := 0;
  Process.HugeFrom := 1;
  HugeIsWanted(8);
  AssertTrue('no probe now', Process.LargeProbe = nil);
  AssertTrue('and not any more', OsCommit(P, Size));
  FreeMem(P);
end;

// A page that the sample of its start has not, and all of it.
procedure THugeTests.FreedBlockWithAProtectedPageIsNotRead;
const
  Size = 256 * SliceSize; // more than is measured
  Parts: array[0..2] of record
    Offset, Size: NativeUInt;
  end = ((Offset: 0; Size: OsPageSize), (Offset: Size div 2; Size: Size div 2),
    (Offset: 0; Size: Size));
var
  P: PByte;
  Index: Integer;
begin
  for Index := 0 to High(Parts) do
  begin
    GetMem(P, Size);
    FillChar(P^, Size, 0);
    AssertTrue('protected', OsForbid(P + Parts[Index].Offset, Parts[Index].Size));
    ArenaSpan(P)^.IsZero := True;
    Process.LargeProbe := ArenaSpan(P);
    HugeEnd(ArenaSpan(P));
    AssertTrue('no probe now', Process.LargeProbe = nil);
    AssertTrue('and not any more', OsCommit(P, Size));
    FreeMem(P);
  end;
end;
{$endif}

procedure THugeTests.SampleOfPagesIsSpreadOverAll;
const
  PageCount = 1024;
var
  P: PByte;
  Page: NativeUInt;
begin
  P := AllocMem(PageCount * OsPageSize);
  Same(0, WrittenPages(P, PageCount, 64), 'written pages of untouched ones');
  for Page := 0 to PageCount - 1 do
    P[Page * OsPageSize + OsPageSize - 1] := Ord(Odd(Page div (PageCount div 4)));
  Same(32, WrittenPages(P, PageCount, 64), 'of which each other quarter is written');
  Same(PageCount div 2, WrittenPages(P, PageCount, PageCount * 2), 'all');
  for Page := 0 to PageCount - 1 do
    P[Page * OsPageSize + OsPageSize - 1] := Ord(not Odd(Page));
  AtLeast(16, WrittenPages(P, PageCount, 64), 'of which each other one is written');
  AtMost(48, WrittenPages(P, PageCount, 64), 'of which each other one is written');
  FreeMem(P);
end;

procedure THugeTests.LargerPagesHaveNoHugeOnes;
begin
  HugeFromSet(16 * SliceSize);
  Same(16 * Ord(OsGranule = OsPageSize), Process.HugeFrom, 'slices');
end;

initialization
  RegisterTest(THugeTests);

end.
