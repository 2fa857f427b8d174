/// Rests, in which no thread of the workload runs, and the memory that is resident after them.
unit Bench.Rest;

{$I Bench.inc}

interface

var
  /// Factor of all rests: below 1 in a run that only shows that all works.
  RestScale: Double = 1; //< const   set before the workload starts

/// Sleeps for DurationMs milliseconds times RestScale.
procedure Rest(DurationMs: Cardinal);
/// Rests 2.5 seconds and reports the resident memory as quiet_kb. One thread calls it, while all
/// others of the workload wait or have ended.
procedure TellQuiet;

implementation

uses
  Bench.Measure, Bench.Threads, Bench.Workloads;

const
  QuietMs = 2500;

procedure Rest(DurationMs: Cardinal);
begin
  SleepUs(Round(DurationMs * 1000 * RestScale));
end;

procedure TellQuiet;
begin
  Rest(QuietMs);
  TellFact('quiet_kb', ResidentKb);
end;

end.
