/// Tests of LaneMM.Aligned, and of the table of size classes for an alignment of all blocks.
unit Test.Aligned;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TAlignedTests = class(TQuietTest)
  strict private
    procedure AlignAll(Shift: Cardinal);
    procedure CheckScope(Requested, Alignment: NativeUInt);
  protected
    procedure TearDown; override;
  published
    procedure BlocksOfEverySizeHaveEveryAlignment;
    procedure AlignedBlocksAreFreedWhole;
    procedure FirstBlocksOfAThreadAreAligned;
    procedure AlignedBlockInAScopeIsTheRegions;
    procedure AlignedBlockBesideOneIsOfItsRegion;
    procedure LimitOfARegionRefusesAnAlignedBlock;
    procedure SizeBeyondAllMemoryPurgesNothing;
    procedure AlignmentOfAllBlocksHoldsInRegions;
    procedure AlignmentOfAllBlocksHoldsForMovedBlocks;
    procedure TableIsAsBeforeAfterwards;
    procedure SizeOfAnAlignedBlockMayBeThatOfTheRequest;
    procedure BlockAsLargeAsItsAlignmentGetsNoHugePages;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.SizeClasses,
  LaneMM.Backed, LaneMM.Shards, LaneMM.Blocks, LaneMM.Walk, LaneMM.Threads, LaneMM.Regions, LaneMM.Purge, LaneMM.Aligned;

const
  MostAlignment = 1024 * 1024;
  UseFrom = 3; // as in LaneMM.Huge
  Sizes: array[0..15] of NativeUInt = (0, 1, 16, 17, 33, 65, 100, 500, 1000, 2049, 8191, 20000, 65536,
    65537, 300000, 3000000);

procedure TAlignedTests.TearDown;
begin
  ReturnNilIfGrowHeapFails := False;
  SizeClassesAlign(0);
  Process.KeepsAlignment := False;
  while OsThreadHeap^.Region <> nil do
    RegionLeave(OsThreadHeap);
  inherited;
end;

procedure TAlignedTests.AlignAll(Shift: Cardinal);
begin
  Process.KeepsAlignment := True;
  SizeClassesAlign(Shift);
end;

// Checks the alignment and the size of what AlignedGet, or for 0 GetMem, allocates.
function CountWrong(Requested, Alignment: NativeUInt): NativeUInt;
var
  Size: NativeUInt;
  P: PByte;
begin
  Result := 0;
  for Size in Sizes do
  begin
    if Requested = 0 then
      GetMem(P, Size)
    else
      P := AlignedGet(Requested, Size);
    Inc(Result, Ord((NativeUInt(P) mod Alignment <> 0) or (MemSize(P) < Size)));
    FillChar(P^, Size, 7);
    FreeMem(P);
  end;
end;

procedure TAlignedTests.BlocksOfEverySizeHaveEveryAlignment;
var
  Alignment: NativeUInt;
begin
  Alignment := 1;
  repeat
    Same(0, CountWrong(Alignment, Alignment), 'wrong blocks');
    Alignment := Alignment * 2;
  until Alignment > MostAlignment;
end;

procedure TAlignedTests.AlignedBlocksAreFreedWhole;
var
  Before: NativeUInt;
  Turn: Integer;
begin
  CountWrong(MostAlignment, MostAlignment);
  ProcessTrim;
  Before := BackedSlices;
  for Turn := 1 to 20 do
    CountWrong(MostAlignment, MostAlignment);
  ProcessTrim;
  AtMost(Before + 1, BackedSlices, 'slices');
end;

function CountWrongInThread(Argument: Pointer): PtrInt;
var
  Blocks: array[0..7] of Pointer;
  Index: Integer;
begin
  Result := CountWrong(NativeUInt(Argument), NativeUInt(Argument));
  for Index := 0 to High(Blocks) do
  begin
    Blocks[Index] := AlignedGet(NativeUInt(Argument), 40);
    Inc(Result, Ord(NativeUInt(Blocks[Index]) mod NativeUInt(Argument) <> 0));
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

// A new thread's first blocks come from spans of larger classes.
procedure TAlignedTests.FirstBlocksOfAThreadAreAligned;
var
  Shift: Cardinal;
begin
  Process.KeepsAlignment := False;
  ThreadsAbandonVacant(High(Cardinal)); // those of other tests have current spans of many sizes
  for Shift := 6 to 12 do
    Same(0, WaitForThreadTerminate(BeginThread(@CountWrongInThread,
      Pointer(NativeUInt(1) shl Shift)), 0), 'wrong blocks');
end;

// Returns how many blocks of a scope are not of the region, or not aligned. No string is made there.
function CountWrongInScope(Region: PHeap; Requested, Alignment: NativeUInt): NativeUInt;
var
  Size: NativeUInt;
  P: Pointer;
begin
  Result := 0;
  RegionEnter(Region, ThreadHeap);
  for Size in Sizes do
  begin
    if Requested = 0 then
      GetMem(P, Size)
    else
      P := AlignedGet(Requested, Size);
    Inc(Result, Ord((RegionOfBlock(P) <> Region) or (NativeUInt(P) mod Alignment <> 0)));
  end;
  RegionLeave(OsThreadHeap);
end;

procedure TAlignedTests.CheckScope(Requested, Alignment: NativeUInt);
var
  Region: PHeap;
begin
  Region := RegionFind(RegionMake('aligned', 0));
  Same(0, CountWrongInScope(Region, Requested, Alignment), 'wrong blocks');
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

procedure TAlignedTests.AlignedBlockInAScopeIsTheRegions;
begin
  CheckScope(32, 32);
  CheckScope(4096, 4096);
  CheckScope(MostAlignment, MostAlignment);
end;

procedure TAlignedTests.AlignedBlockBesideOneIsOfItsRegion;
var
  Region: PHeap;
  Inner, Outer, P: Pointer;
begin
  Region := RegionFind(RegionMake('aligned', 0));
  GetMem(Outer, 100);
  RegionEnter(Region, ThreadHeap);
  GetMem(Inner, 100);
  P := AlignedGetBeside(Outer, 64, 1000);
  AssertTrue('beside one of no region', RegionOfBlock(P) = nil);
  Same(0, NativeUInt(P) mod 64, 'address');
  FreeMem(P);
  RegionLeave(OsThreadHeap);
  P := AlignedGetBeside(Inner, MostAlignment, 1000);
  AssertTrue('beside one of the region', RegionOfBlock(P) = Region);
  Same(0, NativeUInt(P) mod MostAlignment, 'address');
  AssertTrue('outside', OsThreadHeap^.Region = nil);
  FreeMem(Outer);
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

procedure TAlignedTests.LimitOfARegionRefusesAnAlignedBlock;
var
  Region: PHeap;
begin
  Region := RegionFind(RegionMake('limited', 8));
  RegionEnter(Region, ThreadHeap);
  ReturnNilIfGrowHeapFails := True;
  AssertTrue('large', AlignedGet(MostAlignment, 20 * SliceSize) = nil);
  AssertTrue('of a slice', AlignedGet(SliceSize, 20 * SliceSize) = nil);
  AssertTrue('a small one', AlignedGet(64, 100) <> nil);
  RegionLeave(OsThreadHeap);
  AssertTrue('freed', RegionFree(Region) = raDone);
end;

// The purge thread purges a few times at most meanwhile.
procedure TAlignedTests.SizeBeyondAllMemoryPurgesNothing;
const
  Turns = 100;
  Alignments: array[0..2] of NativeUInt = (BlockAlignment, SliceSize, MostAlignment);
var
  P, Q: Pointer;
  Turn, Index: Integer;
  Before: NativeUInt;
begin
  ReturnNilIfGrowHeapFails := True;
  ProcessTrim;
  for Index := 0 to High(Alignments) do
  begin
    Before := Process.OsCalls[ocPurge];
    for Turn := 1 to Turns do
    begin
      P := GetMem(3000000);
      FillChar(P^, 3000000, 1);
      FreeMem(P);
      AssertTrue('refused', AlignedGet(Alignments[Index], Impossible) = nil);
      Q := GetMem(1000000); // leaves free memory that a purge would find
      AssertTrue('a resize', ReallocMem(Q, Impossible) = nil);
    end;
    AtMost(Before + Turns div 2, Process.OsCalls[ocPurge], 'purges');
  end;
end;

procedure TAlignedTests.AlignmentOfAllBlocksHoldsInRegions;
begin
  AlignAll(6);
  CheckScope(0, 64);
  Same(0, CountWrong(0, 64), 'wrong blocks of no region');
end;

procedure TAlignedTests.AlignmentOfAllBlocksHoldsForMovedBlocks;
var
  P: PByte;
  Size: NativeUInt;
begin
  GetMem(P, 48);
  AlignAll(6);
  Size := 48;
  while Size < 200000 do
  begin
    ReallocMem(P, Size);
    if MemSize(P) > 128 then
      Same(0, NativeUInt(P) mod 64, 'address');
    Size := Size + Size div 3;
  end;
  ReallocMem(P, 40);
  Same(0, NativeUInt(P) mod 64, 'address of a short block');
  FreeMem(P);
end;

procedure TAlignedTests.TableIsAsBeforeAfterwards;
var
  Size: NativeUInt;
begin
  AlignAll(6);
  AlignAll(5);
  for Size := 0 to MaxClassSize do
    Same(0, ClassToSize(ClassOf(Size)) mod 32, 'size of the class modulo 32');
  AlignAll(0);
  for Size := 0 to MaxClassSize do
    Same(SizeToClass(Size), ClassOf(Size), 'class');
end;

procedure TAlignedTests.SizeOfAnAlignedBlockMayBeThatOfTheRequest;
var
  P: Pointer;
  Alignment: NativeUInt;
begin
  Alignment := 32;
  while Alignment <= SliceSize do
  begin
    P := AlignedGet(Alignment, 20);
    AssertTrue('20 bytes', SizeMayBe(20, MemSize(P)));
    AssertFalse('the size and 1', SizeMayBe(MemSize(P) + 1, MemSize(P)));
    FreeMem(P);
    Alignment := Alignment * 2;
  end;
end;

// They would back what is cut off, too.
procedure TAlignedTests.BlockAsLargeAsItsAlignmentGetsNoHugePages;
const
  Size = HugeSlices * SliceSize;
var
  P: Pointer;
  IsHuge: Boolean;
begin
  ShardsPurge(AllSlices);
  Process.HugeFrom := 1;
  Process.LargeProbe := nil;
  Process.LargeDensity := UseFrom;
  P := AlignedGet(Size, Size);
  Process.LargeDensity := 0;
  IsHuge := BlockSpan(P)^.IsHuge;
  FreeMem(P);
  AssertFalse('huge pages', IsHuge);
end;

initialization
  RegisterTest(TAlignedTests);
end.
