/// Fills memory with one byte value, and finds out whether it holds that value.
//
// Owns:       nothing.
// Callers:    any unit, any thread.
unit LaneMM.Patterns;

{$I ../LaneMM.inc}

interface

const
  /// The largest block that is filled as a whole.
  WholeSize = 1 shl 20;
  /// The length of an end of a larger one.
  EndSize = 64 shl 10;
  /// The bytes before a block, and the least number of those behind it, that PatternIsAround reads.
  AroundBefore = 32;
  AroundBehind = 16;

/// Fills Size bytes at P with Value.
procedure PatternFill(P: PByte; Size: NativeUInt; Value: Byte);
/// Returns how many bytes at the start of a block of Size bytes are filled and checked: all of a
/// block of up to 1 MB, 64 KB of a larger one, so that pages which the program never touches get no
/// memory.
function PatternHead(Size: NativeUInt): NativeUInt; inline;
/// Returns how many bytes at its end: 0 where PatternHead is all of it.
function PatternTail(Size: NativeUInt): NativeUInt; inline;
/// Fills head and tail of a block of Size bytes at P with Value.
procedure PatternFillEnds(P: PByte; Size: NativeUInt; Value: Byte); inline;
/// Fills Size bytes at P with zeros. Of more than 1 MB the pages are purged instead: those that the
/// program never touches get no memory.
procedure PatternZero(P: PByte; Size: NativeUInt);
/// Returns True if the Size bytes at P all are Value.
function PatternIsWhole(P: PByte; Size: NativeUInt; Value: Byte): Boolean;
/// Returns True if head and tail of a block of Size bytes at P are Value.
function PatternEndsAreWhole(P: PByte; Size: NativeUInt; Value: Byte): Boolean; inline;
/// Returns True if the AroundBefore bytes before the Size bytes at P, and the Behind bytes after
/// them, AroundBehind at least, all are Value.
function PatternIsAround(P: PByte; Size, Behind: NativeUInt; Value: Byte): Boolean;
/// Prefetches the cache line of Head, and those of the Size bytes at P, from 1 on; of more than 512
/// bytes the first ones. Any addresses: it faults at none. CacheFetch takes lines past the second
/// level of the cache, where they are lost before another block of their class is taken.
procedure PatternFetch(Head, P: PByte; Size: NativeUInt);
/// Returns True if Word, used as an address, was made of a word of Value bytes: it is within 64 KB
/// of it, and not of nil: with Value $FF these words are neighbours.
function PatternIsNear(Word: NativeUInt; Value: Byte): Boolean;
/// Returns how many of the Size bytes at P, from the first on, are Value without a gap.
function PatternLength(P: PByte; Size: NativeUInt; Value: Byte): NativeUInt;

implementation

uses
  LaneMM.Layout, LaneMM.Bits, LaneMM.Os;

const
  WordSize = SizeOf(NativeUInt);
  PairSize = 2 * WordSize;
  StepSize = 4 * WordSize;
  // From this size on the run-time library is faster.
  LongSize = 512;
  // Bytes that PatternFetch fetches at most.
  MostFetched = 512;
  // A word of equal bytes is their value times this.
  Ones = High(NativeUInt) div High(Byte);

function PatternIsNear(Word: NativeUInt; Value: Byte): Boolean;
const
  MostOffset = 65536;
begin
  Result := (Value <> 0) and (Word >= MostOffset)
    and (NativeUInt(Word - Value * Ones + MostOffset) < 2 * MostOffset);
end;

function BytesAreWhole(P: PByte; Size: NativeUInt; Value: Byte): Boolean;
begin
  while (Size > 0) and (P[Size - 1] = Value) do
    Dec(Size);
  Result := Size = 0;
end;

{$ifdef LANEMM_ASM_LINUX}
  {$I LaneMM.Patterns.x64.inc}
{$else}
procedure FillBytes(P: PByte; Size: NativeUInt; Value: Byte);
begin
  while Size > 0 do
  begin
    Dec(Size);
    P[Size] := Value;
  end;
end;

procedure FillStep(P: PNativeUInt; Word: NativeUInt); inline;
begin
  P[0] := Word;
  P[1] := Word;
  P[2] := Word;
  P[3] := Word;
end;

procedure FillPair(P: PNativeUInt; Word: NativeUInt); inline;
begin
  P[0] := Word;
  P[1] := Word;
end;

// The last step begins where it ends at the end of the range: it may overlap the one before it.
procedure FillSteps(P: PByte; Size, Word: NativeUInt); inline;
var
  Last: PByte;
begin
  Last := P + Size - StepSize;
  while P < Last do
  begin
    FillStep(PNativeUInt(P), Word);
    Inc(P, StepSize);
  end;
  FillStep(PNativeUInt(Last), Word);
end;

procedure PatternFill(P: PByte; Size: NativeUInt; Value: Byte);
begin
  if Size >= LongSize then
    FillChar(P^, Size, Value)
  else if Size >= StepSize then
    FillSteps(P, Size, Value * Ones)
  else if Size >= PairSize then
  begin
    FillPair(PNativeUInt(P), Value * Ones);
    FillPair(PNativeUInt(P + Size - PairSize), Value * Ones);
  end
  else
    FillBytes(P, Size, Value);
end;

// Return the bits in which the words at P differ from Word.
function OthersInStep(P: PNativeUInt; Word: NativeUInt): NativeUInt; inline;
begin
  Result := (P[0] xor Word) or (P[1] xor Word) or (P[2] xor Word) or (P[3] xor Word);
end;

function OthersInPair(P: PNativeUInt; Word: NativeUInt): NativeUInt; inline;
begin
  Result := (P[0] xor Word) or (P[1] xor Word);
end;

// In steps as FillSteps; the bits that differ are collected, for few branches.
function StepsAreWhole(P: PByte; Size, Word: NativeUInt): Boolean; inline;
var
  Last: PByte;
  Others: NativeUInt;
begin
  Last := P + Size - StepSize;
  Others := OthersInStep(PNativeUInt(Last), Word);
  while P < Last do
  begin
    Others := Others or OthersInStep(PNativeUInt(P), Word);
    Inc(P, StepSize);
  end;
  Result := Others = 0;
end;

function PatternIsWhole(P: PByte; Size: NativeUInt; Value: Byte): Boolean;
begin
  if Size >= StepSize then
    Result := StepsAreWhole(P, Size, Value * Ones)
  else if Size >= PairSize then
    Result := OthersInPair(PNativeUInt(P), Value * Ones)
      or OthersInPair(PNativeUInt(P + Size - PairSize), Value * Ones) = 0
  else
    Result := BytesAreWhole(P, Size, Value);
end;

function PatternIsAround(P: PByte; Size, Behind: NativeUInt; Value: Byte): Boolean;
begin
  Result := PatternIsWhole(P - AroundBefore, AroundBefore, Value)
    and PatternIsWhole(P + Size, Behind, Value);
end;

procedure PatternFetch(Head, P: PByte; Size: NativeUInt);
var
  Last: PByte;
begin
  CacheFetch(Head);
  if Size > MostFetched then
    Size := MostFetched;
  Last := P + Size - 1;
  while P < Last do
  begin
    CacheFetch(P);
    Inc(P, CacheLineSize);
  end;
  CacheFetch(Last);
end;
{$endif}

function PatternHead(Size: NativeUInt): NativeUInt;
begin
  Result := Size;
  if Size > WholeSize then
    Result := EndSize;
end;

function PatternTail(Size: NativeUInt): NativeUInt;
begin
  Result := 0;
  if Size > WholeSize then
    Result := EndSize;
end;

procedure PatternFillEnds(P: PByte; Size: NativeUInt; Value: Byte);
begin
  if Size <= WholeSize then
    PatternFill(P, Size, Value)
  else
  begin
    PatternFill(P, EndSize, Value);
    PatternFill(P + Size - EndSize, EndSize, Value);
  end;
end;

procedure PatternZero(P: PByte; Size: NativeUInt);
var
  First, Limit: NativeUInt;
begin
  First := AlignUp(NativeUInt(P), OsGranule);
  Limit := (NativeUInt(P) + Size) and not NativeUInt(OsGranule - 1);
  if PatternTail(Size) > 0 then
  begin
    OsErase(Pointer(First), Limit - First);
    // Where purged memory is not committed, a refusal of what was purged just now ends in a fault.
    if OsPurge(Pointer(First), Limit - First) and OsUse(Pointer(First), Limit - First) then
    begin
      PatternFill(P, First - NativeUInt(P), 0);
      PatternFill(PByte(Limit), NativeUInt(P) + Size - Limit, 0);
      Exit;
    end;
  end;
  PatternFill(P, Size, 0);
end;

function PatternEndsAreWhole(P: PByte; Size: NativeUInt; Value: Byte): Boolean;
begin
  Result := PatternIsWhole(P, PatternHead(Size), Value)
    and PatternIsWhole(P + Size - PatternTail(Size), PatternTail(Size), Value);
end;

function PatternLength(P: PByte; Size: NativeUInt; Value: Byte): NativeUInt;
var
  First, Limit: PByte;
begin
  First := P;
  Limit := P + Size;
  while (P + WordSize <= Limit) and (PNativeUInt(P)^ = Value * Ones) do
    Inc(P, WordSize);
  while (P < Limit) and (P^ = Value) do
    Inc(P);
  Result := P - First;
end;

end.
