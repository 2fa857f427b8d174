/// Does memory go back to the system after a burst, in a program that then does nothing?
//
// Makes and frees 1 GB of blocks: half of the bytes in the small mix, half from 1 KB to
// 64 KB. Then the program sleeps; its resident memory is reported after 0, 2 and 10 seconds.
// One operation is one block, made and freed; the sleep is not in its time.
// Source: docs/seeds.md, E6 ("does not release memory?").
unit Workload.Burst;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Measure, Bench.Slots, Bench.Threads, Bench.Workloads;

const
  MidShare = 128; // small blocks per block of 1 KB to 64 KB, for as many bytes of each
  SecondUs = 1000000;

type
  TBurst = class(TWorkload)
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

procedure TBurst.Run(const Job: TJob);
var
  SmallSlots, MidSlots: TSlots;
  State: UInt64;
begin
  SmallSlots := nil;
  MidSlots := nil;
  State := RandomSeed(Job.Thread);
  SlotsFill(SmallSlots, Job.Operations * MidShare div (MidShare + 1), SmallMix, State);
  SlotsFill(MidSlots, Job.Operations div (MidShare + 1), MidMix, State);
  SlotsFree(SmallSlots, SmallMix);
  SlotsFree(MidSlots, MidMix);
end;

procedure TBurst.Finish;
begin
  TellFact('idle0_kb', ResidentKb);
  SleepUs(2 * SecondUs);
  TellFact('idle2_kb', ResidentKb);
  SleepUs(8 * SecondUs);
  TellFact('idle10_kb', ResidentKb);
end;

initialization
  TBurst.Create('burst-idle', 4200000);

end.
