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
  Bench.Blocks, Bench.Threads, Bench.Workloads;

const
  PlaceCount = 4096;
  BurstLength = 200;
  TimedLength = 20;
  SleepLengthUs = 200;
  LongestNs = 1 shl 30;
  BinsPerDoubling = 16;
  BinCount = 31 * BinsPerDoubling;

type
  /// Counts of calls by their duration; a bin is 4 % wide.
  TBins = array[0..BinCount - 1] of Int64;

  TSleepers = class(TWorkload)
  private
    FPlaces: array[0..PlaceCount - 1] of Pointer;
    FBins: TBins;
    procedure Burst(var State: UInt64; var Bins: TBins);
  public
    procedure Run(const Job: TJob); override;
    procedure Finish; override;
  end;

/// Gives the bin of a duration: its binary logarithm, in steps of a sixteenth.
function BinOf(Duration: Int64): Integer;
var
  Exponent: Integer;
begin
  if Duration > LongestNs then
    Duration := LongestNs;
  if Duration < BinsPerDoubling then
    Exit(Duration);
  Exponent := BsrQWord(Duration);
  Result := (Exponent - 3) * BinsPerDoubling +
    (Duration shr (Exponent - 4)) and (BinsPerDoubling - 1);
end;

/// Gives the shortest duration in a bin.
function BinStart(Bin: Integer): Int64;
begin
  if Bin < BinsPerDoubling then
    Exit(Bin);
  Result := Int64(BinsPerDoubling + Bin mod BinsPerDoubling) shl (Bin div BinsPerDoubling - 1);
end;

/// Counts a call that began at StartNs and has just ended.
procedure CountCall(var Bins: TBins; StartNs: Int64);
begin
  Inc(Bins[BinOf(ClockNs(ClockWall) - StartNs)]);
end;

/// Replaces a random block and times both calls.
procedure TimedReplace(var Place: Pointer; Key: UInt64; var Bins: TBins);
var
  Block, Old: Pointer;
  StartNs: Int64;
begin
  StartNs := ClockNs(ClockWall);
  Block := BlockNew(SmallMix, Key);
  CountCall(Bins, StartNs);
  Old := InterlockedExchange(Place, Block);
  if Old = nil then
    Exit;
  StartNs := ClockNs(ClockWall);
  BlockRelease(SmallMix, Old);
  CountCall(Bins, StartNs);
end;

procedure TSleepers.Burst(var State: UInt64; var Bins: TBins);
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
      TimedReplace(FPlaces[RandomIndex(Key, PlaceCount)], Key, Bins);
  end;
end;

procedure TSleepers.Run(const Job: TJob);
var
  Bins: TBins;
  State: UInt64;
  I: Int64;
begin
  Bins := Default(TBins);
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations do
  begin
    Burst(State, Bins);
    SleepUs(SleepLengthUs);
  end;
  for I := 0 to High(Bins) do
    InterlockedExchangeAdd64(FBins[I], Bins[I]);
end;

/// Gives the duration that Share of all calls do not exceed.
function Percentile(const Bins: TBins; Share: Double): Int64;
var
  Left, Count: Int64;
  I: Integer;
begin
  Left := 0;
  for Count in Bins do
    Inc(Left, Count);
  Left := Round(Left * Share);
  for I := 0 to High(Bins) do
  begin
    Dec(Left, Bins[I]);
    if Left <= 0 then
      Exit(BinStart(I));
  end;
  Result := LongestNs;
end;

procedure TSleepers.Finish;
var
  I: Integer;
begin
  TellFact('p50_ns', Percentile(FBins, 0.5));
  TellFact('p99_ns', Percentile(FBins, 0.99));
  TellFact('p999_ns', Percentile(FBins, 0.999));
  TellFact('longest_ns', Percentile(FBins, 1));
  for I := 0 to PlaceCount - 1 do
    BlockRelease(SmallMix, FPlaces[I]);
end;

initialization
  TSleepers.Create('sleepers', 5400);

end.
