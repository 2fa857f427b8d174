/// Tests of LaneMM.SizeClasses: every requested size, every class, every span length.
unit Test.SizeClasses;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TSizeClassesTests = class(TLaneTest)
  published
    procedure EverySizeFitsItsClass;
    procedure EverySizeGetsTheSmallestClassThatFits;
    procedure TheTableAgreesWithTheComputation;
    procedure BlocksAbove8KBeginAtSixteenPlacesOfAPageUnlessTheyArePowersOfTwo;
    procedure ClassSizesAscendAndKeepTheAlignment;
    procedure TheLastClassServesTheLargestSize;
    procedure SmallSpansAreOneSlice;
    procedure MediumSpansHoldSixteenBlocksAndWasteASixteenth;
    procedure EverySpanFitsTheWordOfItsRemoteList;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Types, LaneMM.SizeClasses;

const
  CoarseLimit = 8192;

procedure TSizeClassesTests.EverySizeFitsItsClass;
var
  Size: NativeUInt;
begin
  for Size := 0 to MaxClassSize do
  begin
    AtMost(SizeClassCount - 1, SizeToClass(Size), 'class');
    AtLeast(Size, ClassToSize(SizeToClass(Size)), 'size of the class');
  end;
end;

procedure TSizeClassesTests.EverySizeGetsTheSmallestClassThatFits;
var
  Size: NativeUInt;
begin
  for Size := 0 to MaxClassSize do
    if SizeToClass(Size) > 0 then
      AtMost(Size - 1, ClassToSize(SizeToClass(Size) - 1), 'size of the class before');
end;

procedure TSizeClassesTests.TheTableAgreesWithTheComputation;
var
  Size: NativeUInt;
begin
  for Size := 0 to MaxClassSize do
    Same(SizeToClass(Size), Process.ClassOf[(Size + ClassStep - 1) div ClassStep], 'class in the table');
end;

procedure TSizeClassesTests.BlocksAbove8KBeginAtSixteenPlacesOfAPageUnlessTheyArePowersOfTwo;
const
  PageSize = 4096;
var
  Index: Integer;
  Size, Offset: NativeUInt;
begin
  for Index := SizeToClass(CoarseLimit) + 1 to SizeClassCount - 1 do
  begin
    Size := ClassToSize(Index);
    if Size and (Size - 1) = 0 then
      Continue;
    Offset := Size;
    while Offset mod PageSize <> 0 do
      Inc(Offset, Size);
    AtLeast(16 * Size, Offset, 'bytes to the next block that begins at a page');
  end;
end;

procedure TSizeClassesTests.ClassSizesAscendAndKeepTheAlignment;
var
  Index: Integer;
begin
  for Index := 0 to SizeClassCount - 1 do
    Same(0, ClassToSize(Index) mod BlockAlignment, 'size modulo the alignment');
  for Index := 1 to SizeClassCount - 1 do
    AtLeast(ClassToSize(Index - 1) + 1, ClassToSize(Index), 'size');
end;

procedure TSizeClassesTests.TheLastClassServesTheLargestSize;
begin
  Same(SizeClassCount - 1, SizeToClass(MaxClassSize), 'class of the largest size');
  Same(MaxClassSize, ClassToSize(SizeClassCount - 1), 'size of the last class');
end;

procedure TSizeClassesTests.SmallSpansAreOneSlice;
var
  Index: Integer;
begin
  for Index := 0 to SizeToClass(MaxSmallSize) do
    Same(1, Process.ClassSlices[Index], 'slices');
end;

procedure TSizeClassesTests.MediumSpansHoldSixteenBlocksAndWasteASixteenth;
var
  Index: Integer;
  Size: NativeUInt;
begin
  for Index := SizeToClass(MaxSmallSize) + 1 to SizeClassCount - 1 do
  begin
    Size := Process.ClassSlices[Index] * SliceSize;
    AtLeast(16, Size div ClassToSize(Index), 'blocks of a span');
    AtMost(Size div 16, Size mod ClassToSize(Index), 'bytes behind the last block');
  end;
end;

procedure TSizeClassesTests.EverySpanFitsTheWordOfItsRemoteList;
const
  PlaceLimit = 1 shl 16;
  CountLimit = 1 shl 15;
var
  Index: Integer;
  Size: NativeUInt;
begin
  for Index := 0 to SizeClassCount - 1 do
  begin
    Size := Process.ClassSlices[Index] * SliceSize;
    AtMost(PlaceLimit, Size div BlockAlignment, 'places of a block');
    AtMost(CountLimit - 1, Size div ClassToSize(Index), 'blocks');
  end;
end;

initialization
  RegisterTest(TSizeClassesTests);
end.
