/// Does memory follow what is in use, or what has passed through the program?
//
// One thread makes a batch of blocks, then others free all of it but one block in 61 or 509, which
// stays to the end; neither side works while the other one does. So little more is ever live than a
// batch and the blocks that stayed: what else is resident serves no thread. What counts is the peak
// and the quiet memory, while all threads sleep and the blocks that stayed live. One operation is
// one block, made; the rest is part of the time.
//
// With two threads or more the first one makes and the others free. The sizes are in the name: 64
// bytes, the small mix, 0.5 to 8, 8 to 16, 32 to 40, 64 to 512 KB.
//   blowup-64 to blowup-512K: a batch each in turn
//   blowup-copy-*:   likewise, and of every second block that stays they make a copy and free it
//   blowup-share-*:  a part of each batch each, every block beside those of others
//   blowup-sleep-*:  an equal number of batches in succession each; then it sleeps to the end
// With one thread the first thread of the process takes part.
//   blowup-first-*:  it makes, another one frees
//   blowup-last-*:   another one makes, it frees
//   blowup-freers-*: it makes, each batch is freed by a thread that then ends
//   blowup-makers-*: each batch is made by a thread that then ends, it frees
// Source: the blowup of private heaps, E. Berger and others, "Hoard: A Scalable Memory Allocator
//         for Multithreaded Applications", ASPLOS 2000.
unit Workload.Blowup;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Rest, Bench.Semaphore, Bench.Slots, Bench.Threads, Bench.Workloads;

type
  TPattern = (ptTurns, ptCopy, ptShare, ptSleep, ptFirst, ptLast, ptFreers, ptMakers);

  TShape = record
    Title: string;          //< const   of the sizes
    First, Last: Cardinal;  //< const   sizes in bytes; 0 for the small mix
    Batch: Integer;         //< const   blocks of a batch
    KeepOne: Integer;       //< const   of so many blocks one stays
    Operations: Int64;      //< const   blocks in all, about 400 MB
  end;

  /// The thread that leads gives turns to the others, which follow.
  TBlowup = class(TWorkload)
  private
    FPattern: TPattern;           //< const   which threads make and free
    FShape: TShape;               //< const   what they make
    FMix: TSizeMix;               //< const   sizes of the blocks
    FThreadCount: Integer;        //< const   threads of the run
    FTurns: array of TSemaphore;  //< shared  a permit for each turn of a thread; 0 leads
    FIsOver: Boolean;             //< owner   of the turn: no further one follows
    FState: UInt64;               //< owner   of the turn: generator of the keys
    FBatch: TSlots;               //< owner   of the turn: the batch
    FFreed: Int64;                //< owner   of the turn: blocks that came to their end
    FStayed: TSlots;              //< owner   of the turn: those that stayed
    procedure MakeBatch;
    procedure KeepBlock(var Slot: TSlot);
    procedure FreeBatch(Part, PartCount: Integer);
    procedure GiveTurn(Number: Integer);
    procedure GiveTurns(Batch, BatchCount: Int64);
    procedure Lead(BatchCount: Int64);
    procedure Follow(Number: Integer);
    procedure Work(Number: Integer);
  public
    constructor Create(const Prefix: string; Pattern: TPattern; const Shape: TShape);
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

const
  Shapes: array[0..5] of TShape = (
    (Title: '64'; First: 64; Last: 64; Batch: 4096; KeepOne: 509; Operations: 6000000),
    (Title: 'mix'; First: 0; Last: 0; Batch: 16384; KeepOne: 509; Operations: 3000000),
    (Title: '8K'; First: 512; Last: 8192; Batch: 1024; KeepOne: 61; Operations: 150000),
    (Title: '16K'; First: 8193; Last: 16384; Batch: 64; KeepOne: 61; Operations: 33000),
    (Title: '40K'; First: 32769; Last: 40960; Batch: 32; KeepOne: 61; Operations: 12000),
    (Title: '512K'; First: 65537; Last: 524288; Batch: 8; KeepOne: 61; Operations: 2000));

constructor TBlowup.Create(const Prefix: string; Pattern: TPattern; const Shape: TShape);
begin
  inherited Create('blowup-' + Prefix + Shape.Title, Shape.Operations);
  FPattern := Pattern;
  FShape := Shape;
end;

procedure TBlowup.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  Check((ThreadCount = 1) = (FPattern >= ptFirst), 'blowup: not with so many threads');
  FThreadCount := ThreadCount;
  FMix := SmallMix;
  if FShape.First > 0 then
    MixFillEvenly(FMix, FShape.First, FShape.Last);
  FState := RandomSeed(0);
  SetLength(FTurns, ThreadCount + Ord(ThreadCount = 1));
  for I := 0 to High(FTurns) do
    SemaphoreStart(FTurns[I], 0);
end;

procedure TBlowup.MakeBatch;
begin
  SlotsFill(FBatch, FShape.Batch, FMix, FState);
end;

/// Lets a block stay, or a copy of it.
procedure TBlowup.KeepBlock(var Slot: TSlot);
var
  Number: Int64;
begin
  Number := FFreed div FShape.KeepOne - 1;
  FStayed[Number] := Slot;
  if (FPattern <> ptCopy) or Odd(Number) then
    Exit;
  FStayed[Number].Block := BlockNew(FMix, Slot.Key);
  BlockFree(FMix, Slot.Block, Slot.Key);
end;

/// Frees each PartCount-th block of the batch, from number Part on.
procedure TBlowup.FreeBatch(Part, PartCount: Integer);
begin
  while Part < FShape.Batch do
  begin
    Inc(FFreed);
    if FFreed mod FShape.KeepOne = 0 then
      KeepBlock(FBatch[Part])
    else
      BlockFree(FMix, FBatch[Part].Block, FBatch[Part].Key);
    Inc(Part, PartCount);
  end;
end;

/// Does the half of the work that the leading thread does not do.
procedure TBlowup.Work(Number: Integer);
begin
  case FPattern of
    ptShare: FreeBatch(Number - 1, FThreadCount - 1);
    ptLast, ptMakers: MakeBatch;
  else
    FreeBatch({Part} 0, {PartCount} 1);
  end;
end;

procedure TBlowup.Follow(Number: Integer);
begin
  repeat
    SemaphoreWait(FTurns[Number]);
    if FIsOver then
      Exit;
    Work(Number);
    SemaphorePost(FTurns[0]);
  until False;
end;

procedure FollowBody(Blowup: Pointer);
begin
  TBlowup(Blowup).Follow({Number} 1);
end;

procedure WorkBody(Blowup: Pointer);
begin
  TBlowup(Blowup).Work({Number} 1);
end;

procedure TBlowup.GiveTurn(Number: Integer);
begin
  SemaphorePost(FTurns[Number]);
  SemaphoreWait(FTurns[0]);
end;

/// Has the other threads do their half of the work on a batch.
procedure TBlowup.GiveTurns(Batch, BatchCount: Int64);
var
  I: Integer;
  Thread: TThread;
begin
  case FPattern of
    ptTurns, ptCopy: GiveTurn(1 + Batch mod (FThreadCount - 1));
    ptSleep: GiveTurn(1 + Batch * (FThreadCount - 1) div BatchCount);
    ptShare:
      for I := 1 to FThreadCount - 1 do
        GiveTurn(I);
    ptFirst, ptLast: GiveTurn(1);
  else
    ThreadStart(Thread, WorkBody, Self);
    ThreadJoin(Thread);
  end;
end;

procedure TBlowup.Lead(BatchCount: Int64);
var
  Batch: Int64;
  I: Integer;
begin
  SetLength(FStayed, BatchCount * FShape.Batch div FShape.KeepOne);
  for Batch := 0 to BatchCount - 1 do
  begin
    if not (FPattern in [ptLast, ptMakers]) then
      MakeBatch;
    GiveTurns(Batch, BatchCount);
    if FPattern in [ptLast, ptMakers] then
      FreeBatch({Part} 0, {PartCount} 1);
  end;
  TellQuiet;
  FIsOver := True;
  for I := 1 to High(FTurns) do
    SemaphorePost(FTurns[I]);
end;

procedure TBlowup.Run(const Job: TJob);
var
  Follower: TThread;
begin
  if FPattern in [ptFirst, ptLast] then
    ThreadStart(Follower, FollowBody, Self);
  if Job.Thread = 0 then
    Lead(Job.Operations * FThreadCount div FShape.Batch)
  else
    Follow(Job.Thread);
  if FPattern in [ptFirst, ptLast] then
    ThreadJoin(Follower);
end;

procedure TBlowup.Finish;
begin
  SlotsFree(FStayed, FMix);
end;

procedure AddAll;
var
  Shape: TShape;
begin
  for Shape in Shapes do
    TBlowup.Create('', ptTurns, Shape);
  TBlowup.Create('copy-', ptCopy, Shapes[0]);
  TBlowup.Create('copy-', ptCopy, Shapes[1]);
  TBlowup.Create('share-', ptShare, Shapes[0]);
  TBlowup.Create('share-', ptShare, Shapes[1]);
  TBlowup.Create('sleep-', ptSleep, Shapes[0]);
  TBlowup.Create('sleep-', ptSleep, Shapes[1]);
  TBlowup.Create('first-', ptFirst, Shapes[0]);
  TBlowup.Create('first-', ptFirst, Shapes[1]);
  TBlowup.Create('last-', ptLast, Shapes[0]);
  TBlowup.Create('last-', ptLast, Shapes[1]);
  TBlowup.Create('freers-', ptFreers, Shapes[0]);
  TBlowup.Create('freers-', ptFreers, Shapes[3]);
  TBlowup.Create('makers-', ptMakers, Shapes[0]);
  TBlowup.Create('makers-', ptMakers, Shapes[3]);
end;

initialization
  AddAll;

end.
