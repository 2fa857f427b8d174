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
    procedure AlignUpWrapsAtTheTop;
    procedure FloorLog2FindsTheHighestBit;
    procedure LowestBitFindsTheLowestBit;
    procedure BitCountCountsTheSetBits;
    procedure SipHashIsTheOneOfItsAuthors;
    procedure TextLengthEndsAtTheFirstZero;
    procedure TextBeginsComparesAllOfTheStart;
    procedure TextLowerChangesCapitalsOnly;
  end;

implementation

uses
  testregistry, LaneMM.Bits;

procedure TBitsTests.AlignUpIsTheSmallestMultipleNotBelow;
var
  Log2: Cardinal;
  Value, Alignment, Aligned: NativeUInt;
begin
  for Log2 := 0 to 16 do
    for Value := 0 to 5000 do
    begin
      Alignment := NativeUInt(1) shl Log2;
      Aligned := AlignUp(Value, Alignment);
      Same(0, Aligned mod Alignment, 'no multiple');
      AtLeast(Value, Aligned, 'a multiple');
      AtMost(Alignment - 1, Aligned - Value, 'bytes above');
    end;
end;

procedure TBitsTests.AlignUpWrapsAtTheTop;
var
  Value: NativeUInt;
begin
  // Not a constant: the compiler would refuse the overflow.
  Value := High(NativeUInt) - NativeUInt(Random(15));
  Same(0, AlignUp(Value, 16), 'one of the highest values');
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

procedure TBitsTests.BitCountCountsTheSetBits;
var
  Bit: Cardinal;
begin
  Same(0, BitCount(0), 'no bit');
  for Bit := 0 to SizeOf(NativeUInt) * 8 - 1 do
  begin
    Same(1, BitCount(NativeUInt(1) shl Bit), 'one bit');
    Same(Bit + 1, BitCount(High(NativeUInt) shr (SizeOf(NativeUInt) * 8 - 1 - Bit)), 'all bits below');
  end;
end;

// The key and the text are those of the vectors that its authors published for SipHash-2-4, with
// which the program that gave this number agrees.
procedure TBitsTests.SipHashIsTheOneOfItsAuthors;
const
  Key: THashKey = (UInt64($0706050403020100), UInt64($0F0E0D0C0B0A0908));
begin
  AssertTrue('of eight bytes', SipHash(Key, UInt64($0706050403020100)) = UInt64($369095118D299A8E));
end;

procedure TBitsTests.TextLengthEndsAtTheFirstZero;
begin
  Same(0, TextLength(''), 'empty');
  Same(3, TextLength('abc'#0'd'), 'a zero inside');
end;

procedure TBitsTests.TextBeginsComparesAllOfTheStart;
begin
  AssertTrue('a longer text', TextBegins('words', 'wor'));
  AssertTrue('the same', TextBegins('wor', 'wor'));
  AssertTrue('an empty start', TextBegins('', ''));
  AssertFalse('a shorter text', TextBegins('wo', 'wor'));
  AssertFalse('another letter', TextBegins('wOrds', 'wor'));
end;

procedure TBitsTests.TextLowerChangesCapitalsOnly;
var
  Sign: AnsiChar;
begin
  for Sign := #0 to #255 do
    if Sign in ['A'..'Z'] then
      Same(Ord(Sign) + 32, Ord(TextLower(Sign)), 'a capital letter')
    else
      Same(Ord(Sign), Ord(TextLower(Sign)), 'another character');
end;

initialization
  RegisterTest(TBitsTests);
end.
