/// What do blocks cost that change their size?
//
// resize-random: 1,000 blocks; one operation gives a random one another size, evenly spread
// by its logarithm from 16 bytes to 16 KB.
// resize-up, resize-down: one operation is one step of a block that grows from 16 to 2,048
// bytes by 32 at a time, or shrinks so, among 1,000 others that do the same.
// downsize: one operation is one block of 1 KB to 64 KB that is made, cut to a sixteenth,
// checked and freed; 20,000 live at the same time: the peak of memory shows whether the
// manager reuses the tails.
// Source: docs/seeds.md, D7 and E2 (allocate, reallocate, free in many threads) and E4:
//         the downsize, small upsize and small downsize cases of the FastCode challenge.
unit Workload.Resize;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Sized, Bench.Workloads;

const
  BlockCount = 1000;
  SmallestSize = 16;
  LargestSize = 2048;
  SizeStep = 32;
  DownsizeCount = 20000;
  DownsizeFactor = 16;

type
  TResizeSteps = class(TWorkload)
  private
    FFirst, FLast, FStep: Integer;
  public
    constructor Create(const Name: string; Operations: Int64; First, Last, Step: Integer);
    procedure Run(const Job: TJob); override;
  end;

/// Gives 16 bytes to 16 KB: a 64th to a quarter of a size of the mid mix.
function RandomSize(Key: UInt64): Cardinal;
begin
  Result := MidMix[Key and High(TSizeMix)] shr (2 + 4 * (Key shr 12 and 1));
end;

procedure ResizeRandomRun(const Job: TJob);
var
  Blocks: TSizedBlocks;
  State, Key: UInt64;
  I: Int64;
begin
  SetLength(Blocks, BlockCount);
  State := RandomSeed(Job.Thread);
  for I := 0 to High(Blocks) do
  begin
    Key := RandomNext(State);
    SizedNew(Blocks[I], RandomSize(Key), Key);
  end;
  for I := 1 to Job.Operations do
  begin
    Key := RandomNext(State);
    SizedResize(Blocks[RandomIndex(Key, BlockCount)], RandomSize(Key));
  end;
  SizedFreeAll(Blocks);
end;

constructor TResizeSteps.Create(const Name: string; Operations: Int64;
  First, Last, Step: Integer);
begin
  inherited Create(Name, Operations);
  FFirst := First;
  FLast := Last;
  FStep := Step;
end;

procedure TResizeSteps.Run(const Job: TJob);
var
  Blocks: TSizedBlocks;
  I, StepCount, Round: Int64;
begin
  SetLength(Blocks, BlockCount);
  StepCount := (FLast - FFirst) div FStep;
  for Round := 1 to Job.Operations div (BlockCount * StepCount) do
  begin
    for I := 0 to High(Blocks) do
      SizedNew(Blocks[I], FFirst, RandomSeed(I));
    for I := 0 to BlockCount * StepCount - 1 do
      SizedResize(Blocks[I mod BlockCount], FFirst + (I div BlockCount + 1) * FStep);
    SizedFreeAll(Blocks);
  end;
end;

procedure DownsizeRun(Count: Int64);
var
  Blocks: TSizedBlocks;
  State, Key: UInt64;
  I: Int64;
begin
  State := RandomSeed(Count);
  SetLength(Blocks, Count);
  for I := 0 to Count - 1 do
  begin
    Key := RandomNext(State);
    SizedNew(Blocks[I], MidMix[Key and High(TSizeMix)], Key);
    SizedResize(Blocks[I], Blocks[I].Size div DownsizeFactor);
  end;
  SizedFreeAll(Blocks);
end;

initialization
  AddWorkload('resize-random', 4000000, ResizeRandomRun);
  TResizeSteps.Create('resize-up', 6350000, SmallestSize, LargestSize, SizeStep);
  TResizeSteps.Create('resize-down', 6350000, LargestSize, SmallestSize, -SizeStep);
  AddWorkloadInParts('downsize', 600000, DownsizeCount, DownsizeRun);

end.
