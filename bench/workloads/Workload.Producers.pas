/// What happens when some threads only allocate and others only free?
//
// Half of the threads make blocks of the small mix, the others check and free them. All
// share one queue, so a consumer meets the blocks of every producer. One operation is one
// block. Blocks are handed over 1,024 at a time, four such batches per producer, so that the
// queue is not what is measured.
// Source: docs/seeds.md, C3 and E5; pipelines and thread pools.
unit Workload.Producers;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Ring, Bench.Workloads;

const
  BatchSize = 1024;
  BatchesPerProducer = 4;

type
  TBatch = record
    Blocks: array[0..BatchSize - 1] of Pointer; //< owner   blocks of the small mix
    Seed: UInt64;                               //< owner   start of their keys
  end;

  TProducers = class(TWorkload)
  private
    FBatches: array of TBatch;
    FEmpty, FFull: TRing;
    procedure Produce(BatchCount, Producer: Int64);
    procedure Consume(BatchCount: Int64);
  public
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

procedure BatchFill(var Batch: TBatch; Seed: UInt64);
var
  I: Integer;
begin
  Batch.Seed := Seed;
  for I := 0 to BatchSize - 1 do
    Batch.Blocks[I] := BlockNew(SmallMix, RandomNext(Seed));
end;

procedure BatchEmpty(var Batch: TBatch);
var
  State: UInt64;
  I: Integer;
begin
  State := Batch.Seed;
  for I := 0 to BatchSize - 1 do
    BlockFree(SmallMix, Batch.Blocks[I], RandomNext(State));
end;

procedure TProducers.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  Check(not Odd(ThreadCount), 'producers: needs an even number of threads');
  SetLength(FBatches, ThreadCount div 2 * BatchesPerProducer);
  RingStart(FEmpty, Length(FBatches));
  RingStart(FFull, Length(FBatches));
  for I := 0 to High(FBatches) do
    RingPut(FEmpty, I);
end;

procedure TProducers.Produce(BatchCount, Producer: Int64);
var
  I: Int64;
  Number: Integer;
begin
  for I := 0 to BatchCount - 1 do
  begin
    Number := RingTake(FEmpty);
    BatchFill(FBatches[Number], RandomSeed(Producer * BatchCount + I));
    RingPut(FFull, Number);
  end;
end;

procedure TProducers.Consume(BatchCount: Int64);
var
  I: Int64;
  Number: Integer;
begin
  for I := 0 to BatchCount - 1 do
  begin
    Number := RingTake(FFull);
    BatchEmpty(FBatches[Number]);
    RingPut(FEmpty, Number);
  end;
end;

procedure TProducers.Run(const Job: TJob);
var
  BatchCount: Int64;
begin
  BatchCount := 2 * Job.Operations div BatchSize;
  if Odd(Job.Thread) then
    Consume(BatchCount)
  else
    Produce(BatchCount, Job.Thread);
end;

initialization
  TProducers.Create('producers', 8000000);

end.
