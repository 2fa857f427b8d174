/// Tests of LaneMM.Patterns: each length, each byte, none beside them. The lengths pass all bounds
/// between the ways that the assembler goes.
unit Test.Patterns;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TPatternsTests = class(TLaneTest)
  strict private
    Bytes: array[0..799] of Byte;
    procedure Clear;
    function At(Shift: NativeUInt): PByte;
  published
    procedure FillWritesEachByteAndNoOther;
    procedure WrongByteIsFoundAtEachPlace;
    procedure BytesBesideDoNotCount;
    procedure FetchFaultsNowhere;
    procedure LongZerosEndWhereTheyShould;
  end;

implementation

uses
  testregistry, LaneMM.Layout, LaneMM.Os, LaneMM.Patterns;

const
  Value = $5A;
  Other = $A5;
  Longest = 530; // more than the run-time library is called for
  Margin = 64;
  Shifts: array[0..2] of NativeUInt = (0, 1, 15);

procedure TPatternsTests.Clear;
begin
  FillChar(Bytes, SizeOf(Bytes), Other);
end;

function TPatternsTests.At(Shift: NativeUInt): PByte;
begin
  Result := @Bytes[Margin + Shift];
end;

procedure TPatternsTests.FillWritesEachByteAndNoOther;
var
  Shift, Size: NativeUInt;
  Index, Wrong: NativeInt;
begin
  for Shift in Shifts do
    for Size := 0 to Longest do
    begin
      Clear;
      PatternFill(At(Shift), Size, Value);
      Wrong := 0;
      for Index := 0 to High(Bytes) do
        if (Bytes[Index] = Value) <> (NativeUInt(Index - Margin - NativeInt(Shift)) < Size) then
          Inc(Wrong);
      Same(0, Wrong, 'wrong bytes');
    end;
end;

procedure TPatternsTests.WrongByteIsFoundAtEachPlace;
var
  Size, Place: NativeUInt;
begin
  Clear;
  PatternFill(At(0), Longest, Value);
  for Size := 0 to Longest do
  begin
    AssertTrue('whole', PatternIsWhole(At(0), Size, Value));
    for Place := 1 to Size do
    begin
      At(0)[Place - 1] := Other;
      AssertFalse('damaged', PatternIsWhole(At(0), Size, Value));
      At(0)[Place - 1] := Value;
    end;
  end;
end;

procedure TPatternsTests.BytesBesideDoNotCount;
var
  Shift, Size: NativeUInt;
begin
  for Shift in Shifts do
    for Size := 0 to Longest do
    begin
      Clear;
      PatternFill(At(Shift), Size, Value);
      AssertTrue('whole', PatternIsWhole(At(Shift), Size, Value));
    end;
end;

// Not even in the first page.
procedure TPatternsTests.FetchFaultsNowhere;
var
  Size: NativeUInt;
begin
  Clear;
  for Size := 1 to 2 * Longest do
    PatternFetch(nil, PByte(Size), Size);
  Same(Other, Bytes[0], 'a byte');
end;

// Whole pages of a long range are purged, of whatever size: the call would purge a part of one whole.
procedure TPatternsTests.LongZerosEndWhereTheyShould;
const
  Size = WholeSize + OsPageSize;
var
  P: PByte;
begin
  P := OsTakePages(Size + SliceSize);
  PatternFill(P, Size + SliceSize, Value);
  PatternZero(P, Size);
  AssertTrue('zeros', PatternIsWhole(P, Size, 0));
  AssertTrue('bytes behind', PatternIsWhole(P + Size, SliceSize, Value));
  OsReleasePages(P, Size + SliceSize);
end;

initialization
  RegisterTest(TPatternsTests);
end.
