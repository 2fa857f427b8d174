/// Tests of LaneMM.Density, on the memory of this process.
unit Test.Density;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TDensityTests = class(TQuietTest)
  strict private
    Blocks: array of Pointer;
    HugeFrom: NativeUInt;
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
    procedure MeasureTakesFewCallsOfTheSystem;
    {$endif}
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Arena, LaneMM.Allocate, LaneMM.Free,
  LaneMM.Density;

const
  // Of such a block nothing but the first page is written when it is carved.
  BlockSize = 32768;
  // So many blocks that nothing else in the process counts.
  ManyBlocks = 3000;

// Their pages are new, and small.
procedure TDensityTests.SetUp;
begin
  inherited;
  HugeFrom := Process.HugeFrom;
  Process.HugeFrom := 0;
  ArenaPurge(AllSlices);
  TakeBlocks(ManyBlocks);
  Process.MeasuredAt := 0;
end;

procedure TDensityTests.TearDown;
var
  Block: Pointer;
begin
  for Block in Blocks do
    BlockFree(Block);
  Blocks := nil;
  Process.HugeFrom := HugeFrom;
  Process.MeasuredAt := 0;
  ArenaPurge(AllSlices);
  inherited;
end;

procedure TDensityTests.TakeBlocks(Count: NativeInt);
var
  First, Index: NativeInt;
begin
  First := Length(Blocks);
  SetLength(Blocks, First + Count);
  for Index := First to High(Blocks) do
    Blocks[Index] := BlockGet(BlockSize);
end;

procedure TDensityTests.FillBlocks;
var
  Block: Pointer;
begin
  for Block in Blocks do
    FillChar(Block^, BlockSize, 1);
end;

procedure TDensityTests.BuffersOfWhichAPartIsUsedAreSparse;
begin
  AssertFalse('dense', DensityIsHigh);
end;

procedure TDensityTests.FilledBlocksAreDense;
begin
  FillBlocks;
  AssertTrue('dense', DensityIsHigh);
end;

procedure TDensityTests.AnswerHoldsWhileMemoryIsTheSame;
begin
  AssertFalse('dense at first', DensityIsHigh);
  FillBlocks;
  AssertFalse('dense', DensityIsHigh);
end;

procedure TDensityTests.MemoryIsMeasuredAgainWhenItHasGrown;
var
  Before: NativeUInt;
begin
  DensityIsHigh;
  Before := Process.MeasuredAt;
  while ArenaBackedSlices <= Before + Before div 8 + 1 do
    TakeBlocks(ManyBlocks div 100);
  Same(Before, Process.MeasuredAt, 'slices at the last measure');
  DensityIsHigh;
  Same(ArenaBackedSlices, Process.MeasuredAt, 'slices at this one');
end;

{$ifdef LINUX} // of other systems the calls are not counted
procedure TDensityTests.MeasureTakesFewCallsOfTheSystem;
var
  Before: NativeUInt;
begin
  Before := Process.OsCalls[ocHuge];
  DensityIsHigh;
  AtMost(64, Process.OsCalls[ocHuge] - Before, 'calls');
  AtLeast(8, Process.OsCalls[ocHuge] - Before, 'calls');
end;
{$endif}

initialization
  RegisterTest(TDensityTests);

end.
