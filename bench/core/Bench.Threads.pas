/// Threads that a workload starts and joins; clocks.
unit Bench.Threads;

{$I Bench.inc}

interface

const
  /// Clock that never goes back.
  ClockWall = 1;
  /// CPU time of all threads of the process.
  ClockCpu = 2;

type
  /// What a thread does with the data it was started with.
  TThreadBody = procedure(Data: Pointer);

  /// A started thread.
  TThread = record
    Body: TThreadBody;    //< const   what it runs
    Data: Pointer;        //< const   with what
    Handle: TThreadID;    //< owner   of the starter
  end;

/// Starts a thread that runs Body(Data). Thread must live until ThreadJoin.
procedure ThreadStart(var Thread: TThread; Body: TThreadBody; Data: Pointer);
/// Waits until the thread has ended.
procedure ThreadJoin(var Thread: TThread);

/// Reads ClockWall or ClockCpu; in nanoseconds.
function ClockNs(Clock: LongInt): Int64;
/// Sleeps, in microseconds.
procedure SleepUs(Duration: Cardinal);

implementation

uses
  Linux, UnixType, BaseUnix;

function ThreadMain(Thread: Pointer): PtrInt;
begin
  TThread(Thread^).Body(TThread(Thread^).Data);
  Result := 0;
end;

procedure ThreadStart(var Thread: TThread; Body: TThreadBody; Data: Pointer);
begin
  Thread.Body := Body;
  Thread.Data := Data;
  Thread.Handle := BeginThread(ThreadMain, @Thread);
end;

procedure ThreadJoin(var Thread: TThread);
begin
  WaitForThreadTerminate(Thread.Handle, 0);
  CloseThread(Thread.Handle);
end;

function ClockNs(Clock: LongInt): Int64;
var
  Time: TTimeSpec;
begin
  clock_gettime(Clock, @Time);
  Result := Int64(Time.tv_sec) * 1000000000 + Time.tv_nsec;
end;

procedure SleepUs(Duration: Cardinal);
var
  Time: TTimeSpec;
begin
  Time.tv_sec := Duration div 1000000;
  Time.tv_nsec := Duration mod 1000000 * 1000;
  FpNanoSleep(@Time, nil);
end;

end.
