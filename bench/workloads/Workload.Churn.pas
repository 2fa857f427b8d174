/// How fast is a program whose blocks live for random times?
//
// Slots hold blocks of a size mix of Bench.Blocks. One operation picks a slot at random,
// checks and frees its block and puts a new one there. Every thread has its own slots:
// 20,000 small ones (2 MB), 2,000 of 1 KB to 64 KB (30 MB), 16 of 256 KB to 8 MB (36 MB).
// Source: random replacement as in larson, P. Larson and M. Krishnan, "Memory Allocation
//         for Long-Running Server Applications", ISMM 1998, without the hand-over of threads.
unit Workload.Churn;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Slots, Bench.Workloads;

type
  TChurn = class(TWorkload)
  private
    FMix: PSizeMix;
    FSlotCount: Integer;
  public
    constructor Create(const Name: string; Operations: Int64; Mix: PSizeMix; SlotCount: Integer);
    procedure Run(const Job: TJob); override;
  end;

constructor TChurn.Create(const Name: string; Operations: Int64; Mix: PSizeMix;
  SlotCount: Integer);
begin
  inherited Create(Name, Operations);
  FMix := Mix;
  FSlotCount := SlotCount;
end;

procedure TChurn.Run(const Job: TJob);
var
  Slots: TSlots;
  State: UInt64;
begin
  Slots := nil;
  State := RandomSeed(Job.Thread);
  SlotsFill(Slots, FSlotCount, FMix^, State);
  SlotsReplace(Slots, Job.Operations, FMix^, State);
  SlotsFree(Slots, FMix^);
end;

initialization
  TChurn.Create('churn-small', 16000000, @SmallMix, 20000);
  TChurn.Create('churn-mid', 1600000, @MidMix, 2000);
  TChurn.Create('churn-large', 4000, @LargeMix, 16);

end.
