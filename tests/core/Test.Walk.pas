/// Tests of LaneMM.Walk: every block in use is visited once, no other one is.
unit Test.Walk;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.Layout;

type
  TWalkTests = class(TLaneTest)
  strict private
    Blocks: TPointers;
    IsOver: TAtomicWord;
    procedure GetBlocks;
    procedure FreeEverySecond;
    procedure FreeBlocks;
    procedure ChurnUntilOver;
    function VisitsOf(P: Pointer): Integer;
    procedure AllAreVisited(Step: Integer);
  published
    procedure EveryBlockIsVisitedOnce;
    procedure FreedBlocksAreNotVisited;
    procedure BlocksFreedByAnotherThreadAreNotVisited;
    procedure BlocksOfAnEndedThreadAreVisited;
    procedure BlocksComeByAddress;
    procedure SumsAreThoseOfTheStatus;
    procedure BlocksInUseAreVisitedWhileThreadsChurn;
    procedure EveryByteLeadsToItsBlock;
    procedure NoFreeBlockIsFound;
    procedure FreeBlocksAreVisitedOnce;
    procedure ForeignAddressesAreNotFound;
    procedure NoAddressPastALargeBlockIsFound;
  end;

implementation

uses
  testregistry, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Walk, LaneMM.Stats;

type
  TVisits = record
    Wanted: PByte;
    Count, Disorder: Integer;
    Blocks, Bytes: NativeUInt;
    Last: PByte;
  end;
  PVisits = ^TVisits;

procedure Visit(const Block: TBlockInfo; Context: Pointer);
var
  Visits: PVisits;
begin
  Visits := Context;
  if Block.Address = Visits^.Wanted then
    Inc(Visits^.Count);
  if Block.Address <= Visits^.Last then
    Inc(Visits^.Disorder);
  Visits^.Last := Block.Address;
  Inc(Visits^.Blocks);
  Inc(Visits^.Bytes, Block.UsableSize);
end;

function TWalkTests.VisitsOf(P: Pointer): Integer;
var
  Visits: TVisits;
begin
  Visits := Default(TVisits);
  Visits.Wanted := P;
  WalkBlocks(Visit, @Visits);
  Result := Visits.Count;
end;

// Blocks 0, Step, 2 * Step, ... are visited once, the others never.
procedure TWalkTests.AllAreVisited(Step: Integer);
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    Same(Ord(Index mod Step = 0), VisitsOf(Blocks[Index]), 'visits of a block');
end;

procedure TWalkTests.GetBlocks;
var
  Index: Integer;
begin
  SetLength(Blocks, Length(SampleSizes) * 20);
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], SampleSizes[Index mod Length(SampleSizes)]);
end;

procedure TWalkTests.FreeEverySecond;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    if Odd(Index) then
      FreeMem(Blocks[Index]);
end;

procedure TWalkTests.FreeBlocks;
begin
  FreeEach(Blocks, 1);
end;

procedure TWalkTests.EveryBlockIsVisitedOnce;
begin
  GetBlocks;
  AllAreVisited(1);
  FreeBlocks;
end;

procedure TWalkTests.FreedBlocksAreNotVisited;
begin
  GetBlocks;
  FreeEverySecond;
  AllAreVisited(2);
  FreeEach(Blocks, 2);
end;

procedure TWalkTests.BlocksFreedByAnotherThreadAreNotVisited;
begin
  GetBlocks;
  InThread(FreeEverySecond);
  AllAreVisited(2);
  FreeEach(Blocks, 2);
end;

procedure TWalkTests.BlocksOfAnEndedThreadAreVisited;
begin
  InThread(GetBlocks);
  AllAreVisited(1);
  FreeBlocks;
end;

procedure TWalkTests.BlocksComeByAddress;
var
  Visits: TVisits;
begin
  GetBlocks;
  Visits := Default(TVisits);
  WalkBlocks(Visit, @Visits);
  Same(0, Visits.Disorder, 'blocks before an earlier one');
  FreeBlocks;
end;

procedure TWalkTests.SumsAreThoseOfTheStatus;
var
  Visits: TVisits;
  Status: TStatus;
begin
  GetBlocks;
  Visits := Default(TVisits);
  WalkBlocks(Visit, @Visits);
  StatusRead(Status);
  Same(Status.UsedBytes, Visits.Bytes, 'bytes in use');
  Same(Status.Small.BlockCount + Status.Medium.BlockCount + Status.Large.BlockCount,
    Visits.Blocks, 'blocks in use');
  FreeBlocks;
end;

procedure TWalkTests.ChurnUntilOver;
var
  Generator: TGenerator;
  Slots: array[0..99] of Pointer;
  Index: Integer;
begin
  Generator.Start(NativeUInt(GetCurrentThreadId));
  FillChar(Slots, SizeOf(Slots), 0);
  repeat
    Index := Generator.Below(Length(Slots));
    FreeMem(Slots[Index]);
    GetMem(Slots[Index], Generator.NextSize(100000));
  until LoadAcquire(IsOver) <> 0;
  for Index := 0 to High(Slots) do
    FreeMem(Slots[Index]);
end;

procedure TWalkTests.BlocksInUseAreVisitedWhileThreadsChurn;
var
  Workers: array[1..4] of TWorker;
  Index, Round: Integer;
begin
  IsOver := 0;
  GetBlocks;
  for Index := 1 to High(Workers) do
    Workers[Index] := TWorker.Create(ChurnUntilOver, False);
  for Round := 1 to 200 do
    Same(1, VisitsOf(Blocks[Round mod Length(Blocks)]), 'visits of a block');
  StoreRelease(IsOver, 1);
  for Index := 1 to High(Workers) do
    EndThread(Workers[Index]);
  FreeBlocks;
end;

procedure TWalkTests.EveryByteLeadsToItsBlock;
var
  Index, Part: Integer;
  Block: TBlockInfo;
  Size: NativeUInt;
begin
  GetBlocks;
  for Index := 0 to High(Blocks) do
  begin
    Size := MemSize(Blocks[Index]);
    AssertTrue('first byte', WalkFind(Blocks[Index], Block));
    Same(NativeInt(Blocks[Index]), NativeInt(Block.Address), 'block of the first byte');
    Same(Size, Block.UsableSize, 'its size');
    AssertTrue('last byte', WalkFind(Blocks[Index] + Size - 1, Block));
    Same(NativeInt(Blocks[Index]), NativeInt(Block.Address), 'block of the last byte');
    for Part := 1 to 7 do
    begin
      AssertTrue('byte inside', WalkFind(Blocks[Index] + Size div 8 * Part, Block));
      Same(NativeInt(Blocks[Index]), NativeInt(Block.Address), 'block of a byte inside');
    end;
    if WalkFind(Blocks[Index] + Size, Block) then
      AssertTrue('the byte behind is another block''s', Block.Address = Blocks[Index] + Size);
  end;
  FreeBlocks;
end;

procedure TWalkTests.NoFreeBlockIsFound;
var
  Index, Wrong: Integer;
  Block: TBlockInfo;
begin
  Wrong := 0;
  GetBlocks;
  FreeEverySecond;
  for Index := 0 to High(Blocks) do // without an allocation, which would take one of the free blocks
    Inc(Wrong, Ord(WalkFind(Blocks[Index], Block) = Odd(Index)));
  Same(0, Wrong, 'wrong answers');
  FreeEach(Blocks, 2);
end;

procedure TWalkTests.FreeBlocksAreVisitedOnce;
var
  Visits: TVisits;
  Index: Integer;
begin
  GetBlocks;
  for Index := 0 to Length(SampleSizes) * 3 - 1 do // the others keep the spans in use
  begin
    Visits := Default(TVisits);
    Visits.Wanted := Blocks[Index];
    WalkFreeBlocks(Visit, @Visits);
    Same(0, Visits.Count, 'visits of a block in use');
    FreeMem(Blocks[Index]);
    WalkFreeBlocks(Visit, @Visits);
    Blocks[Index] := nil;
    Same(Ord(SampleSizes[Index mod Length(SampleSizes)] <= MaxClassSize), Visits.Count,
      'visits of a free block');
  end;
  FreeBlocks;
end;

procedure TWalkTests.ForeignAddressesAreNotFound;
var
  Block: TBlockInfo;
begin
  AssertFalse('nil', WalkFind(nil, Block));
  AssertFalse('stack', WalkFind(@Block, Block));
  AssertFalse('data', WalkFind(@Process, Block));
  AssertFalse('beyond', WalkFind(Pointer(High(NativeUInt)), Block));
  AssertFalse('untouched', WalkFind(UntouchedLimit - 1, Block));
end;

procedure TWalkTests.NoAddressPastALargeBlockIsFound;
var
  P: PByte;
  Block: TBlockInfo;
begin
  GetMem(P, MaxClassSize + 3 * SliceSize + 1);
  AssertTrue('last byte', WalkFind(P + MemSize(P) - 1, Block));
  AssertTrue('not a whole slice', MemSize(P) mod SliceSize <> 0);
  AssertFalse('next byte', WalkFind(P + MemSize(P), Block));
  FreeMem(P);
end;

initialization
  RegisterTest(TWalkTests);
end.
