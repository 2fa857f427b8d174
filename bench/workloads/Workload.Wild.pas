/// Threads that free each other's blocks at random: does the manager keep its head?
//
// All threads share a table of 4,096 places. One operation makes a block of the small mix,
// swaps it into a random place and checks and frees the block that came out, which any
// thread may have made. A block carries its own key.
// Source: the wild threads of the FastCode memory manager challenge (docs/seeds.md, E4).
unit Workload.Wild;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  PlaceCount = 4096;

type
  TWild = class(TWorkload)
  private
    FPlaces: array[0..PlaceCount - 1] of Pointer;
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

procedure TWild.Run(const Job: TJob);
var
  State, Key: UInt64;
  I: Int64;
begin
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations do
  begin
    Key := RandomNext(State);
    BlockRelease(SmallMix, InterlockedExchange(FPlaces[RandomIndex(Key, PlaceCount)],
      BlockNew(SmallMix, Key)));
  end;
end;

procedure TWild.Finish;
var
  Block: Pointer;
begin
  for Block in FPlaces do
    BlockRelease(SmallMix, Block);
end;

initialization
  TWild.Create('wild', 8000000);

end.
