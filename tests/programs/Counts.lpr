/// LaneMM_StartCount and LaneMM_StopCount: exact, the same each time, of this thread or of all, and
/// the entries of the manager as before when nothing is counted. Exit code 0 on success.
program Counts;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} Classes, SysUtils, Promises;

type
  TWorker = class(TThread)
    procedure Execute; override;
  end;

  // Allocates aligned blocks until it is terminated.
  TAligner = class(TThread)
    Rounds: NativeUInt;
    Refused: Boolean;
    procedure Execute; override;
  end;

  // Counts, and ends without LaneMM_StopCount.
  TForgetful = class(TThread)
    OfAll, IsCounted: Boolean;
    Before: NativeUInt;
    procedure Execute; override;
  end;

var
  PlaceCount, PlacesTogether, AtUnknown: NativeUInt;
  CallsBack: Cardinal;

// 2 + Rounds allocations, 1 + Rounds frees, 3 resizes.
procedure Work(Rounds: Integer);
var
  Block, Other: Pointer;
  Index: Integer;
begin
  GetMem(Block, 100);
  ReallocMem(Block, 30000);  // another class: it moves
  ReallocMem(Block, 30001);
  ReallocMem(Block, 30000);
  for Index := 1 to Rounds do
    TObject.Create.Free;
  Other := nil;
  ReallocMem(Other, 50);     // an allocation
  ReallocMem(Block, 0);      // a free
  FreeMem(Other);
end;

procedure TWorker.Execute;
begin
  Work(1000);
end;

procedure TAligner.Execute;
var
  P: Pointer;
begin
  Rounds := 0;
  repeat
    P := LaneMM_GetMemAligned(100, 64);
    if P = nil then
      Refused := True;
    FreeMem(P);
    Inc(Rounds);
  until Terminated;
end;

procedure TForgetful.Execute;
begin
  Before := LaneMM_StopCount.Allocations;
  IsCounted := LaneMM_StartCount(OfAll) and LaneMM_StartCount;
  Work(1);
end;

procedure RunWorker;
var
  Worker: TWorker;
begin
  Worker := TWorker.Create(True);
  Worker.Start;
  Worker.WaitFor;
  Worker.Free;
end;

procedure NotePlace(const Place: TLaneMM_CountedPlace; Context: Pointer);
begin
  Inc(PlaceCount);
  Inc(PlacesTogether, Place.Count);
  if Place.Place = nil then
    Inc(AtUnknown, Place.Count);
end;

function Same(const First, Second: TLaneMM_Counts): Boolean;
begin
  Result := CompareByte(First, Second, SizeOf(First)) = 0;
end;

function Counted(Rounds: Integer): TLaneMM_Counts;
begin
  LaneMM_StartCount;
  Work(Rounds);
  Result := LaneMM_StopCount;
end;

procedure Exact;
var
  First: TLaneMM_Counts;
begin
  First := Counted(10);
  Expect(First.Allocations = 12, 'allocations are counted, by ReallocMem too');
  Expect(First.Frees = 12, 'frees are counted, by ReallocMem too');
  Expect((First.Resizes = 3) and (First.Moves >= 1), 'resizes are counted, and moves');
  Expect(First.Bytes = 100 + 30000 + 30001 + 30000 + 10 * NativeUInt(TObject.InstanceSize) + 50,
    'bytes are those that were asked for');
  Expect((First.Peak >= 30050) and (First.Peak < 100000), 'the peak is that of the blocks in use');
  Expect(Same(First, Counted(10)) and Same(First, Counted(10)), 'the same work counts the same');
  First := LaneMM_StopCount;
  Expect(First.Allocations + First.Peak = 0, 'without a count there is nothing to stop');
end;

procedure Aligned;
var
  Count: TLaneMM_Counts;
  P: Pointer;
begin
  LaneMM_StartCount;
  P := LaneMM_GetMemAligned(1000, 256);
  FreeMem(P);
  Count := LaneMM_StopCount;
  Expect((Count.Allocations = 1) and (Count.Frees = 1) and (Count.Bytes = 1000)
    and (Count.Peak >= 1000), 'a block with an alignment counts like others');
  LaneMM_StartCount;
  P := LaneMM_DebugGetMem(100);
  FreeMem(P);
  Count := LaneMM_StopCount;
  Expect((Count.Allocations = 1) and (Count.Frees = 1), 'so does a single debug block');
end;

procedure Nested;
var
  Inner, Outer, Alone: TLaneMM_Counts;
begin
  Alone := Counted(5);
  LaneMM_StartCount;
  Work(5);
  Inner := Counted(5);
  Outer := LaneMM_StopCount;
  Expect(Same(Inner, Alone), 'a count inside of another one counts its own');
  Expect((Outer.Allocations = 2 * Alone.Allocations) and (Outer.Bytes = 2 * Alone.Bytes)
    and (Outer.Resizes = 2 * Alone.Resizes) and (Outer.Peak = Alone.Peak),
    'the other one has both');
end;

// A count of all threads between two of this one.
procedure NestedAroundOneOfAll;
var
  Alone, Inner, All, Outer: TLaneMM_Counts;
begin
  Alone := Counted(5);
  LaneMM_StartCount;
  Work(5);
  Expect(LaneMM_StartCount(True), 'all threads are counted');
  Work(5);
  Inner := Counted(5);
  All := LaneMM_StopCount;
  Outer := LaneMM_StopCount;
  Expect(Same(Inner, Alone), 'a count inside of one of all counts its own');
  Expect(All.Allocations >= 2 * Alone.Allocations, 'the one of all has it, too');
  Expect((Outer.Allocations = 3 * Alone.Allocations) and (Outer.Frees = 3 * Alone.Frees)
    and (Outer.Bytes = 3 * Alone.Bytes) and (Outer.Peak = Alone.Peak),
    'a count around one of all has what its thread has done inside of that');
end;

procedure OfThreads;
var
  Own, Others, All: TLaneMM_Counts;
begin
  RunWorker;
  LaneMM_StartCount;
  RunWorker;
  Own := LaneMM_StopCount;
  Expect(Own.Allocations < 100, 'a count of a thread has nothing of others');
  Expect(LaneMM_StartCount(True), 'all threads are counted');
  Expect(not LaneMM_StartCount(True), 'once at a time');
  RunWorker;
  All := LaneMM_StopCount;
  Others := Counted(1000);
  Expect(All.Allocations >= Own.Allocations + Others.Allocations - 8, 'a count of all has all');
end;

// As many threads as have counters, and more.
procedure EndOfAThreadEndsItsCounts;
var
  Thread: TForgetful;
  Index: Integer;
begin
  for Index := 1 to 40 do
  begin
    Thread := TForgetful.Create(True);
    Thread.OfAll := True;
    Thread.Start;
    Thread.WaitFor;
    Expect(Thread.IsCounted, 'a thread that ends gives its counters back');
    Expect(Thread.Before = 0, 'its count is not that of the next thread');
    Thread.Free;
  end;
  Expect(LaneMM_StartCount(True), 'all threads can be counted after a thread that did so');
  LaneMM_StopCount;
end;

procedure ByPlace;
var
  First: TLaneMM_Counts;
begin
  PlaceCount := 0;
  PlacesTogether := 0;
  LaneMM_StartCount(False, True);
  Work(20);
  First := LaneMM_StopCount(NotePlace);
  Expect(PlaceCount > 0, 'allocations have places');
  Expect(PlacesTogether = First.Allocations, 'places have all allocations');
end;

// Allocates a block in a backtrace of its own for each Path of Depth bits.
procedure AllocateAt(Depth: Integer; Path: Cardinal; Size: NativeUInt);
begin
  if Depth = 0 then
    FreeMem(GetMem(Size))
  else if Odd(Path) then
    AllocateAt(Depth - 1, Path shr 1, 16)
  else
    AllocateAt(Depth - 1, Path shr 1, 32);
  Inc(CallsBack); // not the last thing, so that the call is one
end;

procedure ByMorePlacesThanFit;
const
  Bits = 13;
  Fitting = 4095;
var
  Path: Cardinal;
  Counted: TLaneMM_Counts;
begin
  PlacesTogether := 0;
  AtUnknown := 0;
  LaneMM_StartCount(False, True);
  for Path := 0 to 1 shl Bits - 1 do
    AllocateAt(Bits, Path, 0);
  Counted := LaneMM_StopCount(NotePlace);
  Expect(Counted.Allocations = 1 shl Bits, 'allocations beyond the places count');
  Expect(PlacesTogether = Counted.Allocations, 'and are among the places');
  Expect(AtUnknown = Counted.Allocations - Fitting, 'as those of an unknown one');
end;

// A thread may be in the middle of an event when the count of all ends.
procedure CountsEndWhileOthersAllocate;
const
  Rounds = 300;
var
  Workers: array[0..2] of TWorker;
  Index: Integer;
begin
  for Index := 0 to High(Workers) do
    Workers[Index] := TWorker.Create(False);
  for Index := 1 to Rounds do
  begin
    LaneMM_StartCount(True, True);
    Work(1);
    LaneMM_StopCount;
  end;
  for Index := 0 to High(Workers) do
  begin
    Workers[Index].WaitFor;
    Workers[Index].Free;
  end;
end;

// The entries of the manager change at each begin and end, while the thread looks whose they are.
procedure ChangingEntriesAreNoOtherManager;
var
  Aligner: TAligner;
  Index: Integer;
begin
  Aligner := TAligner.Create(True);
  Aligner.Start;
  repeat
    Sleep(0);
  until Aligner.Rounds > 0;
  for Index := 1 to 100000 do
  begin
    LaneMM_StartCount;
    LaneMM_StopCount;
  end;
  Aligner.Terminate;
  Aligner.WaitFor;
  Expect(not Aligner.Refused, 'no thread takes LaneMM for another manager while it changes');
  Aligner.Free;
end;

procedure NothingIsLeftBehind;
var
  Before, During, After: TMemoryManager;
begin
  GetMemoryManager(Before);
  LaneMM_StartCount;
  GetMemoryManager(During);
  LaneMM_StopCount;
  GetMemoryManager(After);
  Expect(@During.GetMem <> @Before.GetMem, 'a count has entries of its own');
  Expect((@After.GetMem = @Before.GetMem) and (@After.FreeMem = @Before.FreeMem)
    and (@After.FreeMemSize = @Before.FreeMemSize) and (@After.AllocMem = @Before.AllocMem)
    and (@After.ReallocMem = @Before.ReallocMem), 'without one they are as before');
end;

begin
  NothingIsLeftBehind;
  Exact;
  Aligned;
  Nested;
  NestedAroundOneOfAll;
  OfThreads;
  EndOfAThreadEndsItsCounts;
  ChangingEntriesAreNoOtherManager;
  NothingIsLeftBehind;
  LaneMM_Configure('stacks');
  Exact;
  ByPlace;
  ByMorePlacesThanFit;
  CountsEndWhileOthersAllocate;
  NothingIsLeftBehind;
  LaneMM_EnterDebugMode;
  Exact;
  Aligned;
  Nested;
  ByPlace;
  LaneMM_ExitDebugMode;
  Finish;
end.
