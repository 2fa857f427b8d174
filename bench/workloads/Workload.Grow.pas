/// What does it cost to grow large blocks?
//
// grow-256M: ReallocMem takes a block from 1 MB to 256 MB in steps of 64 KB; every page of the new part
// is written, and at the end all pages are checked. One operation is one step.
// grow-sparse: eight blocks grow in turn from 1 MB to 1 GB, by a quarter each time; of each step
// one page is written. One operation is one step. longest_ns is that of the calls of ReallocMem.
// Source: docs/seeds.md, B4 and B5: copying at each step is orders of magnitude slower;
//         mremap(2) moves pages instead.
unit Workload.Grow;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Durations, Bench.Threads, Bench.Workloads;

const
  FirstSize = 1 shl 20;
  StepSize = 64 shl 10;
  StepCount = (256 shl 20 - FirstSize) div StepSize;
  SparseCount = 8;
  SparseLimit = 1 shl 30;
  // Steps of a quarter from FirstSize to SparseLimit.
  SparseSteps = 32;

type
  TSparseGrowth = class(TWorkload)
  private
    FCalls: TDurations;                           //< owner   durations of ReallocMem
    FBlocks: array[0..SparseCount - 1] of PByte;  //< owner   the live blocks
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

/// Lets a block grow Count times.
procedure Grow(Count: Int64);
var
  Block: PByte;
  I: Integer;
begin
  Block := GetMem(FirstSize);
  BlockMark(Block, FirstSize, RandomSeed(0));
  for I := 1 to Count do
  begin
    ReallocMem(Block, FirstSize + I * StepSize);
    BlockMark(Block + FirstSize + (I - 1) * StepSize, StepSize, RandomSeed(I));
  end;
  BlockCheck(Block, FirstSize, RandomSeed(0));
  for I := 1 to Count do
    BlockCheck(Block + FirstSize + (I - 1) * StepSize, StepSize, RandomSeed(I));
  FreeMem(Block);
end;

procedure TSparseGrowth.Run(const Job: TJob);
var
  Size, Grown: NativeUInt;
  I: Int64;
  Place: Integer;
  StartNs: Int64;
begin
  Size := FirstSize;
  for Place := 0 to SparseCount - 1 do
    FBlocks[Place] := GetMem(Size);
  for I := 1 to Job.Operations div SparseCount do
  begin
    Grown := Size + Size div 4;
    if Grown > SparseLimit then
      Grown := SparseLimit;
    for Place := 0 to SparseCount - 1 do
    begin
      PUInt64(FBlocks[Place] + Size div 2)^ := RandomSeed(Place) + Size;
      StartNs := ClockNs(ClockWall);
      ReallocMem(FBlocks[Place], Grown);
      DurationCount(FCalls, ClockNs(ClockWall) - StartNs);
      Check(PUInt64(FBlocks[Place] + Size div 2)^ = RandomSeed(Place) + Size,
        'a block has lost its contents');
    end;
    Size := Grown;
  end;
end;

procedure TSparseGrowth.Finish;
var
  Block: PByte;
begin
  DurationsTell(FCalls);
  for Block in FBlocks do
    FreeMem(Block);
end;

initialization
  TSparseGrowth.Create('grow-sparse', SparseCount * SparseSteps);
  AddWorkloadInParts('grow-256M', StepCount, StepCount, Grow);

end.
