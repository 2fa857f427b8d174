/// What do blocks cost that go in the reverse order of their coming, as on a stack?
//
// Makes 1,000 blocks of the small mix, then checks and frees them, the newest first; again
// and again. One operation is one block.
// Source: nested scopes: parsers, recursion, documents built and torn down.
unit Workload.Lifo;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Slots, Bench.Workloads;

const
  BatchSize = 1000;

procedure LifoRun(const Job: TJob);
var
  Slots: TSlots;
  State: UInt64;
  I: Int64;
begin
  Slots := nil;
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations div BatchSize do
  begin
    SlotsFill(Slots, BatchSize, SmallMix, State);
    SlotsFree(Slots, SmallMix);
  end;
end;

initialization
  AddWorkload('lifo', 20000000, LifoRun);

end.
