/// Does memory go back to the system after a burst, in a program that then does nothing?
//
// burst-idle: makes and frees 1 GB of blocks: half of the bytes in the small mix, half from 1 KB to
// 64 KB. Then the program sleeps; its memory is reported after 0, 2 and 10 seconds.
// One operation is one block, made and freed; the sleep is not in its time.
// burst-partly: makes 100 MB of blocks of the small mix and frees all but one in 64, so that spans
// stay partly used; after a second it frees these too. The memory is reported after 0, 1 and 2
// seconds more. One operation is one block, made; the frees are not in its time.
// Source: docs/seeds.md, E6 ("does not release memory?").
unit Workload.Burst;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Rest, Bench.Slots, Bench.Workloads;

const
  PartlyCount = 800000;
  KeptEvery = 64;
  MidShare = 128; // small blocks per block of 1 KB to 64 KB, for as many bytes of each

type
  TBurst = class(TWorkload)
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

  TBurstPartly = class(TWorkload)
  private
    FSlots: TSlots;   //< owner   the live blocks
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
  TellMemory('idle0');
  Rest(2000);
  TellMemory('idle2');
  Rest(8000);
  TellMemory('idle10');
end;

procedure TBurstPartly.Run(const Job: TJob);
var
  State: UInt64;
begin
  State := RandomSeed(Job.Thread);
  SlotsFill(FSlots, Job.Operations, SmallMix, State);
end;

procedure TBurstPartly.Finish;
var
  I: Integer;
begin
  for I := 0 to High(FSlots) do
    if I mod KeptEvery <> 0 then
      BlockFree(SmallMix, FSlots[I].Block, FSlots[I].Key);
  Rest(1000);
  for I := 0 to High(FSlots) do
    if I mod KeptEvery = 0 then
      BlockFree(SmallMix, FSlots[I].Block, FSlots[I].Key);
  FSlots := nil;
  TellMemory('idle0');
  Rest(1000);
  TellMemory('idle1');
  Rest(1000);
  TellMemory('idle2');
end;

initialization
  TBurst.Create('burst-idle', 4200000);
  TBurstPartly.Create('burst-partly', PartlyCount);

end.
