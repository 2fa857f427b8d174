/// Tests of LaneMM.Types: the layout of the records, which assembler and cache lines depend on.
unit Test.Types;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TTypesTests = class(TLaneTest)
  published
    procedure AssemblerShiftsMatchTheRecords;
    procedure ResizeKeepsTheShareOfTheConstant;
    procedure OwnerFieldsLieOnTheFirstLine;
    procedure ThreadsThatFreeBlocksOfOthersReadTheSecondLine;
    procedure ThreadsThatFreeBlocksOfOthersWriteALineThatTheOwnersFreeDoesNotRead;
    procedure TrimmingThreadsDoNotWriteOnTheFastPathsLines;
    procedure FieldsReadByEveryCallLieBeforeTheLocks;
    procedure WhatThreadsWriteSharesNoLineWithWhatAllRead;
    procedure ProcessLiesOnACacheLine;
    procedure HeapsLieOnCacheLines;
    procedure SpanRecordsLieOnCacheLines;
    procedure EndOfListIsNoBlock;
    procedure NoOwnerIsNoHeap;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Threads;

function OffsetIn(Start, Field: Pointer): NativeUInt;
begin
  Result := NativeUInt(Field) - NativeUInt(Start);
end;

procedure TTypesTests.AssemblerShiftsMatchTheRecords;
begin
  Same(1 shl SpanRecordShift, SizeOf(TSpan), 'size of a span record');
  Same(1 shl SliceShift, SliceSize, 'size of a slice');
  Same(1 shl ClassStepShift, ClassStep, 'class step');
  Same(1 shl 16, SliceSize, 'a slice is what a word holds: movzx reads the offset in it');
  Same(-1, NativeInt(HandedOut), 'the word of a block handed out');
  Same(SizeOf(Byte), SizeOf(Process.ClassOf[0]), 'entry of the class table');
  Same(SizeOf(Cardinal), SizeOf(Process.EmptySpan.Used), 'count of used blocks');
  Same(SizeOf(Pointer), SizeOf(Process.Abandoned^.Current[0]), 'entry of the current spans');
end;

procedure TTypesTests.ResizeKeepsTheShareOfTheConstant;
var
  P, Kept: Pointer;
begin
  GetMem(P, 1024);
  Kept := P;
  ReallocMem(P, 1024 shr KeptShift);
  AssertTrue('kept at the share', P = Kept);
  ReallocMem(P, 1024 shr KeptShift - 1);
  AssertTrue('moved below it', P <> Kept);
  FreeMem(P);
end;

procedure TTypesTests.OwnerFieldsLieOnTheFirstLine;
var
  Span: TSpan;
begin
  AtMost(CacheLineSize - SizeOf(Span.FreeList), OffsetIn(@Span, @Span.FreeList), 'FreeList');
  AtMost(CacheLineSize - SizeOf(Span.Used), OffsetIn(@Span, @Span.Used), 'Used');
  AtMost(CacheLineSize - SizeOf(Span.ProductLimit), OffsetIn(@Span, @Span.ProductLimit),
    'ProductLimit');
end;

procedure TTypesTests.ThreadsThatFreeBlocksOfOthersReadTheSecondLine;
var
  Span: TSpan;

  procedure IsThere(var Field; const Name: string);
  begin
    Same(1, OffsetIn(@Span, @Field) div CacheLineSize, Name);
  end;

begin
  IsThere(Span.Owner, 'Owner');
  IsThere(Span.Start, 'Start');
  IsThere(Span.BlockSize, 'BlockSize');
  IsThere(Span.DivideMagic, 'DivideMagic');
  IsThere(Span.LinkKey, 'LinkKey');
  IsThere(Span.CarvedBytes, 'CarvedBytes');
  IsThere(Span.IsCurrent, 'IsCurrent');
  IsThere(Span.Kind, 'Kind');
  IsThere(Span.Shard, 'Shard, the last before what they write');
end;

procedure TTypesTests.ThreadsThatFreeBlocksOfOthersWriteALineThatTheOwnersFreeDoesNotRead;
var
  Span: TSpan;
begin
  AtLeast(2 * CacheLineSize, OffsetIn(@Span, @Span.Remote), 'Remote');
end;

procedure TTypesTests.TrimmingThreadsDoNotWriteOnTheFastPathsLines;
var
  Heap: THeap;
begin
  AtLeast(OffsetIn(@Heap, @Heap.Realloc) + SizeOf(TReallocCounts) + CacheLineSize,
    OffsetIn(@Heap, @Heap.Queues), 'Queues');
  AtLeast(OffsetIn(@Heap, @Heap.Queues), OffsetIn(@Heap, @Heap.Lock), 'Lock');
  AtLeast(OffsetIn(@Heap, @Heap.Queues), OffsetIn(@Heap, @Heap.Taken), 'Taken');
end;

procedure TTypesTests.FieldsReadByEveryCallLieBeforeTheLocks;
var
  LockLine: NativeUInt;
begin
  LockLine := OffsetIn(@Process, @Process.Shards) div CacheLineSize;
  AtMost(LockLine - 1, OffsetIn(@Process, @Process.ThreadSlot) div CacheLineSize, 'ThreadSlot');
  AtMost(LockLine - 1, OffsetIn(@Process, @Process.Base) div CacheLineSize, 'Base');
  AtMost(LockLine - 1, OffsetIn(@Process, @Process.Limit) div CacheLineSize, 'Limit');
  AtMost(LockLine - 1, OffsetIn(@Process, @Process.Spans) div CacheLineSize, 'Spans');
  AtMost(LockLine - 1, OffsetIn(@Process, @Process.MainHeap) div CacheLineSize, 'MainHeap');
end;

procedure TTypesTests.WhatThreadsWriteSharesNoLineWithWhatAllRead;
var
  Line: NativeUInt;

  procedure BeginsAfter(var Field; const Name: string);
  begin
    AtLeast(Line + 1, OffsetIn(@Process, @Field) div CacheLineSize, Name);
  end;

  procedure EndsWith(var Field; Size: NativeUInt);
  begin
    Line := (OffsetIn(@Process, @Field) + Size - 1) div CacheLineSize;
  end;

begin
  EndsWith(Process.Shards, SizeOf(Process.Shards));
  BeginsAfter(Process.EmptySpan, 'what all read');
  EndsWith(Process.LastRun, SizeOf(Process.LastRun));
  AtMost(Line, OffsetIn(@Process, @Process.ClassOf) div CacheLineSize, 'ClassOf');
  AtMost(Line, OffsetIn(@Process, @Process.HugeFrom) div CacheLineSize, 'HugeFrom');
  AtMost(Line, OffsetIn(@Process, @Process.PurgeThread) div CacheLineSize, 'PurgeThread');
  AtMost(Line, OffsetIn(@Process, @Process.Heaps) div CacheLineSize, 'Heaps');
  BeginsAfter(Process.SweepWanted, 'what sweeps and purges write');
  EndsWith(Process.ShelveNext, SizeOf(Process.ShelveNext));
  BeginsAfter(Process.Backed, 'what each span and large block writes');
  EndsWith(Process.PeakSlices, SizeOf(Process.PeakSlices));
  BeginsAfter(Process.LargeDensity, 'what some large blocks write');
  EndsWith(Process.PeakUsed, SizeOf(Process.PeakUsed));
  BeginsAfter(Process.LookedMs, 'what purges and commits write');
  EndsWith(Process.CommitsUnderWay, SizeOf(Process.CommitsUnderWay));
  BeginsAfter(Process.UnusedHeaps, 'what threads that begin or end write');
  EndsWith(Process.LeavingThreads, SizeOf(Process.LeavingThreads));
  BeginsAfter(Process.OsCalls, 'what system calls write');
end;

procedure TTypesTests.ProcessLiesOnACacheLine;
begin
  Same(0, NativeUInt(@Process) mod CacheLineSize, 'address of Process modulo a line');
end;

procedure TTypesTests.HeapsLieOnCacheLines;
var
  Heap: PHeap;
begin
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    Same(0, NativeUInt(Heap) mod CacheLineSize, 'address of a heap modulo a line');
    Heap := Heap^.NextHeap;
  end;
end;

procedure TTypesTests.SpanRecordsLieOnCacheLines;
begin
  Same(0, Process.Spans mod CacheLineSize, 'address of the span records modulo a line');
end;

procedure TTypesTests.EndOfListIsNoBlock;
begin
  AssertTrue('odd', Odd(EndOfList));
end;

procedure TTypesTests.NoOwnerIsNoHeap;
var
  Heap: PHeap;
begin
  AssertTrue('nil', NoOwner <> nil);
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    AssertTrue('a heap', NoOwner <> Heap);
    Heap := Heap^.NextHeap;
  end;
end;

initialization
  RegisterTest(TTypesTests);
end.
