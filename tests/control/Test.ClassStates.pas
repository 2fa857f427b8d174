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
  testregistry, LaneMM, LaneMM.SizeClasses;

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

procedure TClassStatesTests.ClassesAddUpToTheTiers;
var
  State: TClassState;
  Count, Bytes: NativeUInt;
begin
  HeapStateRead(Before);
  Count := 0;
  Bytes := 0;
  for State in Before.ByClass do
  begin
    Inc(Count, State.BlockCount);
    Inc(Bytes, State.UsedBytes);
  end;
  Same(Before.Status.Small.BlockCount + Before.Status.Medium.BlockCount, Count, 'blocks');
  Same(Before.Status.Small.UsedBytes + Before.Status.Medium.UsedBytes, Bytes, 'bytes');
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
  SizeClass: Cardinal;
  Worker: TWorker;
begin
  SizeClass := SizeToClass(BlockSize);
  HeapStateRead(Before);
  Worker := StartIdleThread(GetBlocks);
  HeapStateRead(After);
  AtLeast(Before.ByClass[SizeClass].OwnerCount + 1, After.ByClass[SizeClass].OwnerCount, 'owners');
  EndThread(Worker);
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
