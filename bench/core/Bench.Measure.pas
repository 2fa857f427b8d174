/// Runs a workload once and measures it.
//
// Time:     from the moment all threads are let go until the last one has done its job;
//           the start and the end of the threads are not in it.
// CPU time: of the threads while they do their jobs.
// Memory:   resident memory of the process as the kernel counts it.
// A run with one thread has no other thread: the program stays single-threaded.
unit Bench.Measure;

{$I Bench.inc}

interface

uses
  Bench.Workloads;

type
  /// What one run took.
  TMeasurement = record
    WallNs: Int64;       //< const   time, in nanoseconds
    CpuNs: Int64;        //< const   CPU time of all threads, in nanoseconds
    PeakKb: Int64;       //< const   highest resident memory
    FinalKb: Int64;      //< const   resident memory after all was freed
  end;

/// Runs Workload with Operations in all, divided over ThreadCount threads.
function Measure(Workload: TWorkload; ThreadCount: Integer; Operations: Int64): TMeasurement;

implementation

uses
  SysUtils, Classes, Linux, UnixType, Bench.Semaphore;

type
  PWorker = ^TWorker;
  TWorker = record
    Workload: TWorkload;   //< const   what to run
    Job: TJob;             //< const   this thread's part
    EndNs: Int64;          //< owner   when it was done
    CpuNs: Int64;          //< owner   CPU time of the job
    Handle: TThreadID;     //< const   unused in a run with one thread
  end;

var
  Arrived, Gate: TSemaphore;

function ClockNs(Clock: LongInt): Int64;
var
  Time: TTimeSpec;
begin
  clock_gettime(Clock, @Time);
  Result := Int64(Time.tv_sec) * 1000000000 + Time.tv_nsec;
end;

procedure WorkerRun(var Worker: TWorker);
var
  CpuStart: Int64;
begin
  CpuStart := ClockNs(CLOCK_THREAD_CPUTIME_ID);
  Worker.Workload.Run(Worker.Job);
  Worker.CpuNs := ClockNs(CLOCK_THREAD_CPUTIME_ID) - CpuStart;
  Worker.EndNs := ClockNs(CLOCK_MONOTONIC);
end;

function WorkerThread(Worker: Pointer): PtrInt;
begin
  SemaphorePost(Arrived);
  SemaphoreWait(Gate);
  WorkerRun(PWorker(Worker)^);
  Result := 0;
end;

/// Lets all Workers go at once and waits for them; returns when they were let go.
function WorkersRunTogether(var Workers: array of TWorker): Int64;
var
  I: Integer;
begin
  for I := 0 to High(Workers) do
    Workers[I].Handle := BeginThread(WorkerThread, @Workers[I]);
  for I := 0 to High(Workers) do
    SemaphoreWait(Arrived);
  Result := ClockNs(CLOCK_MONOTONIC);
  for I := 0 to High(Workers) do
    SemaphorePost(Gate);
  for I := 0 to High(Workers) do
  begin
    WaitForThreadTerminate(Workers[I].Handle, 0);
    CloseThread(Workers[I].Handle);
  end;
end;

/// Reads a field of /proc/self/status that is given in kB.
function StatusKb(const Field: string): Int64;
var
  Status: TStringList;
begin
  Status := TStringList.Create;
  try
    Status.NameValueSeparator := ':';
    Status.LoadFromFile('/proc/self/status');
    Result := StrToInt64(Trim(StringReplace(Status.Values[Field], 'kB', '', [])));
  finally
    Status.Free;
  end;
end;

function Measure(Workload: TWorkload; ThreadCount: Integer; Operations: Int64): TMeasurement;
var
  Workers: array of TWorker;
  I: Integer;
  StartNs: Int64;
begin
  SetLength(Workers, ThreadCount);
  for I := 0 to ThreadCount - 1 do
  begin
    Workers[I].Workload := Workload;
    Workers[I].Job.Thread := I;
    Workers[I].Job.Operations := Operations div ThreadCount;
  end;
  Workload.Prepare(ThreadCount);
  StartNs := ClockNs(CLOCK_MONOTONIC);
  if ThreadCount = 1 then
    WorkerRun(Workers[0])
  else
    StartNs := WorkersRunTogether(Workers);
  Result := Default(TMeasurement);
  for I := 0 to ThreadCount - 1 do
  begin
    Inc(Result.CpuNs, Workers[I].CpuNs);
    if Workers[I].EndNs - StartNs > Result.WallNs then
      Result.WallNs := Workers[I].EndNs - StartNs;
  end;
  Result.FinalKb := StatusKb('VmRSS');
  Result.PeakKb := StatusKb('VmHWM');
end;

initialization
  SemaphoreStart(Arrived, 0);
  SemaphoreStart(Gate, 0);

end.
