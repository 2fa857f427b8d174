/// How much memory do sleeping threads keep whose blocks another thread has freed?
//
// The threads take turns. In its turn a thread checks and frees all blocks, which the thread before
// it has made, and makes as many of its own: 20 MB of the small mix, in 32 turns. All others sleep.
// So no more than 20 MB is ever live. The last turn frees all; the quiet memory is what remains
// while all threads still sleep. One operation is one block.
// Source: the blowup of private heaps, E. Berger and others, "Hoard: A Scalable Memory Allocator
//         for Multithreaded Applications", ASPLOS 2000.
unit Workload.Hoard;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Rest, Bench.Semaphore, Bench.Slots, Bench.Workloads;

const
  TurnCount = 32;
  LiveCount = 160000; // blocks, 20 MB

type
  THoard = class(TWorkload)
  private
    FThreadCount: Integer;            //< const   threads of the run
    FTurns: array of TSemaphore;      //< shared  a permit for each turn of a thread
    FEnd: TSemaphore;                 //< shared  counts the threads that may end
    FSlots: TSlots;                   //< owner   of the turn: the live blocks
    procedure Turn(Number, Count: Integer);
    procedure Leave;
  public
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

procedure THoard.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  FThreadCount := ThreadCount;
  SetLength(FTurns, ThreadCount);
  for I := 0 to ThreadCount - 1 do
    SemaphoreStart(FTurns[I], 0);
  SemaphorePost(FTurns[0]);
  SemaphoreStart(FEnd, 0);
end;

/// Frees the blocks of the turn before and makes Count new ones.
procedure THoard.Turn(Number, Count: Integer);
var
  State: UInt64;
begin
  State := RandomSeed(Number);
  SemaphoreWait(FTurns[Number mod FThreadCount]);
  SlotsFree(FSlots, SmallMix);
  SlotsFill(FSlots, Count, SmallMix, State);
  SemaphorePost(FTurns[(Number + 1) mod FThreadCount]);
end;

/// Frees the last blocks; all threads end after a rest.
procedure THoard.Leave;
var
  I: Integer;
begin
  SemaphoreWait(FTurns[TurnCount mod FThreadCount]);
  SlotsFree(FSlots, SmallMix);
  TellQuiet;
  for I := 1 to FThreadCount do
    SemaphorePost(FEnd);
end;

procedure THoard.Run(const Job: TJob);
var
  Number: Integer;
begin
  Number := Job.Thread;
  while Number < TurnCount do
  begin
    Turn(Number, Job.Operations * FThreadCount div TurnCount);
    Inc(Number, FThreadCount);
  end;
  if Number = TurnCount then
    Leave;
  SemaphoreWait(FEnd);
end;

initialization
  THoard.Create('hoard', TurnCount * LiveCount);

end.
