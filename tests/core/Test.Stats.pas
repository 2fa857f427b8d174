/// Tests of LaneMM.Stats: what the process says about itself when it is quiet.
unit Test.Stats;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout, LaneMM.Stats;

type
  TStatsTests = class(TQuietTest)
  strict private
    Before, After: TStatus;
    Blocks: TPointers;
    IsOver: TAtomicWord;
    procedure GetSmallBlocks;
    function BlockBesideAFreeOne(Size: NativeUInt): Pointer;
    function SizeOfBlocks: NativeUInt;
    procedure FreeBlocks;
    procedure WorkUntilOver;
    procedure SameUse(const What: string);
  published
    procedure BalancedCodeReturnsToTheSameUse;
    procedure BlockCountsByItsUsableSize;
    procedure EachTierCountsItsBlocks;
    procedure TiersAddUp;
    procedure ResizedBlockCountsByItsNewSize;
    procedure BlocksFreedByAnotherThreadCountAsFree;
    procedure BlocksOfAnEndedThreadCountUntilTheyAreFreed;
    procedure SpansHoldTheirBlocks;
    procedure ClassesAddUpToTheTiers;
    procedure BlockCountsInItsClass;
    procedure SpansAreThoseOfTheTiers;
    procedure CachedMemoryIsGoneAfterTrim;
    procedure PeakIsNeverBelowNow;
    procedure PeakUseIsTheHighestSeen;
    procedure ReservedIsAtLeastCommitted;
    procedure ReallocCallsMovesAndBytesAreCounted;
    procedure ReallocCallsOfLargeBlocksAreCounted;
    procedure SystemCallsAreCounted;
    procedure StatusCanBeReadWhileThreadsWork;
    procedure SpareSlicesAreNotCommitted;
  end;

implementation

uses
  testregistry, LaneMM.Types, LaneMM.Atomic, LaneMM.Large, LaneMM.Purge;

const
  Megabyte = 1 shl 20;

// What is a literal: a string made here would count.
procedure TStatsTests.SameUse(const What: string);
begin
  StatusRead(After);
  Same(Before.UsedBytes, After.UsedBytes, What);
  Same(Before.Small.BlockCount, After.Small.BlockCount, What);
  Same(Before.Medium.BlockCount, After.Medium.BlockCount, What);
  Same(Before.Large.BlockCount, After.Large.BlockCount, What);
end;

procedure TStatsTests.GetSmallBlocks;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], 100);
end;

// A thread's first blocks may be larger.
function TStatsTests.SizeOfBlocks: NativeUInt;
var
  Index: Integer;
begin
  Result := 0;
  for Index := 0 to High(Blocks) do
    Inc(Result, MemSize(Blocks[Index]));
end;

procedure TStatsTests.FreeBlocks;
begin
  FreeEach(Blocks, 1);
end;

procedure TStatsTests.BalancedCodeReturnsToTheSameUse;
begin
  HeapWorks;
  StatusRead(Before);
  HeapWorks;
  SameUse('after blocks of all tiers');
end;

procedure TStatsTests.BlockCountsByItsUsableSize;
var
  Index: Integer;
  P: Pointer;
begin
  for Index := 0 to High(SampleSizes) do
  begin
    StatusRead(Before);
    GetMem(P, SampleSizes[Index]);
    StatusRead(After);
    Same(Before.UsedBytes + MemSize(P), After.UsedBytes, 'in use');
    FreeMem(P);
    SameUse('after');
  end;
end;

procedure TStatsTests.EachTierCountsItsBlocks;
var
  Small, Medium, Large: Pointer;
begin
  StatusRead(Before);
  GetMem(Small, MaxSmallSize);
  GetMem(Medium, MaxSmallSize + 1);
  GetMem(Large, MaxClassSize + 1);
  StatusRead(After);
  Same(Before.Small.BlockCount + 1, After.Small.BlockCount, 'small blocks');
  Same(Before.Medium.BlockCount + 1, After.Medium.BlockCount, 'medium blocks');
  Same(Before.Large.BlockCount + 1, After.Large.BlockCount, 'large blocks');
  Same(Before.Small.UsedBytes + MemSize(Small), After.Small.UsedBytes, 'small bytes');
  Same(Before.Medium.UsedBytes + MemSize(Medium), After.Medium.UsedBytes, 'medium bytes');
  Same(Before.Large.UsedBytes + MemSize(Large), After.Large.UsedBytes, 'large bytes');
  FreeMem(Small);
  FreeMem(Medium);
  FreeMem(Large);
  SameUse('after');
end;

procedure TStatsTests.TiersAddUp;
begin
  StatusRead(After);
  Same(After.UsedBytes, After.Small.UsedBytes + After.Medium.UsedBytes + After.Large.UsedBytes,
    'sum');
end;

procedure TStatsTests.ResizedBlockCountsByItsNewSize;
var
  P: Pointer;
  Index: Integer;
begin
  StatusRead(Before);
  P := nil;
  for Index := 0 to High(SampleSizes) do
    if SampleSizes[Index] <> 0 then
    begin
      ReallocMem(P, SampleSizes[Index]);
      StatusRead(After);
      Same(Before.UsedBytes + MemSize(P), After.UsedBytes, 'in use');
    end;
  FreeMem(P);
  SameUse('after');
end;

procedure TStatsTests.BlocksFreedByAnotherThreadCountAsFree;
var
  Servant: TServant;
begin
  SetLength(Blocks, 10000);
  Servant := TServant.Create;
  StatusRead(Before);
  GetSmallBlocks;
  Servant.Call(FreeBlocks);
  SameUse('freed by another thread');
  Servant.Call(GetSmallBlocks);
  FreeBlocks;
  SameUse('got by another thread');
  Servant.Free;
end;

procedure TStatsTests.BlocksOfAnEndedThreadCountUntilTheyAreFreed;
begin
  SetLength(Blocks, 10000);
  InThread(GetSmallBlocks);
  FreeBlocks;
  StatusRead(Before);
  InThread(GetSmallBlocks);
  StatusRead(After);
  Same(Before.UsedBytes + SizeOfBlocks, After.UsedBytes, 'in use');
  FreeBlocks;
  SameUse('after');
end;

procedure TStatsTests.SpansHoldTheirBlocks;
begin
  StatusRead(After);
  AtLeast(After.Small.UsedBytes, After.Small.SpanBytes, 'small');
  AtLeast(After.Medium.UsedBytes, After.Medium.SpanBytes, 'medium');
  AtLeast(After.Large.UsedBytes, After.Large.SpanBytes, 'large');
  AtLeast(After.Small.SpanBytes + After.Medium.SpanBytes, After.CommittedBytes, 'committed');
end;

type
  TSpanSums = record
    Bytes, ClassBytes, Blocks: NativeUInt;
  end;
  PSpanSums = ^TSpanSums;

procedure AddSpanInfo(const Span: TSpanInfo; Context: Pointer);
var
  Sums: PSpanSums;
begin
  Sums := Context;
  Inc(Sums^.Bytes, Span.Bytes);
  Inc(Sums^.Blocks, Span.BlockCount);
  if Span.Kind = skBlocks then
    Inc(Sums^.ClassBytes, Span.Bytes);
end;

function SpanSums: TSpanSums;
begin
  Result := Default(TSpanSums);
  SpansVisit(AddSpanInfo, @Result);
end;

procedure TStatsTests.ClassesAddUpToTheTiers;
var
  Classes: TClassStatuses;
  Index: Integer;
  Blocks, Bytes: NativeUInt;
begin
  StatusRead(After);
  ClassStatusRead(Classes);
  Blocks := 0;
  Bytes := 0;
  for Index := 0 to High(Classes) do
  begin
    Inc(Blocks, Classes[Index].BlockCount);
    Inc(Bytes, Classes[Index].SpanBytes);
    AtMost(Classes[Index].SpanBytes, Classes[Index].FreeCount * Classes[Index].BlockSize,
      'bytes of free blocks');
  end;
  Same(After.Small.BlockCount + After.Medium.BlockCount, Blocks, 'blocks');
  Same(SpanSums.ClassBytes, Bytes, 'bytes of spans');
end;

procedure TStatsTests.BlockCountsInItsClass;
var
  First, Second: TClassStatuses;
  Index: Integer;
  P: Pointer;
begin
  ClassStatusRead(First);
  GetMem(P, 1000);
  ClassStatusRead(Second);
  for Index := 0 to High(First) do
    Same(Ord(Second[Index].BlockSize = MemSize(P)),
      Int64(Second[Index].BlockCount) - Int64(First[Index].BlockCount), 'new blocks');
  FreeMem(P);
end;

// Debug spans of earlier tests count blocks in quarantine, too.
procedure TStatsTests.SpansAreThoseOfTheTiers;
var
  First: TSpanSums;
  Small, Large: Pointer;
begin
  StatusRead(After);
  First := SpanSums;
  Same(After.Small.SpanBytes + After.Medium.SpanBytes + After.Large.SpanBytes, First.Bytes, 'bytes');
  GetMem(Small, 100);
  GetMem(Large, 1000000);
  Same(First.Blocks + 2, SpanSums.Blocks, 'blocks');
  FreeMem(Small);
  FreeMem(Large);
end;

procedure TStatsTests.CachedMemoryIsGoneAfterTrim;
var
  P: Pointer;
begin
  GetMem(P, 50 * Megabyte);
  FillChar(P^, 50 * Megabyte, 1);
  StatusRead(Before);
  FreeMem(P);
  ProcessTrim;
  StatusRead(After);
  Same(0, After.CachedBytes, 'cached');
  AtMost(Int64(Before.CommittedBytes) - 50 * Megabyte, After.CommittedBytes, 'committed');
end;

procedure TStatsTests.PeakIsNeverBelowNow;
var
  P: Pointer;
  Peak: NativeUInt;
begin
  Process.PeakSlices := 0; // other tests' blocks
  GetMem(P, 50 * Megabyte);
  StatusRead(After);
  AtLeast(After.CommittedBytes, After.PeakBytes, 'peak');
  AtLeast(50 * Megabyte, After.PeakBytes, 'peak');
  Peak := After.PeakBytes;
  FreeMem(P);
  ProcessTrim;
  StatusRead(After);
  AtLeast(Peak, After.PeakBytes, 'peak after');
end;

procedure TStatsTests.PeakUseIsTheHighestSeen;
var
  P: Pointer;
begin
  GetMem(P, 90 * Megabyte);
  StatusRead(Before);
  FreeMem(P);
  StatusRead(After);
  AtLeast(Before.UsedBytes, Process.PeakUsed, 'peak');
end;

procedure TStatsTests.ReservedIsAtLeastCommitted;
begin
  StatusRead(After);
  AtLeast(After.CommittedBytes, After.ReservedBytes, 'reserved');
end;

// Leaves a free block of this size to the next GetMem. Returns one to free.
function TStatsTests.BlockBesideAFreeOne(Size: NativeUInt): Pointer;
var
  P: Pointer;
begin
  GetMem(Result, Size);
  GetMem(P, Size);
  FreeMem(P);
end;

procedure TStatsTests.ReallocCallsMovesAndBytesAreCounted;
var
  P, Larger, Smaller: Pointer;
begin
  Larger := BlockBesideAFreeOne(1000);
  Smaller := BlockBesideAFreeOne(150);
  GetMem(P, 100);
  StatusRead(Before);
  ReallocMem(P, 101);
  StatusRead(After);
  Same(Before.Realloc.Calls + 1, After.Realloc.Calls, 'calls in place');
  Same(Before.Realloc.Moves, After.Realloc.Moves, 'moves in place');
  ReallocMem(P, 1000);
  StatusRead(After);
  Same(Before.Realloc.Calls + 2, After.Realloc.Calls, 'calls');
  Same(Before.Realloc.Moves + 1, After.Realloc.Moves, 'moves');
  Same(Before.Realloc.CopiedBytes + 112, After.Realloc.CopiedBytes, 'bytes copied');
  ReallocMem(P, 150);
  StatusRead(After);
  Same(Before.Realloc.Moves + 2, After.Realloc.Moves, 'moves of a reduced block');
  Same(Before.Realloc.CopiedBytes + 112 + 150, After.Realloc.CopiedBytes, 'bytes copied of it');
  FreeMem(P);
  FreeMem(Smaller);
  FreeMem(Larger);
end;

procedure TStatsTests.ReallocCallsOfLargeBlocksAreCounted;
var
  P: Pointer;
begin
  GetMem(P, Megabyte);
  StatusRead(Before);
  ReallocMem(P, Megabyte - 1);
  StatusRead(After);
  Same(Before.Realloc.Calls + 1, After.Realloc.Calls, 'calls');
  Same(Before.Realloc.Moves, After.Realloc.Moves, 'moves');
  FreeMem(P);
end;

procedure TStatsTests.SystemCallsAreCounted;
var
  P: Pointer;
begin
  StatusRead(Before);
  GetMem(P, 50 * Megabyte);
  FillChar(P^, 50 * Megabyte, 1);
  FreeMem(P);
  ProcessTrim;
  StatusRead(After);
  AtLeast(Before.OsCalls[ocPurge] + 1, After.OsCalls[ocPurge], 'purges');
  AtLeast(1, After.OsCalls[ocReserve], 'reservations');
  AtLeast(1, After.OsCalls[ocCommit], 'commits');
end;

procedure TStatsTests.WorkUntilOver;
begin
  while LoadAcquire(IsOver) = 0 do
    HeapWorks;
end;

procedure TStatsTests.StatusCanBeReadWhileThreadsWork;
var
  Workers: array[1..3] of TWorker;
  Index: Integer;
begin
  IsOver := 0;
  for Index := 1 to High(Workers) do
    Workers[Index] := TWorker.Create(WorkUntilOver, False);
  for Index := 1 to 2000 do
  begin
    StatusRead(After);
    AtMost(After.ReservedBytes, After.Large.SpanBytes, 'bytes of large blocks');
    AtMost(After.CommittedBytes, After.UsedBytes, 'bytes in use');
  end;
  StoreRelease(IsOver, 1);
  for Index := 1 to High(Workers) do
    EndThread(Workers[Index]);
end;

procedure TStatsTests.SpareSlicesAreNotCommitted;
var
  Source, Span: PSpan;
  Copied: NativeUInt;
begin
  Source := LargeGet(5 * Megabyte);
  StatusRead(Before);
  Span := LargeMove(Source, 6 * Megabyte, Copied);
  StatusRead(After);
  AtLeast(1, Span^.SpareCount, 'spare slices');
  // A copied block leaves its old place warm.
  Same(Before.CommittedBytes + Megabyte + Copied, After.CommittedBytes, 'committed');
  LargeFree(Span);
end;

initialization
  RegisterTest(TStatsTests);
end.
