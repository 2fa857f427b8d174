/// Does a thread that stands still, wherever it is, make others stand still?
//
// Each thread allocates, frees and resizes blocks of random sizes. A further thread stops one of
// them by a signal at a random instruction for 60 ms, and watches the operations of the others
// meanwhile. One operation is one stop.
// `stalled` counts the stops at whose end one of the others had done nothing for 30 ms, `inside`
// those that met the thread in a call of the memory manager; `longest_ns` is the longest time
// without an operation at the end of a stop. Time in which a thread could run and had no processor
// is not in it, nor are waits in the system, whose locks no stopped thread holds.
//
// stopped-N:       sizes up to N.
// stopped-shared-N: one turn in sixteen exchanges a block with the other threads, so that blocks are
//                  freed and resized by threads that did not allocate them.
// stopped-spawn-N: the work is done by threads of 300 turns, which leave their blocks to the next
//                  one; a thread is stopped at its first allocation and its end, too.
// stopped-trim-N:  one thread calls the trim of the manager all the time; in every second stop it
//                  is the one that is stopped.
// Source: docs/seeds.md, D1: a thread that loses its time slice inside the memory manager.
unit Workload.Stopped;

{$I Bench.inc}

interface

implementation

uses
  ThreadSignals, MarkedBlocks, Bench.Blocks, Bench.Stops, Bench.Threads, Bench.Trim, Bench.Workloads;

const
  StopCount = 150;
  PlaceCount = 64;
  SharedCount = 64;
  ShortTurns = 300;
  MostLanes = 16;
  StallNs = StopNs div 2;
  SampleUs = 2000;
  // Between two stops: at least so long, and up to so much longer.
  PauseUs = 1000;
  RandomPauseUs = 4000;

type
  /// How the work is done.
  TKind = (kiPlain, kiShared, kiSpawn, kiTrim);

  TStopped = class;
  PLane = ^TLane;
  /// A sequence of turns, done by one thread, or by one thread after the other.
  TLane = record
    Workload: TStopped;      //< const   whose lane it is
    State: UInt64;           //< owner   of RandomNext
    Blocks: array[0..PlaceCount - 1] of PBlock; //< owner   the blocks at hand, or nil
    Line: array[0..7] of UInt64; //< padding
    TurnCount: Int64;        //< shared  turns since the start
    Thread: Cardinal;        //< shared  the number of the thread
    IsInside: Boolean;       //< shared  whether it is in a call of the memory manager
    NextLine: array[0..7] of UInt64; //< padding
  end;

  /// The observation of a lane since a moment at which it had advanced.
  TWatch = record
    Lane: PLane;             //< const   the lane
    TurnCount: Int64;        //< const   its turns at the beginning
    Thread: Cardinal;        //< const   its thread at the beginning
    SinceNs: Int64;          //< const   the beginning
    QueueNs: Int64;          //< const   ThreadQueueNs at the beginning
    LastNs: Int64;           //< owner   the last look that saw no turn
    KernelNs: Int64;         //< owner   of that time, what the system made the thread wait
  end;

  TStopped = class(TWorkload)
  private
    FKind: TKind;
    FSmallest, FLargest: Cardinal;
    FSizes: TSizeMix;
    FLanes: array[0..MostLanes - 1] of TLane;  // of the jobs, then of the thread that trims
    FLaneCount, FArrived: LongInt;
    FShared: array[0..SharedCount - 1] of PBlock;
    FStops: Int64;
    FIsOver: Boolean;
    FController, FTrimmer: TThread;
    FState: UInt64;
    FInside, FStalled, FLongestNs: Int64;
    procedure AwaitTurns;
    function Victim: PLane;
    procedure StopOne;
    function Watch(Stopped: PLane): Int64;
  public
    constructor Create(const Name: string; Kind: TKind; Smallest, Largest: Cardinal);
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

// ---------------------------------------------------------------------------- turns

procedure Release(var Lane: TLane; var Block: PBlock);
begin
  Check(MarkedRelease(Lane.IsInside, Block), 'a block has lost its contents');
end;

procedure Resize(var Lane: TLane; var Block: PBlock; Size: NativeUInt);
begin
  Check(MarkedResize(Lane.IsInside, Block, Size), 'a block has lost its contents');
end;

procedure PassOn(var Block, Place: PBlock);
begin
  Block := InterlockedExchange(Pointer(Place), Block);
end;

/// Returns the size of the block, up to an eighth smaller or larger.
function SimilarSize(Block: PBlock; Key: UInt64): Cardinal;
begin
  Result := Block^.Size - Block^.Size div 8 + RandomIndex(Key shl 8, Block^.Size div 4 + 1);
  if Result < SizeOf(TBlock) then
    Result := SizeOf(TBlock);
end;

/// Allocates a block in an empty place. Frees the block of another one, mostly; a resize to a
/// random size, which copies, is rare, or the stops would all be in copies.
procedure Turn(var Lane: TLane);
var
  Key: UInt64;
  Size: Cardinal;
  Place: Cardinal;
  Block: ^PBlock;
begin
  Key := RandomNext(Lane.State);
  Size := Lane.Workload.FSizes[Key and High(TSizeMix)];
  Place := RandomIndex(Key, PlaceCount);
  Block := @Lane.Blocks[Place];
  if Block^ = nil then
    MarkedMake(Lane.IsInside, Block^, Size)
  else
    case (Key shr 16) and 15 of
      0..2: Resize(Lane, Block^, SimilarSize(Block^, Key));
      3: Resize(Lane, Block^, Size);
      4..5:
        if Lane.Workload.FKind = kiShared then
          PassOn(Block^, Lane.Workload.FShared[(Key shr 20) and (SharedCount - 1)])
        else
          Release(Lane, Block^);
    else
      Release(Lane, Block^);
    end;
  Inc(Lane.TurnCount);
end;

procedure WorkShortly(Data: Pointer);
var
  I: Integer;
begin
  PLane(Data)^.Thread := ThreadNumber;
  for I := 1 to ShortTurns do
    Turn(PLane(Data)^);
end;

/// The thread of stopped-trim that trims.
procedure TrimAlways(Data: Pointer);
var
  Lane: PLane;
begin
  Lane := Data;
  Lane^.Thread := ThreadNumber;
  Lane^.IsInside := True;
  repeat
    TrimMemory;
    Inc(Lane^.TurnCount);
  until Lane^.Workload.FIsOver;
end;

// ---------------------------------------------------------------------------- stops

procedure WatchBegin(out Watch: TWatch; var Lane: TLane);
begin
  Watch.Lane := @Lane;
  Watch.TurnCount := Lane.TurnCount;
  Watch.Thread := Lane.Thread;
  Watch.QueueNs := ThreadQueueNs(Watch.Thread);
  Watch.SinceNs := ClockNs(ClockWall);
  Watch.LastNs := Watch.SinceNs;
  Watch.KernelNs := 0;
end;

/// Looks at the lane; returns whether it has done turns since WatchBegin.
function WatchAdvances(var Watch: TWatch): Boolean;
var
  NowNs: Int64;
begin
  Result := Watch.Lane^.TurnCount <> Watch.TurnCount;
  if Result then
    Exit;
  NowNs := ClockNs(ClockWall);
  if ThreadIsInKernel(Watch.Thread) then
    Inc(Watch.KernelNs, NowNs - Watch.LastNs);
  Watch.LastNs := NowNs;
end;

/// Returns how long a lane that has just advanced was seen to stand still, by its own will.
function WatchStillNs(const Watch: TWatch): Int64;
begin
  Result := Watch.LastNs - Watch.SinceNs - Watch.KernelNs;
  if Watch.Lane^.Thread = Watch.Thread then
    Dec(Result, ThreadQueueNs(Watch.Thread) - Watch.QueueNs);
end;

/// Watches all threads until the stop is over. Those that wait for the stopped one stand still at
/// its end; returns the longest time, in nanoseconds, when all have advanced again.
function TStopped.Watch(Stopped: PLane): Int64;
var
  Watches: array[0..MostLanes - 1] of TWatch;
  I: Integer;
  StillNs: Int64;
begin
  for I := 0 to FLaneCount - 1 do
    WatchBegin(Watches[I], FLanes[I]);
  while StopLasts do
  begin
    for I := 0 to FLaneCount - 1 do
      if WatchAdvances(Watches[I]) then
        WatchBegin(Watches[I], FLanes[I]);
    SleepUs(SampleUs);
  end;
  Result := 0;
  for I := 0 to FLaneCount - 1 do
  begin
    while not WatchAdvances(Watches[I]) do
      SleepUs(SampleUs);
    StillNs := WatchStillNs(Watches[I]);
    if (@FLanes[I] <> Stopped) and (StillNs > Result) then
      Result := StillNs;
  end;
end;

function TStopped.Victim: PLane;
var
  Key: UInt64;
begin
  Key := RandomNext(FState);
  if (FKind = kiTrim) and Odd(Key) then
    Result := @FLanes[FLaneCount]
  else
    Result := @FLanes[RandomIndex(Key, FLaneCount)];
end;

/// Stops a thread that has not ended.
procedure TStopped.StopOne;
var
  Stopped: PLane;
  StillNs: Int64;
begin
  repeat
    SleepUs(PauseUs + RandomIndex(RandomNext(FState), RandomPauseUs));
    Stopped := Victim;
  until StopBegin(Stopped^.Thread);
  Inc(FInside, Ord(Stopped^.IsInside));
  StillNs := Watch(Stopped);
  Inc(FStalled, Ord(StillNs >= StallNs));
  if StillNs > FLongestNs then
    FLongestNs := StillNs;
end;

/// Waits until all threads do turns.
procedure TStopped.AwaitTurns;
var
  I: Integer;
begin
  while FArrived < FLaneCount do
    SleepUs(PauseUs);
  for I := 0 to FLaneCount - 1 + Ord(FKind = kiTrim) do
    while FLanes[I].TurnCount = 0 do
      SleepUs(PauseUs);
end;

procedure Control(Data: Pointer);
var
  Workload: TStopped;
  I: Int64;
begin
  Workload := Data;
  Workload.AwaitTurns;
  for I := 1 to Workload.FStops do
    Workload.StopOne;
  Workload.FIsOver := True;
end;

// ---------------------------------------------------------------------------- workload

constructor TStopped.Create(const Name: string; Kind: TKind; Smallest, Largest: Cardinal);
begin
  inherited Create(Name, StopCount);
  FKind := Kind;
  FSmallest := Smallest;
  FLargest := Largest;
end;

procedure TStopped.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  Check((ThreadCount > 1) and (ThreadCount < MostLanes), 'two to 15 threads stop each other');
  MixFillEvenly(FSizes, FSmallest, FLargest);
  FLaneCount := ThreadCount;
  for I := 0 to FLaneCount do
  begin
    FLanes[I].Workload := Self;
    FLanes[I].State := RandomSeed(I);
  end;
  FState := ClockNs(ClockWall);
  StopsPrepare;
  ThreadStart(FController, Control, Self);
  if FKind <> kiTrim then
    Exit;
  Check(Assigned(TrimMemory), 'this memory manager has no trim');
  ThreadStart(FTrimmer, TrimAlways, @FLanes[FLaneCount]);
end;

procedure TStopped.Run(const Job: TJob);
var
  Lane: PLane;
  Thread: TThread;
begin
  Lane := @FLanes[Job.Thread];
  InterlockedExchangeAdd64(FStops, Job.Operations);
  InterlockedIncrement(FArrived);
  repeat
    if FKind = kiSpawn then
    begin
      ThreadStart(Thread, WorkShortly, Lane);
      ThreadJoin(Thread);
    end
    else
      WorkShortly(Lane);
  until FIsOver;
end;

procedure TStopped.Finish;
var
  I, Place: Integer;
begin
  ThreadJoin(FController);
  if FKind = kiTrim then
    ThreadJoin(FTrimmer);
  TellFact('inside', FInside);
  TellFact('stalled', FStalled);
  TellFact('longest_ns', FLongestNs);
  for I := 0 to FLaneCount - 1 do
    for Place := 0 to PlaceCount - 1 do
      Release(FLanes[I], FLanes[I].Blocks[Place]);
  for Place := 0 to SharedCount - 1 do
    Release(FLanes[0], FShared[Place]);
end;

const
  KindNames: array[TKind] of string = ('stopped', 'stopped-shared', 'stopped-spawn',
    'stopped-trim');

procedure AddAll;
var
  Kind: TKind;
begin
  for Kind in TKind do
  begin
    TStopped.Create(KindNames[Kind] + '-1K', Kind, SizeOf(TBlock), 1000);
    TStopped.Create(KindNames[Kind] + '-32K', Kind, 1000, 32000);
    TStopped.Create(KindNames[Kind] + '-500K', Kind, 33000, 500000);
    TStopped.Create(KindNames[Kind] + '-2M', Kind, SizeOf(TBlock), 2000000);
  end;
end;

initialization
  AddAll;

end.
