/// Lets other threads run where a build with LANEMM_YIELD calls Hooks.Yield: before and after every
/// atomic operation, and between plain accesses that other threads see.
//
// Owns:       Hooks.Yield.
// Invariants: a thread spins, yields or sleeps there by a sequence that follows from the seed and the
//             thread's number, the first thread that comes here has 1. Its moods change: a calm thread
//             runs past windows that a hectic one stands still in. The system's scheduler remains: a
//             seed makes the same decisions, it does not make the same run.
// Callers:    any thread, under any lock, in signal handlers, before and after its thread-library state
//             exists: no call here allocates, locks, or changes errno.
unit Yielding;

{$mode delphi}{$pointermath on}
{$ifdef CPUX86_64} {$asmmode intel} {$endif}

interface

/// Begins to yield. The program is built with LANEMM_YIELD, or nothing comes of it.
procedure YieldingStart(Seed: UInt64);
/// Waits Ns nanoseconds, at least, in the way that a place to yield may: for signal handlers.
procedure StandStill(Ns: Cardinal);
/// The times that threads have come to a place where they may yield.
function YieldingCount: Int64;

implementation

uses
  {$ifdef LINUX} Syscall, {$endif} LaneMM.Hooks, LaneMM.Atomic;

const
  {$ifdef LINUX}
  NrYield = syscall_nr_sched_yield;
  NrSleep = syscall_nr_nanosleep;
  {$endif}
  StreamCount = 4096;
  MostTries = 16;
  Mix = UInt64($9E3779B97F4A7C15);
  // A mood lasts for so many places.
  MoodLength = 512;

type
  /// The sequence of one thread.
  TStream = record
    Thread: NativeUInt; // 0: unused
    State: UInt64;
    Mood: Cardinal;
    PlacesLeft: Cardinal;
    Count: Int64;
  end;
  PStream = ^TStream;

  TTime = record
    Seconds, Nanoseconds: NativeInt;
  end;

  /// In 1024 places of a mood: how many times the thread does what. A sleep is of 1 to LongestNs.
  TMood = record
    Spins, Yields, Sleeps: Cardinal;
    LongestNs: Cardinal;
  end;

const
  Moods: array[0..5] of TMood = (
    (Spins: 0; Yields: 0; Sleeps: 0; LongestNs: 1),
    (Spins: 8; Yields: 4; Sleeps: 0; LongestNs: 1),
    (Spins: 256; Yields: 16; Sleeps: 0; LongestNs: 1),
    (Spins: 32; Yields: 100; Sleeps: 0; LongestNs: 1),
    (Spins: 32; Yields: 16; Sleeps: 16; LongestNs: 20000),
    (Spins: 0; Yields: 4; Sleeps: 1; LongestNs: 2000000));
  MostSpins = 400;

var
  FirstSeed: UInt64;
  StreamsUsed: LongInt;
  Streams: array[0..StreamCount - 1] of TStream;

{$ifdef MSWINDOWS}
procedure Sleep(Ms: Cardinal); stdcall; external 'kernel32.dll';

procedure SystemYield;
begin
  Sleep(0);
end;

procedure StandStill(Ns: Cardinal);
const
  NsPerMs = 1000000;
begin
  Sleep((Ns + NsPerMs - 1) div NsPerMs);
end;
{$else}
{$ifdef CPUX86_64}
// The system call without errno.
function Call(Number, P1, P2: NativeUInt): NativeInt; assembler; nostackframe;
asm
  mov rax, rdi
  mov rdi, rsi
  mov rsi, rdx
  syscall
end;
{$else}
function Call(Number, P1, P2: NativeUInt): NativeInt;
begin
  Result := Do_SysCall(Number, P1, P2);
end;
{$endif}

procedure SystemYield;
begin
  Call(NrYield, 0, 0);
end;

procedure StandStill(Ns: Cardinal);
var
  Time: TTime;
begin
  Time.Seconds := 0;
  Time.Nanoseconds := Ns;
  Call(NrSleep, NativeUInt(@Time), 0);
end;
{$endif}

// xorshift64*.
function Next(Stream: PStream): Cardinal;
var
  State: UInt64;
begin
  State := Stream^.State;
  State := State xor (State shr 12);
  State := State xor (State shl 25);
  State := State xor (State shr 27);
  Stream^.State := State;
  Result := (State * UInt64($2545F4914F6CDD1D)) shr 32;
end;

// Takes an unused stream; False when another thread was faster.
function Take(Stream: PStream; Thread: NativeUInt): Boolean;
begin
  Result := InterlockedCompareExchange(Pointer(Stream^.Thread), Pointer(Thread), nil) = nil;
  if Result then
    Stream^.State := (FirstSeed + UInt64(InterlockedIncrement(StreamsUsed))) * Mix or 1;
end;

// The stream of the calling thread. A thread that the library gives the name of an ended one goes
// on with its stream; beyond thousands of threads some share one.
function OwnStream: PStream;
var
  Thread: NativeUInt;
  Turn: Cardinal;
begin
  Thread := NativeUInt(GetCurrentThreadId);
  for Turn := 0 to MostTries do
  begin
    Result := @Streams[((UInt64(Thread) * Mix) shr 52 + Turn) mod StreamCount];
    if (Result^.Thread = Thread) or (Result^.Thread = 0) and Take(Result, Thread) then
      Exit;
  end;
end;

procedure Act(Stream: PStream; const Mood: TMood);
var
  Choice, Turn: Cardinal;
begin
  Choice := Next(Stream) mod 1024;
  if Choice < Mood.Sleeps then
    StandStill(1 + Next(Stream) mod Mood.LongestNs)
  else if Choice < Mood.Sleeps + Mood.Yields then
    SystemYield
  else if Choice < Mood.Sleeps + Mood.Yields + Mood.Spins then
    for Turn := 1 to Next(Stream) mod MostSpins do
      SpinHint;
end;

procedure Yield;
var
  Stream: PStream;
begin
  Stream := OwnStream;
  Inc(Stream^.Count);
  if Stream^.PlacesLeft = 0 then
  begin
    Stream^.PlacesLeft := 1 + Next(Stream) mod MoodLength;
    Stream^.Mood := Next(Stream) mod Length(Moods);
  end;
  Dec(Stream^.PlacesLeft);
  Act(Stream, Moods[Stream^.Mood]);
end;

procedure YieldingStart(Seed: UInt64);
begin
  FirstSeed := Seed;
  Hooks.Yield := Yield;
end;

function YieldingCount: Int64;
var
  Index: Cardinal;
begin
  Result := 0;
  for Index := 0 to StreamCount - 1 do
    Inc(Result, Streams[Index].Count);
end;

end.
