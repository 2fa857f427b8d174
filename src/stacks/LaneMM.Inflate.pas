/// Decompresses zlib streams, in which linkers store compressed debug information.
//
// Owns:       nothing; the tables of a call are pages that it takes and releases.
// Invariants: reads no byte outside the stream, writes none outside the target, whatever the stream
//             holds. A code word is looked up with its bits reversed, as they arrive.
// Callers:    any thread.
// Source:     RFC 1950 (the frame and its checksum), RFC 1951 (blocks, codes, lengths, distances).
unit LaneMM.Inflate;

{$I ../LaneMM.inc}

interface

/// Decompresses the stream of Size bytes at Source to Target. Returns False when it is malformed,
/// does not hold TargetSize bytes, or there is no memory; what Target holds is undefined then.
function Inflate(Source: PByte; Size: NativeUInt; Target: PByte; TargetSize: NativeUInt): Boolean;

implementation

uses
  LaneMM.Os;

const
  MaxWidth = 15;         // bits of the longest code word
  LiteralCount = 288;    // symbols of literals and lengths, with two that never occur
  DistanceCount = 32;    // symbols of distances, likewise
  LastLiteral = 255;
  EndOfBlock = 256;
  LastLength = 285;
  LastDistance = 29;
  // The code of the code lengths: symbols above 15 repeat one.
  WidthCount = 19;
  RepeatLast = 16;
  RepeatZero = 17;

type
  // A prefix code: the next Width bits of the stream select an entry.
  TCode = record
    Width: Cardinal;                                // bits of its longest word
    Entries: array[0..1 shl MaxWidth - 1] of Word;  // symbol shl 4 + bits of its word; 0: no word
  end;

  PInflation = ^TInflation;
  // What a call works on.
  TInflation = record
    Next, Limit: PByte;          // the compressed byte to read next, and their end
    Bits: NativeUInt;            // bits that were read and not used yet, the first one lowest
    BitCount: Cardinal;          // how many
    Start, Target: PByte;        // the target, and its byte to write next
    TargetLimit: PByte;          // its end
    IsValid: Boolean;            // no error has been found
    Literals: TCode;             // of literals and lengths
    Distances: TCode;
    Widths: array[0..LiteralCount + DistanceCount - 1] of Byte; // bits of each symbol's word
  end;

// ---------------------------------------------------------------------------- bits

// Reads ahead until there are Count bits, 16 at most. Past the end of the stream they are 0.
procedure NeedBits(var Stream: TInflation; Count: Cardinal); inline;
begin
  while Stream.BitCount < Count do
  begin
    if Stream.Next < Stream.Limit then
      Stream.Bits := Stream.Bits or NativeUInt(Stream.Next^) shl Stream.BitCount;
    Inc(Stream.Next);
    Inc(Stream.BitCount, 8);
  end;
end;

procedure DropBits(var Stream: TInflation; Count: Cardinal); inline;
begin
  Stream.Bits := Stream.Bits shr Count;
  Dec(Stream.BitCount, Count);
end;

function TakeBits(var Stream: TInflation; Count: Cardinal): Cardinal;
begin
  NeedBits(Stream, Count);
  Result := Stream.Bits and (NativeUInt(1) shl Count - 1);
  DropBits(Stream, Count);
end;

// Returns to the first whole byte that no bit was taken of.
procedure AlignToByte(var Stream: TInflation);
begin
  Dec(Stream.Next, Stream.BitCount div 8);
  Stream.Bits := 0;
  Stream.BitCount := 0;
end;

// Returns whether bits past the end of the stream were used.
function IsPastEnd(const Stream: TInflation): Boolean; inline;
begin
  Result := Stream.Next - Stream.BitCount div 8 > Stream.Limit;
end;

// ---------------------------------------------------------------------------- codes

// Enters the word of a symbol, with its bits reversed, at all places that begin with it.
procedure EnterWord(var Code: TCode; Word, Width, Symbol: Cardinal);
var
  Place, Bit: Cardinal;
begin
  Place := 0;
  for Bit := 0 to Width - 1 do
    Place := Place shl 1 or Word shr Bit and 1;
  while Place < Cardinal(1) shl Code.Width do
  begin
    Code.Entries[Place] := Symbol shl 4 or Width;
    Inc(Place, Cardinal(1) shl Width);
  end;
end;

// Makes the code in which symbol I has a word of Widths[I] bits, 0: none. Returns False if there
// are more words than fit.
function BuildCode(out Code: TCode; Widths: PByte; Count: Cardinal): Boolean;
var
  Counts, Words: array[0..MaxWidth] of Cardinal; // of each width: how many words, the next one
  Symbol, Width: Cardinal;
begin
  FillChar(Counts, SizeOf(Counts), 0);
  for Symbol := 0 to Count - 1 do
    Inc(Counts[Widths[Symbol]]);
  Code.Width := 0;
  Words[0] := 0;
  Counts[0] := 0;
  for Width := 1 to MaxWidth do
  begin
    Words[Width] := (Words[Width - 1] + Counts[Width - 1]) shl 1;
    if Counts[Width] > 0 then
      Code.Width := Width;
    if Words[Width] + Counts[Width] > Cardinal(1) shl Width then
      Exit(False);
  end;
  FillChar(Code.Entries, SizeOf(Code.Entries[0]) shl Code.Width, 0);
  for Symbol := 0 to Count - 1 do
  begin
    Width := Widths[Symbol];
    if Width = 0 then
      Continue;
    EnterWord(Code, Words[Width], Width, Symbol);
    Inc(Words[Width]);
  end;
  Result := True;
end;

// Returns the next symbol; EndOfBlock, and no valid stream, where the bits are no word.
function TakeSymbol(var Stream: TInflation; const Code: TCode): Cardinal; inline;
var
  Entry: Cardinal;
begin
  NeedBits(Stream, Code.Width);
  Entry := Code.Entries[Stream.Bits and (NativeUInt(1) shl Code.Width - 1)];
  DropBits(Stream, Entry and 15);
  Result := Entry shr 4;
  if Entry <> 0 then
    Exit;
  Stream.IsValid := False;
  Result := EndOfBlock;
end;

procedure UseFixedCodes(var Stream: TInflation);
begin
  FillChar(Stream.Widths, LiteralCount, 8);
  FillChar(Stream.Widths[144], 112, 9);
  FillChar(Stream.Widths[256], 24, 7);
  FillChar(Stream.Widths[LiteralCount], DistanceCount, 5);
  BuildCode(Stream.Literals, @Stream.Widths, LiteralCount);
  BuildCode(Stream.Distances, @Stream.Widths[LiteralCount], DistanceCount);
end;

// Reads the widths of Count symbols in the code of Stream.Distances.
procedure ReadWidths(var Stream: TInflation; Count: Cardinal);
var
  Symbol, Times, Index: Cardinal;
  Width: Byte;
begin
  Index := 0;
  Width := 0;
  while Stream.IsValid and (Index < Count) do
  begin
    Symbol := TakeSymbol(Stream, Stream.Distances);
    Times := 1;
    case Symbol of
      0..MaxWidth: Width := Symbol;
      RepeatLast: Times := 3 + TakeBits(Stream, 2);
      RepeatZero: Times := 3 + TakeBits(Stream, 3);
    else
      Times := 11 + TakeBits(Stream, 7);
    end;
    if Symbol > RepeatLast then
      Width := 0;
    if (Index + Times > Count) or (Symbol = RepeatLast) and (Index = 0) then
      Stream.IsValid := False
    else
      FillChar(Stream.Widths[Index], Times, Width);
    Inc(Index, Times);
  end;
end;

// Reads the codes of a block that brings its own.
procedure ReadCodes(var Stream: TInflation);
const
  Order: array[0..WidthCount - 1] of Byte =
    (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15);
var
  Literals, Distances, Count, Index: Cardinal;
begin
  Literals := 257 + TakeBits(Stream, 5);
  Distances := 1 + TakeBits(Stream, 5);
  Count := 4 + TakeBits(Stream, 4);
  FillChar(Stream.Widths, WidthCount, 0);
  for Index := 0 to Count - 1 do
    Stream.Widths[Order[Index]] := TakeBits(Stream, 3);
  Stream.IsValid := (Literals <= LiteralCount)
    and BuildCode(Stream.Distances, @Stream.Widths, WidthCount);
  if not Stream.IsValid then
    Exit;
  ReadWidths(Stream, Literals + Distances);
  Stream.IsValid := Stream.IsValid and (Stream.Widths[EndOfBlock] <> 0)
    and BuildCode(Stream.Literals, @Stream.Widths, Literals)
    and BuildCode(Stream.Distances, @Stream.Widths[Literals], Distances);
end;

// ---------------------------------------------------------------------------- blocks

// Copies bytes as they are.
procedure CopyStored(var Stream: TInflation);
var
  Count: NativeUInt;
begin
  AlignToByte(Stream);
  Count := TakeBits(Stream, 16);
  Stream.IsValid := (TakeBits(Stream, 16) xor Count = $FFFF) and not IsPastEnd(Stream)
    and (Count <= NativeUInt(Stream.Limit - Stream.Next))
    and (Count <= NativeUInt(Stream.TargetLimit - Stream.Target));
  if not Stream.IsValid then
    Exit;
  Move(Stream.Next^, Stream.Target^, Count);
  Inc(Stream.Next, Count);
  Inc(Stream.Target, Count);
end;

// Returns the length of a copy: four symbols to each doubling, from 3 on.
function TakeLength(var Stream: TInflation; Symbol: Cardinal): Cardinal; inline;
var
  Extra: Cardinal;
begin
  if Symbol = LastLength then
    Exit(258);
  Dec(Symbol, EndOfBlock + 1);
  if Symbol < 8 then
    Exit(3 + Symbol);
  Extra := Symbol div 4 - 1;
  Result := 3 + (4 + Symbol mod 4) shl Extra + TakeBits(Stream, Extra);
end;

// Returns how far back a copy begins: two symbols to each doubling, from 1 on.
function TakeDistance(var Stream: TInflation): Cardinal; inline;
var
  Symbol, Extra: Cardinal;
begin
  Symbol := TakeSymbol(Stream, Stream.Distances);
  if Symbol < 4 then
    Exit(1 + Symbol);
  if Symbol > LastDistance then
  begin
    Stream.IsValid := False;
    Exit(0);
  end;
  Extra := Symbol div 2 - 1;
  Result := 1 + (2 + Symbol mod 2) shl Extra + TakeBits(Stream, Extra);
end;

// Copies bytes of the target to its end. They may overlap: then they repeat.
procedure CopyBack(var Stream: TInflation; Symbol: Cardinal);
var
  Length, Distance: NativeUInt;
  Limit: PByte;
begin
  Length := TakeLength(Stream, Symbol);
  Distance := TakeDistance(Stream);
  if not Stream.IsValid or (Symbol > LastLength)
    or (Distance > NativeUInt(Stream.Target - Stream.Start))
    or (Length > NativeUInt(Stream.TargetLimit - Stream.Target)) then
  begin
    Stream.IsValid := False;
    Exit;
  end;
  Limit := Stream.Target + Length;
  repeat
    Stream.Target^ := (Stream.Target - Distance)^;
    Inc(Stream.Target);
  until Stream.Target = Limit;
end;

// Decompresses the symbols of a block.
procedure CopySymbols(var Stream: TInflation);
var
  Symbol: Cardinal;
begin
  while Stream.IsValid do
  begin
    Symbol := TakeSymbol(Stream, Stream.Literals);
    if Symbol = EndOfBlock then
      Exit;
    if Symbol > LastLiteral then
      CopyBack(Stream, Symbol)
    else if Stream.Target = Stream.TargetLimit then
      Stream.IsValid := False
    else
    begin
      Stream.Target^ := Symbol;
      Inc(Stream.Target);
    end;
  end;
end;

// Decompresses the next block; returns whether it is the last one.
function CopyBlock(var Stream: TInflation): Boolean;
begin
  Result := TakeBits(Stream, 1) = 1;
  case TakeBits(Stream, 2) of
    0: CopyStored(Stream);
    1:
      begin
        UseFixedCodes(Stream);
        CopySymbols(Stream);
      end;
    2:
      begin
        ReadCodes(Stream);
        CopySymbols(Stream);
      end;
  else
    Stream.IsValid := False;
  end;
end;

// ---------------------------------------------------------------------------- the frame

// Adler-32.
function ChecksumOf(P, Limit: PByte): Cardinal;
const
  Modulus = 65521;
  Unreduced = 4096; // bytes whose sums fit into 32 bits
var
  Sum, SumOfSums: Cardinal;
  Part: PByte;
begin
  Sum := 1;
  SumOfSums := 0;
  while P < Limit do
  begin
    Part := Limit;
    if Limit - P > Unreduced then
      Part := P + Unreduced;
    repeat
      Inc(Sum, P^);
      Inc(SumOfSums, Sum);
      Inc(P);
    until P = Part;
    Sum := Sum mod Modulus;
    SumOfSums := SumOfSums mod Modulus;
  end;
  Result := SumOfSums shl 16 or Sum;
end;

// Reads the two bytes before the blocks; returns whether they announce a stream of this format that
// needs no dictionary.
function ReadHeader(var Stream: TInflation): Boolean;
const
  Deflate = 8;
  NeedsDictionary = $20;
var
  Kind, Flags: Cardinal;
begin
  Kind := TakeBits(Stream, 8);
  Flags := TakeBits(Stream, 8);
  Result := (Kind and 15 = Deflate) and (Flags and NeedsDictionary = 0)
    and ((Kind shl 8 + Flags) mod 31 = 0);
end;

// Reads the bytes behind the blocks; returns whether they fit the target.
function ChecksumFits(var Stream: TInflation): Boolean;
var
  Index, Expected: Cardinal;
begin
  AlignToByte(Stream);
  Expected := 0;
  for Index := 1 to SizeOf(Expected) do
    Expected := Expected shl 8 or TakeBits(Stream, 8);
  Result := not IsPastEnd(Stream) and (Expected = ChecksumOf(Stream.Start, Stream.TargetLimit));
end;

function Inflate(Source: PByte; Size: NativeUInt; Target: PByte; TargetSize: NativeUInt): Boolean;
var
  Stream: PInflation;
begin
  Stream := OsTakePages(SizeOf(TInflation));
  if Stream = nil then
    Exit(False);
  Stream^.Next := Source;
  Stream^.Limit := Source + Size;
  Stream^.Start := Target;
  Stream^.Target := Target;
  Stream^.TargetLimit := Target + TargetSize;
  Stream^.IsValid := ReadHeader(Stream^);
  while Stream^.IsValid and not CopyBlock(Stream^) do
    if IsPastEnd(Stream^) then
      Stream^.IsValid := False;
  Result := Stream^.IsValid and (Stream^.Target = Stream^.TargetLimit) and ChecksumFits(Stream^);
  OsReleasePages(Stream, SizeOf(TInflation));
end;

end.
