/// Many threads, active but mostly sleeping, on few cores: how long do they wait?
//
// One operation is a burst of 200 replacements of blocks of the small mix, then a sleep of
// 200 microseconds. All threads share the table of blocks, so they free those of the others.
// Each GetMem and FreeMem of a burst's last 20 replacements is
// timed; p50, p99, p99.9 and the longest are reported, in ns, with the clock's own 30 ns in.
// Source: docs/seeds.md, D1: a service with 9 threads on 2 cores, in which contention that
//         never sleeps took all CPU time.
unit Workload.Sleepers;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Durations, Bench.Threads, Bench.Workloads;

const
  PlaceCount = 4096;
  BurstLength = 200;
  TimedLength = 20;
  SleepLengthUs = 200;

type
  TSleepers = class(TWorkload)
  private
    FPlaces: array[0..PlaceCount - 1] of Pointer;
    FCalls: TDurations;
    procedure Burst(var State: UInt64; var Calls: TDurations);
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

/// Counts a call that began at StartNs and has just ended.
procedure CountCall(var Calls: TDurations; StartNs: Int64);
begin
  DurationCount(Calls, ClockNs(ClockWall) - StartNs);
end;

/// Replaces a random block and times both calls.
procedure TimedReplace(var Place: Pointer; Key: UInt64; var Calls: TDurations);
var
  Block, Old: Pointer;
  StartNs: Int64;
begin
  StartNs := ClockNs(ClockWall);
  Block := BlockNew(SmallMix, Key);
  CountCall(Calls, StartNs);
  Old := InterlockedExchange(Place, Block);
  if Old = nil then
    Exit;
  StartNs := ClockNs(ClockWall);
  BlockRelease(SmallMix, Old);
  CountCall(Calls, StartNs);
end;

procedure TSleepers.Burst(var State: UInt64; var Calls: TDurations);
var
  Key: UInt64;
  I: Integer;
begin
  for I := 1 to BurstLength do
  begin
    Key := RandomNext(State);
    if I <= BurstLength - TimedLength then
      BlockRelease(SmallMix, InterlockedExchange(FPlaces[RandomIndex(Key, PlaceCount)],
        BlockNew(SmallMix, Key)))
    else
      TimedReplace(FPlaces[RandomIndex(Key, PlaceCount)], Key, Calls);
  end;
end;

procedure TSleepers.Run(const Job: TJob);
var
  Calls: TDurations;
  State: UInt64;
  I: Int64;
begin
  Calls := Default(TDurations);
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations do
  begin
    Burst(State, Calls);
    SleepUs(SleepLengthUs);
  end;
  DurationsAdd(FCalls, Calls);
end;

procedure TSleepers.Finish;
var
  I: Integer;
begin
  DurationsTell(FCalls);
  for I := 0 to PlaceCount - 1 do
    BlockRelease(SmallMix, FPlaces[I]);
end;

initialization
  TSleepers.Create('sleepers', 5400);

end.
