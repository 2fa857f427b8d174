/// How much memory does a known amount of live bytes take?
//
// The peak of memory is the answer; the quiet memory is that of the live blocks.
// live-33K: 2,880 blocks of 33,000 bytes, 95 MB, all touched. One operation is one block.
// live-churn: 10 MB in 80,000 blocks of the small mix, any of which is replaced 4,000,000 times:
// what is freed here and there has to be used again. One operation is one replacement.
unit Workload.Live;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Rest, Bench.Sized, Bench.Slots, Bench.Workloads;

const
  LiveSize = 33000;
  LiveCount = 2880;
  ChurnSlots = 80000;
  ChurnOperations = 4000000;

type
  TLive = class(TWorkload)
  private
    FBlocks: TSizedBlocks; //< owner   the live blocks
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

  TLiveChurn = class(TWorkload)
  private
    FSlots: TSlots;        //< owner   the live blocks
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

procedure TLive.Run(const Job: TJob);
var
  I: Integer;
begin
  SetLength(FBlocks, Job.Operations);
  for I := 0 to High(FBlocks) do
    SizedNew(FBlocks[I], LiveSize, RandomSeed(I));
end;

procedure TLive.Finish;
begin
  TellQuiet;
  SizedFreeAll(FBlocks);
end;

procedure TLiveChurn.Run(const Job: TJob);
var
  State: UInt64;
begin
  State := RandomSeed(Job.Thread);
  SlotsFill(FSlots, ChurnSlots, SmallMix, State);
  SlotsReplace(FSlots, Job.Operations, SmallMix, State);
end;

procedure TLiveChurn.Finish;
begin
  TellQuiet;
  SlotsFree(FSlots, SmallMix);
end;

initialization
  TLive.Create('live-33K', LiveCount);
  TLiveChurn.Create('live-churn', ChurnOperations);

end.
