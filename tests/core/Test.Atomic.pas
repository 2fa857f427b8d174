/// Tests of LaneMM.Atomic.
unit Test.Atomic;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TAtomicTests = class(TLaneTest)
  strict private
    Word, Message, Answer: NativeUInt;
    Lost: Integer;
    Seen: array[1..20000] of LongInt;
    procedure AddMany;
    procedure AddManyByCompareAndSwap;
    procedure TakeTokens;
    procedure ReceiveMessages;
  published
    procedure LoadReadsWhatStoreWrote;
    procedure SwapReturnsTheOldValue;
    procedure CompareAndSwapWritesWhereTheExpectedValueIs;
    procedure CompareAndSwapLeavesAnotherValueAlone;
    procedure FetchAddReturnsTheOldValue;
    procedure FetchAddWrapsAround;
    procedure AllBitsTakePart;
    procedure FetchAddLosesNothingBetweenThreads;
    procedure CompareAndSwapLosesNothingBetweenThreads;
    procedure SwapHandsEachValueToOneThread;
    procedure WritesBeforeStoreReleaseAreSeenAfterLoadAcquire;
    procedure OnlyABuildThatYieldsCallsHooksYield;
  end;

implementation

uses
  testregistry, LaneMM.Hooks, LaneMM.Atomic;

const
  ThreadCount = 4;
  AddCount = 100000;
  MessageCount = 20000;

procedure TAtomicTests.LoadReadsWhatStoreWrote;
begin
  StoreRelease(Word, 42);
  Same(42, LoadAcquire(Word), 'word');
end;

procedure TAtomicTests.SwapReturnsTheOldValue;
begin
  Word := 1;
  Same(1, Swap(Word, 2), 'result');
  Same(2, Word, 'word');
end;

procedure TAtomicTests.CompareAndSwapWritesWhereTheExpectedValueIs;
begin
  Word := 1;
  AssertTrue('result', CompareAndSwap(Word, 1, 2));
  Same(2, Word, 'word');
end;

procedure TAtomicTests.CompareAndSwapLeavesAnotherValueAlone;
begin
  Word := 3;
  AssertFalse('result', CompareAndSwap(Word, 1, 2));
  Same(3, Word, 'word');
end;

procedure TAtomicTests.FetchAddReturnsTheOldValue;
begin
  Word := 40;
  Same(40, FetchAdd(Word, 2), 'result');
  Same(42, Word, 'word');
end;

procedure TAtomicTests.FetchAddWrapsAround;
begin
  Word := 1;
  FetchAdd(Word, High(NativeUInt));
  Same(0, Word, 'one and minus one');
end;

procedure TAtomicTests.AllBitsTakePart;
begin
  Word := High(NativeUInt);
  AssertFalse('only the low half is as expected',
    CompareAndSwap(Word, High(NativeUInt) shr (SizeOf(Word) * 4), 0));
  Same(-1, NativeInt(Swap(Word, High(NativeUInt) - 1)), 'result of Swap');
  AssertTrue('all bits are as expected', CompareAndSwap(Word, High(NativeUInt) - 1, 7));
  Same(7, LoadAcquire(Word), 'word');
end;

procedure TAtomicTests.AddMany;
var
  Index: Integer;
begin
  for Index := 1 to AddCount do
    FetchAdd(Word, 1);
end;

procedure TAtomicTests.FetchAddLosesNothingBetweenThreads;
begin
  Word := 0;
  InThreads(ThreadCount, AddMany);
  Same(ThreadCount * AddCount, Word, 'sum');
end;

procedure TAtomicTests.AddManyByCompareAndSwap;
var
  Index: Integer;
  Old: NativeUInt;
begin
  for Index := 1 to AddCount do
    repeat
      Old := LoadAcquire(Word);
    until CompareAndSwap(Word, Old, Old + 1);
end;

procedure TAtomicTests.CompareAndSwapLosesNothingBetweenThreads;
begin
  Word := 0;
  InThreads(ThreadCount, AddManyByCompareAndSwap);
  Same(ThreadCount * AddCount, Word, 'sum');
end;

// Each thread puts its own numbers in and counts the numbers that it takes out.
procedure TAtomicTests.TakeTokens;
var
  Index, First: Integer;
  Token: NativeUInt;
begin
  First := FetchAdd(Message, High(Seen) div ThreadCount);
  for Index := 1 to High(Seen) div ThreadCount do
  begin
    Token := Swap(Word, First + Index);
    if Token <> 0 then
      InterlockedIncrement(Seen[Token]);
  end;
end;

procedure TAtomicTests.SwapHandsEachValueToOneThread;
var
  Index: Integer;
begin
  FillChar(Seen, SizeOf(Seen), 0);
  Word := 0;
  Message := 0;
  InThreads(ThreadCount, TakeTokens);
  Inc(Seen[Word]);
  for Index := 1 to High(Seen) do
    Same(1, Seen[Index], 'times that a value came out');
end;

procedure TAtomicTests.ReceiveMessages;
var
  Index: NativeUInt;
begin
  for Index := 1 to MessageCount do
  begin
    while LoadAcquire(Word) <> Index do
      ThreadSwitch;
    if Message <> Index * 3 then
      Inc(Lost);
    StoreRelease(Answer, Index);
  end;
end;

procedure TAtomicTests.WritesBeforeStoreReleaseAreSeenAfterLoadAcquire;
var
  Worker: TWorker;
  Index: NativeUInt;
begin
  Word := 0;
  Answer := 0;
  Lost := 0;
  Worker := TWorker.Create(ReceiveMessages, False);
  for Index := 1 to MessageCount do
  begin
    Message := Index * 3;
    StoreRelease(Word, Index);
    while LoadAcquire(Answer) <> Index do
      ThreadSwitch;
  end;
  EndThread(Worker);
  Same(0, Lost, 'messages seen late');
end;

var
  YieldingThread: TThreadID;
  Yields: Integer;

procedure CountYield;
begin
  if GetCurrentThreadId = YieldingThread then
    Inc(Yields);
end;

procedure TAtomicTests.OnlyABuildThatYieldsCallsHooksYield;
const
  // Before and after each of five operations, at two fences, and at a place of its own.
  Expected = {$ifdef LANEMM_YIELD} 2 * 5 + 3 {$else} 0 {$endif};
var
  Kept: procedure;
begin
  Kept := Hooks.Yield;
  YieldingThread := GetCurrentThreadId;
  Yields := 0;
  Hooks.Yield := CountYield;
  LoadAcquire(Word);
  StoreRelease(Word, 1);
  Swap(Word, 2);
  CompareAndSwap(Word, 2, 3);
  FetchAdd(Word, 1);
  ReleaseFence;
  AcquireFence;
  YieldPoint;
  Hooks.Yield := Kept;
  Same(Expected, Yields, 'calls');
end;

initialization
  RegisterTest(TAtomicTests);
end.
