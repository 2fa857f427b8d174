/// Tests of LaneMM.Inflate against the compressor of paszlib.
unit Test.Inflate;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  SysUtils, zstream, Test.Tools;

type
  TInflateTests = class(TLaneTest)
  strict private
    Contents: TBytes;
    Stream: TBytes;
    Source, Target: PByte; // each ends at a page that cannot be read
    procedure Pack(Level: Tcompressionlevel);
    function Unpacks(Size, TargetSize: NativeUInt): Boolean;
    procedure ExpectContents(const What: string);
    procedure FillText(Count: Integer);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure StreamsOfAllLevelsAreRead;
    procedure RandomBytesAreRead;
    procedure LongRunsAreRead;
    procedure EveryShortLengthIsRead;
    procedure AnotherSizeIsRefused;
    procedure CutStreamsAreRefused;
    procedure DamagedStreamsAreRefused;
    procedure CopyFromBeforeTheTargetIsRefused;
    procedure OtherFormatsAreRefused;
  end;

implementation

uses
  Classes, testregistry, LaneMM.Os, LaneMM.Inflate;

const
  Room = 1 shl 18; // other tests need that longer gaps between mappings are rare

function TakeGuarded: PByte;
begin
  Result := OsReserve(Room + OsPageSize);
  OsCommit(Result, Room);
end;

procedure TInflateTests.SetUp;
begin
  Source := TakeGuarded;
  Target := TakeGuarded;
end;

procedure TInflateTests.TearDown;
begin
  OsRelease(Source, Room + OsPageSize);
  OsRelease(Target, Room + OsPageSize);
end;

procedure TInflateTests.Pack(Level: Tcompressionlevel);
var
  Written: TBytesStream;
  Packing: Tcompressionstream;
begin
  Written := TBytesStream.Create;
  Packing := Tcompressionstream.Create(Level, Written);
  Packing.WriteBuffer(Contents[0], Length(Contents));
  Packing.Free;
  Stream := Copy(Written.Bytes, 0, Written.Size);
  Written.Free;
end;

// Decompresses the first Size bytes of the stream to the last TargetSize bytes of Target.
function TInflateTests.Unpacks(Size, TargetSize: NativeUInt): Boolean;
begin
  Move(Stream[0], Source[Room - Size], Size);
  Result := Inflate(Source + Room - Size, Size, Target + Room - TargetSize, TargetSize);
end;

procedure TInflateTests.ExpectContents(const What: string);
begin
  FillChar(Target^, Room, $AA);
  AssertTrue(What + ' is read', Unpacks(Length(Stream), Length(Contents)));
  AssertTrue(What + ' is what was written',
    CompareMem(@Contents[0], Target + Room - Length(Contents), Length(Contents)));
  AssertEquals(What + ' writes nothing before it', $AA, Target[Room - Length(Contents) - 1]);
end;

// Words of different frequencies, at different distances.
procedure TInflateTests.FillText(Count: Integer);
var
  Generator: TGenerator;
  Index: Integer;
begin
  Generator.Start(Count);
  SetLength(Contents, Count);
  for Index := 0 to Count - 1 do
    if (Index > 300) and (Generator.Below(4) > 0) then
      Contents[Index] := Contents[Index - 1 - Integer(Generator.Below(Index - 1) shr 3)]
    else
      Contents[Index] := Ord('a') + Generator.Below(Generator.Below(40) + 1);
end;

procedure TInflateTests.StreamsOfAllLevelsAreRead;
var
  Level: Tcompressionlevel;
begin
  for Level in Tcompressionlevel do
  begin
    FillText(200000);
    Pack(Level);
    ExpectContents('text of level ' + IntToStr(Ord(Level)));
  end;
end;

procedure TInflateTests.RandomBytesAreRead;
var
  Generator: TGenerator;
  Index: Integer;
begin
  Generator.Start(1);
  SetLength(Contents, 150000);
  for Index := 0 to High(Contents) do
    Contents[Index] := Generator.Below(256);
  Pack(cldefault);
  AssertTrue('stored', Length(Stream) > Length(Contents));
  ExpectContents('what cannot be compressed');
end;

procedure TInflateTests.LongRunsAreRead;
begin
  SetLength(Contents, 250000);
  Pack(clmax);
  AssertTrue('at the highest ratio', Length(Stream) < Length(Contents) div 900);
  ExpectContents('zeros');
end;

procedure TInflateTests.EveryShortLengthIsRead;
var
  Count: Integer;
begin
  for Count := 1 to 700 do
  begin
    FillText(Count);
    Pack(cldefault);
    ExpectContents(IntToStr(Count) + ' bytes');
  end;
end;

procedure TInflateTests.AnotherSizeIsRefused;
var
  Level: Tcompressionlevel;
begin
  for Level in Tcompressionlevel do
  begin
    FillText(20000);
    Pack(Level);
    AssertFalse('one byte less', Unpacks(Length(Stream), Length(Contents) - 1));
    AssertFalse('one byte more', Unpacks(Length(Stream), Length(Contents) + 1));
    AssertFalse('none', Unpacks(Length(Stream), 0));
  end;
end;

// Three bytes, from one before the first; the checksum is that of the bytes there.
procedure TInflateTests.CopyFromBeforeTheTargetIsRefused;
const
  CopyOfThree: array[0..8] of Byte = ($78, $9C, $03, $02, $00, $03, $FF, $01, $FF);
begin
  SetLength(Stream, Length(CopyOfThree));
  Move(CopyOfThree, Stream[0], Length(CopyOfThree));
  FillChar(Target^, Room, $AA);
  AssertFalse('refused', Unpacks(Length(Stream), 3));
end;

procedure TInflateTests.CutStreamsAreRefused;
var
  Level: Tcompressionlevel;
  Size: Integer;
begin
  for Level in Tcompressionlevel do
  begin
    FillText(3000);
    Pack(Level);
    for Size := 0 to Length(Stream) - 1 do
      AssertFalse('cut', Unpacks(Size, Length(Contents)));
  end;
end;

// A bit after the last block means nothing; any other one that changes is found, or makes no
// difference.
procedure TInflateTests.DamagedStreamsAreRefused;
var
  Level: Tcompressionlevel;
  Index, Bit, Refused: Integer;
begin
  Refused := 0;
  for Level in Tcompressionlevel do
  begin
    FillText(1500);
    Pack(Level);
    for Index := 0 to High(Stream) do
      for Bit := 0 to 7 do
      begin
        Stream[Index] := Stream[Index] xor 1 shl Bit;
        if not Unpacks(Length(Stream), Length(Contents)) then
          Inc(Refused)
        else
          AssertTrue('the same', CompareMem(@Contents[0], Target + Room - Length(Contents),
            Length(Contents)));
        Stream[Index] := Stream[Index] xor 1 shl Bit;
      end;
    AtLeast(8 * Length(Stream) - 7, Refused, 'refused');
    Refused := 0;
  end;
end;

procedure TInflateTests.OtherFormatsAreRefused;
begin
  FillText(100);
  Pack(cldefault);
  Stream[0] := Stream[0] xor 1; // another method, with the check bits that fit
  Stream[1] := 31 - Stream[0] * 256 mod 31;
  AssertFalse('another method', Unpacks(Length(Stream), Length(Contents)));
  Pack(cldefault);
  Stream[1] := $20 + (31 - (Stream[0] * 256 + $20) mod 31) mod 31;
  AssertFalse('with a dictionary', Unpacks(Length(Stream), Length(Contents)));
end;

initialization
  RegisterTest(TInflateTests);
end.
