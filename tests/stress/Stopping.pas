/// Threads that stand still at any moment, inside the memory manager too: a thread sends signals to
/// random threads, whose handler waits a random short time, with all locks that the thread holds.
unit Stopping;

{$mode delphi}{$pointermath on}

interface

/// The calling thread may be stopped from now on.
procedure StoppingJoin;
/// Starts the thread that stops the others.
procedure StoppingStart(Seed: UInt64);
/// Ends it.
procedure StoppingEnd;
/// The number of stops.
function StopCount: Int64;
/// Of Sampled stops, the first ones, how many met a thread in a routine of LaneMM.
function StopsInside(out Sampled: Integer): Integer;

implementation

uses
  BaseUnix, Test.Tools, ThreadSignals, Yielding, LaneMM.Atomic, LaneMM.Symbols, LaneMM.Elf;

const
  // More than the threads of a run at a time; numbers of ended threads are overwritten.
  KnownThreads = 16;
  MostSampled = 20000;
  // A stop of up to so many nanoseconds; now and then one of up to the longer time.
  ShortNs = 100000;
  LongNs = 20000000;
  LongEvery = 64;
  // So many signals at a time, then a pause.
  SignalsAtATime = 4;
  PauseNs = 50000;

var
  Threads: array[0..KnownThreads - 1] of Cardinal;
  Joined: LongInt;
  Stopper: TThreadID;
  IsOver: LongInt;
  Stops: NativeUInt;
  Places: array[0..MostSampled - 1] of NativeUInt;
  Random: TGenerator;

// The signal handler: only system calls.
procedure StandHere(Signal: LongInt; Info: PSigInfo; Context: PSigContext); cdecl;
var
  Number: NativeUInt;
  Ns: Cardinal;
begin
  Number := FetchAdd(Stops, 1);
  if Number < MostSampled then
    Places[Number] := SignalPlace(Context);
  // No generator: two threads may be here. The number's bits, mixed, are random enough.
  Ns := (UInt64(Number) * UInt64($9E3779B97F4A7C15)) shr 32;
  if Number mod LongEvery = 0 then
    StandStill(Ns mod LongNs)
  else
    StandStill(Ns mod ShortNs);
end;

procedure StoppingJoin;
begin
  Threads[Cardinal(InterlockedIncrement(Joined)) mod KnownThreads] := ThreadNumber;
end;

// A thread that has ended receives nothing.
procedure StopOne;
var
  Thread: Cardinal;
begin
  Thread := Threads[Random.Below(KnownThreads)];
  if Thread <> 0 then
    SignalTo(Thread, SIGUSR2);
end;

function StopOthers(Argument: Pointer): PtrInt;
var
  Index: Integer;
begin
  while InterlockedExchangeAdd(IsOver, 0) = 0 do
  begin
    for Index := 1 to SignalsAtATime do
      StopOne;
    StandStill(Random.Below(2 * PauseNs));
  end;
  Result := 0;
end;

procedure StoppingStart(Seed: UInt64);
var
  Action: SigActionRec;
begin
  Random.Start(Seed);
  FillChar(Action, SizeOf(Action), 0);
  Action.sa_handler := SigActionHandler(@StandHere);
  Action.sa_flags := SA_RESTART or SA_SIGINFO;
  FpSigAction(SIGUSR2, @Action, nil);
  Stopper := BeginThread(StopOthers, nil);
end;

procedure StoppingEnd;
begin
  InterlockedIncrement(IsOver);
  WaitForThreadTerminate(Stopper, 0);
end;

function StopCount: Int64;
begin
  Result := Stops;
end;

function StopsInside(out Sampled: Integer): Integer;
var
  Symbols: TSymbols;
  Elf: TElf;
  Index: Integer;
begin
  Sampled := MostSampled;
  if Stops < MostSampled then
    Sampled := Stops;
  SymbolsOpen(Symbols, MostSampled);
  for Index := 0 to Sampled - 1 do
    SymbolsAdd(Symbols, Places[Index] + 1);
  SymbolsSort(Symbols);
  ElfOpen(Elf);
  ElfResolve(Elf, Symbols);
  Result := 0;
  for Index := 0 to Sampled - 1 do
    Inc(Result, Ord(SymbolIsOurs(SymbolsFind(Symbols, Places[Index] + 1))));
  ElfClose(Elf);
  SymbolsClose(Symbols);
end;

end.
