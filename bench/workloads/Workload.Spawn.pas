/// What does a memory manager add to the start and the end of a thread?
//
// One operation starts a thread that makes, checks and frees 50 blocks of the small mix,
// and waits for its end.
// Source: servers with a thread per request; docs/seeds.md, E1 (every thread has its own
//         memory, which has a price at its birth and its death).
unit Workload.Spawn;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Slots, Bench.Threads, Bench.Workloads;

const
  BlockCount = 50;

procedure WorkShortly(Seed: Pointer);
var
  Slots: TSlots;
  State: UInt64;
begin
  Slots := nil;
  State := RandomSeed(PtrInt(Seed));
  SlotsFill(Slots, BlockCount, SmallMix, State);
  SlotsFree(Slots, SmallMix);
end;

procedure SpawnRun(const Job: TJob);
var
  Thread: TThread;
  I: Int64;
begin
  for I := 1 to Job.Operations do
  begin
    ThreadStart(Thread, WorkShortly, Pointer(I));
    ThreadJoin(Thread);
  end;
end;

initialization
  AddWorkload('spawn', 8000, SpawnRun);

end.
