/// Threads that the run-time library does not know: they get, exchange and free blocks, end, and
/// do so once more while the system runs the hooks of their end.
program ForeignThreads;

{$mode delphi}

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} cthreads, Promises, UsedBytes, Exchange, BareThreads;

const
  ThreadCount = 8;
  RoundCount = 20;
  // Calls of the hook for a thread: in all rounds but the last one, if there are several.
  LateRounds = HookRounds - Ord(HookRounds > 1);

var
  LateCalls: LongInt;

// Called at the end of a thread, before or after LaneMM's own hook.
procedure LateHook(Block: Pointer);
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
  BareSetValue(Block);
end;

procedure Work(Seed: Pointer);
var
  Block: PByte;
begin
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 3000);
  GetMem(Block, 100);
  Block^ := LateRounds - 1;
  BareSetValue(Block);
end;

procedure RunRound;
var
  Threads: array[1..ThreadCount] of TBareThread;
  Index: PtrUInt;
begin
  for Index := 1 to ThreadCount do
    Expect(BareStart(Threads[Index], Work, Pointer(Index)), 'a thread starts');
  for Index := 1 to ThreadCount do
    BareJoin(Threads[Index]);
  ExchangeEmpty;
end;

var
  Index: Integer;
  Before: NativeUInt;
begin
  BareHook(LateHook);
  RunRound;
  Before := LaneMM_HeapStatus.UsedBytes;
  LateCalls := 0;
  for Index := 1 to RoundCount do
    RunRound;
  Expect(LateCalls = RoundCount * ThreadCount * LateRounds, 'the hooks were called');
  ExpectUsed(Before);
  Finish;
end.
