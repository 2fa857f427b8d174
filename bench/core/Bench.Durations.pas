/// Durations of calls, counted in bins: percentiles without a list of all calls.
unit Bench.Durations;

{$I Bench.inc}

interface

const
  /// Longer durations count as this one.
  LongestNs = Int64(1) shl 34;
  /// Bins between a duration and its double.
  BinsPerDoubling = 16;
  /// All bins.
  BinCount = 31 * BinsPerDoubling;

type
  /// Counts of calls by their duration; a bin is 4 % wide.
  TDurations = array[0..BinCount - 1] of Int64;

/// Counts a call that took Duration, in nanoseconds.
procedure DurationCount(var Durations: TDurations; Duration: Int64);
/// Adds the counts of one thread to those of all. Any thread.
procedure DurationsAdd(var All: TDurations; const Durations: TDurations);
/// Reports p50, p99, p99.9 and the longest as facts. Main thread only.
procedure DurationsTell(const Durations: TDurations);

implementation

uses
  Bench.Workloads;

/// Gives the bin of a duration: its binary logarithm, in steps of a sixteenth.
function BinOf(Duration: Int64): Integer;
var
  Exponent: Integer;
begin
  if Duration >= LongestNs then
    Duration := LongestNs - 1;
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

procedure DurationCount(var Durations: TDurations; Duration: Int64);
begin
  Inc(Durations[BinOf(Duration)]);
end;

procedure DurationsAdd(var All: TDurations; const Durations: TDurations);
var
  I: Integer;
begin
  for I := 0 to High(All) do
    InterlockedExchangeAdd64(All[I], Durations[I]);
end;

/// Gives the duration that Share of all calls do not exceed.
function Percentile(const Durations: TDurations; Share: Double): Int64;
var
  Left, Count: Int64;
  I: Integer;
begin
  Left := 0;
  for Count in Durations do
    Inc(Left, Count);
  Left := Round(Left * Share);
  for I := 0 to High(Durations) do
  begin
    Dec(Left, Durations[I]);
    if Left <= 0 then
      Exit(BinStart(I));
  end;
  Result := LongestNs;
end;

procedure DurationsTell(const Durations: TDurations);
begin
  TellFact('p50_ns', Percentile(Durations, 0.5));
  TellFact('p99_ns', Percentile(Durations, 0.99));
  TellFact('p999_ns', Percentile(Durations, 0.999));
  TellFact('longest_ns', Percentile(Durations, 1));
end;

end.
