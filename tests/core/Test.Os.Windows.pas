/// Tests of LaneMM.Os for Windows: what that system alone has.
unit Test.Os.Windows;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Types;

type
  /// What a test does while a thread waits.
  TPlay = procedure(Worker: TWorker) of object;

  /// LaneMM's own thread sleeps meanwhile: it would be one more that waits.
  TSemaphoreTests = class(TQuietTest)
  strict private
    Word, Waiting, Woken: TAtomicWord;
    procedure WaitOnce;
    procedure WakeOne(Worker: TWorker);
    procedure MissTheWakeUp(Worker: TWorker);
    procedure PlayWithoutTheCalls(Play: TPlay);
  published
    procedure ThreadsWaitWithoutTheCallsOfWindows8;
    procedure WakeUpThatAnotherThreadTookIsNotLost;
    procedure WaitForTheSemaphoreEndsInTime;
  end;

  TOsWindowsTests = class(TLaneTest)
  strict private
    Word: TAtomicWord;
  published
    procedure CallsKeepTheLastErrorOfTheThread;
    procedure PurgedMemoryIsNotCommitted;
    procedure RunsThatTheSystemRefusesStayFree;
    procedure NothingIsPurgedWhileBlocksAreRead;
    procedure ReadersWaitForPurgesAWhile;
    {$ifndef LANEMM_PUREPASCAL}
    procedure HeapIsReadAsTheSystemReadsIt;
    {$endif}
    procedure NoThreadOfLaneMMIsStartingWhenTheProgramEnds;
    procedure DebuggerGetsWholeLines;
    procedure ProgramWithoutStderrWritesToTheDebugger;
  end;

implementation

uses
  SysUtils, Windows, testregistry, LaneMM.Atomic, LaneMM.Os, LaneMM.Arena,
  LaneMM.Shards, LaneMM.Backed, LaneMM.Large, LaneMM.Purge;

procedure TOsWindowsTests.CallsKeepTheLastErrorOfTheThread;
const
  SomeError = 12345;
var
  Range: Pointer;
  Sign: Byte;
begin
  SetLastError(SomeError);
  Same(0, NativeUInt(OsReserve(High(NativeUInt) - SliceSize + 1)), 'refused');
  Range := OsReserve(SliceSize);
  OsCommit(Range, SliceSize);
  OsPurge(Range, SliceSize);
  OsRead(NativeUInt(Range), @Sign, 1);
  OsRelease(Range, SliceSize);
  OsRead(1, @Sign, 1);
  OsThreadHeap;
  OsThreadIsEnding;
  OsWaitMs(Word, Word, 1);
  OsWake(Word);
  Same(SomeError, GetLastError, 'last error');
end;

procedure TSemaphoreTests.WaitOnce;
begin
  StoreRelease(Waiting, 1);
  while LoadAcquire(Word) = 0 do
    OsWait(Word, 0);
  StoreRelease(Woken, 1);
end;

procedure TSemaphoreTests.WakeOne(Worker: TWorker);
begin
  while LoadAcquire(Waiting) = 0 do
    ThreadSwitch;
  StoreRelease(Word, 1);
  while LoadAcquire(Woken) = 0 do
    OsWake(Word);
end;

// The word changes while the thread waits, as it does where another thread takes the wake-up.
procedure TSemaphoreTests.MissTheWakeUp(Worker: TWorker);
begin
  while LoadAcquire(Process.Waiting.Waiters) = 0 do
    ThreadSwitch;
  Sleep(20); // or else the thread may find the change before it waits
  StoreRelease(Word, 1);
  Worker.AwaitWork;
  Same(1, LoadAcquire(Woken), 'woken');
end;

// Plays with a thread that waits for Word to change.
procedure TSemaphoreTests.PlayWithoutTheCalls(Play: TPlay);
var
  Kept: TWaiting;
  Worker: TWorker;
begin
  Word := 0;
  Waiting := 0;
  Woken := 0;
  Kept := Process.Waiting;
  AssertTrue('this system has the calls', Kept.Wait <> nil);
  Process.Waiting.Wait := nil;
  Process.Waiting.Wake := nil;
  Process.Waiting.WakeAll := nil;
  Worker := TWorker.Create(WaitOnce, False);
  try
    Play(Worker);
    Same(0, LoadAcquire(Process.Waiting.Waiters), 'waiters left');
  finally
    Process.Waiting.Wait := Kept.Wait;
    Process.Waiting.Wake := Kept.Wake;
    Process.Waiting.WakeAll := Kept.WakeAll;
    EndThread(Worker);
  end;
end;

procedure TSemaphoreTests.ThreadsWaitWithoutTheCallsOfWindows8;
begin
  PlayWithoutTheCalls(WakeOne);
end;

procedure TSemaphoreTests.WakeUpThatAnotherThreadTookIsNotLost;
begin
  PlayWithoutTheCalls(MissTheWakeUp);
end;

procedure TSemaphoreTests.WaitForTheSemaphoreEndsInTime;
var
  Kept: Pointer;
begin
  Word := 0;
  Kept := Process.Waiting.Wait;
  Process.Waiting.Wait := nil;
  OsWaitMs(Word, 0, 5);
  Process.Waiting.Wait := Kept;
  Same(0, LoadAcquire(Process.Waiting.Waiters), 'waiters left');
end;

procedure TOsWindowsTests.PurgedMemoryIsNotCommitted;
var
  Range: PByte;
  Sign: Byte;
begin
  Range := OsReserve(SliceSize);
  AssertTrue('committed', OsCommit(Range, SliceSize));
  AssertTrue('readable', OsRead(NativeUInt(Range), @Sign, 1));
  AssertTrue('purged', OsPurge(Range, SliceSize));
  AssertFalse('readable after it', OsRead(NativeUInt(Range), @Sign, 1));
  OsRelease(Range, SliceSize);
end;

// A large block that has moved once, with spare slices behind it.
function GetSpare(Size: NativeUInt): PSpan;
var
  Wall: PSpan;
  Copied: NativeUInt;
begin
  Result := LargeGet(Size);
  Wall := ShardsTake(1);
  Result := LargeMove(Result, Size + SliceSize, Copied);
  ShardsRelease(Wall);
end;

// With a second arena whose addresses are released, so that the system commits none.
procedure TOsWindowsTests.RunsThatTheSystemRefusesStayFree;
var
  First: PArena;
  Span: PSpan;
  Cold, Backed, Spare: NativeUInt;
begin
  if not InChild then
    Exit;
  First := FrontierArena(0);
  First^.Reserved := First^.Frontier;
  First^.MostSlices := First^.Frontier;
  LockShards;
  Span := GetSpare(100 * SliceSize);
  UnlockShards;
  AssertTrue('of a new arena', FrontierArena(1) <> nil);
  Spare := Span^.SpareCount;
  AtLeast(1, Spare, 'spare slices');
  OsRelease(FrontierArena(1)^.Base, 0);
  Cold := ColdSlices;
  Backed := BackedSlices;
  AssertFalse('spare slices used', LargeGrow(Span, Span^.SliceCount * SliceSize));
  Span^.SpareCount := 0;
  AssertFalse('grown', ShardsGrow(Span, Span^.SliceCount + 20));
  Span^.SpareCount := Spare;
  AssertTrue('taken', ShardsTake(Cold + ShardsWarmSlices + 100) = nil);
  Same(Backed, BackedSlices, 'backed slices');
end;

procedure TOsWindowsTests.NothingIsPurgedWhileBlocksAreRead;
var
  Span: PSpan;
  Start: NativeUInt;
  Sign: Byte;
begin
  Span := ShardsTake(4);
  Start := NativeUInt(Span^.Start);
  PurgeHold;
  try
    ShardsRelease(Span);
    ShardsPurge(AllSlices);
    AssertTrue('readable meanwhile', OsRead(Start, @Sign, 1));
  finally
    PurgeLetGo;
  end;
  ShardsPurge(AllSlices);
  AssertFalse('readable after it', OsRead(Start, @Sign, 1));
end;

procedure TOsWindowsTests.ReadersWaitForPurgesAWhile;
var
  Start: UInt64;
begin
  Start := GetTickCount64;
  FetchAdd(Process.PurgesUnderWay, 1); // a thread that was stopped in a purge
  PurgeHold;
  PurgeLetGo;
  FetchAdd(Process.PurgesUnderWay, NativeUInt(-1));
  AtLeast(20, GetTickCount64 - Start, 'ms');
end;

{$ifndef LANEMM_PUREPASCAL}
procedure TOsWindowsTests.HeapIsReadAsTheSystemReadsIt;
var
  Mine: PHeap;
begin
  AssertTrue('this thread has a fast slot', Process.HasFastSlot);
  Mine := OsThreadHeap;
  AssertTrue('a heap', Mine <> nil);
  AssertTrue('the same', Mine = TlsGetValue(Process.ThreadKey));
  TlsSetValue(Process.ThreadKey, @Word);
  AssertTrue('after a change', OsThreadHeap = @Word);
  TlsSetValue(Process.ThreadKey, Mine);
end;
{$endif}

procedure SleepForEver;
begin
  Sleep(INFINITE);
end;

// The exit procedures as the run-time library calls them, before it finalizes the units.
procedure RunExitProcedures;
var
  Call: TProcedure;
begin
  while ExitProc <> nil do
  begin
    @Call := ExitProc;
    ExitProc := nil;
    Call;
  end;
end;

procedure TOsWindowsTests.NoThreadOfLaneMMIsStartingWhenTheProgramEnds;
begin
  if not InChild then
    Exit;
  AssertTrue('started before', OsThreadStart(SleepForEver));
  RunExitProcedures;
  Same(0, LoadAcquire(Process.StartingThreads), 'threads that do not run yet');
  AssertFalse('started after', OsThreadStart(SleepForEver));
  Same(0, LoadAcquire(Process.StartingThreads), 'likewise');
end;

// ---------------------------------------------------------------------------- debugger

function AddHandler(IsFirst: Cardinal; Handler: Pointer): Pointer; stdcall;
  external 'kernel32.dll' name 'AddVectoredExceptionHandler';
function RemoveHandler(Handler: Pointer): Cardinal; stdcall;
  external 'kernel32.dll' name 'RemoveVectoredExceptionHandler';

var
  // What a debugger would get, a text behind the other, each ended by a bar.
  Heard: string;

// Texts for the debugger are an exception, which the sender itself catches.
function Hear(constref Pointers: TExceptionPointers): LongInt; stdcall;
const
  TextForTheDebugger = $40010006;
  SearchOn = 0;
begin
  Result := SearchOn;
  if Pointers.ExceptionRecord^.ExceptionCode = TextForTheDebugger then
    Heard := Heard + PAnsiChar(Pointers.ExceptionRecord^.ExceptionInformation[1]) + '|';
end;

procedure TOsWindowsTests.DebuggerGetsWholeLines;
var
  Handler: Pointer;
  Lines, Long: string;
begin
  Heard := '';
  Lines := StringOfChar('a', 299) + #10 + StringOfChar('b', 299) + #10;
  Long := StringOfChar('c', 600) + #10;
  Handler := AddHandler(1, @Hear);
  OsWriteDebugger(PByte(PAnsiChar(Lines + Long)), Length(Lines + Long));
  RemoveHandler(Handler);
  AssertEquals(StringOfChar('a', 299) + #10'|' + StringOfChar('b', 299) + #10'|'
    + StringOfChar('c', 511) + '|' + StringOfChar('c', 89) + #10'|', Heard);
end;

procedure TOsWindowsTests.ProgramWithoutStderrWritesToTheDebugger;
var
  Handler: Pointer;
  Kept: THandle;
begin
  Heard := '';
  Kept := GetStdHandle(STD_ERROR_HANDLE);
  Handler := AddHandler(1, @Hear);
  SetStdHandle(STD_ERROR_HANDLE, 0);
  OsWriteError('a line'#10, 7);
  SetStdHandle(STD_ERROR_HANDLE, Kept);
  RemoveHandler(Handler);
  AssertEquals('a line'#10'|', Heard);
end;

initialization
  RegisterTest(TSemaphoreTests);
  RegisterTest(TOsWindowsTests);
end.
