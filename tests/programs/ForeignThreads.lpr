/// Threads that the run-time library does not know: they get, exchange and free blocks, end, and
/// do so once more while the system runs the hooks of their end.
program ForeignThreads;

{$mode delphi}

uses
  LaneMM, cthreads, Promises, Exchange;

const
  ThreadCount = 8;
  RoundCount = 20;
  // The system runs the hooks of a thread's end up to four times.
  LateRounds = 3;

type
  TRoutine = function(Argument: Pointer): Pointer; cdecl;

function pthread_create(out Thread: NativeUInt; Attributes: Pointer; Routine: TRoutine;
  Argument: Pointer): LongInt; cdecl; external 'c';
function pthread_join(Thread: NativeUInt; Answer: Pointer): LongInt; cdecl; external 'c';
function pthread_key_create(out Key: Cardinal; Hook: Pointer): LongInt; cdecl; external 'c';
function pthread_setspecific(Key: Cardinal; Value: Pointer): LongInt; cdecl; external 'c';

var
  LateKey: Cardinal;
  LateCalls: LongInt;

// Called at the end of a thread, before or after LaneMM's own hook.
procedure LateHook(Block: Pointer); cdecl;
var
  RoundsLeft: Byte;
begin
  InterlockedIncrement(LateCalls);
  RoundsLeft := PByte(Block)^;
  FreeMem(Block);
  ExchangeParcels(RoundsLeft, 200);
  if RoundsLeft = 0 then
    Exit;
  GetMem(Block, 100);
  PByte(Block)^ := RoundsLeft - 1;
  pthread_setspecific(LateKey, Block);
end;

function Work(Seed: Pointer): Pointer; cdecl;
var
  Block: PByte;
begin
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 3000);
  GetMem(Block, 100);
  Block^ := LateRounds - 1;
  pthread_setspecific(LateKey, Block);
  Result := nil;
end;

procedure RunRound;
var
  Threads: array[1..ThreadCount] of NativeUInt;
  Index: PtrUInt;
begin
  for Index := 1 to ThreadCount do
    Expect(pthread_create(Threads[Index], nil, Work, Pointer(Index)) = 0, 'a thread starts');
  for Index := 1 to ThreadCount do
    pthread_join(Threads[Index], nil);
  ExchangeEmpty;
end;

var
  Index: Integer;
  Before: NativeUInt;
begin
  pthread_key_create(LateKey, @LateHook);
  RunRound;
  Before := LaneMM_HeapStatus.UsedBytes;
  LateCalls := 0;
  for Index := 1 to RoundCount do
    RunRound;
  Expect(LateCalls = RoundCount * ThreadCount * LateRounds, 'the hooks were called');
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  Finish;
end.
