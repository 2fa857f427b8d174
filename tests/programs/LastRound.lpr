/// Threads whose end hooks allocate in each of the four rounds that the system runs them: the memory
/// stays bounded by what is in use.
program LastRound;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, Promises;

const
  ThreadCount = 200;
  SizeCount = 40;
  MostGrowth = 8 shl 20;

type
  TRoutine = function(Argument: Pointer): Pointer; cdecl;

function pthread_create(out Thread: NativeUInt; Attributes: Pointer; Routine: TRoutine;
  Argument: Pointer): LongInt; cdecl; external 'c';
function pthread_join(Thread: NativeUInt; Answer: Pointer): LongInt; cdecl; external 'c';
function pthread_key_create(out Key: Cardinal; Hook: Pointer): LongInt; cdecl; external 'c';
function pthread_setspecific(Key: Cardinal; Value: Pointer): LongInt; cdecl; external 'c';

var
  Key: Cardinal;
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
procedure Hook(Value: Pointer); cdecl;
var
  Index: Integer;
begin
  InterlockedIncrement(HookCalls);
  UseHeap;
  Index := InterlockedIncrement(HookCalls) mod SizeCount;
  FreeMem(InterlockedExchange(Kept[Index], GetMem(Index * 100))); // of another thread
  pthread_setspecific(Key, Value);
end;

function Work(Argument: Pointer): Pointer; cdecl;
begin
  UseHeap;
  pthread_setspecific(Key, @Key);
  Result := nil;
end;

// For a thread whose hooks are the first to allocate.
function WorkNothing(Argument: Pointer): Pointer; cdecl;
begin
  pthread_setspecific(Key, @Key);
  Result := nil;
end;

procedure RunThreads(Routine: TRoutine; Count: Integer);
var
  Thread: NativeUInt;
  Index: Integer;
begin
  for Index := 1 to Count do
  begin
    Expect(pthread_create(Thread, nil, Routine, nil) = 0, 'a thread starts');
    pthread_join(Thread, nil);
  end;
end;

begin
  UseHeap;
  pthread_key_create(Key, @Hook);
  RunThreads(Work, 2);
  LaneMM_Trim;
  Before := LaneMM_HeapStatus.CommittedBytes;
  RunThreads(Work, ThreadCount);
  RunThreads(WorkNothing, ThreadCount);
  LaneMM_Trim;
  Expect(HookCalls >= ThreadCount * 2 * 4 * 2, 'the system runs the hooks in four rounds');
  Growth := NativeInt(LaneMM_HeapStatus.CommittedBytes) - NativeInt(Before);
  WriteLn(Growth div 1024, ' KB more after ', ThreadCount * 2,
    ' threads');
  Expect(Growth < MostGrowth,
    'threads that allocate in the last round leave nothing behind');
  Finish;
end.
