/// Tests of LaneMM.DebugRecords: the sum of a record notices each changed bit.
unit Test.DebugRecords;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools, LaneMM.DebugState;

type
  TDebugRecordsTests = class(TLaneTest)
  strict private
    Block: TDebugBlock;
  protected
    procedure SetUp; override;
  published
    procedure EachBitOfARecordCountsForItsSum;
    procedure StateAndLinkDoNotCount;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.DebugRecords;

procedure TDebugRecordsTests.SetUp;
begin
  FillChar(Block, SizeOf(Block), 0);
  Block.Size := 1234;
  Block.Number := 567890;
  Block.FirstWord := $12345678;
  Block.AllocStack := 1000;
  Block.FreeStack := 2000;
  Block.AllocThread := 3000;
  Block.FreeThread := 4000;
  Block.Group := 5000;
  Block.AlignShift := 6;
  Block.Family := faNew;
end;

procedure TDebugRecordsTests.EachBitOfARecordCountsForItsSum;
var
  Data: PByte;
  Index, Bit: NativeInt;
begin
  DebugBlockSeal(@Block);
  AssertTrue('sealed', DebugBlockIsSealed(@Block));
  Data := @Block;
  for Index := PByte(@Block.Size) - Data to PByte(@Block.Sum) + SizeOf(Block.Sum) - 1 - Data do
    for Bit := 0 to 7 do
    begin
      Data[Index] := Data[Index] xor (1 shl Bit);
      AssertFalse('another bit in byte ' + IntToStr(Index), DebugBlockIsSealed(@Block));
      Data[Index] := Data[Index] xor (1 shl Bit);
    end;
  AssertTrue('as before', DebugBlockIsSealed(@Block));
end;

procedure TDebugRecordsTests.StateAndLinkDoNotCount;
begin
  DebugBlockSeal(@Block);
  Block.State := Ord(dsInUse);
  Block.Next := @Block;
  AssertTrue('sealed', DebugBlockIsSealed(@Block));
end;

initialization
  RegisterTest(TDebugRecordsTests);

end.
