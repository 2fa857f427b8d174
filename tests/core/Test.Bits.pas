/// Tests of LaneMM.Bits.
unit Test.Bits;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TBitsTests = class(TLaneTest)
  published
    procedure AlignUpIsTheSmallestMultipleNotBelow;
    procedure AlignUpKeepsMultiples;
    procedure AlignUpWrapsAtTheTop;
    procedure FloorLog2FindsTheHighestBit;
    procedure LowestBitFindsTheLowestBit;
  end;

implementation

uses
  testregistry, LaneMM.Bits;

procedure TBitsTests.AlignUpIsTheSmallestMultipleNotBelow;
var
  Log2: Cardinal;
  Value, Alignment, Aligned: NativeUInt;
  Wrong: Integer;
begin
  Wrong := 0;
  for Log2 := 0 to 16 do
    for Value := 0 to 5000 do
    begin
      Alignment := NativeUInt(1) shl Log2;
      Aligned := AlignUp(Value, Alignment);
      if (Aligned mod Alignment <> 0) or (Aligned < Value) or (Aligned - Value >= Alignment) then
        Inc(Wrong);
    end;
  Same(0, Wrong, 'wrong results');
end;

procedure TBitsTests.AlignUpKeepsMultiples;
begin
  Same(0, AlignUp(0, 4096), 'zero');
  Same(8192, AlignUp(8192, 4096), 'two pages');
end;

procedure TBitsTests.AlignUpWrapsAtTheTop;
var
  Value: NativeUInt;
begin
  Value := High(NativeUInt);
  Same(0, AlignUp(Value, 16), 'the highest value');
end;

procedure TBitsTests.FloorLog2FindsTheHighestBit;
var
  Bit: Cardinal;
begin
  for Bit := 0 to SizeOf(NativeUInt) * 8 - 1 do
  begin
    Same(Bit, FloorLog2(NativeUInt(1) shl Bit), 'a power of two');
    Same(Bit, FloorLog2(High(NativeUInt) shr (SizeOf(NativeUInt) * 8 - 1 - Bit)), 'all bits below');
  end;
end;

procedure TBitsTests.LowestBitFindsTheLowestBit;
var
  Bit: Cardinal;
begin
  for Bit := 0 to 31 do
  begin
    Same(Bit, LowestBit(Cardinal(1) shl Bit), 'one bit');
    Same(Bit, LowestBit(High(Cardinal) shl Bit), 'all bits above');
  end;
end;

initialization
  RegisterTest(TBitsTests);
end.
