/// Tagged blocks of a typical size mix, and the private generator that picks them.
//
// Every block is made from a 64-bit key: the key gives the size and is written to both
// ends of the block; who frees the block gives the key again, and both ends must match.
// Source: xorshift64, G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8
//         (2003). The mix: docs/seeds.md, D6 (objects under 100 bytes and strings).
unit Bench.Blocks;

{$I Bench.inc}

interface

/// Gives the start of the sequence number Index; fixed, so that every run does the same.
function RandomSeed(Index: Integer): UInt64;
/// Steps State, which must not be 0, and returns it.
function RandomNext(var State: UInt64): UInt64; inline;

/// Allocates a block of the size that Key stands for and writes Key into it.
function BlockNew(Key: UInt64): Pointer;
/// Frees what BlockNew made from the same Key. Ends the process if the contents changed.
procedure BlockFree(Block: Pointer; Key: UInt64);

/// Ends the process with Message and an error code. Any thread.
procedure Fail(const Message: string);

implementation

type
  TSizeRange = record
    First: Word;    //< const   smallest size in bytes, at least 8
    Last: Word;     //< const   largest size in bytes
    Share: Word;    //< const   entries in the size table
  end;

const
  SizeTableLast = 4095;
  SizeRanges: array[0..4] of TSizeRange = (
    (First: 16; Last: 48; Share: 1638),      // 40 %: list nodes, small objects, interfaces
    (First: 40; Last: 104; Share: 1229),     // 30 %: objects
    (First: 25; Last: 120; Share: 819),      // 20 %: strings with their header of 24 bytes
    (First: 112; Last: 512; Share: 328),     // 8 %: text lines, small arrays
    (First: 512; Last: 4096; Share: 82));    // 2 %: buffers, large objects

var
  SizeTable: array[0..SizeTableLast] of Word; // written at start, then only read

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

function BlockSize(Key: UInt64): NativeUInt; inline;
begin
  Result := SizeTable[Key and SizeTableLast];
end;

function BlockNew(Key: UInt64): Pointer;
var
  Size: NativeUInt;
begin
  Size := BlockSize(Key);
  Result := GetMem(Size);
  PUInt64(Result)^ := Key;
  PByte(Result)[Size - 1] := Byte(Key shr 56);
end;

procedure BlockFree(Block: Pointer; Key: UInt64);
begin
  // In a block of 8 bytes the last byte would be the key's own top byte: the same value.
  if (PUInt64(Block)^ <> Key) or (PByte(Block)[BlockSize(Key) - 1] <> Byte(Key shr 56)) then
    Fail('a block has lost its contents');
  FreeMem(Block);
end;

procedure Fail(const Message: string);
begin
  WriteLn(StdErr, 'FAILED: ', Message);
  Halt(1);
end;

procedure FillSizeTable;
var
  Range, I, Index: Integer;
  State: UInt64;
begin
  State := RandomSeed(0);
  Index := 0;
  for Range := 0 to High(SizeRanges) do
    for I := 1 to SizeRanges[Range].Share do
    begin
      SizeTable[Index] := SizeRanges[Range].First + RandomNext(State) shr 32 mod
        (SizeRanges[Range].Last - SizeRanges[Range].First + 1);
      Inc(Index);
    end;
end;

initialization
  FillSizeTable;

end.
