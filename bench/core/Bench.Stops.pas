/// Stops a thread by a signal, wherever it is, and keeps other threads off its processor.
//
// Callers:  one thread, which controls the run, stops the others, one at a time. It allocates
//           nothing in these routines: it must not wait for the thread that it has stopped.
// Source:   tgkill(2), sched(7), Documentation/scheduler/sched-stats.rst of Linux.
unit Bench.Stops;

{$I Bench.inc}

interface

const
  /// The length of a stop, in nanoseconds.
  StopNs = 60000000;

/// Installs the handler of the signal that stops. Before the first stop.
procedure StopsPrepare;
/// Stops a thread by its number; returns when it stands, False if it has ended before.
function StopBegin(Thread: Cardinal): Boolean;
/// Returns whether the stopped thread still stands.
function StopLasts: Boolean;

/// Returns how long a thread has waited for a processor while it could run, in nanoseconds;
/// 0 if it has ended.
function ThreadQueueNs(Thread: Cardinal): Int64;
/// Returns whether a thread waits inside the system, for a lock of the system or for a device.
function ThreadIsInKernel(Thread: Cardinal): Boolean;

implementation

uses
  BaseUnix, Math, UnixType, ThreadSignals, Bench.Threads;

const
  PollUs = 100;
  // A thread that does not stand after so many polls blocks the signal, because it ends.
  MostPolls = 1000;

  // The states of a stop: none, the signal was sent, a thread stands.
  NoStop = 0;
  Wanted = 1;
  Standing = 2;

var
  Stop: LongInt;     //< shared  the state; from Wanted on by the thread that receives the signal

// The C library's own, whose errno needs no thread that the run-time library knows.
function NanoSleep(Time, Rest: PTimeSpec): LongInt; cdecl;
  external 'c' name 'nanosleep';

// The signal handler: only a system call. A signal that comes too late stops nothing.
procedure StandStill(Signal: LongInt; Info: PSigInfo; Context: PSigContext); cdecl;
var
  Time: TTimeSpec;
begin
  if InterlockedCompareExchange(Stop, Standing, Wanted) <> Wanted then
    Exit;
  Time.tv_sec := 0;
  Time.tv_nsec := StopNs;
  NanoSleep(@Time, nil);
  InterlockedExchange(Stop, NoStop);
end;

procedure StopsPrepare;
var
  Action: SigActionRec;
begin
  Action := Default(SigActionRec);
  Action.sa_handler := SigActionHandler(@StandStill);
  Action.sa_flags := SA_RESTART or SA_SIGINFO;
  FpSigAction(SIGUSR2, @Action, nil);
end;

function StopBegin(Thread: Cardinal): Boolean;
var
  Polls: Integer;
begin
  InterlockedExchange(Stop, Wanted);
  Polls := 0;
  if SignalTo(Thread, SIGUSR2) then
    repeat
      SleepUs(PollUs);
      Inc(Polls);
    until (InterlockedCompareExchange(Stop, Wanted, Wanted) <> Wanted) or (Polls = MostPolls)
      or not SignalTo(Thread, 0);
  Result := InterlockedCompareExchange(Stop, NoStop, Wanted) <> Wanted;
end;

function StopLasts: Boolean;
begin
  Result := InterlockedCompareExchange(Stop, Standing, Standing) = Standing;
end;

/// Returns the second number in Text.
function SecondNumber(const Text: ShortString): Int64;
var
  Place: Integer;
begin
  Result := 0;
  for Place := Pos(' ', Text) + 1 to Length(Text) do
  begin
    if not (Text[Place] in ['0'..'9']) then
      Break;
    Result := 10 * Result + Ord(Text[Place]) - Ord('0');
  end;
end;

/// Reads a file of /proc on a thread; empty if the thread has ended.
function ThreadFile(Thread: Cardinal; const Name: ShortString): ShortString;
var
  Path: ShortString;
  Handle: LongInt;
begin
  Result := '';
  Str(Thread, Path);
  Path := '/proc/self/task/' + Path + '/' + Name + #0;
  Handle := FpOpen(@Path[1], O_RDONLY);
  if Handle < 0 then
    Exit;
  SetLength(Result, Max(0, FpRead(Handle, Result[1], High(Result))));
  FpClose(Handle);
end;

function ThreadQueueNs(Thread: Cardinal): Int64;
begin
  Result := SecondNumber(ThreadFile(Thread, 'schedstat'));
end;

function ThreadIsInKernel(Thread: Cardinal): Boolean;
begin
  Result := Pos(') D ', ThreadFile(Thread, 'stat')) > 0;
end;

end.
