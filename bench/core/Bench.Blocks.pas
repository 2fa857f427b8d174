/// Tagged blocks of typical size mixes, and the private generator that picks them.
//
// Every block is made from a 64-bit key: the key gives the size and is written to the start
// of the block, to each of its pages and to its last byte; the free passes the key again, and
// all copies must match. So each page of a block is touched.
// Source: xorshift64, G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8
//         (2003). The small mix: docs/seeds.md, D6 (objects under 100 bytes and strings).
unit Bench.Blocks;

{$I Bench.inc}

interface

type
  /// A mix of block sizes: each entry is equally probable.
  TSizeMix = array[0..4095] of Cardinal;
  /// A size mix of one of the variables below.
  PSizeMix = ^TSizeMix;

var
  /// 16 bytes to 4 KB, nearly all below 120 bytes: objects and strings.
  SmallMix: TSizeMix; //< const   written at start
  /// 1 KB to 64 KB, every doubling as often as the next: buffers and documents.
  MidMix: TSizeMix; //< const   written at start
  /// 256 KB to 8 MB, every doubling as often as the next: images and big arrays.
  LargeMix: TSizeMix; //< const   written at start

/// Fills Mix with sizes from First to Last bytes whose logarithms are spread evenly.
procedure MixFillEvenly(out Mix: TSizeMix; First, Last: Cardinal);

/// Gives the start of the sequence number Index; fixed, so that every run does the same.
function RandomSeed(Index: Integer): UInt64;
/// Steps State, which must not be 0, and returns it.
function RandomNext(var State: UInt64): UInt64; inline;
/// Maps Key, of RandomNext, to 0 to Count - 1 by bits that pick no size from a mix.
function RandomIndex(Key: UInt64; Count: Cardinal): Cardinal; inline;

/// Allocates a block of the size that Key stands for in Mix and writes Key into it.
function BlockNew(const Mix: TSizeMix; Key: UInt64): Pointer;
/// Frees what BlockNew made from the same Key. Ends the process if the contents changed.
procedure BlockFree(const Mix: TSizeMix; Block: Pointer; Key: UInt64);

/// Frees a block of BlockNew by the key that it carries itself, as far as that can be checked:
/// a block that was handed out twice is noticed when it is freed again. Nil is no block.
procedure BlockRelease(const Mix: TSizeMix; Block: Pointer);

/// Writes Key to the start and to each page of Block, and its top byte to the last byte.
/// Size: bytes, at least 8.
procedure BlockMark(Block: Pointer; Size: NativeUInt; Key: UInt64);
/// Ends the process if Block is not as BlockMark left it.
procedure BlockCheck(Block: Pointer; Size: NativeUInt; Key: UInt64);

/// Ends the process with Message and an error code unless IsRight. Any thread.
procedure Check(IsRight: Boolean; const Message: string); inline;
/// Ends the process with Message and an error code. Any thread.
procedure Fail(const Message: string);

implementation

type
  TSizeRange = record
    First: Word;    //< const   smallest size in bytes, at least 8
    Last: Word;     //< const   largest size in bytes
    Share: Word;    //< const   entries in the size mix
  end;

const
  PageSize = 4096;
  SmallRanges: array[0..4] of TSizeRange = (
    (First: 16; Last: 48; Share: 1638),      // 40 %: list nodes, small objects, interfaces
    (First: 40; Last: 104; Share: 1229),     // 30 %: objects
    (First: 25; Last: 120; Share: 819),      // 20 %: strings with their header of 24 bytes
    (First: 112; Last: 512; Share: 328),     // 8 %: text lines, small arrays
    (First: 512; Last: 4096; Share: 82));    // 2 %: buffers, large objects

function RandomSeed(Index: Integer): UInt64;
begin
  Result := (UInt64(Index) + 1) * UInt64($9E3779B97F4A7C15);
end;

function RandomNext(var State: UInt64): UInt64;
begin
  Result := State;
  Result := Result xor (Result shl 13);
  Result := Result xor (Result shr 7);
  Result := Result xor (Result shl 17);
  State := Result;
end;

function RandomIndex(Key: UInt64; Count: Cardinal): Cardinal;
begin
  Result := (Key shr 32) * Count shr 32;
end;

procedure Check(IsRight: Boolean; const Message: string);
begin
  if not IsRight then
    Fail(Message);
end;

procedure BlockMark(Block: Pointer; Size: NativeUInt; Key: UInt64);
var
  Offset: NativeUInt;
begin
  Offset := 0;
  repeat
    PUInt64(PByte(Block) + Offset)^ := Key;
    Inc(Offset, PageSize);
  until Offset + SizeOf(Key) > Size;
  // In a block of 8 bytes the last byte is the key's own top byte: the same value.
  PByte(Block)[Size - 1] := Byte(Key shr 56);
end;

procedure BlockCheck(Block: Pointer; Size: NativeUInt; Key: UInt64);
var
  Offset: NativeUInt;
begin
  Check(PByte(Block)[Size - 1] = Byte(Key shr 56), 'a block has lost its last byte');
  Offset := 0;
  repeat
    Check(PUInt64(PByte(Block) + Offset)^ = Key, 'a block has lost its contents');
    Inc(Offset, PageSize);
  until Offset + SizeOf(Key) > Size;
end;

function MixSize(const Mix: TSizeMix; Key: UInt64): NativeUInt; inline;
begin
  Result := Mix[Key and High(TSizeMix)];
end;

function BlockNew(const Mix: TSizeMix; Key: UInt64): Pointer;
begin
  Result := GetMem(MixSize(Mix, Key));
  BlockMark(Result, MixSize(Mix, Key), Key);
end;

procedure BlockFree(const Mix: TSizeMix; Block: Pointer; Key: UInt64);
begin
  BlockCheck(Block, MixSize(Mix, Key), Key);
  FreeMem(Block);
end;

procedure BlockRelease(const Mix: TSizeMix; Block: Pointer);
var
  Key: UInt64;
begin
  if Block = nil then
    Exit;
  Key := PUInt64(Block)^;
  BlockCheck(Block, MixSize(Mix, Key), Key);
  PUInt64(Block)^ := not Key;
  FreeMem(Block);
end;

procedure Fail(const Message: string);
begin
  WriteLn(StdErr, 'FAILED: ', Message);
  Halt(1);
end;

procedure FillSmallMix;
var
  Range, I, Index: Integer;
  State: UInt64;
begin
  State := RandomSeed(0);
  Index := 0;
  for Range := 0 to High(SmallRanges) do
    for I := 1 to SmallRanges[Range].Share do
    begin
      SmallMix[Index] := SmallRanges[Range].First + RandomNext(State) shr 32 mod
        (SmallRanges[Range].Last - SmallRanges[Range].First + 1);
      Inc(Index);
    end;
end;

procedure MixFillEvenly(out Mix: TSizeMix; First, Last: Cardinal);
var
  I: Integer;
begin
  for I := 0 to High(Mix) do
    Mix[I] := Round(First * Exp(Ln(Last / First) * I / High(Mix)));
end;

initialization
  FillSmallMix;
  MixFillEvenly(MidMix, 1 shl 10, 64 shl 10);
  MixFillEvenly(LargeMix, 256 shl 10, 8 shl 20);

end.
