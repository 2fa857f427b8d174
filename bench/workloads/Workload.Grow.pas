/// What does it cost to grow one large block in small steps?
//
// ReallocMem takes a block from 1 MB to 256 MB in steps of 64 KB; every page of the new part
// is written, and at the end all pages are checked. One operation is one step.
// Source: docs/seeds.md, B4 and B5: copying at each step is orders of magnitude slower;
//         mremap(2) moves pages instead.
unit Workload.Grow;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  FirstSize = 1 shl 20;
  StepSize = 64 shl 10;
  StepCount = (256 shl 20 - FirstSize) div StepSize;

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

initialization
  AddWorkloadInParts('grow-256M', StepCount, StepCount, Grow);

end.
