/// Does a thread wait for one of low priority that has no processor?
//
// One thread has a processor for itself and serves a request each 100 microseconds, which replaces
// a block. On every other processor a thread of low priority replaces blocks of the same sizes
// beside a thread that uses up all its time; it loses the processor wherever it is.
// One operation is one request; p50, p99, p99.9 and the longest are reported, from the moment at
// which the request was due, so that a long wait counts for all requests that were due meanwhile.
// Time in which the serving thread could run and had no processor is not in it, nor is time lost
// between two requests.
//
// beside-idle-*: the threads of low priority are of SCHED_IDLE; beside-nice-*: they have nice 19.
// Source: docs/seeds.md, D1; the schedule of requests as in "How NOT to Measure Latency", G. Tene.
unit Workload.Starved;

{$I Bench.inc}

interface

implementation

uses
  ThreadSignals, Bench.Blocks, Bench.Durations, Bench.Stops, Bench.Threads, Bench.Workloads;

const
  RequestCount = 30000;
  IntervalNs = 100000;
  // Two readings of the clock so far apart: the thread waited, or had no processor.
  GapNs = 50000;
  PlaceCount = 64;
  MostProcessors = 1024;
  MostHelpers = 16;
  PolicyIdle = 5;
  LowestNice = 19;

type
  TPriority = (prIdle, prNice);
  TProcessors = array[0..MostProcessors div 64 - 1] of UInt64;
  TBlocks = array[0..PlaceCount - 1] of Pointer;

  TStarved = class(TWorkload)
  private
    FPriority: TPriority;
    FSmallest, FLargest: Cardinal;
    FSizes: TSizeMix;
    FOwn, FOthers: TProcessors;   // the serving thread's processor; all others
    FLow, FBusy: array[0..MostHelpers - 1] of TThread;
    FHelperCount: Integer;
    FLowTurns: Int64;
    FIsOver: Boolean;
    FRequests: TDurations;
    procedure ChooseProcessors;
    procedure Replace(var Blocks: TBlocks; var State: UInt64);
    procedure FreeAll(var Blocks: TBlocks);
  public
    constructor Create(const Name: string; Priority: TPriority; Smallest, Largest: Cardinal);
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

  /// The schedule of the requests.
  TPace = record
    Thread: Cardinal;        //< const   the number of the serving thread
    DueNs: Int64;            //< owner   when the next request is due
    LastNs: Int64;           //< owner   the last reading of the clock
    QueueNs: Int64;          //< owner   ThreadQueueNs, when it was last read
  end;

function GetAffinity(Thread: LongInt; Size: NativeUInt; out Processors: TProcessors): LongInt;
  cdecl; external 'c' name 'sched_getaffinity';
function SetAffinity(Thread: LongInt; Size: NativeUInt; const Processors: TProcessors): LongInt;
  cdecl; external 'c' name 'sched_setaffinity';
function SetScheduler(Thread, Policy: LongInt; Priority: PLongInt): LongInt; cdecl;
  external 'c' name 'sched_setscheduler';
function SetPriority(Which, Thread, Nice: LongInt): LongInt; cdecl;
  external 'c' name 'setpriority';

/// Moves the calling thread to Processors.
procedure MoveTo(const Processors: TProcessors);
begin
  Check(SetAffinity(0, SizeOf(Processors), Processors) = 0, 'a thread cannot be moved');
end;

procedure LowerPriority(Priority: TPriority);
var
  None: LongInt;
begin
  None := 0;
  case Priority of
    prIdle: Check(SetScheduler(0, PolicyIdle, @None) = 0, 'SCHED_IDLE is refused');
    prNice: Check(SetPriority(0, 0, LowestNice) = 0, 'nice is refused');
  end;
end;

procedure TStarved.Replace(var Blocks: TBlocks; var State: UInt64);
var
  Key: UInt64;
  Place, Size: Cardinal;
begin
  Key := RandomNext(State);
  Place := RandomIndex(Key, PlaceCount);
  Size := FSizes[Key and High(TSizeMix)];
  FreeMem(Blocks[Place]);
  Blocks[Place] := GetMem(Size);
  PByte(Blocks[Place])[0] := 1;
  PByte(Blocks[Place])[Size - 1] := 1;
end;

procedure TStarved.FreeAll(var Blocks: TBlocks);
var
  Place: Integer;
begin
  for Place := 0 to High(Blocks) do
    FreeMem(Blocks[Place]);
end;

// ---------------------------------------------------------------------------- other processors

procedure WorkLow(Data: Pointer);
var
  Workload: TStarved;
  Blocks: TBlocks;
  State: UInt64;
begin
  Workload := Data;
  MoveTo(Workload.FOthers);
  LowerPriority(Workload.FPriority);
  Blocks := Default(TBlocks);
  State := RandomSeed(ThreadNumber);
  repeat
    Workload.Replace(Blocks, State);
    InterlockedIncrement64(Workload.FLowTurns);
  until Workload.FIsOver;
  Workload.FreeAll(Blocks);
end;

procedure KeepBusy(Data: Pointer);
begin
  MoveTo(TStarved(Data).FOthers);
  while not TStarved(Data).FIsOver do
    ;
end;

// ---------------------------------------------------------------------------- requests

procedure PaceStart(out Pace: TPace);
begin
  Pace.Thread := ThreadNumber;
  Pace.QueueNs := ThreadQueueNs(Pace.Thread);
  Pace.LastNs := ClockNs(ClockWall);
  Pace.DueNs := Pace.LastNs;
end;

/// Waits until the next request is due. A gap in this loop is none of the memory manager's: it
/// delays the schedule.
procedure PaceAwait(var Pace: TPace);
var
  NowNs: Int64;
begin
  Inc(Pace.DueNs, IntervalNs);
  repeat
    NowNs := ClockNs(ClockWall);
    if NowNs - Pace.LastNs > GapNs then
    begin
      Inc(Pace.DueNs, NowNs - Pace.LastNs);
      Pace.QueueNs := ThreadQueueNs(Pace.Thread);
    end;
    Pace.LastNs := NowNs;
  until NowNs >= Pace.DueNs;
end;

/// Returns how late the request is that has just been served. Time that the thread spent without
/// a processor meanwhile delays the schedule.
function PaceLateNs(var Pace: TPace): Int64;
var
  NowNs, QueueNs: Int64;
begin
  NowNs := ClockNs(ClockWall);
  QueueNs := ThreadQueueNs(Pace.Thread);
  if NowNs - Pace.LastNs > GapNs then
    Inc(Pace.DueNs, QueueNs - Pace.QueueNs);
  Pace.QueueNs := QueueNs;
  Pace.LastNs := NowNs;
  Result := NowNs - Pace.DueNs;
  if Result < 0 then
    Result := 0;
end;

procedure TStarved.Run(const Job: TJob);
var
  Pace: TPace;
  Blocks: TBlocks;
  State: UInt64;
  I: Int64;
begin
  MoveTo(FOwn);
  Blocks := Default(TBlocks);
  State := RandomSeed(Job.Thread);
  PaceStart(Pace);
  for I := 1 to Job.Operations do
  begin
    PaceAwait(Pace);
    Replace(Blocks, State);
    DurationCount(FRequests, PaceLateNs(Pace));
  end;
  FIsOver := True;
  FreeAll(Blocks);
end;

// ---------------------------------------------------------------------------- workload

constructor TStarved.Create(const Name: string; Priority: TPriority; Smallest, Largest: Cardinal);
begin
  inherited Create(Name, RequestCount);
  FPriority := Priority;
  FSmallest := Smallest;
  FLargest := Largest;
end;

/// The first processor that this process may use is the serving thread's, the others are the
/// helpers'.
procedure TStarved.ChooseProcessors;
var
  I: Integer;
begin
  Check(GetAffinity(0, SizeOf(FOthers), FOthers) = 0, 'the processors are not known');
  FOwn := Default(TProcessors);
  FHelperCount := -1;
  for I := 0 to MostProcessors - 1 do
    if Odd(FOthers[I div 64] shr (I mod 64)) then
    begin
      Inc(FHelperCount);
      if FHelperCount > 0 then
        Continue;
      FOwn[I div 64] := UInt64(1) shl (I mod 64);
      FOthers[I div 64] := FOthers[I div 64] xor FOwn[I div 64];
    end;
  Check((FHelperCount > 0) and (FHelperCount <= MostHelpers), 'needs 2 to 17 processors');
end;

procedure TStarved.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  Check(ThreadCount = 1, 'one thread serves');
  MixFillEvenly(FSizes, FSmallest, FLargest);
  ChooseProcessors;
  for I := 0 to FHelperCount - 1 do
  begin
    ThreadStart(FLow[I], WorkLow, Self);
    ThreadStart(FBusy[I], KeepBusy, Self);
  end;
  while FLowTurns = 0 do
    SleepUs(1000);
  FLowTurns := 0;
end;

procedure TStarved.Finish;
var
  I: Integer;
begin
  Check(FLowTurns > 0, 'a thread of low priority has done nothing');
  for I := 0 to FHelperCount - 1 do
  begin
    ThreadJoin(FBusy[I]);
    ThreadJoin(FLow[I]);
  end;
  DurationsTell(FRequests);
end;

const
  PriorityNames: array[TPriority] of string = ('beside-idle', 'beside-nice');

procedure AddAll;
var
  Priority: TPriority;
begin
  for Priority in TPriority do
  begin
    TStarved.Create(PriorityNames[Priority] + '-20K', Priority, 20000, 20000);
    TStarved.Create(PriorityNames[Priority] + '-70K', Priority, 70000, 70000);
    TStarved.Create(PriorityNames[Priority] + '-mixed', Priority, 16, 500000);
  end;
end;

initialization
  AddAll;

end.
