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
    Random: TGenerator;
    procedure Clear;
    function At(Shift: NativeUInt): PByte;
  protected
    procedure SetUp; override;
  published
    procedure FillWritesEachByteAndNoOther;
    procedure WrongByteIsFoundAtEachPlace;
    procedure BytesBesideDoNotCount;
    procedure LengthEndsAtTheWrongByte;
    procedure WrongByteAroundABlockIsFound;
    procedure FetchFaultsNowhereAndChangesNoByte;
    procedure LongZerosEndWhereTheyShould;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Layout, LaneMM.Os, LaneMM.Patterns;

const
  Value = $5A;
  Other = $A5;
  Longest = 530; // more than the run-time library is called for
  Margin = 64;
  Shifts: array[0..2] of NativeUInt = (0, 1, 15);

procedure TPatternsTests.SetUp;
begin
  Random.Start(TestSeed);
end;

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
  Shift, Size, Place: NativeUInt;
begin
  PatternFill(@Bytes, SizeOf(Bytes), Value);
  for Shift in Shifts do
    for Size := 0 to Longest do
    begin
      AssertTrue('whole', PatternIsWhole(At(Shift), Size, Value));
      for Place := 1 to Size do
      begin
        At(Shift)[Place - 1] := Other;
        AssertFalse('damaged', PatternIsWhole(At(Shift), Size, Value));
        At(Shift)[Place - 1] := Value;
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

procedure TPatternsTests.LengthEndsAtTheWrongByte;
var
  Bytes: array[0..1100] of Byte;
  Turn, First, Size, Damage: Integer;
begin
  for Turn := 1 to 2000 do
  begin
    FillChar(Bytes, SizeOf(Bytes), 1);
    First := Random.Below(20);
    Size := Random.Below(100);
    FillChar(Bytes[First], Size, $C5);
    Same(Size, PatternLength(@Bytes[First], Size, $C5), 'length');
    Damage := Random.Below(100);
    Bytes[First + Damage] := Bytes[First + Damage] xor (1 shl Random.Below(8));
    if Damage < Size then
      Same(Damage, PatternLength(@Bytes[First], Size, $C5), 'length before the damage')
    else
      Same(Size, PatternLength(@Bytes[First], Size, $C5), 'length');
  end;
end;

procedure TPatternsTests.WrongByteAroundABlockIsFound;
var
  Bytes: array[0..700] of Byte;
  Turn, First, Size, Behind, Damage: Integer;
begin
  for Turn := 1 to 4000 do
  begin
    FillChar(Bytes, SizeOf(Bytes), 1);
    First := Random.Below(20) + AroundBefore;
    Size := Random.Below(300);
    Behind := Random.Below(270) + AroundBehind;
    FillChar(Bytes[First - AroundBefore], AroundBefore, $C5);
    FillChar(Bytes[First + Size], Behind, $C5);
    AssertTrue(Format('%d bytes, %d behind', [Size, Behind]),
      PatternIsAround(@Bytes[First], Size, Behind, $C5));
    Damage := Random.Below(AroundBefore + Behind) - AroundBefore;
    if Damage >= 0 then
      Inc(Damage, Size);
    Bytes[First + Damage] := Bytes[First + Damage] xor (1 shl Random.Below(8));
    AssertFalse(Format('byte %d, %d bytes, %d behind', [Damage, Size, Behind]),
      PatternIsAround(@Bytes[First], Size, Behind, $C5));
  end;
end;

procedure TPatternsTests.FetchFaultsNowhereAndChangesNoByte;
const
  // No page of a program lies there.
  Outside: array[0..3] of PByte = (nil, PByte(1), PByte(NativeUInt(1) shl (SizeOf(Pointer) * 8 - 2)),
    PByte(High(NativeUInt) - 2000));
var
  Bytes: array[0..1100] of Byte;
  Size, Index: Integer;
begin
  FillChar(Bytes, SizeOf(Bytes), $C5);
  for Size := 1 to 1100 do
    for Index := 0 to High(Outside) do
    begin
      PatternFetch(Outside[Index], @Bytes, Size);
      PatternFetch(@Bytes, Outside[Index], Size);
    end;
  AssertTrue('unchanged', PatternIsWhole(@Bytes, SizeOf(Bytes), $C5));
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
