/// Two threads free the same block at the same moment, again and again. One of them may be refused;
/// whatever happens to that block, all other blocks keep their contents.
///
///   RacingFrees [ROUNDS]
program RacingFrees;

{$mode delphi}{$pointermath on}

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} cthreads, SysUtils, Promises, Exchange;

const
  ThreadCount = 3;
  DefaultRounds = 6000;
  WitnessCount = 64;
  TurnsPerRound = 12;
  SpinsBeforeYield = 2000;
  // Of all kinds of spans, and a large block.
  Sizes: array[0..7] of NativeUInt = (16, 48, 64, 512, 3000, 8192, 20000, 100000);

type
  TWitnesses = array[0..WitnessCount - 1] of PParcel;

var
  RoundCount: Integer;
  Arrived: LongInt;
  Victim: Pointer;
  Accepted, Refused: LongInt;
  Witnesses: array[0..ThreadCount - 1] of TWitnesses;

// Waits until all threads have come here as often as this one; Meetings is this thread's count.
procedure Meet(var Meetings: LongInt);
var
  Spins: Integer;
begin
  Inc(Meetings);
  InterlockedIncrement(Arrived);
  Spins := 0;
  while InterlockedExchangeAdd(Arrived, 0) < Meetings * ThreadCount do
  begin
    Inc(Spins);
    if Spins > SpinsBeforeYield then
      ThreadSwitch;
  end;
end;

procedure FreeVictim;
begin
  try
    FreeMem(Victim);
    InterlockedIncrement(Accepted);
  except
    on EInvalidPointer do
      InterlockedIncrement(Refused);
  end;
end;

// Gets parcels as large as the victim, passes them on, checks and frees them.
procedure Work(var Mine: TWitnesses; Size: NativeUInt; var State: Cardinal);
var
  Turn, Slot: Cardinal;
begin
  for Turn := 1 to TurnsPerRound do
  begin
    Slot := NextRandom(State, WitnessCount);
    if Mine[Slot] = nil then
      Mine[Slot] := ParcelGet(Size - SizeOf(TParcel), State)
    else if NextRandom(State, 3) = 0 then
      Mine[Slot] := ParcelSwap(Slot, Mine[Slot])
    else
    begin
      ParcelFree(Mine[Slot]);
      Mine[Slot] := nil;
    end;
  end;
end;

function Run(Number: Pointer): PtrInt;
var
  Me, Round, Slot: Integer;
  Meetings: LongInt;
  State: Cardinal;
  Size: NativeUInt;
begin
  Me := PtrInt(Number);
  Meetings := 0;
  State := Me + 1;
  for Round := 0 to RoundCount - 1 do
  begin
    Size := Sizes[Round div 9 mod Length(Sizes)];
    if Me = Round mod 3 then
      Victim := ParcelGet(Size - SizeOf(TParcel), Round);
    Meet(Meetings);
    if Me <> Round div 3 mod 3 then
      FreeVictim;
    Meet(Meetings);
    Work(Witnesses[Me], Size, State);
  end;
  for Slot := 0 to WitnessCount - 1 do
    ParcelFree(Witnesses[Me, Slot]);
  Result := 0;
end;

var
  Threads: array[1..ThreadCount - 1] of TThreadID;
  Index: PtrInt;
begin
  RoundCount := StrToIntDef(ParamStr(1), DefaultRounds);
  for Index := 1 to ThreadCount - 1 do
    Threads[Index] := BeginThread(Run, Pointer(Index));
  Run(nil);
  for Index := 1 to ThreadCount - 1 do
    WaitForThreadTerminate(Threads[Index], 0);
  ExchangeEmpty;
  Expect(Accepted + Refused = 2 * RoundCount, 'each free ends');
  Expect(Accepted >= RoundCount, 'a block in use can be freed');
  WriteLn(Refused, ' of ', RoundCount, ' second frees refused');
  Finish;
end.
