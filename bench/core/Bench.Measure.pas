/// Runs a workload once and measures it.
//
// Time:     from the moment all threads are let go until the last one has done its job;
//           the start and the end of the threads are not in it.
// CPU time: of the whole process in that time, so also of threads that a workload or a
//           memory manager starts.
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
    CpuNs: Int64;        //< const   CPU time, in nanoseconds
    PeakKb: Int64;       //< const   highest resident memory
    FinalKb: Int64;      //< const   resident memory after all was freed
  end;

/// Runs Workload with Operations in all, divided over ThreadCount threads.
function Measure(Workload: TWorkload; ThreadCount: Integer; Operations: Int64): TMeasurement;
/// Reads the resident memory of this process, in kB.
function ResidentKb: Int64;
/// Reads the memory that the system charges the process, in kB: all that its group has. -1 without a
/// group of its own.
function ChargedKb: Int64;
/// Reads a field of smaps_rollup, in kB.
function MappedKb(Field: PAnsiChar): Int64;

implementation

uses
  SysUtils, BaseUnix, Math, MemoryGroup, Bench.Blocks, Bench.Semaphore, Bench.Threads;

const
  StatusSize = 4096;

type
  PWorker = ^TWorker;
  TWorker = record
    Workload: TWorkload;   //< const   what to run
    Job: TJob;             //< const   this thread's part
    Thread: TThread;       //< const   unused in a run with one thread
  end;

var
  Arrived, Gate, Done: TSemaphore;
  Group: TGroupFolder; //< const   the group that the runner made for this process; empty: none

procedure WorkerRun(Worker: Pointer);
begin
  SemaphorePost(Arrived);
  SemaphoreWait(Gate);
  PWorker(Worker)^.Workload.Run(PWorker(Worker)^.Job);
  SemaphorePost(Done);
end;

procedure RepeatedlyWait(var Semaphore: TSemaphore; Count: Integer);
var
  I: Integer;
begin
  for I := 1 to Count do
    SemaphoreWait(Semaphore);
end;

/// Starts all Workers; they wait at the gate.
procedure WorkersStart(var Workers: array of TWorker);
var
  I: Integer;
begin
  for I := 0 to High(Workers) do
    ThreadStart(Workers[I].Thread, WorkerRun, @Workers[I]);
  RepeatedlyWait(Arrived, Length(Workers));
end;

/// Opens the gate and waits until all jobs are done.
procedure WorkersRun(var Workers: array of TWorker);
var
  I: Integer;
begin
  for I := 0 to High(Workers) do
    SemaphorePost(Gate);
  RepeatedlyWait(Done, Length(Workers));
end;

procedure WorkersJoin(var Workers: array of TWorker);
var
  I: Integer;
begin
  for I := 0 to High(Workers) do
    ThreadJoin(Workers[I].Thread);
end;

/// Reads a field of a file of /proc that is given in kB. Makes no block: a call of the manager
/// may be the moment at which it returns memory.
function FieldKb(FileName, Field: PAnsiChar): Int64;
var
  Text: array[0..StatusSize] of AnsiChar;
  Status: LongInt;
  Place: PAnsiChar;
begin
  Status := FpOpen(FileName, O_RDONLY);
  Text[Max(0, FpRead(Status, PAnsiChar(@Text), StatusSize))] := #0;
  FpClose(Status);
  Place := StrPos(Text, Field);
  Check(Place <> nil, 'the kernel does not count this memory');
  Inc(Place, StrLen(Field));
  Result := 0;
  while Place^ in [':', #9, ' ', '0'..'9'] do
  begin
    if Place^ in ['0'..'9'] then
      Result := 10 * Result + Ord(Place^) - Ord('0');
    Inc(Place);
  end;
end;

function ResidentKb: Int64;
begin
  Result := FieldKb('/proc/self/status', 'VmRSS');
end;

function ChargedKb: Int64;
begin
  Result := GroupCharged(Group);
  if Result > 0 then
    Result := Result div 1024;
end;

function MappedKb(Field: PAnsiChar): Int64;
begin
  Result := FieldKb('/proc/self/smaps_rollup', Field);
end;

function Measure(Workload: TWorkload; ThreadCount: Integer; Operations: Int64): TMeasurement;
var
  Workers: array of TWorker;
  I: Integer;
begin
  SetLength(Workers, ThreadCount);
  for I := 0 to ThreadCount - 1 do
  begin
    Workers[I].Workload := Workload;
    Workers[I].Job.Thread := I;
    Workers[I].Job.Operations := Operations div ThreadCount;
  end;
  Workload.Prepare(ThreadCount);
  if ThreadCount > 1 then
    WorkersStart(Workers);
  Result.CpuNs := -ClockNs(ClockCpu);
  Result.WallNs := -ClockNs(ClockWall);
  if ThreadCount > 1 then
    WorkersRun(Workers)
  else
    Workload.Run(Workers[0].Job);
  Inc(Result.WallNs, ClockNs(ClockWall));
  Inc(Result.CpuNs, ClockNs(ClockCpu));
  if ThreadCount > 1 then
    WorkersJoin(Workers);
  Workload.Finish;
  Result.FinalKb := ResidentKb;
  Result.PeakKb := FieldKb('/proc/self/status', 'VmHWM');
end;

initialization
  Group := GroupOfProcess;
  SemaphoreStart(Arrived, 0);
  SemaphoreStart(Gate, 0);
  SemaphoreStart(Done, 0);

end.
