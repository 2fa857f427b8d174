/// A server whose threads die and leave their blocks to the next one: what does it cost?
//
// Each job is a chain of short-lived threads. A thread takes over 2,000 blocks of the small
// mix, replaces 4,000 at random and ends; the next one starts. One operation is one
// replacement; the start of a thread is part of every 4,000th.
// Source: larson: P. Larson and M. Krishnan, "Memory Allocation for Long-Running Server
//         Applications", ISMM 1998.
unit Workload.Handover;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Slots, Bench.Threads, Bench.Workloads;

const
  SlotCount = 2000;
  LifeLength = 4000;

type
  PEstate = ^TEstate;
  /// What one thread leaves to the next.
  TEstate = record
    Slots: TSlots;       //< owner   the living thread of the chain
    State: UInt64;       //< owner   generator of the chain
  end;

procedure Live(Estate: Pointer);
begin
  SlotsReplace(PEstate(Estate)^.Slots, LifeLength, SmallMix, PEstate(Estate)^.State);
end;

procedure HandoverRun(const Job: TJob);
var
  Estate: TEstate;
  Thread: TThread;
  I: Int64;
begin
  Estate := Default(TEstate);
  Estate.State := RandomSeed(Job.Thread);
  SlotsFill(Estate.Slots, SlotCount, SmallMix, Estate.State);
  for I := 1 to Job.Operations div LifeLength do
  begin
    ThreadStart(Thread, Live, @Estate);
    ThreadJoin(Thread);
  end;
  SlotsFree(Estate.Slots, SmallMix);
end;

initialization
  AddWorkload('handover', 8000000, HandoverRun);

end.
