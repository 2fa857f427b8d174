/// Tests of LaneMM.ClassStates: the state of the heap by size class.
unit Test.ClassStates;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.ClassStates;

type
  TClassStatesTests = class(TQuietTest)
  strict private
    Before, After: THeapState;
    Blocks: TPointers;
    procedure GetBlocks;
  published
    procedure ClassesAddUpToTheTiers;
    procedure BlocksCountInTheirClass;
    procedure SpansWithFreeBlocksBesideUsedOnesArePartlyUsed;
    procedure ThreadsThatHoldASpanAreOwners;
    procedure SlackIsWhatNoBlockInUseHas;
  end;

implementation

uses
  testregistry, LaneMM, LaneMM.Layout, LaneMM.SizeClasses, LaneMM.Stats, LaneMM.Threads;

const
  // Of a class that few others use; several spans of one slice.
  BlockSize = 5000;
  BlockCount = 200;

procedure TClassStatesTests.GetBlocks;
var
  Index: Integer;
begin
  SetLength(Blocks, BlockCount);
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], BlockSize);
end;

// What the tiers have and the classes have not.
procedure Missing(const State: THeapState; out Count, Bytes: NativeInt);
var
  ByClass: TClassState;
begin
  Count := State.Status.Small.BlockCount + State.Status.Medium.BlockCount;
  Bytes := State.Status.Small.UsedBytes + State.Status.Medium.UsedBytes;
  for ByClass in State.ByClass do
  begin
    Dec(Count, ByClass.BlockCount);
    Dec(Bytes, ByClass.UsedBytes);
  end;
end;

procedure SeeDebugSpan(const Span: TSpanInfo; Context: Pointer);
begin
  if Span.Kind = skDebug then
    PBoolean(Context)^ := True;
end;

// Debug blocks are in no class, and other tests may have left some.
procedure TClassStatesTests.ClassesAddUpToTheTiers;
var
  Count, Bytes, CountAfter, BytesAfter: NativeInt;
  HasDebugBlocks: Boolean;
begin
  HasDebugBlocks := False;
  SpansVisit(SeeDebugSpan, @HasDebugBlocks);
  SetLength(Blocks, BlockCount);
  HeapStateRead(Before);
  GetBlocks;
  HeapStateRead(After);
  FreeEach(Blocks, 1);
  Missing(Before, Count, Bytes);
  Missing(After, CountAfter, BytesAfter);
  AssertTrue('no class is missing', HasDebugBlocks or (Count = 0) and (Bytes = 0));
  AssertEquals('blocks', Count, CountAfter);
  AssertEquals('bytes', Bytes, BytesAfter);
end;

procedure TClassStatesTests.BlocksCountInTheirClass;
var
  SizeClass: Cardinal;
begin
  SizeClass := SizeToClass(BlockSize);
  SetLength(Blocks, BlockCount);
  HeapStateRead(Before);
  GetBlocks;
  HeapStateRead(After);
  Same(BlockCount, After.ByClass[SizeClass].BlockCount - Before.ByClass[SizeClass].BlockCount,
    'blocks');
  Same(ClassToSize(SizeClass), After.ByClass[SizeClass].BlockSize, 'size');
  Same(After.ByClass[SizeClass].BlockCount * After.ByClass[SizeClass].BlockSize,
    After.ByClass[SizeClass].UsedBytes, 'bytes');
  FreeEach(Blocks, 1);
end;

procedure TClassStatesTests.SpansWithFreeBlocksBesideUsedOnesArePartlyUsed;
var
  SizeClass: Cardinal;
begin
  SizeClass := SizeToClass(BlockSize);
  GetBlocks;
  HeapStateRead(Before);
  FreeEach(Blocks, 2);
  HeapStateRead(After);
  AtLeast(Before.ByClass[SizeClass].PartSpanCount + 5, After.ByClass[SizeClass].PartSpanCount,
    'partly used spans');
  AtMost(After.ByClass[SizeClass].SpanCount, After.ByClass[SizeClass].PartSpanCount, 'of all spans');
  Same(BlockCount div 2, After.ByClass[SizeClass].FreeCount - Before.ByClass[SizeClass].FreeCount,
    'free blocks');
  FreeEach(Blocks, 1);
end;

procedure TClassStatesTests.ThreadsThatHoldASpanAreOwners;
var
  Own: Pointer;
  Worker: TWorker;
begin
  GetMem(Own, BlockSize);
  ThreadsAbandonVacant(High(Cardinal)); // the worker would take the heap of an owner
  Worker := StartIdleThread(GetBlocks);
  HeapStateRead(After);
  AtLeast(2, After.ByClass[SizeToClass(BlockSize)].OwnerCount, 'owners');
  EndThread(Worker);
  FreeMem(Own);
  FreeEach(Blocks, 1);
end;

procedure TClassStatesTests.SlackIsWhatNoBlockInUseHas;
var
  State: TClassState;
begin
  for State in LaneMM_State.ByClass do
    Same(State.SpanBytes - State.UsedBytes, State.SlackBytes, 'slack');
end;

initialization
  RegisterTest(TClassStatesTests);
end.
