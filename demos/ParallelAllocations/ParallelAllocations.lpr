/// A hundred lists that are each filled with 12,000 objects and emptied again, one after the other
/// and in several threads at once.
program ParallelAllocations;

{$mode delphi}{$H+}

uses
  {$ifdef unix} cthreads, {$endif}
  SysUtils, Demo.Options, Demo.Report, Demo.Machine, ListJobs;

const
  Usage =
    'Fills lists with small objects and deletes these from the front until the list is'#10 +
    'empty: one list after the other, then the lists shared out to threads.'#10 +
    '  --lists=N       lists, 100'#10 +
    '  --objects=N     objects in each list, 12,000'#10 +
    '  --threads=N     threads, as many as this process may use processors'#10;

function TimeMs(Run: TProcedure): Double;
var
  Start: Double;
begin
  Start := ClockMs;
  Run;
  Result := ClockMs - Start;
end;

procedure Print(SerialMs, ParallelMs: Double; PeakBytes: Int64);
begin
  ReportText('serial %.1f ms, parallel %.1f ms, speed-up %.2f, peak memory %.1f MB',
    [SerialMs, ParallelMs, SerialMs / ParallelMs, PeakBytes / BytesPerMb]);
  ReportText('The book, Delphi on 12 cores: speed-up 3.9, with release stack 6.3', []);
  ReportValue('threads', ThreadCount);
  ReportValue('serial_ms', SerialMs);
  ReportValue('parallel_ms', ParallelMs);
  ReportValue('speed_up', SerialMs / ParallelMs);
  ReportValue('peak_bytes', PeakBytes);
end;

var
  SerialMs, ParallelMs: Double;
begin
  OptionsRead(Usage, ['lists=', 'objects=', 'threads=']);
  ListCount := OptionNumber('lists', 100, 1000000);
  ObjectCount := OptionNumber('objects', 12000, 1000000);
  ThreadCount := OptionNumber('threads', ProcessorCount, 1000);
  ReportTitle(Format('%s lists of %s objects, %d threads',
    [Grouped(ListCount), Grouped(ObjectCount), ThreadCount]));
  SerialMs := TimeMs(RunSerial);
  ParallelMs := TimeMs(RunParallel);
  Print(SerialMs, ParallelMs, PeakResidentBytes);
  if WrongLists > 0 then
  begin
    WriteLn(StdErr, ProgramName, ': ', WrongLists, ' lists did not hold what was put in');
    ExitCode := 1;
  end;
end.
