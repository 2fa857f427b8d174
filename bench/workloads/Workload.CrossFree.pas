/// What does it cost when one thread allocates and another one frees?
//
// Threads work in pairs: one makes blocks of the typical size mix, the other one checks and
// frees them. One operation is one block. Blocks are handed over 4,096 at a time, with four
// batches under way: two semaphore calls per batch, so the queue is not what is measured,
// and the thread that is faster sleeps behind a reserve that the other one works on.
// Source: docs/seeds.md, C3 and E5 (an owner's blocks freed by another thread).
unit Workload.CrossFree;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Semaphore, Bench.Workloads;

const
  BatchSize = 4096;
  BatchCount = 4;

type
  TBatch = array[0..BatchSize - 1] of Pointer;

  /// Always: Free + Full counts the batches that neither thread works on.
  TQueue = record
    Batches: array[0..BatchCount - 1] of TBatch; //< shared  handed over by the semaphores
    Free: TSemaphore;                            //< shared  batches to be filled
    Full: TSemaphore;                            //< shared  batches to be emptied
  end;

  TCrossFree = class(TWorkload)
  private
    FQueues: array of TQueue;
  public
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

procedure Produce(var Queue: TQueue; Count: Int64; State: UInt64);
var
  I: Int64;
begin
  for I := 0 to Count - 1 do
  begin
    if I mod BatchSize = 0 then
      SemaphoreWait(Queue.Free);
    Queue.Batches[I div BatchSize mod BatchCount][I mod BatchSize] :=
      BlockNew(SmallMix, RandomNext(State));
    if (I mod BatchSize = BatchSize - 1) or (I = Count - 1) then
      SemaphorePost(Queue.Full);
  end;
end;

procedure Consume(var Queue: TQueue; Count: Int64; State: UInt64);
var
  I: Int64;
begin
  for I := 0 to Count - 1 do
  begin
    if I mod BatchSize = 0 then
      SemaphoreWait(Queue.Full);
    BlockFree(SmallMix, Queue.Batches[I div BatchSize mod BatchCount][I mod BatchSize],
      RandomNext(State));
    if (I mod BatchSize = BatchSize - 1) or (I = Count - 1) then
      SemaphorePost(Queue.Free);
  end;
end;

procedure TCrossFree.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  if Odd(ThreadCount) then
    Fail('cross-free: needs an even number of threads');
  SetLength(FQueues, ThreadCount div 2);
  for I := 0 to High(FQueues) do
  begin
    SemaphoreStart(FQueues[I].Free, BatchCount);
    SemaphoreStart(FQueues[I].Full, 0);
  end;
end;

procedure TCrossFree.Run(const Job: TJob);
var
  Pair: Integer;
begin
  Pair := Job.Thread div 2;
  // Both threads of a pair step through the same sequence of keys.
  if Odd(Job.Thread) then
    Consume(FQueues[Pair], 2 * Job.Operations, RandomSeed(Pair))
  else
    Produce(FQueues[Pair], 2 * Job.Operations, RandomSeed(Pair));
end;

initialization
  TCrossFree.Create('cross-free', 8000000);

end.
