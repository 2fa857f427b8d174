/// Rests, in which no thread of the workload runs, and the memory that is left after them.
unit Bench.Rest;

{$I Bench.inc}

interface

var
  /// Factor of all rests: below 1 in a run that only shows that all works.
  RestScale: Double = 1; //< const   set before the workload starts

/// Sleeps for DurationMs milliseconds times RestScale.
procedure Rest(DurationMs: Cardinal);
/// Reports the resident memory as Title_kb, and what is charged, where that is known, as
/// Title_charged_kb. Main thread, or one thread while all others of the workload wait or have ended.
procedure TellMemory(const Title: string);
/// Rests 2.5 seconds and reports the memory as `quiet`, and of the resident memory what lies in huge pages
/// (huge_kb) and what the manager has given back, to be taken when memory is scarce (lazy_kb). One thread calls it, while all
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

procedure TellMemory(const Title: string);
var
  Resident, Charged: Int64;
begin
  Resident := ResidentKb; // before the first call of the manager, as Charged
  Charged := ChargedKb;
  TellFact(Title + '_kb', Resident);
  if Charged >= 0 then
    TellFact(Title + '_charged_kb', Charged);
end;

procedure TellQuiet;
begin
  Rest(QuietMs);
  TellMemory('quiet');
  TellFact('huge_kb', MappedKb('AnonHugePages'));
  TellFact('lazy_kb', MappedKb('LazyFree'));
end;

end.
