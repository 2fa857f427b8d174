/// How fast is a program whose objects live for random times?
//
// 20,000 slots hold blocks of the typical size mix of Bench.Blocks. One operation picks a
// slot at random, checks and frees its block and puts a new one there. Every thread has
// its own slots.
// Source: random replacement as in larson, P. Larson and M. Krishnan, "Memory Allocation
//         for Long-Running Server Applications", ISMM 1998, without the hand-over of threads.
unit Workload.Churn;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Workloads;

const
  SlotCount = 20000;

type
  PSlot = ^TSlot;
  TSlot = record
    Block: Pointer;   //< owner   a block of BlockNew
    Key: UInt64;      //< owner   what it was made from
  end;

  TChurn = class(TWorkload)
  public
    procedure Run(const Job: TJob); override;
  end;

procedure SlotFill(Slot: PSlot; Key: UInt64); inline;
begin
  Slot^.Key := Key;
  Slot^.Block := BlockNew(Key);
end;

procedure TChurn.Run(const Job: TJob);
var
  Slots: array of TSlot;
  Slot: PSlot;
  State, Key: UInt64;
  I: Int64;
begin
  SetLength(Slots, SlotCount);
  State := RandomSeed(Job.Thread);
  for I := 0 to SlotCount - 1 do
    SlotFill(@Slots[I], RandomNext(State));
  for I := 1 to Job.Operations do
  begin
    Key := RandomNext(State);
    Slot := @Slots[(Key shr 32) * SlotCount shr 32];
    BlockFree(Slot^.Block, Slot^.Key);
    SlotFill(Slot, Key);
  end;
  for I := 0 to SlotCount - 1 do
    BlockFree(Slots[I].Block, Slots[I].Key);
end;

initialization
  TChurn.Create('churn-small', 24000000);

end.
