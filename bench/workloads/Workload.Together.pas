/// How much memory do many threads take that keep a few blocks each?
//
// All threads are alive at the same time and hold their blocks until the last one has made its
// own. They make and free their blocks one after the other: thousands of threads on few cores that
// all spin for a lock would take minutes. The answer is the peak of memory; one operation is one
// thread.
// threads-alive: 50 blocks of the small mix in each thread. The quiet memory is that of all
// threads and their blocks.
// threads-sizes: one block of each of 60 sizes in each thread, from 16 bytes to 32,000, each 14 %
// larger than the one before. The quiet memory likewise.
// threads-ended: 1,000 blocks of the small mix in each thread, which then frees them and ends.
// The quiet memory is that of the program without them.
// Source: servers with a thread for each connection.
unit Workload.Together;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Rest, Bench.Semaphore, Bench.Sized, Bench.Workloads;

const
  MostBlocks = 1000;
  AliveBlocks = 50;
  SizeCount = 60;
  SmallestSize = 16;
  LargestSize = 32000;

type
  /// Threads that wait for each other with their blocks in hand.
  TTogether = class(TWorkload)
  private
    FThreadCount: Integer;   //< const   threads of the run
    FBlockCount: Integer;    //< const   blocks of each thread, at most MostBlocks
    FTurn: TSemaphore;       //< shared  one permit: its holder makes or frees its blocks
    FArrived: TSemaphore;    //< shared  counts the threads that hold their blocks
    FGate: TSemaphore;       //< shared  counts the threads that may go on
    procedure WaitForAll;
  protected
    function BlockSize(Index: Integer; Key: UInt64): Cardinal; virtual;
    procedure AllArrived; virtual;
  public
    constructor Create(const Name: string; BlockCount: Integer);
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

  TAlive = class(TTogether)
  protected
    procedure AllArrived; override;
  end;

  TSizes = class(TAlive)
  protected
    function BlockSize(Index: Integer; Key: UInt64): Cardinal; override;
  end;

  TEnded = class(TTogether)
  public
    procedure Finish; override;
  end;

constructor TTogether.Create(const Name: string; BlockCount: Integer);
begin
  inherited Create(Name, {Operations} 1); // becomes the number of threads
  FBlockCount := BlockCount;
end;

procedure TTogether.Prepare(ThreadCount: Integer);
begin
  FThreadCount := ThreadCount;
  SemaphoreStart(FTurn, 1);
  SemaphoreStart(FArrived, 0);
  SemaphoreStart(FGate, 0);
end;

function TTogether.BlockSize(Index: Integer; Key: UInt64): Cardinal;
begin
  Result := SmallMix[Key and High(TSizeMix)];
end;

procedure TTogether.AllArrived;
begin
end;

/// Runs in one thread: waits for all, lets them go on.
procedure TTogether.WaitForAll;
var
  I: Integer;
begin
  for I := 1 to FThreadCount do
    SemaphoreWait(FArrived);
  AllArrived;
  for I := 1 to FThreadCount do
    SemaphorePost(FGate);
end;

procedure TTogether.Run(const Job: TJob);
var
  Blocks: array[0..MostBlocks - 1] of TSized; // of the heap it would be one more block
  State: UInt64;
  I: Integer;
begin
  State := RandomSeed(Job.Thread);
  SemaphoreWait(FTurn);
  for I := 0 to FBlockCount - 1 do
    SizedNew(Blocks[I], BlockSize(I, RandomNext(State)), State);
  SemaphorePost(FTurn);
  SemaphorePost(FArrived);
  if Job.Thread = 0 then
    WaitForAll;
  SemaphoreWait(FGate);
  SemaphoreWait(FTurn);
  for I := 0 to FBlockCount - 1 do
    SizedFree(Blocks[I]);
  SemaphorePost(FTurn);
end;

procedure TAlive.AllArrived;
begin
  TellQuiet;
end;

function TSizes.BlockSize(Index: Integer; Key: UInt64): Cardinal;
begin
  Result := Round(SmallestSize * Exp(Ln(LargestSize / SmallestSize) * Index / (SizeCount - 1)));
end;

procedure TEnded.Finish;
begin
  TellQuiet;
end;

initialization
  TAlive.Create('threads-alive', AliveBlocks);
  TSizes.Create('threads-sizes', SizeCount);
  TEnded.Create('threads-ended', MostBlocks);

end.
