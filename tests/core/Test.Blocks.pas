/// Tests of LaneMM.Blocks: sizes, alignment, reallocation. See Test.Blocks.Pointers for pointers
/// that are refused and Test.Blocks.Twins for the assembler.
unit Test.Blocks;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TBlocksTests = class(TQuietTest)
  strict private
    procedure WasteIsAtMost(LimitBytes, LimitShare, First, Last, Step: NativeUInt);
    procedure ResizeAndCheck(Size, NewSize: NativeUInt);
  strict private
    Given: Pointer;
    GivenSize: NativeUInt;
    procedure Give;
    procedure Drop;
  published
    procedure EverySizeGivesABlockThatHoldsIt;
    procedure EveryBlockIsAlignedTo16;
    procedure WasteIsAtMost15BytesUpTo128;
    procedure WasteIsAtMostAnEighthAbove128AndAQuarterAndALineAbove8K;
    procedure WasteOfALargeBlockIsLessThanAPage;
    procedure BlocksDoNotOverlap;
    procedure LastFreedBlockIsHandedOutNext;
    procedure GrowingKeepsTheContentsOverAllTiers;
    procedure ShrinkingKeepsTheContentsOverAllTiers;
    procedure CopyWritesNoByteBehindItsEnd;
    procedure RandomResizesKeepTheContents;
    procedure ResizeWithinTheUsableSizeStaysInPlace;
    procedure ShrinkToAQuarterStaysInPlace;
    procedure TinyBlockStaysWhenItIsReduced;
    procedure ShrinkToLittleGivesMemoryBack;
    procedure BlockThatGrewOnceHasRoomToGrowAgain;
    procedure FirstBlockHasNoSlack;
    procedure GrowthByteByByteMovesRarely;
    procedure ResizeOfABlockOfAnotherThreadKeepsTheContents;
    procedure ZeroedBlockIsZeroWhereABlockWas;
    procedure ZeroedBlockIsZeroWhereABlockWasBefore;
    procedure ZeroedBlockIsZeroAfterAnotherThreadFreedIt;
    procedure ZeroedBlocksOfFreshSpansAreNotTouched;
    procedure SparseZeroedBlockBacksWhatTheLastOneTouched;
    procedure SparseZeroedBlockOfAnotherThreadDoesToo;
    procedure PartlyUsedZeroedBlockBacksNothingElse;
    procedure ShortZeroedBlockKeepsThePagesOfTheLastOne;
    procedure ErasureBeforeAPurgeBacksNothing;
    procedure SizeBeyondAllMemoryIsRefused;
    procedure SizeBeyondMemoryAndSwapIsRefused;
    procedure LastFreeOfASpanReturnsTheSize;
  end;

implementation

uses
  fpcunit, testregistry, Test.System, LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.Arena,
  LaneMM.Shards, LaneMM.KeptRuns, LaneMM.Span, LaneMM.Purge;

const
  PageSize = 4096;
  Megabyte = 1 shl 20;
  NoShare = High(NativeUInt);

// Blocks are larger than asked by at most LimitBytes and the part of the size that LimitShare names.
procedure TBlocksTests.WasteIsAtMost(LimitBytes, LimitShare, First, Last, Step: NativeUInt);
var
  Size: NativeUInt;
  P: Pointer;
begin
  Size := First;
  while Size <= Last do
  begin
    GetMem(P, Size);
    AtLeast(Size, MemSize(P), 'usable size');
    AtMost(Size + LimitBytes + Size div LimitShare, MemSize(P), 'usable size');
    FreeMem(P);
    Inc(Size, Step);
  end;
end;

procedure TBlocksTests.EverySizeGivesABlockThatHoldsIt;
var
  Size: NativeUInt;
  P: Pointer;
begin
  for Size := 0 to MaxClassSize + PageSize do
  begin
    GetMem(P, Size);
    AssertTrue('a block', P <> nil);
    AtLeast(Size, MemSize(P), 'usable size');
    AtLeast(Size, FreeMem(P), 'usable size of the freed block');
  end;
end;

procedure TBlocksTests.EveryBlockIsAlignedTo16;
var
  Blocks: TPointers;
  Generator: TGenerator;
  Index: Integer;
begin
  Generator.Start(TestSeed);
  SetLength(Blocks, 20000);
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], Generator.NextSize(100000));
    Same(0, NativeUInt(Blocks[Index]) mod 16, 'address modulo 16');
  end;
  FreeEach(Blocks, 1);
end;

procedure TBlocksTests.WasteIsAtMost15BytesUpTo128;
begin
  WasteIsAtMost(15, NoShare, 1, 128, 1);
end;

procedure TBlocksTests.WasteIsAtMostAnEighthAbove128AndAQuarterAndALineAbove8K;
begin
  WasteIsAtMost(0, 8, 129, 8192, 1);
  WasteIsAtMost(CacheLineSize, 4, 8193, MaxClassSize, 1);
end;

procedure TBlocksTests.WasteOfALargeBlockIsLessThanAPage;
begin
  WasteIsAtMost(PageSize - 1, NoShare, MaxClassSize + 1, Megabyte, 1001);
  WasteIsAtMost(PageSize - 1, NoShare, Megabyte, 40 * Megabyte, 99999);
end;

procedure TBlocksTests.BlocksDoNotOverlap;
var
  Blocks: TPointers;
  Index: Integer;
  Generator: TGenerator;
begin
  Generator.Start(TestSeed);
  SetLength(Blocks, 5000);
  for Index := 0 to High(Blocks) do
  begin
    GetMem(Blocks[Index], Generator.NextSize(300000));
    FillPattern(Blocks[Index], MemSize(Blocks[Index]), Index);
  end;
  for Index := 0 to High(Blocks) do
    AssertTrue('contents', HasPattern(Blocks[Index], MemSize(Blocks[Index]), Index));
  FreeEach(Blocks, 1);
end;

procedure TBlocksTests.LastFreedBlockIsHandedOutNext;
var
  Size: NativeUInt;
  P, Q: Pointer;
begin
  for Size := 0 to MaxClassSize do
  begin
    GetMem(P, Size);
    FreeMem(P);
    GetMem(Q, Size);
    AssertTrue('the same block', P = Q);
    FreeMem(Q);
  end;
end;

// ---------------------------------------------------------------------------- realloc

// Fills all that is usable: callers use the slack that MemSize reports.
procedure TBlocksTests.ResizeAndCheck(Size, NewSize: NativeUInt);
var
  P: Pointer;
  Kept: NativeUInt;
begin
  GetMem(P, Size);
  Kept := MemSize(P);
  FillPattern(P, Kept, Size);
  ReallocMem(P, NewSize);
  AtLeast(NewSize, MemSize(P), 'usable size');
  Same(0, NativeUInt(P) mod 16, 'address modulo 16');
  if Kept > NewSize then
    Kept := NewSize and not 7;
  AssertTrue('contents', HasPattern(P, Kept, Size));
  FillPattern(P, MemSize(P), NewSize);
  FreeMem(P);
end;

procedure TBlocksTests.GrowingKeepsTheContentsOverAllTiers;
var
  Index, Other: Integer;
begin
  for Index := 0 to High(SampleSizes) do
    for Other := Index to High(SampleSizes) do
      if SampleSizes[Other] <> 0 then
        ResizeAndCheck(SampleSizes[Index], SampleSizes[Other]);
end;

procedure TBlocksTests.ShrinkingKeepsTheContentsOverAllTiers;
var
  Index, Other: Integer;
begin
  for Index := 0 to High(SampleSizes) do
    for Other := 0 to Index do
      if SampleSizes[Other] <> 0 then
        ResizeAndCheck(SampleSizes[Index], SampleSizes[Other]);
end;

// The block moves to a place among blocks in use.
procedure TBlocksTests.CopyWritesNoByteBehindItsEnd;
const
  MostSize = 400;
  Count = 9;
  Free = 4;
var
  Others: array[0..Count - 1] of PByte;
  Moved: PByte;
  Size, Target, Place: NativeUInt;
  Index, Wrong, Between: Integer;
begin
  Wrong := 0;
  Between := 0;
  for Size := 1 to MostSize do
  begin
    Moved := GetMem(Size);
    ReallocMem(Moved, MemSize(Moved) + 1);
    Target := MemSize(Moved);
    FreeMem(Moved);
    Moved := GetMem(Size);
    FillChar(Moved^, MemSize(Moved), Size);
    for Index := 0 to High(Others) do
    begin
      Others[Index] := GetMem(Target);
      FillChar(Others[Index]^, MemSize(Others[Index]), not Size);
    end;
    FreeMem(Others[Free]);
    ReallocMem(Moved, MemSize(Moved) + 1);
    Inc(Between, Ord(Moved = Others[Free])); // not where a span begins among them
    Others[Free] := Moved;
    for Place := 0 to Size - 1 do
      Inc(Wrong, Ord(Moved[Place] <> Byte(Size)));
    for Index := 0 to High(Others) do
      if Index <> Free then
        for Place := 0 to MemSize(Others[Index]) - 1 do
          Inc(Wrong, Ord(Others[Index][Place] <> Byte(not Size)));
    for Index := 0 to High(Others) do
      FreeMem(Others[Index]);
  end;
  AtLeast(MostSize div 2, Between, 'moves between other blocks');
  Same(0, Wrong, 'wrong bytes');
end;

procedure TBlocksTests.RandomResizesKeepTheContents;
const
  TurnCount = 30000;
var
  Blocks: array[0..31] of Pointer;
  Sizes: array[0..31] of NativeUInt;
  Generator: TGenerator;
  Turn, Index: Integer;
  Kept: NativeUInt;
begin
  Generator.Start(TestSeed);
  FillChar(Blocks, SizeOf(Blocks), 0);
  FillChar(Sizes, SizeOf(Sizes), 0);
  for Turn := 1 to TurnCount do
  begin
    Index := Generator.Below(Length(Blocks));
    Kept := Sizes[Index];
    Sizes[Index] := Generator.NextSize(2 * Megabyte);
    ReallocMem(Blocks[Index], Sizes[Index]);
    if Kept > Sizes[Index] then
      Kept := Sizes[Index] and not 7;
    AssertTrue('contents', HasPattern(Blocks[Index], Kept, Index));
    FillPattern(Blocks[Index], Sizes[Index], Index);
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

procedure TBlocksTests.ResizeWithinTheUsableSizeStaysInPlace;
var
  Index: Integer;
  P, Q: Pointer;
begin
  for Index := 2 to High(SampleSizes) do
  begin
    GetMem(P, SampleSizes[Index]);
    Q := P;
    ReallocMem(Q, MemSize(P));
    AssertTrue('all of it', P = Q);
    ReallocMem(Q, SampleSizes[Index]);
    AssertTrue('back', P = Q);
    FreeMem(P);
  end;
end;

procedure TBlocksTests.ShrinkToAQuarterStaysInPlace;
var
  Size: NativeUInt;
  P, Q: Pointer;
begin
  Size := 16;
  while Size <= MaxClassSize do
  begin
    GetMem(P, Size);
    Q := P;
    ReallocMem(Q, MemSize(P) div 2);
    AssertTrue('half', P = Q);
    ReallocMem(Q, MemSize(P) div 4);
    AssertTrue('a quarter', P = Q);
    FreeMem(P);
    Size := Size + Size div 3 + 1;
  end;
end;

procedure TBlocksTests.TinyBlockStaysWhenItIsReduced;
var
  Size: NativeUInt;
  P, Q: Pointer;
begin
  Size := BlockAlignment;
  while Size <= MostTiny do
  begin
    GetMem(P, Size);
    Q := P;
    ReallocMem(Q, 1);
    AssertTrue('the same', P = Q);
    FreeMem(P);
    Inc(Size, BlockAlignment);
  end;
end;

procedure TBlocksTests.ShrinkToLittleGivesMemoryBack;
const
  Little = 20;
var
  Index: Integer;
  P: Pointer;
  Before: NativeUInt;
begin
  for Index := 0 to High(SampleSizes) do
    if SampleSizes[Index] >= 250 then
    begin
      Before := UsedBytes;
      GetMem(P, SampleSizes[Index]);
      ReallocMem(P, Little);
      AtMost(2 * Little, UsedBytes - Before, 'bytes in use');
      FreeMem(P);
    end;
end;

procedure TBlocksTests.BlockThatGrewOnceHasRoomToGrowAgain;
var
  P: Pointer;
begin
  GetMem(P, 24);
  AtLeast(24, MemSize(P), 'first');
  ReallocMem(P, MemSize(P) + 1);
  AtLeast(80, MemSize(P), 'second');
  ReallocMem(P, MemSize(P) + 1);
  AtLeast(192, MemSize(P), 'third');
  ReallocMem(P, 10000);
  ReallocMem(P, MemSize(P) + 1);
  AtLeast(14000, MemSize(P), 'medium');
  FreeMem(P);
end;

procedure TBlocksTests.FirstBlockHasNoSlack;
var
  P: Pointer;
begin
  GetMem(P, 24);
  AtMost(39, MemSize(P), 'usable size');
  FreeMem(P);
end;

procedure TBlocksTests.GrowthByteByByteMovesRarely;
const
  Last = 4 * Megabyte;
var
  P, Old: Pointer;
  Size: NativeUInt;
  Moves: Integer;
begin
  GetMem(P, 24);
  Moves := 0;
  for Size := 25 to Last do
  begin
    Old := P;
    ReallocMem(P, Size);
    Inc(Moves, Ord(P <> Old));
  end;
  FreeMem(P);
  AtMost(25, Moves, 'moves');
end;

procedure TBlocksTests.Give;
begin
  GetMem(Given, GivenSize);
  FillPattern(Given, GivenSize, 1);
end;

procedure TBlocksTests.ResizeOfABlockOfAnotherThreadKeepsTheContents;
var
  Index: Integer;
  Owner: TWorker;
begin
  for Index := 1 to High(SampleSizes) do
  begin
    GivenSize := SampleSizes[Index];
    Owner := StartIdleThread(Give);
    ReallocMem(Given, GivenSize * 2);
    AssertTrue('contents', HasPattern(Given, GivenSize, 1));
    FreeMem(Given);
    EndThread(Owner);
  end;
end;

procedure TBlocksTests.ZeroedBlockIsZeroWhereABlockWas;
var
  P: PByte;
  Size: NativeUInt;
begin
  for Size in SampleSizes do
  begin
    GetMem(P, Size);
    FillChar(P^, Size, 1);
    FreeMem(P);
    P := AllocMem(Size);
    AssertTrue('zeros', IsZero(P, MemSize(P)));
    FreeMem(P);
  end;
end;

// The block may be the first of a page of blocks that was just carved.
procedure TBlocksTests.ZeroedBlockIsZeroWhereABlockWasBefore;
var
  Blocks: array[0..99] of PByte;
  Size: NativeUInt;
  Index: Integer;
begin
  for Size in SampleSizes do
  begin
    ShardsPurge(AllSlices);
    for Index := 0 to High(Blocks) do
    begin
      GetMem(Blocks[Index], Size);
      FillChar(Blocks[Index]^, Size, 1);
      FreeMem(Blocks[Index]);
      Blocks[Index] := AllocMem(Size);
      AssertTrue('zeros', IsZero(Blocks[Index], MemSize(Blocks[Index])));
    end;
    for Index := 0 to High(Blocks) do
      FreeMem(Blocks[Index]);
  end;
end;

procedure TBlocksTests.Drop;
begin
  FreeMem(Given);
end;

// Allocates and fills blocks of Size until the last one is that of a span that held zeros, has none
// left and so gives next what another thread frees. Returns how many.
function FillUpAZeroSpan(Size: NativeUInt; out Blocks: array of Pointer): Integer;
var
  Span: PSpan;
begin
  Result := 0;
  repeat
    TAssert.AssertTrue('a span of zeros', Result < Length(Blocks));
    GetMem(Blocks[Result], Size);
    FillChar(Blocks[Result]^, Size, 1);
    Span := ArenaSpan(Blocks[Result]);
    Inc(Result);
  until Span^.IsZero and SpanIsFull(Span);
end;

procedure TBlocksTests.ZeroedBlockIsZeroAfterAnotherThreadFreedIt;
const
  Size = 5000; // each carving makes one block
var
  Blocks: array[0..1999] of Pointer;
  Owner: TWorker;
  Count, Index: Integer;
begin
  ShardsPurge(AllSlices);
  Count := FillUpAZeroSpan(Size, Blocks);
  Given := Blocks[Count - 1];
  Owner := StartIdleThread(Drop);
  OsThreadHeap^.Carved := Given; // as if the start of the thread had carved nothing
  Blocks[Count - 1] := AllocMem(Size);
  AssertTrue('the block that the thread freed', Blocks[Count - 1] = Given);
  AssertTrue('zeros', IsZero(Given, Size));
  EndThread(Owner);
  for Index := 0 to Count - 1 do
    FreeMem(Blocks[Index]);
end;

procedure TBlocksTests.ZeroedBlocksOfFreshSpansAreNotTouched;
const
  Sizes: array[0..2] of NativeUInt = (9000, 30000, 60000);
var
  Blocks: array[0..199] of PByte;
  Size, Pages: NativeUInt;
  Index: Integer;
begin
  Process.HugeFrom := 0;
  for Size in Sizes do
  begin
    RunsRelease(OsThreadHeap, 1);
    ProcessTrim;
    Pages := 0;
    for Index := 0 to High(Blocks) do
    begin
      Blocks[Index] := AllocMem(Size);
      Inc(Pages, BackedPages(Blocks[Index] + OsPageSize - NativeUInt(Blocks[Index]) mod OsPageSize,
        Size and not (OsPageSize - 1) - OsPageSize));
    end;
    // A span that another test left partly used may serve fifteen of the blocks.
    AtMost(Length(Blocks) div 4 * (Size div OsPageSize - 1), Pages,
      'pages that are backed behind the first of each block');
    for Index := 0 to High(Blocks) do
    begin
      AssertTrue('zeros', IsZero(Blocks[Index], MemSize(Blocks[Index])));
      FreeMem(Blocks[Index]);
    end;
  end;
end;

const
  SparseSize = 64 * Megabyte;
  SparsePages = 16;

// Allocates a zeroed block and touches some pages, in parts of their own. Returns how many pages
// were backed before that, also to Context unless it is nil.
function TouchSparsely(Context: Pointer): PtrInt;
var
  P: PByte;
  Page: NativeUInt;
begin
  P := AllocMem(SparseSize);
  Result := BackedPages(P, SparseSize);
  for Page := 0 to SparsePages - 1 do
  begin
    if P[Page * (SparseSize div SparsePages) + 5] <> 0 then
      Result := High(Result);
    P[Page * (SparseSize div SparsePages) + 5] := 1;
  end;
  FreeMem(P);
  if Context <> nil then
    PPtrInt(Context)^ := Result;
end;

procedure TBlocksTests.SparseZeroedBlockBacksWhatTheLastOneTouched;
var
  Round: Integer;
begin
  Process.HugeFrom := 0;
  ProcessTrim;
  for Round := 1 to 5 do
    AtMost(2 * SparsePages, TouchSparsely(nil), 'backed pages');
end;

procedure TBlocksTests.SparseZeroedBlockOfAnotherThreadDoesToo;
var
  Pages: PtrInt;
begin
  Process.HugeFrom := 0;
  ProcessTrim;
  TouchSparsely(nil);
  WaitForThreadTerminate(BeginThread(TouchSparsely, @Pages), 0);
  AtMost(2 * SparsePages, Pages, 'backed pages');
end;

// One quarter was written, and every other page of another one: their pages are cleared in place.
procedure TBlocksTests.PartlyUsedZeroedBlockBacksNothingElse;
const
  Quarter = SparseSize div 4;
var
  P: PByte;
  Page, Resident: NativeUInt;
begin
  Process.HugeFrom := 0;
  ProcessTrim;
  P := GetMem(SparseSize);
  FillChar(P^, Quarter, 1);
  for Page := 0 to Quarter div OsPageSize div 2 - 1 do
    P[2 * Quarter + Page * 2 * OsPageSize + 100] := 1;
  FreeMem(P);
  Resident := ResidentBytes;
  P := AllocMem(SparseSize);
  AtMost(4 * Megabyte, Abs(Int64(ResidentBytes) - Int64(Resident)), 'bytes backed or not');
  AssertTrue('zeros', IsZero(P, SparseSize));
  FreeMem(P);
end;

// A program that reads such blocks whole had a page fault for each page of each block.
procedure TBlocksTests.ShortZeroedBlockKeepsThePagesOfTheLastOne;
const
  Size = 3 * Megabyte;
var
  P: PByte;
  Pages: NativeUInt;
begin
  Process.HugeFrom := 0;
  ProcessTrim;
  P := AllocMem(Size);
  AssertTrue('zeros', IsZero(P, Size));
  Pages := BackedPages(P, Size);
  P[Size div 2] := 1;
  FreeMem(P);
  P := AllocMem(Size);
  AtLeast(Pages, BackedPages(P, Size), 'backed pages');
  AssertTrue('zeros', IsZero(P, Size));
  FreeMem(P);
end;

procedure TBlocksTests.ErasureBeforeAPurgeBacksNothing;
var
  P: PByte;
  Resident: NativeUInt;
begin
  Process.HugeFrom := 0;
  ProcessTrim;
  P := GetMem(SparseSize);
  P[SparseSize div 2] := 1;
  Resident := ResidentBytes;
  Process.ErasesPages := True;
  OsErase(P, SparseSize);
  Process.ErasesPages := False;
  AtMost(4 * Megabyte, Abs(Int64(ResidentBytes) - Int64(Resident)), 'bytes backed or not');
  AssertTrue('zeros', IsZero(P, SparseSize));
  FreeMem(P);
end;

procedure TBlocksTests.SizeBeyondAllMemoryIsRefused;
var
  P: Pointer;
  Distance: NativeUInt;
begin
  for Distance := 0 to 40 do
  begin
    Same(OutOfMemory, ErrorOfGet(P, High(NativeUInt) - Distance), 'close to the top');
    Same(OutOfMemory, ErrorOfGet(P, High(NativeUInt) div 2 + Distance), 'half of all');
  end;
end;

procedure TBlocksTests.SizeBeyondMemoryAndSwapIsRefused;
var
  P: Pointer;
  Size: NativeUInt;
begin
  Size := Process.MostBytes + 1;
  if Size = 0 then
    Size := Impossible; // this system lets programs take all addresses
  Same(OutOfMemory, ErrorOfGet(P, Size), 'a new block');
  P := GetMem(5 * Megabyte);
  Same(OutOfMemory, ErrorOfRealloc(P, Size), 'a block that grows');
  FreeMem(P);
end;

procedure TBlocksTests.LastFreeOfASpanReturnsTheSize;
const
  Size = 7168;
var
  Kept: array[0..59] of Pointer;
  Index: Integer;
begin
  for Index := 0 to High(Kept) do
    GetMem(Kept[Index], Size);
  for Index := 0 to High(Kept) do
    Same(Size, FreeMem(Kept[Index]), 'usable size');
end;

initialization
  RegisterTest(TBlocksTests);
end.
