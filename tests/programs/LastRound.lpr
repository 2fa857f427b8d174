/// Threads whose end hooks allocate in each round that the system runs them: the memory stays
/// bounded by what is in use.
program LastRound;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, Promises, BareThreads;

const
  ThreadCount = 200;
  SizeCount = 40;
  MostGrowth = 8 shl 20;
  // On Windows the system does not tell LaneMM of the end of a thread whose last hook is the first
  // to allocate.
  KindCount = 1 + Ord(HookRounds > 1);

var
  HookCalls: LongInt;
  Before: NativeUInt;
  Growth: NativeInt;
  Kept: array[0..SizeCount - 1] of Pointer;

procedure UseHeap;
var
  Blocks: array[0..SizeCount - 1] of PByte;
  Index: Integer;
begin
  for Index := 0 to SizeCount - 1 do
    Blocks[Index] := FilledBlock(Index * 200, Index);
  for Index := 0 to SizeCount - 1 do
  begin
    Expect(IsFilled(Blocks[Index], Index * 200, Index), 'a block keeps its contents');
    ReallocMem(Blocks[Index], Index * 300 + 1);
    FreeMem(Blocks[Index]);
  end;
end;

// Called at the end of a thread, after LaneMM's own hook, as its key is younger.
procedure Hook(Value: Pointer);
var
  Index: Integer;
begin
  InterlockedIncrement(HookCalls);
  UseHeap;
  Index := InterlockedIncrement(HookCalls) mod SizeCount;
  FreeMem(InterlockedExchange(Kept[Index], GetMem(Index * 100))); // of another thread
  BareSetValue(Value);
end;

procedure Work(Argument: Pointer);
begin
  UseHeap;
  BareSetValue(@HookCalls);
end;

// For a thread whose hooks are the first to allocate.
procedure WorkNothing(Argument: Pointer);
begin
  BareSetValue(@HookCalls);
end;

procedure RunThreads(Routine: TBareRoutine; Count: Integer);
var
  Thread: TBareThread;
  Index: Integer;
begin
  for Index := 1 to Count do
  begin
    Expect(BareStart(Thread, Routine, nil), 'a thread starts');
    BareJoin(Thread);
  end;
end;

begin
  UseHeap;
  BareHook(Hook);
  RunThreads(Work, 2);
  LaneMM_Trim;
  Before := LaneMM_HeapStatus.CommittedBytes;
  RunThreads(Work, ThreadCount);
  if KindCount > 1 then
    RunThreads(WorkNothing, ThreadCount);
  LaneMM_Trim;
  Expect(HookCalls >= ThreadCount * KindCount * HookRounds * 2, 'the system runs the hooks in all rounds');
  Growth := NativeInt(LaneMM_HeapStatus.CommittedBytes) - NativeInt(Before);
  WriteLn(Growth div 1024, ' KB more after ', ThreadCount * KindCount, ' threads');
  Expect(Growth < MostGrowth,
    'threads that allocate in the last round leave nothing behind');
  Finish;
end.
